#include "sublearn/solvers/ppd_sparse/kernels.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "sublearn/core/multiversion.hpp"
#include "sublearn/prox/soft_threshold.hpp"

namespace sublearn {
namespace {

// A row active in fewer lanes is updated lane by lane. A choice by reasoning, not by measurement: a
// vector update reads a cache line per feature where a scalar one reads a number.
constexpr int kVectorFrom = 3;

// Rows whose partial sums are kept in T before they go to double: bounds rounding and costs little.
constexpr std::size_t kFlushEvery = 256;

template <class T>
using Vector = typename Pack<T>::Vector;
template <class T>
using Bits = typename Pack<T>::Bits;

template <class T>
SUBLEARN_INLINE Bits<T> lane_bits() {
  Bits<T> bits;
  for (int l = 0; l < kLanes<T>; ++l) bits[l] = typename Pack<T>::Integer{1} << l;
  return bits;
}

/// All ones in the lanes of the mask.
template <class T>
SUBLEARN_INLINE Bits<T> spread(LaneMask mask, const Bits<T>& bit) {
  return (bit & (Bits<T>{} + static_cast<typename Pack<T>::Integer>(mask))) != 0;
}

/// The OR of all words of a comparison's result: zero if no lane holds.
template <class B>
SUBLEARN_INLINE std::uint64_t fold(const B& bits) {
  std::uint64_t word[8];
  std::memcpy(word, &bits, sizeof(word));
  return ((word[0] | word[1]) | (word[2] | word[3])) | ((word[4] | word[5]) | (word[6] | word[7]));
}

template <class T>
SUBLEARN_INLINE LaneMask to_mask(const Bits<T>& holds, const Bits<T>& bit) {
  const std::uint64_t word = fold(holds & bit);
  return static_cast<LaneMask>(word | (word >> 32));
}

template <class T>
SUBLEARN_INLINE void soft_threshold_lanes(const Vector<T>& v, T l1, Vector<T>& out) {
  const Vector<T> level = Vector<T>{} + l1;
  const Vector<T> below = v < level ? v : level;
  out = v - (below > -level ? below : -level);
}

template <class T>
SUBLEARN_INLINE void flush(Vector<T>& partial, LaneSums<T>& sums) {
  for (int l = 0; l < kLanes<T>; ++l) sums[at(l)] += partial[l];
  partial = Vector<T>{};
}

/// The weight of a row's loss in each lane.
template <class T>
SUBLEARN_INLINE void lane_weights(T weight, const Bits<T>& positive, const SweepState<T>& state,
                                  Vector<T>& out) {
  const Vector<T> plain = Vector<T>{} + weight;
  out = positive ? plain * state.positive_weight.v : plain;
}

// --- coordinate descent ---------------------------------------------------------------------
//
// One dual coordinate: gradient g = y (<w, x> + b) - 1 + diagonal * alpha, and the minimum over
// [0, upper] of the quadratic with that slope and a curvature no smaller than the true one.

template <bool kWeighted, class T, class I>
SUBLEARN_INLINE void update_all_lanes(const SparseVector<T, I>& row, const ActiveRow& active,
                                      index_t slot, const Bits<T>& bit, SweepState<T>& state) {
  Vector<T>& alpha = state.alpha[slot].v;
  const T* x = row.values.data();
  const I* ids = row.ids.data();
  const std::size_t n = row.size();
  Pack<T>* v = state.v;
  const Vector<T> zero = {};
  const Vector<T> one = zero + T{1};
  const Bits<T> positive = spread<T>(active.positive, bit);
  Vector<T> curvature = zero + state.curvature[slot];
  Vector<T> diagonal = zero + state.dual_diagonal;
  Vector<T> upper_bound = zero + state.upper_bound;
  if constexpr (kWeighted) {
    Vector<T> weight;
    lane_weights<T>(state.weight[slot], positive, state, weight);
    diagonal /= weight;
    curvature += diagonal;
    upper_bound *= weight;
  }
  const Vector<T> inverse = one / curvature;  // divides while the features are read, not after

  Vector<T> score = state.bias.v;
  Vector<T> odd = {};  // a second chain of additions: one alone waits four cycles per feature
  std::size_t p = 0;
  for (; p + 2 <= n; p += 2) {
    Vector<T> w0, w1;
    soft_threshold_lanes<T>(v[ids[p]].v, state.l1, w0);
    soft_threshold_lanes<T>(v[ids[p + 1]].v, state.l1, w1);
    score += x[p] * w0;
    odd += x[p + 1] * w1;
  }
  if (p < n) {
    Vector<T> w;
    soft_threshold_lanes<T>(v[ids[p]].v, state.l1, w);
    score += x[p] * w;
  }
  score += odd;

  const Vector<T> y = positive ? one : -one;
  const Vector<T> gradient = y * score - one + diagonal * alpha;
  Vector<T> next = alpha - gradient * inverse;
  next = next > zero ? next : zero;
  next = next < upper_bound ? next : upper_bound;
  const Vector<T> change = spread<T>(active.awake, bit) ? next - alpha : zero;
  const Vector<T> projected = (change > zero ? change : -change) * curvature;
  state.worst.v = projected > state.worst.v ? projected : state.worst.v;
  if (fold(change != zero) == 0) return;

  alpha += change;
  const Vector<T> step = y * change;
  for (p = 0; p < n; ++p) v[ids[p]].v += x[p] * step;
  if (state.learn_bias) state.bias.v += step;
  state.work += static_cast<std::int64_t>(n);
}

/// start + <w, x> in one lane, whose v stands at a stride. Four features at a time, by hand: left
/// alone, g++ makes whole registers of ids and values first and takes them apart again one by one.
template <class T, class I>
SUBLEARN_INLINE T score_one_lane(const SparseVector<T, I>& row, const T* v, T l1, T start) {
  typedef T Four __attribute__((vector_size(4 * sizeof(T))));
  constexpr std::ptrdiff_t stride = kLanes<T>;
  const T* x = row.values.data();
  const I* ids = row.ids.data();
  const Four level = Four{} + l1;
  Four sum = {start};
  std::size_t p = 0;
  for (; p + 4 <= row.size(); p += 4) {
    const Four at_four = {v[ids[p] * stride], v[ids[p + 1] * stride], v[ids[p + 2] * stride],
                          v[ids[p + 3] * stride]};
    Four value;
    std::memcpy(&value, x + p, sizeof(value));
    const Four below = at_four < level ? at_four : level;
    sum += value * (at_four - (below > -level ? below : -level));
  }
  for (; p < row.size(); ++p) sum[0] += x[p] * soft_threshold(v[ids[p] * stride], l1);
  return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

template <bool kWeighted, class T, class I>
SUBLEARN_INLINE void update_one_lane(const SparseVector<T, I>& row, ActiveRow& active, index_t slot,
                                     int lane, SweepState<T>& state) {
  constexpr std::ptrdiff_t stride = kLanes<T>;
  const T* x = row.values.data();
  const I* ids = row.ids.data();
  const std::size_t n = row.size();
  T* v = reinterpret_cast<T*>(state.v) + lane;
  const bool is_positive = (active.positive & lane_bit(lane)) != 0;
  T curvature = state.curvature[slot];
  T diagonal = state.dual_diagonal;
  T upper_bound = state.upper_bound;
  if constexpr (kWeighted) {
    const T weight =
        is_positive ? state.weight[slot] * state.positive_weight[lane] : state.weight[slot];
    diagonal /= weight;
    curvature += diagonal;
    upper_bound *= weight;
  }
  const T inverse = 1 / curvature;

  const T score = score_one_lane<T, I>(row, v, state.l1, state.bias[lane]);
  Pack<T>& alphas = state.alpha[slot];
  const T alpha = alphas[lane];
  const T y = is_positive ? T{1} : T{-1};
  const T gradient = y * score - 1 + diagonal * alpha;
  if (alpha == 0 && gradient >= 0) {
    if (y < 0 && gradient > state.sleep_above[lane]) active.awake &= ~lane_bit(lane);
    return;
  }
  const T next = std::min(std::max(alpha - gradient * inverse, T{0}), upper_bound);
  const T change = next - alpha;
  state.worst.set(lane, std::max(state.worst[lane], (change < 0 ? -change : change) * curvature));
  if (change == 0) return;

  alphas.set(lane, next);
  const T step = y * change;
  for (std::size_t p = 0; p < n; ++p) v[ids[p] * stride] += x[p] * step;
  if (state.learn_bias) state.bias.set(lane, state.bias[lane] + step);
  state.work += static_cast<std::int64_t>(n);
}

/// Asks for all of a row but what lies beyond sixteen lines of values: there the processor has seen
/// where it goes.
template <class T, class I>
SUBLEARN_INLINE void prefetch_row(const SparseVector<T, I>& row) {
  constexpr std::size_t line = 64 / sizeof(T);
  const std::size_t n = std::min(row.size(), 16 * line);
  for (std::size_t p = 0; p < n; p += line) {
    __builtin_prefetch(row.values.data() + p);
    __builtin_prefetch(row.ids.data() + p);
  }
  __builtin_prefetch(row.values.data() + n);
  __builtin_prefetch(row.ids.data() + n);
}

template <bool kWeighted, class T, class I>
SUBLEARN_INLINE void sweep_rows(const CsrView<T, I>& X, std::span<ActiveRow> active,
                                std::span<const index_t> order, SweepState<T>& state) {
  // Rows come in random order: what an update reads is asked for in three steps before it is due.
  constexpr std::size_t kFar = 16, kNear = 8, kNext = 3;
  const Bits<T> bit = lane_bits<T>();
  for (std::size_t s = 0; s < order.size(); ++s) {
    if (s + kFar < order.size()) {
      const index_t slot = order[s + kFar];
      __builtin_prefetch(&active[slot]);
      __builtin_prefetch(&state.alpha[slot]);
      __builtin_prefetch(&state.curvature[slot]);
    }
    if (s + kNear < order.size())
      __builtin_prefetch(X.indptr.address(at(active[order[s + kNear]].row)));
    if (s + kNext < order.size()) {
      prefetch_row(X.row(active[order[s + kNext]].row));
    }
    const index_t slot = order[s];
    ActiveRow& a = active[slot];
    const auto row = X.row(a.row);
    if (std::popcount(a.awake) >= kVectorFrom) {
      state.work += static_cast<std::int64_t>(row.size());
      update_all_lanes<kWeighted, T, I>(row, a, slot, bit, state);
      continue;
    }
    for (LaneMask mask = a.awake; mask != 0; mask &= mask - 1) {
      state.work += static_cast<std::int64_t>(row.size());
      update_one_lane<kWeighted, T, I>(row, a, slot, std::countr_zero(mask), state);
    }
  }
}

// --- search ---------------------------------------------------------------------------------

template <class T>
SUBLEARN_INLINE WeightSums<T> collect(const Pack<T>* v, std::span<const index_t> features, T l1,
                                      LaneMask live, std::vector<Coefficient<T>>& out) {
  WeightSums<T> sums;
  const Vector<T> zero = {};
  const Vector<T> one = zero + T{1};
  const Bits<T> is_live = spread<T>(live, lane_bits<T>());
  Vector<T> absolute = {}, squares = {}, count = {};
  for (std::size_t f = 0; f < features.size(); ++f) {
    Vector<T> w;
    soft_threshold_lanes<T>(v[features[f]].v, l1, w);
    w = is_live ? w : zero;
    const Bits<T> nonzero = w != zero;
    if (fold(nonzero) == 0) continue;
    out.push_back({features[f], 0, {w}});
    absolute += w > zero ? w : -w;
    squares += w * w;
    count += nonzero ? one : zero;
    if (out.size() % kFlushEvery == 0) {
      flush<T>(absolute, sums.absolute);
      flush<T>(squares, sums.squares);
      flush<T>(count, sums.count);
    }
  }
  flush<T>(absolute, sums.absolute);
  flush<T>(squares, sums.squares);
  flush<T>(count, sums.count);
  return sums;
}

template <class T>
SUBLEARN_INLINE std::int64_t add_lists(std::span<Coefficient<T>> weights,
                                       const InvertedLists<T>& lists, index_t begin,
                                       std::span<Pack<T>> scores) {
  std::int64_t visited = 0;
  const index_t end = begin + static_cast<index_t>(scores.size());
  Pack<T>* row_scores = scores.data() - begin;
  for (Coefficient<T>& coefficient : weights) {
    const auto list = lists.list(coefficient.feature);
    const Vector<T> w = coefficient.weight.v;
    std::size_t p = static_cast<std::size_t>(coefficient.n_read);
    for (; p < list.size() && list.ids[p] < end; ++p) {
      row_scores[list.ids[p]].v += list.values[p] * w;
    }
    visited += static_cast<std::int64_t>(p) - coefficient.n_read;
    coefficient.n_read = static_cast<index_t>(p);
  }
  return visited;
}

template <class T, class I>
SUBLEARN_INLINE std::int64_t multiply_rows(const CsrView<T, I>& X, const index_t* place,
                                           const Pack<T>* table, index_t begin,
                                           std::span<Pack<T>> scores) {
  std::int64_t visited = 0;
  for (std::size_t r = 0; r < scores.size(); ++r) {
    const auto row = X.row(begin + static_cast<index_t>(r));
    const T* x = row.values.data();
    const I* ids = row.ids.data();
    Vector<T> even = {}, odd = {};
    std::size_t p = 0;
    for (; p + 2 <= row.size(); p += 2) {
      even += x[p] * table[place[ids[p]]].v;
      odd += x[p + 1] * table[place[ids[p + 1]]].v;
    }
    if (p < row.size()) even += x[p] * table[place[ids[p]]].v;
    scores[r].v = even + odd;
    visited += static_cast<std::int64_t>(row.size());
  }
  return visited;
}

/// Offers a row to the lanes where it violates enough and is not active yet.
template <class T>
SUBLEARN_INLINE void offer_row(index_t i, index_t slot, LaneMask lanes, const Vector<T>& score,
                               Vector<T>& bar, Scan<T>& scan) {
  if (slot >= 0) {
    lanes &= ~scan.active[slot].member;
    if (scan.join_free) {
      scan.active[slot].member |= lanes;
      return;
    }
  }
  for (; lanes != 0; lanes &= lanes - 1) {
    const int l = std::countr_zero(lanes);
    TopK<T>& best = scan.best[l];
    best.offer(i, score[l]);
    if (best.bar() > bar[l]) bar[l] = best.bar();
  }
}

template <bool kWeighted, class T>
SUBLEARN_INLINE void scan_rows(index_t begin, std::span<const Pack<T>> scores, Scan<T>& scan) {
  const Vector<T> zero = {};
  const Vector<T> nothing = zero - std::numeric_limits<T>::infinity();
  const Bits<T> bit = lane_bits<T>();
  const Vector<T> threshold = scan.threshold.v;
  Vector<T> bar = threshold + scan.floor.v;  // rises to the k-th best of a lane as rows go by
  for (int l = 0; l < kLanes<T>; ++l) {
    if (scan.best[l].bar() > bar[l]) bar[l] = scan.best[l].bar();
  }
  Vector<T> violation = {}, squares = {};
  for (std::size_t r = 0; r < scores.size(); ++r) {
    const index_t i = begin + static_cast<index_t>(r);
    const index_t slot = scan.slot_of[i];
    Vector<T> score = scores[r].v;
    if (slot >= 0) {
      scan.active_scores[slot].v = score;
      // Every row is taken for a negative; where it is a positive it must be out of sight.
      // Subtracting it from the sums afterwards would not do: one positive far beyond the margin
      // blurs what a sum in T holds.
      const LaneMask positive = scan.active[slot].positive;
      if (positive != 0) score = spread<T>(positive, bit) ? nothing : score;
    }
    const Vector<T> excess = score > threshold ? score - threshold : zero;
    if constexpr (kWeighted) {
      const Vector<T> weighted = excess * scan.row_weight[i];
      violation += weighted;
      squares += weighted * excess;
    } else {
      violation += excess;
      squares += excess * excess;
    }
    if ((r + 1) % kFlushEvery == 0) {
      flush<T>(violation, scan.violation);
      flush<T>(squares, scan.squares);
    }
    const Bits<T> above = score > bar;
    if (fold(above) != 0) offer_row<T>(i, slot, to_mask<T>(above, bit), score, bar, scan);
  }
  flush<T>(violation, scan.violation);
  flush<T>(squares, scan.squares);
}

template <bool kWeighted, class T>
SUBLEARN_INLINE void add_duals(std::span<const ActiveRow> active, const SweepState<T>& state,
                               DualSums<T>& sums) {
  const Vector<T> zero = {};
  const Vector<T> one = zero + T{1};
  const Bits<T> bit = lane_bits<T>();
  Vector<T> total = {}, squares = {}, signed_total = {}, count = {};
  for (std::size_t s = 0; s < active.size(); ++s) {
    const Vector<T> a = state.alpha[s].v;
    const Bits<T> positive = spread<T>(active[s].positive, bit);
    total += a;
    if constexpr (kWeighted) {
      Vector<T> weight;
      lane_weights<T>(state.weight[s], positive, state, weight);
      squares += a * a / weight;
    } else {
      squares += a * a;
    }
    signed_total += positive ? a : -a;
    count += a > zero ? one : zero;
    if ((s + 1) % kFlushEvery == 0 || s + 1 == active.size()) {
      flush<T>(total, sums.total);
      flush<T>(squares, sums.squares);
      flush<T>(signed_total, sums.signed_total);
      flush<T>(count, sums.count);
    }
  }
}

template <class T>
SUBLEARN_INLINE void drop(std::span<ActiveRow> active, const Pack<T>* alpha, const Pack<T>* scores,
                          const Pack<T>& threshold, LaneMask live) {
  const Vector<T> zero = {};
  const Bits<T> bit = lane_bits<T>();
  for (std::size_t s = 0; s < active.size(); ++s) {
    ActiveRow& a = active[s];
    const Bits<T> busy = (alpha[s].v != zero) | (scores[s].v > threshold.v);
    a.member &= live & (a.positive | to_mask<T>(busy, bit));
  }
}

}  // namespace

// Instruction sets are chosen per function, and g++ does not clone templates: each instantiation
// is spelled out.
#define SUBLEARN_DEFINE_SWEEP(T, I)                                                              \
  template <>                                                                                    \
  SUBLEARN_MULTIVERSION void sweep<T, I>(const CsrView<T, I>& X, std::span<ActiveRow> active,    \
                                         std::span<const index_t> order, SweepState<T>& state) { \
    if (state.weight == nullptr) {                                                               \
      sweep_rows<false, T, I>(X, active, order, state);                                          \
    } else {                                                                                     \
      sweep_rows<true, T, I>(X, active, order, state);                                           \
    }                                                                                            \
  }
#define SUBLEARN_DEFINE_ROWS(T, I)                                                                \
  template <>                                                                                     \
  SUBLEARN_MULTIVERSION std::int64_t score_rows<T, I>(const CsrView<T, I>& X,                     \
                                                      const index_t* place, const Pack<T>* table, \
                                                      index_t begin, std::span<Pack<T>> scores) { \
    return multiply_rows<T, I>(X, place, table, begin, scores);                                   \
  }
SUBLEARN_DEFINE_ROWS(float, index_t)
SUBLEARN_DEFINE_ROWS(double, index_t)
SUBLEARN_DEFINE_SWEEP(float, index_t)
SUBLEARN_DEFINE_SWEEP(double, index_t)

#define SUBLEARN_DEFINE_SEARCH(T)                                                                \
  template <>                                                                                    \
  SUBLEARN_MULTIVERSION WeightSums<T> collect_weights<T>(                                        \
      const Pack<T>* v, std::span<const index_t> features, T l1, LaneMask live,                  \
      std::vector<Coefficient<T>>& out) {                                                        \
    return collect<T>(v, features, l1, live, out);                                               \
  }                                                                                              \
  template <>                                                                                    \
  SUBLEARN_MULTIVERSION std::int64_t add_scores<T>(std::span<Coefficient<T>> weights,            \
                                                   const InvertedLists<T>& lists, index_t begin, \
                                                   std::span<Pack<T>> scores) {                  \
    return add_lists<T>(weights, lists, begin, scores);                                          \
  }                                                                                              \
  template <>                                                                                    \
  SUBLEARN_MULTIVERSION void find_violators<T>(index_t begin, std::span<const Pack<T>> scores,   \
                                               Scan<T> & scan) {                                 \
    if (scan.row_weight == nullptr) {                                                            \
      scan_rows<false, T>(begin, scores, scan);                                                  \
    } else {                                                                                     \
      scan_rows<true, T>(begin, scores, scan);                                                   \
    }                                                                                            \
  }                                                                                              \
  template <>                                                                                    \
  SUBLEARN_MULTIVERSION DualSums<T> sum_duals<T>(std::span<const ActiveRow> active,              \
                                                 const SweepState<T>& state) {                   \
    DualSums<T> sums;                                                                            \
    if (state.weight == nullptr) {                                                               \
      add_duals<false, T>(active, state, sums);                                                  \
    } else {                                                                                     \
      add_duals<true, T>(active, state, sums);                                                   \
    }                                                                                            \
    return sums;                                                                                 \
  }                                                                                              \
  template <>                                                                                    \
  SUBLEARN_MULTIVERSION void drop_idle<T>(std::span<ActiveRow> active, const Pack<T>* alpha,     \
                                          const Pack<T>* scores, const Pack<T>& threshold,       \
                                          LaneMask live) {                                       \
    drop<T>(active, alpha, scores, threshold, live);                                             \
  }
SUBLEARN_DEFINE_SEARCH(float)
SUBLEARN_DEFINE_SEARCH(double)

}  // namespace sublearn
