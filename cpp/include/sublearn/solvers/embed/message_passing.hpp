// Greedy message passing between blocks of coordinates (Yen 2018, algorithm 11).
//
// The score of a label is a sum over B blocks, z = sum_j z_j. By theorem 12
//
//   L(z) = min { 1/B sum_j L(B (z_j + l_j)) : sum_j l_j = 0 },
//
// with the minimum at l*_j = z / B - z_j. Step t takes the labels that have a gradient above tau_2
// in some block,
//
//   A = union_j { k : |dL(B (z_j + l_j))_k| > tau_2 },
//
// and moves their messages by eta = 2 / (t + 2) towards l*. The mean of the blocks' losses is an
// upper bound of L(z) after any number of steps, and falls to it at the rate of theorem 13.
//
// What is stored is y_j = z_j + l_j: a step is y_j <- eta z / B + (1 - eta) y_j on A.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

#include "sublearn/objectives/output_loss.hpp"

namespace sublearn {

struct MessageSettings {
  offset_t n_steps = 1;  ///< T
  double tau = 0.0;      ///< tau_2
};

/// `parts` has a row of scores for each block: those of the positives first, 0 where a block has
/// not found a label. They become y. Labels that no block has found have the score of the rest in
/// each of them, and no messages. Writes the mean of the blocks' gradients and returns that of
/// their losses.
template <class T>
class MessagePassing {
 public:
  double run(const OutputLoss& loss, std::span<T> parts, std::size_t n_blocks,
             std::size_t n_positives, const MessageSettings& settings, const Rest& rest,
             std::span<T> gradient) {
    const std::size_t n = gradient.size();
    const auto scale = static_cast<T>(n_blocks);
    target_.assign(n, T{0});
    for (std::size_t j = 0; j < n_blocks; ++j) {
      for (std::size_t k = 0; k < n; ++k) target_[k] += parts[j * n + k] / scale;
    }
    for (offset_t t = 1; t <= settings.n_steps; ++t) {
      differentiate(loss, parts, n_blocks, n_positives, rest, static_cast<T>(settings.tau), n);
      const auto eta = static_cast<T>(2.0 / (static_cast<double>(t) + 2.0));
      for (std::size_t k = 0; k < n; ++k) {
        if (!is_active_[k]) continue;
        for (std::size_t j = 0; j < n_blocks; ++j) {
          T& part = parts[j * n + k];
          part = eta * target_[k] + (T{1} - eta) * part;
        }
      }
    }
    const double sum = differentiate(loss, parts, n_blocks, n_positives, rest, T{0}, n);
    for (std::size_t k = 0; k < n; ++k) gradient[k] = sums_[k] / scale;
    return sum / static_cast<double>(n_blocks);
  }

 private:
  /// The sum of the blocks' losses, in `sums_` that of their gradients, and A.
  double differentiate(const OutputLoss& loss, std::span<const T> parts, std::size_t n_blocks,
                       std::size_t n_positives, const Rest& rest, T tau, std::size_t n) {
    scores_.resize(n);
    slopes_.resize(n);
    sums_.assign(n, T{0});
    is_active_.assign(n, 0);
    double total = 0.0;
    for (std::size_t j = 0; j < n_blocks; ++j) {
      for (std::size_t k = 0; k < n; ++k) scores_[k] = static_cast<T>(n_blocks) * parts[j * n + k];
      total += output_loss<T>(loss, scores_, n_positives, slopes_, scratch_, rest);
      for (std::size_t k = 0; k < n; ++k) {
        sums_[k] += slopes_[k];
        if (std::abs(slopes_[k]) > tau) is_active_[k] = 1;
      }
    }
    return total;
  }

  std::vector<T> target_, scores_, slopes_, sums_, scratch_;
  std::vector<unsigned char> is_active_;
};

}  // namespace sublearn
