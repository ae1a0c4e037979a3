// Random factor graphs of a few variables with every kind of table, and their optimum by trying all
// assignments.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "sublearn/core/factor_graph.hpp"
#include "sublearn/core/rng.hpp"

namespace sublearn::testing {

/// Numbers of a table that the table owns.
inline std::shared_ptr<const std::vector<double>> random_numbers(Rng& rng, std::size_t n) {
  std::vector<double> numbers(n);
  for (double& number : numbers) number = 4.0 * rng.uniform() - 2.0;
  return std::make_shared<const std::vector<double>>(std::move(numbers));
}

/// A table of any kind that fits the shape; only two positions have difference and low-rank tables.
inline std::shared_ptr<const FactorTable> random_table(Rng& rng, std::vector<index_t> shape) {
  struct Sparse {
    std::vector<offset_t> cells;
    std::vector<double> values;
  };
  struct Embeddings {
    std::shared_ptr<const std::vector<double>> left, right;
  };
  auto table = std::make_shared<FactorTable>();
  table->shape = std::move(shape);
  const auto n_cells = static_cast<std::size_t>(table->n_cells());
  switch (rng.below(table->arity() == 2 ? 4 : 2)) {
    case 0: {
      const auto numbers = random_numbers(rng, n_cells);
      table->values = *numbers;
      table->owner = numbers;
      break;
    }
    case 1: {
      auto sparse = std::make_shared<Sparse>();
      for (std::size_t cell = 0; cell < n_cells; ++cell) {
        if (rng.below(3) != 0) continue;
        sparse->cells.push_back(static_cast<offset_t>(cell));
        sparse->values.push_back(2.0 * rng.uniform() - 1.0);
      }
      table->kind = TableKind::sparse;
      table->cells = sparse->cells;
      table->values = sparse->values;
      table->default_value = rng.uniform() - 0.5;
      table->owner = sparse;
      break;
    }
    case 2: {
      const auto n = static_cast<std::size_t>(table->shape[0] + table->shape[1] - 1);
      const auto numbers = random_numbers(rng, n);
      table->kind = TableKind::difference;
      table->values = *numbers;
      table->owner = numbers;
      break;
    }
    default: {
      auto both = std::make_shared<Embeddings>();
      both->left = random_numbers(rng, 2 * static_cast<std::size_t>(table->shape[0]));
      both->right = random_numbers(rng, 2 * static_cast<std::size_t>(table->shape[1]));
      table->kind = TableKind::low_rank;
      table->rank = 2;
      table->values = *both->left;
      table->right = *both->right;
      table->owner = both;
    }
  }
  return table;
}

/// Domains of 1 .. most_labels; factors of two and three variables, some of them with one table.
inline FactorGraph random_graph(Rng& rng, index_t n_variables, index_t n_factors,
                                index_t most_labels) {
  FactorGraph graph;
  for (index_t i = 0; i < n_variables; ++i) {
    const auto n_labels = 1 + rng.below(static_cast<std::uint32_t>(most_labels));
    graph.add_variable(*random_numbers(rng, n_labels));
  }
  for (index_t f = 0; f < n_factors; ++f) {
    std::vector<index_t> order(static_cast<std::size_t>(n_variables));
    for (index_t i = 0; i < n_variables; ++i) order[static_cast<std::size_t>(i)] = i;
    rng.shuffle(std::span(order));
    order.resize(std::min<std::size_t>(order.size(), 2 + rng.below(2)));
    std::vector<index_t> shape;
    for (const index_t i : order) shape.push_back(graph.domain[static_cast<std::size_t>(i)]);
    index_t table = -1;
    for (std::size_t t = 0; t < graph.tables.size() && rng.below(2) == 0; ++t) {
      if (graph.tables[t]->shape == shape) table = static_cast<index_t>(t);
    }
    if (table < 0) table = graph.add_table(random_table(rng, shape));
    graph.add_factor(order, table, rng.below(4) == 0 ? 0.0 : 2.0 * rng.uniform());
  }
  graph.connect();
  return graph;
}

/// The best score over the labels of `free`, the other variables as in `labels`.
inline double best_score(const FactorGraph& graph, std::vector<index_t> labels,
                         std::span<const index_t> free) {
  for (const index_t i : free) labels[static_cast<std::size_t>(i)] = 0;
  double best = graph.score(labels);
  for (;;) {
    std::size_t k = 0;
    for (; k < free.size(); ++k) {
      const auto i = static_cast<std::size_t>(free[k]);
      if (++labels[i] < graph.domain[i]) break;
      labels[i] = 0;
    }
    if (k == free.size()) return best;
    best = std::max(best, graph.score(labels));
  }
}

inline double best_score(const FactorGraph& graph) {
  std::vector<index_t> all;
  for (index_t i = 0; i < graph.n_variables(); ++i) all.push_back(i);
  return best_score(graph, std::vector<index_t>(all.size(), 0), all);
}

inline std::vector<index_t> random_labels(Rng& rng, const FactorGraph& graph) {
  std::vector<index_t> labels;
  for (const index_t k : graph.domain) {
    labels.push_back(static_cast<index_t>(rng.below(static_cast<std::uint32_t>(k))));
  }
  return labels;
}

}  // namespace sublearn::testing
