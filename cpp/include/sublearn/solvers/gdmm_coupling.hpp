// A feasible point of the dual (10) near an infeasible one: each q is moved to a distribution whose
// marginals are the p of its two nodes. Used by: gdmm_learn, for its bound from below.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "sublearn/core/types.hpp"
#include "sublearn/solvers/gdmm_learn_task.hpp"

namespace sublearn {

/// Holds scratch space.
class Coupling {
 public:
  /// Moves `table` (n_labels x n_labels) by -weight times the change of q: rows, then columns of q
  /// that are too heavy are scaled down, and what is then missing is added as a product
  /// (Altschuler, Weed, Rigollet 2017, algorithm 2).
  void move(const LearnFactor& factor, const LearnNode& left, const LearnNode& right, double weight,
            std::size_t n_labels, std::span<double> table) {
    const LearnNode* ends[2] = {&left, &right};
    scale_down(factor, ends);
    const auto cell = [&](std::size_t s, std::size_t t) -> double& {
      return table[static_cast<std::size_t>(left.labels[s]) * n_labels +
                   static_cast<std::size_t>(right.labels[t])];
    };
    for (std::size_t side = 0; side < 2; ++side) {
      lack_[side].resize(ends[side]->labels.size());
      for (std::size_t s = 0; s < lack_[side].size(); ++s) lack_[side][s] = ends[side]->p(s);
    }
    for (std::size_t n = 0; n < factor.size(); ++n) {
      for (std::size_t side = 0; side < 2; ++side) lack_[side][factor[n].slots[side]] -= q_[n];
      cell(factor[n].slots[0], factor[n].slots[1]) += weight * (factor[n].q - q_[n]);
    }
    double missing = 0.0;
    for (const double share : lack_[0]) missing += share;
    if (missing <= 0.0) return;
    for (std::size_t s = 0; s < lack_[0].size(); ++s) {
      if (lack_[0][s] <= 0.0) continue;
      for (std::size_t t = 0; t < lack_[1].size(); ++t) {
        if (lack_[1][t] > 0.0) cell(s, t) -= weight * lack_[0][s] * lack_[1][t] / missing;
      }
    }
  }

 private:
  void scale_down(const LearnFactor& factor, const LearnNode* const* ends) {
    q_.clear();
    for (const LearnState& state : factor) q_.push_back(state.q);
    for (std::size_t side = 0; side < 2; ++side) {
      const LearnNode& at = *ends[side];
      sum_.assign(at.labels.size(), 0.0);
      for (std::size_t n = 0; n < factor.size(); ++n) sum_[factor[n].slots[side]] += q_[n];
      for (std::size_t n = 0; n < factor.size(); ++n) {
        const std::size_t s = factor[n].slots[side];
        if (sum_[s] > at.p(s)) q_[n] *= at.p(s) / sum_[s];
      }
    }
  }

  std::vector<double> lack_[2], sum_, q_;
};

}  // namespace sublearn
