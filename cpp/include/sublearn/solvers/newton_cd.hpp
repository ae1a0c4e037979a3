// Proximal Newton steps by coordinate descent for a linear model on a few of its features: CD2 of
// the thesis of Tang (section 2.2; GLMNET and newGLMNET elsewhere).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include "sublearn/active/coordinate_descent.hpp"
#include "sublearn/core/monitor.hpp"
#include "sublearn/core/types.hpp"
#include "sublearn/objectives/linear.hpp"
#include "sublearn/prox/separable.hpp"
#include "sublearn/solvers/hessian_models.hpp"
#include "sublearn/solvers/inner_method.hpp"

namespace sublearn {

template <class Columns>
class NewtonCd final : public InnerMethod {
 public:
  struct Settings {
    double inner_share = 0.1;  ///< a model is minimised until this share of the violation is left
    int max_passes = 50;
    int max_steps = 100;
    double sufficient = 1e-4;  ///< share of the predicted decrease that a step must reach
  };

  NewtonCd(const LinearProblem<Columns>& problem, const SeparablePenalty& penalty)
      : problem_(&problem), penalty_(penalty), residual_(problem.X), trial_(problem.n_rows()) {}

  /// Steps over the features `ids` until their violation is at most `target`. Returns whether it
  /// is.
  bool minimise(LinearPoint& at, std::span<const index_t> ids, double target, int n_threads,
                Monitor& monitor) override {
    gradient_.resize(ids.size());
    for (int step = 0; step < settings.max_steps; ++step) {
      if (monitor.stop_requested()) return false;
      gradient_at(*problem_, at.rows.slopes, ids, gradient_, n_threads);
      work += count(ids);
      const double violation = choose_free(at, ids);
      if (violation <= target) return true;
      minimise_model(at, violation);
      if (!line_search(at)) return false;
    }
    return false;
  }

  Settings settings;

 private:
  std::int64_t count(std::span<const index_t> ids) const {
    std::int64_t nnz = 0;
    for (const index_t j : ids) nnz += problem_->X.nnz(j);
    return nnz;
  }

  /// Keeps in free_ the features that are not at their optimum; returns the largest violation.
  double choose_free(const LinearPoint& at, std::span<const index_t> ids) {
    free_.clear();
    point_.clear();
    double largest = 0.0;
    for (std::size_t k = 0; k < ids.size(); ++k) {
      const double w = at.w[static_cast<std::size_t>(ids[k])];
      const double violation = penalty_.violation(ids[k], w, gradient_[k]);
      if (w == 0.0 && violation == 0.0) continue;
      free_.push_back(ids[k]);
      point_.push_back(w);
      largest = std::max(largest, violation);
    }
    if (problem_->has_intercept) {
      double sum = 0.0;
      for (const double r : at.rows.slopes) sum += r;
      largest = std::max(largest, std::abs(sum));
    }
    return largest;
  }

  void minimise_model(const LinearPoint& at, double violation) {
    residual_.reset(free_, at.rows);
    work += count(free_);
    intercept_step_ = 0.0;
    order_.resize(free_.size());
    for (std::size_t k = 0; k < order_.size(); ++k) order_[k] = static_cast<index_t>(k);
    const std::int64_t per_pass = count(free_);
    for (int pass = 0; pass < settings.max_passes; ++pass) {
      double left = descend_once(residual_, penalty_, free_, order_, point_);
      if (problem_->has_intercept) left = std::max(left, descend_intercept());
      ++passes;
      work += 2 * per_pass;
      if (left <= settings.inner_share * violation) break;
    }
  }

  double descend_intercept() {
    const double slope = residual_.intercept_slope();
    const double step = -slope / std::max(residual_.intercept_curvature(), 1e-300);
    residual_.move_intercept(step);
    intercept_step_ += step;
    return std::abs(slope);
  }

  /// Moves towards the model's minimiser as far as the objective agrees (Armijo). False: no
  /// further.
  bool line_search(LinearPoint& at) {
    direction_.assign(at.rows.predictions.size(), intercept_step_);
    double change = 0.0;  // of the penalty over a whole step
    for (std::size_t k = 0; k < free_.size(); ++k) {
      const double before = at.w[static_cast<std::size_t>(free_[k])];
      if (point_[k] == before) continue;
      problem_->X.add(free_[k], point_[k] - before, direction_.data());
      change += penalty_.value(free_[k], point_[k]) - penalty_.value(free_[k], before);
    }
    double predicted = change;
    for (std::size_t i = 0; i < direction_.size(); ++i) {
      predicted += at.rows.slopes[i] * direction_[i];
    }
    if (!(predicted < 0.0)) return false;
    double share = 1.0;
    for (int halving = 0; halving < 40; ++halving, share *= 0.5) {
      for (std::size_t i = 0; i < direction_.size(); ++i) {
        trial_.predictions[i] = at.rows.predictions[i] + share * direction_[i];
      }
      const double loss = evaluate(*problem_, trial_);
      const double gain = loss - at.loss + penalty_change(at, share);
      if (gain <= settings.sufficient * share * predicted + 1e-15 * std::abs(at.loss)) {
        accept(at, share, loss);
        return true;
      }
    }
    return false;
  }

  double penalty_change(const LinearPoint& at, double share) const {
    double change = 0.0;
    for (std::size_t k = 0; k < free_.size(); ++k) {
      const double before = at.w[static_cast<std::size_t>(free_[k])];
      if (point_[k] == before) continue;
      change += penalty_.value(free_[k], blend(before, point_[k], share)) -
                penalty_.value(free_[k], before);
    }
    return change;
  }

  /// Exactly `to` for a whole step, so that zeros are zeros.
  static double blend(double from, double to, double share) {
    return share == 1.0 ? to : from + share * (to - from);
  }

  void accept(LinearPoint& at, double share, double loss) {
    for (std::size_t k = 0; k < free_.size(); ++k) {
      double& w = at.w[static_cast<std::size_t>(free_[k])];
      w = blend(w, point_[k], share);
    }
    at.intercept += share * intercept_step_;
    std::swap(at.rows, trial_);
    at.loss = loss;
  }

  const LinearProblem<Columns>* problem_;
  SeparablePenalty penalty_;
  ResidualModel<Columns> residual_;
  RowState trial_;
  std::vector<double> gradient_;
  std::vector<index_t> free_;
  std::vector<index_t> order_;
  std::vector<double> point_;
  std::vector<double> direction_;
  double intercept_step_ = 0.0;
};

}  // namespace sublearn
