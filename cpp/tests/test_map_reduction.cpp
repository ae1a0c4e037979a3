// Reductions keep the optimum: compared with the best of all assignments of small graphs.
#include "sublearn/solvers/map/reduction.hpp"

#include <algorithm>
#include <vector>

#include "check.hpp"
#include "small_graphs.hpp"
#include "sublearn/solvers/map/components.hpp"
#include "sublearn/solvers/map/elimination.hpp"

using namespace sublearn;
using namespace sublearn::testing;

namespace {

using Ids = std::vector<index_t>;

/// Optimal labels of a small graph.
Ids solve(const FactorGraph& graph) {
  Ids labels(graph.domain.size(), 0), block(labels.size());
  for (std::size_t i = 0; i < block.size(); ++i) block[i] = static_cast<index_t>(i);
  CHECK(MapElimination(graph).solve(block, labels, {}));
  return labels;
}

void check_reduction(Rng& rng, const FactorGraph& graph, const ReductionLimits& limits) {
  const MapReduction reduction(graph, limits);
  const FactorGraph& reduced = reduction.graph();
  const double best = best_score(graph);
  CHECK(reduced.n_variables() <= graph.n_variables());
  CHECK_NEAR(best_score(reduced) + reduction.constant(), best, 1e-9);
  CHECK_NEAR(graph.score(reduction.lift(solve(reduced))), best, 1e-9);
  const Ids some = random_labels(rng, reduced);
  CHECK(graph.score(reduction.lift(some)) >= reduced.score(some) + reduction.constant() - 1e-9);
  CHECK(reduction.restricted(reduction.lift(some)).size() == some.size());
}

FactorGraph chain(Rng& rng, index_t n, index_t n_labels) {
  FactorGraph graph;
  for (index_t i = 0; i < n; ++i) {
    graph.add_variable(*random_numbers(rng, static_cast<std::size_t>(n_labels)));
  }
  for (index_t i = 0; i + 1 < n; ++i) {
    graph.add_factor(Ids{i, i + 1}, graph.add_table(random_table(rng, {n_labels, n_labels})));
  }
  graph.connect();
  return graph;
}

}  // namespace

TEST(a_reduced_graph_has_the_same_optimum) {
  Rng rng(21);
  for (int trial = 0; trial < 400; ++trial) {
    const auto n_factors = static_cast<index_t>(rng.below(14));
    const FactorGraph graph = random_graph(rng, 2 + static_cast<index_t>(rng.below(6)), n_factors,
                                           trial % 2 == 0 ? 2 : 4);
    ReductionLimits limits;
    if (trial % 3 == 0) limits.incumbent = graph.score(random_labels(rng, graph));
    if (trial % 5 == 0) limits.work = 20.0;
    check_reduction(rng, graph, limits);
  }
}

TEST(strong_unaries_fix_binary_variables_and_leave_a_core) {
  Rng rng(22);
  int n_smaller = 0;
  for (int trial = 0; trial < 200; ++trial) {
    FactorGraph graph;
    for (int i = 0; i < 10; ++i) {
      graph.add_variable(std::vector<double>{0.0, 8.0 * rng.uniform() - 6.0});
    }
    const index_t table = graph.add_table(FactorTable::dense({2, 2}, {0.0, 0.0, 0.0, 1.0}));
    for (index_t i = 0; i < 10; ++i) {
      for (index_t j = i + 1; j < 10; ++j) graph.add_factor(Ids{i, j}, table, rng.uniform());
    }
    graph.connect();
    const MapReduction reduction(graph);
    n_smaller += reduction.graph().n_variables() < 10;
    check_reduction(rng, graph, {});
  }
  CHECK(n_smaller > 180);  // a few have no variable that is sure of its label
}

TEST(chains_with_tables_of_their_own_vanish) {
  Rng rng(23);
  for (int trial = 0; trial < 50; ++trial) {
    const FactorGraph graph = chain(rng, 7, 3);
    const MapReduction reduction(graph);
    CHECK(reduction.graph().n_variables() == 0);
    CHECK_NEAR(reduction.constant(), best_score(graph), 1e-9);
    CHECK_NEAR(graph.score(reduction.lift({})), best_score(graph), 1e-9);
  }
}

TEST(large_shared_tables_stay_shared) {
  Rng rng(24);
  constexpr index_t kLabels = 600;  // 15 copies would have 5.4 million cells
  FactorGraph graph;
  for (int i = 0; i < 6; ++i) {
    std::vector<double> scores = *random_numbers(rng, kLabels);
    scores[0] = -100.0;  // dominated
    graph.add_variable(scores);
  }
  const index_t table = graph.add_table(
      FactorTable::dense({kLabels, kLabels}, *random_numbers(rng, kLabels * kLabels)));
  for (index_t i = 0; i < 6; ++i) {
    for (index_t j = i + 1; j < 6; ++j) graph.add_factor(Ids{i, j}, table, 20.0);
  }
  graph.connect();
  const MapReduction reduction(graph);
  CHECK(reduction.graph().n_variables() > 0);
  for (const auto& kept : reduction.graph().tables) CHECK(kept == graph.tables[0]);
}

TEST(small_shared_tables_lose_dominated_labels) {
  Rng rng(24);
  FactorGraph graph;
  for (int i = 0; i < 6; ++i) {
    std::vector<double> scores = *random_numbers(rng, 4);
    scores[0] = -500.0;  // dominated
    graph.add_variable(scores);
  }
  const index_t table = graph.add_table(FactorTable::dense({4, 4}, *random_numbers(rng, 16)));
  for (index_t i = 0; i < 6; ++i) {
    for (index_t j = i + 1; j < 6; ++j) graph.add_factor(Ids{i, j}, table, 20.0);
  }
  graph.connect();
  const MapReduction reduction(graph);
  for (const index_t labels : reduction.graph().domain) CHECK(labels < 4);
  check_reduction(rng, graph, {});
}

TEST(components_together_are_the_graph) {
  Rng rng(25);
  for (int trial = 0; trial < 100; ++trial) {
    const FactorGraph graph = random_graph(rng, 8, static_cast<index_t>(rng.below(8)), 3);
    const auto parts = split_components(graph);
    double best = 0.0, score = 0.0;
    std::size_t n_variables = 0;
    const Ids labels = random_labels(rng, graph);
    for (const GraphComponent& part : parts) {
      best += best_score(part.graph);
      Ids own;
      for (const index_t i : part.variables) own.push_back(labels[static_cast<std::size_t>(i)]);
      score += part.graph.score(own);
      n_variables += own.size();
      const Ids components = component_of_variables(part.graph);
      CHECK(*std::max_element(components.begin(), components.end()) == 0);
    }
    CHECK(n_variables == 8);
    CHECK_NEAR(best, best_score(graph), 1e-9);
    CHECK_NEAR(score, graph.score(labels), 1e-9);
  }
}
