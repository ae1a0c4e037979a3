// Column by column ascent on the dual of sparse inverse covariance (objectives/log_det.hpp), the
// graphical lasso of Friedman, Hastie and Tibshirani (2008). With W in the dual's box, the best
// column j of W is W_j = W beta, where beta minimises
//
//   1/2 <beta, W beta> - <s_j, beta> + sum_k l_kj |beta_k|   over beta_j = 0,
//
// and the column of X that belongs to it is X_jj = 1 / (W_jj - <W_j, beta>), X_kj = -X_jj beta_k.
// A sweep over all columns costs about as much as one pass over the free pairs of the Newton model
// and gets close in few sweeps; the last digits are left to solvers/covariance/newton.hpp.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <span>
#include <vector>

#include "sublearn/active/coordinate_descent.hpp"
#include "sublearn/core/columns.hpp"
#include "sublearn/core/monitor.hpp"
#include "sublearn/core/types.hpp"
#include "sublearn/objectives/log_det.hpp"
#include "sublearn/prox/separable.hpp"

namespace sublearn {

/// The lasso of one column, for coordinate descent: keeps W beta.
class ColumnModel {
 public:
  ColumnModel(std::span<const double> W, std::span<const double> s, std::span<double> product)
      : W_(W), s_(s), product_(product) {}

  double curvature(index_t k) const { return W_[at(k) * s_.size() + at(k)]; }
  double slope(index_t k) const { return product_[at(k)] - s_[at(k)]; }
  void move(index_t k, double step) {
    dense_add(W_.data() + at(k) * s_.size(), step, product_.data(),
              static_cast<offset_t>(s_.size()));
  }

 private:
  std::span<const double> W_, s_;
  std::span<double> product_;
};

class DualColumns {
 public:
  /// S and weights must outlive the solver. X is where the columns start, if only its diagonal.
  DualColumns(std::span<const double> S, const PairWeights& weights, std::span<const double> X,
              offset_t n)
      : S_(S),
        weights_(&weights),
        n_(n),
        W_(S.size()),
        beta_(S.size(), 0.0),
        product_(static_cast<std::size_t>(n)),
        l1_(static_cast<std::size_t>(n)) {
    start(X);
  }

  /// Once through all columns, each solved more accurately than in the sweep before. False if a
  /// column could not be solved.
  bool sweep(const Monitor& monitor) {
    for (offset_t j = 0; j < n_; ++j) {
      if (monitor.stop_requested() || !improve(j)) return false;
    }
    accuracy_ = std::max(kSharpening * accuracy_, kLastAccuracy);
    return true;
  }

  /// <S, X> + sum l_ij |X_ij| - n: the gap if X and W were inverse to each other.
  double estimated_gap() const {
    double gap = -static_cast<double>(n_);
    for (offset_t j = 0; j < n_; ++j) {
      double column = S_[at(j, j)] + weights_->at(n_, j, j);
      for (offset_t k = 0; k < n_; ++k) {
        const double b = beta_[at(j, k)];
        if (b != 0.0) column += -S_[at(j, k)] * b + weights_->at(n_, j, k) * std::abs(b);
      }
      gap += diagonal(j) * column;
    }
    return gap;
  }

  /// The primal matrix of the columns, made symmetric.
  void primal(std::span<double> X) const {
    for (offset_t j = 0; j < n_; ++j) {
      const double head = diagonal(j);
      for (offset_t k = 0; k < n_; ++k) X[at(j, k)] = k == j ? head : -head * beta_[at(j, k)];
    }
    for (offset_t j = 0; j < n_; ++j) {
      for (offset_t k = 0; k < j; ++k) {
        // A pair that one of its columns leaves out is left out.
        const double a = X[at(j, k)], b = X[at(k, j)];
        X[at(j, k)] = X[at(k, j)] = a == 0.0 || b == 0.0 ? 0.0 : 0.5 * (a + b);
      }
    }
  }

  std::span<const double> dual() const { return W_; }
  offset_t n_visits() const { return n_visits_; }

 private:
  static constexpr int kMostPasses = 1000;
  static constexpr double kFirstAccuracy = 0.1;  ///< of a step, as a share of W_jj - <W_j, beta>
  static constexpr double kSharpening = 0.3;     ///< of it from sweep to sweep
  static constexpr double kLastAccuracy = 1e-9;

  std::size_t at(offset_t i, offset_t j) const { return static_cast<std::size_t>(i * n_ + j); }

  /// S shrunk off the diagonal until that is inside the box: positive definite if S is
  /// semidefinite.
  void start(std::span<const double> X) {
    double share = 1.0;
    for (offset_t i = 0; i < n_; ++i) {
      for (offset_t j = 0; j < n_; ++j) {
        const double size = std::abs(S_[at(i, j)]);
        if (i != j && size > 0.0) share = std::min(share, weights_->at(n_, i, j) / size);
      }
    }
    for (offset_t i = 0; i < n_; ++i) {
      for (offset_t j = 0; j < n_; ++j) {
        W_[at(i, j)] =
            i == j ? S_[at(i, j)] + weights_->at(n_, i, i) : (1.0 - share) * S_[at(i, j)];
      }
    }
    for (offset_t j = 0; j < n_; ++j) {
      for (offset_t k = 0; k < n_; ++k) {
        if (k != j) beta_[at(j, k)] = -X[at(j, k)] / X[at(j, j)];
      }
    }
    order_.resize(static_cast<std::size_t>(n_) - 1);
    ids_.resize(static_cast<std::size_t>(n_));
    std::iota(ids_.begin(), ids_.end(), 0);
  }

  /// Solves for column j. An exact solution keeps W positive definite, W_jj - <W_j, beta> > 0, so
  /// this rest is the measure of accuracy; false if it is never positive.
  bool improve(offset_t j) {
    const auto row = static_cast<std::size_t>(j * n_);
    const std::span<double> beta(beta_.data() + row, static_cast<std::size_t>(n_));
    std::fill(product_.begin(), product_.end(), 0.0);
    for (offset_t k = 0; k < n_; ++k) {
      if (k != j) order_[static_cast<std::size_t>(k < j ? k : k - 1)] = static_cast<index_t>(k);
      l1_[static_cast<std::size_t>(k)] = weights_->at(n_, j, k);
      const double b = beta[static_cast<std::size_t>(k)];
      if (b != 0.0) dense_add(W_.data() + k * n_, b, product_.data(), n_);
    }
    SeparablePenalty penalty;
    penalty.l1 = l1_;
    ColumnModel model(W_, S_.subspan(row, static_cast<std::size_t>(n_)), product_);
    bool is_close = false;
    for (int pass = 0; pass < kMostPasses && !is_close; ++pass) {
      n_visits_ += n_ - 1;
      const double largest = descend_once(model, penalty, ids_, order_, beta);
      const double rest = W_[at(j, j)] - dense_dot(product_.data(), beta.data(), n_);
      is_close = largest <= accuracy_ * rest;
    }
    if (!is_close && !(W_[at(j, j)] > dense_dot(product_.data(), beta.data(), n_))) return false;
    for (offset_t k = 0; k < n_; ++k) {
      if (k != j) W_[at(j, k)] = W_[at(k, j)] = product_[static_cast<std::size_t>(k)];
    }
    return true;
  }

  /// X_jj.
  double diagonal(offset_t j) const {
    const auto row = static_cast<std::size_t>(j * n_);
    return 1.0 / (W_[at(j, j)] - dense_dot(W_.data() + row, beta_.data() + row, n_));
  }

  std::span<const double> S_;
  const PairWeights* weights_;
  offset_t n_;
  std::vector<double> W_;
  std::vector<double> beta_;  ///< row j belongs to column j
  std::vector<double> product_, l1_;
  std::vector<index_t> order_, ids_;
  double accuracy_ = kFirstAccuracy;
  offset_t n_visits_ = 0;
};

}  // namespace sublearn
