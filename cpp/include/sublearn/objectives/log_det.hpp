// The objective of sparse inverse covariance estimation,
//
//   F(X) = -log det X + <S, X> + sum_ij l_ij |X_ij|   over symmetric positive definite X,
//
// and its dual,
//
//   max  log det W + n   over positive definite W with |W_ij - S_ij| <= l_ij.
//
// At the optimum W = X^-1. Every X > 0 offers X^-1, moved into the box, as a dual point.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include "sublearn/core/lapack.hpp"
#include "sublearn/core/types.hpp"
#include "sublearn/objectives/smooth_objective.hpp"
#include "sublearn/prox/separable.hpp"

namespace sublearn {

/// l_ij: one number off the diagonal and one on it, or one for each entry.
struct PairWeights {
  double off_diagonal = 0.0;
  double diagonal = 0.0;
  std::vector<double> each;  ///< symmetric n x n, or empty

  double at(offset_t n, offset_t i, offset_t j) const {
    if (!each.empty()) return each[static_cast<std::size_t>(i * n + j)];
    return i == j ? diagonal : off_diagonal;
  }

  /// Those of the rows and columns `members`.
  PairWeights of(offset_t n, std::span<const index_t> members) const {
    PairWeights part{off_diagonal, diagonal, {}};
    if (each.empty()) return part;
    part.each.reserve(members.size() * members.size());
    for (const index_t i : members) {
      for (const index_t j : members) part.each.push_back(at(n, i, j));
    }
    return part;
  }
};

/// A matrix whose log-determinant and inverse are wanted: one Cholesky factorisation serves both.
class CholeskyPoint {
 public:
  explicit CholeskyPoint(offset_t n) : n_(n), factor_(static_cast<std::size_t>(n * n)) {}

  /// False if X (symmetric, n x n) is not positive definite.
  bool factor(std::span<const double> X) {
    std::copy(X.begin(), X.end(), factor_.begin());
    if (!run_on_triangle(lapack().dpotrf, static_cast<int>(n_), factor_.data())) return false;
    log_det_ = 0.0;
    for (offset_t i = 0; i < n_; ++i) log_det_ += 2.0 * std::log(factor_[index(i, i)]);
    return std::isfinite(log_det_);
  }

  double log_det() const { return log_det_; }

  /// X^-1, both triangles, of the last X that was factored.
  void invert(std::vector<double>& W) const {
    W = factor_;
    run_on_triangle(lapack().dpotri, static_cast<int>(n_), W.data());
    for (offset_t top = 0; top < n_; top += kTile) {  // by tiles: a plain transpose misses caches
      for (offset_t left = 0; left <= top; left += kTile) {
        for (offset_t i = top; i < std::min(top + kTile, n_); ++i) {
          const offset_t end = std::min(left + kTile, i);
          for (offset_t j = left; j < end; ++j) W[index(i, j)] = W[index(j, i)];
        }
      }
    }
  }

 private:
  static constexpr offset_t kTile = 16;

  std::size_t index(offset_t i, offset_t j) const { return static_cast<std::size_t>(i * n_ + j); }

  offset_t n_;
  std::vector<double> factor_;
  double log_det_ = 0.0;
};

/// <S, X> + sum l_ij |X_ij|.
inline double linear_and_penalty(std::span<const double> S, std::span<const double> X,
                                 const PairWeights& weights, offset_t n) {
  double total = 0.0;
  std::size_t at = 0;
  for (offset_t i = 0; i < n; ++i) {
    double row = 0.0;
    for (offset_t j = 0; j < n; ++j, ++at) {
      if (X[at] != 0.0) row += S[at] * X[at] + weights.at(n, i, j) * std::abs(X[at]);
    }
    total += row;
  }
  return total;
}

/// Dual value of W moved into the box; minus infinity where that is not positive definite.
///
/// The diagonal is known: a positive X_ii asks for W_ii = S_ii + l_ii. It is set by scaling rows
/// and columns, which keeps W positive definite; the rest is clipped.
class DualBound {
 public:
  explicit DualBound(offset_t n) : n_(n), point_(n), moved_(static_cast<std::size_t>(n * n)) {}

  double operator()(std::span<const double> S, const PairWeights& weights,
                    std::span<const double> W) {
    scale_.resize(static_cast<std::size_t>(n_));
    for (offset_t i = 0; i < n_; ++i) {
      const auto at = static_cast<std::size_t>(i * n_ + i);
      scale_[static_cast<std::size_t>(i)] = std::sqrt((S[at] + weights.at(n_, i, i)) / W[at]);
    }
    std::size_t at = 0;
    for (offset_t i = 0; i < n_; ++i) {
      for (offset_t j = 0; j < n_; ++j, ++at) {
        const double scaled =
            scale_[static_cast<std::size_t>(i)] * scale_[static_cast<std::size_t>(j)] * W[at];
        const double reach = weights.at(n_, i, j);
        moved_[at] = i == j ? S[at] + reach : std::clamp(scaled, S[at] - reach, S[at] + reach);
      }
    }
    if (!point_.factor(moved_)) return -std::numeric_limits<double>::infinity();
    return point_.log_det() + static_cast<double>(n_);
  }

 private:
  offset_t n_;
  CholeskyPoint point_;
  std::vector<double> moved_;
  std::vector<double> scale_;
};

/// -log det X + <S, X> over the upper triangle, row by row, for objective-agnostic solvers. An
/// entry off the diagonal stands for two, so its weight in the penalty is 2 l_ij.
class LogDetObjective final : public SmoothObjective {
 public:
  LogDetObjective(std::span<const double> S, const PairWeights& weights, offset_t n)
      : S_(S),
        weights_(&weights),
        n_(n),
        point_(n),
        bound_(n),
        X_(static_cast<std::size_t>(n * n)) {}

  offset_t size() const override { return n_ * (n_ + 1) / 2; }

  double move_to(std::span<const double> x) override {
    expand(x, n_, X_);
    if (!point_.factor(X_)) return std::numeric_limits<double>::infinity();
    return -point_.log_det() + linear_and_penalty(S_, X_, PairWeights{}, n_);
  }

  void gradient(std::span<double> out) override {
    point_.invert(W_);
    std::size_t k = 0;
    for (offset_t i = 0; i < n_; ++i) {
      for (offset_t j = i; j < n_; ++j, ++k) {
        const auto at = static_cast<std::size_t>(i * n_ + j);
        out[k] = (i == j ? 1.0 : 2.0) * (S_[at] - W_[at]);
      }
    }
  }

  DualPoint dual_point(const SeparablePenalty& /*penalty*/,
                       std::span<const double> /*gradient*/) override {
    return {bound_(S_, *weights_, W_), 0.0};
  }

  /// One weight per coordinate, for the penalty.
  std::vector<double> coordinate_weights() const {
    std::vector<double> out;
    out.reserve(static_cast<std::size_t>(size()));
    for (offset_t i = 0; i < n_; ++i) {
      for (offset_t j = i; j < n_; ++j) {
        out.push_back((i == j ? 1.0 : 2.0) * weights_->at(n_, i, j));
      }
    }
    return out;
  }

  /// The symmetric matrix of an upper triangle, and back.
  static void expand(std::span<const double> x, offset_t n, std::span<double> X) {
    std::size_t k = 0;
    for (offset_t i = 0; i < n; ++i) {
      for (offset_t j = i; j < n; ++j, ++k) {
        X[static_cast<std::size_t>(i * n + j)] = X[static_cast<std::size_t>(j * n + i)] = x[k];
      }
    }
  }
  static std::vector<double> triangle(std::span<const double> X, offset_t n) {
    std::vector<double> x;
    x.reserve(static_cast<std::size_t>(n * (n + 1) / 2));
    for (offset_t i = 0; i < n; ++i) {
      for (offset_t j = i; j < n; ++j) x.push_back(X[static_cast<std::size_t>(i * n + j)]);
    }
    return x;
  }

 private:
  std::span<const double> S_;
  const PairWeights* weights_;
  offset_t n_;
  CholeskyPoint point_;
  DualBound bound_;
  std::vector<double> X_, W_;
};

}  // namespace sublearn
