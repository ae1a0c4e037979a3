// The connected components of a graph, as graphs of their own.
#pragma once

#include <cstddef>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "sublearn/core/factor_graph.hpp"
#include "sublearn/core/types.hpp"

namespace sublearn {

struct GraphComponent {
  FactorGraph graph;               ///< shares the tables of the whole
  std::vector<index_t> variables;  ///< of the whole graph
};

/// The component number of each variable, numbered by their first variables.
inline std::vector<index_t> component_of_variables(const FactorGraph& graph) {
  std::vector<index_t> parent(graph.domain.size());
  std::iota(parent.begin(), parent.end(), index_t{0});
  const auto root = [&](index_t i) {
    while (parent[at(i)] != i) {
      auto& up = parent[at(i)];
      up = parent[at(up)];  // halves the path
      i = up;
    }
    return i;
  };
  for (index_t f = 0; f < graph.n_factors(); ++f) {
    const auto scope = graph.scope_of(f);
    for (const index_t i : scope.subspan(1)) {
      const index_t a = root(scope[0]), b = root(i);
      parent[at(a < b ? b : a)] = a < b ? a : b;
    }
  }
  index_t n = 0;
  std::vector<index_t> component(parent.size());
  for (index_t i = 0; i < graph.n_variables(); ++i) {
    const index_t r = root(i);
    component[at(i)] = r == i ? n++ : component[at(r)];
  }
  return component;
}

inline std::vector<GraphComponent> split_components(const FactorGraph& graph) {
  const std::vector<index_t> component = component_of_variables(graph);
  std::vector<GraphComponent> parts;
  std::vector<index_t> number(component.size());
  for (index_t i = 0; i < graph.n_variables(); ++i) {
    const auto c = static_cast<std::size_t>(component[at(i)]);
    if (c == parts.size()) parts.emplace_back();
    number[at(i)] = parts[c].graph.add_variable(graph.unary_of(i));
    parts[c].variables.push_back(i);
  }
  // Factors by component, so that a table needs to remember its number in the current one only.
  std::vector<std::vector<index_t>> factors(parts.size());
  for (index_t f = 0; f < graph.n_factors(); ++f) {
    const auto i = static_cast<std::size_t>(graph.scope_of(f)[0]);
    factors[at(component[i])].push_back(f);
  }
  std::vector<std::pair<std::size_t, index_t>> table_number(graph.tables.size(), {parts.size(), 0});
  std::vector<index_t> scope;
  for (std::size_t c = 0; c < parts.size(); ++c) {
    for (const index_t f : factors[c]) {
      const auto t = static_cast<std::size_t>(graph.table_of[at(f)]);
      auto& [part, table] = table_number[t];
      if (part != c) {
        part = c;
        table = parts[c].graph.add_table(graph.tables[t]);
      }
      scope.clear();
      for (const index_t i : graph.scope_of(f)) scope.push_back(number[at(i)]);
      parts[c].graph.add_factor(scope, table, graph.scale[at(f)]);
    }
  }
  for (GraphComponent& part : parts) part.graph.connect();
  return parts;
}

}  // namespace sublearn
