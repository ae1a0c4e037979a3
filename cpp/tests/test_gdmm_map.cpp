// The searches of GDMM over pairwise tables, its bounds, and what it excludes.
#include "sublearn/solvers/map/gdmm.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "check.hpp"
#include "small_graphs.hpp"
#include "sublearn/search/heap_table.hpp"
#include "sublearn/search/sorted_table.hpp"
#include "sublearn/solvers/map/gdmm_binary.hpp"
#include "sublearn/solvers/map/gdmm_binary_printed.hpp"
#include "sublearn/solvers/map/gdmm_printed.hpp"
#include "sublearn/solvers/map/solver.hpp"

using namespace sublearn;
using namespace sublearn::testing;

namespace {

using Ids = std::vector<index_t>;

/// Messages of random labels of one end; some labels may be excluded.
struct RandomEnd {
  Ids labels, slot_of;
  std::vector<double> values;
  bool has_others = false;

  RandomEnd(Rng& rng, index_t n_labels, bool excludes)
      : slot_of(static_cast<std::size_t>(n_labels), kNoSlot) {
    for (index_t label = 0; label < n_labels; ++label) {
      const auto draw = rng.below(4);
      auto& slot = slot_of[static_cast<std::size_t>(label)];
      if (draw == 0) {
        slot = static_cast<index_t>(labels.size());
        labels.push_back(label);
        values.push_back(4.0 * rng.uniform() - 2.0);
      } else if (draw == 1 && excludes) {
        slot = kExcluded;
      } else {
        has_others = true;
      }
    }
  }

  SparseMessage message() const { return {labels, values, slot_of, has_others}; }
  double cost(index_t label) const {
    const index_t slot = slot_of[static_cast<std::size_t>(label)];
    if (slot == kExcluded) return std::numeric_limits<double>::infinity();
    return slot == kNoSlot ? 0.0 : values[static_cast<std::size_t>(slot)];
  }
};

template <class Cells>
double best_by_scan(const Cells& table, index_t n, index_t m, double scale, const RandomEnd& rows,
                    const RandomEnd& columns) {
  double best = -std::numeric_limits<double>::infinity();
  for (index_t a = 0; a < n; ++a) {
    for (index_t b = 0; b < m; ++b) {
      best = std::max(best, scale * table.pair(a, b) - rows.cost(a) - columns.cost(b));
    }
  }
  return best;
}

}  // namespace

TEST(sorted_table_search_is_exact) {
  Rng rng(1);
  for (int trial = 0; trial < 300; ++trial) {
    const index_t n = 1 + static_cast<index_t>(rng.below(12));
    const index_t m = 1 + static_cast<index_t>(rng.below(12));
    const auto table = random_table(rng, {n, m});
    const SortedTable sorted(*table);
    const double scale = trial % 10 == 0 ? 0.0 : rng.uniform();
    std::size_t first_row = 0;
    offset_t work = 0;
    const RandomEnd rows(rng, n, trial % 2 == 1), columns(rng, m, trial % 3 == 1);
    const BestCell best =
        best_cell(sorted, scale, rows.message(), columns.message(), {}, first_row, work);
    const double expected = best_by_scan(*table, n, m, scale, rows, columns);
    CHECK(best.value == expected || std::abs(best.value - expected) < 1e-12);
  }
}

TEST(heap_table_search_is_exact_while_cells_change) {
  Rng rng(2);
  for (int trial = 0; trial < 100; ++trial) {
    const index_t n = 1 + static_cast<index_t>(rng.below(10));
    const index_t m = 1 + static_cast<index_t>(rng.below(10));
    HeapTable table(n, m);
    for (int change = 0; change < 30; ++change) {
      table.add(static_cast<index_t>(rng.below(static_cast<std::uint32_t>(n))),
                static_cast<index_t>(rng.below(static_cast<std::uint32_t>(m))),
                2.0 * rng.uniform() - 1.0);
      const RandomEnd rows(rng, n, false), columns(rng, m, false);
      std::size_t unused = 0;
      offset_t work = 0;
      const BestCell best =
          best_cell(table, 0.7, rows.message(), columns.message(), {}, unused, work);
      CHECK_NEAR(best.value, best_by_scan(table, n, m, 0.7, rows, columns), 1e-12);
    }
  }
}

TEST(gdmm_bounds_every_assignment_and_excludes_none_that_is_better) {
  Rng rng(3);
  for (int trial = 0; trial < 40; ++trial) {
    const FactorGraph graph = random_graph(rng, 6, 10, 4);
    const double optimum = best_score(graph);
    GdmmMap dual(graph, {});
    for (int iter = 0; iter < 60; ++iter) {
      dual.iterate(nullptr);
      if (iter % 20 != 19) continue;
      const double bound = dual.bound(nullptr);
      CHECK(bound >= optimum - 1e-9);
      dual.exclude(bound, optimum - 0.1);  // assignments above that stay
    }
  }
}

TEST(gdmm_is_the_same_for_any_number_of_threads) {
  Rng rng(4);
  const FactorGraph graph = random_graph(rng, 200, 400, 5);
  GdmmMap one(graph, {0.0, 0.0, 1}), three(graph, {0.0, 0.0, 3});
  for (int iter = 0; iter < 30; ++iter) {
    one.iterate(nullptr);
    three.iterate(nullptr);
  }
  CHECK(one.bound(nullptr) == three.bound(nullptr));
  CHECK(one.rho() == three.rho());
}

TEST(gdmm_for_binary_factors_finds_the_bound_of_the_general_one) {
  Rng rng(5);
  for (int trial = 0; trial < 20; ++trial) {
    FactorGraph graph;
    for (int i = 0; i < 8; ++i) graph.add_variable(*random_numbers(rng, 2));
    for (index_t i = 0; i < 8; ++i) {
      for (index_t j = 0; j < i; ++j) {
        if (rng.below(2) == 0) continue;
        graph.add_factor(Ids{i, j}, graph.add_table(FactorTable::dense(
                                        {2, 2}, std::vector<double>(*random_numbers(rng, 4)))));
      }
    }
    graph.connect();
    const double optimum = best_score(graph);
    GdmmMap general(graph, {});
    GdmmBinary binary(graph, {});
    GdmmPrinted printed(graph, {});
    GdmmBinaryPrinted binary_printed(graph, {});
    CHECK(binary.bound(nullptr) >= optimum - 1e-9);
    CHECK(printed.bound(nullptr) >= optimum - 1e-9);
    CHECK(binary_printed.bound(nullptr) >= optimum - 1e-9);
    for (int iter = 0; iter < 1500; ++iter) {
      general.iterate(nullptr);
      binary.iterate(nullptr);
      printed.iterate(nullptr);
      binary_printed.iterate(nullptr);
      if (iter % 100 == 0) CHECK(binary_printed.bound(nullptr) >= optimum - 1e-9);
    }
    CHECK_NEAR(printed.bound(nullptr), general.bound(nullptr), 1e-2);
    CHECK_NEAR(binary_printed.bound(nullptr), general.bound(nullptr), 1e-2);
    CHECK(binary.bound(nullptr) >= optimum - 1e-9);
    CHECK_NEAR(binary.bound(nullptr), general.bound(nullptr), 1e-2);
  }
}

TEST(map_solver_solves_small_graphs) {
  Rng rng(6);
  for (int trial = 0; trial < 60; ++trial) {
    const FactorGraph graph = random_graph(rng, 7, 12, 4);
    MapSettings settings;
    settings.parts = trial % 2 == 0 ? MapParts::everything : MapParts::gdmm_and_search;
    settings.search_work = 1e5;
    Monitor monitor;
    const MapAnswer answer = MapSolver(settings, monitor).solve(graph, {});
    const double optimum = best_score(graph);
    CHECK_NEAR(answer.score, optimum, 1e-9);
    CHECK(answer.bound >= optimum - 1e-9);
  }
}

TEST(map_solver_stops_when_asked) {
  Rng rng(7);
  const FactorGraph graph = random_graph(rng, 300, 900, 6);
  Monitor monitor;
  monitor.request_stop();
  const MapAnswer answer = MapSolver({}, monitor).solve(graph, {});
  CHECK(std::isfinite(answer.score));
  CHECK(answer.bound >= answer.score);
}
