#include "sublearn/core/dense.hpp"

#include "sublearn/core/multiversion.hpp"

namespace sublearn {
namespace {

// Scores below the threshold are the rule, so a block of 64 is first tested as a whole (a reduction
// that vectorises) and looked at one by one only if something in it passes.
constexpr std::size_t kBlock = 64;

SUBLEARN_MULTIVERSION
bool any_above(const float* scores, float threshold) {
  int any = 0;
  for (std::size_t i = 0; i < kBlock; ++i) any |= scores[i] > threshold;
  return any != 0;
}

SUBLEARN_MULTIVERSION
bool any_above(const double* scores, double threshold) {
  int any = 0;
  for (std::size_t i = 0; i < kBlock; ++i) any |= scores[i] > threshold;
  return any != 0;
}

template <class T>
void append_above_blocks(std::span<const T> scores, T threshold, std::vector<index_t>& out) {
  std::size_t i = 0;
  for (; i + kBlock <= scores.size(); i += kBlock) {
    if (!any_above(scores.data() + i, threshold)) continue;
    for (std::size_t p = i; p < i + kBlock; ++p) {
      if (scores[p] > threshold) out.push_back(static_cast<index_t>(p));
    }
  }
  for (; i < scores.size(); ++i) {
    if (scores[i] > threshold) out.push_back(static_cast<index_t>(i));
  }
}

}  // namespace

void append_above(std::span<const float> scores, float threshold, std::vector<index_t>& out) {
  append_above_blocks(scores, threshold, out);
}

void append_above(std::span<const double> scores, double threshold, std::vector<index_t>& out) {
  append_above_blocks(scores, threshold, out);
}

}  // namespace sublearn
