// The hierarchical operator where labels have several parents, so that groups overlap freely:
//
//   P(u, phi) = argmin_v  1/2 |u - v|^2 + sum_t phi_t |v_{D(t)}|
//
// by ascent in the dual (3.4.1) of Tang, "Big Data Optimization in Machine Learning", 2016, one
// group after another: zeta_t <- projection of (v + zeta_t) on the ball of radius phi_t (3.4.3),
// v = u - sum_t zeta_t (3.4.2). Children come first, so that a forest needs one sweep.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "sublearn/core/label_graph.hpp"
#include "sublearn/core/monitor.hpp"
#include "sublearn/core/types.hpp"

namespace sublearn {

struct GroupSettings {
  double tol = 1e-12;  ///< on the duality gap, divided by |u|^2 / 2
  int max_sweeps = 10000;
  const Monitor* monitor = nullptr;  ///< ends the sweeps early
};

/// The groups of a graph, those of children first, and where the dual variables of each begin.
class GroupList {
 public:
  explicit GroupList(const LabelGraph& graph) {
    auto found = graph.groups();
    graph.walk_up([&](index_t t, std::span<const index_t>) {
      owners_.push_back(t);
      first_.push_back(members_.size());
      members_.insert(members_.end(), found[t].begin(), found[t].end());
      found[t] = {};
    });
    first_.push_back(members_.size());
  }

  std::size_t size() const { return owners_.size(); }
  std::size_t n_members() const { return members_.size(); }
  index_t owner(std::size_t g) const { return owners_[g]; }
  std::size_t first(std::size_t g) const { return first_[g]; }
  std::span<const index_t> members(std::size_t g) const {
    return {members_.data() + first_[g], first_[g + 1] - first_[g]};
  }

 private:
  std::vector<index_t> owners_, members_;
  std::vector<std::size_t> first_;
};

/// The operator for one row after another; kept per thread.
class GroupShrinker {
 public:
  GroupShrinker(const LabelGraph& graph, const GroupList& groups, GroupSettings settings)
      : graph_(graph),
        groups_(groups),
        settings_(settings),
        v_(size()),
        is_on_(size()),
        zeta_(groups.n_members()),
        norms_(size()) {}

  /// Finds P(u, phi); returns the gap that was reached, divided by |u|^2 / 2.
  template <class T>
  double solve(std::span<const T> u, std::span<const double> phi) {
    unit_ = 0.0;
    for (const T x : u) unit_ = std::max(unit_, std::abs(static_cast<double>(x)));
    if (unit_ == 0.0) unit_ = 1.0;
    for (std::size_t t = 0; t < v_.size(); ++t) v_[t] = u[t] / unit_;
    std::fill(zeta_.begin(), zeta_.end(), 0.0);
    u_ = v_;
    const double size_of_u = std::max(0.5 * squared(u_), 1e-300);
    double gap = 0.0;
    for (int sweep = 0; sweep < settings_.max_sweeps && !is_stopped(); ++sweep) {
      for (std::size_t g = 0; g < groups_.size(); ++g) update(g, phi[groups_.owner(g)] / unit_);
      gap = duality_gap(phi);
      if (gap <= settings_.tol * size_of_u) break;
    }
    cut(std::sqrt(2.0 * std::max(gap, 0.0)));
    return gap / size_of_u;
  }

  /// An entry of P(u, phi) after solve(u, phi).
  template <class T>
  T value(std::span<const T>, std::size_t t) const {
    return static_cast<T>(v_[t] * unit_);
  }

  /// Whether the group of a label is not zero.
  bool is_on(std::size_t t) const { return is_on_[t] != 0; }

  /// Gradients of <slope, P(u, phi)> after solve(u, phi): `u_slope` is set, `phi_slope` added to.
  ///
  /// On the labels that are on, (I + sum_t phi_t D_t) dv = du - sum_t dphi_t v_t / |v_t| with
  /// D_t = I / |v_t| - v_t v_t' / |v_t|^3, symmetric and at least I: solved by conjugate gradients.
  template <class T>
  void gradient(std::span<const T>, std::span<const double> phi, std::span<const T> slope,
                std::span<T> u_slope, std::span<double> phi_slope) {
    std::vector<double> x(v_.size(), 0.0), r(v_.size(), 0.0);
    for (std::size_t t = 0; t < v_.size(); ++t)
      r[t] = is_on_[t] ? static_cast<double>(slope[t]) : 0.0;
    std::vector<double> p = r, Hp(v_.size());
    double rr = squared(r);
    const double enough = 1e-24 * rr;
    for (std::size_t k = 0; k < 10 * v_.size() + 10 && rr > enough && !is_stopped(); ++k) {
      multiply(phi, p, Hp);
      double pHp = 0.0;
      for (std::size_t t = 0; t < p.size(); ++t) pHp += p[t] * Hp[t];
      const double step = rr / pHp;
      for (std::size_t t = 0; t < p.size(); ++t) {
        x[t] += step * p[t];
        r[t] -= step * Hp[t];
      }
      const double before = rr;
      rr = squared(r);
      for (std::size_t t = 0; t < p.size(); ++t) p[t] = r[t] + rr / before * p[t];
    }
    for (std::size_t t = 0; t < x.size(); ++t) u_slope[t] = static_cast<T>(x[t]);
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      const index_t t = groups_.owner(g);
      if (norms_[t] > 0.0) phi_slope[t] -= inner(g, x) / norms_[t];
    }
  }

 private:
  std::size_t size() const { return static_cast<std::size_t>(graph_.size()); }
  bool is_stopped() const {
    return settings_.monitor != nullptr && settings_.monitor->stop_requested();
  }

  static double squared(const std::vector<double>& x) {
    double sum = 0.0;
    for (const double value : x) sum += value * value;
    return sum;
  }

  double norm_of(std::size_t g) const {
    double sum = 0.0;
    for (const index_t m : groups_.members(g)) sum += v_[m] * v_[m];
    return std::sqrt(sum);
  }

  double inner(std::size_t g, const std::vector<double>& x) const {
    double sum = 0.0;
    for (const index_t m : groups_.members(g)) sum += v_[m] * x[m];
    return sum;
  }

  /// (3.4.3) for one group.
  void update(std::size_t g, double radius) {
    const auto members = groups_.members(g);
    double* zeta = zeta_.data() + groups_.first(g);
    double sum = 0.0;
    for (std::size_t k = 0; k < members.size(); ++k) {
      v_[members[k]] += zeta[k];
      sum += v_[members[k]] * v_[members[k]];
    }
    const double norm = std::sqrt(sum);
    const double share = norm <= radius ? 1.0 : radius / norm;
    for (std::size_t k = 0; k < members.size(); ++k) {
      zeta[k] = share * v_[members[k]];
      v_[members[k]] = share == 1.0 ? 0.0 : v_[members[k]] - zeta[k];
    }
  }

  /// Primal minus dual value: <v, v - u> + sum_t phi_t |v_t|.
  double duality_gap(std::span<const double> phi) {
    double gap = 0.0;
    for (std::size_t t = 0; t < v_.size(); ++t) gap += v_[t] * (v_[t] - u_[t]);
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      const index_t t = groups_.owner(g);
      norms_[t] = norm_of(g);
      gap += phi[t] / unit_ * norms_[t];
    }
    return gap;
  }

  /// Groups that the gap cannot tell from zero become zero: |v - P(u, phi)| <= sqrt(2 gap).
  void cut(double distance) {
    graph_.walk_down([&](index_t t, std::span<const index_t> parents) {
      is_on_[t] = norms_[t] > distance &&
                  std::ranges::all_of(parents, [&](index_t p) { return is_on_[p] != 0; });
      if (!is_on_[t]) v_[t] = norms_[t] = 0.0;
    });
  }

  void multiply(std::span<const double> phi, const std::vector<double>& p,
                std::vector<double>& out) const {
    out = p;
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      const index_t t = groups_.owner(g);
      const double norm = norms_[t], weight = phi[t] / unit_;
      if (norm == 0.0 || weight == 0.0) continue;
      const double along = inner(g, p) / (norm * norm);
      for (const index_t m : groups_.members(g)) {
        if (is_on_[m]) out[m] += weight / norm * (p[m] - along * v_[m]);
      }
    }
  }

  const LabelGraph& graph_;
  const GroupList& groups_;
  GroupSettings settings_;
  double unit_ = 1.0;                 // of v: the largest entry of u
  std::vector<double> v_;             ///< P(u, phi) / unit_
  std::vector<unsigned char> is_on_;  ///< groups that are not zero, closed under parents
  std::vector<double> zeta_, norms_, u_;
};

}  // namespace sublearn
