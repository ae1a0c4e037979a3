// The one loop of hashed_rows.hpp that gains from wide registers.
#include "sublearn/search/hashed_rows.hpp"

#include "sublearn/core/multiversion.hpp"

namespace sublearn {

namespace {

/// soft_threshold with comparisons that vectorise: std::clamp returns references.
template <class T>
SUBLEARN_INLINE void add_soft_values(const T* __restrict values, T level, T x, std::size_t n,
                                     T* __restrict scores) {
  for (std::size_t k = 0; k < n; ++k) {
    const T v = values[k];
    T inside = v < level ? v : level;
    inside = inside > -level ? inside : -level;
    scores[k] += x * (v - inside);
  }
}

}  // namespace

SUBLEARN_MULTIVERSION void add_soft(const float* values, float level, float x, std::size_t n,
                                    float* scores) {
  add_soft_values(values, level, x, n, scores);
}
SUBLEARN_MULTIVERSION void add_soft(const double* values, double level, double x, std::size_t n,
                                    double* scores) {
  add_soft_values(values, level, x, n, scores);
}

}  // namespace sublearn
