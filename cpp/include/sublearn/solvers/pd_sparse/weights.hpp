// W of PD-Sparse by feature, its labels divided into parts that can be searched one at a time.
//
// Labels of one remainder are a part (24). A feature has a hashed row for each part.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "sublearn/core/types.hpp"
#include "sublearn/core/views.hpp"
#include "sublearn/search/hashed_rows.hpp"
#include "sublearn/search/score_board.hpp"

namespace sublearn {

/// Where a label stands if there are so many parts.
struct LabelParts {
  index_t n_labels = 0;
  index_t n_parts = 1;

  LabelParts(index_t labels, int parts)
      : n_labels(labels), n_parts(std::clamp<index_t>(parts, 1, std::max<index_t>(labels, 1))) {}

  index_t part_of(index_t label) const { return n_parts == 1 ? 0 : label % n_parts; }
  index_t local(index_t label) const { return n_parts == 1 ? label : label / n_parts; }
  index_t label_at(index_t part, index_t at) const { return at * n_parts + part; }
  /// Labels of a part; the parts may differ by one.
  index_t size(index_t part) const { return (n_labels - part + n_parts - 1) / n_parts; }
  index_t largest_size() const { return (n_labels + n_parts - 1) / n_parts; }
  template <class I>
  std::size_t row_of(I feature, index_t part) const {
    return static_cast<std::size_t>(feature) * static_cast<std::size_t>(n_parts) +
           static_cast<std::size_t>(part);
  }
};

template <class T, class I>
class PDWeights {
 public:
  using Place = typename HashedRows<T>::Place;
  using Change = typename HashedRows<T>::Change;
  using Changes = std::vector<std::vector<Change>>;  ///< by part

  PDWeights(LabelParts parts, HashedRows<T> rows) : parts_(parts), rows_(std::move(rows)) {}

  const LabelParts& parts() const { return parts_; }
  const HashedRows<T>& rows() const { return rows_; }
  bool is_made() const { return rows_.n_rows() > 0; }
  void reset() { rows_.reset(); }
  void close() { rows_.close(); }

  Place place_of(index_t label) const { return rows_.place(parts_.local(label)); }

  /// Puts v_k += amount x on the list.
  void list_change(index_t label, T amount, Changes& changes) const {
    if (amount == T{0}) return;
    changes[static_cast<std::size_t>(parts_.part_of(label))].push_back({place_of(label), amount});
  }

  /// v_k += amount x for all changes (23), and W follows; returns the entries visited.
  std::int64_t apply(const Changes& changes, const SparseVector<T, I>& row) {
    std::size_t n_changes = 0;
    for (const auto& of_part : changes) n_changes += of_part.size();
    if (n_changes == 0) return 0;
    for (std::size_t p = 0; p < row.size(); ++p) {
      prefetch(row, p);
      const T x = row.values[p];
      if (x == T{0}) continue;
      for (index_t part = 0; part < parts_.n_parts; ++part) {
        const auto& of_part = changes[static_cast<std::size_t>(part)];
        if (of_part.empty()) continue;
        if (p + kNext < row.size()) {
          rows_.prefetch(parts_.row_of(row.ids[p + kNext], part), of_part);
        }
        rows_.add(parts_.row_of(row.ids[p], part), of_part, x);
      }
    }
    return static_cast<std::int64_t>(row.size() * n_changes);
  }

  /// Adds the scores of a part's labels to the board, and the entries visited to `work`.
  void add_row_to_board(const SparseVector<T, I>& row, index_t part, ScoreBoard<T>& board,
                        std::int64_t& work) const {
    for (std::size_t p = 0; p < row.size(); ++p) {
      prefetch(row, p);
      const std::size_t r = parts_.row_of(row.ids[p], part);
      rows_.add_to(r, row.values[p], board);
      work += rows_.n_weights(r);
    }
  }

  void prefetch(const SparseVector<T, I>& row, std::size_t p) const {
    if (p + 2 * kAhead < row.size()) {
      rows_.prefetch(parts_.row_of(row.ids[p + 2 * kAhead], 0));
    }
    if (p + kAhead < row.size()) rows_.prefetch_block(parts_.row_of(row.ids[p + kAhead], 0));
  }

 private:
  // Rows of W are asked for this many features before they are read.
  static constexpr std::size_t kAhead = 8;
  // And their entries this many features before they are changed.
  static constexpr std::size_t kNext = 2;

  LabelParts parts_;
  HashedRows<T> rows_;
};

}  // namespace sublearn
