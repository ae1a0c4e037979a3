// MaxFlow against breadth-first augmentation in a matrix of capacities, at once and step by step.
#include "sublearn/core/max_flow.hpp"

#include <algorithm>
#include <queue>
#include <vector>

#include "check.hpp"
#include "sublearn/core/rng.hpp"

using namespace sublearn;

namespace {

using Capacity = MaxFlow::Capacity;

/// Slow and obvious: node n is the source, n + 1 the sink.
struct MatrixFlow {
  std::size_t n;
  std::vector<std::vector<Capacity>> rest;
  Capacity flow = 0;

  explicit MatrixFlow(index_t nodes)
      : n(static_cast<std::size_t>(nodes)), rest(n + 2, std::vector<Capacity>(n + 2, 0)) {}

  void add_edge(index_t i, index_t j, Capacity there, Capacity back) {
    rest[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)] += there;
    rest[static_cast<std::size_t>(j)][static_cast<std::size_t>(i)] += back;
  }
  void add_terminal(index_t i, Capacity capacity) {
    if (capacity > 0) rest[n][static_cast<std::size_t>(i)] += capacity;
    if (capacity < 0) rest[static_cast<std::size_t>(i)][n + 1] -= capacity;
  }

  /// Steps of a search from `start`, along arcs or against them.
  std::vector<std::size_t> search(std::size_t start, bool against) const {
    std::vector<std::size_t> parent(n + 2, n + 2);
    std::queue<std::size_t> queue({start});
    parent[start] = start;
    for (; !queue.empty(); queue.pop()) {
      const std::size_t i = queue.front();
      for (std::size_t j = 0; j < n + 2; ++j) {
        if (parent[j] != n + 2 || (against ? rest[j][i] : rest[i][j]) == 0) continue;
        parent[j] = i;
        queue.push(j);
      }
    }
    return parent;
  }

  void solve() {
    for (auto parent = search(n, false); parent[n + 1] != n + 2; parent = search(n, false)) {
      Capacity amount = 1'000'000'000;
      for (std::size_t j = n + 1; j != n; j = parent[j]) {
        amount = std::min(amount, rest[parent[j]][j]);
      }
      for (std::size_t j = n + 1; j != n; j = parent[j]) {
        rest[parent[j]][j] -= amount;
        rest[j][parent[j]] += amount;
      }
      flow += amount;
    }
  }
};

void check_equal(const MaxFlow& fast, const MatrixFlow& slow) {
  CHECK(fast.flow() == slow.flow);
  const auto from_source = slow.search(slow.n, false);
  const auto to_sink = slow.search(slow.n + 1, true);
  for (std::size_t i = 0; i < slow.n; ++i) {
    const auto side = fast.side(static_cast<index_t>(i));
    CHECK((side == MaxFlow::Side::source) == (from_source[i] != slow.n + 2));
    CHECK((side == MaxFlow::Side::sink) == (to_sink[i] != slow.n + 2));
  }
}

Capacity draw(Rng& rng, std::uint32_t most) { return static_cast<Capacity>(rng.below(most)); }

}  // namespace

TEST(max_flow_agrees_with_a_slow_twin_before_and_after_additions) {
  Rng rng(1);
  for (int round = 0; round < 300; ++round) {
    const auto n = static_cast<index_t>(2 + rng.below(25));
    MaxFlow fast(n);
    MatrixFlow slow(n);
    const int n_edges = n * static_cast<int>(1 + rng.below(4));
    for (int e = 0; e < n_edges; ++e) {
      const auto i = static_cast<index_t>(rng.below(static_cast<std::uint32_t>(n)));
      const auto j = static_cast<index_t>(rng.below(static_cast<std::uint32_t>(n)));
      if (i == j) continue;
      const Capacity there = draw(rng, 6), back = draw(rng, 3);
      fast.add_edge(i, j, there, back);
      slow.add_edge(i, j, there, back);
    }
    for (int step = 0; step < 8; ++step) {
      const int n_changes = step == 0 ? n : 1 + static_cast<int>(rng.below(3));
      for (int k = 0; k < n_changes; ++k) {
        const auto i = static_cast<index_t>(rng.below(static_cast<std::uint32_t>(n)));
        const Capacity capacity = draw(rng, 21) - 10;
        fast.add_terminal(i, capacity);
        slow.add_terminal(i, capacity);
      }
      CHECK(fast.solve());
      slow.solve();
      check_equal(fast, slow);
    }
  }
}

TEST(max_flow_that_is_stopped_goes_on) {
  Rng rng(2);
  const index_t n = 4000;
  MaxFlow stopped(n), whole(n);
  for (index_t i = 0; i + 1 < n; ++i) {
    for (MaxFlow* network : {&stopped, &whole}) network->add_edge(i, i + 1, 5 + i % 7, i % 3);
  }
  for (index_t i = 0; i < n; ++i) {
    const Capacity capacity = draw(rng, 9) - 4;
    for (MaxFlow* network : {&stopped, &whole}) network->add_terminal(i, capacity);
  }
  Monitor monitor;
  monitor.request_stop();
  CHECK(!stopped.solve(&monitor));
  CHECK(stopped.solve());
  CHECK(whole.solve());
  CHECK(stopped.flow() == whole.flow());
}
