#include "sublearn/solvers/embed/row_updates.hpp"

#include <cmath>

#include "sublearn/core/multiversion.hpp"

namespace sublearn {
namespace {

constexpr float kTiny = 1e-8F;
constexpr float kBeta1 = 0.9F;
constexpr float kBeta2 = 0.999F;

/// For each number of the row its move, 16 at a time; returns the sum of squared moves.
template <class Move>
SUBLEARN_INLINE float move_all(float* weights, offset_t stride, Move&& move) {
  float squares[kRowFloats] = {};
  for (offset_t d = 0; d < stride; d += kRowFloats) {
    for (offset_t k = 0; k < kRowFloats; ++k) {
      const float delta = move(d + k);
      weights[d + k] -= delta;
      squares[k] += delta * delta;
    }
  }
  float total = 0.0F;
  for (const float part : squares) total += part;
  return total;
}

}  // namespace

SUBLEARN_MULTIVERSION void add_scaled(float* sum, const float* row, float scale, offset_t stride) {
  for (offset_t d = 0; d < stride; ++d) sum[d] += scale * row[d];
}

SUBLEARN_MULTIVERSION float step_row(const RowStep& step, float* weights, float* first,
                                     float* second, const float* gradient, offset_t stride) {
  const float rate = step.rate;
  if (step.rule == StepRule::sgd)
    return move_all(weights, stride, [&](offset_t d) { return rate * gradient[d]; });
  if (step.rule == StepRule::adagrad) {
    return move_all(weights, stride, [&](offset_t d) {
      first[d] += gradient[d] * gradient[d];
      return rate * gradient[d] / (std::sqrt(first[d]) + kTiny);
    });
  }
  return move_all(weights, stride, [&](offset_t d) {
    first[d] += (1.0F - kBeta1) * (gradient[d] - first[d]);
    second[d] += (1.0F - kBeta2) * (gradient[d] * gradient[d] - second[d]);
    return rate * step.mean_scale * first[d] / (std::sqrt(second[d] * step.square_scale) + kTiny);
  });
}

SUBLEARN_MULTIVERSION void pull_row(const RowStep& step, float* weights, const float* origin,
                                    const float* first, const float* second, float strength,
                                    offset_t stride) {
  for (offset_t d = 0; d < stride; ++d) {
    float metric = 1.0F;
    if (step.rule == StepRule::adagrad) metric = std::sqrt(first[d]) + kTiny;
    if (step.rule == StepRule::adam) metric = std::sqrt(second[d] * step.square_scale) + kTiny;
    weights[d] = origin[d] + (weights[d] - origin[d]) * metric / (metric + strength);
  }
}

SUBLEARN_MULTIVERSION float squared_length(const float* row, offset_t stride) {
  float squares[kRowFloats] = {};
  for (offset_t d = 0; d < stride; d += kRowFloats) {
    for (offset_t k = 0; k < kRowFloats; ++k) squares[k] += row[d + k] * row[d + k];
  }
  float total = 0.0F;
  for (const float part : squares) total += part;
  return total;
}

}  // namespace sublearn
