// Labels that some optimum does without, found by local comparisons (dead-end elimination).
//
// Label a of variable i is dominated by b, whatever the other variables do, if
//
//   theta_i(a) - theta_i(b) + sum_f max_rest (theta_f(a, rest) - theta_f(b, rest)) <= 0
//
// (Goldstein 1994); rest runs over labels that live, so each removal may bring others. Labels are
// removed one at a time: a label that is gone dominates none, and equal labels do not remove each
// other. With two labels and pairs this says that a variable whose best possible gain for label 1
// is not positive has label 0; there the sums are kept up to date, and the cost is linear in the
// number of factors.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "sublearn/core/factor_graph.hpp"
#include "sublearn/core/types.hpp"

namespace sublearn {

class LabelDominance {
 public:
  /// Finds the labels that live, within about `work` operations. Labels that cannot be part of an
  /// assignment with a score of at least `incumbent`, a score that some assignment has, die too.
  LabelDominance(const FactorGraph& graph, double work,
                 double incumbent = -std::numeric_limits<double>::infinity())
      : graph_(graph), lives_(graph.unary.size(), 1), n_alive_(graph.domain), work_(work) {
    if (incumbent > -std::numeric_limits<double>::infinity()) drop_hopeless(incumbent);
    compare_binary();
    compare_labels();
  }

  bool lives(index_t i, index_t label) const {
    return lives_[at(graph_.unary_begin[at(i)] + label)] != 0;
  }
  index_t n_alive(index_t i) const { return n_alive_[at(i)]; }

  /// The one label of a variable that has no other left.
  index_t only_label(index_t i) const {
    index_t a = 0;
    while (!lives(i, a)) ++a;
    return a;
  }

 private:
  void kill(index_t i, index_t label) {
    lives_[at(graph_.unary_begin[at(i)] + label)] = 0;
    --n_alive_[at(i)];
  }

  static bool is_pair(const FactorTable& table) {
    return table.shape.size() == 2 && table.shape[0] == 2 && table.shape[1] == 2;
  }

  // ---- a known score ---------------------------------------------------------------------------

  /// No assignment has more than the sum of all maxima; one with label a of i loses the difference.
  void drop_hopeless(double incumbent) {
    std::vector<double> most(graph_.tables.size());
    for (std::size_t t = 0; t < most.size(); ++t) most[t] = graph_.tables[t]->upper_bound();
    double bound = 0.0;
    for (index_t f = 0; f < graph_.n_factors(); ++f) {
      bound += graph_.scale[at(f)] * most[at(graph_.table_of[at(f)])];
    }
    for (index_t i = 0; i < graph_.n_variables(); ++i) {
      const auto own = graph_.unary_of(i);
      bound += *std::max_element(own.begin(), own.end());
    }
    const double slack = bound - incumbent + 1e-9 * (1.0 + std::abs(bound) + std::abs(incumbent));
    for (index_t i = 0; i < graph_.n_variables(); ++i) {
      const auto own = graph_.unary_of(i);
      const double best = *std::max_element(own.begin(), own.end());
      for (std::size_t a = 0; a < own.size(); ++a) {
        if (own[a] < best - slack) kill(i, static_cast<index_t>(a));
      }
    }
  }

  // ---- two labels, pairs -----------------------------------------------------------------------

  /// Gains of label 1 over label 0 for each table, position and label of the other.
  void find_gains() {
    gains_.assign(4 * graph_.tables.size(), 0.0);
    for (std::size_t t = 0; t < graph_.tables.size(); ++t) {
      const FactorTable& table = *graph_.tables[t];
      if (!is_pair(table)) continue;
      for (index_t y = 0; y < 2; ++y) {
        gains_[4 * t + at(y)] = table.pair(1, y) - table.pair(0, y);
        gains_[4 * t + 2 + at(y)] = table.pair(y, 1) - table.pair(y, 0);
      }
    }
  }
  double gain(index_t f, index_t p, index_t y) const {
    return graph_.scale[at(f)] * gains_[4 * at(graph_.table_of[at(f)]) + at(2 * p + y)];
  }

  /// Variables with two labels in pairs of such variables only.
  void find_binary() {
    binary_.resize(graph_.domain.size());
    for (std::size_t i = 0; i < binary_.size(); ++i) binary_[i] = graph_.domain[i] == 2;
    for (index_t f = 0; f < graph_.n_factors(); ++f) {
      if (is_pair(graph_.table(f))) continue;
      for (const index_t i : graph_.scope_of(f)) binary_[at(i)] = 0;
    }
  }

  void compare_binary() {
    find_binary();
    find_gains();
    std::vector<double> high(binary_.size(), 0.0), low(binary_.size(), 0.0);
    std::vector<index_t> fixed;
    for (index_t i = 0; i < graph_.n_variables(); ++i) {
      if (!binary_[at(i)]) continue;
      const auto own = graph_.unary_of(i);
      double most = own[1] - own[0], least = most;
      for (const FactorEnd& end : graph_.ends_of(i)) {
        const double with_0 = gain(end.factor, end.position, 0);
        const double with_1 = gain(end.factor, end.position, 1);
        most += std::max(with_0, with_1);
        least += std::min(with_0, with_1);
      }
      high[at(i)] = most;
      low[at(i)] = least;
      if (n_alive(i) == 1) fixed.push_back(i);
    }
    for (index_t i = 0; i < graph_.n_variables(); ++i) settle(i, high, low, fixed);
    while (!fixed.empty()) {
      const index_t j = fixed.back();
      fixed.pop_back();
      const index_t y = only_label(j);
      for (const FactorEnd& end : graph_.ends_of(j)) {
        const index_t i = graph_.scope_of(end.factor)[at(1 - end.position)];
        const double now = gain(end.factor, 1 - end.position, y);
        const double other = gain(end.factor, 1 - end.position, 1 - y);
        high[at(i)] += std::min(0.0, now - other);
        low[at(i)] += std::max(0.0, now - other);
        settle(i, high, low, fixed);
      }
    }
  }

  void settle(index_t i, const std::vector<double>& high, const std::vector<double>& low,
              std::vector<index_t>& fixed) {
    if (!binary_[at(i)] || n_alive(i) == 1) return;
    if (high[at(i)] <= 0.0) {
      kill(i, 1);
    } else if (low[at(i)] >= 0.0) {
      kill(i, 0);
    } else {
      return;
    }
    fixed.push_back(i);
  }

  // ---- any labels ------------------------------------------------------------------------------

  /// Cells that one comparison of the labels of i reads.
  double cells_around(index_t i) const {
    double cells = 0.0;
    for (const FactorEnd& end : graph_.ends_of(i)) {
      cells += static_cast<double>(graph_.table(end.factor).n_cells());
    }
    return cells;
  }

  void compare_labels() {
    std::vector<index_t> queue;
    std::vector<char> waits(graph_.domain.size(), 0);
    for (index_t i = graph_.n_variables(); i-- > 0;) {
      if (binary_[at(i)] || n_alive(i) == 1) continue;
      queue.push_back(i);
      waits[at(i)] = 1;
    }
    while (!queue.empty() && work_ > 0.0) {
      const index_t i = queue.back();
      queue.pop_back();
      waits[at(i)] = 0;
      const double cost = 4.0 * cells_around(i);
      if (cost > 0.05 * work_ + 1e4) continue;
      work_ -= cost;
      if (!compare(i)) continue;
      for (const FactorEnd& end : graph_.ends_of(i)) {
        for (const index_t j : graph_.scope_of(end.factor)) {
          if (waits[at(j)] || n_alive(j) == 1) continue;
          queue.push_back(j);
          waits[at(j)] = 1;
        }
      }
    }
  }

  /// Compares every label of i with the three that look best; true if one died.
  bool compare(index_t i) {
    const auto own = graph_.unary_of(i);
    const std::size_t n = own.size();
    const double none = -std::numeric_limits<double>::infinity();
    hope_.assign(own.begin(), own.end());
    for (const FactorEnd& end : graph_.ends_of(i)) {
      row_.assign(n, none);
      for_each_rest(end, [&](std::span<const double> values) {
        for (std::size_t a = 0; a < n; ++a) row_[a] = std::max(row_[a], values[a]);
      });
      for (std::size_t a = 0; a < n; ++a) hope_[a] += row_[a];
    }
    std::vector<index_t> rivals;
    for (index_t a = 0; a < static_cast<index_t>(n); ++a) {
      if (lives(i, a)) rivals.push_back(a);
    }
    if (rivals.size() < 2) return false;
    const std::size_t n_rivals = std::min<std::size_t>(rivals.size(), 3);
    std::partial_sort(rivals.begin(), rivals.begin() + static_cast<std::ptrdiff_t>(n_rivals),
                      rivals.end(),
                      [&](index_t a, index_t b) { return hope_[at(a)] > hope_[at(b)]; });
    rivals.resize(n_rivals);
    return kill_dominated(i, rivals);
  }

  bool kill_dominated(index_t i, std::span<const index_t> rivals) {
    const auto own = graph_.unary_of(i);
    const std::size_t n = own.size();
    lead_.resize(n * rivals.size());
    for (std::size_t r = 0; r < rivals.size(); ++r) {
      for (std::size_t a = 0; a < n; ++a) lead_[r * n + a] = own[a] - own[at(rivals[r])];
    }
    for (const FactorEnd& end : graph_.ends_of(i)) {
      row_.assign(lead_.size(), -std::numeric_limits<double>::infinity());
      for_each_rest(end, [&](std::span<const double> values) {
        for (std::size_t r = 0; r < rivals.size(); ++r) {
          const double base = values[at(rivals[r])];
          double* row = row_.data() + r * n;
          for (std::size_t a = 0; a < n; ++a) row[a] = std::max(row[a], values[a] - base);
        }
      });
      for (std::size_t c = 0; c < lead_.size(); ++c) lead_[c] += row_[c];
    }
    bool any = false;
    for (std::size_t r = 0; r < rivals.size(); ++r) {
      if (!lives(i, rivals[r])) continue;
      for (index_t a = 0; a < static_cast<index_t>(n); ++a) {
        if (a == rivals[r] || !lives(i, a) || lead_[r * n + at(a)] > 0.0) continue;
        kill(i, a);
        any = true;
      }
    }
    return any;
  }

  /// Calls visit(scores of all labels at this end) for each joint label of the others that lives.
  template <class Visit>
  void for_each_rest(const FactorEnd& end, Visit&& visit) {
    const FactorTable& table = graph_.table(end.factor);
    const auto scope = graph_.scope_of(end.factor);
    const double scale = graph_.scale[at(end.factor)];
    const std::size_t own = at(end.position);
    offset_t step = 1;
    for (std::size_t q = scope.size(); q-- > own + 1;) step *= table.shape[q];
    values_.resize(at(table.shape[own]));
    odometer_.assign(scope.size(), 0);
    for (;;) {
      bool live = true;
      offset_t base = 0;
      for (std::size_t q = 0; q < scope.size(); ++q) {
        live = live && (q == own || lives(scope[q], odometer_[q]));
        base = base * table.shape[q] + odometer_[q];
      }
      if (live) {
        for (std::size_t a = 0; a < values_.size(); ++a) {
          values_[a] = scale * table.at(base + step * static_cast<offset_t>(a));
        }
        visit(std::span<const double>(values_));
      }
      std::size_t q = scope.size();
      while (q-- > 0) {
        if (q == own) continue;
        if (++odometer_[q] < table.shape[q]) break;
        odometer_[q] = 0;
      }
      if (q == static_cast<std::size_t>(-1)) return;
    }
  }

  const FactorGraph& graph_;
  std::vector<char> lives_;  ///< like graph.unary
  std::vector<index_t> n_alive_;
  double work_;
  std::vector<char> binary_;
  std::vector<double> gains_, hope_, lead_, row_, values_;
  std::vector<index_t> odometer_;
};

}  // namespace sublearn
