// Greedy direction method of multipliers for the LP relaxation of MAP inference, with balanced
// penalties. Algorithm 8 of Yen, "Sublinear-Time Learning and Inference for High-Dimensional
// Models", 2018, is in solvers/map/gdmm_printed.hpp; "(3.25)" and the like are its equations. This
// variant differs: rho balances itself and is the dual step, a factor takes up to four projected
// steps with a line search of its own, several labels of a variable may enter at once, and labels
// that no better assignment can have are excluded.
//
//   max  sum_i theta_i' x_i + sum_f theta_f' y_f     s.t.  M_if y_f = x_i, x_i and y_f in simplices
//   (3.25)
//
// Augmented Lagrangian, with multipliers mu_if and d_if = mu_if + rho (M_if y_f - x_i):
//
//   L = - sum theta_i' x_i - sum theta_f' y_f + sum_(i,f) [mu_if'(M_if y_f - x_i) + rho/2 |M_if y_f
//   - x_i|^2]  (3.26)
//
// One iteration
//   search   for each factor the state of most negative gradient -theta_f(y) + sum_i d_if(y_i),
//   over ALL
//            states (3.31): through sorted rows and columns for large tables, by a scan for small
//            ones;
//   correct  y_f over its few active states: projected steps (3.29) with a line search on Q;
//            x_i exactly, a simplex projection (3.27) over the labels that have entered and as many
//            more from the sorted unary scores as are positive in it;
//   shrink   states back at zero leave; then mu += eta (M y - x) (3.32).
// Given x the factors are independent, and given y the variables: both loops run on threads and the
// result does not depend on their number.
//
// Certificate: for any mu the LP's dual value
//
//   sum_i max_a [theta_i(a) + sum_f mu_if(a)] + sum_f max_y [theta_f(y) - sum_i mu_if(y_i)]
//
// is an upper bound on the score of every assignment; its maxima are found by the same searches.
// With an assignment of score s in hand, label a of variable i can be excluded for good when
//
//   bound - max_b [theta_i(b) + sum_f mu_if(b)] + theta_i(a) + sum_f mu_if(a)  <  s,
//
// because that bounds every assignment with x_i = a. Labels without a message are excluded from the
// end of the sorted unary scores without being looked at.
//
// Labels that never entered have no message, so memory is that of the tables plus the active
// labels.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include "sublearn/core/factor_graph.hpp"
#include "sublearn/core/monitor.hpp"
#include "sublearn/prox/simplex.hpp"
#include "sublearn/solvers/map/gdmm_states.hpp"

namespace sublearn {

struct GdmmSettings {
  double rho = 0.0;  ///< 0: from the scores, then balanced between primal and dual residual
  double eta = 0.0;  ///< dual step; 0: rho
  int n_threads = 1;
};

/// Residual balancing: rho grows where x and M y differ, and falls where x still moves. Nothing
/// changes once both are as small as rounding lets them be.
inline double balanced_rho(double rho, const GdmmResiduals& residuals) {
  constexpr double kRatio = 5.0, kFactor = 1.6, kSolved = 1e-6;
  const double primal = rho * residuals.primal, dual = residuals.dual;
  if (std::max(primal, dual) <= kSolved * rho) return rho;
  if (primal > kRatio * dual) return rho * kFactor;
  if (dual > kRatio * primal) return rho / kFactor;
  return rho;
}

class GdmmMap : public GdmmStates {
 public:
  GdmmMap(const FactorGraph& graph, const GdmmSettings& settings)
      : GdmmStates(graph), settings_(settings), rho_(settings.rho) {
    if (rho_ <= 0.0) rho_ = first_rho();
  }

  /// One pass of algorithm 8. Stops between phases if the monitor asks.
  void iterate(const Monitor* monitor) {
    const offset_t work_before = work_;
    propose(monitor, rho_);
    admit();
    correct_factors(monitor);
    correct_variables(monitor);
    ++n_iter_;
    n_threads_ = work_ - work_before > kParallelWork ? settings_.n_threads : 1;
    if (settings_.rho <= 0.0) balance();
  }

  // See solvers/map/gdmm_point.hpp.
  offset_t exclude(double bound, double score) { return point_.exclude(bound, score); }
  std::vector<index_t> remaining(index_t i) const { return point_.remaining(i); }

  const GdmmResiduals& residuals() const { return residuals_; }
  double rho() const { return rho_; }

 private:
  /// Operations of an iteration that are worth waking threads for: a few milliseconds.
  static constexpr offset_t kParallelWork = 1'000'000;
  static constexpr int kSteps = 4;  ///< projected steps on one factor in one iteration

  void correct_factors(const Monitor* monitor) {
    over(point_.factors.size(), monitor, [&](std::size_t f, Scratch& scratch) {
      if (point_.factors[f].y.size() > 1) correct(f, scratch);
    });
  }

  /// Projected steps over the active states of f.
  void correct(std::size_t f, Scratch& scratch) {
    GdmmFactor& factor = point_.factors[f];
    const std::size_t n = factor.y.size();
    const std::size_t arity = factor.slots.size() / n;
    fill_messages(f, scratch, rho_);
    if (scratch.moved.size() < arity) scratch.moved.resize(arity);
    for (std::size_t p = 0; p < arity; ++p)
      scratch.moved[p].assign(scratch.messages[p].size(), 0.0);
    double Q = rho_ * static_cast<double>(arity);
    for (int step = 0; step < kSteps; ++step) {
      scratch.gradient.resize(n);
      double lowest = std::numeric_limits<double>::infinity(), mean = 0.0;
      for (std::size_t s = 0; s < n; ++s) {
        double g = -factor.theta[s];
        for (std::size_t p = 0; p < arity; ++p) {
          g += scratch.messages[p][at(factor.slots[s * arity + p])];
        }
        scratch.gradient[s] = g;
        lowest = std::min(lowest, g);
        mean += factor.y[s] * g;
      }
      scratch.work += static_cast<offset_t>(n * arity);
      if (mean - lowest <= 1e-9 * rho_) break;  // optimal over the active states
      while (!step_fits(f, scratch, Q)) Q *= 2.0;
      for (std::size_t s = 0; s < n; ++s) factor.y[s] = scratch.point[s];
      for (std::size_t p = 0; p < arity; ++p) {
        GdmmEnd& end = point_.ends[point_.end_of(f, p)];
        for (std::size_t s = 0; s < n; ++s) {
          const auto slot = static_cast<std::size_t>(factor.slots[s * arity + p]);
          scratch.messages[p][slot] += rho_ * scratch.change[s];
          end.marginal[slot] += scratch.change[s];
        }
      }
    }
    scratch.work += point_.shrink(f);
  }

  /// (3.29) with this Q into `point` and `change`; true if the quadratic bound holds there, so that
  /// the objective falls.
  bool step_fits(std::size_t f, Scratch& scratch, double Q) const {
    const GdmmFactor& factor = point_.factors[f];
    const std::size_t n = factor.y.size();
    const std::size_t arity = factor.slots.size() / n;
    scratch.point.resize(n);
    for (std::size_t s = 0; s < n; ++s) {
      scratch.point[s] = factor.y[s] - scratch.gradient[s] / Q;
    }
    project_simplex<double>(scratch.point, 1.0, scratch.sorted);
    scratch.change.resize(n);
    double length = 0.0;
    for (std::size_t s = 0; s < n; ++s) {
      scratch.change[s] = scratch.point[s] - factor.y[s];
      length += scratch.change[s] * scratch.change[s];
    }
    double curvature = 0.0;
    for (std::size_t p = 0; p < arity; ++p) {
      auto& moved = scratch.moved[p];
      const auto slot = [&](std::size_t s) {
        return static_cast<std::size_t>(factor.slots[s * arity + p]);
      };
      for (std::size_t s = 0; s < n; ++s) moved[slot(s)] += scratch.change[s];
      for (std::size_t s = 0; s < n; ++s) {
        curvature += moved[slot(s)] * moved[slot(s)];
        moved[slot(s)] = 0.0;  // a slot counts once, and the array is zero again
      }
    }
    return rho_ * curvature <= Q * length * (1.0 + 1e-12);
  }

  /// x by (3.27), then the multipliers of the variable's ends by (3.32).
  void correct_variables(const Monitor* monitor) {
    for (Scratch& scratch : scratch_) scratch.primal = scratch.dual = 0.0;
    std::vector<GdmmResiduals> parts(point_.variables.size());
    over(point_.variables.size(), monitor,
         [&](std::size_t i, Scratch& scratch) { parts[i] = correct_variable(i, scratch); });
    GdmmResiduals sum;
    for (const GdmmResiduals& part : parts) {
      sum.primal += part.primal;
      sum.dual += part.dual;
    }
    const double n_ends = std::max<double>(1.0, static_cast<double>(point_.ends.size()));
    residuals_ = {std::sqrt(sum.primal / n_ends), rho_ * std::sqrt(sum.dual / n_ends)};
  }

  GdmmResiduals correct_variable(std::size_t i, Scratch& scratch) {
    const auto ends = graph_.ends_of(static_cast<index_t>(i));
    if (ends.empty()) return {};
    project_variable(i, scratch);
    GdmmVariable& variable = point_.variables[i];
    const std::vector<double>& x = scratch.point;
    GdmmResiduals sum;
    for (std::size_t s = 0; s < x.size(); ++s) {
      const double moved = x[s] - variable.x[s];
      sum.dual += static_cast<double>(ends.size()) * moved * moved;
      variable.x[s] = x[s];
    }
    for (const FactorEnd& end : ends) move_multipliers(point_.end_at(end), x, sum.primal);
    return sum;
  }

  /// (3.27) into scratch.point; labels enter as long as they would be positive.
  void project_variable(std::size_t i, Scratch& scratch) {
    const auto ends = graph_.ends_of(static_cast<index_t>(i));
    GdmmVariable& variable = point_.variables[i];
    const auto unary = graph_.unary_of(static_cast<index_t>(i));
    const double degree = static_cast<double>(ends.size());
    const auto pull = [&](index_t label) { return unary[at(label)] / (rho_ * degree); };
    auto& wanted = scratch.gradient;
    wanted.resize(variable.labels.size());
    for (std::size_t s = 0; s < wanted.size(); ++s) wanted[s] = pull(variable.labels[s]);
    for (const FactorEnd& end : ends) {
      const GdmmEnd& side = point_.end_at(end);
      for (std::size_t s = 0; s < wanted.size(); ++s) {
        wanted[s] += (side.marginal[s] + side.mu[s] / rho_) / degree;
      }
    }
    scratch.work += static_cast<offset_t>(wanted.size() * (ends.size() + 1));
    auto& x = scratch.point;
    while (true) {
      x = wanted;
      project_simplex<double>(x, 1.0, scratch.sorted);
      const auto top = std::max_element(x.begin(), x.end()) - x.begin();
      const double threshold = wanted[at(top)] - x[at(top)];
      variable.tighten();
      if (!variable.has_others()) return;
      const index_t label = variable.unary_order[variable.next_unary];
      if (pull(label) <= threshold) return;  // all labels without a slot would be zero
      point_.enter(i, label);
      wanted.push_back(pull(label));
    }
  }

  /// (3.32): mu += eta (M y - x). Adds |M y - x|^2 to `squares`.
  void move_multipliers(GdmmEnd& end, std::span<const double> x, double& squares) const {
    const double eta = settings_.eta > 0.0 ? settings_.eta : rho_;
    for (std::size_t s = 0; s < x.size(); ++s) {
      const double difference = end.marginal[s] - x[s];
      squares += difference * difference;
      end.mu[s] += eta * difference;
    }
  }

  void balance() {
    constexpr int kEvery = 10;
    if (n_iter_ % kEvery == 0) rho_ = balanced_rho(rho_, residuals_);
  }

  GdmmSettings settings_;
  double rho_;
  GdmmResiduals residuals_;
  int n_iter_ = 0;
};

}  // namespace sublearn
