// What the forms of GDMM over any factor graph share (solvers/map/gdmm.hpp, gdmm_printed.hpp).
//
//   search   for each factor the state of largest theta_f(y) - sum_i d_if(y_i), over ALL states
//            (3.31): through sorted rows and columns for large tables, by a scan for small ones
//   admit    that state becomes active
//   bound    the dual value of the multipliers, whose maxima are found by the same search
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <memory>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "sublearn/core/factor_graph.hpp"
#include "sublearn/core/monitor.hpp"
#include "sublearn/core/parallel_for.hpp"
#include "sublearn/search/sorted_table.hpp"
#include "sublearn/solvers/map/gdmm_point.hpp"

namespace sublearn {

/// How far an iterate is from the optimum of (3.25).
struct GdmmResiduals {
  double primal = 0.0;  ///< |M y - x|, root mean square over the ends of factors
  double dual = 0.0;    ///< rho |x - x_before|, likewise
};

class GdmmStates {
 public:
  explicit GdmmStates(const FactorGraph& graph) : graph_(graph), point_(graph) {
    share_sorted_tables();
  }

  /// The dual value at the present multipliers: no assignment scores more.
  double bound(const Monitor* monitor) {
    const std::size_t n_factors = point_.factors.size();
    std::vector<double> best(n_factors);
    over(n_factors, monitor,
         [&](std::size_t f, Scratch& scratch) { best[f] = search(f, scratch, 0.0).value; });
    double sum = std::accumulate(best.begin(), best.end(), 0.0);
    for (std::size_t i = 0; i < point_.variables.size(); ++i) sum += point_.best_belief(i);
    return sum;
  }

  // What every dual method of solvers/map/solver.hpp answers; documented in
  // solvers/map/gdmm_point.hpp.
  void decode(std::span<index_t> labels) const { point_.decode(labels); }
  std::vector<index_t> candidates(index_t i) const { return point_.candidates(i); }
  offset_t n_active_labels() const { return point_.n_active_labels(); }
  offset_t n_active_states() const { return point_.n_active_states(); }
  offset_t work() const { return work_; }

 protected:
  /// Tables up to this many cells are scanned: sorting does not pay.
  static constexpr offset_t kScan = 256;

  struct State {
    double value = -std::numeric_limits<double>::infinity();
    std::vector<index_t> labels;
  };

  struct Scratch {
    std::vector<std::vector<double>> messages;  ///< d_if by slot, for each end of a factor
    std::vector<double> gradient, point, change, sorted;
    std::vector<std::vector<double>> moved;  ///< M times the change, by slot, for each end
    State state;
    offset_t work = 0;
    double primal = 0.0, dual = 0.0;
  };

  void share_sorted_tables() {
    sorted_.resize(graph_.tables.size());
    for (std::size_t t = 0; t < sorted_.size(); ++t) {
      const FactorTable& table = *graph_.tables[t];
      if (table.arity() == 2 && table.n_cells() > kScan) {
        sorted_[t] = std::make_unique<SortedTable>(table);
      }
    }
  }

  /// A typical difference that a label makes: half the mean drop from the best cell of a table to
  /// the mean of its cells along the best one's row and column, and of the best unary to the next.
  double first_rho() const {
    double sum = 0.0;
    offset_t n = 0;
    for (const GdmmVariable& variable : point_.variables) {
      if (variable.unary_order.size() < 2) continue;
      const auto unary = graph_.unary_of(static_cast<index_t>(&variable - point_.variables.data()));
      sum += unary[at(variable.unary_order[0])] - unary[at(variable.unary_order[1])];
      ++n;
    }
    const double gap = n > 0 ? sum / static_cast<double>(n) : 0.0;
    return gap > 0.0 ? gap : 1.0;
  }

  /// Calls body(item, scratch) for all items in chunks on threads; adds up what the scratches
  /// count.
  template <class Body>
  void over(std::size_t n_items, const Monitor* monitor, Body&& body) {
    constexpr std::size_t kChunk = 64;
    const auto n_chunks = static_cast<offset_t>((n_items + kChunk - 1) / kChunk);
    const auto threads = static_cast<std::size_t>(effective_threads(n_chunks, n_threads_));
    if (scratch_.size() < threads) scratch_.resize(threads);
    parallel_for(n_chunks, n_threads_, monitor, [&](offset_t chunk, int thread) {
      const auto begin = static_cast<std::size_t>(chunk) * kChunk;
      for (std::size_t n = begin; n < std::min(begin + kChunk, n_items); ++n) {
        body(n, scratch_[at(thread)]);
      }
    });
    for (Scratch& scratch : scratch_) work_ += std::exchange(scratch.work, 0);
  }

  /// d_if = mu_if + weight (M_if y_f - x_i) for all ends of f.
  void fill_messages(std::size_t f, Scratch& scratch, double weight) const {
    const auto arity = graph_.scope_of(static_cast<index_t>(f)).size();
    if (scratch.messages.size() < arity) scratch.messages.resize(arity);
    for (std::size_t p = 0; p < arity; ++p) {
      const GdmmEnd& end = point_.ends[point_.end_of(f, p)];
      const auto& x = point_.variables[point_.variable_of(f, p)].x;
      auto& message = scratch.messages[p];
      message = end.mu;
      if (weight == 0.0) continue;
      for (std::size_t s = 0; s < message.size(); ++s)
        message[s] += weight * (end.marginal[s] - x[s]);
    }
  }

  /// The state of largest theta_f(y) - sum_i d_if(y_i), over all of them.
  const State& search(std::size_t f, Scratch& scratch, double weight) {
    fill_messages(f, scratch, weight);
    const auto arity = graph_.scope_of(static_cast<index_t>(f)).size();
    scratch.state.labels.resize(arity);
    const auto& sorted = sorted_[at(graph_.table_of[f])];
    if (sorted != nullptr) {
      search_sorted(f, *sorted, scratch);
    } else {
      scan(f, scratch);
    }
    return scratch.state;
  }

  void search_sorted(std::size_t f, const SortedTable& sorted, Scratch& scratch) {
    GdmmFactor& factor = point_.factors[f];
    const auto message = [&](std::size_t p) {
      const GdmmVariable& variable = point_.variables[point_.variable_of(f, p)];
      return SparseMessage{variable.labels, scratch.messages[p], variable.slot_of,
                           variable.has_others()};
    };
    const SparseMessage rows = message(0), columns = message(1);
    BestCell known;
    for (std::size_t n = 0; n < factor.y.size(); ++n) {
      const auto r = static_cast<std::size_t>(factor.slots[2 * n]);
      const auto c = static_cast<std::size_t>(factor.slots[2 * n + 1]);
      known.offer(factor.theta[n] - rows.values[r] - columns.values[c], rows.labels[r],
                  columns.labels[c]);
    }
    const BestCell best =
        best_cell(sorted, graph_.scale[f], rows, columns, known, factor.first_row, scratch.work);
    scratch.state.value = best.value;
    std::copy(best.labels, best.labels + 2, scratch.state.labels.begin());
  }

  /// Every cell of a small table, or of one of higher order, in the order in which it is stored.
  void scan(std::size_t f, Scratch& scratch) const {
    const FactorTable& table = graph_.table(static_cast<index_t>(f));
    const std::size_t arity = table.shape.size();
    const auto cost = [&](std::size_t p, index_t label) {
      const index_t slot = point_.variables[point_.variable_of(f, p)].slot_of[at(label)];
      if (slot == kExcluded) return std::numeric_limits<double>::infinity();
      return slot == kNoSlot ? 0.0 : scratch.messages[p][at(slot)];
    };
    const std::size_t last = arity - 1;
    std::vector<double>& last_costs = scratch.point;
    last_costs.resize(static_cast<std::size_t>(table.shape[last]));
    for (index_t label = 0; label < table.shape[last]; ++label) {
      last_costs[at(label)] = cost(last, label);
    }
    State& best = scratch.state;
    best.value = -std::numeric_limits<double>::infinity();
    offset_t best_cell = 0, cell = 0;
    const double scale = graph_.scale[f];
    const offset_t n_rows = table.n_cells() / table.shape[last];
    for (offset_t row = 0; row < n_rows; ++row) {
      double row_cost = 0.0;
      offset_t rest = row;
      for (std::size_t p = last; p-- > 0;) {
        row_cost += cost(p, static_cast<index_t>(rest % table.shape[p]));
        rest /= table.shape[p];
      }
      for (const double last_cost : last_costs) {
        const double value = scale * table.at(cell) - row_cost - last_cost;
        if (value > best.value) {
          best.value = value;
          best_cell = cell;
        }
        ++cell;
      }
    }
    scratch.work += cell;
    for (std::size_t p = arity; p-- > 0;) {
      best.labels[p] = static_cast<index_t>(best_cell % table.shape[p]);
      best_cell /= table.shape[p];
    }
  }

  /// Search: the state each factor wants to add.
  void propose(const Monitor* monitor, double rho) {
    over(point_.factors.size(), monitor, [&](std::size_t f, Scratch& scratch) {
      const State& state = search(f, scratch, rho);
      GdmmFactor& factor = point_.factors[f];
      factor.proposed.clear();
      const std::size_t arity = state.labels.size();
      for (std::size_t n = 0; n < factor.y.size(); ++n) {
        bool is_same = true;
        for (std::size_t p = 0; p < arity; ++p) {
          const auto slot = static_cast<std::size_t>(factor.slots[n * arity + p]);
          is_same =
              is_same && point_.variables[point_.variable_of(f, p)].labels[slot] == state.labels[p];
        }
        if (is_same) return;
      }
      factor.proposed = state.labels;
    });
  }

  /// Proposed states become active with y = 0; labels seen for the first time get slots.
  void admit() {
    for (std::size_t f = 0; f < point_.factors.size(); ++f) {
      GdmmFactor& factor = point_.factors[f];
      if (factor.proposed.empty()) continue;
      offset_t cell = 0;
      const FactorTable& table = graph_.table(static_cast<index_t>(f));
      for (std::size_t p = 0; p < factor.proposed.size(); ++p) {
        factor.slots.push_back(point_.enter(point_.variable_of(f, p), factor.proposed[p]));
        cell = cell * table.shape[p] + factor.proposed[p];
      }
      factor.theta.push_back(graph_.scale[f] * table.at(cell));
      const bool is_first = factor.y.empty();
      factor.y.push_back(is_first ? 1.0 : 0.0);
      if (!is_first) continue;
      for (std::size_t p = 0; p < factor.proposed.size(); ++p) {
        point_.ends[point_.end_of(f, p)].marginal[at(factor.slots[p])] = 1.0;
      }
    }
  }

  const FactorGraph& graph_;
  GdmmPoint point_;
  std::vector<std::unique_ptr<SortedTable>> sorted_;  ///< by table; none for small ones
  std::vector<Scratch> scratch_;
  offset_t work_ = 0;
  int n_threads_ = 1;  ///< of the next iteration
};

}  // namespace sublearn
