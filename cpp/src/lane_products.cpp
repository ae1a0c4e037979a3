// Products of core/lane_products.hpp, compiled for several instruction sets and chosen when first
// called. Vector types as wide as the registers: with wider ones g++ keeps the sums in memory, and
// takes five times as long.
#include "sublearn/core/lane_products.hpp"

#include <cstring>

namespace sublearn {
namespace {

namespace portable {
constexpr int kLane = 4;
#include "lane_products_body.hpp"
}  // namespace portable

#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__)
#define SUBLEARN_HAS_SETS
#pragma GCC push_options
#pragma GCC target("avx2")
namespace avx2 {
constexpr int kLane = 8;
#include "lane_products_body.hpp"
}  // namespace avx2
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx512f")
namespace avx512 {
constexpr int kLane = 16;
#include "lane_products_body.hpp"
}  // namespace avx512
#pragma GCC pop_options
#endif

using Kernel = void (*)(const float*, offset_t, offset_t, const float*, offset_t, offset_t, float*,
                        offset_t);

Kernel choose() {
#ifdef SUBLEARN_HAS_SETS
  if (__builtin_cpu_supports("avx512f")) return avx512::all;
  if (__builtin_cpu_supports("avx2")) return avx2::all;
#endif
  return portable::all;
}

}  // namespace

void lane_products(const float* packs, offset_t count, offset_t dim, const float* queries,
                   offset_t n_queries, offset_t query_stride, float* out, offset_t out_stride) {
  static const Kernel kernel = choose();
  kernel(packs, count, dim, queries, n_queries, query_stride, out, out_stride);
}

}  // namespace sublearn
