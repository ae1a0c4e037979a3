// The one loop of score_board.hpp that gains from wide registers.
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

}  // namespace

SUBLEARN_MULTIVERSION BlockSummary<float> summarise_block(const float* scores) {
  return summarise(scores);
}
SUBLEARN_MULTIVERSION BlockSummary<double> summarise_block(const double* scores) {
  return summarise(scores);
}

}  // namespace sublearn
