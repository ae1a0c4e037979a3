// Which coordinates an outer iteration of LHAC may move: the seven strategies of section 5.7.1 of
// Tang's thesis and one more, from the four sets of (5.4.1),
//
//   Z1  x != 0, |gradient| >= l1      Z2  x != 0, |gradient| < l1
//   Z3  x == 0, |gradient| >  l1      Z4  x == 0, |gradient| <= l1,
//
// and the size P of the least subgradient. Z4 is never active. The gradient is that of all that is
// smooth, l2 x included. A coordinate whose penalty has no kink at 0, an intercept for instance,
// has no zero to stay at or to return to: it is in Z2 wherever it is.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

#include "sublearn/core/types.hpp"
#include "sublearn/prox/separable.hpp"

namespace sublearn {

enum class LhacStrategy {
  standard,          ///< STD: Z1, Z2, Z3
  standard_inexact,  ///< STD-EP: of Z3 only P > epsilon
  standard_rough,    ///< STD-EPA: the same with a large epsilon
  greedy,            ///< GRDY: STD, largest P first
  greedy_cut,        ///< GRDY-CTZ: as many as Z1 and Z2, largest P first
  greedy_inexact,    ///< GRDY-EP: STD-EP, largest P first
  greedy_adaptive,   ///< GRDY-AD, step 8 of algorithm 20: Z2, and as many of Z1 and Z3, all of them
                     ///< once they are at most eta |Z2|
  greedy_half,       ///< the same, but at least half of Z1 and Z3, and ten
};

/// What the strategies are to be told.
struct StrategySettings {
  LhacStrategy strategy = LhacStrategy::greedy_half;
  double eta = 2.0;
  double epsilon = -1.0;             ///< below 0: 0.01, or 0.5 for standard_rough
  bool is_epsilon_absolute = false;  ///< of P, or as a share of l1
};

struct ActiveCounts {
  offset_t z1 = 0, z2 = 0, z3 = 0;
};

class ActiveChooser {
 public:
  /// Fills `active` with coordinates in the order in which they are to be visited.
  ActiveCounts choose(const StrategySettings& settings, const SeparablePenalty& penalty,
                      std::span<const double> x, std::span<const double> gradient,
                      std::vector<index_t>& active) {
    ActiveCounts counts;
    const LhacStrategy strategy = settings.strategy;
    const double epsilon = least(settings);
    candidates_.clear();
    for (std::size_t j = 0; j < x.size(); ++j) {
      const auto id = static_cast<offset_t>(j);
      const double violation = penalty.violation(id, x[j], gradient[j]);
      const bool is_smooth = !penalty.has_kink(id);
      const bool is_new = x[j] == 0.0 && !is_smooth;
      if (is_new && violation == 0.0) continue;
      const double slope = gradient[j] + penalty.l2 * x[j];
      const bool is_inside = is_smooth || std::abs(slope) < penalty.l1[j];
      (is_new ? counts.z3 : is_inside ? counts.z2 : counts.z1) += 1;
      const double unit = settings.is_epsilon_absolute ? 1.0 : penalty.l1[j];
      if (is_new && violation <= epsilon * unit) continue;
      candidates_.push_back({violation, static_cast<index_t>(j), !is_new && is_inside});
    }
    if (is_greedy(strategy)) sort();
    cut(settings, counts);
    active.clear();
    for (const Candidate& candidate : candidates_) active.push_back(candidate.id);
    return counts;
  }

 private:
  struct Candidate {
    double violation;
    index_t id;
    bool is_z2;
  };

  static double least(const StrategySettings& settings) {
    switch (settings.strategy) {
      case LhacStrategy::standard_inexact:
      case LhacStrategy::greedy_inexact:
        return settings.epsilon >= 0.0 ? settings.epsilon : 0.01;
      case LhacStrategy::standard_rough:
        return settings.epsilon >= 0.0 ? settings.epsilon : 0.5;
      default:
        return 0.0;
    }
  }

  static bool is_greedy(LhacStrategy strategy) {
    return strategy != LhacStrategy::standard && strategy != LhacStrategy::standard_inexact &&
           strategy != LhacStrategy::standard_rough;
  }

  void sort() {
    std::sort(candidates_.begin(), candidates_.end(), [](const Candidate& a, const Candidate& b) {
      return a.violation != b.violation ? a.violation > b.violation : a.id < b.id;
    });
  }

  void cut(const StrategySettings& settings, const ActiveCounts& counts) {
    const offset_t rest = counts.z1 + counts.z3;
    const bool is_enough =
        static_cast<double>(rest) <= settings.eta * static_cast<double>(counts.z2);
    if (settings.strategy == LhacStrategy::greedy_cut) {
      // From x = 0 there is nothing to count by; then everything is kept.
      const offset_t n = counts.z1 + counts.z2;
      if (n > 0) keep(std::max(n, kFewest));
    } else if (settings.strategy == LhacStrategy::greedy_adaptive) {
      // As printed, an empty Z2 leaves nothing to move (x = 0 is such a start): all are kept then.
      if (!is_enough && counts.z2 > 0) keep_adaptive(counts.z2);
    } else if (settings.strategy == LhacStrategy::greedy_half) {
      if (is_enough || counts.z1 + counts.z2 == 0) return;
      keep_adaptive(std::max(counts.z2, std::max(kFewest, rest / 2)));
    }
  }

  void keep(offset_t n) {
    if (static_cast<std::size_t>(n) < candidates_.size()) {
      candidates_.resize(static_cast<std::size_t>(n));
    }
  }

  /// All of Z2, and the worst `n` of the others.
  void keep_adaptive(offset_t n) {
    std::size_t kept = 0;
    for (const Candidate& candidate : candidates_) {
      if (candidate.is_z2 || n-- > 0) candidates_[kept++] = candidate;
    }
    candidates_.resize(kept);
  }

  static constexpr offset_t kFewest =
      10;  ///< a subproblem smaller than this is not worth a gradient

  std::vector<Candidate> candidates_;
};

}  // namespace sublearn
