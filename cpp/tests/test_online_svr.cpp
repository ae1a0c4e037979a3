// Algorithm 8 in both spaces: on one row of length one they are the same method.
#include <cmath>
#include <vector>

#include "check.hpp"
#include "sublearn/losses/tube.hpp"
#include "sublearn/solvers/online_svr.hpp"

using namespace sublearn;

TEST(the_tube_loss_is_zero_inside_and_rises_by_its_slopes_outside) {
  const TubeLoss loss{-2.0, 1.0, 0.5, 3.0};
  for (const double r : {-2.0, 0.0, 1.0}) {
    CHECK(loss.value(r) == 0.0);
    CHECK(loss.slope(r) == 0.0);
  }
  CHECK(loss.value(2.0) == 3.0);
  CHECK(loss.slope(2.0) == 3.0);
  CHECK(loss.value(-4.0) == 1.0);
  CHECK(loss.slope(-4.0) == -0.5);
}

TEST(features_and_kernel_agree_where_their_inner_products_do) {
  // Rows far apart: the kernel plus 1 is 2 on the diagonal and 1 off it.
  const std::vector<double> rows = {0.0, 100.0, 200.0};
  const std::vector<double> features = {1, 0, 0, 1, 0, 1, 0, 1, 0, 0, 1, 1};
  const std::vector<double> y = {1.0, -2.0, 3.0};
  OnlineSvrSettings settings;
  settings.loss = {-0.1, 0.1, 1.0, 1.0};
  settings.l2 = 0.1;
  settings.radius = 2.0;
  settings.n_epochs = 50;
  std::vector<double> w(4, 0.0), a(3, 0.0);
  const Monitor monitor;
  FeatureSpace explicit_space(features.data(), 3, 4, w);
  KernelSpace kernel_space(rows.data(), 3, 1, a, 0);
  CHECK(online_svr(explicit_space, y, settings, monitor) == 150);
  CHECK(online_svr(kernel_space, y, settings, monitor) == 150);
  for (offset_t i = 0; i < 3; ++i) {
    CHECK(std::abs(explicit_space.dot(i) - kernel_space.dot(i)) < 1e-9);
  }
}

TEST(a_budget_of_one_keeps_the_largest_coefficient) {
  const std::vector<double> rows = {0.0, 100.0};
  std::vector<double> a(2, 0.0);
  KernelSpace space(rows.data(), 2, 1, a, 1);
  space.add(0, 2.0);
  space.add(1, 1.0);
  CHECK(a[0] == 2.0);
  CHECK(a[1] == 0.0);
}

TEST(no_rows_take_no_steps) {
  std::vector<double> w(2, 0.0);
  FeatureSpace space(nullptr, 0, 2, w);
  CHECK(online_svr(space, {}, OnlineSvrSettings{}, Monitor{}) == 0);
}
