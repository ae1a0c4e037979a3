// Where the greedy direction method of multipliers stands: x, y and the multipliers
// (solvers/map/gdmm.hpp).
//
// Only what has entered is stored. Labels of a variable take slots in order of entry, and all that
// belongs to labels is by slot: x_i, and for each end (i, f) of a factor mu_if and M_if y_f. A
// factor has its active states. A label can be excluded for good; it then never enters again.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "sublearn/core/factor_graph.hpp"
#include "sublearn/core/types.hpp"
#include "sublearn/search/sorted_table.hpp"

namespace sublearn {

/// Labels that have entered take slots in order of entry; everything about labels is by slot.
struct GdmmVariable {
  std::vector<index_t> labels;
  std::vector<double> x;
  std::vector<index_t> slot_of;      ///< of each label, or kNoSlot, kExcluded
  std::vector<index_t> unary_order;  ///< labels by decreasing theta_i
  std::size_t next_unary = 0;        ///< labels before it in that order have entered or are out
  std::size_t end_unary = 0;         ///< and so have the labels from here on

  bool has_others() const { return next_unary < end_unary; }
  /// Moves both pointers over labels that have entered or are excluded.
  void tighten() {
    const auto is_other = [&](std::size_t n) { return slot_of[at(unary_order[n])] == kNoSlot; };
    while (has_others() && !is_other(next_unary)) ++next_unary;
    while (has_others() && !is_other(end_unary - 1)) --end_unary;
  }
};

/// mu_if and M_if y_f by slot of the variable.
struct GdmmEnd {
  std::vector<double> mu;
  std::vector<double> marginal;
};

struct GdmmFactor {
  std::vector<double> y;          ///< of the active states
  std::vector<double> theta;      ///< their scores
  std::vector<index_t> slots;     ///< of the labels of state n at n * arity
  std::size_t first_row = 0;      ///< see best_cell
  std::vector<index_t> proposed;  ///< labels of the state that enters, empty if none does
};

class GdmmPoint {
 public:
  std::vector<GdmmVariable> variables;
  std::vector<GdmmFactor> factors;
  std::vector<GdmmEnd> ends;  ///< by position in graph.scope

  /// Every variable has its label of largest theta_i, no factor has a state.
  explicit GdmmPoint(const FactorGraph& graph) : graph_(graph) {
    start_variables();
    start_factors();
  }

  std::size_t end_of(std::size_t f, std::size_t position) const {
    return static_cast<std::size_t>(graph_.scope_begin[f]) + position;
  }
  std::size_t variable_of(std::size_t f, std::size_t position) const {
    return static_cast<std::size_t>(graph_.scope[end_of(f, position)]);
  }

  /// Gives a label its slot, with zero messages from all factors.
  index_t enter(std::size_t i, index_t label) {
    GdmmVariable& variable = variables[i];
    index_t& slot = variable.slot_of[at(label)];
    if (slot >= 0) return slot;
    slot = static_cast<index_t>(variable.labels.size());
    variable.labels.push_back(label);
    variable.x.push_back(0.0);
    for (const FactorEnd& end : graph_.ends_of(static_cast<index_t>(i))) {
      GdmmEnd& side = ends[end_of(static_cast<std::size_t>(end.factor),
                                  static_cast<std::size_t>(end.position))];
      side.mu.push_back(0.0);
      side.marginal.push_back(0.0);
    }
    return slot;
  }

  GdmmEnd& end_at(const FactorEnd& end) {
    return ends[end_of(static_cast<std::size_t>(end.factor),
                       static_cast<std::size_t>(end.position))];
  }
  const GdmmEnd& end_at(const FactorEnd& end) const {
    return ends[end_of(static_cast<std::size_t>(end.factor),
                       static_cast<std::size_t>(end.position))];
  }

  /// theta_i + sum_f mu_if of the label in a slot.
  double belief(std::size_t i, std::size_t slot) const {
    const auto id = static_cast<index_t>(i);
    double value = graph_.unary_of(id)[at(variables[i].labels[slot])];
    for (const FactorEnd& end : graph_.ends_of(id)) value += end_at(end).mu[slot];
    return value;
  }

  /// The largest belief of a variable's labels that are not excluded.
  double best_belief(std::size_t i) const {
    const GdmmVariable& variable = variables[i];
    double best = -std::numeric_limits<double>::infinity();
    for (std::size_t s = 0; s < variable.labels.size(); ++s) best = std::max(best, belief(i, s));
    for (std::size_t n = variable.next_unary; n < variable.end_unary; ++n) {
      const auto label = static_cast<std::size_t>(variable.unary_order[n]);
      if (variable.slot_of[label] != kNoSlot) continue;
      best = std::max(best, graph_.unary_of(static_cast<index_t>(i))[label]);
      break;
    }
    return best;
  }

  /// States at zero leave; marginals are summed anew, so that rounding does not pile up. Returns
  /// the operations it took.
  offset_t shrink(std::size_t f) {
    GdmmFactor& factor = factors[f];
    const std::size_t arity = graph_.scope_of(static_cast<index_t>(f)).size();
    std::size_t kept = 0;
    for (std::size_t s = 0; s < factor.y.size(); ++s) {
      if (factor.y[s] <= 0.0) continue;
      factor.y[kept] = factor.y[s];
      factor.theta[kept] = factor.theta[s];
      std::copy_n(factor.slots.begin() + static_cast<std::ptrdiff_t>(s * arity), arity,
                  factor.slots.begin() + static_cast<std::ptrdiff_t>(kept * arity));
      ++kept;
    }
    factor.y.resize(kept);
    factor.theta.resize(kept);
    factor.slots.resize(kept * arity);
    offset_t work = 0;
    for (std::size_t p = 0; p < arity; ++p) {
      auto& marginal = ends[end_of(f, p)].marginal;
      std::fill(marginal.begin(), marginal.end(), 0.0);
      for (std::size_t s = 0; s < kept; ++s) {
        marginal[at(factor.slots[s * arity + p])] += factor.y[s];
      }
      work += static_cast<offset_t>(marginal.size());
    }
    return work;
  }

  /// Excludes labels that no assignment better than `score` can have; `bound` is that of the
  /// present multipliers. From then on bound() speaks of the assignments that are left, and is
  /// -infinity if there is none. Returns how many labels went.
  offset_t exclude(double bound, double score) {
    offset_t n_excluded = 0;
    for (std::size_t i = 0; i < variables.size(); ++i) {
      n_excluded += exclude_below(i, best_belief(i) - (bound - score));
    }
    if (n_excluded > 0) restore_simplices();
    return n_excluded;
  }

  /// Labels of a variable that are not excluded, in increasing order.
  std::vector<index_t> remaining(index_t i) const {
    std::vector<index_t> labels;
    const auto& slot_of = variables[at(i)].slot_of;
    for (std::size_t label = 0; label < slot_of.size(); ++label) {
      if (slot_of[label] != kExcluded) labels.push_back(static_cast<index_t>(label));
    }
    return labels;
  }

  /// The label of largest x_i for each variable; among equals the one the multipliers prefer.
  void decode(std::span<index_t> labels) const {
    for (std::size_t i = 0; i < variables.size(); ++i) {
      const GdmmVariable& variable = variables[i];
      const auto top = std::max_element(variable.x.begin(), variable.x.end());
      labels[i] = variable.labels[at(top - variable.x.begin())];
    }
  }

  /// Labels that have a share in the present solution, most first.
  std::vector<index_t> candidates(index_t i) const {
    const GdmmVariable& variable = variables[at(i)];
    std::vector<index_t> slots(variable.labels.size());
    std::iota(slots.begin(), slots.end(), index_t{0});
    std::stable_sort(slots.begin(), slots.end(),
                     [&](index_t s, index_t t) { return variable.x[at(s)] > variable.x[at(t)]; });
    for (index_t& slot : slots) slot = variable.labels[at(slot)];
    return slots;
  }

  offset_t n_active_labels() const {
    offset_t n = 0;
    for (const GdmmVariable& variable : variables)
      n += static_cast<offset_t>(variable.labels.size());
    return n;
  }
  offset_t n_active_states() const {
    offset_t n = 0;
    for (const GdmmFactor& factor : factors) n += static_cast<offset_t>(factor.y.size());
    return n;
  }

 private:
  void start_variables() {
    variables.resize(static_cast<std::size_t>(graph_.n_variables()));
    for (std::size_t i = 0; i < variables.size(); ++i) {
      GdmmVariable& variable = variables[i];
      const auto unary = graph_.unary_of(static_cast<index_t>(i));
      variable.slot_of.assign(unary.size(), kNoSlot);
      variable.end_unary = unary.size();
      variable.unary_order.resize(unary.size());
      std::iota(variable.unary_order.begin(), variable.unary_order.end(), index_t{0});
      std::stable_sort(variable.unary_order.begin(), variable.unary_order.end(),
                       [&](index_t a, index_t b) { return unary[at(a)] > unary[at(b)]; });
    }
  }

  void start_factors() {
    factors.resize(static_cast<std::size_t>(graph_.n_factors()));
    ends.resize(graph_.scope.size());
    for (std::size_t i = 0; i < variables.size(); ++i) {
      enter(i, variables[i].unary_order[0]);
      variables[i].x[0] = 1.0;
    }
  }

  /// Excludes the labels of i whose belief is below `lowest`.
  offset_t exclude_below(std::size_t i, double lowest) {
    GdmmVariable& variable = variables[i];
    const auto unary = graph_.unary_of(static_cast<index_t>(i));
    offset_t n_excluded = 0;
    while (variable.has_others()) {
      const auto label = static_cast<std::size_t>(variable.unary_order[variable.end_unary - 1]);
      if (variable.slot_of[label] == kNoSlot) {
        if (unary[label] >= lowest) break;
        variable.slot_of[label] = kExcluded;
        ++n_excluded;
      }
      --variable.end_unary;
    }
    std::vector<index_t> slot_after(variable.labels.size());
    std::size_t n_kept = 0;
    for (std::size_t s = 0; s < variable.labels.size(); ++s) {
      const bool is_out = belief(i, s) < lowest;
      slot_after[s] = is_out ? kExcluded : static_cast<index_t>(n_kept++);
    }
    if (n_kept < slot_after.size()) keep_slots(i, slot_after, n_kept);
    return n_excluded + static_cast<offset_t>(slot_after.size() - n_kept);
  }

  /// Renumbers the slots of a variable; those that map to kExcluded go, with the states over them.
  void keep_slots(std::size_t i, std::span<const index_t> slot_after, std::size_t n_kept) {
    GdmmVariable& variable = variables[i];
    const auto compress = [&](auto& values) {
      for (std::size_t s = 0; s < slot_after.size(); ++s) {
        if (slot_after[s] >= 0) values[at(slot_after[s])] = values[s];
      }
      values.resize(n_kept);
    };
    for (std::size_t s = 0; s < slot_after.size(); ++s) {
      variable.slot_of[at(variable.labels[s])] = slot_after[s];
    }
    compress(variable.labels);
    compress(variable.x);
    for (const FactorEnd& end : graph_.ends_of(static_cast<index_t>(i))) {
      compress(end_at(end).mu);
      compress(end_at(end).marginal);
      GdmmFactor& factor = factors[at(end.factor)];
      const std::size_t arity = graph_.scope_of(end.factor).size();
      for (std::size_t n = 0; n < factor.y.size(); ++n) {
        index_t& slot = factor.slots[n * arity + static_cast<std::size_t>(end.position)];
        slot = slot < 0 ? kExcluded : slot_after[at(slot)];
        if (slot < 0) factor.y[n] = 0.0;
      }
    }
  }

  /// After labels were excluded: what is left of x and y becomes a point of the simplices again.
  void restore_simplices() {
    for (GdmmVariable& variable : variables) {
      const double sum = std::accumulate(variable.x.begin(), variable.x.end(), 0.0);
      if (variable.labels.empty()) {
        variable.tighten();
        if (!variable.has_others()) continue;  // nothing is left: bound() will be -infinity
        const auto i = static_cast<std::size_t>(&variable - variables.data());
        enter(i, variable.unary_order[variable.next_unary]);
      }
      if (sum > 0.0) {
        for (double& x : variable.x) x /= sum;
      } else {
        variable.x[0] = 1.0;
      }
    }
    for (std::size_t f = 0; f < factors.size(); ++f) {
      GdmmFactor& factor = factors[f];
      const double sum = std::accumulate(factor.y.begin(), factor.y.end(), 0.0);
      if (sum > 0.0) {
        for (double& y : factor.y) y /= sum;
      }
      shrink(f);
    }
  }

  const FactorGraph& graph_;
};

}  // namespace sublearn
