// Inner products of many dense rows with many queries, a lane for each row.
//
// Sixteen rows make a pack: number d of all of them lies in one cache line. A line that is read
// meets one number of each of several queries, and no sum runs across lanes. That makes rows of any
// length cheap, also short ones, where inner_products.hpp spends its time on the final sums.
// Compiled once per instruction set in cpp/src/lane_products.cpp.
#pragma once

#include "sublearn/core/types.hpp"

namespace sublearn {

inline constexpr offset_t kPackRows = 16;

inline offset_t n_packs(offset_t n_rows) { return (n_rows + kPackRows - 1) / kPackRows; }

/// out[q * out_stride + r] = <row r, query q> for the rows of `count` packs of `dim` lines, the
/// empty ones of the last pack included.
void lane_products(const float* packs, offset_t count, offset_t dim, const float* queries,
                   offset_t n_queries, offset_t query_stride, float* out, offset_t out_stride);

/// Writes a row into its lane.
inline void set_lane(float* packs, offset_t dim, offset_t slot, const float* row) {
  float* line = packs + slot / kPackRows * dim * kPackRows + slot % kPackRows;
  for (offset_t d = 0; d < dim; ++d) line[d * kPackRows] = row[d];
}

}  // namespace sublearn
