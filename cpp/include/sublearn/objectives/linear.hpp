// The smooth part of a linear model, L(w, b) = sum_i s_i f(<x_i, w> + b; y_i), and its state at a
// point: predictions, slopes and curvatures of the rows.
#pragma once

#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

#include "sublearn/core/columns.hpp"
#include "sublearn/core/parallel_for.hpp"
#include "sublearn/core/types.hpp"
#include "sublearn/losses/smooth_loss.hpp"

namespace sublearn {

template <class Columns, SmoothLoss Loss>
struct LinearProblem {
  Columns X;
  std::span<const double> y;
  std::span<const double> weights;  ///< s_i >= 0; their sum is 1 for a mean loss
  Loss loss;
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
template <class Columns, class Loss>
double evaluate(const LinearProblem<Columns, Loss>& problem, RowState& rows) {
  double value = 0.0;
  for (std::size_t i = 0; i < rows.predictions.size(); ++i) {
    const double s = problem.weights[i];
    const LossTerms at = loss_terms(problem.loss, rows.predictions[i], problem.y[i]);
    value += s * at.value;
    rows.slopes[i] = s * at.slope;
    rows.curvatures[i] = s * at.curvature;
  }
  return value;
}

/// gradient[k] = <x_ids[k], slopes>; each entry is one thread's, so threads change nothing.
template <class Columns, class Loss>
void gradient_at(const LinearProblem<Columns, Loss>& problem, std::span<const double> slopes,
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

}  // namespace sublearn
