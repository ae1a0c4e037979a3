// Active sets of LHAC: the four sets of (5.4.1) and what each strategy takes of them.
#include "sublearn/solvers/lhac/strategy.hpp"

#include <algorithm>
#include <vector>

#include "check.hpp"

using namespace sublearn;

namespace {

using Ids = std::vector<index_t>;

/// l1 = 1 throughout; coordinate:   0     1     2     3     4      5      6
///                        set:     Z1    Z2    Z3    Z4    Z3     Z1     Z3
///                        P:       0.5   0.25  0.005 0     0.3    2.0    0.6
struct Example {
  std::vector<double> l1 = std::vector<double>(7, 1.0);
  std::vector<double> x = {-1.0, 2.0, 0.0, 0.0, 0.0, 3.0, 0.0};
  std::vector<double> gradient = {1.5, -0.75, 1.005, -0.5, -1.3, 1.0, 1.6};
  ActiveCounts counts;

  Ids choose(LhacStrategy strategy) {
    Ids active;
    SeparablePenalty penalty;
    penalty.l1 = l1;
    counts = ActiveChooser().choose({.strategy = strategy}, penalty, x, gradient, active);
    return active;
  }
};

Ids sorted(Ids ids) {
  std::sort(ids.begin(), ids.end());
  return ids;
}

}  // namespace

TEST(coordinates_are_counted_by_their_set) {
  Example example;
  example.choose(LhacStrategy::standard);
  CHECK(example.counts.z1 == 2 && example.counts.z2 == 1 && example.counts.z3 == 3);
}

TEST(standard_sets_are_in_the_order_of_the_coordinates) {
  Example example;
  CHECK(example.choose(LhacStrategy::standard) == (Ids{0, 1, 2, 4, 5, 6}));
  CHECK(example.choose(LhacStrategy::standard_inexact) == (Ids{0, 1, 4, 5, 6}));
  CHECK(example.choose(LhacStrategy::standard_rough) == (Ids{0, 1, 5, 6}));
}

TEST(greedy_sets_begin_with_the_largest_violation) {
  Example example;
  CHECK(example.choose(LhacStrategy::greedy) == (Ids{5, 6, 0, 4, 1, 2}));
  CHECK(example.choose(LhacStrategy::greedy_inexact) == (Ids{5, 6, 0, 4, 1}));
}

TEST(nothing_is_active_at_an_optimum) {
  Example example;
  example.x = {0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0};
  example.gradient = {1.0, -1.0, 0.3, 0.0, 0.9, -0.2, 0.0};
  for (const LhacStrategy strategy : {LhacStrategy::standard, LhacStrategy::greedy_cut,
                                      LhacStrategy::greedy_adaptive, LhacStrategy::greedy_half}) {
    CHECK(example.choose(strategy).empty());
  }
}

namespace {

/// 4 coordinates of Z2, then `n_new` of Z3 whose violation rises with their number.
struct Wide {
  std::vector<double> l1, x, gradient;

  explicit Wide(std::size_t n_new) : l1(4 + n_new, 1.0), x(l1.size()), gradient(l1.size()) {
    for (std::size_t j = 0; j < l1.size(); ++j) {
      x[j] = j < 4 ? 1.0 : 0.0;
      gradient[j] = j < 4 ? -0.5 : -1.0 - 0.01 * static_cast<double>(j);
    }
  }
  Ids choose(LhacStrategy strategy) const {
    Ids active;
    SeparablePenalty penalty;
    penalty.l1 = l1;
    ActiveChooser().choose({.strategy = strategy}, penalty, x, gradient, active);
    return active;
  }
};

}  // namespace

TEST(the_adaptive_set_takes_all_once_the_new_ones_are_few) {
  CHECK(Wide(8).choose(LhacStrategy::greedy_adaptive).size() == 12);
  CHECK(Wide(8).choose(LhacStrategy::greedy_half).size() == 12);
}

TEST(the_adaptive_set_is_that_of_step_8_and_all_where_z2_is_empty) {
  CHECK(sorted(Wide(200).choose(LhacStrategy::greedy_adaptive)) ==
        (Ids{0, 1, 2, 3, 200, 201, 202, 203}));
  Wide start(200);
  std::fill(start.x.begin(), start.x.end(), 0.0);
  CHECK(start.choose(LhacStrategy::greedy_adaptive).size() == 200);
}

TEST(an_absolute_epsilon_does_not_follow_l1) {
  Wide wide(8);
  for (double& l1 : wide.l1) l1 *= 0.1;
  const auto n = [&](double epsilon, bool is_absolute) {
    Ids active;
    SeparablePenalty penalty;
    penalty.l1 = wide.l1;
    ActiveChooser().choose({LhacStrategy::standard_inexact, 2.0, epsilon, is_absolute}, penalty,
                           wide.x, wide.gradient, active);
    return active.size();
  };
  CHECK(n(5.0, false) == 12);
  CHECK(n(5.0, true) == 4);
}

TEST(half_of_many_others_are_kept_with_z2) {
  const Wide wide(200);
  const Ids active = wide.choose(LhacStrategy::greedy_half);
  CHECK(active.size() == 104);
  const Ids ids = sorted(active);
  for (index_t j = 0; j < 4; ++j) CHECK(ids[static_cast<std::size_t>(j)] == j);
  for (std::size_t k = 4; k < ids.size(); ++k) {
    CHECK(ids[k] == static_cast<index_t>(204 - (ids.size() - k)));  // the last, which are the worst
  }
}

TEST(the_cut_set_is_small_and_holds_the_worst) {
  const Ids active = Wide(200).choose(LhacStrategy::greedy_cut);
  CHECK(active.size() >= 4 && active.size() <= 20);
  CHECK(active.front() == 203);
}

TEST(from_the_origin_every_strategy_takes_something) {
  Wide wide(30);
  for (double& x : wide.x) x = 0.0;
  for (const LhacStrategy strategy :
       {LhacStrategy::standard, LhacStrategy::standard_inexact, LhacStrategy::greedy,
        LhacStrategy::greedy_cut, LhacStrategy::greedy_inexact, LhacStrategy::greedy_adaptive}) {
    CHECK(!wide.choose(strategy).empty());
  }
}

TEST(l2_belongs_to_the_gradient_that_the_sets_compare) {
  // Without l2 both would be inside; with it the slope of the first is 0.9 + 0.5 * 2.
  const std::vector<double> l1 = {1.0, 1.0}, x = {2.0, 2.0}, gradient = {0.9, -0.9};
  SeparablePenalty penalty;
  penalty.l1 = l1;
  Ids active;
  ActiveCounts counts =
      ActiveChooser().choose({.strategy = LhacStrategy::standard}, penalty, x, gradient, active);
  CHECK(counts.z1 == 0 && counts.z2 == 2);
  penalty.l2 = 0.5;
  counts =
      ActiveChooser().choose({.strategy = LhacStrategy::standard}, penalty, x, gradient, active);
  CHECK(counts.z1 == 1 && counts.z2 == 1);
}

TEST(coordinates_without_a_kink_are_in_z2_wherever_they_are) {
  // No l1, 0 or not; an intercept at the end whose l1 says nothing.
  const std::vector<double> l1 = {0.0, 0.0, 1.0, 7.0}, x = {0.0, 3.0, 0.0, 0.0};
  const std::vector<double> gradient = {5.0, 0.0, 0.5, 4.0};
  SeparablePenalty penalty;
  penalty.l1 = l1, penalty.l2 = 0.1, penalty.n_free_last = 1;
  for (const LhacStrategy strategy : {LhacStrategy::standard, LhacStrategy::greedy_cut,
                                      LhacStrategy::greedy_adaptive, LhacStrategy::greedy_half}) {
    Ids active;
    const ActiveCounts counts =
        ActiveChooser().choose({.strategy = strategy}, penalty, x, gradient, active);
    CHECK(counts.z1 == 0 && counts.z2 == 3 && counts.z3 == 0);
    CHECK(sorted(active) == (Ids{0, 1, 3}));
  }
  penalty.lower = 0.0;  // a bound at 0 is a kink
  Ids active;
  CHECK(ActiveChooser()
            .choose({.strategy = LhacStrategy::standard}, penalty, x, gradient, active)
            .z2 == 1);
}
