// The rows of each label, as Python passes them, checked.
#pragma once

#include <stdexcept>

#include "arrays.hpp"
#include "sublearn/core/label_rows.hpp"

namespace sublearn::bindings {

inline LabelRows label_rows(const Vector<offset_t>& indptr, const Vector<index_t>& rows,
                            offset_t n_rows) {
  if (indptr.size() == 0 || indptr.data()[0] != 0) {
    throw std::invalid_argument("label_indptr must start at 0");
  }
  for (std::size_t k = 1; k < indptr.size(); ++k) {
    if (indptr.data()[k] < indptr.data()[k - 1]) {
      throw std::invalid_argument("label_indptr must not decrease");
    }
  }
  if (indptr.data()[indptr.size() - 1] != static_cast<offset_t>(rows.size())) {
    throw std::invalid_argument("label_indptr must end at the length of label_rows");
  }
  for (const index_t i : as_span<index_t>(rows)) {
    if (i < 0 || i >= n_rows) throw std::invalid_argument("label_rows names a row that X lacks");
  }
  return {as_span<offset_t>(indptr), as_span<index_t>(rows)};
}

}  // namespace sublearn::bindings
