// Tables of three and more ends: the search line by line against a look at every state, while cells
// rise and fall; and a fit with factors of up to four nodes.
#include "sublearn/search/line_table.hpp"

#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "check.hpp"
#include "sublearn/core/rng.hpp"
#include "sublearn/solvers/structured/gdmm.hpp"

using namespace sublearn;

namespace {

/// Every state, counted up; the best score.
double slow_best(const LineTable& table, std::size_t n_labels, std::size_t n_ends, double scale,
                 const std::vector<std::vector<double>>& costs) {
  double best = -std::numeric_limits<double>::infinity();
  const auto values = table.values();
  for (std::size_t cell = 0; cell < values.size(); ++cell) {
    double score = scale * values[cell];
    std::size_t rest = cell;
    for (std::size_t end = n_ends; end-- > 0; rest /= n_labels)
      score -= costs[end][rest % n_labels];
    best = std::max(best, score);
  }
  return best;
}

}  // namespace

TEST(a_search_by_lines_finds_the_best_of_all_states) {
  Rng rng(3);
  for (std::size_t n_ends = 2; n_ends <= LineTable::kMostEnds; ++n_ends) {
    const std::size_t n_labels = 5;
    LineTable table(static_cast<index_t>(n_labels), n_ends);
    std::vector<std::vector<double>> costs(LineTable::kMostEnds, std::vector<double>(n_labels));
    for (int round = 0; round < 300; ++round) {
      LineTable::Labels labels{};
      for (auto& label : labels) label = static_cast<index_t>(rng.below(5));
      table.add(labels.data(), 2.0 * rng.uniform() - 1.0);  // falls as often as it rises
      for (auto& cost : costs) cost[rng.below(5)] = rng.uniform() - 0.5;
      const double scale = round % 7 == 0 ? 0.0 : 2.0 * rng.uniform();
      offset_t work = 0;
      const LineTable::Best none{-std::numeric_limits<double>::infinity(), {}};
      const auto found = table.search(scale, costs, none, work);
      CHECK(std::abs(found.value - slow_best(table, n_labels, n_ends, scale, costs)) < 1e-12);
      double score = scale * table.at(found.labels.data());
      for (std::size_t end = 0; end < n_ends; ++end) {
        score -= costs[end][static_cast<std::size_t>(found.labels[end])];
      }
      CHECK(std::abs(score - found.value) < 1e-12);
      CHECK(work <= static_cast<offset_t>(2 * table.values().size()));
    }
  }
}

TEST(factors_of_four_nodes_raise_the_dual_to_their_optimum) {
  // One sample of five nodes without features: a factor of four and a pair that share node 0.
  const std::vector<index_t> indptr(6, 0), indices, truth{0, 1, 0, 1, 1};
  const std::vector<double> values;
  const std::vector<offset_t> node_begin{0, 5}, factor_begin{0, 2};
  const std::vector<index_t> scope{0, 1, 2, 3, 4, 0}, table{0, 1}, arity{4, 2};
  StructuredData<double, index_t> data;
  data.X.indptr = indptr.data();
  data.X.indices = indices.data();
  data.X.values = values.data();
  data.X.n_major = 5;
  data.X.n_minor = 1;
  data.truth = truth;
  data.n_labels = 2;
  data.node_begin = node_begin;
  data.factor_begin = factor_begin;
  data.scope = scope;
  data.table = table;
  data.arity = arity;
  GdmmLearnSettings settings;
  settings.C = 0.1;
  GdmmLearn<double, index_t, 4> learner(data, settings);
  double best = 0.0;
  for (int pass = 0; pass < 300; ++pass) {
    learner.pass(nullptr);
    best = std::max(best, learner.feasible_dual());
  }
  // With C this small q leaves the truth altogether: C (mistakes) - 1/2 |T|^2 is
  // C 5 - 1/2 (2 C^2 (1 + shares of the other states)), between the two extremes of those shares.
  CHECK(best > 0.5 - 0.5 * 4.0 * 0.01 - 1e-6);
  CHECK(best <= 0.5);
  CHECK(std::abs(best - learner.dual_value()) < 1e-3);
}
