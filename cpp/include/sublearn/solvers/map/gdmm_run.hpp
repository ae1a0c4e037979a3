// MAP inference by the greedy direction method of multipliers and nothing else: algorithm 9 of Yen
// 2018 where all variables are binary and all factors pairwise, else algorithm 8. The answer is the
// best of the points that iterates decode to; iterations end when both residuals are small.
#pragma once

#include <algorithm>
#include <vector>

#include "sublearn/core/factor_graph.hpp"
#include "sublearn/core/types.hpp"
#include "sublearn/solvers/map/gdmm_binary_printed.hpp"
#include "sublearn/solvers/map/gdmm_printed.hpp"
#include "sublearn/solvers/map/run.hpp"

namespace sublearn {

/// One run of the iterations of `dual`. Points are decoded and bounds computed after iterations 10,
/// 30, 50, ..., and later after each tenth more.
template <class Dual>
void run_gdmm(Dual& dual, const FactorGraph& graph, MapRun& run, MapAnswer& answer) {
  constexpr int kFirstCheck = 10, kCheck = 20;
  constexpr double kSolved = 1e-6;  // root mean squares; those of x and y are at most 1
  std::vector<index_t> decoded(answer.labels.size());
  run.credit = MapCredit::gdmm;
  int next_check = std::min(kFirstCheck, run.settings.max_iter);
  while (run.n_iter < run.settings.max_iter && !run.should_stop() && !run.is_stalled) {
    dual.iterate(&run.monitor);
    ++run.n_iter;
    const auto& residuals = dual.residuals();
    run.is_stalled =
        run.n_iter > 1 && residuals.primal < kSolved && residuals.dual < kSolved * dual.rho();
    if (run.n_iter < next_check && !run.is_stalled) continue;
    const int n_iter = static_cast<int>(run.n_iter);
    next_check = std::min(n_iter + std::max(kCheck, n_iter / 10), run.settings.max_iter);
    const double bound = dual.bound(&run.monitor);
    if (run.monitor.stop_requested()) return;  // of part of the factors only
    dual.decode(decoded);
    answer.offer(graph, decoded, graph.score(decoded));
    answer.lower_bound_to(bound);
    run.n_labels = dual.n_active_labels();
    run.n_states = dual.n_active_states();
    run.work = static_cast<double>(dual.work());
    run.report(answer.score, answer.bound);
    if (run.is_closed(answer)) return;
  }
}

inline void solve_gdmm(const FactorGraph& graph, MapRun& run, MapAnswer& answer) {
  const GdmmSettings settings{run.settings.rho, run.settings.eta, run.settings.n_threads};
  if (is_binary_pairwise(graph)) {
    GdmmBinaryPrinted dual(graph, settings);
    run_gdmm(dual, graph, run, answer);
  } else {
    GdmmPrinted dual(graph, settings);
    run_gdmm(dual, graph, run, answer);
  }
}

}  // namespace sublearn
