// A sparse matrix and the labels of its rows, as Python passes them, checked.
#pragma once

#include "arrays.hpp"
#include "labels.hpp"
#include "sublearn/core/labelled_rows.hpp"

namespace sublearn::bindings {

/// A matrix and the labels of its rows, checked once; NumPy keeps owning the matrix.
template <class T, class I>
class CheckedRows {
 public:
  CheckedRows(Vector<I> indptr, Vector<I> indices, Vector<T> values, offset_t n_features,
              Vector<offset_t> label_indptr, Vector<index_t> rows)
      : indptr_(indptr),
        indices_(indices),
        values_(values),
        n_labels_(static_cast<offset_t>(label_indptr.size()) - 1),
        data_(labelled(compressed_view<CsrView, T, I>(indptr, indices, values, n_features),
                       label_indptr, rows)) {}

  const LabelledRows<T, I>& data() const { return data_; }
  offset_t n_labels() const { return n_labels_; }

 private:
  static LabelledRows<T, I> labelled(const CsrView<T, I>& X, const Vector<offset_t>& label_indptr,
                                     const Vector<index_t>& rows) {
    return {X, RowLabels(label_rows(label_indptr, rows, X.n_rows()), X.n_rows())};
  }

  Vector<I> indptr_;
  Vector<I> indices_;
  Vector<T> values_;
  offset_t n_labels_;
  LabelledRows<T, I> data_;
};

}  // namespace sublearn::bindings
