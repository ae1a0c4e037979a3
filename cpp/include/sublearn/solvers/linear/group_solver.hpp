// Linear models whose features enter in groups: the outer loop of active/outer_loop.hpp over
// groups, around Newton's steps by descent over groups.
//
//   min_{w,b}  sum_i s_i f(<x_i, w> + b; y_i) + p(w),   p as in prox/groups.hpp
//
// The dual at theta_i = -scale * s_i f'_i asks for  pull_g(scale * X_g' s f') <= level_g  (for
// l2 = 0), and a group whose pull stays below that in all of the ball around theta is 0 at the
// optimum.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sublearn/active/outer_loop.hpp"
#include "sublearn/core/monitor.hpp"
#include "sublearn/core/status.hpp"
#include "sublearn/core/types.hpp"
#include "sublearn/objectives/linear.hpp"
#include "sublearn/prox/groups.hpp"
#include "sublearn/solvers/linear/group_steps.hpp"
#include "sublearn/solvers/linear/intercept.hpp"
#include "sublearn/solvers/linear/newton_cd.hpp"
#include "sublearn/solvers/linear/settings.hpp"

namespace sublearn {

/// The penalty of whole groups at a point, as the outer loop asks for it: it knows weights and
/// gradient of the features, and so needs no more than the group's number.
struct GroupsAtPoint {
  const GroupPenalty* penalty;
  const std::vector<double>* weights;   ///< group by group, as `penalty->members`
  const std::vector<double>* gradient;  ///< the same

  std::size_t size() const { return penalty->size(); }
  bool is_free(offset_t) const { return false; }
  bool is_open(offset_t) const { return false; }
  double value(offset_t g, double) const { return penalty->value(g, own(*weights, g)); }
  double violation(offset_t g, double, double) const {
    return penalty->violation(g, own(*weights, g), own(*gradient, g));
  }
  double room(offset_t g, double scale, double) const {
    return penalty->level(g) - penalty->pull(own(*gradient, g), scale);
  }
  std::span<const double> own(const std::vector<double>& values, offset_t g) const {
    const auto begin = static_cast<std::size_t>(penalty->starts[g]);
    return std::span(values).subspan(begin, penalty->features(g).size());
  }
};

template <class Columns>
class GroupLinearProblem {
 public:
  GroupLinearProblem(const LinearProblem<Columns>& problem, const GroupPenalty& penalty,
                     const LinearSettings& settings)
      : problem_(problem),
        penalty_(penalty),
        tol_(settings.tol),
        n_threads_(settings.n_threads),
        owner_(owners(penalty)),
        inner_(problem_, GroupSteps(penalty_, owner_)),
        point_(problem.n_features(), problem.n_rows()),
        norms_(penalty.size()),
        weights_(penalty.members.size()),
        gradient_(penalty.members.size()) {}

  GroupLinearProblem(const GroupLinearProblem&) = delete;  // parts look at each other
  GroupLinearProblem& operator=(const GroupLinearProblem&) = delete;

  LinearPoint& point() { return point_; }
  std::span<const double> x() const { return norms_; }
  GroupsAtPoint groups() const { return {&penalty_, &weights_, &gradient_}; }

  double certify(std::span<const index_t> kept, std::span<double> pulls) {
    if (problem_.has_intercept) centre_intercept(problem_, point_);
    take_weights();
    gather(kept);
    part_.resize(features_.size());
    gradient_at(problem_, point_.rows.slopes, features_, part_, n_threads_);
    work_ += count(features_);
    std::size_t next = 0;
    for (std::size_t k = 0; k < kept.size(); ++k) {
      const auto begin = static_cast<std::size_t>(penalty_.starts[kept[k]]);
      const std::size_t n = penalty_.features(kept[k]).size();
      std::copy_n(part_.begin() + static_cast<std::ptrdiff_t>(next), n,
                  gradient_.begin() + static_cast<std::ptrdiff_t>(begin));
      pulls[k] = penalty_.pull(groups().own(gradient_, kept[k]));
      next += n;
    }
    return point_.loss;
  }

  DualPoint dual_point(std::span<const index_t> kept, std::span<const double> /*pulls*/) const {
    double scale = largest_dual_scale(problem_, point_.rows);
    const GroupsAtPoint at = groups();
    for (const index_t g : kept) {
      scale = penalty_.feasible_scale(g, at.own(gradient_, g), scale);
    }
    double value = dual_of_rows(problem_, point_.rows.slopes, scale);
    for (const index_t g : kept) value -= penalty_.conjugate(g, at.own(gradient_, g), scale);
    return {value, scale};
  }

  /// By the Frobenius norm of the group's columns.
  double reach(index_t g) {
    double squares = 0.0;
    for (const index_t j : penalty_.features(g)) {
      squares += problem_.X.square(j, problem_.weights.data());
      work_ += problem_.X.nnz(j);
    }
    return std::sqrt(smoothness(problem_.loss) * squares);
  }

  void restrict(std::span<const index_t> /*kept*/) {}

  void complete(Round& round) const {
    round.n_passes = inner_.passes;
    round.work = work_ + inner_.work;
  }

  bool correct(const ActiveSet& active, const Round& round, Monitor& monitor) {
    const bool is_rough = round.certificate() > kRough;
    const double share = is_rough ? ActiveSet::kShare : active.share(round, tol_);
    gather(active.ids());
    inner_.minimise(point_, features_, share * round.violation, n_threads_, monitor);
    return true;
  }

 private:
  static constexpr double kRough = 0.1;

  static std::vector<index_t> owners(const GroupPenalty& penalty) {
    std::vector<index_t> owner(penalty.members.size());
    for (offset_t g = 0; g < static_cast<offset_t>(penalty.size()); ++g) {
      for (const index_t j : penalty.features(g)) {
        owner[static_cast<std::size_t>(j)] = static_cast<index_t>(g);
      }
    }
    return owner;
  }

  /// The features of some groups, into features_.
  void gather(std::span<const index_t> groups) {
    features_.clear();
    for (const index_t g : groups) {
      const auto own = penalty_.features(g);
      features_.insert(features_.end(), own.begin(), own.end());
    }
  }

  void take_weights() {
    for (std::size_t p = 0; p < weights_.size(); ++p) {
      weights_[p] = point_.w[static_cast<std::size_t>(penalty_.members[p])];
    }
    const GroupsAtPoint at = groups();
    for (std::size_t g = 0; g < norms_.size(); ++g) {
      double squares = 0.0;
      for (const double t : at.own(weights_, static_cast<offset_t>(g))) squares += t * t;
      norms_[g] = std::sqrt(squares);
    }
  }

  std::int64_t count(std::span<const index_t> features) const {
    std::int64_t nnz = 0;
    for (const index_t j : features) nnz += problem_.X.nnz(j);
    return nnz;
  }

  LinearProblem<Columns> problem_;
  GroupPenalty penalty_;
  double tol_;
  int n_threads_;
  std::vector<index_t> owner_;
  NewtonCd<Columns, GroupSteps> inner_;
  LinearPoint point_;
  std::vector<double> norms_;     ///< of the groups' weights
  std::vector<double> weights_;   ///< group by group
  std::vector<double> gradient_;  ///< group by group; of the kept ones
  std::vector<index_t> features_;
  std::vector<double> part_;
  std::int64_t work_ = 0;
};

template <class Columns>
class GroupLinearSolver {
 public:
  GroupLinearSolver(const LinearProblem<Columns>& problem, const GroupPenalty& penalty,
                    const LinearSettings& settings)
      : data_(problem),
        problem_(problem, penalty, settings),
        loop_(problem_, problem_.groups(),
              {.tol = settings.tol,
               .max_iter = settings.max_iter,
               .first_size = first_size(penalty)}) {}

  Status solve(Monitor& monitor) {
    place(data_, point());
    return loop_.run(monitor);
  }

  LinearPoint& point() { return problem_.point(); }
  const std::vector<Round>& rounds() const { return loop_.rounds; }

 private:
  /// Groups that hold about as many features as a first set of single ones.
  static std::size_t first_size(const GroupPenalty& penalty) {
    const std::size_t each = penalty.members.size() / std::max<std::size_t>(penalty.size(), 1);
    return std::max<std::size_t>(10, 100 / std::max<std::size_t>(each, 1));
  }

  LinearProblem<Columns> data_;
  GroupLinearProblem<Columns> problem_;
  OuterLoop<GroupLinearProblem<Columns>, GroupsAtPoint> loop_;
};

}  // namespace sublearn
