// PPD-Sparse end to end on small random problems: certificates, threads, index types, stopping.
#include "sublearn/solvers/ppd_sparse/solver.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "check.hpp"
#include "random_problems.hpp"
#include "sublearn/losses/hinge.hpp"
#include "sublearn/losses/squared_hinge.hpp"

using namespace sublearn;
using sublearn::testing::RandomLabels;
using sublearn::testing::RandomMatrix;

namespace {

constexpr offset_t kRows = 150;
constexpr offset_t kCols = 30;
constexpr offset_t kLabels = 37;  // not a multiple of the lanes

PPDSettings strict_settings() {
  PPDSettings settings;
  settings.tol = 1e-3;
  settings.max_iter = 2000;
  settings.seed = 5;
  return settings;
}

/// All labels of a problem in one call.
template <class Loss, class T, class I>
PPDSolution<T> solve_all(const CsrView<T, I>& X, const PPDTask<T>& task, const Loss& loss,
                         const PPDSettings& settings, Monitor& monitor) {
  const PPDData<T, I> data(X);
  std::vector<index_t> order(static_cast<std::size_t>(task.labels.n_labels()));
  std::iota(order.begin(), order.end(), index_t{0});
  return solve_ppd_sparse(data, task, order, 0, loss, settings, monitor);
}

template <class Loss, class T, class I>
PPDSolution<T> solve_all(const CsrView<T, I>& X, const LabelRows& labels, const Loss& loss,
                         const PPDSettings& settings, Monitor& monitor) {
  PPDTask<T> task;
  task.labels = labels;
  return solve_all(X, task, loss, settings, monitor);
}

/// The objective of a label, from its weights alone.
template <class Loss, class T, class I>
double objective(const RandomMatrix<T, I>& X, const RandomLabels& labels, offset_t k,
                 const LabelWeights<T>& found, const Loss& loss, const PPDSettings& settings) {
  std::vector<double> w(static_cast<std::size_t>(X.n_cols), 0.0);
  double value = settings.learn_bias ? 0.5 * static_cast<double>(found.bias) * found.bias : 0.0;
  for (std::size_t p = 0; p < found.features.size(); ++p) {
    const double weight = found.values[p];
    w[static_cast<std::size_t>(found.features[p])] = weight;
    value += 0.5 * weight * weight + settings.l1 * std::abs(weight);
  }
  for (offset_t i = 0; i < kRows; ++i) {
    const double score =
        X.product(i, [&](index_t j) { return w[static_cast<std::size_t>(j)]; }) + found.bias;
    value += loss.value(labels.has(k, i) ? score : -score);
  }
  return value;
}

template <class T>
bool same_weights(const PPDSolution<T>& a, const PPDSolution<T>& b) {
  bool same = a.weights.size() == b.weights.size();
  for (std::size_t k = 0; same && k < a.weights.size(); ++k) {
    same = a.weights[k].features == b.weights[k].features &&
           a.weights[k].values == b.weights[k].values && a.weights[k].bias == b.weights[k].bias &&
           a.reports[k].primal == b.reports[k].primal && a.reports[k].work == b.reports[k].work;
  }
  return same;
}

template <class Loss, class T, class I>
void check_label(const RandomMatrix<T, I>& X, const RandomLabels& labels, offset_t k,
                 const PPDSolution<T>& solution, const Loss& loss, const PPDSettings& settings) {
  const LabelReport& report = solution.reports[static_cast<std::size_t>(k)];
  const LabelWeights<T>& found = solution.weights[static_cast<std::size_t>(k)];
  if (labels.view().of(k).empty()) {
    CHECK(found.features.empty() && found.bias == T{-1} && report.n_iter == 0);
    return;
  }
  CHECK(report.status == Status::converged);
  CHECK(report.primal - report.dual <= settings.tol * report.primal);
  CHECK(report.dual <= report.primal * (1 + 1e-5));
  CHECK_NEAR(report.primal, objective(X, labels, k, found, loss, settings), 1e-4 * report.primal);
  CHECK(report.nnz_primal == static_cast<index_t>(found.features.size()));
  CHECK(report.nnz_dual >= 0 && report.nnz_dual <= kRows);
  CHECK(std::is_sorted(found.features.begin(), found.features.end()));
  if (!settings.learn_bias) CHECK(found.bias == T{-1});
}

template <class T, class I, class Loss>
void check_solves(const Loss& loss) {
  const RandomMatrix<T, I> X(kRows, kCols, 0.2, Rng(1));
  const RandomLabels labels(kRows, kLabels, 0.1, Rng(2));
  for (const bool learn_bias : {true, false}) {
    for (const PPDSearch search : {PPDSearch::exact, PPDSearch::sparsified}) {
      PPDSettings settings = strict_settings();
      settings.learn_bias = learn_bias;
      settings.search = search;
      Monitor monitor;
      const auto solution = solve_all(X.view(), labels.view(), loss, settings, monitor);
      CHECK(monitor.n_done == kLabels);
      double total = 0;
      for (offset_t k = 0; k < kLabels; ++k) {
        check_label(X, labels, k, solution, loss, settings);
        total += solution.reports[static_cast<std::size_t>(k)].primal;
      }
      CHECK_NEAR(monitor.objective, total, 1e-9 * total);
      for (const int threads : {2, 3}) {
        settings.n_threads = threads;
        Monitor other;
        CHECK(same_weights(solution, solve_all(X.view(), labels.view(), loss, settings, other)));
      }
    }
  }
}

}  // namespace

TEST(ppd_sparse_solves_the_hinge_loss) {
  check_solves<float, std::int32_t>(Hinge{1.0});
  check_solves<double, std::int64_t>(Hinge{1.0});
}

TEST(ppd_sparse_solves_the_squared_hinge_loss) {
  check_solves<float, std::int64_t>(SquaredHinge{1.0});
  check_solves<double, std::int32_t>(SquaredHinge{1.0});
}

TEST(ppd_sparse_certifies_what_it_returns_at_the_iteration_limit) {
  const RandomMatrix<double, std::int32_t> X(kRows, kCols, 0.2, Rng(1));
  const RandomLabels labels(kRows, kLabels, 0.1, Rng(2));
  const SquaredHinge loss{1.0};
  for (const int max_iter : {1, 2, 3}) {
    PPDSettings settings = strict_settings();
    settings.search = PPDSearch::sparsified;
    settings.tol = 1e-12;
    settings.max_iter = max_iter;
    Monitor monitor;
    const auto solution = solve_all(X.view(), labels.view(), loss, settings, monitor);
    for (offset_t k = 0; k < kLabels; ++k) {
      if (labels.view().of(k).empty()) continue;
      const auto& report = solution.reports[static_cast<std::size_t>(k)];
      const auto& found = solution.weights[static_cast<std::size_t>(k)];
      CHECK(report.status == Status::max_iter && report.n_iter == max_iter);
      CHECK_NEAR(report.primal, objective(X, labels, k, found, loss, settings),
                 1e-9 * report.primal);
      CHECK(report.dual <= report.primal);
    }
  }
}

TEST(ppd_sparse_does_nothing_after_a_stop_request) {
  const RandomMatrix<float, std::int32_t> X(kRows, kCols, 0.2, Rng(1));
  const RandomLabels labels(kRows, kLabels, 0.1, Rng(2));
  for (const int threads : {1, 2, 3}) {
    PPDSettings settings = strict_settings();
    settings.n_threads = threads;
    Monitor monitor;
    monitor.request_stop();
    const auto solution = solve_all(X.view(), labels.view(), Hinge{1.0}, settings, monitor);
    CHECK(monitor.n_done == 0 && solution.weights.size() == static_cast<std::size_t>(kLabels));
    for (offset_t k = 0; k < kLabels; ++k) {
      const auto& found = solution.weights[static_cast<std::size_t>(k)];
      CHECK(found.features.empty() && found.bias == -1.0F);
      CHECK(solution.reports[static_cast<std::size_t>(k)].n_iter == 0);
    }
  }
}

TEST(ppd_sparse_takes_problems_of_one_row_or_one_feature) {
  for (const offset_t n_rows : {1, 2, 9, 11}) {
    for (const offset_t n_cols : {1, 3}) {
      const RandomMatrix<double, std::int32_t> X(n_rows, n_cols, 0.7, Rng(3));
      const RandomLabels labels(n_rows, 3, 0.5, Rng(4));
      for (const bool learn_bias : {true, false}) {
        PPDSettings settings = strict_settings();
        settings.learn_bias = learn_bias;
        Monitor monitor;
        const auto solution = solve_all(X.view(), labels.view(), Hinge{1.0}, settings, monitor);
        for (const auto& report : solution.reports) {
          CHECK(std::isfinite(report.primal) && (report.has_converged() || report.n_iter == 0));
        }
      }
    }
  }
}

TEST(ppd_sparse_solves_the_same_in_pieces_as_at_once) {
  const RandomMatrix<float, std::int32_t> X(kRows, kCols, 0.2, Rng(1));
  const RandomLabels labels(kRows, kLabels, 0.1, Rng(2));
  const PPDData<float, std::int32_t> data(X.view());
  PPDTask<float> task;
  task.labels = labels.view();
  std::vector<index_t> order(kLabels);
  std::iota(order.begin(), order.end(), index_t{0});
  Monitor monitor;
  const auto whole = solve_ppd_sparse(data, task, order, 0, Hinge{1.0}, strict_settings(), monitor);
  PPDSolution<float> pieces;
  for (std::size_t begin = 0; begin < order.size(); begin += kLanes<float>) {
    const auto part = std::span<const index_t>(order).subspan(
        begin, std::min<std::size_t>(kLanes<float>, order.size() - begin));
    auto piece =
        solve_ppd_sparse(data, task, part, static_cast<std::int64_t>(begin) / kLanes<float>,
                         Hinge{1.0}, strict_settings(), monitor);
    std::move(piece.weights.begin(), piece.weights.end(), std::back_inserter(pieces.weights));
    std::move(piece.reports.begin(), piece.reports.end(), std::back_inserter(pieces.reports));
  }
  CHECK(same_weights(whole, pieces));
}

TEST(ppd_sparse_counts_a_row_of_weight_two_twice) {
  const RandomMatrix<double, std::int32_t> X(kRows, kCols, 0.2, Rng(1));
  const RandomLabels labels(kRows, kLabels, 0.1, Rng(2));
  const std::vector<double> twice(static_cast<std::size_t>(kRows), 2.0);
  for (const bool learn_bias : {true, false}) {
    PPDSettings settings = strict_settings();
    settings.learn_bias = learn_bias;
    settings.tol = 1e-8;
    PPDTask<double> task;
    task.labels = labels.view();
    Monitor monitor;
    const auto plain = solve_all(X.view(), task, SquaredHinge{2.0}, settings, monitor);
    const auto plain_hinge = solve_all(X.view(), task, Hinge{2.0}, settings, monitor);
    task.row_weight = twice;
    const auto weighted = solve_all(X.view(), task, SquaredHinge{1.0}, settings, monitor);
    const auto weighted_hinge = solve_all(X.view(), task, Hinge{1.0}, settings, monitor);
    for (std::size_t k = 0; k < static_cast<std::size_t>(kLabels); ++k) {
      CHECK_NEAR(plain.reports[k].primal, weighted.reports[k].primal,
                 1e-7 * plain.reports[k].primal);
      CHECK_NEAR(plain_hinge.reports[k].primal, weighted_hinge.reports[k].primal,
                 1e-6 * plain_hinge.reports[k].primal);
    }
  }
}

TEST(ppd_sparse_started_from_its_own_weights_needs_less_work) {
  const RandomMatrix<double, std::int32_t> X(kRows, kCols, 0.2, Rng(1));
  const RandomLabels labels(kRows, kLabels, 0.1, Rng(2));
  for (const bool learn_bias : {true, false}) {
    PPDSettings settings = strict_settings();
    settings.learn_bias = learn_bias;
    PPDTask<double> task;
    task.labels = labels.view();
    Monitor cold, warm;
    const auto first = solve_all(X.view(), task, SquaredHinge{1.0}, settings, cold);
    std::vector<offset_t> indptr(1, 0);
    std::vector<index_t> features;
    std::vector<double> values, bias;
    for (const auto& label : first.weights) {
      features.insert(features.end(), label.features.begin(), label.features.end());
      values.insert(values.end(), label.values.begin(), label.values.end());
      indptr.push_back(static_cast<offset_t>(features.size()));
      bias.push_back(label.bias);
    }
    task.start = {indptr, features, values, bias};
    const auto again = solve_all(X.view(), task, SquaredHinge{1.0}, settings, warm);
    for (offset_t k = 0; k < kLabels; ++k) {
      check_label(X, labels, k, again, SquaredHinge{1.0}, settings);
    }
    CHECK(warm.work < cold.work);
  }
}

TEST(ppd_sparse_stopped_before_a_restarted_label_is_corrected_returns_no_weights_of_it) {
  const RandomMatrix<double, std::int32_t> X(kRows, kCols, 0.2, Rng(1));
  const RandomLabels labels(kRows, kLabels, 0.1, Rng(2));
  PPDTask<double> task;
  task.labels = labels.view();
  std::vector<offset_t> indptr;
  for (offset_t k = 0; k <= kLabels; ++k) indptr.push_back(k);
  std::vector<index_t> features;
  for (offset_t k = 0; k < kLabels; ++k) features.push_back(static_cast<index_t>(k % kCols));
  const std::vector<double> values(kLabels, 0.5), bias(kLabels, -0.5);
  task.start = {indptr, features, values, bias};
  const PPDData<double, std::int32_t> data(X.view());
  PPDBlockSolver<SquaredHinge, double, std::int32_t> solver(data, task, SquaredHinge{1.0},
                                                            strict_settings());
  Monitor monitor;
  monitor.request_stop();
  const std::vector<index_t> block = {0, 1, 2};
  std::vector<LabelReport> reports(block.size());
  std::vector<LabelWeights<double>> weights(block.size());
  solver.solve(block, Rng(1), monitor, reports, weights);
  for (std::size_t l = 0; l < block.size(); ++l) {
    CHECK(reports[l].n_iter == 0);
    CHECK(weights[l].features.empty());
    CHECK(weights[l].bias == -1.0);
  }
}

TEST(ppd_sparse_returns_no_weight_that_is_to_be_pruned) {
  const RandomMatrix<double, std::int32_t> X(kRows, kCols, 0.2, Rng(1));
  const RandomLabels labels(kRows, kLabels, 0.1, Rng(2));
  PPDSettings settings = strict_settings();
  Monitor monitor;
  const auto whole = solve_all(X.view(), labels.view(), SquaredHinge{1.0}, settings, monitor);
  settings.prune = 0.1;
  const auto pruned = solve_all(X.view(), labels.view(), SquaredHinge{1.0}, settings, monitor);
  for (std::size_t k = 0; k < static_cast<std::size_t>(kLabels); ++k) {
    std::vector<double> kept;
    for (const double w : whole.weights[k].values) {
      if (std::abs(w) > 0.1) kept.push_back(w);
    }
    CHECK(pruned.weights[k].values == kept);
  }
}
