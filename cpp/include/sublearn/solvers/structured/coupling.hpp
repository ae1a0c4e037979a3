// A feasible point of the dual (10) near an infeasible one: each q is moved to a distribution whose
// marginals are the p of its nodes. Used by: gdmm.hpp, for its bound from below.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "sublearn/core/types.hpp"
#include "sublearn/solvers/structured/task.hpp"

namespace sublearn {

/// Holds scratch space.
template <std::size_t kEnds>
class Coupling {
 public:
  using Factor = LearnFactor<kEnds>;

  /// Calls add(cell, amount) with minus the change of q, by the cells of a table with n_labels
  /// along each end: what is too heavy in q along one end after another is scaled down, and what is
  /// then missing is added as a product (Altschuler, Weed, Rigollet 2017, algorithm 2; with more
  /// than two ends all lack the same).
  template <class Add>
  void move(const Factor& factor, std::size_t n_labels, Add&& add) {
    scale_down(factor);
    for (std::size_t side = 0; side < factor.size(); ++side) {
      const LearnNode& node = *factor.nodes[side];
      lack_[side].resize(node.labels.size());
      for (std::size_t s = 0; s < lack_[side].size(); ++s) lack_[side][s] = node.p(s);
    }
    for (std::size_t n = 0; n < factor.states.size(); ++n) {
      const auto& state = factor.states[n];
      std::size_t cell = 0;
      for (std::size_t side = 0; side < factor.size(); ++side) {
        lack_[side][state.slots[side]] -= q_[n];
        cell = next(factor, side, state.slots[side], n_labels, cell);
      }
      add(cell, state.q - q_[n]);
    }
    double missing = 0.0;
    for (const double share : lack_[0]) missing += share;
    if (missing > 0.0) add_product(factor, 0, -missing, missing, n_labels, 0, add);
  }

 private:
  static std::size_t next(const Factor& factor, std::size_t side, std::size_t slot,
                          std::size_t n_labels, std::size_t cell) {
    return cell * n_labels + static_cast<std::size_t>(factor.nodes[side]->labels[slot]);
  }

  /// Adds `amount` times the product of lack / missing over the ends from `side` on.
  template <class Add>
  void add_product(const Factor& factor, std::size_t side, double amount, double missing,
                   std::size_t n_labels, std::size_t cell, Add& add) {
    if (side == factor.size()) {
      add(cell, amount);
      return;
    }
    for (std::size_t s = 0; s < lack_[side].size(); ++s) {
      if (lack_[side][s] <= 0.0) continue;
      add_product(factor, side + 1, amount * lack_[side][s] / missing, missing, n_labels,
                  next(factor, side, s, n_labels, cell), add);
    }
  }

  void scale_down(const Factor& factor) {
    q_.clear();
    for (const auto& state : factor.states) q_.push_back(state.q);
    for (std::size_t side = 0; side < factor.size(); ++side) {
      const LearnNode& at = *factor.nodes[side];
      sum_.assign(at.labels.size(), 0.0);
      for (std::size_t n = 0; n < q_.size(); ++n) sum_[factor.states[n].slots[side]] += q_[n];
      for (std::size_t n = 0; n < q_.size(); ++n) {
        const std::size_t s = factor.states[n].slots[side];
        if (sum_[s] > at.p(s)) q_[n] *= at.p(s) / sum_[s];
      }
    }
  }

  std::array<std::vector<double>, kEnds> lack_;
  std::vector<double> sum_, q_;
};

}  // namespace sublearn
