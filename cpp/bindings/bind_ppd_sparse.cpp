// Python face of PPD-Sparse: a problem is made once and solved in one call or, label block by label
// block, in several.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>

#include "arrays.hpp"
#include "labels.hpp"
#include "sublearn/losses/hinge.hpp"
#include "sublearn/losses/squared_hinge.hpp"
#include "sublearn/solvers/ppd_sparse/solver.hpp"

namespace sublearn::bindings {

/// Weights by label as one CSR matrix; takes the vectors apart as it goes.
template <class T>
nb::tuple weights_by_label(std::vector<LabelWeights<T>>&& weights) {
  std::vector<offset_t> indptr(1, 0);
  for (const auto& label : weights) {
    indptr.push_back(indptr.back() + static_cast<offset_t>(label.features.size()));
  }
  std::vector<index_t> features;
  std::vector<T> values;
  features.reserve(static_cast<std::size_t>(indptr.back()));
  values.reserve(features.capacity());
  for (auto& label : weights) {
    features.insert(features.end(), label.features.begin(), label.features.end());
    values.insert(values.end(), label.values.begin(), label.values.end());
    label = LabelWeights<T>();
  }
  return nb::make_tuple(to_numpy(std::move(indptr)), to_numpy(std::move(features)),
                        to_numpy(std::move(values)));
}

nb::dict reports_by_column(const std::vector<LabelReport>& reports) {
  using Report = LabelReport;
  return to_columns(reports, "primal", &Report::primal, "dual", &Report::dual, "seconds",
                    &Report::seconds, "work", &Report::work, "nnz_primal", &Report::nnz_primal,
                    "nnz_dual", &Report::nnz_dual, "n_iter", &Report::n_iter, "converged",
                    &Report::has_converged);
}

/// Loss weights as Python passes them, none or one per item.
template <class T>
std::span<const T> loss_weights(const std::optional<Vector<T>>& weights, std::size_t size,
                                const char* name) {
  if (!weights) return {};
  if (weights->size() != size) {
    throw std::invalid_argument(std::string(name) + " must have " + std::to_string(size) +
                                " entries");
  }
  for (const T weight : as_span<T>(*weights)) {
    if (!(weight > 0)) throw std::invalid_argument(std::string(name) + " must be positive");
  }
  return as_span<T>(*weights);
}

/// Data, labels and weights of a fit. NumPy keeps owning the arrays; those of the inverted lists
/// are made here.
template <class T>
class PPDProblem {
 public:
  /// `lists` are the columns of X as they were made before, or they are made here.
  PPDProblem(CsrTuple<T> X, offset_t n_features, Arrays<offset_t, index_t> labels,
             std::optional<Vector<T>> row_weight, std::optional<Vector<T>> positive_weight,
             std::optional<Arrays<offset_t, index_t, T>> lists)
      : X_(std::get<0>(X), std::get<1>(X), std::get<2>(X), n_features),
        labels_(std::move(labels)),
        row_weight_(std::move(row_weight)),
        positive_weight_(std::move(positive_weight)),
        lists_(std::move(lists)),
        data_(make_data(X_.view(), lists_)) {
    const auto& [indptr, rows] = labels_;
    task_.labels = label_rows(indptr, rows, data_.rows.n_rows());
    task_.row_weight =
        loss_weights(row_weight_, static_cast<std::size_t>(data_.rows.n_rows()), "row_weight");
    task_.positive_weight = loss_weights(
        positive_weight_, static_cast<std::size_t>(task_.labels.n_labels()), "positive_weight");
  }

  void start_from(Vector<offset_t> indptr, Vector<index_t> features, Vector<T> values,
                  Vector<T> bias) {
    start_ = {indptr, features, values, bias};
    task_.start = numbers_by_label(start_);
  }

  void hold(Vector<offset_t> indptr, Vector<index_t> features, Vector<T> values, Vector<T> bias) {
    held_ = {indptr, features, values, bias};
    task_.held = numbers_by_label(held_);
  }

  nb::tuple solve(Vector<index_t> order, std::int64_t first_block, const std::string& loss,
                  double C, const PPDSettings& settings, Monitor& monitor) const {
    check_ids("order", as_span<index_t>(order), task_.labels.n_labels());
    PPDSolution<T> solution;
    {
      nb::gil_scoped_release unlocked;
      const auto solve_with = [&](auto margin_loss) {
        return solve_ppd_sparse(data_, task_, as_span<index_t>(order), first_block, margin_loss,
                                settings, monitor);
      };
      if (loss == "hinge") {
        solution = solve_with(Hinge{C});
      } else if (loss == "squared_hinge") {
        solution = solve_with(SquaredHinge{C});
      } else {
        throw std::invalid_argument("loss must be 'hinge' or 'squared_hinge', got " + loss);
      }
    }
    std::vector<T> bias;
    for (const auto& label : solution.weights) bias.push_back(label.bias);
    return nb::make_tuple(weights_by_label(std::move(solution.weights)), to_numpy(std::move(bias)),
                          reports_by_column(solution.reports));
  }

 private:
  using Data = PPDData<T, index_t>;
  using Lists = Arrays<offset_t, index_t, T>;
  using ByLabel = Arrays<offset_t, index_t, T, T>;

  PPDStart<T> numbers_by_label(const ByLabel& given) const {
    const auto& [indptr, features, values, bias] = given;
    const auto n_labels = static_cast<std::size_t>(task_.labels.n_labels());
    if (indptr.size() != n_labels + 1 || bias.size() != n_labels) {
      throw std::invalid_argument("indptr and bias must have an entry for each label");
    }
    if (features.size() != values.size()) {
      throw std::invalid_argument("features and values must have the same length");
    }
    check_offsets("indptr", as_span<offset_t>(indptr), features.size());
    check_ids("features", as_span<index_t>(features), data_.rows.n_cols());
    return {as_span(indptr), as_span(features), as_span(values), as_span(bias)};
  }

  static Data make_data(const CsrView<T, index_t>& X, const std::optional<Lists>& lists) {
    if (!lists) return Data(X);
    const auto& [indptr, rows, values] = *lists;
    check_lists(X, indptr, rows, values);
    return Data(X, as_span(indptr), as_span(rows), as_span(values));
  }

  /// Lists come from files: no kernel may read outside of the rows.
  static void check_lists(const CsrView<T, index_t>& X, const Vector<offset_t>& indptr,
                          const Vector<index_t>& rows, const Vector<T>& values) {
    const auto n_entries = static_cast<std::size_t>(X.nnz());
    if (rows.size() != n_entries || values.size() != n_entries) {
      throw std::invalid_argument("lists must be the columns of X");
    }
    check_compressed(as_span(indptr), as_span(rows), X.n_cols(), X.n_rows(), "list_indptr",
                     "list_rows");
    check_offsets("list_indptr", as_span(indptr), n_entries);
  }

  CsrArrays<T> X_;
  Arrays<offset_t, index_t> labels_;
  std::optional<Vector<T>> row_weight_;
  std::optional<Vector<T>> positive_weight_;
  std::optional<Lists> lists_;
  Data data_;
  PPDTask<T> task_;
  ByLabel start_;
  ByLabel held_;
};

template <class T>
void bind_problem(nb::module_& m, const char* name) {
  using Problem = PPDProblem<T>;
  nb::class_<Problem>(m, name, "Data, labels and weights of a PPD-Sparse fit.")
      .def("start_from", &Problem::start_from, "indptr"_a.noconvert(), "features"_a.noconvert(),
           "values"_a.noconvert(), "bias"_a.noconvert(),
           "Weights by label, a CSR matrix, from which the next solve starts.")
      .def("hold", &Problem::hold, "indptr"_a.noconvert(), "features"_a.noconvert(),
           "values"_a.noconvert(), "bias"_a.noconvert(),
           "What rows seen earlier add to v and to the bias of each label, a CSR matrix.")
      .def("solve", &Problem::solve, "order"_a.noconvert(), "first_block"_a, "loss"_a, "C"_a,
           "settings"_a, "monitor"_a,
           "Solve the labels named; ((indptr, features, values) by label, bias, report columns).");
  m.def(
      "ppd_problem",
      [](CsrTuple<T> X, offset_t n_features, Arrays<offset_t, index_t> labels,
         std::optional<Vector<T>> row_weight, std::optional<Vector<T>> positive_weight,
         std::optional<Arrays<offset_t, index_t, T>> lists) {
        return std::make_unique<Problem>(std::move(X), n_features, std::move(labels),
                                         std::move(row_weight), std::move(positive_weight),
                                         std::move(lists));
      },
      "X"_a.noconvert(), "n_features"_a, "labels"_a.noconvert(), "row_weight"_a.noconvert().none(),
      "positive_weight"_a.noconvert().none(), "lists"_a.noconvert().none(),
      "Problem from the arrays of a CSR matrix, the rows of each label (indptr, rows), what their\n"
      "losses weigh, and the columns of the matrix where they were made before, rows increasing.");
}

/// Weights by label become lists by feature, labels increasing; `place` says where a label's
/// weights stand.
template <class T>
nb::tuple lists_by_feature(Vector<offset_t> indptr, Vector<index_t> features, Vector<T> values,
                           Vector<index_t> place, offset_t n_features) {
  const auto begins = as_span<offset_t>(indptr);
  if (n_features < 0 || indptr.size() != place.size() + 1 || features.size() != values.size()) {
    throw std::invalid_argument("indptr, features, values and place do not fit together");
  }
  check_offsets("indptr", begins, features.size());
  check_ids("features", as_span<index_t>(features), n_features);
  check_ids("place", as_span<index_t>(place), static_cast<offset_t>(place.size()));
  std::vector<offset_t> ends(static_cast<std::size_t>(n_features) + 1, 0);
  for (const index_t j : as_span<index_t>(features)) {
    ++ends[static_cast<std::size_t>(j) + 1];
  }
  for (std::size_t j = 1; j < ends.size(); ++j) ends[j] += ends[j - 1];
  std::vector<index_t> labels(features.size());
  std::vector<T> out(features.size());
  std::vector<offset_t> fill(ends.begin(), ends.end() - 1);
  for (std::size_t k = 0; k < place.size(); ++k) {
    const index_t at = place.data()[k];
    for (auto p = begins[at]; p < begins[at + 1]; ++p) {
      const auto q = static_cast<std::size_t>(fill[features.data()[p]]++);
      labels[q] = static_cast<index_t>(k);
      out[q] = values.data()[p];
    }
  }
  return nb::make_tuple(to_numpy(std::move(ends)), to_numpy(std::move(labels)),
                        to_numpy(std::move(out)));
}

template <class T>
void bind_lists_by_feature(nb::module_& m) {
  m.def("lists_by_feature", &lists_by_feature<T>, "indptr"_a.noconvert(), "features"_a.noconvert(),
        "values"_a.noconvert(), "place"_a.noconvert(), "n_features"_a,
        "Weights by label as (indptr, labels, values) by feature, labels increasing.");
}

/// For tests: one random sparsification of a vector.
template <class T>
void bind_sparsification(nb::module_& m) {
  m.def(
      "sparsify_weights",
      [](Vector<T> weights, double count, bool is_drawn, std::uint64_t seed, std::uint64_t stream) {
        Rng rng = Rng(seed).split(stream);
        std::vector<T> kept(weights.size(), T{0});
        const auto given = as_span<T>(weights);
        if (is_drawn) {
          WeightDraws<T> draws;
          draws.start();
          for (std::size_t j = 0; j < given.size(); ++j) draws.offer(j, given[j]);
          draws.draw(count, rng, [&](std::size_t j, T step) { kept[j] += step; });
        } else {
          double norm = 0.0;
          for (const T w : given) norm += std::abs(static_cast<double>(w));
          for (std::size_t j = 0; j < given.size(); ++j) {
            kept[j] =
                sparsify(given[j], static_cast<T>(norm / count), static_cast<T>(rng.uniform()));
          }
        }
        return to_numpy(std::move(kept));
      },
      "weights"_a.noconvert(), "count"_a, "is_drawn"_a, "seed"_a, "stream"_a,
      "A sparse vector that is the given one on average, of about `count` numbers.");
}

void bind_ppd_sparse(nb::module_& m) {
  bind_sparsification<float>(m);
  bind_sparsification<double>(m);
  m.def("n_draws", &n_draws, "norm"_a, "delta"_a, "R of theorem 5.");
  nb::enum_<PPDSearch>(m, "PPDSearch", "How PPD-Sparse looks for violating rows.")
      .value("exact", PPDSearch::exact)
      .value("sparsified", PPDSearch::sparsified);
  nb::class_<PPDSettings>(m, "PPDSettings",
                          "Settings of PPD-Sparse; see solvers/ppd_sparse/task.hpp.")
      .def(nb::init<>())
      .def_rw("l1", &PPDSettings::l1)
      .def_rw("tol", &PPDSettings::tol)
      .def_rw("prune", &PPDSettings::prune)
      .def_rw("max_iter", &PPDSettings::max_iter)
      .def_rw("learn_bias", &PPDSettings::learn_bias)
      .def_rw("search", &PPDSettings::search)
      .def_rw("delta", &PPDSettings::delta)
      .def_rw("is_drawn", &PPDSettings::is_drawn)
      .def_rw("kappa", &PPDSettings::kappa)
      .def_rw("n_between", &PPDSettings::n_between)
      .def_rw("seed", &PPDSettings::seed)
      .def_rw("n_threads", &PPDSettings::n_threads);
  bind_problem<float>(m, "PPDProblemFloat32");
  bind_problem<double>(m, "PPDProblemFloat64");
  bind_lists_by_feature<float>(m);
  bind_lists_by_feature<double>(m);
}

}  // namespace sublearn::bindings
