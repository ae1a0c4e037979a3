// Losses with a kink, smoothed: two lines in r = z - y, of slopes lo <= 0 <= hi, joined by the
// parabola r^2 / 2 where lo <= r <= hi. Its slope is clamp(r, lo, hi). The notation is that of
// smooth_loss.hpp.
//
//   quantile   lo = -tau, hi = 1 - tau, the pinball loss
//   hinge      y = -1 or 1, scaled: lo = -1, hi = 0 for y > 0 and the mirror image for y < 0
//
// A parabola of width mu instead of 1 is the same problem with y, w and b divided by mu (and l2
// times mu). As mu falls the loss becomes the lines; its slopes are points of the lines' dual at
// any mu, so that the lines' own duality gap is known.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "sublearn/losses/smooth_loss.hpp"

namespace sublearn {

struct SmoothedLine {
  double lo = -0.5;
  double hi = 0.5;
  bool is_mirrored = false;  ///< for y < 0

  double value(double z, double y) const {
    const double a = slope(z, y);
    return a * (z - y) - 0.5 * a * a;
  }
  double slope(double z, double y) const { return std::clamp(z - y, least(y), most(y)); }
  double curvature(double z, double y) const {
    const double r = z - y;
    return r >= least(y) && r <= most(y) ? 1.0 : 0.0;
  }
  double conjugate(double a, double y) const {
    if (!(a >= least(y) - kBorder && a <= most(y) + kBorder)) {
      return std::numeric_limits<double>::infinity();
    }
    return a * y + 0.5 * a * a;
  }
  double smoothness() const { return 1.0; }
  /// Up to a linear term this is Huber's loss of r less the middle of lo and hi.
  double majoriser(double z, double y) const {
    const double half = 0.5 * (hi - lo);
    const double r = std::abs(z - y - 0.5 * (least(y) + most(y)));
    return r <= half ? 1.0 : half / r;
  }

 private:
  double least(double y) const { return is_mirrored && y < 0.0 ? -hi : lo; }
  double most(double y) const { return is_mirrored && y < 0.0 ? -lo : hi; }
};

static_assert(SmoothLoss<SmoothedLine>);

}  // namespace sublearn
