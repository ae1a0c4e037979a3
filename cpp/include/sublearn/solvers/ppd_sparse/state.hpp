// Where PPD-Sparse stands on a block of labels: the active rows, their duals and v = X'(y alpha).
// solvers/ppd_sparse/solver.hpp says what the words mean.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "sublearn/core/lanes.hpp"
#include "sublearn/core/rng.hpp"
#include "sublearn/core/types.hpp"
#include "sublearn/losses/margin_loss.hpp"
#include "sublearn/prox/soft_threshold.hpp"
#include "sublearn/solvers/ppd_sparse/kernels.hpp"
#include "sublearn/solvers/ppd_sparse/task.hpp"

namespace sublearn {

/// Reused from block to block: start() begins one, clear() ends it and keeps the memory.
template <MarginLoss Loss, class T, class I>
struct PPDState {
  // Once a block has this share of all rows active, most updates are vector updates, which cost the
  // same for any number of lanes: every violator then enters without competition.
  static constexpr std::size_t kDenseShare = 4;
  static constexpr std::size_t kPrefetched = 256;  ///< features of a row that is to enter

  PPDState(const PPDData<T, I>& given, const PPDTask<T>& to_learn, Loss its_loss,
           const PPDSettings& its_settings)
      : data(given),
        task(to_learn),
        loss(its_loss),
        settings(its_settings),
        n_rows(static_cast<std::size_t>(given.rows.n_rows())),
        v(static_cast<std::size_t>(given.rows.n_cols()), Pack<T>::all(0)),
        is_touched(static_cast<std::size_t>(given.rows.n_cols()), 0),
        slot_of(n_rows, -1) {}

  /// Begins a block with its positives active.
  void start(std::span<const index_t> block, Rng block_rng) {
    rng = block_rng;
    live = 0;
    start_sweeps();
    std::fill(std::begin(size), std::end(size), std::size_t{0});
    for (std::size_t l = 0; l < block.size(); ++l) {
      report[l] = LabelReport();
      hold(block[l], static_cast<int>(l));
      enter_positives(block[l], static_cast<int>(l));
    }
  }

  /// Leaves the positives of the given lanes as the only active rows, and these lanes live.
  void keep_positives(std::span<const index_t> block, LaneMask lanes) {
    clear_slots();
    live = lanes;
    for_each_lane(lanes, [&](int l) {
      for (const index_t i : task.labels.of(block[l])) enter(i, l, true);
    });
  }

  bool is_dense() const { return active.size() * kDenseShare > n_rows; }

  bool is_weighted() const { return !task.row_weight.empty() || !task.positive_weight.empty(); }

  /// The weight of a row's loss in a lane.
  double weight_of(std::size_t slot, int lane) const {
    if (!is_weighted()) return 1.0;
    const bool positive = (active[slot].positive & lane_bit(lane)) != 0;
    return static_cast<double>(weight[slot]) * (positive ? sweeps.positive_weight[lane] : T{1});
  }

  /// Under the hinge loss and a fixed bias, a row without features only adds alpha times a constant
  /// to the dual: its coordinate is at its bound from the start and never visited.
  bool is_flat(std::size_t slot) const { return curvature[slot] == 0 && sweeps.dual_diagonal == 0; }

  /// Makes a row active in a lane; its features may get weights from now on.
  void enter(index_t i, int lane, bool positive) {
    if (slot_of[i] < 0) add_slot(i);
    const auto slot = static_cast<std::size_t>(slot_of[i]);
    active[slot].member |= lane_bit(lane);
    ++size[lane];
    if (!positive) return;
    active[slot].positive |= lane_bit(lane);
    if (is_flat(slot)) set_dual(slot, lane, loss.upper_bound());
  }

  /// Asks for what enter() reads of a row that is not active.
  void prefetch_features(index_t i) const {
    const auto ids = data.rows.row(i).ids;
    for (std::size_t p = 0; p < std::min(ids.size(), kPrefetched); p += 64 / sizeof(I)) {
      __builtin_prefetch(&ids[p]);
    }
  }

  void set_dual(std::size_t slot, int lane, double per_weight) {
    alpha[slot].set(lane, static_cast<T>(per_weight * weight_of(slot, lane)));
  }

  /// v += y alpha x for one active row, in the lanes of a mask.
  void add_to_v(std::size_t slot, LaneMask lanes) {
    Pack<T> step = Pack<T>::all(0);
    for_each_lane(lanes, [&](int l) {
      step.set(l, (active[slot].positive & lane_bit(l)) ? alpha[slot][l] : -alpha[slot][l]);
    });
    const auto row = data.rows.row(active[slot].row);
    for (std::size_t p = 0; p < row.size(); ++p) v[row.ids[p]].v += row.values[p] * step.v;
  }

  DualSums<T> duals() {
    point_sweeps();
    return sum_duals<T>(active, sweeps);
  }

  /// Rows that enter may move the vectors that a sweep reads.
  void point_sweeps() {
    sweeps.v = v.data();
    sweeps.alpha = alpha.data();
    sweeps.curvature = curvature.data();
    sweeps.weight = is_weighted() ? weight.data() : nullptr;
  }

  void share_work(std::int64_t work) {
    for_each_lane(live, [&](int l) { report[l].work += work / std::popcount(live); });
  }

  /// Lets go of the rows that drop_idle finds idle.
  void shrink(const Pack<T>& threshold) {
    drop_idle<T>(active, alpha.data(), scores.data(), threshold, live);
    std::fill(std::begin(size), std::end(size), std::size_t{0});
    std::size_t kept = 0;
    for (std::size_t s = 0; s < active.size(); ++s) {
      const ActiveRow a = active[s];
      slot_of[a.row] = a.member == 0 ? -1 : static_cast<index_t>(kept);
      if (a.member == 0) continue;
      for_each_lane(a.member, [&](int l) { ++size[l]; });
      if (kept != s) move_slot(s, kept);
      ++kept;
    }
    resize_slots(kept);
  }

  /// By the marks if there are many: a pass over all features, a byte each, is then cheaper than
  /// sorting. On 5,000 synthetic labels sorting took 7 % of the fit.
  void sort_touched() {
    if (touched.size() * 32 < is_touched.size()) {
      std::sort(touched.begin(), touched.end());
      return;
    }
    touched.clear();
    for (std::size_t j = 0; j < is_touched.size(); ++j) {
      if (is_touched[j]) touched.push_back(static_cast<index_t>(j));
    }
  }

  void clear() {
    for (const index_t j : touched) {
      v[j] = Pack<T>::all(0);
      is_touched[j] = 0;
    }
    touched.clear();
    clear_slots();
  }

  const PPDData<T, I>& data;
  const PPDTask<T>& task;
  const Loss loss;
  const PPDSettings settings;
  const std::size_t n_rows;
  double bias_centre = 0;

  Rng rng{0};
  LaneMask live = 0;  ///< labels not yet converged
  LabelReport report[kLanes<T>];
  std::size_t size[kLanes<T>] = {};  ///< active rows of each label
  SweepState<T> sweeps;
  double held_half[kLanes<T>] = {};  ///< 1/2 (||w||^2 + b^2) of what is held; zero if nothing is

  std::vector<Pack<T>> v;  ///< by feature, zero outside touched
  std::vector<std::uint8_t> is_touched;
  std::vector<index_t> touched;  ///< features of rows that have been active
  std::vector<index_t> slot_of;  ///< by row: its place in active, or -1
  std::vector<ActiveRow> active;
  std::vector<Pack<T>> alpha;   ///< beside active
  std::vector<Pack<T>> scores;  ///< beside active: of the last search
  std::vector<T> curvature;     ///< beside active
  std::vector<T> weight;        ///< beside active: of the row's loss

 private:
  void start_sweeps() {
    bias_centre = settings.learn_bias ? 0.0 : -1.0;
    sweeps = SweepState<T>();
    sweeps.bias = Pack<T>::all(static_cast<T>(bias_centre));
    sweeps.l1 = static_cast<T>(settings.l1);
    sweeps.dual_diagonal = static_cast<T>(loss.dual_diagonal());
    sweeps.upper_bound = static_cast<T>(loss.upper_bound());
    sweeps.learn_bias = settings.learn_bias;
    sweeps.positive_weight = Pack<T>::all(1);
  }

  /// Begins with what earlier rows have added; such a label is live without positives too.
  void hold(index_t label, int lane) {
    held_half[lane] = 0;
    if (!task.held.is_given()) return;
    live |= lane_bit(lane);
    double squares = 0;
    for (auto p = task.held.indptr[label]; p < task.held.indptr[label + 1]; ++p) {
      const T value = task.held.values[p];
      const double weight = soft_threshold(value, sweeps.l1);
      squares += weight * weight;
      v[task.held.features[p]].set(lane, value);
      touch(task.held.features[p]);
    }
    const double bias = settings.learn_bias ? task.held.bias[label] : T{0};
    if (settings.learn_bias) sweeps.bias.set(lane, task.held.bias[label]);
    held_half[lane] = 0.5 * (squares + bias * bias);
  }

  /// A label without positives, of which nothing is held, is not live: it stays at w = 0, b = -1.
  void enter_positives(index_t label, int lane) {
    const auto positives = task.labels.of(label);
    if (positives.empty()) return;
    live |= lane_bit(lane);
    if (!task.positive_weight.empty()) {
      sweeps.positive_weight.set(lane, task.positive_weight[label]);
    }
    for (const index_t i : positives) enter(i, lane, true);
  }

  void add_slot(index_t i) {
    slot_of[i] = static_cast<index_t>(active.size());
    active.push_back({.row = i});
    alpha.push_back(Pack<T>::all(0));
    scores.push_back(Pack<T>::all(0));
    curvature.push_back(curvature_of(i));
    weight.push_back(task.row_weight.empty() ? T{1} : task.row_weight[i]);
    for (const auto id : data.rows.row(i).ids) touch(static_cast<index_t>(id));
  }

  void touch(index_t j) {
    if (is_touched[j]) return;
    is_touched[j] = 1;
    touched.push_back(j);
  }

  /// Of the dual along the coordinate of row i; see SweepState for the part of the loss. Zero if
  /// its inverse would not be finite: such a row is as good as empty.
  T curvature_of(index_t i) const {
    const T sum = data.row_squares[i] + (settings.learn_bias ? T{1} : T{0}) +
                  (is_weighted() ? T{0} : sweeps.dual_diagonal);
    return sum < std::numeric_limits<T>::min() ? T{0} : sum;
  }

  /// Scores are left behind: they are read between a search and its shrinking only.
  void move_slot(std::size_t from, std::size_t to) {
    active[to] = active[from];
    alpha[to] = alpha[from];
    curvature[to] = curvature[from];
    weight[to] = weight[from];
  }

  void clear_slots() {
    for (const ActiveRow& a : active) slot_of[a.row] = -1;
    resize_slots(0);
  }

  void resize_slots(std::size_t n) {
    active.resize(n);
    alpha.resize(n);
    scores.resize(n);
    curvature.resize(n);
    weight.resize(n);
  }
};

}  // namespace sublearn
