// Which rows carry each label: what a learner with many labels is given beside the matrix.
#pragma once

#include <cstddef>
#include <span>

#include "sublearn/core/types.hpp"

namespace sublearn {

/// The rows that carry each label.
struct LabelRows {
  std::span<const offset_t> indptr;
  std::span<const index_t> rows;

  offset_t n_labels() const { return static_cast<offset_t>(indptr.size()) - 1; }
  std::span<const index_t> of(offset_t label) const {
    const auto begin = static_cast<std::size_t>(indptr[at(label)]);
    const auto end = static_cast<std::size_t>(indptr[at(label) + 1]);
    return rows.subspan(begin, end - begin);
  }
};

}  // namespace sublearn
