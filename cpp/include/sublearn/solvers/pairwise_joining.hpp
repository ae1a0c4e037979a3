// Pairs of labels after passes without them: a feasible start with p as it is.
//
// With p fixed the dual is largest where V = C/gamma sum_i (t_k t_l - q_i) is smallest, each q_i
// between max(0, p_k + p_l - 1) and min(p_k, p_l). Rows that have both labels must give some of
// their q up, and others may take as much: one row after another takes what is left, so that few
// of them have to hold the pair. Where V = 0 is reached, the dual value is that of the labels
// alone.
//
// Used by: pairwise_multilabel.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "sublearn/core/monitor.hpp"
#include "sublearn/core/rng.hpp"
#include "sublearn/core/types.hpp"
#include "sublearn/search/hashed_rows.hpp"
#include "sublearn/solvers/pairwise_active.hpp"
#include "sublearn/solvers/pairwise_task.hpp"

namespace sublearn {

template <class T>
class PairJoining {
 public:
  /// V, which is zero, and C / gamma.
  PairJoining(HashedRows<T>& pairs, double curvature)
      : pairs_(pairs), value_{pairs}, curvature_(curvature) {}

  /// False if it was stopped; q is then anywhere.
  bool run(std::span<PairRow> rows, Rng& rng, const Monitor* monitor) {
    const auto is_stopped = [&] { return monitor != nullptr && monitor->stop_requested(); };
    for (PairRow& row : rows) {
      if (is_stopped()) return false;
      number_pairs(row);
      for_each_pair(row, [&](std::size_t a, std::size_t b) {
        const double q = row.truth(a) * row.truth(b);
        move(row, a, b, q, bounded(row, a, b, q));
      });
    }
    std::vector<index_t> order(rows.size());
    std::iota(order.begin(), order.end(), index_t{0});
    for (int round = 0; round < kRounds; ++round) {
      rng.shuffle(std::span<index_t>(order));
      for (const index_t i : order) {
        if (is_stopped()) return false;
        take(rows[static_cast<std::size_t>(i)]);
      }
    }
    return true;
  }

 private:
  static constexpr int kRounds = 2;
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  template <class Visit>
  static void for_each_pair(const PairRow& row, Visit&& visit) {
    for (std::size_t a = 0; a < row.labels.size(); ++a) {
      for (std::size_t b = a + 1; b < row.labels.size(); ++b) visit(a, b);
    }
  }

  static double bounded(const PairRow& row, std::size_t a, std::size_t b, double q) {
    return static_cast<float>(
        std::clamp(q, std::max(0.0, row.p[a] + row.p[b] - 1.0), std::min(row.p[a], row.p[b])));
  }

  /// q <- what makes V zero, as far as the bounds allow.
  void take(PairRow& row) {
    number_pairs(row);
    for_each_pair(row, [&](std::size_t a, std::size_t b) {
      if (row.p[a] <= 0.0 || row.p[b] <= 0.0) return;
      const double v = value_(row, a, b);
      if (v == 0.0) return;
      const std::uint32_t e = number_[a * row.labels.size() + b];
      const double q = e == kNone ? row.truth(a) * row.truth(b) : row.pairs[e].q;
      move(row, a, b, q, bounded(row, a, b, q + v / curvature_));
    });
  }

  /// Which active pair two slots are.
  void number_pairs(const PairRow& row) {
    const std::size_t n = row.labels.size();
    number_.assign(n * n, kNone);
    for (std::uint32_t e = 0; e < row.pairs.size(); ++e) {
      number_[row.pairs[e].ends[0] * n + row.pairs[e].ends[1]] = e;
    }
  }

  void move(PairRow& row, std::size_t a, std::size_t b, double from, double to) {
    if (from == to) return;
    std::uint32_t& e = number_[a * row.labels.size() + b];
    if (e == kNone) {
      e = static_cast<std::uint32_t>(row.pairs.size());
      row.pairs.push_back({{static_cast<std::uint32_t>(a), static_cast<std::uint32_t>(b)},
                           static_cast<float>(from),
                           {0.0F, 0.0F},
                           0.0F});
    }
    row.pairs[e].q = static_cast<float>(to);
    add_pair(pairs_, row, row.pairs[e], -curvature_ * (to - from));
  }

  HashedRows<T>& pairs_;
  PairWeights<T> value_;
  double curvature_;
  std::vector<std::uint32_t> number_;
};

}  // namespace sublearn
