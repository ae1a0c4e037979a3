// The Hessian X'DX + of a linear model, D the curvatures of the rows, kept in two ways for
// coordinate descent (active/coordinate_descent.hpp). The intercept, where there is one, is a
// column of ones.
//
//   ResidualModel   q = r + D X d over the rows; a look costs a column, a step another
//   GramModel       the matrix itself; a look is free, a step costs a row of it
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "sublearn/core/types.hpp"
#include "sublearn/objectives/linear.hpp"

namespace sublearn {

/// Curvature below this share of the largest is raised to it: a column of zeros, or rows that are
/// all on the flat side of the loss, would ask for endless steps.
inline constexpr double kLeastCurvature = 1e-10;

template <class Columns>
class ResidualModel {
 public:
  explicit ResidualModel(const Columns& X) : X_(&X) {}

  /// d = 0 at the slopes and curvatures of the rows, over the features `ids`.
  void reset(std::span<const index_t> ids, const RowState& rows) {
    ids_ = ids;
    h_ = rows.curvatures;
    q_ = rows.slopes;
    curvature_.resize(ids.size());
    double largest = 0.0;
    for (std::size_t k = 0; k < ids.size(); ++k) {
      curvature_[k] = X_->square(ids[k], h_.data());
      largest = std::max(largest, curvature_[k]);
    }
    const double least = std::max(kLeastCurvature * largest, 1e-300);
    for (double& a : curvature_) a = std::max(a, least);
    intercept_curvature_ = 0.0;
    for (const double h : h_) intercept_curvature_ += h;
  }

  double curvature(index_t k) const { return curvature_[static_cast<std::size_t>(k)]; }
  double slope(index_t k) const { return X_->dot(ids_[static_cast<std::size_t>(k)], q_.data()); }
  void move(index_t k, double step) {
    X_->add_scaled(ids_[static_cast<std::size_t>(k)], step, h_.data(), q_.data());
  }

  double intercept_curvature() const { return intercept_curvature_; }
  double intercept_slope() const {
    double sum = 0.0;
    for (const double q : q_) sum += q;
    return sum;
  }
  void move_intercept(double step) {
    for (std::size_t i = 0; i < q_.size(); ++i) q_[i] += step * h_[i];
  }

 private:
  const Columns* X_;
  std::span<const index_t> ids_;
  std::span<const double> h_;
  std::vector<double> q_;
  std::vector<double> curvature_;
  double intercept_curvature_ = 0.0;
};

}  // namespace sublearn
