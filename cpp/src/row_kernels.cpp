#include "sublearn/core/row_kernels.hpp"

#include <cstdint>
#include <cstring>

#include "sublearn/core/inner_products.hpp"
#include "sublearn/core/multiversion.hpp"

namespace sublearn {
namespace {

typedef float Line __attribute__((vector_size(kRowFloats * sizeof(float))));
typedef std::int32_t Bits __attribute__((vector_size(kRowFloats * sizeof(float))));

SUBLEARN_INLINE void load(const float* from, Line& line) { std::memcpy(&line, from, sizeof line); }
SUBLEARN_INLINE void store(const Line& line, float* to) { std::memcpy(to, &line, sizeof line); }

SUBLEARN_INLINE float total(const Line& line) {
  float parts[kRowFloats];
  store(line, parts);
  for (int width = kRowFloats / 2; width > 0; width /= 2) {
    for (int k = 0; k < width; ++k) parts[k] += parts[k + width];
  }
  return parts[0];
}

/// exp(x) = 2^n exp(r) with r in +-ln 2 / 2, by the series of exp up to r^6 / 720.
SUBLEARN_INLINE void exponential(Line& x) {
  const Line lowest = Line{} - 87.0F, highest = Line{} + 88.0F;
  const Bits is_zero = x < lowest;
  x = x > highest ? highest : x;
  x = x < lowest ? lowest : x;
  const Line scaled = x * 1.44269504F;
  const Line half = scaled < 0.0F ? Line{} - 0.5F : Line{} + 0.5F;
  const Bits n = __builtin_convertvector(scaled + half, Bits);
  const Line whole = __builtin_convertvector(n, Line);
  const Line r = x - whole * 0.693359375F + whole * 2.12194440e-4F;  // ln 2 in two parts
  Line series = r * (1.0F / 720) + (1.0F / 120);
  series = series * r + (1.0F / 24);
  series = series * r + (1.0F / 6);
  series = series * r + 0.5F;
  series = series * r * r + r + 1.0F;
  const Bits power = (n + 127) << 23;
  Line scale;
  std::memcpy(&scale, &power, sizeof scale);
  x = is_zero ? Line{} : series * scale;
}

}  // namespace

SUBLEARN_MULTIVERSION
void gathered_products(const float* rows, const index_t* ids, offset_t n, const float* query,
                       offset_t stride, float* out) {
  constexpr offset_t kAhead = 4;
  for (offset_t i = 0; i < n; ++i) {
    if (i + kAhead < n) {  // rows lie anywhere: ask for the lines of a later one
      const float* later = rows + ids[i + kAhead] * stride;
      for (offset_t d = 0; d < stride; d += kRowFloats) __builtin_prefetch(later + d);
    }
    const float* row = rows + ids[i] * stride;
    Line sum{}, a, b;
    for (offset_t d = 0; d < stride; d += kRowFloats) {
      load(row + d, a);
      load(query + d, b);
      sum += a * b;
    }
    out[i] = total(sum);
  }
}

SUBLEARN_MULTIVERSION
void add_scaled_rows(const float* rows, const index_t* ids, const float* factors, offset_t n,
                     offset_t stride, float* out) {
  for (offset_t i = 0; i < n; ++i) {
    const float* row = rows + (ids == nullptr ? i : ids[i]) * stride;
    const float factor = factors[i];
    for (offset_t d = 0; d < stride; d += kRowFloats) {
      Line a, b;
      load(row + d, a);
      load(out + d, b);
      store(b + a * factor, out + d);
    }
  }
}

SUBLEARN_MULTIVERSION
void add_to_rows(float* rows, const index_t* ids, const float* factors, offset_t n, offset_t stride,
                 const float* vector, offset_t first, offset_t last) {
  constexpr offset_t kAhead = 4;
  for (offset_t i = 0; i < n; ++i) {
    if (i + kAhead < n) {
      const float* later = rows + ids[i + kAhead] * stride;
      for (offset_t d = first; d < last; d += kRowFloats) __builtin_prefetch(later + d, 1);
    }
    float* row = rows + ids[i] * stride;
    const float factor = factors[i];
    for (offset_t d = first; d < last; d += kRowFloats) {
      Line a, b;
      load(vector + d, a);
      load(row + d, b);
      store(b + a * factor, row + d);
    }
  }
}

SUBLEARN_MULTIVERSION
void exponentials(const float* scores, offset_t n, float shift, float* out) {
  offset_t i = 0;
  for (; i + kRowFloats <= n; i += kRowFloats) {
    Line x;
    load(scores + i, x);
    x -= shift;
    exponential(x);
    store(x, out + i);
  }
  if (i == n) return;
  float rest[kRowFloats] = {};
  std::memcpy(rest, scores + i, static_cast<std::size_t>(n - i) * sizeof(float));
  Line x;
  load(rest, x);
  x -= shift;
  exponential(x);
  store(x, rest);
  std::memcpy(out + i, rest, static_cast<std::size_t>(n - i) * sizeof(float));
}

}  // namespace sublearn
