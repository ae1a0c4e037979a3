// Frank-Wolfe with away steps on a simplex: steps fall, stay feasible, and end at the projection.
#include "sublearn/solvers/structured/away_step.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "check.hpp"
#include "sublearn/core/rng.hpp"
#include "sublearn/prox/simplex.hpp"

using namespace sublearn;

namespace {

double half_square(const std::vector<double>& point, const std::vector<double>& wanted) {
  double sum = 0.0;
  for (std::size_t s = 0; s < point.size(); ++s) {
    sum += 0.5 * (point[s] - wanted[s]) * (point[s] - wanted[s]);
  }
  return sum;
}

}  // namespace

TEST(away_steps_lead_to_the_projection) {
  Rng rng(1);
  for (int round = 0; round < 50; ++round) {
    const std::size_t n = 1 + rng.below(12);
    std::vector<double> wanted(n), point(n, 0.0), gradient(n), change(n), scratch;
    for (double& w : wanted) w = 2.0 * rng.uniform() - 0.5;
    point[rng.below(static_cast<std::uint32_t>(n))] = 1.0;
    for (int k = 0; k < 2000; ++k) {
      for (std::size_t s = 0; s < n; ++s) gradient[s] = point[s] - wanted[s];
      const AwayStep step = choose_step(point, gradient);
      if (step.slope <= 1e-12) break;
      fill_direction(step, point, change);
      const double bend = std::inner_product(change.begin(), change.end(), change.begin(), 0.0);
      const double length = step.length(bend), before = half_square(point, wanted);
      CHECK(length > 0.0 && length <= step.longest);
      for (std::size_t s = 0; s < n; ++s) point[s] += length * change[s];
      if (step.is_drop(length)) point[step.vertex] = 0.0;
      CHECK(half_square(point, wanted) < before + 1e-12);
      CHECK(*std::min_element(point.begin(), point.end()) >= -1e-12);
      CHECK(std::abs(std::accumulate(point.begin(), point.end(), 0.0) - 1.0) < 1e-9);
    }
    std::vector<double> nearest = wanted;
    project_simplex<double>(nearest, 1.0, scratch);
    for (std::size_t s = 0; s < n; ++s) CHECK(std::abs(point[s] - nearest[s]) < 1e-4);
  }
}

TEST(the_only_vertex_is_not_left_behind) {
  const std::vector<double> point{1.0, 0.0}, gradient{3.0, 1.0};
  const AwayStep step = choose_step(point, gradient);
  CHECK(!step.is_away && step.vertex == 1 && step.slope == 2.0);
}
