// PD-Sparse end to end on small random problems: certificates, threads, held-out rows, stopping.
#include "sublearn/solvers/pd_sparse/solver.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "check.hpp"
#include "random_problems.hpp"

using namespace sublearn;
using sublearn::testing::RandomLabels;
using sublearn::testing::RandomMatrix;

namespace {

constexpr offset_t kRows = 120;
constexpr offset_t kCols = 30;
constexpr offset_t kLabels = 37;
constexpr PDSearch kSearches[] = {PDSearch::automatic, PDSearch::exact, PDSearch::partition,
                                  PDSearch::sampled};

template <class T, class I>
struct Problem {
  RandomMatrix<T, I> X{kRows, kCols, 0.2, Rng(1)};
  RandomMatrix<T, I> X_held_out{40, kCols, 0.2, Rng(3)};
  RandomMatrix<T, I> X_none{0, kCols, 0.2, Rng(4)};
  RandomLabels labels{kRows, kLabels, 0.08, Rng(2)};
  RandomLabels labels_held_out{40, kLabels, 0.08, Rng(5)};
  RandomLabels labels_none{0, kLabels, 0.08, Rng(6)};
  std::vector<double> caps = std::vector<double>(kRows, 1.0);

  PDSolution<T> solve(const PDSettings& settings, bool has_held_out, Monitor& monitor) const {
    const LabelledRows<T, index_t> train{X.view(), RowLabels(labels.view(), kRows)};
    const LabelledRows<T, index_t> held_out =
        has_held_out
            ? LabelledRows<T, index_t>{X_held_out.view(), RowLabels(labels_held_out.view(), 40)}
            : LabelledRows<T, index_t>{X_none.view(), RowLabels(labels_none.view(), 0)};
    return solve_pd_sparse(train, caps, held_out, kLabels, settings, monitor);
  }
};

/// The objective, from the weights alone.
template <class T, class I>
double objective(const Problem<T, I>& problem, const PDSolution<T>& solution, double l1) {
  double value = 0.0;
  for (const T w : solution.values) {
    value += 0.5 * static_cast<double>(w) * w + l1 * std::abs(static_cast<double>(w));
  }
  const RowLabels labels(problem.labels.view(), kRows);
  for (offset_t i = 0; i < kRows; ++i) {
    std::vector<double> scores(kLabels, 0.0);
    const auto row = problem.X.view().row(i);
    for (std::size_t p = 0; p < row.size(); ++p) {
      const auto j = static_cast<std::size_t>(row.ids[p]);
      for (auto q = solution.indptr[j]; q < solution.indptr[j + 1]; ++q) {
        const auto at = static_cast<std::size_t>(q);
        scores[static_cast<std::size_t>(solution.labels[at])] +=
            static_cast<double>(row.values[p]) * solution.values[at];
      }
    }
    double lowest = std::numeric_limits<double>::infinity();
    double highest = -lowest;
    for (index_t k = 0; k < kLabels; ++k) {
      double& bound = problem.labels.has(k, i) ? lowest : highest;
      const double score = scores[static_cast<std::size_t>(k)];
      bound = problem.labels.has(k, i) ? std::min(bound, score) : std::max(bound, score);
    }
    value += std::max(0.0, 1.0 + highest - lowest);  // minus infinity where one side is empty
  }
  return value;
}

template <class T>
bool same(const PDSolution<T>& a, const PDSolution<T>& b) {
  bool equal = a.indptr == b.indptr && a.labels == b.labels && a.values == b.values &&
               a.primal == b.primal && a.dual == b.dual && a.passes.size() == b.passes.size();
  for (std::size_t p = 0; equal && p < a.passes.size(); ++p) {
    equal = a.passes[p].work == b.passes[p].work && a.passes[p].primal == b.passes[p].primal;
  }
  return equal;
}

template <class T, class I>
void check_solves() {
  const Problem<T, I> problem;
  for (const PDSearch search : kSearches) {
    for (const bool has_held_out : {false, true}) {
      PDSettings settings;
      settings.search = search;
      settings.tol = 1e-3;
      settings.max_iter = 3000;
      settings.seed = 5;
      settings.n_iter_no_change = has_held_out ? 4 : 3;
      Monitor monitor;
      const auto solution = problem.solve(settings, has_held_out, monitor);
      CHECK(solution.is_certified);
      CHECK(monitor.n_done == static_cast<std::int64_t>(solution.passes.size()));
      CHECK(solution.dual <= solution.primal * (1 + 1e-5));
      if (!has_held_out) CHECK(solution.status == Status::converged);
      CHECK_NEAR(solution.primal, objective(problem, solution, settings.l1),
                 1e-4 * solution.primal);
      for (const int threads : {2, 3}) {
        settings.n_threads = threads;
        Monitor other;
        CHECK(same(solution, problem.solve(settings, has_held_out, other)));
      }
    }
  }
}

}  // namespace

TEST(pd_sparse_solves_in_single_precision) { check_solves<float, std::int32_t>(); }

TEST(pd_sparse_solves_in_double_precision) { check_solves<double, std::int64_t>(); }

TEST(pd_sparse_refits_within_the_support) {
  const Problem<double, std::int32_t> problem;
  PDSettings settings;
  settings.l1 = 0.5;
  settings.max_iter = 50;
  settings.refit = true;
  Monitor monitor;
  const auto solution = problem.solve(settings, true, monitor);
  const auto is_refit = [](const PDPass& pass) { return pass.is_refit; };
  CHECK(std::any_of(solution.passes.begin(), solution.passes.end(), is_refit));
  double best_first = 0.0;
  double best_refit = 0.0;
  for (const PDPass& pass : solution.passes) {
    double& best = pass.is_refit ? best_refit : best_first;
    best = std::max(best, pass.held_out);
  }
  CHECK(solution.is_refit == (best_refit > best_first));
  CHECK_NEAR(solution.primal, objective(problem, solution, solution.is_refit ? 0.0 : settings.l1),
             1e-9 * solution.primal);
}

TEST(pd_sparse_does_nothing_after_a_stop_request) {
  const Problem<float, std::int32_t> problem;
  for (const bool has_held_out : {false, true}) {
    Monitor monitor;
    monitor.request_stop();
    PDSettings settings;
    settings.refit = has_held_out;
    const auto solution = problem.solve(settings, has_held_out, monitor);
    CHECK(monitor.n_done == 0 && solution.passes.empty() && solution.values.empty());
    CHECK(!solution.is_certified && solution.status == Status::stopped);
    CHECK(solution.indptr.size() == static_cast<std::size_t>(kCols) + 1);
  }
}

TEST(pd_sparse_finds_no_more_labels_than_there_are) {
  const Problem<double, std::int32_t> problem;
  PDSettings settings;
  settings.max_iter = 3;
  settings.n_candidates = kLabels;
  Monitor monitor;
  const auto all = problem.solve(settings, false, monitor);
  settings.n_candidates = std::numeric_limits<int>::max();
  CHECK(same(all, problem.solve(settings, false, monitor)));
}
