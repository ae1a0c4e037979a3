// Weights of pairs of labels: the table of pairs, the visit to a row, and a dual that rises and
// meets the objective.
#include "sublearn/solvers/pairwise/solver.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "check.hpp"
#include "sublearn/core/rng.hpp"

using namespace sublearn;

namespace {

/// Rows of two features and three labels, the first two of which mostly come together.
struct SmallProblem {
  std::vector<index_t> indptr{0}, indices;
  std::vector<double> values;
  std::vector<offset_t> begin{0};
  std::vector<index_t> rows;
  static constexpr offset_t kRows = 24;

  SmallProblem() {
    Rng rng(5);
    std::vector<std::vector<index_t>> of_label(3);
    for (index_t i = 0; i < kRows; ++i) {
      const double angle = 1.5 * rng.uniform();
      indices.insert(indices.end(), {0, 1});
      values.insert(values.end(), {std::cos(angle), std::sin(angle)});
      indptr.push_back(static_cast<index_t>(indices.size()));
      const bool is_left = angle < 0.7;
      if (is_left) of_label[0].push_back(i);
      if (is_left != (rng.uniform() < 0.15)) of_label[1].push_back(i);
      if (!is_left) of_label[2].push_back(i);
    }
    for (const auto& some : of_label) {
      rows.insert(rows.end(), some.begin(), some.end());
      begin.push_back(static_cast<offset_t>(rows.size()));
    }
  }

  LabelledRows<double, index_t> labelled() const {
    CsrView<double, index_t> X;
    X.indptr = indptr.data();
    X.indices = indices.data();
    X.values = values.data();
    X.n_major = kRows;
    X.n_minor = 2;
    return {X, RowLabels(LabelRows{begin, rows}, kRows)};
  }
};

/// What a visit maximises, by its definition, as a function of the shares of three labels.
double row_value(const std::vector<double>& p, const std::vector<double>& from,
                 const std::vector<double>& wish, double curvature, double c,
                 const std::vector<PairRest<double>>& rests) {
  double value = 0.0;
  std::size_t pair = 0;
  for (std::size_t a = 0; a < 3; ++a) {
    const double change = p[a] - from[a];
    value += wish[a] * change - 0.5 * curvature * change * change;
    for (std::size_t b = 0; b < a; ++b, ++pair) {
      const double lack = rests[pair].above + std::min(from[a], from[b]) - std::min(p[a], p[b]);
      const double excess = std::max(0.0, p[a] + p[b] - 1.0) - rests[pair].below -
                            std::max(0.0, from[a] + from[b] - 1.0);
      const double squares = std::pow(std::max(0.0, lack), 2) + std::pow(std::max(0.0, excess), 2);
      value -= 0.5 * c * squares;
    }
  }
  return value;
}

/// The best value on a grid of 21 shares for each of three labels.
template <class Value>
double best_on_grid(Value&& value) {
  double best = -1e300;
  for (int i = 0; i < 21 * 21 * 21; ++i) {
    best = std::max(best, value({i % 21 / 20.0, i / 21 % 21 / 20.0, i / 441 / 20.0}));
  }
  return best;
}

}  // namespace

TEST(pair_table_holds_what_it_is_given_while_rows_become_arrays) {
  Rng rng(3);
  constexpr index_t kLabels = 200;
  PairTable<double> table(kLabels);
  std::map<std::pair<index_t, index_t>, double> expected;
  for (int n = 0; n < 9000; ++n) {
    const auto k = static_cast<index_t>(1 + rng.below(kLabels - 1));
    const auto l = static_cast<index_t>(rng.below(static_cast<std::uint32_t>(k)));
    table.touch(k, l) += n;
    expected[{k, l}] += n;
  }
  for (index_t k = 0; k < kLabels; ++k) {
    for (index_t l = 0; l < k; ++l) {
      const auto at = expected.find({k, l});
      CHECK(table.row(k)[l] == (at == expected.end() ? 0.0 : at->second));
    }
  }
  double sum = 0.0;
  table.for_each([&](index_t, index_t, double value) { sum += value; });
  CHECK(sum == 8999.0 * 9000.0 / 2.0);
  table.reset();
  table.for_each([&](index_t, index_t, double value) { CHECK(value == 0.0); });
}

TEST(visit_to_a_row_finds_the_best_shares) {
  Rng rng(8);
  const auto draw = [&](double from, double to) { return from + (to - from) * rng.uniform(); };
  for (int trial = 0; trial < 60; ++trial) {
    const double c = draw(0.2, 2.0), curvature = trial % 5 == 0 ? 0.0 : draw(0.2, 3.0);
    PairRow row;
    row.labels = {0, 1, 2};
    row.is_true = {1, 0, 0};
    row.p = {1.0, trial % 3 == 0 ? 0.0 : draw(0.0, 1.0), draw(0.0, 1.0)};
    const std::vector<double> from = row.p;
    const std::vector<double> wish{draw(-1.0, 1.0), draw(-1.0, 1.0), draw(-1.0, 1.0)};
    PairTable<PairRest<double>> table(3);
    std::vector<PairRest<double>> rests;
    for (index_t a = 0; a < 3; ++a) {
      for (index_t b = 0; b < a; ++b) {
        const double above = draw(-1.0, 1.0);
        rests.push_back({above, above + draw(0.0, 1.0)});
        table.touch(a, b) = rests.back();
      }
    }
    const auto value = [&](const std::vector<double>& p) {
      return row_value(p, from, wish, curvature, c, rests);
    };
    PairStep<double> step(c);
    double before = value(row.p);
    for (int visit = 0; visit < 400; ++visit) {
      const std::vector<double> here = row.p;
      // The table and the wishes as they are at the present point.
      std::vector<double> now = wish;
      for (std::size_t s = 0; s < 3; ++s) now[s] -= curvature * (here[s] - from[s]);
      std::size_t pair = 0;
      for (index_t a = 0; a < 3; ++a) {
        for (index_t b = 0; b < a; ++b, ++pair) {
          const auto i = static_cast<std::size_t>(a), j = static_cast<std::size_t>(b);
          table.touch(a, b) = {
              rests[pair].above + std::min(from[i], from[j]) - std::min(here[i], here[j]),
              rests[pair].below + std::max(0.0, from[i] + from[j] - 1.0) -
                  std::max(0.0, here[i] + here[j] - 1.0)};
        }
      }
      step.take(row, now, curvature, table);
      CHECK(value(row.p) >= before - 1e-12);
      before = value(row.p);
    }
    CHECK(before >= best_on_grid(value) - 1e-4);
  }
}

TEST(divided_attractions_bound_the_program_from_above) {
  Rng rng(2);
  double above = 0.0, total = 0.0;
  for (int trial = 0; trial < 40; ++trial) {
    LabelQuadratic problem;
    double half_split = 0.0;
    std::vector<double> most;
    for (index_t k = 0; k < 16; ++k) {
      problem.labels.push_back(k);
      problem.unary.push_back(2.0 * rng.uniform() - 1.5);
    }
    most = problem.unary;
    for (index_t k = 0; k < 16; ++k) {
      for (index_t l = 0; l < k; ++l) {
        const double weight = rng.uniform() - (trial % 2 == 0 ? 0.8 : 0.5);
        problem.edges.push_back({{k, l}, 0.5 * weight});
        for (const index_t end : {k, l}) {
          most[static_cast<std::size_t>(end)] += 0.25 * std::max(0.0, weight);
        }
      }
    }
    for (const double value : most) half_split += std::max(0.0, value);
    const FactorGraph graph = problem.graph();
    RoofDuality roof(graph);
    roof.solve();
    std::vector<double> gain;
    const double bound = problem.split_bound(gain);
    CHECK(gain.size() == 16);
    CHECK(bound >= roof.bound() - 1e-9);
    CHECK(bound <= half_split + 1e-9);
    above += bound - roof.bound();
    total += roof.bound();
  }
  CHECK(above <= 0.05 * total);
}

TEST(pairwise_dual_rises_to_the_objective) {
  const SmallProblem problem;
  const auto data = problem.labelled();
  PairwiseSettings settings;
  settings.gamma = 0.5;
  PairwiseMultilabel<double, index_t> learner(data, 3, settings);
  double dual = 0.0;
  PairwiseCertificate found;
  for (int pass = 0; pass < 400; ++pass) {
    learner.pass(nullptr);
    found = learner.certify(nullptr);
    CHECK(std::isfinite(found.primal));
    CHECK(found.dual >= dual - 1e-6 * (1.0 + dual));
    CHECK(found.primal >= found.dual - 1e-6 * found.primal);
    dual = found.dual;
  }
  CHECK(found.primal - found.dual <= 1e-3 * found.primal);
}

TEST(pairwise_weights_are_symmetric_and_tell_who_belongs_together) {
  const SmallProblem problem;
  const auto data = problem.labelled();
  PairwiseMultilabel<double, index_t> learner(data, 3, PairwiseSettings{});
  for (int pass = 0; pass < 50; ++pass) learner.pass(nullptr);
  const auto V = learner.pairs();
  std::vector<double> dense(9, 0.0);
  for (std::size_t k = 0; k < 3; ++k) {
    for (auto e = static_cast<std::size_t>(V.indptr[k]);
         e < static_cast<std::size_t>(V.indptr[k + 1]); ++e) {
      dense[3 * k + static_cast<std::size_t>(V.indices[e])] = V.values[e];
    }
  }
  CHECK(dense[1] == dense[3] && dense[2] == dense[6] && dense[5] == dense[7]);
  CHECK(dense[0] == 0.0 && dense[4] == 0.0 && dense[8] == 0.0);
  CHECK(dense[1] > 0.0);
  CHECK(dense[2] < 0.0);
}

TEST(pairs_that_join_later_lead_to_the_same_optimum) {
  const SmallProblem problem;
  const auto data = problem.labelled();
  PairwiseSettings settings;
  settings.gamma = 0.5;
  PairwiseMultilabel<double, index_t> whole(data, 3, settings), joined(data, 3, settings);
  joined.leave_pairs_out();
  for (int pass = 0; pass < 20; ++pass) joined.pass(nullptr);
  const double alone = joined.certify(nullptr).dual;
  CHECK(joined.pairs().values.empty());
  Monitor stopped;
  stopped.request_stop();
  joined.join_pairs(&stopped);
  CHECK(joined.pairs().values.empty());
  joined.join_pairs(nullptr);
  // p stays and |V| is as small as it can be: the value of labels alone, less gamma/2 |V|^2.
  double before = joined.certify(nullptr).dual;
  CHECK(before <= alone + 1e-9);
  for (int pass = 0; pass < 300; ++pass) {
    joined.pass(nullptr);
    whole.pass(nullptr);
    if (pass % 50 != 0) continue;
    const auto now = joined.certify(nullptr);
    CHECK(now.dual >= before - 1e-6);
    CHECK(now.primal >= now.dual - 1e-6);
    before = now.dual;
  }
  const auto one = joined.certify(nullptr), other = whole.certify(nullptr);
  CHECK(std::abs(one.dual - other.dual) < 1e-3 * other.dual);
  CHECK(one.primal - one.dual < 1e-2 * one.primal);
}
