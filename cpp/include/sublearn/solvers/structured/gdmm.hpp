// GDMM for structural SVMs (algorithms 1 and 4 of Yen, Huang, Zhong, Zhang, Ravikumar, Dhillon,
// "Dual Decomposed Learning with Factorwise Oracles for Structural SVMs of Large Output Domain",
// NIPS 2016; "(5)" and the like are its equations): multiclass problems of nodes and of
// factors, connected by messages.
//
//   min_w  1/2 |w|^2 + C sum_i L(w; x_i, y_i),   L the structured hinge loss, relaxed to the local
//   polytope (5); exact on trees.
//
// In terms of distributions p_j over the labels of node j and q_f over the states of factor f,
// where alpha = C (truth - p), the dual (10), divided by C, is
//
//   min  1/(2C) |w(p, q)|^2 - sum_j delta_j' p_j   s.t.  M_jf q_f = p_j
//   W = C sum_j x_j (e_truth - p_j)',  T = C sum_f s_f (e_truth - q_f)
//
// and the augmented Lagrangian adds lambda_jf'(M q - p) + rho/2 |M q - p|^2. A pass visits the
// samples in random order. In a sample: each node is searched over all labels (scores through the
// sparse rows of W) and its p is corrected exactly by a simplex projection
// (solvers/structured/node_step.hpp); each factor is searched over all states (appendix C-1), and
// its q is corrected by projected steps (25) with a line search on Q_f
// (solvers/structured/factor_step.hpp); then the multipliers move (13). W and T follow at once, at
// the cost of the labels that changed.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "sublearn/core/monitor.hpp"
#include "sublearn/core/rng.hpp"
#include "sublearn/core/types.hpp"
#include "sublearn/search/hashed_rows.hpp"
#include "sublearn/solvers/structured/coupling.hpp"
#include "sublearn/solvers/structured/factor_step.hpp"
#include "sublearn/solvers/structured/node_step.hpp"
#include "sublearn/solvers/structured/task.hpp"

namespace sublearn {

/// `kEnds`: the most nodes that a factor has.
template <class T, class I, std::size_t kEnds = 2>
class GdmmLearn {
 public:
  using Table = typename FactorStep<kEnds>::Table;

  GdmmLearn(const StructuredData<T, I>& data, const GdmmLearnSettings& settings)
      : data_(data),
        settings_(settings),
        rho_(settings.rho),
        rng_(settings.seed),
        weights_(static_cast<std::size_t>(data.X.n_cols()), data.n_labels, T{0},
                 Rng(settings.seed)),
        node_step_(data_, settings),
        factor_step_(data.n_labels, settings.uses_away_steps) {
    tables_.reserve(data.arity.size());
    for (const index_t arity : data.arity) {
      tables_.push_back(
          FactorStep<kEnds>::make_table(data.n_labels, static_cast<std::size_t>(arity)));
      mean_tables_.emplace_back(tables_.back().values().size(), 0.0);
    }
    connect();
    start();
    if (!(rho_ > 0.0)) rho_ = typical_rho();
  }

  /// One visit to every node and every factor.
  GdmmLearnPass pass(const Monitor* monitor) {
    GdmmLearnPass out;
    out.rho = rho_;
    node_step_.work = factor_step_.work = 0;
    disagreement_ = node_step_.moved = 0.0;
    std::vector<index_t> order(data_.n_samples());
    std::iota(order.begin(), order.end(), index_t{0});
    rng_.shuffle(std::span<index_t>(order));
    for (const index_t sample : order) {
      if (monitor != nullptr && monitor->stop_requested()) break;
      visit(static_cast<std::size_t>(sample));
    }
    const double n_ends = std::max<double>(1.0, static_cast<double>(data_.scope.size()));
    out.primal_residual = std::sqrt(disagreement_ / n_ends);
    out.dual_residual = rho_ * std::sqrt(node_step_.moved / n_ends);
    out.n_labels = update_means();
    for (const auto& states : states_) out.n_states += static_cast<offset_t>(states.size());
    out.work = node_step_.work + factor_step_.work;
    return out;
  }

  /// Value of the dual (10) at a point that fulfils its constraints, made from p and q: a lower
  /// bound on the least objective, relaxed where samples have cycles.
  ///
  /// The nodes keep their p, so W stays; only q moves, by as much as it disagrees with p.
  double feasible_dual() {
    std::vector<std::vector<double>> tables;
    for (const Table& table : tables_) {
      tables.emplace_back(table.values().begin(), table.values().end());
    }
    Coupling<kEnds> coupling;
    for (std::size_t i = 0; i < data_.n_samples(); ++i) {
      const double C = settings_.C * data_.weight_of(i);
      for (auto f = static_cast<std::size_t>(data_.factor_begin[i]);
           f < static_cast<std::size_t>(data_.factor_begin[i + 1]); ++f) {
        coupling.move(factor(f), C * data_.scale_of(f), static_cast<std::size_t>(data_.n_labels),
                      tables[at(data_.table[f])]);
      }
    }
    double norm = squared_norm(weights_);
    for (const auto& table : tables) {
      for (const double v : table) norm += v * v;
    }
    // between the truth (value 0) and this point: the best share of it
    const double gain = loss();
    const double share = norm > gain ? gain / norm : 1.0;
    return share * gain - 0.5 * share * share * norm;
  }

  const HashedRows<T>& weights() const { return weights_; }
  std::span<const double> table(std::size_t t) const { return tables_[t].values(); }
  double rho() const { return rho_; }

  /// 1/(2C) |w|^2 - sum delta' p, times -C: the dual value, a bound only where M q = p.
  double dual_value() const {
    double norm = squared_norm(weights_);
    for (const Table& table : tables_) {
      for (const double v : table.values()) norm += v * v;
    }
    return loss() - 0.5 * norm;
  }

  /// W of the mean of p over passes, the later ones counting more.
  HashedRows<T> mean_weights() const {
    HashedRows<T> mean(weights_.n_rows(), data_.n_labels, T{0}, Rng(settings_.seed));
    std::vector<typename HashedRows<T>::Change> changes;
    for (std::size_t i = 0; i < data_.n_samples(); ++i) {
      const double C = settings_.C * data_.weight_of(i);
      for (auto j = static_cast<std::size_t>(data_.node_begin[i]);
           j < static_cast<std::size_t>(data_.node_begin[i + 1]); ++j) {
        const LearnNode& at = nodes_[j];
        changes.clear();
        for (std::size_t s = 0; s < at.labels.size(); ++s) {
          const double change = (s == 0 ? 1.0 : 0.0) - at.mean(s);
          if (change == 0.0) continue;
          changes.push_back({mean.place(at.labels[s]), static_cast<T>(C * change)});
        }
        if (changes.empty()) continue;
        const auto row = data_.X.row(static_cast<offset_t>(j));
        for (std::size_t k = 0; k < row.size(); ++k) {
          mean.add(static_cast<std::size_t>(row.ids[k]), changes, row.values[k]);
        }
      }
    }
    return mean;
  }
  /// Likewise of a table.
  std::span<const double> mean_table(std::size_t t) const { return mean_tables_[t]; }

 private:
  /// Where the nodes of each factor begin, and which of its node's factors an end is.
  void connect() {
    const std::size_t n_nodes = data_.truth.size();
    nodes_.resize(n_nodes);
    end_of_.resize(data_.scope.size());
    std::vector<std::uint32_t> degree(n_nodes, 0);
    for (std::size_t e = 0; e < data_.scope.size(); ++e) {
      end_of_[e] = degree[at(data_.scope[e])]++;
    }
    for (std::size_t j = 0; j < n_nodes; ++j) nodes_[j].stride = 2 + 2 * degree[j];
    scope_begin_.push_back(0);
    for (std::size_t f = 0; f < data_.table.size(); ++f) {
      scope_begin_.push_back(scope_begin_.back() + data_.arity_of(f));
    }
  }

  /// The truth everywhere: all weights zero.
  void start() {
    states_.resize(data_.table.size());
    for (std::size_t j = 0; j < nodes_.size(); ++j) {
      nodes_[j].enter(data_.truth[j]);
      nodes_[j].p(0) = nodes_[j].mean(0) = 1.0;
    }
    for (std::size_t f = 0; f < states_.size(); ++f) {
      states_[f].push_back({{}, 1.0});
      LearnFactor<kEnds> at = factor(f);
      for (std::size_t side = 0; side < at.size(); ++side) {
        at.nodes[side]->marginal(0, at.ends[side]) = 1.0;
      }
    }
  }

  /// A share of the curvature C |x|^2 of a typical node, so that it does not depend on the scale of
  /// the features. Fixed values from 0.1 to 10 were tried on handwriting (|x|^2 = 29) and on tags
  /// from 2 and from 14 features of words: the best lay at shares from 0.07 to 1.
  double typical_rho() const {
    constexpr double kShare = 0.3;
    return kShare * settings_.C * std::max(node_step_.mean_square(), 1.0);  // 1: |x|^2 of a pair
  }

  /// C sum (1 - p(truth)), the linear part of the dual.
  double loss() const {
    double sum = 0.0;
    for (std::size_t i = 0; i < data_.n_samples(); ++i) {
      double of_sample = 0.0;
      for (auto j = static_cast<std::size_t>(data_.node_begin[i]);
           j < static_cast<std::size_t>(data_.node_begin[i + 1]); ++j) {
        of_sample += 1.0 - nodes_[j].p(0);
      }
      sum += data_.weight_of(i) * of_sample;
    }
    return settings_.C * sum;
  }

  static double squared_norm(const HashedRows<T>& weights) {
    double sum = 0.0;
    for (std::size_t d = 0; d < weights.n_rows(); ++d) {
      weights.for_each_weight(
          d, [&](index_t, T w) { sum += static_cast<double>(w) * static_cast<double>(w); });
    }
    return sum;
  }

  LearnFactor<kEnds> factor(std::size_t f) {
    LearnFactor<kEnds> out{states_[f], {}, {}, 2, data_.scale_of(f)};
    const std::size_t begin = scope_begin_[f];
    out.n_ends = scope_begin_[f + 1] - begin;
    for (std::size_t side = 0; side < out.size(); ++side) {
      out.nodes[side] = &nodes_[at(data_.scope[begin + side])];
      out.ends[side] = end_of_[begin + side];
    }
    return out;
  }

  void visit(std::size_t sample) {
    const double C = settings_.C * data_.weight_of(sample);
    if (C == 0.0) return;
    for (const index_t n : numbers(data_.node_begin[sample], data_.node_begin[sample + 1])) {
      const auto j = static_cast<std::size_t>(n);
      node_step_.correct(j, nodes_[j], weights_, C, rho_, rng_);
    }
    for (const index_t n : numbers(data_.factor_begin[sample], data_.factor_begin[sample + 1])) {
      const auto f = static_cast<std::size_t>(n);
      LearnFactor<kEnds> each = factor(f);
      factor_step_.correct(each, tables_[at(data_.table[f])], C, rho_);
    }
    update_multipliers(sample);
  }

  std::span<const index_t> numbers(offset_t begin, offset_t end) {
    order_.resize(static_cast<std::size_t>(end - begin));
    std::iota(order_.begin(), order_.end(), static_cast<index_t>(begin));
    rng_.shuffle(std::span<index_t>(order_));
    return order_;
  }

  void update_multipliers(std::size_t sample) {
    const double eta = settings_.eta > 0.0 ? settings_.eta : rho_;
    for (auto j = static_cast<std::size_t>(data_.node_begin[sample]);
         j < static_cast<std::size_t>(data_.node_begin[sample + 1]); ++j) {
      LearnNode& node = nodes_[j];
      for (std::size_t s = 0; s < node.labels.size(); ++s) {
        for (std::size_t e = 0; e < node.degree(); ++e) {
          const double difference = node.marginal(s, e) - node.p(s);
          disagreement_ += difference * difference;
          node.lambda(s, e) += eta * difference;
        }
      }
    }
  }

  /// Means of p and of the tables take in the pass that ended. Pass t counts as t (t + 1) (t + 2):
  /// the polynomial decay of Shamir and Zhang (2013). With t alone, as is usual for
  /// block-coordinate Frank-Wolfe, the first passes show too long: handwriting had 0.2 points less
  /// after 16 passes. Returns the number of labels with a share.
  offset_t update_means() {
    const double share = 4.0 / (static_cast<double>(++n_passes_) + 3.0);
    offset_t n_labels = 0;
    for (LearnNode& node : nodes_) {
      for (std::size_t s = 0; s < node.labels.size(); ++s) {
        n_labels += node.p(s) > 0.0;
        node.mean(s) += share * (node.p(s) - node.mean(s));
      }
    }
    for (std::size_t t = 0; t < tables_.size(); ++t) {
      const auto values = tables_[t].values();
      auto& mean = mean_tables_[t];
      for (std::size_t cell = 0; cell < mean.size(); ++cell) {
        mean[cell] += share * (values[cell] - mean[cell]);
      }
    }
    return n_labels;
  }

  StructuredData<T, I> data_;
  GdmmLearnSettings settings_;
  double rho_;
  Rng rng_;
  HashedRows<T> weights_;
  NodeStep<T, I> node_step_;
  FactorStep<kEnds> factor_step_;
  std::vector<Table> tables_;
  std::vector<std::vector<double>> mean_tables_;
  std::vector<LearnNode> nodes_;
  std::vector<std::vector<LearnState<kEnds>>> states_;  ///< of each factor
  std::vector<std::size_t> scope_begin_;
  std::vector<std::uint32_t> end_of_;
  std::vector<index_t> order_;
  double disagreement_ = 0.0;  ///< sum of squares of M q - p
  offset_t n_passes_ = 0;
};

}  // namespace sublearn
