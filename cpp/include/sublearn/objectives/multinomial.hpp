// Multinomial logistic loss of a linear model with one weight vector per class,
//
//   L(W, b) = sum_i s_i ( log sum_k exp(z_ik) - z_i,y_i ),   z_ik = <x_i, w_k> + b_k,
//
// as an objective for LHAC. Coordinate j * K + k is the weight of feature j for class k; where
// there are intercepts, they stand behind the features, as a feature that is always 1.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include "sublearn/core/parallel_for.hpp"
#include "sublearn/core/types.hpp"
#include "sublearn/losses/logistic.hpp"
#include "sublearn/objectives/smooth_objective.hpp"

namespace sublearn {

template <class Columns>
class MultinomialObjective final : public SmoothObjective {
 public:
  /// `codes` are classes 0 .. n_classes-1 of the rows.
  MultinomialObjective(const Columns& X, std::span<const index_t> codes,
                       std::span<const double> weights, offset_t n_classes, bool has_intercept,
                       int n_threads)
      : X_(X),
        codes_(codes),
        weights_(weights),
        n_classes_(n_classes),
        has_intercept_(has_intercept),
        n_threads_(n_threads),
        rows_(static_cast<std::size_t>(X.n_rows())),
        z_(rows_ * static_cast<std::size_t>(n_classes)) {}

  offset_t size() const override { return (X_.n_cols() + (has_intercept_ ? 1 : 0)) * n_classes_; }

  /// z_ holds predictions, then in their place the probabilities. Each class, and then each block
  /// of rows, is one thread's, and the blocks' values are added in their order.
  double move_to(std::span<const double> x) override {
    parallel_for(n_classes_, n_threads_, [&](offset_t k, int) { predict(x, k); });
    const offset_t n_blocks = (static_cast<offset_t>(rows_) + kBlock - 1) / kBlock;
    std::vector<double> values(static_cast<std::size_t>(n_blocks));
    parallel_for(n_blocks, n_threads_, [&](offset_t block, int) {
      const auto begin = static_cast<std::size_t>(block * kBlock);
      const std::size_t end = std::min(rows_, begin + static_cast<std::size_t>(kBlock));
      for (std::size_t i = begin; i < end; ++i) {
        values[static_cast<std::size_t>(block)] += weights_[i] * soften(i);
      }
    });
    double value = 0.0;
    for (const double part : values) value += part;
    return value;
  }

  void gradient(std::span<double> out) override {
    slopes_.resize(z_.size());
    parallel_for(n_classes_, n_threads_, [&](offset_t k, int) {
      const auto at = static_cast<std::size_t>(k) * rows_;
      for (std::size_t i = 0; i < rows_; ++i) {
        slopes_[at + i] = weights_[i] * (z_[at + i] - (codes_[i] == k ? 1.0 : 0.0));
      }
    });
    const offset_t n_features = X_.n_cols();
    const offset_t n_blocks = (n_features + kFeatures - 1) / kFeatures;
    parallel_for(n_blocks, n_threads_, [&](offset_t block, int) {
      for (offset_t j = block * kFeatures; j < std::min(n_features, (block + 1) * kFeatures); ++j) {
        for (offset_t k = 0; k < n_classes_; ++k) {
          out[at(j, k)] = X_.dot(j, slopes_of(k));
        }
      }
    });
    if (!has_intercept_) return;
    for (offset_t k = 0; k < n_classes_; ++k) {
      double sum = 0.0;
      for (std::size_t i = 0; i < rows_; ++i) sum += slopes_of(k)[i];
      out[at(n_features, k)] = sum;
    }
  }

  /// The dual at the slopes, scaled by c to be feasible: the conjugate of a row's loss there is
  /// sum_k q_k log q_k with q = c p + (1 - c) e_y, which stays in the simplex. Nothing is known
  /// where a coordinate has no penalty, whose slope would have to be 0 exactly.
  DualPoint dual_point(const SeparablePenalty& penalty, std::span<const double> gradient) override {
    double c = 1.0;
    for (std::size_t j = 0; j < gradient.size(); ++j) {
      const auto id = static_cast<offset_t>(j);
      if (penalty.is_open(id)) return {};
      c = std::min(c, penalty.feasible_scale(id, -gradient[j]));
    }
    double value = -mixed_entropy(c);
    for (std::size_t j = 0; j < gradient.size(); ++j) {
      value -= penalty.conjugate(static_cast<offset_t>(j), -c * gradient[j]);
    }
    return {value, c};
  }

 private:
  static constexpr offset_t kBlock = 1024;
  static constexpr offset_t kFeatures = 16;

  std::size_t at(offset_t j, offset_t k) const {
    return static_cast<std::size_t>(j * n_classes_ + k);
  }
  const double* slopes_of(offset_t k) const {
    return slopes_.data() + static_cast<std::size_t>(k) * rows_;
  }

  void predict(std::span<const double> x, offset_t k) {
    double* z = z_.data() + static_cast<std::size_t>(k) * rows_;
    std::fill(z, z + rows_, has_intercept_ ? x[at(X_.n_cols(), k)] : 0.0);
    for (offset_t j = 0; j < X_.n_cols(); ++j) {
      if (x[at(j, k)] != 0.0) X_.add(j, x[at(j, k)], z);
    }
  }

  /// Turns row i of z_ into probabilities; returns its loss. The largest exponent is 0.
  double soften(std::size_t i) {
    const auto n = static_cast<std::size_t>(n_classes_);
    double largest = z_[i];
    for (std::size_t k = 1; k < n; ++k) largest = std::max(largest, z_[k * rows_ + i]);
    const double own = z_[static_cast<std::size_t>(codes_[i]) * rows_ + i];
    double total = 0.0;
    for (std::size_t k = 0; k < n; ++k) {
      double& z = z_[k * rows_ + i];
      z = std::exp(z - largest);
      total += z;
    }
    for (std::size_t k = 0; k < n; ++k) z_[k * rows_ + i] /= total;
    return largest - own + std::log(total);
  }

  /// sum_i s_i sum_k q_ik log q_ik.
  double mixed_entropy(double c) const {
    double value = 0.0;
    for (std::size_t i = 0; i < rows_; ++i) {
      double row = 0.0;
      for (offset_t k = 0; k < n_classes_; ++k) {
        const double p = z_[static_cast<std::size_t>(k) * rows_ + i];
        row += x_log_x(c * p + (codes_[i] == k ? 1.0 - c : 0.0));
      }
      value += weights_[i] * row;
    }
    return value;
  }

  Columns X_;
  std::span<const index_t> codes_;
  std::span<const double> weights_;
  offset_t n_classes_;
  bool has_intercept_;
  int n_threads_;
  std::size_t rows_;
  std::vector<double> z_;       ///< class after class
  std::vector<double> slopes_;  ///< s_i (p_ik - [k = y_i]), class after class
};

}  // namespace sublearn
