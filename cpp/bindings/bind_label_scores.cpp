// Python face of prediction with any linear model of very many labels.
#include <nanobind/stl/unique_ptr.h>

#include <algorithm>
#include <memory>

#include "arrays.hpp"
#include "sublearn/core/dense.hpp"
#include "sublearn/core/parallel_for.hpp"
#include "sublearn/search/label_scores.hpp"

namespace sublearn::bindings {

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

void bind_label_scores(nb::module_& m) {
  bind_linear_model<float, std::int32_t>(m, "LinearModelFloat32");
  bind_linear_model<double, std::int32_t>(m, "LinearModelFloat64");
  bind_linear_model<float, std::int64_t>(m, "LinearModelFloat32Long");
  bind_linear_model<double, std::int64_t>(m, "LinearModelFloat64Long");
}

}  // namespace sublearn::bindings
