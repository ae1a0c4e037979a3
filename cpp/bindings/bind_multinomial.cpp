// Python face of the multinomial logistic loss: the objective, and its solver.
#include <nanobind/stl/shared_ptr.h>

#include <memory>

#include "arrays.hpp"
#include "linear_data.hpp"
#include "sublearn/objectives/multinomial.hpp"
#include "sublearn/solvers/linear/settings.hpp"
#include "sublearn/solvers/multinomial/solver.hpp"

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
nb::tuple fit(MultinomialObjective<Columns>& objective, const SeparablePenalty& penalty,
              const LinearSettings& settings, Vector<double> start, Monitor& monitor) {
  check_penalty(penalty, objective.size());
  if (static_cast<offset_t>(start.size()) != objective.size()) {
    throw std::invalid_argument("x0 must have one entry per coordinate");
  }
  if (penalty.n_free_last != objective.size() - objective.data().n_weights()) {
    throw std::invalid_argument("the penalty must leave out the intercepts and nothing else");
  }
  std::vector<double> x(start.data(), start.data() + start.size());
  MultinomialSolution found;
  {
    nb::gil_scoped_release unlocked;
    found = solve_multinomial(objective, penalty, settings.tol, settings.max_iter, x, monitor);
  }
  return nb::make_tuple(to_numpy(std::move(x)), found.status, round_columns(found.rounds, true));
}

template <class Columns>
void bind_objective(nb::module_& m, const char* name) {
  using Objective = MultinomialObjective<Columns>;
  nb::class_<Objective, SmoothObjective>(m, name, "See objectives/multinomial.hpp.");
  m.def(
      "fit_multinomial",
      [](Objective& objective, Vector<double> l1, SeparablePenalty penalty,
         const LinearSettings& settings, Vector<double> x0, Monitor& monitor) {
        penalty.l1 = as_span<double>(l1);
        return fit(objective, penalty, settings, x0, monitor);
      },
      "objective"_a, "l1"_a.noconvert(), "penalty"_a, "settings"_a, "x0"_a.noconvert(), "monitor"_a,
      "Solve; returns (x, status, rounds by column).");
}

template <class Columns>
auto make(const Columns& X, const Vector<index_t>& codes, const Vector<double>& weights,
          offset_t n_classes, bool has_intercept, int n_threads) {
  check_codes(codes, weights, X.n_rows(), n_classes);
  const MultinomialData<Columns> data{X, as_span<index_t>(codes), as_span<double>(weights),
                                      n_classes, has_intercept};
  return std::make_shared<MultinomialObjective<Columns>>(data, n_threads);
}

template <class T>
void bind_sparse(nb::module_& m, const char* name) {
  using Columns = SparseColumns<T, index_t>;
  bind_objective<Columns>(m, name);
  m.def(
      "multinomial_objective",
      [](Arrays<index_t, index_t, T> X, offset_t n_rows, Vector<index_t> codes,
         Vector<double> weights, offset_t n_classes, bool has_intercept, int n_threads) {
        const auto view = compressed_view<CscView, T, index_t>(X, n_rows);
        return make(Columns(view), codes, weights, n_classes, has_intercept, n_threads);
      },
      "X"_a.noconvert(), "n_rows"_a, "codes"_a.noconvert(), "weights"_a.noconvert(), "n_classes"_a,
      "has_intercept"_a, "n_threads"_a, nb::keep_alive<0, 1>(), nb::keep_alive<0, 3>(),
      nb::keep_alive<0, 4>(), "Over the columns of a CSC matrix (indptr, indices, values).");
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
