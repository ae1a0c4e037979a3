// Python face of PD-Sparse.
#include <nanobind/stl/unique_ptr.h>

#include <memory>

#include "arrays.hpp"
#include "checked_rows.hpp"
#include "sublearn/solvers/pd_sparse/solver.hpp"

namespace sublearn::bindings {

nb::dict passes_by_column(const std::vector<PDPass>& passes) {
  using Pass = PDPass;
  return to_columns(passes, "seconds", &Pass::seconds, "primal", &Pass::primal, "dual", &Pass::dual,
                    "active", &Pass::active, "held_out", &Pass::held_out, "work", &Pass::work,
                    "nnz_primal", &Pass::nnz_primal, "nnz_dual", &Pass::nnz_dual, "n_candidates",
                    &Pass::n_candidates, "n_partitions", &Pass::n_partitions, "is_evaluated",
                    &Pass::is_evaluated, "is_refit", &Pass::is_refit);
}

template <class T>
void check_fit_together(const CheckedRows<T>& train, const Vector<double>& caps,
                        const CheckedRows<T>& held_out) {
  if (static_cast<offset_t>(caps.size()) != train.data().X.n_rows()) {
    throw std::invalid_argument("caps must have one number per row");
  }
  if (held_out.data().X.n_cols() != train.data().X.n_cols() ||
      held_out.n_labels() != train.n_labels()) {
    throw std::invalid_argument("held_out must have the features and labels of train");
  }
}

template <class T>
void bind_rows(nb::module_& m, const char* name) {
  using Rows = CheckedRows<T>;
  nb::class_<Rows>(m, name, "A sparse matrix and the labels of its rows, ready for a solver.");
  m.def(
      "labelled_rows",
      [](AnyVector indptr, AnyVector indices, Vector<T> values, offset_t n_features,
         Vector<offset_t> label_indptr, Vector<index_t> rows) {
        return std::make_unique<Rows>(indptr, indices, values, n_features, label_indptr, rows);
      },
      "indptr"_a.noconvert(), "indices"_a.noconvert(), "values"_a.noconvert(), "n_features"_a,
      "label_indptr"_a.noconvert(), "label_rows"_a.noconvert(),
      "Rows of a CSR matrix and the rows of each label; refuses arrays that do not fit together.");
  m.def(
      "fit_pd_sparse",
      [](const Rows& train, Vector<double> caps, const Rows& held_out, const PDSettings& settings,
         Monitor& monitor) {
        check_fit_together(train, caps, held_out);
        PDSolution<T> solution;
        {
          nb::gil_scoped_release unlocked;
          solution = solve_pd_sparse(train.data(), as_span<double>(caps), held_out.data(),
                                     train.n_labels(), settings, monitor);
        }
        nb::dict report = passes_by_column(solution.passes);
        report["status"] = solution.status;
        report["final_primal"] = solution.primal;
        report["final_dual"] = solution.dual;
        report["is_certified"] = solution.is_certified;
        report["was_refit"] = solution.is_refit;
        return nb::make_tuple(nb::make_tuple(to_numpy(std::move(solution.indptr)),
                                             to_numpy(std::move(solution.labels)),
                                             to_numpy(std::move(solution.values))),
                              report);
      },
      "train"_a, "caps"_a.noconvert(), "held_out"_a, "settings"_a, "monitor"_a,
      "Solve the problem; returns ((indptr, labels, values) by feature, report).");
}

/// For tests: positions and weights of the draws from one row.
template <class T>
void bind_sample(nb::module_& m) {
  m.def(
      "sample_features",
      [](Vector<T> values, std::size_t n_draws, std::uint64_t seed, std::uint64_t stream) {
        std::vector<index_t> ids(values.size());
        Rng rng = Rng(seed).split(stream);
        std::vector<FeatureDraw<T>> draws;
        sample_features<T, index_t>({ids, as_span<T>(values)}, n_draws, rng, draws);
        std::vector<offset_t> at;
        std::vector<T> weights;
        for (const auto& draw : draws) {
          at.push_back(static_cast<offset_t>(draw.at));
          weights.push_back(draw.weight);
        }
        return nb::make_tuple(to_numpy(std::move(at)), to_numpy(std::move(weights)));
      },
      "values"_a.noconvert(), "n_draws"_a, "seed"_a, "stream"_a,
      "Draws from the features of a row in proportion to their size: (positions, weights).");
}

void bind_pd_sparse(nb::module_& m) {
  bind_sample<float>(m);
  bind_sample<double>(m);
  nb::enum_<PDSearch>(m, "PDSearch", "How PD-Sparse looks for violating labels.")
      .value("auto", PDSearch::automatic)
      .value("exact", PDSearch::exact)
      .value("partition", PDSearch::partition)
      .value("sampled", PDSearch::sampled);
  nb::class_<PDSettings>(m, "PDSettings",
                         "Settings of PD-Sparse; see solvers/pd_sparse/solver.hpp.")
      .def(nb::init<>())
      .def_rw("l1", &PDSettings::l1)
      .def_rw("has_bias", &PDSettings::has_bias)
      .def_rw("tol", &PDSettings::tol)
      .def_rw("max_iter", &PDSettings::max_iter)
      .def_rw("search", &PDSettings::search)
      .def_rw("n_partitions", &PDSettings::n_partitions)
      .def_rw("n_candidates", &PDSettings::n_candidates)
      .def_rw("n_iter_no_change", &PDSettings::n_iter_no_change)
      .def_rw("refit", &PDSettings::refit)
      .def_rw("is_refit_closed", &PDSettings::is_refit_closed)
      .def_rw("seed", &PDSettings::seed)
      .def_rw("n_threads", &PDSettings::n_threads);
  bind_rows<float>(m, "LabelledRowsFloat32");
  bind_rows<double>(m, "LabelledRowsFloat64");
}

}  // namespace sublearn::bindings
