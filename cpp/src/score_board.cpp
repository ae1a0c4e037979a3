// The loops of score_board.hpp that gain from wide registers.
#include "sublearn/search/score_board.hpp"

#include <cstring>
#include <limits>

#include "sublearn/core/lanes.hpp"
#include "sublearn/core/multiversion.hpp"

namespace sublearn {

namespace {

template <class T>
SUBLEARN_INLINE BlockSummary<T> summarise(const T* scores) {
  using Vector = typename Pack<T>::Vector;
  using Bits = typename Pack<T>::Bits;
  constexpr T kNone = -std::numeric_limits<T>::infinity();
  Vector most = Vector{} + kNone;
  Bits touched{};
  for (int at = 0; at < 64; at += kLanes<T>) {
    Vector score;
    std::memcpy(&score, scores + at, sizeof(score));
    const Bits is_touched = score != Vector{};  // minus one where true
    const Vector shown = is_touched ? score : Vector{} + kNone;
    most = shown > most ? shown : most;
    touched -= is_touched;
  }
  BlockSummary<T> summary{kNone, 0};
  for (int l = 0; l < kLanes<T>; ++l) {
    if (most[l] > summary.largest) summary.largest = most[l];
    summary.n_touched += static_cast<index_t>(touched[l]);
  }
  return summary;
}

/// Plain arrays of 32 bytes: a comparison of the wider Pack falls apart into single ones where
/// registers have 32 bytes.
template <class T>
SUBLEARN_INLINE T largest_of(const T* __restrict scores) {
  constexpr int kWidth = 32 / static_cast<int>(sizeof(T));
  T most[kWidth];
  for (int l = 0; l < kWidth; ++l) most[l] = scores[l];
  for (int at = kWidth; at < 64; at += kWidth) {
    for (int l = 0; l < kWidth; ++l) most[l] = scores[at + l] > most[l] ? scores[at + l] : most[l];
  }
  T largest = most[0];
  for (int l = 1; l < kWidth; ++l) largest = most[l] > largest ? most[l] : largest;
  return largest;
}

template <class T>
SUBLEARN_INLINE index_t find_largest_of(const T* __restrict scores, index_t n) {
  T most = -std::numeric_limits<T>::infinity();
  index_t begin = n;
  index_t at = 0;
  for (; at + 64 <= n; at += 64) {
    const T largest = largest_of(scores + at);
    if (largest > most) {
      most = largest;
      begin = at;
    }
  }
  for (; at < n; ++at) {
    if (scores[at] > most) {
      most = scores[at];
      begin = at;
    }
  }
  if (begin == n) return -1;
  while (scores[begin] != most) ++begin;
  return begin;
}

}  // namespace

SUBLEARN_MULTIVERSION BlockSummary<float> summarise_block(const float* scores) {
  return summarise(scores);
}
SUBLEARN_MULTIVERSION BlockSummary<double> summarise_block(const double* scores) {
  return summarise(scores);
}

SUBLEARN_MULTIVERSION index_t find_largest(const float* scores, index_t n) {
  return find_largest_of(scores, n);
}
SUBLEARN_MULTIVERSION index_t find_largest(const double* scores, index_t n) {
  return find_largest_of(scores, n);
}

}  // namespace sublearn
