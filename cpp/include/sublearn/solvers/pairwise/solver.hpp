// Multilabel classification with a weight for every pair of labels (the binary factors of Yen
// et al., NIPS 2016, appendix C-2), by ascent in the dual over the labels of one row at a time.
//
//   min_{W, V}  1/2 |W|^2 + gamma/2 sum_{k<l} V_kl^2 + C sum_i L_i
//   L_i = max_y [f(x_i, y) - f(x_i, t_i) + Hamming(y, t_i)],
//   f(x, y) = sum_k y_k w_k'x + sum_{k<l} V_kl y_k y_l
//
// with the maximum relaxed to the linear program over p in [0, 1]^K (the share of y_k = 1) and q
// (the share of y_k = y_l = 1) with the constraints (3.35) of Yen 2018:
//
//   max(0, p_k + p_l - 1) <= q <= min(p_k, p_l).
//
// The dual, divided by C, is to minimise over the (p_i, q_i) of all rows
//
//   1/(2C) |W|^2 + gamma/(2C) |V|^2 - sum_i Hamming(p_i, t_i),
//   w_k = C sum_i (t_ik - p_ik) x_i,      V_kl = C/gamma sum_i (t_ik t_il - q_ikl),
//
// where q is best chosen as min(p_k, p_l) in all rows if V > 0, as max(0, p_k + p_l - 1) if V < 0,
// and in between so that V = 0 if that is possible. So q need not be kept:
//
//   V_kl = C/gamma [ max(0, S - sum_i min(p_ik, p_il)) - max(0, sum_i max(0, p_ik + p_il - 1) - S)
//   ], S = sum_i t_ik t_il,
//
// two sums for each pair that rows have touched, and every p in [0, 1]^K is feasible. A visit
// maximises the dual over the p of one row (solvers/pairwise/step.hpp); the dual never falls.
//
// Active sets. A row holds its true labels and the labels that the search let in; all others stay
// at their truth, zero. What the search asks of label l is whether the loss grows as p_l leaves
// zero and the q_l. of the row follow as is best for them:
//
//   w_l'x + 1 + sum_{m: p_m = 1} V_lm + sum_{m: 0 < p_m < 1} max(0, V_lm) > 0.
//
// Two labels that are worth it only together escape this search; `certify` finds them, since it
// solves the linear program over all labels.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "sublearn/core/labelled_rows.hpp"
#include "sublearn/core/monitor.hpp"
#include "sublearn/core/rng.hpp"
#include "sublearn/core/top_k.hpp"
#include "sublearn/core/types.hpp"
#include "sublearn/search/hashed_rows.hpp"
#include "sublearn/search/pair_table.hpp"
#include "sublearn/search/score_board.hpp"
#include "sublearn/solvers/pairwise/certificate.hpp"
#include "sublearn/solvers/pairwise/step.hpp"
#include "sublearn/solvers/pairwise/task.hpp"

namespace sublearn {

template <class T, class I>
class PairwiseMultilabel {
 public:
  PairwiseMultilabel(const LabelledRows<T, I>& data, index_t n_labels,
                     const PairwiseSettings& settings)
      : data_(data),
        settings_(settings),
        n_labels_(n_labels),
        has_pairs_(settings.has_pairs),
        rng_(settings.seed),
        weights_(static_cast<std::size_t>(data.X.n_cols()), n_labels, T{0}, Rng(settings.seed)),
        pairs_(static_cast<std::size_t>(n_labels), n_labels, T{0}, Rng(settings.seed)),
        rests_(n_labels),
        step_(pair_curvature()),
        board_(n_labels),
        pair_board_(n_labels) {
    start();
  }

  /// One visit to every row.
  PairwisePass pass(const Monitor* monitor) {
    PairwisePass out;
    std::vector<index_t> order(rows_.size());
    std::iota(order.begin(), order.end(), index_t{0});
    rng_.shuffle(std::span<index_t>(order));
    for (const index_t i : order) {
      if (is_stopped(monitor)) break;
      visit(static_cast<std::size_t>(i));
    }
    for (const PairRow& row : rows_) {
      out.n_labels += static_cast<offset_t>(row.size());
      out.n_pairs += static_cast<offset_t>(row.attractions.size() + row.repulsions.size());
    }
    out.work = std::exchange(work_, 0) + std::exchange(step_.work, 0);
    return out;
  }

  /// Passes look at labels alone, as if V were zero, until `join_pairs` is called. Most labels
  /// enter their rows while that costs little; the dual value is no bound meanwhile.
  void leave_pairs_out() { has_pairs_ = false; }
  /// p stays. A stop on the way leaves them out.
  void join_pairs(const Monitor* monitor) {
    has_pairs_ = sum_rests(monitor);
    if (!has_pairs_) pairs_.reset();
  }

  /// Solves the linear program of each row, and lets in what that program uses and the row lacks.
  PairwiseCertificate certify(const Monitor* monitor) {
    PairwiseCertificate out;
    if (has_pairs_) sum_rests(nullptr);  // V is whole at any time
    out.dual = dual_value();
    const RelaxedLosses<T, I> losses(data_, weights_, pairs_);
    const double sum = losses.sum(rows_, settings_.n_threads, monitor);
    out.primal = is_stopped(monitor) ? std::numeric_limits<double>::quiet_NaN()
                                     : settings_.C * sum + 0.5 * squared_norm();
    return out;
  }

  OwnedRows<T> weights() const { return sorted_rows(weights_); }
  OwnedRows<T> pairs() const { return sorted_rows(pairs_); }  ///< symmetric

 private:
  static constexpr double kEnter = 1e-4;  ///< gain from which a label is let in

  double pair_curvature() const { return settings_.C / settings_.gamma; }
  static bool is_stopped(const Monitor* monitor) {
    return monitor != nullptr && monitor->stop_requested();
  }

  /// The truth everywhere: all weights zero.
  void start() {
    rows_.resize(static_cast<std::size_t>(data_.X.n_rows()));
    squares_.resize(rows_.size());
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const auto truth = data_.labels.of(static_cast<offset_t>(i));
      rows_[i].labels.assign(truth.begin(), truth.end());
      rows_[i].p.assign(truth.size(), 1.0);
      rows_[i].is_true.assign(truth.size(), 1);
      rows_[i].n_true = truth.size();
      double sum = 0.0;
      for (const T x : data_.X.row(static_cast<offset_t>(i)).values) {
        sum += static_cast<double>(x) * static_cast<double>(x);
      }
      squares_[i] = sum;
    }
  }

  void visit(std::size_t i) {
    PairRow& row = rows_[i];
    search(i);
    before_ = row.p;
    // A row without features bends nowhere: any label but the truth costs one.
    const double curvature = std::max(1e-9, settings_.C * squares_[i]);
    bool is_higher = true;
    if (has_pairs_) {
      is_higher = step_.take(row, wish_, curvature, rests_);
      move_pairs(row);
    } else {
      for (std::size_t s = 0; s < row.size(); ++s) {
        row.p[s] = std::clamp(row.p[s] + wish_[s] / curvature, 0.0, 1.0);
      }
    }
    move_weights(i);
    row.shrink(slots_, is_higher);
  }

  // ---- search ----------------------------------------------------------------------------------

  /// The labels with most to gain as new slots, and what the weights of features wish of all slots.
  void search(std::size_t i) {
    PairRow& row = rows_[i];
    const auto x = data_.X.row(static_cast<offset_t>(i));
    for (std::size_t k = 0; k < x.size(); ++k) {
      const auto d = static_cast<std::size_t>(x.ids[k]);
      weights_.add_to(d, x.values[k], board_);
      work_ += weights_.n_weights(d);
    }
    if (has_pairs_) add_pair_scores(row);
    scores_.clear();
    for (const index_t l : row.labels) scores_.emplace_back(l, board_.take(l));
    best_.start(row.most_entries());
    const T* scores = board_.scores();
    const T* pair_scores = pair_board_.scores();
    for (index_t l = 0; l < n_labels_; ++l) {
      const T gain = scores[l] + pair_scores[l] + T{1};
      if (gain > static_cast<T>(kEnter)) best_.offer(l, gain);
    }
    work_ += n_labels_;
    entering_.clear();
    for (const auto& found : best_.finish()) {
      entering_.push_back(found.id);
      scores_.emplace_back(found.id, board_.take(found.id));
    }
    board_.clear();
    pair_board_.clear();
    row.enter(entering_, slots_);
    std::sort(scores_.begin(), scores_.end());
    wish_.clear();
    for (std::size_t s = 0; s < row.size(); ++s) {
      wish_.push_back(static_cast<double>(scores_[s].second) + 1.0 - 2.0 * row.truth(s));
    }
  }

  void add_pair_scores(const PairRow& row) {
    for (std::size_t s = 0; s < row.labels.size(); ++s) {
      if (row.p[s] <= 0.0) continue;
      const auto label = static_cast<std::size_t>(row.labels[s]);
      work_ += pairs_.n_weights(label);
      if (row.p[s] >= 1.0) {
        pairs_.add_to(label, T{1}, pair_board_);
        continue;
      }
      pairs_.for_each_weight(label, [&](index_t l, T v) {
        if (v > T{0}) pair_board_.add(l, v);
      });
    }
  }

  // ---- weights ---------------------------------------------------------------------------------

  void move_weights(std::size_t i) {
    const PairRow& row = rows_[i];
    changes_.clear();
    for (std::size_t s = 0; s < row.size(); ++s) {
      const double change = row.p[s] - before_[s];
      if (change == 0.0) continue;
      changes_.push_back({weights_.place(row.labels[s]), static_cast<T>(-settings_.C * change)});
    }
    const auto x = data_.X.row(static_cast<offset_t>(i));
    for (std::size_t k = 0; k < x.size() && !changes_.empty(); ++k) {
      weights_.add(static_cast<std::size_t>(x.ids[k]), changes_, x.values[k]);
    }
    work_ += static_cast<offset_t>(x.size() * changes_.size());
  }

  /// Rests and V follow the p of a row.
  void move_pairs(const PairRow& row) {
    for (std::size_t a = 0; a < row.size(); ++a) {
      for (std::size_t b = 0; b < a; ++b) {
        if (row.p[a] == before_[a] && row.p[b] == before_[b]) continue;
        const double less = std::min(row.p[a], row.p[b]) - std::min(before_[a], before_[b]);
        const double both =
            std::max(0.0, row.p[a] + row.p[b] - 1.0) - std::max(0.0, before_[a] + before_[b] - 1.0);
        if (less == 0.0 && both == 0.0) continue;
        PairRest<T>& rest = rests_.touch(row.labels[a], row.labels[b]);
        const bool had_weight = rest.above > T{0} || rest.below < T{0};
        rest.above -= static_cast<T>(less);
        rest.below -= static_cast<T>(both);
        if (had_weight || rest.above > T{0} || rest.below < T{0}) {
          set_pair(row.labels[a], row.labels[b], rest);
        }
      }
    }
  }

  /// V of a pair, exactly zero where its rests allow that.
  void set_pair(index_t k, index_t l, const PairRest<T>& rest) {
    const auto row = static_cast<std::size_t>(k), column = static_cast<std::size_t>(l);
    const auto at_l = pairs_.place(l), at_k = pairs_.place(k);
    const T change = static_cast<T>(rest.weight(pair_curvature())) - pairs_.weight(row, at_l);
    pairs_.add(row, at_l, change);
    pairs_.add(column, at_k, change);
  }

  // ---- values ----------------------------------------------------------------------------------

  /// Rests and V made anew from p, free of rounding that had gathered. False if stopped.
  bool sum_rests(const Monitor* monitor) {
    rests_.reset();
    pairs_.reset();
    for (const PairRow& row : rows_) {
      if (is_stopped(monitor)) return false;
      for (std::size_t a = 0; a < row.size(); ++a) {
        for (std::size_t b = 0; b < a; ++b) {
          const double truth = row.truth(a) * row.truth(b);
          const double above = truth - std::min(row.p[a], row.p[b]);
          const double below = truth - std::max(0.0, row.p[a] + row.p[b] - 1.0);
          if (above == 0.0 && below == 0.0) continue;
          PairRest<T>& rest = rests_.touch(row.labels[a], row.labels[b]);
          rest.above += static_cast<T>(above);
          rest.below += static_cast<T>(below);
        }
      }
    }
    rests_.for_each([&](index_t k, index_t l, const PairRest<T>& rest) {
      if (rest.above > T{0} || rest.below < T{0}) set_pair(k, l, rest);
    });
    return true;
  }

  double squared_norm() const {
    double norm = 0.0;
    for (std::size_t d = 0; d < weights_.n_rows(); ++d) {
      weights_.for_each_weight(d, [&](index_t, T w) { norm += static_cast<double>(w) * w; });
    }
    double pairs = 0.0;  // each of them twice
    for (std::size_t k = 0; k < pairs_.n_rows(); ++k) {
      pairs_.for_each_weight(k, [&](index_t, T v) { pairs += static_cast<double>(v) * v; });
    }
    return norm + 0.5 * settings_.gamma * pairs;
  }

  double dual_value() const {
    double loss = 0.0;
    for (const PairRow& row : rows_) {
      for (std::size_t s = 0; s < row.p.size(); ++s) loss += std::abs(row.p[s] - row.truth(s));
    }
    return settings_.C * loss - 0.5 * squared_norm();
  }

  const LabelledRows<T, I>& data_;
  PairwiseSettings settings_;
  index_t n_labels_;
  bool has_pairs_;
  Rng rng_;
  HashedRows<T> weights_, pairs_;  ///< W by feature, V by label
  PairTable<PairRest<T>> rests_;
  PairStep<T> step_;
  std::vector<PairRow> rows_;
  std::vector<double> squares_;  ///< |x|^2 of each row

  std::vector<double> wish_, before_;  ///< of the slots of the row that is visited
  std::vector<std::pair<index_t, T>> scores_;
  std::vector<index_t> entering_;
  std::vector<std::uint32_t> slots_;
  ScoreBoard<T> board_, pair_board_;
  TopK<T> best_;
  std::vector<typename HashedRows<T>::Change> changes_;
  offset_t work_ = 0;
};

}  // namespace sublearn
