// GDMM for very many pairwise factors over binary variables (algorithm 9 of Yen 2018).
//
// A table of four cells is a constant, two unary terms and theta_f(1, 1) =: w_f, so that the LP
// (3.25) is
//
//   max  sum_i u_i x_i + sum_f w_f y_f    s.t.  0 <= x <= 1 and for f = (i, j) the constraints
//   (3.35):
//        w_f > 0:  y_f <= x_i (multiplier a_i),  y_f <= x_j (a_j)
//        w_f < 0:  y_f >= 0,  y_f >= x_i + x_j - 1 (multiplier g)
//
// (the other constraints of (3.35) do not bind for that sign of w_f). The bound for any multipliers
// >= 0:
//
//   sum_i max(0, u_i + sum a_i - sum g) + sum_{w_f > 0} max(0, w_f - a_i - a_j)
//     + sum_{w_f < 0} [g + max(0, w_f + g)]
//
// Active sets. A factor with w_f > 0 starts with its weight split evenly, a_i = a_j = w_f / 2,
// which is optimal for y_f = 0 as long as both ends are zero; one with w_f < 0 starts with g = 0,
// optimal as long as one end is zero. So the loop looks only at variables that have ever been
// pulled above zero, and at their factors. The start of algorithm 9 (all multipliers zero, all w_f
// > 0 taken from a sorted list) would touch every factor with w_f > 0.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "sublearn/core/factor_graph.hpp"
#include "sublearn/core/monitor.hpp"
#include "sublearn/solvers/map/gdmm.hpp"

namespace sublearn {

/// True if algorithm 9 can take the graph: two labels everywhere, at most two variables a factor.
inline bool is_binary_pairwise(const FactorGraph& graph) {
  const auto is_two = [](index_t n) { return n == 2; };
  return std::all_of(graph.domain.begin(), graph.domain.end(), is_two) &&
         graph.scope.size() == 2 * graph.table_of.size();
}

/// A pairwise binary graph as constant + u'x + sum_f w_f x_i x_j.
struct BinaryQuadratic {
  double constant = 0.0;
  std::vector<double> u;
  std::vector<double> w;

  explicit BinaryQuadratic(const FactorGraph& graph) {
    u.resize(graph.domain.size());
    w.resize(graph.table_of.size());
    for (std::size_t i = 0; i < u.size(); ++i) {
      const auto unary = graph.unary_of(static_cast<index_t>(i));
      constant += unary[0];
      u[i] = unary[1] - unary[0];
    }
    for (std::size_t f = 0; f < w.size(); ++f) {
      const FactorTable& table = graph.table(static_cast<index_t>(f));
      const double scale = graph.scale[f], none = table.pair(0, 0);
      const double first = table.pair(1, 0) - none, second = table.pair(0, 1) - none;
      constant += scale * none;
      u[at(graph.scope[2 * f])] += scale * first;
      u[at(graph.scope[2 * f + 1])] += scale * second;
      w[f] = scale * (table.pair(1, 1) - none - first - second);
    }
  }
};

class GdmmBinary {
 public:
  GdmmBinary(const FactorGraph& graph, const GdmmSettings& settings)
      : graph_(graph), settings_(settings), problem_(graph), rho_(settings.rho) {
    x_.assign(problem_.u.size(), 0.0);
    is_active_.assign(problem_.u.size(), false);
    factor_slot_.assign(problem_.w.size(), -1);
    pull_ = problem_.u;
    double sum = 0.0;
    offset_t n = 0;
    for (std::size_t f = 0; f < problem_.w.size(); ++f) {
      if (problem_.w[f] == 0.0) continue;
      sum += std::abs(problem_.w[f]);
      ++n;
      if (problem_.w[f] < 0.0) continue;
      for (std::size_t p = 0; p < 2; ++p) pull_[end(f, p)] += 0.5 * problem_.w[f];
    }
    if (rho_ <= 0.0) rho_ = n > 0 ? sum / static_cast<double>(n) : 1.0;
    for (std::size_t i = 0; i < pull_.size(); ++i) {
      if (pull_[i] > 0.0) activate(i);
    }
  }

  /// One pass: y, x, multipliers, then the variables that are pulled up enter.
  void iterate(const Monitor* /*monitor: a pass over the active part is short*/) {
    const double eta = settings_.eta > 0.0 ? settings_.eta : rho_;
    for (Active& factor : factors_) correct_factor(factor);
    double moved = 0.0;
    for (const std::size_t i : order_) moved += correct_variable(i);
    double infeasible = 0.0;
    for (Active& factor : factors_) infeasible += update_multipliers(factor, eta);
    work_ += 4 * static_cast<offset_t>(factors_.size());
    const double n = std::max<double>(1.0, 2.0 * static_cast<double>(factors_.size()));
    residuals_ = {std::sqrt(infeasible / n), rho_ * std::sqrt(moved / n)};
    admit();
    ++n_iter_;
    if (settings_.rho <= 0.0) balance();
  }

  /// The dual value at the present multipliers: no assignment scores more.
  double bound(const Monitor*) const {
    double sum = problem_.constant;
    for (const double pull : pull_) sum += std::max(0.0, pull);
    for (const Active& factor : factors_) {
      if (factor.w > 0.0) {
        sum += std::max(0.0, factor.w - factor.multiplier[0] - factor.multiplier[1]);
      } else {
        sum += factor.multiplier[0] + std::max(0.0, factor.w + factor.multiplier[0]);
      }
    }
    return sum;
  }

  /// Notes the labels that no assignment better than `score` can have; `bound` is that of the
  /// present multipliers. Returns how many are new.
  offset_t exclude(double bound, double score) {
    offset_t n = 0;
    if (excluded_.empty()) excluded_.assign(pull_.size(), -1);
    for (std::size_t i = 0; i < pull_.size(); ++i) {
      if (excluded_[i] >= 0 || std::abs(pull_[i]) <= bound - score) continue;
      excluded_[i] = pull_[i] > 0.0 ? 0 : 1;
      ++n;
    }
    return n;
  }

  /// Labels of a variable that are not excluded, in increasing order.
  std::vector<index_t> remaining(index_t i) const {
    const signed char out = excluded_.empty() ? -1 : excluded_[at(i)];
    if (out < 0) return {0, 1};
    return {static_cast<index_t>(1 - out)};
  }

  void decode(std::span<index_t> labels) const {
    for (std::size_t i = 0; i < x_.size(); ++i) labels[i] = x_[i] > 0.5 ? 1 : 0;
  }

  const GdmmResiduals& residuals() const { return residuals_; }
  double rho() const { return rho_; }
  offset_t work() const { return work_; }
  offset_t n_active_labels() const { return static_cast<offset_t>(order_.size()); }
  offset_t n_active_states() const { return static_cast<offset_t>(factors_.size()); }

 private:
  struct Active {
    std::size_t ends[2];
    double w;
    double y = 0.0;
    double multiplier[2];  ///< a_i and a_j, or g in the first
  };

  std::size_t end(std::size_t f, std::size_t position) const {
    return static_cast<std::size_t>(graph_.scope[2 * f + position]);
  }

  /// A variable enters, and with it the factors for which zero may no longer be optimal.
  void activate(std::size_t i) {
    if (is_active_[i]) return;
    is_active_[i] = true;
    order_.push_back(i);
    for (const FactorEnd& side : graph_.ends_of(static_cast<index_t>(i))) {
      const auto f = static_cast<std::size_t>(side.factor);
      const double w = problem_.w[f];
      const std::size_t other = end(f, static_cast<std::size_t>(1 - side.position));
      ++work_;
      if (factor_slot_[f] >= 0 || w == 0.0 || (w < 0.0 && !is_active_[other])) continue;
      factor_slot_[f] = static_cast<index_t>(factors_.size());
      const double start = w > 0.0 ? 0.5 * w : 0.0;
      factors_.push_back({{end(f, 0), end(f, 1)}, w, 0.0, {start, start}});
    }
  }

  /// y of least augmented Lagrangian, in closed form.
  void correct_factor(Active& factor) const {
    const double* a = factor.multiplier;
    if (factor.w < 0.0) {
      const double over = x_[factor.ends[0]] + x_[factor.ends[1]] - 1.0;
      factor.y = std::max(0.0, over + (a[0] + factor.w) / rho_);
      return;
    }
    // w = sum_k max(0, a_k + rho (y - x_k)): one end pays from the lower kink on, both from the
    // upper
    double kink[2] = {x_[factor.ends[0]] - a[0] / rho_, x_[factor.ends[1]] - a[1] / rho_};
    if (kink[0] > kink[1]) std::swap(kink[0], kink[1]);
    double y = kink[0] + factor.w / rho_;
    if (y > kink[1]) y = 0.5 * (kink[0] + kink[1] + factor.w / rho_);
    factor.y = std::clamp(y, 0.0, 1.0);
  }

  /// A projected Newton step on one variable; returns the squared change times its degree.
  double correct_variable(std::size_t i) {
    double gradient = -problem_.u[i];
    double curvature = 0.0, degree = 0.0;
    for (const FactorEnd& side : graph_.ends_of(static_cast<index_t>(i))) {
      const auto f = static_cast<std::size_t>(side.factor);
      const index_t slot = factor_slot_[f];
      ++work_;
      if (slot < 0) continue;
      const Active& factor = factors_[at(slot)];
      degree += 1.0;
      if (factor.w > 0.0) {
        const double a = factor.multiplier[side.position] + rho_ * (factor.y - x_[i]);
        if (a <= 0.0) continue;
        gradient -= a;
      } else {
        const double over = x_[factor.ends[0]] + x_[factor.ends[1]] - 1.0 - factor.y;
        const double g = factor.multiplier[0] + rho_ * over;
        if (g <= 0.0) continue;
        gradient += g;
      }
      curvature += rho_;
    }
    const double before = x_[i];
    const double step = gradient / std::max(curvature, rho_);
    x_[i] = std::clamp(before - step, 0.0, 1.0);
    return (x_[i] - before) * (x_[i] - before) * degree;
  }

  /// mu <- max(0, mu + eta violation); returns the squared violation that matters.
  double update_multipliers(Active& factor, double eta) {
    double sum = 0.0;
    const auto push = [&](double& multiplier, double violation) {
      const double after = std::max(0.0, multiplier + eta * violation);
      const double change = (after - multiplier) / eta;
      sum += change * change;
      return after - std::exchange(multiplier, after);
    };
    if (factor.w > 0.0) {
      for (std::size_t p = 0; p < 2; ++p) {
        pull_[factor.ends[p]] += push(factor.multiplier[p], factor.y - x_[factor.ends[p]]);
      }
    } else {
      const double over = x_[factor.ends[0]] + x_[factor.ends[1]] - 1.0 - factor.y;
      const double change = push(factor.multiplier[0], over);
      for (const std::size_t i : factor.ends) pull_[i] -= change;
    }
    return sum;
  }

  /// Variables at the far end of active factors that are now pulled above zero.
  void admit() {
    const std::size_t n = factors_.size();
    for (std::size_t slot = 0; slot < n; ++slot) {
      for (std::size_t p = 0; p < 2; ++p) {
        const std::size_t i = factors_[slot].ends[p];
        if (!is_active_[i] && pull_[i] > 0.0) activate(i);
      }
    }
  }

  void balance() {
    constexpr int kEvery = 10;
    if (n_iter_ % kEvery == 0) rho_ = balanced_rho(rho_, residuals_);
  }

  const FactorGraph& graph_;
  GdmmSettings settings_;
  BinaryQuadratic problem_;
  double rho_;
  std::vector<double> x_, pull_;  ///< pull: u_i and all multipliers of i
  std::vector<bool> is_active_;
  std::vector<std::size_t> order_;    ///< active variables
  std::vector<index_t> factor_slot_;  ///< place in factors_, -1 for factors that are not active
  std::vector<Active> factors_;
  std::vector<signed char> excluded_;  ///< label of each variable that is out, -1: none
  GdmmResiduals residuals_;
  offset_t work_ = 0;
  int n_iter_ = 0;
};

}  // namespace sublearn
