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
//
// A factor may have features z: its score is then z'V(state), V = C sum_f z_f (e_truth - q_f)'. The
// loss may be any table: 1 - p_j(truth) is then sum_y delta(truth, y) p_j(y).
//
// Unless all factors are to be visited, a factor begins idle, with its q at the truth. It becomes
// active when a state violates: a visit would move its q (idle_factors.hpp). Multipliers of idle
// factors follow the p of a node alone, so that the node keeps them once. This changes the order of
// visits and nothing else: algorithm 3 of the paper takes in the most violating factor of a sample
// in each pass, this solver that one or all that violate.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "sublearn/core/monitor.hpp"
#include "sublearn/core/rng.hpp"
#include "sublearn/core/types.hpp"
#include "sublearn/search/hashed_rows.hpp"
#include "sublearn/solvers/structured/coupling.hpp"
#include "sublearn/solvers/structured/factor_step.hpp"
#include "sublearn/solvers/structured/idle_factors.hpp"
#include "sublearn/solvers/structured/node_step.hpp"
#include "sublearn/solvers/structured/task.hpp"

namespace sublearn {

/// `kEnds`: the most nodes that a factor has.
template <class T, class I, std::size_t kEnds = 2>
class GdmmLearn {
 public:
  using Table = typename FactorStep<kEnds>::Table;
  using AnyTable = std::variant<Table, FeatureTable>;

  GdmmLearn(const StructuredData<T, I>& data, const GdmmLearnSettings& settings)
      : data_(data),
        settings_(settings),
        rho_(settings.rho),
        rng_(settings.seed),
        weights_(static_cast<std::size_t>(data.X.n_cols()), data.n_labels, T{0},
                 Rng(settings.seed)),
        node_step_(data_, settings),
        factor_step_(data.n_labels, settings) {
    tables_.reserve(data.arity.size());
    for (std::size_t t = 0; t < data.arity.size(); ++t) {
      tables_.push_back(make_table(t));
      mean_tables_.emplace_back(table(t).size(), 0.0);
    }
    connect();
    start();
    if (settings.visits != FactorVisits::kAll) {
      idle_.emplace_back(data_, scope_begin_);
      drift_.assign(tables_.size(), 0.0);
      for (std::size_t t = 0; t < tables_.size(); ++t) {
        before_.emplace_back(table(t).begin(), table(t).end());
      }
    }
    if (!(rho_ > 0.0)) rho_ = typical_rho();
  }

  /// One visit to every node and every factor.
  GdmmLearnPass pass(const Monitor* monitor) {
    GdmmLearnPass out;
    out.rho = rho_;
    follow_drift();
    node_step_.work = factor_step_.work = 0;
    disagreement_ = node_step_.moved = 0.0;
    n_visits_ = 0;
    std::vector<index_t> order(data_.n_samples());
    std::iota(order.begin(), order.end(), index_t{0});
    rng_.shuffle(std::span<index_t>(order));
    for (const index_t sample : order) {
      if (monitor != nullptr && monitor->stop_requested()) break;
      const double C = settings_.C * data_.weight_of(static_cast<std::size_t>(sample));
      if (C == 0.0) continue;
      if (idle_.empty()) {
        visit(static_cast<std::size_t>(sample), C);
      } else {
        visit_active(static_cast<std::size_t>(sample), C);
      }
    }
    const double n_ends = std::max<double>(1.0, static_cast<double>(data_.scope.size()));
    out.primal_residual = std::sqrt(disagreement_ / n_ends);
    out.dual_residual = rho_ * std::sqrt(node_step_.moved / n_ends);
    out.n_labels = update_means();
    for (const auto& states : states_) out.n_states += static_cast<offset_t>(states.size());
    out.n_factors = idle_.empty() ? std::ssize(data_.table) : idle_[0].n_active();
    out.n_visits = n_visits_;
    out.work = node_step_.work + factor_step_.work;
    return out;
  }

  /// Value of the dual (10) at a point that fulfils its constraints, made from p and q: a lower
  /// bound on the least objective, relaxed where samples have cycles.
  ///
  /// The nodes keep their p, so W stays; only q moves, by as much as it disagrees with p.
  double feasible_dual() {
    std::vector<std::vector<double>> tables;
    for (std::size_t t = 0; t < tables_.size(); ++t) {
      tables.emplace_back(table(t).begin(), table(t).end());
    }
    Coupling<kEnds> coupling;
    for (std::size_t i = 0; i < data_.n_samples(); ++i) {
      const double C = settings_.C * data_.weight_of(i);
      for (auto f = static_cast<std::size_t>(data_.factor_begin[i]);
           f < static_cast<std::size_t>(data_.factor_begin[i + 1]); ++f) {
        const LearnFactor<kEnds> each = factor(f);
        if (is_at_truth(each)) continue;
        auto& cells = tables[at(data_.table[f])];
        coupling.move(each, static_cast<std::size_t>(data_.n_labels),
                      [&](std::size_t cell, double amount) { add(f, cells, cell, C * amount); });
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
  std::span<const double> table(std::size_t t) const {
    return std::visit([](const auto& each) { return each.values(); }, tables_[t]);
  }
  double rho() const { return rho_; }

  /// 1/(2C) |w|^2 - sum delta' p, times -C: the dual value, a bound only where M q = p.
  double dual_value() const {
    double norm = squared_norm(weights_);
    for (std::size_t t = 0; t < tables_.size(); ++t) {
      for (const double v : table(t)) norm += v * v;
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
  AnyTable make_table(std::size_t t) const {
    const auto arity = static_cast<std::size_t>(data_.arity[t]);
    if (data_.width.empty() || data_.width[t] == 0) {
      return FactorStep<kEnds>::make_table(data_.n_labels, arity);
    }
    std::size_t n_cells = 1;
    for (std::size_t end = 0; end < arity; ++end) {
      n_cells *= static_cast<std::size_t>(data_.n_labels);
    }
    return FeatureTable(data_.width[t], n_cells);
  }

  /// Where the nodes of each factor begin, and which of its node's factors an end is.
  void connect() {
    const std::size_t n_nodes = data_.truth.size();
    const bool is_idle = settings_.visits != FactorVisits::kAll;
    nodes_.resize(n_nodes);
    end_of_.assign(data_.scope.size(), kIdleEnd);
    for (std::size_t e = 0; e < data_.scope.size(); ++e) {
      LearnNode& node = nodes_[at(data_.scope[e])];
      if (is_idle) {
        ++node.n_idle;
      } else {
        end_of_[e] = node.degree();
        node.stride += 2;
      }
    }
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
        if (at.ends[side] != kIdleEnd) at.nodes[side]->marginal(0, at.ends[side]) = 1.0;
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

  /// C sum delta'p, the linear part of the dual.
  double loss() const {
    double sum = 0.0;
    for (std::size_t i = 0; i < data_.n_samples(); ++i) {
      double of_sample = 0.0;
      for (auto j = static_cast<std::size_t>(data_.node_begin[i]);
           j < static_cast<std::size_t>(data_.node_begin[i + 1]); ++j) {
        of_sample += loss_of(j);
      }
      sum += data_.weight_of(i) * of_sample;
    }
    return settings_.C * sum;
  }
  double loss_of(std::size_t j) const {
    const LearnNode& node = nodes_[j];
    if (data_.loss.empty()) return 1.0 - node.p(0);
    double sum = 0.0;
    for (std::size_t s = 0; s < node.labels.size(); ++s) {
      sum += node.p(s) * data_.loss_of(data_.truth[j], node.labels[s]);
    }
    return sum;
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
    LearnFactor<kEnds> out{states_[f], {}, {}, 2};
    const std::size_t begin = scope_begin_[f];
    out.n_ends = scope_begin_[f + 1] - begin;
    for (std::size_t side = 0; side < out.size(); ++side) {
      out.nodes[side] = &nodes_[at(data_.scope[begin + side])];
      out.ends[side] = end_of_[begin + side];
    }
    return out;
  }

  /// Calls visit(scores) with what the states of a factor score.
  template <class Visit>
  auto with_scores(std::size_t f, Visit&& visit) {
    AnyTable& any = tables_[at(data_.table[f])];
    if (auto* table = std::get_if<FeatureTable>(&any)) {
      return visit(TableOfFeatures{*table, data_.factor_features.row(static_cast<offset_t>(f))});
    }
    return visit(ScaledTable<Table>{std::get<Table>(any), data_.scale_of(f)});
  }

  /// Adds to the cells of a factor's tables what its q adds to one cell.
  void add(std::size_t f, std::span<double> cells, std::size_t cell, double amount) const {
    if (!data_.has_features(f)) {
      cells[cell] += data_.scale_of(f) * amount;
      return;
    }
    const auto row = data_.factor_features.row(static_cast<offset_t>(f));
    const std::size_t n_cells = cells.size() / at(data_.width[at(data_.table[f])]);
    for (std::size_t k = 0; k < row.size(); ++k) {
      cells[at(row.ids[k]) * n_cells + cell] += row.values[k] * amount;
    }
  }

  static bool is_at_truth(const LearnFactor<kEnds>& factor) {
    for (std::size_t side = 0; side < factor.size(); ++side) {
      if (factor.ends[side] != kIdleEnd || factor.nodes[side]->p(0) != 1.0) return false;
    }
    return true;
  }

  // ---- a visit to a sample ---------------------------------------------------------------------

  void visit(std::size_t sample, double C) {
    for (const index_t j : numbers(data_.node_begin[sample], data_.node_begin[sample + 1])) {
      correct_node(at(j), C);
    }
    for (const index_t f : numbers(data_.factor_begin[sample], data_.factor_begin[sample + 1])) {
      correct_factor(at(f), C);
    }
    for (auto j = data_.node_begin[sample]; j < data_.node_begin[sample + 1]; ++j) {
      update_multipliers(nodes_[at(j)]);
    }
  }

  void correct_node(std::size_t j, double C) {
    ++n_visits_;
    node_step_.correct(j, nodes_[j], weights_, C, rho_, rng_);
  }

  void correct_factor(std::size_t f, double C) {
    ++n_visits_;
    LearnFactor<kEnds> each = factor(f);
    with_scores(f, [&](const auto& scores) { factor_step_.correct(each, scores, C, rho_, rng_); });
  }

  /// Active nodes and those of a part, active factors, and those that begin to be.
  void visit_active(std::size_t sample, double C) {
    IdleFactors<T, I>& idle = idle_[0];
    const auto n_parts = static_cast<std::uint32_t>(settings_.n_factor_parts);
    part_ = n_parts > 1 ? static_cast<offset_t>(rng_.below(n_parts)) : 0;
    order_ = idle.nodes(sample);
    for (auto j = data_.node_begin[sample] + part_; j < data_.node_begin[sample + 1];
         j += settings_.n_factor_parts) {
      if (!nodes_[at(j)].is_active) order_.push_back(static_cast<index_t>(j));
    }
    rng_.shuffle(std::span<index_t>(order_));
    for (const index_t j : order_) {
      LearnNode& node = nodes_[at(j)];
      const bool was_off = node.p(0) < 1.0 - kRounding;
      correct_node(at(j), C);
      if (was_off || node.p(0) < 1.0 - kRounding) ++node.n_moves;
      if (node.is_active || node.p(0) >= 1.0 - kRounding) continue;
      node.is_active = true;
      idle.nodes(sample).push_back(j);
    }
    order_ = idle.active(sample);
    rng_.shuffle(std::span<index_t>(order_));
    for (const index_t f : order_) {
      if (states_[at(f)].size() == 1 && is_still(f)) continue;
      if (states_[at(f)].size() == 1 && measure(f) <= kFlatSlope) continue;
      correct_factor(at(f), C);
    }
    search_idle(sample, C);
    for (const index_t j : idle.nodes(sample)) update_multipliers(nodes_[at(j)]);
  }

  /// How far each table has moved, by the largest change of a cell in each pass.
  void follow_drift() {
    for (std::size_t t = 0; t < drift_.size(); ++t) {
      const auto now = table(t);
      double most = 0.0;
      for (std::size_t cell = 0; cell < now.size(); ++cell) {
        most = std::max(most, std::abs(now[cell] - before_[t][cell]));
      }
      drift_[t] += most;
      before_[t].assign(now.begin(), now.end());
    }
  }

  /// The sum of the moves of a factor's nodes, which never falls.
  std::uint32_t moves_of(std::size_t f) const {
    std::uint32_t sum = 0;
    for (std::size_t e = scope_begin_[f]; e < scope_begin_[f + 1]; ++e) {
      sum += nodes_[at(data_.scope[e])].n_moves;
    }
    return sum;
  }

  /// The most by which two states' scores can differ more than before when no cell of the table has
  /// changed by more than one.
  double reach_of(std::size_t f) const {
    if (!data_.has_features(f)) return 2.0 * data_.scale_of(f);
    double sum = 0.0;
    for (const double z : data_.factor_features.row(static_cast<offset_t>(f)).values) {
      sum += std::abs(z);
    }
    return 2.0 * sum;
  }

  /// Whether a factor with its q at the truth cannot violate: the last look left so much slack.
  bool is_still(index_t f) const {
    const auto& look = idle_[0].looks[at(f)];
    if (look.slack < 0.0 || look.n_moves != moves_of(at(f))) return false;
    const double drift = drift_[at(data_.table[at(f)])] - look.drift;
    return reach_of(at(f)) * drift <= look.slack;
  }

  /// By how much the best state beats the truth, which is all of its q.
  double measure(index_t f) {
    ++n_visits_;
    const LearnFactor<kEnds> each = factor(at(f));
    const double amount = with_scores(at(f), [&](const auto& scores) {
      return factor_step_.violation(each, scores, rho_, rng_);
    });
    idle_[0].looks[at(f)] = {kFlatSlope - amount, drift_[at(data_.table[at(f)])], moves_of(at(f))};
    return amount;
  }

  /// What violates more than a visit would notice.
  struct Violation {
    double amount = kFlatSlope;
    index_t factor = -1;
  };

  void search_idle(std::size_t sample, double C) {
    IdleFactors<T, I>& idle = idle_[0];
    Violation worst;
    for (auto& group : idle.groups(sample)) search_group(sample, group, C, worst);
    const std::vector<index_t> nodes = idle.nodes(sample);  // more are appended below
    for (const index_t j : nodes) {
      if (nodes_[at(j)].n_idle == 0 || !nodes_[at(j)].has_message()) continue;
      look_at_part(sample, idle.of_node(at(j)), C, worst);
    }
    look_at_part(sample, idle.featured(sample), C, worst);
    if (worst.factor >= 0) enter(sample, worst.factor, C);
  }

  void look_at_part(std::size_t sample, std::span<const index_t> factors, double C,
                    Violation& worst) {
    const auto step = static_cast<std::size_t>(settings_.n_factor_parts);
    for (std::size_t k = at(part_); k < factors.size(); k += step) {
      look_at(sample, factors[k], C, worst);
    }
  }

  /// Factors of a group from the largest scale on, until one does not violate.
  void search_group(std::size_t sample, typename IdleFactors<T, I>::Group& group, double C,
                    Violation& worst) {
    const auto& table = std::get<Table>(tables_[at(group.table)]);
    for (std::size_t k = group.n_gone; k < group.members.size(); ++k) {
      const index_t f = group.members[k];
      if (idle_[0].is_active(f)) {
        if (k == group.n_gone) ++group.n_gone;
        continue;
      }
      ++n_visits_;
      const double gain = table.most() - truth_in(table, group.truth);
      if (data_.scale_of(at(f)) * gain <= worst.amount) break;
      look_at(sample, f, C, worst);
      if (worst.factor == f) break;
    }
  }
  static double truth_in(const Table& table, const std::vector<index_t>& labels) {
    if constexpr (kEnds == 2) {
      return table.pair(labels[0], labels[1]);
    } else {
      return table.at(labels.data());
    }
  }

  void look_at(std::size_t sample, index_t f, double C, Violation& worst) {
    if (idle_[0].is_active(f) || is_still(f)) return;
    const double amount = measure(f);
    if (amount <= worst.amount) return;
    if (settings_.visits == FactorVisits::kMostViolating) {
      worst = {amount, f};
    } else {
      enter(sample, f, C);
    }
  }

  void enter(std::size_t sample, index_t f, double C) {
    idle_[0].activate(sample, f);
    for (std::size_t e = scope_begin_[at(f)]; e < scope_begin_[at(f) + 1]; ++e) {
      LearnNode& node = nodes_[at(data_.scope[e])];
      if (!node.is_active) idle_[0].nodes(sample).push_back(data_.scope[e]);
      end_of_[e] = node.attach();
    }
    correct_factor(at(f), C);
  }

  std::span<const index_t> numbers(offset_t begin, offset_t end) {
    order_.resize(static_cast<std::size_t>(end - begin));
    std::iota(order_.begin(), order_.end(), static_cast<index_t>(begin));
    rng_.shuffle(std::span<index_t>(order_));
    return order_;
  }

  void update_multipliers(LearnNode& node) {
    const double eta = settings_.eta > 0.0 ? settings_.eta : rho_;
    double most = 0.0;
    for (std::size_t s = 0; s < node.labels.size(); ++s) {
      for (std::size_t e = 0; e < node.degree(); ++e) {
        const double difference = node.marginal(s, e) - node.p(s);
        most = std::max(most, std::abs(difference));
        disagreement_ += difference * difference;
        node.lambda(s, e) += eta * difference;
      }
      if (node.n_idle == 0) continue;
      const double difference = LearnNode::of_truth(s) - node.p(s);
      disagreement_ += node.n_idle * difference * difference;
      most = std::max(most, std::abs(difference));
      node.idle_lambda(s) += eta * difference;
    }
    if (most > kRounding) ++node.n_moves;
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
      const auto values = table(t);
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
  std::vector<AnyTable> tables_;
  std::vector<std::vector<double>> mean_tables_;
  std::vector<LearnNode> nodes_;
  std::vector<std::vector<LearnState<kEnds>>> states_;  ///< of each factor
  std::vector<std::size_t> scope_begin_;
  std::vector<std::size_t> end_of_;          ///< of each place of `scope`
  std::vector<IdleFactors<T, I>> idle_;      ///< none if all factors are visited
  std::vector<double> drift_;                ///< of each table, likewise
  std::vector<std::vector<double>> before_;  ///< the tables as the last pass left them
  offset_t part_ = 0, n_visits_ = 0;
  std::vector<index_t> order_;
  double disagreement_ = 0.0;  ///< sum of squares of M q - p
  offset_t n_passes_ = 0;
};

}  // namespace sublearn
