// LHAC as the method inside an active set of features.
#pragma once

#include <span>
#include <vector>

#include "sublearn/core/monitor.hpp"
#include "sublearn/core/status.hpp"
#include "sublearn/objectives/linear_objective.hpp"
#include "sublearn/prox/separable.hpp"
#include "sublearn/solvers/lhac/lhac_on_set.hpp"
#include "sublearn/solvers/linear/inner_method.hpp"

namespace sublearn {

template <class Columns>
class LhacInner final : public InnerMethod {
 public:
  LhacInner(const LinearProblem<Columns>& problem, const SeparablePenalty& penalty)
      : problem_(&problem), l1_(penalty.l1.begin(), penalty.l1.end()), penalty_(penalty) {
    if (problem.has_intercept) l1_.push_back(0.0);
    penalty_.l1 = l1_;
    penalty_.n_free_last = problem.has_intercept ? 1 : 0;
  }

  bool minimise(LinearPoint& at, std::span<const index_t> features, double target, int n_threads,
                Monitor& monitor) override {
    std::vector<index_t> ids(features.begin(), features.end());
    LinearObjective<Columns> part(*problem_, ids, n_threads);
    at.w.push_back(at.intercept);
    if (problem_->has_intercept) ids.push_back(static_cast<index_t>(l1_.size()) - 1);
    LhacSettings settings;
    settings.least_violation = target;
    LhacOnSet lhac(part, penalty_, ids, settings, {.is_counted = false});
    const Status status = lhac.solve(at.w, monitor);
    at.intercept = at.w.back();
    at.w.pop_back();
    place(*problem_, at);
    count(features, lhac.iterations());
    return status == Status::converged;
  }

 private:
  void count(std::span<const index_t> features, const std::vector<LhacIteration>& iterations) {
    const LhacIteration& last = iterations.back();
    passes += last.n_passes;
    const auto n_looks = last.n_values + static_cast<std::int64_t>(iterations.size());
    for (const index_t j : features) work += n_looks * problem_->X.nnz(j);
  }

  const LinearProblem<Columns>* problem_;
  std::vector<double> l1_;  ///< of the features, and 0 for the intercept
  SeparablePenalty penalty_;
};

}  // namespace sublearn
