// A loss of the margin y z (margin_loss.hpp) as a loss of the prediction z (smooth_loss.hpp).
#pragma once

#include <limits>

#include "sublearn/losses/margin_loss.hpp"
#include "sublearn/losses/smooth_loss.hpp"
#include "sublearn/losses/squared_hinge.hpp"

namespace sublearn {

/// For margin losses whose slope is Lipschitz: dual_diagonal() is not 0.
template <MarginLoss L>
struct OfMargin {
  L loss;

  double value(double z, double y) const { return loss.value(y * z); }
  double slope(double z, double y) const { return -y * loss.slope(y * z); }
  double curvature(double z, double y) const {
    return loss.slope(y * z) > 0.0 ? smoothness() : 0.0;
  }
  double conjugate(double a, double y) const {
    const double alpha = -a * y;
    if (!(alpha >= -kBorder && alpha <= loss.upper_bound())) {
      return std::numeric_limits<double>::infinity();
    }
    return -loss.conjugate_term(alpha);
  }
  double smoothness() const { return 1.0 / loss.dual_diagonal(); }
  double majoriser(double /*z*/, double /*y*/) const { return smoothness(); }
};

static_assert(SmoothLoss<OfMargin<SquaredHinge>>);

}  // namespace sublearn
