// Greedy direction method of multipliers for the LP relaxation of MAP inference (algorithm 8 of
// Yen, "Sublinear-Time Learning and Inference for High-Dimensional Models", 2018; "(3.25)" and the
// like are its equations).
//
//   max  sum_i theta_i' x_i + sum_f theta_f' y_f     s.t.  M_if y_f = x_i, x_i and y_f in simplices
//   (3.25)
//
// Augmented Lagrangian, with multipliers mu_if and d_if = mu_if + rho (M_if y_f - x_i):
//
//   L = - sum theta_i' x_i - sum theta_f' y_f + sum_(i,f) [mu_if'(M_if y_f - x_i) + rho/2 |M_if y_f
//   - x_i|^2]  (3.26)
//
// One iteration
//   search   for each factor the state of most negative gradient -theta_f(y) + sum_i d_if(y_i),
//   over ALL
//            states (3.31): through sorted rows and columns for large tables, by a scan for small
//            ones;
//   correct  y_f over its few active states: projected steps (3.29) with a line search on Q;
//            x_i exactly, a simplex projection (3.27) over the labels that have entered and as many
//            more from the sorted unary scores as are positive in it;
//   shrink   states back at zero leave; then mu += eta (M y - x) (3.32).
// Given x the factors are independent, and given y the variables: both loops run on threads and the
// result does not depend on their number.
//
// Certificate: for any mu the LP's dual value
//
//   sum_i max_a [theta_i(a) + sum_f mu_if(a)] + sum_f max_y [theta_f(y) - sum_i mu_if(y_i)]
//
// is an upper bound on the score of every assignment; its maxima are found by the same searches.
// With an assignment of score s in hand, label a of variable i can be excluded for good when
//
//   bound - max_b [theta_i(b) + sum_f mu_if(b)] + theta_i(a) + sum_f mu_if(a)  <  s,
//
// because that bounds every assignment with x_i = a. Labels without a message are excluded from the
// end of the sorted unary scores without being looked at.
//
// Labels that never entered have no message, so memory is that of the tables plus the active
// labels.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <memory>
#include <numeric>
#include <span>
#include <vector>

#include "sublearn/core/factor_graph.hpp"
#include "sublearn/core/monitor.hpp"
#include "sublearn/core/parallel_for.hpp"
#include "sublearn/prox/simplex.hpp"
#include "sublearn/search/sorted_table.hpp"
#include "sublearn/solvers/map/gdmm_point.hpp"

namespace sublearn {

struct GdmmSettings {
  double rho = 0.0;  ///< 0: from the scores, then balanced between primal and dual residual
  double eta = 0.0;  ///< dual step; 0: rho
  int n_threads = 1;
};

/// How far an iterate is from the optimum of (3.25).
struct GdmmResiduals {
  double primal = 0.0;  ///< |M y - x|, root mean square over the ends of factors
  double dual = 0.0;    ///< rho |x - x_before|, likewise
};

/// Residual balancing: rho grows where x and M y differ, and falls where x still moves. Nothing
/// changes once both are as small as rounding lets them be.
inline double balanced_rho(double rho, const GdmmResiduals& residuals) {
  constexpr double kRatio = 5.0, kFactor = 1.6, kSolved = 1e-6;
  const double primal = rho * residuals.primal, dual = residuals.dual;
  if (std::max(primal, dual) <= kSolved * rho) return rho;
  if (primal > kRatio * dual) return rho * kFactor;
  if (dual > kRatio * primal) return rho / kFactor;
  return rho;
}

class GdmmMap {
 public:
  GdmmMap(const FactorGraph& graph, const GdmmSettings& settings)
      : graph_(graph), settings_(settings), rho_(settings.rho), point_(graph) {
    share_sorted_tables();
    if (rho_ <= 0.0) rho_ = first_rho();
  }

  /// One pass of algorithm 8. Stops between phases if the monitor asks.
  void iterate(const Monitor* monitor) {
    const offset_t work_before = work_;
    propose(monitor);
    admit();
    correct_factors(monitor);
    correct_variables(monitor);
    ++n_iter_;
    n_threads_ = work_ - work_before > kParallelWork ? settings_.n_threads : 1;
    if (settings_.rho <= 0.0) balance();
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
  offset_t exclude(double bound, double score) { return point_.exclude(bound, score); }
  std::vector<index_t> remaining(index_t i) const { return point_.remaining(i); }
  void decode(std::span<index_t> labels) const { point_.decode(labels); }
  std::vector<index_t> candidates(index_t i) const { return point_.candidates(i); }
  offset_t n_active_labels() const { return point_.n_active_labels(); }
  offset_t n_active_states() const { return point_.n_active_states(); }

  const GdmmResiduals& residuals() const { return residuals_; }
  double rho() const { return rho_; }
  offset_t work() const { return work_; }

 private:
  /// Tables up to this many cells are scanned: sorting does not pay.
  static constexpr offset_t kScan = 256;
  /// Operations of an iteration that are worth waking threads for: a few milliseconds.
  static constexpr offset_t kParallelWork = 1'000'000;
  static constexpr int kSteps = 4;  ///< projected steps on one factor in one iteration

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
  void propose(const Monitor* monitor) {
    over(point_.factors.size(), monitor, [&](std::size_t f, Scratch& scratch) {
      const State& state = search(f, scratch, rho_);
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

  void correct_factors(const Monitor* monitor) {
    over(point_.factors.size(), monitor, [&](std::size_t f, Scratch& scratch) {
      if (point_.factors[f].y.size() > 1) correct(f, scratch);
    });
  }

  /// Projected steps over the active states of f.
  void correct(std::size_t f, Scratch& scratch) {
    GdmmFactor& factor = point_.factors[f];
    const std::size_t n = factor.y.size();
    const std::size_t arity = factor.slots.size() / n;
    fill_messages(f, scratch, rho_);
    if (scratch.moved.size() < arity) scratch.moved.resize(arity);
    for (std::size_t p = 0; p < arity; ++p)
      scratch.moved[p].assign(scratch.messages[p].size(), 0.0);
    double Q = rho_ * static_cast<double>(arity);
    for (int step = 0; step < kSteps; ++step) {
      scratch.gradient.resize(n);
      double lowest = std::numeric_limits<double>::infinity(), mean = 0.0;
      for (std::size_t s = 0; s < n; ++s) {
        double g = -factor.theta[s];
        for (std::size_t p = 0; p < arity; ++p) {
          g += scratch.messages[p][at(factor.slots[s * arity + p])];
        }
        scratch.gradient[s] = g;
        lowest = std::min(lowest, g);
        mean += factor.y[s] * g;
      }
      scratch.work += static_cast<offset_t>(n * arity);
      if (mean - lowest <= 1e-9 * rho_) break;  // optimal over the active states
      while (!step_fits(f, scratch, Q)) Q *= 2.0;
      for (std::size_t s = 0; s < n; ++s) factor.y[s] = scratch.point[s];
      for (std::size_t p = 0; p < arity; ++p) {
        GdmmEnd& end = point_.ends[point_.end_of(f, p)];
        for (std::size_t s = 0; s < n; ++s) {
          const auto slot = static_cast<std::size_t>(factor.slots[s * arity + p]);
          scratch.messages[p][slot] += rho_ * scratch.change[s];
          end.marginal[slot] += scratch.change[s];
        }
      }
    }
    scratch.work += point_.shrink(f);
  }

  /// (3.29) with this Q into `point` and `change`; true if the quadratic bound holds there, so that
  /// the objective falls.
  bool step_fits(std::size_t f, Scratch& scratch, double Q) const {
    const GdmmFactor& factor = point_.factors[f];
    const std::size_t n = factor.y.size();
    const std::size_t arity = factor.slots.size() / n;
    scratch.point.resize(n);
    for (std::size_t s = 0; s < n; ++s) {
      scratch.point[s] = factor.y[s] - scratch.gradient[s] / Q;
    }
    project_simplex<double>(scratch.point, 1.0, scratch.sorted);
    scratch.change.resize(n);
    double length = 0.0;
    for (std::size_t s = 0; s < n; ++s) {
      scratch.change[s] = scratch.point[s] - factor.y[s];
      length += scratch.change[s] * scratch.change[s];
    }
    double curvature = 0.0;
    for (std::size_t p = 0; p < arity; ++p) {
      auto& moved = scratch.moved[p];
      const auto slot = [&](std::size_t s) {
        return static_cast<std::size_t>(factor.slots[s * arity + p]);
      };
      for (std::size_t s = 0; s < n; ++s) moved[slot(s)] += scratch.change[s];
      for (std::size_t s = 0; s < n; ++s) {
        curvature += moved[slot(s)] * moved[slot(s)];
        moved[slot(s)] = 0.0;  // a slot counts once, and the array is zero again
      }
    }
    return rho_ * curvature <= Q * length * (1.0 + 1e-12);
  }

  /// x by (3.27), then the multipliers of the variable's ends by (3.32).
  void correct_variables(const Monitor* monitor) {
    for (Scratch& scratch : scratch_) scratch.primal = scratch.dual = 0.0;
    std::vector<GdmmResiduals> parts(point_.variables.size());
    over(point_.variables.size(), monitor,
         [&](std::size_t i, Scratch& scratch) { parts[i] = correct_variable(i, scratch); });
    GdmmResiduals sum;
    for (const GdmmResiduals& part : parts) {
      sum.primal += part.primal;
      sum.dual += part.dual;
    }
    const double n_ends = std::max<double>(1.0, static_cast<double>(point_.ends.size()));
    residuals_ = {std::sqrt(sum.primal / n_ends), rho_ * std::sqrt(sum.dual / n_ends)};
  }

  GdmmResiduals correct_variable(std::size_t i, Scratch& scratch) {
    const auto ends = graph_.ends_of(static_cast<index_t>(i));
    if (ends.empty()) return {};
    project_variable(i, scratch);
    GdmmVariable& variable = point_.variables[i];
    const std::vector<double>& x = scratch.point;
    GdmmResiduals sum;
    for (std::size_t s = 0; s < x.size(); ++s) {
      const double moved = x[s] - variable.x[s];
      sum.dual += static_cast<double>(ends.size()) * moved * moved;
      variable.x[s] = x[s];
    }
    for (const FactorEnd& end : ends) move_multipliers(point_.end_at(end), x, sum.primal);
    return sum;
  }

  /// (3.27) into scratch.point; labels enter as long as they would be positive.
  void project_variable(std::size_t i, Scratch& scratch) {
    const auto ends = graph_.ends_of(static_cast<index_t>(i));
    GdmmVariable& variable = point_.variables[i];
    const auto unary = graph_.unary_of(static_cast<index_t>(i));
    const double degree = static_cast<double>(ends.size());
    const auto pull = [&](index_t label) { return unary[at(label)] / (rho_ * degree); };
    auto& wanted = scratch.gradient;
    wanted.resize(variable.labels.size());
    for (std::size_t s = 0; s < wanted.size(); ++s) wanted[s] = pull(variable.labels[s]);
    for (const FactorEnd& end : ends) {
      const GdmmEnd& side = point_.end_at(end);
      for (std::size_t s = 0; s < wanted.size(); ++s) {
        wanted[s] += (side.marginal[s] + side.mu[s] / rho_) / degree;
      }
    }
    scratch.work += static_cast<offset_t>(wanted.size() * (ends.size() + 1));
    auto& x = scratch.point;
    while (true) {
      x = wanted;
      project_simplex<double>(x, 1.0, scratch.sorted);
      const auto top = std::max_element(x.begin(), x.end()) - x.begin();
      const double threshold = wanted[at(top)] - x[at(top)];
      variable.tighten();
      if (!variable.has_others()) return;
      const index_t label = variable.unary_order[variable.next_unary];
      if (pull(label) <= threshold) return;  // all labels without a slot would be zero
      point_.enter(i, label);
      wanted.push_back(pull(label));
    }
  }

  /// (3.32): mu += eta (M y - x). Adds |M y - x|^2 to `squares`.
  void move_multipliers(GdmmEnd& end, std::span<const double> x, double& squares) const {
    const double eta = settings_.eta > 0.0 ? settings_.eta : rho_;
    for (std::size_t s = 0; s < x.size(); ++s) {
      const double difference = end.marginal[s] - x[s];
      squares += difference * difference;
      end.mu[s] += eta * difference;
    }
  }

  void balance() {
    constexpr int kEvery = 10;
    if (n_iter_ % kEvery == 0) rho_ = balanced_rho(rho_, residuals_);
  }

  const FactorGraph& graph_;
  GdmmSettings settings_;
  double rho_;
  GdmmPoint point_;
  std::vector<std::unique_ptr<SortedTable>> sorted_;  ///< by table; none for small ones
  std::vector<Scratch> scratch_;
  GdmmResiduals residuals_;
  offset_t work_ = 0;
  int n_iter_ = 0;
  int n_threads_ = 1;  ///< of the next iteration
};

}  // namespace sublearn
