// Sparse linear models: the outer loop of active/outer_loop.hpp around an inner method.
//
//   min_{w,b}  P(w, b) = sum_i s_i f(<x_i, w> + b; y_i) + p(w)
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "sublearn/active/outer_loop.hpp"
#include "sublearn/core/monitor.hpp"
#include "sublearn/core/status.hpp"
#include "sublearn/core/types.hpp"
#include "sublearn/objectives/linear.hpp"
#include "sublearn/prox/separable.hpp"
#include "sublearn/solvers/linear/inner_method.hpp"
#include "sublearn/solvers/linear/intercept.hpp"
#include "sublearn/solvers/linear/lhac_inner.hpp"
#include "sublearn/solvers/linear/newton_cd.hpp"
#include "sublearn/solvers/linear/settings.hpp"

namespace sublearn {

/// The weights are the coordinates; the intercept is minimised over before a gradient is taken.
template <class Columns>
class SparseLinearProblem {
 public:
  SparseLinearProblem(const LinearProblem<Columns>& problem, const SeparablePenalty& penalty,
                      const LinearSettings& settings)
      : problem_(problem),
        penalty_(penalty),
        tol_(settings.tol),
        n_threads_(settings.n_threads),
        inner_(make_inner(settings.method)),
        point_(problem.n_features(), problem.n_rows()) {}

  LinearPoint& point() { return point_; }
  std::span<const double> x() const { return point_.w; }

  double certify(std::span<const index_t> kept, std::span<double> gradient) {
    if (problem_.has_intercept) centre_intercept(problem_, point_);
    gradient_at(problem_, point_.rows.slopes, kept, gradient, n_threads_);
    for (const index_t j : kept) work_ += problem_.X.nnz(j);
    return point_.loss;
  }

  DualPoint dual_point(std::span<const index_t> kept, std::span<const double> gradient) const {
    return linear_dual(problem_, penalty_, kept, point_.rows.slopes, gradient,
                       largest_dual_scale(problem_, point_.rows));
  }

  double reach(index_t j) {
    work_ += problem_.X.nnz(j);
    return reach_of(problem_, j);
  }

  void restrict(std::span<const index_t> /*kept*/) {}  // a gradient over few is cheap by itself

  void complete(Round& round) const {
    round.n_passes = inner_->passes;
    round.work = work_ + inner_->work;
  }

  bool correct(const ActiveSet& active, const Round& round, Monitor& monitor) {
    const bool is_rough = round.certificate() > kRough;  // other features are still to come
    const double share = is_rough ? ActiveSet::kShare : active.share(round, tol_);
    const double target = share * round.violation;
    inner_->minimise(point_, active.ids(), target, n_threads_, monitor);
    return true;
  }

 private:
  std::unique_ptr<InnerMethod> make_inner(LinearMethod method) const {
    if (method == LinearMethod::lhac) {
      return std::make_unique<LhacInner<Columns>>(problem_, penalty_);
    }
    return std::make_unique<NewtonCd<Columns>>(problem_, SeparableSteps(penalty_));
  }

  static constexpr double kRough = 0.1;

  LinearProblem<Columns> problem_;
  SeparablePenalty penalty_;
  double tol_;
  int n_threads_;
  std::unique_ptr<InnerMethod> inner_;
  LinearPoint point_;
  std::int64_t work_ = 0;  ///< entries of X looked at, but for those of the inner method
};

template <class Columns>
class SparseLinearSolver {
 public:
  SparseLinearSolver(const LinearProblem<Columns>& problem, const SeparablePenalty& penalty,
                     const LinearSettings& settings)
      : data_(problem),
        problem_(problem, penalty, settings),
        loop_(problem_, penalty, {.tol = settings.tol, .max_iter = settings.max_iter}) {}

  Status solve(Monitor& monitor) {
    place(data_, point());
    return loop_.run(monitor);
  }

  LinearPoint& point() { return problem_.point(); }
  const std::vector<Round>& rounds() const { return loop_.rounds; }

 private:
  LinearProblem<Columns> data_;
  SparseLinearProblem<Columns> problem_;
  OuterLoop<SparseLinearProblem<Columns>> loop_;
};

}  // namespace sublearn
