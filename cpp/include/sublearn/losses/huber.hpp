// Huber's loss: r^2 / 2 for |r| <= delta, delta |r| - delta^2 / 2 beyond, with r = z - y. The
// notation is that of smooth_loss.hpp.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "sublearn/losses/smooth_loss.hpp"

namespace sublearn {

struct Huber {
  double delta = 1.35;  ///< where the square turns into a line, positive

  double value(double z, double y) const {
    const double r = std::abs(z - y);
    return r <= delta ? 0.5 * r * r : delta * (r - 0.5 * delta);
  }
  double slope(double z, double y) const { return std::clamp(z - y, -delta, delta); }
  double curvature(double z, double y) const { return std::abs(z - y) <= delta ? 1.0 : 0.0; }
  double conjugate(double a, double y) const {
    if (!(std::abs(a) <= delta * (1.0 + kBorder))) return std::numeric_limits<double>::infinity();
    return a * y + 0.5 * a * a;
  }
  double smoothness() const { return 1.0; }
  /// The weight of iteratively reweighted least squares.
  double majoriser(double z, double y) const {
    const double r = std::abs(z - y);
    return r <= delta ? 1.0 : delta / r;
  }
};

static_assert(SmoothLoss<Huber>);

}  // namespace sublearn
