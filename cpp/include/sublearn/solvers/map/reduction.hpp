// A smaller graph with the same optimum up to a constant, and the way back.
//
// A round removes dominated labels (solvers/map/dominance.hpp), puts variables with one label into
// their neighbours, drops constant factors, merges factors over the same variables, and eliminates
// variables whose bucket is not larger than the factors that it replaces: leaves, and chains of
// small tables. Rounds follow until nothing changes. Tables that several factors share stay shared
// and are never copied: labels of their variables that died are marked by a low score instead.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <memory>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "sublearn/core/factor_graph.hpp"
#include "sublearn/core/types.hpp"
#include "sublearn/solvers/map/dominance.hpp"

namespace sublearn {

struct ReductionLimits {
  double work = 2e8;    ///< operations of each round, roughly
  double cells = 4096;  ///< largest table that elimination or merging makes
  int rounds = 4;
  /// A score that some assignment has; labels that cannot reach it go.
  double incumbent = -std::numeric_limits<double>::infinity();
};

namespace detail {

/// One round: from a graph to a smaller one, and labels both ways.
class ReductionRound {
 public:
  ReductionRound(const FactorGraph& graph, const ReductionLimits& limits, double incumbent)
      : limits_(limits), work_(limits.work) {
    const LabelDominance dominance(graph, limits.work, incumbent);
    choose_labels(graph, dominance);
    lower_dead(graph, dominance);
    for (index_t f = 0; f < graph.n_factors(); ++f) keep_factor(graph, f);
    merge_all();
    eliminate_all();
    compact();
    changed_ = reduced_.n_variables() < graph.n_variables() ||
               reduced_.n_factors() < graph.n_factors() ||
               reduced_.unary.size() < graph.unary.size();
  }

  FactorGraph& graph() { return reduced_; }
  double constant() const { return constant_; }
  bool changed() const { return changed_; }

  std::vector<index_t> lift(std::span<const index_t> reduced) const {
    std::vector<index_t> bench(kept_label_begin_.size() - 1, 0);
    for (std::size_t i = 0; i < reduced.size(); ++i) bench[at(bench_of_[i])] = reduced[i];
    for (std::size_t k = eliminated_.size(); k-- > 0;) restore(eliminated_[k], bench);
    std::vector<index_t> full(fixed_);
    for (std::size_t i = 0; i < full.size(); ++i) {
      if (place_[i] < 0) continue;
      full[i] = kept_label_[at(kept_label_begin_[at(place_[i])] + bench[at(place_[i])])];
    }
    return full;
  }

  /// Labels of the variables that are left. A label that died becomes the first that lives.
  std::vector<index_t> restricted(std::span<const index_t> full) const {
    std::vector<index_t> bench(kept_label_begin_.size() - 1, 0);
    for (std::size_t i = 0; i < full.size(); ++i) {
      if (place_[i] < 0) continue;
      const auto begin = kept_label_.begin() + kept_label_begin_[at(place_[i])];
      const auto end = kept_label_.begin() + kept_label_begin_[at(place_[i]) + 1];
      const auto found = std::lower_bound(begin, end, full[i]);
      if (found != end && *found == full[i]) {
        bench[at(place_[i])] = static_cast<index_t>(found - begin);
      }
    }
    std::vector<index_t> reduced;
    for (const index_t i : bench_of_) reduced.push_back(bench[at(i)]);
    return reduced;
  }

 private:
  /// A term of the score of an eliminated variable; its scope is in bench variables.
  struct Term {
    std::shared_ptr<const FactorTable> table;
    std::vector<index_t> scope;
    double scale;
  };
  struct Eliminated {
    index_t variable;
    std::vector<double> unary;
    std::vector<Term> terms;
  };

  // ---- labels ----------------------------------------------------------------------------------

  void count_uses(const FactorGraph& graph) {
    uses_.assign(graph.tables.size(), 0);
    for (const index_t t : graph.table_of) ++uses_[at(t)];
  }
  /// Whether factors over a table may each have their own: it has one only, or is so small that
  /// copies do not matter (tables that are equal by chance are shared by those who read files).
  bool is_private(const FactorGraph& graph, std::size_t t) const {
    constexpr double kMostCells = 4e6;
    constexpr index_t kMostUses = 100'000;
    const FactorTable& table = *graph.tables[t];
    if (table.kind != TableKind::dense) return false;
    const double cells = static_cast<double>(uses_[t]) * static_cast<double>(table.n_cells());
    return uses_[t] == 1 || (uses_[t] <= kMostUses && cells <= kMostCells);
  }

  /// Fixed variables get their label, the others a place on the bench and the labels that stay.
  void choose_labels(const FactorGraph& graph, const LabelDominance& dominance) {
    count_uses(graph);
    std::vector<char> shared(graph.domain.size(), 0);
    for (index_t f = 0; f < graph.n_factors(); ++f) {
      if (is_private(graph, at(graph.table_of[at(f)]))) continue;
      for (const index_t i : graph.scope_of(f)) shared[at(i)] = 1;
    }
    fixed_.assign(graph.domain.size(), 0);
    place_.assign(graph.domain.size(), -1);
    std::vector<double> scores;
    for (index_t i = 0; i < graph.n_variables(); ++i) {
      if (dominance.n_alive(i) == 1) {
        fixed_[at(i)] = dominance.only_label(i);
        constant_ += graph.unary_of(i)[at(fixed_[at(i)])];
        continue;
      }
      scores.clear();
      for (index_t a = 0; a < graph.domain[at(i)]; ++a) {
        if (!shared[at(i)] && !dominance.lives(i, a)) continue;
        kept_label_.push_back(a);
        scores.push_back(graph.unary_of(i)[at(a)]);
      }
      kept_label_begin_.push_back(static_cast<offset_t>(kept_label_.size()));
      place_[at(i)] = bench_.add_variable(scores);
    }
  }

  /// Labels that died but keep their place get a score that makes them lose whatever others do.
  void lower_dead(const FactorGraph& graph, const LabelDominance& dominance) {
    for (index_t i = 0; i < graph.n_variables(); ++i) {
      if (place_[at(i)] < 0 || dominance.n_alive(i) == bench_.domain[at(place_[at(i)])]) continue;
      const auto scores = bench_.unary_of(place_[at(i)]);
      double least = *std::min_element(scores.begin(), scores.end());
      for (const FactorEnd& end : graph.ends_of(i)) {
        const auto [low, high] = range(graph, graph.table_of[at(end.factor)]);
        least -= graph.scale[at(end.factor)] * (high - low);
      }
      for (std::size_t a = 0; a < scores.size(); ++a) {
        if (!dominance.lives(i, static_cast<index_t>(a))) scores[a] = least - 1.0;
      }
    }
  }

  /// Bounds of the cells of a table; exact for dense ones.
  std::pair<double, double> range(const FactorGraph& graph, index_t t) {
    if (ranges_.empty()) ranges_.assign(graph.tables.size(), {1.0, 0.0});
    auto& [low, high] = ranges_[at(t)];
    if (low <= high) return {low, high};
    const FactorTable& table = *graph.tables[at(t)];
    if (table.kind == TableKind::low_rank) {
      high = 0.0;
      for (index_t r = 0; r < table.rank; ++r) {
        high +=
            largest_size(table.values, r, table.rank) * largest_size(table.right, r, table.rank);
      }
      low = -high;
      return {low, high};
    }
    low = std::numeric_limits<double>::infinity();
    high = -low;
    for (const double value : table.values) {
      low = std::min(low, value);
      high = std::max(high, value);
    }
    if (table.kind == TableKind::sparse && at(table.n_cells()) > table.values.size()) {
      low = std::min(low, table.default_value);
      high = std::max(high, table.default_value);
    }
    return {low, high};
  }

  static double largest_size(std::span<const double> rows, index_t r, index_t rank) {
    double most = 0.0;
    for (std::size_t p = at(r); p < rows.size(); p += at(rank)) {
      most = std::max(most, std::abs(rows[p]));
    }
    return most;
  }

  // ---- factors ---------------------------------------------------------------------------------

  void keep_factor(const FactorGraph& graph, index_t f) {
    const double scale = graph.scale[at(f)];
    if (scale == 0.0) return;
    const auto [low, high] = range(graph, graph.table_of[at(f)]);
    if (low == high) {
      constant_ += scale * low;
      return;
    }
    scope_.clear();
    bool whole = true;
    for (const index_t i : graph.scope_of(f)) {
      const index_t place = place_[at(i)];
      if (place >= 0) scope_.push_back(place);
      whole = whole && place >= 0 && bench_.domain[at(place)] == graph.domain[at(i)];
    }
    if (whole) {
      add_kept(graph, f);
    } else if (graph.scope_of(f).size() == 2 && scope_.size() < 2) {
      absorb_pair(graph, f);
    } else {
      slice(graph, f);
    }
  }

  /// A pair with a fixed variable: what slice() does, without a table. There may be millions.
  void absorb_pair(const FactorGraph& graph, index_t f) {
    const FactorTable& table = graph.table(f);
    const double scale = graph.scale[at(f)];
    const index_t i = graph.scope_of(f)[0], j = graph.scope_of(f)[1];
    if (scope_.empty()) {
      constant_ += scale * table.pair(fixed_[at(i)], fixed_[at(j)]);
      return;
    }
    const auto scores = bench_.unary_of(scope_[0]);
    const index_t* label = kept_label_.data() + kept_label_begin_[at(scope_[0])];
    for (std::size_t a = 0; a < scores.size(); ++a) {
      scores[a] += scale * (place_[at(i)] < 0 ? table.pair(fixed_[at(i)], label[a])
                                              : table.pair(label[a], fixed_[at(j)]));
    }
  }

  void add_kept(const FactorGraph& graph, index_t f) {
    const std::size_t t = at(graph.table_of[at(f)]);
    if (new_table_.empty()) new_table_.assign(graph.tables.size(), -1);
    const bool is_own = is_private(graph, t);
    if (is_own || new_table_[t] < 0) {
      new_table_[t] = bench_.add_table(graph.tables[t]);
      private_.push_back(is_own);
    }
    bench_.add_factor(scope_, new_table_[t], graph.scale[at(f)]);
  }

  /// The factor over what is left of its variables and labels.
  void slice(const FactorGraph& graph, index_t f) {
    const FactorTable& table = graph.table(f);
    const auto scope = graph.scope_of(f);
    const double scale = graph.scale[at(f)];
    std::vector<index_t> shape;
    offset_t n_cells = 1;
    for (const index_t place : scope_) {
      shape.push_back(bench_.domain[at(place)]);
      n_cells *= shape.back();
    }
    std::vector<double> cells(at(n_cells));
    std::vector<index_t> labels(scope.size(), 0);
    for (double& cell : cells) {
      offset_t from = 0;
      for (std::size_t q = 0; q < scope.size(); ++q) {
        const index_t place = place_[at(scope[q])];
        const index_t label = place < 0 ? fixed_[at(scope[q])]
                                        : kept_label_[at(kept_label_begin_[at(place)] + labels[q])];
        from = from * table.shape[q] + label;
      }
      cell = scale * table.at(from);
      for (std::size_t q = scope.size(); q-- > 0;) {
        const index_t place = place_[at(scope[q])];
        if (place < 0) continue;
        if (++labels[q] < bench_.domain[at(place)]) break;
        labels[q] = 0;
      }
    }
    work_ -= static_cast<double>(cells.size());
    add_cells(scope_, std::move(shape), std::move(cells));
  }

  /// Adds a term of the score that nothing else holds: constant, unary or factor.
  index_t add_cells(std::span<const index_t> scope, std::vector<index_t> shape,
                    std::vector<double> cells) {
    if (scope.empty()) {
      constant_ += cells[0];
      return -1;
    }
    if (scope.size() == 1) {
      const auto scores = bench_.unary_of(scope[0]);
      for (std::size_t a = 0; a < cells.size(); ++a) scores[a] += cells[a];
      return -1;
    }
    const auto [low, high] = std::minmax_element(cells.begin(), cells.end());
    if (*low == *high) {
      constant_ += *low;
      return -1;
    }
    const index_t table = bench_.add_table(FactorTable::dense(std::move(shape), std::move(cells)));
    private_.push_back(1);
    return bench_.add_factor(scope, table);
  }

  bool is_small_private(index_t f) const {
    return private_[at(bench_.table_of[at(f)])] &&
           static_cast<double>(bench_.table(f).n_cells()) <= limits_.cells;
  }

  // ---- factors over the same variables ---------------------------------------------------------

  void merge_all() {
    dead_.assign(at(bench_.n_factors()), 0);
    std::vector<std::pair<std::uint64_t, index_t>> keyed;
    for (index_t f = 0; f < bench_.n_factors(); ++f) {
      if (!is_small_private(f)) continue;
      std::uint64_t key = 0;  // the same for any order of the variables
      for (const index_t i : bench_.scope_of(f)) {
        const std::uint64_t mixed = (static_cast<std::uint64_t>(i) + 1) * 0x9e3779b97f4a7c15ULL;
        key += mixed ^ (mixed >> 29);
      }
      keyed.push_back({key, f});
    }
    std::sort(keyed.begin(), keyed.end());
    for (std::size_t k = 1; k < keyed.size(); ++k) {
      auto& [key, f] = keyed[k];
      const index_t g = keyed[k - 1].second;
      if (key != keyed[k - 1].first || g < 0 || !same_scope(f, g)) continue;
      f = merge(g, f);
    }
  }

  bool same_scope(index_t f, index_t g) const {
    const auto one = bench_.scope_of(f), other = bench_.scope_of(g);
    return std::is_permutation(one.begin(), one.end(), other.begin(), other.end());
  }

  /// One factor for two over the same variables; its number, or -1 if their sum is constant.
  index_t merge(index_t f, index_t g) {
    const auto scope = bench_.scope_of(f);
    const std::vector<index_t> variables(scope.begin(), scope.end());
    std::vector<index_t> shape = bench_.table(f).shape;
    std::vector<double> cells(at(bench_.table(f).n_cells()), 0.0);
    bench_cells(variables, {f, g}, cells);
    dead_[at(f)] = dead_[at(g)] = 1;
    const index_t sum = add_cells(variables, std::move(shape), std::move(cells));
    dead_.resize(at(bench_.n_factors()), 0);
    return sum;
  }

  /// cells[x over variables] += factors; the scope of each is a subset of the variables.
  void bench_cells(std::span<const index_t> variables, std::span<const index_t> factors,
                   std::vector<double>& cells) {
    std::vector<index_t> labels(variables.size());
    std::vector<offset_t> move(variables.size());
    for (const index_t f : factors) {
      const FactorTable& table = bench_.table(f);
      const auto scope = bench_.scope_of(f);
      const double scale = bench_.scale[at(f)];
      std::fill(move.begin(), move.end(), 0);
      offset_t stride = 1;
      for (std::size_t q = scope.size(); q-- > 0;) {
        const auto found = std::find(variables.begin(), variables.end(), scope[q]);
        move[at(found - variables.begin())] = stride;
        stride *= table.shape[q];
      }
      std::fill(labels.begin(), labels.end(), 0);
      offset_t from = 0;
      for (double& cell : cells) {
        cell += scale * table.at(from);
        for (std::size_t q = variables.size(); q-- > 0;) {
          from += move[q];
          if (++labels[q] < bench_.domain[at(variables[q])]) break;
          from -= move[q] * labels[q];
          labels[q] = 0;
        }
      }
      work_ -= static_cast<double>(cells.size());
    }
  }
  void bench_cells(std::span<const index_t> variables, std::initializer_list<index_t> factors,
                   std::vector<double>& cells) {
    bench_cells(variables, std::span(factors.begin(), factors.size()), cells);
  }

  // ---- elimination -----------------------------------------------------------------------------

  void eliminate_all() {
    factors_of_.assign(bench_.domain.size(), {});
    for (index_t f = 0; f < bench_.n_factors(); ++f) {
      if (dead_[at(f)]) continue;
      for (const index_t i : bench_.scope_of(f)) factors_of_[at(i)].push_back(f);
    }
    gone_.assign(bench_.domain.size(), 0);
    std::vector<index_t> queue(bench_.domain.size());
    std::iota(queue.rbegin(), queue.rend(), index_t{0});
    while (!queue.empty() && work_ > 0.0) {
      const index_t v = queue.back();
      queue.pop_back();
      if (gone_[at(v)] || !eliminate(v)) continue;
      for (const index_t j : around_) queue.push_back(j);
    }
  }

  /// Eliminates v if what replaces its factors is not larger; `around_` are its neighbours then.
  bool eliminate(index_t v) {
    auto& own = factors_of_[at(v)];
    std::erase_if(own, [&](index_t f) { return dead_[at(f)] != 0; });
    if (own.size() > 8) return false;
    around_.clear();
    std::size_t most_arity = 2;
    double replaced = 0.0;
    bool all_private = true;
    for (const index_t f : own) {
      const auto scope = bench_.scope_of(f);
      most_arity = std::max(most_arity, scope.size());
      replaced += static_cast<double>(bench_.table(f).n_cells());
      all_private = all_private && is_small_private(f);
      for (const index_t j : scope) {
        if (j != v && std::find(around_.begin(), around_.end(), j) == around_.end()) {
          around_.push_back(j);
        }
      }
    }
    double cells = 1.0;
    for (const index_t j : around_) cells *= bench_.domain[at(j)];
    const double work = cells * bench_.domain[at(v)] * static_cast<double>(own.size() + 1);
    if (work > 0.1 * work_ + 1e3) return false;
    const bool is_leaf = around_.size() <= 1;
    if (!is_leaf && (!all_private || around_.size() > most_arity || cells > replaced ||
                     cells > limits_.cells)) {
      return false;
    }
    work_ -= work;
    replace(v, at(static_cast<offset_t>(cells)));
    return true;
  }

  void replace(index_t v, std::size_t n_cells) {
    const std::vector<index_t> own = factors_of_[at(v)];
    const auto scores = bench_.unary_of(v);
    Eliminated record{v, {scores.begin(), scores.end()}, {}};
    std::vector<index_t> variables{v};
    variables.insert(variables.end(), around_.begin(), around_.end());
    std::vector<double> bucket(n_cells * scores.size());
    for (std::size_t a = 0; a < scores.size(); ++a) {
      std::fill_n(bucket.begin() + static_cast<std::ptrdiff_t>(a * n_cells), n_cells, scores[a]);
    }
    bench_cells(variables, own, bucket);
    for (const index_t f : own) {
      const auto scope = bench_.scope_of(f);
      record.terms.push_back({bench_.tables[at(bench_.table_of[at(f)])],
                              {scope.begin(), scope.end()},
                              bench_.scale[at(f)]});
      dead_[at(f)] = 1;
    }
    eliminated_.push_back(std::move(record));
    gone_[at(v)] = 1;

    std::vector<double> best(bucket.begin(), bucket.begin() + static_cast<std::ptrdiff_t>(n_cells));
    for (std::size_t c = n_cells; c < bucket.size(); ++c) {
      best[c % n_cells] = std::max(best[c % n_cells], bucket[c]);
    }
    std::vector<index_t> shape;
    for (const index_t j : around_) shape.push_back(bench_.domain[at(j)]);
    index_t added = add_cells(around_, std::move(shape), std::move(best));
    dead_.resize(at(bench_.n_factors()), 0);
    if (added < 0) return;
    const index_t twin = twin_of(added);
    if (twin >= 0) added = merge(twin, added);
    if (added < 0) return;
    for (const index_t j : bench_.scope_of(added)) factors_of_[at(j)].push_back(added);
  }

  /// A living factor over the same variables that may be merged with f.
  index_t twin_of(index_t f) const {
    const auto scope = bench_.scope_of(f);
    for (const index_t g : factors_of_[at(scope[0])]) {
      if (g == f || dead_[at(g)] || !is_small_private(g)) continue;
      if (same_scope(f, g)) return g;
    }
    return -1;
  }

  void restore(const Eliminated& record, std::vector<index_t>& bench) const {
    double best = -std::numeric_limits<double>::infinity();
    index_t chosen = 0;
    for (std::size_t a = 0; a < record.unary.size(); ++a) {
      bench[at(record.variable)] = static_cast<index_t>(a);
      double score = record.unary[a];
      for (const Term& term : record.terms) {
        offset_t cell = 0;
        for (std::size_t q = 0; q < term.scope.size(); ++q) {
          cell = cell * term.table->shape[q] + bench[at(term.scope[q])];
        }
        score += term.scale * term.table->at(cell);
      }
      if (score > best) {
        best = score;
        chosen = static_cast<index_t>(a);
      }
    }
    bench[at(record.variable)] = chosen;
  }

  // ---- the end ---------------------------------------------------------------------------------

  /// The variables, factors and tables that are left, numbered anew.
  void compact() {
    std::vector<index_t> number(bench_.domain.size(), -1);
    for (index_t i = 0; i < bench_.n_variables(); ++i) {
      if (gone_[at(i)]) continue;
      number[at(i)] = reduced_.add_variable(bench_.unary_of(i));
      bench_of_.push_back(i);
    }
    std::vector<index_t> table_number(bench_.tables.size(), -1);
    for (index_t f = 0; f < bench_.n_factors(); ++f) {
      if (dead_[at(f)]) continue;
      index_t& table = table_number[at(bench_.table_of[at(f)])];
      if (table < 0) table = reduced_.add_table(bench_.tables[at(bench_.table_of[at(f)])]);
      scope_.clear();
      for (const index_t i : bench_.scope_of(f)) scope_.push_back(number[at(i)]);
      reduced_.add_factor(scope_, table, bench_.scale[at(f)]);
    }
    reduced_.connect();
    bench_ = {};
    factors_of_ = {};
  }

  const ReductionLimits limits_;
  double work_;
  double constant_ = 0.0;
  bool changed_ = false;
  FactorGraph bench_, reduced_;

  std::vector<index_t> fixed_;                 ///< label of each variable that has no other
  std::vector<index_t> place_;                 ///< bench variable of each other variable, or -1
  std::vector<offset_t> kept_label_begin_{0};  ///< labels of each bench variable
  std::vector<index_t> kept_label_;
  std::vector<index_t> bench_of_;  ///< bench variable of each variable that is left
  std::vector<Eliminated> eliminated_;

  std::vector<index_t> uses_, new_table_, scope_, around_;
  std::vector<std::pair<double, double>> ranges_;
  std::vector<char> private_;  ///< of each bench table: dense, and of one factor
  std::vector<char> dead_, gone_;
  std::vector<std::vector<index_t>> factors_of_;
};

}  // namespace detail

class MapReduction {
 public:
  explicit MapReduction(const FactorGraph& graph, const ReductionLimits& limits = {})
      : original_(graph) {
    const FactorGraph* now = &graph;
    for (int round = 0; round < limits.rounds; ++round) {
      auto next =
          std::make_unique<detail::ReductionRound>(*now, limits, limits.incumbent - constant_);
      if (!next->changed()) break;
      if (!rounds_.empty()) rounds_.back()->graph() = {};
      constant_ += next->constant();
      rounds_.push_back(std::move(next));
      now = &rounds_.back()->graph();
    }
  }

  /// The graph that is left: the one given if nothing could be removed. It may have no variable.
  const FactorGraph& graph() const { return rounds_.empty() ? original_ : rounds_.back()->graph(); }

  /// score(lift(x)) = graph().score(x) + constant() for an optimal x, and >= for any.
  double constant() const { return constant_; }

  std::vector<index_t> lift(std::span<const index_t> reduced) const {
    std::vector<index_t> labels(reduced.begin(), reduced.end());
    for (std::size_t k = rounds_.size(); k-- > 0;) labels = rounds_[k]->lift(labels);
    return labels;
  }

  /// Labels of the reduced graph for a warm start.
  std::vector<index_t> restricted(std::span<const index_t> full) const {
    std::vector<index_t> labels(full.begin(), full.end());
    for (const auto& round : rounds_) labels = round->restricted(labels);
    return labels;
  }

 private:
  const FactorGraph& original_;
  double constant_ = 0.0;
  std::vector<std::unique_ptr<detail::ReductionRound>> rounds_;
};

}  // namespace sublearn
