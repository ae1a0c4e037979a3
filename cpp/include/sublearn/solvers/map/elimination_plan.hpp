// What a block elimination decides before it computes: which variables, in which order.
//
// The variables of a block are numbered from 0 (their local numbers). Eliminating one connects all
// its neighbours, and its bucket has a cell for each joint label of it and them; the order takes
// the cheapest next. Asked to, the plan drops variables from the block instead of giving up.
#pragma once

#include <algorithm>
#include <chrono>
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

  bool interrupted() const {
    return (monitor != nullptr && monitor->stop_requested()) ||
           (deadline && std::chrono::steady_clock::now() >= *deadline);
  }
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

class EliminationPlan {
 public:
  static constexpr index_t kOutside = -1;

  explicit EliminationPlan(const FactorGraph& graph)
      : graph_(graph), local_(graph.domain.size(), kOutside) {}

  /// Numbers the variables of `block` and orders them; false if the limits do not allow it.
  /// `lists` restricts the labels of block[k] to lists->of(k).
  bool make(std::span<const index_t> block, const EliminationLimits& limits, Rng* rng,
            const LabelLists* lists) {
    open(block, lists);
    connect();
    return choose_order(limits, rng);
  }

  /// Forgets the block: no variable is inside.
  void close() {
    for (const index_t v : variable_) local_[at(v)] = kOutside;
  }

  /// Local numbers in the order of elimination, without dropped variables.
  std::span<const index_t> order() const { return order_; }

  std::size_t n_local() const { return variable_.size(); }
  index_t variable(index_t k) const { return variable_[at(k)]; }

  /// The local number of a variable of the graph; kOutside if it is dropped or not in the block.
  index_t local(index_t v) const { return local_[at(v)]; }

  /// Labels that local variable k may take, and where they stand among those of all.
  index_t size_of(index_t k) const {
    return static_cast<index_t>(label_begin_[at(k) + 1] - label_begin_[at(k)]);
  }
  std::span<const index_t> labels_of(index_t k) const {
    return {label_.data() + label_begin_[at(k)], at(size_of(k))};
  }
  std::size_t label_begin(index_t k) const { return at(label_begin_[at(k)]); }
  std::size_t n_labels() const { return label_.size(); }

  /// Operations of the last make().
  double work() const { return work_; }

 private:
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
    if (neighbours_.size() < n) neighbours_.resize(n);
    mark_.assign(n, 0);
    stamp_ = 0;
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
      if (work_ > limits.plan_work || (heap_.size() % 256 == 0 && limits.interrupted()))
        return false;
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

  const FactorGraph& graph_;
  std::vector<index_t> local_;         ///< of each variable of the graph
  std::vector<index_t> variable_;      ///< of each local variable
  std::vector<offset_t> label_begin_;  ///< into label_
  std::vector<index_t> label_;
  std::vector<std::vector<index_t>> neighbours_;
  std::vector<offset_t> mark_;
  offset_t stamp_ = 0;
  double work_ = 0.0;

  EliminationOrder rule_ = EliminationOrder::min_size;
  std::vector<char> state_;
  std::vector<double> cells_, cost_;
  std::vector<Offer> heap_;
  std::vector<index_t> order_, touched_;
};

}  // namespace sublearn
