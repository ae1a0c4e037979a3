// Python face of the extreme room: fitting PPD-Sparse, and prediction with any linear model.
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>

#include <algorithm>
#include <memory>
#include <string>

#include "arrays.hpp"
#include "sublearn/core/dense.hpp"
#include "sublearn/core/parallel_for.hpp"
#include "sublearn/losses/hinge.hpp"
#include "sublearn/losses/squared_hinge.hpp"
#include "sublearn/search/label_scores.hpp"
#include "sublearn/solvers/ppd_sparse.hpp"

namespace sublearn::bindings {

LabelRows label_rows(const Vector<offset_t>& indptr, const Vector<index_t>& rows, offset_t n_rows) {
  if (indptr.size() == 0 || indptr.data()[0] != 0) {
    throw std::invalid_argument("label_indptr must start at 0");
  }
  for (std::size_t k = 1; k < indptr.size(); ++k) {
    if (indptr.data()[k] < indptr.data()[k - 1]) {
      throw std::invalid_argument("label_indptr must not decrease");
    }
  }
  if (indptr.data()[indptr.size() - 1] != static_cast<offset_t>(rows.size())) {
    throw std::invalid_argument("label_indptr must end at the length of label_rows");
  }
  for (const index_t i : as_span<index_t>(rows)) {
    if (i < 0 || i >= n_rows) throw std::invalid_argument("label_rows names a row that X lacks");
  }
  return {as_span<offset_t>(indptr), as_span<index_t>(rows)};
}

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

/// A linear model whose arrays were checked once; NumPy keeps owning them.
template <class T, class WI>
class LinearModel {
 public:
  LinearModel(Vector<WI> indptr, Vector<WI> labels, Vector<T> values, Vector<T> bias)
      : indptr_(indptr),
        labels_(labels),
        values_(values),
        bias_(bias),
        view_(compressed_view<CsrView, T, WI>(indptr, labels, values,
                                              static_cast<offset_t>(bias.size()))) {}

  offset_t n_features() const { return view_.n_rows(); }
  std::size_t n_labels() const { return bias_.size(); }

  /// Calls body(row, scorer) for each row of X, in chunks on n_threads threads.
  template <class I, class Body>
  void for_each_row(const CsrView<T, I>& X, int n_threads, Body&& body) const {
    constexpr offset_t kChunk = 64;
    const offset_t n_chunks = (X.n_rows() + kChunk - 1) / kChunk;
    std::vector<LabelScores<T, WI>> scorers(
        static_cast<std::size_t>(effective_threads(n_chunks, n_threads)),
        LabelScores<T, WI>(view_, as_span<T>(bias_)));
    parallel_for(n_chunks, n_threads, [&](offset_t chunk, int thread) {
      const offset_t end = std::min((chunk + 1) * kChunk, X.n_rows());
      for (offset_t i = chunk * kChunk; i < end; ++i) {
        body(i, scorers[static_cast<std::size_t>(thread)]);
      }
    });
  }

 private:
  Vector<WI> indptr_;
  Vector<WI> labels_;
  Vector<T> values_;
  Vector<T> bias_;
  CsrView<T, WI> view_;
};

template <class T, class WI, class I>
void bind_scoring(nb::class_<LinearModel<T, WI>>& c) {
  using Model = LinearModel<T, WI>;
  c.def(
      "top_k",
      [](const Model& model, Vector<I> indptr, Vector<I> indices, Vector<T> values, std::size_t k,
         int n_threads) {
        const auto X = compressed_view<CsrView, T, I>(indptr, indices, values, model.n_features());
        if (k == 0 || k > model.n_labels()) {
          throw std::invalid_argument("k must be between 1 and the number of labels");
        }
        const auto n_rows = static_cast<std::size_t>(X.n_rows());
        std::vector<index_t> labels(n_rows * k);
        std::vector<T> scores(n_rows * k);
        {
          nb::gil_scoped_release unlocked;
          model.for_each_row(X, n_threads, [&](offset_t i, auto& scorer) {
            const auto best = scorer.top(X.row(i), k);
            for (std::size_t r = 0; r < k; ++r) {
              labels[static_cast<std::size_t>(i) * k + r] = best[r].id;
              scores[static_cast<std::size_t>(i) * k + r] = best[r].score;
            }
          });
        }
        return nb::make_tuple(to_numpy(std::move(labels), n_rows, k),
                              to_numpy(std::move(scores), n_rows, k));
      },
      "indptr"_a.noconvert(), "indices"_a.noconvert(), "values"_a.noconvert(), "k"_a,
      "n_threads"_a = 1, "The k best labels of each row and their scores, best first.");
  c.def(
      "scores",
      [](const Model& model, Vector<I> indptr, Vector<I> indices, Vector<T> values, int n_threads) {
        const auto X = compressed_view<CsrView, T, I>(indptr, indices, values, model.n_features());
        const auto n_rows = static_cast<std::size_t>(X.n_rows());
        std::vector<T> out(n_rows * model.n_labels());
        {
          nb::gil_scoped_release unlocked;
          model.for_each_row(X, n_threads, [&](offset_t i, auto& scorer) {
            const auto scores = scorer.score(X.row(i));
            std::copy(scores.begin(), scores.end(),
                      out.begin() + static_cast<std::ptrdiff_t>(i) *
                                        static_cast<std::ptrdiff_t>(scores.size()));
          });
        }
        return to_numpy(std::move(out), n_rows, model.n_labels());
      },
      "indptr"_a.noconvert(), "indices"_a.noconvert(), "values"_a.noconvert(), "n_threads"_a = 1,
      "The score of each label for each row.");
  c.def(
      "above",
      [](const Model& model, Vector<I> indptr, Vector<I> indices, Vector<T> values, T threshold,
         int n_threads) {
        const auto X = compressed_view<CsrView, T, I>(indptr, indices, values, model.n_features());
        std::vector<std::vector<index_t>> found(static_cast<std::size_t>(X.n_rows()));
        std::vector<offset_t> out_indptr(1, 0);
        std::vector<index_t> labels;
        {
          nb::gil_scoped_release unlocked;
          model.for_each_row(X, n_threads, [&](offset_t i, auto& scorer) {
            append_above(scorer.score(X.row(i)), threshold, found[static_cast<std::size_t>(i)]);
          });
          for (const auto& row : found) {
            labels.insert(labels.end(), row.begin(), row.end());
            out_indptr.push_back(static_cast<offset_t>(labels.size()));
          }
        }
        return nb::make_tuple(to_numpy(std::move(out_indptr)), to_numpy(std::move(labels)));
      },
      "indptr"_a.noconvert(), "indices"_a.noconvert(), "values"_a.noconvert(), "threshold"_a,
      "n_threads"_a = 1, "The labels of each row that score above a threshold: (indptr, labels).");
}

template <class T, class WI>
void bind_linear_model(nb::module_& m, const char* name) {
  using Model = LinearModel<T, WI>;
  nb::class_<Model> c(m, name, "Weights by feature and a bias, ready to score rows.");
  bind_scoring<T, WI, std::int32_t>(c);
  bind_scoring<T, WI, std::int64_t>(c);
  m.def(
      "linear_model",
      [](Vector<WI> indptr, Vector<WI> labels, Vector<T> values, Vector<T> bias) {
        return std::make_unique<Model>(indptr, labels, values, bias);
      },
      "indptr"_a.noconvert(), "labels"_a.noconvert(), "values"_a.noconvert(), "bias"_a.noconvert(),
      "Model from a CSR matrix with one row per feature; refuses arrays that do not fit together.");
}

void bind_extreme(nb::module_& m) {
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
  bind_linear_model<float, std::int32_t>(m, "LinearModelFloat32");
  bind_linear_model<double, std::int32_t>(m, "LinearModelFloat64");
  bind_linear_model<float, std::int64_t>(m, "LinearModelFloat32Long");
  bind_linear_model<double, std::int64_t>(m, "LinearModelFloat64Long");
}

}  // namespace sublearn::bindings
