// A visit to a node in GDMM for structural SVMs: search all labels, correct the distribution p over
// the active ones, move the weights. Used by: gdmm.hpp.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "sublearn/core/rng.hpp"
#include "sublearn/core/types.hpp"
#include "sublearn/prox/simplex.hpp"
#include "sublearn/search/hashed_rows.hpp"
#include "sublearn/search/score_board.hpp"
#include "sublearn/solvers/structured/away_step.hpp"
#include "sublearn/solvers/structured/task.hpp"

namespace sublearn {

/// Along p the augmented Lagrangian has the Hessian (C |x|^2 + rho degree) times the identity, so
/// that its least point on the simplex is a projection.
template <class T, class I>
class NodeStep {
 public:
  double moved = 0.0;  ///< sum of squares of the changes of p, over the ends of nodes
  offset_t work = 0;

  NodeStep(const StructuredData<T, I>& data, const GdmmLearnSettings& settings)
      : data_(data), settings_(settings), board_(data.n_labels) {
    squares_.resize(data.truth.size());
    for (std::size_t j = 0; j < squares_.size(); ++j) {
      double sum = 0.0;
      for (const T x : data.X.row(static_cast<offset_t>(j)).values) {
        sum += static_cast<double>(x) * static_cast<double>(x);
      }
      squares_[j] = sum;
    }
  }

  double mean_square() const {
    const double sum = std::accumulate(squares_.begin(), squares_.end(), 0.0);
    return squares_.empty() ? 1.0 : sum / static_cast<double>(squares_.size());
  }

  /// p of least augmented Lagrangian, over the slots and the labels that the search lets in.
  void correct(std::size_t j, LearnNode& node, HashedRows<T>& weights, double C, double rho,
               Rng& rng) {
    const auto row = data_.X.row(static_cast<offset_t>(j));
    gather_scores(row, node, weights, rng);
    add_loss(data_.truth[j], node);
    const double curvature = C * squares_[j];
    // A node without features and factors bends nowhere: any label but the truth costs one.
    const auto n_idle = static_cast<double>(node.n_idle);
    const double Q =
        std::max(1e-9, curvature + rho * (static_cast<double>(node.degree()) + n_idle));
    wanted_.clear();
    for (std::size_t s = 0; s < node.labels.size(); ++s) {
      const double score = static_cast<double>(board_.take(node.labels[s]));
      double pull = curvature * node.p(s) + score + (s == 0 ? 0.0 : mistake_);
      if (node.n_idle > 0) pull += n_idle * (rho * LearnNode::of_truth(s) + node.idle_lambda(s));
      for (std::size_t e = 0; e < node.degree(); ++e) {
        pull += rho * node.marginal(s, e) + node.lambda(s, e);
      }
      wanted_.push_back(pull / Q);
    }
    if (settings_.uses_away_steps) {
      take_away_steps(node, Q);
    } else {
      project(node, Q);
    }
    board_.clear();
    move(node, row, weights, C);
  }

 private:
  static constexpr int kMostEntries = 3;  ///< labels that may enter a node in one visit

  /// The nearest point to wanted_ (25), after up to kMostEntries labels have entered that have a
  /// share in it.
  void project(LearnNode& node, double Q) {
    for (int n = 0;; ++n) {
      point_ = wanted_;
      project_simplex<double>(point_, 1.0, sorted_);
      if (n == kMostEntries) break;
      const auto top = std::max_element(point_.begin(), point_.end()) - point_.begin();
      const double threshold =
          wanted_[static_cast<std::size_t>(top)] - point_[static_cast<std::size_t>(top)];
      const index_t label = best_outside();
      if (label < 0) break;
      const double value = (static_cast<double>(board_[label]) + mistake_) / Q;
      if (value <= threshold) break;
      board_.take(label);
      node.enter(label);
      wanted_.push_back(value);
    }
  }

  /// Algorithm 2 on one node: until a step that drops nothing.
  void take_away_steps(LearnNode& node, double Q) {
    point_.clear();
    for (std::size_t s = 0; s < node.labels.size(); ++s) point_.push_back(node.p(s));
    double lowest = std::numeric_limits<double>::infinity();  // of the gradients over Q
    for (std::size_t s = 0; s < point_.size(); ++s) {
      lowest = std::min(lowest, point_[s] - wanted_[s]);
    }
    if (const index_t label = best_outside(); label >= 0) {
      const double value = (static_cast<double>(board_[label]) + mistake_) / Q;
      if (-value < lowest) {
        node.enter(label);
        wanted_.push_back(value);
        point_.push_back(0.0);
      }
    }
    gradient_.resize(point_.size());
    change_.resize(point_.size());
    for (bool is_drop = true; is_drop;) {
      for (std::size_t s = 0; s < point_.size(); ++s) gradient_[s] = Q * (point_[s] - wanted_[s]);
      const AwayStep step = choose_step(point_, gradient_);
      if (step.slope <= kFlatSlope) return;
      fill_direction(step, point_, change_);
      double bend = 0.0;
      for (const double change : change_) bend += Q * change * change;
      is_drop = advance(step, step.length(bend), change_, point_);
    }
  }

  /// Scores of the labels that are searched onto the board: all, or those of one part (21), and of
  /// the slots. Rows are scattered in memory: each is asked for before the first is read.
  void gather_scores(const SparseVector<T, I>& row, const LearnNode& node,
                     const HashedRows<T>& weights, Rng& rng) {
    for (const I d : row.ids) weights.prefetch(static_cast<std::size_t>(d));
    for (const I d : row.ids) weights.prefetch_block(static_cast<std::size_t>(d));
    part_ = draw_part(data_.n_labels, settings_.n_parts, rng);
    const bool is_whole = part_.size() == data_.n_labels;
    for (std::size_t k = 0; k < row.size(); ++k) {
      const auto d = static_cast<std::size_t>(row.ids[k]);
      if (is_whole) {
        weights.add_to(d, row.values[k], board_);
        work += weights.n_weights(d);
      } else {
        weights.add_to(d, row.values[k], part_.begin, part_.end, board_);
        work += std::min(weights.n_weights(d), part_.size());
      }
    }
    if (is_whole) return;
    for (const index_t label : node.labels) {
      if (part_.holds(label)) continue;
      const auto place = weights.place(label);
      T score{0};
      for (std::size_t k = 0; k < row.size(); ++k) {
        score += row.values[k] * weights.weight(static_cast<std::size_t>(row.ids[k]), place);
      }
      board_.add(label, score);
      work += static_cast<offset_t>(row.size());
    }
  }

  /// What labels cost, where it is not 1 for each mistake.
  void add_loss(index_t true_label, const LearnNode& node) {
    if (data_.loss.empty()) return;
    mistake_ = 0.0;
    for (index_t label = part_.begin; label < part_.end; ++label) {
      board_.add(label, static_cast<T>(data_.loss_of(true_label, label)));
    }
    for (const index_t label : node.labels) {
      if (part_.holds(label)) continue;
      board_.add(label, static_cast<T>(data_.loss_of(true_label, label)));
    }
  }

  /// The label of highest score that is searched and no slot, -1 if there is none.
  index_t best_outside() {
    const index_t at = find_largest(board_.scores() + part_.begin, part_.size());
    return at < 0 ? at : part_.begin + at;
  }

  void move(LearnNode& node, const SparseVector<T, I>& row, HashedRows<T>& weights, double C) {
    changes_.clear();
    for (std::size_t s = 0; s < point_.size(); ++s) {
      const double change = point_[s] - node.p(s);
      if (change == 0.0) continue;
      moved += change * change * static_cast<double>(node.degree() + node.n_idle);
      node.p(s) = point_[s];
      changes_.push_back({weights.place(node.labels[s]), static_cast<T>(-C * change)});
    }
    if (changes_.empty()) return;
    for (std::size_t k = 0; k < row.size(); ++k) {
      weights.add(static_cast<std::size_t>(row.ids[k]), changes_, row.values[k]);
    }
    work += static_cast<offset_t>(row.size() * changes_.size());
  }

  const StructuredData<T, I>& data_;
  GdmmLearnSettings settings_;
  std::vector<double> squares_;  ///< |x|^2 of each node

  ScoreBoard<T> board_;
  LabelPart part_{0, 0};
  double mistake_ = 1.0;  ///< what is not on the board of the cost of a label that is not true
  std::vector<double> wanted_, point_, sorted_, gradient_, change_;
  std::vector<typename HashedRows<T>::Change> changes_;
};

}  // namespace sublearn
