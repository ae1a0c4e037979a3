// Zero inside a tube around the prediction, rising with a slope on either side of it:
//
//   l(r) = upper_slope max(0, r - upper) + lower_slope max(0, lower - r),   lower <= upper,
//
// for a residual r = y - f. The shifted epsilon-insensitive loss is the tube
// [-(epsilon + eta), epsilon - eta] with slopes 1; the quantile loss is the empty tube with slopes
// 1 - q and q. Here is the slope, of which algorithm 8 takes one at a time
// (solvers/svr/online_svr.hpp). What a forecast is judged by, value and conjugate, is in
// src/sublearn/forecast/tube_regression.py.
#pragma once

namespace sublearn {

struct TubeLoss {
  double lower = 0.0;
  double upper = 0.0;
  double lower_slope = 1.0;
  double upper_slope = 1.0;

  /// A subgradient; 0 in the tube and on its border.
  double slope(double r) const {
    if (r > upper) return upper_slope;
    return r < lower ? -lower_slope : 0.0;
  }
};

}  // namespace sublearn
