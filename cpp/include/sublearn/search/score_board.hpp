// Scores of one sample against all labels, most of which nothing touches.
//
// An array over the labels and a mark per block of 64: whoever adds to a score marks its block, and
// reading and clearing visit the marked blocks only. So a sample costs what it touches, and a
// million labels that it does not touch cost one byte of marks per 64.
//
// A score of exactly zero counts as untouched.
//
// Used by: solvers/pd_sparse/, solvers/structured/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

#include "sublearn/core/top_k.hpp"
#include "sublearn/core/types.hpp"

namespace sublearn {

/// What one block of 64 scores holds; compiled once per instruction set.
template <class T>
struct BlockSummary {
  T largest;          ///< of the scores that are not zero; minus infinity if there are none
  index_t n_touched;  ///< scores that are not zero
};
BlockSummary<float> summarise_block(const float* scores);
BlockSummary<double> summarise_block(const double* scores);

/// The first place of the largest of n scores; -1 if all are minus infinity.
index_t find_largest(const float* scores, index_t n);
index_t find_largest(const double* scores, index_t n);

template <class T>
class ScoreBoard {
 public:
  static constexpr std::size_t kBlock = 64;
  static constexpr T kTaken = -std::numeric_limits<T>::infinity();

  explicit ScoreBoard(index_t n_labels = 0)
      : scores_((static_cast<std::size_t>(n_labels) + kBlock - 1) / kBlock * kBlock, T{0}),
        marks_((scores_.size() / kBlock + 7) / 8 * 8, 0) {}

  T operator[](index_t label) const { return scores_[at(label)]; }

  void add(index_t label, T amount) {
    scores_[at(label)] += amount;
    mark(label);
  }
  /// For those who add to many labels at once; the blocks must be marked as well.
  T* scores() { return scores_.data(); }
  void mark(index_t label) { marks_[at(label) / kBlock] = 1; }
  void mark_all() { std::memset(marks_.data(), 1, scores_.size() / kBlock); }

  /// Reads a score and takes its label out of the competition.
  T take(index_t label) {
    T& score = scores_[at(label)];
    const T value = score;
    score = kTaken;
    mark(label);
    return value;
  }

  /// Offers to `best` all touched labels with a score above `threshold`.
  void offer_above(T threshold, TopK<T>& best) const {
    for_each_mark([&](std::size_t block) {
      const T* scores = scores_.data() + block * kBlock;
      const T bar = best.bar() > threshold ? best.bar() : threshold;  // NaN at first
      if (!(summarise_block(scores).largest > bar)) return;
      for (std::size_t l = 0; l < kBlock; ++l) {
        if (scores[l] > threshold && scores[l] != T{0}) {
          best.offer(static_cast<index_t>(block * kBlock + l), scores[l]);
        }
      }
    });
  }

  /// The largest score of the first `n_labels` that were not taken, untouched ones included; minus
  /// infinity if all were taken.
  T largest(index_t n_labels) const {
    T most = kTaken;
    index_t n_touched = 0;
    for_each_mark([&](std::size_t block) {
      const BlockSummary<T> summary = summarise_block(scores_.data() + block * kBlock);
      if (summary.largest > most) most = summary.largest;
      n_touched += summary.n_touched;
    });
    return n_touched < n_labels && most < T{0} ? T{0} : most;
  }

  /// The largest score of the first `n_labels` and the lowest label that has it; untouched labels
  /// score zero.
  Scored<T> best(index_t n_labels, TopK<T>& scratch) const {
    scratch.start(1);
    offer_above(T{0}, scratch);
    const auto found = scratch.finish();
    if (!found.empty()) return found[0];
    const std::span<const T> all(scores_.data(), static_cast<std::size_t>(n_labels));
    return top_k(all, 1, scratch)[0];
  }

  void clear() {
    for_each_mark([&](std::size_t block) {
      std::memset(scores_.data() + block * kBlock, 0, kBlock * sizeof(T));
    });
    std::memset(marks_.data(), 0, marks_.size());
  }

 private:
  template <class F>
  void for_each_mark(F&& f) const {
    for (std::size_t m = 0; m < marks_.size(); m += 8) {
      std::uint64_t eight;
      std::memcpy(&eight, marks_.data() + m, 8);
      if (eight == 0) continue;
      for (std::size_t block = m; block < m + 8; ++block) {
        if (marks_[block] != 0) f(block);
      }
    }
  }

  std::vector<T> scores_;
  std::vector<std::uint8_t> marks_;
};

}  // namespace sublearn
