// Loops over padded rows of float32 (core/inner_products.hpp) that lie anywhere in a matrix, and
// exponentials of many scores: what the training of embeddings spends its time on.
//
// Compiled once per instruction set in cpp/src/row_kernels.cpp; the same sums on each.
#pragma once

#include "sublearn/core/types.hpp"

namespace sublearn {

/// out[i] = <rows[ids[i]], query>.
void gathered_products(const float* rows, const index_t* ids, offset_t n, const float* query,
                       offset_t stride, float* out);

/// out += sum of factors[i] * rows[ids[i]]; the rows 0 .. n-1 themselves if `ids` is null.
void add_scaled_rows(const float* rows, const index_t* ids, const float* factors, offset_t n,
                     offset_t stride, float* out);

/// rows[ids[i]] += factors[i] * vector, for the columns from `first` to `last` (multiples of 16).
void add_to_rows(float* rows, const index_t* ids, const float* factors, offset_t n, offset_t stride,
                 const float* vector, offset_t first, offset_t last);

/// out[i] = exp(scores[i] - shift), off by at most 4e-7 of itself; 0 below exp(-87). No NaN in,
/// none out. `out` may be `scores`.
void exponentials(const float* scores, offset_t n, float shift, float* out);

}  // namespace sublearn
