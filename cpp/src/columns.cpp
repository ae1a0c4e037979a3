#include "sublearn/core/columns.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

#include "sublearn/core/lanes.hpp"
#include "sublearn/core/multiversion.hpp"

namespace sublearn {
namespace {

// Eight doubles of a sum side by side, four such packs at once: enough independent additions to
// keep two units of four cycles latency busy.
using Doubles = Pack<double>::Vector;
constexpr offset_t kWidth = kLanes<double>;
constexpr int kSums = 4;

SUBLEARN_INLINE Doubles load(const double* at) {
  Doubles v;
  std::memcpy(&v, at, sizeof v);
  return v;
}

SUBLEARN_INLINE Doubles load(const float* at) {
  typedef float Floats __attribute__((vector_size(32)));
  Floats v;
  std::memcpy(&v, at, sizeof v);
  return __builtin_convertvector(v, Doubles);
}

SUBLEARN_INLINE void store(double* at, Doubles v) { std::memcpy(at, &v, sizeof v); }

SUBLEARN_INLINE double sum(const Doubles* sums) {
  const Doubles all = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  return ((all[0] + all[1]) + (all[2] + all[3])) + ((all[4] + all[5]) + (all[6] + all[7]));
}

/// sum of term(i) over all i, where wide(i) gives the eight terms from i on.
template <class Wide, class Term>
SUBLEARN_INLINE double sum_of(offset_t n, Wide&& wide, Term&& term) {
  Doubles sums[kSums] = {};
  offset_t i = 0;
  for (; i + kSums * kWidth <= n; i += kSums * kWidth) {
    for (int s = 0; s < kSums; ++s) sums[s] += wide(i + s * kWidth);
  }
  for (; i + kWidth <= n; i += kWidth) sums[0] += wide(i);
  double rest = 0.0;
  for (; i < n; ++i) rest += term(i);
  return sum(sums) + rest;
}

template <class T>
SUBLEARN_INLINE double dot(const T* x, const double* v, offset_t n) {
  return sum_of(
      n, [&](offset_t i) { return load(x + i) * load(v + i); },
      [&](offset_t i) { return static_cast<double>(x[i]) * v[i]; });
}

template <class T>
SUBLEARN_INLINE void dot4(const T* const x[4], const double* v, offset_t n, double* out) {
  Doubles sums[4][2] = {};
  offset_t i = 0;
  for (; i + 2 * kWidth <= n; i += 2 * kWidth) {
    const Doubles first = load(v + i), second = load(v + i + kWidth);
    for (int b = 0; b < 4; ++b) {
      sums[b][0] += load(x[b] + i) * first;
      sums[b][1] += load(x[b] + i + kWidth) * second;
    }
  }
  for (int b = 0; b < 4; ++b) {
    const Doubles none = {};
    const Doubles all[4] = {sums[b][0], sums[b][1], none, none};
    double rest = 0.0;
    for (offset_t r = i; r < n; ++r) rest += static_cast<double>(x[b][r]) * v[r];
    out[b] += sum(all) + rest;
  }
}

/// x - x is 0 for finite numbers and NaN for all others.
template <class T>
SUBLEARN_INLINE Extremes<T> find_extremes(const T* x, offset_t n) {
  // 16 bytes: g++ takes a choice between wider vectors apart into numbers (5.4 ns for each entry).
  typedef T Vector __attribute__((vector_size(16)));
  constexpr offset_t kStep = sizeof(Vector) / sizeof(T);
  Extremes<T> found{std::numeric_limits<T>::infinity(), -std::numeric_limits<T>::infinity()};
  T sum_of_nothing = 0;
  offset_t i = 0;
  if (n >= kStep) {
    Vector low, nothing = {};
    std::memcpy(&low, x, sizeof low);
    Vector high = low;
    for (; i + kStep <= n; i += kStep) {
      Vector v;
      std::memcpy(&v, x + i, sizeof v);
      low = v < low ? v : low;
      high = v > high ? v : high;
      nothing += v - v;
    }
    for (int lane = 0; lane < kStep; ++lane) {
      found = {std::min(found.low, low[lane]), std::max(found.high, high[lane])};
      sum_of_nothing += nothing[lane];
    }
  }
  for (; i < n; ++i) {
    found = {std::min(found.low, x[i]), std::max(found.high, x[i])};
    sum_of_nothing += x[i] - x[i];
  }
  constexpr T kNaN = std::numeric_limits<T>::quiet_NaN();
  return sum_of_nothing == 0 ? found : Extremes<T>{kNaN, kNaN};
}

template <class T>
SUBLEARN_INLINE double square(const T* x, const double* h, offset_t n) {
  return sum_of(
      n,
      [&](offset_t i) {
        const Doubles value = load(x + i);
        return load(h + i) * (value * value);
      },
      [&](offset_t i) {
        const auto value = static_cast<double>(x[i]);
        return h[i] * (value * value);
      });
}

template <class T>
SUBLEARN_INLINE void add(const T* x, double a, double* v, offset_t n) {
  offset_t i = 0;
  for (; i + kWidth <= n; i += kWidth) store(v + i, load(v + i) + a * load(x + i));
  for (; i < n; ++i) v[i] += a * static_cast<double>(x[i]);
}

template <class T>
SUBLEARN_INLINE void add_scaled(const T* x, double a, const double* h, double* v, offset_t n) {
  offset_t i = 0;
  for (; i + kWidth <= n; i += kWidth) {
    store(v + i, load(v + i) + (a * load(h + i)) * load(x + i));
  }
  for (; i < n; ++i) v[i] += (a * h[i]) * static_cast<double>(x[i]);
}

}  // namespace

SUBLEARN_MULTIVERSION double dense_dot(const float* x, const double* v, offset_t n) {
  return dot(x, v, n);
}
SUBLEARN_MULTIVERSION double dense_dot(const double* x, const double* v, offset_t n) {
  return dot(x, v, n);
}
SUBLEARN_MULTIVERSION void dense_dot4(const float* const x[4], const double* v, offset_t n,
                                      double* out) {
  dot4(x, v, n, out);
}
SUBLEARN_MULTIVERSION void dense_dot4(const double* const x[4], const double* v, offset_t n,
                                      double* out) {
  dot4(x, v, n, out);
}
SUBLEARN_MULTIVERSION Extremes<float> extremes(const float* x, offset_t n) {
  return find_extremes(x, n);
}
SUBLEARN_MULTIVERSION Extremes<double> extremes(const double* x, offset_t n) {
  return find_extremes(x, n);
}
SUBLEARN_MULTIVERSION double dense_square(const float* x, const double* h, offset_t n) {
  return square(x, h, n);
}
SUBLEARN_MULTIVERSION double dense_square(const double* x, const double* h, offset_t n) {
  return square(x, h, n);
}
SUBLEARN_MULTIVERSION void dense_add(const float* x, double a, double* v, offset_t n) {
  add(x, a, v, n);
}
SUBLEARN_MULTIVERSION void dense_add(const double* x, double a, double* v, offset_t n) {
  add(x, a, v, n);
}
SUBLEARN_MULTIVERSION void dense_add_scaled(const float* x, double a, const double* h, double* v,
                                            offset_t n) {
  add_scaled(x, a, h, v, n);
}
SUBLEARN_MULTIVERSION void dense_add_scaled(const double* x, double a, const double* h, double* v,
                                            offset_t n) {
  add_scaled(x, a, h, v, n);
}

}  // namespace sublearn
