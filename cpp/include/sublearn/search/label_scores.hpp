// Which labels score highest for a row? The weights lie by feature, so a row visits only the labels
// that share a feature with it.
//
// A score is b_k + x_1 w_1k + x_2 w_2k + ..., added from left to right in the order of the row. The
// best k labels are found in one of three ways, which give the same ids and the same bits:
//
//   plain     copies all biases, adds, looks at all scores; the judge of the others in tests
//   touched   adds, then walks the same lists twice more: to look at the labels that a weight fell
//             on, and to give them their biases back. All other labels score their bias and compete
//             in the order of their biases, which is made once per model. Nothing is done for each
//             label, whatever their number.
//   bounded   adds weights above zero only, rounded up, which gives each label an upper bound; then
//             scores the labels with the highest bounds by binary search in the lists, and all
//             others whose bound reaches the k-th best of these.
//
// Three walks cost more than one as long as the labels are few: kLabelsPerWeight. Measured on one
// x86-64 core in float32, microseconds per row:
//
//   weights read, labels     1 000, 8 000    1 000, 1 000 000    17 400, 128 000    36 900, 20 578
//   plain                              9                 520                 68                 42
//   touched                            6                  10                 76                 87
//
// Searching costs more than it spares unless lists are long and rows short: kWeightsPerLookup. For
// k = 5, microseconds per row on a busy core:
//
//   labels, features a row         983, 18    5 000, 71    20 578, 12    32 000, 51    128 000, 50
//   weights above zero                 46 %         53 %          36 %          58 %           70 %
//   plain                            14           33            49            95            245
//   bounded                          23           39            37            82            207
//
// Other bounds exclude little more. Given the true fifth score, weights ordered by size could leave
// out, with 20 to 140 labels to look up, 80 % of the weights at 20 578 labels where the sign leaves
// out 64 %, but 55 and 47 % at 5 000 labels, 44 and 30 % at 128 000. The largest weights of blocks
// of 8 labels left half of the blocks in at 5 000 labels and a quarter at 20 578; of 64 labels,
// nearly all.
//
// Used by: prediction in the extreme room.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "sublearn/core/top_k.hpp"
#include "sublearn/core/types.hpp"
#include "sublearn/core/views.hpp"
#include "sublearn/search/block_maxima.hpp"
#include "sublearn/search/weight_lists.hpp"

namespace sublearn {

/// The bias of each label, and the first labels in the order in which their biases alone rank them.
/// Few are ever needed, and to find them takes a hundredth of a second for a million labels where a
/// full sort takes a third of one, when a model is opened.
template <class T>
struct RankedBias {
  static constexpr std::size_t kMostRanked = 4096;
  static constexpr T kInfinity = std::numeric_limits<T>::infinity();

  explicit RankedBias(std::span<const T> values) : bias(values) {
    TopK<T> best;
    for (const auto& label : top_k(bias, kMostRanked, best)) order.push_back(label.id);
    for (const T value : bias) {
      const T size = std::abs(value);
      if (!(size <= largest)) largest = size < kInfinity ? size : kInfinity;
    }
  }

  std::span<const T> bias;
  std::vector<index_t> order;
  T largest = 0;  ///< of the sizes; infinity if one is not finite
};

/// What prediction needs of a scorer, whatever the storage of the weights.
template <class T>
class LabelScorer {
 public:
  using Row = SparseVector<T, index_t>;

  virtual ~LabelScorer() = default;

  /// All scores of a row; valid until the next call.
  virtual std::span<const T> score(const Row& row) = 0;

  /// The k best labels of a row, best first, equal scores by increasing label. With `effort` below
  /// 1, only that share of the row's weights is read (see LabelScores::spare).
  virtual std::span<const Scored<T>> top(const Row& row, std::size_t k, double effort) = 0;

  /// Weights and scores that top() has read since the last call.
  std::uint64_t take_work() { return std::exchange(work_, 0); }

 protected:
  std::uint64_t work_ = 0;
};

/// Keeps its memory from row to row. A damaged list throws before anything has changed.
template <class Lists>
class LabelScores final : public LabelScorer<typename Lists::Score> {
 public:
  using T = typename Lists::Score;
  using Raising = typename Lists::Raising;
  using typename LabelScorer<T>::Row;

  /// A row that reads at least one weight per this many labels is scored in the plain way.
  static constexpr std::size_t kLabelsPerWeight = 10;

  /// A row whose bounds spare it fewer weights per label looked up in a list is scored in the plain
  /// way.
  static constexpr std::size_t kWeightsPerLookup = 50;

  /// With more weights per label, those below zero weigh so much that bounds exclude too little.
  static constexpr std::size_t kWeightsPerLabel = 4;

  LabelScores(const Lists& lists, const RankedBias<T>& bias)
      : lists_(lists), ranked_(bias), scores_(bias.bias.begin(), bias.bias.end()) {}

  std::span<const T> score(const Row& row) override {
    gather(row);
    return score_gathered();
  }

  std::span<const Scored<T>> top(const Row& row, std::size_t k, double effort) override {
    gather(row);
    if (effort < 1) spare(effort);
    if (n_weights_ * kLabelsPerWeight < scores_.size()) return top_touched(k);
    // No list is bounded for rows that could not gain by it.
    const std::size_t worth = kWeightsPerLookup * terms_.size() * in_batches(k);
    if (n_weights_ < worth || n_weights_ > kWeightsPerLabel * scores_.size()) return top_plain(k);
    const Reach reach = bound();
    return n_weights_ - reach.n_read < worth ? top_plain(k) : top_bounded(k, reach);
  }

  /// The two ways by name, for tests.
  std::span<const Scored<T>> top_plain(const Row& row, std::size_t k) {
    gather(row);
    return top_plain(k);
  }
  std::span<const Scored<T>> top_touched(const Row& row, std::size_t k) {
    gather(row);
    return top_touched(k);
  }
  std::span<const Scored<T>> top_bounded(const Row& row, std::size_t k) {
    gather(row);
    return top_bounded(k, bound());
  }

 private:
  static constexpr T kSeen = -std::numeric_limits<T>::infinity();
  static constexpr std::size_t kBatch = 8;
  static constexpr std::size_t kDearest = 10;  // weights read in the time of a lookup, at most
  static constexpr T kLowest = std::numeric_limits<T>::lowest();

  struct Term {
    typename Lists::List list;
    T x;
    std::size_t feature;
    const Raising* raising;  // what is read in place of the list; null if nothing is
  };

  void gather(const Row& row) {
    terms_.clear();
    n_weights_ = 0;
    for (std::size_t p = 0; p < row.size(); ++p) {
      const auto feature = static_cast<std::size_t>(row.ids[p]);
      const auto list = lists_.list(feature);
      if (list.size == 0) continue;
      terms_.push_back({list, row.values[p], feature, nullptr});
      n_weights_ += list.size;
    }
  }

  /// Keeps the shortest lists, as many as hold at most `effort` of the row's weights, and one at
  /// least: features that most labels use say least about a label and cost most.
  void spare(double effort) {
    order_.resize(terms_.size());
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    std::stable_sort(order_.begin(), order_.end(), [&](std::size_t a, std::size_t b) {
      return terms_[a].list.size < terms_[b].list.size;
    });
    const double budget = effort * static_cast<double>(n_weights_);
    std::size_t n_kept = 0;
    n_weights_ = 0;
    for (const std::size_t p : order_) {
      const std::size_t n_weights = n_weights_ + terms_[p].list.size;
      if (n_kept > 0 && static_cast<double>(n_weights) > budget) break;
      n_weights_ = n_weights;
      ++n_kept;
    }
    order_.resize(n_kept);
    std::sort(order_.begin(), order_.end());
    for (std::size_t r = 0; r < n_kept; ++r) terms_[r] = terms_[order_[r]];
    terms_.resize(n_kept);
  }

  std::span<const T> score_gathered() {
    std::copy(ranked_.bias.begin(), ranked_.bias.end(), scores_.begin());
    is_clean_ = false;
    add();
    return scores_;
  }

  std::span<const Scored<T>> top_plain(std::size_t k) {
    this->work_ += n_weights_ + scores_.size();
    maxima_.find(score_gathered());
    return maxima_.top(k, best_);
  }

  std::span<const Scored<T>> top_touched(std::size_t k) {
    if (!is_clean_) std::copy(ranked_.bias.begin(), ranked_.bias.end(), scores_.begin());
    is_clean_ = true;
    add();
    best_.start(k);
    offer_touched();
    const bool is_complete = offer_untouched(k);
    restore();
    this->work_ += 2 * n_weights_;
    const auto best = best_.finish();
    // A score of minus infinity cannot be told from a label already seen: the plain way can.
    const bool is_sure = is_complete && best.size() == k && best.back().score > kSeen;
    return is_sure ? best : top_plain(k);
  }

  /// How far scores can go, and what it takes to bound them.
  struct Reach {
    double largest;  // of the sizes of all partial sums
    std::size_t n_read;
  };

  Reach bound() {
    Reach reach{static_cast<double>(ranked_.largest), 0};
    for (Term& term : terms_) {
      const auto bounds = lists_.bounds(term.feature);
      reach.largest += std::abs(static_cast<double>(term.x)) * static_cast<double>(bounds.largest);
      term.raising = term.x > 0 ? bounds.raising : nullptr;
      reach.n_read += term.raising != nullptr ? term.raising->labels.size() : term.list.size;
    }
    return reach;
  }

  std::span<const Scored<T>> top_bounded(std::size_t k, const Reach& reach) {
    using Limits = std::numeric_limits<T>;
    if (!(reach.largest <= static_cast<double>(Limits::max() / 4))) return top_plain(k);
    // A sum of n terms is wrong by (n + 2) epsilon / 2 of `largest`, or by what underflows.
    const auto n = static_cast<double>(terms_.size() + 4);
    const T slack = static_cast<T>(2 * n * reach.largest * Limits::epsilon() + n * Limits::min());
    add_bounds();
    this->work_ += reach.n_read + scores_.size();
    maxima_.find(scores_);
    const auto first = maxima_.top(std::min(in_batches(k), scores_.size()), candidates_);
    best_.start(k);
    finish(first);
    const T bar = best_.finish()[k - 1].score - 2 * slack;
    if (first.size() == scores_.size() || first.back().score < bar) return best_.finish();
    for (const auto& done : first) scores_[static_cast<std::size_t>(done.id)] = kSeen;
    others_.clear();
    maxima_.for_each_from(bar, [&](index_t label, T most) { others_.push_back({most, label}); });
    if (others_.size() * terms_.size() * kDearest > n_weights_) return top_plain(k);
    finish(others_);
    return best_.finish();
  }

  /// Each score becomes no less than what add() makes of it, up to rounding.
  void add_bounds() {
    std::copy(ranked_.bias.begin(), ranked_.bias.end(), scores_.begin());
    is_clean_ = false;
    T* __restrict scores = scores_.data();
    for (const Term& term : terms_) {
      if (term.raising == nullptr) {
        add(term);
        continue;
      }
      const T step = term.x * term.raising->step;
      const auto* labels = term.raising->labels.data();
      const auto* levels = term.raising->levels.data();
      const std::size_t size = term.raising->labels.size();
      for (std::size_t q = 0; q < size; ++q) scores[labels[q]] += step * static_cast<T>(levels[q]);
    }
  }

  static std::size_t in_batches(std::size_t k) { return (k + kBatch - 1) / kBatch * kBatch; }

  /// Offers the scores of candidates, added as add() does it.
  void finish(std::span<const Scored<T>> candidates) {
    for (std::size_t at = 0; at < candidates.size(); at += kBatch) {
      finish_batch(candidates.subspan(at, std::min(kBatch, candidates.size() - at)));
    }
  }

  /// Searches all candidates in a list at once, without branches: none waits for another.
  void finish_batch(std::span<const Scored<T>> candidates) {
    using Id = typename Lists::LabelId;
    std::array<Id, kBatch> ids;
    std::array<T, kBatch> sums;
    for (std::size_t c = 0; c < kBatch; ++c) {
      const index_t id = candidates[c < candidates.size() ? c : 0].id;
      ids[c] = static_cast<Id>(id);
      sums[c] = ranked_.bias[static_cast<std::size_t>(id)];
    }
    for (const Term& term : terms_) {
      const auto list = term.list;
      std::array<std::uint32_t, kBatch> at{};
      for (std::size_t size = list.size; size > 1;) {
        const auto half = static_cast<std::uint32_t>(size / 2);
        for (std::size_t c = 0; c < kBatch; ++c) {
          const bool is_right = list.labels[at[c] + half - 1] < ids[c];
          at[c] += half & (0U - static_cast<std::uint32_t>(is_right));
        }
        size -= half;
      }
      for (std::size_t c = 0; c < kBatch; ++c) {
        const T sum = sums[c] + term.x * list.weight(at[c]);
        sums[c] = list.labels[at[c]] == ids[c] ? sum : sums[c];
      }
    }
    this->work_ += candidates.size() * terms_.size();
    for (std::size_t c = 0; c < candidates.size(); ++c) best_.offer(candidates[c].id, sums[c]);
  }

  void add() {
    for (const Term& term : terms_) add(term);
  }

  void add(const Term& term) {
    T* __restrict scores = scores_.data();
    const auto list = term.list;
    const T x = term.x;
    for (std::size_t q = 0; q < list.size; ++q) scores[list.labels[q]] += x * list.weight(q);
  }

  /// Offers each label that a weight fell on once, and leaves kSeen in the place of its score.
  void offer_touched() {
    T* __restrict scores = scores_.data();
    T bar = kLowest;  // one comparison, mostly false, for labels seen before and labels too low
    for (const Term& term : terms_) {
      for (std::size_t q = 0; q < term.list.size; ++q) {
        const auto label = term.list.labels[q];
        const T score = std::exchange(scores[label], kSeen);
        if (!(score >= bar)) continue;
        best_.offer(static_cast<index_t>(label), score);
        bar = best_.bar() > kLowest ? best_.bar() : kLowest;
      }
    }
  }

  /// Of the labels that score their bias, no more than the k first in rank can be among the best.
  /// False if the ranked labels end before it is known that the others are no better.
  bool offer_untouched(std::size_t k) {
    std::size_t n_offered = 0;
    for (const index_t label : ranked_.order) {
      const T bias = ranked_.bias[static_cast<std::size_t>(label)];
      if (n_offered == k || bias < best_.bar()) return true;
      if (scores_[static_cast<std::size_t>(label)] == kSeen) continue;
      best_.offer(label, bias);
      ++n_offered;
    }
    return n_offered == k || ranked_.order.size() == scores_.size();
  }

  void restore() {
    T* __restrict scores = scores_.data();
    const T* __restrict bias = ranked_.bias.data();
    for (const Term& term : terms_) {
      const auto list = term.list;
      for (std::size_t q = 0; q < list.size; ++q) scores[list.labels[q]] = bias[list.labels[q]];
    }
  }

  const Lists& lists_;
  const RankedBias<T>& ranked_;
  std::vector<T> scores_;           // the biases, where is_clean_
  std::vector<Term> terms_;         // what the row reads
  std::vector<std::size_t> order_;  // terms by length of list
  std::size_t n_weights_ = 0;
  bool is_clean_ = true;
  TopK<T> best_;
  TopK<T> candidates_;             // the first, by their bounds
  std::vector<Scored<T>> others_;  // candidates after the first
  BlockMaxima<T> maxima_;
};

}  // namespace sublearn
