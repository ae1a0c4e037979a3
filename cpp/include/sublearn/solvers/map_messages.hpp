// Sequential reweighted message passing: block coordinate descent on the dual of the linear program
// (3.25) of MAP inference.
//
//   bound(m) = sum_i max_a b_i(a) + sum_f max_y [ scale_f theta_f(y) - sum_i m_fi(y_i) ]
//   b_i(a)   = theta_i(a) + sum_f m_fi(a)
//
// is at least the score of every assignment, for any messages m. A sweep visits the variables in
// an order, or against it. A visit collects: m_fi becomes all that factor f knows about variable i
// (its max-marginal), for the factors that earlier visits have changed. Then it distributes: the
// belief, up to its maximum, is shared equally among the factors that later visits will collect
// from. Neither step can raise the bound. With two positions a factor this is TRW-S (Kolmogorov
// 2006), with more SRMP (Kolmogorov 2015). The fixed points are optimal for the linear program if
// all variables are binary and all factors pairs, else they may lie above it.
//
// Messages are dense: one number for each end of a factor and each label. `memory_needed` says
// beforehand what that comes to.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "sublearn/core/factor_graph.hpp"
#include "sublearn/core/monitor.hpp"
#include "sublearn/core/types.hpp"
#include "sublearn/solvers/map_tables.hpp"

namespace sublearn {

enum class SweepDirection : std::uint8_t { forward, backward };

class MapMessages {
 public:
  /// The graph must be connected by connect() and outlive this. `order` holds each variable once;
  /// without one they are visited as numbered, which suits grids and chains.
  explicit MapMessages(const FactorGraph& graph, std::span<const index_t> order = {})
      : graph_(&graph), order_(order.begin(), order.end()) {
    if (order_.empty()) {
      order_.resize(static_cast<std::size_t>(graph.n_variables()));
      std::iota(order_.begin(), order_.end(), 0);
    }
    tables_.reserve(graph.tables.size());
    for (const auto& table : graph.tables) tables_.emplace_back(*table);
    place_messages();
    assign_roles();
    labels_.assign(graph.domain.size(), 0);
    is_fixed_.assign(graph.domain.size(), 0);
    beliefs_ = graph.unary;
    bound_ = recompute_bound();
    previous_bound_ = std::numeric_limits<double>::infinity();
  }

  /// One visit to every variable. With `decode` each variable also picks its best label given
  /// the labels of those visited before it. False if the monitor asked to stop on the way; bound
  /// and labels are then those of before.
  bool sweep(SweepDirection direction, bool decode, const Monitor* monitor = nullptr) {
    const std::size_t n = order_.size();
    const bool forward = direction == SweepDirection::forward;
    const Role collects = forward ? kNotFirst : kNotLast;
    const Role distributes = forward ? kNotLast : kNotFirst;
    if (decode) {
      next_labels_.assign(n, 0);
      std::fill(is_fixed_.begin(), is_fixed_.end(), std::uint8_t{0});
    }
    double sum = 0.0;
    for (std::size_t k = 0; k < n; ++k) {
      if (monitor != nullptr && k % 64 == 0 && monitor->stop_requested()) return false;
      const index_t i = order_[forward ? k : n - 1 - k];
      collect(i, collects);
      if (decode) pick_label(i, collects);
      sum += distribute(i, distributes);
    }
    if (decode) accept_labels();
    previous_bound_ = bound_;
    bound_ = std::min(bound_, sum);
    ++n_sweeps_;
    return true;
  }

  /// At least the score of every assignment; as of the last whole sweep.
  double bound() const { return bound_; }

  /// What the last sweep took off the bound.
  double last_gain() const { return previous_bound_ - bound_; }

  /// Whether another sweep is unlikely to help: the last one gained less than `tolerance` times
  /// the gap that is left to `score`.
  bool stalled(double score, double tolerance = 1e-4) const {
    const double rounding = 1e-12 * std::max(1.0, std::abs(bound_));
    return n_sweeps_ > 1 && last_gain() <= std::max(tolerance * (bound_ - score), rounding);
  }

  /// The bound from its definition, at the cost of about one sweep.
  double recompute_bound() {
    double sum = 0.0;
    for (index_t i = 0; i < graph_->n_variables(); ++i) {
      add_messages(i);
      sum += highest(belief_of(i));
    }
    for (index_t f = 0; f < graph_->n_factors(); ++f) sum += factor_maximum(f);
    return sum;
  }

  /// Assignment of the last sweep that decoded, and its score.
  std::span<const index_t> labels() const { return labels_; }
  double score() const { return score_; }

  /// b_i(a), laid out as the graph's unary scores. After a forward (backward) sweep a variable
  /// has given away what the factors of later (earlier) variables now hold.
  std::span<const double> beliefs() {
    for (index_t i = 0; i < graph_->n_variables(); ++i) add_messages(i);
    return beliefs_;
  }

  /// m_fi of position p.
  std::span<const double> message(index_t f, index_t p) const {
    const auto end = static_cast<std::size_t>(graph_->scope_begin[f] + p);
    return {messages_.data() + message_begin_[end],
            static_cast<std::size_t>(message_begin_[end + 1] - message_begin_[end])};
  }
  const MessageTable& table(index_t f) const {
    return tables_[static_cast<std::size_t>(graph_->table_of[static_cast<std::size_t>(f)])];
  }
  std::span<const index_t> order() const { return order_; }
  int n_sweeps() const { return n_sweeps_; }

  /// Bytes of messages, roles and beliefs, without copies of small sparse or low-rank tables.
  static std::size_t memory_needed(const FactorGraph& graph) {
    std::size_t numbers = graph.unary.size();
    for (const index_t i : graph.scope) {
      numbers += static_cast<std::size_t>(graph.domain[static_cast<std::size_t>(i)]);
    }
    return numbers * sizeof(double) + graph.scope.size() * (sizeof(offset_t) + sizeof(Role)) +
           graph.domain.size() * (3 * sizeof(index_t) + sizeof(double)) +
           graph.tables.size() * sizeof(MessageTable);
  }

  /// Cells read a sweep, before it is known which tables allow short cuts; a core reads some 1e9
  /// of them a second, fewer if labels are few.
  static double work_per_sweep(const FactorGraph& graph) {
    double work = 0.0;
    for (index_t f = 0; f < graph.n_factors(); ++f) {
      work +=
          MessageTable::work(graph.table(f)) * static_cast<double>(graph.scope_of(f).size() - 1);
    }
    return work;
  }

 private:
  using Role = std::uint8_t;
  static constexpr Role kNotFirst = 1;  ///< another variable of the factor comes earlier
  static constexpr Role kNotLast = 2;   ///< another variable of the factor comes later

  static double highest(std::span<const double> values) {
    return *std::max_element(values.begin(), values.end());
  }

  std::span<double> belief_of(index_t i) {
    return {beliefs_.data() + graph_->unary_begin[i],
            static_cast<std::size_t>(graph_->domain[static_cast<std::size_t>(i)])};
  }
  double* message_at(const FactorEnd& end) {
    return messages_.data() +
           message_begin_[static_cast<std::size_t>(graph_->scope_begin[end.factor] + end.position)];
  }
  double scale(index_t f) const { return graph_->scale[static_cast<std::size_t>(f)]; }

  void place_messages() {
    message_begin_.assign(1, 0);
    message_begin_.reserve(graph_->scope.size() + 1);
    std::size_t most = 0;
    for (const index_t i : graph_->scope) {
      message_begin_.push_back(message_begin_.back() + graph_->domain[static_cast<std::size_t>(i)]);
    }
    for (index_t f = 0; f < graph_->n_factors(); ++f) {
      most = std::max(most, graph_->scope_of(f).size());
    }
    messages_.assign(static_cast<std::size_t>(message_begin_.back()), 0.0);
    incoming_.resize(most);
    const index_t widest = graph_->domain.empty()
                               ? 0
                               : *std::max_element(graph_->domain.begin(), graph_->domain.end());
    outgoing_.resize(static_cast<std::size_t>(widest));
    decoded_.resize(static_cast<std::size_t>(widest));
    wall_.assign(most * static_cast<std::size_t>(widest), std::numeric_limits<double>::infinity());
  }

  void assign_roles() {
    std::vector<index_t> rank(order_.size());
    for (std::size_t k = 0; k < order_.size(); ++k) {
      rank[static_cast<std::size_t>(order_[k])] = static_cast<index_t>(k);
    }
    roles_.resize(graph_->ends.size());
    share_.resize(graph_->domain.size());
    for (index_t i = 0; i < graph_->n_variables(); ++i) {
      int n_earlier = 0, n_later = 0;
      for (offset_t e = graph_->end_begin[i]; e < graph_->end_begin[i + 1]; ++e) {
        Role role = 0;
        for (const index_t j : graph_->scope_of(graph_->ends[static_cast<std::size_t>(e)].factor)) {
          const auto mine = rank[static_cast<std::size_t>(i)];
          const auto other = rank[static_cast<std::size_t>(j)];
          if (other < mine) role |= kNotFirst;
          if (other > mine) role |= kNotLast;
        }
        roles_[static_cast<std::size_t>(e)] = role;
        n_earlier += (role & kNotFirst) != 0;
        n_later += (role & kNotLast) != 0;
      }
      share_[static_cast<std::size_t>(i)] = 1.0 / std::max({1, n_earlier, n_later});
    }
  }

  void add_messages(index_t i) {
    const auto belief = belief_of(i);
    const auto unary = graph_->unary_of(i);
    std::copy(unary.begin(), unary.end(), belief.begin());
    for (const FactorEnd& end : graph_->ends_of(i)) {
      const double* message = message_at(end);
      for (std::size_t a = 0; a < belief.size(); ++a) belief[a] += message[a];
    }
  }

  void gather_incoming(index_t f) {
    const std::size_t begin = static_cast<std::size_t>(graph_->scope_begin[f]);
    for (std::size_t q = 0; q < graph_->scope_of(f).size(); ++q) {
      incoming_[q] = messages_.data() + message_begin_[begin + q];
    }
  }

  /// m_fi = max_{y : y_i = a} scale theta_f(y) - sum_{j != i} m_fj(y_j)
  void collect_from(const FactorEnd& end) {
    gather_incoming(end.factor);
    table(end.factor)
        .message(end.position, scale(end.factor), incoming_, message_at(end), scratch_);
  }

  /// Brings the messages of a variable and its belief up to date.
  void collect(index_t i, Role from) {
    for (offset_t e = graph_->end_begin[i]; e < graph_->end_begin[i + 1]; ++e) {
      const auto place = static_cast<std::size_t>(e);
      if (roles_[place] & from) collect_from(graph_->ends[place]);
    }
    add_messages(i);
  }

  /// Shares the belief below its maximum among factors; returns the maximum, which stays.
  double distribute(index_t i, Role to) {
    const auto belief = belief_of(i);
    const double top = highest(belief);
    const double share = share_[static_cast<std::size_t>(i)];
    for (double& value : belief) value = share * (value - top);
    for (offset_t e = graph_->end_begin[i]; e < graph_->end_begin[i + 1]; ++e) {
      const auto place = static_cast<std::size_t>(e);
      if (!(roles_[place] & to)) continue;
      double* message = message_at(graph_->ends[place]);
      for (std::size_t a = 0; a < belief.size(); ++a) message[a] -= belief[a];
    }
    return top;
  }

  double factor_maximum(index_t f) {
    gather_incoming(f);
    table(f).message(0, scale(f), incoming_, outgoing_.data(), scratch_);
    const auto own = message(f, 0);
    double best = -std::numeric_limits<double>::infinity();
    for (std::size_t a = 0; a < own.size(); ++a) best = std::max(best, outgoing_[a] - own[a]);
    return best;
  }

  // ---- decoding

  /// A label for i: factors with labelled variables speak for these labels, others by messages.
  void pick_label(index_t i, Role labelled) {
    const auto unary = graph_->unary_of(i);
    const std::span<double> scores(decoded_.data(), unary.size());
    std::copy(unary.begin(), unary.end(), scores.begin());
    for (offset_t e = graph_->end_begin[i]; e < graph_->end_begin[i + 1]; ++e) {
      const auto place = static_cast<std::size_t>(e);
      const FactorEnd& end = graph_->ends[place];
      if (roles_[place] & labelled) {
        add_conditional(end, scores);
      } else {
        const double* message = message_at(end);
        for (std::size_t a = 0; a < scores.size(); ++a) scores[a] += message[a];
      }
    }
    next_labels_[static_cast<std::size_t>(i)] =
        static_cast<index_t>(std::max_element(scores.begin(), scores.end()) - scores.begin());
    is_fixed_[static_cast<std::size_t>(i)] = 1;
  }

  void add_conditional(const FactorEnd& end, std::span<double> scores) {
    const auto variables = graph_->scope_of(end.factor);
    if (variables.size() == 2) {
      const index_t other = variables[static_cast<std::size_t>(1 - end.position)];
      table(end.factor)
          .add_given(end.position, scale(end.factor), next_labels_[static_cast<std::size_t>(other)],
                     scores);
      return;
    }
    // Labelled positions send a wall: infinity against every label but theirs.
    gather_incoming(end.factor);
    const std::size_t width = outgoing_.size();
    for (std::size_t q = 0; q < variables.size(); ++q) {
      const auto j = static_cast<std::size_t>(variables[q]);
      if (!is_fixed_[j]) continue;
      wall_[q * width + static_cast<std::size_t>(next_labels_[j])] = 0.0;
      incoming_[q] = wall_.data() + q * width;
    }
    table(end.factor)
        .message(end.position, scale(end.factor), incoming_, outgoing_.data(), scratch_);
    for (std::size_t a = 0; a < scores.size(); ++a) scores[a] += outgoing_[a];
    for (std::size_t q = 0; q < variables.size(); ++q) {
      const auto j = static_cast<std::size_t>(variables[q]);
      if (!is_fixed_[j]) continue;
      wall_[q * width + static_cast<std::size_t>(next_labels_[j])] =
          std::numeric_limits<double>::infinity();
    }
  }

  void accept_labels() {
    labels_.swap(next_labels_);
    score_ = graph_->score(labels_);
  }

  const FactorGraph* graph_;
  std::vector<index_t> order_;
  std::vector<MessageTable> tables_;
  std::vector<offset_t> message_begin_;  ///< by position in graph.scope
  std::vector<double> messages_;
  std::vector<Role> roles_;    ///< by position in graph.ends
  std::vector<double> share_;  ///< of a variable's belief that a factor is given
  std::vector<double> beliefs_;

  std::vector<index_t> labels_;
  std::vector<index_t> next_labels_;
  std::vector<std::uint8_t> is_fixed_;
  double score_ = -std::numeric_limits<double>::infinity();
  double bound_ = 0.0;
  double previous_bound_ = 0.0;
  int n_sweeps_ = 0;

  std::vector<const double*> incoming_;
  std::vector<double> outgoing_;
  std::vector<double> decoded_;
  std::vector<double> wall_;
  MessageScratch scratch_;
};

}  // namespace sublearn
