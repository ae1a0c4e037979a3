// The smooth part of a linear model, L(w, b) = sum_i s_i f(<x_i, w> + b + o_i; y_i), and its state
// at a point: predictions, slopes and curvatures of the rows. Offsets o_i are known beforehand.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <variant>
#include <vector>

#include "sublearn/core/columns.hpp"
#include "sublearn/core/parallel_for.hpp"
#include "sublearn/core/types.hpp"
#include "sublearn/losses/any_loss.hpp"
#include "sublearn/prox/separable.hpp"

namespace sublearn {

template <class Columns>
struct LinearProblem {
  Columns X;
  std::span<const double> y;
  std::span<const double> weights;  ///< s_i >= 0; their sum is 1 for a mean loss
  AnyLoss loss;
  bool has_intercept = false;
  std::span<const double> offsets = {};  ///< o_i, added to each prediction; none if empty

  offset_t n_rows() const { return X.n_rows(); }
  offset_t n_features() const { return X.n_cols(); }
};

/// What is known of the rows at one point.
struct RowState {
  std::vector<double> predictions;  ///< z_i
  std::vector<double> slopes;       ///< s_i f'(z_i; y_i)
  std::vector<double> curvatures;   ///< s_i f''(z_i; y_i)

  explicit RowState(offset_t n_rows)
      : predictions(static_cast<std::size_t>(n_rows)),
        slopes(predictions.size()),
        curvatures(predictions.size()) {}
};

/// The point of a linear model, with the rows' state at it.
struct LinearPoint {
  std::vector<double> w;
  double intercept = 0.0;
  RowState rows;
  double loss = 0.0;

  LinearPoint(offset_t n_features, offset_t n_rows)
      : w(static_cast<std::size_t>(n_features)), rows(n_rows) {}
};

/// Value, slopes and curvatures at the predictions.
template <class Columns>
double evaluate(const LinearProblem<Columns>& problem, RowState& rows) {
  return std::visit(
      [&](const auto& loss) {
        double value = 0.0;
        for (std::size_t i = 0; i < rows.predictions.size(); ++i) {
          const double s = problem.weights[i];
          const LossTerms at = loss_terms(loss, rows.predictions[i], problem.y[i]);
          value += s * at.value;
          rows.slopes[i] = s * at.slope;
          rows.curvatures[i] = s * at.curvature;
        }
        return value;
      },
      problem.loss);
}

/// The predictions of an intercept alone.
template <class Columns>
void start_predictions(const LinearProblem<Columns>& problem, double intercept,
                       std::span<double> z) {
  std::copy(problem.offsets.begin(), problem.offsets.end(), z.begin());
  if (problem.offsets.empty()) std::fill(z.begin(), z.end(), 0.0);
  for (double& one : z) one += intercept;
}

/// Predictions, slopes and loss from the weights.
template <class Columns>
void place(const LinearProblem<Columns>& problem, LinearPoint& at) {
  auto& z = at.rows.predictions;
  start_predictions(problem, at.intercept, z);
  for (std::size_t j = 0; j < at.w.size(); ++j) {
    if (at.w[j] != 0.0) problem.X.add(static_cast<offset_t>(j), at.w[j], z.data());
  }
  at.loss = evaluate(problem, at.rows);
}

/// Replaces the curvatures by those of parabolas above the losses, whose minimiser is never worse
/// than the point they touch at. A loss that has none keeps its own.
template <class Columns>
void majorise(const LinearProblem<Columns>& problem, RowState& rows) {
  std::visit(
      [&](const auto& loss) {
        for (std::size_t i = 0; i < rows.predictions.size(); ++i) {
          const double above = loss.majoriser(rows.predictions[i], problem.y[i]);
          if (std::isfinite(above)) rows.curvatures[i] = problem.weights[i] * above;
        }
      },
      problem.loss);
}

/// The rows' part of the dual at theta = -scale * slopes: sum_i scale * slope_i o_i -
/// s_i f*(scale * slope_i / s_i; y_i).
template <class Columns>
double dual_of_rows(const LinearProblem<Columns>& problem, std::span<const double> slopes,
                    double scale) {
  return std::visit(
      [&](const auto& loss) {
        double value = 0.0;
        for (std::size_t i = 0; i < problem.offsets.size(); ++i) {
          value += scale * slopes[i] * problem.offsets[i];
        }
        for (std::size_t i = 0; i < slopes.size(); ++i) {
          const double s = problem.weights[i];
          if (s > 0.0) value -= s * loss.conjugate(scale * slopes[i] / s, problem.y[i]);
        }
        return value;
      },
      problem.loss);
}

/// gradient[k] = <x_ids[k], slopes>; each entry is one thread's, so threads change nothing.
template <class Columns>
void gradient_at(const LinearProblem<Columns>& problem, std::span<const double> slopes,
                 std::span<const index_t> ids, std::span<double> gradient, int n_threads) {
  constexpr offset_t kBlock = 64;
  const auto n = static_cast<offset_t>(ids.size());
  parallel_for((n + kBlock - 1) / kBlock, n_threads, [&](offset_t block, int) {
    for (offset_t k = block * kBlock; k < std::min(n, (block + 1) * kBlock); ++k) {
      const auto at = static_cast<std::size_t>(k);
      gradient[at] = problem.X.dot(ids[at], slopes.data());
    }
  });
}

/// The dual point theta = -scale * slopes; features that are not in `ids` must have p_j* = 0.
template <class Columns>
DualPoint linear_dual(const LinearProblem<Columns>& problem, const SeparablePenalty& penalty,
                      std::span<const index_t> ids, std::span<const double> slopes,
                      std::span<const double> gradient, double most = 1.0) {
  return scaled_dual(penalty, ids, gradient, most,
                     [&](double scale) { return dual_of_rows(problem, slopes, scale); });
}

/// How far x_j'theta may be from that of the optimum, over sqrt(2 gap): the rows' part of the dual
/// is 1 / (s_i beta)-strongly concave, beta the smoothness of the loss.
template <class Columns>
double reach_of(const LinearProblem<Columns>& problem, offset_t j) {
  return std::sqrt(smoothness(problem.loss) * problem.X.square(j, problem.weights.data()));
}

}  // namespace sublearn
