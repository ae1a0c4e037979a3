// Python face of structural SVMs: a learner that is asked for one pass at a time, and decoding.
#include <nanobind/stl/optional.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "refuse.hpp"
#include "sublearn/core/monitor.hpp"
#include "sublearn/solvers/structured/gdmm.hpp"
#include "sublearn/solvers/structured/viterbi.hpp"

namespace sublearn::bindings {
namespace {

/// Keeps the arrays that the learner looks at; factors have up to `kEnds` nodes.
template <class T, std::size_t kEnds>
class Learner {
 public:
  using Nodes = Arrays<index_t, offset_t>;                      ///< truth, where samples begin
  using Factors = Arrays<offset_t, index_t, index_t, index_t>;  ///< begin, scope, table, arity
  using Features = Arrays<index_t, index_t, double>;            ///< a row for each factor

  Learner(Arrays<index_t, index_t, T> X, offset_t n_features, Nodes nodes, index_t n_labels,
          Factors factors, std::optional<Vector<double>> scale,
          std::optional<Vector<double>> weight, const GdmmLearnSettings& settings,
          std::optional<Features> features, std::optional<Vector<index_t>> width,
          std::optional<Vector<double>> loss)
      : X_(std::move(X)),
        nodes_(std::move(nodes)),
        factors_(std::move(factors)),
        features_(std::move(features)),
        width_(std::move(width)),
        scale_(std::move(scale)),
        weight_(std::move(weight)),
        loss_(std::move(loss)) {
    const StructuredData<T, index_t> data{
        .X = compressed_view<CsrView, T, index_t>(X_, n_features),
        .truth = as_span(std::get<0>(nodes_)),
        .n_labels = n_labels,
        .node_begin = as_span(std::get<1>(nodes_)),
        .factor_begin = as_span(std::get<0>(factors_)),
        .scope = as_span(std::get<1>(factors_)),
        .table = as_span(std::get<2>(factors_)),
        .scale = scale_ ? as_span(*scale_) : std::span<const double>{},
        .weight = weight_ ? as_span(*weight_) : std::span<const double>{},
        .arity = as_span(std::get<3>(factors_)),
        .factor_features = factor_features(),
        .width = width_ ? as_span(*width_) : std::span<const index_t>{},
        .loss = loss_ ? as_span(*loss_) : std::span<const double>{},
    };
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
    out["n_factors"] = pass.n_factors;
    out["n_visits"] = pass.n_visits;
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
    check_features(data);
    const auto n_labels = static_cast<std::size_t>(data.n_labels);
    if (!data.loss.empty() && data.loss.size() != n_labels * n_labels) {
      throw std::invalid_argument("loss must have a row and a column for each label");
    }
    for (const double scale : data.scale) {
      if (!(scale >= 0.0)) refuse("scale", "be at least 0", as_text(scale));
    }
  }

  CsrView<double, index_t> factor_features() const {
    if (!features_) return {};
    offset_t most = 0;
    if (width_) {
      for (const index_t width : as_span(*width_)) most = std::max<offset_t>(most, width);
    }
    return compressed_view<CsrView, double, index_t>(*features_, most);
  }

  /// Each factor has features of its template.
  static void check_features(const StructuredData<T, index_t>& data) {
    if (data.width.empty()) return;
    if (data.width.size() != data.arity.size()) {
      throw std::invalid_argument("width and arity must fit together");
    }
    for (const index_t width : data.width) {
      if (width < 0) refuse("width", "be at least 0", std::to_string(width));
    }
    if (data.factor_features.n_rows() != std::ssize(data.table)) {
      refuse("features", "have " + std::to_string(data.table.size()) + " rows",
             std::to_string(data.factor_features.n_rows()));
    }
    for (std::size_t f = 0; f < data.table.size(); ++f) {
      const auto row = data.factor_features.row(static_cast<offset_t>(f));
      check_ids("features", row.ids, data.width[at(data.table[f])]);
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

  Arrays<index_t, index_t, T> X_;
  Nodes nodes_;
  Factors factors_;
  std::optional<Features> features_;
  std::optional<Vector<index_t>> width_;
  std::optional<Vector<double>> scale_, weight_, loss_;
  std::size_t n_tables_ = 0;
  std::unique_ptr<GdmmLearn<T, index_t, kEnds>> learner_;
};

template <class T, std::size_t kEnds>
void bind_learner(nb::module_& m, const char* name) {
  using L = Learner<T, kEnds>;
  nb::class_<L>(m, name, "GDMM for structural SVMs; see solvers/structured/gdmm.hpp.")
      .def(nb::init<Arrays<index_t, index_t, T>, offset_t, typename L::Nodes, index_t,
                    typename L::Factors, std::optional<Vector<double>>,
                    std::optional<Vector<double>>, const GdmmLearnSettings&,
                    std::optional<typename L::Features>, std::optional<Vector<index_t>>,
                    std::optional<Vector<double>>>(),
           "X"_a.noconvert(), "n_features"_a, "nodes"_a.noconvert(), "n_labels"_a,
           "factors"_a.noconvert(), "scale"_a.noconvert().none(), "weight"_a.noconvert().none(),
           "settings"_a, "features"_a.noconvert().none() = nb::none(),
           "width"_a.noconvert().none() = nb::none(), "loss"_a.noconvert().none() = nb::none(),
           "X is a CSR matrix of nodes; nodes are (truth, begin), factors (begin, scope, table, "
           "arity), features a CSR matrix of factors, width how many those of each table have.")
      .def("run_pass", &L::run_pass, "monitor"_a, "Visit every sample once.")
      .def("weights", &L::weights, "is_mean"_a = false,
           "indptr, indices and values of W, a row for each feature.")
      .def("tables", &L::tables, "is_mean"_a = false, "The cells of all tables, one after another.")
      .def("dual_value", &L::dual_value, "Of (10); a bound only where the constraints hold.")
      .def("feasible_dual", &L::feasible_dual, "A lower bound on the objective.");
}

/// Where chains of these lengths begin in a list of `n_nodes`, and the end.
std::vector<offset_t> begins_of(const Vector<offset_t>& lengths, std::size_t n_nodes) {
  std::vector<offset_t> begin(1, 0);
  for (const offset_t length : as_span(lengths)) {
    if (length < 1) refuse("lengths", "be at least 1", std::to_string(length));
    begin.push_back(begin.back() + length);
  }
  check_offsets("lengths, summed up,", begin, n_nodes);
  return begin;
}

template <class T>
ChainWeights<T> chain_weights(const Arrays<offset_t, index_t, T>& W, const Matrix<double>& table) {
  const auto& [indptr, labels, values] = W;
  const std::size_t n_labels = table.shape(0);
  if (table.shape(1) != n_labels || n_labels == 0) {
    throw std::invalid_argument("table must be square and not empty");
  }
  check_compressed(as_span(indptr), as_span(labels), static_cast<offset_t>(indptr.size()) - 1,
                   static_cast<offset_t>(n_labels), "W_indptr", "W_indices");
  check_offsets("W_indptr", as_span(indptr), values.size());
  return {
      as_span(indptr), as_span(labels), as_span(values), {table.data(), table.size()}, n_labels};
}

template <class T>
nb::tuple decode(const Arrays<index_t, index_t, T>& X, const Arrays<offset_t, index_t, T>& W,
                 const Matrix<double>& table, const Vector<offset_t>& lengths,
                 const std::optional<Vector<index_t>>& truth, int n_threads, const Monitor& monitor,
                 const std::optional<Vector<double>>& loss) {
  const ChainWeights<T> weights = chain_weights<T>(W, table);
  const auto rows = compressed_view<CsrView, T, index_t>(X, weights.n_features());
  const auto n_nodes = static_cast<std::size_t>(rows.n_rows());
  const std::vector<offset_t> begin = begins_of(lengths, n_nodes);
  if (truth) {
    if (truth->size() != n_nodes) throw std::invalid_argument("truth must have a label per node");
    check_ids("truth", as_span(*truth), static_cast<offset_t>(weights.n_labels));
  }
  if (loss && loss->size() != weights.n_labels * weights.n_labels) {
    throw std::invalid_argument("loss must have a row and a column for each label");
  }
  DecodedChains found;
  {
    nb::gil_scoped_release unlocked;
    found =
        decode_chains<T>(rows, weights, begin, truth ? as_span(*truth) : std::span<const index_t>{},
                         n_threads, monitor, loss ? as_span(*loss) : std::span<const double>{});
  }
  return nb::make_tuple(to_numpy(std::move(found.labels)), to_numpy(std::move(found.scores)));
}

template <class T>
void bind_decode(nb::module_& m) {
  m.def("viterbi", &decode<T>, "X"_a.noconvert(), "W"_a.noconvert(), "table"_a.noconvert(),
        "lengths"_a.noconvert(), "truth"_a.noconvert().none(), "n_threads"_a, "monitor"_a,
        "loss"_a.noconvert().none() = nb::none(),
        "Best labels of chains and their scores; with `truth`, of the scores plus the loss, by\n"
        "default that of Hamming. X and W are arrays of CSR matrices, W by feature.");
}

}  // namespace

void bind_structured(nb::module_& m) {
  nb::enum_<FactorVisits>(m, "FactorVisits", "Which factors a pass visits.")
      .value("ALL", FactorVisits::kAll)
      .value("VIOLATING", FactorVisits::kViolating)
      .value("MOST_VIOLATING", FactorVisits::kMostViolating);
  nb::class_<GdmmLearnSettings>(m, "GdmmLearnSettings", "See solvers/structured/gdmm.hpp.")
      .def(nb::init<>())
      .def_rw("C", &GdmmLearnSettings::C)
      .def_rw("rho", &GdmmLearnSettings::rho)
      .def_rw("eta", &GdmmLearnSettings::eta)
      .def_rw("uses_away_steps", &GdmmLearnSettings::uses_away_steps)
      .def_rw("n_parts", &GdmmLearnSettings::n_parts)
      .def_rw("visits", &GdmmLearnSettings::visits)
      .def_rw("n_factor_parts", &GdmmLearnSettings::n_factor_parts)
      .def_rw("has_full_search", &GdmmLearnSettings::has_full_search)
      .def_rw("seed", &GdmmLearnSettings::seed);
  bind_learner<float, 2>(m, "GdmmLearner32");
  bind_learner<double, 2>(m, "GdmmLearner64");
  bind_learner<float, LineTable::kMostEnds>(m, "GdmmHighOrderLearner32");
  bind_learner<double, LineTable::kMostEnds>(m, "GdmmHighOrderLearner64");
  bind_decode<float>(m);
  bind_decode<double>(m);
}

}  // namespace sublearn::bindings
