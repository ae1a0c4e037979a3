// From where the sweeps of a visit have led to a point of the dual that satisfies all constraints
// and has no smaller value. Used by: pairwise_multilabel.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "sublearn/core/factor_graph.hpp"
#include "sublearn/core/types.hpp"
#include "sublearn/solvers/label_quadratic.hpp"
#include "sublearn/solvers/pairwise_active.hpp"
#include "sublearn/solvers/pairwise_task.hpp"
#include "sublearn/solvers/roof_duality.hpp"

namespace sublearn {

/// `Value` gives V of two slots of a row.
template <class Value>
class FeasibleStep {
 public:
  FeasibleStep(Value value, double label_curvature, double pair_curvature)
      : value_(value), label_curvature_(label_curvature), pair_curvature_(pair_curvature) {}

  /// From the point that satisfied all constraints towards the one that the sweeps found, made
  /// feasible by moving its q: as far as the dual rises, by an exact line search. `square` is
  /// |x|^2.
  void take(PairRow& row, RowVisit& visit, double square) const {
    for (ActivePair& pair : row.pairs) pair.q = clipped(row, pair);
    admit_moved(row, visit, value_, [&](std::size_t a, std::size_t b, double q) {
      return std::clamp(q, std::max(0.0, row.p[a] + row.p[b] - 1.0), std::min(row.p[a], row.p[b]));
    });
    double step = best_step(row, visit, square);
    adapt(row, step);
    if (step <= kShort && row.budget == kMostSweeps) {
      aim_at_program(row, visit);
      step = best_step(row, visit, square);
    }
    if (step >= 1.0) return;
    for (std::size_t s = 0; s < row.labels.size(); ++s) {
      row.p[s] = static_cast<float>(visit.before[s] + step * (row.p[s] - visit.before[s]));
    }
    for (std::size_t e = 0; e < row.pairs.size(); ++e) {
      ActivePair& pair = row.pairs[e];
      pair.q = static_cast<float>(visit.starts[e] + step * (pair.q - visit.starts[e]));
      pair.q = clipped(row, pair);
    }
  }

 private:
  static constexpr int kMostSweeps = 64;
  static constexpr double kShort = 0.1;  ///< a step that says that the sweeps led nowhere

  /// How far the dual rises from the first point to the present one, at most 1.
  double best_step(const PairRow& row, const RowVisit& visit, double square) const {
    double along = 0.0, length_p = 0.0, length_q = 0.0;
    for (std::size_t s = 0; s < row.labels.size(); ++s) {
      const double change = row.p[s] - visit.before[s];
      along += change * (visit.first_score[s] + 1.0 - 2.0 * row.truth(s));
      length_p += change * change;
    }
    for (std::size_t e = 0; e < row.pairs.size(); ++e) {
      const double change = row.pairs[e].q - visit.starts[e];
      along += change * visit.first_value[e];
      length_q += change * change;
    }
    const double bend = label_curvature_ * square * length_p + pair_curvature_ * length_q;
    return along <= 0.0 ? 0.0 : std::min(1.0, along / std::max(bend, 1e-300));
  }

  /// A row whose sweeps lead nowhere gets more of them, to a finer tolerance.
  static void adapt(PairRow& row, double step) {
    if (step <= kShort) row.budget = std::min(2 * row.budget, kMostSweeps);
    if (step >= 1.0) row.budget = std::max(3 * row.budget / 4, PairRow::kFewestSweeps);
  }

  /// The last resort: the solution of the row's linear program over its labels (algorithm 2 of 001,
  /// without away steps). The dual rises towards it unless the row is optimal.
  void aim_at_program(PairRow& row, RowVisit& visit) const {
    solve_program(row, visit);
    const auto target = [&](std::size_t a, std::size_t b, double) {
      return value_(row, a, b) > 0.0 ? std::min(row.p[a], row.p[b])
                                     : std::max(0.0, row.p[a] + row.p[b] - 1.0);
    };
    for (ActivePair& pair : row.pairs) {
      pair.q = static_cast<float>(target(pair.ends[0], pair.ends[1], 0.0));
    }
    admit_moved(row, visit, value_, target);
  }

  /// p of the linear program: 0, 1, or 1/2 where roof duality leaves a label open.
  void solve_program(PairRow& row, const RowVisit& visit) const {
    LabelQuadratic problem;
    const std::size_t n = row.labels.size();
    for (std::size_t s = 0; s < n; ++s) {
      problem.labels.push_back(static_cast<index_t>(s));
      problem.unary.push_back(visit.first_score[s] + 1.0 - 2.0 * row.truth(s));
      for (std::size_t r = 0; r < s; ++r) {
        const double v = value_(row, r, s);
        if (v == 0.0) continue;
        problem.edges.push_back({{static_cast<index_t>(r), static_cast<index_t>(s)}, v});
      }
    }
    std::fill(row.p.begin(), row.p.end(), 0.0);
    problem.reduce();
    for (const index_t s : problem.on) row.p[static_cast<std::size_t>(s)] = 1.0;
    if (problem.is_decided()) return;
    const FactorGraph graph = problem.graph();
    RoofDuality roof(graph);
    roof.solve();
    const auto found = roof.labels();
    for (std::size_t k = 0; k < found.size(); ++k) {
      row.p[static_cast<std::size_t>(problem.labels[k])] =
          found[k] == RoofDuality::kOpen ? 0.5 : static_cast<double>(found[k]);
    }
  }

  Value value_;
  double label_curvature_, pair_curvature_;
};

}  // namespace sublearn
