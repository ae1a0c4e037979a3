// Squared hinge loss, C max(0, 1 - z)^2. The notation is that of margin_loss.hpp.
#pragma once

#include <algorithm>
#include <limits>

#include "sublearn/losses/margin_loss.hpp"

namespace sublearn {

struct SquaredHinge {
  double C = 1.0;  ///< weight of the loss, positive

  // The margin stands first in max, so that NaN comes through.
  double value(double margin) const {
    const double violation = std::max(1.0 - margin, 0.0);
    return C * violation * violation;
  }
  double slope(double margin) const { return 2.0 * C * std::max(1.0 - margin, 0.0); }
  double total(double /*violation*/, double squares) const { return C * squares; }
  double conjugate_term(double alpha) const { return alpha - alpha * alpha / (4.0 * C); }
  double upper_bound() const { return std::numeric_limits<double>::infinity(); }
  double dual_diagonal() const { return 1.0 / (2.0 * C); }
};

static_assert(MarginLoss<SquaredHinge>);

}  // namespace sublearn
