// Python face of core/factor_graph.hpp: tables that point into NumPy arrays, and graphs of them.
//
// A graph that exists is sound: every scope, shape and cell was checked here, so that no solver can
// read outside an array whatever Python passed.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "refuse.hpp"
#include "sublearn/core/factor_graph.hpp"

namespace sublearn::bindings {
namespace {

constexpr auto max_index = static_cast<std::size_t>(std::numeric_limits<index_t>::max());

/// What Python holds: graphs share the table behind it, without Python's reference counts.
struct SharedTable {
  std::shared_ptr<const FactorTable> table;
};

std::vector<index_t> checked_shape(const Vector<index_t>& shape) {
  if (shape.size() == 0) throw std::invalid_argument("FactorTable.shape must not be empty");
  offset_t n_cells = 1;
  for (const index_t size : as_span<index_t>(shape)) {
    if (size < 1) refuse("FactorTable.shape", "hold numbers >= 1", std::to_string(size));
    if (n_cells > std::numeric_limits<offset_t>::max() / size) {
      throw std::invalid_argument("FactorTable.shape must have less than 2^63 cells");
    }
    n_cells *= size;
  }
  return {shape.data(), shape.data() + shape.size()};
}

void check_size(const char* name, std::size_t size, offset_t expected) {
  if (static_cast<offset_t>(size) != expected) {
    refuse(std::string("FactorTable.") + name, "have " + std::to_string(expected) + " entries",
           std::to_string(size));
  }
}

void check_finite(const char* name, std::span<const double> values) {
  for (const double value : values) {
    if (!std::isfinite(value)) refuse(name, "be finite", as_text(value));
  }
}

/// `arrays` are kept as long as the table is; nanobind takes Python's lock to let them go.
template <class... Arrays>
SharedTable keep(FactorTable&& table, Arrays... arrays) {
  check_finite("FactorTable.values", table.values);
  check_finite("FactorTable.right", table.right);
  table.owner = std::make_shared<std::tuple<Arrays...>>(std::move(arrays)...);
  return {std::make_shared<const FactorTable>(std::move(table))};
}

SharedTable dense_table(const Vector<index_t>& shape, Vector<double> values) {
  FactorTable table;
  table.shape = checked_shape(shape);
  check_size("values", values.size(), table.n_cells());
  table.values = as_span<double>(values);
  return keep(std::move(table), std::move(values));
}

/// Many tables of one shape in one array, which all of them keep.
nb::list dense_stack(const Vector<index_t>& shape, Vector<double> values) {
  FactorTable first;
  first.shape = checked_shape(shape);
  const auto n_cells = static_cast<std::size_t>(first.n_cells());
  if (values.size() % n_cells != 0) {
    refuse("FactorTable.values", "have a multiple of " + std::to_string(n_cells) + " entries",
           std::to_string(values.size()));
  }
  const auto all = as_span<double>(values);
  check_finite("FactorTable.values", all);
  first.owner = std::make_shared<Vector<double>>(std::move(values));
  nb::list out;
  for (std::size_t begin = 0; begin < all.size(); begin += n_cells) {
    FactorTable table = first;
    table.values = all.subspan(begin, n_cells);
    out.append(SharedTable{std::make_shared<const FactorTable>(std::move(table))});
  }
  return out;
}

SharedTable sparse_table(const Vector<index_t>& shape, Vector<offset_t> cells,
                         Vector<double> values, double default_value) {
  FactorTable table;
  table.kind = TableKind::sparse;
  table.shape = checked_shape(shape);
  check_size("values", values.size(), static_cast<offset_t>(cells.size()));
  if (!std::isfinite(default_value)) {
    refuse("FactorTable.default_value", "be finite", as_text(default_value));
  }
  offset_t previous = -1;
  for (const offset_t cell : as_span<offset_t>(cells)) {
    if (cell <= previous || cell >= table.n_cells()) {
      refuse("FactorTable.cells", "increase within 0.." + std::to_string(table.n_cells() - 1),
             std::to_string(cell));
    }
    previous = cell;
  }
  table.values = as_span<double>(values);
  table.cells = as_span<offset_t>(cells);
  table.default_value = default_value;
  return keep(std::move(table), std::move(values), std::move(cells));
}

SharedTable difference_table(const Vector<index_t>& shape, Vector<double> values) {
  FactorTable table;
  table.kind = TableKind::difference;
  table.shape = checked_shape(shape);
  check_size("shape", shape.size(), 2);
  check_size("values", values.size(), offset_t{table.shape[0]} + table.shape[1] - 1);
  table.values = as_span<double>(values);
  return keep(std::move(table), std::move(values));
}

SharedTable low_rank_table(Matrix<double> left, Matrix<double> right) {
  if (left.shape(1) != right.shape(1)) {
    refuse("FactorTable.right", "have " + std::to_string(left.shape(1)) + " columns as left",
           std::to_string(right.shape(1)));
  }
  for (const std::size_t size : {left.shape(0), right.shape(0), left.shape(1)}) {
    if (size == 0 || size > max_index) {
      refuse("FactorTable.left and right", "have 1..2^31-1 rows and columns", std::to_string(size));
    }
  }
  FactorTable table;
  table.kind = TableKind::low_rank;
  table.shape = {static_cast<index_t>(left.shape(0)), static_cast<index_t>(right.shape(0))};
  table.rank = static_cast<index_t>(left.shape(1));
  table.values = {left.data(), left.size()};
  table.right = {right.data(), right.size()};
  return keep(std::move(table), std::move(left), std::move(right));
}

void add_variables(FactorGraph& graph, std::span<const index_t> domain,
                   std::span<const double> unary) {
  if (domain.size() > max_index) {
    throw std::invalid_argument("FactorGraph must have at most 2^31-1 variables");
  }
  graph.domain.assign(domain.begin(), domain.end());
  graph.unary_begin.reserve(domain.size() + 1);
  for (const index_t size : domain) {
    if (size < 1) refuse("FactorGraph.domain", "hold numbers >= 1", std::to_string(size));
    graph.unary_begin.push_back(graph.unary_begin.back() + size);
  }
  if (static_cast<offset_t>(unary.size()) != graph.unary_begin.back()) {
    refuse("FactorGraph.unary", "have " + std::to_string(graph.unary_begin.back()) + " entries",
           std::to_string(unary.size()));
  }
  check_finite("FactorGraph.unary", unary);
  graph.unary.assign(unary.begin(), unary.end());
}

[[noreturn]] void refuse_factor(index_t f, const std::string& must, offset_t got) {
  refuse("FactorGraph: factor " + std::to_string(f), must, std::to_string(got));
}

/// Two variables or more, distinct, with as many labels as the table has at their positions.
void check_factor(const FactorGraph& graph, index_t f) {
  const auto table_of = graph.table_of[at(f)];
  if (table_of < 0 || static_cast<std::size_t>(table_of) >= graph.tables.size()) {
    refuse_factor(f, "name one of the " + std::to_string(graph.tables.size()) + " tables",
                  table_of);
  }
  const auto variables = graph.scope_of(f);
  const auto& shape = graph.table(f).shape;
  if (variables.size() < 2 || variables.size() != shape.size()) {
    refuse_factor(f, "have as many variables as its table, two or more",
                  static_cast<offset_t>(variables.size()));
  }
  for (std::size_t p = 0; p < variables.size(); ++p) {
    const index_t i = variables[p];
    if (i < 0 || i >= graph.n_variables()) {
      refuse_factor(f, "name variables in 0.." + std::to_string(graph.n_variables() - 1), i);
    }
    if (graph.domain[at(i)] != shape[p]) {
      refuse_factor(f,
                    "have the labels of variable " + std::to_string(i) + " in its table, " +
                        std::to_string(graph.domain[at(i)]),
                    shape[p]);
    }
    for (std::size_t q = 0; q < p; ++q) {
      if (variables[q] == i) refuse_factor(f, "have distinct variables", i);
    }
  }
}

void check_scale(std::span<const double> scale, std::size_t n_factors) {
  if (scale.size() != n_factors) {
    throw std::invalid_argument("FactorGraph.scale must be as long as table_of");
  }
  for (const double s : scale) {
    if (!(s >= 0.0) || !std::isfinite(s)) {
      refuse("FactorGraph.scale", "be finite and not negative", as_text(s));
    }
  }
}

void check_scope_begin(std::span<const offset_t> begin, std::size_t n_factors, std::size_t n_ends) {
  if (n_factors > max_index) {
    throw std::invalid_argument("FactorGraph must have at most 2^31-1 factors");
  }
  if (begin.size() != n_factors + 1 || !rises_to(begin, n_ends))
    throw std::invalid_argument("FactorGraph.scope_begin must fit scope and table_of");
}

template <class T>
void copy(std::vector<T>& to, std::span<const T> from) {
  to.assign(from.begin(), from.end());
}

void bind_factor_table(nb::module_& m) {
  nb::class_<SharedTable>(m, "FactorTable", "See core/factor_graph.hpp. Keeps its arrays alive.")
      .def_static("dense", &dense_table, "shape"_a.noconvert(), "values"_a.noconvert(),
                  "Every cell, last position fastest.")
      .def_static("dense_stack", &dense_stack, "shape"_a.noconvert(), "values"_a.noconvert(),
                  "A list of dense tables of one shape, one after the other in `values`.")
      .def_static("sparse", &sparse_table, "shape"_a.noconvert(), "cells"_a.noconvert(),
                  "values"_a.noconvert(), "default_value"_a,
                  "The cells that differ from the default, as increasing flat positions.")
      .def_static("difference", &difference_table, "shape"_a.noconvert(), "values"_a.noconvert(),
                  "Values of x_1 - x_0 from 1 - shape[0] to shape[1] - 1.")
      .def_static("low_rank", &low_rank_table, "left"_a.noconvert(), "right"_a.noconvert(),
                  "Inner products of a row of `left` and a row of `right`.")
      .def_prop_ro("arity", [](const SharedTable& self) { return self.table->arity(); })
      .def(
          "at",
          [](const SharedTable& self, offset_t cell) {
            if (cell < 0 || cell >= self.table->n_cells()) {
              throw std::invalid_argument("FactorTable.at: no such cell");
            }
            return self.table->at(cell);
          },
          "cell"_a, "Score of a flat cell.");
}

FactorGraph make_graph(const Vector<index_t>& domain, const Vector<double>& unary,
                       const Vector<offset_t>& scope_begin, const Vector<index_t>& scope,
                       const Vector<index_t>& table_of, const Vector<double>& scale,
                       const nb::list& tables) {
  FactorGraph graph;
  for (const nb::handle item : tables) {
    if (!nb::isinstance<SharedTable>(item)) {
      throw nb::type_error("FactorGraph.tables must hold FactorTable objects");
    }
    graph.add_table(nb::cast<const SharedTable&>(item).table);
  }
  // Refusals that print a number need Python: they come before its lock is released.
  add_variables(graph, as_span(domain), as_span(unary));
  check_scale(as_span(scale), table_of.size());
  nb::gil_scoped_release unlocked;
  check_scope_begin(as_span(scope_begin), table_of.size(), scope.size());
  copy(graph.scope_begin, as_span(scope_begin));
  copy(graph.scope, as_span(scope));
  copy(graph.table_of, as_span(table_of));
  copy(graph.scale, as_span(scale));
  for (index_t f = 0; f < graph.n_factors(); ++f) check_factor(graph, f);
  graph.connect();
  return graph;
}

FactorGraph with_unary(const FactorGraph& self, const Vector<double>& unary) {
  if (unary.size() != self.unary.size()) {
    refuse("FactorGraph.unary", "have " + std::to_string(self.unary.size()) + " entries",
           std::to_string(unary.size()));
  }
  check_finite("FactorGraph.unary", as_span(unary));
  FactorGraph graph = self;
  copy(graph.unary, as_span(unary));
  return graph;
}

double score_of(const FactorGraph& self, const Vector<index_t>& labels) {
  if (labels.size() != self.domain.size()) {
    refuse("FactorGraph.score: labels", "have " + std::to_string(self.domain.size()) + " entries",
           std::to_string(labels.size()));
  }
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (labels.data()[i] < 0 || labels.data()[i] >= self.domain[i]) {
      refuse("FactorGraph.score: label of variable " + std::to_string(i),
             "be in 0.." + std::to_string(self.domain[i] - 1), std::to_string(labels.data()[i]));
    }
  }
  nb::gil_scoped_release unlocked;
  return self.score(as_span(labels));
}

}  // namespace

void bind_graph(nb::module_& m) {
  bind_factor_table(m);
  nb::class_<FactorGraph>(m, "FactorGraph", "See core/factor_graph.hpp. Does not change.")
      .def(nb::new_(&make_graph), "domain"_a.noconvert(), "unary"_a.noconvert(),
           "scope_begin"_a.noconvert(), "scope"_a.noconvert(), "table_of"_a.noconvert(),
           "scale"_a.noconvert(), "tables"_a)
      .def("with_unary", &with_unary, "unary"_a.noconvert(),
           "The same factors with other unary scores; tables are shared.")
      .def_prop_ro("n_variables", &FactorGraph::n_variables)
      .def_prop_ro("n_factors", &FactorGraph::n_factors)
      .def_prop_ro("n_tables", [](const FactorGraph& self) { return self.tables.size(); })
      .def("score", &score_of, "labels"_a.noconvert(), "The value of (3.24).");
}

}  // namespace sublearn::bindings
