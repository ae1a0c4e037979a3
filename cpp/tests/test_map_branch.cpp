// Branch and bound against all assignments; its limits leave valid bounds.
#include "sublearn/solvers/map/branch.hpp"

#include <vector>

#include "check.hpp"
#include "dual_graphs.hpp"

using namespace sublearn;
using namespace sublearn::testing;

namespace {

MapMessages swept(const FactorGraph& graph, int n_sweeps) {
  MapMessages messages(graph);
  for (int sweep = 0; sweep < n_sweeps; ++sweep) {
    messages.sweep(sweep % 2 ? SweepDirection::backward : SweepDirection::forward, true);
  }
  return messages;
}

/// Hard for the linear program: pairs and triples matter more than single labels.
FactorGraph frustrated_graph(Rng& rng, const GraphPlan& plan) {
  auto graph = random_graph(rng, plan);
  for (double& score : graph.unary) score *= 0.1;
  return graph;
}

void check_report(const FactorGraph& graph, const BranchReport& report, double best) {
  CHECK_NEAR(report.score, graph.score(report.labels), 1e-12);
  CHECK(report.score <= best + 1e-12);
  CHECK(report.bound >= best - 1e-12);
  if (report.is_optimal) {
    CHECK_NEAR(report.score, best, 1e-7);
    CHECK_NEAR(report.bound, best, 1e-7);
  }
}

}  // namespace

TEST(branch_and_bound_finds_the_best_assignment) {
  Rng rng(1);
  std::int64_t n_nodes = 0;
  for (int round = 0; round < 150; ++round) {
    const auto graph = frustrated_graph(rng, {8, 8 + round % 12, round % 2 ? 3 : 2, 2 + round % 3});
    auto messages = swept(graph, 2 + round % 5);
    std::vector<index_t> start(messages.labels().begin(), messages.labels().end());
    if (round % 3 == 0) std::fill(start.begin(), start.end(), 0);
    const auto report = MapBranch(graph, messages, start).run();
    CHECK(report.is_optimal);
    check_report(graph, report, best_score(graph));
    n_nodes += report.n_nodes;
  }
  CHECK(n_nodes > 300);  // else nothing was branched on
}

TEST(branch_and_bound_within_a_limit_is_honest) {
  Rng rng(2);
  int n_cut = 0;
  for (int round = 0; round < 60; ++round) {
    const auto graph = frustrated_graph(rng, {9, 24, 3, 3});
    auto messages = swept(graph, 2);
    const std::vector<index_t> start(graph.domain.size(), 0);
    BranchSettings settings;
    settings.work_limit = 100.0 * round;
    const auto report = MapBranch(graph, messages, start, settings).run();
    check_report(graph, report, best_score(graph));
    n_cut += !report.is_optimal;
  }
  CHECK(n_cut > 5);
  CHECK(n_cut < 55);
}

TEST(branch_and_bound_leaves_what_is_too_large) {
  Rng rng(3);
  const auto graph = frustrated_graph(rng, {9, 24, 3, 3});
  auto messages = swept(graph, 2);
  const std::vector<index_t> start(graph.domain.size(), 0);
  BranchSettings settings;
  settings.max_cells = 4;
  const auto report = MapBranch(graph, messages, start, settings).run();
  CHECK(!report.is_optimal);
  CHECK(report.n_nodes == 0);
  CHECK(report.bound == messages.bound());
  CHECK(report.labels == start);
}

TEST(branch_and_bound_stops_on_request) {
  Rng rng(4);
  const auto graph = frustrated_graph(rng, {9, 24, 3, 3});
  auto messages = swept(graph, 2);
  const std::vector<index_t> start(graph.domain.size(), 0);
  Monitor monitor;
  monitor.request_stop();
  const auto report = MapBranch(graph, messages, start).run(&monitor);
  CHECK(!report.is_optimal);
  check_report(graph, report, best_score(graph));
}

TEST(branch_and_bound_gives_the_same_answer_twice) {
  Rng rng(5);
  const auto graph = frustrated_graph(rng, {10, 30, 3, 3});
  const std::vector<index_t> start(graph.domain.size(), 0);
  auto first = swept(graph, 4), second = swept(graph, 4);
  const auto one = MapBranch(graph, first, start).run();
  const auto two = MapBranch(graph, second, start).run();
  CHECK(one.labels == two.labels);
  CHECK(one.n_nodes == two.n_nodes);
  CHECK(one.bound == two.bound);
}

TEST(a_target_is_beaten_or_proved_out_of_reach) {
  Rng rng(6);
  int n_beaten = 0, n_proved = 0;
  for (int round = 0; round < 60; ++round) {
    const auto graph = frustrated_graph(rng, {8, 16, round % 2 ? 3 : 2, 3});
    const double best = best_score(graph);
    auto messages = swept(graph, 2);
    const std::vector<index_t> start(graph.domain.size(), 0);
    std::vector<double> weights(graph.domain.size(), 1.0);
    BranchSettings settings;
    settings.target = best + (round % 4 < 2 ? -0.1 : 0.1);
    settings.weights = &weights;
    const auto report = MapBranch(graph, messages, start, settings).run();
    CHECK_NEAR(report.score, graph.score(report.labels), 1e-12);
    CHECK(report.bound >= best - 1e-12);
    if (settings.target < best) {
      CHECK_NEAR(report.score, best, 1e-7);
      n_beaten += report.is_optimal;
    } else {
      CHECK(!report.is_optimal || report.score >= settings.target);
      CHECK(report.bound <= settings.target + 1e-7);
      ++n_proved;
    }
  }
  CHECK(n_beaten == 30);
  CHECK(n_proved == 30);
}

TEST(large_neighbourhoods_never_lose_and_mostly_find_the_best) {
  Rng rng(7), choices(8);
  int n_best = 0;
  for (int round = 0; round < 40; ++round) {
    const auto graph = frustrated_graph(rng, {9, 24, 3, 3});
    auto messages = swept(graph, 2);
    const std::vector<index_t> start(graph.domain.size(), 0);
    BranchSettings settings;
    settings.work_limit = 2e6;
    double size = 4.0;
    const auto report = MapBranch(graph, messages, start, settings).look_around(size, choices);
    CHECK_NEAR(report.score, graph.score(report.labels), 1e-12);
    CHECK(report.score >= graph.score(start));
    CHECK(report.score <= best_score(graph) + 1e-12);
    CHECK(!report.is_optimal);
    n_best += report.score > best_score(graph) - 1e-7;
  }
  CHECK(n_best >= 36);
}
