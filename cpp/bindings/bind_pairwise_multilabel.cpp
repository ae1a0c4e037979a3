// Python face of the multilabel classifier with a weight for each pair of labels.
#include <nanobind/stl/unique_ptr.h>

#include <memory>

#include "arrays.hpp"
#include "checked_rows.hpp"
#include "sublearn/core/parallel_for.hpp"
#include "sublearn/solvers/pairwise/solver.hpp"

namespace sublearn::bindings {

template <class T>
nb::tuple to_tuple(OwnedRows<T>&& rows) {
  return nb::make_tuple(to_numpy(std::move(rows.indptr)), to_numpy(std::move(rows.indices)),
                        to_numpy(std::move(rows.values)));
}

nb::dict as_dict(const PairwisePass& pass) {
  nb::dict out;
  out["n_labels"] = pass.n_labels;
  out["n_pairs"] = pass.n_pairs;
  out["work"] = pass.work;
  return out;
}

template <class T>
void bind_learner(nb::module_& m, const char* name) {
  using Learner = PairwiseMultilabel<T, index_t>;
  nb::class_<Learner>(m, name, "A fit of labels and pairs of labels that goes on pass by pass.")
      .def(
          "run_pass",
          [](Learner& learner, Monitor& monitor) {
            PairwisePass pass;
            {
              nb::gil_scoped_release unlocked;
              pass = learner.pass(&monitor);
            }
            return as_dict(pass);
          },
          "monitor"_a, "One visit to every row.")
      .def(
          "certify",
          [](Learner& learner, Monitor& monitor) {
            PairwiseCertificate found;
            {
              nb::gil_scoped_release unlocked;
              found = learner.certify(&monitor);
            }
            return nb::make_tuple(found.primal, found.dual);
          },
          "monitor"_a,
          "(primal, dual) at the present weights; primal is NaN after a stop on the way.")
      .def("leave_pairs_out", &Learner::leave_pairs_out, "Look at labels alone in passes to come.")
      .def(
          "join_pairs", [](Learner& learner, Monitor& monitor) { learner.join_pairs(&monitor); },
          "monitor"_a, nb::call_guard<nb::gil_scoped_release>(),
          "Look at pairs again, from a feasible point with weights of pairs near zero.")
      .def(
          "weights", [](const Learner& learner) { return to_tuple(learner.weights()); },
          "CSR arrays of the weights, a row for each feature.")
      .def(
          "pairs", [](const Learner& learner) { return to_tuple(learner.pairs()); },
          "CSR arrays of the symmetric weights of pairs.");
  m.def(
      "pairwise_learner",
      [](const CheckedRows<T>& rows, const PairwiseSettings& settings) {
        return std::make_unique<Learner>(rows.data(), static_cast<index_t>(rows.n_labels()),
                                         settings);
      },
      "rows"_a, "settings"_a, nb::keep_alive<0, 1>(), "Begin a fit, with all weights zero.");
}

/// The three arrays of V, checked: symmetric in shape, and no label paired with itself.
CsrView<double, offset_t> pairs_view(const Vector<offset_t>& indptr,
                                     const Vector<offset_t>& indices,
                                     const Vector<double>& values) {
  const auto n_labels = static_cast<offset_t>(indptr.size()) - 1;
  const auto view = compressed_view<CsrView, double, offset_t>(indptr, indices, values, n_labels);
  for (offset_t k = 0; k < n_labels; ++k) {
    for (const offset_t l : view.row(k).ids) {
      if (l == k) throw std::invalid_argument("pairs must not pair a label with itself");
    }
  }
  return view;
}

nb::tuple best_label_sets(Matrix<double> scores, Vector<offset_t> indptr, Vector<offset_t> indices,
                          Vector<double> values, int most_nodes, int n_threads) {
  const auto pairs = pairs_view(indptr, indices, values);
  if (static_cast<offset_t>(scores.shape(1)) != pairs.n_rows()) {
    throw std::invalid_argument("scores must have a column for each label of pairs");
  }
  const std::size_t n_rows = scores.shape(0), n_labels = scores.shape(1);
  std::vector<LabelSet> found(n_rows);
  {
    nb::gil_scoped_release unlocked;
    const auto attraction = LabelInference::attraction_of(pairs);
    const auto n_blocks = static_cast<offset_t>(n_rows);
    std::vector<LabelInference> scratch(
        static_cast<std::size_t>(effective_threads(n_blocks, n_threads)),
        LabelInference(pairs, attraction));
    parallel_for(n_blocks, n_threads, [&](offset_t i, int thread) {
      const auto row = static_cast<std::size_t>(i);
      found[row] = scratch[at(thread)].best({scores.data() + row * n_labels, n_labels}, most_nodes);
    });
  }
  OwnedRows<double> sets;
  std::vector<double> bounds;
  for (const LabelSet& set : found) {
    sets.indices.insert(sets.indices.end(), set.labels.begin(), set.labels.end());
    sets.indptr.push_back(static_cast<offset_t>(sets.indices.size()));
    sets.values.push_back(set.score);
    bounds.push_back(set.bound);
  }
  return nb::make_tuple(to_numpy(std::move(sets.indptr)), to_numpy(std::move(sets.indices)),
                        to_numpy(std::move(sets.values)), to_numpy(std::move(bounds)));
}

void bind_pairwise_multilabel(nb::module_& m) {
  nb::class_<PairwiseSettings>(m, "PairwiseSettings",
                               "Settings of a fit; see solvers/pairwise/solver.hpp.")
      .def(nb::init<>())
      .def_rw("C", &PairwiseSettings::C)
      .def_rw("gamma", &PairwiseSettings::gamma)
      .def_rw("has_pairs", &PairwiseSettings::has_pairs)
      .def_rw("seed", &PairwiseSettings::seed)
      .def_rw("n_threads", &PairwiseSettings::n_threads);
  bind_learner<float>(m, "PairwiseLearnerFloat32");
  bind_learner<double>(m, "PairwiseLearnerFloat64");
  m.def("best_label_sets", &best_label_sets, "scores"_a.noconvert(), "indptr"_a.noconvert(),
        "indices"_a.noconvert(), "values"_a.noconvert(), "most_nodes"_a, "n_threads"_a,
        "For each row of scores the best set of labels: (indptr, labels, scores, bounds).");
}

}  // namespace sublearn::bindings
