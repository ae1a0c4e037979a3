// The hierarchical operator on a forest of labels, in one pass up and one pass down:
//
//   P(u, phi) = argmin_v  1/2 |u - v|^2 + sum_t phi_t |v_{D(t)}|,   D(t) = t and its descendants
//
// (3.3.1) of Tang, "Big Data Optimization in Machine Learning", 2016. Shrinking the groups from the
// leaves to the roots, v_D <- max(1 - phi / |v_D|, 0) v_D, is exact (theorem 2), and the norms can
// be summed on the way:
//
//   up     eta_t = u_t^2 + sum over children c of rho_c^2 eta_c      |v_D(t)|^2 as yet unshrunk
//          rho_t = max(1 - phi_t / sqrt(eta_t), 0)
//   down   scale_t = rho_t scale_parent,   v_t = scale_t u_t
//
// Algorithm 13 prints rho_c eta_c in the sum; only the square is the norm after the shrinking.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "sublearn/core/label_graph.hpp"
#include "sublearn/core/types.hpp"

namespace sublearn {

/// What entries are divided by: 1 unless their squares would leave the range of numbers.
template <class T>
double row_unit(std::span<const T> u) {
  double largest = 0.0;
  for (const T x : u) largest = std::max(largest, std::abs(static_cast<double>(x)));
  return largest == 0.0 || (largest > 1e-100 && largest < 1e100) ? 1.0 : largest;
}

/// The share of a group that shrinking leaves. A weight of 0 leaves everything.
inline double kept_share(double squared_norm, double phi) {
  if (phi == 0.0) return 1.0;
  if (squared_norm == 0.0) return 0.0;
  return std::max(1.0 - phi / std::sqrt(squared_norm), 0.0);
}

/// The operator for one row after another; kept per thread. The graph must be a forest.
class TreeShrinker {
 public:
  explicit TreeShrinker(const LabelGraph& forest)
      : forest_(forest),
        eta_(at(forest.size())),
        rho_(eta_),
        scale_(eta_),
        scale_slope_(eta_),
        eta_slope_(eta_) {}

  /// Finds P(u, phi); returns the gap that was reached, which is zero.
  template <class T>
  double solve(std::span<const T> u, std::span<const double> phi) {
    unit_ = row_unit(u);
    const double inverse = 1.0 / unit_;
    for (std::size_t t = 0; t < u.size(); ++t) {
      const double x = unit_ == 1.0 ? static_cast<double>(u[t]) : u[t] / unit_;
      eta_[t] = x * x;
    }
    forest_.walk_up([&](index_t t, std::span<const index_t> parent) {
      const double rho = kept_share(eta_[t], phi[t] * inverse);
      rho_[t] = rho;
      if (!parent.empty()) eta_[parent[0]] += rho * rho * eta_[t];
    });
    forest_.walk_down([&](index_t t, std::span<const index_t> parent) {
      scale_[t] = rho_[t] * (parent.empty() ? 1.0 : scale_[parent[0]]);
    });
    return 0.0;
  }

  /// An entry of P(u, phi) after solve(u, phi).
  template <class T>
  T value(std::span<const T> u, std::size_t t) const {
    return static_cast<T>(u[t] * scale_[t]);
  }

  /// Whether the group of a label is not zero. The label's own entry may be: its descendants count.
  bool is_on(std::size_t t) const { return scale_[t] > 0.0 && eta_[t] > 0.0; }

  /// Gradients of <slope, P(u, phi)> after solve(u, phi): `u_slope` is set, `phi_slope` added to.
  template <class T>
  void gradient(std::span<const T> u, std::span<const double> phi, std::span<const T> slope,
                std::span<T> u_slope, std::span<double> phi_slope) {
    const double inverse = 1.0 / unit_;
    const auto entry = [&](index_t t) { return u[t] / unit_; };
    for (std::size_t t = 0; t < u.size(); ++t) {
      scale_slope_[t] = slope[t] * entry(static_cast<index_t>(t));
    }
    forest_.walk_up([&](index_t t, std::span<const index_t> parent) {
      if (!parent.empty()) scale_slope_[parent[0]] += rho_[t] * scale_slope_[t];
    });
    forest_.walk_down([&](index_t t, std::span<const index_t> parent) {
      const double above = parent.empty() ? 1.0 : scale_[parent[0]];
      const double eta_slope_above = parent.empty() ? 0.0 : eta_slope_[parent[0]];
      const double rho = rho_[t], eta = eta_[t];
      const double rho_slope = scale_slope_[t] * above + 2.0 * eta_slope_above * rho * eta;
      double eta_slope = eta_slope_above * rho * rho;
      if (rho > 0.0 && eta > 0.0) {
        const double norm = std::sqrt(eta);
        eta_slope += rho_slope * 0.5 * phi[t] * inverse / (eta * norm);
        phi_slope[t] -= rho_slope / norm;
      }
      eta_slope_[t] = eta_slope;
      u_slope[t] = static_cast<T>(slope[t] * scale_[t] + 2.0 * entry(t) * eta_slope);
    });
  }

 private:
  const LabelGraph& forest_;
  std::vector<double> eta_, rho_, scale_;
  std::vector<double> scale_slope_, eta_slope_;  ///< of the gradient
  double unit_ = 1.0;  ///< entries are divided by it, so that their squares are numbers
};

}  // namespace sublearn
