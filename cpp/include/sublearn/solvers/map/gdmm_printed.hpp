// Algorithm 8 of Yen 2018, the greedy direction method of multipliers for large factor domains, as
// it is printed; solvers/map/gdmm.hpp states the problem and holds the variant of our own.
//
//   x, y, mu <- 0, no label and no state is active
//   repeat
//     for gamma = 1, 2, 4, ...                               (S = 1, as in the experiments there)
//       1  every factor takes the state of most negative gradient (3.31), and its y one projected
//          step (3.29) with Q = gamma Q_max over its active states
//       2  every variable takes the label of most negative gradient (3.30), and its x the
//          projection (3.27) over its active labels
//       3  stop if L(x', y') - L(x, y) <= sigma <grad_y L, y' - y>
//     mu <- mu + eta (M y - x) (3.32); what is zero is no longer active
//
// rho and eta never change. Q_max, the largest of rho |M_if over active states|^2, is estimated
// from below by two power steps; the printed text calls it a lower bound of Q as well. Two
// misprints are read as the rest of the section has them: (3.27) divides mu by the number of
// factors, too, and the gradient of (3.29) is that of (3.31).
//
// The text leaves open: gamma <= 1024, sigma = 0.1, and the first step of y, which comes from zero
// and not from the simplex, passes without the test. By default rho is the mean lead of a
// variable's best unary score, and eta is rho.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "sublearn/core/factor_graph.hpp"
#include "sublearn/core/monitor.hpp"
#include "sublearn/prox/simplex.hpp"
#include "sublearn/solvers/map/gdmm.hpp"
#include "sublearn/solvers/map/gdmm_states.hpp"

namespace sublearn {

class GdmmPrinted : public GdmmStates {
 public:
  GdmmPrinted(const FactorGraph& graph, const GdmmSettings& settings)
      : GdmmStates(graph),
        n_threads_allowed_(settings.n_threads),
        rho_(settings.rho > 0.0 ? settings.rho : first_rho()),
        eta_(settings.eta > 0.0 ? settings.eta : rho_) {
    for (std::size_t i = 0; i < point_.variables.size(); ++i) {
      if (!graph.ends_of(static_cast<index_t>(i)).empty()) point_.variables[i].x[0] = 0.0;
    }
    steps_.resize(point_.factors.size());
    x_before_.resize(point_.variables.size());
  }

  /// Lines 1 to 4 of the box, once.
  void iterate(const Monitor* monitor) {
    const offset_t work_before = work_;
    propose(monitor, rho_);
    admit();
    begin_step(monitor);
    const double before = lagrangian();
    double gamma = 1.0;
    while (true) {
      const double slope = step_factors(gamma * largest_q_, monitor);
      step_variables(monitor);
      if (is_first_ || gamma >= kMostGamma) break;
      if (lagrangian() - before <= kSigma * slope + kRounding * std::abs(before)) break;
      if (monitor != nullptr && monitor->stop_requested()) break;
      gamma *= 2.0;
    }
    is_first_ = false;
    end_step(monitor);
    n_threads_ = work_ - work_before > kParallelWork ? n_threads_allowed_ : 1;
  }

  const GdmmResiduals& residuals() const { return residuals_; }
  double rho() const { return rho_; }

 private:
  static constexpr double kMostGamma = 1024.0, kSigma = 0.1, kRounding = 1e-13;
  static constexpr offset_t kParallelWork = 1'000'000;

  /// y before the step, and the gradient there.
  struct Step {
    std::vector<double> y, gradient;
    double q = 0.0, slope = 0.0;
  };

  /// Keeps x and y, and computes gradients and Q_max.
  void begin_step(const Monitor* monitor) {
    for (std::size_t i = 0; i < x_before_.size(); ++i) x_before_[i] = point_.variables[i].x;
    over(steps_.size(), monitor, [&](std::size_t f, Scratch& scratch) {
      const GdmmFactor& factor = point_.factors[f];
      Step& step = steps_[f];
      const std::size_t n = factor.y.size(), arity = factor.slots.size() / n;
      fill_messages(f, scratch, rho_);
      step.y = factor.y;
      step.gradient.resize(n);
      for (std::size_t s = 0; s < n; ++s) {
        double g = -factor.theta[s];
        for (std::size_t p = 0; p < arity; ++p) {
          g += scratch.messages[p][at(factor.slots[s * arity + p])];
        }
        step.gradient[s] = g;
      }
      step.q = rho_ * squared_norm(f, scratch);
      scratch.work += static_cast<offset_t>(4 * n * arity);
    });
    largest_q_ = 0.0;
    for (const Step& step : steps_) largest_q_ = std::max(largest_q_, step.q);
  }

  /// |M|^2 over the active states, from below: |M v|^2 / |v|^2 after two power steps.
  double squared_norm(std::size_t f, Scratch& scratch) const {
    const GdmmFactor& factor = point_.factors[f];
    const std::size_t n = factor.y.size(), arity = factor.slots.size() / n;
    auto& v = scratch.point;
    v.assign(n, 1.0);
    double norm = static_cast<double>(arity);
    for (int power = 0; power < 2; ++power) {
      auto& next = scratch.change;
      next.assign(n, 0.0);
      double length = 0.0, image = 0.0;
      for (std::size_t p = 0; p < arity; ++p) {
        auto& sum = scratch.messages[p];
        const auto slot = [&](std::size_t s) { return at(factor.slots[s * arity + p]); };
        for (std::size_t s = 0; s < n; ++s) sum[slot(s)] = 0.0;
        for (std::size_t s = 0; s < n; ++s) sum[slot(s)] += v[s];
        for (std::size_t s = 0; s < n; ++s) next[s] += sum[slot(s)];
      }
      for (std::size_t s = 0; s < n; ++s) {
        length += v[s] * v[s];
        image += v[s] * next[s];
      }
      norm = std::max(norm, image / length);
      std::swap(v, next);
    }
    return norm;
  }

  /// (3.29) from the kept y; returns <grad_y L, change of y>.
  double step_factors(double Q, const Monitor* monitor) {
    over(steps_.size(), monitor, [&](std::size_t f, Scratch& scratch) {
      GdmmFactor& factor = point_.factors[f];
      Step& step = steps_[f];
      const std::size_t n = factor.y.size(), arity = factor.slots.size() / n;
      auto& y = scratch.point;
      y.resize(n);
      for (std::size_t s = 0; s < n; ++s) y[s] = step.y[s] - step.gradient[s] / Q;
      project_simplex<double>(y, 1.0, scratch.sorted);
      step.slope = 0.0;
      for (std::size_t p = 0; p < arity; ++p) {
        auto& marginal = point_.ends[point_.end_of(f, p)].marginal;
        std::fill(marginal.begin(), marginal.end(), 0.0);
        for (std::size_t s = 0; s < n; ++s) marginal[at(factor.slots[s * arity + p])] += y[s];
      }
      for (std::size_t s = 0; s < n; ++s) {
        step.slope += step.gradient[s] * (y[s] - step.y[s]);
        factor.y[s] = y[s];
      }
      scratch.work += static_cast<offset_t>(2 * n * arity);
    });
    double slope = 0.0;
    for (const Step& step : steps_) slope += step.slope;
    return slope;
  }

  void step_variables(const Monitor* monitor) {
    over(x_before_.size(), monitor, [&](std::size_t i, Scratch& scratch) {
      if (!graph_.ends_of(static_cast<index_t>(i)).empty()) step_variable(i, scratch);
    });
  }

  /// (3.30) and (3.27) from the kept x and the present y. `point` holds what a label would have if
  /// it were active, `change` the gradient.
  void step_variable(std::size_t i, Scratch& scratch) {
    GdmmVariable& variable = point_.variables[i];
    const auto ends = graph_.ends_of(static_cast<index_t>(i));
    const auto unary = graph_.unary_of(static_cast<index_t>(i));
    const double weight = 1.0 / (rho_ * static_cast<double>(ends.size()));
    std::vector<double>& before = x_before_[i];
    before.resize(variable.labels.size(), 0.0);
    auto& wanted = scratch.gradient;
    wanted.resize(variable.labels.size());
    for (std::size_t s = 0; s < wanted.size(); ++s) wanted[s] = unary[at(variable.labels[s])];
    for (const FactorEnd& end : ends) {
      const GdmmEnd& side = point_.end_at(end);
      for (std::size_t s = 0; s < wanted.size(); ++s) {
        wanted[s] += side.mu[s] + rho_ * side.marginal[s];
      }
    }
    scratch.work += static_cast<offset_t>(wanted.size() * (ends.size() + 1));
    const std::size_t entering = most_negative(i, wanted, before);
    if (entering == wanted.size()) {
      wanted.push_back(unary[at(variable.labels.back())]);
      before.push_back(0.0);
    }
    auto& chosen = scratch.point;
    auto& slots = scratch.change;
    chosen.clear();
    slots.clear();
    for (std::size_t s = 0; s < wanted.size(); ++s) {
      variable.x[s] = 0.0;
      if (before[s] <= 0.0 && s != entering) continue;
      chosen.push_back(weight * wanted[s]);
      slots.push_back(static_cast<double>(s));
    }
    project_simplex<double>(chosen, 1.0, scratch.sorted);
    for (std::size_t k = 0; k < chosen.size(); ++k) {
      variable.x[static_cast<std::size_t>(slots[k])] = chosen[k];
    }
  }

  /// Slot of the label of most negative gradient (3.30) among those that are not active. Without a
  /// message that is the label of largest unary score, which has its slot from now on.
  std::size_t most_negative(std::size_t i, std::span<const double> wanted,
                            std::span<const double> before) {
    GdmmVariable& variable = point_.variables[i];
    std::size_t best = std::numeric_limits<std::size_t>::max();
    double most = -std::numeric_limits<double>::infinity();
    for (std::size_t s = 0; s < wanted.size(); ++s) {
      if (before[s] > 0.0 || wanted[s] <= most) continue;
      most = wanted[s];
      best = s;
    }
    variable.tighten();
    if (!variable.has_others()) return best;
    const index_t label = variable.unary_order[variable.next_unary];
    if (graph_.unary_of(static_cast<index_t>(i))[at(label)] <= most) return best;
    return static_cast<std::size_t>(point_.enter(i, label));
  }

  /// (3.26), but for the terms in mu alone.
  double lagrangian() const {
    double sum = 0.0;
    for (std::size_t i = 0; i < point_.variables.size(); ++i) {
      const GdmmVariable& variable = point_.variables[i];
      const auto unary = graph_.unary_of(static_cast<index_t>(i));
      for (std::size_t s = 0; s < variable.x.size(); ++s) {
        sum -= unary[at(variable.labels[s])] * variable.x[s];
      }
      for (const FactorEnd& end : graph_.ends_of(static_cast<index_t>(i))) {
        const GdmmEnd& side = point_.end_at(end);
        for (std::size_t s = 0; s < variable.x.size(); ++s) {
          const double apart = side.marginal[s] - variable.x[s];
          sum += apart * (side.mu[s] + 0.5 * rho_ * apart);
        }
      }
    }
    for (const GdmmFactor& factor : point_.factors) {
      sum -= std::inner_product(factor.y.begin(), factor.y.end(), factor.theta.begin(), 0.0);
    }
    return sum;
  }

  /// States at zero leave, the multipliers move, and it is measured how far the point is from
  /// optimal.
  void end_step(const Monitor* monitor) {
    over(steps_.size(), monitor,
         [&](std::size_t f, Scratch& scratch) { scratch.work += point_.shrink(f); });
    double primal = 0.0, dual = 0.0;
    for (std::size_t i = 0; i < x_before_.size(); ++i) {
      const GdmmVariable& variable = point_.variables[i];
      const auto ends = graph_.ends_of(static_cast<index_t>(i));
      for (std::size_t s = 0; s < variable.x.size(); ++s) {
        const double moved = variable.x[s] - x_before_[i][s];
        dual += static_cast<double>(ends.size()) * moved * moved;
      }
      for (const FactorEnd& end : ends) {
        GdmmEnd& side = point_.end_at(end);
        for (std::size_t s = 0; s < variable.x.size(); ++s) {
          const double apart = side.marginal[s] - variable.x[s];
          side.mu[s] += eta_ * apart;
          primal += apart * apart;
        }
      }
    }
    const double n_ends = std::max<double>(1.0, static_cast<double>(point_.ends.size()));
    residuals_ = {std::sqrt(primal / n_ends), rho_ * std::sqrt(dual / n_ends)};
  }

  int n_threads_allowed_;
  double rho_, eta_;
  double largest_q_ = 0.0;
  bool is_first_ = true;
  std::vector<Step> steps_;
  std::vector<std::vector<double>> x_before_;
  GdmmResiduals residuals_;
};

}  // namespace sublearn
