// The penalty of sparse linear models, one term per coordinate,
//
//   p_j(t) = l1_j |t| + l2/2 t^2   on  lower <= t <= upper,   lower <= 0 <= upper,
//
// and all that solvers ask of it: a coordinate step, the distance to optimality, the conjugate, and
// what a dual point is scaled by. Intercepts, put last, have no term and no bounds.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>

#include "sublearn/core/types.hpp"
#include "sublearn/prox/soft_threshold.hpp"

namespace sublearn {

struct SeparablePenalty {
  std::span<const double> l1;  ///< one weight per coordinate, 0 for none
  double l2 = 0.0;
  double lower = -std::numeric_limits<double>::infinity();
  double upper = std::numeric_limits<double>::infinity();
  offset_t n_free_last = 0;  ///< so many coordinates at the end have p = 0

  std::size_t size() const { return l1.size(); }

  bool is_free(offset_t j) const { return j + n_free_last >= static_cast<offset_t>(l1.size()); }

  /// Whether p_j is not smooth at 0, so that coordinate j may stay there.
  bool has_kink(offset_t j) const {
    return !is_free(j) && (level(j) > 0.0 || lower == 0.0 || upper == 0.0);
  }

  double value(offset_t j, double t) const {
    if (is_free(j)) return 0.0;
    return level(j) * std::abs(t) + 0.5 * l2 * t * t;
  }

  /// value(j, to) - value(j, from), exact for a small step: the difference of two close numbers is.
  double change(offset_t j, double from, double to) const {
    if (is_free(j)) return 0.0;
    return level(j) * (std::abs(to) - std::abs(from)) + 0.5 * l2 * (to - from) * (to + from);
  }

  /// argmin_t a/2 t^2 - v t + p_j(t), for a > 0.
  double minimise(offset_t j, double a, double v) const {
    if (is_free(j)) return v / a;
    const double t = soft_threshold(v, level(j)) / (a + l2);
    return std::clamp(t, lower, upper);
  }

  /// Size of the least subgradient of  g t + p_j(t)  at t: 0 exactly where t is a minimiser.
  double violation(offset_t j, double t, double g) const {
    if (is_free(j)) return std::abs(g);
    const double right = g + l2 * t + (t >= 0.0 ? level(j) : -level(j));  // slope to the right
    const double left = g + l2 * t + (t > 0.0 ? level(j) : -level(j));
    const double rises_left = t > lower ? left : 0.0;
    const double falls_right = t < upper ? -right : 0.0;
    return std::max({rises_left, falls_right, 0.0});
  }

  /// p_j*(v) = max_t v t - p_j(t); infinite if v leaves the domain.
  double conjugate(offset_t j, double v) const {
    const double excess = soft_threshold(v, level(j));
    if (excess == 0.0) return 0.0;
    const double end = excess > 0.0 ? upper : lower;
    const double t = l2 > 0.0 ? std::clamp(excess / l2, lower, upper) : end;
    return t == 0.0 ? 0.0 : excess * t - 0.5 * l2 * t * t;
  }

  /// Whether nothing holds coordinate j on one side at least, so that p_j* is finite at 0 alone
  /// there: no scaling makes a dual point feasible.
  bool is_open(offset_t j) const {
    return is_free(j) ||
           (level(j) == 0.0 && l2 == 0.0 && !(std::isfinite(lower) && std::isfinite(upper)));
  }

  /// By how much the gradient of a dual point, `scale` times `g`, stays below what moves
  /// coordinate j from 0.
  double room(offset_t j, double scale, double g) const { return level(j) - scale * std::abs(g); }

  /// Largest factor in [0, 1] by which v must shrink for conjugate(j, v) to be finite.
  double feasible_scale(offset_t j, double v) const {
    const bool is_bounded = l2 > 0.0 || std::isfinite(v > 0.0 ? upper : lower);
    return is_bounded || std::abs(v) <= level(j) ? 1.0 : level(j) / std::abs(v);
  }

 private:
  double level(offset_t j) const { return l1[static_cast<std::size_t>(j)]; }
};

/// The gradient times `scale` is what a dual point makes of the coordinates; `bound` its value, a
/// lower bound on the optimum. Minus infinity where no dual point is known.
struct DualPoint {
  double bound = -std::numeric_limits<double>::infinity();
  double scale = 0.0;
};

/// Largest scale in [0, most] for which minus the gradient, scaled, lies in the domain of p*.
/// `gradient` goes with `ids`.
inline double feasible_scale(const SeparablePenalty& penalty, std::span<const index_t> ids,
                             std::span<const double> gradient, double most = 1.0) {
  for (std::size_t k = 0; k < ids.size(); ++k) {
    most = std::min(most, penalty.feasible_scale(ids[k], -gradient[k]));
  }
  return most;
}

/// The dual of  sum_i f_i(<x_i, w>) + p(w)  at the slopes of the rows times a feasible scale:
/// `dual_of_rows(scale)` less the conjugates of the penalty. Coordinates that are not in `ids` must
/// have p_j* = 0.
template <class Rows>
DualPoint scaled_dual(const SeparablePenalty& penalty, std::span<const index_t> ids,
                      std::span<const double> gradient, double most, const Rows& dual_of_rows) {
  const double scale = feasible_scale(penalty, ids, gradient, most);
  double value = dual_of_rows(scale);
  for (std::size_t k = 0; k < ids.size(); ++k) {
    value -= penalty.conjugate(ids[k], -scale * gradient[k]);
  }
  return {value, scale};
}

}  // namespace sublearn
