// A sample of a row's features that estimates inner products with it: <w, x> is the mean of
// sum_draws weight * w_j (PD-Sparse, (25)).
//
// Features are drawn in proportion to |x_j|, with replacement, and each draw weighs
// sign(x_j) ||x||_1 / n: unbiased for every w. The n draws are stratified, one in each of n equal
// shares of ||x||_1, so they come in order, take one walk along the row, and vary no more than
// draws of the whole row would.
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

#include "sublearn/core/rng.hpp"
#include "sublearn/core/views.hpp"

namespace sublearn {

/// Position of a feature in its row and what its weight counts in the sample.
template <class T>
struct FeatureDraw {
  std::size_t at;
  T weight;
};

/// Replaces `out` by n_draws draws from `row`; draws of one feature are one entry.
template <class T, class I>
void sample_features(const SparseVector<T, I>& row, std::size_t n_draws, Rng& rng,
                     std::vector<FeatureDraw<T>>& out) {
  out.clear();
  double total = 0.0;
  for (const T x : row.values) total += std::abs(static_cast<double>(x));
  if (!(total > 0.0) || n_draws == 0) return;
  const double share = total / static_cast<double>(n_draws);
  std::size_t at = 0;
  double reached = std::abs(static_cast<double>(row.values[0]));
  for (std::size_t draw = 0; draw < n_draws; ++draw) {
    const double target = (static_cast<double>(draw) + rng.uniform()) * share;
    while ((reached <= target || row.values[at] == T{0}) && at + 1 < row.size()) {
      reached += std::abs(static_cast<double>(row.values[++at]));
    }
    const T weight = static_cast<T>(row.values[at] < T{0} ? -share : share);
    if (!out.empty() && out.back().at == at) {
      out.back().weight += weight;
    } else {
      out.push_back({at, weight});
    }
  }
}

}  // namespace sublearn
