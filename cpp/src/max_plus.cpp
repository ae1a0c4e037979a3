// Max-plus products of core/max_plus.hpp. A maximum does not mind to see a number twice: what is
// left over at the end of a row is covered by one more vector that overlaps the one before.
#include "sublearn/core/max_plus.hpp"

#include <cstring>
#include <limits>

#include "sublearn/core/multiversion.hpp"

namespace sublearn {
namespace {

constexpr double kLowest = -std::numeric_limits<double>::infinity();

// No wider than a register of AVX2: g++ takes a choice between wider vectors apart into numbers.
#if defined(__x86_64__)
typedef double Vector __attribute__((vector_size(32)));
#else
typedef double Vector __attribute__((vector_size(16)));
#endif
constexpr int kWidth = sizeof(Vector) / sizeof(double);

SUBLEARN_INLINE Vector load(const double* from) {
  Vector v;
  std::memcpy(&v, from, sizeof v);
  return v;
}
SUBLEARN_INLINE void store(double* to, Vector v) { std::memcpy(to, &v, sizeof v); }
SUBLEARN_INLINE Vector larger(Vector a, Vector b) { return a > b ? a : b; }
SUBLEARN_INLINE double largest(Vector v) {
  double best = v[0];
  for (int k = 1; k < kWidth; ++k) best = v[k] > best ? v[k] : best;
  return best;
}

/// kRows rows at once: each needs its own chain of maxima, and `minus` is read once for all.
template <int kRows>
SUBLEARN_INLINE void some_rows(const RowMatrix& m, offset_t a, double scale, const double* minus,
                               double* out) {
  const double* row = m.cells + a * m.stride;
  const offset_t last = m.n_cols - kWidth;
  Vector best[kRows];
  const Vector tail = load(minus + last);
  for (int k = 0; k < kRows; ++k) best[k] = scale * load(row + k * m.stride + last) - tail;
  for (offset_t b = 0; b < last; b += kWidth) {
    const Vector taken = load(minus + b);
    for (int k = 0; k < kRows; ++k) {
      best[k] = larger(scale * load(row + k * m.stride + b) - taken, best[k]);
    }
  }
  for (int k = 0; k < kRows; ++k) out[a + k] = largest(best[k]);
}

SUBLEARN_INLINE void rows_wide(const RowMatrix& m, double scale, const double* minus, double* out) {
  offset_t a = 0;
  for (; a + 4 <= m.n_rows; a += 4) some_rows<4>(m, a, scale, minus, out);
  for (; a < m.n_rows; ++a) some_rows<1>(m, a, scale, minus, out);
}

SUBLEARN_INLINE void rows_narrow(const RowMatrix& m, double scale, const double* minus,
                                 double* out) {
  for (offset_t a = 0; a < m.n_rows; ++a) {
    const double* row = m.cells + a * m.stride;
    double best = kLowest;
    for (offset_t b = 0; b < m.n_cols; ++b) {
      const double value = scale * row[b] - minus[b];
      best = value > best ? value : best;
    }
    out[a] = best;
  }
}

/// kVectors vectors of columns, which stay in registers while all rows pass.
template <int kVectors>
SUBLEARN_INLINE void some_columns(const RowMatrix& m, offset_t b, double scale, const double* minus,
                                  double* out) {
  const double* cells = m.cells + b;
  Vector best[kVectors];
  for (int k = 0; k < kVectors; ++k) best[k] = Vector{} + kLowest;
  for (offset_t a = 0; a < m.n_rows; ++a, cells += m.stride) {
    const double taken = minus[a];
    for (int k = 0; k < kVectors; ++k) {
      best[k] = larger(scale * load(cells + k * kWidth) - taken, best[k]);
    }
  }
  for (int k = 0; k < kVectors; ++k) store(out + b + k * kWidth, best[k]);
}

SUBLEARN_INLINE void columns_wide(const RowMatrix& m, double scale, const double* minus,
                                  double* out) {
  offset_t b = 0;
  for (; b + 4 * kWidth <= m.n_cols; b += 4 * kWidth) some_columns<4>(m, b, scale, minus, out);
  for (; b + kWidth <= m.n_cols; b += kWidth) some_columns<1>(m, b, scale, minus, out);
  if (b < m.n_cols) some_columns<1>(m, m.n_cols - kWidth, scale, minus, out);
}

SUBLEARN_INLINE void columns_narrow(const RowMatrix& m, double scale, const double* minus,
                                    double* out) {
  for (offset_t b = 0; b < m.n_cols; ++b) out[b] = kLowest;
  for (offset_t a = 0; a < m.n_rows; ++a) {
    const double* row = m.cells + a * m.stride;
    for (offset_t b = 0; b < m.n_cols; ++b) {
      const double value = scale * row[b] - minus[a];
      out[b] = value > out[b] ? value : out[b];
    }
  }
}

}  // namespace

SUBLEARN_MULTIVERSION
void max_plus_rows(const RowMatrix& matrix, double scale, const double* minus, double* out) {
  if (matrix.n_cols >= kWidth) return rows_wide(matrix, scale, minus, out);
  rows_narrow(matrix, scale, minus, out);
}

SUBLEARN_MULTIVERSION
void max_plus_columns(const RowMatrix& matrix, double scale, const double* minus, double* out) {
  if (matrix.n_cols >= kWidth) return columns_wide(matrix, scale, minus, out);
  columns_narrow(matrix, scale, minus, out);
}

}  // namespace sublearn
