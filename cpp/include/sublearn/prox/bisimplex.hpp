// Projection onto a pair of simplices whose common size is free up to a cap:
//
//   argmin_{x,y,t} ||x - b||^2 + ||y - c||^2   s.t.  x, y >= 0,  sum x = sum y = t,  0 <= t <= cap.
//
// The block subproblem of PD-Sparse: x over the negative labels of a sample, y over the positive
// ones (algorithm 2 of Yen et al., ICML 2016; the derivation below stands on its own).
//
// For a fixed t both halves are simplex projections with thresholds theta_b(t), theta_c(t). Half
// the optimal value is convex in t with derivative -(theta_b(t) + theta_c(t)), because a threshold
// is the multiplier of its sum constraint. Both thresholds fall as t grows, from max(b) and max(c)
// at t = 0. Hence, with s = max(b) + max(c):
//
//   s <= 0                            t = 0, both halves vanish
//   theta_b(cap) + theta_c(cap) >= 0  t = cap
//   else                              t is the root of theta_b + theta_c.
//
// Between two breakpoints (simplex.hpp) the supports have constant sizes n, m and sums S, R of the
// entries less their maxima, so the root of (S - t) / n + (R - t) / m + s = 0 is
//
//   t = (S / n + R / m + s) / (1 / n + 1 / m).
//
// The walk passes the breakpoints of both halves in increasing order and stops in the first
// interval that holds its own root or the cap. An entry more than min(s, cap) below its maximum
// stays zero. Cost: O(n + m + p log p) for p entries within that reach.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <type_traits>
#include <vector>

#include "sublearn/prox/simplex.hpp"

namespace sublearn {

namespace detail {

/// Walks both supports to the optimal common size and returns it; `s` is max(b) + max(c) > 0.
template <class T>
double walk_to_common_size(ThresholdWalk<T>& b, ThresholdWalk<T>& c, double s, double cap) {
  for (;;) {
    const double n = static_cast<double>(b.n);
    const double m = static_cast<double>(c.n);
    const double root = (b.sum / n + c.sum / m + s) / (1.0 / n + 1.0 / m);
    const double t = std::min(root, cap);
    // Written so that a t of NaN, after an overflow, ends the walk too.
    if (!(t > std::min(b.next_radius(), c.next_radius()))) return t;
    (b.next_radius() <= c.next_radius() ? b : c).enter();
  }
}

}  // namespace detail

/// Replaces b by x and c by y, and returns t. b, c: finite; an empty half forces t = 0. cap: not
/// negative, may be infinite. `scratch` only saves the allocation. If the size overflows, t is not
/// finite and x, y are of no use.
template <class T>
double project_bisimplex(std::span<std::type_identity_t<T>> b, std::span<std::type_identity_t<T>> c,
                         double cap, std::vector<T>& scratch) {
  const auto vanish = [&] {
    std::fill(b.begin(), b.end(), T{0});
    std::fill(c.begin(), c.end(), T{0});
    return 0.0;
  };
  if (b.empty() || c.empty()) return vanish();
  const T top_b = *std::max_element(b.begin(), b.end());
  const T top_c = *std::max_element(c.begin(), c.end());
  const double s = static_cast<double>(top_b) + static_cast<double>(top_c);
  if (!(s > 0.0)) return vanish();

  const double reach = std::min(s, cap);
  scratch.clear();
  const std::size_t n_b = detail::append_near_top<T>(b, top_b, reach, scratch);
  const std::size_t n_c = detail::append_near_top<T>(c, top_c, reach, scratch);
  const std::span<const T> sorted(scratch);
  detail::ThresholdWalk<T> walk_b{sorted.first(n_b)};
  detail::ThresholdWalk<T> walk_c{sorted.last(n_c)};
  const double t = detail::walk_to_common_size(walk_b, walk_c, s, cap);
  detail::subtract_threshold<T>(b, top_b, walk_b.threshold(t));
  detail::subtract_threshold<T>(c, top_c, walk_c.threshold(t));
  return t;
}

}  // namespace sublearn
