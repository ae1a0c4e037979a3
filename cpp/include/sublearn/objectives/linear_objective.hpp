// The smooth part of a linear model, over some of its features, as an objective for LHAC. The last
// coordinate is the intercept where the problem has one.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "sublearn/objectives/linear.hpp"
#include "sublearn/objectives/smooth_objective.hpp"

namespace sublearn {

template <class Columns>
class LinearObjective final : public SmoothObjective {
 public:
  /// Of the features `ids`, in that order.
  LinearObjective(const LinearProblem<Columns>& problem, std::vector<index_t> ids, int n_threads)
      : problem_(problem), n_threads_(n_threads), ids_(std::move(ids)), rows_(problem.n_rows()) {}

  /// Of all features.
  LinearObjective(const LinearProblem<Columns>& problem, int n_threads)
      : LinearObjective(problem, all_ids(problem.n_features()), n_threads) {}

  offset_t size() const override {
    return static_cast<offset_t>(ids_.size()) + (problem_.has_intercept ? 1 : 0);
  }

  double move_to(std::span<const double> x) override {
    auto& z = rows_.predictions;
    start_predictions(problem_, problem_.has_intercept ? x.back() : 0.0, z);
    for (std::size_t k = 0; k < ids_.size(); ++k) {
      if (x[k] != 0.0) problem_.X.add(ids_[k], x[k], z.data());
    }
    return evaluate(problem_, rows_);
  }

  void gradient(std::span<double> out) override {
    gradient_at(problem_, rows_.slopes, ids_, out.first(ids_.size()), n_threads_);
    if (problem_.has_intercept) {
      out.back() = std::accumulate(rows_.slopes.begin(), rows_.slopes.end(), 0.0);
    }
  }

  /// Only where no coordinate is unpenalised, since its slope would have to be 0 exactly.
  DualPoint dual_point(const SeparablePenalty& penalty, std::span<const double> gradient) override {
    const std::vector<index_t> places = all_ids(static_cast<offset_t>(ids_.size()));
    const auto is_open = [&](index_t k) { return penalty.is_open(k); };
    if (problem_.has_intercept || std::any_of(places.begin(), places.end(), is_open)) return {};
    return linear_dual(problem_, penalty, places, rows_.slopes, gradient);
  }

  double reach(offset_t j) override {
    return reach_of(problem_, ids_[static_cast<std::size_t>(j)]);
  }

  bool coordinate_sizes(std::span<double> out) override {
    for (std::size_t k = 0; k < ids_.size(); ++k) {
      out[k] = problem_.X.square(ids_[k], problem_.weights.data());
    }
    if (problem_.has_intercept) {
      out.back() = std::accumulate(problem_.weights.begin(), problem_.weights.end(), 0.0);
    }
    return true;
  }

  bool has_parts() const override { return true; }

  std::unique_ptr<SmoothObjective> restricted(std::span<const index_t> ids) override {
    LinearProblem<Columns> problem = problem_;
    problem.has_intercept = false;
    std::vector<index_t> features;
    for (const index_t k : ids) {
      const auto at = static_cast<std::size_t>(k);
      if (at < ids_.size())
        features.push_back(ids_[at]);
      else
        problem.has_intercept = true;
    }
    return std::make_unique<LinearObjective>(problem, std::move(features), n_threads_);
  }

  const RowState& rows() const { return rows_; }

 private:
  static std::vector<index_t> all_ids(offset_t n) {
    std::vector<index_t> ids(static_cast<std::size_t>(n));
    std::iota(ids.begin(), ids.end(), index_t{0});
    return ids;
  }

  LinearProblem<Columns> problem_;
  int n_threads_;
  std::vector<index_t> ids_;
  RowState rows_;
};

}  // namespace sublearn
