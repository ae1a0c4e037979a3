// A round of an outer loop: one gradient over all coordinates that still count, and what it showed.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "sublearn/core/monitor.hpp"

namespace sublearn {

/// One row of a trace.
struct Round {
  double seconds = 0.0;
  double objective = 0.0;
  double bound = -std::numeric_limits<double>::infinity();  ///< the best so far
  double gap = 0.0;   ///< objective less bound, or what stands for it where none is known
  double unit = 1.0;  ///< of the gap
  double violation = 0.0;
  std::int64_t n_nonzero = 0;
  std::int64_t n_kept = 0;    ///< coordinates not ruled out
  std::int64_t n_active = 0;  ///< coordinates handed over after this round
  std::int64_t n_passes = 0;  ///< of the method inside so far: epochs, Newton steps, it says which
  std::int64_t work = 0;      ///< so far, in the unit of the problem
  std::int64_t n_done = 0;    ///< iterations so far, in the unit of max_iter

  double certificate() const { return gap == 0.0 ? 0.0 : gap / unit; }

  void publish(Monitor& monitor) const {
    monitor.objective = objective;
    monitor.gap = certificate() * std::abs(objective);
    monitor.nnz_primal = n_nonzero;
    monitor.work = work;
    monitor.n_done = n_done;
  }
};

/// Rounding ends what can be reached: gap, violation and objective of the last rounds no longer get
/// smaller.
inline bool is_stalled(const std::vector<Round>& rounds) {
  constexpr std::ptrdiff_t kPatience = 3;
  if (static_cast<std::ptrdiff_t>(rounds.size()) <= kPatience) return false;
  const Round& before = *(rounds.end() - 1 - kPatience);
  return std::all_of(rounds.end() - kPatience, rounds.end(), [&](const Round& round) {
    return round.gap > 0.9 * before.gap && round.violation > 0.9 * before.violation &&
           round.objective > before.objective - 1e-12 * std::abs(before.objective);
  });
}

}  // namespace sublearn
