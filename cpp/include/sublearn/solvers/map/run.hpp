// What all parts of one call of MAP inference share: settings, the clock, random numbers, counters.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include "sublearn/core/factor_graph.hpp"
#include "sublearn/core/monitor.hpp"
#include "sublearn/core/rng.hpp"
#include "sublearn/core/types.hpp"

namespace sublearn {

/// What works on a graph. `everything` is the solver as users have it; each of the others is one of
/// its parts alone, on the graph as it is.
enum class MapParts : std::uint8_t {
  everything,
  gdmm,             ///< algorithms 8 and 9 as they are printed, and what they decode to
  gdmm_and_search,  ///< our variant of them, and local search in turns with it
  messages,         ///< sweeps of dense messages, and what they decode to
  local_search,
  neighbourhoods,  ///< large neighbourhoods, from what messages decode to
};

/// Who has improved a score or a bound.
enum class MapCredit : std::uint8_t {
  start,  ///< best labels by themselves, and reductions
  elimination,
  local_search,
  messages,
  branch_and_bound,
  gdmm,
  neighbourhoods,
};

struct MapSettings {
  double tol = 1e-6;    ///< on (bound - score) / max(1, |score|)
  int max_iter = 2000;  ///< GDMM iterations on a component
  double time_limit = std::numeric_limits<double>::infinity();  ///< seconds
  double search_work = 1e9;     ///< operations of the search after the bound has converged
  double rho = 0.0, eta = 0.0;  ///< see GdmmSettings
  MapParts parts = MapParts::everything;
  int n_threads = 1;
  std::uint64_t seed = 0;
};

/// An assignment and what is known about it.
struct MapAnswer {
  std::vector<index_t> labels;
  double score = -std::numeric_limits<double>::infinity();
  double bound = std::numeric_limits<double>::infinity();

  /// The first assignment of a graph and the bound of all multipliers zero. `given` is where to
  /// start from; empty: the best label of each variable by itself.
  static MapAnswer first(const FactorGraph& graph, std::span<const index_t> given) {
    MapAnswer answer;
    answer.labels.assign(given.begin(), given.end());
    double bound = 0.0;
    for (index_t i = 0; i < graph.n_variables(); ++i) {
      const auto unary = graph.unary_of(i);
      const auto top = std::max_element(unary.begin(), unary.end());
      bound += *top;
      if (given.empty()) answer.labels.push_back(static_cast<index_t>(top - unary.begin()));
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

  /// Takes labels that are better.
  void offer(const FactorGraph& graph, std::span<const index_t> others, double their_score) {
    if (their_score <= score) return;
    labels.assign(others.begin(), others.end());
    score = graph.score(labels);
  }

  /// No assignment scores more than `limit`.
  void lower_bound_to(double limit) { bound = std::max(score, std::min(bound, limit)); }
};

/// How the solver stood at some moment.
struct MapRow {
  double seconds, score, bound;
  std::int64_t n_iter, n_labels, n_states, work;
};

class MapRun {
 public:
  using Clock = std::chrono::steady_clock;
  /// Tells what a part has found: its best score and the bound on it.
  using Report = std::function<void(double score, double bound)>;

  MapRun(const MapSettings& given, Monitor& to)
      : settings(given), monitor(to), start_(Clock::now()), rng_(given.seed) {
    constexpr double kForever = 1e9;  // seconds; the clock could not hold infinity
    const std::chrono::duration<double> limit(std::min(given.time_limit, kForever));
    deadline = start_ + std::chrono::duration_cast<Clock::duration>(limit);
  }

  const MapSettings settings;
  Monitor& monitor;
  Clock::time_point deadline;
  std::int64_t n_iter = 0, n_labels = 0, n_states = 0;
  double work = 0.0;                    ///< operations so far
  MapCredit credit = MapCredit::start;  ///< who works now
  bool is_stalled = false;              ///< the only part that works has nothing left to do

  bool has_all_parts() const { return settings.parts == MapParts::everything; }
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }
  bool is_late() const { return Clock::now() >= deadline; }
  bool should_stop() const { return monitor.stop_requested() || is_late(); }

  /// How much better an assignment must be to be worth looking for.
  double slack(double score) const { return 0.5 * settings.tol * std::max(1.0, std::abs(score)); }
  bool is_closed(const MapAnswer& answer) const {
    return answer.bound - answer.score <= 2.0 * slack(answer.score);
  }

  Rng next_rng() { return rng_.split(n_rngs_++); }

  /// The whole graph has an assignment of this score, and none above the bound. Rows that lie
  /// about a millisecond apart are one; work tells, so that the rows are the same for any load.
  void report(double score, double bound) {
    constexpr std::int64_t kOneRow = 500'000;  // operations
    const double rounding = 1e-9 * std::max(1.0, std::abs(score));
    if (score > best_score_ + rounding) found_by_ = credit;
    if (bound < best_bound_ - rounding) bounded_by_ = credit;
    best_score_ = std::max(best_score_, score);
    best_bound_ = std::max(std::min(best_bound_, bound), best_score_);
    const auto n = static_cast<std::int64_t>(work);
    const MapRow row{seconds(), best_score_, best_bound_, n_iter, n_labels, n_states, n};
    if (rows_.size() > 1 && n < rows_[rows_.size() - 2].work + kOneRow) {
      rows_.back() = row;
    } else {
      rows_.push_back(row);
    }
    monitor.objective = best_score_;
    monitor.gap = best_bound_ - best_score_;
    monitor.n_done = std::max<std::int64_t>(1, n_iter);  // whoever watches waits for the first
    monitor.nnz_primal = n_labels;
    monitor.nnz_dual = n_states;
    monitor.work = n;
  }
  const std::vector<MapRow>& rows() const { return rows_; }
  /// Who made the last improvement of the score, and of the bound.
  MapCredit found_by() const { return found_by_; }
  MapCredit bounded_by() const { return bounded_by_; }

 private:
  Clock::time_point start_;
  Rng rng_;
  std::uint64_t n_rngs_ = 0;
  double best_score_ = -std::numeric_limits<double>::infinity();
  double best_bound_ = std::numeric_limits<double>::infinity();
  MapCredit found_by_ = MapCredit::start, bounded_by_ = MapCredit::start;
  std::vector<MapRow> rows_;
};

}  // namespace sublearn
