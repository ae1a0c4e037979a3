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
  offset_t nnz(offset_t j) const { return view_.indptr[at(j + 1)] - view_.indptr[at(j)]; }

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

  /// Inner products of some of the columns `bs` with all of them, h_i the weight of row i:
  /// out[a * width + b] = sum_i h_i x_i,bs[first + a] x_i,bs[b] for a < n.
  ///
  /// The columns are turned into rows once. A row then adds the products of its own entries, most
  /// of which are 0 in a sparse matrix and not visited.
  class Products {
   public:
    Products(const SparseColumns& X, std::span<const index_t> bs)
        : n_(bs.size()), starts_(static_cast<std::size_t>(X.n_rows()) + 1) {
      for (const index_t b : bs) {
        for (const auto i : X.view_.column(b).ids) ++starts_[at(i) + 1];
      }
      for (std::size_t i = 1; i < starts_.size(); ++i) starts_[i] += starts_[i - 1];
      entries_.resize(starts_.back());
      std::vector<std::size_t> next(starts_.begin(), starts_.end() - 1);
      for (std::size_t b = 0; b < bs.size(); ++b) {
        const auto column = X.view_.column(bs[b]);
        for (std::size_t p = 0; p < column.size(); ++p) {
          entries_[next[at(column.ids[p])]++] = {static_cast<index_t>(b), column.values[p]};
        }
      }
    }

    void operator()(std::size_t first, std::size_t n, const double* h, double* out,
                    std::size_t width) const {
      for (std::size_t a = 0; a < n; ++a) std::fill_n(out + a * width, n_, 0.0);
      for (std::size_t i = 0; i + 1 < starts_.size(); ++i) {
        for (std::size_t p = starts_[i]; p < starts_[i + 1]; ++p) {
          const std::size_t a = at(entries_[p].column) - first;
          if (a >= n) continue;  // wraps around below `first`
          const double scaled = h[i] * static_cast<double>(entries_[p].value);
          double* row = out + a * width;
          for (std::size_t e = starts_[i]; e < starts_[i + 1]; ++e) {
            row[entries_[e].column] += scaled * static_cast<double>(entries_[e].value);
          }
        }
      }
    }

   private:
    struct Entry {
      index_t column;  ///< its place in `bs`
      T value;
    };
    std::size_t n_;
    std::vector<std::size_t> starts_;  ///< of the rows
    std::vector<Entry> entries_;
  };

  /// Additions of `dot` that cost as much as products of `n_new` with `n` columns of `nnz` entries,
  /// as if half of the entries were in rows three times as long as others. Turning the columns into
  /// rows, and each look at all entries for 64 columns or so, are in it.
  double products_cost(double n_new, double n, double nnz) const {
    if (n_new == 0.0) return 0.0;
    const double row = 1.0 + 2.0 * nnz / static_cast<double>(std::max<offset_t>(n_rows(), 1));
    return nnz * (3.0 + n_new / 100.0 + row * n_new / n);
  }

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

  /// As for sparse columns.
  class Products {
   public:
    Products(const DenseColumns& X, std::span<const index_t> bs) : X_(&X), bs_(bs) {}
    void operator()(std::size_t first, std::size_t n, const double* h, double* out,
                    std::size_t width) const {
      X_->products(bs_.subspan(first, n), bs_, h, out, width);
    }

   private:
    const DenseColumns* X_;
    std::span<const index_t> bs_;
  };

  /// As for sparse columns; measured: in cache, four at a time.
  double products_cost(double n_new, double /*n*/, double nnz) const { return 0.25 * n_new * nnz; }

  const T* column(offset_t j) const { return data_ + j * n_rows_; }

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
