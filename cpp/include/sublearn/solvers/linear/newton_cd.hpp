// Proximal Newton steps by coordinate descent for a linear model on a few of its features: CD2 of
// the thesis of Tang (section 2.2; GLMNET and newGLMNET elsewhere).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "sublearn/core/monitor.hpp"
#include "sublearn/core/types.hpp"
#include "sublearn/objectives/linear.hpp"
#include "sublearn/solvers/linear/hessian_models.hpp"
#include "sublearn/solvers/linear/inner_method.hpp"
#include "sublearn/solvers/linear/separable_steps.hpp"

namespace sublearn {

/// `Steps` is what differs between penalties: separable_steps.hpp, group_steps.hpp.
template <class Columns, class Steps = SeparableSteps>
class NewtonCd final : public InnerMethod {
 public:
  struct Settings {
    double inner_share = 0.1;  ///< a model is minimised until this share of the violation is left
    int max_passes = 50;
    int max_steps = 100;
    double sufficient = 1e-4;  ///< share of the predicted decrease that a step must reach
  };

  NewtonCd(const LinearProblem<Columns>& problem, Steps steps)
      : problem_(&problem),
        steps_(std::move(steps)),
        residual_(problem.X),
        gram_(problem.X),
        trial_(problem.n_rows()) {}

  /// Steps over the features `ids` until their violation is at most `target`. Returns whether it
  /// is.
  bool minimise(LinearPoint& at, std::span<const index_t> ids, double target, int n_threads,
                Monitor& monitor) override {
    gradient_.resize(ids.size());
    monitor_ = &monitor;
    for (int step = 0; step < settings.max_steps; ++step) {
      if (monitor.stop_requested()) return false;
      gradient_at(*problem_, at.rows.slopes, ids, gradient_, n_threads);
      work += count(ids);
      const double violation = choose_active(at, ids);
      if (violation <= target) return true;
      if (hidden_steps_ > kMostHidden) {
        hidden_steps_ = 0;
        return false;
      }
      if (cautious_steps_ > 0) majorise(*problem_, at.rows);
      minimise_model(at, violation);
      if (!line_search(at)) {
        if (cautious_steps_ > 0) return false;
        cautious_steps_ = kCautious;  // the same step again, on parabolas above the losses
        continue;
      }
      cautious_steps_ = std::max(cautious_steps_ - 1, 0);
    }
    return false;
  }

  Settings settings;

 private:
  std::int64_t count(std::span<const index_t> ids) const {
    std::int64_t nnz = 0;
    for (const index_t j : ids) nnz += problem_->X.nnz(j);
    return nnz;
  }

  /// Keeps in active_ the features that are not at their optimum; returns the largest violation.
  double choose_active(const LinearPoint& at, std::span<const index_t> ids) {
    active_.clear();
    active_gradient_.clear();
    point_.clear();
    double largest = steps_.choose(at.w, ids, gradient_, [&](std::size_t k) {
      active_.push_back(ids[k]);
      active_gradient_.push_back(gradient_[k]);
      point_.push_back(at.w[static_cast<std::size_t>(ids[k])]);
    });
    if (problem_->has_intercept) {
      intercept_slope_ = 0.0;
      for (const double r : at.rows.slopes) intercept_slope_ += r;
      largest = std::max(largest, std::abs(intercept_slope_));
    }
    return largest;
  }

  void minimise_model(const LinearPoint& at, double violation) {
    intercept_step_ = 0.0;
    const std::int64_t nnz = count(active_);
    const std::int64_t before = passes;
    if (prepare_gram(at, nnz, violation)) {
      gram_.reset(active_, active_gradient_, intercept_slope_);
      descend(gram_, violation, 0, cheap_passes(nnz));
    } else {
      residual_.reset(active_, at.rows);
      work += nnz;
      descend(residual_, violation, 2 * nnz, settings.max_passes);
    }
    typical_passes_ = 0.5 * (typical_passes_ + static_cast<double>(passes - before));
  }

  /// Passes over the matrix that cost as much as `max_passes` over the rows: columns that nearly
  /// repeat each other take many, and here they are cheap.
  int cheap_passes(std::int64_t nnz) const {
    const double size = static_cast<double>(active_.size() * active_.size()) + 1.0;
    const double ratio = std::clamp(2.0 * static_cast<double>(nnz) / size, 1.0, kMostCheaper);
    return static_cast<int>(ratio * settings.max_passes);
  }

  /// Whether the matrix is the cheaper model for this step; if so, makes it ready.
  bool prepare_gram(const LinearPoint& at, std::int64_t nnz, double violation) {
    const auto size = static_cast<double>(active_.size());
    const double anew = problem_->X.products_cost(0.5 * size, size, static_cast<double>(nnz));
    const bool is_usable =
        !gram_.is_empty() && violation <= kStaleProgress * last_violation_ &&
        gram_.has_room(active_) &&
        gram_.drift(at.rows) <= (anew <= step_cost(nnz) ? kLeastDrift : kMostDrift);
    last_violation_ = violation;
    const auto n_new = static_cast<double>(gram_.n_missing(active_));
    const double making =
        is_usable ? problem_->X.products_cost(n_new, size, static_cast<double>(nnz)) : anew;
    const double passing = 0.5 * size * size * typical_passes_;
    const double reuse = is_usable ? 1.0 : kReuse;
    const double by_rows = (2.0 * typical_passes_ + 1.0) * static_cast<double>(nnz);
    if (making / reuse + passing > by_rows || active_.size() > gram_.kMost) return false;
    if (making + passing > 0.5 * by_rows && !is_usable && !is_settled(at)) return false;
    if (!is_usable) {
      gram_.restart(at.rows);
      last_violation_ = std::numeric_limits<double>::infinity();
    }
    if (!gram_.extend(active_, monitor_)) return false;
    work += static_cast<std::int64_t>(making);
    return true;
  }

  /// What a step costs whatever its model is: a gradient, a direction, and exponentials of the
  /// rows.
  double step_cost(std::int64_t nnz) const {
    return 2.0 * static_cast<double>(nnz) + kRowCost * static_cast<double>(problem_->n_rows());
  }

  /// Whether the curvatures have stopped changing much from step to step, so that a matrix made now
  /// will serve for a while. After a step, trial_ holds the rows as they were before it.
  bool is_settled(const LinearPoint& at) const {
    if (std::holds_alternative<Squared>(problem_->loss)) return true;
    double change = 0.0, sum = 0.0;
    for (std::size_t i = 0; i < trial_.curvatures.size(); ++i) {
      change += std::abs(at.rows.curvatures[i] - trial_.curvatures[i]);
      sum += at.rows.curvatures[i];
    }
    return change <= 0.5 * kMostDrift * sum;
  }

  template <class Model>
  void descend(Model& model, double violation, std::int64_t work_per_pass, int max_passes) {
    steps_.prepare(model, active_);
    for (int pass = 0; pass < max_passes && !monitor_->stop_requested(); ++pass) {
      double left = steps_.pass(model, active_, point_);
      if (problem_->has_intercept) left = std::max(left, descend_intercept(model));
      ++passes;
      work += work_per_pass;
      if (left <= settings.inner_share * violation) break;
    }
  }

  template <class Model>
  double descend_intercept(Model& model) {
    const double slope = model.intercept_slope();
    const double step = -slope / std::max(model.intercept_curvature(), 1e-300);
    model.move_intercept(step);
    intercept_step_ += step;
    return std::abs(slope);
  }

  /// Moves towards the model's minimiser as far as the objective agrees (Armijo). False: no
  /// further.
  bool line_search(LinearPoint& at) {
    direction_.assign(at.rows.predictions.size(), intercept_step_);
    for (std::size_t k = 0; k < active_.size(); ++k) {
      const double before = at.w[static_cast<std::size_t>(active_[k])];
      if (point_[k] == before) continue;
      problem_->X.add(active_[k], point_[k] - before, direction_.data());
    }
    double predicted = steps_.change(at.w, active_, point_, 1.0);
    for (std::size_t i = 0; i < direction_.size(); ++i) {
      predicted += at.rows.slopes[i] * direction_[i];
    }
    if (!(predicted < 0.0)) return false;
    double share = 1.0;
    for (int halving = 0; halving < 40; ++halving, share *= 0.5) {
      for (std::size_t i = 0; i < direction_.size(); ++i) {
        trial_.predictions[i] = at.rows.predictions[i] + share * direction_[i];
      }
      const double loss = evaluate(*problem_, trial_);
      const double gain = loss - at.loss + steps_.change(at.w, active_, point_, share);
      const bool is_hidden = -predicted <= noise(at) && gain <= 100.0 * noise(at);
      if (is_hidden || gain <= settings.sufficient * share * predicted + noise(at)) {
        hidden_steps_ = is_hidden ? hidden_steps_ + 1 : 0;
        if (share < kPoorShare) cautious_steps_ = kCautious;
        accept(at, share, loss);
        return true;
      }
    }
    return false;
  }

  /// Rounding of a sum over the rows. Below it the decrease cannot be seen and the model is
  /// trusted.
  double noise(const LinearPoint& at) const {
    const auto n = static_cast<double>(at.rows.slopes.size());
    return 1e-16 * std::max(10.0, std::sqrt(n)) * std::abs(at.loss);
  }

  void accept(LinearPoint& at, double share, double loss) {
    for (std::size_t k = 0; k < active_.size(); ++k) {
      double& w = at.w[static_cast<std::size_t>(active_[k])];
      w = blended(w, point_[k], share);
    }
    at.intercept += share * intercept_step_;
    std::swap(at.rows, trial_);
    at.loss = loss;
  }

  /// An old matrix is used while each step still takes this share off the violation, and while the
  /// curvatures have drifted no further than this.
  static constexpr double kStaleProgress = 0.7;
  static constexpr double kMostDrift = 0.5;
  static constexpr double kLeastDrift = 0.02;  ///< where a new matrix costs less than a step
  static constexpr double kRowCost = 20.0;     ///< of a row's loss, in additions
  static constexpr double kReuse = 3.0;        ///< steps that a new matrix is expected to serve
  static constexpr double kPoorShare = 0.05;
  static constexpr double kMostCheaper = 100.0;
  static constexpr int kMostHidden = 5;
  /// Where the losses are flat (far from every margin, all residuals large) Newton's model asks for
  /// steps without end and a line search finds none of them good.
  static constexpr int kCautious = 5;

  const LinearProblem<Columns>* problem_;
  const Monitor* monitor_ = nullptr;  ///< of the call that runs
  Steps steps_;
  ResidualModel<Columns> residual_;
  GramModel<Columns> gram_;
  RowState trial_;
  std::vector<double> gradient_;
  std::vector<index_t> active_;
  std::vector<double> point_;
  std::vector<double> direction_;
  std::vector<double> active_gradient_;
  double intercept_slope_ = 0.0;
  double intercept_step_ = 0.0;
  double typical_passes_ = 8.0;
  int cautious_steps_ = 0;  ///< to come
  int hidden_steps_ = 0;    ///< in a row, whose decrease rounding hid
  double last_violation_ = std::numeric_limits<double>::infinity();
};

}  // namespace sublearn
