// Algorithm 9 of Yen 2018, the greedy direction method of multipliers for very many pairwise
// factors over binary variables, as it is printed; solvers/map/gdmm_binary.hpp holds our own
// variant.
//
// With x_i = x_i(1), y_f = y_f(1, 1) and theta_f = theta_f(1, 1), once unary terms are taken out of
// the tables, the constraints (3.35) of f = (i, j) with slack variables s >= 0 are
//
//   y_f - x_i + s = 0,   y_f - x_j + s' = 0,   x_i + x_j - 1 - y_f + s'' = 0
//
//   x, y, mu <- 0, no variable and no factor is active
//   repeat
//     1  the variable i* of (3.33) becomes active, and
//     2  all factors whose ends are active
//     3  every active x_i takes its step (3.27), others and slacks fixed
//     4  of the factors that are not active, the one with the largest theta_f > 0 becomes active
//        (3.34), from a sorted list
//     5  every active y_f takes its projected step (3.29), Q = 3 rho
//     6  mu <- mu + eta (violation with its slack) (3.32), for active factors
//
// Slacks are always at their minimisers max(0, -violation - mu / rho). rho and eta never change; by
// default rho is the mean size of theta_f and eta is rho. The bound for multipliers >= 0:
//
//   sum_i max(0, u_i + sum mu - sum mu'') + sum_f [mu''_f + max(0, theta_f - mu_f - mu'_f +
//   mu''_f)]
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <span>
#include <vector>

#include "sublearn/core/factor_graph.hpp"
#include "sublearn/core/monitor.hpp"
#include "sublearn/solvers/map/gdmm.hpp"
#include "sublearn/solvers/map/gdmm_binary.hpp"

namespace sublearn {

class GdmmBinaryPrinted {
 public:
  GdmmBinaryPrinted(const FactorGraph& graph, const GdmmSettings& settings)
      : graph_(graph), problem_(graph), rho_(settings.rho), x_(problem_.u.size(), 0.0) {
    const auto size = [](double sum, double w) { return sum + std::abs(w); };
    const double sum = std::accumulate(problem_.w.begin(), problem_.w.end(), 0.0, size);
    if (rho_ <= 0.0) rho_ = sum > 0.0 ? sum / static_cast<double>(problem_.w.size()) : 1.0;
    eta_ = settings.eta > 0.0 ? settings.eta : rho_;
    is_active_.assign(x_.size(), 0);
    is_in_.assign(problem_.w.size(), 0);
    gradient_.assign(x_.size(), 0.0);
    n_factors_of_.assign(x_.size(), 0.0);
    for (const double w : problem_.w) waiting_ += std::max(0.0, w);
    by_weight_.resize(problem_.w.size());
    std::iota(by_weight_.begin(), by_weight_.end(), std::size_t{0});
    std::stable_sort(by_weight_.begin(), by_weight_.end(),
                     [&](std::size_t f, std::size_t g) { return problem_.w[f] > problem_.w[g]; });
  }

  /// Lines 1 to 7 of the box, once.
  void iterate(const Monitor* /*monitor: a pass over the active part is short*/) {
    measure();
    take_variable();
    const double moved = step_variables();
    take_factor();
    for (Active& factor : factors_) step_factor(factor);
    const double infeasible = move_multipliers();
    const double n = std::max<double>(1.0, 3.0 * static_cast<double>(factors_.size()));
    residuals_ = {std::sqrt(infeasible / n), rho_ * std::sqrt(moved / n)};
    work_ += 6 * static_cast<offset_t>(factors_.size()) + static_cast<offset_t>(x_.size());
  }

  /// The dual value at the present multipliers: no assignment scores more.
  double bound(const Monitor*) const {
    std::vector<double> pull = problem_.u;
    double sum = problem_.constant + std::max(0.0, waiting_);
    for (const Active& factor : factors_) {
      const double* mu = factor.mu;
      for (std::size_t p = 0; p < 2; ++p) pull[factor.ends[p]] += mu[p] - mu[2];
      sum += mu[2] + std::max(0.0, factor.w - mu[0] - mu[1] + mu[2]);
    }
    for (const double own : pull) sum += std::max(0.0, own);
    return sum;
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
    double mu[3] = {0.0, 0.0, 0.0};
  };

  /// What the three constraints miss without their slacks.
  void violations(const Active& factor, double* v) const {
    const double first = x_[factor.ends[0]], second = x_[factor.ends[1]];
    v[0] = factor.y - first;
    v[1] = factor.y - second;
    v[2] = first + second - 1.0 - factor.y;
  }

  /// mu + rho (violation + slack) of a constraint.
  double message(double mu, double violation) const { return std::max(0.0, mu + rho_ * violation); }

  /// Gradients of all x.
  void measure() {
    for (std::size_t i = 0; i < gradient_.size(); ++i) gradient_[i] = -problem_.u[i];
    for (const Active& factor : factors_) {
      double v[3];
      violations(factor, v);
      const double over = message(factor.mu[2], v[2]);
      for (std::size_t p = 0; p < 2; ++p) {
        gradient_[factor.ends[p]] += over - message(factor.mu[p], v[p]);
      }
    }
  }

  /// (3.33): x_i moves by t in [-x_i, 1 - x_i] and (x_i(0), x_i(1)) by (-t, t), at gradient t +
  /// t^2.
  void take_variable() {
    double least = 0.0;
    std::size_t best = x_.size();
    for (std::size_t i = 0; i < x_.size(); ++i) {
      const double t = std::clamp(-0.5 * gradient_[i], -x_[i], 1.0 - x_[i]);
      const double value = gradient_[i] * t + t * t;
      if (value >= least) continue;
      least = value;
      best = i;
    }
    if (best == x_.size() || is_active_[best]) return;
    is_active_[best] = 1;
    order_.push_back(best);
    for (const FactorEnd& side : graph_.ends_of(static_cast<index_t>(best))) {
      const auto f = static_cast<std::size_t>(side.factor);
      if (is_active_[end(f, static_cast<std::size_t>(1 - side.position))]) take(f);
      ++work_;
    }
  }

  std::size_t end(std::size_t f, std::size_t position) const {
    return static_cast<std::size_t>(graph_.scope[2 * f + position]);
  }

  void take(std::size_t f) {
    if (is_in_[f]) return;
    is_in_[f] = 1;
    waiting_ -= std::max(0.0, problem_.w[f]);
    factors_.push_back({{end(f, 0), end(f, 1)}, problem_.w[f]});
    for (const std::size_t i : factors_.back().ends) n_factors_of_[i] += 1.0;
  }

  /// (3.27) for all active variables at once; without a factor x goes where u_i pulls it.
  double step_variables() {
    measure();
    double moved = 0.0;
    for (const std::size_t i : order_) {
      const double curvature = 2.0 * rho_ * n_factors_of_[i];
      const double before = x_[i];
      if (curvature > 0.0) {
        // the two ends of a constraint move at the same time: half of the exact step of each
        x_[i] = std::clamp(before - 0.5 * gradient_[i] / curvature, 0.0, 1.0);
      } else {
        x_[i] = problem_.u[i] > 0.0 ? 1.0 : 0.0;
      }
      moved += n_factors_of_[i] * (x_[i] - before) * (x_[i] - before);
    }
    return moved;
  }

  /// The first factor of the sorted list that is not active.
  void take_factor() {
    while (next_ < by_weight_.size() && is_in_[by_weight_[next_]]) ++next_;
    if (next_ < by_weight_.size() && problem_.w[by_weight_[next_]] > 0.0) take(by_weight_[next_]);
  }

  void step_factor(Active& factor) const {
    double v[3];
    violations(factor, v);
    const double gradient = message(factor.mu[0], v[0]) + message(factor.mu[1], v[1]) -
                            message(factor.mu[2], v[2]) - factor.w;
    factor.y = std::clamp(factor.y - gradient / (3.0 * rho_), 0.0, 1.0);
  }

  double move_multipliers() {
    double sum = 0.0;
    for (Active& factor : factors_) {
      double v[3];
      violations(factor, v);
      for (std::size_t k = 0; k < 3; ++k) {
        const double apart = std::max(v[k], -factor.mu[k] / rho_);  // with its slack
        sum += apart * apart;
        factor.mu[k] = std::max(0.0, factor.mu[k] + eta_ * apart);
      }
    }
    return sum;
  }

  const FactorGraph& graph_;
  BinaryQuadratic problem_;
  double rho_, eta_ = 1.0;
  std::vector<double> x_, gradient_, n_factors_of_;
  std::vector<char> is_active_, is_in_;
  std::vector<std::size_t> order_, by_weight_;
  std::size_t next_ = 0;
  double waiting_ = 0.0;  ///< positive theta_f of factors that are not active
  std::vector<Active> factors_;
  GdmmResiduals residuals_;
  offset_t work_ = 0;
};

}  // namespace sublearn
