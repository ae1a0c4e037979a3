// Logistic loss, log(1 + exp(-y z)), y in {-1, +1}. The notation is that of smooth_loss.hpp.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "sublearn/losses/smooth_loss.hpp"

namespace sublearn {

/// x log x, with its limit at 0.
inline double x_log_x(double x) { return x > 0.0 ? x * std::log(x) : 0.0; }

/// log(1 + e) for e in [0, 1], exact for tiny e too (Kahan); std::log1p takes three times as long.
inline double log_of_one_plus(double e) {
  const double u = 1.0 + e;
  return u == 1.0 ? e : std::log(u) * (e / (u - 1.0));
}

struct Logistic {
  // exp sees no positive argument, so nothing overflows.
  double value(double z, double y) const {
    const double margin = y * z;
    return std::max(-margin, 0.0) + log_of_one_plus(std::exp(-std::abs(margin)));
  }
  double slope(double z, double y) const { return -y * sigmoid(-y * z); }
  double curvature(double z, double /*y*/) const {
    const double e = std::exp(-std::abs(z));
    return e / ((1.0 + e) * (1.0 + e));
  }
  double conjugate(double a, double y) const {
    const double u = -a * y;
    if (!(u >= -kBorder && u <= 1.0 + kBorder)) return std::numeric_limits<double>::infinity();
    return x_log_x(u) + x_log_x(1.0 - u);
  }
  double smoothness() const { return 0.25; }
  /// tanh(m / 2) / (2 m) of Jaakkola and Jordan; 1/4 at 0.
  double majoriser(double z, double /*y*/) const {
    const double m = std::abs(z);
    return m < 1e-4 ? 0.25 : 0.5 * std::tanh(0.5 * m) / m;
  }

  /// One exponential serves all three.
  LossTerms terms(double z, double y) const {
    const double margin = y * z;
    const double e = std::exp(-std::abs(margin));
    const double far = e / (1.0 + e);  // probability of the less likely side
    const double wrong = margin >= 0.0 ? far : 1.0 - far;
    return {std::max(-margin, 0.0) + log_of_one_plus(e), -y * wrong, far / (1.0 + e)};
  }

  static double sigmoid(double m) {
    const double e = std::exp(-std::abs(m));
    return m >= 0.0 ? 1.0 / (1.0 + e) : e / (1.0 + e);
  }
};

static_assert(SmoothLoss<Logistic>);

}  // namespace sublearn
