// Sparse inverse covariance with a plain Cholesky in place of LAPACK: the Newton model against its
// definition, panels at the edge, blocks, bounds.
#include "sublearn/solvers/covariance/solver.hpp"

#include <cmath>
#include <vector>

#include "check.hpp"
#include "sublearn/core/rng.hpp"

namespace {

using namespace sublearn;

// Column-major lower triangle, as LAPACK's with uplo 'L'.
void plain_potrf(char*, int* order, double* a, int*, int* info) {
  const int n = *order;
  *info = 0;
  for (int j = 0; j < n; ++j) {
    for (int k = 0; k < j; ++k) {
      for (int i = j; i < n; ++i) a[j * n + i] -= a[k * n + i] * a[k * n + j];
    }
    if (!(a[j * n + j] > 0.0)) {
      *info = j + 1;
      return;
    }
    const double head = std::sqrt(a[j * n + j]);
    for (int i = j; i < n; ++i) a[j * n + i] /= head;
  }
}

void plain_potri(char*, int* order, double* a, int*, int* info) {
  const int n = *order;
  *info = 0;
  std::vector<double> inverse(static_cast<std::size_t>(n * n), 0.0);
  for (int c = 0; c < n; ++c) {  // solve L L' x = e_c
    std::vector<double> x(static_cast<std::size_t>(n), 0.0);
    x[c] = 1.0;
    for (int i = 0; i < n; ++i) {
      for (int k = 0; k < i; ++k) x[i] -= a[k * n + i] * x[k];
      x[i] /= a[i * n + i];
    }
    for (int i = n - 1; i >= 0; --i) {
      for (int k = i + 1; k < n; ++k) x[i] -= a[i * n + k] * x[k];
      x[i] /= a[i * n + i];
    }
    for (int i = 0; i < n; ++i) inverse[c * n + i] = x[i];
  }
  for (int c = 0; c < n; ++c) {
    for (int i = c; i < n; ++i) a[c * n + i] = inverse[c * n + i];
  }
}

void use_plain_lapack() { lapack() = {plain_potrf, plain_potri}; }

/// S = A A' / m with unit diagonal.
std::vector<double> covariance(offset_t n, offset_t m, std::uint64_t seed) {
  Rng rng(seed);
  std::vector<double> rows(static_cast<std::size_t>(n * m));
  for (double& value : rows) {
    value = static_cast<double>(rng.below(2001)) / 1000.0 - 1.0;
  }
  for (offset_t i = 1; i < n; ++i) {  // neighbours are related
    for (offset_t k = 0; k < m; ++k) rows[i * m + k] += 0.7 * rows[(i - 1) * m + k];
  }
  std::vector<double> S(static_cast<std::size_t>(n * n));
  for (offset_t i = 0; i < n; ++i) {
    for (offset_t j = 0; j < n; ++j) {
      double a = 0.0, b = 0.0, c = 0.0;
      for (offset_t k = 0; k < m; ++k) {
        a += rows[i * m + k] * rows[j * m + k];
        b += rows[i * m + k] * rows[i * m + k];
        c += rows[j * m + k] * rows[j * m + k];
      }
      S[i * n + j] = a / std::sqrt(b * c);
    }
  }
  return S;
}

/// Largest entry of the least subgradient at X with inverse W.
double violation(const std::vector<double>& S, const PairWeights& weights,
                 const std::vector<double>& X, const std::vector<double>& W, offset_t n) {
  double largest = 0.0;
  for (offset_t i = 0; i < n; ++i) {
    for (offset_t j = 0; j < n; ++j) {
      const double slope = S[i * n + j] - W[i * n + j], level = weights.at(n, i, j);
      const double x = X[i * n + j];
      const double size = x > 0.0   ? std::abs(slope + level)
                          : x < 0.0 ? std::abs(slope - level)
                                    : std::max(std::abs(slope) - level, 0.0);
      largest = std::max(largest, size);
    }
  }
  return largest;
}

}  // namespace

TEST(inverse_covariance_has_no_lapack_of_its_own) {
  lapack() = {};
  CholeskyPoint point(1);
  CHECK_THROWS(point.factor(std::vector<double>{1.0}), std::logic_error);
}

TEST(cholesky_point_inverts_and_refuses) {
  use_plain_lapack();
  const offset_t n = 37;  // not a multiple of a tile
  std::vector<double> S = covariance(n, 100, 1), W;
  CholeskyPoint point(n);
  CHECK(point.factor(S));
  point.invert(W);
  for (offset_t i = 0; i < n; ++i) {
    for (offset_t j = 0; j < n; ++j) {
      double sum = 0.0;
      for (offset_t k = 0; k < n; ++k) sum += S[i * n + k] * W[k * n + j];
      CHECK_NEAR(sum, i == j ? 1.0 : 0.0, 1e-9);
    }
  }
  S[0] = -1.0;
  CHECK(!point.factor(S));
}

TEST(pair_model_slopes_are_those_of_the_newton_model) {
  use_plain_lapack();
  const offset_t n = 19;  // two panels and a rest
  const std::vector<double> S = covariance(n, 60, 2);
  const PairWeights weights{0.05, 0.0, {}};
  std::vector<double> X(static_cast<std::size_t>(n * n), 0.0), W;
  for (offset_t i = 0; i < n; ++i) X[i * n + i] = 1.0 + 0.1 * static_cast<double>(i);
  X[1] = X[n] = 0.2;
  CholeskyPoint point(n);
  CHECK(point.factor(X));
  point.invert(W);
  EntryStep step;
  step.choose(S, weights, X, W, n);
  PairModel model(W, step, n);
  std::vector<double> D(static_cast<std::size_t>(n * n), 0.0);
  for (offset_t panel = 0; panel < step.n_panels(); ++panel) {
    model.enter(panel);
    for (offset_t k = step.panel_begin(panel); k < step.panel_begin(panel + 1); ++k) {
      const offset_t i = step.first[k], j = step.second[k];
      double product = 0.0;
      for (offset_t a = 0; a < n; ++a) {
        for (offset_t b = 0; b < n; ++b) product += W[i * n + a] * D[a * n + b] * W[b * n + j];
      }
      const auto id = static_cast<index_t>(k);
      CHECK_NEAR(model.slope(id), S[i * n + j] - W[i * n + j] + product, 1e-12);
      const double change = 0.01 * static_cast<double>(1 + k % 7);
      model.move(id, change);
      D[i * n + j] += change;
      if (i != j) D[j * n + i] += change;
    }
  }
}

TEST(both_methods_reach_the_optimality_conditions_and_agree) {
  use_plain_lapack();
  const offset_t n = 21;
  const std::vector<double> S = covariance(n, 15, 3);  // singular
  const PairWeights weights{0.2, 0.0, {}};
  std::vector<double> objectives;
  for (const InverseMethod method : {InverseMethod::newton, InverseMethod::lhac}) {
    InverseCovarianceSettings settings;
    settings.method = method;
    settings.tol = 1e-7;
    settings.max_iter = 2000;
    InverseCovariance solver(S, weights, n, {}, settings);
    Monitor monitor;
    CHECK(solver.solve(monitor) == Status::converged);
    CHECK(violation(S, weights, solver.gather(false), solver.gather(true), n) < 1e-2);
    objectives.push_back(solver.objective());
  }
  CHECK_NEAR(objectives[0], objectives[1], 1e-5);
}

TEST(blocks_are_components_of_the_thresholded_matrix) {
  const std::vector<double> S = {1.0, 0.5, 0.0, 0.1, 0.5, 1.0, 0.0, 0.0,
                                 0.0, 0.0, 1.0, 0.3, 0.1, 0.0, 0.3, 1.0};
  CHECK((linked_components(S, {0.2, 0.0, {}}, 4) == std::vector<index_t>{0, 0, 1, 1}));
  CHECK((linked_components(S, {0.05, 0.0, {}}, 4) == std::vector<index_t>{0, 0, 0, 0}));
  CHECK((linked_components(S, {0.5, 0.0, {}}, 4) == std::vector<index_t>{0, 1, 2, 3}));
}

TEST(a_stop_request_leaves_a_whole_matrix) {
  use_plain_lapack();
  const offset_t n = 12;
  const std::vector<double> S = covariance(n, 30, 4);
  InverseCovariance solver(S, {0.1, 0.0, {}}, n, {}, {});
  Monitor monitor;
  monitor.request_stop();
  CHECK(solver.solve(monitor) == Status::stopped);
  const std::vector<double> X = solver.gather(false);
  for (offset_t i = 0; i < n; ++i) CHECK_NEAR(X[i * n + i], 1.0 / S[i * n + i], 1e-12);
}

TEST(columns_of_the_dual_come_close_on_their_own) {
  use_plain_lapack();
  const offset_t n = 21;
  const std::vector<double> S = covariance(n, 15, 5);
  const PairWeights weights{0.2, 0.1, {}};
  std::vector<double> X(S.size(), 0.0), W;
  for (offset_t i = 0; i < n; ++i) X[i * n + i] = 1.0;
  DualColumns columns(S, weights, X, n);
  for (int sweep = 0; sweep < 20; ++sweep) CHECK(columns.sweep(Monitor()));
  columns.primal(X);
  CholeskyPoint point(n);
  CHECK(point.factor(X));
  point.invert(W);
  CHECK(violation(S, weights, X, W, n) < 1e-3);
  const double value = -point.log_det() + linear_and_penalty(S, X, weights, n);
  CHECK_NEAR(DualBound(n)(S, weights, columns.dual()), value, 1e-4);
}
