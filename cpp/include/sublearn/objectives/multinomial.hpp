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
#include <memory>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "sublearn/core/parallel_for.hpp"
#include "sublearn/core/types.hpp"
#include "sublearn/losses/logistic.hpp"
#include "sublearn/objectives/smooth_objective.hpp"

namespace sublearn {

/// Rows with a class each.
template <class Columns>
struct MultinomialData {
  Columns X;
  std::span<const index_t> codes;  ///< classes 0 .. n_classes - 1 of the rows
  std::span<const double> weights;
  offset_t n_classes;
  bool has_intercept;

  std::size_t n_rows() const { return static_cast<std::size_t>(X.n_rows()); }
  offset_t n_weights() const { return X.n_cols() * n_classes; }
  offset_t size() const { return n_weights() + (has_intercept ? n_classes : 0); }
};

/// Turns the scores of row i, kept class after class, into probabilities; returns its loss. The
/// largest exponent is 0.
template <class Columns>
double soften_row(const MultinomialData<Columns>& data, std::span<double> z, std::size_t i) {
  const auto n = static_cast<std::size_t>(data.n_classes);
  const std::size_t rows = data.n_rows();
  double largest = z[i];
  for (std::size_t k = 1; k < n; ++k) largest = std::max(largest, z[k * rows + i]);
  const double own = z[static_cast<std::size_t>(data.codes[i]) * rows + i];
  double total = 0.0;
  for (std::size_t k = 0; k < n; ++k) {
    double& at = z[k * rows + i];
    at = std::exp(at - largest);
    total += at;
  }
  for (std::size_t k = 0; k < n; ++k) z[k * rows + i] /= total;
  return largest - own + std::log(total);
}

/// Turns scores into probabilities in their place; returns the loss. Each block of rows is one
/// thread's, and the blocks' values are added in their order.
template <class Columns>
double soften(const MultinomialData<Columns>& data, std::span<double> z, int n_threads) {
  constexpr offset_t kBlock = 1024;
  const offset_t n_blocks = (data.X.n_rows() + kBlock - 1) / kBlock;
  std::vector<double> values(static_cast<std::size_t>(n_blocks));
  parallel_for(n_blocks, n_threads, [&](offset_t block, int) {
    const auto begin = static_cast<std::size_t>(block * kBlock);
    const std::size_t end = std::min(data.n_rows(), begin + static_cast<std::size_t>(kBlock));
    for (std::size_t i = begin; i < end; ++i) {
      values[static_cast<std::size_t>(block)] += data.weights[i] * soften_row(data, z, i);
    }
  });
  return std::accumulate(values.begin(), values.end(), 0.0);
}

/// s_i (p_ik - [k = y_i]), class after class, from the probabilities.
template <class Columns>
void slopes_at(const MultinomialData<Columns>& data, std::span<const double> probabilities,
               std::span<double> slopes, int n_threads) {
  parallel_for(data.n_classes, n_threads, [&](offset_t k, int) {
    const std::size_t at = static_cast<std::size_t>(k) * data.n_rows();
    for (std::size_t i = 0; i < data.n_rows(); ++i) {
      slopes[at + i] = data.weights[i] * (probabilities[at + i] - (data.codes[i] == k ? 1.0 : 0.0));
    }
  });
}

template <class Columns>
class MultinomialObjective final : public SmoothObjective {
 public:
  /// Of the coordinates `ids`, ascending; all others are 0.
  MultinomialObjective(const MultinomialData<Columns>& data, std::vector<index_t> ids,
                       int n_threads)
      : data_(data),
        n_threads_(n_threads),
        ids_(std::move(ids)),
        of_class_(static_cast<std::size_t>(data.n_classes)),
        probabilities_(data.n_rows() * of_class_.size()) {
    for (std::size_t at = 0; at < ids_.size(); ++at) {
      of_class_[static_cast<std::size_t>(ids_[at] % data.n_classes)].push_back(at);
    }
  }

  /// Of all coordinates.
  MultinomialObjective(const MultinomialData<Columns>& data, int n_threads)
      : MultinomialObjective(data, all_ids(data.size()), n_threads) {}

  const MultinomialData<Columns>& data() const { return data_; }
  int n_threads() const { return n_threads_; }
  offset_t size() const override { return static_cast<offset_t>(ids_.size()); }

  /// z of all rows, class after class; each class is one thread's.
  void scores(std::span<const double> x, std::span<double> z) const {
    parallel_for(data_.n_classes, n_threads_, [&](offset_t k, int) {
      const std::size_t rows = data_.n_rows();
      predict(x, k, z.subspan(static_cast<std::size_t>(k) * rows, rows));
    });
  }

  double move_to(std::span<const double> x) override {
    scores(x, probabilities_);
    return soften(data_, probabilities_, n_threads_);
  }

  void gradient(std::span<double> out) override {
    slopes_.resize(probabilities_.size());
    slopes_at(data_, probabilities_, slopes_, n_threads_);
    const offset_t n_blocks = (size() + kBlock - 1) / kBlock;
    parallel_for(n_blocks, n_threads_, [&](offset_t block, int) {
      const offset_t end = std::min(size(), (block + 1) * kBlock);
      for (offset_t at = block * kBlock; at < end; ++at) {
        out[static_cast<std::size_t>(at)] = slope(ids_[static_cast<std::size_t>(at)]);
      }
    });
  }

  /// The dual at the slopes, scaled by c to be feasible: the conjugate of a row's loss there is
  /// sum_k q_k log q_k with q = c p + (1 - c) e_y, which stays in the simplex. Nothing is known
  /// where a coordinate has no penalty, whose slope would have to be 0 exactly.
  DualPoint dual_point(const SeparablePenalty& penalty, std::span<const double> gradient) override {
    const std::vector<index_t> places = all_ids(size());
    const auto is_open = [&](index_t at) { return penalty.is_open(at); };
    if (std::any_of(places.begin(), places.end(), is_open)) return {};
    return scaled_dual(penalty, places, gradient, 1.0, [&](double c) { return -mixed_entropy(c); });
  }

  /// The Hessian of a row's loss in its scores, diag(p) - p p', has no eigenvalue above 1/2.
  double reach(offset_t at) override {
    const index_t id = ids_[static_cast<std::size_t>(at)];
    const std::span<const double> s = data_.weights;
    const double square = id < data_.n_weights()
                              ? data_.X.square(id / data_.n_classes, s.data())
                              : std::accumulate(s.begin(), s.end(), 0.0);  // a column of ones
    return std::sqrt(0.5 * square);
  }

  bool coordinate_sizes(std::span<double> out) override {
    for (std::size_t at = 0; at < out.size(); ++at) {
      const double far = reach(static_cast<offset_t>(at));
      out[at] = far * far;
    }
    return true;
  }

  bool has_parts() const override { return true; }

  std::unique_ptr<SmoothObjective> restricted(std::span<const index_t> places) override {
    std::vector<index_t> ids;
    for (const index_t at : places) ids.push_back(ids_[static_cast<std::size_t>(at)]);
    return std::make_unique<MultinomialObjective>(data_, std::move(ids), n_threads_);
  }

 private:
  static constexpr offset_t kBlock = 64;

  static std::vector<index_t> all_ids(offset_t n) {
    std::vector<index_t> ids(static_cast<std::size_t>(n));
    std::iota(ids.begin(), ids.end(), index_t{0});
    return ids;
  }

  void predict(std::span<const double> x, offset_t k, std::span<double> z) const {
    std::span<const std::size_t> places = of_class_[static_cast<std::size_t>(k)];
    const bool has_intercept = !places.empty() && ids_[places.back()] >= data_.n_weights();
    std::fill(z.begin(), z.end(), has_intercept ? x[places.back()] : 0.0);
    if (has_intercept) places = places.first(places.size() - 1);
    for (const std::size_t at : places) {
      if (x[at] != 0.0) data_.X.add(ids_[at] / data_.n_classes, x[at], z.data());
    }
  }

  double slope(index_t id) const {
    const auto begin = static_cast<std::size_t>(id % data_.n_classes) * data_.n_rows();
    const std::span<const double> slopes = std::span(slopes_).subspan(begin, data_.n_rows());
    if (id < data_.n_weights()) return data_.X.dot(id / data_.n_classes, slopes.data());
    return std::accumulate(slopes.begin(), slopes.end(), 0.0);
  }

  /// sum_i s_i sum_k q_ik log q_ik.
  double mixed_entropy(double c) const {
    double value = 0.0;
    for (std::size_t i = 0; i < data_.n_rows(); ++i) {
      double row = 0.0;
      for (offset_t k = 0; k < data_.n_classes; ++k) {
        const double p = probabilities_[static_cast<std::size_t>(k) * data_.n_rows() + i];
        row += x_log_x(c * p + (data_.codes[i] == k ? 1.0 - c : 0.0));
      }
      value += data_.weights[i] * row;
    }
    return value;
  }

  MultinomialData<Columns> data_;
  int n_threads_;
  std::vector<index_t> ids_;
  std::vector<std::vector<std::size_t>> of_class_;  ///< places in ids_
  std::vector<double> probabilities_;               ///< class after class
  std::vector<double> slopes_;
};

}  // namespace sublearn
