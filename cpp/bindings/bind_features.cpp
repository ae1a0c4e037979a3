// Python face of what sublearn.validation leaves to the core: the structure of sparse matrices, and
// the quick path for rows that need no conversion.
#include <nanobind/stl/string.h>

#include <algorithm>
#include <cstdint>
#include <limits>

#include "arrays.hpp"
#include "sublearn/core/canonical.hpp"
#include "sublearn/core/columns.hpp"
#include "sublearn/core/compressed.hpp"

namespace sublearn::bindings {
namespace {

template <class T>
using FortranMatrix = nb::ndarray<const T, nb::ndim<2>, nb::f_contig, nb::device::cpu>;

/// (low, high) of every column; zeros that are not stored count.
template <class T>
void bind_extremes(nb::module_& m) {
  m.def(
      "column_extremes",
      [](FortranMatrix<T> X) {
        const std::size_t n_rows = X.shape(0), n_cols = X.shape(1);
        std::vector<T> low(n_cols), high(n_cols);
        for (std::size_t j = 0; j < n_cols; ++j) {
          const auto found = extremes(X.data() + j * n_rows, static_cast<offset_t>(n_rows));
          low[j] = found.low, high[j] = found.high;
        }
        return nb::make_tuple(to_numpy(std::move(low)), to_numpy(std::move(high)));
      },
      "X"_a.noconvert(), "Least and largest entry of each column, NaN if one is not finite.");
}

template <class T, class I>
void bind_sparse_extremes(nb::module_& m) {
  m.def(
      "column_extremes",
      [](Vector<I> indptr, Vector<T> values, std::size_t n_rows) {
        if (indptr.size() == 0 ||
            static_cast<std::size_t>(indptr.data()[indptr.size() - 1]) > values.size()) {
          throw std::invalid_argument("indptr points behind the end of values");
        }
        std::vector<T> low(indptr.size() - 1), high(low.size());
        for (std::size_t j = 0; j < low.size(); ++j) {
          const auto begin = static_cast<std::size_t>(indptr.data()[j]);
          const auto count = static_cast<std::size_t>(indptr.data()[j + 1]) - begin;
          auto found = extremes(values.data() + begin, static_cast<offset_t>(count));
          if (count < n_rows && found.low == found.low) {
            found = {std::min(found.low, T{0}), std::max(found.high, T{0})};
          }
          low[j] = found.low, high[j] = found.high;
        }
        return nb::make_tuple(to_numpy(std::move(low)), to_numpy(std::move(high)));
      },
      "indptr"_a.noconvert(), "values"_a.noconvert(), "n_rows"_a,
      "The same for the columns of a CSC matrix.");
}

template <class P, class I>
void bind_check_compressed(nb::module_& m) {
  m.def(
      "check_compressed",
      [](Vector<P> indptr, Vector<I> indices, offset_t n_major, offset_t n_minor,
         const std::string& indptr_name, const std::string& indices_name) {
        check_compressed(as_span<P>(indptr), as_span<I>(indices), n_major, n_minor, indptr_name,
                         indices_name);
      },
      "indptr"_a.noconvert(), "indices"_a.noconvert(), "n_major"_a, "n_minor"_a, "indptr_name"_a,
      "indices_name"_a,
      "Refuse index arrays by which a loop over a sparse matrix would leave them, by name.");
}

}  // namespace

template <class T, class I>
bool matches(nb::handle indptr, nb::handle indices, nb::handle values, offset_t n_rows,
             offset_t n_cols) {
  Vector<I> offsets;
  Vector<I> ids;
  Vector<T> numbers;
  return nb::try_cast(indptr, offsets, false) && nb::try_cast(indices, ids, false) &&
         nb::try_cast(values, numbers, false) &&
         is_canonical_csr(as_span<I>(offsets), as_span<I>(ids), as_span<T>(numbers), n_rows,
                          n_cols);
}

template <class T>
nb::object rows_of(const Matrix<T>& X) {
  const std::size_t n_cols = X.shape(1);
  const std::span<const T> all(X.data(), X.size());
  if (X.size() > static_cast<std::size_t>(std::numeric_limits<index_t>::max())) return nb::none();
  RowEntries<T> out;
  for (std::size_t i = 0; i < X.shape(0); ++i) append_row(all.subspan(i * n_cols, n_cols), out);
  if (!all_finite<T>(out.values)) return nb::none();
  return nb::make_tuple(to_numpy(std::move(out.values)), to_numpy(std::move(out.indices)),
                        to_numpy(std::move(out.indptr)));
}

void bind_features(nb::module_& m) {
  bind_extremes<float>(m);
  bind_extremes<double>(m);
  bind_sparse_extremes<float, std::int32_t>(m);
  bind_sparse_extremes<float, std::int64_t>(m);
  bind_sparse_extremes<double, std::int32_t>(m);
  bind_sparse_extremes<double, std::int64_t>(m);
  bind_check_compressed<std::int32_t, std::int32_t>(m);
  bind_check_compressed<std::int32_t, std::int64_t>(m);
  bind_check_compressed<std::int64_t, std::int32_t>(m);
  bind_check_compressed<std::int64_t, std::int64_t>(m);
  m.def(
      "is_canonical_csr",
      [](nb::handle indptr, nb::handle indices, nb::handle values, offset_t n_rows,
         offset_t n_cols) {
        return matches<float, std::int32_t>(indptr, indices, values, n_rows, n_cols) ||
               matches<double, std::int32_t>(indptr, indices, values, n_rows, n_cols) ||
               matches<float, std::int64_t>(indptr, indices, values, n_rows, n_cols) ||
               matches<double, std::int64_t>(indptr, indices, values, n_rows, n_cols);
      },
      "indptr"_a, "indices"_a, "values"_a, "n_rows"_a, "n_cols"_a,
      "Whether three arrays are a CSR matrix that kernels can read as it stands: types, "
      "contiguity, "
      "sorted unique column ids in range, finite values. False for any other object.");
  m.def("rows_of", &rows_of<float>, "X"_a.noconvert());
  m.def("rows_of", &rows_of<double>, "X"_a.noconvert(),
        "(values, indices, indptr) of the non-zero entries of a dense matrix; None if a value is "
        "not finite or the matrix is too large for 32-bit indices.");
}

}  // namespace sublearn::bindings
