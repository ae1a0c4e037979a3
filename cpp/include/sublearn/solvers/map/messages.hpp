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
// beforehand what that comes to. A pair of binary variables has its four scores beside its four
// messages, so that a visit to one of millions of such factors touches one line of cache.
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
#include "sublearn/solvers/map/tables.hpp"

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
    label_bounds_.assign(graph.unary.size(), std::numeric_limits<double>::infinity());
    bound_ = recompute_bound();
    first_bound_ = bound_two_ago_ = previous_bound_ = bound_;
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
    double sum = 0.0, score = 0.0;
    for (std::size_t k = 0; k < n; ++k) {
      if (monitor != nullptr && k % 64 == 0 && monitor->stop_requested()) return false;
      const index_t i = order_[forward ? k : n - 1 - k];
      collect(i, collects);
      if (decode) score += pick_label(i, collects, distributes);
      bound_labels(i);
      sum += distribute(i, distributes);
    }
    if (decode) {
      labels_.swap(next_labels_);
      score_ = score;
    }
    bound_two_ago_ = previous_bound_;
    previous_bound_ = bound_;
    bound_ = std::min(bound_, sum);
    ++n_sweeps_;
    return true;
  }

  /// At least the score of every assignment, up to rounding; as of the last whole sweep.
  double bound() const { return bound_; }

  /// What the last sweep took off the bound.

  /// Whether more sweeps are unlikely to help: the last two gained less than `tolerance` times the
  /// gap that is left to `score`, or less than that share of all that was gained so far. The
  /// second, since a poor score makes every gain look small.
  bool stalled(double score, double tolerance = 1e-4) const {
    const double worth_having = std::min(bound_ - score, first_bound_ - bound_);
    const double rounding = 1e-12 * std::max(1.0, std::abs(bound_));
    const double gain = bound_two_ago_ - bound_;
    return n_sweeps_ > 1 && gain <= std::max(tolerance * worth_having, rounding);
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

  /// At least the score of every assignment in which variable i has label a, laid out as the
  /// unary scores; the least found by any sweep. What lies below a known score can be left out.
  std::span<const double> label_bounds() const { return label_bounds_; }

  /// m_fi of position p.
  std::span<const double> message(index_t f, index_t p) const {
    const auto variables = graph_->scope_of(f);
    offset_t begin = first_[at(f)];
    for (index_t q = 0; q < p; ++q) begin += labels_at(variables[at(q)]);
    return {messages_.data() + begin, static_cast<std::size_t>(labels_at(variables[at(p)]))};
  }
  const MessageTable& table(index_t f) const { return tables_[at(graph_->table_of[at(f)])]; }
  std::span<const index_t> order() const { return order_; }
  int n_sweeps() const { return n_sweeps_; }

  /// Bytes of messages, roles and beliefs, without copies of small sparse or low-rank tables.
  static std::size_t memory_needed(const FactorGraph& graph) {
    std::size_t numbers = 2 * graph.unary.size();
    for (const index_t i : graph.scope) {
      numbers += static_cast<std::size_t>(graph.domain[at(i)]);
    }
    for (index_t f = 0; f < graph.n_factors(); ++f) numbers += is_binary(graph.table(f)) ? 4 : 0;
    return numbers * sizeof(double) + graph.scope.size() * (sizeof(offset_t) + sizeof(Role)) +
           static_cast<std::size_t>(graph.n_factors()) * sizeof(offset_t) +
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

  static constexpr Role kBinary = 4;    ///< a pair of binary variables
  static constexpr Role kSecond = 8;    ///< the second position of such a pair
  static constexpr offset_t kLine = 8;  ///< numbers in a line of cache

  static bool is_binary(const FactorTable& table) {
    return table.kind == TableKind::dense && table.arity() == 2 && table.n_cells() == 4 &&
           table.shape[0] == 2;
  }
  static double highest(std::span<const double> values) {
    return *std::max_element(values.begin(), values.end());
  }

  index_t labels_at(index_t i) const { return graph_->domain[at(i)]; }
  double scale(index_t f) const { return graph_->scale[at(f)]; }
  std::span<double> belief_of(index_t i) {
    return {beliefs_.data() + graph_->unary_begin[i], static_cast<std::size_t>(labels_at(i))};
  }
  double* message_at(std::size_t end) { return messages_.data() + own_[end]; }

  /// Calls f(end, role) for the factors of a variable; `end` is a position in graph.ends.
  template <class F>
  void for_each_end(index_t i, F&& f) const {
    const auto last = static_cast<std::size_t>(graph_->end_begin[i + 1]);
    for (auto e = static_cast<std::size_t>(graph_->end_begin[i]); e < last; ++e) f(e, roles_[e]);
  }

  void place_messages() {
    offset_t n = 0;
    std::size_t most = 0;
    first_.reserve(graph_->table_of.size());
    for (index_t f = 0; f < graph_->n_factors(); ++f) {
      if (is_binary(graph_->table(f))) n = (n + kLine - 1) / kLine * kLine + 4;
      first_.push_back(n);
      for (const index_t i : graph_->scope_of(f)) n += labels_at(i);
      most = std::max(most, graph_->scope_of(f).size());
    }
    messages_.assign(static_cast<std::size_t>(n + kLine), 0.0);
    const auto address = reinterpret_cast<std::uintptr_t>(messages_.data()) / sizeof(double);
    const auto shift = (kLine - static_cast<offset_t>(address % kLine)) % kLine;
    for (offset_t& begin : first_) begin += shift;
    for (index_t f = 0; f < graph_->n_factors(); ++f) copy_binary_scores(f);

    incoming_.resize(most);
    const std::size_t widest = graph_->domain.empty()
                                   ? 0
                                   : static_cast<std::size_t>(*std::max_element(
                                         graph_->domain.begin(), graph_->domain.end()));
    outgoing_.resize(widest);
    known_.resize(widest);
    hoped_.resize(widest);
    wall_.assign(most * widest, std::numeric_limits<double>::infinity());
  }

  void copy_binary_scores(index_t f) {
    if (!is_binary(graph_->table(f))) return;
    double* scores = messages_.data() + first_[at(f)] - 4;
    for (int cell = 0; cell < 4; ++cell) scores[cell] = scale(f) * graph_->table(f).values[cell];
  }

  void assign_roles() {
    std::vector<index_t> rank(order_.size());
    for (std::size_t k = 0; k < order_.size(); ++k) {
      rank[at(order_[k])] = static_cast<index_t>(k);
    }
    roles_.resize(graph_->ends.size());
    own_.resize(graph_->ends.size());
    share_.resize(graph_->domain.size());
    for (index_t i = 0; i < graph_->n_variables(); ++i) {
      int n_earlier = 0, n_later = 0;
      for_each_end(i, [&](std::size_t e, Role) {
        const FactorEnd& end = graph_->ends[e];
        own_[e] = message(end.factor, end.position).data() - messages_.data();
        roles_[e] = role_of(i, end, rank);
        n_earlier += (roles_[e] & kNotFirst) != 0;
        n_later += (roles_[e] & kNotLast) != 0;
      });
      share_[at(i)] = 1.0 / std::max({1, n_earlier, n_later});
    }
  }

  Role role_of(index_t i, const FactorEnd& end, std::span<const index_t> rank) const {
    Role role = 0;
    const index_t mine = rank[at(i)];
    for (const index_t j : graph_->scope_of(end.factor)) {
      if (rank[at(j)] < mine) role |= kNotFirst;
      if (rank[at(j)] > mine) role |= kNotLast;
    }
    if (is_binary(graph_->table(end.factor)))
      role |= end.position == 0 ? kBinary : kBinary | kSecond;
    return role;
  }

  void gather_incoming(index_t f) {
    const double* message = messages_.data() + first_[at(f)];
    const auto variables = graph_->scope_of(f);
    for (std::size_t q = 0; q < variables.size(); ++q) {
      incoming_[q] = message;
      message += labels_at(variables[q]);
    }
  }

  /// m_fi = max_{y : y_i = a} scale theta_f(y) - sum_{j != i} m_fj(y_j)
  void collect_from(const FactorEnd& end, double* out) {
    gather_incoming(end.factor);
    table(end.factor).message(end.position, scale(end.factor), incoming_, out, scratch_);
  }

  /// The same for a pair of binary variables: four scores, then two messages of two numbers.
  static void collect_binary(Role role, double* own) {
    const bool second = role & kSecond;
    const double* scores = own - (second ? 6 : 4);
    const double* other = own + (second ? -2 : 2);
    const double at01 = scores[second ? 2 : 1], at10 = scores[second ? 1 : 2];
    own[0] = std::max(scores[0] - other[0], at01 - other[1]);
    own[1] = std::max(at10 - other[0], scores[3] - other[1]);
  }

  /// Brings the messages of a variable and its belief up to date.
  void collect(index_t i, Role from) {
    for_each_end(i, [&](std::size_t e, Role role) {
      if (!(role & from)) return;
      if (role & kBinary) return collect_binary(role, message_at(e));
      collect_from(graph_->ends[e], message_at(e));
    });
    add_messages(i);
  }

  void add_messages(index_t i) {
    const auto belief = belief_of(i);
    const auto unary = graph_->unary_of(i);
    std::copy(unary.begin(), unary.end(), belief.begin());
    for_each_end(i, [&](std::size_t e, Role role) {
      const double* message = message_at(e);
      if (role & kBinary) {
        belief[0] += message[0];
        belief[1] += message[1];
      } else {
        for (std::size_t a = 0; a < belief.size(); ++a) belief[a] += message[a];
      }
    });
  }

  /// With label a the bound loses what the belief lacks to its maximum. The bound of before the
  /// sweep stands for the present one, which is between that and the next.
  void bound_labels(index_t i) {
    const auto belief = belief_of(i);
    const double rest = bound_ - highest(belief);
    double* bounds = label_bounds_.data() + graph_->unary_begin[i];
    for (std::size_t a = 0; a < belief.size(); ++a)
      bounds[a] = std::min(bounds[a], rest + belief[a]);
  }

  /// Shares the belief below its maximum among factors; returns the maximum, which stays.
  double distribute(index_t i, Role to) {
    const auto belief = belief_of(i);
    const double top = highest(belief);
    const double share = share_[at(i)];
    for (double& value : belief) value = share * (value - top);
    for_each_end(i, [&](std::size_t e, Role role) {
      if (!(role & to)) return;
      double* message = message_at(e);
      if (role & kBinary) {
        message[0] -= belief[0];
        message[1] -= belief[1];
      } else {
        for (std::size_t a = 0; a < belief.size(); ++a) message[a] -= belief[a];
      }
    });
    return top;
  }

  double factor_maximum(index_t f) {
    if (is_binary(graph_->table(f))) {
      const double* cells = messages_.data() + first_[at(f)];
      return std::max(std::max(cells[-4] - cells[2], cells[-3] - cells[3]) - cells[0],
                      std::max(cells[-2] - cells[2], cells[-1] - cells[3]) - cells[1]);
    }
    collect_from({f, 0}, outgoing_.data());
    const auto own = message(f, 0);
    double best = -std::numeric_limits<double>::infinity();
    for (std::size_t a = 0; a < own.size(); ++a) best = std::max(best, outgoing_[a] - own[a]);
    return best;
  }

  // ---- decoding

  /// A label for i: factors with labelled variables speak for these labels, others by messages.
  /// Returns what is known of the score: the unary, and the factors labelled in full by now.
  double pick_label(index_t i, Role labelled, Role unlabelled) {
    const auto unary = graph_->unary_of(i);
    const std::span<double> known(known_.data(), unary.size());
    const std::span<double> hoped(hoped_.data(), unary.size());
    std::copy(unary.begin(), unary.end(), known.begin());
    std::fill(hoped.begin(), hoped.end(), 0.0);
    for_each_end(i, [&](std::size_t e, Role role) {
      if (role & labelled) {
        add_conditional(e, role & unlabelled ? hoped : known);
      } else {
        const double* message = message_at(e);
        for (std::size_t a = 0; a < hoped.size(); ++a) hoped[a] += message[a];
      }
    });
    std::size_t best = 0;
    for (std::size_t a = 1; a < known.size(); ++a) {
      if (known[a] + hoped[a] > known[best] + hoped[best]) best = a;
    }
    next_labels_[at(i)] = static_cast<index_t>(best);
    is_fixed_[at(i)] = 1;
    return known[best];
  }

  void add_conditional(std::size_t e, std::span<double> scores) {
    const FactorEnd& end = graph_->ends[e];
    const auto variables = graph_->scope_of(end.factor);
    if (variables.size() > 2) return add_partly_labelled(end, scores);
    const auto other = static_cast<std::size_t>(variables[end.position == 0 ? 1 : 0]);
    const index_t label = next_labels_[other];
    if (!(roles_[e] & kBinary)) {
      return table(end.factor).add_given(end.position, scale(end.factor), label, scores);
    }
    const bool second = roles_[e] & kSecond;
    const double* cells = message_at(e) - (second ? 6 : 4);
    scores[0] += cells[second ? 2 * label : label];
    scores[1] += cells[second ? 2 * label + 1 : label + 2];
  }

  /// Labelled positions send a wall: infinity against every label but theirs.
  void add_partly_labelled(const FactorEnd& end, std::span<double> scores) {
    const auto variables = graph_->scope_of(end.factor);
    const std::size_t width = outgoing_.size();
    const auto open = [&](double height) {
      for (std::size_t q = 0; q < variables.size(); ++q) {
        const auto j = static_cast<std::size_t>(variables[q]);
        if (!is_fixed_[j]) continue;
        wall_[q * width + static_cast<std::size_t>(next_labels_[j])] = height;
        incoming_[q] = wall_.data() + q * width;
      }
    };
    gather_incoming(end.factor);
    open(0.0);
    table(end.factor)
        .message(end.position, scale(end.factor), incoming_, outgoing_.data(), scratch_);
    open(std::numeric_limits<double>::infinity());
    for (std::size_t a = 0; a < scores.size(); ++a) scores[a] += outgoing_[a];
  }

  const FactorGraph* graph_;
  std::vector<index_t> order_;
  std::vector<MessageTable> tables_;
  std::vector<double> messages_;
  std::vector<offset_t> first_;  ///< message of the first position of each factor
  std::vector<offset_t> own_;    ///< message of each end, by position in graph.ends
  std::vector<Role> roles_;      ///< by position in graph.ends
  std::vector<double> share_;    ///< of a variable's belief that a factor is given
  std::vector<double> beliefs_;
  std::vector<double> label_bounds_;

  std::vector<index_t> labels_;
  std::vector<index_t> next_labels_;
  std::vector<std::uint8_t> is_fixed_;
  double score_ = -std::numeric_limits<double>::infinity();
  double bound_ = 0.0;
  double previous_bound_ = 0.0;
  double bound_two_ago_ = 0.0;
  double first_bound_ = 0.0;
  int n_sweeps_ = 0;

  std::vector<const double*> incoming_;
  std::vector<double> outgoing_;
  std::vector<double> known_;
  std::vector<double> hoped_;
  std::vector<double> wall_;
  MessageScratch scratch_;
};

}  // namespace sublearn
