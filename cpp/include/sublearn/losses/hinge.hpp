// Hinge loss, C max(0, 1 - z). The notation is that of margin_loss.hpp.
#pragma once

#include <algorithm>

#include "sublearn/losses/margin_loss.hpp"

namespace sublearn {

struct Hinge {
  double C = 1.0;  ///< weight of the loss, positive

  // The margin stands first in max, so that NaN comes through.
  double value(double margin) const { return C * std::max(1.0 - margin, 0.0); }
  double slope(double margin) const { return margin < 1.0 ? C : 0.0; }
  double total(double violation, double /*squares*/) const { return C * violation; }
  double conjugate_term(double alpha) const { return alpha; }
  double upper_bound() const { return C; }
  double dual_diagonal() const { return 0.0; }
};

static_assert(MarginLoss<Hinge>);

}  // namespace sublearn
