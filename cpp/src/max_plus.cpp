// Max-plus products of core/max_plus.hpp. A maximum does not mind to see a number twice: what is
// left over at the end of a row is covered by one more vector that overlaps the one before.
#include "sublearn/core/max_plus.hpp"

#include <cstring>
#include <limits>

#include "sublearn/core/multiversion.hpp"

namespace sublearn {
namespace {

constexpr double kLowest = -std::numeric_limits<double>::infinity();

typedef double Four __attribute__((vector_size(32)));
typedef double Eight __attribute__((vector_size(64)));
typedef double Sixteen __attribute__((vector_size(128)));

template <class V>
struct Wide {
  using Vector = V;
  static constexpr int kWidth = sizeof(V) / sizeof(double);

  static SUBLEARN_INLINE Vector load(const double* from) {
    Vector v;
    std::memcpy(&v, from, sizeof v);
    return v;
  }
  static SUBLEARN_INLINE void store(double* to, Vector v) { std::memcpy(to, &v, sizeof v); }
  static SUBLEARN_INLINE Vector larger(Vector a, Vector b) { return a > b ? a : b; }
  static SUBLEARN_INLINE double largest(Vector v) {
    double lanes[kWidth];
    std::memcpy(lanes, &v, sizeof v);
    for (int half = kWidth / 2; half > 0; half /= 2) {
      for (int k = 0; k < half; ++k) {
        lanes[k] = lanes[k] > lanes[k + half] ? lanes[k] : lanes[k + half];
      }
    }
    return lanes[0];
  }
};

template <class Vector>
SUBLEARN_INLINE void rows_wide(const RowMatrix& m, double scale, const double* minus, double* out) {
  using W = Wide<Vector>;
  constexpr int kWidth = W::kWidth;
  for (offset_t a = 0; a < m.n_rows; ++a) {
    const double* row = m.cells + a * m.stride;
    const offset_t last = m.n_cols - kWidth;
    auto best = scale * W::load(row + last) - W::load(minus + last);
    for (offset_t b = 0; b < last; b += kWidth) {
      best = W::larger(scale * W::load(row + b) - W::load(minus + b), best);
    }
    out[a] = W::largest(best);
  }
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

template <class Vector>
SUBLEARN_INLINE void columns_wide(const RowMatrix& m, double scale, const double* minus,
                                  double* out) {
  using W = Wide<Vector>;
  constexpr int kWidth = W::kWidth;
  for (offset_t begin = 0; begin < m.n_cols; begin += kWidth) {
    const offset_t b = begin + kWidth <= m.n_cols ? begin : m.n_cols - kWidth;
    const double* cells = m.cells + b;
    Vector best = Vector{} + kLowest;
    for (offset_t a = 0; a < m.n_rows; ++a, cells += m.stride) {
      best = W::larger(scale * W::load(cells) - minus[a], best);
    }
    W::store(out + b, best);
  }
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
  if (matrix.n_cols >= 8) return rows_wide<Eight>(matrix, scale, minus, out);
  if (matrix.n_cols >= 4) return rows_wide<Four>(matrix, scale, minus, out);
  rows_narrow(matrix, scale, minus, out);
}

SUBLEARN_MULTIVERSION
void max_plus_columns(const RowMatrix& matrix, double scale, const double* minus, double* out) {
  if (matrix.n_cols >= 16) return columns_wide<Sixteen>(matrix, scale, minus, out);
  if (matrix.n_cols >= 8) return columns_wide<Eight>(matrix, scale, minus, out);
  if (matrix.n_cols >= 4) return columns_wide<Four>(matrix, scale, minus, out);
  columns_narrow(matrix, scale, minus, out);
}

}  // namespace sublearn
