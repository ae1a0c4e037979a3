// One visit of PD-Sparse to a sample: search, correct, shrink (algorithm 1).
//
//   search    negatives of x_i with the largest scores that violate: z_k + 1 > min_{P_i} z   (20)
//   correct   a, b <- projection of (a - z / Q_i, b + (z + 1) / Q_i) over the active set (21), (22)
//   shrink    negatives whose mass is zero leave; positives stay
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "sublearn/core/rng.hpp"
#include "sublearn/core/top_k.hpp"
#include "sublearn/core/types.hpp"
#include "sublearn/prox/bisimplex.hpp"
#include "sublearn/search/sample_features.hpp"
#include "sublearn/search/score_board.hpp"
#include "sublearn/solvers/pd_sparse/data.hpp"
#include "sublearn/solvers/pd_sparse/types.hpp"
#include "sublearn/solvers/pd_sparse/weights.hpp"

namespace sublearn {

template <class T, class I>
class PDVisitor {
 public:
  /// Changes `weights` and `duals`, and `mean_duals` unless it is null.
  PDVisitor(const PDData<T, I>& data, PDWeights<T, I>& weights, PDDuals<T>& duals,
            PDDuals<T>* mean_duals)
      : data_(data),
        weights_(weights),
        duals_(duals),
        mean_duals_(mean_duals),
        sample_rate_(sample_rate()) {}

  /// To be called when the labels are divided in another way.
  void fit_to_parts() {
    board_ = ScoreBoard<T>(weights_.rows().n_labels());
    changes_.resize(static_cast<std::size_t>(weights_.parts().n_parts));
  }

  /// `share_left` of the pass is still to come, this visit included.
  void visit(index_t i, Rng rng, int n_candidates, bool is_sampled, T share_left) {
    n_candidates_ = n_candidates;
    gather(i);
    if (is_closed) {
      look_up(i, 0);
    } else if (weights_.parts().n_parts == 1 && !is_sampled) {
      score_exactly(i, rng);
    } else {
      score_approximately(i, rng, is_sampled);
    }
    correct(i);
    if (mean_duals_ != nullptr) average(i, share_left);
    shrink(i);
  }

  bool is_closed = false;         ///< no label enters or leaves an active set
  std::int64_t search_work = 0;   ///< entries visited since the caller set it to zero
  std::int64_t correct_work = 0;  ///< the same, with the scores of active sets looked up

 private:
  // Draws for each untouched label that a search has room for.
  static constexpr int kDraws = 4;

  using Place = typename PDWeights<T, I>::Place;
  using Mass = typename PDDuals<T>::Mass;

  // --- search --------------------------------------------------------------------------------

  /// The active set of a sample: its positives, then the negatives that have mass.
  void gather(index_t i) {
    const auto positives = data_.labels().of(i);
    n_positive_ = positives.size();
    active_.assign(positives.begin(), positives.end());
    const auto begin =
        duals_.positive.begin() + static_cast<std::ptrdiff_t>(data_.labels().begin(i));
    masses_.assign(begin, begin + static_cast<std::ptrdiff_t>(n_positive_));
    for (const Mass& m : duals_.negative[at(i)]) {
      active_.push_back(m.label);
      masses_.push_back(m.mass);
    }
    scores_.assign(active_.size(), T{0});
  }

  /// A negative violates above this score.
  T violation_bar() const {
    return *std::min_element(scores_.begin(),
                             scores_.begin() + static_cast<std::ptrdiff_t>(n_positive_)) -
           T{1};
  }

  void score_exactly(index_t i, Rng& rng) {
    weights_.add_row_to_board(data_.row(i), 0, board_, search_work);
    for (std::size_t a = 0; a < active_.size(); ++a) scores_[a] = board_.take(active_[a]);
    enter_candidates(0, violation_bar(), rng);
    board_.clear();
  }

  /// One part of the labels, or a sample of the features on it. The scores of the active set are
  /// looked up, and those of the labels found if they were estimated.
  void score_approximately(index_t i, Rng& rng, bool is_sampled) {
    const LabelParts& parts = weights_.parts();
    look_up(i, 0);
    const auto part = static_cast<index_t>(rng.below(static_cast<std::uint32_t>(parts.n_parts)));
    const auto row = data_.row(i);
    if (is_sampled) {
      add_sample_to_board(row, part, rng);
    } else {
      weights_.add_row_to_board(row, part, board_, search_work);
    }
    for (const index_t label : active_) {
      if (parts.part_of(label) == part) board_.take(weights_.place_of(label).label);
    }
    const std::size_t n_active = active_.size();
    enter_candidates(part, violation_bar(), rng);
    board_.clear();
    if (is_sampled) look_up(i, n_active);
  }

  void add_sample_to_board(const SparseVector<T, I>& row, index_t part, Rng& rng) {
    const double size = std::ceil(static_cast<double>(row.size()) / sample_rate_);
    sample_features(row, static_cast<std::size_t>(size), rng, sample_);
    for (const auto& [at, weight] : sample_) {
      const std::size_t r = weights_.parts().row_of(row.ids[at], part);
      weights_.rows().add_to(r, weight, board_);
      search_work += weights_.rows().n_weights(r);
    }
  }

  /// d_i / d~_i as section 4.4 sets it from (30).
  double sample_rate() const {
    const double nnz = static_cast<double>(std::max<offset_t>(data_.X().nnz(), 1));
    const double n_rows = static_cast<double>(std::max<offset_t>(data_.n_rows(), 1));
    const double n_labels = data_.n_labels();
    const double n_weights = static_cast<double>(data_.X().n_cols()) * n_labels;
    const double C = std::accumulate(data_.caps().begin(), data_.caps().end(), 0.0) / n_rows;
    const double by_bound = 5 * n_weights / (C * nnz * std::log(std::max(2.0, n_labels)));
    const double by_length = nnz / (5 * n_rows);
    return std::max(1.0, std::ceil(std::min(by_bound, by_length)));
  }

  /// Labels of the board become active with mass zero: the best that violate, and where they are
  /// too few, random ones of those that no weight touches, whose score is zero.
  void enter_candidates(index_t part, T bar, Rng& rng) {
    best_.start(static_cast<std::size_t>(n_candidates_));
    board_.offer_above(bar, best_);
    for (const Scored<T>& found : best_.select()) enter(part, found.id, found.score);
    if (!(T{0} > bar)) return;
    const auto size = static_cast<std::uint32_t>(weights_.parts().size(part));
    const int n_free = n_candidates_ - static_cast<int>(best_.select().size());
    for (int draw = 0, found = 0; draw < kDraws * n_free && found < n_free; ++draw) {
      const auto local = static_cast<index_t>(rng.below(size));
      if (board_[local] != T{0}) continue;
      board_.take(local);
      enter(part, local, T{0});
      ++found;
    }
  }

  void enter(index_t part, index_t local, T score) {
    active_.push_back(weights_.parts().label_at(part, local));
    masses_.push_back(T{0});
    scores_.push_back(score);
  }

  /// Scores of the active labels from position `first` on, one weight at a time.
  void look_up(index_t i, std::size_t first) {
    const LabelParts& parts = weights_.parts();
    places_.clear();
    for (std::size_t a = first; a < active_.size(); ++a) {
      places_.emplace_back(parts.part_of(active_[a]), weights_.place_of(active_[a]));
      scores_[a] = 0;
    }
    const auto row = data_.row(i);
    for (std::size_t p = 0; p < row.size(); ++p) {
      weights_.prefetch(row, p);
      for (std::size_t a = 0; a < places_.size(); ++a) {
        const auto& [part, place] = places_[a];
        scores_[first + a] +=
            row.values[p] * weights_.rows().weight(parts.row_of(row.ids[p], part), place);
      }
    }
    correct_work += static_cast<std::int64_t>(row.size() * places_.size());
  }

  // --- correct and shrink --------------------------------------------------------------------

  void correct(index_t i) {
    const double Q = data_.square(i);
    targets_.resize(active_.size());
    for (std::size_t a = 0; a < active_.size(); ++a) {
      const double score = static_cast<double>(scores_[a]);
      const double slope = a < n_positive_ ? -score : score + 1.0;
      targets_[a] = static_cast<double>(masses_[a]) + slope / Q;
    }
    const std::span<double> all(targets_);
    project_bisimplex<double>(all.subspan(n_positive_), all.first(n_positive_), data_.cap(i),
                              projection_);
    for (auto& changes : changes_) changes.clear();
    for (std::size_t a = 0; a < active_.size(); ++a) {
      const T mass = static_cast<T>(targets_[a]);
      const T change = mass - masses_[a];
      masses_[a] = mass;
      weights_.list_change(active_[a], a < n_positive_ ? change : -change, changes_);
    }
    correct_work += weights_.apply(changes_, data_.row(i));
  }

  void shrink(index_t i) {
    std::copy_n(masses_.begin(), n_positive_,
                duals_.positive.begin() + static_cast<std::ptrdiff_t>(data_.labels().begin(i)));
    auto& negative = duals_.negative[at(i)];
    negative.clear();
    for (std::size_t a = n_positive_; a < active_.size(); ++a) {
      if (masses_[a] > T{0} || is_closed) negative.push_back({active_[a], masses_[a]});
    }
  }

  /// The mean over a pass of the duals of sample i: what they were until now, what they are for the
  /// rest of it. The active set still holds what left, so all labels of both are there.
  void average(index_t i, T share_left) {
    const auto& old_negative = duals_.negative[at(i)];
    const std::size_t first = data_.labels().begin(i);
    for (std::size_t p = 0; p < n_positive_; ++p) {
      const T before = duals_.positive[first + p];
      mean_duals_->positive[first + p] = before + share_left * (masses_[p] - before);
    }
    auto& negative = mean_duals_->negative[at(i)];
    negative.clear();
    for (std::size_t a = n_positive_; a < active_.size(); ++a) {
      const std::size_t old = a - n_positive_;
      const T before = old < old_negative.size() ? old_negative[old].mass : T{0};
      const T mean = before + share_left * (masses_[a] - before);
      if (mean > T{0}) negative.push_back({active_[a], mean});
    }
  }

  const PDData<T, I>& data_;
  PDWeights<T, I>& weights_;
  PDDuals<T>& duals_;
  PDDuals<T>* mean_duals_;
  double sample_rate_;
  int n_candidates_ = 1;

  // The sample being visited: its positives first.
  std::size_t n_positive_ = 0;
  std::vector<index_t> active_;
  std::vector<T> masses_;
  std::vector<T> scores_;
  std::vector<double> targets_;
  std::vector<double> projection_;
  typename PDWeights<T, I>::Changes changes_;
  std::vector<std::pair<index_t, Place>> places_;
  std::vector<FeatureDraw<T>> sample_;
  ScoreBoard<T> board_;
  TopK<T> best_;
};

}  // namespace sublearn
