// The rows of each label, as Python passes them, checked.
#pragma once

#include <stdexcept>

#include "arrays.hpp"
#include "sublearn/core/label_rows.hpp"

namespace sublearn::bindings {

inline LabelRows label_rows(const Vector<offset_t>& indptr, const Vector<index_t>& rows,
                            offset_t n_rows) {
  check_compressed(as_span<offset_t>(indptr), as_span<index_t>(rows),
                   static_cast<offset_t>(indptr.size()) - 1, n_rows, "label_indptr", "label_rows");
  if (indptr.data()[indptr.size() - 1] != static_cast<offset_t>(rows.size())) {
    throw std::invalid_argument("label_indptr must end at the length of label_rows");
  }
  return {as_span<offset_t>(indptr), as_span<index_t>(rows)};
}

}  // namespace sublearn::bindings
