// Inner products of core/inner_products.hpp, compiled for several instruction sets and chosen when
// first called.
#include "sublearn/core/inner_products.hpp"

#include <cstring>

namespace sublearn {
namespace {

namespace portable {
constexpr int kLane = 4;
#include "inner_products_body.hpp"
}  // namespace portable

// CMakeLists.txt lets a product and its sum be rounded once in this file: sums depend on the width
// of registers anyway, and 3 rows by 4 queries then make 47 Gflop/s instead of 33.
//
// g++ alone: clang has another way to say it, and takes what the whole file is compiled for.
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__)
#define SUBLEARN_HAS_SETS
#pragma GCC push_options
#pragma GCC target("avx2,fma")
namespace avx2 {
constexpr int kLane = 8;
#include "inner_products_body.hpp"
}  // namespace avx2
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx512f")
namespace avx512 {
constexpr int kLane = 16;
#include "inner_products_body.hpp"
}  // namespace avx512
#pragma GCC pop_options
#endif

using Kernel = void (*)(const float*, offset_t, const float*, offset_t, offset_t, float*);

Kernel choose() {
#ifdef SUBLEARN_HAS_SETS
  if (__builtin_cpu_supports("avx512f")) return avx512::all;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return avx2::all;
#endif
  return portable::all;
}

}  // namespace

void inner_products(const float* rows, offset_t n_rows, const float* queries, offset_t n_queries,
                    offset_t stride, float* out) {
  static const Kernel kernel = choose();
  kernel(rows, n_rows, queries, n_queries, stride, out);
}

}  // namespace sublearn
