// The smooth part of a linear model, L(w, b) = sum_i s_i f(<x_i, w> + b; y_i), and its state at a
// point: predictions, slopes and curvatures of the rows.
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

/// The rows' part of the dual at theta = -scale * slopes: - sum_i s_i f*(scale * slope_i / s_i;
/// y_i).
template <class Columns>
double dual_of_rows(const LinearProblem<Columns>& problem, std::span<const double> slopes,
                    double scale) {
  return std::visit(
      [&](const auto& loss) {
        double value = 0.0;
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

/// Largest scale in [0, 1] for which theta = -scale * slopes is feasible, given X'slopes.
inline double feasible_scale(const SeparablePenalty& penalty, std::span<const index_t> ids,
                             std::span<const double> gradient) {
  double scale = 1.0;
  for (std::size_t k = 0; k < ids.size(); ++k) {
    scale = std::min(scale, penalty.feasible_scale(ids[k], -gradient[k]));
  }
  return scale;
}

/// Value of the dual at theta = -scale * slopes; features that are not in `ids` must have p_j* = 0.
template <class Columns>
double linear_dual(const LinearProblem<Columns>& problem, const SeparablePenalty& penalty,
                   std::span<const index_t> ids, std::span<const double> slopes,
                   std::span<const double> gradient, double scale) {
  double value = dual_of_rows(problem, slopes, scale);
  for (std::size_t k = 0; k < ids.size(); ++k) {
    value -= penalty.conjugate(ids[k], -scale * gradient[k]);
  }
  return value;
}

}  // namespace sublearn
