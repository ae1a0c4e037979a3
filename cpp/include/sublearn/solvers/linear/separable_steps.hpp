// What Newton's steps by coordinate descent (newton_cd.hpp) ask of a penalty that has a term for
// each feature.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "sublearn/active/coordinate_descent.hpp"
#include "sublearn/core/types.hpp"
#include "sublearn/prox/separable.hpp"

namespace sublearn {

/// A share of the way from one number to another: exactly the other for a whole step, so that zeros
/// are zeros.
inline double blended(double from, double to, double share) {
  return share == 1.0 ? to : from + share * (to - from);
}

class SeparableSteps {
 public:
  explicit SeparableSteps(const SeparablePenalty& penalty) : penalty_(penalty) {}

  /// Calls `keep(k)` for the positions of `ids` that are not at their optimum; returns the largest
  /// violation. `gradient` goes with `ids`, `w` has all features.
  template <class Keep>
  double choose(std::span<const double> w, std::span<const index_t> ids,
                std::span<const double> gradient, const Keep& keep) const {
    double largest = 0.0;
    for (std::size_t k = 0; k < ids.size(); ++k) {
      const double at = w[static_cast<std::size_t>(ids[k])];
      const double violation = penalty_.violation(ids[k], at, gradient[k]);
      if (at == 0.0 && violation == 0.0) continue;
      keep(k);
      largest = std::max(largest, violation);
    }
    return largest;
  }

  /// Before the first pass over a model.
  template <class Model>
  void prepare(const Model& /*model*/, std::span<const index_t> ids) {
    order_.resize(ids.size());
    for (std::size_t k = 0; k < order_.size(); ++k) order_[k] = static_cast<index_t>(k);
  }

  /// A pass over a model; returns about the largest violation that it found.
  template <class Model>
  double pass(Model& model, std::span<const index_t> ids, std::span<double> point) const {
    return descend_once(model, penalty_, ids, order_, point);
  }

  /// What the penalty changes by from `w` a share of the way to `point`, which goes with `ids`.
  double change(std::span<const double> w, std::span<const index_t> ids,
                std::span<const double> point, double share) const {
    double change = 0.0;
    for (std::size_t k = 0; k < ids.size(); ++k) {
      const double before = w[static_cast<std::size_t>(ids[k])];
      if (point[k] == before) continue;
      change += penalty_.change(ids[k], before, blended(before, point[k], share));
    }
    return change;
  }

 private:
  SeparablePenalty penalty_;
  std::vector<index_t> order_;
};

}  // namespace sublearn
