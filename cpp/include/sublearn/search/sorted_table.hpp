// Which cell of a large table is best, when only few of its rows and columns carry a message?
//
// For a pairwise table theta (K_0 x K_1) and sparse messages d_0, d_1 it finds
//
//   max over (a, b) of  scale theta(a, b) - d_0(a) - d_1(b)
//
// over ALL cells, by the four areas of the paper (section 3.2.2 of 000, search for (3.31)): rows
// with a message against columns with one; rows with a message, columns without; the other way
// round; and neither. Rows and columns are sorted when they are first asked for, and shared by all
// factors that point at the table. A row whose best cell cannot win is left out, so that a search
// reads about as many cells as there are messages, whatever K_0 and K_1 are.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <limits>
#include <memory>
#include <mutex>
#include <numeric>
#include <span>
#include <vector>

#include "sublearn/core/factor_graph.hpp"
#include "sublearn/core/types.hpp"

namespace sublearn {

/// The sorted rows and columns of one pairwise table. Safe to ask from several threads.
class SortedTable {
 public:
  struct Entry {
    double value;
    index_t label;  ///< of the other position
  };

  explicit SortedTable(const FactorTable& table) : table_(table) {
    for (int side = 0; side < 2; ++side) sides_[side].start(table.shape[side]);
    find_tops();
    auto& order = rows_by_top_;
    order.resize(sides_[0].top.size());
    std::iota(order.begin(), order.end(), index_t{0});
    std::stable_sort(order.begin(), order.end(), [&](index_t a, index_t b) {
      return sides_[0].top[static_cast<std::size_t>(a)] >
             sides_[0].top[static_cast<std::size_t>(b)];
    });
  }

  /// Best value in row (side 0) or column (side 1) `label`.
  double top(int side, index_t label) const {
    return sides_[side].top[static_cast<std::size_t>(label)];
  }

  /// Cells of a row or column, best first, the smaller label first among equals.
  std::span<const Entry> line(int side, index_t label) const {
    Side& lines = sides_[side];
    const auto n = static_cast<std::size_t>(label);
    if (!lines.is_ready[n].load(std::memory_order_acquire)) sort_line(side, label);
    return lines.entries[n];
  }

  /// Rows in decreasing order of their best cell.
  std::span<const index_t> rows_by_top() const { return rows_by_top_; }

  const FactorTable& table() const { return table_; }

 private:
  struct Side {
    std::vector<double> top;
    std::vector<std::vector<Entry>> entries;
    std::unique_ptr<std::atomic<bool>[]> is_ready;

    void start(index_t n) {
      const auto size = static_cast<std::size_t>(n);
      top.assign(size, -std::numeric_limits<double>::infinity());
      entries.resize(size);
      is_ready = std::make_unique<std::atomic<bool>[]>(size);
    }
  };

  void find_tops() {
    for (index_t a = 0; a < table_.shape[0]; ++a) {
      double best = sides_[0].top[static_cast<std::size_t>(a)];
      for (index_t b = 0; b < table_.shape[1]; ++b) {
        const double value = table_.pair(a, b);
        best = std::max(best, value);
        double& column = sides_[1].top[static_cast<std::size_t>(b)];
        column = std::max(column, value);
      }
      sides_[0].top[static_cast<std::size_t>(a)] = best;
    }
  }

  void sort_line(int side, index_t label) const {
    Side& lines = sides_[side];
    const auto n = static_cast<std::size_t>(label);
    const std::lock_guard lock(sorting_);
    if (lines.is_ready[n].load(std::memory_order_relaxed)) return;
    std::vector<Entry> entries(static_cast<std::size_t>(table_.shape[1 - side]));
    for (std::size_t other = 0; other < entries.size(); ++other) {
      const auto o = static_cast<index_t>(other);
      entries[other] = {side == 0 ? table_.pair(label, o) : table_.pair(o, label), o};
    }
    std::sort(entries.begin(), entries.end(), [](const Entry& x, const Entry& y) {
      return x.value > y.value || (x.value == y.value && x.label < y.label);
    });
    lines.entries[n] = std::move(entries);
    lines.is_ready[n].store(true, std::memory_order_release);
  }

  const FactorTable& table_;
  mutable Side sides_[2];
  std::vector<index_t> rows_by_top_;
  mutable std::mutex sorting_;
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

  bool is_other(index_t label) const { return slot_of[static_cast<std::size_t>(label)] == kNoSlot; }
};

/// A cell of a pairwise table and its score less the messages.
struct BestCell {
  double value = -std::numeric_limits<double>::infinity();
  index_t labels[2] = {0, 0};

  void offer(double score, index_t a, index_t b) {
    if (score > value) *this = {score, {a, b}};
  }
};

namespace detail {

/// The cells of one row whose columns have a message.
inline void offer_row(const FactorTable& table, double scale, index_t row, double cost,
                      const SparseMessage& columns, BestCell& best) {
  const auto run = [&](auto&& theta) {
    for (std::size_t t = 0; t < columns.labels.size(); ++t) {
      const index_t column = columns.labels[t];
      best.offer(scale * theta(column) - cost - columns.values[t], row, column);
    }
  };
  if (table.kind == TableKind::dense) {
    const double* cells = table.values.data() + static_cast<offset_t>(row) * table.shape[1];
    run([cells](index_t column) { return cells[column]; });
  } else {
    run([&](index_t column) { return table.pair(row, column); });
  }
}

}  // namespace detail

/// Exact search over all cells of labels that are not excluded. `known` is a lower bound to start
/// from: a cell that was good before. `first_row` is a pointer into rows_by_top() that only moves
/// forward: the rows before it have a message, and labels do not lose theirs. Adds the number of
/// cells it looked at to `work`.
inline BestCell best_cell(const SortedTable& sorted, double scale, const SparseMessage& rows,
                          const SparseMessage& columns, BestCell known, std::size_t& first_row,
                          offset_t& work) {
  BestCell best = known;
  const SparseMessage* ends[2] = {&rows, &columns};
  double lowest[2] = {0.0, 0.0};  // the most that a message can add, as a subtracted number
  for (int side = 0; side < 2; ++side) {
    for (const double value : ends[side]->values) lowest[side] = std::min(lowest[side], value);
  }
  for (int side = 0; side < 2; ++side) {
    const SparseMessage& mine = *ends[side];
    const SparseMessage& other = *ends[1 - side];
    for (std::size_t s = 0; s < mine.labels.size(); ++s) {
      const index_t label = mine.labels[s];
      const double cost = mine.values[s];
      const double reach = scale * sorted.top(side, label) - cost;
      ++work;
      if (reach - lowest[1 - side] <= best.value) continue;
      if (side == 0) {  // both have a message
        detail::offer_row(sorted.table(), scale, label, cost, other, best);
        work += static_cast<offset_t>(other.labels.size());
      }
      if (reach <= best.value || !other.has_others) continue;
      for (const auto& entry : sorted.line(side, label)) {  // the other end has none
        ++work;
        if (!other.is_other(entry.label)) continue;
        const double score = scale * entry.value - cost;
        if (side == 0) {
          best.offer(score, label, entry.label);
        } else {
          best.offer(score, entry.label, label);
        }
        break;
      }
    }
  }
  if (!rows.has_others || !columns.has_others) return best;
  const auto order = sorted.rows_by_top();
  while (first_row < order.size() && !rows.is_other(order[first_row])) ++first_row;
  for (std::size_t n = first_row; n < order.size(); ++n) {
    ++work;
    if (scale * sorted.top(0, order[n]) <= best.value) break;
    if (!rows.is_other(order[n])) continue;
    for (const auto& entry : sorted.line(0, order[n])) {
      ++work;
      if (scale * entry.value <= best.value) break;
      if (!columns.is_other(entry.label)) continue;
      best.offer(scale * entry.value, order[n], entry.label);
      break;
    }
  }
  return best;
}

}  // namespace sublearn
