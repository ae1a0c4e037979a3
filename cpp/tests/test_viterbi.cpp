// Decoding of chains against the recursion without shortcuts.
#include "sublearn/solvers/structured/viterbi.hpp"

#include <algorithm>
#include <vector>

#include "check.hpp"
#include "sublearn/core/rng.hpp"

using namespace sublearn;

TEST(viterbi_is_exact) {
  Rng rng(1);
  for (int trial = 0; trial < 200; ++trial) {
    const std::size_t n = 1 + rng.below(9), length = 1 + rng.below(7);
    std::vector<double> table(n * n), emissions(length * n);
    for (double& value : table) value = rng.uniform() - 0.5;
    for (double& value : emissions) value = trial % 2 == 0 ? rng.uniform() : 0.0;
    const auto tops = Viterbi::column_tops(table, n);
    std::vector<index_t> labels(length);
    Viterbi decoder(table, tops);
    const double score = decoder.decode(emissions, labels);

    std::vector<double> best(emissions.begin(), emissions.begin() + static_cast<std::ptrdiff_t>(n));
    for (std::size_t t = 1; t < length; ++t) {
      std::vector<double> next(n, -1e300);
      for (std::size_t a = 0; a < n; ++a) {
        for (std::size_t b = 0; b < n; ++b) {
          next[b] = std::max(next[b], best[a] + table[a * n + b] + emissions[t * n + b]);
        }
      }
      best = next;
    }
    CHECK_NEAR(score, *std::max_element(best.begin(), best.end()), 1e-12);
    double of_labels = 0.0;
    for (std::size_t t = 0; t < length; ++t) {
      const auto label = static_cast<std::size_t>(labels[t]);
      of_labels += emissions[t * n + label];
      if (t > 0) of_labels += table[static_cast<std::size_t>(labels[t - 1]) * n + label];
    }
    CHECK_NEAR(of_labels, score, 1e-12);
  }
}
