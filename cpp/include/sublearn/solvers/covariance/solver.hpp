// Sparse inverse covariance, block by block.
//
// Variables i and j are linked when |S_ij| > l_ij. The connected components of these links are the
// components of the solution as well (Witten, Friedman, Simon 2011; Mazumder, Hastie 2012), so each
// is a problem of its own. A component of one variable has the solution 1 / (S_ii + l_ii).
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "sublearn/core/monitor.hpp"
#include "sublearn/core/parallel_for.hpp"
#include "sublearn/core/status.hpp"
#include "sublearn/core/types.hpp"
#include "sublearn/objectives/log_det.hpp"
#include "sublearn/solvers/covariance/dual_columns.hpp"
#include "sublearn/solvers/covariance/newton.hpp"
#include "sublearn/solvers/lhac/lhac.hpp"

namespace sublearn {

enum class InverseMethod { newton, lhac };

struct InverseCovarianceSettings {
  InverseMethod method = InverseMethod::newton;
  double tol = 1e-4;  ///< on the duality gap over max(|F|, n)
  int max_iter = 100;
  int n_threads = 1;
};

/// Totals over all blocks after an iteration of one of them.
struct InverseCovarianceIteration {
  double seconds = 0.0;
  double objective = 0.0;
  double gap = 0.0;
  std::int64_t n_nonzero = 0;  ///< of the precision matrix, both triangles
  std::int64_t block = 0;
  std::int64_t n_active = 0;  ///< pairs of that block that the iteration may move
  std::int64_t work = 0;      ///< pairs visited so far
};

/// Component of each variable, numbered by their first variables.
inline std::vector<index_t> linked_components(std::span<const double> S, const PairWeights& weights,
                                              offset_t n) {
  std::vector<index_t> labels(static_cast<std::size_t>(n), -1), waiting;
  index_t n_components = 0;
  for (offset_t root = 0; root < n; ++root) {
    if (labels[static_cast<std::size_t>(root)] >= 0) continue;
    labels[static_cast<std::size_t>(root)] = n_components;
    waiting.assign(1, static_cast<index_t>(root));
    while (!waiting.empty()) {
      const offset_t i = waiting.back();
      waiting.pop_back();
      for (offset_t j = 0; j < n; ++j) {
        if (labels[static_cast<std::size_t>(j)] >= 0) continue;
        if (std::abs(S[static_cast<std::size_t>(i * n + j)]) <= weights.at(n, i, j)) continue;
        labels[static_cast<std::size_t>(j)] = n_components;
        waiting.push_back(static_cast<index_t>(j));
      }
    }
    ++n_components;
  }
  return labels;
}

class InverseCovariance {
 public:
  /// S is symmetric n x n. `start` is positive definite, or empty for the diagonal start.
  InverseCovariance(std::span<const double> S, const PairWeights& weights, offset_t n,
                    std::span<const double> start, const InverseCovarianceSettings& settings)
      : labels(linked_components(S, weights, n)), n_(n), settings_(settings) {
    cut(S, weights, start);
    start_time_ = std::chrono::steady_clock::now();
  }

  Status solve(Monitor& monitor) {
    parallel_for(n_blocks(), settings_.n_threads, [&](offset_t b, int) { prepare(block(b)); });
    for (Block& each : blocks_) add_up(each);
    record(blocks_.front(), monitor);
    for (int round = 0; round < kMostRounds && certificate() > settings_.tol; ++round) {
      const double allowed = settings_.tol * scale();
      parallel_for(n_blocks(), settings_.n_threads, &monitor,
                   [&](offset_t b, int) { run(block(b), allowed * share(block(b)), monitor); });
      if (monitor.stop_requested()) break;
    }
    if (certificate() <= settings_.tol) return Status::converged;
    if (monitor.stop_requested()) return Status::stopped;
    return n_iter() >= settings_.max_iter ? Status::max_iter : Status::stalled;
  }

  double certificate() const { return gap_ / scale(); }
  double objective() const { return objective_; }
  int n_iter() const {
    int most = 0;
    for (const Block& each : blocks_) most = std::max(most, each.n_iter);
    return most;
  }

  /// The precision matrix, or its inverse.
  std::vector<double> gather(bool is_inverse) const {
    std::vector<double> out(static_cast<std::size_t>(n_ * n_), 0.0);
    for (const Block& each : blocks_) {
      const std::span<const double> part =
          is_inverse ? each.inverse() : std::span<const double>(each.X);
      std::size_t at = 0;
      for (const index_t i : each.members) {
        for (const index_t j : each.members) out[static_cast<std::size_t>(i * n_ + j)] = part[at++];
      }
    }
    return out;
  }

  std::vector<index_t> labels;  ///< component of each variable
  std::vector<InverseCovarianceIteration> iterations;

 private:
  struct Block {
    std::vector<index_t> members;
    PairWeights weights;
    std::vector<double> S, X;
    std::unique_ptr<InverseNewton> newton;  ///< not for a block of one
    double objective = 0.0, gap = 0.0;
    std::int64_t n_nonzero = 0, work = 0, n_active = 0, columns_work = 0;
    int n_iter = 0;
    bool is_stalled = false;

    double variance = 0.0;  ///< of a block of one

    offset_t size() const { return static_cast<offset_t>(members.size()); }
    std::span<const double> inverse() const {
      return newton ? newton->inverse() : std::span<const double>(&variance, 1);
    }
  };

  /// A round ends with every block at its share of the gap that the objective at the start of the
  /// round allows; more rounds are needed where that objective was larger.
  static constexpr int kMostRounds = 5;
  static constexpr int kMostSweeps = 200;
  static constexpr int kSweepsBetween = 4;  ///< two looks at the gap, unless it seems small
  static constexpr int kMostIdle = 3;
  static constexpr double kWorthwhile = 0.8;  ///< what is left of the gap from look to look

  offset_t n_blocks() const { return static_cast<offset_t>(blocks_.size()); }
  Block& block(offset_t b) { return blocks_[static_cast<std::size_t>(b)]; }
  /// Units of the data shift F; a nat per variable keeps its size.
  double scale() const { return std::max(std::abs(objective_), static_cast<double>(n_)); }
  double share(const Block& each) const {
    return static_cast<double>(each.size()) / static_cast<double>(n_);
  }

  void cut(std::span<const double> S, const PairWeights& weights, std::span<const double> start) {
    blocks_.resize(static_cast<std::size_t>(*std::max_element(labels.begin(), labels.end())) + 1);
    for (std::size_t i = 0; i < labels.size(); ++i) {
      blocks_[static_cast<std::size_t>(labels[i])].members.push_back(static_cast<index_t>(i));
    }
    for (Block& each : blocks_) {
      each.weights = weights.of(n_, each.members);
      each.S = part_of(S, each.members);
      if (start.empty()) {
        start_on_diagonal(each);
      } else {
        each.X = part_of(start, each.members);
      }
    }
    // The largest first, so that threads end together; the order does not change the solution.
    std::stable_sort(blocks_.begin(), blocks_.end(),
                     [](const Block& a, const Block& b) { return a.size() > b.size(); });
  }

  std::vector<double> part_of(std::span<const double> A, std::span<const index_t> members) const {
    std::vector<double> part;
    part.reserve(members.size() * members.size());
    for (const index_t i : members) {
      for (const index_t j : members) part.push_back(A[static_cast<std::size_t>(i * n_ + j)]);
    }
    return part;
  }

  static void start_on_diagonal(Block& each) {
    const offset_t n = each.size();
    each.X.assign(each.S.size(), 0.0);
    for (offset_t i = 0; i < n; ++i) {
      const auto at = static_cast<std::size_t>(i * n + i);
      each.X[at] = 1.0 / (each.S[at] + each.weights.at(n, i, i));
    }
  }

  static void prepare(Block& each) {
    if (each.size() == 1) {
      start_on_diagonal(each);
      each.variance = 1.0 / each.X[0];
      each.objective = 1.0 - std::log(each.X[0]);
      each.n_nonzero = 1;
      return;
    }
    each.newton = std::make_unique<InverseNewton>(each.S, each.weights, each.X, each.size());
    read(each);
  }

  static void read(Block& each) {
    each.objective = each.newton->objective();
    each.gap = each.newton->gap();
    each.n_nonzero = std::count_if(each.X.begin(), each.X.end(), [](double x) { return x != 0.0; });
    each.n_active = each.newton->n_active();
    each.work = each.columns_work + each.newton->n_visits();
  }

  void run(Block& each, double allowed, Monitor& monitor) {
    if (each.gap <= allowed || each.is_stalled) return;
    settings_.method == InverseMethod::newton ? run_newton(each, allowed, monitor)
                                              : run_lhac(each, allowed, monitor);
  }

  /// Sweeps over the columns of the dual until the gap is small or they stop
  /// paying. What they leave is taken where it is positive definite and better.
  void come_close(Block& each, double allowed, Monitor& monitor) {
    const offset_t n = each.size();
    DualColumns columns(each.S, each.weights, each.X, n);
    CholeskyPoint point(n);
    DualBound bound_of(n);
    std::vector<double> X(each.X.size());
    double value = each.objective, bound = -std::numeric_limits<double>::infinity();
    for (int sweep = 0, n_idle = 0; sweep < kMostSweeps && n_idle < kMostIdle; ++sweep) {
      if (!columns.sweep(monitor)) break;
      if (std::abs(columns.estimated_gap()) > allowed && sweep % kSweepsBetween != 0) continue;
      const double before = value - bound;
      columns.primal(X);
      if (point.factor(X)) {
        const double now = -point.log_det() + linear_and_penalty(each.S, X, each.weights, n);
        if (now < value) value = now, each.X = X;
      }
      bound = std::max(bound, bound_of(each.S, each.weights, columns.dual()));
      if (value - bound <= allowed) break;
      n_idle = value - bound < kWorthwhile * before ? 0 : n_idle + 1;
    }
    each.columns_work = columns.n_visits();
    each.newton = std::make_unique<InverseNewton>(each.S, each.weights, each.X, n, bound);
  }

  void run_newton(Block& each, double allowed, Monitor& monitor) {
    if (each.n_iter == 0) {
      come_close(each, allowed, monitor);
      finish_step(each, monitor);
    }
    while (each.gap > allowed && each.n_iter < settings_.max_iter && !monitor.stop_requested()) {
      const bool has_moved = each.newton->advance(monitor);
      if (!has_moved) {
        each.is_stalled = true;
        return;
      }
      finish_step(each, monitor);
    }
  }

  /// Count a step, and let the totals know where it has led.
  void finish_step(Block& each, Monitor& monitor) {
    ++each.n_iter;
    const std::lock_guard<std::mutex> lock(totals_);
    take_out(each);
    read(each);
    add_up(each);
    record(each, monitor);
  }

  void run_lhac(Block& each, double allowed, Monitor& monitor) {
    const offset_t n = each.size();
    LogDetObjective objective(each.S, each.weights, n);
    const std::vector<double> l1 = objective.coordinate_weights();
    SeparablePenalty penalty;
    penalty.l1 = l1;
    LhacSettings settings;
    settings.max_iter = settings_.max_iter - each.n_iter;
    settings.tol = settings.violation_tol = allowed / std::max(std::abs(each.objective), 1e-300);
    std::vector<double> x = LogDetObjective::triangle(each.X, n);
    Lhac lhac(objective, penalty, settings);
    const Status end = lhac.solve(x, monitor);
    LogDetObjective::expand(x, n, each.X);
    each.n_iter += static_cast<int>(lhac.iterations.size()) - 1;
    each.is_stalled = end == Status::stalled || end == Status::max_iter;
    each.newton = std::make_unique<InverseNewton>(each.S, each.weights, each.X, n);
    const std::lock_guard<std::mutex> lock(totals_);
    report_lhac(each, lhac, monitor);
  }

  /// One row of the trace for each of LHAC's iterations.
  void report_lhac(Block& each, const Lhac& lhac, Monitor& monitor) {
    for (const LhacIteration& row : lhac.iterations) {
      take_out(each);
      each.objective = row.objective;
      each.gap = row.certificate * std::abs(row.objective);
      each.n_nonzero = 2 * row.n_nonzero - each.size();
      each.n_active = row.n_active;
      each.work = row.n_steps;
      add_up(each);
      record(each, monitor);
      iterations.back().seconds -= lhac.iterations.back().seconds - row.seconds;
    }
    take_out(each);
    const std::int64_t work = each.work;
    read(each);
    each.gap = std::min(each.gap, std::max(each.objective - lhac.best_bound, 0.0));
    each.work = work;
    add_up(each);
  }

  void take_out(const Block& each) { add_up(each, -1.0); }
  void add_up(const Block& each, double sign = 1.0) {
    const auto count = static_cast<std::int64_t>(sign);
    objective_ += sign * each.objective;
    // A block without a dual point yet has an infinite gap: it is counted, not added.
    if (std::isfinite(each.gap)) {
      finite_gap_ += sign * each.gap;
    } else {
      n_unbounded_ += count;
    }
    gap_ = n_unbounded_ > 0 ? std::numeric_limits<double>::infinity() : std::max(finite_gap_, 0.0);
    n_nonzero_ += count * each.n_nonzero;
    work_ += count * each.work;
  }

  void record(const Block& each, Monitor& monitor) {
    InverseCovarianceIteration now;
    now.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start_time_).count();
    now.objective = objective_;
    now.gap = gap_;
    now.n_nonzero = n_nonzero_;
    now.block = labels[static_cast<std::size_t>(each.members.front())];
    now.n_active = each.n_active;
    now.work = work_;
    iterations.push_back(now);
    monitor.objective = objective_;
    monitor.gap = gap_;
    monitor.nnz_primal = n_nonzero_;
    monitor.work = work_;
    monitor.n_done = static_cast<std::int64_t>(iterations.size());
  }

  offset_t n_;
  InverseCovarianceSettings settings_;
  std::vector<Block> blocks_;
  std::mutex totals_;
  double objective_ = 0.0, gap_ = 0.0, finite_gap_ = 0.0;
  std::int64_t n_unbounded_ = 0, n_nonzero_ = 0, work_ = 0;
  std::chrono::steady_clock::time_point start_time_;
};

}  // namespace sublearn
