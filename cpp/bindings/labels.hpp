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
  check_offsets("label_indptr", as_span<offset_t>(indptr), rows.size());
  return {as_span<offset_t>(indptr), as_span<index_t>(rows)};
}

}  // namespace sublearn::bindings
