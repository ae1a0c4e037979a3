// Values of pairs of labels, most of which nothing touches: zero until then. For each label the
// pairs with smaller ones, by open addressing while they are few and as an array when that is
// smaller.
//
// Used by: solvers/pairwise/.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "sublearn/core/types.hpp"

namespace sublearn {

template <class Value>
class PairTable {
 public:
  explicit PairTable(index_t n_labels) : rows_(static_cast<std::size_t>(n_labels)) {}

  /// The pairs of one label with smaller ones.
  class Row {
   public:
    Value operator[](index_t smaller) const {
      if (is_dense_) return values_[static_cast<std::size_t>(smaller)];
      if (keys_.empty()) return Value{};
      const std::size_t at = place(smaller);
      return keys_[at] == smaller ? values_[at] : Value{};
    }

   private:
    friend class PairTable;
    static constexpr index_t kEmpty = -1;
    static constexpr std::size_t kFirstPlaces = 16;

    std::size_t place(index_t key) const {
      const std::size_t mask = keys_.size() - 1;
      std::size_t at = (static_cast<std::uint32_t>(key) * 2654435769U >> 7) & mask;
      while (keys_[at] != kEmpty && keys_[at] != key) at = (at + 1) & mask;
      return at;
    }

    Value& touch(index_t larger, index_t smaller) {
      if (is_dense_) return values_[static_cast<std::size_t>(smaller)];
      if (keys_.empty() || 2 * (n_keys_ + 1) > keys_.size()) grow(larger);
      if (is_dense_) return values_[static_cast<std::size_t>(smaller)];
      const std::size_t at = place(smaller);
      if (keys_[at] == kEmpty) {
        keys_[at] = smaller;
        ++n_keys_;
      }
      return values_[at];
    }

    void grow(index_t larger) {
      const std::size_t n_places = keys_.empty() ? kFirstPlaces : 2 * keys_.size();
      const auto keys = std::exchange(keys_, {});
      const auto values = std::exchange(values_, {});
      const auto n_pairs = static_cast<std::size_t>(larger);
      is_dense_ = n_places * (sizeof(Value) + sizeof(index_t)) >= n_pairs * sizeof(Value);
      values_.resize(is_dense_ ? n_pairs : n_places);
      if (!is_dense_) keys_.assign(n_places, kEmpty);
      for (std::size_t e = 0; e < keys.size(); ++e) {
        if (keys[e] == kEmpty) continue;
        const std::size_t at = is_dense_ ? static_cast<std::size_t>(keys[e]) : place(keys[e]);
        if (!is_dense_) keys_[at] = keys[e];
        values_[at] = values[e];
      }
    }

    std::vector<index_t> keys_;  ///< a power of two, half of them empty; none if dense
    std::vector<Value> values_;
    std::size_t n_keys_ = 0;
    bool is_dense_ = false;
  };

  index_t n_labels() const { return static_cast<index_t>(rows_.size()); }
  const Row& row(index_t larger) const { return rows_[static_cast<std::size_t>(larger)]; }

  /// A value to be changed.
  Value& touch(index_t larger, index_t smaller) {
    return rows_[static_cast<std::size_t>(larger)].touch(larger, smaller);
  }

  /// Calls f(larger, smaller, value) for all that were touched, and maybe for others.
  template <class F>
  void for_each(F&& f) const {
    for (std::size_t k = 0; k < rows_.size(); ++k) {
      const Row& row = rows_[k];
      for (std::size_t e = 0; e < row.values_.size(); ++e) {
        const index_t l = row.is_dense_ ? static_cast<index_t>(e) : row.keys_[e];
        if (l != Row::kEmpty) f(static_cast<index_t>(k), l, row.values_[e]);
      }
    }
  }

  /// All values zero; memory is kept.
  void reset() {
    for (Row& row : rows_) std::fill(row.values_.begin(), row.values_.end(), Value{});
  }

 private:
  std::vector<Row> rows_;
};

}  // namespace sublearn
