// PPD-Sparse (000 section 2.2)
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "sublearn/core/lanes.hpp"
#include "sublearn/core/monitor.hpp"
#include "sublearn/core/rng.hpp"
#include "sublearn/core/types.hpp"
#include "sublearn/core/views.hpp"
#include "sublearn/prox/soft_threshold.hpp"
#include "sublearn/search/inverted_lists.hpp"
#include "sublearn/solvers/ppd_sweep.hpp"

namespace sublearn {

struct PPDSettings {
  double l1 = 0.1;
  double tol = 1e-2;
  int max_iter = 100;
  bool learn_bias = false;
  int epochs = 5;
  double inner = 0.3;
  double growth = 1.0;
  int min_room = 100;
};

struct LabelReport {
  double primal = 0.0;
  double dual = 0.0;
  std::int64_t work = 0;
  std::int64_t work_search = 0;
  index_t nnz_primal = 0;
  index_t nnz_dual = 0;
  index_t peak = 0;
  int n_iter = 0;
  int n_epochs = 0;
  bool converged = false;
};

template <class Loss, class T, class I>
class PPDBlockSolver {
 public:
  static constexpr int L = kLanes<T>;
  using Reports = std::array<LabelReport, L>;

  PPDBlockSolver(const CsrView<T, I>& X, const InvertedLists<T>& lists,
                 std::span<const T> row_norms, Loss loss, PPDSettings settings)
      : X_(X),
        lists_(lists),
        row_norms_(row_norms),
        loss_(loss),
        settings_(settings),
        v_(static_cast<std::size_t>(X.n_cols()), Pack<T>::all(0)),
        scores_(static_cast<std::size_t>(X.n_rows()), Pack<T>::all(0)),
        is_touched_(static_cast<std::size_t>(X.n_cols())),
        slot_of_(static_cast<std::size_t>(X.n_rows()), -1) {}

  Reports solve(std::span<const std::span<const index_t>> positives, Rng rng,
                const Monitor& monitor) {
    start(positives, rng);
    int iter = 0;
    while (live_ != 0 && iter < settings_.max_iter && !monitor.stop_requested()) {
      ++iter;
      correct();
      search();
      certify(iter);
      shrink();
      enter_violators();
    }
    return reports_;
  }

  template <class F>
  void for_each_weight(int lane, F f) const {
    for (index_t j : touched_) {
      const T w = soft_threshold(v_[j][lane], static_cast<T>(settings_.l1));
      if (w != 0) f(j, w);
    }
  }
  double bias(int lane) const { return state_.bias[lane]; }

  [[gnu::noinline]] void reset() {
    for (index_t j : touched_) {
      v_[j] = Pack<T>::all(0);
      is_touched_[j] = 0;
    }
    touched_.clear();
    for (const auto& a : active_) slot_of_[a.row] = -1;
    active_.clear();
    alpha_.clear();
    curvature_.clear();
  }

 private:
  [[gnu::noinline]] void start(std::span<const std::span<const index_t>> positives, Rng rng) {
    rng_ = rng;
    reports_ = {};
    live_ = 0;
    state_ = SweepState<T>();
    state_.bias = Pack<T>::all(settings_.learn_bias ? T{0} : T{-1});
    state_.l1 = static_cast<T>(settings_.l1);
    state_.dual_diagonal = static_cast<T>(loss_.dual_diagonal());
    state_.upper_bound = static_cast<T>(loss_.upper_bound());
    state_.learn_bias = settings_.learn_bias;
    worst_violation_ = Pack<T>::all(1);
    size_.fill(0);
    for (int l = 0; l < (int)positives.size(); ++l) {
      if (positives[l].empty()) continue;
      live_ |= LaneMask{1} << l;
      for (index_t i : positives[l]) enter(i, l, true);
    }
  }

  [[gnu::noinline]] void enter(index_t i, int lane, bool positive) {
    const LaneMask bit = LaneMask{1} << lane;
    index_t slot = slot_of_[i];
    if (slot < 0) {
      slot = slot_of_[i] = static_cast<index_t>(active_.size());
      active_.push_back({i, 0, 0, 0});
      alpha_.push_back(Pack<T>::all(0));
      curvature_.push_back(row_norms_[i] + (settings_.learn_bias ? T{1} : T{0}) + state_.dual_diagonal);
      const auto row = X_.row(i);
      for (std::size_t p = 0; p < row.size(); ++p) {
        const auto j = static_cast<index_t>(row.ids[p]);
        if (!is_touched_[j]) {
          is_touched_[j] = 1;
          touched_.push_back(j);
        }
      }
    }
    active_[slot].member |= bit;
    if (positive) active_[slot].positive |= bit;
    ++size_[lane];
  }

  [[gnu::noinline]] void correct() {
    order_.clear();
    for (std::size_t s = 0; s < active_.size(); ++s) {
      active_[s].awake = active_[s].member & live_;
      if (active_[s].awake) order_.push_back((index_t)s);
    }
    state_.v = v_.data();
    state_.alpha = alpha_.data();
    state_.curvature = curvature_.data();
    state_.shrink_above = Pack<T>::all(std::numeric_limits<T>::infinity());
    state_.work = 0;
    for (int epoch = 0; epoch < settings_.epochs; ++epoch) {
      rng_.shuffle(std::span<index_t>(order_));
      state_.worst = Pack<T>::all(0);
      sweep(X_, active_, order_, state_);
      bool done = true;
      for_each_lane(live_, [&](int l) {
        ++reports_[l].n_epochs;
        done = done && state_.worst[l] <= settings_.inner * worst_violation_[l];
      });
      state_.shrink_above = state_.worst;
      if (done) break;
    }
    for_each_lane(live_, [&](int l) { reports_[l].work += state_.work / std::popcount(live_); });
  }

  [[gnu::noinline]] void search() {
    std::fill(scores_.begin(), scores_.end(), Pack<T>::all(0));
    norm1_.fill(0);
    norm2_.fill(0);
    nnz_.fill(0);
    std::int64_t visited = 0;
    for (index_t j : touched_) {
      Pack<T> w = Pack<T>::all(0);
      bool some = false;
      for_each_lane(live_, [&](int l) {
        const T x = soft_threshold(v_[j][l], state_.l1);
        if (x == 0) return;
        w.set(l, x);
        some = true;
        norm1_[l] += std::abs(x);
        norm2_[l] += double(x) * x;
        ++nnz_[l];
      });
      if (!some) continue;
      add_list(lists_.list(j), w, scores_.data());
      visited += lists_.length(j);
    }
    for_each_lane(live_, [&](int l) {
      reports_[l].work += visited / std::popcount(live_);
      reports_[l].work_search += visited / std::popcount(live_);
    });
  }

  void certify(int iter) {
    const LaneMask live = live_;
    std::array<double, L> primal{}, dual{};
    Pack<T> threshold = Pack<T>::all(std::numeric_limits<T>::infinity());
    for_each_lane(live, [&](int l) {
      const double bias = state_.bias[l];
      const double bias2 = settings_.learn_bias ? bias * bias : 0.0;
      primal[l] = 0.5 * (norm2_[l] + bias2) + settings_.l1 * norm1_[l];
      dual[l] = -0.5 * (norm2_[l] + bias2);
      threshold.set(l, -1 - state_.bias[l]);
      reports_[l].nnz_dual = 0;
      violators_[l].clear();
    });
    for (std::size_t s = 0; s < active_.size(); ++s) {
      const ActiveRow& a = active_[s];
      for_each_lane(a.member & live, [&](int l) {
        const double alpha = alpha_[s][l];
        const double y = (a.positive >> l & 1) ? 1.0 : -1.0;
        if (alpha > 0) {
          ++reports_[l].nnz_dual;
          dual[l] += loss_.conjugate_term(alpha);
          if (!settings_.learn_bias) dual[l] -= alpha * y * state_.bias[l];
        }
        if (y > 0) primal[l] += loss_.value(scores_[a.row][l] + state_.bias[l]);
      });
    }
    hits_.clear();
    append_hits(std::span<const Pack<T>>(scores_), threshold, hits_);
    worst_violation_ = Pack<T>::all(0);
    for (const Hit& hit : hits_) {
      const index_t slot = slot_of_[hit.row];
      const LaneMask positive = slot < 0 ? 0 : active_[slot].positive;
      const LaneMask member = slot < 0 ? 0 : active_[slot].member;
      for_each_lane(hit.lanes & ~positive, [&](int l) {
        const T score = scores_[hit.row][l];
        primal[l] += loss_.value(-(score + state_.bias[l]));
        if (member >> l & 1) return;
        violators_[l].push_back({score, hit.row});
        worst_violation_.set(l, std::max(worst_violation_[l], score - threshold[l]));
      });
    }
    for_each_lane(live, [&](int l) {
      reports_[l].n_iter = iter;
      reports_[l].primal = primal[l];
      reports_[l].dual = dual[l];
      reports_[l].nnz_primal = nnz_[l];
      reports_[l].peak = std::max<index_t>(reports_[l].peak, size_[l]);
      if (primal[l] - dual[l] <= settings_.tol * primal[l]) {
        reports_[l].converged = true;
        live_ &= ~(LaneMask{1} << l);
      }
    });
  }

  [[gnu::noinline]] void shrink() {
    std::size_t kept = 0;
    for (std::size_t s = 0; s < active_.size(); ++s) {
      ActiveRow a = active_[s];
      for_each_lane(a.member & ~a.positive, [&](int l) {
        if (alpha_[s][l] == 0 && scores_[a.row][l] <= -1 - state_.bias[l]) {
          a.member &= ~(LaneMask{1} << l);
          --size_[l];
        }
      });
      if (a.member == 0) {
        slot_of_[a.row] = -1;
        continue;
      }
      active_[kept] = a;
      alpha_[kept] = alpha_[s];
      curvature_[kept] = curvature_[s];
      slot_of_[a.row] = static_cast<index_t>(kept++);
    }
    active_.resize(kept);
    alpha_.resize(kept);
    curvature_.resize(kept);
  }

  [[gnu::noinline]] void enter_violators() {
    for_each_lane(live_, [&](int l) {
      auto& rows = violators_[l];
      const auto room = std::max<std::size_t>(settings_.min_room, (std::size_t)(settings_.growth * size_[l]));
      if (rows.size() > room) {
        std::nth_element(rows.begin(), rows.begin() + room, rows.end(), [](const Violator& a, const Violator& b) {
          return a.score > b.score || (a.score == b.score && a.row < b.row);
        });
        rows.resize(room);
      }
      for (const Violator& violator : rows) enter(violator.row, l, false);
    });
  }

  CsrView<T, I> X_;
  const InvertedLists<T>& lists_;
  std::span<const T> row_norms_;
  Loss loss_;
  PPDSettings settings_;
  Rng rng_{0};
  Reports reports_;
  LaneMask live_ = 0;
  SweepState<T> state_;
  Pack<T> worst_violation_;
  std::array<double, L> norm1_, norm2_;
  std::array<index_t, L> nnz_, size_;
  struct Violator {
    T score;
    index_t row;
  };
  std::array<std::vector<Violator>, L> violators_;
  std::vector<Pack<T>> v_, scores_, alpha_;
  std::vector<T> curvature_;
  std::vector<char> is_touched_;
  std::vector<index_t> slot_of_, touched_, order_;
  std::vector<Hit> hits_;
  std::vector<ActiveRow> active_;
};

}  // namespace sublearn
