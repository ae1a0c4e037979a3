// Inner products of dense float32 rows: what a search over embeddings spends its time on.
//
// Rows are padded with zeros to whole cache lines of 16 numbers, so that no loop has a rest.
// Compiled once per instruction set in cpp/src/inner_products.cpp. Sums run in a fixed
// order that does not depend on how many rows or queries are taken at once.
//
// Rows may be stored as 8-bit numbers with a scale each, a quarter of the memory: queries stay
// float32, and so do sums.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "sublearn/core/types.hpp"

namespace sublearn {

inline constexpr offset_t kRowFloats = 16;

/// Numbers that a row of `dim` numbers takes when it is padded.
inline offset_t padded_dim(offset_t dim) {
  return (dim + kRowFloats - 1) / kRowFloats * kRowFloats;
}

/// Asks for a row that will be read soon. Rows picked here and there come from memory one by one
/// otherwise, at a tenth of a microsecond and more.
inline void prefetch_row(const float* row, offset_t stride) {
  for (offset_t d = 0; d < stride; d += kRowFloats) __builtin_prefetch(row + d);
}

/// out[q * n_rows + r] = <row r, query q>; rows and queries lie `stride` numbers apart, a
/// multiple of 16.
void inner_products(const float* rows, offset_t n_rows, const float* queries, offset_t n_queries,
                    offset_t stride, float* out);

/// The same for rows of 8-bit numbers: row r is scales[r] times its numbers.
void inner_products(const std::int8_t* rows, const float* scales, offset_t n_rows,
                    const float* queries, offset_t n_queries, offset_t stride, float* out);

/// The nearest row of 8-bit numbers, none of which is -128; returns its scale. Each number moves by
/// at most half of the scale, the largest size in the row over 127.
inline float quantise(const float* row, offset_t stride, std::int8_t* out) {
  float largest = 0.0F;
  for (offset_t d = 0; d < stride; ++d) largest = std::max(largest, std::abs(row[d]));
  const float scale = largest / 127.0F;
  const float inverse = scale > 0.0F ? 1.0F / scale : 0.0F;
  for (offset_t d = 0; d < stride; ++d) {
    const float level = std::nearbyint(row[d] * inverse);
    out[d] = static_cast<std::int8_t>(std::max(-127.0F, std::min(127.0F, level)));
  }
  return scale;
}

}  // namespace sublearn
