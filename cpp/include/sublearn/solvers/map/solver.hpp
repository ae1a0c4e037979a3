// MAP inference from end to end: reduce, split, bound and search together, reduce again.
//
//   solve_graph       reductions that keep the optimum, then the connected components one by one
//   solve_component   small width: exact elimination. Where dense messages are cheap, sweeps of
//                     them and a short branch and bound: on small tables that is often all.
//                     Then GDMM (algorithms 8 and 9 of Yen 2018) lowers the bound to that of the
//                     linear program and excludes labels, and local search from its decoded
//                     points raises the score, in turns of equal work, until the two meet. With
//                     the labels that are left, once more from the top; what still has a gap goes
//                     to the search and to branch and bound for the rest of the time.
//
// At any moment the best assignment so far and a bound on all assignments are known; every answer
// is between them.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "sublearn/core/factor_graph.hpp"
#include "sublearn/core/monitor.hpp"
#include "sublearn/core/rng.hpp"
#include "sublearn/core/status.hpp"
#include "sublearn/solvers/map/branch.hpp"
#include "sublearn/solvers/map/components.hpp"
#include "sublearn/solvers/map/elimination.hpp"
#include "sublearn/solvers/map/gdmm.hpp"
#include "sublearn/solvers/map/gdmm_binary.hpp"
#include "sublearn/solvers/map/messages.hpp"
#include "sublearn/solvers/map/reduction.hpp"
#include "sublearn/solvers/map/search.hpp"

namespace sublearn {

struct MapSettings {
  double tol = 1e-6;    ///< on (bound - score) / max(1, |score|)
  int max_iter = 2000;  ///< GDMM iterations on a component
  double time_limit = std::numeric_limits<double>::infinity();  ///< seconds
  double search_work = 1e9;     ///< operations of the search after the bound has converged
  double rho = 0.0, eta = 0.0;  ///< see GdmmSettings
  bool reduce = true;           ///< false: GDMM and search alone, on the graph as it is
  int n_threads = 1;
  std::uint64_t seed = 0;
};

/// An assignment and what is known about it.
struct MapAnswer {
  std::vector<index_t> labels;
  double score = -std::numeric_limits<double>::infinity();
  double bound = std::numeric_limits<double>::infinity();
};

/// How the solver stood at some moment.
struct MapRow {
  double seconds, score, bound;
  std::int64_t n_iter, n_labels, n_states, work;
};

class MapSolver {
 public:
  MapSolver(const MapSettings& settings, Monitor& monitor)
      : settings_(settings), monitor_(monitor), start_(Clock::now()), rng_(settings.seed) {}

  /// `labels` is where to start from; empty: the best label of each variable by itself.
  MapAnswer solve(const FactorGraph& graph, std::span<const index_t> labels) {
    MapAnswer answer = begin(graph, labels);
    report(answer.score, answer.bound);
    const Report to_all = [&](double score, double bound) { report(score, bound); };
    answer = solve_graph(graph, std::move(answer), {0, deadline(), to_all});
    report(answer.score, answer.bound);
    status_ = status_of(answer);
    return answer;
  }

  const std::vector<MapRow>& rows() const { return rows_; }
  std::int64_t n_iter() const { return n_iter_; }
  Status status() const { return status_; }  ///< how solve() ended

 private:
  using Clock = std::chrono::steady_clock;
  using Report = std::function<void(double score, double bound)>;

  /// What a part of the work may use, and whom it tells what it has found.
  struct Errand {
    int depth;  ///< how often the graph has been reduced before
    Clock::time_point end;
    const Report& report;
  };

  static constexpr int kMostDepth = 8;

  Clock::time_point deadline() const {
    constexpr double kForever = 1e9;  // seconds; the clock could not hold infinity
    const std::chrono::duration<double> limit(std::min(settings_.time_limit, kForever));
    return start_ + std::chrono::duration_cast<Clock::duration>(limit);
  }
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }
  bool should_stop(Clock::time_point end) const {
    return monitor_.stop_requested() || Clock::now() >= end;
  }
  /// How much better an assignment must be to be worth looking for.
  double slack(double score) const { return 0.5 * settings_.tol * std::max(1.0, std::abs(score)); }
  bool is_closed(const MapAnswer& answer) const {
    return answer.bound - answer.score <= 2.0 * slack(answer.score);
  }

  Status status_of(const MapAnswer& answer) const {
    if (is_closed(answer)) return Status::converged;
    if (monitor_.stop_requested()) return Status::stopped;
    return Clock::now() >= deadline() ? Status::time_limit : Status::max_iter;
  }

  void report(double score, double bound) {
    best_score_ = std::max(best_score_, score);
    best_bound_ = std::max(std::min(best_bound_, bound), best_score_);
    rows_.push_back({seconds(), best_score_, best_bound_, n_iter_, n_labels_, n_states_, work_});
    monitor_.objective = best_score_;
    monitor_.gap = best_bound_ - best_score_;
    monitor_.n_done = n_iter_;
    monitor_.nnz_primal = n_labels_;
    monitor_.nnz_dual = n_states_;
    monitor_.work = work_;
  }

  /// A first assignment and the bound of all multipliers zero.
  static MapAnswer begin(const FactorGraph& graph, std::span<const index_t> labels) {
    MapAnswer answer;
    answer.labels.assign(labels.begin(), labels.end());
    double bound = 0.0;
    for (index_t i = 0; i < graph.n_variables(); ++i) {
      const auto unary = graph.unary_of(i);
      const auto top = std::max_element(unary.begin(), unary.end());
      bound += *top;
      if (labels.empty()) answer.labels.push_back(static_cast<index_t>(top - unary.begin()));
    }
    std::vector<double> top(graph.tables.size());
    for (std::size_t t = 0; t < top.size(); ++t) top[t] = graph.tables[t]->upper_bound();
    for (std::size_t f = 0; f < graph.table_of.size(); ++f) {
      bound += graph.scale[f] * top[at(graph.table_of[f])];
    }
    answer.bound = bound;
    answer.score = graph.score(answer.labels);
    return answer;
  }

  /// Reduces, solves what is left, and takes the answer back to the graph.
  MapAnswer solve_graph(const FactorGraph& graph, MapAnswer answer, const Errand& errand) {
    ReductionLimits limits;
    limits.incumbent = answer.score;
    if (!settings_.reduce) limits.rounds = 0;
    const MapReduction reduction(graph, limits);
    std::vector<index_t> labels = reduction.restricted(answer.labels);
    const Report report = [&](double score, double bound) {
      errand.report(std::max(answer.score, score), bound);
    };
    const double bound = solve_parts(reduction, labels, {errand.depth, errand.end, report});
    labels = reduction.lift(labels);
    const double lifted = graph.score(labels);
    if (lifted > answer.score) {
      answer.labels = std::move(labels);
      answer.score = lifted;
    }
    // assignments that the reduction lost score no more than the one it was given
    answer.bound = std::max(answer.score, std::min(answer.bound, bound));
    return answer;
  }

  /// The components of the reduced graph one after another, each with its share of the time, from
  /// and into `labels`. Returns the bound on all of it.
  double solve_parts(const MapReduction& reduction, std::vector<index_t>& labels,
                     const Errand& errand) {
    const std::vector<GraphComponent> parts = split_components(reduction.graph());
    std::vector<MapAnswer> answers;
    double score = reduction.constant(), bound = reduction.constant(), size_left = 0.0;
    for (const GraphComponent& part : parts) {
      std::vector<index_t> own;
      for (const index_t i : part.variables) own.push_back(labels[at(i)]);
      answers.push_back(begin(part.graph, own));
      score += answers.back().score;
      bound += answers.back().bound;
      size_left += size_of(part.graph);
    }
    for (std::size_t c = 0; c < parts.size(); ++c) {
      const double size = size_of(parts[c].graph);
      const auto now = Clock::now();
      const auto share =
          std::chrono::duration_cast<Clock::duration>((errand.end - now) * (size / size_left));
      size_left -= size;
      const double other_score = score - answers[c].score, other_bound = bound - answers[c].bound;
      const Report report = [&](double part_score, double part_bound) {
        errand.report(other_score + part_score, other_bound + part_bound);
      };
      if (!should_stop(errand.end)) {
        const auto end = c + 1 == parts.size() ? errand.end : now + share;
        answers[c] =
            solve_component(parts[c].graph, std::move(answers[c]), {errand.depth, end, report});
      }
      score = other_score + answers[c].score;
      bound = other_bound + answers[c].bound;
      for (std::size_t k = 0; k < parts[c].variables.size(); ++k) {
        labels[at(parts[c].variables[k])] = answers[c].labels[k];
      }
    }
    return bound;
  }

  static double size_of(const FactorGraph& graph) {
    return 1.0 + static_cast<double>(graph.unary.size() + graph.scope.size());
  }

  MapAnswer solve_component(const FactorGraph& graph, MapAnswer answer, const Errand& errand) {
    if (settings_.reduce && eliminate(graph, answer)) return answer;
    std::optional<MapMessages> messages;
    if (settings_.reduce && has_cheap_messages(graph)) {
      messages.emplace(graph);
      sweep(graph, *messages, answer, errand);
      if (is_closed(answer)) return answer;
      if (branch_first(graph, *messages, answer, errand)) return answer;
    }
    const GdmmSettings settings{settings_.rho, settings_.eta, settings_.n_threads};
    if (is_binary_pairwise(graph)) {
      GdmmBinary dual(graph, settings);
      return bound_and_search(graph, dual, messages, std::move(answer), errand);
    }
    GdmmMap dual(graph, settings);
    return bound_and_search(graph, dual, messages, std::move(answer), errand);
  }

  static constexpr double kFirstSearch = 5e7;                     ///< operations
  static constexpr double kFirstBranch = 1e7, kLastBranch = 2e8;  ///< cells read in a slice
  static constexpr index_t kMostOpen = 1000;  ///< open variables for which more of it may help

  /// Branch and bound in growing slices; then a short search, and again if the score is better, for
  /// a better score prunes more. True if the gap is closed.
  bool branch_first(const FactorGraph& graph, MapMessages& messages, MapAnswer& answer,
                    const Errand& errand) {
    MapSearch search(graph, rng_.split(static_cast<std::uint64_t>(n_searches_++)));
    double score;
    do {
      for (double work = kFirstBranch; work <= kLastBranch; work *= 4.0) {
        const index_t n_open = branch(graph, messages, answer, work, errand);
        if (is_closed(answer)) return true;
        if (n_open > kMostOpen) break;
      }
      score = answer.score;
      look_further(search, answer, kFirstSearch, nullptr, errand.end);
      errand.report(answer.score, answer.bound);
    } while (answer.score > score + slack(score) && !should_stop(errand.end));
    return is_closed(answer);
  }

  static bool has_cheap_messages(const FactorGraph& graph) {
    constexpr double kMostBytes = 256e6, kMostWork = 5e7;
    return static_cast<double>(MapMessages::memory_needed(graph)) <= kMostBytes &&
           static_cast<double>(MapMessages::work_per_sweep(graph)) <= kMostWork;
  }

  /// Sweeps until the bound stalls or as much work is done as some hundred iterations of GDMM take.
  void sweep(const FactorGraph& graph, MapMessages& messages, MapAnswer& answer,
             const Errand& errand) {
    constexpr double kMostWork = 5e8;
    constexpr int kMostSweeps = 400, kDecode = 4;
    const double work = std::max(1.0, static_cast<double>(MapMessages::work_per_sweep(graph)));
    const int most = static_cast<int>(std::clamp(kMostWork / work, 4.0, double{kMostSweeps}));
    MapSearch search(graph, rng_.split(static_cast<std::uint64_t>(n_searches_++)));
    std::vector<index_t> decoded(answer.labels.size());
    for (int n = 1; n <= most && !should_stop(errand.end); ++n) {
      const auto direction = n % 2 == 1 ? SweepDirection::forward : SweepDirection::backward;
      const bool decodes = n % kDecode < 2;
      if (!messages.sweep(direction, decodes, &monitor_)) return;
      work_ += static_cast<std::int64_t>(work);
      if (!decodes) continue;
      decoded.assign(messages.labels().begin(), messages.labels().end());
      climb(search, decoded, answer, nullptr, errand.end);
      answer.bound = std::min(answer.bound, std::max(certified(messages), answer.score));
      errand.report(answer.score, answer.bound);
      if (is_closed(answer) || messages.stalled(answer.score)) return;
    }
  }

  /// The bound of the messages, with room for the rounding of its running sum.
  static double certified(const MapMessages& messages) {
    constexpr double kRounding = 1e-11;
    return messages.bound() + kRounding * std::max(1.0, std::abs(messages.bound()));
  }

  /// Branch and bound over what the messages leave open, within half the time that is left. Returns
  /// how many variables were open.
  index_t branch(const FactorGraph& graph, MapMessages& messages, MapAnswer& answer, double work,
                 const Errand& errand) {
    const auto now = Clock::now();
    if (now >= errand.end || messages.n_sweeps() == 0 || monitor_.stop_requested()) return 0;
    BranchSettings settings;
    settings.work_limit = work;
    settings.deadline = now + (errand.end - now) / 2;
    settings.tolerance = 0.5 * settings_.tol;
    const BranchReport found = MapBranch(graph, messages, answer.labels, settings).run(&monitor_);
    work_ += static_cast<std::int64_t>(found.work);
    if (found.score > answer.score) {
      answer.labels = found.labels;
      answer.score = graph.score(found.labels);
    }
    answer.bound = std::max(answer.score, std::min(answer.bound, found.bound));
    if (found.is_optimal) answer.bound = std::min(answer.bound, answer.score + slack(answer.score));
    errand.report(answer.score, answer.bound);
    return found.n_open;
  }

  /// Chains, trees and graphs of small width, exactly.
  bool eliminate(const FactorGraph& graph, MapAnswer& answer) {
    EliminationLimits limits;
    limits.bucket_cells = 1 << 24;  // 128 MB
    limits.total_cells = 2.5e8;     // about half a second
    limits.plan_work = 1e7;
    limits.monitor = &monitor_;
    std::vector<index_t> all(graph.domain.size());
    std::iota(all.begin(), all.end(), index_t{0});
    MapElimination elimination(graph);
    if (!elimination.solve(all, answer.labels, limits)) return false;
    work_ += static_cast<std::int64_t>(elimination.work());
    answer.score = answer.bound = graph.score(answer.labels);
    return true;
  }

  /// GDMM and search in turns, then what is left.
  template <class Dual>
  MapAnswer bound_and_search(const FactorGraph& graph, Dual& dual,
                             std::optional<MapMessages>& messages, MapAnswer answer,
                             const Errand& errand) {
    constexpr int kFirstCheck = 10, kLastCheck = 20;
    MapSearch search(graph, rng_.split(static_cast<std::uint64_t>(n_searches_++)));
    std::vector<index_t> decoded(answer.labels.size());
    int check = kFirstCheck, next = kFirstCheck;
    offset_t work_before = 0, n_excluded = 0;
    for (int iter = 1; iter <= settings_.max_iter; ++iter) {
      if (should_stop(errand.end)) break;
      dual.iterate(&monitor_);
      ++n_iter_;
      const bool is_solved = is_converged(dual, iter);
      if (iter < next && !is_solved) continue;
      check = std::min(2 * check, kLastCheck);
      next = iter + check;
      const double bound = dual.bound(&monitor_);
      if (monitor_.stop_requested()) break;  // the bound may be of part of the factors only
      dual.decode(decoded);
      const offset_t dual_work = dual.work() - std::exchange(work_before, dual.work());
      improve(search, graph, decoded, answer, static_cast<double>(dual_work), errand.end, dual);
      answer.bound = std::min(answer.bound, std::max(bound, answer.score + slack(answer.score)));
      n_labels_ = dual.n_active_labels();
      n_states_ = dual.n_active_states();
      work_ += dual_work;
      errand.report(answer.score, answer.bound);
      if (is_closed(answer)) return answer;
      n_excluded += dual.exclude(bound, answer.score + slack(answer.score));
      if (is_solved) break;
    }
    return finish(graph, dual, messages, search, n_excluded, std::move(answer), errand);
  }

  /// Residuals as small as they need to be for the bound to be within the tolerance.
  template <class Dual>
  bool is_converged(const Dual& dual, int iter) const {
    constexpr double kSmall = 1e-6;
    const GdmmResiduals& residuals = dual.residuals();
    return iter > 1 && residuals.primal < kSmall && residuals.dual < kSmall * dual.rho();
  }

  /// Climbs from the decoded point, and spends as much work on the best assignment as the dual did.
  template <class Dual>
  void improve(MapSearch& search, const FactorGraph& graph, std::span<index_t> decoded,
               MapAnswer& answer, double work, Clock::time_point end, const Dual& dual) {
    const LabelLists lists = candidates(graph, dual);
    climb(search, decoded, answer, &lists, end);
    look_further(search, answer, work, &lists, end);
  }

  /// Label moves from a decoded point.
  void climb(MapSearch& search, std::span<index_t> decoded, MapAnswer& answer,
             const LabelLists* lists, Clock::time_point end) {
    MapSearchBudget budget;
    budget.monitor = &monitor_;
    budget.deadline = end;
    budget.work = 0.0;
    const double score = search.improve(decoded, budget, lists);
    work_ += static_cast<std::int64_t>(search.work());
    if (score > answer.score) {
      answer.labels.assign(decoded.begin(), decoded.end());
      answer.score = score;
    }
  }

  /// The search from the best assignment.
  void look_further(MapSearch& search, MapAnswer& answer, double work, const LabelLists* lists,
                    Clock::time_point end) {
    MapSearchBudget budget;
    budget.monitor = &monitor_;
    budget.deadline = end;
    budget.work = work;
    budget.target = answer.bound;
    answer.score = search.improve(answer.labels, budget, lists);
    work_ += static_cast<std::int64_t>(search.work());
    if (settings_.reduce && search.optimal()) answer.bound = answer.score;
    answer.bound = std::max(answer.bound, answer.score);
  }

  /// For variables of many labels those that the dual solution uses; all labels for the others.
  template <class Dual>
  static LabelLists candidates(const FactorGraph& graph, const Dual& dual) {
    constexpr std::size_t kAll = 32, kMost = 12;
    LabelLists lists;
    for (index_t i = 0; i < graph.n_variables(); ++i) {
      if constexpr (requires { dual.candidates(i); }) {
        if (static_cast<std::size_t>(graph.domain[at(i)]) > kAll) {
          const auto labels = dual.candidates(i);
          const auto n = static_cast<std::ptrdiff_t>(std::min(kMost, labels.size()));
          lists.labels.insert(lists.labels.end(), labels.begin(), labels.begin() + n);
        }
      }
      lists.close();
    }
    return lists;
  }

  /// The LP is solved and a gap is left: the same again without the excluded labels, or search.
  template <class Dual>
  MapAnswer finish(const FactorGraph& graph, const Dual& dual, std::optional<MapMessages>& messages,
                   MapSearch& search, offset_t n_excluded, MapAnswer answer, const Errand& errand) {
    constexpr double kWorthIt = 0.1;  // share of the labels that must be gone for another round
    const bool is_smaller =
        static_cast<double>(n_excluded) > kWorthIt * static_cast<double>(graph.unary.size());
    if (settings_.reduce && errand.depth < kMostDepth && is_smaller && !should_stop(errand.end)) {
      FactorGraph smaller = graph;
      lower_excluded(dual, answer, smaller);
      return solve_graph(smaller, std::move(answer), {errand.depth + 1, errand.end, errand.report});
    }
    const LabelLists lists = candidates(graph, dual);
    const bool has_limit = std::isfinite(settings_.time_limit);
    double work = has_limit ? kFirstSlice : std::min(kFirstSlice, settings_.search_work);
    double spent = 0.0;
    bool branching_helps = messages.has_value();
    // slices that double, branch and bound after each while it gets somewhere or has a better score
    // to start from; the last one is cut by time or work
    while (work > 0.0 && !is_closed(answer) && !should_stop(errand.end)) {
      const double score = answer.score, gap = answer.bound - answer.score;
      look_further(search, answer, work, &lists, errand.end);
      errand.report(answer.score, answer.bound);
      spent += work;
      if (messages && !is_closed(answer) && (branching_helps || answer.score > score)) {
        branch(graph, *messages, answer, work, errand);
        branching_helps = answer.bound - answer.score <= 0.99 * gap;
      }
      work = has_limit ? 2.0 * work : std::min(2.0 * work, settings_.search_work - spent);
    }
    return answer;
  }

  static constexpr double kFirstSlice = 2e8;  ///< operations of the first slice of the last search

  /// Unary scores of excluded labels fall so low that a reduction sees that they are out.
  template <class Dual>
  static void lower_excluded(const Dual& dual, const MapAnswer& answer, FactorGraph& graph) {
    const double fall = 1.0 + 2.0 * (begin(graph, answer.labels).bound - answer.score);
    for (index_t i = 0; i < graph.n_variables(); ++i) {
      const auto keep = dual.remaining(i);
      const auto unary = graph.unary_of(i);
      std::size_t next = 0;
      for (std::size_t label = 0; label < unary.size(); ++label) {
        if (next < keep.size() && keep[next] == static_cast<index_t>(label)) {
          ++next;
        } else {
          unary[label] -= fall;
        }
      }
    }
  }

  MapSettings settings_;
  Monitor& monitor_;
  Status status_ = Status::max_iter;
  Clock::time_point start_;
  Rng rng_;
  double best_score_ = -std::numeric_limits<double>::infinity();
  double best_bound_ = std::numeric_limits<double>::infinity();
  std::vector<MapRow> rows_;
  std::int64_t n_iter_ = 0, n_labels_ = 0, n_states_ = 0, work_ = 0, n_searches_ = 0;
};

}  // namespace sublearn
