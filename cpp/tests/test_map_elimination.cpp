// Bucket elimination against the best of all assignments of the block.
#include "sublearn/solvers/map/elimination.hpp"

#include <algorithm>
#include <vector>

#include "check.hpp"
#include "small_graphs.hpp"

using namespace sublearn;
using namespace sublearn::testing;

namespace {

using Ids = std::vector<index_t>;

Ids random_block(Rng& rng, const FactorGraph& graph) {
  Ids block;
  for (index_t i = 0; i < graph.n_variables(); ++i) {
    if (rng.below(3) != 0) block.push_back(i);
  }
  if (block.empty()) block.push_back(0);
  rng.shuffle(std::span(block));
  return block;
}

}  // namespace

TEST(a_block_gets_its_best_labels_given_the_others) {
  Rng rng(1);
  for (int trial = 0; trial < 300; ++trial) {
    const FactorGraph graph =
        random_graph(rng, 2 + static_cast<index_t>(rng.below(6)),
                     static_cast<index_t>(rng.below(10)), trial % 2 == 0 ? 2 : 4);
    MapElimination elimination(graph);
    for (int again = 0; again < 3; ++again) {
      const Ids block = random_block(rng, graph);
      const Ids before = random_labels(rng, graph);
      Ids labels = before;
      EliminationLimits limits;
      if (again == 2) limits.order = EliminationOrder::min_fill;
      CHECK(elimination.solve(block, labels, limits, again == 0 ? nullptr : &rng));
      CHECK(elimination.solved().size() == block.size());
      CHECK_NEAR(graph.score(labels), best_score(graph, before, block), 1e-9);
      for (std::size_t i = 0; i < labels.size(); ++i) {
        const bool inside =
            std::find(block.begin(), block.end(), static_cast<index_t>(i)) != block.end();
        CHECK(inside || labels[i] == before[i]);
      }
    }
  }
}

TEST(a_block_with_label_lists_stays_inside_them) {
  Rng rng(2);
  for (int trial = 0; trial < 200; ++trial) {
    const FactorGraph graph = random_graph(rng, 6, 9, 5);
    const Ids before = random_labels(rng, graph);
    Ids block{0, 1, 2, 3, 4, 5};
    LabelLists lists;
    FactorGraph restricted = graph;  // other labels cost too much
    for (std::size_t i = 0; i < 6; ++i) {
      const index_t n_labels = graph.domain[i];
      const auto kept = static_cast<index_t>(rng.below(static_cast<std::uint32_t>(n_labels)));
      for (index_t a = 0; a < n_labels; ++a) {
        if (a == kept || a == before[i]) {
          lists.labels.push_back(a);
        } else {
          restricted.unary_of(static_cast<index_t>(i))[static_cast<std::size_t>(a)] -= 1e3;
        }
      }
      lists.close();
    }
    Ids labels = before;
    MapElimination elimination(graph);
    CHECK(elimination.solve(block, labels, {}, nullptr, &lists));
    CHECK_NEAR(graph.score(labels), best_score(restricted), 1e-9);
  }
}

TEST(a_block_that_is_too_wide_is_refused_and_left_alone) {
  Rng rng(3);
  FactorGraph graph;
  for (int i = 0; i < 5; ++i) graph.add_variable(std::vector<double>{0.0, 0.1, 0.2});
  for (index_t i = 0; i < 5; ++i) {
    for (index_t j = i + 1; j < 5; ++j) {
      graph.add_factor(Ids{i, j}, graph.add_table(random_table(rng, {3, 3})));
    }
  }
  graph.connect();
  Ids labels{0, 1, 2, 0, 1};
  const Ids block{0, 1, 2, 3, 4};
  EliminationLimits limits;
  limits.bucket_cells = 242.0;  // a clique of five variables needs 3^5
  MapElimination elimination(graph);
  CHECK(!elimination.solve(block, labels, limits));
  CHECK(labels == (Ids{0, 1, 2, 0, 1}));
  limits.bucket_cells = 243.0;
  CHECK(elimination.solve(block, labels, limits));
  CHECK_NEAR(graph.score(labels), best_score(graph), 1e-9);
}

TEST(a_wide_block_drops_variables_and_is_best_over_the_rest) {
  Rng rng(4);
  for (int trial = 0; trial < 200; ++trial) {
    const FactorGraph graph = random_graph(rng, 7, 14, 3);
    const Ids block{0, 1, 2, 3, 4, 5, 6};
    const Ids before = random_labels(rng, graph);
    Ids labels = before;
    EliminationLimits limits;
    limits.bucket_cells = 10.0;
    limits.drop = true;
    limits.n_kept = 1;
    MapElimination elimination(graph);
    CHECK(elimination.solve(block, labels, limits, &rng));
    const Ids solved(elimination.solved().begin(), elimination.solved().end());
    CHECK(std::find(solved.begin(), solved.end(), block[0]) != solved.end());
    CHECK_NEAR(graph.score(labels), best_score(graph, before, solved), 1e-9);
    for (std::size_t i = 0; i < labels.size(); ++i) {
      const bool inside =
          std::find(solved.begin(), solved.end(), static_cast<index_t>(i)) != solved.end();
      CHECK(inside || labels[i] == before[i]);
    }
  }
}

TEST(a_stop_request_leaves_the_labels) {
  Rng rng(5);
  const FactorGraph graph = random_graph(rng, 6, 9, 3);
  const Ids before = random_labels(rng, graph);
  Ids labels = before;
  const Ids block{0, 1, 2, 3, 4, 5};
  Monitor monitor;
  monitor.request_stop();
  EliminationLimits limits;
  limits.monitor = &monitor;
  MapElimination elimination(graph);
  CHECK(!elimination.solve(block, labels, limits));
  CHECK(labels == before);
}
