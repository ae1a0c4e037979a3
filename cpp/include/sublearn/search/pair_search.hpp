// Which cell of a large table is best, when only few of its rows and columns carry a message?
//
// For a pairwise table theta (K_0 x K_1) and sparse messages d_0, d_1 it finds
//
//   max over (a, b) of  scale theta(a, b) - d_0(a) - d_1(b)
//
// over ALL cells, by the four areas of Yen 2018 (section 3.2.2, search for (3.31)) and Yen et al.,
// NIPS 2016 (appendix C-1): rows with a message against columns with one; rows with a message,
// columns without; the other way round; and neither. A line whose best cell cannot win is left out,
// so that a search reads about as many cells as there are messages, whatever K_0 and K_1 are.
//
// Lines come from a table that stays (sorted_table.hpp) or from one that changes (heap_table.hpp).
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "sublearn/core/types.hpp"

namespace sublearn {

/// A cell of a row or column: its value and its other label, -1 for none.
struct LineEntry {
  double value;
  index_t label;
};

/// What slot_of says of a label that has no slot: it has no message yet, or it is out of the game.
inline constexpr index_t kNoSlot = -1;
inline constexpr index_t kExcluded = -2;

/// Messages of one end of a factor: few labels have one, the others count as zero.
struct SparseMessage {
  std::span<const index_t> labels;   ///< with a message, one per slot
  std::span<const double> values;    ///< of each slot
  std::span<const index_t> slot_of;  ///< of each label of the domain, or kNoSlot, kExcluded
  bool has_others = true;            ///< false if no label is kNoSlot

  bool is_other(index_t label) const { return slot_of[at(label)] == kNoSlot; }
};

/// A cell of a pairwise table and its score less the messages.
struct BestCell {
  double value = -std::numeric_limits<double>::infinity();
  index_t labels[2] = {0, 0};

  void offer(double score, index_t a, index_t b) {
    if (score > value) *this = {score, {a, b}};
  }
};

/// Slots in increasing order of their messages.
inline void order_by_cost(const SparseMessage& message, std::vector<index_t>& slots) {
  slots.resize(message.values.size());
  std::iota(slots.begin(), slots.end(), index_t{0});
  std::sort(slots.begin(), slots.end(),
            [&](index_t s, index_t t) { return message.values[at(s)] < message.values[at(t)]; });
}

/// Exact search over all cells of labels that are not excluded. `known` is a lower bound to start
/// from: a cell that was good before. `first_row` is a pointer of the table into its rows that only
/// moves forward: the rows before it have a message or are excluded, and stay so. Adds the number
/// of cells it looked at to `work`.
template <class Lines>
BestCell best_cell(const Lines& table, double scale, const SparseMessage& rows,
                   const SparseMessage& columns, BestCell known, std::size_t& first_row,
                   offset_t& work) {
  BestCell best = known;
  const SparseMessage* ends[2] = {&rows, &columns};
  double lowest[2] = {0.0, 0.0};  // the most that a message can add, as a subtracted number
  for (int side = 0; side < 2; ++side) {
    for (const double value : ends[side]->values) lowest[side] = std::min(lowest[side], value);
  }
  static thread_local std::vector<index_t> columns_by_cost;  // scratch
  order_by_cost(columns, columns_by_cost);
  /// What a cell must exceed to win when the messages of its labels cost so much.
  const auto floor = [&](double cost) {
    return scale > 0.0 ? (best.value + cost) / scale : -std::numeric_limits<double>::infinity();
  };
  for (int side = 0; side < 2; ++side) {
    const SparseMessage& mine = *ends[side];
    const SparseMessage& other = *ends[1 - side];
    const auto is_other = [&](index_t label) { return other.is_other(label); };
    for (std::size_t s = 0; s < mine.labels.size(); ++s) {
      const index_t label = mine.labels[s];
      const double cost = mine.values[s];
      const double reach = scale * table.top(side, label) - cost;
      ++work;
      if (reach - lowest[1 - side] <= best.value) continue;
      if (side == 0) {  // both have a message
        const auto row = table.row(label);
        for (const index_t slot : columns_by_cost) {
          const auto t = static_cast<std::size_t>(slot);
          if (reach - other.values[t] <= best.value) break;  // and so for all that cost more
          best.offer(scale * row(other.labels[t]) - cost - other.values[t], label, other.labels[t]);
          ++work;
        }
      }
      if (reach <= best.value || !other.has_others) continue;
      const LineEntry entry = table.best_other(side, label, floor(cost), is_other, work);
      if (entry.label < 0) continue;
      const double score = scale * entry.value - cost;
      if (side == 0) {
        best.offer(score, label, entry.label);
      } else {
        best.offer(score, entry.label, label);
      }
    }
  }
  if (!rows.has_others || !columns.has_others) return best;
  const auto is_other_row = [&](index_t label) { return rows.is_other(label); };
  const auto is_other_column = [&](index_t label) { return columns.is_other(label); };
  table.rows_above(floor(0.0), first_row, is_other_row, [&](index_t row) {
    ++work;
    const LineEntry entry = table.best_other(0, row, floor(0.0), is_other_column, work);
    if (entry.label >= 0) best.offer(scale * entry.value, row, entry.label);
    return floor(0.0);
  });
  return best;
}

}  // namespace sublearn
