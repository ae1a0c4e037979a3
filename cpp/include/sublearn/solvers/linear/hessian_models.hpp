// The Hessian X'DX of a linear model, D the curvatures of the rows, kept in two ways for
// coordinate descent (active/coordinate_descent.hpp). The intercept, where there is one, is a
// column of ones.
//
//   ResidualModel   q = r + D X d over the rows; a look costs a column, a step another
//   GramModel       the matrix itself; a look is free, a step costs a row of it
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "sublearn/core/columns.hpp"
#include "sublearn/core/monitor.hpp"
#include "sublearn/core/types.hpp"
#include "sublearn/objectives/linear.hpp"

namespace sublearn {

/// Curvature below this share of the largest is raised to it: a column of zeros, or rows that are
/// all on the flat side of the loss, would ask for endless steps.
inline constexpr double kLeastCurvature = 1e-10;

template <class Columns>
class ResidualModel {
 public:
  explicit ResidualModel(const Columns& X) : X_(&X) {}

  /// d = 0 at the slopes and curvatures of the rows, over the features `ids`.
  void reset(std::span<const index_t> ids, const RowState& rows) {
    ids_ = ids;
    h_ = rows.curvatures;
    q_ = rows.slopes;
    curvature_.resize(ids.size());
    double largest = 0.0;
    for (std::size_t k = 0; k < ids.size(); ++k) {
      curvature_[k] = X_->square(ids[k], h_.data());
      largest = std::max(largest, curvature_[k]);
    }
    const double least = std::max(kLeastCurvature * largest, 1e-300);
    for (double& a : curvature_) a = std::max(a, least);
    intercept_curvature_ = 0.0;
    for (const double h : h_) intercept_curvature_ += h;
  }

  double curvature(index_t k) const { return curvature_[static_cast<std::size_t>(k)]; }
  double slope(index_t k) const { return X_->dot(ids_[static_cast<std::size_t>(k)], q_.data()); }
  void move(index_t k, double step) {
    X_->add_scaled(ids_[static_cast<std::size_t>(k)], step, h_.data(), q_.data());
  }

  /// The matrix over the positions first ... first + n - 1, row-major.
  void block(std::size_t first, std::size_t n, double* out) const {
    const typename Columns::Products products(*X_, ids_.subspan(first, n));
    products(0, n, h_.data(), out, n);
  }

  static constexpr std::size_t kMostBlock = 1000;  ///< positions; 8 MB

  /// About the largest eigenvalue of that matrix, by power iteration: for larger ones.
  double block_norm(std::size_t first, std::size_t n) const {
    constexpr int kSteps = 12;
    std::vector<double> direction(n, 1.0), rows(q_.size());
    double found = 0.0;
    for (int step = 0; step < kSteps; ++step) {
      std::fill(rows.begin(), rows.end(), 0.0);
      for (std::size_t k = 0; k < n; ++k) {
        X_->add_scaled(ids_[first + k], direction[k], h_.data(), rows.data());
      }
      double squares = 0.0, sizes = 0.0;
      for (const double t : direction) sizes += t * t;
      for (std::size_t k = 0; k < n; ++k) {
        direction[k] = X_->dot(ids_[first + k], rows.data());
        squares += direction[k] * direction[k];
      }
      found = std::sqrt(squares / std::max(sizes, 1e-300));
      if (!(found > 0.0)) break;
      for (double& t : direction) t /= std::sqrt(squares);
    }
    return found;
  }

  double intercept_curvature() const { return intercept_curvature_; }
  double intercept_slope() const {
    double sum = 0.0;
    for (const double q : q_) sum += q;
    return sum;
  }
  void move_intercept(double step) {
    for (std::size_t i = 0; i < q_.size(); ++i) q_[i] += step * h_[i];
  }

 private:
  const Columns* X_;
  std::span<const index_t> ids_;
  std::span<const double> h_;
  std::vector<double> q_;
  std::vector<double> curvature_;
  double intercept_curvature_ = 0.0;
};

/// X'DX as a matrix over the features that were ever asked for. D may be that of an earlier point:
/// near a solution it hardly changes, and a model need not be exact for its step to be a good one.
template <class Columns>
class GramModel {
 public:
  explicit GramModel(const Columns& X)
      : X_(&X), place_(static_cast<std::size_t>(X.n_cols()), kNowhere) {}

  static constexpr std::size_t kMost = 4000;  ///< features; 128 MB

  bool is_empty() const { return h_.empty(); }

  /// Whether the matrix stays within its memory with the features of `ids` added.
  bool has_room(std::span<const index_t> ids) const {
    return known_.size() + n_missing(ids) <= kMost;
  }

  /// How far the rows' curvatures have gone from those of the matrix, relative to their sum.
  double drift(const RowState& rows) const {
    double change = 0.0, sum = 0.0;
    for (std::size_t i = 0; i < h_.size(); ++i) {
      change += std::abs(rows.curvatures[i] - h_[i]);
      sum += h_[i];
    }
    return change / std::max(sum, 1e-300);
  }

  /// Features of `ids` that the matrix lacks.
  std::size_t n_missing(std::span<const index_t> ids) const {
    return static_cast<std::size_t>(std::count_if(ids.begin(), ids.end(), [&](index_t j) {
      return place_[static_cast<std::size_t>(j)] == kNowhere;
    }));
  }

  /// Forgets the matrix; the next one has the curvatures of `rows`.
  void restart(const RowState& rows) {
    forget();
    h_ = rows.curvatures;
    intercept_curvature_ = 0.0;
    for (const double h : h_) intercept_curvature_ += h;
  }

  /// Adds the features of `ids`. False, and an empty matrix, if asked to stop.
  bool extend(std::span<const index_t> ids, const Monitor* monitor = nullptr) {
    std::vector<index_t> missing;
    for (const index_t j : ids) {
      if (place_[static_cast<std::size_t>(j)] == kNowhere) missing.push_back(j);
    }
    if (missing.empty()) return true;
    const std::size_t before = known_.size();
    reserve(before + missing.size());
    for (const index_t j : missing) {
      place_[static_cast<std::size_t>(j)] = static_cast<index_t>(known_.size());
      known_.push_back(j);
      border_.resize(known_.size());
      border_.back() = X_->dot(j, h_.data());
    }
    const typename Columns::Products products(*X_, known_);
    for (std::size_t at = 0; at < missing.size(); at += kColumnsPerLook) {
      if (monitor != nullptr && monitor->stop_requested()) {
        forget();
        h_.clear();
        return false;
      }
      const std::size_t n = std::min(kColumnsPerLook, missing.size() - at);
      products(before + at, n, h_.data(), matrix_.data() + (before + at) * capacity_, capacity_);
    }
    for (std::size_t a = before; a < known_.size(); ++a) {
      for (std::size_t b = 0; b < before; ++b) {
        matrix_[b * capacity_ + a] = matrix_[a * capacity_ + b];
      }
    }
    return true;
  }

  /// d = 0 over the features `ids`, all known, where the gradient is `gradient`.
  void reset(std::span<const index_t> ids, std::span<const double> gradient,
             double intercept_slope) {
    n_ = ids.size();
    compact_.resize(n_ * n_);
    slopes_.assign(gradient.begin(), gradient.end());
    compact_border_.resize(n_);
    double largest = 0.0;
    for (std::size_t k = 0; k < n_; ++k) {
      const auto a = static_cast<std::size_t>(place_[static_cast<std::size_t>(ids[k])]);
      compact_border_[k] = border_[a];
      for (std::size_t l = 0; l < n_; ++l) {
        const auto b = static_cast<std::size_t>(place_[static_cast<std::size_t>(ids[l])]);
        compact_[k * n_ + l] = matrix_[a * capacity_ + b];
      }
      largest = std::max(largest, compact_[k * n_ + k]);
    }
    least_ = std::max(kLeastCurvature * largest, 1e-300);
    intercept_slope_ = intercept_slope;
  }

  double curvature(index_t k) const {
    const auto at = static_cast<std::size_t>(k);
    return std::max(compact_[at * n_ + at], least_);
  }
  double slope(index_t k) const { return slopes_[static_cast<std::size_t>(k)]; }
  void move(index_t k, double step) {
    const auto at = static_cast<std::size_t>(k);
    dense_add(compact_.data() + at * n_, step, slopes_.data(), static_cast<offset_t>(n_));
    intercept_slope_ += step * compact_border_[at];
  }

  static constexpr std::size_t kMostBlock = kMost;

  /// As above, for nothing.
  void block(std::size_t first, std::size_t n, double* out) const {
    for (std::size_t k = 0; k < n; ++k) {
      std::copy_n(compact_.data() + (first + k) * n_ + first, n, out + k * n);
    }
  }

  double intercept_curvature() const { return intercept_curvature_; }
  double intercept_slope() const { return intercept_slope_; }
  void move_intercept(double step) {
    dense_add(compact_border_.data(), step, slopes_.data(), static_cast<offset_t>(n_));
    intercept_slope_ += step * intercept_curvature_;
  }

 private:
  static constexpr index_t kNowhere = -1;
  static constexpr std::size_t kColumnsPerLook = 64;  ///< at the monitor

  void forget() {
    for (const index_t j : known_) place_[static_cast<std::size_t>(j)] = kNowhere;
    known_.clear();
  }

  void reserve(std::size_t n) {
    if (n <= capacity_) return;
    const std::size_t capacity = std::max(n, std::min(capacity_ + capacity_ / 2, kMost));
    std::vector<double> larger(capacity * capacity);
    for (std::size_t a = 0; a < known_.size(); ++a) {
      std::copy_n(matrix_.data() + a * capacity_, known_.size(), larger.data() + a * capacity);
    }
    matrix_ = std::move(larger);
    capacity_ = capacity;
  }

  const Columns* X_;
  std::vector<index_t> place_;  ///< of each feature in the matrix
  std::vector<index_t> known_;
  std::vector<double> matrix_;  ///< row-major, capacity_ wide
  std::vector<double> border_;  ///< <1, D x_j>
  std::size_t capacity_ = 0;
  std::vector<double> h_;
  double intercept_curvature_ = 0.0;

  std::size_t n_ = 0;
  std::vector<double> compact_;  ///< rows and columns of the free features only
  std::vector<double> compact_border_;
  std::vector<double> slopes_;
  double least_ = 0.0;
  double intercept_slope_ = 0.0;
};

}  // namespace sublearn
