// A visit to a row in solvers/pairwise/solver.hpp: its shares p, given those of all other rows.
//
// With c = C / gamma and the rests that the other rows leave of a pair, A = S - sum min(p_k, p_l)
// and B = S - sum max(0, p_k + p_l - 1) over them, the row maximises
//
//   sum_k wish_k (p_k - p0_k) - K/2 |p - p0|^2
//     - c/2 sum_kl [ max(0, A - min(p_k, p_l))^2 + max(0, max(0, p_k + p_l - 1) - B)^2 ]
//
// with K = C |x|^2, which has kinks where p_k = p_l or p_k + p_l = 1. Each square is the minimum
// over multipliers of something smooth in p:
//
//   -c/2 max(0, A - min(p_k, p_l))^2 = min over a, b >= 0 of
//       (a + b)^2 / 2c - (a + b) A + a p_k + b p_l                        (attraction, V = a + b)
//   -c/2 max(0, max(0, e) - B)^2 = min over z >= 0 of
//       max(z, -c B)^2 / 2c + max(z, -c B) B - z e,   e = p_k + p_l - 1   (repulsion, V = -z)
//
// (the first maximum without the bound where B >= 0). Given the multipliers, p_k is what its label
// is drawn to, cut to [0, 1]; so they are minimised one at a time, each in closed form. It is
// coordinate descent as in algorithm 3 of Yen et al., NIPS 2016, on multipliers instead of on
// shares of pairs.
//
// Used by: solvers/pairwise/solver.hpp.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sublearn/core/types.hpp"
#include "sublearn/search/pair_table.hpp"
#include "sublearn/solvers/pairwise/task.hpp"

namespace sublearn {

/// Of a pair, summed over all rows: what t_k t_l exceeds min(p_k, p_l) and max(0, p_k + p_l - 1)
/// by.
template <class T>
struct PairRest {
  T above{0}, below{0};

  /// V, with c = C / gamma. The two never count together, for the maximum is below the minimum.
  double weight(double c) const {
    return c *
           (std::max(0.0, static_cast<double>(above)) + std::min(0.0, static_cast<double>(below)));
  }
};

template <class T>
class PairStep {
 public:
  offset_t work = 0;

  explicit PairStep(double pair_curvature) : c_(pair_curvature) {}

  /// Moves p of a row, so that the dual does not fall; false if it found no such step. `wish` is
  /// w'x + 1 - 2 t of each slot.
  bool take(PairRow& row, std::span<const double> wish, double curvature,
            const PairTable<PairRest<T>>& rests) {
    curvature_ = curvature;
    K_ = std::max(curvature, kLeastCurvature);
    n_ = row.size();
    gather(row, rests);
    draw(row, wish);
    fine_ = kFine;
    most_sweeps_ = kMostSweeps;
    bool is_higher = false;
    for (int trial = 0; trial < kMostTrials; ++trial) {
      find_point(row);
      is_higher = climb(row, wish);
      if (is_higher || moved_ <= kFinest) break;
      fine_ = std::max(0.01 * fine_, kFinest);
      most_sweeps_ *= 3;
    }
    work += static_cast<offset_t>(n_ * n_);
    return is_higher;
  }

 private:
  static constexpr int kMostRounds = 3;
  static constexpr int kMostSweeps = 10;  ///< in a round
  /// Multipliers that are too rough point to where the dual is lower. They are refined then, and
  /// the row keeps all of them for its next visit.
  static constexpr int kMostTrials = 3;
  static constexpr int kMostHalvings = 6;
  static constexpr double kFine = 1e-3;  ///< of multipliers, which are compared with a margin of 1
  static constexpr double kFinest = 1e-6;  ///< where rounding of multipliers begins
  /// A row with few features, or none, bends hardly or not at all; a step that is too short is
  /// still one that leads up.
  static constexpr double kLeastCurvature = 0.1;
  static constexpr std::uint8_t kAttracts = 1, kRepels = 2;

  /// Where the row is best given its pairs, as far as sweeps find it.
  void find_point(PairRow& row) {
    for (int round = 0; round < kMostRounds; ++round) {
      sweep(row);
      for (std::size_t s = 0; s < n_; ++s) point_[s] = cut(drawn_[s]);
      if (round + 1 == kMostRounds || !admit_violated(row)) break;
    }
  }

  static double cut(double p) { return std::clamp(p, 0.0, 1.0); }
  static double joint(double p, double r) { return std::max(0.0, p + r - 1.0); }

  /// Rests without this row, by slots a > b; pairs with a weight get multipliers.
  void gather(PairRow& row, const PairTable<PairRest<T>>& rests) {
    above_.resize(n_ * n_);
    below_.resize(n_ * n_);
    linked_.assign(n_ * n_, 0);
    for (const Attraction& pair : row.attractions) linked_[at(pair.ends)] |= kAttracts;
    for (const Repulsion& pair : row.repulsions) linked_[at(pair.ends)] |= kRepels;
    for (std::size_t a = 0; a < n_; ++a) {
      const auto& of_label = rests.row(row.labels[a]);
      const double p = row.p[a];
      for (std::size_t b = 0; b < a; ++b) {
        const PairRest<T> rest = of_label[row.labels[b]];
        const double r = row.p[b];
        above_[a * n_ + b] = static_cast<T>(rest.above + std::min(p, r));
        below_[a * n_ + b] = static_cast<T>(rest.below + joint(p, r));
        if (rest.above > T{0}) {
          attract(row, a, b, p < r ? 1.0 : p > r ? 0.0 : 0.5, rest.weight(c_));
        } else if (rest.below < T{0} && p + r >= 1.0) {
          repel(row, a, b, -rest.weight(c_));
        }
      }
    }
  }

  /// `share` of the weight goes to the first end: all of it where p is the smaller one.
  void attract(PairRow& row, std::size_t a, std::size_t b, double share, double weight) {
    if ((linked_[a * n_ + b] & kAttracts) != 0) return;
    linked_[a * n_ + b] |= kAttracts;
    row.attractions.push_back(
        {{static_cast<std::uint32_t>(a), static_cast<std::uint32_t>(b)},
         {static_cast<float>(share * weight), static_cast<float>((1.0 - share) * weight)}});
  }

  void repel(PairRow& row, std::size_t a, std::size_t b, double weight) {
    if ((linked_[a * n_ + b] & kRepels) != 0) return;
    linked_[a * n_ + b] |= kRepels;
    row.repulsions.push_back({{static_cast<std::uint32_t>(a), static_cast<std::uint32_t>(b)},
                              static_cast<float>(weight)});
  }

  std::size_t at(const std::uint32_t (&ends)[2]) const { return ends[0] * n_ + ends[1]; }

  /// Where wishes and multipliers draw each p, not yet cut to [0, 1].
  void draw(const PairRow& row, std::span<const double> wish) {
    drawn_.resize(n_);
    point_.resize(n_);
    for (std::size_t s = 0; s < n_; ++s) drawn_[s] = row.p[s] + wish[s] / K_;
    for (const Attraction& pair : row.attractions) {
      for (int end = 0; end < 2; ++end) drawn_[pair.ends[end]] += pair.pull[end] / K_;
    }
    for (const Repulsion& pair : row.repulsions) {
      for (const auto end : pair.ends) drawn_[end] -= pair.push / K_;
    }
  }

  void sweep(PairRow& row) {
    for (int n = 0; n < most_sweeps_; ++n) {
      moved_ = 0.0;
      for (Attraction& pair : row.attractions) {
        pull(pair, 0);
        pull(pair, 1);
      }
      for (Repulsion& pair : row.repulsions) push(pair);
      work += static_cast<offset_t>(2 * row.attractions.size() + row.repulsions.size());
      if (moved_ <= fine_) return;
    }
  }

  /// One half of an attraction: the root of a / c + b / c - A + p_k(a), which increases with a.
  void pull(Attraction& pair, int end) {
    double& drawn = drawn_[pair.ends[end]];
    const double before = pair.pull[end], base = drawn - before / K_;
    const double lack = static_cast<double>(above_[at(pair.ends)]) - pair.pull[1 - end] / c_;
    double a = 0.0;
    if (cut(base) < lack) {
      a = lack * c_;  // where p stays at 0
      if (base + a / K_ > 0.0) a = (lack - base) / (1.0 / c_ + 1.0 / K_);
      if (base + a / K_ > 1.0) a = (lack - 1.0) * c_;
    }
    pair.pull[end] = static_cast<float>(a);
    drawn = base + pair.pull[end] / K_;
    moved_ = std::max(moved_, std::abs(pair.pull[end] - before));
  }

  /// The root of max(0, z / c + B) - (p_k(z) + p_l(z) - 1), which increases with z and is linear
  /// between a few kinks; the first term without the bound where B >= 0.
  void push(Repulsion& pair) {
    const double B = static_cast<double>(below_[at(pair.ends)]), before = pair.push;
    double& first = drawn_[pair.ends[0]];
    double& second = drawn_[pair.ends[1]];
    const double base[2] = {first + before / K_, second + before / K_};
    const auto excess = [&](double z) {
      const double rest = B < 0.0 ? std::max(0.0, z / c_ + B) : z / c_ + B;
      return rest - (cut(base[0] - z / K_) + cut(base[1] - z / K_) - 1.0);
    };
    double z = 0.0, low = 0.0, high = c_ * (1.0 - B), at_low = excess(0.0);
    if (at_low < 0.0) {
      double at_high = excess(high);
      for (const double kink :
           {K_ * base[0], K_ * base[1], K_ * (base[0] - 1.0), K_ * (base[1] - 1.0), -c_ * B}) {
        if (kink <= low || kink >= high) continue;
        const double there = excess(kink);
        (there >= 0.0 ? high : low) = kink;
        (there >= 0.0 ? at_high : at_low) = there;
      }
      z = at_high > at_low ? low - at_low * (high - low) / (at_high - at_low) : high;
    }
    pair.push = static_cast<float>(z);
    first = base[0] - pair.push / K_;
    second = base[1] - pair.push / K_;
    moved_ = std::max(moved_, std::abs(pair.push - before));
  }

  /// Pairs whose squares the point would raise get multipliers; whether there are any.
  bool admit_violated(PairRow& row) {
    const std::size_t n_before = row.attractions.size() + row.repulsions.size();
    for (std::size_t a = 0; a < n_; ++a) {
      const double p = point_[a];
      for (std::size_t b = 0; b < a; ++b) {
        const double r = point_[b], both = joint(p, r);
        if (above_[a * n_ + b] - std::min(p, r) > fine_) attract(row, a, b, 0.5, 0.0);
        if (both > 0.0 && both - below_[a * n_ + b] > fine_) repel(row, a, b, 0.0);
      }
    }
    return row.attractions.size() + row.repulsions.size() > n_before;
  }

  /// Towards the point that the sweeps found, half as far while the dual would fall; false if it
  /// would even close by.
  bool climb(PairRow& row, std::span<const double> wish) {
    const double start = value(row, wish, 0.0);
    double step = 1.0;
    int n_halvings = 0;
    while (value(row, wish, step) < start && ++n_halvings <= kMostHalvings) step *= 0.5;
    if (n_halvings > kMostHalvings) return false;
    for (std::size_t s = 0; s < n_; ++s) row.p[s] += step * (point_[s] - row.p[s]);
    return true;
  }

  double value(const PairRow& row, std::span<const double> wish, double step) {
    trial_.resize(n_);
    double gain = 0.0, squares = 0.0;
    for (std::size_t s = 0; s < n_; ++s) {
      const double change = step * (point_[s] - row.p[s]);
      gain += wish[s] * change - 0.5 * curvature_ * change * change;
      trial_[s] = row.p[s] + change;
    }
    for (std::size_t a = 0; a < n_; ++a) {
      const T* above = above_.data() + a * n_;
      const T* below = below_.data() + a * n_;
      const double p = trial_[a];
      for (std::size_t b = 0; b < a; ++b) {
        const double r = trial_[b];
        const double lack = std::max(0.0, static_cast<double>(above[b]) - std::min(p, r));
        const double excess = std::max(0.0, joint(p, r) - static_cast<double>(below[b]));
        squares += lack * lack + excess * excess;
      }
    }
    return gain - 0.5 * c_ * squares;
  }

  double c_, curvature_ = 1.0, K_ = 1.0;
  std::size_t n_ = 0;
  double moved_ = 0.0, fine_ = kFine;
  int most_sweeps_ = kMostSweeps;
  std::vector<T> above_, below_;
  std::vector<std::uint8_t> linked_;
  std::vector<double> drawn_, point_, trial_;
};

}  // namespace sublearn
