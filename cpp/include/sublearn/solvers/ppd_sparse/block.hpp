// PPD-Sparse on one block of labels, one label per lane: the loop of solvers/ppd_sparse/solver.hpp,
// which says what is solved and what the words mean.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "sublearn/core/lanes.hpp"
#include "sublearn/core/monitor.hpp"
#include "sublearn/core/rng.hpp"
#include "sublearn/core/types.hpp"
#include "sublearn/losses/margin_loss.hpp"
#include "sublearn/prox/soft_threshold.hpp"
#include "sublearn/solvers/ppd_sparse/kernels.hpp"
#include "sublearn/solvers/ppd_sparse/restart.hpp"
#include "sublearn/solvers/ppd_sparse/search.hpp"
#include "sublearn/solvers/ppd_sparse/state.hpp"
#include "sublearn/solvers/ppd_sparse/task.hpp"

namespace sublearn {

/// Solves blocks of up to kLanes labels, one after another; keeps its memory from block to block.
template <MarginLoss Loss, class T, class I>
class PPDBlockSolver {
 public:
  PPDBlockSolver(const PPDData<T, I>& data, const PPDTask<T>& task, Loss loss,
                 const PPDSettings& settings)
      : state_(data, task, loss, settings), searcher_(state_), restart_(state_, searcher_) {}

  // Its parts refer to each other.
  PPDBlockSolver(const PPDBlockSolver&) = delete;
  PPDBlockSolver& operator=(const PPDBlockSolver&) = delete;

  /// `block` names up to kLanes labels; reports and weights stand in its order.
  void solve(std::span<const index_t> block, Rng rng, const Monitor& monitor,
             std::span<LabelReport> reports, std::span<LabelWeights<T>> weights) {
    start(block, rng);
    const int max_iter = state_.settings.max_iter;
    for (int iter = 1; state_.live != 0 && iter <= max_iter; ++iter) {
      if (monitor.stop_requested()) break;
      correct();
      const bool is_exact = searcher_.search(iter, iter == max_iter);
      for_each_lane(state_.live, [&](int l) { state_.report[l].n_iter = iter; });
      if (is_exact) {
        certify(block);
        state_.shrink(searcher_.scan().threshold);
      }
      enter_violators();
    }
    finish(block, reports, weights);
  }

 private:
  // Random negatives to start with: so many per positive, and at most this share of all rows.
  // On delicious (983 labels) they save a quarter of the searches and a quarter of the time.
  static constexpr std::size_t kStartPerPositive = 10;
  static constexpr std::size_t kStartShare = 10;
  // Sweeps per correction. More keeps the active set smaller, fewer finds it sooner: from 3 to 6
  // the work changes by at most a quarter on bibtex, delicious and 5,000 synthetic labels; 4 is the
  // best there or within one in a hundred of it.
  static constexpr int kSweeps = 4;
  // Sweeps end early once they move less than this share of the worst violation outside.
  static constexpr double kSettled = 0.3;
  // Rows that enter are spread over all of the matrix: their features are asked for so far ahead.
  static constexpr std::size_t kAhead = 4;
  // Of what is held, v0 and w, sums cancel: so much of their size is rounding, and no gap.
  static constexpr double kHeldRounding = 1e-6;

  void start(std::span<const index_t> block, Rng rng) {
    violation_ = Pack<T>::all(1);
    searcher_.start();
    state_.start(block, rng);
    const LaneMask warm = restart_.lanes(block);
    if (warm != 0) restart_.enter_confused(block, warm);
    enter_random_negatives(block);
    if (warm != 0) restart_.balance_bias(block, warm);
  }

  /// Against positives alone the bias shoots up and every row looks like a violator. The sample is
  /// the same for all lanes, so that its updates are vector updates.
  void enter_random_negatives(std::span<const index_t> block) {
    const std::size_t n_rows = state_.n_rows;
    std::size_t most_positives = 0;
    for (const index_t label : block) {
      most_positives = std::max(most_positives, state_.task.labels.of(label).size());
    }
    const std::size_t n_draws = std::min(n_rows / kStartShare, kStartPerPositive * most_positives);
    for (std::size_t draw = 0; draw < n_draws; ++draw) {
      const auto i = static_cast<index_t>(state_.rng.below(static_cast<std::uint32_t>(n_rows)));
      const index_t slot = state_.slot_of[i];
      const LaneMask member = slot < 0 ? 0 : state_.active[slot].member;
      for_each_lane(state_.live & ~member, [&](int l) { state_.enter(i, l, false); });
    }
  }

  void correct() {
    SweepState<T>& sweeps = state_.sweeps;
    order_awake();
    state_.point_sweeps();
    sweeps.sleep_above = Pack<T>::all(std::numeric_limits<T>::infinity());
    sweeps.work = 0;
    for (int s = 0; s < kSweeps; ++s) {
      state_.rng.shuffle(std::span<index_t>(order_));
      sweeps.worst = Pack<T>::all(0);
      sweep<T, I>(state_.data.rows, state_.active, order_, sweeps);
      if (has_settled()) break;
      sweeps.sleep_above = sweeps.worst;
    }
    state_.share_work(sweeps.work);
  }

  /// Wakes the rows of live lanes and lists them.
  void order_awake() {
    order_.clear();
    for (std::size_t s = 0; s < state_.active.size(); ++s) {
      ActiveRow& a = state_.active[s];
      a.awake = a.member & state_.live;
      if (a.awake != 0 && !state_.is_flat(s)) order_.push_back(static_cast<index_t>(s));
    }
  }

  bool has_settled() const {
    bool settled = true;
    for_each_lane(state_.live, [&](int l) {
      settled = settled && state_.sweeps.worst[l] <= kSettled * violation_[l];
    });
    return settled;
  }

  void certify(std::span<const index_t> block) {
    evaluate(block, T{0});
    const DualSums<T> duals = state_.duals();
    for_each_lane(state_.live, [&](int l) {
      LabelReport& report = state_.report[l];
      report.dual = duals.total[l] - 0.5 * state_.loss.dual_diagonal() * duals.squares[l] -
                    state_.bias_centre * duals.signed_total[l] - half_squares(l) +
                    state_.held_half[l];
      report.nnz_dual = static_cast<index_t>(duals.count[l]);
      if (std::isfinite(report.primal) &&
          report.primal - report.dual <=
              state_.settings.tol * report.primal + kHeldRounding * state_.held_half[l]) {
        report.status = Status::converged;
        state_.live &= ~lane_bit(l);
      } else if (report.n_iter == state_.settings.max_iter) {
        report.status = Status::max_iter;
      }
    });
  }

  /// The objective of the weights that the last search scored with, those above `smallest`.
  void evaluate(std::span<const index_t> block, T smallest) {
    const LaneSums<T> positive_loss = sum_positive_loss();
    const WeightSums<T>& sums = searcher_.sums();
    const Scan<T>& scan = searcher_.scan();
    for_each_lane(state_.live, [&](int l) {
      LabelReport& report = state_.report[l];
      report.primal = half_squares(l) + state_.settings.l1 * sums.absolute[l] + positive_loss[l] +
                      state_.loss.total(scan.violation[l], scan.squares[l]) + state_.held_half[l] -
                      held_product(block[l], l, smallest);
      report.nnz_primal = static_cast<index_t>(sums.count[l]);
    });
  }

  /// <v0, w> + b0 b, with v0 and b0 what is held of a label.
  double held_product(index_t label, int lane, T smallest) const {
    const PPDStart<T>& held = state_.task.held;
    if (!held.is_given()) return 0.0;
    double product = 0;
    for (auto p = held.indptr[label]; p < held.indptr[label + 1]; ++p) {
      const T weight = soft_threshold(state_.v[held.features[p]][lane], state_.sweeps.l1);
      if (std::abs(weight) > smallest) product += static_cast<double>(held.values[p]) * weight;
    }
    if (!state_.settings.learn_bias) return product;
    return product + static_cast<double>(held.bias[label]) * state_.sweeps.bias[lane];
  }

  double half_squares(int lane) const {
    const double shift = state_.sweeps.bias[lane] - state_.bias_centre;
    return 0.5 * (searcher_.sums().squares[lane] + shift * shift);
  }

  LaneSums<T> sum_positive_loss() const {
    LaneSums<T> loss{};
    for (std::size_t s = 0; s < state_.active.size(); ++s) {
      for_each_lane(state_.active[s].positive & state_.live, [&](int l) {
        const double margin = static_cast<double>(state_.scores[s][l]) + state_.sweeps.bias[l];
        loss[l] += state_.loss.value(margin) * state_.weight_of(s, l);
      });
    }
    return loss;
  }

  void enter_violators() {
    violation_ = Pack<T>::all(0);
    for_each_lane(state_.live, [&](int l) {
      T worst = 0;
      const auto entering = searcher_.violators(l);
      for (std::size_t q = 0; q < entering.size(); ++q) {
        if (q + kAhead < entering.size()) state_.prefetch_features(entering[q + kAhead].id);
        const auto& found = entering[q];
        worst = std::max(worst, found.score - searcher_.scan().threshold[l]);
        state_.enter(found.id, l, false);
      }
      violation_.set(l, worst);
    });
  }

  void finish(std::span<const index_t> block, std::span<LabelReport> reports,
              std::span<LabelWeights<T>> weights) {
    state_.sort_touched();
    searcher_.collect(static_cast<LaneMask>((std::uint64_t{1} << reports.size()) - 1));
    if (state_.settings.prune > 0 || !searcher_.was_exact()) prune(block);
    for (std::size_t l = 0; l < reports.size(); ++l) {
      reports[l] = state_.report[l];
      weights[l].bias = T{-1};
      // Untrained if there was no search; a warm start may have set v already.
      if (reports[l].n_iter > 0) write_weights(static_cast<int>(l), weights[l]);
    }
    state_.clear();
  }

  /// Drops small weights. The reports then speak of those that are returned: another objective,
  /// above the same dual value. So they do where a stop came after a search that was not exact.
  void prune(std::span<const index_t> block) {
    LaneMask searched = 0;
    for (std::size_t l = 0; l < block.size(); ++l) {
      if (state_.report[l].n_iter > 0) searched |= lane_bit(static_cast<int>(l));
    }
    state_.keep_positives(block, searched);
    searcher_.search_pruned(static_cast<T>(state_.settings.prune));
    evaluate(block, static_cast<T>(state_.settings.prune));
  }

  void write_weights(int lane, LabelWeights<T>& out) const {
    out.bias = state_.sweeps.bias[lane];
    for (const auto& coefficient : searcher_.weights()) {
      const T weight = coefficient.weight[lane];
      if (weight == 0) continue;
      out.features.push_back(coefficient.feature);
      out.values.push_back(weight);
    }
  }

  PPDState<Loss, T, I> state_;
  PPDSearcher<Loss, T, I> searcher_;
  PPDRestart<Loss, T, I> restart_;
  std::vector<index_t> order_;  ///< of a sweep, positions in active
  Pack<T> violation_;           ///< worst violation outside the active set at the last search
};

}  // namespace sublearn
