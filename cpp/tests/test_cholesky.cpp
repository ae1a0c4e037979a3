// Cholesky factors: the product is the matrix, also over several blocks.
#include "sublearn/core/cholesky.hpp"

#include <vector>

#include "check.hpp"
#include "sublearn/core/rng.hpp"

using namespace sublearn;

namespace {

std::vector<double> positive_definite(std::size_t n) {
  Rng rng(n);
  std::vector<double> half(n * n), a(n * n);
  for (double& entry : half) entry = rng.uniform() - 0.5;
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j) {
      for (std::size_t k = 0; k < n; ++k) a[i * n + j] += half[i * n + k] * half[j * n + k];
    }
    a[i * n + i] += 0.1;
  }
  return a;
}

}  // namespace

TEST(a_factor_times_its_transpose_is_the_matrix) {
  for (const std::size_t n : {1, 2, 31, 32, 33, 70}) {
    const std::vector<double> a = positive_definite(n);
    std::vector<double> factor = a;
    CHECK(cholesky(factor, n));
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j <= i; ++j) {
        double product = 0.0;
        for (std::size_t k = 0; k <= j; ++k) product += factor[i * n + k] * factor[j * n + k];
        CHECK_NEAR(product, a[i * n + j], 1e-12);
      }
    }
  }
}

TEST(a_factor_solves_systems) {
  const std::size_t n = 45;
  const std::vector<double> a = positive_definite(n);
  std::vector<double> factor = a, right(n);
  for (std::size_t i = 0; i < n; ++i) right[i] = static_cast<double>(i % 7) - 3.0;
  CHECK(cholesky(factor, n));
  std::vector<double> x = right;
  cholesky_solve(factor, n, x);
  for (std::size_t i = 0; i < n; ++i) {
    double product = 0.0;
    for (std::size_t j = 0; j < n; ++j) product += a[i * n + j] * x[j];
    CHECK_NEAR(product, right[i], 1e-9);
  }
}

TEST(matrices_that_are_not_positive_definite_have_no_factor) {
  std::vector<double> indefinite = {1.0, 2.0, 2.0, 1.0};
  CHECK(!cholesky(indefinite, 2));
  std::vector<double> zero = {0.0};
  CHECK(!cholesky(zero, 1));
  std::vector<double> unknown = {std::nan("")};
  CHECK(!cholesky(unknown, 1));
}
