// The search of PPD-Sparse on a block of labels: scores all rows and finds those that violate.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "sublearn/core/lanes.hpp"
#include "sublearn/core/top_k.hpp"
#include "sublearn/core/types.hpp"
#include "sublearn/losses/margin_loss.hpp"
#include "sublearn/search/sparsify.hpp"
#include "sublearn/solvers/ppd_sparse/kernels.hpp"
#include "sublearn/solvers/ppd_sparse/state.hpp"

namespace sublearn {

template <MarginLoss Loss, class T, class I>
class PPDSearcher {
 public:
  explicit PPDSearcher(PPDState<Loss, T, I>& state)
      : state_(state),
        scores_(std::min(state.n_rows, kTileRows)),
        place_(state.v.size(), 0),
        best_(static_cast<std::size_t>(kLanes<T>)) {}

  void start() { n_sparsified_ = 0; }

  /// Scores all rows and finds violators; returns whether the scores are exact. The last search
  /// always is, so that the weights returned are those that the report speaks of.
  ///
  /// Scores are made anew each time. Keeping them and adding x_j (w_new - w_old) where a weight has
  /// changed was measured in two forms, on samples of the labels, l1 = 0.1, tol = 0.03:
  ///
  ///   exact   A correction moves a weight of nearly every feature in one of the lanes. From the
  ///           second search on, the lists of the changed features hold 1.00 (bibtex, delicious),
  ///           1.02 (5,000 and 32,000 synthetic labels) and 1.02 (yso) times as many entries as
  ///           those of all features in use: no search was ever cheaper that way.
  ///   lazy    A feature follows once a lane is off by a quarter of its typical weight; the weights
  ///           so held are certified and returned. Searches visit 0.98, 1.00, 0.44, 0.61 and 0.41
  ///           of the entries (bibtex, delicious, 5,000, yso, 32,000), but an entry of a list costs
  ///           more than one of a row, and all scores move through memory rather than a tile. Of 7
  ///           fits on a busy machine the best took 1.00, 1.06, 1.06, 1.04 and 0.89 of the
  ///           processor time, the median 0.95, 0.95, 0.89, 1.20 and 0.88: a gain on 32,000 labels
  ///           at most, where the rest is noise; objectives are up to 0.12 % higher.
  ///
  /// On long texts frequent words make most of a search. What was tried there and left out, since
  /// it was no faster: a first search without frequent words (worse rows enter, and corrections
  /// take longer), labels that are alike in one block (supports of rare labels hardly meet),
  /// smaller tiles, features numbered by frequency, more rows entering at a time, and copies of a
  /// label's active rows (they cost more than the sweeps on them save).
  bool search(int iter, bool is_last) {
    const auto live = state_.live;
    sums_ = collect(live);
    const PPDSettings& settings = state_.settings;
    const bool may_sparsify =
        settings.search == PPDSearch::sparsified && n_sparsified_ < settings.n_between && !is_last;
    n_sparsified_ = may_sparsify && sparsify_weights() ? n_sparsified_ + 1 : 0;
    scan_all(kFirstFloor * std::pow(kFloorFalls, iter - 1), live, [&](int l) {
      return settings.kappa > 0 ? static_cast<std::size_t>(settings.kappa)
                                : std::max<std::size_t>(kMinEntering, state_.size[l]);
    });
    return was_exact();
  }

  /// Scores all rows with given weights: a CSR matrix, a row per label. Violators are those of the
  /// lanes `warm`; `room(lane)` says how many to keep.
  template <class Room>
  void search_with(std::span<const index_t> block, double floor, LaneMask warm, Room&& room) {
    load(block);
    scan_all(floor, warm, room);
  }

  /// Drops the listed weights of at most this size, and scores all rows with the others.
  void search_pruned(T smallest) {
    sums_ = WeightSums<T>();
    for (auto& coefficient : weights_) {
      for_each_lane(state_.live, [&](int l) {
        const double size = std::abs(coefficient.weight[l]);
        if (size <= smallest) return coefficient.weight.set(l, T{0});
        sums_.absolute[l] += size;
        sums_.squares[l] += size * size;
        sums_.count[l] += 1;
      });
    }
    drop_zeros();
    scan_all(std::numeric_limits<double>::infinity(), state_.live,
             [](int) { return kMinEntering; });
  }

  /// Whether the weights of the last search were all that there are.
  bool was_exact() const { return n_sparsified_ == 0; }

  /// Lists the weights of the lanes in a mask.
  WeightSums<T> collect(LaneMask lanes) {
    weights_.clear();
    return collect_weights<T>(state_.v.data(), state_.touched, state_.sweeps.l1, lanes, weights_);
  }

  /// The worst violators of a lane, not active there yet; in no order.
  auto violators(int lane) { return best_[lane].select(); }

  const Scan<T>& scan() const { return scan_; }
  const WeightSums<T>& sums() const { return sums_; }  ///< of the last search, before sparsifying
  const std::vector<Coefficient<T>>& weights() const { return weights_; }

 private:
  // A search may double the active set of a label, and add this many rows even to a tiny one.
  static constexpr std::size_t kMinEntering = 100;
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

  /// Lists the given weights as coefficients; v serves as scratch and is zero again afterwards.
  void load(std::span<const index_t> block) {
    std::vector<index_t> features;
    const PPDStart<T>& start = state_.task.start;
    for (std::size_t l = 0; l < block.size(); ++l) {
      for (auto p = start.indptr[block[l]]; p < start.indptr[block[l] + 1]; ++p) {
        state_.v[start.features[p]].set(static_cast<int>(l), start.values[p]);
        features.push_back(start.features[p]);
      }
    }
    std::sort(features.begin(), features.end());
    features.erase(std::unique(features.begin(), features.end()), features.end());
    weights_.clear();
    collect_weights<T>(state_.v.data(), features, T{0}, state_.live, weights_);
    for (const index_t j : features) state_.v[j] = Pack<T>::all(0);
  }

  /// How many weights of a lane to keep; all of them where that is no fewer.
  double n_kept(int lane) const {
    const double delta = state_.settings.delta;
    return std::max(1.0, delta > 0 ? n_draws(sums_.absolute[lane], delta)
                                   : kSparsifiedShare * sums_.count[lane]);
  }

  /// Whether there was a lane with more weights than it is to keep.
  bool sparsify_weights() {
    LaneMask lanes = 0;
    for_each_lane(state_.live, [&](int l) {
      if (n_kept(l) < sums_.count[l] || state_.settings.delta == 0) lanes |= lane_bit(l);
    });
    if (lanes == 0) return false;
    if (state_.settings.is_drawn) {
      draw_weights(lanes);
    } else {
      round_weights(lanes);
    }
    drop_zeros();
    return true;
  }

  void draw_weights(LaneMask lanes) {
    for_each_lane(lanes, [&](int l) {
      draws_.start();
      for (std::size_t c = 0; c < weights_.size(); ++c) {
        draws_.offer(c, weights_[c].weight[l]);
        weights_[c].weight.set(l, T{0});
      }
      draws_.draw(n_kept(l), state_.rng, [&](std::size_t c, T step) {
        weights_[c].weight.set(l, weights_[c].weight[l] + step);
      });
    });
  }

  void round_weights(LaneMask lanes) {
    Pack<T> level = Pack<T>::all(0);
    for_each_lane(lanes,
                  [&](int l) { level.set(l, static_cast<T>(sums_.absolute[l] / n_kept(l))); });
    for (auto& coefficient : weights_) {
      const T uniform = static_cast<T>(state_.rng.uniform());
      for_each_lane(lanes, [&](int l) {
        coefficient.weight.set(l, sparsify(coefficient.weight[l], level[l], uniform));
      });
    }
  }

  /// Takes features without a weight in a live lane off the list.
  void drop_zeros() {
    std::erase_if(weights_, [&](const Coefficient<T>& coefficient) {
      bool is_zero = true;
      for_each_lane(state_.live, [&](int l) { is_zero = is_zero && coefficient.weight[l] == 0; });
      return is_zero;
    });
  }

  template <class Room>
  void scan_all(double floor, LaneMask lanes, Room&& room) {
    prepare_scan(floor, lanes);
    for_each_lane(lanes, [&](int l) { best_[l].start(takes_all() ? state_.n_rows : room(l)); });
    state_.share_work(prefers_rows() ? score_by_rows() : score_by_lists());
  }

  void prepare_scan(double floor, LaneMask lanes) {
    const auto row_weight = state_.task.row_weight;
    scan_ = Scan<T>();
    scan_.slot_of = state_.slot_of;
    scan_.active = state_.active;
    scan_.active_scores = state_.scores.data();
    scan_.row_weight = row_weight.empty() ? nullptr : row_weight.data();
    scan_.best = best_;
    scan_.join_free = takes_all();
    scan_.floor = Pack<T>::all(static_cast<T>(floor));
    scan_.threshold = Pack<T>::all(std::numeric_limits<T>::infinity());
    for_each_lane(lanes, [&](int l) { scan_.threshold.set(l, T{-1} - state_.sweeps.bias[l]); });
  }

  /// Whether violators enter without competition.
  bool takes_all() const { return state_.is_dense() && state_.settings.kappa == 0; }

  /// An entry costs less in a row than in a list, whose sums are read and written in memory.
  bool prefers_rows() const {
    std::size_t listed = 0;
    for (const auto& coefficient : weights_) {
      listed += state_.data.lists.length(coefficient.feature);
    }
    return static_cast<double>(listed) > kRowsFrom * static_cast<double>(state_.data.rows.nnz());
  }

  std::int64_t score_by_lists() {
    return for_each_tile(kTileRows, [&](index_t first, std::span<Pack<T>> tile) {
      std::fill(tile.begin(), tile.end(), Pack<T>::all(0));
      return add_scores<T>(weights_, state_.data.lists, first, tile);
    });
  }

  std::int64_t score_by_rows() {
    table_.assign(1, Pack<T>::all(0));
    for (const auto& coefficient : weights_) {
      place_[coefficient.feature] = static_cast<index_t>(table_.size());
      table_.push_back(coefficient.weight);
    }
    const auto work = for_each_tile(kShortTileRows, [&](index_t first, std::span<Pack<T>> tile) {
      return score_rows<T, I>(state_.data.rows, place_.data(), table_.data(), first, tile);
    });
    for (const auto& coefficient : weights_) place_[coefficient.feature] = 0;
    return work;
  }

  /// Scores the rows of each tile, then looks at them; returns the work.
  template <class Score>
  std::int64_t for_each_tile(std::size_t n_tile_rows, Score&& score) {
    std::int64_t work = 0;
    for (std::size_t begin = 0; begin < state_.n_rows; begin += n_tile_rows) {
      const std::size_t n = std::min(n_tile_rows, state_.n_rows - begin);
      const auto tile = std::span<Pack<T>>(scores_).first(n);
      work += score(static_cast<index_t>(begin), tile);
      find_violators<T>(static_cast<index_t>(begin), tile, scan_);
    }
    return work;
  }

  PPDState<Loss, T, I>& state_;
  int n_sparsified_ = 0;  ///< searches since the last exact one
  WeightDraws<T> draws_;
  std::vector<Pack<T>> scores_;  ///< of the rows of one tile
  std::vector<index_t> place_;   ///< by feature: its place in table_ during a search by rows, or 0
  std::vector<Pack<T>> table_;
  std::vector<Coefficient<T>> weights_;
  std::vector<TopK<T>> best_;
  WeightSums<T> sums_;
  Scan<T> scan_;
};

}  // namespace sublearn
