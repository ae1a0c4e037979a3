// Exact maximisation over a block of variables, the others held fixed: max-sum bucket elimination.
//
// Variables are eliminated one after another. The bucket of v collects what is left of the score
// that depends on v, over v and its remaining neighbours S,
//
//   A(x_v, x_S) = theta_v(x_v) + sum of factors and messages,   m_v(x_S) = max_{x_v} A(x_v, x_S),
//
// and the message m_v goes to the first variable of S that is eliminated later. The labels are read
// off backwards. Scopes are kept in the order of elimination, so v is the slowest axis of its own
// bucket and the maximum is an elementwise maximum of contiguous rows. The cost is the sum of the
// bucket sizes: small on trees and on graphs of small width, and for any graph small on a subset:
// asked to, the planner drops variables from the block (they keep their labels) until every bucket
// fits, which gives large random blocks of bounded width (Hamze and de Freitas 2004; Selby 2014).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sublearn/core/factor_graph.hpp"
#include "sublearn/core/rng.hpp"
#include "sublearn/core/types.hpp"
#include "sublearn/solvers/map/bucket_table.hpp"
#include "sublearn/solvers/map/elimination_plan.hpp"

namespace sublearn {

class MapElimination {
 public:
  explicit MapElimination(const FactorGraph& graph) : graph_(graph), plan_(graph) {}

  /// Gives the variables of `block` (distinct) their best labels given those of all others. False,
  /// and labels as before, if the limits do not allow it or the monitor asked to stop. `lists`
  /// restricts the labels of block[k] to lists->of(k). With `rng`, the order and ties are random.
  bool solve(std::span<const index_t> block, std::span<index_t> labels,
             const EliminationLimits& limits, Rng* rng = nullptr,
             const LabelLists* lists = nullptr) {
    labels_ = labels;
    const bool ordered = plan_.make(block, limits, rng, lists);
    work_ = plan_.work();
    const bool solved = ordered && lay_out(limits) && forward(limits);
    if (solved) backward(rng);
    plan_.close();
    return solved;
  }

  /// Numbers that later calls add to the unary scores, laid out like them; empty for none. Labels
  /// that are best with noise are different, but still fit together.
  void set_noise(std::span<const double> noise) { noise_ = noise; }

  /// Variables of the last block that were solved, in the order of elimination.
  std::span<const index_t> solved() const { return solved_; }

  /// Operations of the last call, solved or not.
  double work() const { return work_; }

 private:
  static constexpr index_t kOutside = EliminationPlan::kOutside;

  struct Bucket {
    index_t variable = 0;         ///< local
    std::size_t scope_begin = 0;  ///< into scopes_: local variables, by order
    std::size_t scope_end = 0;
    std::size_t message = 0;   ///< into arena_, over the scope, last fastest
    index_t first_child = -1;  ///< buckets whose message comes here
    index_t next_sibling = -1;
  };

  // ---- the buckets -----------------------------------------------------------------------------

  /// Scopes of the buckets, given the order. Dropped variables make them smaller than planned.
  bool lay_out(const EliminationLimits& limits) {
    const auto order = plan_.order();
    const std::size_t n = order.size();
    position_.assign(plan_.n_local(), 0);
    mark_.assign(plan_.n_local(), 0);
    stamp_ = 0;
    solved_.clear();
    for (std::size_t p = 0; p < n; ++p) {
      position_[at(order[p])] = static_cast<index_t>(p);
      solved_.push_back(plan_.variable(order[p]));
    }
    buckets_.assign(n, Bucket{});
    scopes_.clear();
    std::size_t message_cells = 0;
    double total = 0.0;
    for (std::size_t p = 0; p < n; ++p) {
      buckets_[p].variable = order[p];
      collect_scope(p);
      Bucket& bucket = buckets_[p];
      const auto scope = scope_of(bucket);
      double cells = 1.0;
      for (const index_t j : scope) cells *= plan_.size_of(j);
      total += cells * plan_.size_of(bucket.variable);
      if (total > limits.total_cells) return false;
      bucket.message = message_cells;
      if (scope.size() > 1) {
        message_cells += static_cast<std::size_t>(cells);
        Bucket& parent = buckets_[at(position_[at(scope.front())])];
        bucket.next_sibling = parent.first_child;
        parent.first_child = static_cast<index_t>(p);
      }
    }
    if (arena_.size() < message_cells) arena_.resize(message_cells);
    return true;
  }

  std::span<const index_t> scope_of(const Bucket& bucket) const {
    return {scopes_.data() + bucket.scope_begin, bucket.scope_end - bucket.scope_begin};
  }

  void collect_scope(std::size_t p) {
    Bucket& bucket = buckets_[p];
    bucket.scope_begin = scopes_.size();
    ++stamp_;
    const auto take = [&](index_t j) {
      if (at(position_[at(j)]) <= p || mark_[at(j)] == stamp_) return;
      mark_[at(j)] = stamp_;
      scopes_.push_back(j);
    };
    for (const FactorEnd& end : graph_.ends_of(plan_.variable(bucket.variable))) {
      const auto scope = graph_.scope_of(end.factor);
      if (!leads(end.factor, p)) continue;
      for (const index_t other : scope) {
        if (plan_.local(other) != kOutside) take(plan_.local(other));
      }
    }
    for (index_t c = bucket.first_child; c >= 0; c = buckets_[at(c)].next_sibling) {
      const Bucket& child = buckets_[at(c)];
      for (std::size_t q = child.scope_begin; q < child.scope_end; ++q) {
        const index_t j = scopes_[q];
        take(j);
      }
    }
    bucket.scope_end = scopes_.size();
    std::sort(scopes_.begin() + static_cast<std::ptrdiff_t>(bucket.scope_begin), scopes_.end(),
              [&](index_t a, index_t b) { return position_[at(a)] < position_[at(b)]; });
  }

  /// Whether the variable at position p is the first of factor f that is eliminated.
  bool leads(index_t f, std::size_t p) const {
    for (const index_t other : graph_.scope_of(f)) {
      const index_t j = plan_.local(other);
      if (j != kOutside && at(position_[at(j)]) < p) return false;
    }
    return true;
  }

  // ---- numbers ---------------------------------------------------------------------------------

  bool forward(const EliminationLimits& limits) {
    if (limits.interrupted()) return false;
    unary_.resize(plan_.n_labels());
    for (const index_t k : plan_.order()) {
      const auto own = graph_.unary_of(plan_.variable(k));
      double* mine = unary_.data() + plan_.label_begin(k);
      const double* noise =
          noise_.empty() ? nullptr : noise_.data() + graph_.unary_begin[at(plan_.variable(k))];
      for (const index_t a : plan_.labels_of(k)) {
        *mine++ = own[at(a)] + (noise == nullptr ? 0.0 : noise[a]);
      }
    }
    double checked = work_;
    for (std::size_t p = 0; p < buckets_.size(); ++p) {
      if (work_ > checked + 1e6) {
        if (limits.interrupted()) return false;
        checked = work_;
      }
      send(p);
    }
    return true;
  }

  /// Fills the bucket at position p and maximises over its variable.
  void send(std::size_t p) {
    const Bucket& bucket = buckets_[p];
    collect_factors(p);
    work_ += 50.0;
    if (scope_of(bucket).empty()) return;
    std::size_t rest = 1;
    for (const index_t j : scope_of(bucket)) rest *= at(plan_.size_of(j));
    fill(bucket, rest);
    maximise(bucket, rest);
  }

  /// Factors that the bucket leads: those of its variable alone join its scores, others are listed.
  void collect_factors(std::size_t p) {
    const index_t variable = buckets_[p].variable;
    double* own = unary_.data() + plan_.label_begin(variable);
    inner_factors_.clear();
    for (const FactorEnd& end : graph_.ends_of(plan_.variable(variable))) {
      if (!leads(end.factor, p)) continue;
      if (n_inside(end.factor) == 1) {
        add_row(end, variable, own);
      } else {
        inner_factors_.push_back(end.factor);
      }
    }
  }

  /// The table of the bucket: scores of its variable, factors, messages of its children. `rest` is
  /// the number of joint labels of its scope.
  void fill(const Bucket& bucket, std::size_t rest) {
    const index_t size = plan_.size_of(bucket.variable);
    const double* own = unary_.data() + plan_.label_begin(bucket.variable);
    open_table(bucket);
    for (index_t a = 0; a < size; ++a) std::fill_n(table_.cells() + at(a) * rest, rest, own[a]);
    double inputs = 1.0;
    work_ += 50.0 * static_cast<double>(inner_factors_.size());
    for (const index_t f : inner_factors_) {
      add_factor(f);
      ++inputs;
    }
    for (index_t c = bucket.first_child; c >= 0; c = buckets_[at(c)].next_sibling) {
      add_message(buckets_[at(c)]);
      ++inputs;
    }
    work_ += inputs * static_cast<double>(rest) * size;
  }

  /// The message: into the arena, or for a scope of one variable onto its scores.
  void maximise(const Bucket& bucket, std::size_t rest) {
    const auto scope = scope_of(bucket);
    const double* cells = table_.cells();
    double* out = arena_.data() + bucket.message;
    if (scope.size() == 1) {
      row_.resize(rest);
      out = row_.data();
    }
    std::copy_n(cells, rest, out);
    for (index_t a = 1; a < plan_.size_of(bucket.variable); ++a) {
      const double* row = cells + at(a) * rest;
      for (std::size_t c = 0; c < rest; ++c) out[c] = out[c] < row[c] ? row[c] : out[c];
    }
    if (scope.size() == 1) {
      double* target = unary_.data() + plan_.label_begin(scope.front());
      for (std::size_t c = 0; c < rest; ++c) target[c] += out[c];
    }
  }

  /// Axes: the variable of the bucket, then its scope.
  void open_table(const Bucket& bucket) {
    const auto scope = scope_of(bucket);
    axes_.assign(1, bucket.variable);
    axes_.insert(axes_.end(), scope.begin(), scope.end());
    sizes_.clear();
    for (const index_t j : axes_) sizes_.push_back(plan_.size_of(j));
    table_.open(axes_, sizes_);
  }

  index_t n_inside(index_t f) const {
    index_t n = 0;
    for (const index_t other : graph_.scope_of(f)) n += plan_.local(other) != kOutside;
    return n;
  }

  /// Adds what a factor says of local variable k, all its others being labelled.
  void add_row(const FactorEnd& end, index_t k, double* sum) {
    const auto choice = plan_.labels_of(k);
    work_ += static_cast<double>(choice.size());
    graph_.add_line(end, labels_, 1.0, {sum, choice.size()},
                    [choice](std::size_t a) { return choice[a]; });
  }

  void add_factor(index_t f) {
    const FactorTable& table = graph_.table(f);
    const auto scope = graph_.scope_of(f);
    const double scale = graph_.scale[at(f)];
    table_.begin_input();
    offset_t base = 0, stride = 1;
    for (std::size_t q = scope.size(); q-- > 0;) {
      const index_t j = plan_.local(scope[q]);
      if (j == kOutside) {
        base += stride * labels_[at(scope[q])];
      } else {
        table_.set_axis(j, stride, plan_.labels_of(j));
      }
      stride *= table.shape[q];
    }
    if (table.kind == TableKind::dense) {
      const double* values = table.values.data() + base;
      table_.accumulate([=](offset_t cell) { return scale * values[cell]; });
    } else {
      table_.accumulate([&](offset_t cell) { return scale * table.at(base + cell); });
    }
  }

  void add_message(const Bucket& child) {
    table_.begin_input();
    const auto scope = scope_of(child);
    offset_t stride = 1;
    for (std::size_t q = scope.size(); q-- > 0;) {
      table_.set_axis(scope[q], stride, {});
      stride *= plan_.size_of(scope[q]);
    }
    const double* values = arena_.data() + child.message;
    table_.accumulate([=](offset_t cell) { return values[cell]; });
  }

  // ---- labels ----------------------------------------------------------------------------------

  void backward(Rng* rng) {
    for (std::size_t p = buckets_.size(); p-- > 0;) {
      const Bucket& bucket = buckets_[p];
      const auto choice = plan_.labels_of(bucket.variable);
      const double* own = unary_.data() + plan_.label_begin(bucket.variable);
      row_.assign(own, own + choice.size());
      for (const FactorEnd& end : graph_.ends_of(plan_.variable(bucket.variable))) {
        if (leads(end.factor, p) && n_inside(end.factor) > 1)
          add_row(end, bucket.variable, row_.data());
      }
      for (index_t c = bucket.first_child; c >= 0; c = buckets_[at(c)].next_sibling) {
        add_message_row(buckets_[at(c)], bucket.variable);
      }
      const std::size_t best = pick(row_, rng);
      chosen_of(bucket.variable) = static_cast<index_t>(best);
      labels_[at(plan_.variable(bucket.variable))] = choice[best];
    }
  }

  /// The index into its list of the label that local variable k was given.
  index_t& chosen_of(index_t k) {
    if (chosen_.size() < plan_.n_local()) chosen_.resize(plan_.n_local());
    return chosen_[at(k)];
  }

  void add_message_row(const Bucket& child, index_t k) {
    offset_t base = 0, step = 1, stride = 1;
    const auto scope = scope_of(child);
    for (std::size_t q = scope.size(); q-- > 0;) {
      if (scope[q] == k) {
        step = stride;
      } else {
        base += stride * chosen_of(scope[q]);
      }
      stride *= plan_.size_of(scope[q]);
    }
    const double* values = arena_.data() + child.message + base;
    for (index_t a = 0; a < plan_.size_of(k); ++a) row_[at(a)] += values[step * a];
  }

  /// The largest; one of the largest up to rounding if ties are random.
  static std::size_t pick(std::span<const double> row, Rng* rng) {
    const std::size_t best = at(std::max_element(row.begin(), row.end()) - row.begin());
    if (rng == nullptr) return best;
    const double enough = row[best] - 1e-11 * (1.0 + std::abs(row[best]));
    std::size_t chosen = best;
    std::uint32_t ties = 0;
    for (std::size_t a = 0; a < row.size(); ++a) {
      if (row[a] >= enough && rng->below(++ties) == 0) chosen = a;
    }
    return chosen;
  }

  const FactorGraph& graph_;
  EliminationPlan plan_;
  std::span<index_t> labels_;
  std::span<const double> noise_;
  double work_ = 0.0;

  std::vector<double> unary_;  ///< of each label of each local variable, messages to it included
  std::vector<index_t> position_, solved_, scopes_, chosen_, inner_factors_, axes_, sizes_;
  std::vector<offset_t> mark_;
  offset_t stamp_ = 0;
  std::vector<Bucket> buckets_;
  BucketTable table_;
  std::vector<double> arena_, row_;
};

}  // namespace sublearn
