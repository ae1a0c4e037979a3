// Inverted lists: for each feature the rows that have it. One weighted sum of lists scores all rows
// at once, at a cost that depends on the lists touched and not on the size of the matrix
// (Yen 2018, 2.35).
//
// Used by: solvers/ppd_sparse/ (which rows violate?).
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "sublearn/core/types.hpp"
#include "sublearn/core/views.hpp"

namespace sublearn {

/// The transpose of a CSR matrix: column j as a list of (row, value), rows increasing. Its own, or
/// one made before: processes on one machine map one copy of it from a file.
template <class T>
class InvertedLists {
 public:
  template <class I>
  explicit InvertedLists(const CsrView<T, I>& X)
      : own_indptr_(static_cast<std::size_t>(X.n_cols()) + 1),
        own_rows_(static_cast<std::size_t>(X.nnz())),
        own_values_(static_cast<std::size_t>(X.nnz())),
        indptr_(own_indptr_),
        rows_(own_rows_),
        values_(own_values_) {
    auto& ends = own_indptr_;
    for (offset_t p = 0; p < X.nnz(); ++p) ++ends[at(X.indices[p]) + 1];
    for (std::size_t j = 1; j < ends.size(); ++j) ends[j] += ends[j - 1];
    std::vector<offset_t> fill(ends.begin(), ends.end() - 1);
    for (offset_t i = 0; i < X.n_rows(); ++i) {
      const auto row = X.row(i);
      for (std::size_t p = 0; p < row.size(); ++p) {
        const auto slot = static_cast<std::size_t>(fill[at(row.ids[p])]++);
        own_rows_[slot] = static_cast<index_t>(i);
        own_values_[slot] = row.values[p];
      }
    }
  }

  /// Lists made before, which must outlive this object; the caller has checked them.
  InvertedLists(std::span<const offset_t> indptr, std::span<const index_t> rows,
                std::span<const T> values)
      : indptr_(indptr), rows_(rows), values_(values) {}

  InvertedLists(const InvertedLists&) = delete;  // a copy would look into the original
  InvertedLists& operator=(const InvertedLists&) = delete;

  SparseVector<T, index_t> list(index_t feature) const {
    const auto begin = static_cast<std::size_t>(indptr_[at(feature)]);
    const auto count = length(feature);
    return {{rows_.data() + begin, count}, {values_.data() + begin, count}};
  }

  std::size_t length(index_t feature) const {
    const auto j = static_cast<std::size_t>(feature);
    return static_cast<std::size_t>(indptr_[j + 1] - indptr_[j]);
  }

 private:
  std::vector<offset_t> own_indptr_;
  std::vector<index_t> own_rows_;
  std::vector<T> own_values_;
  std::span<const offset_t> indptr_;
  std::span<const index_t> rows_;
  std::span<const T> values_;
};

}  // namespace sublearn
