// Shapes, dtypes and ownership at the border to Python. No formula is written in cpp/bindings/.
//
// Inputs are read-only and never converted: a wrong dtype or layout is a TypeError here, and
// sublearn.validation has made it right before.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "sublearn/core/compressed.hpp"
#include "sublearn/core/types.hpp"
#include "sublearn/core/views.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace sublearn::bindings {

template <class T>
using Vector = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using MutableVector = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Matrix = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using MutableMatrix = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using NumpyVector = nb::ndarray<nb::numpy, T, nb::ndim<1>>;
template <class T>
using NumpyMatrix = nb::ndarray<nb::numpy, T, nb::ndim<2>>;

template <class T>
std::span<const T> as_span(const Vector<T>& v) {
  return {v.data(), v.size()};
}

/// Gives a vector's memory to NumPy without a copy.
template <class T>
NumpyVector<T> to_numpy(std::vector<T>&& values) {
  auto owned = std::make_unique<std::vector<T>>(std::move(values));
  T* data = owned->data();
  const std::size_t size = owned->size();
  nb::capsule owner(owned.release(),
                    [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return NumpyVector<T>(data, {size}, owner);
}

template <class T>
NumpyMatrix<T> to_numpy(std::vector<T>&& values, std::size_t n_rows, std::size_t n_cols) {
  auto owned = std::make_unique<std::vector<T>>(std::move(values));
  T* data = owned->data();
  nb::capsule owner(owned.release(),
                    [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return NumpyMatrix<T>(data, {n_rows, n_cols}, owner);
}

/// The three arrays of a SciPy CSR or CSC matrix, checked so that no kernel can read outside them.
template <template <class, class> class View, class T, class I>
View<T, I> compressed_view(const Vector<I>& indptr, const Vector<I>& indices,
                           const Vector<T>& values, offset_t n_minor) {
  if (indices.size() != values.size()) {
    throw std::invalid_argument("indices and values must have the same length");
  }
  const auto n_major = static_cast<offset_t>(indptr.size()) - 1;
  check_compressed(as_span<I>(indptr), as_span<I>(indices), n_major, n_minor, "indptr", "indices");
  View<T, I> view;
  view.indptr = indptr.data();
  view.indices = indices.data();
  view.values = values.data();
  view.n_major = n_major;
  view.n_minor = n_minor;
  return view;
}

}  // namespace sublearn::bindings
