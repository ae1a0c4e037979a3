// LHAC on functions whose minimiser is known.
#include "sublearn/solvers/lhac/lhac.hpp"

#include <cmath>
#include <limits>
#include <vector>

#include "check.hpp"

using namespace sublearn;

namespace {

using Vec = std::vector<double>;

/// 1/2 sum_j a_j (x_j - c_j)^2: with l1, x_j* = soft_threshold(c_j, l1 / a_j).
class Diagonal final : public SmoothObjective {
 public:
  Diagonal(Vec a, Vec c) : a_(std::move(a)), c_(std::move(c)), x_(a_.size()) {}
  offset_t size() const override { return static_cast<offset_t>(a_.size()); }
  double move_to(std::span<const double> x) override {
    ++n_values;
    x_.assign(x.begin(), x.end());
    double value = 0.0;
    for (std::size_t j = 0; j < x.size(); ++j) value += 0.5 * a_[j] * std::pow(x[j] - c_[j], 2);
    return value;
  }
  void gradient(std::span<double> out) override {
    for (std::size_t j = 0; j < out.size(); ++j) out[j] = a_[j] * (x_[j] - c_[j]);
  }
  int n_values = 0;

 private:
  Vec a_, c_, x_;
};

/// x - log x, infinite for x <= 0; least at 1.
class LogBarrier final : public SmoothObjective {
 public:
  offset_t size() const override { return 1; }
  double move_to(std::span<const double> x) override {
    x_ = x[0];
    has_seen_outside = has_seen_outside || !(x_ > 0.0);
    return x_ > 0.0 ? x_ - std::log(x_) : std::numeric_limits<double>::infinity();
  }
  void gradient(std::span<double> out) override { out[0] = 1.0 - 1.0 / x_; }
  bool has_seen_outside = false;

 private:
  double x_ = 1.0;
};

struct Run {
  Vec x;
  Status end;
  std::vector<LhacIteration> iterations;
};

Run minimise(SmoothObjective& objective, double l1, const LhacSettings& settings, Vec x,
             SeparablePenalty penalty = {}) {
  const Vec levels(x.size(), l1);
  penalty.l1 = levels;
  Monitor monitor;
  Lhac lhac(objective, penalty, settings);
  const Status end = lhac.solve(x, monitor);
  return {x, end, lhac.iterations};
}

const std::vector<LhacStrategy> kStrategies = {
    LhacStrategy::standard,       LhacStrategy::standard_inexact, LhacStrategy::standard_rough,
    LhacStrategy::greedy,         LhacStrategy::greedy_cut,       LhacStrategy::greedy_inexact,
    LhacStrategy::greedy_adaptive};

}  // namespace

TEST(lhac_soft_thresholds_a_diagonal_quadratic_by_every_strategy) {
  for (const LhacStrategy strategy : kStrategies) {
    for (const auto globalisation : {Globalisation::prox_parameter, Globalisation::line_search}) {
      Diagonal objective({1.0, 4.0, 0.5, 2.0}, {3.0, -2.0, 1.0, 0.25});
      LhacSettings settings;
      settings.tol = settings.violation_tol = 1e-9;
      settings.choice.strategy = strategy;
      settings.globalisation = globalisation;
      const Run run = minimise(objective, 1.0, settings, Vec(4));
      CHECK(run.end == Status::converged);
      const Vec expected = {2.0, -1.75, 0.0, 0.0};
      for (std::size_t j = 0; j < 4; ++j) CHECK_NEAR(run.x[j], expected[j], 1e-7);
      CHECK(run.x[2] == 0.0 && run.x[3] == 0.0);
    }
  }
}

TEST(lhac_never_lets_the_objective_rise) {
  Diagonal objective({1e-3, 10.0, 1.0, 300.0, 5.0}, {50.0, -2.0, 1.0, 0.25, -9.0});
  LhacSettings settings;
  settings.tol = settings.violation_tol = 1e-12;
  const Run run = minimise(objective, 0.01, settings, {1.0, 1.0, -1.0, 2.0, 0.0});
  CHECK(run.end == Status::converged);
  for (std::size_t k = 1; k < run.iterations.size(); ++k) {
    const double before = run.iterations[k - 1].objective;
    CHECK(run.iterations[k].objective <= before + 1e-14 * std::abs(before));
  }
}

TEST(lhac_solves_a_quadratic_of_condition_1e8) {
  Vec a, c;
  for (int j = 0; j < 9; ++j) a.push_back(std::pow(10.0, j)), c.push_back(j % 2 ? -1.0 : 2.0);
  Diagonal objective(a, c);
  LhacSettings settings;
  settings.tol = settings.violation_tol = 1e-12, settings.max_iter = 20000;
  const Run run = minimise(objective, 0.5, settings, Vec(9));
  CHECK(run.end == Status::converged);
  for (std::size_t j = 0; j < 9; ++j) CHECK_NEAR(run.x[j], soft_threshold(c[j], 0.5 / a[j]), 1e-5);
}

TEST(lhac_asks_for_one_value_at_an_optimum) {
  Diagonal objective({1.0, 1.0}, {0.0, 0.0});
  const Run run = minimise(objective, 0.0, LhacSettings{}, Vec(2));
  CHECK(run.end == Status::converged);
  CHECK(run.iterations.size() == 1 && objective.n_values == 1);
  CHECK(run.x == Vec(2));
}

TEST(lhac_steps_back_from_points_of_infinite_value) {
  LogBarrier objective;
  LhacSettings settings;
  settings.tol = settings.violation_tol = 1e-10;
  const Run run = minimise(objective, 0.0, settings, {20.0});
  CHECK(run.end == Status::converged);
  CHECK_NEAR(run.x[0], 1.0, 1e-7);
}

TEST(lhac_keeps_within_its_bounds) {
  Diagonal objective({1.0, 2.0, 1.0}, {3.0, -2.0, 0.25});
  SeparablePenalty penalty;
  penalty.lower = 0.0, penalty.upper = 1.5;
  LhacSettings settings;
  settings.tol = settings.violation_tol = 1e-12;
  const Run run = minimise(objective, 0.1, settings, Vec(3), penalty);
  CHECK(run.end == Status::converged);
  CHECK_NEAR(run.x[0], 1.5, 0.0);
  CHECK_NEAR(run.x[1], 0.0, 0.0);
  CHECK_NEAR(run.x[2], 0.15, 1e-10);
}

TEST(lhac_stops_when_asked_to) {
  Diagonal objective({1.0, 2.0}, {3.0, -2.0});
  SeparablePenalty penalty;
  const Vec levels(2, 0.1);
  penalty.l1 = levels;
  Monitor monitor;
  monitor.request_stop();
  Lhac lhac(objective, penalty, LhacSettings{});
  Vec x(2);
  CHECK(lhac.solve(x, monitor) == Status::stopped);
  CHECK(x == Vec(2));
}

TEST(the_inner_budget_is_linear_logarithmic_or_constant) {
  const InnerBudget linear{0.2, 1.0, false}, logarithmic{1.0, 1.0, true}, constant{0.0, 5.0, false};
  CHECK(linear(1) == 1 && linear(5) == 2 && linear(100) == 21);
  CHECK(logarithmic(1) == 1 && logarithmic(3) == 2 && logarithmic(400) == 6);
  CHECK(constant(1) == 5 && constant(1000) == 5);
  const InnerBudget nothing{0.0, 0.0, false};
  CHECK(nothing(7) == 1);
}
