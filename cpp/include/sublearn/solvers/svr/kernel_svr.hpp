// Algorithm 8 of Tang, "Big Data Optimization in Machine Learning", 2016, as printed: the steps of
// online_svr.hpp on the dual variables of a Gaussian kernel (2.4.35 - 2.4.40),
//
//   f(x) = sum_i a_i k(x_i, x),   k(x, x') = exp(-1/2 |x - x'|^2) + 1,
//
// the 1 being the bias. Step t draws a batch, shrinks all a_i by 1 - 1/t, adds the slopes of the
// rows that have a loss (2.4.38), and projects by |w|^2 = a'Ka (2.4.40), which is kept up to date.
// A step evaluates the kernel between its batch and all rows that had a loss before: O(N) where
// features take O(m). Values are kept from one visit of a row to the next where there is room for
// them.
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
#include "sublearn/solvers/svr/online_svr.hpp"

namespace sublearn {

class KernelSvr {
 public:
  /// `a` is where to start from, and is changed; `reach` and `first_step` are not looked at.
  KernelSvr(const DenseView<const double>& rows, std::span<const double> y, std::span<double> a,
            const OnlineSvrSettings& settings)
      : rows_(rows), y_(y), a_(a), settings_(settings), rng_(settings.seed), known_(y.size()) {}

  /// Returns the number of steps taken, fewer than asked for after a stop request.
  std::int64_t run(const Monitor& monitor) {
    const offset_t n = rows_.n_rows, batch = settings_.batch;
    if (n == 0) return 0;
    std::fill(a_.begin(), a_.end(), 0.0);
    const std::int64_t n_steps = settings_.n_epochs * static_cast<std::int64_t>(n);
    for (std::int64_t step = 0; step < n_steps; ++step) {
      if (monitor.stop_requested()) return step;
      draw(n, batch);
      move(static_cast<double>(step + 1));
      if (2 * step >= n_steps) add_to_average();
    }
    if (n_averaged_ > 0) take_average();
    return n_steps;
  }

 private:
  struct Pull {
    offset_t row;
    double slope, value;  ///< of the loss there, and f before the step
  };

  /// Rows with a loss among `batch` random ones; with `fills_batch`, draws until there are so many.
  void draw(offset_t n, offset_t batch) {
    pulls_.clear();
    const offset_t most = settings_.fills_batch ? std::max(n, batch) : batch;
    for (offset_t b = 0; b < most && std::ssize(pulls_) < batch; ++b) {
      const offset_t i = rng_.below(static_cast<std::uint32_t>(n));
      const double value = predict(i);
      const double slope = settings_.loss.slope(y_[at(i)] - value);
      if (slope != 0.0) pulls_.push_back({i, slope, value});
    }
  }

  void move(double t) {
    const double kept = 1.0 - 1.0 / t;
    const auto n_parts =
        static_cast<double>(settings_.fills_batch ? std::ssize(pulls_) : settings_.batch);
    const double length = 1.0 / (settings_.l2 * t * std::max(n_parts, 1.0));
    double squares = kept * kept * squared_norm_;
    for (const Pull& p : pulls_) {
      squares += 2.0 * kept * length * p.slope * p.value;
      for (const Pull& q : pulls_)
        squares += length * length * p.slope * q.slope * kernel(p.row, q.row);
    }
    scale_ *= kept;
    if (kept == 0.0) restart();
    for (const Pull& p : pulls_) add(p.row, length * p.slope);
    squared_norm_ = std::max(squares, 0.0);
    const double most = settings_.radius * settings_.radius;
    if (settings_.radius > 0.0 && squared_norm_ > most) {
      scale_ *= settings_.radius / std::sqrt(squared_norm_);
      squared_norm_ = most;
    }
  }

  void restart() {
    for (const offset_t i : support_) a_[at(i)] = 0.0;
    scale_ = 1.0;
  }

  void add(offset_t i, double amount) {
    double& own = a_[at(i)];
    if (!is_support(i)) support_.push_back(i), is_in_support_[at(i)] = true;
    own += amount / scale_;
  }

  bool is_support(offset_t i) {
    if (is_in_support_.empty()) is_in_support_.assign(y_.size(), false);
    return is_in_support_[at(i)];
  }

  double predict(offset_t i) {
    double sum = 0.0;
    if (has_room()) {
      const auto& values = row_of_kernel(i);
      for (const offset_t j : support_) sum += a_[at(j)] * values[at(j)];
    } else {
      for (const offset_t j : support_) sum += a_[at(j)] * kernel(j, i);
    }
    return scale_ * sum;
  }

  bool has_room() const { return rows_.n_rows <= kMostKeptRows; }

  const std::vector<float>& row_of_kernel(offset_t i) {
    auto& own = known_[at(i)];
    if (own.empty()) {
      own.resize(y_.size());
      for (offset_t j = 0; j < rows_.n_rows; ++j) own[at(j)] = static_cast<float>(kernel(i, j));
    }
    return own;
  }

  double kernel(offset_t i, offset_t j) const {
    const auto a = rows_.row(i), b = rows_.row(j);
    double squares = 0.0;
    for (std::size_t k = 0; k < a.size(); ++k) squares += (a[k] - b[k]) * (a[k] - b[k]);
    return std::exp(-0.5 * squares) + 1.0;
  }

  void add_to_average() {
    if (n_averaged_++ == 0) sum_.assign(a_.size(), 0.0);
    for (const offset_t i : support_) sum_[at(i)] += scale_ * a_[at(i)];
  }

  void take_average() {
    for (std::size_t i = 0; i < a_.size(); ++i) {
      a_[i] = sum_[i] / static_cast<double>(n_averaged_);
    }
  }

  static constexpr offset_t kMostKeptRows = 8192;  ///< 256 MB of values

  DenseView<const double> rows_;
  std::span<const double> y_;
  std::span<double> a_;  ///< divided by scale_
  OnlineSvrSettings settings_;
  Rng rng_;
  std::vector<std::vector<float>> known_;  ///< values between a row and all others
  std::vector<offset_t> support_;          ///< rows that had a loss
  std::vector<bool> is_in_support_;
  std::vector<Pull> pulls_;  ///< of a step
  double scale_ = 1.0;
  double squared_norm_ = 0.0;
  std::vector<double> sum_;
  std::int64_t n_averaged_ = 0;
};

}  // namespace sublearn
