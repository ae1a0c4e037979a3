// The search finds the optimum of small graphs, repeats itself, and keeps to its budget.
#include "sublearn/solvers/map/search.hpp"

#include <vector>

#include "check.hpp"
#include "small_graphs.hpp"

using namespace sublearn;
using namespace sublearn::testing;

namespace {

using Ids = std::vector<index_t>;

/// A torus of binary variables with random couplings, too wide to be eliminated at once.
FactorGraph random_torus(Rng& rng, index_t side) {
  FactorGraph graph;
  for (index_t i = 0; i < side * side; ++i) graph.add_variable(*random_numbers(rng, 2));
  for (index_t r = 0; r < side; ++r) {
    for (index_t c = 0; c < side; ++c) {
      const index_t i = r * side + c;
      for (const index_t j : {r * side + (c + 1) % side, (r + 1) % side * side + c}) {
        graph.add_factor(Ids{i, j}, graph.add_table(FactorTable::dense(
                                        {2, 2}, std::vector<double>(*random_numbers(rng, 4)))));
      }
    }
  }
  graph.connect();
  return graph;
}

}  // namespace

TEST(small_graphs_are_solved_at_once) {
  Rng rng(11);
  for (int trial = 0; trial < 100; ++trial) {
    const FactorGraph graph = random_graph(rng, 7, 12, 3);
    Ids labels = random_labels(rng, graph);
    MapSearch search(graph, std::uint64_t{7});
    const double score = search.improve(labels, {.work = 1e5});
    CHECK(search.optimal());
    CHECK_NEAR(score, graph.score(labels), 1e-12);
    CHECK_NEAR(score, best_score(graph), 1e-9);
  }
}

TEST(a_search_limited_by_work_repeats_itself) {
  Rng rng(12);
  const FactorGraph graph = random_torus(rng, 24);
  const Ids start = random_labels(rng, graph);
  Ids first = start, second = start, other = start;
  const MapSearchBudget budget{.work = 3e7};
  const double score = MapSearch(graph, std::uint64_t{1}).improve(first, budget);
  CHECK(score > graph.score(start));
  CHECK(MapSearch(graph, std::uint64_t{1}).improve(second, budget) == score);
  CHECK(first == second);
  MapSearch(graph, std::uint64_t{2}).improve(other, budget);
  CHECK(graph.score(other) > graph.score(start));
}

TEST(a_search_never_loses_and_a_target_ends_it) {
  Rng rng(13);
  const FactorGraph graph = random_torus(rng, 24);
  Ids labels = random_labels(rng, graph);
  double last = graph.score(labels);
  MapSearch search(graph, std::uint64_t{3});
  for (int round = 0; round < 5; ++round) {
    const double score = search.improve(labels, {.work = 3e6});
    CHECK(score >= last - 1e-9);
    CHECK_NEAR(score, graph.score(labels), 1e-9);
    last = score;
  }
  search.improve(labels, {.target = last - 1.0});  // no other limit: it must end
  CHECK(graph.score(labels) >= last - 1e-9);
}

TEST(a_stop_request_ends_the_search) {
  Rng rng(14);
  const FactorGraph graph = random_torus(rng, 24);
  Ids labels = random_labels(rng, graph);
  const double before = graph.score(labels);
  Monitor monitor;
  monitor.request_stop();
  MapSearch search(graph, std::uint64_t{3});
  CHECK(search.improve(labels, {.monitor = &monitor}) >= before);
}

TEST(candidates_keep_block_moves_inside_the_lists) {
  // Labels 2 and 3 are worse alone, and better together: only a block move with them finds it.
  FactorGraph graph;
  for (int i = 0; i < 2; ++i) graph.add_variable(std::vector<double>{1.0, 0.0, 0.0, 0.0});
  std::vector<double> cells(16, 0.0);
  cells[2 * 4 + 2] = 5.0;
  cells[3 * 4 + 3] = 9.0;
  graph.add_factor(Ids{0, 1}, graph.add_table(FactorTable::dense({4, 4}, cells)));
  graph.connect();
  LabelLists lists;
  for (int i = 0; i < 2; ++i) {
    lists.labels.insert(lists.labels.end(), {0, 2});
    lists.close();
  }
  Ids labels{0, 0};
  MapSearch search(graph, std::uint64_t{1});
  CHECK_NEAR(search.improve(labels, {.work = 1e4}, &lists), 5.0, 1e-12);
  CHECK(!search.optimal());
  CHECK_NEAR(search.improve(labels, {.work = 1e4}), 9.0, 1e-12);
  CHECK(search.optimal());
}

TEST(a_walk_comes_back_to_the_best_labels_that_it_saw) {
  Rng rng(13);
  for (int trial = 0; trial < 40; ++trial) {
    const FactorGraph graph = random_graph(rng, 9, 16, 4);
    ScoredLabels current(graph);
    TabuWalk walk(graph);
    current.start(random_labels(rng, graph));
    double before = current.score();
    for (int round = 0; round < 5; ++round) {
      walk.run(current, 2, 60, 1e6, rng, [] { return false; });
      CHECK(current.score() >= before - 1e-9);
      CHECK_NEAR(current.score(), graph.score(current.labels()), 1e-9);
      before = current.score();
    }
    // no single label is better than where it came back to
    for (index_t i = 0; i < graph.n_variables(); ++i) {
      for (const double score : current.scores_of(i)) {
        CHECK(score <= current.scores_of(i)[at(current[i])] + 1e-9);
      }
    }
  }
}

TEST(a_walk_stops_when_asked_and_keeps_to_its_work) {
  Rng rng(14);
  const FactorGraph graph = random_torus(rng, 30);
  ScoredLabels current(graph);
  TabuWalk walk(graph);
  const Ids start = random_labels(rng, graph);
  current.start(start);
  const double begin = current.work();
  walk.run(current, 5, 1'000'000, 1e6, rng, [] { return false; });
  CHECK(current.work() - begin < 1.1e6);
  CHECK(current.score() > graph.score(start));
  int asked = 0;
  walk.run(current, 5, 1'000'000, 1e12, rng, [&] { return ++asked == 3; });
  CHECK(asked == 3);
}
