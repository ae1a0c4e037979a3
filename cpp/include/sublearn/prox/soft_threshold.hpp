// prox of level * |.|: argmin_w 1/2 (w - v)^2 + level |w|.
#pragma once

#include <algorithm>

namespace sublearn {

/// Soft threshold: what is left of v outside [-level, level].
template <class T>
inline T soft_threshold(T v, T level) {
  return v - std::clamp(v, -level, level);
}

}  // namespace sublearn
