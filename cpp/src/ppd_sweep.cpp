#include "sublearn/solvers/ppd_sweep.hpp"

#include <bit>
#include <cmath>
#include <cstring>

#include "sublearn/core/multiversion.hpp"
#include "sublearn/prox/soft_threshold.hpp"

namespace sublearn {
namespace {

// Rows active in fewer lanes than this are updated lane by lane.
constexpr int kVectorFrom = 3;

template <class T>
struct Constants {
  typename Pack<T>::Bits bit;
  Constants() {
    for (int l = 0; l < kLanes<T>; ++l) bit[l] = typename Pack<T>::Integer{1} << l;
  }
};
template <class T>
const Constants<T> kConstants;

template <class V, class T>
SUBLEARN_INLINE void soft_pack(const V& v, T level, V& out) {
  const V below = v < level ? v : level - V{};
  const V inside = below > -level ? below : -level - V{};
  out = v - inside;
}

template <class Bits>
SUBLEARN_INLINE bool any(const Bits& bits) {
  std::uint64_t word[8];
  std::memcpy(word, &bits, sizeof(word));
  return ((word[0] | word[1]) | (word[2] | word[3]) | (word[4] | word[5]) | (word[6] | word[7])) != 0;
}

/// The step of one dual coordinate: minimises its quadratic upper bound over [0, upper].
template <class T, class I>
SUBLEARN_INLINE void update_lanes(const SparseVector<T, I>& row, ActiveRow& active, T curvature,
                                  typename Pack<T>::Vector& alpha, SweepState<T>& state) {
  using Vector = typename Pack<T>::Vector;
  using Bits = typename Pack<T>::Bits;
  const T* x = row.values.data();
  const I* ids = row.ids.data();
  const std::size_t n = row.size();
  Pack<T>* v = state.v;

  Vector score0 = state.bias.v, score1 = {};
  std::size_t p = 0;
  for (; p + 2 <= n; p += 2) {
    Vector w0, w1;
    soft_pack(v[ids[p]].v, state.l1, w0);
    soft_pack(v[ids[p + 1]].v, state.l1, w1);
    score0 += x[p] * w0;
    score1 += x[p + 1] * w1;
  }
  if (p < n) {
    Vector w0;
    soft_pack(v[ids[p]].v, state.l1, w0);
    score0 += x[p] * w0;
  }
  score0 += score1;

  using Integer = typename Pack<T>::Integer;
  const Bits bit = kConstants<T>.bit;
  const Bits awake = (bit & (Bits{} + static_cast<Integer>(active.awake))) != 0;
  const Bits positive = (bit & (Bits{} + static_cast<Integer>(active.positive))) != 0;
  const Vector zero = {};
  const Vector one = zero + T{1};
  const Vector y = positive ? one : -one;
  const Vector g = y * score0 - one + state.dual_diagonal * alpha;
  const Vector target = alpha - g / curvature;
  Vector next = target > zero ? target : zero;
  next = next < state.upper_bound ? next : zero + state.upper_bound;
  next = awake ? next : alpha;
  const Vector change = next - alpha;
  const Vector size = change > zero ? change : -change;
  const Vector move = size * curvature;  // the projected gradient, cut where the box cuts the step
  state.worst.v = move > state.worst.v ? move : state.worst.v;
  const Bits moved = change != zero;
  if (!any(moved)) return;
  alpha = next;
  const Vector step = y * change;
  for (p = 0; p < n; ++p) v[ids[p]].v += x[p] * step;
  if (state.learn_bias) state.bias.v += step;
  state.work += static_cast<std::int64_t>(n);
}

template <class T, class I>
SUBLEARN_INLINE void update_lane(const SparseVector<T, I>& row, ActiveRow& active, T curvature,
                                 int lane, Pack<T>& alpha_pack, SweepState<T>& state) {
  const T* x = row.values.data();
  const I* ids = row.ids.data();
  const std::size_t n = row.size();
  T* v = reinterpret_cast<T*>(state.v) + lane;
  constexpr std::ptrdiff_t stride = kLanes<T>;
  T* bias = reinterpret_cast<T*>(&state.bias) + lane;
  T* worst = reinterpret_cast<T*>(&state.worst) + lane;
  T* alpha_at = reinterpret_cast<T*>(&alpha_pack) + lane;

  T score0 = *bias, score1 = 0, score2 = 0, score3 = 0;
  std::size_t p = 0;
  for (; p + 4 <= n; p += 4) {
    score0 += x[p] * soft_threshold(v[ids[p] * stride], state.l1);
    score1 += x[p + 1] * soft_threshold(v[ids[p + 1] * stride], state.l1);
    score2 += x[p + 2] * soft_threshold(v[ids[p + 2] * stride], state.l1);
    score3 += x[p + 3] * soft_threshold(v[ids[p + 3] * stride], state.l1);
  }
  for (; p < n; ++p) score0 += x[p] * soft_threshold(v[ids[p] * stride], state.l1);
  const T score = (score0 + score1) + (score2 + score3);

  const T alpha = *alpha_at;
  const LaneMask bit = LaneMask{1} << lane;
  const T y = (active.positive & bit) ? T{1} : T{-1};
  const T g = y * score - 1 + state.dual_diagonal * alpha;
  if (alpha == 0 && g >= 0) {
    if (g > state.shrink_above[lane] && y < 0) active.awake &= ~bit;
    return;
  }
  const T target = alpha - g / curvature;
  T next = target > 0 ? target : 0;
  next = next < state.upper_bound ? next : state.upper_bound;
  const T change = next - alpha;
  const T move = (change > 0 ? change : -change) * curvature;
  if (move > *worst) *worst = move;
  if (change == 0) return;
  *alpha_at = next;
  const T step = y * change;
  for (p = 0; p < n; ++p) v[ids[p] * stride] += x[p] * step;
  if (state.learn_bias) *bias += step;
  state.work += static_cast<std::int64_t>(n);
}

template <class T, class I>
SUBLEARN_INLINE void sweep_rows(const CsrView<T, I>& X, std::span<ActiveRow> active,
                                std::span<const index_t> order, SweepState<T>& state) {
  for (std::size_t s = 0; s < order.size(); ++s) {
    const index_t slot = order[s];
    if (s + 2 < order.size()) {
      const auto ahead = X.row(active[order[s + 2]].row);
      __builtin_prefetch(ahead.values.data());
      __builtin_prefetch(ahead.ids.data());
      __builtin_prefetch(&state.alpha[order[s + 2]]);
    }
    ActiveRow& a = active[slot];
    const auto row = X.row(a.row);
    if (std::popcount(a.awake) >= kVectorFrom) {
      state.work += static_cast<std::int64_t>(row.size());
      update_lanes<T, I>(row, a, state.curvature[slot], state.alpha[slot].v, state);
    } else {
      for (LaneMask mask = a.awake; mask != 0; mask &= mask - 1) {
        state.work += static_cast<std::int64_t>(row.size());
        update_lane<T, I>(row, a, state.curvature[slot], std::countr_zero(mask), state.alpha[slot], state);
      }
    }
  }
}

template <class T>
SUBLEARN_INLINE void add_list_lanes(const SparseVector<T, index_t>& list, const Pack<T>& weight,
                                    Pack<T>* scores) {
  const auto w = weight.v;
  for (std::size_t p = 0; p < list.size(); ++p) scores[list.ids[p]].v += list.values[p] * w;
}

template <class T>
SUBLEARN_INLINE void append_hits_lanes(std::span<const Pack<T>> scores, const Pack<T>& threshold,
                                       std::vector<Hit>& out) {
  const auto limit = threshold.v;
  const typename Pack<T>::Bits bit = kConstants<T>.bit;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const typename Pack<T>::Bits above = scores[i].v > limit;
    if (!any(above)) continue;
    const typename Pack<T>::Bits bits = above & bit;
    typename Pack<T>::Integer mask = 0;
    for (int l = 0; l < kLanes<T>; ++l) mask |= bits[l];
    out.push_back({static_cast<index_t>(i), static_cast<LaneMask>(mask)});
  }
}

}  // namespace

#define SUBLEARN_DEFINE_SWEEP(T, I)                                                          \
  SUBLEARN_MULTIVERSION void sweep(const CsrView<T, I>& X, std::span<ActiveRow> active,      \
                                   std::span<const index_t> order, SweepState<T>& state) {   \
    sweep_rows<T, I>(X, active, order, state);                                               \
  }
SUBLEARN_DEFINE_SWEEP(float, std::int32_t)
SUBLEARN_DEFINE_SWEEP(float, std::int64_t)
SUBLEARN_DEFINE_SWEEP(double, std::int32_t)
SUBLEARN_DEFINE_SWEEP(double, std::int64_t)

#define SUBLEARN_DEFINE_SEARCH(T)                                                                 \
  SUBLEARN_MULTIVERSION void add_list(const SparseVector<T, index_t>& list, const Pack<T>& weight, \
                                      Pack<T>* scores) {                                          \
    add_list_lanes<T>(list, weight, scores);                                                      \
  }                                                                                               \
  SUBLEARN_MULTIVERSION void append_hits(std::span<const Pack<T>> scores,                         \
                                         const Pack<T>& threshold, std::vector<Hit>& out) {       \
    append_hits_lanes<T>(scores, threshold, out);                                                 \
  }
SUBLEARN_DEFINE_SEARCH(float)
SUBLEARN_DEFINE_SEARCH(double)

}  // namespace sublearn
