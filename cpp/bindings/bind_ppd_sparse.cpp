// Python face of PPD-Sparse.
#include <nanobind/stl/string.h>

#include <string>

#include "arrays.hpp"
#include "labels.hpp"
#include "sublearn/losses/hinge.hpp"
#include "sublearn/losses/squared_hinge.hpp"
#include "sublearn/solvers/ppd_sparse.hpp"

namespace sublearn::bindings {

/// Weights by label become a CSR matrix by feature, labels increasing within a feature.
template <class T>
nb::tuple weights_by_feature(const std::vector<LabelWeights<T>>& weights, std::size_t n_features) {
  std::vector<offset_t> indptr(n_features + 1, 0);
  for (const auto& label : weights) {
    for (const index_t j : label.features) ++indptr[static_cast<std::size_t>(j) + 1];
  }
  for (std::size_t j = 0; j < n_features; ++j) indptr[j + 1] += indptr[j];
  std::vector<index_t> labels(static_cast<std::size_t>(indptr[n_features]));
  std::vector<T> values(labels.size());
  std::vector<offset_t> fill(indptr.begin(), indptr.end() - 1);
  for (std::size_t k = 0; k < weights.size(); ++k) {
    for (std::size_t p = 0; p < weights[k].features.size(); ++p) {
      const auto at =
          static_cast<std::size_t>(fill[static_cast<std::size_t>(weights[k].features[p])]++);
      labels[at] = static_cast<index_t>(k);
      values[at] = weights[k].values[p];
    }
  }
  return nb::make_tuple(to_numpy(std::move(indptr)), to_numpy(std::move(labels)),
                        to_numpy(std::move(values)));
}

template <class Value, class Field>
NumpyVector<Value> column(const std::vector<LabelReport>& reports, Field LabelReport::* field) {
  std::vector<Value> out;
  out.reserve(reports.size());
  for (const LabelReport& report : reports) out.push_back(static_cast<Value>(report.*field));
  return to_numpy(std::move(out));
}

nb::dict reports_by_column(const std::vector<LabelReport>& reports) {
  nb::dict out;
  out["primal"] = column<double>(reports, &LabelReport::primal);
  out["dual"] = column<double>(reports, &LabelReport::dual);
  out["seconds"] = column<double>(reports, &LabelReport::seconds);
  out["work"] = column<std::int64_t>(reports, &LabelReport::work);
  out["nnz_primal"] = column<std::int64_t>(reports, &LabelReport::nnz_primal);
  out["nnz_dual"] = column<std::int64_t>(reports, &LabelReport::nnz_dual);
  out["n_iter"] = column<std::int64_t>(reports, &LabelReport::n_iter);
  out["converged"] = column<std::uint8_t>(reports, &LabelReport::converged);
  return out;
}

template <class T, class I>
void bind_fit(nb::module_& m) {
  m.def(
      "fit_ppd_sparse",
      [](Vector<I> indptr, Vector<I> indices, Vector<T> values, offset_t n_features,
         Vector<offset_t> label_indptr, Vector<index_t> rows, const std::string& loss, double C,
         const PPDSettings& settings, Monitor& monitor) {
        const auto X = compressed_view<CsrView, T, I>(indptr, indices, values, n_features);
        const LabelRows labels = label_rows(label_indptr, rows, X.n_rows());
        PPDSolution<T> solution;
        {
          nb::gil_scoped_release unlocked;
          if (loss == "hinge") {
            solution = solve_ppd_sparse(X, labels, Hinge{C}, settings, monitor);
          } else if (loss == "squared_hinge") {
            solution = solve_ppd_sparse(X, labels, SquaredHinge{C}, settings, monitor);
          } else {
            throw std::invalid_argument("loss must be 'hinge' or 'squared_hinge', got " + loss);
          }
        }
        std::vector<T> bias;
        for (const auto& label : solution.weights) bias.push_back(label.bias);
        return nb::make_tuple(
            weights_by_feature(solution.weights, static_cast<std::size_t>(n_features)),
            to_numpy(std::move(bias)), reports_by_column(solution.reports));
      },
      "indptr"_a.noconvert(), "indices"_a.noconvert(), "values"_a.noconvert(), "n_features"_a,
      "label_indptr"_a.noconvert(), "label_rows"_a.noconvert(), "loss"_a, "C"_a, "settings"_a,
      "monitor"_a,
      "Solve all labels; returns ((indptr, labels, values) by feature, bias, report columns).");
}

void bind_ppd_sparse(nb::module_& m) {
  nb::enum_<PPDSearch>(m, "PPDSearch", "How PPD-Sparse looks for violating rows.")
      .value("exact", PPDSearch::exact)
      .value("sparsified", PPDSearch::sparsified);
  nb::class_<PPDSettings>(m, "PPDSettings", "Settings of PPD-Sparse; see solvers/ppd_sparse.hpp.")
      .def(nb::init<>())
      .def_rw("l1", &PPDSettings::l1)
      .def_rw("tol", &PPDSettings::tol)
      .def_rw("max_iter", &PPDSettings::max_iter)
      .def_rw("learn_bias", &PPDSettings::learn_bias)
      .def_rw("search", &PPDSettings::search)
      .def_rw("seed", &PPDSettings::seed)
      .def_rw("n_threads", &PPDSettings::n_threads);
  bind_fit<float, std::int32_t>(m);
  bind_fit<float, std::int64_t>(m);
  bind_fit<double, std::int32_t>(m);
  bind_fit<double, std::int64_t>(m);
}

}  // namespace sublearn::bindings
