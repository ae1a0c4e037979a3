// Messages against their definition for every form of table; bounds against all assignments.
#include "sublearn/solvers/map/messages.hpp"

#include <vector>

#include "check.hpp"
#include "dual_graphs.hpp"
#include "sublearn/solvers/map/tables.hpp"

using namespace sublearn;
using namespace sublearn::testing;

namespace {

using Form = MessageTable::Form;

/// max over the cells with y_p = a, one cell after another.
std::vector<double> slow_message(const FactorTable& table, index_t p, double scale,
                                 const std::vector<std::vector<double>>& messages) {
  std::vector<double> out(static_cast<std::size_t>(table.shape[static_cast<std::size_t>(p)]),
                          -std::numeric_limits<double>::infinity());
  std::vector<index_t> state(table.shape.size());
  for (offset_t cell = 0; cell < table.n_cells(); ++cell) {
    offset_t rest = cell;
    double value = scale * table.at(cell);
    for (std::size_t q = table.shape.size(); q-- > 0;) {
      state[q] = static_cast<index_t>(rest % table.shape[q]);
      rest /= table.shape[q];
      if (q != static_cast<std::size_t>(p)) {
        value -= messages[q][static_cast<std::size_t>(state[q])];
      }
    }
    double& best = out[static_cast<std::size_t>(state[static_cast<std::size_t>(p)])];
    best = std::max(best, value);
  }
  return out;
}

void check_messages(const FactorTable& table, Form form, Rng& rng) {
  const MessageTable prepared(table);
  CHECK(prepared.form() == form);
  std::vector<std::vector<double>> messages;
  std::vector<const double*> pointers;
  for (const index_t n : table.shape) {
    messages.push_back(random_scores(rng, static_cast<std::size_t>(n), 3.0));
  }
  for (const auto& message : messages) pointers.push_back(message.data());
  MessageScratch scratch;
  for (const double scale : {1.0, 0.3, 0.0}) {
    for (index_t p = 0; p < table.arity(); ++p) {
      const auto expected = slow_message(table, p, scale, messages);
      std::vector<double> out(expected.size());
      prepared.message(p, scale, pointers, out.data(), scratch);
      for (std::size_t a = 0; a < out.size(); ++a) CHECK_NEAR(out[a], expected[a], 1e-12);
      if (table.arity() != 2) continue;
      std::vector<double> given(out.size(), 1.0);
      prepared.add_given(p, scale, 1, given);
      for (index_t a = 0; a < static_cast<index_t>(given.size()); ++a) {
        const double cell = p == 0 ? table.pair(a, 1) : table.pair(1, a);
        CHECK_NEAR(given[static_cast<std::size_t>(a)], 1.0 + scale * cell, 1e-12);
      }
    }
  }
}

std::vector<double> line(index_t left, index_t right, double slope, double floor) {
  std::vector<double> values;
  for (index_t d = 1 - left; d < right; ++d)
    values.push_back(std::max(1.5 - slope * std::abs(d), floor));
  return values;
}

std::shared_ptr<const FactorTable> as_dense(const FactorTable& table) {
  std::vector<double> cells;
  for (offset_t cell = 0; cell < table.n_cells(); ++cell) cells.push_back(table.at(cell));
  return FactorTable::dense(table.shape, cells);
}

FactorGraph random_chain(Rng& rng, index_t n) {
  FactorGraph graph;
  for (index_t i = 0; i < n; ++i) graph.add_variable(random_scores(rng, 3));
  for (index_t i = 1; i < n; ++i) {
    const std::vector<index_t> scope{i, i - 1};
    graph.add_factor(scope, graph.add_table(dense_table(rng, {3, 3})));
  }
  graph.connect();
  return graph;
}

}  // namespace

TEST(messages_of_dense_tables_are_max_marginals) {
  Rng rng(1);
  check_messages(*dense_table(rng, {2, 2}), Form::binary, rng);
  check_messages(*dense_table(rng, {2, 2, 2}), Form::cube, rng);
  check_messages(*dense_table(rng, {2, 2, 2, 2}), Form::rows, rng);
  for (const index_t n : {2, 3, 4, 5, 7, 8, 9, 16, 17, 21, 33}) {
    check_messages(*dense_table(rng, {n, 5}), Form::rows, rng);
    check_messages(*dense_table(rng, {6, n}), Form::rows, rng);
    check_messages(*dense_table(rng, {3, n, 2}), Form::rows, rng);
    check_messages(*dense_table(rng, {2, 2, 3, n}), Form::rows, rng);
  }
}

TEST(messages_of_difference_tables_take_short_cuts) {
  Rng rng(2);
  for (const auto& [left, right] : {std::pair<index_t, index_t>{9, 9}, {12, 7}, {7, 12}}) {
    const std::vector<index_t> shape{left, right};
    const auto n = static_cast<std::size_t>(left + right - 1);
    for (const double on : {2.0, -2.0}) {
      std::vector<double> potts(n, 0.5);
      potts[static_cast<std::size_t>(left) - 1] = on;
      const auto table = difference_table(shape, potts);
      check_messages(*table, Form::diagonal, rng);
      check_messages(*as_dense(*table), Form::diagonal, rng);
    }
    const auto truncated = difference_table(shape, line(left, right, 0.3, 0.2));
    check_messages(*truncated, Form::truncated, rng);
    check_messages(*as_dense(*truncated), Form::truncated, rng);
    const auto uneven = difference_table(shape, random_scores(rng, n));
    check_messages(*uneven, Form::rows, rng);
    check_messages(*as_dense(*uneven), Form::rows, rng);
  }
}

TEST(messages_of_sparse_and_low_rank_tables_are_max_marginals) {
  Rng rng(3);
  check_messages(*sparse_table(rng, {5, 6}, 0.3), Form::rows, rng);
  check_messages(*sparse_table(rng, {3, 4, 2}, 0.3), Form::rows, rng);
  check_messages(*sparse_table(rng, {300, 230}, 0.02), Form::sparse, rng);
  check_messages(*low_rank_table(rng, {5, 6}, 3), Form::rows, rng);
  check_messages(*low_rank_table(rng, {2100, 2000}, 2), Form::inner, rng);
}

TEST(a_row_of_a_sparse_table_that_is_listed_in_full_has_no_default) {
  Rng rng(4);
  TableArrays arrays;
  for (offset_t cell = 300; cell < 600; ++cell) arrays.cells.push_back(cell);
  arrays.values.assign(300, -5.0);
  check_messages(*table_of(TableKind::sparse, {300, 300}, arrays), Form::sparse, rng);
}

TEST(bounds_fall_and_stay_above_every_assignment) {
  Rng rng(5);
  for (int round = 0; round < 60; ++round) {
    const index_t positions = round % 3 == 0 ? 2 : 4;
    const auto graph = random_graph(rng, {7, 11, round % 2 ? 4 : 2, positions});
    const double best = best_score(graph);
    MapMessages messages(graph);
    double before = messages.bound();
    for (int sweep = 0; sweep < 12; ++sweep) {
      const auto direction = sweep % 2 ? SweepDirection::backward : SweepDirection::forward;
      CHECK(messages.sweep(direction, true));
      CHECK(messages.bound() <= before);
      CHECK(messages.bound() >= best - 1e-9);
      CHECK_NEAR(messages.recompute_bound(), messages.bound(), 1e-9);
      CHECK_NEAR(messages.score(), graph.score(messages.labels()), 1e-12);
      before = messages.bound();
    }
  }
}

TEST(label_bounds_hold_for_every_assignment) {
  Rng rng(10);
  for (int round = 0; round < 20; ++round) {
    const auto graph = random_graph(rng, {7, 11, 3, 3});
    MapMessages messages(graph);
    for (int sweep = 0; sweep < 6; ++sweep) {
      messages.sweep(sweep % 2 ? SweepDirection::backward : SweepDirection::forward, false);
    }
    const auto bounds = messages.label_bounds();
    std::vector<index_t> labels(graph.domain.size(), 0);
    do {
      for (std::size_t i = 0; i < labels.size(); ++i) {
        const auto place = static_cast<std::size_t>(graph.unary_begin[i] + labels[i]);
        CHECK(graph.score(labels) <= bounds[place] + 1e-9);
      }
    } while (next_assignment(graph, labels));
  }
}

TEST(chains_are_solved_by_two_sweeps) {
  Rng rng(6);
  for (int round = 0; round < 20; ++round) {
    const auto graph = random_chain(rng, 8);
    const double best = best_score(graph);
    MapMessages messages(graph);
    messages.sweep(SweepDirection::forward, false);
    CHECK_NEAR(messages.bound(), best, 1e-9);
    messages.sweep(SweepDirection::backward, true);
    CHECK_NEAR(messages.score(), best, 1e-9);
    messages.sweep(SweepDirection::forward, false);
    CHECK(messages.stalled(messages.score()));
  }
}

TEST(a_better_order_is_taken) {
  Rng rng(7);
  const auto graph = random_chain(rng, 9);
  const std::vector<index_t> order{8, 7, 6, 5, 4, 3, 2, 1, 0};
  MapMessages messages(graph, order);
  messages.sweep(SweepDirection::forward, true);
  messages.sweep(SweepDirection::backward, true);
  CHECK_NEAR(messages.score(), best_score(graph), 1e-9);
}

TEST(a_sweep_that_is_stopped_keeps_bound_and_labels) {
  Rng rng(8);
  const auto graph = random_graph(rng, {7, 11, 4, 3});
  MapMessages messages(graph);
  messages.sweep(SweepDirection::forward, true);
  const double bound = messages.bound(), score = messages.score();
  Monitor monitor;
  monitor.request_stop();
  CHECK(!messages.sweep(SweepDirection::backward, true, &monitor));
  CHECK(messages.bound() == bound);
  CHECK(messages.score() == score);
}

TEST(memory_is_known_before_it_is_taken) {
  Rng rng(9);
  const auto graph = random_chain(rng, 5);
  CHECK(MapMessages::memory_needed(graph) >= (5 + 8) * 3 * sizeof(double));
  CHECK(MapMessages::work_per_sweep(graph) == 4 * 9);
}
