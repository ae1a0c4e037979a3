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

/// Room for one row; kept per thread.
struct TreeScratch {
  std::vector<double> eta, rho, scale;
  std::vector<double> scale_slope, eta_slope;  // of the gradient
  double unit = 1.0;  // entries are divided by it, so that their squares are numbers

  void resize(index_t n_labels) {
    for (auto* v : {&eta, &rho, &scale, &scale_slope, &eta_slope}) {
      v->assign(static_cast<std::size_t>(n_labels), 0.0);
    }
  }
};

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

/// Fills eta, rho and scale of a row. The graph must be a forest.
template <class T>
void shrink_groups(const LabelGraph& forest, std::span<const T> u, std::span<const double> phi,
                   TreeScratch& row) {
  row.unit = row_unit(u);
  const double inverse = 1.0 / row.unit;
  for (std::size_t t = 0; t < u.size(); ++t) {
    const double x = row.unit == 1.0 ? static_cast<double>(u[t]) : u[t] / row.unit;
    row.eta[t] = x * x;
  }
  forest.walk_up([&](index_t t, std::span<const index_t> parent) {
    const double rho = kept_share(row.eta[t], phi[t] * inverse);
    row.rho[t] = rho;
    if (!parent.empty()) row.eta[parent[0]] += rho * rho * row.eta[t];
  });
  forest.walk_down([&](index_t t, std::span<const index_t> parent) {
    row.scale[t] = row.rho[t] * (parent.empty() ? 1.0 : row.scale[parent[0]]);
  });
}

/// Whether the group of a label is not zero. The label's own entry may be: its descendants count.
inline bool survives(const TreeScratch& row, std::size_t t) {
  return row.scale[t] > 0.0 && row.eta[t] > 0.0;
}

/// Gradients of <slope, P(u, phi)>, after shrink_groups: `u_slope` is set, `phi_slope` added to.
template <class T>
void shrink_gradient(const LabelGraph& forest, std::span<const T> u, std::span<const double> phi,
                     std::span<const T> slope, TreeScratch& row, std::span<T> u_slope,
                     std::span<double> phi_slope) {
  const double inverse = 1.0 / row.unit;
  const auto entry = [&](index_t t) { return u[t] / row.unit; };
  for (std::size_t t = 0; t < u.size(); ++t) {
    row.scale_slope[t] = slope[t] * entry(static_cast<index_t>(t));
  }
  forest.walk_up([&](index_t t, std::span<const index_t> parent) {
    if (!parent.empty()) row.scale_slope[parent[0]] += row.rho[t] * row.scale_slope[t];
  });
  forest.walk_down([&](index_t t, std::span<const index_t> parent) {
    const double above = parent.empty() ? 1.0 : row.scale[parent[0]];
    const double eta_slope_above = parent.empty() ? 0.0 : row.eta_slope[parent[0]];
    const double rho = row.rho[t], eta = row.eta[t];
    const double rho_slope = row.scale_slope[t] * above + 2.0 * eta_slope_above * rho * eta;
    double eta_slope = eta_slope_above * rho * rho;
    if (rho > 0.0 && eta > 0.0) {
      const double norm = std::sqrt(eta);
      eta_slope += rho_slope * 0.5 * phi[t] * inverse / (eta * norm);
      phi_slope[t] -= rho_slope / norm;
    }
    row.eta_slope[t] = eta_slope;
    u_slope[t] = static_cast<T>(slope[t] * row.scale[t] + 2.0 * entry(t) * eta_slope);
  });
}

}  // namespace sublearn
