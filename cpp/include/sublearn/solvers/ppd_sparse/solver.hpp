// PPD-Sparse: one-versus-rest linear classifiers, sparse in the primal and in the dual.
// (I. Yen, "Sublinear-Time Learning and Inference for High-Dimensional Models", 2018, section 2.2;
// "(2.30)" and the like are its equations.)
//
// For each label k on its own, with y_i = +1 for the rows that carry it and -1 for the others,
//
//   min over w, b of  P = 1/2 ||w||^2 + l1 ||w||_1 + 1/2 (b - b0)^2 + sum_i loss(y_i (<w, x_i> +
//   b))
//
// where the bias is learned around b0 = 0 (2.30), or fixed at b = b0 = -1. The dual, maximised over
// 0 <= alpha_i <= loss.upper_bound() (2.31), is
//
//   D = sum_i (conjugate_term(alpha_i) - y_i b0 alpha_i) - 1/2 ||w(alpha)||^2 - 1/2 (b - b0)^2
//   w(alpha) = soft(v, l1),   v = sum_i y_i alpha_i x_i,   b = b0 + sum_i y_i alpha_i  (if learned)
//
// Its gradient in -alpha_i is y_i (<w, x_i> + b) - 1 + dual_diagonal alpha_i, so a row without a
// dual matters only if its margin is below one. P - D bounds the distance to the optimum and is
// known after each exact search, which scores every row. The loop is algorithm 2:
//
//   start     active rows = the positives and a few random negatives
//   correct   a few sweeps of dual coordinate descent over the active rows (algorithm 3)
//   search    score all rows through inverted lists; the worst violators become active
//   shrink    negatives whose dual is back at zero leave
//   until     P - D <= tol P
//
// If something is held of a label, (v0, b0) of rows seen earlier, their duals stay as they are and
// those of the given rows are optimised: one step of block coordinate ascent on the dual of all
// rows. Then v = v0 + sum_i y_i alpha_i x_i and b likewise, and with w0 = soft(v0, l1)
//
//   D' = D + 1/2 ||w0||^2 + 1/2 b0^2
//   P' = P + 1/2 ||w0||^2 + 1/2 b0^2 - <v0, w> - b0 b
//
// both zero where no row has a loss: P' is the losses of the given rows and the Bregman distance of
// the regulariser from w0, b0.
//
// Labels share the matrix, so kLanes of them are solved side by side (core/lanes.hpp): a list or
// row that is read serves all.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "sublearn/core/monitor.hpp"
#include "sublearn/core/parallel_for.hpp"
#include "sublearn/core/rng.hpp"
#include "sublearn/solvers/ppd_sparse/block.hpp"

namespace sublearn {

/// Everything a fit returns; vectors stand in the order in which labels were named.
template <class T>
struct PPDSolution {
  std::vector<LabelWeights<T>> weights;
  std::vector<LabelReport> reports;
};

/// Solves the labels that `order` names, kLanes at a time. `first_block` is the number of blocks
/// that were solved before: a fit may be cut into several calls, at multiples of kLanes labels.
/// Blocks and their random streams depend on the data, the order and the seed only, so the result
/// is the same for any number of threads and any cut. After a stop request the labels not yet
/// reached have no weights, a bias of -1 and a report with n_iter = 0.
template <MarginLoss Loss, class T, class I>
PPDSolution<T> solve_ppd_sparse(const PPDData<T, I>& data, const PPDTask<T>& task,
                                std::span<const index_t> order, std::int64_t first_block, Loss loss,
                                const PPDSettings& settings, Monitor& monitor) {
  const auto started = std::chrono::steady_clock::now();
  PPDSolution<T> solution;
  solution.weights.resize(order.size());
  solution.reports.resize(order.size());
  for (auto& weights : solution.weights) weights.bias = T{-1};

  constexpr auto kBlock = static_cast<std::size_t>(kLanes<T>);
  const auto n_blocks = static_cast<offset_t>((order.size() + kBlock - 1) / kBlock);
  using Solver = PPDBlockSolver<Loss, T, I>;
  std::vector<std::unique_ptr<Solver>> solvers(
      static_cast<std::size_t>(effective_threads(n_blocks, settings.n_threads)));
  const Rng root(settings.seed);
  parallel_for(n_blocks, settings.n_threads, &monitor, [&](offset_t b, int thread) {
    auto& solver = solvers[at(thread)];
    if (!solver) solver = std::make_unique<Solver>(data, task, loss, settings);
    const std::size_t begin = static_cast<std::size_t>(b) * kBlock;
    const auto block = order.subspan(begin, std::min(kBlock, order.size() - begin));
    const auto reports = std::span<LabelReport>(solution.reports).subspan(begin, block.size());
    solver->solve(block, root.split(static_cast<std::uint64_t>(first_block + b)), monitor, reports,
                  std::span<LabelWeights<T>>(solution.weights).subspan(begin, block.size()));
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - started;
    for (LabelReport& report : reports) {
      report.seconds = elapsed.count();
      Monitor::add(monitor.objective, report.primal);
      Monitor::add(monitor.gap, report.primal - report.dual);
      monitor.nnz_primal += report.nnz_primal;
      monitor.nnz_dual += report.nnz_dual;
      monitor.work += report.work;
    }
    monitor.n_done += static_cast<std::int64_t>(block.size());
  });
  return solution;
}

}  // namespace sublearn
