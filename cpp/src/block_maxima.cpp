// The one loop of block_maxima.hpp that gains from wide registers.
#include "sublearn/search/block_maxima.hpp"

#include <cstring>

#include "sublearn/core/lanes.hpp"
#include "sublearn/core/multiversion.hpp"

namespace sublearn {

namespace {

template <class T>
SUBLEARN_INLINE void find_maxima(std::span<const T> scores, std::span<T> maxima) {
  using Vector = typename Pack<T>::Vector;
  constexpr std::size_t kBlock = BlockMaxima<T>::kBlock;
  constexpr T kNone = -std::numeric_limits<T>::infinity();
  for (std::size_t block = 0; block < maxima.size(); ++block) {
    Vector most = Vector{} + kNone;
    for (std::size_t at = 0; at < kBlock; at += static_cast<std::size_t>(kLanes<T>)) {
      Vector score;
      std::memcpy(&score, scores.data() + block * kBlock + at, sizeof(score));
      most = score > most ? score : most;
    }
    T largest = kNone;
    for (int l = 0; l < kLanes<T>; ++l) largest = most[l] > largest ? most[l] : largest;
    maxima[block] = largest;
  }
}

}  // namespace

SUBLEARN_MULTIVERSION void find_block_maxima(std::span<const float> scores,
                                             std::span<float> maxima) {
  find_maxima(scores, maxima);
}
SUBLEARN_MULTIVERSION void find_block_maxima(std::span<const double> scores,
                                             std::span<double> maxima) {
  find_maxima(scores, maxima);
}

}  // namespace sublearn
