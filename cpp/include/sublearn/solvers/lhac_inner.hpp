// LHAC as the method inside a working set of features.
#pragma once

#include <span>
#include <vector>

#include "sublearn/core/monitor.hpp"
#include "sublearn/objectives/linear_objective.hpp"
#include "sublearn/prox/separable.hpp"
#include "sublearn/solvers/inner_method.hpp"
#include "sublearn/solvers/lhac.hpp"

namespace sublearn {

template <class Columns>
class LhacInner final : public InnerMethod {
 public:
  LhacInner(const LinearProblem<Columns>& problem, const SeparablePenalty& penalty,
            const LhacSettings& settings)
      : problem_(&problem), penalty_(penalty), settings_(settings) {}

  bool minimise(LinearPoint& at, std::span<const index_t> ids, double target, int n_threads,
                Monitor& monitor) override {
    LinearObjective<Columns> objective(*problem_, {ids.begin(), ids.end()}, n_threads);
    std::vector<double> l1, x;
    for (const index_t j : ids) {
      l1.push_back(penalty_.l1[static_cast<std::size_t>(j)]);
      x.push_back(at.w[static_cast<std::size_t>(j)]);
    }
    SeparablePenalty penalty = penalty_;
    if (problem_->has_intercept) {
      x.push_back(at.intercept);
      l1.push_back(0.0);
      penalty.has_free_last = true;
    }
    penalty.l1 = l1;
    LhacSettings settings = settings_;
    settings.tol = 0.0;
    settings.least_violation = target;
    Lhac lhac(objective, penalty, settings, LhacOuter{});
    const LhacEnd end = lhac.solve(x, monitor);
    for (std::size_t k = 0; k < ids.size(); ++k) at.w[static_cast<std::size_t>(ids[k])] = x[k];
    if (problem_->has_intercept) at.intercept = x.back();
    at.loss = objective.move_to(x);
    at.rows = objective.rows();
    const LhacIteration& last = lhac.iterations.back();
    passes += last.n_passes;
    for (const index_t j : ids) {
      work +=
          (last.n_values + static_cast<std::int64_t>(lhac.iterations.size())) * problem_->X.nnz(j);
    }
    return end == LhacEnd::converged;
  }

 private:
  const LinearProblem<Columns>* problem_;
  SeparablePenalty penalty_;
  LhacSettings settings_;
};

}  // namespace sublearn
