// The inner loops of PPD-Sparse on a block of labels, one label per lane. Compiled once per
// instruction set in cpp/src/ppd_sparse_kernels.cpp; solvers/ppd_sparse/solver.hpp says what they
// are for.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sublearn/core/lanes.hpp"
#include "sublearn/core/top_k.hpp"
#include "sublearn/core/types.hpp"
#include "sublearn/core/views.hpp"
#include "sublearn/search/inverted_lists.hpp"

namespace sublearn {

/// A row in the active set: the lanes it is active in, and those it is a positive of.
struct ActiveRow {
  index_t row = 0;
  LaneMask member = 0;
  LaneMask positive = 0;
  LaneMask awake = 0;  ///< members not put to sleep within the current correction
};

/// What a sweep of coordinate descent reads and writes.
template <class T>
struct SweepState {
  Pack<T>* v = nullptr;          ///< X'(y alpha), per feature; the weights are soft(v, l1)
  Pack<T>* alpha = nullptr;      ///< dual variables, per active row
  const T* curvature = nullptr;  ///< of the dual along one coordinate, per active row; without the
                                 ///< loss's own part if there are weights
  const T* weight = nullptr;     ///< of the loss, per active row; null if all are 1
  Pack<T> positive_weight;       ///< a further factor where a row is a positive; read with `weight`
  Pack<T> bias;
  Pack<T> worst;        ///< out: largest projected gradient met
  Pack<T> sleep_above;  ///< a dual at zero whose gradient is larger rests until the next search
  T l1 = 0;
  T dual_diagonal = 0;
  T upper_bound = 0;
  bool learn_bias = false;
  std::int64_t work = 0;  ///< out: matrix entries visited
};

/// One pass of dual coordinate descent (Yen 2018, algorithm 3) over `order`, positions in `active`.
template <class T, class I>
void sweep(const CsrView<T, I>& X, std::span<ActiveRow> active, std::span<const index_t> order,
           SweepState<T>& state);

/// A feature and its weight in each lane.
template <class T>
struct Coefficient {
  index_t feature;
  index_t n_read = 0;  ///< entries of the feature's list that add_scores has passed
  Pack<T> weight;
};

/// Sums over the weights of each lane.
template <class T>
struct WeightSums {
  LaneSums<T> absolute{};
  LaneSums<T> squares{};
  LaneSums<T> count{};
};

/// Lists the features with a non-zero weight soft(v, l1) in a live lane.
template <class T>
WeightSums<T> collect_weights(const Pack<T>* v, std::span<const index_t> features, T l1,
                              LaneMask live, std::vector<Coefficient<T>>& out);

/// scores += X w for the rows begin .. begin + scores.size() - 1, through the inverted lists (Yen
/// 2018, 2.35). Calls go up through the rows without a gap, from 0. Returns the entries visited.
template <class T>
std::int64_t add_scores(std::span<Coefficient<T>> weights, const InvertedLists<T>& lists,
                        index_t begin, std::span<Pack<T>> scores);

/// The same scores, made row by row: `table` holds a pack of zeros, then the weights of feature j
/// at place[j] where that is not 0. A sum stays in registers, but every entry of a row is read.
template <class T, class I>
std::int64_t score_rows(const CsrView<T, I>& X, const index_t* place, const Pack<T>* table,
                        index_t begin, std::span<Pack<T>> scores);

/// Where find_violators looks, and what it finds.
template <class T>
struct Scan {
  std::span<const index_t> slot_of;  ///< position of a row in `active`, or -1
  std::span<ActiveRow> active;
  Pack<T>* active_scores = nullptr;  ///< out: the scores of the active rows
  const T* row_weight = nullptr;     ///< of the loss, per row; null if all are 1
  Pack<T> threshold;        ///< negatives scoring above it violate; infinite in finished lanes
  Pack<T> floor;            ///< rows that violate by less do not compete; not negative
  bool join_free = false;   ///< let every violating lane of an active row in, without competition;
                            ///< `best` must then have room for all rows
  std::span<TopK<T>> best;  ///< per lane: rows not active there, worst violators first
  LaneSums<T> violation{};  ///< out: sum of weight * (score - threshold)_+ over all negatives
  LaneSums<T> squares{};    ///< out: sum of weight * (score - threshold)_+^2
};

/// Looks once at the scores of the rows begin .. begin + scores.size() - 1.
template <class T>
void find_violators(index_t begin, std::span<const Pack<T>> scores, Scan<T>& scan);

/// Sums over the dual variables of each lane.
template <class T>
struct DualSums {
  LaneSums<T> total{};
  LaneSums<T> squares{};       ///< sum of alpha^2 / weight
  LaneSums<T> signed_total{};  ///< sum of y alpha
  LaneSums<T> count{};         ///< non-zeros
};

/// Reads alpha and the weights of a state.
template <class T>
DualSums<T> sum_duals(std::span<const ActiveRow> active, const SweepState<T>& state);

/// Takes out of each row's members the lanes that are finished, and those where the row is a
/// negative with a zero dual that does not violate. `alpha` and `scores` stand beside `active`.
template <class T>
void drop_idle(std::span<ActiveRow> active, const Pack<T>* alpha, const Pack<T>* scores,
               const Pack<T>& threshold, LaneMask live);

}  // namespace sublearn
