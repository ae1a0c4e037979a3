// Greedy message passing between blocks of coordinates (algorithm 11 of Yen's thesis).
//
// The scores of a sample are a sum over B blocks, z = sum_j z_j. By theorem 12
//
//   L(z) = min over lambda with sum_j lambda_j = 0 of  1/B sum_j L(B (z_j + lambda_j)),
//
// and lambda_j = z / B - z_j is optimal. A step moves the messages of the labels that have a
// gradient in some block, all others stay as they are; step t goes 2 / (t + 2) of the way, counted
// from 0, so that the first goes all of it. Labels that no step visits need no full score: that is
// what CandidateSearch makes use of with one step. Here messages are dense and there may be many
// steps: to look at the method, and to test it.
#pragma once

#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

#include "sublearn/objectives/output_loss.hpp"

namespace sublearn {

/// The bound 1/B sum_j L(B (z_j + lambda_j)) on the loss after `n_steps` steps, and its gradient.
/// `scores` has the candidates of block j at scores + j * n_candidates, positives first.
inline double greedy_messages(const OutputLoss& loss, const double* scores, std::size_t n_blocks,
                              std::size_t n_candidates, std::size_t n_positives, double tau,
                              int n_steps, std::span<double> gradient) {
  const auto scale = static_cast<double>(n_blocks);
  std::vector<double> total(n_candidates, 0.0);
  for (std::size_t p = 0; p < n_blocks * n_candidates; ++p) total[p % n_candidates] += scores[p];
  // B (z_j + lambda_j), which each step moves towards z.
  std::vector<double> seen(scores, scores + n_blocks * n_candidates);
  for (double& value : seen) value *= scale;

  std::vector<double> part(n_candidates), scratch;
  std::vector<bool> is_active(n_candidates);
  double bound = 0.0;
  for (int t = 0;; ++t) {
    bound = 0.0;
    is_active.assign(n_candidates, false);
    std::fill(gradient.begin(), gradient.end(), 0.0);
    for (std::size_t j = 0; j < n_blocks; ++j) {
      const std::span<const double> block(seen.data() + j * n_candidates, n_candidates);
      bound += output_loss<double>(loss, block, n_positives, part, scratch) / scale;
      for (std::size_t k = 0; k < n_candidates; ++k) {
        gradient[k] += part[k] / scale;
        if (std::abs(part[k]) > tau) is_active[k] = true;
      }
    }
    if (t == n_steps) return bound;
    const double eta = 2.0 / (t + 2.0);
    for (std::size_t p = 0; p < seen.size(); ++p) {
      const std::size_t k = p % n_candidates;
      if (is_active[k]) seen[p] += eta * (total[k] - seen[p]);
    }
  }
}

}  // namespace sublearn
