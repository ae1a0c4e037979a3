// Losses of one sample on the scores of its candidate labels: value and gradient.
//
// The first `n_positives` scores are those of the sample's labels P, the others those of negative
// labels N: all of them, or those that a search has found (section 3.3 of Yen's thesis). Positives
// are candidates in any case and stand in the partition sum.
//
//   softmax          |P| log(R e^r + sum_j exp(z_j)) - sum_{k in P} z_k           (3.38), (3.42)
//   margin           max(0, 1 + max_{j in N} z_j - min_{k in P} z_k)              (3.39)
//   triplet          sum_{k in P} sum_{j in N} max(0, 1 + z_j - z_k)              (3.43)
//   smoothed margin  max_{a in C} <z + 1_N, a> - mu / 2 |a|^2                     (3.46)
//
// R is the number of labels that no search has found: they count with one score r in the partition
// sum. With r = 0 that is algorithms 10 and 11. With r their mean score, the sum is a lower bound
// of that over all labels, by convexity. Margins see the candidates alone: these losses are lower
// bounds of those over all labels. C is the bi-simplex { a_N >= 0, a_P <= 0, sum a_N = -sum a_P <=
// 1 }, and the gradient of the last is the projection of (z + 1_N) / mu onto it (3.47). The signs
// of the margins are those of "positives above negatives"; the text has them the other way round.
//
// A sample without labels, or without negatives, has no loss, except that softmax needs no
// negatives.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include "sublearn/prox/bisimplex.hpp"

namespace sublearn {

enum class OutputLossKind { softmax, margin, triplet, smoothed_margin };

struct OutputLoss {
  OutputLossKind kind = OutputLossKind::softmax;
  double mu = 1.0;  ///< of the smoothed margin
};

/// Labels that no search has found: how many, and the score that each of them counts with.
struct Rest {
  double count = 0.0;
  double score = 0.0;
};

namespace detail {

template <class T>
double softmax_loss(std::span<const T> z, std::size_t n_positives, const Rest& rest,
                    std::span<T> gradient) {
  T top = *std::max_element(z.begin(), z.end());
  if (rest.count > 0.0) top = std::max(top, static_cast<T>(rest.score));
  double sum =
      rest.count > 0.0 ? rest.count * std::exp(rest.score - static_cast<double>(top)) : 0.0;
  double of_positives = 0.0;
  for (std::size_t k = 0; k < z.size(); ++k) {
    gradient[k] = std::exp(z[k] - top);
    sum += static_cast<double>(gradient[k]);
    if (k < n_positives) of_positives += static_cast<double>(z[k]);
  }
  const auto count = static_cast<double>(n_positives);
  const T scale = static_cast<T>(count / sum);
  for (T& g : gradient) g *= scale;
  for (std::size_t k = 0; k < n_positives; ++k) gradient[k] -= T{1};
  return count * (std::log(sum) + static_cast<double>(top)) - of_positives;
}

template <class T>
double margin_loss(std::span<const T> z, std::size_t n_positives, std::span<T> gradient) {
  const auto negatives = z.begin() + static_cast<std::ptrdiff_t>(n_positives);
  const auto worst = std::min_element(z.begin(), negatives);
  const auto rival = std::max_element(negatives, z.end());
  const double loss = 1.0 + static_cast<double>(*rival) - static_cast<double>(*worst);
  if (!(loss > 0.0)) return 0.0;
  gradient[static_cast<std::size_t>(rival - z.begin())] = T{1};
  gradient[static_cast<std::size_t>(worst - z.begin())] = T{-1};
  return loss;
}

template <class T>
double triplet_loss(std::span<const T> z, std::size_t n_positives, std::span<T> gradient) {
  double loss = 0.0;
  for (std::size_t k = 0; k < n_positives; ++k) {
    for (std::size_t j = n_positives; j < z.size(); ++j) {
      const T violation = T{1} + z[j] - z[k];
      if (!(violation > T{0})) continue;
      loss += static_cast<double>(violation);
      gradient[j] += T{1};
      gradient[k] -= T{1};
    }
  }
  return loss;
}

template <class T>
double smoothed_margin_loss(std::span<const T> z, std::size_t n_positives, double mu,
                            std::span<T> gradient, std::vector<T>& scratch) {
  const auto size = z.size();
  for (std::size_t k = 0; k < size; ++k) {
    const double up = k < n_positives ? -static_cast<double>(z[k]) : static_cast<double>(z[k]) + 1;
    gradient[k] = static_cast<T>(up / mu);
  }
  project_bisimplex<T>(gradient.subspan(n_positives), gradient.first(n_positives), 1.0, scratch);
  double loss = 0.0;
  for (std::size_t k = 0; k < size; ++k) {
    const auto a = static_cast<double>(gradient[k]);
    if (a == 0.0) continue;
    const auto score = static_cast<double>(z[k]);
    loss += (k < n_positives ? -score : score + 1) * a - 0.5 * mu * a * a;
    if (k < n_positives) gradient[k] = static_cast<T>(-a);
  }
  return loss;
}

}  // namespace detail

/// Writes the gradient with respect to the scores and returns the loss. `scratch` only saves
/// allocations. Softmax counts the `rest` besides. A score that is not finite makes the loss or the
/// gradient not finite.
template <class T>
double output_loss(const OutputLoss& loss, std::span<const T> scores, std::size_t n_positives,
                   std::span<T> gradient, std::vector<T>& scratch, const Rest& rest = {}) {
  std::fill(gradient.begin(), gradient.end(), T{0});
  if (n_positives == 0) return 0.0;
  if (loss.kind == OutputLossKind::softmax)
    return detail::softmax_loss(scores, n_positives, rest, gradient);
  if (n_positives == scores.size()) return 0.0;
  switch (loss.kind) {
    case OutputLossKind::margin:
      return detail::margin_loss(scores, n_positives, gradient);
    case OutputLossKind::triplet:
      return detail::triplet_loss(scores, n_positives, gradient);
    default:
      return detail::smoothed_margin_loss(scores, n_positives, loss.mu, gradient, scratch);
  }
}

/// The score below which a negative label has no gradient above `share`, whatever other negatives
/// there are, as far as the scores of the positives tell (section 3.3.3): they bound the partition
/// sum from below, and a margin from above. At least the `rest` stands in the sum besides.
template <class T>
T score_bar(const OutputLoss& loss, std::span<const T> positives, double share,
            const Rest& rest = {}) {
  if (positives.empty()) return std::numeric_limits<T>::infinity();
  if (loss.kind != OutputLossKind::softmax) {
    // Smoothing does not widen it: the thresholds of the two halves of the projection have a sum
    // >= 0, so a_j > 0 needs (z_j + 1) / mu > theta_N >= -theta_P >= min(z_P) / mu.
    return *std::min_element(positives.begin(), positives.end()) - T{1};
  }
  const T top = *std::max_element(positives.begin(), positives.end());
  double sum = std::max(rest.count, 0.0) * std::exp(rest.score - static_cast<double>(top));
  for (const T z : positives) sum += std::exp(static_cast<double>(z - top));
  return top + static_cast<T>(std::log(sum * share));
}

}  // namespace sublearn
