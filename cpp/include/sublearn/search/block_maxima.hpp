// The k best of many scores, by the largest score of each block of 64.
//
// At least k scores reach the k-th largest of the maxima, so what lies below it is out before any
// score was compared with another one, and of n / 64 blocks only about k are looked into. top_k of
// core/ learns its bar on the way and looks into every block until it has one.
//
// Used by: search/label_scores.hpp.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include "sublearn/core/top_k.hpp"
#include "sublearn/core/types.hpp"

namespace sublearn {

/// maxima[b] becomes the largest of scores[64 b .. 64 b + 63], minus infinity if all are NaN;
/// compiled once per instruction set. The size of scores is 64 times that of maxima.
void find_block_maxima(std::span<const float> scores, std::span<float> maxima);
void find_block_maxima(std::span<const double> scores, std::span<double> maxima);

template <class T>
class BlockMaxima {
 public:
  static constexpr std::size_t kBlock = 64;

  /// Call again whenever the scores have changed; they must outlive the other calls.
  void find(std::span<const T> scores) {
    scores_ = scores;
    maxima_.resize((scores.size() + kBlock - 1) / kBlock);
    const std::size_t n_whole = scores.size() / kBlock;
    find_block_maxima(scores.first(n_whole * kBlock), std::span<T>(maxima_).first(n_whole));
    if (n_whole == maxima_.size()) return;
    T& last = maxima_.back() = kNone;
    for (const T score : scores.subspan(n_whole * kBlock)) last = score > last ? score : last;
  }

  /// Calls f(label, score) for all scores of at least `bar`, by increasing label.
  template <class F>
  void for_each_from(T bar, F&& f) const {
    for (std::size_t block = 0; block < maxima_.size(); ++block) {
      if (!(maxima_[block] >= bar)) continue;
      const std::size_t end = std::min((block + 1) * kBlock, scores_.size());
      for (std::size_t p = block * kBlock; p < end; ++p) {
        if (scores_[p] >= bar) f(static_cast<index_t>(p), scores_[p]);
      }
    }
  }

  /// As top_k of core/, with the same answer.
  std::span<const Scored<T>> top(std::size_t k, TopK<T>& best) {
    if (k >= maxima_.size()) return top_k(scores_, k, best);
    const T bar = top_k(std::span<const T>(maxima_), k, best)[k - 1].score;
    if (!(bar > kNone)) return top_k(scores_, k, best);  // scores without order among them
    best.start(k);
    for_each_from(bar, [&](index_t label, T score) { best.offer(label, score); });
    return best.finish();
  }

 private:
  static constexpr T kNone = -std::numeric_limits<T>::infinity();

  std::span<const T> scores_;
  std::vector<T> maxima_;
};

}  // namespace sublearn
