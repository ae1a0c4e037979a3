// Random factor graphs with every kind of table, and the best assignment by trying all of them.
#pragma once

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "sublearn/core/factor_graph.hpp"
#include "sublearn/core/rng.hpp"

namespace sublearn::testing {

inline std::vector<double> random_scores(Rng& rng, std::size_t n, double width = 2.0) {
  std::vector<double> scores(n);
  for (double& score : scores) score = width * (rng.uniform() - 0.5);
  return scores;
}

/// Keeps the arrays of a table that is not dense.
struct TableArrays {
  std::vector<double> values;
  std::vector<offset_t> cells;
  std::vector<double> right;
};

inline std::shared_ptr<const FactorTable> table_of(TableKind kind, std::vector<index_t> shape,
                                                   TableArrays arrays) {
  auto owned = std::make_shared<const TableArrays>(std::move(arrays));
  auto table = std::make_shared<FactorTable>();
  table->kind = kind;
  table->shape = std::move(shape);
  table->values = owned->values;
  table->cells = owned->cells;
  table->right = owned->right;
  if (!owned->right.empty()) {
    table->rank = static_cast<index_t>(owned->right.size()) / table->shape[1];
  }
  table->owner = std::move(owned);
  return table;
}

inline std::shared_ptr<const FactorTable> dense_table(Rng& rng, std::vector<index_t> shape) {
  std::size_t n = 1;
  for (const index_t k : shape) n *= static_cast<std::size_t>(k);
  return FactorTable::dense(std::move(shape), random_scores(rng, n));
}

inline std::shared_ptr<const FactorTable> difference_table(std::vector<index_t> shape,
                                                           std::vector<double> values) {
  TableArrays arrays;
  arrays.values = std::move(values);
  return table_of(TableKind::difference, std::move(shape), std::move(arrays));
}

/// About a share of the cells is listed, with scores above and below the default of 0.25.
inline std::shared_ptr<const FactorTable> sparse_table(Rng& rng, std::vector<index_t> shape,
                                                       double share) {
  TableArrays arrays;
  offset_t n = 1;
  for (const index_t k : shape) n *= k;
  for (offset_t cell = 0; cell < n; ++cell) {
    if (rng.uniform() < share) arrays.cells.push_back(cell);
  }
  arrays.values = random_scores(rng, arrays.cells.size());
  auto table = std::make_shared<FactorTable>(
      *table_of(TableKind::sparse, std::move(shape), std::move(arrays)));
  table->default_value = 0.25;
  return table;
}

inline std::shared_ptr<const FactorTable> low_rank_table(Rng& rng, std::vector<index_t> shape,
                                                         index_t rank) {
  TableArrays arrays;
  arrays.values = random_scores(rng, static_cast<std::size_t>(shape[0] * rank));
  arrays.right = random_scores(rng, static_cast<std::size_t>(shape[1] * rank));
  return table_of(TableKind::low_rank, std::move(shape), std::move(arrays));
}

inline std::shared_ptr<const FactorTable> any_table(Rng& rng, std::vector<index_t> shape) {
  if (shape.size() > 2) {
    return rng.below(2) ? dense_table(rng, shape) : sparse_table(rng, shape, 0.3);
  }
  switch (rng.below(4)) {
    case 0:
      return sparse_table(rng, shape, 0.3);
    case 1: {
      const auto n = static_cast<std::size_t>(shape[0] + shape[1]) - 1;
      return difference_table(shape, random_scores(rng, n));
    }
    case 2:
      return low_rank_table(rng, shape, 2);
    default:
      return dense_table(rng, shape);
  }
}

struct GraphPlan {
  index_t n_variables = 7;
  index_t n_factors = 10;
  index_t most_labels = 4;
  index_t most_positions = 3;
};

inline FactorGraph random_graph(Rng& rng, const GraphPlan& plan) {
  FactorGraph graph;
  for (index_t i = 0; i < plan.n_variables; ++i) {
    const index_t labels =
        plan.most_labels == 2
            ? 2
            : 1 + static_cast<index_t>(rng.below(static_cast<std::uint32_t>(plan.most_labels)));
    graph.add_variable(random_scores(rng, static_cast<std::size_t>(labels)));
  }
  std::vector<index_t> all(static_cast<std::size_t>(plan.n_variables));
  for (index_t i = 0; i < plan.n_variables; ++i) all[static_cast<std::size_t>(i)] = i;
  for (index_t f = 0; f < plan.n_factors; ++f) {
    rng.shuffle(std::span<index_t>(all));
    const std::size_t arity = 2 + rng.below(static_cast<std::uint32_t>(plan.most_positions) - 1);
    const std::vector<index_t> scope(all.begin(), all.begin() + static_cast<offset_t>(arity));
    std::vector<index_t> shape;
    for (const index_t i : scope) shape.push_back(graph.domain[static_cast<std::size_t>(i)]);
    graph.add_factor(scope, graph.add_table(any_table(rng, shape)), 2.0 * rng.uniform());
  }
  graph.connect();
  return graph;
}

/// The next assignment in the order of counting; false after the last one.
inline bool next_assignment(const FactorGraph& graph, std::vector<index_t>& labels) {
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (++labels[i] < graph.domain[i]) return true;
    labels[i] = 0;
  }
  return false;
}

inline double best_score(const FactorGraph& graph) {
  std::vector<index_t> labels(graph.domain.size(), 0);
  double best = -std::numeric_limits<double>::infinity();
  do {
    best = std::max(best, graph.score(labels));
  } while (next_assignment(graph, labels));
  return best;
}

}  // namespace sublearn::testing
