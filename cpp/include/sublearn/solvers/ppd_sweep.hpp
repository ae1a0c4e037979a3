// The two inner loops of PPD-Sparse, on a block of labels at once. Compiled per instruction set in
// cpp/src/ppd_sweep.cpp for float and double data with 32- and 64-bit indices.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sublearn/core/lanes.hpp"
#include "sublearn/core/types.hpp"
#include "sublearn/core/views.hpp"

namespace sublearn {

/// An active row of a block: the lanes (labels) it is active in, and those it is a positive of.
struct ActiveRow {
  index_t row = 0;
  LaneMask member = 0;
  LaneMask positive = 0;
  LaneMask awake = 0;  ///< members not shrunk away within the current correction
};

/// What one sweep of coordinate descent reads and writes. Pack arrays are indexed by feature or slot.
template <class T>
struct SweepState {
  Pack<T>* v = nullptr;      ///< X'(y alpha), one pack per feature
  Pack<T>* alpha = nullptr;  ///< dual variables, one pack per active row
  const T* curvature = nullptr;  ///< upper bound on the second derivative, per active row
  Pack<T> bias;
  Pack<T> worst;       ///< out: largest projected gradient met, per lane
  Pack<T> shrink_above;  ///< a zero dual with a larger gradient falls asleep
  T l1 = 0;
  T dual_diagonal = 0;
  T upper_bound = 0;
  bool learn_bias = false;
  std::int64_t work = 0;  ///< matrix entries visited
};

/// One pass of dual coordinate descent (000, algorithm 3) over `order` (slots of `active`).
void sweep(const CsrView<float, std::int32_t>& X, std::span<ActiveRow> active,
           std::span<const index_t> order, SweepState<float>& state);
void sweep(const CsrView<float, std::int64_t>& X, std::span<ActiveRow> active,
           std::span<const index_t> order, SweepState<float>& state);
void sweep(const CsrView<double, std::int32_t>& X, std::span<ActiveRow> active,
           std::span<const index_t> order, SweepState<double>& state);
void sweep(const CsrView<double, std::int64_t>& X, std::span<ActiveRow> active,
           std::span<const index_t> order, SweepState<double>& state);

/// scores[row] += weight * value for each entry of an inverted list (000, 2.35).
void add_list(const SparseVector<float, index_t>& list, const Pack<float>& weight,
              Pack<float>* scores);
void add_list(const SparseVector<double, index_t>& list, const Pack<double>& weight,
              Pack<double>* scores);

/// A row and the lanes in which its score is above the lane's threshold.
struct Hit {
  index_t row;
  LaneMask lanes;
};
void append_hits(std::span<const Pack<float>> scores, const Pack<float>& threshold,
                 std::vector<Hit>& out);
void append_hits(std::span<const Pack<double>> scores, const Pack<double>& threshold,
                 std::vector<Hit>& out);

}  // namespace sublearn
