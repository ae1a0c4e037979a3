// The outer loop of sparse problems
//
//   min_x  L(x) + p(x),   L smooth and convex, p separable (prox/separable.hpp),
//
// or separable over groups of coordinates, which are then what is counted here
// (solvers/linear/group_solver.hpp), around a method for few coordinates:
//
//   certify   one gradient over the coordinates not ruled out: objective, violations, dual bound
//   stop?     by the gap, a limit, a request, or because nothing gets better any more
//   screen    rule out for good what is 0 at the optimum
//   choose    the support, and the worst violators (active/active_set.hpp)
//   correct   the method on these
//
// Screening: the optimum's dual point lies in a ball around the one at hand, of radius
// sqrt(2 (F - bound)). Where all of the ball keeps |gradient_j| below l1_j, x_j is 0 at the optimum
// (Ndiaye, Fercoq, Gramfort, Salmon 2017).
#pragma once

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "sublearn/active/active_set.hpp"
#include "sublearn/active/round.hpp"
#include "sublearn/core/monitor.hpp"
#include "sublearn/core/status.hpp"
#include "sublearn/core/stopwatch.hpp"
#include "sublearn/core/types.hpp"
#include "sublearn/prox/separable.hpp"

namespace sublearn {

/// A problem that keeps a point x and can be asked about some of its coordinates.
template <class P>
concept RestrictedProblem =
    requires(P& problem, std::span<const index_t> kept, std::span<double> gradient,
             const ActiveSet& active, Round& round, Monitor& monitor, index_t j) {
      { problem.x() } -> std::convertible_to<std::span<const double>>;

      // L(x), and its gradient over `kept`. It may move x before, to a point that is no worse.
      { problem.certify(kept, gradient) } -> std::same_as<double>;

      // The dual point that belongs to x.
      { problem.dual_point(kept, gradient) } -> std::same_as<DualPoint>;

      // How far the optimum's gradient may be from that of a dual point in coordinate j:
      // |scale g_j - g_j*| <= sqrt(2 (F - bound)) reach(j). Infinite where nothing is known.
      { problem.reach(j) } -> std::same_as<double>;

      // Told when coordinates were ruled out: x is 0 at all others from now on.
      problem.restrict(kept);

      // Fills in what the problem counts in a unit of its own: n_passes, work, n_done.
      problem.complete(round);

      // Moves x over the active set. False if it stays: the next round would be this one again.
      { problem.correct(active, round, monitor) } -> std::same_as<bool>;
    };

struct OuterSettings {
  double tol = 1e-6;             ///< on Round::certificate
  std::int64_t max_iter = 100;   ///< on Round::n_done: rounds, if the problem does not count others
  std::size_t first_size = 100;  ///< of the active set
  double least_unit = 1e-300;    ///< of the gap: below, an objective is rounding
  double violation_tol = -1.0;   ///< on the subgradient, relative to the first, without a bound
};

template <RestrictedProblem Problem, class Penalty = SeparablePenalty>
class OuterLoop {
 public:
  OuterLoop(Problem& problem, const Penalty& penalty, const OuterSettings& settings)
      : problem_(problem),
        penalty_(penalty),
        settings_(settings),
        kept_(penalty.size()),
        reaches_(kept_.size(), kUnknown),
        active_(settings.first_size) {
    std::iota(kept_.begin(), kept_.end(), index_t{0});
  }

  /// Whatever ends it, the last round speaks of the point that is left.
  Status run(Monitor& monitor) {
    while (true) {
      const Round& now = certify();
      now.publish(monitor);
      const bool has_bound = std::isfinite(now.bound);
      if (now.certificate() <= (has_bound ? settings_.tol : settings_.violation_tol)) {
        return Status::converged;
      }
      if (monitor.stop_requested()) return Status::stopped;
      if (now.n_done >= settings_.max_iter) return Status::max_iter;
      if (is_stalled(rounds)) return Status::stalled;
      screen();
      choose();
      if (!problem_.correct(active_, rounds.back(), monitor)) {
        return monitor.stop_requested() ? Status::stopped : Status::stalled;
      }
    }
  }

  std::vector<Round> rounds;

 private:
  const Round& certify() {
    gradient_.resize(kept_.size());
    const double loss = problem_.certify(kept_, gradient_);
    Round now;
    const double subgradient = measure(loss, now);
    dual_ = problem_.dual_point(kept_, gradient_);
    now.bound = std::max(rounds.empty() ? now.bound : rounds.back().bound, dual_.bound);
    now.gap = std::max(now.objective - now.bound, 0.0);
    now.unit = std::max(std::abs(now.objective), settings_.least_unit);
    if (settings_.violation_tol >= 0.0 && !std::isfinite(now.bound)) {
      if (rounds.empty()) first_subgradient_ = subgradient;
      now.gap = subgradient, now.unit = first_subgradient_;
    }
    now.n_done = static_cast<std::int64_t>(rounds.size());
    now.seconds = stopwatch_.seconds();
    problem_.complete(now);
    return rounds.emplace_back(now);
  }

  /// What the coordinates add up to; returns the l1 norm of the least subgradient.
  double measure(double loss, Round& now) const {
    const std::span<const double> x = problem_.x();
    double norm = 0.0, penalty = 0.0;
    for (std::size_t k = 0; k < kept_.size(); ++k) {
      const double at = x[static_cast<std::size_t>(kept_[k])];
      const double violation = penalty_.violation(kept_[k], at, gradient_[k]);
      norm += violation;
      now.violation = std::max(now.violation, violation);
      penalty += penalty_.value(kept_[k], at);
      now.n_nonzero += at != 0.0 && !penalty_.is_free(kept_[k]);
    }
    now.objective = loss + penalty;
    now.n_kept = static_cast<std::int64_t>(kept_.size());
    return norm;
  }

  void screen() {
    if (!std::isfinite(dual_.bound)) return;
    const double gap = std::max(rounds.back().objective - dual_.bound, 0.0);
    const double radius = std::sqrt(2.0 * gap);
    if (!is_screening_worthwhile(radius)) return;
    std::size_t n = 0;
    for (std::size_t k = 0; k < kept_.size(); ++k) {
      if (is_ruled_out(k, radius)) continue;
      kept_[n] = kept_[k];
      gradient_[n++] = gradient_[k];
    }
    if (n == kept_.size()) return;
    kept_.resize(n);
    gradient_.resize(n);
    problem_.restrict(kept_);
  }

  bool is_ruled_out(std::size_t k, double radius) {
    const auto j = static_cast<std::size_t>(kept_[k]);
    const double room = penalty_.room(kept_[k], dual_.scale, gradient_[k]);
    return problem_.x()[j] == 0.0 && room > 0.0 && radius * reach(kept_[k]) < room;
  }

  /// Reaches of all coordinates cost as much as a gradient, and far from the optimum the ball rules
  /// out nothing: a sample is asked first.
  bool is_screening_worthwhile(double radius) {
    const std::size_t stride = std::max<std::size_t>(1, kept_.size() / kSample);
    for (std::size_t k = 0; k < kept_.size(); k += stride) {
      if (is_ruled_out(k, radius)) return true;
    }
    return false;
  }

  double reach(index_t j) {
    double& known = reaches_[static_cast<std::size_t>(j)];
    if (known == kUnknown) known = problem_.reach(j);
    return known;
  }

  void choose() {
    const auto ids = active_.choose(penalty_, kept_, problem_.x(), gradient_);
    rounds.back().n_active = static_cast<std::int64_t>(ids.size());
  }

  static constexpr double kUnknown = -1.0;
  static constexpr std::size_t kSample = 64;

  Problem& problem_;
  Penalty penalty_;
  OuterSettings settings_;
  Stopwatch stopwatch_;
  std::vector<index_t> kept_;
  std::vector<double> reaches_;   ///< of all coordinates
  std::vector<double> gradient_;  ///< of the kept ones
  ActiveSet active_;
  DualPoint dual_;
  double first_subgradient_ = 0.0;
};

}  // namespace sublearn
