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
#include "sublearn/solvers/ppd_sparse.hpp"

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
template <class T, class I>
class PPDProblem {
 public:
  PPDProblem(Vector<I> indptr, Vector<I> indices, Vector<T> values, offset_t n_features,
             Vector<offset_t> label_indptr, Vector<index_t> rows,
             std::optional<Vector<T>> row_weight, std::optional<Vector<T>> positive_weight)
      : arrays_{indptr, indices, values, label_indptr, rows, row_weight, positive_weight},
        data_(compressed_view<CsrView, T, I>(indptr, indices, values, n_features)) {
    take_task();
  }

  /// With the inverted lists of X, which somebody made before.
  PPDProblem(Vector<I> indptr, Vector<I> indices, Vector<T> values, offset_t n_features,
             Vector<offset_t> label_indptr, Vector<index_t> rows,
             std::optional<Vector<T>> row_weight, std::optional<Vector<T>> positive_weight,
             Vector<offset_t> list_indptr, Vector<index_t> list_rows, Vector<T> list_values)
      : arrays_{indptr, indices, values, label_indptr, rows, row_weight, positive_weight},
        lists_(Lists{list_indptr, list_rows, list_values}),
        data_(compressed_view<CsrView, T, I>(indptr, indices, values, n_features),
              as_span<offset_t>(list_indptr), as_span<index_t>(list_rows),
              as_span<T>(list_values)) {
    check_lists();
    take_task();
  }

  void start_from(Vector<offset_t> indptr, Vector<index_t> features, Vector<T> values,
                  Vector<T> bias) {
    const auto n_labels = static_cast<std::size_t>(task_.labels.n_labels());
    if (indptr.size() != n_labels + 1 || bias.size() != n_labels) {
      throw std::invalid_argument("indptr and bias must have an entry for each label");
    }
    if (features.size() != values.size()) {
      throw std::invalid_argument("features and values must have the same length");
    }
    check_offsets("indptr", as_span<offset_t>(indptr), features.size());
    check_ids("features", as_span<index_t>(features), data_.rows.n_cols());
    start_ = {indptr, features, values, bias};
    task_.start = {as_span<offset_t>(start_->indptr), as_span<index_t>(start_->features),
                   as_span<T>(start_->values), as_span<T>(start_->bias)};
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
  struct Arrays {
    Vector<I> indptr;
    Vector<I> indices;
    Vector<T> values;
    Vector<offset_t> label_indptr;
    Vector<index_t> rows;
    std::optional<Vector<T>> row_weight;
    std::optional<Vector<T>> positive_weight;
  };
  struct Lists {
    Vector<offset_t> indptr;
    Vector<index_t> rows;
    Vector<T> values;
  };
  struct Start {
    Vector<offset_t> indptr;
    Vector<index_t> features;
    Vector<T> values;
    Vector<T> bias;
  };

  void take_task() {
    task_.labels = label_rows(arrays_.label_indptr, arrays_.rows, data_.rows.n_rows());
    task_.row_weight = loss_weights(arrays_.row_weight,
                                    static_cast<std::size_t>(data_.rows.n_rows()), "row_weight");
    task_.positive_weight =
        loss_weights(arrays_.positive_weight, static_cast<std::size_t>(task_.labels.n_labels()),
                     "positive_weight");
  }

  /// Lists come from files: no kernel may read outside of the rows.
  void check_lists() const {
    const auto n_entries = static_cast<std::size_t>(data_.rows.nnz());
    if (lists_->rows.size() != n_entries || lists_->values.size() != n_entries) {
      throw std::invalid_argument("lists must be the columns of X");
    }
    check_compressed(as_span<offset_t>(lists_->indptr), as_span<index_t>(lists_->rows),
                     data_.rows.n_cols(), data_.rows.n_rows(), "list_indptr", "list_rows");
    check_offsets("list_indptr", as_span<offset_t>(lists_->indptr), n_entries);
  }

  Arrays arrays_;
  std::optional<Lists> lists_;
  PPDData<T, I> data_;
  PPDTask<T> task_;
  std::optional<Start> start_;
};

template <class T, class I>
void bind_problem(nb::module_& m, const char* name) {
  using Problem = PPDProblem<T, I>;
  nb::class_<Problem>(m, name, "Data, labels and weights of a PPD-Sparse fit.")
      .def("start_from", &Problem::start_from, "indptr"_a.noconvert(), "features"_a.noconvert(),
           "values"_a.noconvert(), "bias"_a.noconvert(),
           "Weights by label, a CSR matrix, from which the next solve starts.")
      .def("solve", &Problem::solve, "order"_a.noconvert(), "first_block"_a, "loss"_a, "C"_a,
           "settings"_a, "monitor"_a,
           "Solve the labels named; ((indptr, features, values) by label, bias, report columns).");
  m.def(
      "ppd_problem",
      [](Vector<I> indptr, Vector<I> indices, Vector<T> values, offset_t n_features,
         Vector<offset_t> label_indptr, Vector<index_t> rows, std::optional<Vector<T>> row_weight,
         std::optional<Vector<T>> positive_weight) {
        return std::make_unique<Problem>(indptr, indices, values, n_features, label_indptr, rows,
                                         row_weight, positive_weight);
      },
      "indptr"_a.noconvert(), "indices"_a.noconvert(), "values"_a.noconvert(), "n_features"_a,
      "label_indptr"_a.noconvert(), "label_rows"_a.noconvert(), "row_weight"_a.noconvert().none(),
      "positive_weight"_a.noconvert().none(),
      "Problem from a CSR matrix, the rows of each label and what their losses weigh.");
  m.def(
      "ppd_problem",
      [](Vector<I> indptr, Vector<I> indices, Vector<T> values, offset_t n_features,
         Vector<offset_t> label_indptr, Vector<index_t> rows, std::optional<Vector<T>> row_weight,
         std::optional<Vector<T>> positive_weight, Vector<offset_t> list_indptr,
         Vector<index_t> list_rows, Vector<T> list_values) {
        return std::make_unique<Problem>(indptr, indices, values, n_features, label_indptr, rows,
                                         row_weight, positive_weight, list_indptr, list_rows,
                                         list_values);
      },
      "indptr"_a.noconvert(), "indices"_a.noconvert(), "values"_a.noconvert(), "n_features"_a,
      "label_indptr"_a.noconvert(), "label_rows"_a.noconvert(), "row_weight"_a.noconvert().none(),
      "positive_weight"_a.noconvert().none(), "list_indptr"_a.noconvert(),
      "list_rows"_a.noconvert(), "list_values"_a.noconvert(),
      "The same with the columns of the matrix as they were made before, rows increasing.");
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

void bind_ppd_sparse(nb::module_& m) {
  nb::enum_<PPDSearch>(m, "PPDSearch", "How PPD-Sparse looks for violating rows.")
      .value("exact", PPDSearch::exact)
      .value("sparsified", PPDSearch::sparsified);
  nb::class_<PPDSettings>(m, "PPDSettings", "Settings of PPD-Sparse; see solvers/ppd_task.hpp.")
      .def(nb::init<>())
      .def_rw("l1", &PPDSettings::l1)
      .def_rw("tol", &PPDSettings::tol)
      .def_rw("prune", &PPDSettings::prune)
      .def_rw("max_iter", &PPDSettings::max_iter)
      .def_rw("learn_bias", &PPDSettings::learn_bias)
      .def_rw("search", &PPDSettings::search)
      .def_rw("seed", &PPDSettings::seed)
      .def_rw("n_threads", &PPDSettings::n_threads);
  bind_problem<float, std::int32_t>(m, "PPDProblemFloat32");
  bind_problem<float, std::int64_t>(m, "PPDProblemFloat32Long");
  bind_problem<double, std::int32_t>(m, "PPDProblemFloat64");
  bind_problem<double, std::int64_t>(m, "PPDProblemFloat64Long");
  bind_lists_by_feature<float>(m);
  bind_lists_by_feature<double>(m);
}

}  // namespace sublearn::bindings
