// A pairwise table whose cells change, kept so that its best cells are found without a scan.
//
// Each row and each column that has changed keeps its labels in a binary heap by value, with the
// place of each label, so that a change costs O(log K); rows are in one more heap by their best
// cell. The best cell of a line that fulfils a condition is found by a walk down the heap that
// turns back where values are too low. Cells start at zero, and untouched lines have no heap.
//
// The moving twin of sorted_table.hpp: best_cell() of pair_search.hpp searches both. Used by:
// solvers/structured/ (Yen et al., NIPS 2016, appendix C-1, where ordered multimaps do this work).
#pragma once

#include <cstddef>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "sublearn/core/types.hpp"
#include "sublearn/search/pair_search.hpp"

namespace sublearn {

/// Labels ordered by a value that the caller keeps; the largest on top.
class LabelHeap {
 public:
  bool empty() const { return heap_.empty(); }
  index_t top() const { return heap_[0]; }

  /// All labels 0 .. n-1 with equal values.
  void start(index_t n) {
    heap_.resize(static_cast<std::size_t>(n));
    std::iota(heap_.begin(), heap_.end(), index_t{0});
    place_ = heap_;
  }

  /// To be called after the value of one label has changed.
  template <class Value>
  void update(index_t label, Value&& value) {
    const auto at = static_cast<std::size_t>(place_[static_cast<std::size_t>(label)]);
    if (!rise(at, value)) sink(at, value);
  }

  /// Walks down from the top; `visit(label)` says whether to go on below that label.
  template <class Visit>
  void walk(Visit&& visit) const {
    if (!heap_.empty()) walk_from(0, visit);
  }

 private:
  template <class Visit>
  void walk_from(std::size_t at, Visit& visit) const {
    if (!visit(heap_[at])) return;
    const std::size_t left = 2 * at + 1;
    if (left < heap_.size()) walk_from(left, visit);
    if (left + 1 < heap_.size()) walk_from(left + 1, visit);
  }

  template <class Value>
  bool rise(std::size_t at, Value& value) {
    const std::size_t start = at;
    while (at > 0 && value(heap_[at]) > value(heap_[(at - 1) / 2])) {
      swap(at, (at - 1) / 2);
      at = (at - 1) / 2;
    }
    return at != start;
  }

  template <class Value>
  void sink(std::size_t at, Value& value) {
    while (true) {
      std::size_t child = 2 * at + 1;
      if (child >= heap_.size()) return;
      if (child + 1 < heap_.size() && value(heap_[child + 1]) > value(heap_[child])) ++child;
      if (!(value(heap_[child]) > value(heap_[at]))) return;
      swap(at, child);
      at = child;
    }
  }

  void swap(std::size_t a, std::size_t b) {
    std::swap(heap_[a], heap_[b]);
    place_[static_cast<std::size_t>(heap_[a])] = static_cast<index_t>(a);
    place_[static_cast<std::size_t>(heap_[b])] = static_cast<index_t>(b);
  }

  std::vector<index_t> heap_, place_;
};

class HeapTable {
 public:
  HeapTable(index_t n_rows, index_t n_columns)
      : shape_{n_rows, n_columns},
        values_(static_cast<std::size_t>(n_rows) * static_cast<std::size_t>(n_columns), 0.0) {
    for (int side = 0; side < 2; ++side)
      lines_[side].resize(static_cast<std::size_t>(shape_[side]));
    rows_.start(n_rows);
  }

  double pair(index_t a, index_t b) const {
    return values_[static_cast<std::size_t>(a) * static_cast<std::size_t>(shape_[1]) +
                   static_cast<std::size_t>(b)];
  }
  std::span<const double> values() const { return values_; }
  index_t shape(int side) const { return shape_[side]; }

  void add(index_t a, index_t b, double amount) {
    if (amount == 0.0) return;
    values_[static_cast<std::size_t>(a) * static_cast<std::size_t>(shape_[1]) +
            static_cast<std::size_t>(b)] += amount;
    const index_t labels[2] = {a, b};
    for (int side = 0; side < 2; ++side) {
      LabelHeap& line = lines_[side][static_cast<std::size_t>(labels[side])];
      if (line.empty()) line.start(shape_[1 - side]);
      line.update(labels[1 - side], [&](index_t other) { return cell(side, labels[side], other); });
    }
    rows_.update(a, [this](index_t row) { return top(0, row); });
  }

  /// Best value in row (side 0) or column (side 1) `label`.
  double top(int side, index_t label) const {
    const LabelHeap& line = lines_[side][static_cast<std::size_t>(label)];
    return line.empty() ? 0.0 : cell(side, label, line.top());
  }

  /// The best value of all.
  double most() const { return top(0, rows_.top()); }

  /// The best entry above `floor` of a line whose label fulfils the condition; label -1 if none.
  template <class Condition>
  LineEntry best_other(int side, index_t label, double floor, Condition&& is_other,
                       offset_t& work) const {
    const LabelHeap& line = lines_[side][static_cast<std::size_t>(label)];
    LineEntry best{floor, -1};
    if (line.empty()) {
      if (floor >= 0.0) return best;
      for (index_t other = 0; other < shape_[1 - side]; ++other) {
        ++work;
        if (is_other(other)) return {0.0, other};
      }
      return best;
    }
    line.walk([&](index_t other) {
      ++work;
      const double value = cell(side, label, other);
      if (value <= best.value) return false;
      if (!is_other(other)) return true;
      best = {value, other};
      return false;
    });
    return best;
  }

  /// Calls visit(row) for rows that fulfil the condition and whose best cell is above the floor
  /// that it returned last. The pointer is not needed here.
  template <class Condition, class Visit>
  void rows_above(double floor, std::size_t&, Condition&& is_other, Visit&& visit) const {
    rows_.walk([&](index_t row) {
      if (top(0, row) <= floor) return false;
      if (is_other(row)) floor = visit(row);
      return true;
    });
  }

  /// A function of the column that gives the cells of a row.
  auto row(index_t label) const {
    const double* cells = values_.data() + static_cast<offset_t>(label) * shape_[1];
    return [cells](index_t column) { return cells[column]; };
  }

 private:
  double cell(int side, index_t label, index_t other) const {
    return side == 0 ? pair(label, other) : pair(other, label);
  }

  index_t shape_[2];
  std::vector<double> values_;
  std::vector<LabelHeap> lines_[2];
  LabelHeap rows_;
};

}  // namespace sublearn
