// A smooth convex function as an objective-agnostic solver sees it: values and gradients at points.
// The data, the threads and the machines behind it are its own business.
#pragma once

#include <limits>
#include <memory>
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
  virtual DualPoint dual_point(const SeparablePenalty& /*penalty*/,
                               std::span<const double> /*gradient*/) {
    return {};
  }

  /// How far the optimum's gradient may be from that of a dual point in coordinate j:
  /// |scale g_j - g_j*| <= sqrt(2 (F - bound)) reach(j). Infinite where nothing is known.
  virtual double reach(offset_t /*j*/) { return std::numeric_limits<double>::infinity(); }

  /// How large the curvature along each coordinate is beside that along others, up to a common
  /// factor: the mean square of its feature, for instance. False where nothing is known.
  virtual bool coordinate_sizes(std::span<double> /*out*/) { return false; }

  /// Whether a part of the gradient costs less than all of it, so that restricted() may be called.
  virtual bool has_parts() const { return false; }

  /// The function of the coordinates `ids` (ascending) alone, all others 0. It may look at this
  /// object, which must outlive it.
  virtual std::unique_ptr<SmoothObjective> restricted(std::span<const index_t> /*ids*/) {
    return nullptr;
  }
};

}  // namespace sublearn
