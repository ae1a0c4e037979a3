// Python face of the quick path of sublearn.validation: rows that need no conversion.
#include <limits>

#include "arrays.hpp"
#include "sublearn/core/canonical.hpp"

namespace sublearn::bindings {

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
