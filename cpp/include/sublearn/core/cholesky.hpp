// A Cholesky factor of a small dense symmetric matrix, for Newton systems of a few hundred
// unknowns; nothing to be had from BLAS without a dependency of the core on one.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>

namespace sublearn {

/// Overwrites the lower triangle of the row-major n x n matrix A with L, A = L L'; the part above
/// the diagonal is neither read nor written. False if A is not positive definite.
///
/// By blocks of columns: a block is first corrected by all columns before it, row against row,
/// which are contiguous and stay in the cache over a block.
inline bool cholesky(std::span<double> a, std::size_t n) {
  constexpr std::size_t kBlock = 32;
  const auto row = [&](std::size_t i) { return a.data() + i * n; };
  const auto dot = [](const double* x, const double* y, std::size_t m) {
    double even = 0.0, odd = 0.0;
    std::size_t k = 0;
    for (; k + 1 < m; k += 2) even += x[k] * y[k], odd += x[k + 1] * y[k + 1];
    return k < m ? even + odd + x[k] * y[k] : even + odd;
  };
  for (std::size_t begin = 0; begin < n; begin += kBlock) {
    const std::size_t end = std::min(n, begin + kBlock);
    for (std::size_t i = begin; i < n; ++i) {
      for (std::size_t j = begin; j < std::min(i + 1, end); ++j) {
        const double rest = row(i)[j] - dot(row(i), row(j), j);
        if (i > j) {
          row(i)[j] = rest / row(j)[j];
        } else if (rest > 0.0 && std::isfinite(rest)) {
          row(i)[j] = std::sqrt(rest);
        } else {
          return false;
        }
      }
    }
  }
  return true;
}

/// x = A^-1 x, given the factor of A.
inline void cholesky_solve(std::span<const double> factor, std::size_t n, std::span<double> x) {
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t k = 0; k < i; ++k) x[i] -= factor[i * n + k] * x[k];
    x[i] /= factor[i * n + i];
  }
  for (std::size_t i = n; i-- > 0;) {
    x[i] /= factor[i * n + i];
    for (std::size_t k = 0; k < i; ++k) x[k] -= factor[i * n + k] * x[i];
  }
}

}  // namespace sublearn
