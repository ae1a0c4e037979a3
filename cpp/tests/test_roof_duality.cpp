// Roof duality: bounds and decided labels against all assignments and against message passing.
#include "sublearn/solvers/map/roof_duality.hpp"

#include <algorithm>
#include <vector>

#include "check.hpp"
#include "dual_graphs.hpp"
#include "sublearn/solvers/map/messages.hpp"

using namespace sublearn;
using namespace sublearn::testing;

namespace {

FactorGraph pairs_of_equals(Rng& rng, index_t n) {
  FactorGraph graph;
  for (index_t i = 0; i < n; ++i) graph.add_variable(random_scores(rng, 2));
  for (index_t i = 0; i < n; ++i) {
    for (index_t j = i + 1; j < n; ++j) {
      const std::vector<index_t> scope{i, j};
      const double bond = 0.05 + 0.3 * rng.uniform();
      graph.add_factor(scope, graph.add_table(FactorTable::dense({2, 2}, {bond, 0.0, 0.1, bond})));
    }
  }
  graph.connect();
  return graph;
}

}  // namespace

TEST(roof_duality_decides_what_all_best_assignments_share) {
  Rng rng(1);
  int n_decided = 0, n_open = 0;
  for (int round = 0; round < 120; ++round) {
    auto graph = random_graph(rng, {9, 6 + round % 20, 2, 2});
    for (double& score : graph.unary) score *= 0.2;  // else nearly all is decided
    RoofDuality roof(graph);
    CHECK(roof.solve());
    const double best = best_score(graph);
    CHECK(roof.bound() >= best - 1e-12);
    const auto decided = roof.labels();
    std::vector<index_t> labels(graph.domain.size(), 0);
    do {
      if (graph.score(labels) < best - 1e-12) continue;
      for (std::size_t i = 0; i < labels.size(); ++i) {
        CHECK(decided[i] == RoofDuality::kOpen || decided[i] == labels[i]);
      }
    } while (next_assignment(graph, labels));
    for (const index_t label : decided) ++(label == RoofDuality::kOpen ? n_open : n_decided);
  }
  CHECK(n_decided > 100);
  CHECK(n_open > 100);
}

TEST(roof_bound_is_where_message_passing_ends) {
  Rng rng(2);
  for (int round = 0; round < 20; ++round) {
    const auto graph = random_graph(rng, {10, 18, 2, 2});
    RoofDuality roof(graph);
    roof.solve();
    MapMessages messages(graph);
    for (int sweep = 0; sweep < 3000; ++sweep) {
      messages.sweep(sweep % 2 ? SweepDirection::backward : SweepDirection::forward, false);
    }
    CHECK(roof.bound() <= messages.bound() + 1e-10);
    CHECK_NEAR(roof.bound(), messages.bound(), 1e-3);
  }
}

TEST(roof_duality_solves_what_favours_equal_labels) {
  Rng rng(3);
  for (int round = 0; round < 20; ++round) {
    const auto graph = pairs_of_equals(rng, 10);
    RoofDuality roof(graph);
    roof.solve();
    CHECK_NEAR(roof.bound(), best_score(graph), 1e-12);
    auto labels = roof.labels();
    CHECK(std::count(labels.begin(), labels.end(), RoofDuality::kOpen) == 0);
    for (index_t& label : labels) label = std::max(label, 0);
    CHECK_NEAR(graph.score(labels), best_score(graph), 1e-12);
  }
}

TEST(improving_never_loses_and_often_gains) {
  Rng rng(4);
  int n_better = 0, n_best = 0;
  for (int round = 0; round < 60; ++round) {
    auto graph = random_graph(rng, {10, 25, 2, 2});
    for (double& score : graph.unary) score *= 0.2;
    RoofDuality roof(graph);
    roof.solve();
    std::vector<index_t> labels;
    for (const index_t k : graph.domain) {
      labels.push_back(static_cast<index_t>(rng.below(static_cast<std::uint32_t>(k))));
    }
    const double before = graph.score(labels);
    const bool is_better = roof.improve(labels, rng, 5);
    CHECK(is_better == (graph.score(labels) > before));
    CHECK(graph.score(labels) >= before);
    n_better += is_better;
    n_best += graph.score(labels) >= best_score(graph) - 1e-12;
  }
  CHECK(n_better > 40);
  CHECK(n_best > 20);
}

TEST(roof_duality_reads_variables_of_one_label) {
  Rng rng(5);
  FactorGraph graph;
  graph.add_variable(std::vector<double>{0.5});
  graph.add_variable(std::vector<double>{0.1, 0.2});
  const std::vector<index_t> scope{0, 1};
  graph.add_factor(scope, graph.add_table(FactorTable::dense({1, 2}, {1.0, 0.3})));
  graph.connect();
  RoofDuality roof(graph);
  roof.solve();
  CHECK_NEAR(roof.bound(), 1.6, 1e-12);
  CHECK(roof.labels() == (std::vector<index_t>{0, 0}));
}

TEST(roof_duality_refuses_what_is_not_binary_or_not_pairs) {
  Rng rng(6);
  FactorGraph three;
  three.add_variable(std::vector<double>{0.0, 0.0, 0.0});
  three.connect();
  CHECK(!RoofDuality::applies(three));
  CHECK_THROWS(RoofDuality roof(three), std::invalid_argument);
  FactorGraph triple;
  for (int i = 0; i < 3; ++i) triple.add_variable(std::vector<double>{0.0, 0.0});
  const std::vector<index_t> scope{0, 1, 2};
  triple.add_factor(scope, triple.add_table(dense_table(rng, {2, 2, 2})));
  triple.connect();
  CHECK(!RoofDuality::applies(triple));
}
