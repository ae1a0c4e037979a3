// GDMM for multilabel classification with a weight for every pair of labels (algorithms 1 and 3 of
// 001, appendix C-2).
//
//   min_{W, V}  1/2 |W|^2 + gamma/2 sum_{k<l} V_kl^2 + C sum_i L_i
//   L_i = max_y [f(x_i, y) - f(x_i, t_i) + Hamming(y, t_i)],
//   f(x, y) = sum_k y_k w_k'x + sum_{k<l} V_kl y_k y_l
//
// with the maximum relaxed to the linear program over p in [0, 1]^K (the share of y_k = 1) and q
// (the share of y_k = y_l = 1) with the constraints (3.35) of 000:
//
//   q <= p_k (multiplier up_0),   q <= p_l (up_1),   q >= p_k + p_l - 1 (down),   0 <= q <= 1.
//
// The dual, divided by C, is to minimise over the (p_i, q_i) of all rows
//
//   1/(2C) |W|^2 + gamma/(2C) |V|^2 - sum_i Hamming(p_i, t_i),
//   w_k = C sum_i (t_ik - p_ik) x_i,      V_kl = C/gamma sum_i (t_ik t_il - q_ikl),
//
// and the constraints enter as an augmented Lagrangian, (max(0, mu + rho h)^2 - mu^2) / (2 rho) for
// a constraint h <= 0. A block is one variable, so that its majoriser is the function itself: along
// p_ik the curvature is C |x_i|^2 and rho for each constraint that is violated or pressed, along
// q_ikl it is C / gamma and rho likewise. Both are piecewise quadratic and minimised exactly.
//
// Active sets. A row holds its true labels and the labels that the search let in; all others stay
// at their truth, zero. What the search asks of label l is whether the loss grows as p_l leaves
// zero and the q_l. of the row follow as is best for them:
//
//   w_l'x + 1 + sum_{m: p_m = 1} V_lm + sum_{m: 0 < p_m < 1} max(0, V_lm) > 0.
//
// Pairs of held labels are active unless they are inert, feasible at the truth and not drawn away
// from it; those begin with multipliers that keep them there, V > 0 split over the ends that could
// let q rise, V < 0 on the lower bound. Two labels that are worth it only together escape this
// search; `certify` finds them, since it solves the linear program over all labels.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
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
#include "sublearn/search/score_board.hpp"
#include "sublearn/solvers/pairwise_active.hpp"
#include "sublearn/solvers/pairwise_certificate.hpp"
#include "sublearn/solvers/pairwise_feasible.hpp"
#include "sublearn/solvers/pairwise_joining.hpp"
#include "sublearn/solvers/pairwise_sweeps.hpp"
#include "sublearn/solvers/pairwise_task.hpp"

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
        rho_(settings.rho),
        rng_(settings.seed),
        weights_(static_cast<std::size_t>(data.X.n_cols()), n_labels, T{0}, Rng(settings.seed)),
        pairs_(static_cast<std::size_t>(n_labels), n_labels, T{0}, Rng(settings.seed)),
        sweeps_(settings.C, pair_curvature()),
        feasible_(PairWeights<T>{pairs_}, settings.C, pair_curvature()),
        board_(n_labels),
        pair_board_(n_labels) {
    start();
  }
  PairwiseMultilabel(const PairwiseMultilabel&) = delete;  // feasible_ looks at pairs_
  PairwiseMultilabel& operator=(const PairwiseMultilabel&) = delete;

  /// One visit to every row.
  PairwisePass pass(const Monitor* monitor) {
    PairwisePass out;
    out.rho = rho_;
    sweeps_.violated = sweeps_.moved = 0.0;
    sweeps_.n_constraints = 0;
    std::vector<index_t> order(rows_.size());
    std::iota(order.begin(), order.end(), index_t{0});
    rng_.shuffle(std::span<index_t>(order));
    for (const index_t i : order) {
      if (monitor != nullptr && monitor->stop_requested()) break;
      visit(static_cast<std::size_t>(i));
    }
    const double n = std::max<double>(1.0, static_cast<double>(sweeps_.n_constraints));
    out.primal_residual = std::sqrt(sweeps_.violated / n);
    out.dual_residual = rho_ * std::sqrt(sweeps_.moved / n);
    for (const PairRow& row : rows_) {
      out.n_labels += static_cast<offset_t>(row.labels.size());
      out.n_pairs += static_cast<offset_t>(row.pairs.size());
    }
    out.work = std::exchange(work_, 0) + std::exchange(sweeps_.work, 0);
    return out;
  }

  /// Passes look at labels alone, as if V were zero, until `join_pairs` is called. Most labels
  /// enter their rows while that costs little; the dual value is no bound meanwhile.
  void leave_pairs_out() { has_pairs_ = false; }
  /// A stop on the way leaves them out.
  void join_pairs(const Monitor* monitor) {
    has_pairs_ = PairJoining<T>(pairs_, pair_curvature()).run(rows_, rng_, monitor);
    if (has_pairs_) return;
    for (PairRow& row : rows_) row.pairs.clear();
    pairs_.reset();
  }

  /// Solves the linear program of each row, and lets in what that program uses and the row lacks.
  PairwiseCertificate certify(const Monitor* monitor) {
    refresh();
    PairwiseCertificate out;
    out.dual = dual_value();
    const RelaxedLosses<T, I> losses(data_, weights_, pairs_);
    const double sum = losses.sum(rows_, settings_.n_threads, monitor);
    out.primal = settings_.C * sum + 0.5 * squared_norm();
    out.is_complete = monitor == nullptr || !monitor->stop_requested();
    return out;
  }

  OwnedRows<T> weights() const { return sorted_rows(weights_); }
  OwnedRows<T> pairs() const { return sorted_rows(pairs_); }  ///< symmetric
  double rho() const { return rho_; }

 private:
  static constexpr double kEnter = 1e-4;  ///< gain from which a label is let in

  double pair_curvature() const { return settings_.C / settings_.gamma; }

  /// The truth everywhere: all weights zero.
  void start() {
    rows_.resize(static_cast<std::size_t>(data_.X.n_rows()));
    squares_.resize(rows_.size());
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const auto truth = data_.labels.of(static_cast<offset_t>(i));
      rows_[i].labels.assign(truth.begin(), truth.end());
      rows_[i].p.assign(truth.size(), 1.0);
      rows_[i].n_true = truth.size();
      double sum = 0.0;
      for (const T x : data_.X.row(static_cast<offset_t>(i)).values) {
        sum += static_cast<double>(x) * static_cast<double>(x);
      }
      squares_[i] = sum;
    }
    if (rho_ > 0.0) return;
    // Scores are measured in margins, which are 1, and p moves by scores over C |x|^2.
    const double sum = std::accumulate(squares_.begin(), squares_.end(), 0.0);
    rho_ = 1.0 + settings_.C * sum / std::max<double>(1.0, static_cast<double>(rows_.size()));
  }

  void visit(std::size_t i) {
    PairRow& row = rows_[i];
    search(i);
    if (has_pairs_) work_ += admit_pairs(row, visit_, PairWeights<T>{pairs_});
    visit_.remember(row);
    sweeps_.run(row, visit_, squares_[i], rho_);
    if (has_pairs_) feasible_.take(row, visit_, squares_[i]);
    move_weights(i);
    shrink(row, new_slot_);
  }

  // ---- search ----------------------------------------------------------------------------------

  /// Scores of the slots, and the labels with most to gain as new slots.
  void search(std::size_t i) {
    PairRow& row = rows_[i];
    const auto x = data_.X.row(static_cast<offset_t>(i));
    for (std::size_t k = 0; k < x.size(); ++k) {
      const auto d = static_cast<std::size_t>(x.ids[k]);
      weights_.add_to(d, x.values[k], board_);
      work_ += weights_.n_weights(d);
    }
    if (has_pairs_) add_pair_scores(row);
    visit_.score.clear();
    visit_.pull.clear();
    for (std::size_t s = 0; s < row.labels.size(); ++s) take_score(row.labels[s]);
    best_.start(row.most_entries());
    const T* scores = board_.scores();
    const T* pair_scores = pair_board_.scores();
    for (index_t l = 0; l < n_labels_; ++l) {
      const T gain = scores[l] + pair_scores[l] + T{1};
      if (gain > static_cast<T>(kEnter)) best_.offer(l, gain);
    }
    work_ += n_labels_;
    for (const auto& found : best_.finish()) {
      row.labels.push_back(found.id);
      row.p.push_back(0.0);
      take_score(found.id);
    }
    board_.clear();
    pair_board_.clear();
  }

  void take_score(index_t label) {
    const auto pairs = static_cast<double>(pair_board_[label]);
    visit_.score.push_back(static_cast<double>(board_.take(label)));
    visit_.pull.push_back(visit_.score.back() + pairs);
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
    for (std::size_t s = 0; s < row.labels.size(); ++s) {
      const double change = row.p[s] - visit_.before[s];
      if (change == 0.0) continue;
      changes_.push_back({weights_.place(row.labels[s]), static_cast<T>(-settings_.C * change)});
    }
    const auto x = data_.X.row(static_cast<offset_t>(i));
    for (std::size_t k = 0; k < x.size() && !changes_.empty(); ++k) {
      weights_.add(static_cast<std::size_t>(x.ids[k]), changes_, x.values[k]);
    }
    work_ += static_cast<offset_t>(x.size() * changes_.size());
    for (std::size_t e = 0; e < row.pairs.size(); ++e) {
      const double change = static_cast<double>(row.pairs[e].q) - visit_.starts[e];
      if (change != 0.0) add_pair(pairs_, row, row.pairs[e], -pair_curvature() * change);
    }
  }

  // ---- values ----------------------------------------------------------------------------------

  /// V made anew, free of rounding that had gathered.
  void refresh() {
    pairs_.reset();
    for (const PairRow& row : rows_) {
      for (const ActivePair& pair : row.pairs) {
        const double change = pair.q - row.truth(pair);
        if (change != 0.0) add_pair(pairs_, row, pair, -pair_curvature() * change);
      }
    }
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
  double rho_;
  Rng rng_;
  HashedRows<T> weights_, pairs_;  ///< W by feature, V by label
  RowSweeps sweeps_;
  FeasibleStep<PairWeights<T>> feasible_;
  std::vector<PairRow> rows_;
  std::vector<double> squares_;  ///< |x|^2 of each row

  RowVisit visit_;
  ScoreBoard<T> board_, pair_board_;
  TopK<T> best_;
  std::vector<std::uint32_t> new_slot_;
  std::vector<typename HashedRows<T>::Change> changes_;
  offset_t work_ = 0;
};

}  // namespace sublearn
