// Projection onto the simplex { x >= 0, sum x = radius }.
//
//   argmin_x ||x - v||^2  s.t. x in the simplex   is   x_i = max(v_i - theta, 0),
//
// with the one theta for which the sum is right. Let u be v - max(v) in decreasing order. As the
// radius t grows from 0, the support grows one entry of u at a time: the entry at position n (from
// 0) enters at
//
//   t_n = (u_0 + ... + u_{n-1}) - n u_n,       and while n entries are in,
//   theta(t) - max(v) = (u_0 + ... + u_{n-1} - t) / n.
//
// Subtracting the maximum first keeps the result exact to rounding at any scale of v, and shows
// that only entries above max(v) - radius can be positive: the others are never sorted. Cost: O(n +
// s log s) for s entries within the radius of the maximum.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <limits>
#include <span>
#include <type_traits>
#include <vector>

namespace sublearn {

namespace detail {

/// theta(t) - max(v) along a growing radius t, over u in decreasing order (u[0] = 0).
template <class T>
struct ThresholdWalk {
  std::span<const T> u;
  std::size_t n = 1;  ///< entries in the support
  double sum = 0.0;   ///< of those entries

  /// Radius at which the next entry enters; never decreases.
  double next_radius() const {
    if (n == u.size()) return std::numeric_limits<double>::infinity();
    return sum - static_cast<double>(n) * static_cast<double>(u[n]);
  }
  void enter() { sum += static_cast<double>(u[n++]); }
  /// Two quotients, because sum - t may overflow where the threshold does not.
  double threshold(double t) const {
    return sum / static_cast<double>(n) - t / static_cast<double>(n);
  }
};

/// Appends v[i] - top in decreasing order for all i within `reach` of `top` = max(v).
template <class T>
std::size_t append_near_top(std::span<const T> v, T top, double reach, std::vector<T>& out) {
  const auto begin = static_cast<std::ptrdiff_t>(out.size());
  for (const T value : v) {
    const T below_top = value - top;
    if (value == top || static_cast<double>(below_top) > -reach) out.push_back(below_top);
  }
  std::sort(out.begin() + begin, out.end(), std::greater<T>());
  return out.size() - static_cast<std::size_t>(begin);
}

/// v_i <- max(v_i - top - theta, 0) with theta relative to `top`.
template <class T>
void subtract_threshold(std::span<T> v, T top, double theta) {
  for (T& value : v) {
    const double shifted = static_cast<double>(value - top) - theta;
    value = shifted > 0.0 ? static_cast<T>(shifted) : T{0};
  }
}

}  // namespace detail

/// Replaces v by the nearest point with v >= 0 and sum v = radius.
/// v: not empty, finite. radius: positive, finite. `scratch` only saves the allocation.
template <class T>
void project_simplex(std::span<std::type_identity_t<T>> v, double radius, std::vector<T>& scratch) {
  const T top = *std::max_element(v.begin(), v.end());
  scratch.clear();
  detail::append_near_top<T>(v, top, radius, scratch);
  detail::ThresholdWalk<T> walk{scratch};
  while (walk.next_radius() < radius) walk.enter();
  detail::subtract_threshold<T>(v, top, walk.threshold(radius));
}

}  // namespace sublearn
