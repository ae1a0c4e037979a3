// Random sparsification (Yen 2018, algorithm 4 and theorem 5): a vector with few non-zeros whose
// inner product with anything is right on average.
//
// Algorithm 4 draws R coordinates with replacement. Here each coordinate is kept or dropped once:
//
//   |w_j| >= level             kept as it is
//   |w_j| < level              becomes sign(w_j) level with probability |w_j| / level, else 0
//
// With level = ||w||_1 / R that is unbiased, keeps at most R coordinates on average, and the
// variance of <w~, x> is sum_j x_j^2 |w_j| (level - |w_j|)_+ <= max_j x_j^2 ||w||_1^2 / R: the
// bound of theorem 5, and never more than algorithm 4 has. One uniform number per coordinate can
// serve many vectors, which then tend to keep the same coordinates.
#pragma once

namespace sublearn {

template <class T>
inline T sparsify(T w, T level, T uniform) {
  const T size = w < 0 ? -w : w;
  if (size >= level) return w;
  if (size <= uniform * level) return T{0};
  return w < 0 ? -level : level;
}

}  // namespace sublearn
