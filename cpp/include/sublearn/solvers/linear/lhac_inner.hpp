// LHAC as the method inside an active set of features.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sublearn/core/monitor.hpp"
#include "sublearn/core/status.hpp"
#include "sublearn/core/types.hpp"
#include "sublearn/objectives/linear.hpp"
#include "sublearn/objectives/smooth_objective.hpp"
#include "sublearn/prox/separable.hpp"
#include "sublearn/solvers/lhac/lhac_on_set.hpp"
#include "sublearn/solvers/linear/inner_method.hpp"
#include "sublearn/solvers/linear/intercept.hpp"

namespace sublearn {

/// The loss of the weights of some features at the best intercept for them. Its gradient is that in
/// the weights alone. An intercept that LHAC moved would be moved again before the next
/// certificate, and what that puts back of the violation can be more than a round has won.
template <class Columns>
class CentredObjective final : public SmoothObjective {
 public:
  CentredObjective(const LinearProblem<Columns>& problem, std::span<const index_t> ids,
                   LinearPoint& at, int n_threads)
      : problem_(&problem), ids_(ids), at_(&at), n_threads_(n_threads) {}

  offset_t size() const override { return static_cast<offset_t>(ids_.size()); }

  double move_to(std::span<const double> x) override {
    auto& z = at_->rows.predictions;
    start_predictions(*problem_, at_->intercept, z);
    for (std::size_t k = 0; k < ids_.size(); ++k) {
      if (x[k] != 0.0) problem_->X.add(ids_[k], x[k], z.data());
    }
    at_->loss = evaluate(*problem_, at_->rows);
    if (problem_->has_intercept && std::isfinite(at_->loss)) centre_intercept(*problem_, *at_);
    return at_->loss;
  }

  void gradient(std::span<double> out) override {
    gradient_at(*problem_, at_->rows.slopes, ids_, out, n_threads_);
  }

  bool coordinate_sizes(std::span<double> out) override {
    for (std::size_t k = 0; k < ids_.size(); ++k) {
      out[k] = problem_->X.square(ids_[k], problem_->weights.data());
    }
    return true;
  }

 private:
  const LinearProblem<Columns>* problem_;
  std::span<const index_t> ids_;
  LinearPoint* at_;  ///< its rows and intercept are those of the last move
  int n_threads_;
};

template <class Columns>
class LhacInner final : public InnerMethod {
 public:
  LhacInner(const LinearProblem<Columns>& problem, const SeparablePenalty& penalty)
      : problem_(&problem), penalty_(penalty) {}

  bool minimise(LinearPoint& at, std::span<const index_t> features, double target, int n_threads,
                Monitor& monitor) override {
    CentredObjective<Columns> part(*problem_, features, at, n_threads);
    LhacSettings settings;
    settings.least_violation = target;
    LhacOnSet lhac(part, penalty_, features, settings, {.is_counted = false});
    const Status status = lhac.solve(at.w, monitor);
    place(*problem_, at);
    count(features, lhac.iterations());
    return status == Status::converged;
  }

 private:
  void count(std::span<const index_t> features, const std::vector<LhacIteration>& iterations) {
    const LhacIteration& last = iterations.back();
    passes += last.n_passes;
    const auto n_looks = last.n_values + static_cast<std::int64_t>(iterations.size());
    for (const index_t j : features) work += n_looks * problem_->X.nnz(j);
  }

  const LinearProblem<Columns>* problem_;
  SeparablePenalty penalty_;
};

}  // namespace sublearn
