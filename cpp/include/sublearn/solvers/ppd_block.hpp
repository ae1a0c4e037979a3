// PPD-Sparse on one block of labels, one label per lane: the loop of ppd_sparse.hpp, which says
// what is solved and what the words mean.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "sublearn/core/label_rows.hpp"
#include "sublearn/core/lanes.hpp"
#include "sublearn/core/monitor.hpp"
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
  double tol = 3e-2;   ///< on the duality gap of a label, relative to its objective
  double prune = 0.0;  ///< weights of at most this size are not returned
  int max_iter = 100;  ///< searches per label
  bool learn_bias = true;
  PPDSearch search = PPDSearch::exact;
  std::uint64_t seed = 0;
  int n_threads = 1;
};

/// How a label went. `n_iter` is 0 if it was not solved.
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

/// Weights to start from, by label: a CSR matrix and the biases that go with it.
template <class T>
struct PPDStart {
  std::span<const offset_t> indptr;
  std::span<const index_t> features;
  std::span<const T> values;
  std::span<const T> bias;

  bool is_given() const { return !indptr.empty(); }
};

/// What is to be learnt: the rows of each label and, if not empty, what their losses weigh. Weights
/// are positive; a row counts row_weight, times positive_weight of the label if it carries it.
template <class T>
struct PPDTask {
  LabelRows labels;
  std::span<const T> row_weight;       ///< by row
  std::span<const T> positive_weight;  ///< by label
  PPDStart<T> start;
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
  PPDBlockSolver(const PPDData<T, I>& data, const PPDTask<T>& task, Loss loss,
                 const PPDSettings& settings)
      : data_(data),
        task_(task),
        loss_(loss),
        settings_(settings),
        n_rows_(static_cast<std::size_t>(data.rows.n_rows())),
        v_(static_cast<std::size_t>(data.rows.n_cols()), Pack<T>::all(0)),
        scores_(std::min(n_rows_, kTileRows)),
        is_touched_(static_cast<std::size_t>(data.rows.n_cols()), 0),
        place_(static_cast<std::size_t>(data.rows.n_cols()), 0),
        slot_of_(n_rows_, -1),
        best_(static_cast<std::size_t>(kLanes<T>)) {}

  /// `block` names up to kLanes labels; reports and weights stand in its order.
  void solve(std::span<const index_t> block, Rng rng, const Monitor& monitor,
             std::span<LabelReport> reports, std::span<LabelWeights<T>> weights) {
    start(block, rng);
    for (int iter = 1; live_ != 0 && iter <= settings_.max_iter; ++iter) {
      if (monitor.stop_requested()) break;
      correct();
      const bool is_exact = search(iter, iter == settings_.max_iter);
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
  // Rows that violate by less than this wait; the floor falls from search to search.
  static constexpr double kFirstFloor = 0.1;
  static constexpr double kFloorFalls = 0.2;
  // Scores are made and looked at tile by tile: half a megabyte stays in the second-level cache
  // whatever the number of rows is.
  static constexpr std::size_t kTileRows = 512 * 1024 / sizeof(Pack<T>);
  static constexpr std::size_t kShortTileRows = 256;
  // Rows are multiplied one by one if the lists would visit more than this share of the matrix.
  static constexpr double kRowsFrom = 0.4;
  // A label with weights to start from takes in the rows that these confuse, at most this many
  // times as many as it has positives, or this many.
  static constexpr std::size_t kRestartPerPositive = 20;
  static constexpr std::size_t kRestartAtLeast = 500;
  static constexpr double kRestartFloor = 1e-3;

  bool is_dense() const { return active_.size() * kDenseShare > n_rows_; }

  void start(std::span<const index_t> block, Rng rng) {
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
    state_.positive_weight = Pack<T>::all(1);
    violation_ = Pack<T>::all(1);
    std::fill(std::begin(size_), std::end(size_), std::size_t{0});
    std::size_t most_positives = 0;
    for (std::size_t l = 0; l < block.size(); ++l) {
      report_[l] = LabelReport();
      const auto positives = task_.labels.of(block[l]);
      most_positives = std::max(most_positives, positives.size());
      if (positives.empty()) continue;  // stays at w = 0, b = -1: see finish()
      live_ |= lane_bit(static_cast<int>(l));
      if (!task_.positive_weight.empty()) {
        state_.positive_weight.set(static_cast<int>(l), task_.positive_weight[block[l]]);
      }
      for (const index_t i : positives) enter(i, static_cast<int>(l), true);
    }
    const LaneMask warm = live_ & lanes_to_restart(block);
    if (warm != 0) restart(block, warm);
    enter_random_negatives(most_positives);
    if (warm != 0) balance_bias(block, warm);
  }

  /// The lanes that have weights to start from.
  LaneMask lanes_to_restart(std::span<const index_t> block) const {
    LaneMask warm = 0;
    if (!task_.start.is_given()) return warm;
    const auto indptr = task_.start.indptr;
    for (std::size_t l = 0; l < block.size(); ++l) {
      if (indptr[block[l]] < indptr[block[l] + 1]) warm |= lane_bit(static_cast<int>(l));
    }
    return warm;
  }

  bool is_weighted() const { return !task_.row_weight.empty() || !task_.positive_weight.empty(); }

  /// The weight of a row's loss in a lane.
  double weight_of(std::size_t slot, int lane) const {
    if (!is_weighted()) return 1.0;
    const bool positive = (active_[slot].positive & lane_bit(lane)) != 0;
    return static_cast<double>(weight_[slot]) * (positive ? state_.positive_weight[lane] : T{1});
  }

  /// Takes in the rows that the given weights confuse, with the duals that belong to their scores:
  /// at the optimum alpha_i = -loss'(y_i <w, x_i> + y_i b).
  void restart(std::span<const index_t> block, LaneMask warm) {
    load_start(block);
    for_each_lane(warm, [&](int l) { state_.bias.set(l, task_.start.bias[block[l]]); });
    prepare_scan(kRestartFloor, warm);
    for_each_lane(warm, [&](int l) {
      const std::size_t n_positives = task_.labels.of(block[l]).size();
      best_[l].start(std::max(kRestartAtLeast, kRestartPerPositive * n_positives));
    });
    share_work(score_and_scan());
    for (std::size_t s = 0; s < active_.size(); ++s) {
      for_each_lane(active_[s].positive & warm, [&](int l) {
        set_dual(s, l, loss_.slope(static_cast<double>(active_scores_[s][l]) + state_.bias[l]));
      });
    }
    for_each_lane(warm, [&](int l) {
      for (const auto& found : best_[l].select()) {
        enter(found.id, l, false);
        const double margin = -(static_cast<double>(found.score) + state_.bias[l]);
        set_dual(static_cast<std::size_t>(slot_of_[found.id]), l, loss_.slope(margin));
      }
    });
    for (std::size_t s = 0; s < active_.size(); ++s) add_to_v(s, alpha_[s], warm);
  }

  /// Lists the given weights as coefficients; v serves as scratch and is zero again afterwards.
  void load_start(std::span<const index_t> block) {
    std::vector<index_t> features;
    const PPDStart<T>& start = task_.start;
    for (std::size_t l = 0; l < block.size(); ++l) {
      for (auto p = start.indptr[block[l]]; p < start.indptr[block[l] + 1]; ++p) {
        v_[start.features[p]].set(static_cast<int>(l), start.values[p]);
        features.push_back(start.features[p]);
      }
    }
    std::sort(features.begin(), features.end());
    features.erase(std::unique(features.begin(), features.end()), features.end());
    weights_.clear();
    collect_weights<T>(v_.data(), features, T{0}, live_, weights_);
    for (const index_t j : features) v_[j] = Pack<T>::all(0);
  }

  void set_dual(std::size_t slot, int lane, double alpha) {
    alpha_[slot].set(lane, static_cast<T>(alpha * weight_of(slot, lane)));
  }

  /// v += y alpha x for one active row, in the lanes of a mask.
  void add_to_v(std::size_t slot, const Pack<T>& alpha, LaneMask lanes) {
    Pack<T> step = Pack<T>::all(0);
    for_each_lane(lanes, [&](int l) {
      step.set(l, (active_[slot].positive & lane_bit(l)) ? alpha[l] : -alpha[l]);
    });
    const auto row = data_.rows.row(active_[slot].row);
    for (std::size_t p = 0; p < row.size(); ++p) v_[row.ids[p]].v += row.values[p] * step.v;
  }

  /// The given bias is the sum of y alpha over all rows, of which only the worst are active: the
  /// random negatives, whose duals are zero so far, share what is missing.
  void balance_bias(std::span<const index_t> block, LaneMask warm) {
    if (!settings_.learn_bias) {
      for_each_lane(warm, [&](int l) { state_.bias.set(l, static_cast<T>(bias_centre_)); });
      return;
    }
    const LaneSums<T> before = signed_duals();
    Pack<T> share = Pack<T>::all(0);
    for_each_lane(warm, [&](int l) {
      std::size_t n_idle = 0;
      for (std::size_t s = 0; s < active_.size(); ++s) n_idle += is_idle_negative(s, l);
      const double missing = before[l] - task_.start.bias[block[l]];
      if (missing > 0 && n_idle > 0) share.set(l, static_cast<T>(missing / n_idle));
    });
    for (std::size_t s = 0; s < active_.size(); ++s) {
      LaneMask idle = 0;
      for_each_lane(warm, [&](int l) { idle |= is_idle_negative(s, l) ? lane_bit(l) : 0; });
      if (idle == 0) continue;
      for_each_lane(idle, [&](int l) {
        const double most = loss_.upper_bound() * weight_of(s, l);
        alpha_[s].set(l, static_cast<T>(std::min<double>(share[l], most)));
      });
      add_to_v(s, alpha_[s], idle);
    }
    const LaneSums<T> after = signed_duals();
    for_each_lane(warm, [&](int l) { state_.bias.set(l, static_cast<T>(after[l])); });
  }

  LaneSums<T> signed_duals() {
    point_state();
    return sum_duals<T>(active_, state_).signed_total;
  }

  bool is_idle_negative(std::size_t slot, int lane) const {
    const ActiveRow& a = active_[slot];
    return (a.member & ~a.positive & lane_bit(lane)) != 0 && alpha_[slot][lane] == 0;
  }

  /// Against positives alone the bias shoots up and every row looks like a violator. The sample is
  /// the same for all lanes, so that its updates are vector updates.
  void enter_random_negatives(std::size_t n_positives) {
    const std::size_t n_draws = std::min(n_rows_ / kStartShare, kStartPerPositive * n_positives);
    for (std::size_t draw = 0; draw < n_draws; ++draw) {
      const auto i = static_cast<index_t>(rng_.below(static_cast<std::uint32_t>(n_rows_)));
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
      active_scores_.push_back(Pack<T>::all(0));
      curvature_.push_back(curvature_of(i));
      weight_.push_back(task_.row_weight.empty() ? T{1} : task_.row_weight[i]);
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
    const auto slot = static_cast<std::size_t>(slot_of_[i]);
    if (is_flat(slot)) {
      alpha_[slot].set(lane, static_cast<T>(loss_.upper_bound() * weight_of(slot, lane)));
    }
  }

  /// Of the dual along the coordinate of row i; see SweepState for the part of the loss. Zero if
  /// its inverse would not be finite: such a row is as good as empty.
  T curvature_of(index_t i) const {
    const T curvature = data_.row_squares[i] + (settings_.learn_bias ? T{1} : T{0}) +
                        (is_weighted() ? T{0} : state_.dual_diagonal);
    return curvature < std::numeric_limits<T>::min() ? T{0} : curvature;
  }

  bool is_flat(std::size_t slot) const {
    return curvature_[slot] == 0 && state_.dual_diagonal == 0;
  }

  void correct() {
    order_.clear();
    for (std::size_t s = 0; s < active_.size(); ++s) {
      active_[s].awake = active_[s].member & live_;
      if (active_[s].awake != 0 && !is_flat(s)) order_.push_back(static_cast<index_t>(s));
    }
    point_state();
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

  void point_state() {
    state_.v = v_.data();
    state_.alpha = alpha_.data();
    state_.curvature = curvature_.data();
    state_.weight = is_weighted() ? weight_.data() : nullptr;
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
  bool search(int iter, bool is_last) {
    weights_.clear();
    sums_ = collect_weights<T>(v_.data(), touched_, state_.l1, live_, weights_);
    const bool sparsifies =
        settings_.search == PPDSearch::sparsified && !last_was_sparsified_ && !is_last;
    last_was_sparsified_ = sparsifies;
    if (sparsifies) sparsify_weights();
    prepare_scan(kFirstFloor * std::pow(kFloorFalls, iter - 1), live_);
    for_each_lane(live_, [&](int l) {
      const std::size_t room = std::max<std::size_t>(kMinEntering, size_[l]);
      best_[l].start(is_dense() ? n_rows_ : room);
    });
    share_work(score_and_scan());
    return !sparsifies;
  }

  /// Scores all rows with weights_ and looks at the scores, tile by tile; returns the work.
  std::int64_t score_and_scan() { return prefers_rows() ? score_by_rows() : score_by_lists(); }

  /// An entry costs less in a row than in a list, whose sums are read and written in memory.
  bool prefers_rows() const {
    std::size_t listed = 0;
    for (const auto& coefficient : weights_) listed += data_.lists.length(coefficient.feature);
    return static_cast<double>(listed) > kRowsFrom * static_cast<double>(data_.rows.nnz());
  }

  std::int64_t score_by_lists() {
    return for_each_tile(kTileRows, [&](index_t first, std::span<Pack<T>> tile) {
      std::fill(tile.begin(), tile.end(), Pack<T>::all(0));
      return add_scores<T>(weights_, data_.lists, first, tile);
    });
  }

  std::int64_t score_by_rows() {
    table_.assign(1, Pack<T>::all(0));
    for (const auto& coefficient : weights_) {
      place_[coefficient.feature] = static_cast<index_t>(table_.size());
      table_.push_back(coefficient.weight);
    }
    const auto work = for_each_tile(kShortTileRows, [&](index_t first, std::span<Pack<T>> tile) {
      return score_rows<T, I>(data_.rows, place_.data(), table_.data(), first, tile);
    });
    for (const auto& coefficient : weights_) place_[coefficient.feature] = 0;
    return work;
  }

  template <class Score>
  std::int64_t for_each_tile(std::size_t n_tile_rows, Score&& score) {
    std::int64_t work = 0;
    for (std::size_t begin = 0; begin < n_rows_; begin += n_tile_rows) {
      const auto tile = std::span<Pack<T>>(scores_).first(std::min(n_tile_rows, n_rows_ - begin));
      work += score(static_cast<index_t>(begin), tile);
      find_violators<T>(static_cast<index_t>(begin), tile, scan_);
    }
    return work;
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

  void prepare_scan(double floor, LaneMask lanes) {
    scan_ = Scan<T>();
    scan_.slot_of = slot_of_;
    scan_.active = active_;
    scan_.active_scores = active_scores_.data();
    scan_.row_weight = task_.row_weight.empty() ? nullptr : task_.row_weight.data();
    scan_.best = best_;
    scan_.join_free = is_dense();
    scan_.floor = Pack<T>::all(static_cast<T>(floor));
    scan_.threshold = Pack<T>::all(std::numeric_limits<T>::infinity());
    for_each_lane(lanes, [&](int l) { scan_.threshold.set(l, T{-1} - state_.bias[l]); });
  }

  void certify() {
    point_state();
    const DualSums<T> duals = sum_duals<T>(active_, state_);
    const LaneSums<T> positive_loss = sum_positive_loss();
    for_each_lane(live_, [&](int l) {
      const double shift = state_.bias[l] - bias_centre_;
      const double squares = 0.5 * (sums_.squares[l] + shift * shift);
      LabelReport& report = report_[l];
      report.primal = squares + settings_.l1 * sums_.absolute[l] + positive_loss[l] +
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

  LaneSums<T> sum_positive_loss() const {
    LaneSums<T> loss{};
    for (std::size_t s = 0; s < active_.size(); ++s) {
      for_each_lane(active_[s].positive & live_, [&](int l) {
        const double margin = static_cast<double>(active_scores_[s][l]) + state_.bias[l];
        loss[l] += loss_.value(margin) * weight_of(s, l);
      });
    }
    return loss;
  }

  void shrink() {
    drop_idle<T>(active_, alpha_.data(), active_scores_.data(), scan_.threshold, live_);
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
        weight_[kept] = weight_[s];
        slot_of_[a.row] = static_cast<index_t>(kept);
      }
      ++kept;
    }
    active_.resize(kept);
    alpha_.resize(kept);
    active_scores_.resize(kept);
    curvature_.resize(kept);
    weight_.resize(kept);
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
    sort_touched();
    weights_.clear();
    const LaneMask all = static_cast<LaneMask>((std::uint64_t{1} << block.size()) - 1);
    collect_weights<T>(v_.data(), touched_, state_.l1, all, weights_);
    const T smallest = static_cast<T>(settings_.prune);
    for (std::size_t l = 0; l < block.size(); ++l) {
      const int lane = static_cast<int>(l);
      LabelWeights<T>& out = weights[l];
      reports[l] = report_[l];
      if (report_[l].n_iter == 0) {  // no positives, or stopped before the first correction
        out.bias = T{-1};
        continue;
      }
      out.bias = state_.bias[lane];
      for (const auto& coefficient : weights_) {
        const T weight = coefficient.weight[lane];
        if (weight == 0 || std::abs(weight) <= smallest) continue;
        out.features.push_back(coefficient.feature);
        out.values.push_back(weight);
      }
    }
    reset();
  }

  /// By the marks if there are many: a pass over all features, a byte each, is then cheaper than
  /// sorting. On 5,000 synthetic labels sorting took 7 % of the fit.
  void sort_touched() {
    if (touched_.size() * 32 < is_touched_.size()) {
      std::sort(touched_.begin(), touched_.end());
      return;
    }
    touched_.clear();
    for (std::size_t j = 0; j < is_touched_.size(); ++j) {
      if (is_touched_[j]) touched_.push_back(static_cast<index_t>(j));
    }
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
    active_scores_.clear();
    curvature_.clear();
    weight_.clear();
  }

  const PPDData<T, I>& data_;
  const PPDTask<T>& task_;
  const Loss loss_;
  const PPDSettings settings_;
  const std::size_t n_rows_;
  double bias_centre_ = 0;

  Rng rng_{0};
  LaneMask live_ = 0;  ///< labels not yet converged
  LabelReport report_[kLanes<T>];
  std::size_t size_[kLanes<T>] = {};  ///< active rows of each label
  bool last_was_sparsified_ = false;

  std::vector<Pack<T>> v_;       ///< by feature, zero outside touched_
  std::vector<Pack<T>> scores_;  ///< of the rows of one tile
  std::vector<std::uint8_t> is_touched_;
  std::vector<index_t> touched_;  ///< features of rows that have been active
  std::vector<index_t> place_;    ///< by feature: its place in table_ during a search by rows, or 0
  std::vector<Pack<T>> table_;
  std::vector<index_t> slot_of_;  ///< by row: its place in active_, or -1
  std::vector<ActiveRow> active_;
  std::vector<Pack<T>> alpha_;          ///< beside active_
  std::vector<Pack<T>> active_scores_;  ///< beside active_: scores of the last search
  std::vector<T> curvature_;            ///< beside active_
  std::vector<T> weight_;               ///< beside active_: of the row's loss
  std::vector<index_t> order_;
  std::vector<Coefficient<T>> weights_;
  std::vector<TopK<T>> best_;
  WeightSums<T> sums_;
  Scan<T> scan_;
  SweepState<T> state_;
  Pack<T> violation_;  ///< worst violation outside the active set at the last search
};

}  // namespace sublearn
