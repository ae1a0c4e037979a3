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
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "sublearn/core/factor_graph.hpp"
#include "sublearn/core/monitor.hpp"
#include "sublearn/core/rng.hpp"
#include "sublearn/core/types.hpp"

namespace sublearn {

/// Which variable is eliminated next: that of the smallest bucket, or that which adds the fewest
/// edges, which takes longer to find and is often narrower.
enum class EliminationOrder : std::uint8_t { min_size, min_fill };

struct EliminationLimits {
  double bucket_cells = 1 << 20;  ///< largest bucket, the eliminated variable included
  double total_cells = 1 << 26;   ///< all buckets together: bounds time, and memory of messages
  double plan_work = 1e9;         ///< operations to find the order
  EliminationOrder order = EliminationOrder::min_size;
  bool drop = false;   ///< leave variables out of the block instead of giving up
  index_t n_kept = 0;  ///< the first variables of the block, which are dropped last
  const Monitor* monitor = nullptr;
  std::optional<std::chrono::steady_clock::time_point> deadline{};
};

/// Short lists of labels, one for each variable of a block; empty lists mean all labels.
struct LabelLists {
  std::vector<offset_t> begin{0};
  std::vector<index_t> labels;

  void clear() {
    begin.assign(1, 0);
    labels.clear();
  }
  std::span<const index_t> of(std::size_t k) const {
    return {labels.data() + begin[k], static_cast<std::size_t>(begin[k + 1] - begin[k])};
  }
  void close() { begin.push_back(static_cast<offset_t>(labels.size())); }
};

class MapElimination {
 public:
  explicit MapElimination(const FactorGraph& graph)
      : graph_(graph), local_(graph.domain.size(), kOutside) {}

  /// Gives the variables of `block` (distinct) their best labels given those of all others. False,
  /// and labels as before, if the limits do not allow it or the monitor asked to stop. `lists`
  /// restricts the labels of block[k] to lists->of(k). With `rng`, the order and ties are random.
  bool solve(std::span<const index_t> block, std::span<index_t> labels,
             const EliminationLimits& limits, Rng* rng = nullptr,
             const LabelLists* lists = nullptr) {
    labels_ = labels;
    open(block, lists);
    connect();
    const bool planned = choose_order(limits, rng) && lay_out(limits);
    const bool solved = planned && forward(limits);
    if (solved) backward(rng);
    for (const index_t v : block) local_[at(v)] = kOutside;
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
  static constexpr index_t kOutside = -1;

  struct Bucket {
    index_t variable = 0;         ///< local
    std::size_t scope_begin = 0;  ///< into scopes_: local variables, by order
    std::size_t scope_end = 0;
    std::size_t message = 0;   ///< into arena_, over the scope, last fastest
    index_t first_child = -1;  ///< buckets whose message comes here
    index_t next_sibling = -1;
  };

  /// One axis of a bucket as an input sees it: where each label moves the reading position.
  struct Axis {
    index_t size;
    const offset_t* move;  ///< null: the input does not depend on it
  };

  static std::size_t at(offset_t i) { return static_cast<std::size_t>(i); }

  // ---- the block -------------------------------------------------------------------------------

  void open(std::span<const index_t> block, const LabelLists* lists) {
    const std::size_t n = block.size();
    work_ = 10.0 * static_cast<double>(n);
    variable_.assign(block.begin(), block.end());
    label_begin_.assign(1, 0);
    label_.clear();
    for (std::size_t k = 0; k < n; ++k) {
      local_[at(block[k])] = static_cast<index_t>(k);
      const auto list = lists == nullptr ? std::span<const index_t>{} : lists->of(k);
      if (list.empty()) {
        for (index_t a = 0; a < graph_.domain[at(block[k])]; ++a) label_.push_back(a);
      } else {
        label_.insert(label_.end(), list.begin(), list.end());
      }
      label_begin_.push_back(static_cast<offset_t>(label_.size()));
    }
    position_.assign(n, 0);
    if (neighbours_.size() < n) neighbours_.resize(n);
    mark_.assign(n, 0);
    stamp_ = 0;
  }

  std::size_t n_local() const { return variable_.size(); }
  index_t size_of(index_t k) const {
    return static_cast<index_t>(label_begin_[at(k) + 1] - label_begin_[at(k)]);
  }
  std::span<const index_t> labels_of(index_t k) const {
    return {label_.data() + label_begin_[at(k)], at(size_of(k))};
  }

  void connect() {
    for (std::size_t k = 0; k < n_local(); ++k) {
      auto& list = neighbours_[k];
      list.clear();
      ++stamp_;
      mark_[k] = stamp_;
      const auto ends = graph_.ends_of(variable_[k]);
      work_ += 8.0 * static_cast<double>(ends.size());
      for (const FactorEnd& end : ends) {
        for (const index_t other : graph_.scope_of(end.factor)) {
          const index_t j = local_[at(other)];
          if (j == kOutside || mark_[at(j)] == stamp_) continue;
          mark_[at(j)] = stamp_;
          list.push_back(j);
        }
      }
    }
  }

  // ---- the order -------------------------------------------------------------------------------

  struct Offer {
    double cost;  ///< cells of the bucket, or edges to add
    std::uint32_t tie;
    index_t variable;
    bool operator<(const Offer& other) const {  // the heap's top is the cheapest
      return cost != other.cost ? cost > other.cost
             : tie != other.tie ? tie > other.tie
                                : variable > other.variable;
    }
  };

  double bucket_cells(index_t k) const {
    double cells = size_of(k);
    for (const index_t j : neighbours_[at(k)]) cells *= size_of(j);
    return cells;
  }

  /// Edges between the neighbours of k that are missing.
  double fill(index_t k) {
    const auto& around = neighbours_[at(k)];
    ++stamp_;
    for (const index_t j : around) mark_[at(j)] = stamp_;
    double ends = static_cast<double>(around.size()) * static_cast<double>(around.size() - 1);
    for (const index_t j : around) {
      work_ += static_cast<double>(neighbours_[at(j)].size());
      for (const index_t i : neighbours_[at(j)]) ends -= mark_[at(i)] == stamp_ ? 1.0 : 0.0;
    }
    return around.empty() ? 0.0 : ends / 2.0;
  }

  void offer(index_t k, Rng* rng) {
    const std::uint32_t tie = rng == nullptr ? 0 : static_cast<std::uint32_t>((*rng)() >> 32);
    work_ += 20.0 + static_cast<double>(neighbours_[at(k)].size());
    cells_[at(k)] = bucket_cells(k);
    cost_[at(k)] = rule_ == EliminationOrder::min_fill ? fill(k) : cells_[at(k)];
    heap_.push_back({cost_[at(k)], tie, k});
    std::push_heap(heap_.begin(), heap_.end());
  }

  /// Smallest bucket first; `order_` is the sequence of local variables, without dropped ones.
  bool choose_order(const EliminationLimits& limits, Rng* rng) {
    enum : char { waiting, done };
    state_.assign(n_local(), waiting);
    cells_.assign(n_local(), 0.0);
    cost_.assign(n_local(), 0.0);
    rule_ = limits.order;
    heap_.clear();
    order_.clear();
    // Without the most connected variables a block is largest, but they would never be part of one.
    const bool drop_hubs = rng == nullptr || rng->below(2) == 0;
    for (std::size_t k = 0; k < n_local(); ++k) offer(static_cast<index_t>(k), rng);
    while (!heap_.empty()) {
      if (work_ > limits.plan_work || (heap_.size() % 256 == 0 && stopped(limits))) return false;
      std::pop_heap(heap_.begin(), heap_.end());
      const Offer best = heap_.back();
      heap_.pop_back();
      if (state_[at(best.variable)] != waiting || best.cost != cost_[at(best.variable)]) continue;
      if (cells_[at(best.variable)] <= limits.bucket_cells) {
        state_[at(best.variable)] = done;
        order_.push_back(best.variable);
        remove(best.variable, true, rng);
        continue;
      }
      if (!limits.drop) return false;
      const index_t dropped = choose_dropped(best.variable, drop_hubs, limits.n_kept, rng);
      state_[at(dropped)] = done;
      local_[at(variable_[at(dropped)])] = kOutside;
      remove(dropped, false, rng);
    }
    return true;
  }

  /// The one of k and its neighbours that goes: one that need not be kept, then that of the largest
  /// bucket, without which most is gained, or, if not `hubs`, any.
  index_t choose_dropped(index_t k, bool hubs, index_t n_kept, Rng* rng) {
    const auto rank = [&](index_t j) { return std::pair(j >= n_kept, hubs ? cells_[at(j)] : 0.0); };
    index_t worst = k;
    std::uint32_t ties = 1;
    for (const index_t j : neighbours_[at(k)]) {
      if (rank(j) > rank(worst)) {
        worst = j;
        ties = 1;
      } else if (rank(j) == rank(worst) && rng != nullptr && rng->below(++ties) == 0) {
        worst = j;
      }
    }
    return worst;
  }

  /// Takes k out of the graph; `join` connects its neighbours, as elimination does.
  void remove(index_t k, bool join, Rng* rng) {
    const auto& around = neighbours_[at(k)];
    for (const index_t j : around) {
      auto& list = neighbours_[at(j)];
      std::erase(list, k);
      work_ += 2.0 * static_cast<double>(list.size() + around.size());
      if (join && around.size() > 1) {
        ++stamp_;
        mark_[at(j)] = stamp_;
        for (const index_t i : list) mark_[at(i)] = stamp_;
        for (const index_t i : around) {
          if (mark_[at(i)] != stamp_) list.push_back(i);
        }
      }
    }
    touched_.assign(around.begin(), around.end());
    if (rule_ == EliminationOrder::min_fill) {  // new edges fill gaps of others
      ++stamp_;
      for (const index_t j : around) mark_[at(j)] = stamp_;
      for (const index_t j : around) {
        for (const index_t i : neighbours_[at(j)]) {
          if (mark_[at(i)] == stamp_) continue;
          mark_[at(i)] = stamp_;
          touched_.push_back(i);
        }
      }
    }
    for (const index_t j : touched_) offer(j, rng);
  }

  // ---- the buckets -----------------------------------------------------------------------------

  /// Scopes of the buckets, given the order. Dropped variables make them smaller than planned.
  bool lay_out(const EliminationLimits& limits) {
    const std::size_t n = order_.size();
    solved_.clear();
    for (std::size_t p = 0; p < n; ++p) {
      position_[at(order_[p])] = static_cast<index_t>(p);
      solved_.push_back(variable_[at(order_[p])]);
    }
    buckets_.assign(n, Bucket{});
    scopes_.clear();
    std::size_t message_cells = 0;
    double total = 0.0;
    for (std::size_t p = 0; p < n; ++p) {
      buckets_[p].variable = order_[p];
      collect_scope(p);
      Bucket& bucket = buckets_[p];
      const auto scope = scope_of(bucket);
      double cells = 1.0;
      for (const index_t j : scope) cells *= size_of(j);
      total += cells * size_of(bucket.variable);
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
    for (const FactorEnd& end : graph_.ends_of(variable_[at(bucket.variable)])) {
      const auto scope = graph_.scope_of(end.factor);
      if (!leads(end.factor, p)) continue;
      for (const index_t other : scope) {
        if (local_[at(other)] != kOutside) take(local_[at(other)]);
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
      const index_t j = local_[at(other)];
      if (j != kOutside && at(position_[at(j)]) < p) return false;
    }
    return true;
  }

  // ---- numbers ---------------------------------------------------------------------------------

  bool forward(const EliminationLimits& limits) {
    if (stopped(limits)) return false;
    unary_.resize(label_.size());
    for (const index_t k : order_) {
      const auto own = graph_.unary_of(variable_[at(k)]);
      double* mine = unary_.data() + label_begin_[at(k)];
      const double* noise =
          noise_.empty() ? nullptr : noise_.data() + graph_.unary_begin[at(variable_[at(k)])];
      for (const index_t a : labels_of(k)) {
        *mine++ = own[at(a)] + (noise == nullptr ? 0.0 : noise[a]);
      }
    }
    double checked = work_;
    for (std::size_t p = 0; p < buckets_.size(); ++p) {
      if (work_ > checked + 1e6) {
        if (stopped(limits)) return false;
        checked = work_;
      }
      send(p);
    }
    return true;
  }

  static bool stopped(const EliminationLimits& limits) {
    return (limits.monitor != nullptr && limits.monitor->stop_requested()) ||
           (limits.deadline && std::chrono::steady_clock::now() >= *limits.deadline);
  }

  /// Fills the bucket at position p and maximises over its variable.
  void send(std::size_t p) {
    const Bucket& bucket = buckets_[p];
    const auto scope = scope_of(bucket);
    const index_t size = size_of(bucket.variable);
    double* own = unary_.data() + label_begin_[at(bucket.variable)];
    inner_factors_.clear();
    for (const FactorEnd& end : graph_.ends_of(variable_[at(bucket.variable)])) {
      if (!leads(end.factor, p)) continue;
      if (n_inside(end.factor) == 1) {
        add_row(end, labels_of(bucket.variable), own);
      } else {
        inner_factors_.push_back(end.factor);
      }
    }
    work_ += 50.0;
    if (scope.empty()) return;

    std::size_t rest = 1;
    for (const index_t j : scope) rest *= at(size_of(j));
    if (table_.size() < rest * at(size)) table_.resize(rest * at(size));
    for (index_t a = 0; a < size; ++a) std::fill_n(table_.data() + at(a) * rest, rest, own[a]);
    double inputs = 1.0;
    work_ += 50.0 * static_cast<double>(inner_factors_.size());
    for (const index_t f : inner_factors_) {
      add_factor(f, bucket);
      ++inputs;
    }
    for (index_t c = bucket.first_child; c >= 0; c = buckets_[at(c)].next_sibling) {
      add_message(buckets_[at(c)], bucket);
      ++inputs;
    }
    work_ += inputs * static_cast<double>(rest) * size;

    double* out = arena_.data() + bucket.message;
    if (scope.size() == 1) {
      row_.resize(rest);
      out = row_.data();
    }
    std::copy_n(table_.data(), rest, out);
    for (index_t a = 1; a < size; ++a) {
      const double* row = table_.data() + at(a) * rest;
      for (std::size_t c = 0; c < rest; ++c) out[c] = out[c] < row[c] ? row[c] : out[c];
    }
    if (scope.size() == 1) {
      double* target = unary_.data() + label_begin_[at(scope.front())];
      for (std::size_t c = 0; c < rest; ++c) target[c] += out[c];
    }
  }

  index_t n_inside(index_t f) const {
    index_t n = 0;
    for (const index_t other : graph_.scope_of(f)) n += local_[at(other)] != kOutside;
    return n;
  }

  /// Adds what a factor says of one variable, all its others being outside.
  void add_row(const FactorEnd& end, std::span<const index_t> choice, double* sum) {
    const FactorTable& table = graph_.table(end.factor);
    const auto scope = graph_.scope_of(end.factor);
    const double scale = graph_.scale[at(end.factor)];
    offset_t base = 0, step = 1, stride = 1;
    for (std::size_t q = scope.size(); q-- > 0;) {
      if (q == at(end.position)) {
        step = stride;
      } else {
        base += stride * labels_[at(scope[q])];
      }
      stride *= table.shape[q];
    }
    work_ += static_cast<double>(choice.size());
    if (table.kind == TableKind::dense) {
      const double* values = table.values.data() + base;
      for (std::size_t a = 0; a < choice.size(); ++a) sum[a] += scale * values[step * choice[a]];
    } else {
      for (std::size_t a = 0; a < choice.size(); ++a) {
        sum[a] += scale * table.at(base + step * choice[a]);
      }
    }
  }

  void add_factor(index_t f, const Bucket& bucket) {
    const FactorTable& table = graph_.table(f);
    const auto scope = graph_.scope_of(f);
    const double scale = graph_.scale[at(f)];
    begin_axes(bucket);
    offset_t base = 0, stride = 1;
    for (std::size_t q = scope.size(); q-- > 0;) {
      const index_t j = local_[at(scope[q])];
      if (j == kOutside) {
        base += stride * labels_[at(scope[q])];
      } else {
        set_axis(j, stride, labels_of(j));
      }
      stride *= table.shape[q];
    }
    if (table.kind == TableKind::dense) {
      const double* values = table.values.data() + base;
      accumulate([=](offset_t cell) { return scale * values[cell]; });
    } else {
      accumulate([&](offset_t cell) { return scale * table.at(base + cell); });
    }
  }

  void add_message(const Bucket& child, const Bucket& bucket) {
    begin_axes(bucket);
    const auto scope = scope_of(child);
    offset_t stride = 1;
    for (std::size_t q = scope.size(); q-- > 0;) {
      set_axis(scope[q], stride, {});
      stride *= size_of(scope[q]);
    }
    const double* values = arena_.data() + child.message;
    accumulate([=](offset_t cell) { return values[cell]; });
  }

  /// Axes of the bucket: its variable, then its scope; none moves yet.
  void begin_axes(const Bucket& bucket) {
    axes_.clear();
    axis_of_.clear();
    axis_of_.push_back(bucket.variable);
    for (const index_t j : scope_of(bucket)) axis_of_.push_back(j);
    std::size_t labels = 0;
    for (const index_t j : axis_of_) {
      axes_.push_back({size_of(j), nullptr});
      labels += at(size_of(j));
    }
    moves_.clear();
    moves_.reserve(labels);  // pointers into it must stay
  }

  /// Label a of local variable j moves the reading position by stride * choice[a].
  void set_axis(index_t j, offset_t stride, std::span<const index_t> choice) {
    const std::size_t axis = at(std::find(axis_of_.begin(), axis_of_.end(), j) - axis_of_.begin());
    axes_[axis].move = moves_.data() + moves_.size();
    for (index_t a = 0; a < size_of(j); ++a) {
      moves_.push_back(stride * (choice.empty() ? a : choice[at(a)]));
    }
  }

  /// table_ += input. The last axes are unrolled into a list of positions, at least 16 cells long
  /// where possible, so that an odometer step serves many cells even if all variables are binary.
  template <class Cell>
  void accumulate(Cell&& cell) {
    std::size_t n_outer = axes_.size();
    inner_.assign(1, 0);
    while (n_outer > 0 && inner_.size() < 16) unroll(axes_[--n_outer]);
    const std::size_t n_inner = inner_.size();
    odometer_.assign(n_outer, 0);
    double* out = table_.data();
    offset_t base = 0;
    for (std::size_t d = 0; d < n_outer; ++d) {
      if (axes_[d].move != nullptr) base += axes_[d].move[0];
    }
    for (;;) {
      for (std::size_t c = 0; c < n_inner; ++c) out[c] += cell(base + inner_[c]);
      out += n_inner;
      std::size_t d = n_outer;
      for (; d-- > 0;) {
        const Axis& axis = axes_[d];
        const index_t a = odometer_[d]++;
        if (odometer_[d] < axis.size) {
          if (axis.move != nullptr) base += axis.move[a + 1] - axis.move[a];
          break;
        }
        odometer_[d] = 0;
        if (axis.move != nullptr) base += axis.move[0] - axis.move[a];
      }
      if (d == static_cast<std::size_t>(-1)) return;
    }
  }

  /// inner_ becomes the positions over (axis, old inner axes); move[0] of each is counted in.
  void unroll(const Axis& axis) {
    const std::size_t n = inner_.size();
    inner_.resize(n * at(axis.size));
    for (index_t a = axis.size; a-- > 0;) {
      const offset_t move = axis.move == nullptr ? 0 : axis.move[a];
      for (std::size_t c = 0; c < n; ++c) inner_[at(a) * n + c] = inner_[c] + move;
    }
  }

  // ---- labels ----------------------------------------------------------------------------------

  void backward(Rng* rng) {
    for (std::size_t p = buckets_.size(); p-- > 0;) {
      const Bucket& bucket = buckets_[p];
      const auto choice = labels_of(bucket.variable);
      row_.assign(unary_.begin() + label_begin_[at(bucket.variable)],
                  unary_.begin() + label_begin_[at(bucket.variable) + 1]);
      for (const FactorEnd& end : graph_.ends_of(variable_[at(bucket.variable)])) {
        if (leads(end.factor, p) && n_inside(end.factor) > 1) add_row(end, choice, row_.data());
      }
      for (index_t c = bucket.first_child; c >= 0; c = buckets_[at(c)].next_sibling) {
        add_message_row(buckets_[at(c)], bucket.variable);
      }
      const std::size_t best = pick(row_, rng);
      chosen_of(bucket.variable) = static_cast<index_t>(best);
      labels_[at(variable_[at(bucket.variable)])] = choice[best];
    }
  }

  /// The index into its list of the label that local variable k was given.
  index_t& chosen_of(index_t k) {
    if (chosen_.size() < n_local()) chosen_.resize(n_local());
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
      stride *= size_of(scope[q]);
    }
    const double* values = arena_.data() + child.message + base;
    for (index_t a = 0; a < size_of(k); ++a) row_[at(a)] += values[step * a];
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
  std::vector<index_t> local_;  ///< of each variable of the graph; kOutside if not in the block
  std::span<index_t> labels_;
  std::span<const double> noise_;
  double work_ = 0.0;

  std::vector<index_t> variable_;      ///< of each local variable
  std::vector<offset_t> label_begin_;  ///< into label_ and unary_
  std::vector<index_t> label_;
  std::vector<double> unary_;
  std::vector<std::vector<index_t>> neighbours_;
  std::vector<offset_t> mark_;
  offset_t stamp_ = 0;
  std::vector<char> state_;
  std::vector<double> cells_, cost_;
  EliminationOrder rule_ = EliminationOrder::min_size;
  std::vector<index_t> touched_;
  std::vector<Offer> heap_;
  std::vector<index_t> order_, position_, solved_, scopes_, chosen_, inner_factors_;
  std::vector<Bucket> buckets_;
  std::vector<double> arena_, table_, row_;
  std::vector<Axis> axes_;
  std::vector<index_t> axis_of_, odometer_;
  std::vector<offset_t> moves_, inner_;
};

}  // namespace sublearn
