// The outer loop on a separable quadratic, whose minimiser is known.
#include "sublearn/active/outer_loop.hpp"

#include <cmath>
#include <vector>

#include "check.hpp"

using namespace sublearn;

namespace {

using Vec = std::vector<double>;

/// 1/2 sum_j (x_j - c_j)^2. The dual point of x is x - c, 1-strongly concave: the reach is 1.
class Squares {
 public:
  explicit Squares(Vec c) : x_(c.size()), c_(std::move(c)) {}

  std::span<const double> x() const { return x_; }
  double certify(std::span<const index_t> kept, std::span<double> gradient) {
    for (std::size_t k = 0; k < kept.size(); ++k) {
      const auto j = static_cast<std::size_t>(kept[k]);
      gradient[k] = x_[j] - c_[j];
    }
    double value = 0.0;
    for (std::size_t j = 0; j < c_.size(); ++j) value += 0.5 * std::pow(x_[j] - c_[j], 2);
    return value;
  }
  DualPoint dual_point(std::span<const index_t> kept, std::span<const double> gradient) {
    if (!has_dual) return {};
    const auto rows = [&](double scale) {
      double value = 0.0;
      for (std::size_t j = 0; j < c_.size(); ++j) {
        const double slope = scale * (x_[j] - c_[j]);
        value -= 0.5 * slope * slope + slope * c_[j];
      }
      return value;
    };
    return scaled_dual(penalty(), kept, gradient, 1.0, rows);
  }
  double reach(index_t) const { return 1.0; }
  void restrict(std::span<const index_t> kept) { n_kept = kept.size(); }
  void complete(Round& round) const { round.n_passes = n_corrections; }
  bool correct(const ActiveSet& active, const Round&, Monitor&) {
    ++n_corrections;
    for (const index_t j : active.ids()) {
      const auto at = static_cast<std::size_t>(j);
      x_[at] = soft_threshold(x_[at] + rate * (c_[at] - x_[at]), rate * kL1);
    }
    return rate > 0.0;
  }

  SeparablePenalty penalty() const {
    static const Vec l1(1000, kL1);
    SeparablePenalty penalty;
    penalty.l1 = std::span(l1).first(c_.size());
    return penalty;
  }

  static constexpr double kL1 = 1.0;
  double rate = 1.0;  ///< of a step of proximal gradient
  bool has_dual = true;
  std::size_t n_kept = 0;
  int n_corrections = 0;

 private:
  Vec x_, c_;
};

/// Three coordinates count, the others are far below l1.
Squares three_of(std::size_t n) {
  Vec c(n, 0.01);
  c[1] = 5.0, c[2] = -3.0, c[n - 1] = 2.0;
  return Squares(c);
}

}  // namespace

TEST(the_outer_loop_finds_the_coordinates_that_count_and_rules_the_others_out) {
  Squares problem = three_of(400);
  problem.rate = 0.5;
  OuterLoop loop(problem, problem.penalty(), {.tol = 1e-10});
  Monitor monitor;
  CHECK(loop.run(monitor) == Status::converged);
  CHECK_NEAR(problem.x()[1], 4.0, 1e-4);
  CHECK_NEAR(problem.x()[2], -2.0, 1e-4);
  CHECK_NEAR(problem.x()[399], 1.0, 1e-4);
  CHECK(problem.x()[0] == 0.0);
  CHECK(problem.n_kept == 3 && loop.rounds.back().n_kept == 3);
  CHECK(loop.rounds.back().n_nonzero == 3 && loop.rounds.front().n_active == 3);
  for (std::size_t k = 1; k < loop.rounds.size(); ++k) {
    CHECK(loop.rounds[k].gap <= loop.rounds[k - 1].gap);
    CHECK(loop.rounds[k].n_done == static_cast<std::int64_t>(k));
  }
}

TEST(without_a_bound_the_outer_loop_stops_by_the_subgradient_if_it_may) {
  for (const bool may : {false, true}) {
    Squares problem = three_of(10);
    problem.has_dual = false;
    OuterLoop loop(problem, problem.penalty(), {.max_iter = 2, .violation_tol = may ? 1e-6 : -1.0});
    Monitor monitor;
    CHECK(loop.run(monitor) == (may ? Status::converged : Status::max_iter));
    CHECK(problem.n_kept == 0);
  }
}

TEST(the_outer_loop_says_why_it_stopped) {
  Squares limited = three_of(10);
  limited.rate = 0.1;
  Monitor monitor;
  OuterLoop two(limited, limited.penalty(), {.max_iter = 2});
  CHECK(two.run(monitor) == Status::max_iter);
  CHECK(two.rounds.size() == 3 && monitor.n_done == 2);

  Squares stuck = three_of(10);
  stuck.rate = 0.0;
  OuterLoop once(stuck, stuck.penalty(), {});
  CHECK(once.run(monitor) == Status::stalled);
  CHECK(stuck.n_corrections == 1);

  Squares slow = three_of(10);
  slow.rate = 1e-14;
  OuterLoop idle(slow, slow.penalty(), {});
  CHECK(idle.run(monitor) == Status::stalled);
  CHECK(slow.n_corrections == 3);

  monitor.request_stop();
  Squares stopped = three_of(10);
  OuterLoop none(stopped, stopped.penalty(), {});
  CHECK(none.run(monitor) == Status::stopped);
  CHECK(stopped.n_corrections == 0 && none.rounds.size() == 1);
}
