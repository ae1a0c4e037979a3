// Views of arrays owned elsewhere: compressed sparse rows or columns, and dense matrices.
//
// Nothing is copied and nothing is checked here; the bindings check once, kernels trust. `I` is the
// type of the ids, `index_t` in all that is compiled for Python; offsets may be of either width.
#pragma once

#include <cstddef>
#include <span>

#include "sublearn/core/offsets.hpp"
#include "sublearn/core/types.hpp"

namespace sublearn {

/// One row or column of a sparse matrix: ids[p] carries values[p].
template <class T, class I>
struct SparseVector {
  std::span<const I> ids;
  std::span<const T> values;

  std::size_t size() const { return ids.size(); }
};

/// Compressed storage along the major axis; CsrView and CscView give the axis its name.
template <class T, class I>
struct CompressedView {
  OffsetPointer indptr;        ///< n_major + 1 offsets
  const I* indices = nullptr;  ///< minor ids
  const T* values = nullptr;
  offset_t n_major = 0;
  offset_t n_minor = 0;

  offset_t nnz() const { return indptr[at(n_major)]; }

  SparseVector<T, I> major(offset_t m) const {
    const auto begin = at(indptr[at(m)]);
    const auto count = at(indptr[at(m + 1)]) - begin;
    return {{indices + begin, count}, {values + begin, count}};
  }
};

template <class T, class I>
struct CsrView : CompressedView<T, I> {
  offset_t n_rows() const { return this->n_major; }
  offset_t n_cols() const { return this->n_minor; }
  SparseVector<T, I> row(offset_t i) const { return this->major(i); }
};

template <class T, class I>
struct CscView : CompressedView<T, I> {
  offset_t n_rows() const { return this->n_minor; }
  offset_t n_cols() const { return this->n_major; }
  SparseVector<T, I> column(offset_t j) const { return this->major(j); }
};

/// Row-major dense matrix.
template <class T>
struct DenseView {
  T* data = nullptr;
  offset_t n_rows = 0;
  offset_t n_cols = 0;

  std::span<T> row(offset_t i) const {
    return {data + i * n_cols, static_cast<std::size_t>(n_cols)};
  }
};

}  // namespace sublearn
