// Projected stochastic subgradient steps for regression with a tube loss (Tang, "Big Data
// Optimization in Machine Learning", 2016, algorithm 8, 2.4.33 - 2.4.40):
//
//   F(w) = l2 / 2 |w|^2 + 1/N sum_i l(y_i - <w, phi_i>)
//
// Step t has the length 1 / (l2 t): w shrinks by 1 - 1/t, each row of the batch with a loss adds
// its slope, and w is projected onto a ball that holds the optimum. The thesis takes the radius 1 /
// sqrt(l2), which is that of the hinge loss; here the optimum satisfies l2 / 2 |w|^2 <= F(0), so
// callers pass sqrt(2 F(0) / l2).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "sublearn/core/monitor.hpp"
#include "sublearn/core/rng.hpp"
#include "sublearn/core/types.hpp"
#include "sublearn/core/views.hpp"
#include "sublearn/losses/tube.hpp"

namespace sublearn {

struct OnlineSvrSettings {
  TubeLoss loss;
  double l2 = 1e-4;
  double radius = 0.0;          ///< Of the ball; 0 for none.
  std::int64_t first_step = 0;  ///< Steps taken before: the next one has the length 1/(l2 (t + 1)).
  /// So many steps for each row, averaged over the last half; 0: all rows once, in order.
  int n_epochs = 0;
  /// Above 0, a step goes at most this share of the way to the border of the row's tube, less on
  /// the side of the smaller slope. Steps of 1/(l2 t) average out over a fit; a single pass over
  /// few new rows would keep their noise.
  double reach = 0.0;
  int batch = 1;  ///< Random rows of a step; how far steps lead depends on their number alone.
  /// Whether a step draws until it has a batch of rows with a loss, as algorithm 8 is printed, and
  /// not just a batch of rows. Its steps do not lead to the minimum of F; kernel_svr.hpp alone.
  bool fills_batch = false;
  std::uint64_t seed = 0;
};

class OnlineSvr {
 public:
  /// The rows of `features` are phi_i; `w` is where to start from, and is changed.
  OnlineSvr(const DenseView<const double>& features, std::span<const double> y, std::span<double> w,
            const OnlineSvrSettings& settings)
      : features_(features), y_(y), w_(w), settings_(settings), rng_(settings.seed) {}

  /// Returns the number of steps taken, fewer than asked for after a stop request.
  std::int64_t run(const Monitor& monitor) {
    constexpr std::int64_t kStepsPerLook = 64;
    const offset_t n = features_.n_rows, batch = is_in_order() ? 1 : settings_.batch;
    if (n == 0) return 0;
    const std::int64_t n_steps =
        is_in_order() ? n : settings_.n_epochs * static_cast<std::int64_t>(n);
    for (std::int64_t step = 0; step < n_steps; ++step) {
      if (step % kStepsPerLook == 0 && monitor.stop_requested()) return step;
      const auto t = static_cast<double>(settings_.first_step + step + 1);
      pulls_.clear();
      for (offset_t b = 0; b < batch; ++b) {
        look_at(is_in_order() ? step : rng_.below(static_cast<std::uint32_t>(n)),
                settings_.l2 * t * static_cast<double>(batch));
      }
      move(t);
      project();
      if (!is_in_order() && 2 * step >= n_steps) add_to_average();
    }
    if (n_averaged_ > 0) take_average();
    return n_steps;
  }

 private:
  bool is_in_order() const { return settings_.n_epochs == 0; }

  /// Notes what row i adds to w, a part of its slope, if it has a loss.
  void look_at(offset_t i, double n_parts) {
    const TubeLoss& loss = settings_.loss;
    const auto phi = features_.row(i);
    const double r = y_[at(i)] - product(phi, w_);
    const double slope = loss.slope(r);
    if (slope == 0.0) return;
    double amount = slope / n_parts;
    if (settings_.reach > 0.0) {
      const double way = r - (slope > 0.0 ? loss.upper : loss.lower);
      const double steepest = std::max(loss.lower_slope, loss.upper_slope);
      const double reach = settings_.reach * std::abs(slope) / steepest;
      const double most = reach * std::abs(way) / product(phi, phi);
      amount = std::clamp(amount, -most, most);
    }
    pulls_.emplace_back(i, amount);
  }

  /// w shrinks and the rows pull; its norm is kept up to date once it is known.
  void move(double t) {
    const double kept = 1.0 - 1.0 / t;
    scale(kept);
    if (t == 1.0) squared_norm_ = 0.0;
    if (squared_norm_ >= 0.0) squared_norm_ *= kept * kept;
    for (const auto& [i, amount] : pulls_) {
      const auto phi = features_.row(i);
      if (squared_norm_ >= 0.0 && settings_.radius > 0.0) {
        squared_norm_ += amount * (2.0 * product(phi, w_) + amount * product(phi, phi));
      }
      for (std::size_t j = 0; j < w_.size(); ++j) w_[j] += amount * phi[j];
    }
  }

  void project() {
    const double most = settings_.radius * settings_.radius;
    if (!(settings_.radius > 0.0 && squared_norm_ > most)) return;
    scale(settings_.radius / std::sqrt(squared_norm_));
    squared_norm_ = most;
  }

  void scale(double c) {
    for (double& value : w_) value *= c;
  }
  void add_to_average() {
    if (n_averaged_++ == 0) sum_.assign(w_.size(), 0.0);
    for (std::size_t j = 0; j < w_.size(); ++j) sum_[j] += w_[j];
  }
  void take_average() {
    for (std::size_t j = 0; j < w_.size(); ++j) w_[j] = sum_[j] / static_cast<double>(n_averaged_);
  }

  /// Four sums at once: one would wait for each addition.
  static double product(std::span<const double> a, std::span<const double> b) {
    double sums[4] = {0.0, 0.0, 0.0, 0.0};
    std::size_t j = 0;
    for (; j + 4 <= a.size(); j += 4) {
      for (std::size_t k = 0; k < 4; ++k) sums[k] += a[j + k] * b[j + k];
    }
    for (; j < a.size(); ++j) sums[0] += a[j] * b[j];
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
  }

  DenseView<const double> features_;
  std::span<const double> y_;
  std::span<double> w_;
  OnlineSvrSettings settings_;
  Rng rng_;
  std::vector<std::pair<offset_t, double>> pulls_;  ///< of a step: rows with a loss, what they add
  double squared_norm_ = -1.0;                      ///< unknown until w has been 0
  std::vector<double> sum_;
  std::int64_t n_averaged_ = 0;
};

}  // namespace sublearn
