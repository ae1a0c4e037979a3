// The intercept of a linear model: minimised over alone, so that the slopes of the rows add up to
// 0. The dual of a problem with an intercept has no other points.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "sublearn/objectives/linear.hpp"

namespace sublearn {

/// Whether the slopes add up to 0, up to the rounding of slopes and predictions.
inline bool is_centred(const RowState& rows) {
  constexpr double kRounding = 1e-14;
  double total = 0.0, size = 0.0;
  for (std::size_t i = 0; i < rows.slopes.size(); ++i) {
    total += rows.slopes[i];
    size += std::abs(rows.slopes[i]) + rows.curvatures[i] * std::abs(rows.predictions[i]);
  }
  return std::abs(total) <= kRounding * size;
}

/// What the dual point of slopes may be scaled by: those that do not add up to 0 are none at any
/// scale but 0.
template <class Columns>
double largest_dual_scale(const LinearProblem<Columns>& problem, const RowState& rows) {
  return !problem.has_intercept || is_centred(rows) ? 1.0 : 0.0;
}

/// The sum of the slopes rises with the intercept, so its signs bracket the minimiser. Newton's
/// steps are bounded by a reach that doubles, and every third one is a bisection once both ends are
/// known: losses have flat parts, where Newton's step is endless or none.
template <class Columns>
void centre_intercept(const LinearProblem<Columns>& problem, LinearPoint& at) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr int kMostSteps = 200;
  const auto sum = [](std::span<const double> values) {
    return std::accumulate(values.begin(), values.end(), 0.0);
  };
  if (is_centred(at.rows)) return;
  const std::vector<double> base = at.rows.predictions;
  const double first = at.intercept;
  double low = -kInfinity, high = kInfinity, reach = 1.0 + std::abs(first);
  for (int step = 1; step <= kMostSteps && !is_centred(at.rows); ++step, reach *= 2.0) {
    const double slope = sum(at.rows.slopes), curvature = sum(at.rows.curvatures);
    (slope > 0.0 ? high : low) = at.intercept;
    double move = std::clamp(-slope / curvature, -reach, reach);
    if (!(curvature > 0.0)) move = slope > 0.0 ? -reach : reach;
    double next = at.intercept + move;
    const bool is_bracketed = std::isfinite(low) && std::isfinite(high);
    if (is_bracketed && (step % 3 == 0 || !(next > low && next < high))) {
      next = low + 0.5 * (high - low);
    }
    if (next == at.intercept) return;
    at.intercept = next;
    for (std::size_t i = 0; i < base.size(); ++i) {
      at.rows.predictions[i] = base[i] + (next - first);
    }
    at.loss = evaluate(problem, at.rows);
  }
}

}  // namespace sublearn
