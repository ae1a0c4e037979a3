// What a solver of linear models needs to know about the loss of one row, f(z; y), convex and
// smooth in the prediction z = <x, w> + b.
//
// With weights s_i > 0 the problem  sum_i s_i f(<x_i, w>; y_i) + p(w)  has the dual, to be
// maximised,
//
//   - sum_i s_i f*(-theta_i / s_i; y_i) - p*(X'theta),
//
// and theta_i = -s_i f'(z_i; y_i) is the dual point that belongs to z. Every f* here is finite at 0
// and its domain is an interval, so a theta that is scaled towards 0 stays feasible.
#pragma once

#include <concepts>

namespace sublearn {

/// How far outside the domain of a conjugate a point may lie and still count as its border: slopes
/// that were multiplied by a row's weight and divided by it again are off by their rounding.
inline constexpr double kBorder = 1e-12;

template <class L>
concept SmoothLoss = requires(const L& loss, double z, double y) {
  { loss.value(z, y) } -> std::convertible_to<double>;
  { loss.slope(z, y) } -> std::convertible_to<double>;      // f'
  { loss.curvature(z, y) } -> std::convertible_to<double>;  // f''
  { loss.conjugate(z, y) } -> std::convertible_to<double>;  // f*(a; y) = max_z a z - f(z; y)
  { loss.smoothness() } -> std::convertible_to<double>;     // sup f'', infinite if unbounded
  {
    loss.majoriser(z, y)
  } -> std::convertible_to<double>;  // curvature of a parabola above f that touches it at z;
                                     // infinite if none
};

struct LossTerms {
  double value;
  double slope;
  double curvature;
};

/// All three at once; a loss whose terms share costly parts has a member `terms`.
template <SmoothLoss L>
inline LossTerms loss_terms(const L& loss, double z, double y) {
  if constexpr (requires { loss.terms(z, y); }) {
    return loss.terms(z, y);
  } else {
    return {loss.value(z, y), loss.slope(z, y), loss.curvature(z, y)};
  }
}

}  // namespace sublearn
