// Inner-product search for all queries of a mini-batch at once.
//
// A single query reads the rows of its clusters from memory and uses each once. Here the queries
// of a batch that look at the same cluster are put side by side, so that a row that is read serves
// all of them.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "sublearn/core/parallel_for.hpp"
#include "sublearn/core/top_k.hpp"
#include "sublearn/search/clustered_rows.hpp"

namespace sublearn {

/// All rows of the clusters that each query likes best, with their scores. Memory is kept from one
/// batch to the next.
class BatchSearch {
 public:
  /// Queries lie `stride` numbers apart, with all coordinates.
  void run(const ClusteredRows& rows, const float* queries, offset_t n_queries, offset_t stride,
           offset_t n_probe, int n_threads) {
    const offset_t most = n_chosen_ = std::min(n_probe, rows.n_clusters());
    scratch_.resize(static_cast<std::size_t>(std::max(n_threads, 1)));
    choose_clusters(rows, queries + rows.first(), n_queries, stride, most, n_threads);
    place_results(rows, n_queries, most);
    group_by_cluster(rows.n_clusters(), most);
    parallel_for(rows.n_clusters(), n_threads, [&](offset_t c, int thread) {
      scan(rows, c, queries + rows.first(), stride, scratch_[at(thread)]);
    });
    work = n_queries * rows.n_clusters() + begin_.back();
  }

  std::span<const index_t> ids(offset_t query) const { return part(ids_, query); }
  std::span<const float> scores(offset_t query) const { return part(scores_, query); }

  /// Scores of the rows of the less liked half of a query's clusters, the middle one included.
  std::span<const float> second_half(offset_t query) const {
    const offset_t begin = place_[query * n_chosen_ + n_chosen_ / 2];
    return std::span<const float>(scores_).subspan(
        static_cast<std::size_t>(begin), static_cast<std::size_t>(begin_[query + 1] - begin));
  }

  /// Inner products of the last batch, those with centres included.
  offset_t work = 0;

 private:
  struct Scratch {
    std::vector<float> queries;
    std::vector<float> scores;
    TopK<float> best;
  };
  /// A query that looks at a cluster, and where its scores go.
  struct Visit {
    offset_t query;
    offset_t place;
  };
  static constexpr offset_t kAtOnce = 16;

  template <class T>
  std::span<const T> part(const std::vector<T>& all, offset_t query) const {
    return std::span<const T>(all).subspan(
        static_cast<std::size_t>(begin_[query]),
        static_cast<std::size_t>(begin_[query + 1] - begin_[query]));
  }

  void choose_clusters(const ClusteredRows& rows, const float* queries, offset_t n_queries,
                       offset_t stride, offset_t most, int n_threads) {
    chosen_.assign(static_cast<std::size_t>(n_queries * most), -1);
    const offset_t n_blocks = (n_queries + kAtOnce - 1) / kAtOnce;
    const offset_t wide = n_packs(rows.n_clusters()) * kPackRows;
    parallel_for(n_blocks, n_threads, [&](offset_t block, int thread) {
      Scratch& s = scratch_[at(thread)];
      const offset_t first = block * kAtOnce, count = std::min(kAtOnce, n_queries - first);
      s.scores.resize(static_cast<std::size_t>(count * wide));
      lane_products(rows.centres(), n_packs(rows.n_clusters()), rows.dim(),
                    queries + first * stride, count, stride, s.scores.data(), wide);
      for (offset_t q = 0; q < count; ++q) {
        const std::span<const float> scores(s.scores.data() + q * wide,
                                            static_cast<std::size_t>(rows.n_clusters()));
        offset_t slot = (first + q) * most;
        for (const Scored<float>& item :
             top_k<float>(scores, static_cast<std::size_t>(most), s.best))
          chosen_[slot++] = item.id;
      }
    });
  }

  /// Where the rows of each query and cluster go: query by query, best cluster first.
  void place_results(const ClusteredRows& rows, offset_t n_queries, offset_t most) {
    begin_.assign(static_cast<std::size_t>(n_queries) + 1, 0);
    place_.resize(chosen_.size());
    offset_t next = 0;
    for (offset_t q = 0; q < n_queries; ++q) {
      for (offset_t slot = q * most; slot < (q + 1) * most; ++slot) {
        place_[slot] = next;
        next += rows.size(chosen_[slot]);
      }
      begin_[q + 1] = next;
    }
    if (ids_.size() < static_cast<std::size_t>(next)) {
      ids_.resize(static_cast<std::size_t>(next));
      scores_.resize(static_cast<std::size_t>(next));
    }
  }

  void group_by_cluster(offset_t n_clusters, offset_t most) {
    first_visit_.assign(static_cast<std::size_t>(n_clusters) + 1, 0);
    for (const index_t c : chosen_) ++first_visit_[c + 1];
    for (offset_t c = 0; c < n_clusters; ++c) first_visit_[c + 1] += first_visit_[c];
    visits_.resize(chosen_.size());
    next_visit_.assign(first_visit_.begin(), first_visit_.end() - 1);
    for (std::size_t slot = 0; slot < chosen_.size(); ++slot)
      visits_[next_visit_[chosen_[slot]]++] = {static_cast<offset_t>(slot) / most, place_[slot]};
  }

  void scan(const ClusteredRows& rows, offset_t c, const float* queries, offset_t stride,
            Scratch& s) {
    const offset_t dim = rows.dim(), size = rows.size(c), wide = n_packs(size) * kPackRows;
    for (offset_t v = first_visit_[c]; v < first_visit_[c + 1]; v += kAtOnce) {
      const offset_t count = std::min(kAtOnce, first_visit_[c + 1] - v);
      s.queries.resize(static_cast<std::size_t>(count * dim));
      s.scores.resize(static_cast<std::size_t>(count * wide));
      for (offset_t q = 0; q < count; ++q)
        std::copy_n(queries + visits_[v + q].query * stride, dim, s.queries.data() + q * dim);
      lane_products(rows.packs(c), n_packs(size), dim, s.queries.data(), count, dim,
                    s.scores.data(), wide);
      for (offset_t q = 0; q < count; ++q) {
        std::copy_n(s.scores.data() + q * wide, size, scores_.data() + visits_[v + q].place);
        std::copy_n(rows.ids(c), size, ids_.data() + visits_[v + q].place);
      }
    }
  }

  offset_t n_chosen_ = 0;  // clusters that each query looks at
  std::vector<index_t> chosen_;
  std::vector<offset_t> place_, begin_, first_visit_, next_visit_;
  std::vector<Visit> visits_;
  std::vector<index_t> ids_;
  std::vector<float> scores_;
  std::vector<Scratch> scratch_;
};

}  // namespace sublearn
