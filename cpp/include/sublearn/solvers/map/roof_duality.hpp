// Roof duality: the linear program (3.25) of a graph of binary variables and pairs, solved by one
// maximum flow (Hammer, Hansen and Simeone 1984; as QPBO: Kolmogorov and Rother 2007).
//
// Each variable has two nodes, i for x_i and n + i for 1 - x_i; a pair is two arcs between nodes
// that agree (scores that favour equal labels) or disagree. A node that the source reaches, or
// that reaches the sink, has its label in every best assignment. The others are open.
//
// Scores are rounded to integers of 2^-58 of their sum, so flows are exact. `bound` holds what
// rounding can do, and is valid.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <vector>

#include "sublearn/core/factor_graph.hpp"
#include "sublearn/core/max_flow.hpp"
#include "sublearn/core/monitor.hpp"
#include "sublearn/core/rng.hpp"
#include "sublearn/core/types.hpp"

namespace sublearn {

class RoofDuality {
 public:
  static constexpr index_t kOpen = -1;

  /// Whether all variables have at most two labels and all factors two positions.
  static bool applies(const FactorGraph& graph) {
    const auto is_pair = [&](index_t t) { return graph.tables[at(t)]->arity() == 2; };
    return std::all_of(graph.domain.begin(), graph.domain.end(),
                       [](index_t k) { return k <= 2; }) &&
           std::all_of(graph.table_of.begin(), graph.table_of.end(), is_pair);
  }

  /// The graph must outlive this.
  explicit RoofDuality(const FactorGraph& graph)
      : graph_(&graph), n_(graph.n_variables()), network_(2 * n_) {
    if (!applies(graph)) {
      throw std::invalid_argument("graph must have binary variables and factors of two positions");
    }
    choose_scale();
    build();
  }

  /// False if the monitor asked to stop; bound and labels are then still valid, but weak.
  bool solve(const Monitor* monitor = nullptr) {
    is_solved_ = network_.solve(monitor);
    return is_solved_;
  }

  /// At least the score of every assignment. The dual of the linear program, once solved.
  double bound() const {
    const double least_cost =
        static_cast<double>(constant_) + 0.5 * static_cast<double>(network_.flow());
    const double n_terms = static_cast<double>(graph_->domain.size() + graph_->table_of.size());
    return -(least_cost - n_terms) / scale_;
  }

  /// The label of each variable in every best assignment, or kOpen.
  std::vector<index_t> labels() const {
    std::vector<index_t> labels(static_cast<std::size_t>(n_), kOpen);
    for (index_t i = 0; is_solved_ && i < n_; ++i) {
      labels[at(i)] = is_single(i) ? 0 : label_in(network_, i);
    }
    return labels;
  }

  /// Makes an assignment better or leaves it: open variables are fixed to its labels one after
  /// another in random order, and the flow finds the best labels of those it decides (QPBO-I of
  /// Rother et al. 2007). Ends after `patience` rounds without gain. True if it got better.
  bool improve(std::span<index_t> labels, Rng& rng, int patience,
               const Monitor* monitor = nullptr) const {
    double score = graph_->score(labels);
    bool is_better = false;
    std::vector<index_t> trial(labels.begin(), labels.end());
    for (int failures = 0; is_solved_ && failures < patience; ++failures) {
      std::copy(labels.begin(), labels.end(), trial.begin());
      if (!fix_in_turn(trial, rng, monitor)) break;
      const double reached = graph_->score(trial);
      if (reached <= score) continue;
      if (reached > score + 1e-12 * std::abs(score)) failures = -1;
      score = reached;
      is_better = true;
      std::copy(trial.begin(), trial.end(), labels.begin());
    }
    return is_better;
  }

 private:
  using Capacity = MaxFlow::Capacity;

  bool is_single(index_t i) const { return graph_->domain[at(i)] == 1; }

  static index_t label_in(const MaxFlow& network, index_t i) {
    switch (network.side(i)) {
      case MaxFlow::Side::source:
        return 0;
      case MaxFlow::Side::sink:
        return 1;
      default:
        return kOpen;
    }
  }

  /// A power of two, so that scaling itself does not round. Twice each term enters the network,
  /// and fixing variables can double that again.
  void choose_scale() {
    double sum = 0.0;
    for (const double score : graph_->unary) sum += std::abs(score);
    for (index_t f = 0; f < graph_->n_factors(); ++f) {
      for (int cell = 0; cell < 4; ++cell) sum += std::abs(score_of(f, cell / 2, cell % 2));
    }
    const double room = 0x1.0p58 / std::max(sum, 1e-280);
    scale_ = std::exp2(std::floor(std::log2(room)));
  }

  double score_of(index_t f, index_t a, index_t b) const {
    const FactorTable& table = graph_->table(f);
    return graph_->scale[at(f)] *
           table.pair(std::min(a, table.shape[0] - 1), std::min(b, table.shape[1] - 1));
  }
  Capacity cost(double score) const { return -std::llround(scale_ * score); }

  void build() {
    std::vector<Capacity> slope(static_cast<std::size_t>(n_), 0);  // cost of label 1 over label 0
    for (index_t i = 0; i < n_; ++i) {
      const auto unary = graph_->unary_of(i);
      constant_ += cost(unary[0]);
      slope[at(i)] = cost(unary.back()) - cost(unary[0]);
    }
    network_.reserve_edges(2 * graph_->table_of.size());
    for (index_t f = 0; f < graph_->n_factors(); ++f) add_pair(f, slope);
    for (index_t i = 0; i < n_; ++i) {
      const Capacity rise = slope[at(i)];
      if (rise < 0) constant_ += rise;
      network_.add_terminal(i, rise);
      network_.add_terminal(n_ + i, -rise);
    }
  }

  /// c00 + (c10 - c00) x + (c11 - c10) y + w (1 - x) y if w = c01 + c10 - c00 - c11 is positive;
  /// else c01 + (c11 - c01) x + (c10 - c11) (1 - y) - w (1 - x) (1 - y).
  void add_pair(index_t f, std::span<Capacity> slope) {
    const auto scope = graph_->scope_of(f);
    const index_t i = scope[0], j = scope[1];
    const Capacity c00 = cost(score_of(f, 0, 0)), c01 = cost(score_of(f, 0, 1));
    const Capacity c10 = cost(score_of(f, 1, 0)), c11 = cost(score_of(f, 1, 1));
    const Capacity w = c01 + c10 - c00 - c11;
    Capacity& at_i = slope[at(i)];
    Capacity& at_j = slope[at(j)];
    if (w >= 0) {
      constant_ += c00;
      at_i += c10 - c00;
      at_j += c11 - c10;
      if (w == 0) return;
      network_.add_edge(i, j, w, 0);
      network_.add_edge(n_ + j, n_ + i, w, 0);
    } else {
      constant_ += c01 + c10 - c11;
      at_i += c11 - c01;
      at_j += c11 - c10;
      network_.add_edge(i, n_ + j, -w, 0);
      network_.add_edge(j, n_ + i, -w, 0);
    }
  }

  /// False if stopped on the way.
  bool fix_in_turn(std::span<index_t> labels, Rng& rng, const Monitor* monitor) const {
    MaxFlow network = network_;
    std::vector<index_t> order;
    for (index_t i = 0; i < n_; ++i) {
      if (!is_single(i) && label_in(network, i) == kOpen) order.push_back(i);
    }
    rng.shuffle(std::span<index_t>(order));
    for (const index_t i : order) {
      if (label_in(network, i) != kOpen) continue;
      const Capacity enough = network.total_capacity(i) + 1;
      const bool is_one = labels[at(i)] == 1;
      network.add_terminal(i, is_one ? -enough : enough);
      network.add_terminal(n_ + i, is_one ? enough : -enough);
      if (!network.solve(monitor)) return false;
    }
    for (index_t i = 0; i < n_; ++i) {
      const index_t label = is_single(i) ? 0 : label_in(network, i);
      if (label != kOpen) labels[at(i)] = label;
    }
    return true;
  }

  const FactorGraph* graph_;
  index_t n_;
  MaxFlow network_;
  double scale_ = 1.0;
  Capacity constant_ = 0;
  bool is_solved_ = false;
};

}  // namespace sublearn
