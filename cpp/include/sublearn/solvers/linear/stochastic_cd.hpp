// CD1: first-order stochastic coordinate descent (section 2.2 of Tang's thesis; Shalev-Shwartz and
// Tewari 2011) for
//
//   min_{w,b}  sum_i s_i f(<x_i, w> + b; y_i) + p(w).
//
// A coordinate, drawn at random, moves to the minimiser of the model (2.2.20), in which a bound on
// the second derivative stands for it. The model lies above the objective, so every step lowers the
// objective and none needs a line search. The predictions and slopes of the rows that the column
// touches follow at once.
//
// With m = sup f'', two bounds are at hand:
//
//   global      beta   = m max_j sum_i s_i x_ij^2, the one of (2.2.19): a single number, for which
//               the rate of convergence is proved;
//   coordinate  beta_j = m sum_i s_i x_ij^2: just as valid, since only H_jj counts when coordinate
//               j moves alone, and never larger. Columns of small norm, rare words for instance,
//               would crawl under a bound that the largest column sets.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include "sublearn/core/column_rows.hpp"
#include "sublearn/core/monitor.hpp"
#include "sublearn/core/rng.hpp"
#include "sublearn/core/status.hpp"
#include "sublearn/core/types.hpp"
#include "sublearn/objectives/linear.hpp"
#include "sublearn/prox/separable.hpp"
#include "sublearn/solvers/linear/certificate.hpp"
#include "sublearn/solvers/linear/settings.hpp"

namespace sublearn {

/// For losses with a finite smoothness().
template <class Columns>
class StochasticCd {
 public:
  StochasticCd(const LinearProblem<Columns>& problem, const ColumnRows& rows,
               const SeparablePenalty& penalty, const LinearSettings& settings)
      : certificate(problem, penalty, settings.n_threads),
        problem_(problem),
        rows_(rows),
        penalty_(penalty),
        settings_(settings),
        rng_(settings.seed),
        point_(problem.n_features(), problem.n_rows()) {}

  Status solve(Monitor& monitor) {
    certificate.place(point_);
    bound_curvatures();
    for (int epoch = 0;; ++epoch) {
      const bool is_stopped = monitor.stop_requested();
      if (is_stopped || epoch % settings_.check_every == 0 || epoch >= settings_.max_iter) {
        certificate.place(point_);  // rounding of many small moves does not add up
        certificate.centre_intercept(point_);
        const Round now = certificate.measure(point_);
        certificate.record(now, epoch, monitor);
        if (now.certificate() <= settings_.tol) return Status::converged;
        if (is_stopped) return Status::stopped;
        if (epoch >= settings_.max_iter) return Status::max_iter;
      }
      run_epoch(monitor);
    }
  }

  LinearPoint& point() { return point_; }
  const std::vector<Round>& rounds() const { return certificate.rounds; }
  LinearCertificate<Columns> certificate;

 private:
  /// Coordinate n_features is the intercept.
  offset_t n_coordinates() const {
    return problem_.n_features() + (problem_.has_intercept ? 1 : 0);
  }

  void bound_curvatures() {
    const double m = smoothness(problem_.loss);
    bounds_.resize(static_cast<std::size_t>(n_coordinates()));
    for (offset_t j = 0; j < problem_.n_features(); ++j) {
      bounds_[static_cast<std::size_t>(j)] = m * problem_.X.square(j, problem_.weights.data());
    }
    if (problem_.has_intercept) {
      double total = 0.0;
      for (const double s : problem_.weights) total += s;
      bounds_.back() = m * total;
    }
    const double largest =
        bounds_.empty() ? 0.0 : *std::max_element(bounds_.begin(), bounds_.end());
    for (double& bound : bounds_) {
      if (settings_.bound == CurvatureBound::global) bound = largest;
      bound = std::max(bound, kLeastBound);
    }
  }

  /// Ends early if asked to stop.
  void run_epoch(const Monitor& monitor) {
    const auto n = static_cast<std::uint32_t>(n_coordinates());
    std::visit(
        [&](const auto& loss) {
          for (std::uint32_t draw = 0; draw < n; ++draw) {
            if (draw % kDrawsPerLook == 0 && monitor.stop_requested()) return;
            const std::uint32_t j = rng_.below(n);
            if (static_cast<offset_t>(j) < problem_.n_features()) {
              step_feature(loss, static_cast<offset_t>(j));
            } else {
              step_intercept(loss);
            }
          }
        },
        problem_.loss);
  }

  template <class Loss>
  void step_feature(const Loss& loss, offset_t j) {
    double& w = point_.w[static_cast<std::size_t>(j)];
    const double a = bounds_[static_cast<std::size_t>(j)];
    const double slope = problem_.X.dot(j, point_.rows.slopes.data());
    certificate.work += problem_.X.nnz(j);
    const double after = penalty_.minimise(j, a, a * w - slope);
    const double step = after - w;
    if (step == 0.0) return;
    w = after;
    problem_.X.add(j, step, point_.rows.predictions.data());
    rows_.visit(j, [&](std::size_t i) { refresh(loss, i); });
    certificate.work += 2 * problem_.X.nnz(j);
  }

  template <class Loss>
  void step_intercept(const Loss& loss) {
    double slope = 0.0;
    for (const double s : point_.rows.slopes) slope += s;
    const double step = -slope / bounds_.back();
    point_.intercept += step;
    for (std::size_t i = 0; i < point_.rows.predictions.size(); ++i) {
      point_.rows.predictions[i] += step;
      refresh(loss, i);
    }
  }

  template <class Loss>
  void refresh(const Loss& loss, std::size_t i) {
    point_.rows.slopes[i] =
        problem_.weights[i] * loss.slope(point_.rows.predictions[i], problem_.y[i]);
  }

  static constexpr double kLeastBound = 1e-300;  ///< columns of zeros have none
  static constexpr std::uint32_t kDrawsPerLook = 256;

  LinearProblem<Columns> problem_;
  ColumnRows rows_;
  SeparablePenalty penalty_;
  LinearSettings settings_;
  Rng rng_;
  LinearPoint point_;
  std::vector<double> bounds_;
};

}  // namespace sublearn
