// The penalty of models whose features come in groups that enter together,
//
//   p(w) = sum_g  level_g ||w_g||_2 + within ||w_g||_1 + l2/2 ||w_g||_2^2,
//
// the groups disjoint; with `within` above 0 this is the sparse-group lasso. Its parts: what
// solvers ask about one group, whose weights and gradient are handed over as positions of two
// vectors.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>

#include "sublearn/core/types.hpp"
#include "sublearn/prox/soft_threshold.hpp"

namespace sublearn {

struct GroupPenalty {
  std::span<const index_t> starts;   ///< of the groups in `members`, and its end
  std::span<const index_t> members;  ///< features, group by group
  std::span<const double> levels;    ///< above 0, one for each group
  double within = 0.0;
  double l2 = 0.0;

  std::size_t size() const { return levels.size(); }

  std::span<const index_t> features(offset_t g) const {
    const auto begin = static_cast<std::size_t>(starts[g]);
    return members.subspan(begin, static_cast<std::size_t>(starts[g + 1]) - begin);
  }

  /// p_g(w).
  double value(offset_t g, std::span<const double> w) const {
    double squares = 0.0, sizes = 0.0;
    for (const double t : w) {
      squares += t * t;
      sizes += std::abs(t);
    }
    return level(g) * std::sqrt(squares) + within * sizes + 0.5 * l2 * squares;
  }

  /// value(g, to) - value(g, from), exact for a small step: the difference of two close numbers is
  /// not.
  double change(offset_t g, std::span<const double> from, std::span<const double> to) const {
    double moved = 0.0, sizes = 0.0, before = 0.0, after = 0.0;
    for (std::size_t k = 0; k < from.size(); ++k) {
      moved += (to[k] - from[k]) * (to[k] + from[k]);
      sizes += std::abs(to[k]) - std::abs(from[k]);
      before += from[k] * from[k];
      after += to[k] * to[k];
    }
    const double norms = std::sqrt(before) + std::sqrt(after);
    const double longer = norms > 0.0 ? moved / norms : 0.0;
    return level(g) * longer + within * sizes + 0.5 * l2 * moved;
  }

  /// Norm of what the l1 part leaves of a gradient times `scale`: up to level_g, the group may
  /// stay at 0.
  double pull(std::span<const double> gradient, double scale = 1.0) const {
    double squares = 0.0;
    for (const double v : gradient) {
      const double left = soft_threshold(scale * v, within);
      squares += left * left;
    }
    return std::sqrt(squares);
  }

  /// Norm of the least subgradient of  <gradient, w> + p_g(w): 0 exactly at a minimiser.
  double violation(offset_t g, std::span<const double> w, std::span<const double> gradient) const {
    double squares = 0.0;
    for (const double t : w) squares += t * t;
    if (squares == 0.0) return std::max(pull(gradient) - level(g), 0.0);
    const double slope = l2 + level(g) / std::sqrt(squares);
    double rest = 0.0;
    for (std::size_t k = 0; k < w.size(); ++k) {
      const double at = gradient[k] + slope * w[k];
      const double left =
          w[k] == 0.0 ? soft_threshold(at, within) : at + (w[k] > 0.0 ? within : -within);
      rest += left * left;
    }
    return std::sqrt(rest);
  }

  /// Largest factor in [0, most] by which a gradient must shrink for p_g* to be finite at it. The
  /// pull is convex in the factor and above level_g at the start, so that Newton's steps fall
  /// towards the answer and do not pass it; the last bits are taken off.
  double feasible_scale(offset_t g, std::span<const double> gradient, double most) const {
    if (l2 > 0.0) return most;
    double scale = most;
    for (int step = 0; step < kMostSteps; ++step) {
      const double found = pull(gradient, scale);
      if (found <= level(g)) return scale;
      double slope = 0.0;
      for (const double v : gradient) slope += v * soft_threshold(scale * v, within);
      const double next = scale - (found - level(g)) * found / slope;
      scale = next < scale * kNearly ? next : scale * kNearly;
    }
    return 0.0;
  }

  /// p_g*(scale * gradient), at a feasible scale.
  double conjugate(offset_t g, std::span<const double> gradient, double scale) const {
    const double excess = pull(gradient, scale) - level(g);
    return excess > 0.0 && l2 > 0.0 ? excess * excess / (2.0 * l2) : 0.0;
  }

  double level(offset_t g) const { return levels[static_cast<std::size_t>(g)]; }

 private:
  static constexpr int kMostSteps = 100;
  static constexpr double kNearly = 1.0 - 4e-16;
};

}  // namespace sublearn
