// What solvers of linear models that look at every feature measure between their rounds: objective,
// duality gap and violation at a point (objectives/linear.hpp), and the intercept that the dual
// asks for.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "sublearn/active/round.hpp"
#include "sublearn/core/monitor.hpp"
#include "sublearn/core/stopwatch.hpp"
#include "sublearn/core/types.hpp"
#include "sublearn/objectives/linear.hpp"
#include "sublearn/prox/separable.hpp"
#include "sublearn/solvers/linear/intercept.hpp"

namespace sublearn {

template <class Columns>
class LinearCertificate {
 public:
  LinearCertificate(const LinearProblem<Columns>& problem, const SeparablePenalty& penalty,
                    int n_threads)
      : problem_(problem),
        penalty_(penalty),
        n_threads_(n_threads),
        ids_(static_cast<std::size_t>(problem.n_features())),
        gradient_(ids_.size()) {
    std::iota(ids_.begin(), ids_.end(), index_t{0});
    for (const index_t j : ids_) nnz_ += problem.X.nnz(j);
  }

  void place(LinearPoint& at) {
    sublearn::place(problem_, at);
    for (const index_t j : ids_) {
      if (at.w[static_cast<std::size_t>(j)] != 0.0) work += problem_.X.nnz(j);
    }
  }

  void centre_intercept(LinearPoint& at) {
    if (problem_.has_intercept) sublearn::centre_intercept(problem_, at);
  }

  /// Objective, violation and the best gap so far at a point whose rows are up to date.
  Round measure(const LinearPoint& at) {
    gradient_at(problem_, at.rows.slopes, ids_, gradient_, n_threads_);
    work += nnz_;
    Round now;
    now.objective = at.loss;
    for (std::size_t j = 0; j < ids_.size(); ++j) {
      now.objective += penalty_.value(ids_[j], at.w[j]);
      now.violation = std::max(now.violation, penalty_.violation(ids_[j], at.w[j], gradient_[j]));
      now.n_nonzero += at.w[j] != 0.0;
    }
    const double most = largest_dual_scale(problem_, at.rows);
    const DualPoint dual = linear_dual(problem_, penalty_, ids_, at.rows.slopes, gradient_, most);
    best_bound_ = std::max(best_bound_, dual.bound);
    now.bound = best_bound_;
    now.unit = std::max(std::abs(now.objective), 1e-300);
    now.gap = std::max(now.objective - now.bound, 0.0);
    now.work = work;
    now.seconds = stopwatch_.seconds();
    return now;
  }

  void record(Round now, std::int64_t n_passes, Monitor& monitor) {
    now.n_passes = now.n_done = n_passes;
    now.publish(monitor);
    rounds.push_back(now);
  }

  /// X'slopes at the point that was measured last.
  std::span<const double> gradient() const { return gradient_; }
  std::span<const index_t> ids() const { return ids_; }

  std::vector<Round> rounds;
  std::int64_t work = 0;

 private:
  LinearProblem<Columns> problem_;
  SeparablePenalty penalty_;
  int n_threads_;
  std::vector<index_t> ids_;
  std::vector<double> gradient_;
  std::int64_t nnz_ = 0;
  double best_bound_ = -std::numeric_limits<double>::infinity();
  Stopwatch stopwatch_;
};

}  // namespace sublearn
