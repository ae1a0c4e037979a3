// Which labels score highest for a row? The weights lie by feature, so a row visits only the labels
// that share a feature with it.
//
// A score is b_k + x_1 w_1k + x_2 w_2k + ..., added from left to right in the order of the row. The
// best k labels are found in one of two ways, which give the same ids and the same bits:
//
//   plain     copies all biases, adds, looks at all scores; the judge of the other in tests
//   touched   adds, then walks the same lists twice more: to look at the labels that a weight fell
//             on, and to give them their biases back. All other labels score their bias and compete
//             in the order of their biases, which is made once per model. Nothing is done for each
//             label, whatever their number.
//
// Three walks cost more than one as long as the labels are few: kLabelsPerWeight. Measured on one
// x86-64 core in float32, microseconds per row:
//
//   weights read, labels     1 000, 8 000    1 000, 1 000 000    17 400, 128 000    36 900, 20 578
//   plain                              9                 520                 68                 42
//   touched                            6                  10                 76                 87
//
// Marking blocks of labels while adding, to look at marked blocks only, lay between the two or
// behind both. Upper bounds as search engines use them (features by decreasing x max_k w_k, no new
// label once the rest cannot lift it to the k-th best, candidates finished by binary search) were
// tried with the true k-th score given in advance, so at their best. For k = 5 they took 58 us
// instead of 42 on 5 000 labels with 71 features a row, where three quarters of the weights must be
// read to exclude the rest, and 40 instead of 46 on 20 578 labels with 12 features a row; the same
// with lists sorted by weight, at twice the storage, 65 and 28.
//
// Used by: prediction in the extreme room.
#pragma once

#include <algorithm>
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

  explicit RankedBias(std::span<const T> values) : bias(values) {
    TopK<T> best;
    for (const auto& label : top_k(bias, kMostRanked, best)) order.push_back(label.id);
    for (const T value : bias) largest = std::max(largest, std::abs(value));
  }

  std::span<const T> bias;
  std::vector<index_t> order;
  T largest = 0;  // of the sizes
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
  using Id = typename Lists::LabelId;
  using typename LabelScorer<T>::Row;

  /// A row that reads at least one weight per this many labels is scored in the plain way.
  static constexpr std::size_t kLabelsPerWeight = 10;

  LabelScores(const Lists& lists, const RankedBias<T>& bias)
      : lists_(lists), ranked_(bias), scores_(bias.bias.begin(), bias.bias.end()) {}

  std::span<const T> score(const Row& row) override {
    gather(row);
    return score_gathered();
  }

  std::span<const Scored<T>> top(const Row& row, std::size_t k, double effort) override {
    gather(row);
    if (effort < 1) spare(effort);
    return n_weights_ * kLabelsPerWeight >= scores_.size() ? top_plain(k) : top_touched(k);
  }

  /// The two ways by name, for tests.
  std::span<const Scored<T>> top_bounded(const Row& row, std::size_t k) {
    gather(row);
    return top_bounded(k);
  }
  std::span<const Scored<T>> top_plain(const Row& row, std::size_t k) {
    gather(row);
    return top_plain(k);
  }
  std::span<const Scored<T>> top_touched(const Row& row, std::size_t k) {
    gather(row);
    return top_touched(k);
  }

 private:
  static constexpr T kSeen = -std::numeric_limits<T>::infinity();
  static constexpr T kLowest = std::numeric_limits<T>::lowest();

  struct Term {
    typename Lists::List list;
    T x;
    std::size_t feature;
    const Id* labels;  // what is read: the list, or its raising part
    std::size_t n_read;
    const std::uint8_t* levels;
    T step;
  };

  void gather(const Row& row) {
    terms_.clear();
    n_weights_ = 0;
    for (std::size_t p = 0; p < row.size(); ++p) {
      const auto list = lists_.list(static_cast<std::size_t>(row.ids[p]));
      if (list.size == 0) continue;
      terms_.push_back({list, row.values[p], static_cast<std::size_t>(row.ids[p]), list.labels, list.size, nullptr, T(0)});
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

  std::span<const Scored<T>> top_bounded(std::size_t k) {
    double reach = ranked_.largest;
    std::size_t n_read = 0;
    for (Term& term : terms_) {
      const auto bounds = lists_.bounds(term.feature);
      reach += std::abs(double(term.x)) * double(bounds.largest);
      if (bounds.raising && term.x > 0) {
        term.labels = bounds.raising->labels.data();
        term.n_read = bounds.raising->labels.size();
        term.levels = bounds.raising->levels.data();
        term.step = term.x * bounds.raising->step;
      }
      n_read += term.n_read;
    }
    const T slack = T(reach * double(2 * terms_.size() + 8) * double(std::numeric_limits<T>::epsilon()));
    std::copy(ranked_.bias.begin(), ranked_.bias.end(), scores_.begin());
    is_clean_ = false;
    T* __restrict scores = scores_.data();
    for (const Term& term : terms_) {
      if (term.levels) {
        const T step = term.step; const auto* labels = term.labels; const auto* levels = term.levels;
        for (std::size_t q = 0; q < term.n_read; ++q) scores[labels[q]] += step * T(levels[q]);
      } else {
        const auto list = term.list; const T x = term.x;
        for (std::size_t q = 0; q < list.size; ++q) scores[list.labels[q]] += x * list.weight(q);
      }
    }
    this->work_ += n_read + scores_.size();
    maxima_.find(scores_);
    const auto found = maxima_.top(std::min(scores_.size(), (k + 7) / 8 * 8), candidates_);
    best_.start(k);
    for (std::size_t at = 0; at < found.size(); at += 8) finish_batch(found.data() + at, std::min<std::size_t>(8, found.size() - at));
    n_cand += found.size();
    const T theta = best_.finish()[k - 1].score;
    if (found.size() == scores_.size() || found.back().score + slack < theta) return best_.finish();
    const T bar = theta - 2 * slack;
    for (const auto& f : found) scores_[static_cast<std::size_t>(f.id)] = -std::numeric_limits<T>::infinity();
    more_.clear();
    maxima_.for_each_from(bar, [&](index_t label, T score) { more_.push_back({score, label}); });
    n_cand += more_.size();
    if (more_.size() > 4 * k + 32) return {};
    for (std::size_t at = 0; at < more_.size(); at += 8) finish_batch(more_.data() + at, std::min<std::size_t>(8, more_.size() - at));
    return best_.finish();
  }
  public: std::uint64_t n_cand = 0; private:

  void finish_batch(const Scored<T>* found, std::size_t n) {
    constexpr std::size_t kBatch = 8;
    Id ids[kBatch];
    T sums[kBatch];
    for (std::size_t c = 0; c < kBatch; ++c) {
      ids[c] = static_cast<Id>(found[c < n ? c : 0].id);
      sums[c] = ranked_.bias[static_cast<std::size_t>(ids[c])];
    }
    for (const Term& term : terms_) {
      std::uint32_t at[kBatch] = {};
      const auto list = term.list;
      for (std::size_t size = list.size; size > 1;) {
        const auto half = static_cast<std::uint32_t>(size / 2);
        for (std::size_t c = 0; c < kBatch; ++c) at[c] += half & (0u - static_cast<std::uint32_t>(list.labels[at[c] + half - 1] < ids[c]));
        size -= half;
      }
      for (std::size_t c = 0; c < kBatch; ++c) {
        const T sum = sums[c] + term.x * list.weight(at[c]);
        sums[c] = list.labels[at[c]] == ids[c] ? sum : sums[c];
      }
    }
    this->work_ += n * terms_.size();
    for (std::size_t c = 0; c < n; ++c) best_.offer(found[c].id, sums[c]);
  }

  void add() {
    T* __restrict scores = scores_.data();
    for (const Term& term : terms_) {
      const auto list = term.list;
      const T x = term.x;
      for (std::size_t q = 0; q < list.size; ++q) scores[list.labels[q]] += x * list.weight(q);
    }
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
  TopK<T> candidates_;
  BlockMaxima<T> maxima_;
  std::vector<Scored<T>> more_;
};

}  // namespace sublearn
