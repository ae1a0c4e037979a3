// Steps of stochastic gradient methods on single rows of a weight matrix.
//
// Rows are padded to whole cache lines (core/inner_products.hpp), so that no loop has a rest.
// Compiled once per instruction set in cpp/src/row_updates.cpp; each number has its own sum, so the
// result is the same on every one.
#pragma once

#include "sublearn/core/inner_products.hpp"
#include "sublearn/core/types.hpp"

namespace sublearn {

enum class StepRule { sgd, adagrad, adam };

/// Rows of the same size as the weights that a rule keeps: none, sums of squares, or two means.
inline int n_states(StepRule rule) { return static_cast<int>(rule); }

/// A step with everything that does not depend on the row.
struct RowStep {
  StepRule rule = StepRule::adagrad;
  float rate = 0.1F;          ///< learning rate of this step
  float mean_scale = 1.0F;    ///< adam: 1 / (1 - beta1^t)
  float square_scale = 1.0F;  ///< adam: 1 / (1 - beta2^t)
};

/// sum += scale * row
void add_scaled(float* sum, const float* row, float scale, offset_t stride);

/// Moves `weights` against `gradient`; `first` and `second` are the rows of state, if the rule has
/// them. Returns the squared length of the move.
float step_row(const RowStep& step, float* weights, float* first, float* second,
               const float* gradient, offset_t stride);

/// Pulls `weights` towards `origin` by an implicit step on strength / 2 |w - origin|^2 in the
/// metric of the rule, so that no strength overshoots: w - o is divided by 1 + strength / H, where
/// H is what the rule divides gradients by.
void pull_row(const RowStep& step, float* weights, const float* origin, const float* first,
              const float* second, float strength, offset_t stride);

/// Squared length of a row.
float squared_length(const float* row, offset_t stride);

}  // namespace sublearn
