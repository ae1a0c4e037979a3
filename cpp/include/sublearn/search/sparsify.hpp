// Random sparsification (Yen 2018, algorithm 4 and theorem 5): a vector with few non-zeros whose
// inner product with anything is right on average.
//
// Algorithm 4 draws R coordinates with replacement. Here each coordinate is kept or dropped once:
//
//   |w_j| >= level             kept as it is
//   |w_j| < level              becomes sign(w_j) level with probability |w_j| / level, else 0
//
// With level = ||w||_1 / R that is unbiased, keeps at most R coordinates on average, and the
// variance of <w~, x> is sum_j x_j^2 |w_j| (level - |w_j|)_+ <= max_j x_j^2 ||w||_1^2 / R: the
// bound of theorem 5, and never more than algorithm 4 has. One uniform number per coordinate can
// serve many vectors, which then tend to keep the same coordinates.
//
// WeightDraws is algorithm 4 to the letter.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "sublearn/core/rng.hpp"

namespace sublearn {

/// R of theorem 5: so many draws from a vector of l1 norm `norm` keep the standard deviation of
/// <w~, x> below delta for any x with entries of size at most one.
inline double n_draws(double norm, double delta) {
  return std::ceil(2 * norm * norm / (delta * delta));
}

template <class T>
inline T sparsify(T w, T level, T uniform) {
  const T size = w < 0 ? -w : w;
  if (size >= level) return w;
  if (size <= uniform * level) return T{0};
  return w < 0 ? -level : level;
}

/// Algorithm 4: R coordinates drawn with replacement, j with probability |w_j| / ||w||_1; each draw
/// adds sign(w_j) ||w||_1 / R.
template <class T>
class WeightDraws {
 public:
  void start() {
    places_.clear();
    ends_.clear();
  }
  void offer(std::size_t place, T weight) {
    if (weight == T{0}) return;
    const double size = std::abs(static_cast<double>(weight));
    ends_.push_back((ends_.empty() ? 0.0 : ends_.back()) + size);
    places_.push_back({place, weight < 0});
  }

  /// Calls add(place, amount) for each of `count` draws.
  template <class Add>
  void draw(double count, Rng& rng, Add&& add) const {
    if (places_.empty()) return;
    const double norm = ends_.back();
    const T step = static_cast<T>(norm / count);
    for (double r = 0; r < count; ++r) {
      const auto found = std::upper_bound(ends_.begin(), ends_.end() - 1, rng.uniform() * norm);
      const Place& at = places_[static_cast<std::size_t>(found - ends_.begin())];
      add(at.place, at.is_negative ? -step : step);
    }
  }

 private:
  struct Place {
    std::size_t place;
    bool is_negative;
  };
  std::vector<Place> places_;
  std::vector<double> ends_;
};

}  // namespace sublearn
