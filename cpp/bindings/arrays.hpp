// Shapes, dtypes and ownership at the border to Python. No formula is written in cpp/bindings/.
//
// Inputs are read-only and never converted: a wrong dtype, byte order, layout or alignment is a
// TypeError here, and sublearn.validation has made it right before.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/tuple.h>

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "sublearn/core/compressed.hpp"
#include "sublearn/core/types.hpp"
#include "sublearn/core/views.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace sublearn::bindings {

/// An array of NumPy that begins where its type may be read. NumPy has arrays that do not, views of
/// packed records and of bytes, and arrays that came from another process; nanobind would let them
/// pass. Here they are copied.
template <class... Args>
class Aligned : public nb::ndarray<Args...> {
 public:
  using nb::ndarray<Args...>::ndarray;
  Aligned() = default;
  explicit Aligned(nb::ndarray<Args...>&& array) : nb::ndarray<Args...>(std::move(array)) {}

  bool is_aligned() const {
    const auto address = reinterpret_cast<std::uintptr_t>(this->data());
    return this->size() == 0 || address % this->itemsize() == 0;
  }
};

template <class T>
using Vector = Aligned<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using MutableVector = Aligned<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Matrix = Aligned<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using MutableMatrix = Aligned<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using FortranMatrix = Aligned<const T, nb::ndim<2>, nb::f_contig, nb::device::cpu>;
using AnyVector = Aligned<nb::ro, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
/// Vectors that belong together, a tuple in Python: a CSR matrix is Arrays<I, I, T>.
template <class... T>
using Arrays = std::tuple<Vector<T>...>;
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

/// Adds the columns `field` and `more`, each after its name, to those in `out`.
template <class Row, class Field, class... More>
void add_columns(nb::dict& out, const std::vector<Row>& rows, const char* name, Field field,
                 More... more) {
  using Value = std::decay_t<std::invoke_result_t<Field, const Row&>>;
  using Whole = std::conditional_t<std::is_same_v<Value, bool>, std::uint8_t, std::int64_t>;
  std::vector<std::conditional_t<std::is_integral_v<Value>, Whole, Value>> column;
  column.reserve(rows.size());
  for (const Row& row : rows) column.push_back(std::invoke(field, row));
  out[name] = to_numpy(std::move(column));
  if constexpr (sizeof...(more) > 0) add_columns(out, rows, more...);
}

/// A table as arrays by name: to_columns(rows, "seconds", &Row::seconds, ...). A column is a member
/// of the row, or a function of it; whole numbers become int64, truth values uint8.
template <class Row, class... Columns>
nb::dict to_columns(const std::vector<Row>& rows, Columns... columns) {
  nb::dict out;
  add_columns(out, rows, columns...);
  return out;
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

template <template <class, class> class View, class T, class I>
View<T, I> compressed_view(const Arrays<I, I, T>& matrix, offset_t n_minor) {
  const auto& [indptr, indices, values] = matrix;
  return compressed_view<View, T, I>(indptr, indices, values, n_minor);
}

template <class T>
bool is_of(const AnyVector& v) {
  return v.dtype() == nb::dtype<T>();
}

template <class T>
std::span<const T> span_of(const AnyVector& v) {
  return {static_cast<const T*>(v.data()), v.size()};
}

/// Calls body(indptr, indices) with the two index arrays of a SciPy matrix as spans of their type,
/// int32 or int64. Other arrays are a TypeError, as if no function took them.
template <class Body>
decltype(auto) with_indices(const AnyVector& indptr, const AnyVector& indices, Body&& body) {
  if (is_of<std::int32_t>(indptr) && is_of<std::int32_t>(indices)) {
    return body(span_of<std::int32_t>(indptr), span_of<std::int32_t>(indices));
  }
  if (is_of<std::int64_t>(indptr) && is_of<std::int64_t>(indices)) {
    return body(span_of<std::int64_t>(indptr), span_of<std::int64_t>(indices));
  }
  throw nb::next_overload();
}

/// (indptr, indices, values) of a CSR matrix of either index type.
template <class T>
using CsrTuple = std::tuple<AnyVector, AnyVector, Vector<T>>;

/// A SciPy CSR matrix of either index type, checked and kept. The core knows ids of 32 bits alone,
/// which halves what is compiled: ids of 64 bits are copied, once they are known to fit.
template <class T>
class CsrArrays {
 public:
  CsrArrays(AnyVector indptr, AnyVector indices, Vector<T> values, offset_t n_cols)
      : indptr_(std::move(indptr)), indices_(std::move(indices)), values_(std::move(values)) {
    with_indices(indptr_, indices_, [&](auto offsets, auto ids) { look_at(offsets, ids, n_cols); });
  }
  CsrArrays(const CsrArrays&) = delete;
  CsrArrays& operator=(const CsrArrays&) = delete;

  const CsrView<T, index_t>& view() const { return view_; }

 private:
  template <class I>
  void look_at(std::span<const I> offsets, std::span<const I> ids, offset_t n_cols) {
    if (ids.size() != values_.size()) {
      throw std::invalid_argument("indices and values must have the same length");
    }
    view_.n_major = static_cast<offset_t>(offsets.size()) - 1;
    view_.n_minor = n_cols;
    check_compressed(offsets, ids, view_.n_major, n_cols, "indptr", "indices");
    view_.indptr = offsets.data();
    view_.values = values_.data();
    view_.indices = narrow(ids, n_cols);
  }

  const index_t* narrow(std::span<const index_t> ids, offset_t) { return ids.data(); }

  const index_t* narrow(std::span<const std::int64_t> ids, offset_t n_cols) {
    constexpr offset_t kMost = std::numeric_limits<index_t>::max();
    if (n_cols > kMost) {
      throw std::invalid_argument("a matrix must have at most " + std::to_string(kMost) +
                                  " columns, got " + std::to_string(n_cols));
    }
    narrow_.assign(ids.begin(), ids.end());
    return narrow_.data();
  }

  AnyVector indptr_;
  AnyVector indices_;
  Vector<T> values_;
  std::vector<index_t> narrow_;
  CsrView<T, index_t> view_;
};

/// Refuses offsets that do not cut a list of `n` entries into parts.
inline void check_offsets(const std::string& name, std::span<const offset_t> offsets,
                          std::size_t n) {
  if (!rises_to(offsets, n)) {
    throw std::invalid_argument(name + " must rise from 0 to " + std::to_string(n));
  }
}

/// Refuses ids that are not in 0 .. n - 1.
template <class I>
void check_ids(const std::string& name, std::span<const I> ids, offset_t n) {
  if (all_below(ids, n)) return;
  for (const I id : ids) {
    if (id >= 0 && static_cast<offset_t>(id) < n) continue;
    throw std::invalid_argument(name + " must be from 0 to " + std::to_string(n - 1) + ", got " +
                                std::to_string(id));
  }
}

}  // namespace sublearn::bindings

namespace nanobind::detail {

template <class... Args>
struct type_caster<sublearn::bindings::Aligned<Args...>> {
  using Array = type_caster<ndarray<Args...>>;
  NB_TYPE_CASTER(sublearn::bindings::Aligned<Args...>, Array::Name)

  bool from_python(handle source, uint32_t flags, cleanup_list* cleanup) noexcept {
    return take(source, flags, cleanup) && (value.is_aligned() || copy(source, flags, cleanup));
  }

  static handle from_cpp(const sublearn::bindings::Aligned<Args...>& array, rv_policy policy,
                         cleanup_list* cleanup) noexcept {
    return Array::from_cpp(array, policy, cleanup);
  }

 private:
  bool take(handle source, uint32_t flags, cleanup_list* cleanup) noexcept {
    Array array;
    if (!array.from_python(source, flags, cleanup)) return false;
    value = sublearn::bindings::Aligned<Args...>(std::move(array.value));
    return true;
  }

  /// An aligned copy of what is only read; what is written to is refused instead.
  bool copy(handle source, uint32_t flags, cleanup_list* cleanup) noexcept {
    if constexpr (!ndarray<Args...>::ReadOnly) return false;
    try {
      const object aligned = module_::import_("numpy").attr("array")(source, arg("order") = "K");
      return take(aligned, flags, cleanup) && value.is_aligned();
    } catch (...) {
      return false;
    }
  }
};

}  // namespace nanobind::detail
