#include "sublearn/core/lane_products.hpp"

#include <cstring>

#include "sublearn/core/multiversion.hpp"

namespace sublearn {
namespace {

typedef float Line __attribute__((vector_size(kPackRows * sizeof(float))));

/// One pack by a few queries, whose sums stay in registers.
template <int kQueries>
SUBLEARN_INLINE void pack_by(const float* pack, offset_t dim, const float* queries,
                             offset_t query_stride, float* out, offset_t out_stride) {
  Line sums[kQueries] = {};
  for (offset_t d = 0; d < dim; ++d) {
    Line line;
    std::memcpy(&line, pack + d * kPackRows, sizeof line);
    for (int q = 0; q < kQueries; ++q) sums[q] += line * queries[q * query_stride + d];
  }
  for (int q = 0; q < kQueries; ++q) std::memcpy(out + q * out_stride, &sums[q], sizeof(Line));
}

}  // namespace

SUBLEARN_MULTIVERSION void lane_products(const float* packs, offset_t count, offset_t dim,
                                         const float* queries, offset_t n_queries,
                                         offset_t query_stride, float* out, offset_t out_stride) {
  for (offset_t p = 0; p < count; ++p) {
    const float* pack = packs + p * dim * kPackRows;
    float* to = out + p * kPackRows;
    offset_t q = 0;
    for (; q + 8 <= n_queries; q += 8)
      pack_by<8>(pack, dim, queries + q * query_stride, query_stride, to + q * out_stride,
                 out_stride);
    for (; q + 4 <= n_queries; q += 4)
      pack_by<4>(pack, dim, queries + q * query_stride, query_stride, to + q * out_stride,
                 out_stride);
    for (; q < n_queries; ++q)
      pack_by<1>(pack, dim, queries + q * query_stride, query_stride, to + q * out_stride,
                 out_stride);
  }
}

}  // namespace sublearn
