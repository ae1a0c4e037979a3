// Squared loss, (z - y)^2 / 2. The notation is that of smooth_loss.hpp.
#pragma once

#include "sublearn/losses/smooth_loss.hpp"

namespace sublearn {

struct Squared {
  double value(double z, double y) const { return 0.5 * (z - y) * (z - y); }
  double slope(double z, double y) const { return z - y; }
  double curvature(double /*z*/, double /*y*/) const { return 1.0; }
  double conjugate(double a, double y) const { return a * y + 0.5 * a * a; }
  double smoothness() const { return 1.0; }
  double majoriser(double /*z*/, double /*y*/) const { return 1.0; }
};

static_assert(SmoothLoss<Squared>);

}  // namespace sublearn
