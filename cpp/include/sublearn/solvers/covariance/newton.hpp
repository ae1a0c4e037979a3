// Proximal Newton for sparse inverse covariance (objectives/log_det.hpp), in the manner of QUIC
// (Hsieh, Sustik, Dhillon, Ravikumar, JMLR 2014). With W = X^-1 the model at X is
//
//   Q(D) = <S - W, D> + 1/2 tr(W D W D) + sum l_ij |X_ij + D_ij|
//
// over the pairs that are not zero or violate |S_ij - W_ij| <= l_ij. Coordinate descent on a pair
// needs (W D W)_ij = <w_j, D w_i>. Rows i are taken eight at a time: D w_i is computed for all
// eight by one product of the sparse D with a panel, is then kept up to date by eight additions
// per step, and a look at a pair costs one inner product of length n.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

#include "sublearn/active/coordinate_descent.hpp"
#include "sublearn/core/columns.hpp"
#include "sublearn/core/lanes.hpp"
#include "sublearn/core/monitor.hpp"
#include "sublearn/core/sparse_panel.hpp"
#include "sublearn/core/types.hpp"
#include "sublearn/objectives/log_det.hpp"
#include "sublearn/prox/separable.hpp"

namespace sublearn {

/// The free pairs i <= j in the order of visits, and the sparse symmetric step D on them.
class EntryStep {
 public:
  static constexpr offset_t kRows = kLanes<double>;  ///< of a panel

  /// Takes all pairs that are not zero or can leave zero. Returns the largest violation.
  double choose(std::span<const double> S, const PairWeights& weights, std::span<const double> X,
                std::span<const double> W, offset_t n) {
    clear(n);
    double largest = 0.0;
    for (offset_t top = 0; top < n; top += kRows) {
      panels_.push_back(static_cast<offset_t>(first.size()));
      for (offset_t j = top; j < n; ++j) {
        for (offset_t i = top; i < std::min(top + kRows, j + 1); ++i) {
          const auto at = static_cast<std::size_t>(i * n + j);
          const double slope = S[at] - W[at], level = weights.at(n, i, j);
          if (X[at] == 0.0 && std::abs(slope) <= level) continue;
          const double ends =
              W[static_cast<std::size_t>(i * n + i)] * W[static_cast<std::size_t>(j * n + j)];
          push(i, j, X[at], slope, level);
          curvature.push_back(i == j ? ends : ends + W[at] * W[at]);
          const double sided = X[at] > 0.0   ? slope + level
                               : X[at] < 0.0 ? slope - level
                                             : std::abs(slope) - level;
          largest = std::max(largest, std::abs(sided));
        }
      }
    }
    panels_.push_back(static_cast<offset_t>(first.size()));
    place(n);
    return largest;
  }

  std::size_t size() const { return first.size(); }
  offset_t panel_begin(offset_t panel) const { return panels_[static_cast<std::size_t>(panel)]; }
  offset_t n_panels() const { return static_cast<offset_t>(panels_.size()) - 1; }
  double step(std::size_t k) const { return values[static_cast<std::size_t>(upper[k])]; }

  void set(std::size_t k, double value) {
    values[static_cast<std::size_t>(upper[k])] = values[static_cast<std::size_t>(lower[k])] = value;
  }

  void move(std::size_t k, double change) {
    values[static_cast<std::size_t>(upper[k])] += change;
    if (lower[k] != upper[k]) values[static_cast<std::size_t>(lower[k])] += change;
  }

  std::vector<index_t> first, second;  ///< i and j
  std::vector<double> point;           ///< X_ij + D_ij
  std::vector<double> gradient, l1;    ///< S_ij - W_ij, l_ij
  std::vector<double> curvature;       ///< of the model along the pair
  std::vector<offset_t> upper, lower;  ///< where D_ij and D_ji stand
  std::vector<offset_t> starts;        ///< D by rows, zeros included
  std::vector<index_t> columns;
  std::vector<double> values;

 private:
  void clear(offset_t n) {
    first.clear(), second.clear(), point.clear(), gradient.clear(), l1.clear();
    curvature.clear(), panels_.clear();
    starts.assign(static_cast<std::size_t>(n) + 1, 0);
  }

  void push(offset_t i, offset_t j, double x, double slope, double level) {
    first.push_back(static_cast<index_t>(i));
    second.push_back(static_cast<index_t>(j));
    point.push_back(x);
    gradient.push_back(slope);
    l1.push_back(level);
    ++starts[static_cast<std::size_t>(i) + 1];
    if (i != j) ++starts[static_cast<std::size_t>(j) + 1];
  }

  /// D = 0, with a place for each free pair in both of its rows.
  void place(offset_t n) {
    for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) starts[i + 1] += starts[i];
    const auto n_entries = static_cast<std::size_t>(starts.back());
    columns.resize(n_entries);
    values.assign(n_entries, 0.0);
    upper.resize(size());
    lower.resize(size());
    std::vector<offset_t> next(starts.begin(), starts.end() - 1);
    for (std::size_t k = 0; k < size(); ++k) {
      const index_t i = first[k], j = second[k];
      upper[k] = lower[k] = next[static_cast<std::size_t>(i)]++;
      columns[static_cast<std::size_t>(upper[k])] = j;
      if (i == j) continue;
      lower[k] = next[static_cast<std::size_t>(j)]++;
      columns[static_cast<std::size_t>(lower[k])] = i;
    }
  }

  std::vector<offset_t> panels_;
};

/// The Newton model over one panel of rows, for coordinate descent (active/coordinate_descent.hpp).
/// Positions are those of the step; slopes and curvatures are halved off the diagonal, as the
/// weights are.
class PairModel {
 public:
  static constexpr offset_t kRows = EntryStep::kRows;

  PairModel(std::span<const double> W, EntryStep& step, offset_t n)
      : W_(W),
        step_(&step),
        n_(n),
        panel_(static_cast<std::size_t>(n)),
        product_(static_cast<std::size_t>(n)),
        by_row_(static_cast<std::size_t>(n * kRows)) {}

  /// D w_i for the rows i of a panel.
  void enter(offset_t panel) {
    top_ = panel * kRows;
    const auto width = static_cast<std::size_t>(std::min(kRows, n_ - top_));
    for (offset_t l = 0; l < n_; ++l) {
      std::array<double, kRows> row{};
      std::memcpy(row.data(), W_.data() + l * n_ + top_, width * sizeof(double));
      std::memcpy(&panel_[static_cast<std::size_t>(l)], row.data(), sizeof row);
    }
    multiply_panel(step_->starts, step_->columns.data(), step_->values.data(), panel_.data(),
                   product_.data());
    for (offset_t k = 0; k < n_; ++k) {
      for (offset_t b = 0; b < kRows; ++b) {
        by_row_[static_cast<std::size_t>(b * n_ + k)] =
            product_[static_cast<std::size_t>(k)][static_cast<int>(b)];
      }
    }
  }

  double curvature(index_t k) const { return step_->curvature[static_cast<std::size_t>(k)]; }

  /// (W D W)_ij
  double product(index_t k) const {
    const auto at = static_cast<std::size_t>(k);
    const offset_t i = step_->first[at], j = step_->second[at];
    return dense_dot(W_.data() + j * n_, by_row_.data() + (i - top_) * n_, n_);
  }

  double slope(index_t k) const {
    return step_->gradient[static_cast<std::size_t>(k)] + product(k);
  }

  void move(index_t k, double change) {
    const auto at = static_cast<std::size_t>(k);
    const offset_t i = step_->first[at], j = step_->second[at];
    step_->move(at, change);
    add(i, j, change);
    if (i != j) add(j, i, change);
  }

 private:
  /// D_kl += change, seen by D w_b at k.
  void add(offset_t k, offset_t l, double change) {
    const Pack<double>& row = panel_[static_cast<std::size_t>(l)];
    for (offset_t b = 0; b < kRows; ++b) {
      by_row_[static_cast<std::size_t>(b * n_ + k)] += change * row[static_cast<int>(b)];
    }
  }

  std::span<const double> W_;
  EntryStep* step_;
  offset_t n_;
  offset_t top_ = 0;
  std::vector<Pack<double>> panel_, product_;
  std::vector<double> by_row_;  ///< D w_i for each row i of the panel, one after another
};

/// Conjugate gradients on the Newton model over the pairs that are not zero, their signs held:
/// there the penalty is linear. Where the minimiser changes signs, the step ends at zero.
///
/// Inner products count pairs off the diagonal twice, in which W D W is a symmetric map.
class FaceDescent {
 public:
  /// Moves the step; returns the pairs visited. The step is of no use if asked to stop.
  offset_t descend(PairModel& model, EntryStep& step, const Monitor& monitor) {
    const std::size_t n = step.size();
    before_.resize(n);
    for (std::size_t k = 0; k < n; ++k) before_[k] = step.step(k);
    multiply(model, step);
    offset_t n_visits = static_cast<offset_t>(n);
    old_product_ = product_;
    residual_.resize(n);
    for (std::size_t k = 0; k < n; ++k) {
      const double slope =
          step.gradient[k] + product_[k] + std::copysign(step.l1[k], step.point[k]);
      residual_[k] = step.point[k] != 0.0 ? -slope : 0.0;
    }
    n_visits += iterate(model, step, monitor);
    return monitor.stop_requested() ? n_visits : n_visits + take(model, step);
  }

 private:
  static constexpr int kMostProducts = 25;
  static constexpr int kMostHalvings = 3;
  static constexpr double kEnough = 1e-3;  ///< of the residual's squared norm

  /// product_ = (W D W) for the D that the step holds, where D or the point is not zero.
  void multiply(PairModel& model, const EntryStep& step) {
    product_.resize(step.size());
    for (offset_t panel = 0; panel < step.n_panels(); ++panel) {
      const offset_t begin = step.panel_begin(panel), end = step.panel_begin(panel + 1);
      if (begin == end) continue;
      model.enter(panel);
      for (offset_t k = begin; k < end; ++k) {
        const auto at = static_cast<std::size_t>(k);
        const bool matters = step.point[at] != 0.0 || step.step(at) != 0.0;
        product_[at] = matters ? model.product(static_cast<index_t>(k)) : 0.0;
      }
    }
  }

  static double dot(const EntryStep& step, const std::vector<double>& a,
                    const std::vector<double>& b) {
    double sum = 0.0;
    for (std::size_t k = 0; k < a.size(); ++k) {
      sum += (step.first[k] == step.second[k] ? 1.0 : 2.0) * a[k] * b[k];
    }
    return sum;
  }

  /// solution_ = the approximate solution of W D W = residual on the face.
  offset_t iterate(PairModel& model, EntryStep& step, const Monitor& monitor) {
    const std::size_t n = step.size();
    solution_.assign(n, 0.0);
    scaled_.resize(n);
    direction_.assign(n, 0.0);
    double before = 0.0, first = 0.0;
    offset_t n_visits = 0;
    for (int k_product = 0; k_product < kMostProducts && !monitor.stop_requested(); ++k_product) {
      for (std::size_t k = 0; k < n; ++k) scaled_[k] = residual_[k] / step.curvature[k];
      const double now = dot(step, residual_, scaled_);
      if (k_product == 0) first = now;
      if (!(now > kEnough * first)) break;
      const double keep = k_product == 0 ? 0.0 : now / before;
      before = now;
      for (std::size_t k = 0; k < n; ++k) {
        direction_[k] = step.point[k] != 0.0 ? scaled_[k] + keep * direction_[k] : 0.0;
        step.set(k, direction_[k]);
      }
      multiply(model, step);
      n_visits += static_cast<offset_t>(n);
      const double curvature = dot(step, direction_, product_);
      if (!(curvature > 0.0)) break;
      const double share = now / curvature;
      for (std::size_t k = 0; k < n; ++k) {
        solution_[k] += share * direction_[k];
        if (step.point[k] != 0.0) residual_[k] -= share * product_[k];
      }
    }
    return n_visits;
  }

  /// Model and penalty at a step, up to what does not change.
  double value(const EntryStep& step, const std::vector<double>& d,
               const std::vector<double>& product, const std::vector<double>& point) const {
    double sum = 0.0;
    for (std::size_t k = 0; k < d.size(); ++k) {
      const double term =
          d[k] * (step.gradient[k] + 0.5 * product[k]) + step.l1[k] * std::abs(point[k]);
      sum += (step.first[k] == step.second[k] ? 1.0 : 2.0) * term;
    }
    return sum;
  }

  /// Goes along the solution, entries that would change their sign to zero, if the model falls.
  offset_t take(PairModel& model, EntryStep& step) {
    const std::size_t n = step.size();
    const double old_value = value(step, before_, old_product_, step.point);
    std::vector<double> point(n), d(n);
    offset_t n_visits = 0;
    double share = 1.0;
    for (int halving = 0; halving < kMostHalvings; ++halving, share *= 0.25) {
      for (std::size_t k = 0; k < n; ++k) {
        point[k] = step.point[k] + share * solution_[k];
        if (point[k] * step.point[k] < 0.0) point[k] = 0.0;
        d[k] = before_[k] + (point[k] - step.point[k]);
        step.set(k, d[k]);
      }
      multiply(model, step);
      n_visits += static_cast<offset_t>(n);
      if (value(step, d, product_, point) < old_value) {
        step.point = point;
        return n_visits;
      }
    }
    for (std::size_t k = 0; k < n; ++k) step.set(k, before_[k]);
    return n_visits;
  }

  std::vector<double> before_, old_product_, product_, residual_, scaled_, direction_, solution_;
};

class InverseNewton {
 public:
  /// S, weights and X must outlive the solver. X is positive definite. `bound` is a lower
  /// bound on the optimum.
  InverseNewton(std::span<const double> S, const PairWeights& weights, std::span<double> X,
                offset_t n, double bound = -std::numeric_limits<double>::infinity())
      : S_(S), weights_(&weights), X_(X), n_(n), point_(n), bound_of_(n), bound_(bound) {
    point_.factor(X_);
    objective_ = -point_.log_det() + linear_and_penalty(S_, X_, *weights_, n_);
    look_around();
  }

  double objective() const { return objective_; }
  double gap() const { return std::max(objective_ - bound_, 0.0); }
  std::span<const double> inverse() const { return W_; }
  offset_t n_active() const { return static_cast<offset_t>(step_.size()); }
  offset_t n_passes() const { return n_passes_; }
  offset_t n_visits() const { return n_visits_; }

  /// One Newton step. False when no step lowers the objective any more, or if asked to stop.
  bool advance(const Monitor& monitor) {
    descend(monitor);
    if (monitor.stop_requested()) return false;
    if (!search()) return false;
    look_around();
    return true;
  }

 private:
  static constexpr int kMostPasses = 8;
  static constexpr int kFewPasses = 2;  ///< while steps are cut short, accuracy is wasted on them
  static constexpr int kPassesBetween = 2;
  static constexpr int kMostHalvings = 40;
  static constexpr double kSufficient = 1e-3;  ///< of the predicted decrease (Armijo)

  void look_around() {
    point_.invert(W_);
    bound_ = std::max(bound_, bound_of_(S_, *weights_, W_));
    violation_ = step_.choose(S_, *weights_, X_, W_, n_);
  }

  /// Passes of coordinate descent, which find the zeros, and between them conjugate gradients on
  /// the others, which converge where the passes crawl.
  void descend(const Monitor& monitor) {
    PairModel model(W_, step_, n_);
    SeparablePenalty penalty;
    penalty.l1 = step_.l1;
    ids_.resize(step_.size());
    for (std::size_t k = 0; k < ids_.size(); ++k) ids_[k] = static_cast<index_t>(k);
    double first = 0.0;
    const int most = is_near_ ? kMostPasses : kFewPasses;
    for (int pass = 0; pass < most; ++pass) {
      const double largest = descend_through(model, penalty, monitor);
      if (monitor.stop_requested()) return;
      ++n_passes_;
      n_visits_ += n_active();
      first = std::max(first, largest);
      if (largest <= accuracy() * first) return;
      if (!is_near_ || pass % kPassesBetween < kPassesBetween - 1) continue;
      n_visits_ += face_.descend(model, step_, monitor);
    }
  }

  double accuracy() const { return 0.1; }

  double descend_through(PairModel& model, const SeparablePenalty& penalty,
                         const Monitor& monitor) {
    double largest = 0.0;
    const std::span<const index_t> ids(ids_);
    for (offset_t panel = 0; panel < step_.n_panels(); ++panel) {
      const auto begin = static_cast<std::size_t>(step_.panel_begin(panel));
      const auto end = static_cast<std::size_t>(step_.panel_begin(panel + 1));
      if (begin == end) continue;
      if (monitor.stop_requested()) break;
      model.enter(panel);
      largest = std::max(
          largest, descend_once(model, penalty, ids, ids.subspan(begin, end - begin), step_.point));
    }
    return largest;
  }

  /// Halves D until X + D is positive definite and the objective falls enough.
  bool search() {
    const double predicted = slope_along();
    if (!(predicted < 0.0)) return false;
    std::vector<double> trial(X_.size());
    double share = 1.0;
    for (int halving = 0; halving < kMostHalvings; ++halving, share *= 0.5) {
      move_to(share, trial);
      if (!point_.factor(trial)) continue;
      const double value = -point_.log_det() + linear_and_penalty(S_, trial, *weights_, n_);
      if (value - objective_ <= kSufficient * share * predicted + noise()) {
        if (value >= objective_ && share < 1.0) return false;
        std::copy(trial.begin(), trial.end(), X_.begin());
        objective_ = value;
        is_near_ = share == 1.0;
        return true;
      }
    }
    return false;
  }

  double noise() const { return 1e-14 * std::abs(objective_); }

  /// <S - W, D> + sum l_ij (|X_ij + D_ij| - |X_ij|), over both triangles.
  double slope_along() const {
    double slope = 0.0;
    for (std::size_t k = 0; k < step_.size(); ++k) {
      const double d = step_.step(k), before = step_.point[k] - d;
      const double change =
          step_.gradient[k] * d + step_.l1[k] * (std::abs(step_.point[k]) - std::abs(before));
      slope += step_.first[k] == step_.second[k] ? change : 2.0 * change;
    }
    return slope;
  }

  void move_to(double share, std::vector<double>& trial) const {
    std::copy(X_.begin(), X_.end(), trial.begin());
    for (std::size_t k = 0; k < step_.size(); ++k) {
      const double d = step_.step(k);
      if (d == 0.0) continue;
      const offset_t i = step_.first[k], j = step_.second[k];
      const auto at = static_cast<std::size_t>(i * n_ + j);
      const double x = share == 1.0 ? step_.point[k] : X_[at] + share * d;
      trial[at] = trial[static_cast<std::size_t>(j * n_ + i)] = x;
    }
  }

  std::span<const double> S_;
  const PairWeights* weights_;
  std::span<double> X_;
  offset_t n_;
  CholeskyPoint point_;
  DualBound bound_of_;
  EntryStep step_;
  FaceDescent face_;
  std::vector<double> W_;
  std::vector<index_t> ids_;
  double objective_ = 0.0;
  double bound_;
  double violation_ = 0.0;
  bool is_near_ = false;  ///< the last step was taken whole
  offset_t n_passes_ = 0, n_visits_ = 0;
};

}  // namespace sublearn
