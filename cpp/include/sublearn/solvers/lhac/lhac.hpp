// LHAC: low-rank Hessian approximation in active-set coordinate descent (algorithm 20 of Tang's
// thesis)
//
//   min_x  F(x) = L(x) + p(x),   L smooth and convex, p separable (prox/separable.hpp).
//
// Each outer iteration chooses active coordinates, minimises the model
//
//   Q(d) = L(x) + <grad L(x), d> + 1/2 <d, (mu/2 M + B) d> + p(x + d)
//
// over them by l(k) passes of coordinate descent, and accepts d when F falls by at least the share
// rho of Q(d) - F(x) (5.2.3); otherwise mu grows. (The thesis prints L(x + d) in Q.) M is the
// identity, or the diagonal of low_rank_hessian.hpp. mu never falls below a share of the largest
// theta so far, so that H >= sigma M with one sigma > 0 for the whole run, as the theorems of
// chapter 4 ask.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "sublearn/active/coordinate_descent.hpp"
#include "sublearn/core/monitor.hpp"
#include "sublearn/core/rng.hpp"
#include "sublearn/core/status.hpp"
#include "sublearn/core/stopwatch.hpp"
#include "sublearn/core/types.hpp"
#include "sublearn/objectives/smooth_objective.hpp"
#include "sublearn/prox/separable.hpp"
#include "sublearn/solvers/lhac/low_rank_hessian.hpp"
#include "sublearn/solvers/lhac/strategy.hpp"

namespace sublearn {

enum class Globalisation {
  prox_parameter,  ///< mu grows until the decrease suffices
  line_search,     ///< d shrinks until it does (Armijo)
  null_step,       ///< x stays, the Hessian learns from d, mu grows: one value in each iteration
};

/// Passes of the inner loop at outer iteration k: slope * k + constant, or slope * log(k) +
/// constant.
struct InnerBudget {
  double slope = 0.2;
  double constant = 1.0;
  bool is_logarithmic = false;

  int operator()(int k) const {
    const double grown = slope * (is_logarithmic ? std::log(k) : static_cast<double>(k));
    return std::max(1, static_cast<int>(grown + constant));
  }
};

struct LhacSettings {
  double tol = 1e-6;            ///< on the gap over |F|, where there is a dual
  double violation_tol = 1e-6;  ///< without one: on the subgradient over that at the start
  double least_violation = 0;   ///< stop as well once no coordinate violates by more than this
  int max_iter = 1000;
  int memory = 10;
  double rho = 0.01;     ///< share of the predicted decrease that a step must reach
  double beta = 2.0;     ///< by which mu grows
  double mu0 = 0.0;      ///< where mu begins; 0: at the floor, and grows from 2 theta on
  double floor = 1e-10;  ///< mu/2 is at least this share of the largest theta so far
  StrategySettings choice;
  bool is_scaled = true;  ///< M of the Hessian from the objective, where it knows one
  InnerBudget budget;
  double solved = 1e-4;  ///< share of the first pass's violation, at which a model is solved
  Globalisation globalisation = Globalisation::prox_parameter;
  bool is_random = false;       ///< coordinates in random order instead of one after the other
  bool is_independent = false;  ///< each drawn from all of them, as in algorithm 16
  std::uint64_t seed = 0;
};

struct LhacIteration {
  double seconds = 0.0;
  double objective = 0.0;
  double certificate = 0.0;  ///< relative gap, or the subgradient's l1 norm over that at the start
  double violation = 0.0;    ///< largest entry of the subgradient
  std::int64_t n_nonzero = 0;
  std::int64_t n_active = 0;
  std::int64_t z1 = 0, z2 = 0, z3 = 0;
  std::int64_t n_passes = 0;  ///< of coordinate descent so far
  std::int64_t n_steps = 0;   ///< coordinates visited so far
  std::int64_t n_values = 0;  ///< values of the objective asked for so far
  std::int64_t n_asked = 0;   ///< coordinates whose gradient was asked for here
};

/// What an outer loop tells the run inside it, which then leaves the certificate to the loop.
struct LhacOuter {
  LhacIteration last;  ///< counters, clock and certificate go on from here
  int n_before = 0;    ///< iterations
  double bound = -std::numeric_limits<double>::infinity();
  bool is_counted = true;  ///< whether iterations are the loop's, so that the monitor shows them
};

class Lhac {
 public:
  Lhac(SmoothObjective& objective, const SeparablePenalty& penalty, const LhacSettings& settings)
      : objective_(&objective),
        penalty_(penalty),
        settings_(settings),
        hessian_(objective.size(), settings.memory),
        rng_(settings.seed),
        gradient_(static_cast<std::size_t>(objective.size())),
        next_gradient_(gradient_.size()),
        trial_(gradient_.size()),
        s_(gradient_.size()),
        t_(gradient_.size()) {}

  /// One round of an outer loop.
  Lhac(SmoothObjective& objective, const SeparablePenalty& penalty, const LhacSettings& settings,
       const LhacOuter& outer)
      : Lhac(objective, penalty, settings) {
    outer_ = outer, is_inner_ = true;
    best_bound = outer.bound;
    n_passes_ = outer.last.n_passes, n_steps_ = outer.last.n_steps, n_values_ = outer.last.n_values;
  }

  /// From x to an (approximate) minimiser, left in x.
  Status solve(std::vector<double>& x, Monitor& monitor) {
    stopwatch_ = Stopwatch();
    loss_ = value_at(x);
    objective_->gradient(gradient_);
    if (settings_.is_scaled) measure_sizes();
    half_mu_ = least_half_mu();
    for (int k = 1;; ++k) {
      const ActiveCounts counts =
          chooser_.choose(settings_.choice, penalty_, x, gradient_, active_);
      record(x, counts, monitor);
      if (is_done()) return Status::converged;
      if (monitor.stop_requested()) return Status::stopped;
      if (k > settings_.max_iter) return Status::max_iter;
      if (!advance(x, n_passes_at(outer_.n_before + k))) return Status::stalled;
    }
  }

  LowRankHessian& hessian() { return hessian_; }

  std::vector<LhacIteration> iterations;
  double best_bound = -std::numeric_limits<double>::infinity();

 private:
  /// An outer loop's certificate is of an earlier point, unless it is a bound.
  bool is_done() const {
    const LhacIteration& now = iterations.back();
    const bool is_of_now = !is_inner_ || std::isfinite(best_bound);
    const double tol = std::isfinite(best_bound) ? settings_.tol : settings_.violation_tol;
    return (is_of_now && now.certificate <= tol) || now.violation <= settings_.least_violation;
  }

  /// A model without kinks is a linear system and is solved: nothing in it has to find its zeros,
  /// and passes over few coordinates are cheap beside a gradient.
  int n_passes_at(int k) const {
    const bool is_smooth = std::none_of(active_.begin(), active_.end(),
                                        [&](index_t j) { return penalty_.has_kink(j); });
    return is_smooth ? std::max(settings_.budget(k), kMostSmooth) : settings_.budget(k);
  }

  /// M, from the objective: its sizes to the power 3/4. Whole sizes let the weights of rare
  /// features take steps that are too long (a9a, l1 1e-2 to 1e-4: 48, 91, 261 iterations for 38,
  /// 88, 276; words, 1,000 x 1,000: 58, 117, 283 for 44, 94, 214).
  void measure_sizes() {
    std::vector<double> sizes(gradient_.size());
    if (sizes.empty() || !objective_->coordinate_sizes(sizes)) return;
    const double largest = *std::max_element(sizes.begin(), sizes.end());
    if (!(largest > 0.0) || !std::isfinite(largest)) return;
    for (double& size : sizes) size = std::max(std::pow(size / largest, kPower), kLeastSize);
    hessian_.set_metric(std::move(sizes));
  }

  /// Where mu/2 begins in each iteration.
  double least_half_mu() {
    largest_theta_ = std::max(largest_theta_, hessian_.theta());
    return std::max(0.5 * settings_.mu0, settings_.floor * largest_theta_);
  }

  double raised(double half_mu) const {
    const double from = settings_.mu0 > 0.0 ? half_mu : hessian_.theta() / settings_.beta;
    return settings_.beta * std::max(half_mu, from);
  }

  double value_at(std::span<const double> x) {
    ++n_values_;
    return last_value_ = objective_->move_to(x);
  }

  /// One outer iteration. False when no step lowers the objective any more.
  bool advance(std::vector<double>& x, int n_passes) {
    prepare_model(x);
    if (settings_.globalisation == Globalisation::null_step) return try_step(x, n_passes);
    if (!take_step(x, n_passes)) {
      if (hessian_.rank() == 0) return false;
      hessian_.clear();  // the model misled: once more with the gradient alone
      prepare_model(x);
      if (!take_step(x, n_passes)) return false;
    }
    learn(x);
    move_to_trial(x);
    return true;
  }

  /// One outer iteration that asks for one value and gradient, whether the step is taken or not.
  /// Where an exchange with other machines brings both, a step that fails has not been for nothing.
  bool try_step(std::vector<double>& x, int n_passes) {
    model_.set_half_mu(half_mu_);
    descend(n_passes);
    const double change = place_trial(x, 1.0);
    const double predicted = predicted_decrease(x);
    if (!(predicted < 0.0)) {
      if (hessian_.rank() == 0) return false;
      hessian_.clear();  // the model misled: once more with the gradient alone
      half_mu_ = least_half_mu();
      return true;
    }
    is_away_ = !is_accepted(change, predicted);
    if (std::isfinite(last_value_)) learn(x);
    if (is_away_) {
      half_mu_ = raised(half_mu_);
      return ++n_rejected_ < kMostTrials;
    }
    move_to_trial(x);
    half_mu_ = least_half_mu(), n_rejected_ = 0;
    return true;
  }

  /// The curvature between x and trial_, where the objective is.
  void learn(std::span<const double> x) {
    objective_->gradient(next_gradient_);
    for (std::size_t j = 0; j < x.size(); ++j) {
      s_[j] = trial_[j] - x[j];
      t_[j] = next_gradient_[j] - gradient_[j];
    }
    hessian_.append(s_, t_);
  }

  void move_to_trial(std::vector<double>& x) {
    std::swap(x, trial_);
    std::swap(gradient_, next_gradient_);
  }

  void prepare_model(std::span<const double> x) {
    model_.reset(hessian_, active_, gradient_);
    point_.resize(active_.size());
    order_.resize(active_.size());
    for (std::size_t k = 0; k < active_.size(); ++k) {
      point_[k] = x[static_cast<std::size_t>(active_[k])];
      order_[k] = static_cast<index_t>(k);
    }
  }

  /// Leaves an acceptable point in trial_ and its value in loss_.
  bool take_step(std::span<const double> x, int n_passes) {
    const bool is_prox = settings_.globalisation == Globalisation::prox_parameter;
    double half_mu = least_half_mu();
    for (int trial = 0; trial < kMostTrials; ++trial) {
      if (is_prox || trial == 0) {
        // Draws that leave coordinates out would leave them at a point of a weaker model.
        if (trial > 0 && settings_.is_independent) prepare_model(x);
        model_.set_half_mu(half_mu);
        descend(n_passes);
      }
      const double share = is_prox ? 1.0 : std::pow(0.5, trial);
      const double change = place_trial(x, share);
      const double predicted = is_prox ? predicted_decrease(x) : share * slope_along(x);
      if (trial == 0 && !(predicted < 0.0)) return false;
      if (predicted < 0.0 && is_accepted(change, predicted)) return true;
      half_mu = raised(half_mu);
    }
    return false;
  }

  /// trial_ = x + share * d; returns the change of the penalty.
  double place_trial(std::span<const double> x, double share) {
    std::copy(x.begin(), x.end(), trial_.begin());
    double change = 0.0;
    for (std::size_t k = 0; k < active_.size(); ++k) {
      const auto j = static_cast<std::size_t>(active_[k]);
      trial_[j] = share == 1.0 ? point_[k] : x[j] + share * (point_[k] - x[j]);
      change += penalty_.change(active_[k], x[j], trial_[j]);
    }
    return change;
  }

  /// Condition (5.2.3), or Armijo's. A decrease that is smaller than the rounding of the objective
  /// cannot be seen; the model is trusted then, for a few steps in a row.
  bool is_accepted(double change, double predicted) {
    const double loss = value_at(trial_);
    const double gain = loss - loss_ + change;
    const bool is_hidden =
        -predicted <= noise() && gain <= 100.0 * noise() && hidden_steps_ < kMostHidden;
    if (!is_hidden && !(gain <= settings_.rho * predicted + noise())) return false;
    hidden_steps_ = -predicted <= noise() ? hidden_steps_ + 1 : 0;
    loss_ = loss;
    return true;
  }

  /// Q(d) - F(x), coordinate by coordinate: the parts of one cancel, sums over all would drown it.
  double predicted_decrease(std::span<const double> x) const {
    double decrease = 0.0;
    for (std::size_t k = 0; k < active_.size(); ++k) {
      decrease += model_.value(k) +
                  penalty_.change(active_[k], x[static_cast<std::size_t>(active_[k])], point_[k]);
    }
    return decrease;
  }

  /// <g, d> + p(x + d) - p(x) for the whole d: what Armijo's rule compares with.
  double slope_along(std::span<const double> x) const {
    double slope = 0.0;
    for (std::size_t k = 0; k < active_.size(); ++k) {
      const auto j = static_cast<std::size_t>(active_[k]);
      slope += gradient_[j] * (point_[k] - x[j]) + penalty_.change(active_[k], x[j], point_[k]);
    }
    return slope;
  }

  double noise() const { return 2e-15 * std::abs(loss_); }

  void descend(int n_passes) {
    double first = 0.0;
    for (int pass = 0; pass < n_passes; ++pass) {
      if (settings_.is_independent) {
        for (index_t& at : order_)
          at = static_cast<index_t>(rng_.below(static_cast<std::uint32_t>(order_.size())));
      } else if (settings_.is_random) {
        rng_.shuffle(std::span<index_t>(order_));
      }
      const double largest = descend_once(model_, penalty_, active_, order_, point_);
      ++n_passes_;
      n_steps_ += static_cast<std::int64_t>(order_.size());
      if (pass == 0) first = largest;
      if (largest <= settings_.solved * first && !settings_.is_independent) return;
    }
  }

  void record(std::span<const double> x, const ActiveCounts& counts, Monitor& monitor) {
    LhacIteration now;
    double norm = 0.0, penalty = 0.0;
    for (std::size_t j = 0; j < x.size(); ++j) {
      const double violation = penalty_.violation(static_cast<offset_t>(j), x[j], gradient_[j]);
      norm += violation;
      now.violation = std::max(now.violation, violation);
      penalty += penalty_.value(static_cast<offset_t>(j), x[j]);
      now.n_nonzero += x[j] != 0.0;
    }
    now.objective = loss_ + penalty;
    now.certificate = certificate(now.objective, norm);
    now.n_active = static_cast<std::int64_t>(active_.size());
    now.z1 = counts.z1, now.z2 = counts.z2, now.z3 = counts.z3;
    now.n_passes = n_passes_, now.n_steps = n_steps_, now.n_values = n_values_;
    now.n_asked = static_cast<std::int64_t>(x.size());
    now.seconds = outer_.last.seconds + stopwatch_.seconds();
    iterations.push_back(now);
    if (outer_.is_counted) publish(now, monitor);
  }

  void publish(const LhacIteration& now, Monitor& monitor) const {
    monitor.objective = now.objective;
    monitor.gap = now.certificate * std::abs(now.objective);
    monitor.nnz_primal = now.n_nonzero;
    monitor.work = now.n_values;
    monitor.n_done = outer_.n_before + static_cast<std::int64_t>(iterations.size()) - 1;
  }

  double certificate(double objective, double norm) {
    if (!is_inner_ && !is_away_) {
      best_bound = std::max(best_bound, objective_->dual_point(penalty_, gradient_).bound);
    }
    if (iterations.empty()) first_norm_ = norm;
    if (std::isfinite(best_bound)) {
      return std::max(objective - best_bound, 0.0) / std::max(std::abs(objective), 1e-300);
    }
    if (is_inner_) return outer_.last.certificate;
    return first_norm_ > 0.0 ? norm / first_norm_ : 0.0;
  }

  static constexpr int kMostTrials = 60;
  static constexpr int kMostSmooth = 40;  ///< passes over a model without kinks
  static constexpr int kMostHidden = 20;
  static constexpr double kPower = 0.75;       ///< of the sizes in M
  static constexpr double kLeastSize = 1e-12;  ///< of M, where its largest entry is 1

  SmoothObjective* objective_;
  SeparablePenalty penalty_;
  LhacSettings settings_;
  LhacOuter outer_;
  bool is_inner_ = false;
  LowRankHessian hessian_;
  LowRankModel model_;
  ActiveChooser chooser_;
  Rng rng_;
  std::vector<double> gradient_, next_gradient_, trial_, s_, t_;
  std::vector<index_t> active_, order_;
  std::vector<double> point_;
  double loss_ = 0.0;
  double last_value_ = 0.0;  ///< of the loss, wherever it was asked for
  double first_norm_ = 0.0;
  double half_mu_ = 0.0;  ///< of the next try_step
  double largest_theta_ = 0.0;
  bool is_away_ = false;  ///< the objective is at a point that was not accepted
  int n_rejected_ = 0;    ///< of them in a row
  int hidden_steps_ = 0;  ///< in a row, whose decrease rounding hid
  std::int64_t n_passes_ = 0, n_steps_ = 0, n_values_ = 0;
  Stopwatch stopwatch_;
};

}  // namespace sublearn
