// A smooth convex function as an objective-agnostic solver sees it: values and gradients at points.
// The data, the threads and the machines behind it are nobody else's business.
#pragma once

#include <limits>
#include <span>

#include "sublearn/core/types.hpp"
#include "sublearn/prox/separable.hpp"

namespace sublearn {

class SmoothObjective {
 public:
  virtual ~SmoothObjective() = default;

  virtual offset_t size() const = 0;

  /// Moves to x and returns the value there; infinite outside the domain.
  virtual double move_to(std::span<const double> x) = 0;

  /// Gradient at the point of the last move_to.
  virtual void gradient(std::span<double> out) = 0;

  /// A lower bound on min of (this + penalty), from the dual point that belongs to the last move_to
  /// and `gradient` there; minus infinity where no dual is known.
  virtual double lower_bound(const SeparablePenalty& /*penalty*/,
                             std::span<const double> /*gradient*/) {
    return -std::numeric_limits<double>::infinity();
  }
};

}  // namespace sublearn
