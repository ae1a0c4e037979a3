// Some coordinates of the rows of a weight matrix, cluster by cluster, for searches that take a
// whole mini-batch at a time (batch_search.hpp).
//
// What is kept is a copy: rows that change go on being found by their old values until `refresh` or
// `update`. The former lets each row that has moved far look for its cluster again, at one inner
// product per centre, and copies all rows anew. The latter does it for the rows that have changed
// and leaves the others alone. MipsIndex is for queries that come one at a time.
#pragma once

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "sublearn/core/lane_products.hpp"
#include "sublearn/core/parallel_for.hpp"
#include "sublearn/core/types.hpp"

namespace sublearn {

class ClusteredRows {
 public:
  /// Coordinates first .. first + dim - 1 of rows `stride` apart. `centres` are rows of `dim`
  /// numbers; row k belongs to cluster cluster_of[k].
  ClusteredRows(offset_t first, offset_t dim, std::span<const float> centres,
                std::vector<index_t> cluster_of, const float* rows, offset_t stride)
      : first_(first), dim_(dim), cluster_of_(std::move(cluster_of)) {
    const auto n_centres = static_cast<offset_t>(centres.size()) / dim;
    centres_.assign(static_cast<std::size_t>(n_packs(n_centres) * dim * kPackRows), 0.0F);
    for (offset_t c = 0; c < n_centres; ++c)
      set_lane(centres_.data(), dim, c, centres.data() + c * dim);
    begin_.resize(static_cast<std::size_t>(n_centres) + 1);
    pack(rows, stride);
  }

  offset_t first() const { return first_; }
  offset_t dim() const { return dim_; }
  offset_t n_clusters() const { return static_cast<offset_t>(begin_.size()) - 1; }
  const float* centres() const { return centres_.data(); }

  /// Rows of a cluster: how many, their ids, and their packs.
  offset_t size(offset_t c) const { return size_[c]; }
  const index_t* ids(offset_t c) const { return ids_.data() + begin_[c] * kPackRows; }
  const float* packs(offset_t c) const { return packs_.data() + begin_[c] * dim_ * kPackRows; }

  /// New values of all rows; those in `far` may change their cluster.
  void refresh(std::span<const index_t> far, const float* rows, offset_t stride, int n_threads) {
    choose_clusters(far, rows, stride, n_threads);
    for (std::size_t p = 0; p < far.size(); ++p) cluster_of_[far[p]] = chosen_[p];
    pack(rows, stride);
  }

  /// New values of the rows in `changed`, which look for their clusters; the others stay as they
  /// were. Where a cluster has no room left, all rows are copied anew.
  void update(std::span<const index_t> changed, const float* rows, offset_t stride, int n_threads) {
    choose_clusters(changed, rows, stride, n_threads);
    bool has_room = true;
    for (std::size_t p = 0; p < changed.size(); ++p) {
      const index_t k = changed[p], c = chosen_[p];
      if (c != cluster_of_[k]) {
        has_room = has_room && move(k, c);
        cluster_of_[k] = c;
      }
      if (has_room) write(k, rows, stride);
    }
    if (!has_room) pack(rows, stride);
  }

 private:
  static constexpr offset_t kAtOnce = 16;
  static constexpr offset_t kSpare = 1;  // packs of a cluster for rows that come later

  /// `chosen_`: the centre of largest inner product with each of these rows.
  void choose_clusters(std::span<const index_t> ids, const float* rows, offset_t stride,
                       int n_threads) {
    const auto n = static_cast<offset_t>(ids.size());
    const offset_t n_blocks = (n + kAtOnce - 1) / kAtOnce, wide = n_packs(n_clusters()) * kPackRows;
    std::vector<float> pieces(static_cast<std::size_t>(n * dim_));
    for (offset_t p = 0; p < n; ++p)
      std::copy_n(rows + ids[p] * stride + first_, dim_, pieces.data() + p * dim_);
    chosen_.resize(ids.size());
    parallel_for(n_blocks, n_threads, [&](offset_t block, int) {
      const offset_t from = block * kAtOnce, count = std::min(kAtOnce, n - from);
      std::vector<float> scores(static_cast<std::size_t>(count * wide));
      lane_products(centres_.data(), n_packs(n_clusters()), dim_, pieces.data() + from * dim_,
                    count, dim_, scores.data(), wide);
      for (offset_t p = 0; p < count; ++p) {
        const float* of_row = scores.data() + p * wide;
        chosen_[from + p] =
            static_cast<index_t>(std::max_element(of_row, of_row + n_clusters()) - of_row);
      }
    });
  }

  /// Takes a row out of its cluster, whose last row fills the gap, and puts it behind the rows of
  /// another; whether there was room.
  bool move(index_t k, index_t to) {
    const offset_t room = (begin_[to + 1] - begin_[to]) * kPackRows;
    if (size_[to] == room) return false;
    const index_t from = cluster_of_[k];
    const offset_t last = --size_[from], gap = slot_[k];
    const index_t filler = ids_[begin_[from] * kPackRows + last];
    float* packs = packs_.data() + begin_[from] * dim_ * kPackRows;
    for (offset_t d = 0; d < dim_; ++d)
      lane(packs, gap)[d * kPackRows] = lane(packs, last)[d * kPackRows];
    ids_[begin_[from] * kPackRows + gap] = filler;
    slot_[filler] = static_cast<index_t>(gap);
    slot_[k] = static_cast<index_t>(size_[to]);
    ids_[begin_[to] * kPackRows + size_[to]++] = k;
    return true;
  }

  float* lane(float* packs, offset_t slot) const {
    return packs + slot / kPackRows * dim_ * kPackRows + slot % kPackRows;
  }

  void write(index_t k, const float* rows, offset_t stride) {
    set_lane(packs_.data() + begin_[cluster_of_[k]] * dim_ * kPackRows, dim_, slot_[k],
             rows + static_cast<offset_t>(k) * stride + first_);
  }

  void pack(const float* rows, offset_t stride) {
    size_.assign(static_cast<std::size_t>(n_clusters()), 0);
    for (const index_t c : cluster_of_) ++size_[c];
    begin_[0] = 0;
    for (offset_t c = 0; c < n_clusters(); ++c)
      begin_[c + 1] = begin_[c] + n_packs(size_[c]) + kSpare;
    ids_.resize(static_cast<std::size_t>(begin_.back() * kPackRows));
    packs_.assign(static_cast<std::size_t>(begin_.back() * dim_ * kPackRows), 0.0F);
    slot_.resize(cluster_of_.size());
    std::vector<offset_t> next(static_cast<std::size_t>(n_clusters()), 0);
    for (std::size_t k = 0; k < cluster_of_.size(); ++k) {
      const index_t c = cluster_of_[k];
      const offset_t slot = next[c]++;
      ids_[begin_[c] * kPackRows + slot] = static_cast<index_t>(k);
      slot_[k] = static_cast<index_t>(slot);
      set_lane(packs_.data() + begin_[c] * dim_ * kPackRows, dim_, slot,
               rows + static_cast<offset_t>(k) * stride + first_);
    }
  }

  offset_t first_, dim_;
  std::vector<float> centres_;       // packs
  std::vector<index_t> cluster_of_;  // by row
  std::vector<index_t> slot_;        // by row: its place in the cluster
  std::vector<index_t> chosen_;
  std::vector<offset_t> begin_, size_;  // by cluster: its first pack, its rows
  std::vector<index_t> ids_;
  std::vector<float> packs_;
};

}  // namespace sublearn
