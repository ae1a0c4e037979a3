// The rows and columns of a pairwise table in decreasing order, for best_cell() of pair_search.hpp.
//
// A row or column is sorted when it is first asked for, and shared by all factors that point at the
// table.
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
#include "sublearn/search/pair_search.hpp"

namespace sublearn {

/// The sorted rows and columns of one pairwise table. Safe to ask from several threads.
class SortedTable {
 public:
  using Entry = LineEntry;

  explicit SortedTable(const FactorTable& table) : table_(table) {
    for (int side = 0; side < 2; ++side) sides_[side].start(table.shape[side]);
    find_tops();
    auto& order = rows_by_top_;
    order.resize(sides_[0].top.size());
    std::iota(order.begin(), order.end(), index_t{0});
    std::stable_sort(order.begin(), order.end(), [&](index_t a, index_t b) {
      return sides_[0].top[at(a)] > sides_[0].top[at(b)];
    });
  }

  /// Best value in row (side 0) or column (side 1) `label`.
  double top(int side, index_t label) const { return sides_[side].top[at(label)]; }

  /// Cells of a row or column, best first, the smaller label first among equals.
  std::span<const Entry> line(int side, index_t label) const {
    Side& lines = sides_[side];
    const auto n = static_cast<std::size_t>(label);
    if (!lines.is_ready[n].load(std::memory_order_acquire)) sort_line(side, label);
    return lines.entries[n];
  }

  /// A function of the column that gives the cells of a row.
  auto row(index_t label) const {
    const double* cells =
        table_.kind == TableKind::dense
            ? table_.values.data() + static_cast<offset_t>(label) * table_.shape[1]
            : nullptr;
    return [this, label, cells](index_t column) {
      return cells != nullptr ? cells[column] : table_.pair(label, column);
    };
  }

  /// The best entry above `floor` of a line whose label fulfils the condition; label -1 if none.
  template <class Condition>
  Entry best_other(int side, index_t label, double floor, Condition&& is_other,
                   offset_t& work) const {
    for (const Entry& entry : line(side, label)) {
      ++work;
      if (entry.value <= floor) break;
      if (is_other(entry.label)) return entry;
    }
    return {floor, -1};
  }

  /// Calls visit(row), best first, for rows that fulfil the condition while their best cell is
  /// above the floor that it returned last. Rows before `first` do not fulfil it and never will
  /// again.
  template <class Condition, class Visit>
  void rows_above(double floor, std::size_t& first, Condition&& is_other, Visit&& visit) const {
    const auto& order = rows_by_top_;
    while (first < order.size() && !is_other(order[first])) ++first;
    for (std::size_t n = first; n < order.size() && top(0, order[n]) > floor; ++n) {
      if (is_other(order[n])) floor = visit(order[n]);
    }
  }

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
      double best = sides_[0].top[at(a)];
      for (index_t b = 0; b < table_.shape[1]; ++b) {
        const double value = table_.pair(a, b);
        best = std::max(best, value);
        double& column = sides_[1].top[at(b)];
        column = std::max(column, value);
      }
      sides_[0].top[at(a)] = best;
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

}  // namespace sublearn
