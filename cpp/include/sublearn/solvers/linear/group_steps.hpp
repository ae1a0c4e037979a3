// What Newton's steps (newton_cd.hpp) ask of a penalty on groups of features: descent goes group by
// group, each minimised over with the block of the Hessian that belongs to it
// (prox/group_block.hpp).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "sublearn/core/cholesky.hpp"
#include "sublearn/core/types.hpp"
#include "sublearn/prox/group_block.hpp"
#include "sublearn/prox/groups.hpp"
#include "sublearn/solvers/linear/hessian_models.hpp"
#include "sublearn/solvers/linear/separable_steps.hpp"

namespace sublearn {

class GroupSteps {
 public:
  /// `owner` has the group of each feature.
  GroupSteps(const GroupPenalty& penalty, std::span<const index_t> owner)
      : penalty_(penalty), owner_(owner) {}

  /// As SeparableSteps; `ids` are group by group.
  template <class Keep>
  double choose(std::span<const double> w, std::span<const index_t> ids,
                std::span<const double> gradient, const Keep& keep) {
    double largest = 0.0;
    for (std::size_t k = 0; k < ids.size(); k += own_.size()) {
      const index_t g = gather(w, ids, k);
      const double violation = penalty_.violation(g, own_, gradient.subspan(k, own_.size()));
      if (violation == 0.0 && is_zero(own_)) continue;
      for (std::size_t i = 0; i < own_.size(); ++i) keep(k + i);
      largest = std::max(largest, violation);
    }
    return largest;
  }

  /// Makes the blocks of the groups in `ids` ready.
  template <class Model>
  void prepare(const Model& model, std::span<const index_t> ids) {
    blocks_.clear();
    for (std::size_t k = 0; k < ids.size(); k += blocks_.back().n) {
      std::size_t n = 1;
      while (k + n < ids.size() && group_of(ids[k + n]) == group_of(ids[k])) ++n;
      blocks_.push_back({group_of(ids[k]), k, n, n <= Model::kMostBlock, 0, 0.0});
    }
    std::size_t size = 0;
    for (Block& block : blocks_) {
      block.entries = size;
      if (block.has_matrix) size += block.n * block.n;
    }
    matrices_.resize(size);
    for (Block& block : blocks_) fill(model, block);
    memory_.clear();
  }

  template <class Model>
  double pass(Model& model, std::span<const index_t> /*ids*/, std::span<double> point) {
    double largest = 0.0;
    for (const Block& block : blocks_) largest = std::max(largest, visit(model, block, point));
    memory_.insert(memory_.end(), point.begin(), point.end());
    if (memory_.size() == (kMemory + 1) * point.size()) extrapolate(model, point);
    return largest;
  }

  double change(std::span<const double> w, std::span<const index_t> ids,
                std::span<const double> point, double share) {
    double change = 0.0;
    for (std::size_t k = 0; k < ids.size(); k += own_.size()) {
      const index_t g = gather(w, ids, k);
      next_.resize(own_.size());
      for (std::size_t i = 0; i < own_.size(); ++i) {
        next_[i] = blended(own_[i], point[k + i], share);
      }
      change += penalty_.change(g, own_, next_);
    }
    return change;
  }

 private:
  struct Block {
    index_t group;
    std::size_t first, n;  ///< positions in the active features
    bool has_matrix;       ///< else a multiple of the identity stands for its matrix
    std::size_t entries;   ///< where its matrix begins
    double norm;           ///< that multiple
  };

  /// After so many passes a combination of their ends is tried: where columns are far more than
  /// rows, passes alone creep (Anderson acceleration; Bertrand and Massias 2021).
  static constexpr std::size_t kMemory = 5;
  static constexpr double kAbove = 1.1;  ///< power iteration ends a little below

  index_t group_of(index_t feature) const { return owner_[static_cast<std::size_t>(feature)]; }
  static bool is_zero(std::span<const double> values) {
    return std::all_of(values.begin(), values.end(), [](double t) { return t == 0.0; });
  }

  /// Moves to the combination of the last ends whose pass would change least, if the model is
  /// lower there. Groups at 0 stay there.
  template <class Model>
  void extrapolate(Model& model, std::span<double> point) {
    const std::vector<double> ends = std::exchange(memory_, {});
    if (!combine(ends, point.size())) return;
    // The quadratic part changes by the mean of the slopes before and after.
    const double before = slope_of_steps(model);
    move_by_steps(model);
    if (0.5 * (before + slope_of_steps(model)) + penalty_change(point) < 0.0) {
      for (std::size_t k = 0; k < point.size(); ++k) point[k] += steps_[k];
      return;
    }
    for (double& step : steps_) step = -step;
    move_by_steps(model);
  }

  template <class Model>
  double slope_of_steps(const Model& model) const {
    double sum = 0.0;
    for (std::size_t k = 0; k < steps_.size(); ++k) {
      if (steps_[k] != 0.0) sum += steps_[k] * model.slope(static_cast<index_t>(k));
    }
    return sum;
  }

  template <class Model>
  void move_by_steps(Model& model) const {
    for (std::size_t k = 0; k < steps_.size(); ++k) {
      if (steps_[k] != 0.0) model.move(static_cast<index_t>(k), steps_[k]);
    }
  }

  /// The step from the last end to the combination, into steps_. False if there is none.
  bool combine(const std::vector<double>& ends, std::size_t n) {
    std::vector<double> gram(kMemory * kMemory), share(kMemory, 1.0);
    const auto moved = [&](std::size_t i, std::size_t k) {
      return ends[(i + 1) * n + k] - ends[i * n + k];
    };
    double trace = 0.0;
    for (std::size_t i = 0; i < kMemory; ++i) {
      for (std::size_t j = 0; j <= i; ++j) {
        double sum = 0.0;
        for (std::size_t k = 0; k < n; ++k) sum += moved(i, k) * moved(j, k);
        gram[i * kMemory + j] = sum;
      }
      trace += gram[i * kMemory + i];
    }
    for (std::size_t i = 0; i < kMemory; ++i) gram[i * kMemory + i] += 1e-12 * trace;
    if (!cholesky(gram, kMemory)) return false;
    cholesky_solve(gram, kMemory, share);
    double total = 0.0;
    for (const double one : share) total += one;
    if (!(std::abs(total) > 0.0) || !std::isfinite(total)) return false;
    steps_.assign(n, 0.0);
    for (const Block& block : blocks_) step_to(ends, share, total, block, n);
    return true;
  }

  /// The part of one group; what is 0 at the last end stays 0.
  void step_to(const std::vector<double>& ends, const std::vector<double>& share, double total,
               const Block& block, std::size_t n) {
    const double* last = ends.data() + kMemory * n;
    if (is_zero(std::span(last + block.first, block.n))) return;
    for (std::size_t k = block.first; k < block.first + block.n; ++k) {
      if (penalty_.within > 0.0 && last[k] == 0.0) continue;
      double at = 0.0;
      for (std::size_t i = 0; i < kMemory; ++i) at += share[i] / total * ends[(i + 1) * n + k];
      steps_[k] = at - last[k];
    }
  }

  /// Of the steps from a point.
  double penalty_change(std::span<const double> point) {
    double change = 0.0;
    for (const Block& block : blocks_) {
      const auto own = point.subspan(block.first, block.n);
      own_.assign(own.begin(), own.end());
      next_ = own_;
      for (std::size_t k = 0; k < block.n; ++k) next_[k] += steps_[block.first + k];
      change += penalty_.change(block.group, own_, next_);
    }
    return change;
  }

  /// The weights of the group that begins at position k of `ids`, into own_; returns the group.
  index_t gather(std::span<const double> w, std::span<const index_t> ids, std::size_t k) {
    const index_t g = group_of(ids[k]);
    own_.clear();
    for (; k < ids.size() && group_of(ids[k]) == g; ++k) {
      own_.push_back(w[static_cast<std::size_t>(ids[k])]);
    }
    return g;
  }

  template <class Model>
  void fill(const Model& model, Block& block) {
    if (block.has_matrix) {
      model.block(block.first, block.n, matrices_.data() + block.entries);
    } else if constexpr (requires { model.block_norm(block.first, block.n); }) {
      block.norm = kAbove * model.block_norm(block.first, block.n);
    }
  }

  /// Minimises the model over one group; returns about the norm of its violation before.
  template <class Model>
  double visit(Model& model, const Block& block, std::span<double> point) {
    const std::span<double> u = point.subspan(block.first, block.n);
    own_.assign(u.begin(), u.end());
    v_.resize(block.n);
    diagonal_.resize(block.n);
    for (std::size_t k = 0; k < block.n; ++k) {
      v_[k] = -model.slope(static_cast<index_t>(block.first + k));
      diagonal_[k] = model.curvature(static_cast<index_t>(block.first + k));
    }
    minimise(block, u);
    double squares = 0.0;
    for (std::size_t k = 0; k < block.n; ++k) {
      const double step = u[k] - own_[k];
      if (step == 0.0) continue;
      model.move(static_cast<index_t>(block.first + k), step);
      const double size = (diagonal_[k] + penalty_.l2) * step;
      squares += size * size;
    }
    return std::sqrt(squares);
  }

  /// u from own_ and minus the slopes v_.
  void minimise(const Block& block, std::span<double> u) {
    const double level = penalty_.level(block.group);
    if (!block.has_matrix) {
      shrink(block, level, u);
      return;
    }
    const double* H = matrices_.data() + block.entries;
    for (std::size_t k = 0; k < block.n; ++k) {
      if (own_[k] == 0.0) continue;
      for (std::size_t l = 0; l < block.n; ++l) v_[l] += own_[k] * H[k * block.n + l];
    }
    GroupBlock::minimise(H, block.n, diagonal_, penalty_, level, v_, u);
  }

  /// The minimiser where the matrix is a multiple of the identity.
  void shrink(const Block& block, double level, std::span<double> u) {
    for (std::size_t k = 0; k < block.n; ++k) v_[k] += block.norm * own_[k];
    const double pull = penalty_.pull(v_);
    const double share = pull > level ? (1.0 - level / pull) / (block.norm + penalty_.l2) : 0.0;
    for (std::size_t k = 0; k < block.n; ++k) u[k] = share * soft_threshold(v_[k], penalty_.within);
  }

  GroupPenalty penalty_;
  std::span<const index_t> owner_;
  std::vector<Block> blocks_;
  std::vector<double> matrices_;
  std::vector<double> own_, next_, v_, diagonal_;  ///< of one group
  std::vector<double> memory_;                     ///< ends of passes
  std::vector<double> steps_;                      ///< of an extrapolation
};

}  // namespace sublearn
