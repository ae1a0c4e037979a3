// PPD-Sparse: one-versus-rest linear classifiers, sparse in the primal and in the dual.
// (I. Yen, "Sublinear-Time Learning and Inference for High-Dimensional Models", 2018, section 2.2;
// "(2.30)" and the like are its equations.)
//
// For each label k on its own, with y_i = +1 for the rows that carry it and -1 for the others,
//
//   min over w, b of  P = 1/2 ||w||^2 + l1 ||w||_1 + 1/2 (b - b0)^2 + sum_i loss(y_i (<w, x_i> +
//   b))
//
// where the bias is learned around b0 = 0 (2.30), or fixed at b = b0 = -1. The dual, maximised over
// 0 <= alpha_i <= loss.upper_bound() (2.31), is
//
//   D = sum_i (conjugate_term(alpha_i) - y_i b0 alpha_i) - 1/2 ||w(alpha)||^2 - 1/2 (b - b0)^2
//   w(alpha) = soft(v, l1),   v = sum_i y_i alpha_i x_i,   b = b0 + sum_i y_i alpha_i  (if learned)
//
// Its gradient in -alpha_i is y_i (<w, x_i> + b) - 1 + dual_diagonal alpha_i, so a row without a
// dual matters only if its margin is below one. P - D bounds the distance to the optimum and is
// known after each exact search, which scores every row. The loop is algorithm 2:
//
//   start     active rows = the positives and a few random negatives
//   correct   a few sweeps of dual coordinate descent over the active rows (algorithm 3)
//   search    score all rows through inverted lists; the worst violators become active
//   shrink    negatives whose dual is back at zero leave
//   until     P - D <= tol P
//
// Labels share the matrix, so kLanes of them are solved side by side (core/lanes.hpp): a list or
// row that is read serves all.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <numeric>
#include <span>
#include <vector>

#include "sublearn/core/label_rows.hpp"
#include "sublearn/core/lanes.hpp"
#include "sublearn/core/monitor.hpp"
#include "sublearn/core/parallel_for.hpp"
#include "sublearn/core/rng.hpp"
#include "sublearn/core/top_k.hpp"
#include "sublearn/core/types.hpp"
#include "sublearn/core/views.hpp"
#include "sublearn/losses/margin_loss.hpp"
#include "sublearn/search/inverted_lists.hpp"
#include "sublearn/search/sparsify.hpp"
#include "sublearn/solvers/ppd_kernels.hpp"

namespace sublearn {

enum class PPDSearch {
  exact,       ///< every search scores with all weights
  sparsified,  ///< every other search scores with randomly sparsified weights (theorem 5)
};

struct PPDSettings {
  double l1 = 0.1;
  double tol = 1e-2;   ///< on the duality gap of a label, relative to its objective
  int max_iter = 100;  ///< searches per label
  bool learn_bias = true;
  PPDSearch search = PPDSearch::exact;
  std::uint64_t seed = 0;
  int n_threads = 1;
};

/// How a label went.
struct LabelReport {
  double primal = 0.0;
  double dual = 0.0;
  double seconds = 0.0;   ///< from the start of the fit to the end of this label
  std::int64_t work = 0;  ///< matrix entries visited, its share of the block's
  index_t nnz_primal = 0;
  index_t nnz_dual = 0;
  int n_iter = 0;
  bool converged = false;
};

/// Non-zero weights by label, features increasing.
template <class T>
struct LabelWeights {
  std::vector<index_t> features;
  std::vector<T> values;
  T bias = 0;
};

/// The data as the solver wants it: rows, inverted lists, squared row lengths.
template <class T, class I>
struct PPDData {
  explicit PPDData(const CsrView<T, I>& X) : rows(X), lists(X) {
    row_squares.reserve(static_cast<std::size_t>(X.n_rows()));
    for (offset_t i = 0; i < X.n_rows(); ++i) {
      const auto values = X.row(i).values;
      row_squares.push_back(
          static_cast<T>(std::inner_product(values.begin(), values.end(), values.begin(), 0.0)));
    }
  }

  CsrView<T, I> rows;
  InvertedLists<T> lists;
  std::vector<T> row_squares;
};

/// Solves blocks of up to kLanes labels, one after another; keeps its memory from block to block.
template <MarginLoss Loss, class T, class I>
class PPDBlockSolver {
 public:
  PPDBlockSolver(const PPDData<T, I>& data, Loss loss, const PPDSettings& settings)
      : data_(data),
        loss_(loss),
        settings_(settings),
        v_(static_cast<std::size_t>(data.rows.n_cols()), Pack<T>::all(0)),
        scores_(static_cast<std::size_t>(data.rows.n_rows())),
        is_touched_(static_cast<std::size_t>(data.rows.n_cols()), 0),
        slot_of_(static_cast<std::size_t>(data.rows.n_rows()), -1),
        best_(static_cast<std::size_t>(kLanes<T>)) {}

  /// `labels` names up to kLanes labels; reports and weights are indexed by label.
  void solve(const LabelRows& labels, std::span<const index_t> block, Rng rng,
             const Monitor& monitor, std::span<LabelReport> reports,
             std::span<LabelWeights<T>> weights) {
    start(labels, block, rng);
    for (int iter = 1; live_ != 0 && iter <= settings_.max_iter; ++iter) {
      if (monitor.stop_requested()) break;
      correct();
      const bool is_exact = search(iter == settings_.max_iter);
      for_each_lane(live_, [&](int l) { report_[l].n_iter = iter; });
      if (is_exact) {
        certify();
        shrink();
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
  // A search may double the active set of a label, and add this many rows even to a tiny one.
  static constexpr std::size_t kMinEntering = 100;
  // Once a block has this share of all rows active, most updates are vector updates, which cost the
  // same for any number of lanes: every violator then enters without competition.
  static constexpr std::size_t kDenseShare = 4;
  // A sparsified search keeps this share of a label's weights.
  static constexpr double kSparsifiedShare = 0.125;

  bool is_dense() const { return active_.size() * kDenseShare > scores_.size(); }

  void start(const LabelRows& labels, std::span<const index_t> block, Rng rng) {
    rng_ = rng;
    live_ = 0;
    last_was_sparsified_ = false;
    bias_centre_ = settings_.learn_bias ? 0.0 : -1.0;
    state_ = SweepState<T>();
    state_.bias = Pack<T>::all(static_cast<T>(bias_centre_));
    state_.l1 = static_cast<T>(settings_.l1);
    state_.dual_diagonal = static_cast<T>(loss_.dual_diagonal());
    state_.upper_bound = static_cast<T>(loss_.upper_bound());
    state_.learn_bias = settings_.learn_bias;
    violation_ = Pack<T>::all(1);
    std::fill(std::begin(size_), std::end(size_), std::size_t{0});
    for (std::size_t l = 0; l < block.size(); ++l) {
      report_[l] = LabelReport();
      const auto positives = labels.of(block[l]);
      if (positives.empty()) continue;  // stays at w = 0, b = -1: see finish()
      live_ |= lane_bit(static_cast<int>(l));
      for (const index_t i : positives) enter(i, static_cast<int>(l), true);
    }
    enter_random_negatives();
  }

  /// Against positives alone the bias shoots up and every row looks like a violator. The sample is
  /// the same for all lanes, so that its updates are vector updates.
  void enter_random_negatives() {
    const std::size_t n_rows = scores_.size();
    const std::size_t n_positives = *std::max_element(std::begin(size_), std::end(size_));
    const std::size_t n_draws = std::min(n_rows / kStartShare, kStartPerPositive * n_positives);
    for (std::size_t draw = 0; draw < n_draws; ++draw) {
      const auto i = static_cast<index_t>(rng_.below(static_cast<std::uint32_t>(n_rows)));
      const LaneMask member = slot_of_[i] < 0 ? 0 : active_[slot_of_[i]].member;
      for_each_lane(live_ & ~member, [&](int l) { enter(i, l, false); });
    }
  }

  /// Makes a row active in a lane; its features may get weights from now on.
  void enter(index_t i, int lane, bool positive) {
    if (slot_of_[i] < 0) {
      slot_of_[i] = static_cast<index_t>(active_.size());
      active_.push_back({.row = i});
      alpha_.push_back(Pack<T>::all(0));
      curvature_.push_back(curvature_of(i));
      for (const auto id : data_.rows.row(i).ids) {
        const auto j = static_cast<index_t>(id);
        if (is_touched_[j]) continue;
        is_touched_[j] = 1;
        touched_.push_back(j);
      }
    }
    ActiveRow& a = active_[slot_of_[i]];
    a.member |= lane_bit(lane);
    ++size_[lane];
    if (!positive) return;
    a.positive |= lane_bit(lane);
    // Under the hinge loss and a fixed bias, a row without features only adds alpha times a
    // constant to the dual: its coordinate is at its bound from the start and never visited.
    const index_t slot = slot_of_[i];
    if (curvature_[slot] == 0) alpha_[slot].set(lane, state_.upper_bound);
  }

  /// Of the dual along the coordinate of row i. Zero if its inverse would not be finite: such a row
  /// is as good as empty.
  T curvature_of(index_t i) const {
    const T curvature =
        data_.row_squares[i] + (settings_.learn_bias ? T{1} : T{0}) + state_.dual_diagonal;
    return curvature < std::numeric_limits<T>::min() ? T{0} : curvature;
  }

  void correct() {
    order_.clear();
    for (std::size_t s = 0; s < active_.size(); ++s) {
      active_[s].awake = active_[s].member & live_;
      if (active_[s].awake != 0 && curvature_[s] > 0) order_.push_back(static_cast<index_t>(s));
    }
    state_.v = v_.data();
    state_.alpha = alpha_.data();
    state_.curvature = curvature_.data();
    state_.sleep_above = Pack<T>::all(std::numeric_limits<T>::infinity());
    state_.work = 0;
    for (int s = 0; s < kSweeps; ++s) {
      rng_.shuffle(std::span<index_t>(order_));
      state_.worst = Pack<T>::all(0);
      sweep<T, I>(data_.rows, active_, order_, state_);
      if (has_settled()) break;
      state_.sleep_above = state_.worst;
    }
    share_work(state_.work);
  }

  bool has_settled() const {
    bool settled = true;
    for_each_lane(live_,
                  [&](int l) { settled = settled && state_.worst[l] <= kSettled * violation_[l]; });
    return settled;
  }

  void share_work(std::int64_t work) {
    for_each_lane(live_, [&](int l) { report_[l].work += work / std::popcount(live_); });
  }

  /// Scores all rows and finds violators; returns whether the scores are exact. The last search
  /// always is, so that the weights returned are those that the report speaks of.
  bool search(bool is_last) {
    weights_.clear();
    sums_ = collect_weights<T>(v_.data(), touched_, state_.l1, live_, weights_);
    const bool sparsifies =
        settings_.search == PPDSearch::sparsified && !last_was_sparsified_ && !is_last;
    last_was_sparsified_ = sparsifies;
    if (sparsifies) sparsify_weights();
    std::fill(scores_.begin(), scores_.end(), Pack<T>::all(0));
    share_work(add_scores<T>(weights_, data_.lists, scores_));
    scan_scores();
    return !sparsifies;
  }

  void sparsify_weights() {
    Pack<T> level = Pack<T>::all(0);
    for_each_lane(live_, [&](int l) {
      const double kept = std::max(1.0, kSparsifiedShare * sums_.count[l]);
      level.set(l, static_cast<T>(sums_.absolute[l] / kept));
    });
    for (auto& coefficient : weights_) {
      const T uniform = static_cast<T>(rng_.uniform());
      for_each_lane(live_, [&](int l) {
        coefficient.weight.set(l, sparsify(coefficient.weight[l], level[l], uniform));
      });
    }
    std::erase_if(weights_, [&](const Coefficient<T>& coefficient) {
      LaneMask kept = 0;
      for_each_lane(live_, [&](int l) {
        if (coefficient.weight[l] != 0) kept |= lane_bit(l);
      });
      return kept == 0;
    });
  }

  void scan_scores() {
    scan_ = Scan<T>();
    scan_.scores = scores_;
    scan_.slot_of = slot_of_;
    scan_.active = active_;
    scan_.best = best_;
    scan_.join_free = is_dense();
    scan_.threshold = Pack<T>::all(std::numeric_limits<T>::infinity());
    for_each_lane(live_, [&](int l) {
      scan_.threshold.set(l, T{-1} - state_.bias[l]);
      const std::size_t room = std::max<std::size_t>(kMinEntering, size_[l]);
      best_[l].start(is_dense() ? scores_.size() : room);
    });
    positive_loss_ = split_off_positives();
    find_violators(scan_);
  }

  void certify() {
    DualSums<T> duals = sum_duals<T>(active_, alpha_.data());
    for_each_lane(live_, [&](int l) {
      const double shift = state_.bias[l] - bias_centre_;
      const double squares = 0.5 * (sums_.squares[l] + shift * shift);
      LabelReport& report = report_[l];
      report.primal = squares + settings_.l1 * sums_.absolute[l] + positive_loss_[l] +
                      loss_.total(scan_.violation[l], scan_.squares[l]);
      report.dual = duals.total[l] - 0.5 * loss_.dual_diagonal() * duals.squares[l] -
                    bias_centre_ * duals.signed_total[l] - squares;
      report.nnz_primal = static_cast<index_t>(sums_.count[l]);
      report.nnz_dual = static_cast<index_t>(duals.count[l]);
      report.converged = std::isfinite(report.primal) &&
                         report.primal - report.dual <= settings_.tol * report.primal;
      if (report.converged) live_ &= ~lane_bit(l);
    });
  }

  /// The scan takes every row for a negative: takes the scores of the positives out of its sight
  /// and returns their loss. Subtracting them from its sums afterwards would not do: one positive
  /// far beyond the margin blurs what a sum in T holds.
  LaneSums<T> split_off_positives() {
    LaneSums<T> loss{};
    for (const ActiveRow& a : active_) {
      for_each_lane(a.positive & live_, [&](int l) {
        loss[l] += loss_.value(static_cast<double>(scores_[a.row][l]) + state_.bias[l]);
        scores_[a.row].set(l, -std::numeric_limits<T>::infinity());
      });
    }
    return loss;
  }

  void shrink() {
    drop_idle<T>(active_, alpha_.data(), scores_, scan_.threshold, live_);
    std::size_t kept = 0;
    std::fill(std::begin(size_), std::end(size_), std::size_t{0});
    for (std::size_t s = 0; s < active_.size(); ++s) {
      const ActiveRow a = active_[s];
      if (a.member == 0) {
        slot_of_[a.row] = -1;
        continue;
      }
      for_each_lane(a.member, [&](int l) { ++size_[l]; });
      if (kept != s) {
        active_[kept] = a;
        alpha_[kept] = alpha_[s];
        curvature_[kept] = curvature_[s];
        slot_of_[a.row] = static_cast<index_t>(kept);
      }
      ++kept;
    }
    active_.resize(kept);
    alpha_.resize(kept);
    curvature_.resize(kept);
  }

  void enter_violators() {
    violation_ = Pack<T>::all(0);
    for_each_lane(live_, [&](int l) {
      T worst = 0;
      for (const auto& found : best_[l].select()) {
        worst = std::max(worst, found.score - scan_.threshold[l]);
        enter(found.id, l, false);
      }
      violation_.set(l, worst);
    });
  }

  void finish(std::span<const index_t> block, std::span<LabelReport> reports,
              std::span<LabelWeights<T>> weights) {
    std::sort(touched_.begin(), touched_.end());
    weights_.clear();
    const LaneMask all = static_cast<LaneMask>((std::uint64_t{1} << block.size()) - 1);
    collect_weights<T>(v_.data(), touched_, state_.l1, all, weights_);
    for (std::size_t l = 0; l < block.size(); ++l) {
      const int lane = static_cast<int>(l);
      LabelWeights<T>& out = weights[block[l]];
      for (const auto& coefficient : weights_) {
        if (coefficient.weight[lane] == 0) continue;
        out.features.push_back(coefficient.feature);
        out.values.push_back(coefficient.weight[lane]);
      }
      const bool untrained = report_[l].n_iter == 0;
      out.bias = untrained ? T{-1} : state_.bias[lane];
      reports[block[l]] = report_[l];
    }
    reset();
  }

  void reset() {
    for (const index_t j : touched_) {
      v_[j] = Pack<T>::all(0);
      is_touched_[j] = 0;
    }
    touched_.clear();
    for (const ActiveRow& a : active_) slot_of_[a.row] = -1;
    active_.clear();
    alpha_.clear();
    curvature_.clear();
  }

  const PPDData<T, I>& data_;
  const Loss loss_;
  const PPDSettings settings_;
  double bias_centre_ = 0;

  Rng rng_{0};
  LaneMask live_ = 0;  ///< labels not yet converged
  LabelReport report_[kLanes<T>];
  std::size_t size_[kLanes<T>] = {};  ///< active rows of each label
  bool last_was_sparsified_ = false;

  std::vector<Pack<T>> v_;       ///< by feature, zero outside touched_
  std::vector<Pack<T>> scores_;  ///< by row, of the last search; see split_off_positives()
  std::vector<std::uint8_t> is_touched_;
  std::vector<index_t> touched_;  ///< features of rows that have been active
  std::vector<index_t> slot_of_;  ///< by row: its place in active_, or -1
  std::vector<ActiveRow> active_;
  std::vector<Pack<T>> alpha_;  ///< beside active_
  std::vector<T> curvature_;    ///< beside active_
  std::vector<index_t> order_;
  std::vector<Coefficient<T>> weights_;
  std::vector<TopK<T>> best_;
  WeightSums<T> sums_;
  Scan<T> scan_;
  LaneSums<T> positive_loss_{};
  SweepState<T> state_;
  Pack<T> violation_;  ///< worst violation outside the active set at the last search
};

/// Everything a fit returns; vectors are indexed by label.
template <class T>
struct PPDSolution {
  std::vector<LabelWeights<T>> weights;
  std::vector<LabelReport> reports;
};

/// Labels by decreasing number of positives: labels of one block then need similar numbers of
/// iterations, and the longest blocks start first.
inline std::vector<index_t> order_by_size(const LabelRows& labels) {
  std::vector<index_t> order(static_cast<std::size_t>(labels.n_labels()));
  std::iota(order.begin(), order.end(), index_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](index_t a, index_t b) { return labels.of(a).size() > labels.of(b).size(); });
  return order;
}

/// Solves all labels. Blocks and their random streams depend on the data and the seed only, so the
/// result is the same for any number of threads. After a stop request the labels not yet reached
/// have no weights, a bias of -1 and a report with n_iter = 0.
template <MarginLoss Loss, class T, class I>
PPDSolution<T> solve_ppd_sparse(const CsrView<T, I>& X, const LabelRows& labels, Loss loss,
                                const PPDSettings& settings, Monitor& monitor) {
  const auto started = std::chrono::steady_clock::now();
  const PPDData<T, I> data(X);
  const std::vector<index_t> order = order_by_size(labels);
  const auto n_labels = static_cast<std::size_t>(labels.n_labels());
  PPDSolution<T> solution;
  solution.weights.resize(n_labels);
  solution.reports.resize(n_labels);
  for (auto& weights : solution.weights) weights.bias = T{-1};

  constexpr auto kBlock = static_cast<std::size_t>(kLanes<T>);
  const auto n_blocks = static_cast<offset_t>((n_labels + kBlock - 1) / kBlock);
  using Solver = PPDBlockSolver<Loss, T, I>;
  std::vector<std::unique_ptr<Solver>> solvers(
      static_cast<std::size_t>(effective_threads(n_blocks, settings.n_threads)));
  const Rng root(settings.seed);
  parallel_for(n_blocks, settings.n_threads, &monitor, [&](offset_t b, int thread) {
    auto& solver = solvers[static_cast<std::size_t>(thread)];
    if (!solver) solver = std::make_unique<Solver>(data, loss, settings);
    const std::size_t begin = static_cast<std::size_t>(b) * kBlock;
    const auto block =
        std::span<const index_t>(order).subspan(begin, std::min(kBlock, n_labels - begin));
    solver->solve(labels, block, root.split(static_cast<std::uint64_t>(b)), monitor,
                  solution.reports, solution.weights);
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - started;
    for (const index_t label : block) {
      LabelReport& report = solution.reports[static_cast<std::size_t>(label)];
      report.seconds = elapsed.count();
      Monitor::add(monitor.objective, report.primal);
      Monitor::add(monitor.gap, report.primal - report.dual);
      monitor.nnz_primal += report.nnz_primal;
      monitor.nnz_dual += report.nnz_dual;
      monitor.work += report.work;
    }
    monitor.n_done += static_cast<std::int64_t>(block.size());
  });
  return solution;
}

}  // namespace sublearn
