// Poisson loss with the log link, exp(z) - y z, y >= 0. The notation is that of smooth_loss.hpp.
#pragma once

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
    return rate >= 0.0 ? x_log_x(rate) - rate : std::numeric_limits<double>::infinity();
  }
  double smoothness() const { return std::numeric_limits<double>::infinity(); }
  double majoriser(double /*z*/, double /*y*/) const {
    return std::numeric_limits<double>::infinity();
  }
};

static_assert(SmoothLoss<Poisson>);

}  // namespace sublearn
