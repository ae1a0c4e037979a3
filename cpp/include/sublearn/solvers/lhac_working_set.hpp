// LHAC inside a working set, for objectives that can give a part of their gradient: one full
// gradient certifies the point, rules coordinates out and extends the set; in between LHAC asks for
// gradients over the set alone. A very sparse solution needs few of the full ones.
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
#include "sublearn/objectives/smooth_objective.hpp"
#include "sublearn/prox/separable.hpp"
#include "sublearn/solvers/free_set.hpp"
#include "sublearn/solvers/lhac.hpp"

namespace sublearn {

/// A penalty over some of its coordinates.
class PenaltyPart {
 public:
  void reset(const SeparablePenalty& whole, std::span<const index_t> ids) {
    l1_.clear();
    for (const index_t j : ids) l1_.push_back(whole.l1[static_cast<std::size_t>(j)]);
    part_ = whole;
    part_.l1 = l1_;
    const auto last = static_cast<index_t>(whole.l1.size()) - 1;
    part_.has_free_last = whole.has_free_last && !ids.empty() && ids.back() == last;
  }
  const SeparablePenalty& get() const { return part_; }

 private:
  std::vector<double> l1_;
  SeparablePenalty part_;
};

class WorkingSetLhac {
 public:
  /// `objective` has parts.
  WorkingSetLhac(SmoothObjective& objective, const SeparablePenalty& penalty,
                 const LhacSettings& settings)
      : objective_(&objective),
        whole_(&objective),
        penalty_(penalty),
        settings_(settings),
        kept_(static_cast<std::size_t>(objective.size())),
        reaches_(kept_.size(), kUnknown) {
    std::iota(kept_.begin(), kept_.end(), index_t{0});
    kept_penalty_.reset(penalty_, kept_);
  }

  /// From x to an (approximate) minimiser, left in x.
  LhacEnd solve(std::vector<double>& x, Monitor& monitor) {
    started_ = std::chrono::steady_clock::now();
    while (true) {
      certify(x, monitor);
      if (iterations.back().certificate <= settings_.tol) return LhacEnd::converged;
      if (monitor.stop_requested()) return LhacEnd::stopped;
      if (n_done() >= settings_.max_iter) return LhacEnd::max_iter;
      if (is_stalled(rounds_)) return LhacEnd::stalled;
      screen(x);
      if (!correct(x, monitor)) {
        return monitor.stop_requested() ? LhacEnd::stopped : LhacEnd::stalled;
      }
    }
  }

  std::vector<LhacIteration> iterations;
  double best_bound = -std::numeric_limits<double>::infinity();

 private:
  struct Round {
    double objective, gap, violation;
  };

  int n_done() const { return static_cast<int>(iterations.size()) - 1; }

  /// The row of the full gradient: it alone shows violations outside the working set.
  void certify(std::span<const double> x, Monitor& monitor) {
    at_kept_.clear();
    for (const index_t j : kept_) at_kept_.push_back(x[static_cast<std::size_t>(j)]);
    gradient_.resize(kept_.size());
    LhacIteration now = iterations.empty() ? LhacIteration{} : last_;
    const double loss = whole_->move_to(at_kept_);
    whole_->gradient(gradient_);
    ++now.n_values;
    now.n_asked = static_cast<std::int64_t>(kept_.size());
    const double norm = measure(loss, now);
    dual_ = whole_->dual_point(kept_penalty_.get(), gradient_);
    best_bound = std::max(best_bound, dual_.bound);
    const bool has_bound = std::isfinite(best_bound);
    const double gap = has_bound ? std::max(now.objective - best_bound, 0.0) : norm;
    if (rounds_.empty()) first_norm_ = norm;
    const double unit = has_bound ? std::max(std::abs(now.objective), 1e-300) : first_norm_;
    now.certificate = gap > 0.0 ? gap / unit : 0.0;
    now.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - started_).count();
    rounds_.push_back({now.objective, gap, now.violation});
    iterations.push_back(now);
    monitor.objective = now.objective;
    monitor.gap = now.certificate * std::abs(now.objective);
    monitor.nnz_primal = now.n_nonzero;
    monitor.work = now.n_values;
    monitor.n_done = n_done();
  }

  /// Objective, violations and the sets of (5.4.1); returns the l1 norm of the least subgradient.
  double measure(double loss, LhacIteration& now) {
    const SeparablePenalty& penalty = kept_penalty_.get();
    double norm = 0.0, value = 0.0;
    now.violation = 0.0, now.n_nonzero = 0;
    for (std::size_t k = 0; k < kept_.size(); ++k) {
      const auto at = static_cast<offset_t>(k);
      const double violation = penalty.violation(at, at_kept_[k], gradient_[k]);
      norm += violation;
      now.violation = std::max(now.violation, violation);
      value += penalty.value(at, at_kept_[k]);
      now.n_nonzero += at_kept_[k] != 0.0;
    }
    now.objective = loss + value;
    const auto counts = chooser_.choose(settings_.free_set, penalty, at_kept_, gradient_, free_);
    now.z1 = counts.z1, now.z2 = counts.z2, now.z3 = counts.z3;
    now.n_free = static_cast<std::int64_t>(free_.size());
    return norm;
  }

  /// Rules out for good what the ball around the dual point proves to be 0.
  void screen(std::span<const double> x) {
    if (!std::isfinite(dual_.bound)) return;
    const double gap = std::max(iterations.back().objective - dual_.bound, 0.0);
    const double radius = std::sqrt(2.0 * gap);
    if (!is_screening_worthwhile(x, radius)) return;
    std::size_t n = 0;
    for (std::size_t k = 0; k < kept_.size(); ++k) {
      if (is_ruled_out(x, k, radius)) continue;
      reaches_[n] = reaches_[k];
      gradient_[n] = gradient_[k];
      kept_[n++] = kept_[k];
    }
    if (n == kept_.size()) return;
    kept_.resize(n);
    gradient_.resize(n);
    kept_penalty_.reset(penalty_, kept_);
    reduced_ = objective_->restricted(kept_);
    whole_ = reduced_.get();
  }

  bool is_ruled_out(std::span<const double> x, std::size_t k, double radius) {
    const auto j = static_cast<std::size_t>(kept_[k]);
    const double room = penalty_.l1[j] - dual_.scale * std::abs(gradient_[k]);
    return x[j] == 0.0 && room > 0.0 && radius * reach(k) < room;
  }

  /// Reaches of all coordinates cost as much as a gradient, and far from the optimum the ball rules
  /// out nothing: a sample is asked first.
  bool is_screening_worthwhile(std::span<const double> x, double radius) {
    const std::size_t stride = std::max<std::size_t>(1, kept_.size() / kSample);
    for (std::size_t k = 0; k < kept_.size(); k += stride) {
      if (is_ruled_out(x, k, radius)) return true;
    }
    return false;
  }

  double reach(std::size_t k) {
    if (reaches_[k] == kUnknown) reaches_[k] = whole_->reach(static_cast<offset_t>(k));
    return reaches_[k];
  }

  /// LHAC over the working set. False if it made no step: the next round would be this one again.
  bool correct(std::vector<double>& x, Monitor& monitor) {
    const auto ids = working_.choose(penalty_, kept_, x, gradient_);
    working_penalty_.reset(penalty_, ids);
    const std::unique_ptr<SmoothObjective> part = objective_->restricted(ids);
    std::vector<double> at;
    for (const index_t j : ids) at.push_back(x[static_cast<std::size_t>(j)]);
    LhacSettings settings = settings_;
    settings.least_violation = share() * iterations.back().violation;
    settings.max_iter = settings_.max_iter - n_done();
    Lhac lhac(*part, working_penalty_.get(), settings, {iterations.back(), n_done(), best_bound});
    if (hessian_) lhac.hessian().take_over(*hessian_, places_of(ids));
    lhac.solve(at, monitor);
    hessian_ = std::make_unique<LowRankHessian>(std::move(lhac.hessian()));
    hessian_ids_.assign(ids.begin(), ids.end());
    for (std::size_t k = 0; k < ids.size(); ++k) x[static_cast<std::size_t>(ids[k])] = at[k];
    append(lhac.iterations);
    return lhac.iterations.size() > 1;
  }

  /// The first point has its row already; the last gets one from the next full gradient.
  void append(const std::vector<LhacIteration>& rows) {
    last_ = rows.back();
    iterations.back().n_free = rows.front().n_free;
    for (std::size_t k = 1; k + 1 < rows.size(); ++k) iterations.push_back(rows[k]);
  }

  /// Where the coordinates are in the Hessian of the last round, -1 for nowhere.
  std::vector<index_t> places_of(std::span<const index_t> ids) const {
    std::vector<index_t> places;
    auto at = hessian_ids_.begin();
    for (const index_t j : ids) {
      at = std::lower_bound(at, hessian_ids_.end(), j);
      const bool is_known = at != hessian_ids_.end() && *at == j;
      places.push_back(is_known ? static_cast<index_t>(at - hessian_ids_.begin()) : -1);
    }
    return places;
  }

  /// Of the violation that LHAC may leave.
  double share() const {
    if (working_.is_growing()) return kRoughShare;
    if (!working_.holds_every_violator()) return kShare;
    // Nothing is missing: on to the end, if the gap falls with the square of the violation.
    const double left = settings_.tol / iterations.back().certificate;
    return std::clamp(std::isfinite(best_bound) ? 0.5 * std::sqrt(left) : 0.5 * left, kLeastShare,
                      kShare);
  }

  static constexpr double kUnknown = -1.0;
  static constexpr std::size_t kSample = 64;
  static constexpr double kShare = 0.3;
  static constexpr double kRoughShare = 0.7;
  static constexpr double kLeastShare = 1e-3;

  SmoothObjective* objective_;
  SmoothObjective* whole_;  ///< the function of the kept coordinates
  std::unique_ptr<SmoothObjective> reduced_;
  SeparablePenalty penalty_;
  LhacSettings settings_;
  std::vector<index_t> kept_;
  std::vector<double> reaches_, at_kept_, gradient_;  ///< of the kept coordinates
  PenaltyPart kept_penalty_, working_penalty_;
  WorkingSet working_;
  std::unique_ptr<LowRankHessian> hessian_;  ///< of the last round, over hessian_ids_
  std::vector<index_t> hessian_ids_;
  FreeSetChooser chooser_;
  std::vector<index_t> free_;
  DualPoint dual_;
  std::vector<Round> rounds_;
  LhacIteration last_;  ///< of the last round
  double first_norm_ = 0.0;
  std::chrono::steady_clock::time_point started_;
};

}  // namespace sublearn
