// The columns of a data matrix, sparse or dense, as solvers that go coordinate by coordinate use
// them: inner products with a vector over the rows, and multiples added to one.
//
// Both kinds offer the same functions, so a solver is written once. Sums run in double whatever T
// is, and in an order that does not depend on the instruction set.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "sublearn/core/types.hpp"
#include "sublearn/core/views.hpp"

namespace sublearn {

/// sum_i x_i v_i.
double dense_dot(const float* x, const double* v, offset_t n);
double dense_dot(const double* x, const double* v, offset_t n);
/// sum_i h_i x_i^2.
double dense_square(const float* x, const double* h, offset_t n);
double dense_square(const double* x, const double* h, offset_t n);
/// v += a x.
void dense_add(const float* x, double a, double* v, offset_t n);
void dense_add(const double* x, double a, double* v, offset_t n);
/// v += a (h o x).
void dense_add_scaled(const float* x, double a, const double* h, double* v, offset_t n);
void dense_add_scaled(const double* x, double a, const double* h, double* v, offset_t n);

/// out[b] += sum_i v_i x_b,i for four vectors x at once, which read v only once.
void dense_dot4(const float* const x[4], const double* v, offset_t n, double* out);
void dense_dot4(const double* const x[4], const double* v, offset_t n, double* out);

/// The least and the largest entry; both NaN if an entry is not finite.
template <class T>
struct Extremes {
  T low;
  T high;
};
Extremes<float> extremes(const float* x, offset_t n);
Extremes<double> extremes(const double* x, offset_t n);

template <class T, class I>
class SparseColumns {
 public:
  explicit SparseColumns(CscView<T, I> view) : view_(view) {}

  offset_t n_rows() const { return view_.n_rows(); }
  offset_t n_cols() const { return view_.n_cols(); }
  offset_t nnz(offset_t j) const { return view_.indptr[j + 1] - view_.indptr[j]; }

  double dot(offset_t j, const double* v) const {
    const auto column = view_.column(j);
    // Two sums hide the latency of the additions; more do not help, the gathers limit.
    double even = 0.0, odd = 0.0;
    std::size_t p = 0;
    for (; p + 1 < column.size(); p += 2) {
      even += static_cast<double>(column.values[p]) * v[column.ids[p]];
      odd += static_cast<double>(column.values[p + 1]) * v[column.ids[p + 1]];
    }
    if (p < column.size()) even += static_cast<double>(column.values[p]) * v[column.ids[p]];
    return even + odd;
  }
  double square(offset_t j, const double* h) const {
    const auto column = view_.column(j);
    double sum = 0.0;
    for (std::size_t p = 0; p < column.size(); ++p) {
      const auto x = static_cast<double>(column.values[p]);
      sum += h[column.ids[p]] * (x * x);
    }
    return sum;
  }
  void add(offset_t j, double a, double* v) const {
    const auto column = view_.column(j);
    for (std::size_t p = 0; p < column.size(); ++p) {
      v[column.ids[p]] += a * static_cast<double>(column.values[p]);
    }
  }
  void add_scaled(offset_t j, double a, const double* h, double* v) const {
    const auto column = view_.column(j);
    for (std::size_t p = 0; p < column.size(); ++p) {
      const auto i = column.ids[p];
      v[i] += (a * h[i]) * static_cast<double>(column.values[p]);
    }
  }

  /// out[a * width + b] = sum_i h_i x_i,as[a] x_i,bs[b].
  void products(std::span<const index_t> as, std::span<const index_t> bs, const double* h,
                double* out, std::size_t width) const {
    std::vector<double> scaled(static_cast<std::size_t>(n_rows()));
    for (std::size_t a = 0; a < as.size(); ++a) {
      add_scaled(as[a], 1.0, h, scaled.data());
      for (std::size_t b = 0; b < bs.size(); ++b) out[a * width + b] = dot(bs[b], scaled.data());
      for (const auto i : view_.column(as[a]).ids) scaled[at(i)] = 0.0;
    }
  }
  /// Additions that cost as much as one of `products`: gathers cost what those of `dot` do.
  static constexpr double kProductCost = 1.0;

 private:
  CscView<T, I> view_;
};

/// Column-major dense matrix; `stride` is the distance between columns.
template <class T>
class DenseColumns {
 public:
  DenseColumns(const T* data, offset_t n_rows, offset_t n_cols)
      : data_(data), n_rows_(n_rows), n_cols_(n_cols) {}

  offset_t n_rows() const { return n_rows_; }
  offset_t n_cols() const { return n_cols_; }
  offset_t nnz(offset_t) const { return n_rows_; }

  double dot(offset_t j, const double* v) const { return dense_dot(column(j), v, n_rows_); }
  double square(offset_t j, const double* h) const { return dense_square(column(j), h, n_rows_); }
  void add(offset_t j, double a, double* v) const { dense_add(column(j), a, v, n_rows_); }
  void add_scaled(offset_t j, double a, const double* h, double* v) const {
    dense_add_scaled(column(j), a, h, v, n_rows_);
  }

  /// out[a * width + b] = sum_i h_i x_i,as[a] x_i,bs[b].
  ///
  /// In tiles: kTile columns of kBand rows stay in the second-level cache (1 MB of doubles) while
  /// every column of `as` passes by.
  void products(std::span<const index_t> as, std::span<const index_t> bs, const double* h,
                double* out, std::size_t width) const {
    for (std::size_t a = 0; a < as.size(); ++a) std::fill_n(out + a * width, bs.size(), 0.0);
    std::vector<double> scaled(static_cast<std::size_t>(kBand));
    for (std::size_t tile = 0; tile < bs.size(); tile += kTile) {
      const auto in_tile = bs.subspan(tile, std::min(kTile, bs.size() - tile));
      for (offset_t begin = 0; begin < n_rows_; begin += kBand) {
        const offset_t n = std::min(kBand, n_rows_ - begin);
        for (std::size_t a = 0; a < as.size(); ++a) {
          std::fill_n(scaled.begin(), n, 0.0);
          dense_add_scaled(column(as[a]) + begin, 1.0, h + begin, scaled.data(), n);
          add_band(in_tile, begin, n, scaled.data(), out + a * width + tile);
        }
      }
    }
  }
  static constexpr double kProductCost = 0.25;  ///< measured: in cache, four at a time

  const T* column(offset_t j) const { return data_ + j * n_rows_; }

 private:
  static constexpr std::size_t kTile = 256;
  static constexpr offset_t kBand = 512;

  void add_band(std::span<const index_t> bs, offset_t begin, offset_t n, const double* scaled,
                double* out) const {
    std::size_t b = 0;
    for (; b + 4 <= bs.size(); b += 4) {
      const T* const four[4] = {column(bs[b]) + begin, column(bs[b + 1]) + begin,
                                column(bs[b + 2]) + begin, column(bs[b + 3]) + begin};
      dense_dot4(four, scaled, n, out + b);
    }
    for (; b < bs.size(); ++b) out[b] += dense_dot(column(bs[b]) + begin, scaled, n);
  }

  const T* data_;
  offset_t n_rows_;
  offset_t n_cols_;
};

}  // namespace sublearn
