// CD1 and interior point on a small problem: each certifies its answer, and both agree.
#include <cmath>
#include <vector>

#include "check.hpp"
#include "sublearn/core/rng.hpp"
#include "sublearn/solvers/linear/interior_point.hpp"
#include "sublearn/solvers/linear/stochastic_cd.hpp"

using namespace sublearn;

namespace {

using Vec = std::vector<double>;

/// Rows with targets -1 and 1 that the first two features tell apart; the third is zero.
struct Problem {
  static constexpr offset_t n_rows = 40, n_features = 6;
  Vec X, y, weights, l1 = Vec(n_features, 0.02);
  SeparablePenalty penalty;

  Problem() : X(n_rows * n_features), weights(n_rows, 1.0 / n_rows) {
    Rng rng(4);
    for (double& x : X) x = 2 * rng.uniform() - 1;
    for (offset_t i = 0; i < n_rows; ++i) {
      const double margin = at(i, 0) - 2 * at(i, 1) + rng.uniform() - 0.3;
      y.push_back(margin > 0 ? 1.0 : -1.0);
      at(i, 2) = 0.0;
    }
    penalty.l1 = l1;
  }
  double& at(offset_t i, offset_t j) { return X[static_cast<std::size_t>(j * n_rows + i)]; }

  LinearProblem<DenseColumns<double>> with(const AnyLoss& loss, bool has_intercept) const {
    return {DenseColumns<double>(X.data(), n_rows, n_features), y, weights, loss, has_intercept};
  }
  ColumnRows rows() const { return {nullptr, nullptr, n_rows}; }
};

}  // namespace

TEST(cd1_and_interior_point_agree) {
  const Problem problem;
  for (const AnyLoss& loss : {AnyLoss{Logistic{}}, AnyLoss{Squared{}}, AnyLoss{Huber{0.5}},
                              AnyLoss{OfMargin<SquaredHinge>{}}}) {
    for (const bool has_intercept : {false, true}) {
      Monitor monitor;
      LinearSettings first;
      first.tol = 1e-10, first.max_iter = 100000;
      StochasticCd cd1(problem.with(loss, has_intercept), problem.rows(), problem.penalty, first);
      CHECK(cd1.solve(monitor) == Status::converged);
      LinearSettings second;
      second.tol = 1e-10;
      InteriorPoint interior(problem.with(loss, has_intercept), problem.penalty, second);
      CHECK(interior.solve(monitor) == Status::converged);
      const double objective = cd1.rounds().back().objective;
      CHECK_NEAR(interior.rounds().back().objective, objective, 2e-10);
      CHECK(cd1.point().w[2] == 0.0 && interior.point().w[2] == 0.0);
      for (std::size_t j = 0; j < cd1.point().w.size(); ++j) {
        CHECK_NEAR(interior.point().w[j], cd1.point().w[j], 2e-4);
        CHECK((interior.point().w[j] == 0.0) == (cd1.point().w[j] == 0.0));
      }
    }
  }
}

TEST(cd1_lowers_the_objective_and_the_gap_under_both_bounds) {
  const Problem problem;
  for (const auto bound : {CurvatureBound::global, CurvatureBound::coordinate}) {
    Monitor monitor;
    LinearSettings settings;
    settings.bound = bound, settings.check_every = 1, settings.max_iter = 60, settings.tol = 0.0;
    StochasticCd cd1(problem.with(Logistic{}, true), problem.rows(), problem.penalty, settings);
    CHECK(cd1.solve(monitor) == Status::max_iter);
    const auto& rounds = cd1.rounds();
    CHECK(rounds.size() == 61);
    for (std::size_t k = 1; k < rounds.size(); ++k) {
      CHECK(rounds[k].objective <= rounds[k - 1].objective + 1e-15);
      CHECK(rounds[k].gap <= rounds[k - 1].gap + 1e-15);
    }
  }
}

TEST(the_same_seed_draws_the_same_coordinates) {
  const Problem problem;
  Vec found[2];
  for (Vec& w : found) {
    Monitor monitor;
    LinearSettings settings;
    settings.max_iter = 3, settings.seed = 9, settings.tol = 0.0;
    StochasticCd cd1(problem.with(Logistic{}, false), problem.rows(), problem.penalty, settings);
    cd1.solve(monitor);
    w = cd1.point().w;
  }
  CHECK(found[0] == found[1]);
}

TEST(conjugate_gradients_reach_what_the_factor_reaches) {
  const Problem problem;
  Vec found[2];
  for (int k = 0; k < 2; ++k) {
    Monitor monitor;
    LinearSettings settings;
    settings.tol = 1e-9, settings.most_direct = k == 0 ? 400 : 0;
    InteriorPoint interior(problem.with(Logistic{}, true), problem.penalty, settings);
    CHECK(interior.solve(monitor) == Status::converged);
    found[k] = interior.point().w;
  }
  for (std::size_t j = 0; j < found[0].size(); ++j) CHECK_NEAR(found[0][j], found[1][j], 1e-3);
}

TEST(solvers_stop_when_asked_to) {
  const Problem problem;
  Monitor monitor;
  monitor.request_stop();
  StochasticCd cd1(problem.with(Logistic{}, false), problem.rows(), problem.penalty, {});
  CHECK(cd1.solve(monitor) == Status::stopped);
  InteriorPoint interior(problem.with(Logistic{}, false), problem.penalty, {});
  CHECK(interior.solve(monitor) == Status::stopped);
}

TEST(the_derivatives_of_the_barrier_are_those_of_finite_differences) {
  const BarrierTerm term{0.7, 0.05};
  const double h = 1e-6;
  for (const double w : {-3.0, -0.1, 0.0, 0.02, 1.0}) {
    for (const double u : {std::abs(w) + 0.1, std::abs(w) + 2.0}) {
      const auto in_w = [&](auto&& f) { return (f(w + h, u) - f(w - h, u)) / (2 * h); };
      const auto in_u = [&](auto&& f) { return (f(w, u + h) - f(w, u - h)) / (2 * h); };
      const auto value = [&](double a, double b) { return term.value(a, b); };
      const auto slope_w = [&](double a, double b) { return term.slope_w(a, b); };
      const auto slope_u = [&](double a, double b) { return term.slope_u(a, b); };
      CHECK_NEAR(term.slope_w(w, u), in_w(value), 1e-7);
      CHECK_NEAR(term.slope_u(w, u), in_u(value), 1e-7);
      const double c = term.curvature(w, u), m = term.mixed(w, u);
      CHECK_NEAR(c, in_w(slope_w), 1e-6 * (1 + c));
      CHECK_NEAR(c, in_u(slope_u), 1e-6 * (1 + c));
      CHECK_NEAR(m, in_u(slope_w), 1e-6 * (1 + c));
      CHECK_NEAR(term.reduced(w, u), c - m * m / c, 1e-12 * (1 + c));
    }
    CHECK(term.bound(w) > std::abs(w));
    CHECK_NEAR(term.slope_u(w, term.bound(w)), 0.0, 1e-12);
  }
}
