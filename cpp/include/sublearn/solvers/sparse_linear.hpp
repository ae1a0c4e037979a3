// Sparse linear models: an outer working set with gap-safe screening around an inner method.
//
//   min_{w,b}  P(w, b) = sum_i s_i f(<x_i, w> + b; y_i) + p(w)
//
// Search: one gradient over the features that are not yet ruled out gives the violations, the
// certificate and the screening. Correct: the inner method on the working set. Shrink: a feature is
// ruled out for good when the dual ball of radius sqrt(2 gap beta) around theta proves w_j* = 0
// (Ndiaye, Fercoq, Gramfort, Salmon 2017), beta the smoothness of f.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <limits>
#include <memory>
#include <numeric>
#include <span>
#include <vector>

#include "sublearn/active/working_set.hpp"
#include "sublearn/core/monitor.hpp"
#include "sublearn/core/types.hpp"
#include "sublearn/objectives/linear.hpp"
#include "sublearn/prox/separable.hpp"
#include "sublearn/solvers/inner_method.hpp"
#include "sublearn/solvers/intercept.hpp"
#include "sublearn/solvers/lhac_inner.hpp"
#include "sublearn/solvers/newton_cd.hpp"

namespace sublearn {

enum class LinearMethod {
  newton,  ///< CD2: proximal Newton steps by coordinate descent (newton_cd.hpp)
  lhac,    ///< low-rank Hessian (lhac.hpp)
};

struct SparseLinearSettings {
  LinearMethod method = LinearMethod::newton;
  LhacSettings lhac;   ///< for LinearMethod::lhac
  double tol = 1e-6;   ///< on the relative duality gap
  int max_iter = 100;  ///< rounds of the inner method
  int n_threads = 1;
  std::size_t first_size = 100;  ///< of the working set
  double inner_target = 0.3;     ///< share of the violation that the inner method leaves
};

/// One row of the trace: a full gradient and what it showed.
struct SparseLinearPass {
  double objective = 0.0;
  double gap = 0.0;
  double violation = 0.0;
  std::int64_t n_nonzero = 0;
  std::int64_t n_kept = 0;  ///< features not ruled out
  std::int64_t n_working = 0;
  std::int64_t work = 0;      ///< entries of X looked at so far
  std::int64_t n_passes = 0;  ///< of coordinate descent so far
  double seconds = 0.0;
};

template <class Columns>
class SparseLinearSolver {
 public:
  SparseLinearSolver(const LinearProblem<Columns>& problem, const SeparablePenalty& penalty,
                     const SparseLinearSettings& settings)
      : problem_(problem),
        penalty_(penalty),
        settings_(settings),
        inner_(make_inner()),
        point_(problem.n_features(), problem.n_rows()),
        working_(settings.first_size) {}

  /// Whatever ends it, the last pass speaks of the point that is left.
  bool solve(Monitor& monitor) {
    started_ = std::chrono::steady_clock::now();
    start();
    for (int round = 0;; ++round) {
      if (problem_.has_intercept) centre_intercept(problem_, point_);
      certify();
      publish(monitor);
      if (passes.back().gap <= settings_.tol * std::abs(passes.back().objective)) return true;
      if (round >= settings_.max_iter || monitor.stop_requested()) return false;
      if (is_stalled(passes)) return false;
      screen();
      const auto working = working_.choose(penalty_, kept_, point_.w, gradient_);
      passes.back().n_working = static_cast<std::int64_t>(working.size());
      // Nothing is solved well before the set holds what matters.
      const double share = working_.is_growing() ? kRoughTarget : settings_.inner_target;
      inner_->minimise(point_, working, share * passes.back().violation, settings_.n_threads,
                       monitor);
    }
    return false;
  }

  LinearPoint& point() { return point_; }
  std::vector<SparseLinearPass> passes;

 private:
  std::unique_ptr<InnerMethod> make_inner() const {
    if (settings_.method == LinearMethod::lhac) {
      return std::make_unique<LhacInner<Columns>>(problem_, penalty_, settings_.lhac);
    }
    return std::make_unique<NewtonCd<Columns>>(problem_, penalty_);
  }

  void start() {
    kept_.resize(static_cast<std::size_t>(problem_.n_features()));
    norms_.assign(kept_.size(), kUnknown);
    std::iota(kept_.begin(), kept_.end(), index_t{0});
    auto& z = point_.rows.predictions;
    std::fill(z.begin(), z.end(), point_.intercept);
    for (std::size_t j = 0; j < kept_.size(); ++j) {
      if (point_.w[j] != 0.0) problem_.X.add(kept_[j], point_.w[j], z.data());
    }
    point_.loss = evaluate(problem_, point_.rows);
  }

  void certify() {
    gradient_.resize(kept_.size());
    gradient_at(problem_, point_.rows.slopes, kept_, gradient_, settings_.n_threads);
    SparseLinearPass pass;
    double penalty = 0.0;
    for (std::size_t k = 0; k < kept_.size(); ++k) {
      const double w = point_.w[static_cast<std::size_t>(kept_[k])];
      work_ += problem_.X.nnz(kept_[k]);
      penalty += penalty_.value(kept_[k], w);
      pass.violation = std::max(pass.violation, penalty_.violation(kept_[k], w, gradient_[k]));
      pass.n_nonzero += w != 0.0;
    }
    pass.objective = point_.loss + penalty;
    // Slopes that do not add up to 0 are no dual point at any scale but 0.
    const bool is_dual = !problem_.has_intercept || is_centred(point_.rows);
    scale_ = is_dual ? feasible_scale(penalty_, kept_, gradient_) : 0.0;
    best_dual_ = std::max(best_dual_, dual());
    pass.gap = std::max(pass.objective - best_dual_, 0.0);
    pass.n_kept = static_cast<std::int64_t>(kept_.size());
    pass.work = work_ + inner_->work;
    pass.n_passes = inner_->passes;
    passes.push_back(pass);
  }

  double dual() const {
    return linear_dual(problem_, penalty_, kept_, point_.rows.slopes, gradient_, scale_);
  }

  void publish(Monitor& monitor) {
    SparseLinearPass& pass = passes.back();
    pass.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - started_).count();
    monitor.objective = pass.objective;
    monitor.gap = pass.gap;
    monitor.nnz_primal = pass.n_nonzero;
    monitor.work = pass.work;
    monitor.n_done = static_cast<std::int64_t>(passes.size()) - 1;
  }

  void screen() {
    const double current = std::max(passes.back().objective - dual(), 0.0);
    const double radius = std::sqrt(2.0 * current * smoothness(problem_.loss));
    if (!is_screening_worthwhile(radius)) return;
    std::size_t n = 0;
    for (std::size_t k = 0; k < kept_.size(); ++k) {
      if (is_ruled_out(k, radius)) continue;
      kept_[n] = kept_[k];
      gradient_[n++] = gradient_[k];
    }
    kept_.resize(n);
    gradient_.resize(n);
  }

  bool is_ruled_out(std::size_t k, double radius) {
    const auto j = static_cast<std::size_t>(kept_[k]);
    const double room = penalty_.l1[j] - scale_ * std::abs(gradient_[k]);
    return point_.w[j] == 0.0 && room > 0.0 && radius * norm(kept_[k]) < room;
  }

  /// Norms of all features cost as much as a gradient, and far from the optimum the ball rules out
  /// nothing: a sample is asked first.
  bool is_screening_worthwhile(double radius) {
    const std::size_t stride = std::max<std::size_t>(1, kept_.size() / kSample);
    for (std::size_t k = 0; k < kept_.size(); k += stride) {
      if (is_ruled_out(k, radius)) return true;
    }
    return false;
  }

  /// sqrt(sum_i s_i x_ij^2), computed when first asked for.
  double norm(index_t j) {
    double& known = norms_[static_cast<std::size_t>(j)];
    if (known == kUnknown) {
      known = std::sqrt(problem_.X.square(j, problem_.weights.data()));
      work_ += problem_.X.nnz(j);
    }
    return known;
  }

  static constexpr double kUnknown = -1.0;
  static constexpr std::size_t kSample = 64;
  static constexpr double kRoughTarget = 0.7;

  LinearProblem<Columns> problem_;
  SeparablePenalty penalty_;
  SparseLinearSettings settings_;
  std::unique_ptr<InnerMethod> inner_;
  LinearPoint point_;
  std::vector<index_t> kept_;
  std::vector<double> norms_;
  std::vector<double> gradient_;
  WorkingSet working_;
  double scale_ = 1.0;
  double best_dual_ = -std::numeric_limits<double>::infinity();
  std::int64_t work_ = 0;
  std::chrono::steady_clock::time_point started_;
};

}  // namespace sublearn
