// Products of a matrix and a vector in which the sum is a maximum and the product a sum: what a
// message of max-product inference costs. Compiled once per instruction set in
// cpp/src/max_plus.cpp.
#pragma once

#include <cstddef>

#include "sublearn/core/types.hpp"

namespace sublearn {

/// A matrix whose rows are contiguous and `stride` apart; the stride may be negative, so that the
/// rows of a table of differences overlap in one short array.
struct RowMatrix {
  const double* cells;
  offset_t stride;
  offset_t n_rows;
  offset_t n_cols;
};

/// out[a] = max_b scale * cells(a, b) - minus[b]
void max_plus_rows(const RowMatrix& matrix, double scale, const double* minus, double* out);

/// out[b] = max_a scale * cells(a, b) - minus[a]
void max_plus_columns(const RowMatrix& matrix, double scale, const double* minus, double* out);

}  // namespace sublearn
