// The slope of the tube loss, and algorithm 8 without rows; Python tests what it reaches.
#include <vector>

#include "check.hpp"
#include "sublearn/losses/tube.hpp"
#include "sublearn/solvers/svr/online_svr.hpp"

using namespace sublearn;

TEST(the_tube_loss_is_flat_inside_and_rises_by_its_slopes_outside) {
  const TubeLoss loss{-2.0, 1.0, 0.5, 3.0};
  for (const double r : {-2.0, 0.0, 1.0}) CHECK(loss.slope(r) == 0.0);
  CHECK(loss.slope(2.0) == 3.0);
  CHECK(loss.slope(-4.0) == -0.5);
}

TEST(no_rows_take_no_steps) {
  std::vector<double> w(2, 0.0);
  CHECK(OnlineSvr({nullptr, 0, 2}, {}, w, {}).run(Monitor{}) == 0);
}
