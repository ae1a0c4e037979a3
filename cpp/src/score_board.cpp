// The one loop of score_board.hpp that gains from wide registers.
#include "sublearn/search/score_board.hpp"

#include <limits>

#include "sublearn/core/multiversion.hpp"

namespace sublearn {

namespace {

/// Lane by lane, so that it vectorises without a promise about NaN.
template <class T>
SUBLEARN_INLINE BlockSummary<T> summarise(const T* scores) {
  constexpr int kWide = 16;
  T most[kWide];
  index_t touched[kWide];
  for (int l = 0; l < kWide; ++l) {
    most[l] = -std::numeric_limits<T>::infinity();
    touched[l] = 0;
  }
  for (int at = 0; at < 64; at += kWide) {
    for (int l = 0; l < kWide; ++l) {
      const T score = scores[at + l];
      const T shown = score == T{0} ? -std::numeric_limits<T>::infinity() : score;
      most[l] = shown > most[l] ? shown : most[l];
      touched[l] += score != T{0};
    }
  }
  BlockSummary<T> summary{most[0], touched[0]};
  for (int l = 1; l < kWide; ++l) {
    if (most[l] > summary.largest) summary.largest = most[l];
    summary.n_touched += touched[l];
  }
  return summary;
}

}  // namespace

SUBLEARN_MULTIVERSION BlockSummary<float> summarise_block(const float* scores) {
  return summarise(scores);
}
SUBLEARN_MULTIVERSION BlockSummary<double> summarise_block(const double* scores) {
  return summarise(scores);
}

}  // namespace sublearn
