// Inner products of core/inner_products.hpp, compiled for several instruction sets and chosen when
// first called.
#include "sublearn/core/inner_products.hpp"

#include <cstring>

#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__)
#include <immintrin.h>
#endif

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
#define SUBLEARN_WIDEN(from) _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadu_si64(from)))
#include "inner_products_body.hpp"
#undef SUBLEARN_WIDEN
}  // namespace avx2
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx512f")
namespace avx512 {
constexpr int kLane = 16;
// Under a mask of ones: without, g++ 12 warns of its own header.
#define SUBLEARN_WIDEN(from) \
  _mm512_maskz_cvtepi32_ps(  \
      0xFFFF,                \
      _mm512_maskz_cvtepi8_epi32(0xFFFF, _mm_loadu_si128(reinterpret_cast<const __m128i*>(from))))
#include "inner_products_body.hpp"
#undef SUBLEARN_WIDEN
}  // namespace avx512
#pragma GCC pop_options
#endif

template <class T>
using Kernel = void (*)(const T*, offset_t, const float*, offset_t, offset_t, float*);

template <class T>
Kernel<T> choose() {
#ifdef SUBLEARN_HAS_SETS
  if (__builtin_cpu_supports("avx512f")) return avx512::all<T>;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return avx2::all<T>;
#endif
  return portable::all<T>;
}

}  // namespace

void inner_products(const float* rows, offset_t n_rows, const float* queries, offset_t n_queries,
                    offset_t stride, float* out) {
  static const Kernel<float> kernel = choose<float>();
  kernel(rows, n_rows, queries, n_queries, stride, out);
}

void inner_products(const std::int8_t* rows, const float* scales, offset_t n_rows,
                    const float* queries, offset_t n_queries, offset_t stride, float* out) {
  static const Kernel<std::int8_t> kernel = choose<std::int8_t>();
  kernel(rows, n_rows, queries, n_queries, stride, out);
  for (offset_t q = 0; q < n_queries; ++q) {
    for (offset_t r = 0; r < n_rows; ++r) out[q * n_rows + r] *= scales[r];
  }
}

}  // namespace sublearn
