// Inverted lists: for each feature the rows that have it. One weighted sum of lists scores all rows
// at once, at a cost that depends on the lists touched and not on the size of the matrix
// (Yen 2018, 2.35).
//
// Used by: ppd_sparse (which rows violate?).
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "sublearn/core/types.hpp"
#include "sublearn/core/views.hpp"

namespace sublearn {

/// The transpose of a CSR matrix, owned: column j as a list of (row, value), rows increasing.
template <class T>
class InvertedLists {
 public:
  template <class I>
  explicit InvertedLists(const CsrView<T, I>& X)
      : indptr_(static_cast<std::size_t>(X.n_cols()) + 1),
        rows_(static_cast<std::size_t>(X.nnz())),
        values_(static_cast<std::size_t>(X.nnz())) {
    for (offset_t p = 0; p < X.nnz(); ++p) ++indptr_[static_cast<std::size_t>(X.indices[p]) + 1];
    for (std::size_t j = 1; j < indptr_.size(); ++j) indptr_[j] += indptr_[j - 1];
    std::vector<offset_t> fill(indptr_.begin(), indptr_.end() - 1);
    for (offset_t i = 0; i < X.n_rows(); ++i) {
      const auto row = X.row(i);
      for (std::size_t p = 0; p < row.size(); ++p) {
        const auto slot = static_cast<std::size_t>(fill[static_cast<std::size_t>(row.ids[p])]++);
        rows_[slot] = static_cast<index_t>(i);
        values_[slot] = row.values[p];
      }
    }
  }

  SparseVector<T, index_t> list(index_t feature) const {
    const auto begin = static_cast<std::size_t>(indptr_[static_cast<std::size_t>(feature)]);
    const auto count = length(feature);
    return {{rows_.data() + begin, count}, {values_.data() + begin, count}};
  }

  std::size_t length(index_t feature) const {
    const auto j = static_cast<std::size_t>(feature);
    return static_cast<std::size_t>(indptr_[j + 1] - indptr_[j]);
  }

 private:
  std::vector<offset_t> indptr_;
  std::vector<index_t> rows_;
  std::vector<T> values_;
};

}  // namespace sublearn
