// What no penalty holds in a multinomial model, intercepts above all: minimised over alone, by
// Newton's method, so that u'slopes_k = 0 for each of its columns u and each class k. The dual of a
// problem with such weights has no other points.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "sublearn/core/cholesky.hpp"
#include "sublearn/core/columns.hpp"
#include "sublearn/core/parallel_for.hpp"
#include "sublearn/core/types.hpp"
#include "sublearn/objectives/multinomial.hpp"

namespace sublearn {

template <class Columns>
class FreeWeights {
 public:
  /// `features` have no penalty, nor have intercepts.
  FreeWeights(const MultinomialObjective<Columns>& objective, std::vector<index_t> features)
      : objective_(&objective),
        features_(std::move(features)),
        n_rows_(objective.data().n_rows()),
        n_classes_(static_cast<std::size_t>(objective.data().n_classes)) {
    for (const index_t j : features_) add_feature(j);
    if (objective.data().has_intercept) {
      columns_.insert(columns_.end(), n_rows_, 1.0);
      sizes_.push_back(1.0);
    }
  }

  /// Moves the free weights in x to where the loss is least; whether their equations hold then.
  bool centre(std::span<double> x) {
    if (sizes_.empty()) return true;
    start(x);
    double open = residual(), before = std::numeric_limits<double>::infinity();
    for (int step = 0; step < kMostSteps && open > kCentred; ++step) {
      const bool is_rounding = open <= kRounding && open > 0.5 * before;
      if (is_rounding || !find_direction() || !take_step()) break;
      before = std::exchange(open, residual());
    }
    write(x);
    return open <= kRounding;
  }

 private:
  /// Columns of largest entry 1: their equations are compared with each other.
  void add_feature(index_t j) {
    std::vector<double> column(n_rows_);
    objective_->data().X.add(j, 1.0, column.data());
    double size = 1e-300;
    for (const double value : column) size = std::max(size, std::abs(value));
    for (const double value : column) columns_.push_back(value / size);
    sizes_.push_back(size);
  }

  void start(std::span<const double> x) {
    scores_.resize(n_rows_ * n_classes_);
    slopes_.resize(scores_.size());
    objective_->scores(x, scores_);
    probabilities_ = scores_;
    loss_ = soften(objective_->data(), probabilities_, objective_->n_threads());
    moved_.assign(n_columns() * n_classes_, 0.0);
  }

  /// Fills right_ with minus the slopes of the loss in the free weights; returns the largest,
  /// relative to the terms of its sum.
  double residual() {
    slopes_at(objective_->data(), probabilities_, slopes_, objective_->n_threads());
    const DenseColumns<double> U = free_columns();
    right_.resize(moved_.size());
    double largest = 0.0, terms = 0.0;
    for (const double slope : slopes_) terms += std::abs(slope);
    for (std::size_t at = 0; at < right_.size(); ++at) {
      const std::size_t k = at / n_columns();
      right_[at] = -U.dot(static_cast<offset_t>(at % n_columns()), slopes_.data() + k * n_rows_);
      largest = std::max(largest, std::abs(right_[at]));
    }
    return terms > 0.0 ? largest / terms : 0.0;
  }

  /// Newton's direction. The same for all classes changes nothing: the last class stays.
  bool find_direction() {
    fill_hessian();
    const std::size_t n = n_unknowns();
    double largest = 1e-300;
    for (std::size_t at = 0; at < n; ++at) largest = std::max(largest, hessian_[at * n + at]);
    for (double ridge = kRidge; ridge < 1.0; ridge *= 100.0) {
      factor_ = hessian_;
      for (std::size_t at = 0; at < n; ++at) factor_[at * n + at] += ridge * largest;
      if (!cholesky(factor_, n)) continue;
      step_.assign(right_.begin(), right_.begin() + static_cast<std::ptrdiff_t>(n));
      cholesky_solve(factor_, n, step_);
      return true;
    }
    return false;
  }

  /// sum_i s_i u_ia u_ic p_ik ([k = l] - p_il) for column a of class k and column c of class l.
  void fill_hessian() {
    const std::span<const double> weights = objective_->data().weights;
    const std::size_t n = n_unknowns(), m = n_columns();
    weighted_.resize(n * n_rows_);
    for (std::size_t at = 0; at < n * n_rows_; ++at) {
      const std::size_t i = at % n_rows_, column = at / n_rows_;
      weighted_[at] = columns_[column % m * n_rows_ + i] * probabilities_[column / m * n_rows_ + i];
    }
    const DenseColumns<double> P(weighted_.data(), objective_->data().X.n_rows(),
                                 static_cast<offset_t>(n));
    std::vector<index_t> all(n);
    std::iota(all.begin(), all.end(), index_t{0});
    hessian_.resize(n * n);
    const auto n_blocks = static_cast<offset_t>((n + kBlock - 1) / kBlock);
    parallel_for(n_blocks, objective_->n_threads(), [&](offset_t block, int) {
      const std::size_t begin = static_cast<std::size_t>(block) * kBlock;
      P.products(std::span(all).subspan(begin, std::min(kBlock, n - begin)), all, weights.data(),
                 hessian_.data() + begin * n, n);
    });
    for (double& entry : hessian_) entry = -entry;
    const DenseColumns<double> U = free_columns();
    std::vector<double> h(n_rows_), block(m * m);
    for (std::size_t k = 0; k + 1 < n_classes_; ++k) {
      for (std::size_t i = 0; i < n_rows_; ++i) {
        h[i] = weights[i] * probabilities_[k * n_rows_ + i];
      }
      U.products(std::span(all).first(m), std::span(all).first(m), h.data(), block.data(), m);
      for (std::size_t at = 0; at < m * m; ++at) {
        hessian_[(k * m + at / m) * n + k * m + at % m] += block[at];
      }
    }
  }

  /// Halves the step until the loss does not grow, as far as rounding lets one see.
  bool take_step() {
    const DenseColumns<double> U = free_columns();
    std::vector<double> along(scores_.size()), trial(scores_.size());
    for (std::size_t at = 0; at < step_.size(); ++at) {
      U.add(static_cast<offset_t>(at % n_columns()), step_[at],
            along.data() + at / n_columns() * n_rows_);
    }
    double share = 1.0;
    for (int half = 0; half < kMostHalvings; ++half, share *= 0.5) {
      for (std::size_t i = 0; i < trial.size(); ++i) trial[i] = scores_[i] + share * along[i];
      probabilities_ = trial;
      const double loss = soften(objective_->data(), probabilities_, objective_->n_threads());
      if (!(loss <= loss_ * (1.0 + kNoise))) continue;
      loss_ = loss;
      std::swap(scores_, trial);
      for (std::size_t at = 0; at < step_.size(); ++at) moved_[at] += share * step_[at];
      return true;
    }
    return false;
  }

  /// Adds what was moved to the weights, less its mean over the classes.
  void write(std::span<double> x) const {
    for (std::size_t a = 0; a < n_columns(); ++a) {
      double mean = 0.0;
      for (std::size_t k = 0; k < n_classes_; ++k) mean += moved_[k * n_columns() + a];
      mean /= static_cast<double>(n_classes_);
      for (std::size_t k = 0; k < n_classes_; ++k) {
        x[first_of(a) + k] += (moved_[k * n_columns() + a] - mean) / sizes_[a];
      }
    }
  }

  std::size_t first_of(std::size_t a) const {
    if (a < features_.size()) return static_cast<std::size_t>(features_[a]) * n_classes_;
    return static_cast<std::size_t>(objective_->data().n_weights());
  }
  std::size_t n_columns() const { return sizes_.size(); }
  std::size_t n_unknowns() const { return n_columns() * (n_classes_ - 1); }
  DenseColumns<double> free_columns() const {
    return {columns_.data(), objective_->data().X.n_rows(), static_cast<offset_t>(n_columns())};
  }

  static constexpr int kMostSteps = 50;
  static constexpr int kMostHalvings = 30;
  static constexpr double kCentred = 1e-15;   ///< of the terms of a sum: it goes no further
  static constexpr double kRounding = 1e-10;  ///< of the terms of a sum, that an equation may leave
  static constexpr double kRidge = 1e-14;     ///< columns may repeat each other
  static constexpr double kNoise = 1e-14;
  static constexpr std::size_t kBlock = 64;

  const MultinomialObjective<Columns>* objective_;
  std::vector<index_t> features_;
  std::size_t n_rows_, n_classes_;
  std::vector<double> columns_;                          ///< U, one column after the other
  std::vector<double> sizes_;                            ///< what they were divided by
  std::vector<double> scores_, probabilities_, slopes_;  ///< of the rows, class after class
  std::vector<double> moved_, right_, step_;             ///< by class, then column
  std::vector<double> weighted_, hessian_, factor_;
  double loss_ = 0.0;
};

}  // namespace sublearn
