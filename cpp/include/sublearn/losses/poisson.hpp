// Poisson loss with the log link, exp(z) - y z, y >= 0. The notation is that of smooth_loss.hpp.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "sublearn/losses/logistic.hpp"
#include "sublearn/losses/smooth_loss.hpp"

namespace sublearn {

struct Poisson {
  // exp(z) may be infinite: a trial point of infinite value is never accepted.
  double value(double z, double y) const { return std::exp(z) - y * z; }
  double slope(double z, double y) const { return std::exp(z) - y; }
  double curvature(double z, double /*y*/) const { return std::exp(z); }
  double conjugate(double a, double y) const {
    const double rate = a + y;
    if (!(rate >= -kBorder * (1.0 + y))) return std::numeric_limits<double>::infinity();
    return x_log_x(rate) - std::max(rate, 0.0);
  }
  double smoothness() const { return std::numeric_limits<double>::infinity(); }
  double majoriser(double /*z*/, double /*y*/) const {
    return std::numeric_limits<double>::infinity();
  }
};

static_assert(SmoothLoss<Poisson>);

}  // namespace sublearn
