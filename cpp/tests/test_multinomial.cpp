// The multinomial loss, what has no penalty in it, and its solver on a small problem.
#include <cmath>
#include <vector>

#include "check.hpp"
#include "sublearn/core/rng.hpp"
#include "sublearn/objectives/multinomial.hpp"
#include "sublearn/solvers/multinomial/free_weights.hpp"
#include "sublearn/solvers/multinomial/solver.hpp"

using namespace sublearn;

namespace {

using Vec = std::vector<double>;
using Objective = MultinomialObjective<DenseColumns<double>>;

/// Rows of three classes, which the first two of six features help to tell apart; the last feature
/// is twice the third. With intercepts there are 21 coordinates.
struct Rows {
  static constexpr offset_t n_rows = 60, n_features = 6;
  Vec X, weights;
  std::vector<index_t> codes;

  Rows() : X(n_rows * n_features) {
    Rng rng(4);
    for (double& x : X) x = 2 * rng.uniform() - 1;
    double total = 0.0;
    for (offset_t i = 0; i < n_rows; ++i) {
      at(i, 5) = 2 * at(i, 2);
      const double first = at(i, 0) + rng.uniform() - 0.5, second = at(i, 1) + rng.uniform() - 0.5;
      codes.push_back(first > 0.3 ? 0 : second > 0.0 ? 1 : 2);
      weights.push_back(0.5 + rng.uniform());
      total += weights.back();
    }
    for (double& weight : weights) weight /= total;
  }
  double& at(offset_t i, offset_t j) { return X[static_cast<std::size_t>(j * n_rows + i)]; }

  Objective objective(int n_threads) const {
    const DenseColumns<double> columns(X.data(), n_rows, n_features);
    return {MultinomialData<DenseColumns<double>>{columns, codes, weights, 3, true}, n_threads};
  }
};

Vec random_point(std::uint64_t seed) {
  Rng rng(seed);
  Vec x(21);
  for (double& entry : x) entry = rng.uniform() - 0.5;
  return x;
}

}  // namespace

TEST(the_multinomial_gradient_is_that_of_finite_differences) {
  const Rows rows;
  auto objective = rows.objective(1);
  const Vec x = random_point(2);
  Vec gradient(21);
  CHECK(objective.size() == 21);
  objective.move_to(x);
  objective.gradient(gradient);
  for (std::size_t j = 0; j < x.size(); ++j) {
    Vec up = x, down = x;
    up[j] += 1e-6, down[j] -= 1e-6;
    const double slope = (objective.move_to(up) - objective.move_to(down)) / 2e-6;
    CHECK_NEAR(gradient[j], slope, 1e-8);
  }
}

TEST(threads_change_no_bit_of_the_multinomial_objective) {
  const Rows rows;
  auto one = rows.objective(1), four = rows.objective(4);
  const Vec x(21, 0.3);
  Vec first(21), second(21);
  CHECK(one.move_to(x) == four.move_to(x));
  one.gradient(first);
  four.gradient(second);
  CHECK(first == second);
}

TEST(the_multinomial_loss_does_not_overflow) {
  const Rows rows;
  auto objective = rows.objective(1);
  Vec x(21), gradient(21);
  for (std::size_t j = 0; j < x.size(); ++j) x[j] = j % 2 ? 1e5 : -1e5;
  CHECK(std::isfinite(objective.move_to(x)));
  objective.gradient(gradient);
  for (const double g : gradient) CHECK(std::isfinite(g));
}

TEST(a_part_of_the_multinomial_objective_is_the_whole_with_zeros_elsewhere) {
  const Rows rows;
  auto whole = rows.objective(1);
  const std::vector<index_t> ids = {0, 2, 4, 9, 16, 18, 20};
  const auto part = whole.restricted(ids);
  const Vec x = random_point(3);
  Vec few, all(21), gradient(21), of_part(ids.size());
  for (const index_t id : ids) {
    few.push_back(x[static_cast<std::size_t>(id)]);
    all[static_cast<std::size_t>(id)] = few.back();
  }
  CHECK(part->move_to(few) == whole.move_to(all));
  whole.gradient(gradient);
  part->gradient(of_part);
  for (std::size_t k = 0; k < ids.size(); ++k) {
    CHECK(of_part[k] == gradient[static_cast<std::size_t>(ids[k])]);
    CHECK(part->reach(static_cast<offset_t>(k)) == whole.reach(ids[k]));
  }
}

TEST(free_weights_are_centred_even_if_their_columns_repeat_each_other) {
  const Rows rows;
  auto objective = rows.objective(1);
  FreeWeights free(objective, {2, 5});
  Vec x = random_point(5), gradient(21);
  const double before = objective.move_to(x);
  CHECK(free.centre(x));
  CHECK(objective.move_to(x) <= before);
  objective.gradient(gradient);
  for (const std::size_t id : {6u, 7u, 8u, 15u, 16u, 17u, 18u, 19u, 20u}) {
    CHECK_NEAR(gradient[id], 0.0, 1e-14);
  }
  const Vec unmoved = random_point(5);
  for (std::size_t id = 0; id < 6; ++id) CHECK(x[id] == unmoved[id]);
}

TEST(the_multinomial_solver_certifies_what_it_finds) {
  const Rows rows;
  for (const double l2 : {0.0, 0.1}) {
    auto objective = rows.objective(1);
    Vec l1(21, 0.02);
    for (std::size_t id = 6; id < 9; ++id) l1[id] = 0.0;
    for (std::size_t id = 18; id < 21; ++id) l1[id] = 0.0;
    SeparablePenalty penalty;
    penalty.l1 = l1, penalty.l2 = l2, penalty.n_free_last = 3;
    Vec x(21), other = random_point(7);
    Monitor monitor;
    const auto found = solve_multinomial(objective, penalty, 1e-9, 100, x, monitor);
    CHECK(found.status == Status::converged);
    CHECK(found.rounds.back().certificate() <= 1e-9);
    const auto warm = solve_multinomial(objective, penalty, 1e-9, 100, other, monitor);
    CHECK(warm.status == Status::converged);
    CHECK_NEAR(warm.rounds.back().objective, found.rounds.back().objective, 2e-9);
  }
}

TEST(the_multinomial_solver_stops_when_asked_to) {
  const Rows rows;
  auto objective = rows.objective(1);
  const Vec l1(21, 0.02);
  SeparablePenalty penalty;
  penalty.l1 = l1, penalty.n_free_last = 3;
  Vec x(21);
  Monitor monitor;
  monitor.request_stop();
  const auto found = solve_multinomial(objective, penalty, 1e-9, 100, x, monitor);
  CHECK(found.status == Status::stopped && found.rounds.size() == 1);
}
