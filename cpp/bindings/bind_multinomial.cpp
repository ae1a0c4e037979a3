// Python face of the multinomial logistic objective.
#include "sublearn/objectives/multinomial.hpp"

#include <nanobind/stl/shared_ptr.h>

#include <memory>

#include "arrays.hpp"
#include "linear_data.hpp"

namespace sublearn::bindings {
namespace {

void check_codes(const Vector<index_t>& codes, const Vector<double>& weights, offset_t n_rows,
                 offset_t n_classes) {
  if (static_cast<offset_t>(codes.size()) != n_rows ||
      static_cast<offset_t>(weights.size()) != n_rows) {
    throw std::invalid_argument("codes and weights must have one number per row");
  }
  check_ids("codes", as_span<index_t>(codes), n_classes);
}

template <class Columns>
void bind_objective(nb::module_& m, const char* name) {
  nb::class_<MultinomialObjective<Columns>, SmoothObjective>(m, name,
                                                             "See objectives/multinomial.hpp.");
}

template <class Columns>
auto make(const Columns& X, const Vector<index_t>& codes, const Vector<double>& weights,
          offset_t n_classes, bool has_intercept, int n_threads) {
  check_codes(codes, weights, X.n_rows(), n_classes);
  return std::make_shared<MultinomialObjective<Columns>>(
      X, as_span<index_t>(codes), as_span<double>(weights), n_classes, has_intercept, n_threads);
}

template <class T>
void bind_sparse(nb::module_& m, const char* name) {
  using Columns = SparseColumns<T, index_t>;
  bind_objective<Columns>(m, name);
  m.def(
      "multinomial_objective",
      [](Vector<index_t> indptr, Vector<index_t> indices, Vector<T> values, offset_t n_rows,
         Vector<index_t> codes, Vector<double> weights, offset_t n_classes, bool has_intercept,
         int n_threads) {
        const auto view = compressed_view<CscView, T, index_t>(indptr, indices, values, n_rows);
        return make(Columns(view), codes, weights, n_classes, has_intercept, n_threads);
      },
      "indptr"_a.noconvert(), "indices"_a.noconvert(), "values"_a.noconvert(), "n_rows"_a,
      "codes"_a.noconvert(), "weights"_a.noconvert(), "n_classes"_a, "has_intercept"_a,
      "n_threads"_a, nb::keep_alive<0, 1>(), nb::keep_alive<0, 2>(), nb::keep_alive<0, 3>(),
      nb::keep_alive<0, 5>(), nb::keep_alive<0, 6>(), "Over the columns of a CSC matrix.");
}

template <class T>
void bind_dense(nb::module_& m, const char* name) {
  using Columns = DenseColumns<T>;
  bind_objective<Columns>(m, name);
  m.def(
      "multinomial_objective",
      [](FortranMatrix<T> X, Vector<index_t> codes, Vector<double> weights, offset_t n_classes,
         bool has_intercept, int n_threads) {
        const Columns columns(X.data(), static_cast<offset_t>(X.shape(0)),
                              static_cast<offset_t>(X.shape(1)));
        return make(columns, codes, weights, n_classes, has_intercept, n_threads);
      },
      "X"_a.noconvert(), "codes"_a.noconvert(), "weights"_a.noconvert(), "n_classes"_a,
      "has_intercept"_a, "n_threads"_a, nb::keep_alive<0, 1>(), nb::keep_alive<0, 2>(),
      nb::keep_alive<0, 3>(), "Over the columns of a dense matrix.");
}

}  // namespace

void bind_multinomial(nb::module_& m) {
  bind_sparse<float>(m, "SparseMultinomial32");
  bind_sparse<double>(m, "SparseMultinomial64");
  bind_dense<float>(m, "DenseMultinomial32");
  bind_dense<double>(m, "DenseMultinomial64");
}

}  // namespace sublearn::bindings
