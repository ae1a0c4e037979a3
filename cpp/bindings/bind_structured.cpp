// Python face of structural SVMs: a learner that is asked for one pass at a time, and decoding.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "refuse.hpp"
#include "sublearn/core/monitor.hpp"
#include "sublearn/core/parallel_for.hpp"
#include "sublearn/solvers/gdmm_learn.hpp"
#include "sublearn/solvers/viterbi.hpp"

namespace sublearn::bindings {
namespace {

/// Keeps the arrays that the learner looks at; factors have up to `kEnds` nodes.
template <class T, std::size_t kEnds>
class Learner {
 public:
  Learner(Vector<index_t> indptr, Vector<index_t> indices, Vector<T> values, offset_t n_features,
          Vector<index_t> truth, index_t n_labels, Vector<offset_t> node_begin,
          Vector<offset_t> factor_begin, Vector<index_t> scope, Vector<index_t> table,
          std::optional<Vector<double>> scale, std::optional<Vector<double>> weight,
          Vector<index_t> arity, const GdmmLearnSettings& settings)
      : arrays_(indptr, indices, values, truth, node_begin, factor_begin, scope, table, scale,
                weight, arity) {
    StructuredData<T, index_t> data;
    data.X = compressed_view<CsrView, T, index_t>(indptr, indices, values, n_features);
    data.truth = as_span<index_t>(truth);
    data.n_labels = n_labels;
    data.node_begin = as_span<offset_t>(node_begin);
    data.factor_begin = as_span<offset_t>(factor_begin);
    data.scope = as_span<index_t>(scope);
    data.table = as_span<index_t>(table);
    if (scale) data.scale = as_span<double>(*scale);
    if (weight) data.weight = as_span<double>(*weight);
    data.arity = as_span<index_t>(arity);
    check(data);
    nb::gil_scoped_release unlocked;
    learner_ = std::make_unique<GdmmLearn<T, index_t, kEnds>>(data, settings);
  }

  nb::dict run_pass(Monitor& monitor) {
    GdmmLearnPass pass;
    {
      nb::gil_scoped_release unlocked;
      pass = learner_->pass(&monitor);
    }
    nb::dict out;
    out["primal_residual"] = pass.primal_residual;
    out["dual_residual"] = pass.dual_residual;
    out["rho"] = pass.rho;
    out["n_labels"] = pass.n_labels;
    out["n_states"] = pass.n_states;
    out["work"] = pass.work;
    return out;
  }

  /// W of the last point, or of the mean over passes.
  nb::tuple weights(bool is_mean) const {
    if (!is_mean) return as_arrays(learner_->weights());
    const auto mean = [&] {
      nb::gil_scoped_release unlocked;
      return learner_->mean_weights();
    }();
    return as_arrays(mean);
  }

  static nb::tuple as_arrays(const HashedRows<T>& rows) {
    std::vector<offset_t> indptr(1, 0);
    std::vector<index_t> indices;
    std::vector<T> values;
    std::vector<std::pair<index_t, T>> row;
    for (std::size_t d = 0; d < rows.n_rows(); ++d) {
      row.clear();
      rows.for_each_weight(d, [&](index_t label, T w) {
        if (w != T{0}) row.emplace_back(label, w);
      });
      std::sort(row.begin(), row.end());
      for (const auto& [label, w] : row) {
        indices.push_back(label);
        values.push_back(w);
      }
      indptr.push_back(static_cast<offset_t>(indices.size()));
    }
    return nb::make_tuple(to_numpy(std::move(indptr)), to_numpy(std::move(indices)),
                          to_numpy(std::move(values)));
  }

  /// The cells of all tables, one table after another.
  NumpyVector<double> tables(bool is_mean) const {
    std::vector<double> all;
    for (std::size_t t = 0; t < n_tables_; ++t) {
      const auto values = is_mean ? learner_->mean_table(t) : learner_->table(t);
      all.insert(all.end(), values.begin(), values.end());
    }
    return to_numpy(std::move(all));
  }

  double dual_value() const {
    nb::gil_scoped_release unlocked;
    return learner_->dual_value();
  }
  double feasible_dual() {
    nb::gil_scoped_release unlocked;
    return learner_->feasible_dual();
  }

 private:
  void check(const StructuredData<T, index_t>& data) {
    n_tables_ = data.arity.size();
    const auto n_nodes = data.truth.size();
    if (data.n_labels < 1) refuse("n_labels", "be at least 1", "less");
    if (static_cast<std::size_t>(data.X.n_rows()) != n_nodes) {
      refuse("truth", "have " + std::to_string(data.X.n_rows()) + " entries",
             std::to_string(n_nodes));
    }
    check_ids("truth", data.truth, data.n_labels);
    check_offsets("node_begin", data.node_begin, n_nodes);
    check_offsets("factor_begin", data.factor_begin, data.table.size());
    check_ids("table", data.table, static_cast<offset_t>(n_tables_));
    for (const index_t arity : data.arity) {
      if (arity < 2 || static_cast<std::size_t>(arity) > kEnds) {
        refuse("arity", "be in 2.." + std::to_string(kEnds), std::to_string(arity));
      }
    }
    if (data.node_begin.size() != data.factor_begin.size() ||
        (!data.scale.empty() && data.scale.size() != data.table.size()) ||
        (!data.weight.empty() && data.weight.size() != data.n_samples())) {
      throw std::invalid_argument("table, scale, weight and factor_begin must fit together");
    }
    check_scopes(data);
    for (const double scale : data.scale) {
      if (!(scale >= 0.0)) refuse("scale", "be at least 0", as_text(scale));
    }
  }

  static void check_scopes(const StructuredData<T, index_t>& data) {
    std::size_t at = 0;
    for (std::size_t f = 0; f < data.table.size(); ++f) at += data.arity_of(f);
    if (at != data.scope.size()) {
      refuse("scope", "have " + std::to_string(at) + " nodes", std::to_string(data.scope.size()));
    }
    at = 0;
    for (std::size_t sample = 0; sample < data.n_samples(); ++sample) {
      const auto end = static_cast<std::size_t>(data.factor_begin[sample + 1]);
      for (auto f = static_cast<std::size_t>(data.factor_begin[sample]); f < end; ++f) {
        const auto nodes = data.scope.subspan(at, data.arity_of(f));
        at += nodes.size();
        for (std::size_t k = 0; k < nodes.size(); ++k) {
          if (nodes[k] < data.node_begin[sample] || nodes[k] >= data.node_begin[sample + 1]) {
            refuse("scope", "hold nodes of the factor's sample", std::to_string(nodes[k]));
          }
          if (std::find(nodes.begin(), nodes.begin() + static_cast<std::ptrdiff_t>(k), nodes[k]) !=
              nodes.begin() + static_cast<std::ptrdiff_t>(k)) {
            refuse("scope", "hold different nodes", std::to_string(nodes[k]));
          }
        }
      }
    }
  }

  std::tuple<Vector<index_t>, Vector<index_t>, Vector<T>, Vector<index_t>, Vector<offset_t>,
             Vector<offset_t>, Vector<index_t>, Vector<index_t>, std::optional<Vector<double>>,
             std::optional<Vector<double>>, Vector<index_t>>
      arrays_;
  std::size_t n_tables_ = 0;
  std::unique_ptr<GdmmLearn<T, index_t, kEnds>> learner_;
};

template <class T, std::size_t kEnds>
void bind_learner(nb::module_& m, const char* name) {
  using L = Learner<T, kEnds>;
  nb::class_<L>(m, name, "GDMM for structural SVMs; see solvers/gdmm_learn.hpp.")
      .def(nb::init<Vector<index_t>, Vector<index_t>, Vector<T>, offset_t, Vector<index_t>, index_t,
                    Vector<offset_t>, Vector<offset_t>, Vector<index_t>, Vector<index_t>,
                    std::optional<Vector<double>>, std::optional<Vector<double>>, Vector<index_t>,
                    const GdmmLearnSettings&>(),
           "indptr"_a.noconvert(), "indices"_a.noconvert(), "values"_a.noconvert(), "n_features"_a,
           "truth"_a.noconvert(), "n_labels"_a, "node_begin"_a.noconvert(),
           "factor_begin"_a.noconvert(), "scope"_a.noconvert(), "table"_a.noconvert(),
           "scale"_a.noconvert().none(), "weight"_a.noconvert().none(), "arity"_a.noconvert(),
           "settings"_a)
      .def("run_pass", &L::run_pass, "monitor"_a, "Visit every sample once.")
      .def("weights", &L::weights, "is_mean"_a = false,
           "indptr, indices and values of W, a row for each feature.")
      .def("tables", &L::tables, "is_mean"_a = false, "The cells of all tables, one after another.")
      .def("dual_value", &L::dual_value, "Of (10); a bound only where the constraints hold.")
      .def("feasible_dual", &L::feasible_dual, "A lower bound on the objective.");
}

template <class T>
nb::tuple decode(const Vector<index_t>& indptr, const Vector<index_t>& indices,
                 const Vector<T>& values, const Vector<offset_t>& W_indptr,
                 const Vector<index_t>& W_indices, const Vector<T>& W_values,
                 const Matrix<double>& table, const Vector<offset_t>& lengths,
                 const std::optional<Vector<index_t>>& truth, int n_threads, Monitor& monitor) {
  const std::size_t n_labels = table.shape(0);
  if (table.shape(1) != n_labels || n_labels == 0) {
    throw std::invalid_argument("table must be square and not empty");
  }
  check_compressed(as_span<offset_t>(W_indptr), as_span<index_t>(W_indices),
                   static_cast<offset_t>(W_indptr.size()) - 1, static_cast<offset_t>(n_labels),
                   "W_indptr", "W_indices");
  check_offsets("W_indptr", as_span<offset_t>(W_indptr), W_values.size());
  const auto X = compressed_view<CsrView, T, index_t>(indptr, indices, values,
                                                      static_cast<offset_t>(W_indptr.size()) - 1);
  const auto n_nodes = static_cast<std::size_t>(X.n_rows());
  std::vector<offset_t> begin(1, 0);
  for (const offset_t length : as_span<offset_t>(lengths)) {
    if (length < 1) refuse("lengths", "be at least 1", std::to_string(length));
    begin.push_back(begin.back() + length);
  }
  check_offsets("lengths, summed up,", begin, n_nodes);
  if (truth) {
    if (truth->size() != n_nodes) throw std::invalid_argument("truth must have a label per node");
    check_ids("truth", as_span<index_t>(*truth), static_cast<offset_t>(n_labels));
  }
  std::vector<index_t> labels(n_nodes, 0);
  std::vector<double> scores(lengths.size(), 0.0);
  {
    nb::gil_scoped_release unlocked;
    const std::span<const double> cells(table.data(), n_labels * n_labels);
    const std::vector<double> tops = Viterbi::column_tops(cells, n_labels);
    const auto n_sequences = static_cast<offset_t>(lengths.size());
    std::vector<Viterbi> decoders(
        static_cast<std::size_t>(effective_threads(n_sequences, n_threads)), Viterbi(cells, tops));
    std::vector<std::vector<double>> emissions(decoders.size());
    parallel_for(n_sequences, n_threads, &monitor, [&](offset_t n, int thread) {
      const auto at = static_cast<std::size_t>(n);
      const auto first = static_cast<std::size_t>(begin[at]);
      const auto length = static_cast<std::size_t>(begin[at + 1]) - first;
      auto& scores_of = emissions[static_cast<std::size_t>(thread)];
      scores_of.assign(length * n_labels, 0.0);
      for (std::size_t t = 0; t < length; ++t) {
        double* out = scores_of.data() + t * n_labels;
        const auto row = X.row(static_cast<offset_t>(first + t));
        for (std::size_t k = 0; k < row.size(); ++k) {
          const auto d = static_cast<std::size_t>(row.ids[k]);
          for (offset_t e = W_indptr.data()[d]; e < W_indptr.data()[d + 1]; ++e) {
            out[W_indices.data()[e]] += static_cast<double>(row.values[k]) * W_values.data()[e];
          }
        }
        if (!truth) continue;
        for (std::size_t label = 0; label < n_labels; ++label) out[label] += 1.0;
        out[truth->data()[first + t]] -= 1.0;
      }
      scores[at] = decoders[static_cast<std::size_t>(thread)].decode(
          scores_of, std::span<index_t>(labels).subspan(first, length));
    });
  }
  return nb::make_tuple(to_numpy(std::move(labels)), to_numpy(std::move(scores)));
}

template <class T>
void bind_decode(nb::module_& m) {
  m.def("viterbi", &decode<T>, "indptr"_a.noconvert(), "indices"_a.noconvert(),
        "values"_a.noconvert(), "W_indptr"_a.noconvert(), "W_indices"_a.noconvert(),
        "W_values"_a.noconvert(), "table"_a.noconvert(), "lengths"_a.noconvert(),
        "truth"_a.noconvert().none(), "n_threads"_a, "monitor"_a,
        "Best labels of chains and their scores; with `truth`, of the scores plus Hamming loss.");
}

}  // namespace

void bind_structured(nb::module_& m) {
  nb::class_<GdmmLearnSettings>(m, "GdmmLearnSettings", "See solvers/gdmm_learn.hpp.")
      .def(nb::init<>())
      .def_rw("C", &GdmmLearnSettings::C)
      .def_rw("rho", &GdmmLearnSettings::rho)
      .def_rw("eta", &GdmmLearnSettings::eta)
      .def_rw("uses_away_steps", &GdmmLearnSettings::uses_away_steps)
      .def_rw("n_parts", &GdmmLearnSettings::n_parts)
      .def_rw("seed", &GdmmLearnSettings::seed);
  bind_learner<float, 2>(m, "GdmmLearner32");
  bind_learner<double, 2>(m, "GdmmLearner64");
  bind_learner<float, LineTable::kMostEnds>(m, "GdmmHighOrderLearner32");
  bind_learner<double, LineTable::kMostEnds>(m, "GdmmHighOrderLearner64");
  bind_decode<float>(m);
  bind_decode<double>(m);
}

}  // namespace sublearn::bindings
