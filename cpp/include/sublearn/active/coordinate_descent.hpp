// Coordinate descent on a quadratic model plus a separable penalty,
//
//   min_d  <g, d> + 1/2 <d, H d> + p(x + d),
//
// whatever H is kept as. A model offers, for positions k of its own numbering,
//
//   curvature(k)   H_kk > 0
//   slope(k)       g_k + (H d)_k at the current d
//   move(k, step)  d_k += step
//
// and decides what a step costs: O(memory) for a low-rank H, O(rows of the column) for X'DX kept as
// a residual, O(coordinates) for X'DX kept as a matrix.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>

#include "sublearn/core/types.hpp"
#include "sublearn/prox/separable.hpp"

namespace sublearn {

/// One pass over `order` (positions); point[k] is x_k + d_k, ids[k] its coordinate in the penalty.
/// Returns the largest curvature times step, which estimates the violation that was found.
template <class Model>
double descend_once(Model& model, const SeparablePenalty& penalty, std::span<const index_t> ids,
                    std::span<const index_t> order, std::span<double> point) {
  double largest = 0.0;
  for (const index_t at : order) {
    const auto k = static_cast<std::size_t>(at);
    const double a = model.curvature(at);
    const double before = point[k];
    const double after = penalty.minimise(ids[k], a, a * before - model.slope(at));
    const double step = after - before;
    if (step == 0.0) continue;
    point[k] = after;
    model.move(at, step);
    largest = std::max(largest, (a + penalty.l2) * std::abs(step));
  }
  return largest;
}

}  // namespace sublearn
