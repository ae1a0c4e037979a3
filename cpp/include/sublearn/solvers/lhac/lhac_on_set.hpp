// LHAC over an active set: some coordinates of a point move, all others stay 0.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "sublearn/core/monitor.hpp"
#include "sublearn/core/status.hpp"
#include "sublearn/core/types.hpp"
#include "sublearn/objectives/smooth_objective.hpp"
#include "sublearn/prox/separable.hpp"
#include "sublearn/solvers/lhac/lhac.hpp"

namespace sublearn {

/// A penalty over some of its coordinates, in ascending order.
class PenaltyPart {
 public:
  PenaltyPart(const SeparablePenalty& whole, std::span<const index_t> ids) : part_(whole) {
    for (const index_t j : ids) l1_.push_back(whole.l1[static_cast<std::size_t>(j)]);
    part_.l1 = l1_;
    part_.n_free_last =
        std::count_if(ids.begin(), ids.end(), [&](index_t j) { return whole.is_free(j); });
  }
  const SeparablePenalty& get() const { return part_; }

 private:
  std::vector<double> l1_;  ///< its buffer stays where it is when the part is moved
  SeparablePenalty part_;
};

class LhacOnSet {
 public:
  /// `part` is the function of the coordinates `ids` alone; both must outlive this.
  LhacOnSet(SmoothObjective& part, const SeparablePenalty& whole, std::span<const index_t> ids,
            const LhacSettings& settings, const LhacOuter& outer)
      : ids_(ids), penalty_(whole, ids), lhac_(part, penalty_.get(), settings, outer) {}

  LowRankHessian& hessian() { return lhac_.hessian(); }
  const std::vector<LhacIteration>& iterations() const { return lhac_.iterations; }

  Status solve(std::span<double> x, Monitor& monitor) {
    std::vector<double> at;
    for (const index_t j : ids_) at.push_back(x[static_cast<std::size_t>(j)]);
    const Status status = lhac_.solve(at, monitor);
    for (std::size_t k = 0; k < ids_.size(); ++k) x[static_cast<std::size_t>(ids_[k])] = at[k];
    return status;
  }

 private:
  std::span<const index_t> ids_;
  PenaltyPart penalty_;
  Lhac lhac_;
};

}  // namespace sublearn
