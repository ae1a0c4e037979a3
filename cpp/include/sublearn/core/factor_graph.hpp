// A factor graph: variables with finite domains, and scores over small groups of them.
//
//   score(x) = sum_i theta_i(x_i) + sum_f scale_f theta_{t(f)}(x_{s(f)}) (3.24)
//
// All scores are finite: whoever builds a graph has replaced forbidden states (-inf) by a score so
// low that no allowed assignment loses to one with such a state. Tables are shared: a thousand
// factors may point at one table of a million cells, which is stored once and sorted once. A table
// is an array, a sparse array with a default, a function of the difference of two labels (Potts,
// truncated linear, any label distance) or an inner product of two label embeddings.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <memory>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "sublearn/core/types.hpp"

namespace sublearn {

enum class TableKind : std::uint8_t { dense, sparse, difference, low_rank };

/// Scores of the joint states of a group of variables. Arrays belong to `owner`, or to the caller.
struct FactorTable {
  TableKind kind = TableKind::dense;
  std::vector<index_t> shape;  ///< labels of each position; difference and low_rank have two

  /// dense: every cell, last position fastest. sparse: the cells that differ from the default.
  /// difference: value of x_1 - x_0 + shape[0] - 1, shape[0] + shape[1] - 1 of them.
  /// low_rank: shape[0] rows of `rank` numbers.
  std::span<const double> values;
  std::span<const offset_t> cells;  ///< sparse: flat positions of `values`, increasing
  double default_value = 0.0;       ///< sparse: all other cells
  std::span<const double> right;    ///< low_rank: shape[1] rows of `rank` numbers
  index_t rank = 0;

  std::shared_ptr<const void> owner;  ///< keeps the arrays alive; empty if the caller does

  index_t arity() const { return static_cast<index_t>(shape.size()); }

  offset_t n_cells() const {
    offset_t n = 1;
    for (const index_t size : shape) n *= size;
    return n;
  }

  /// Score of a flat cell, last position fastest.
  double at(offset_t cell) const {
    switch (kind) {
      case TableKind::dense:
        return values[static_cast<std::size_t>(cell)];
      case TableKind::sparse: {
        const auto place = std::lower_bound(cells.begin(), cells.end(), cell);
        if (place == cells.end() || *place != cell) return default_value;
        return values[static_cast<std::size_t>(place - cells.begin())];
      }
      default:
        return pair(static_cast<index_t>(cell / shape[1]), static_cast<index_t>(cell % shape[1]));
    }
  }

  /// Score of two labels, for tables of two positions.
  double pair(index_t a, index_t b) const {
    switch (kind) {
      case TableKind::difference:
        return values[static_cast<std::size_t>(b - a + shape[0] - 1)];
      case TableKind::low_rank: {
        const double* left = values.data() + static_cast<std::size_t>(a) * rank;
        const double* other = right.data() + static_cast<std::size_t>(b) * rank;
        double sum = 0.0;
        for (index_t r = 0; r < rank; ++r) sum += left[r] * other[r];
        return sum;
      }
      default:
        return at(static_cast<offset_t>(a) * shape[1] + b);
    }
  }

  /// A number that no cell exceeds, and that some cell has unless the table is of low rank.
  double upper_bound() const {
    if (kind == TableKind::low_rank) return low_rank_bound();
    const bool has_default =
        kind == TableKind::sparse && static_cast<offset_t>(cells.size()) < n_cells();
    double most = has_default ? default_value : -std::numeric_limits<double>::infinity();
    for (const double value : values) most = std::max(most, value);
    return most;
  }

  /// A dense table that owns its cells.
  static std::shared_ptr<const FactorTable> dense(std::vector<index_t> shape,
                                                  std::vector<double> cells) {
    auto owned = std::make_shared<const std::vector<double>>(std::move(cells));
    auto table = std::make_shared<FactorTable>();
    table->shape = std::move(shape);
    table->values = *owned;
    table->owner = std::move(owned);
    return table;
  }

 private:
  /// Sum over the rank of the largest products.
  double low_rank_bound() const {
    const auto step = static_cast<std::size_t>(rank);
    const auto largest = [step](std::span<const double> numbers, std::size_t r) {
      double most = 0.0;
      for (std::size_t p = r; p < numbers.size(); p += step)
        most = std::max(most, std::abs(numbers[p]));
      return most;
    };
    double bound = 0.0;
    for (std::size_t r = 0; r < step; ++r) bound += largest(values, r) * largest(right, r);
    return bound;
  }
};

/// One end of a factor: the factor, and the position of the variable in its scope.
struct FactorEnd {
  index_t factor;
  index_t position;
};

struct FactorGraph {
  std::vector<index_t> domain{};         ///< labels of each variable, at least one
  std::vector<offset_t> unary_begin{0};  ///< n_variables + 1 offsets into `unary`
  std::vector<double> unary{};           ///< theta_i(x_i)
  std::vector<offset_t> scope_begin{0};  ///< n_factors + 1 offsets into `scope`
  std::vector<index_t> scope{};          ///< distinct variables of each factor, two or more
  std::vector<index_t> table_of{};       ///< table of each factor; its shape fits the scope
  std::vector<double> scale{};           ///< of each factor, at least 0
  std::vector<std::shared_ptr<const FactorTable>> tables{};

  /// Filled by connect(): factors of variable i are ends[end_begin[i]] .. ends[end_begin[i + 1] -
  /// 1].
  std::vector<offset_t> end_begin{};
  std::vector<FactorEnd> ends{};

  index_t n_variables() const { return static_cast<index_t>(domain.size()); }
  index_t n_factors() const { return static_cast<index_t>(table_of.size()); }

  std::span<double> unary_of(index_t i) { return {unary.data() + unary_begin[i], labels_of(i)}; }
  std::span<const double> unary_of(index_t i) const {
    return {unary.data() + unary_begin[i], labels_of(i)};
  }
  std::span<const index_t> scope_of(index_t f) const {
    return {scope.data() + scope_begin[f],
            static_cast<std::size_t>(scope_begin[f + 1] - scope_begin[f])};
  }
  const FactorTable& table(index_t f) const {
    return *tables[static_cast<std::size_t>(table_of[static_cast<std::size_t>(f)])];
  }
  std::span<const FactorEnd> ends_of(index_t i) const {
    return {ends.data() + end_begin[i], static_cast<std::size_t>(end_begin[i + 1] - end_begin[i])};
  }

  index_t add_variable(std::span<const double> scores) {
    domain.push_back(static_cast<index_t>(scores.size()));
    unary.insert(unary.end(), scores.begin(), scores.end());
    unary_begin.push_back(static_cast<offset_t>(unary.size()));
    return n_variables() - 1;
  }
  index_t add_table(std::shared_ptr<const FactorTable> table) {
    tables.push_back(std::move(table));
    return static_cast<index_t>(tables.size()) - 1;
  }
  index_t add_factor(std::span<const index_t> variables, index_t table, double weight = 1.0) {
    scope.insert(scope.end(), variables.begin(), variables.end());
    scope_begin.push_back(static_cast<offset_t>(scope.size()));
    table_of.push_back(table);
    scale.push_back(weight);
    return n_factors() - 1;
  }

  /// Lists the factors of each variable; to be called after the last factor was added.
  void connect() {
    end_begin.assign(domain.size() + 1, 0);
    for (const index_t i : scope) ++end_begin[static_cast<std::size_t>(i) + 1];
    for (std::size_t i = 0; i < domain.size(); ++i) end_begin[i + 1] += end_begin[i];
    ends.resize(scope.size());
    std::vector<offset_t> next(end_begin.begin(), end_begin.end() - 1);
    for (index_t f = 0; f < n_factors(); ++f) {
      const auto variables = scope_of(f);
      for (std::size_t p = 0; p < variables.size(); ++p) {
        ends[static_cast<std::size_t>(next[static_cast<std::size_t>(variables[p])]++)] = {
            f, static_cast<index_t>(p)};
      }
    }
  }

  /// Flat cell of factor f under an assignment of all variables.
  offset_t cell_of(index_t f, std::span<const index_t> labels) const {
    const auto& shape = table(f).shape;
    const auto variables = scope_of(f);
    offset_t cell = 0;
    for (std::size_t p = 0; p < shape.size(); ++p) {
      cell = cell * shape[p] + labels[static_cast<std::size_t>(variables[p])];
    }
    return cell;
  }

  double factor_score(index_t f, std::span<const index_t> labels) const {
    return scale[static_cast<std::size_t>(f)] * table(f).at(cell_of(f, labels));
  }

  /// Adds sign times what a factor says of the variable at one of its ends, the others as labelled:
  /// sum[a] belongs to label choice(a).
  template <class Choice>
  void add_line(const FactorEnd& end, std::span<const index_t> labels, double sign,
                std::span<double> sum, Choice&& choice) const {
    const FactorTable& cells = table(end.factor);
    const auto variables = scope_of(end.factor);
    offset_t base = 0, step = 1, stride = 1;
    for (std::size_t q = variables.size(); q-- > 0;) {
      if (q == static_cast<std::size_t>(end.position)) {
        step = stride;
      } else {
        base += stride * labels[static_cast<std::size_t>(variables[q])];
      }
      stride *= cells.shape[q];
    }
    const double weight = sign * scale[static_cast<std::size_t>(end.factor)];
    if (cells.kind == TableKind::dense) {
      const double* values = cells.values.data() + base;
      for (std::size_t a = 0; a < sum.size(); ++a) sum[a] += weight * values[step * choice(a)];
    } else {
      for (std::size_t a = 0; a < sum.size(); ++a) {
        sum[a] += weight * cells.at(base + step * choice(a));
      }
    }
  }

  /// The value of (3.24).
  double score(std::span<const index_t> labels) const {
    double sum = 0.0;
    for (index_t i = 0; i < n_variables(); ++i) {
      sum += unary_of(i)[static_cast<std::size_t>(labels[static_cast<std::size_t>(i)])];
    }
    for (index_t f = 0; f < n_factors(); ++f) sum += factor_score(f, labels);
    return sum;
  }

 private:
  std::size_t labels_of(index_t i) const {
    return static_cast<std::size_t>(unary_begin[i + 1] - unary_begin[i]);
  }
};

}  // namespace sublearn
