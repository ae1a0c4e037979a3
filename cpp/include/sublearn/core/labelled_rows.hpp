// A data matrix and the labels of each of its rows, for learners that go through samples.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "sublearn/core/label_rows.hpp"
#include "sublearn/core/types.hpp"
#include "sublearn/core/views.hpp"

namespace sublearn {

/// The transpose of LabelRows, owned: the labels of each row, increasing.
class RowLabels {
 public:
  RowLabels(const LabelRows& labels, offset_t n_rows)
      : indptr_(static_cast<std::size_t>(n_rows) + 1, 0), labels_(labels.rows.size()) {
    for (const index_t i : labels.rows) ++indptr_[at(i) + 1];
    for (std::size_t i = 1; i < indptr_.size(); ++i) indptr_[i] += indptr_[i - 1];
    std::vector<offset_t> fill(indptr_.begin(), indptr_.end() - 1);
    for (offset_t k = 0; k < labels.n_labels(); ++k) {
      for (const index_t i : labels.of(k)) {
        labels_[at(fill[at(i)]++)] = static_cast<index_t>(k);
      }
    }
  }

  std::span<const index_t> of(offset_t row) const {
    return std::span<const index_t>(labels_).subspan(begin(row), begin(row + 1) - begin(row));
  }
  /// Position of a row's first label among those of all rows.
  std::size_t begin(offset_t row) const { return static_cast<std::size_t>(indptr_[at(row)]); }
  std::size_t size() const { return labels_.size(); }

 private:
  std::vector<offset_t> indptr_;
  std::vector<index_t> labels_;
};

template <class T, class I>
struct LabelledRows {
  CsrView<T, I> X;
  RowLabels labels;
};

}  // namespace sublearn
