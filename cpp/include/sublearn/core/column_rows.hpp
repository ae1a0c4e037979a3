// Which rows the columns of a data matrix touch, for solvers that keep a number per row up to date
// while they change one column's weight. The values are core/columns.hpp's business.
#pragma once

#include <cstddef>

#include "sublearn/core/types.hpp"

namespace sublearn {

/// Of a CSC matrix, or of a dense one if `indptr` is null.
struct ColumnRows {
  const index_t* indptr = nullptr;
  const index_t* indices = nullptr;
  offset_t n_rows = 0;

  template <class Visit>
  void visit(offset_t j, Visit&& visit) const {
    if (indptr == nullptr) {
      for (offset_t i = 0; i < n_rows; ++i) visit(static_cast<std::size_t>(i));
    } else {
      for (index_t p = indptr[j]; p < indptr[j + 1]; ++p) {
        visit(static_cast<std::size_t>(indices[p]));
      }
    }
  }
};

}  // namespace sublearn
