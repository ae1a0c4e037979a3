// A sparse matrix and the labels of its rows, as Python passes them, checked.
#pragma once

#include "arrays.hpp"
#include "labels.hpp"
#include "sublearn/core/labelled_rows.hpp"

namespace sublearn::bindings {

/// A matrix and the labels of its rows, checked once; NumPy keeps owning the matrix.
template <class T>
class CheckedRows {
 public:
  CheckedRows(AnyVector indptr, AnyVector indices, Vector<T> values, offset_t n_features,
              const Vector<offset_t>& label_indptr, const Vector<index_t>& rows)
      : X_(std::move(indptr), std::move(indices), std::move(values), n_features),
        n_labels_(static_cast<offset_t>(label_indptr.size()) - 1),
        data_(labelled(X_.view(), label_indptr, rows)) {}

  const LabelledRows<T, index_t>& data() const { return data_; }
  offset_t n_labels() const { return n_labels_; }

 private:
  static LabelledRows<T, index_t> labelled(const CsrView<T, index_t>& X,
                                           const Vector<offset_t>& label_indptr,
                                           const Vector<index_t>& rows) {
    return {X, RowLabels(label_rows(label_indptr, rows, X.n_rows()), X.n_rows())};
  }

  CsrArrays<T> X_;
  offset_t n_labels_;
  LabelledRows<T, index_t> data_;
};

}  // namespace sublearn::bindings
