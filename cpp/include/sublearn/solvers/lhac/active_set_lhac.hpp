// LHAC inside an active set, for objectives that can give a part of their gradient: the full
// gradients of the outer loop (active/outer_loop.hpp) certify the point, rule coordinates out and
// extend the set; in between LHAC asks for gradients over the set alone. A very sparse solution
// needs few of the full ones.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "sublearn/active/outer_loop.hpp"
#include "sublearn/core/monitor.hpp"
#include "sublearn/core/status.hpp"
#include "sublearn/core/types.hpp"
#include "sublearn/objectives/smooth_objective.hpp"
#include "sublearn/prox/separable.hpp"
#include "sublearn/solvers/lhac/lhac.hpp"
#include "sublearn/solvers/lhac/lhac_on_set.hpp"
#include "sublearn/solvers/lhac/strategy.hpp"

namespace sublearn {

/// The trace has a row for each iteration of LHAC, and so counts max_iter.
class LhacProblem {
 public:
  /// `objective` has parts.
  LhacProblem(SmoothObjective& objective, const SeparablePenalty& penalty,
              const LhacSettings& settings, std::vector<double>& x)
      : objective_(&objective), penalty_(penalty), settings_(settings), x_(&x) {}

  std::span<const double> x() const { return *x_; }

  double certify(std::span<const index_t> kept, std::span<double> gradient) {
    std::vector<double> at;
    for (const index_t j : kept) at.push_back((*x_)[static_cast<std::size_t>(j)]);
    const double loss = kept_objective().move_to(at);
    kept_objective().gradient(gradient);
    counts_ = chooser_.choose(settings_.choice, kept_penalty(), at, gradient, active_);
    return loss;
  }

  DualPoint dual_point(std::span<const index_t> /*kept*/, std::span<const double> gradient) {
    return kept_objective().dual_point(kept_penalty(), gradient);
  }

  double reach(index_t j) { return objective_->reach(j); }

  void restrict(std::span<const index_t> kept) {
    reduced_ = objective_->restricted(kept);
    reduced_penalty_.emplace(penalty_, kept);
  }

  /// The row of the full gradient: it alone shows violations outside the active set.
  void complete(Round& round) {
    LhacIteration now = last_;
    ++now.n_values;
    now.seconds = round.seconds, now.objective = round.objective;
    now.certificate = round.certificate(), now.violation = round.violation;
    now.n_nonzero = round.n_nonzero, now.n_asked = round.n_kept;
    now.n_active = static_cast<std::int64_t>(active_.size());
    now.z1 = counts_.z1, now.z2 = counts_.z2, now.z3 = counts_.z3;
    iterations.push_back(now);
    round.n_passes = now.n_passes, round.work = now.n_values;
    if (is_counted_) round.n_done = n_done();
  }

  bool correct(const ActiveSet& active, const Round& round, Monitor& monitor) {
    const std::span<const index_t> ids = active.ids();
    const std::unique_ptr<SmoothObjective> part = objective_->restricted(ids);
    LhacSettings settings = settings_;
    settings.least_violation = active.share(round, settings_.tol, most_share_) * round.violation;
    const int n_before = is_counted_ ? n_done() : 0;
    settings.max_iter = settings_.max_iter - n_before;
    LhacOnSet lhac(*part, penalty_, ids, settings,
                   {iterations.back(), n_before, round.bound, is_counted_});
    if (hessian_) lhac.hessian().take_over(*hessian_, places_of(ids));
    lhac.solve(*x_, monitor);
    hessian_.emplace(std::move(lhac.hessian()));
    hessian_ids_.assign(ids.begin(), ids.end());
    append(lhac.iterations());
    return lhac.iterations().size() > 1;
  }

  std::vector<LhacIteration> iterations;

 protected:
  SmoothObjective& kept_objective() { return reduced_ ? *reduced_ : *objective_; }

  SmoothObjective* objective_;
  SeparablePenalty penalty_;
  LhacSettings settings_;
  std::vector<double>* x_;
  double most_share_ = ActiveSet::kShare;  ///< once the set holds every violator
  bool is_counted_ = true;  ///< whether max_iter and the budget count the iterations of all rounds

 private:
  const SeparablePenalty& kept_penalty() const {
    return reduced_penalty_ ? reduced_penalty_->get() : penalty_;
  }
  int n_done() const { return static_cast<int>(iterations.size()) - 1; }

  /// The first point has its row already; the last gets one from the next full gradient.
  void append(const std::vector<LhacIteration>& rows) {
    last_ = rows.back();
    iterations.back().n_active = rows.front().n_active;
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

  std::unique_ptr<SmoothObjective> reduced_;  ///< the function of the kept coordinates, if fewer
  std::optional<PenaltyPart> reduced_penalty_;
  std::optional<LowRankHessian> hessian_;  ///< of the last round, over hessian_ids_
  std::vector<index_t> hessian_ids_;
  ActiveChooser chooser_;
  std::vector<index_t> active_;
  ActiveCounts counts_;
  LhacIteration last_;  ///< of the last round
};

class ActiveSetLhac {
 public:
  ActiveSetLhac(SmoothObjective& objective, const SeparablePenalty& penalty,
                const LhacSettings& settings)
      : objective_(&objective), penalty_(penalty), settings_(settings) {}

  /// From x to an (approximate) minimiser, left in x.
  Status solve(std::vector<double>& x, Monitor& monitor) {
    LhacProblem problem(*objective_, penalty_, settings_, x);
    OuterLoop loop(problem, penalty_,
                   {.tol = settings_.tol,
                    .max_iter = settings_.max_iter,
                    .violation_tol = settings_.violation_tol});
    const Status status = loop.run(monitor);
    iterations = std::move(problem.iterations);
    best_bound = loop.rounds.back().bound;
    return status;
  }

  std::vector<LhacIteration> iterations;
  double best_bound = -std::numeric_limits<double>::infinity();

 private:
  SmoothObjective* objective_;
  SeparablePenalty penalty_;
  LhacSettings settings_;
};

}  // namespace sublearn
