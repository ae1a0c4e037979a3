// Projected stochastic subgradient steps for regression with a tube loss, in a feature space or in
// a kernel's (algorithm 8 of Tang's thesis, 2.4.33 - 2.4.40):
//
//   F(w) = l2 / 2 |w|^2 + 1/N sum_i l(y_i - <w, phi_i>)
//
// Step t has the length 1 / (l2 t): w shrinks by 1 - 1/t, each row of the batch with a loss adds
// its slope, and w is projected onto a ball that holds the optimum. The thesis takes the radius 1 /
// sqrt(l2), which is that of the hinge loss; here the optimum satisfies l2 / 2 |w|^2 <= F(0), so
// callers pass sqrt(2 F(0) / l2).
//
// A Space keeps w: as numbers (FeatureSpace), or as dual coefficients of rows of a Gaussian kernel,
// at most `budget` of them (KernelSpace). It offers
//   n(), dot(i) = <w, phi_i>, squared_length(i) = |phi_i|^2, scale(c), add(i, amount),
//   start_average(), add_to_average(), take_average(n).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "sublearn/core/monitor.hpp"
#include "sublearn/core/rng.hpp"
#include "sublearn/core/types.hpp"
#include "sublearn/losses/tube.hpp"

namespace sublearn {

struct OnlineSvrSettings {
  TubeLoss loss;
  double l2 = 1e-4;
  double radius = 0.0;          ///< Of the ball; 0 for none.
  std::int64_t first_step = 0;  ///< Steps taken before: the next one has the length 1/(l2 (t + 1)).
  int n_epochs = 0;  ///< Random rows, averaged over the last half; 0: all once, in order.
  /// Above 0, a step goes at most this share of the way to the border of the row's tube, less on
  /// the side of the smaller slope. Steps of 1/(l2 t) average out over a fit; a single pass over
  /// few new rows would keep their noise.
  double reach = 0.0;
  int batch = 1;
  offset_t budget = 0;  ///< Most dual coefficients; 0 for no limit.
  std::uint64_t seed = 0;
};

/// Rows of features, w as numbers.
class FeatureSpace {
 public:
  FeatureSpace(const double* features, offset_t n_rows, offset_t n_features, std::span<double> w)
      : features_(features), n_rows_(n_rows), n_features_(n_features), w_(w) {}

  offset_t n() const { return n_rows_; }
  double dot(offset_t i) const { return product(row(i), w_.data()); }
  double squared_length(offset_t i) const { return product(row(i), row(i)); }
  void scale(double c) {
    for (double& value : w_) value *= c;
  }
  void add(offset_t i, double amount) {
    const double* phi = row(i);
    for (offset_t j = 0; j < n_features_; ++j) w_[j] += amount * phi[j];
  }
  void start_average() { sum_.assign(w_.size(), 0.0); }
  void add_to_average() {
    for (std::size_t j = 0; j < w_.size(); ++j) sum_[j] += w_[j];
  }
  void take_average(double n) {
    for (std::size_t j = 0; j < w_.size(); ++j) w_[j] = sum_[j] / n;
  }

 private:
  const double* row(offset_t i) const { return features_ + i * n_features_; }

  /// Four sums at once: one would wait for each addition.
  double product(const double* a, const double* b) const {
    double sums[4] = {0.0, 0.0, 0.0, 0.0};
    offset_t j = 0;
    for (; j + 4 <= n_features_; j += 4) {
      for (int k = 0; k < 4; ++k) sums[k] += a[j + k] * b[j + k];
    }
    for (; j < n_features_; ++j) sums[0] += a[j] * b[j];
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
  }

  const double* features_;
  offset_t n_rows_, n_features_;
  std::span<double> w_;
  std::vector<double> sum_;
};

/// Rows x and the kernel exp(-1/2 |x - x'|^2) + 1 (the 1 is the bias); w = sum_i a_i phi(x_i).
class KernelSpace {
 public:
  KernelSpace(const double* rows, offset_t n_rows, offset_t n_columns, std::span<double> a,
              offset_t budget)
      : rows_(rows), n_rows_(n_rows), n_columns_(n_columns), a_(a), budget_(budget) {
    for (offset_t i = 0; i < n_rows; ++i) {
      if (a[i] != 0.0) support_.push_back(i);
    }
  }

  offset_t n() const { return n_rows_; }
  double dot(offset_t i) const {
    double sum = 0.0;
    for (const offset_t j : support_) sum += a_[j] * kernel(i, j);
    return sum;
  }
  double squared_length(offset_t) const { return 2.0; }
  void scale(double c) {
    for (const offset_t j : support_) a_[j] *= c;
  }

  /// Over the budget, the smallest coefficient goes: its removal changes w least, as all rows have
  /// one length.
  void add(offset_t i, double amount) {
    const bool is_new = std::find(support_.begin(), support_.end(), i) == support_.end();
    a_[i] += amount;
    if (!is_new) return;
    support_.push_back(i);
    if (budget_ > 0 && static_cast<offset_t>(support_.size()) > budget_) drop_smallest();
  }
  void start_average() { sum_.assign(a_.size(), 0.0); }
  void add_to_average() {
    for (const offset_t j : support_) sum_[j] += a_[j];
  }

  /// Rows that left the support since are dropped from the average too, so that the budget holds.
  void take_average(double n) {
    for (const offset_t j : support_) a_[j] = sum_[j] / n;
  }

 private:
  double kernel(offset_t i, offset_t j) const {
    double squares = 0.0;
    for (offset_t k = 0; k < n_columns_; ++k) {
      const double d = rows_[i * n_columns_ + k] - rows_[j * n_columns_ + k];
      squares += d * d;
    }
    return std::exp(-0.5 * squares) + 1.0;
  }

  void drop_smallest() {
    const auto least = std::min_element(
        support_.begin(), support_.end(),
        [this](offset_t i, offset_t j) { return std::abs(a_[i]) < std::abs(a_[j]); });
    a_[*least] = 0.0;
    *least = support_.back();
    support_.pop_back();
  }

  const double* rows_;
  offset_t n_rows_, n_columns_;
  std::span<double> a_;
  offset_t budget_;
  std::vector<offset_t> support_;
  std::vector<double> sum_;
};

/// Algorithm 8. Returns the number of steps taken, fewer than asked for after a stop request.
template <class Space>
std::int64_t online_svr(Space& space, std::span<const double> y, const OnlineSvrSettings& settings,
                        const Monitor& monitor) {
  const bool in_order = settings.n_epochs == 0;
  const offset_t n = space.n(), batch = in_order ? 1 : settings.batch;
  if (n == 0) return 0;
  const std::int64_t n_steps =
      in_order ? n : std::max<std::int64_t>(1, settings.n_epochs * n / batch);
  Rng rng(settings.seed);
  std::vector<std::pair<offset_t, double>> pulls;
  double squared_norm = -1.0;  // unknown until w is 0 or was projected once
  bool averages = false;
  std::int64_t n_averaged = 0;

  for (std::int64_t step = 0; step < n_steps; ++step) {
    if (step % 64 == 0 && monitor.stop_requested()) return step;
    const auto t = static_cast<double>(settings.first_step + step + 1);
    pulls.clear();
    for (offset_t b = 0; b < batch; ++b) {
      const offset_t i = in_order ? step : rng.below(static_cast<std::uint32_t>(n));
      const double r = y[i] - space.dot(i);
      const double slope = settings.loss.slope(r);
      if (slope == 0.0) continue;
      double amount = slope / (settings.l2 * t * static_cast<double>(batch));
      if (settings.reach > 0.0) {
        const double way = r - (slope > 0.0 ? settings.loss.upper : settings.loss.lower);
        const double steepest = std::max(settings.loss.lower_slope, settings.loss.upper_slope);
        const double reach = settings.reach * std::abs(slope) / steepest;
        const double most = reach * std::abs(way) / space.squared_length(i);
        amount = std::clamp(amount, -most, most);
      }
      pulls.emplace_back(i, amount);
    }
    const double kept = 1.0 - 1.0 / t;
    space.scale(kept);
    if (t == 1.0) squared_norm = 0.0;
    if (squared_norm >= 0.0) squared_norm *= kept * kept;
    for (const auto& [i, amount] : pulls) {
      if (squared_norm >= 0.0 && settings.radius > 0.0) {
        squared_norm += amount * (2.0 * space.dot(i) + amount * space.squared_length(i));
      }
      space.add(i, amount);
    }
    if (settings.radius > 0.0 && squared_norm > settings.radius * settings.radius) {
      space.scale(settings.radius / std::sqrt(squared_norm));
      squared_norm = settings.radius * settings.radius;
    }
    if (!in_order && 2 * step >= n_steps) {
      if (!averages) space.start_average();
      averages = true;
      space.add_to_average();
      ++n_averaged;
    }
  }
  if (averages) space.take_average(static_cast<double>(n_averaged));
  return n_steps;
}

}  // namespace sublearn
