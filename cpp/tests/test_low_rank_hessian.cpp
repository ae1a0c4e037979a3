// The compact form of L-BFGS against the recursion (5.3.1) on a dense matrix.
#include "sublearn/solvers/lhac/low_rank_hessian.hpp"

#include <deque>
#include <numeric>
#include <utility>
#include <vector>

#include "check.hpp"
#include "sublearn/core/rng.hpp"

using namespace sublearn;

namespace {

using Vec = std::vector<double>;
using Pair = std::pair<Vec, Vec>;
constexpr std::size_t kSize = 6;

double dot(const Vec& a, const Vec& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

/// t = A s for a positive definite A, so every pair has curvature.
Pair random_pair(Rng& rng) {
  static const Vec diagonal = {0.5, 1.0, 2.0, 4.0, 7.0, 9.0};
  Vec s(kSize), t(kSize);
  for (double& entry : s) entry = rng.uniform() - 0.5;
  const double sum = std::accumulate(s.begin(), s.end(), 0.0);
  for (std::size_t i = 0; i < kSize; ++i) t[i] = diagonal[i] * s[i] + 0.3 * sum;
  return {s, t};
}

Vec multiply(const Vec& matrix, const Vec& v) {
  Vec out(kSize);
  for (std::size_t i = 0; i < kSize; ++i) {
    for (std::size_t j = 0; j < kSize; ++j) out[i] += matrix[i * kSize + j] * v[j];
  }
  return out;
}

/// B after the updates (5.3.1) with these pairs, oldest first, from theta I of the newest pair.
Vec dense_bfgs(const std::deque<Pair>& pairs) {
  const auto& [last_s, last_t] = pairs.back();
  const double theta = dot(last_t, last_t) / dot(last_s, last_t);
  Vec b(kSize * kSize);
  for (std::size_t i = 0; i < kSize; ++i) b[i * kSize + i] = theta;
  for (const auto& [s, t] : pairs) {
    const Vec bs = multiply(b, s);
    const double sbs = dot(s, bs), st = dot(s, t);
    for (std::size_t i = 0; i < kSize; ++i) {
      for (std::size_t j = 0; j < kSize; ++j) {
        b[i * kSize + j] += t[i] * t[j] / st - bs[i] * bs[j] / sbs;
      }
    }
  }
  return b;
}

std::vector<index_t> all_ids() {
  std::vector<index_t> ids(kSize);
  std::iota(ids.begin(), ids.end(), 0);
  return ids;
}

Vec as_dense(const LowRankHessian& hessian) {
  Vec g, gr, b(kSize * kSize);
  hessian.rows(all_ids(), g, gr);
  const std::size_t width = hessian.stride();
  for (std::size_t i = 0; i < kSize; ++i) {
    for (std::size_t j = 0; j < kSize; ++j) {
      b[i * kSize + j] = i == j ? hessian.theta() : 0.0;
      for (std::size_t c = 0; c < width; ++c)
        b[i * kSize + j] -= g[i * width + c] * gr[j * width + c];
    }
  }
  return b;
}

}  // namespace

TEST(the_compact_form_is_the_recursion_also_after_the_ring_has_wrapped) {
  for (const int memory : {1, 2, 3, 5}) {
    Rng rng(11);
    LowRankHessian hessian(kSize, memory);
    std::deque<Pair> kept;
    for (int k = 0; k < 4 * memory + 1; ++k) {
      kept.push_back(random_pair(rng));
      if (kept.size() > static_cast<std::size_t>(memory)) kept.pop_front();
      CHECK(hessian.append(kept.back().first, kept.back().second));
      const Vec b = as_dense(hessian), judge = dense_bfgs(kept);
      for (std::size_t e = 0; e < b.size(); ++e) CHECK_NEAR(b[e], judge[e], 1e-9);
    }
  }
}

TEST(the_newest_pair_satisfies_the_secant_condition) {
  Rng rng(3);
  LowRankHessian hessian(kSize, 3);
  for (int k = 0; k < 8; ++k) {
    const auto [s, t] = random_pair(rng);
    CHECK(hessian.append(s, t));
    const Vec bs = multiply(as_dense(hessian), s);
    for (std::size_t i = 0; i < kSize; ++i) CHECK_NEAR(bs[i], t[i], 1e-10);
  }
}

TEST(pairs_without_curvature_are_refused_and_change_nothing) {
  Rng rng(5);
  LowRankHessian hessian(kSize, 2);
  const auto [s, t] = random_pair(rng);
  CHECK(hessian.append(s, t));
  const Vec before = as_dense(hessian);
  Vec back(t);
  for (double& entry : back) entry = -entry;
  CHECK(!hessian.append(s, back));
  CHECK(!hessian.append(s, Vec(kSize)));
  CHECK(!hessian.append(Vec(kSize), t));
  CHECK(as_dense(hessian) == before);
  CHECK(hessian.rank() == 2);
}

TEST(a_cleared_hessian_is_a_multiple_of_the_identity) {
  Rng rng(6);
  LowRankHessian hessian(kSize, 2);
  for (int k = 0; k < 3; ++k) {
    const auto [s, t] = random_pair(rng);
    hessian.append(s, t);
  }
  hessian.clear();
  CHECK(hessian.rank() == 0);
  const Vec b = as_dense(hessian);
  for (std::size_t i = 0; i < kSize; ++i) {
    for (std::size_t j = 0; j < kSize; ++j)
      CHECK(b[i * kSize + j] == (i == j ? hessian.theta() : 0.0));
  }
  const auto [s, t] = random_pair(rng);
  CHECK(hessian.append(s, t));
  CHECK_NEAR(multiply(as_dense(hessian), s)[0], t[0], 1e-10);
}

TEST(a_model_over_some_coordinates_is_that_block_of_the_matrix) {
  Rng rng(8);
  LowRankHessian hessian(kSize, 3);
  for (int k = 0; k < 5; ++k) {
    const auto [s, t] = random_pair(rng);
    hessian.append(s, t);
  }
  const Vec b = as_dense(hessian);
  const std::vector<index_t> ids = {4, 0, 3};
  const Vec gradient = {1.0, -2.0, 3.0, 0.5, -0.25, 0.0};
  LowRankModel model;
  model.reset(hessian, ids, gradient);
  model.set_half_mu(0.75);
  const Vec d = {0.5, -1.0, 2.0};
  for (std::size_t k = 0; k < ids.size(); ++k) model.move(static_cast<index_t>(k), d[k]);
  double value = 0.0;
  for (std::size_t k = 0; k < ids.size(); ++k) {
    double product = 0.75 * d[k];
    for (std::size_t l = 0; l < ids.size(); ++l) {
      product +=
          b[static_cast<std::size_t>(ids[k]) * kSize + static_cast<std::size_t>(ids[l])] * d[l];
    }
    const double g = gradient[static_cast<std::size_t>(ids[k])];
    CHECK_NEAR(model.slope(static_cast<index_t>(k)), g + product, 1e-10);
    CHECK_NEAR(model.curvature(static_cast<index_t>(k)),
               0.75 + b[static_cast<std::size_t>(ids[k]) * (kSize + 1)], 1e-10);
    value += d[k] * (g + 0.5 * product);
  }
  double total = 0.0;
  for (std::size_t k = 0; k < model.step().size(); ++k) total += model.value(k);
  CHECK_NEAR(total, value, 1e-10);
}

TEST(a_matrix_taken_over_onto_the_same_coordinates_is_the_same) {
  Rng rng(9);
  LowRankHessian hessian(kSize, 3), copy(kSize, 3);
  for (int k = 0; k < 5; ++k) {
    const auto [s, t] = random_pair(rng);
    hessian.append(s, t);
  }
  copy.take_over(hessian, all_ids());
  const Vec expected = as_dense(hessian), found = as_dense(copy);
  for (std::size_t k = 0; k < expected.size(); ++k) CHECK_NEAR(found[k], expected[k], 1e-12);
}

TEST(a_pair_taken_over_is_0_on_coordinates_that_the_old_matrix_lacks) {
  Rng rng(10);
  const auto [s, t] = random_pair(rng);
  LowRankHessian hessian(kSize, 3), moved(kSize, 3), judge(kSize, 3);
  hessian.append(s, t);
  const std::vector<index_t> places = {5, 4, -1, 2, -1, 0};
  moved.take_over(hessian, places);
  judge.append(Vec{s[5], s[4], 0.0, s[2], 0.0, s[0]}, Vec{t[5], t[4], 0.0, t[2], 0.0, t[0]});
  CHECK(moved.rank() == 2);
  CHECK(as_dense(moved) == as_dense(judge));
}

TEST(a_singular_matrix_has_no_inverse) {
  std::vector<double> regular = {0.0, 2.0, 1.0, 0.0};
  CHECK(invert(regular, 2));
  CHECK(regular == (std::vector<double>{0.0, 1.0, 0.5, 0.0}));
  std::vector<double> singular = {1.0, 2.0, 2.0, 4.0};
  CHECK(!invert(singular, 2));
}
