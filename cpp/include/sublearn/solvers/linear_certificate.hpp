// What solvers of linear models that look at every feature measure between their rounds: objective,
// duality gap and violation at a point (objectives/linear.hpp), and the intercept that the dual
// asks for.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "sublearn/core/monitor.hpp"
#include "sublearn/core/types.hpp"
#include "sublearn/objectives/linear.hpp"
#include "sublearn/prox/separable.hpp"
#include "sublearn/solvers/inner_method.hpp"
#include "sublearn/solvers/intercept.hpp"

namespace sublearn {

enum class LinearEnd { converged, max_iter, stopped, stalled };

/// One row of a trace.
struct LinearRound {
  double seconds = 0.0;
  double objective = 0.0;
  double gap = 0.0;
  double violation = 0.0;
  std::int64_t n_nonzero = 0;
  std::int64_t n_passes = 0;  ///< epochs, Newton steps: the solver says which
  std::int64_t work = 0;      ///< entries of X looked at so far
};

template <class Columns>
class LinearCertificate {
 public:
  LinearCertificate(const LinearProblem<Columns>& problem, const SeparablePenalty& penalty,
                    int n_threads)
      : problem_(problem),
        penalty_(penalty),
        n_threads_(n_threads),
        ids_(static_cast<std::size_t>(problem.n_features())),
        gradient_(ids_.size()),
        started_(std::chrono::steady_clock::now()) {
    std::iota(ids_.begin(), ids_.end(), index_t{0});
    for (const index_t j : ids_) nnz_ += problem.X.nnz(j);
  }

  /// Predictions, slopes and loss from the weights.
  void place(LinearPoint& at) {
    auto& z = at.rows.predictions;
    std::fill(z.begin(), z.end(), at.intercept);
    for (const index_t j : ids_) {
      const double w = at.w[static_cast<std::size_t>(j)];
      if (w == 0.0) continue;
      problem_.X.add(j, w, z.data());
      work += problem_.X.nnz(j);
    }
    at.loss = evaluate(problem_, at.rows);
  }

  void centre_intercept(LinearPoint& at) {
    if (problem_.has_intercept) sublearn::centre_intercept(problem_, at);
  }

  /// Objective, violation and the best gap so far at a point whose rows are up to date.
  LinearRound measure(const LinearPoint& at) {
    gradient_at(problem_, at.rows.slopes, ids_, gradient_, n_threads_);
    work += nnz_;
    LinearRound now;
    now.objective = at.loss;
    for (std::size_t j = 0; j < ids_.size(); ++j) {
      now.objective += penalty_.value(ids_[j], at.w[j]);
      now.violation = std::max(now.violation, penalty_.violation(ids_[j], at.w[j], gradient_[j]));
      now.n_nonzero += at.w[j] != 0.0;
    }
    // Slopes that do not add up to 0 are no dual point at any scale but 0.
    const bool is_dual = !problem_.has_intercept || is_centred(at.rows);
    const double scale = is_dual ? feasible_scale(penalty_, ids_, gradient_) : 0.0;
    best_dual_ = std::max(best_dual_,
                          linear_dual(problem_, penalty_, ids_, at.rows.slopes, gradient_, scale));
    now.gap = std::max(now.objective - best_dual_, 0.0);
    now.work = work;
    now.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - started_).count();
    return now;
  }

  void record(LinearRound now, std::int64_t n_passes, Monitor& monitor) {
    now.n_passes = n_passes;
    rounds.push_back(now);
    monitor.objective = now.objective;
    monitor.gap = now.gap;
    monitor.nnz_primal = now.n_nonzero;
    monitor.work = now.work;
    monitor.n_done = n_passes;
  }

  static bool is_within(const LinearRound& now, double tol) {
    return now.gap <= tol * std::abs(now.objective);
  }

  /// X'slopes at the point that was measured last.
  std::span<const double> gradient() const { return gradient_; }
  std::span<const index_t> ids() const { return ids_; }

  std::vector<LinearRound> rounds;
  std::int64_t work = 0;

 private:
  static constexpr double kInfinity = std::numeric_limits<double>::infinity();

  LinearProblem<Columns> problem_;
  SeparablePenalty penalty_;
  int n_threads_;
  std::vector<index_t> ids_;
  std::vector<double> gradient_;
  std::int64_t nnz_ = 0;
  double best_dual_ = -kInfinity;
  std::chrono::steady_clock::time_point started_;
};

}  // namespace sublearn
