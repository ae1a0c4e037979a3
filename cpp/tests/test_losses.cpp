// Smooth losses: slope and curvature against finite differences, conjugates by Fenchel and Young.
#include <cmath>
#include <limits>
#include <variant>
#include <vector>

#include "check.hpp"
#include "sublearn/losses/any_loss.hpp"

using namespace sublearn;

namespace {

struct Case {
  AnyLoss loss;
  std::vector<double> targets;
};

std::vector<Case> cases() {
  return {{Logistic{}, {-1.0, 1.0}},
          {Squared{}, {-2.5, 0.0, 3.0}},
          {OfMargin<SquaredHinge>{}, {-1.0, 1.0}},
          {Huber{0.7}, {-1.0, 0.0, 2.0}},
          {Poisson{}, {0.0, 1.0, 4.0}},
          {SmoothedLine{-0.3, 0.7, false}, {-1.0, 0.0, 2.0}},
          {SmoothedLine{-1.0, 0.0, true}, {-1.5, 1.5}}};
}

// No point where a curvature jumps: margins of 1, residuals of 0.7.
const std::vector<double> kPoints = {-6.0, -2.2, -0.35, 0.0, 0.25, 0.9, 1.85, 5.5};

/// check(loss, z, y) for every loss, target and point.
template <class Check>
void for_each(Check&& check) {
  for (const Case& c : cases()) {
    std::visit(
        [&](const auto& loss) {
          for (const double y : c.targets) {
            for (const double z : kPoints) check(loss, z, y);
          }
        },
        c.loss);
  }
}

}  // namespace

TEST(the_slope_of_a_loss_is_the_derivative_of_its_value) {
  for_each([](const auto& loss, double z, double y) {
    const double h = 1e-6;
    const double slope = (loss.value(z + h, y) - loss.value(z - h, y)) / (2 * h);
    CHECK_NEAR(loss.slope(z, y), slope, 1e-7 * (1 + std::abs(slope)));
  });
}

TEST(the_curvature_of_a_loss_is_the_derivative_of_its_slope) {
  for_each([](const auto& loss, double z, double y) {
    const double h = 1e-6;
    const double curvature = (loss.slope(z + h, y) - loss.slope(z - h, y)) / (2 * h);
    CHECK_NEAR(loss.curvature(z, y), curvature, 1e-6 * (1 + std::abs(curvature)));
  });
}

TEST(no_curvature_exceeds_the_smoothness) {
  for_each([](const auto& loss, double z, double y) {
    CHECK(loss.curvature(z, y) >= 0.0);
    CHECK(loss.curvature(z, y) <= loss.smoothness());
  });
  CHECK(std::isinf(smoothness(AnyLoss{Poisson{}})));
  CHECK_NEAR(Logistic{}.curvature(0.0, 1.0), smoothness(AnyLoss{Logistic{}}), 0.0);
}

TEST(all_terms_of_a_loss_at_once_are_the_terms_one_by_one) {
  for_each([](const auto& loss, double z, double y) {
    const LossTerms at = loss_terms(loss, z, y);
    CHECK_NEAR(at.value, loss.value(z, y), 1e-15 * (1 + std::abs(at.value)));
    CHECK_NEAR(at.slope, loss.slope(z, y), 1e-15 * (1 + std::abs(at.slope)));
    CHECK_NEAR(at.curvature, loss.curvature(z, y), 1e-15 * (1 + std::abs(at.curvature)));
  });
}

TEST(a_majorising_parabola_lies_above_its_loss_everywhere) {
  for_each([](const auto& loss, double z, double y) {
    const double above = loss.majoriser(z, y);
    if (!std::isfinite(above)) return;
    for (const double t : {-900.0, -30.0, -5.0, -1.0, -0.2, 0.0, 0.4, 1.1, 4.0, 50.0, 700.0}) {
      const double parabola =
          loss.value(z, y) + loss.slope(z, y) * (t - z) + 0.5 * above * (t - z) * (t - z);
      CHECK(loss.value(t, y) <= parabola + 1e-12 * (1 + parabola));
    }
  });
}

TEST(fenchel_and_young_hold_with_equality_at_the_slope) {
  for_each([](const auto& loss, double z, double y) {
    const double a = loss.slope(z, y);
    const double scale = 1 + std::abs(a * z) + loss.value(z, y);
    CHECK_NEAR(loss.value(z, y) + loss.conjugate(a, y), a * z, 1e-12 * scale);
  });
}

TEST(fenchel_and_young_hold_as_an_inequality_elsewhere) {
  for_each([](const auto& loss, double z, double y) {
    for (const double a : {-3.0, -1.0, -0.7, -0.5, -0.01, 0.0, 0.01, 0.3, 0.7, 1.0, 3.0}) {
      CHECK(loss.value(z, y) + loss.conjugate(a, y) >= a * z - 1e-12);
    }
  });
}

TEST(conjugates_are_finite_at_0_and_infinite_outside_their_interval) {
  for_each(
      [](const auto& loss, double, double y) { CHECK(std::isfinite(loss.conjugate(0.0, y))); });
  const double infinity = std::numeric_limits<double>::infinity();
  CHECK(Logistic{}.conjugate(0.01, 1.0) == infinity &&
        Logistic{}.conjugate(-1.01, 1.0) == infinity);
  CHECK(Logistic{}.conjugate(-1.0, 1.0) == 0.0);
  CHECK(Huber{0.7}.conjugate(0.71, 0.0) == infinity);
  CHECK(Poisson{}.conjugate(-4.1, 4.0) == infinity);
  CHECK(OfMargin<SquaredHinge>{}.conjugate(0.1, 1.0) == infinity);
}

TEST(the_logistic_loss_does_not_overflow) {
  const Logistic loss;
  for (const double z : {-1e300, -800.0, 800.0, 1e300}) {
    const LossTerms at = loss_terms(loss, z, 1.0);
    CHECK_NEAR(at.value, std::max(-z, 0.0), 1e-12);
    CHECK_NEAR(at.slope, z < 0 ? -1.0 : 0.0, 1e-12);
    CHECK_NEAR(at.curvature, 0.0, 1e-12);
  }
}
