// Projections on random inputs of many sizes and scales: feasible, and nearest by the multipliers.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "check.hpp"
#include "sublearn/core/rng.hpp"
#include "sublearn/prox/bisimplex.hpp"
#include "sublearn/prox/simplex.hpp"
#include "sublearn/prox/soft_threshold.hpp"

using sublearn::project_bisimplex;
using sublearn::project_simplex;
using sublearn::Rng;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

template <class T>
std::vector<T> random_vector(Rng& rng, double scale) {
  std::vector<T> v(1 + rng.below(60));
  const double offset = rng.uniform() - 0.5;
  for (T& value : v) value = static_cast<T>(scale * (rng.uniform() - 0.5 + offset));
  if (v.size() > 3) v[0] = v[1] = v[2];
  return v;
}

template <class T>
double sum(const std::vector<T>& v) {
  return std::accumulate(v.begin(), v.end(), 0.0);
}

template <class T>
double largest_shift(const std::vector<T>& v, const std::vector<T>& p) {
  double shift = -kInfinity;
  for (std::size_t i = 0; i < v.size(); ++i) shift = std::max(shift, double(v[i]) - double(p[i]));
  return shift;
}

/// p is nearest to v for its sum: v - p is theta where p > 0 and at most theta elsewhere.
template <class T>
bool has_one_threshold(const std::vector<T>& v, const std::vector<T>& p, double tolerance) {
  const double theta = largest_shift(v, p);
  for (std::size_t i = 0; i < v.size(); ++i) {
    if (!(p[i] >= 0)) return false;
    if (p[i] > 0 && double(v[i]) - double(p[i]) < theta - tolerance) return false;
  }
  return true;
}

template <class T>
void check_simplex(double scale, double radius) {
  Rng rng(1);
  std::vector<T> scratch;
  const double eps = 100 * std::numeric_limits<T>::epsilon();
  for (int repeat = 0; repeat < 50; ++repeat) {
    const auto v = random_vector<T>(rng, scale);
    auto p = v;
    project_simplex(p, radius, scratch);
    CHECK_NEAR(sum(p), radius, eps * radius);
    CHECK(has_one_threshold(v, p, eps * std::max(scale, radius)));
  }
}

template <class T>
void check_bisimplex(double scale, double cap) {
  Rng rng(2);
  std::vector<T> scratch;
  const double eps = 1000 * std::numeric_limits<T>::epsilon();
  for (int repeat = 0; repeat < 50; ++repeat) {
    const auto b = random_vector<T>(rng, scale);
    const auto c = random_vector<T>(rng, scale);
    auto x = b;
    auto y = c;
    const double t = project_bisimplex(x, y, cap, scratch);
    const double tolerance = eps * scale * static_cast<double>(b.size() + c.size());
    CHECK(t >= 0 && t <= cap);
    CHECK_NEAR(sum(x), t, eps * t);
    CHECK_NEAR(sum(y), t, eps * t);
    CHECK(t == 0 || has_one_threshold(b, x, tolerance));
    CHECK(t == 0 || has_one_threshold(c, y, tolerance));
    const double slope = largest_shift(b, x) + largest_shift(c, y);  // of going on with t
    if (t < cap) CHECK(slope <= tolerance);
    if (t > 0) CHECK(slope >= -tolerance);
  }
}

template <class T>
void check_all() {
  for (const double scale : {1e-6, 1.0, 1e10}) {
    for (const double radius : {1e-3, 1.0, 1e4}) {
      check_simplex<T>(scale, radius);
      check_bisimplex<T>(scale, radius);
    }
    check_bisimplex<T>(scale, kInfinity);
  }
}

}  // namespace

TEST(projections_are_feasible_and_nearest_in_float) { check_all<float>(); }
TEST(projections_are_feasible_and_nearest_in_double) { check_all<double>(); }

TEST(projections_keep_their_scratch) {
  std::vector<double> scratch;
  scratch.reserve(100);
  const double* memory = scratch.data();
  for (int i = 0; i < 5; ++i) {
    std::vector<double> v(50, 1.0);
    std::vector<double> w(50, 2.0);
    project_simplex(v, 1.0, scratch);
    project_bisimplex(v, w, 1.0, scratch);
    CHECK(scratch.data() == memory);
  }
}

TEST(bisimplex_with_an_empty_half_vanishes) {
  std::vector<double> scratch;
  std::vector<double> v{1.0, 2.0};
  std::vector<double> nothing;
  CHECK(project_bisimplex(v, nothing, 1.0, scratch) == 0.0);
  CHECK(sum(v) == 0.0);
  v = {1.0, 2.0};
  CHECK(project_bisimplex(nothing, v, kInfinity, scratch) == 0.0);
  CHECK(sum(v) == 0.0);
}

TEST(bisimplex_with_a_cap_of_zero_vanishes) {
  std::vector<float> scratch;
  std::vector<float> b{1.0f, 1.0f};
  std::vector<float> c{2.0f};
  CHECK(project_bisimplex(b, c, 0.0, scratch) == 0.0);
  CHECK(sum(b) == 0.0 && sum(c) == 0.0);
}

TEST(soft_threshold_moves_towards_zero_and_stops_there) {
  CHECK(sublearn::soft_threshold(3.0, 1.0) == 2.0);
  CHECK(sublearn::soft_threshold(-3.0f, 1.0f) == -2.0f);
  CHECK(sublearn::soft_threshold(0.5, 1.0) == 0.0);
  CHECK(sublearn::soft_threshold(-1.0, 1.0) == 0.0);
}
