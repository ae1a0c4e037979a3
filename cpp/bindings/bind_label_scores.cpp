// Python face of prediction with any linear model of very many labels.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/unique_ptr.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <memory>
#include <mutex>
#include <optional>

#include "arrays.hpp"
#include "refuse.hpp"
#include "sublearn/core/canonical.hpp"
#include "sublearn/core/dense.hpp"
#include "sublearn/core/parallel_for.hpp"
#include "sublearn/search/label_scores.hpp"

namespace sublearn::bindings {

/// The arrays of a model, of any type; NumPy keeps owning them.
struct Stored {
  AnyVector offsets;
  AnyVector labels;
  AnyVector values;
  std::optional<AnyVector> scales;
  AnyVector bias;
};

/// Needs no lock of Python's, unlike as_text.
template <class T>
[[noreturn]] void refuse_large() {
  char limit[32];
  std::snprintf(limit, sizeof limit, "%g", static_cast<double>(kLargestValue<T>));
  refuse("X", std::string("be at most ") + limit + " in size in the precision of the model",
         "a larger number");
}

/// The rows of a CSR matrix in the types of the model, whatever its own are: where they differ, a
/// row is copied as it is asked for.
template <class T>
class AnyRows {
 public:
  using Row = SparseVector<T, index_t>;
  struct Copy {
    std::vector<index_t> ids;
    std::vector<T> values;
  };

  AnyRows(const AnyVector& indptr, const AnyVector& indices, const AnyVector& values,
          offset_t n_cols)
      : n_rows_(static_cast<offset_t>(indptr.size()) - 1),
        indices_(indices.data()),
        values_(values.data()) {
    if (indices.size() != values.size()) {
      throw std::invalid_argument("indices and values must have the same length");
    }
    with_indices(indptr, indices, [&](auto offsets, auto ids) {
      using I = std::remove_const_t<typename decltype(ids)::element_type>;
      check_compressed(offsets, ids, n_rows_, n_cols, "indptr", "indices");
      indptr_ = offsets.data();
      read_ = reader_of<I>(values);
    });
  }

  offset_t n_rows() const { return n_rows_; }
  Row row(offset_t i, Copy& copy) const { return read_(*this, i, copy); }

 private:
  using Read = Row (*)(const AnyRows&, offset_t, Copy&);

  template <class I>
  static Read reader_of(const AnyVector& values) {
    if (is_of<float>(values)) return &read<float, I>;
    if (is_of<double>(values)) return &read<double, I>;
    throw nb::next_overload();
  }

  template <class XT, class I>
  static Row read(const AnyRows& X, offset_t i, Copy& copy) {
    const auto begin = at(X.indptr_[at(i)]), size = at(X.indptr_[at(i + 1)]) - begin;
    const I* const ids = static_cast<const I*>(X.indices_) + begin;
    const XT* const values = static_cast<const XT*>(X.values_) + begin;
    if constexpr (std::is_same_v<XT, T> && std::is_same_v<I, index_t>) {
      return {{ids, size}, {values, size}};
    } else {
      copy.ids.assign(ids, ids + size);
      copy.values.resize(size);
      std::transform(values, values + size, copy.values.begin(),
                     [](XT value) { return static_cast<T>(value); });
      if (!all_moderate<T>(copy.values)) refuse_large<T>();
      return {copy.ids, copy.values};
    }
  }

  offset_t n_rows_;
  OffsetPointer indptr_;
  const void* indices_;
  const void* values_;
  Read read_ = nullptr;
};

/// A model whose storage is known to its subclass only. Scorers are kept for the next call, so that
/// a call allocates nothing that is as large as the number of labels.
template <class T>
class LinearModel {
 public:
  LinearModel(std::size_t n_features, std::span<const T> bias)
      : n_features_(n_features), ranked_(bias) {}
  virtual ~LinearModel() = default;

  offset_t n_features() const { return static_cast<offset_t>(n_features_); }
  std::size_t n_labels() const { return ranked_.bias.size(); }
  std::uint64_t work() const { return work_.load(); }

  /// Calls body(i, row, scorer) for each row of X, in chunks on n_threads threads.
  template <class Body>
  void for_each_row(const AnyRows<T>& X, int n_threads, Body&& body) const {
    constexpr offset_t kChunk = 64;
    const offset_t n_chunks = (X.n_rows() + kChunk - 1) / kChunk;
    Borrowed scorers(*this, effective_threads(n_chunks, n_threads));
    parallel_for(n_chunks, n_threads, [&](offset_t chunk, int thread) {
      auto& scorer = *scorers.list[at(thread)];
      typename AnyRows<T>::Copy copy;
      const offset_t end = std::min((chunk + 1) * kChunk, X.n_rows());
      for (offset_t i = chunk * kChunk; i < end; ++i) body(i, X.row(i, copy), scorer);
    });
  }

 protected:
  using Scorers = std::vector<std::unique_ptr<LabelScorer<T>>>;

  virtual std::unique_ptr<LabelScorer<T>> make_scorer() const = 0;
  const RankedBias<T>& ranked() const { return ranked_; }

 private:
  struct Borrowed {
    Borrowed(const LinearModel& owner, int n) : model(owner) {
      {
        const std::lock_guard lock(model.mutex_);
        for (; n > 0 && !model.idle_.empty(); --n) {
          list.push_back(std::move(model.idle_.back()));
          model.idle_.pop_back();
        }
      }
      for (; n > 0; --n) list.push_back(model.make_scorer());
    }
    ~Borrowed() {
      const std::lock_guard lock(model.mutex_);
      for (auto& scorer : list) {
        model.work_ += scorer->take_work();
        model.idle_.push_back(std::move(scorer));
      }
    }
    Borrowed(const Borrowed&) = delete;
    Borrowed& operator=(const Borrowed&) = delete;

    const LinearModel& model;
    Scorers list;
  };

  std::size_t n_features_;
  RankedBias<T> ranked_;
  mutable std::mutex mutex_;
  mutable Scorers idle_;
  mutable std::atomic<std::uint64_t> work_{0};
};

template <class T, class Id, class V>
class StoredModel final : public LinearModel<T> {
 public:
  StoredModel(Stored stored, Offsets offsets)
      : LinearModel<T>(offsets.size() - 1, span_of<T>(stored.bias)),
        stored_(std::move(stored)),
        lists_(offsets, span_of<Id>(stored_.labels), span_of<V>(stored_.values),
               stored_.scales ? span_of<T>(*stored_.scales) : std::span<const T>(),
               stored_.bias.size()) {}

 private:
  using Lists = WeightLists<T, Id, V>;

  std::unique_ptr<LabelScorer<T>> make_scorer() const override {
    return std::make_unique<LabelScores<Lists>>(lists_, this->ranked());
  }

  Stored stored_;
  Lists lists_;
};

/// Only lengths and types are looked at: a model of any size opens at once.
template <class T>
Offsets check_lengths(const Stored& stored) {
  const auto got = [](const AnyVector& v) { return std::to_string(v.size()); };
  if (stored.offsets.size() == 0) refuse("weights.offsets", "have at least one entry", "none");
  if (stored.labels.size() != stored.values.size()) {
    refuse("weights.labels", "have the length of the values, " + got(stored.values),
           got(stored.labels));
  }
  if (stored.scales &&
      (!is_of<T>(*stored.scales) || stored.scales->size() + 1 != stored.offsets.size())) {
    refuse("weights.scales", "be of the type of the bias, one per feature", got(*stored.scales));
  }
  if (is_of<std::int32_t>(stored.offsets)) return Offsets(span_of<std::int32_t>(stored.offsets));
  if (is_of<std::int64_t>(stored.offsets)) return Offsets(span_of<std::int64_t>(stored.offsets));
  refuse("weights.offsets", "be of type int32 or int64", "another type");
}

template <class T, class Id>
std::unique_ptr<LinearModel<T>> with_values(Stored stored) {
  const Offsets offsets = check_lengths<T>(stored);
  if (is_of<T>(stored.values) && !stored.scales) {
    return std::make_unique<StoredModel<T, Id, T>>(std::move(stored), offsets);
  }
  if constexpr (sizeof(Id) < sizeof(std::int64_t)) {  // integers come with labels of few bytes
    if (is_of<std::int8_t>(stored.values) && stored.scales) {
      return std::make_unique<StoredModel<T, Id, std::int8_t>>(std::move(stored), offsets);
    }
    if (is_of<std::int16_t>(stored.values) && stored.scales) {
      return std::make_unique<StoredModel<T, Id, std::int16_t>>(std::move(stored), offsets);
    }
  }
  refuse("weights.values",
         "be of the type of the bias, or int8 or int16 with scales and labels of 16 or 32 bits",
         "another type");
}

template <class T>
std::unique_ptr<LinearModel<T>> make_model(Stored stored) {
  if (is_of<std::uint16_t>(stored.labels)) return with_values<T, std::uint16_t>(std::move(stored));
  if (is_of<std::int32_t>(stored.labels)) return with_values<T, std::int32_t>(std::move(stored));
  if (is_of<std::int64_t>(stored.labels)) return with_values<T, std::int64_t>(std::move(stored));
  refuse("weights.labels", "be of type uint16, int32 or int64", "another type");
}

template <class T>
nb::tuple best_of(const LinearModel<T>& model, const AnyVector& indptr, const AnyVector& indices,
                  const AnyVector& values, std::size_t k, double effort, int n_threads) {
  const AnyRows<T> X(indptr, indices, values, model.n_features());
  if (k == 0 || k > model.n_labels()) {
    throw std::invalid_argument("k must be between 1 and the number of labels");
  }
  const auto n_rows = static_cast<std::size_t>(X.n_rows());
  std::vector<index_t> labels(n_rows * k);
  std::vector<T> scores(n_rows * k);
  {
    nb::gil_scoped_release unlocked;
    model.for_each_row(X, n_threads, [&](offset_t i, const auto& row, auto& scorer) {
      const auto best = scorer.top(row, k, effort);
      for (std::size_t r = 0; r < k; ++r) {
        labels[at(i) * k + r] = best[r].id;
        scores[at(i) * k + r] = best[r].score;
      }
    });
  }
  return nb::make_tuple(to_numpy(std::move(labels), n_rows, k),
                        to_numpy(std::move(scores), n_rows, k));
}

template <class T>
NumpyMatrix<T> scores_of(const LinearModel<T>& model, const AnyVector& indptr,
                         const AnyVector& indices, const AnyVector& values, int n_threads) {
  const AnyRows<T> X(indptr, indices, values, model.n_features());
  const auto n_rows = static_cast<std::size_t>(X.n_rows());
  std::vector<T> out(n_rows * model.n_labels());
  {
    nb::gil_scoped_release unlocked;
    model.for_each_row(X, n_threads, [&](offset_t i, const auto& row, auto& scorer) {
      const auto scores = scorer.score(row);
      std::copy(scores.begin(), scores.end(), out.data() + at(i) * scores.size());
    });
  }
  return to_numpy(std::move(out), n_rows, model.n_labels());
}

template <class T>
nb::tuple above(const LinearModel<T>& model, const AnyVector& indptr, const AnyVector& indices,
                const AnyVector& values, T threshold, int n_threads) {
  const AnyRows<T> X(indptr, indices, values, model.n_features());
  std::vector<std::vector<index_t>> found(static_cast<std::size_t>(X.n_rows()));
  std::vector<offset_t> out_indptr(1, 0);
  std::vector<index_t> labels;
  {
    nb::gil_scoped_release unlocked;
    model.for_each_row(X, n_threads, [&](offset_t i, const auto& row, auto& scorer) {
      append_above(scorer.score(row), threshold, found[at(i)]);
    });
    for (const auto& row : found) {
      labels.insert(labels.end(), row.begin(), row.end());
      out_indptr.push_back(static_cast<offset_t>(labels.size()));
    }
  }
  return nb::make_tuple(to_numpy(std::move(out_indptr)), to_numpy(std::move(labels)));
}

template <class T>
void bind_scoring(nb::class_<LinearModel<T>>& c) {
  c.def("top_k", &best_of<T>, "indptr"_a.noconvert(), "indices"_a.noconvert(),
        "values"_a.noconvert(), "k"_a, "effort"_a = 1.0, "n_threads"_a = 1,
        "The k best labels of each row and their scores, best first.");
  c.def("scores", &scores_of<T>, "indptr"_a.noconvert(), "indices"_a.noconvert(),
        "values"_a.noconvert(), "n_threads"_a = 1, "The score of each label for each row.");
  c.def("above", &above<T>, "indptr"_a.noconvert(), "indices"_a.noconvert(), "values"_a.noconvert(),
        "threshold"_a, "n_threads"_a = 1,
        "The labels of each row that score above a threshold: (indptr, labels).");
}

template <class T>
void bind_linear_model(nb::module_& m, const char* name) {
  using Model = LinearModel<T>;
  nb::class_<Model> c(m, name, "Weights by feature and a bias, ready to score rows.");
  bind_scoring<T>(c);
  c.def_prop_ro("work", &Model::work, "Weights and scores that top_k has read so far.");
  m.def(
      "linear_model",
      [](AnyVector offsets, AnyVector labels, AnyVector values, std::optional<AnyVector> scales,
         Vector<T> bias) {
        return make_model<T>({offsets, labels, values, scales, AnyVector(bias.handle())});
      },
      "offsets"_a.noconvert(), "labels"_a.noconvert(), "values"_a.noconvert(),
      "scales"_a.noconvert().none(), "bias"_a.noconvert(),
      "Model from lists of labels and weights, one per feature. Integer values are multiplied by "
      "the scale of their feature. Lists are checked when a row first needs them: a damaged one is "
      "a ValueError then.");
}

void bind_label_scores(nb::module_& m) {
  bind_linear_model<float>(m, "LinearModelFloat32");
  bind_linear_model<double>(m, "LinearModelFloat64");
}

}  // namespace sublearn::bindings
