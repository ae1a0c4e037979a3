// Maximum inner-product search over the rows of a matrix: spherical clusters, scanned in the order
// of what they promise.
//
// Rows lie cluster by cluster, each with the unit centre that has the largest inner product with
// it. A query meets all centres, then the rows of the `n_probe` clusters whose centres it likes
// best; or, exactly, of all clusters whose bound is above the k-th best row so far. With
// theta the angle between query and centre and theta_c the widest angle of a row to the centre,
//
//   max over rows <q, w>  <=  |q| max|w| cos(max(0, theta - theta_c))        (cos >= 0)
//                         <=  |q| min|w| cos(theta - theta_c)                (cos < 0)
//
// A row that changes moves at the cost of one inner product per centre. Norms and angles of a
// cluster then only widen, so bounds stay valid; `tighten` measures them anew.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

#include "sublearn/core/aligned.hpp"
#include "sublearn/core/inner_products.hpp"
#include "sublearn/core/monitor.hpp"
#include "sublearn/core/parallel_for.hpp"
#include "sublearn/core/top_k.hpp"
#include "sublearn/core/types.hpp"

namespace sublearn {

/// Rows of one cluster: float32, or 8-bit numbers with a scale for each row. They belong to a
/// mapped file until the first change.
template <class T>
class RowCluster {
  static constexpr bool kIsScaled = std::is_same_v<T, std::int8_t>;

 public:
  RowCluster() = default;
  /// `scales` is null for float32.
  RowCluster(const T* rows, const float* scales, const index_t* ids, offset_t n_rows,
             offset_t stride)
      : rows_(rows), scales_(scales), ids_(ids), n_rows_(n_rows), stride_(stride) {}

  const T* rows() const { return rows_; }
  const float* scales() const { return scales_; }
  std::span<const index_t> ids() const { return {ids_, static_cast<std::size_t>(n_rows_)}; }
  offset_t size() const { return n_rows_; }

  /// A row as it is searched; `scratch` holds it where it is not float32.
  const float* row(offset_t slot, std::vector<float>& scratch) const {
    const T* stored = rows_ + slot * stride_;
    if constexpr (kIsScaled) {
      scratch.resize(static_cast<std::size_t>(stride_));
      for (offset_t d = 0; d < stride_; ++d) scratch[d] = scales_[slot] * stored[d];
      return scratch.data();
    } else {
      return stored;
    }
  }

  void products(const float* queries, offset_t n_queries, float* out) const {
    if constexpr (kIsScaled)
      inner_products(rows_, scales_, n_rows_, queries, n_queries, stride_, out);
    else
      inner_products(rows_, n_rows_, queries, n_queries, stride_, out);
  }

  /// Bounds of the rows: lengths, and the cosine of the widest angle to the centre.
  float longest = 0.0F;
  float shortest = 0.0F;
  float least_cosine = 1.0F;

  void append(index_t id, const float* row) {
    own();
    own_rows_.resize(own_rows_.size() + static_cast<std::size_t>(stride_));
    if constexpr (kIsScaled) own_scales_.push_back(0.0F);
    own_ids_.push_back(id);
    point_at_own();
    replace(n_rows_ - 1, row);
  }

  void replace(offset_t slot, const float* row) {
    own();
    T* place = own_rows_.data() + slot * stride_;
    if constexpr (kIsScaled)
      own_scales_[static_cast<std::size_t>(slot)] = quantise(row, stride_, place);
    else
      std::copy_n(row, stride_, place);
  }

  /// Takes a row out and puts the last one in its place; returns the id of the row that moved.
  index_t remove(offset_t slot) {
    own();
    const offset_t last = n_rows_ - 1;
    std::copy_n(own_rows_.begin() + last * stride_, stride_, own_rows_.begin() + slot * stride_);
    own_rows_.resize(static_cast<std::size_t>(last * stride_));
    if constexpr (kIsScaled) {
      own_scales_[static_cast<std::size_t>(slot)] = own_scales_.back();
      own_scales_.pop_back();
    }
    own_ids_[slot] = own_ids_[last];
    own_ids_.pop_back();
    point_at_own();
    return slot < last ? own_ids_[slot] : -1;
  }

 private:
  void own() {
    if (is_own_) return;
    own_rows_.assign(rows_, rows_ + n_rows_ * stride_);
    if constexpr (kIsScaled) own_scales_.assign(scales_, scales_ + n_rows_);
    own_ids_.assign(ids_, ids_ + n_rows_);
    is_own_ = true;
    point_at_own();
  }
  void point_at_own() {
    rows_ = own_rows_.data();
    scales_ = own_scales_.data();
    ids_ = own_ids_.data();
    n_rows_ = static_cast<offset_t>(own_ids_.size());
  }

  const T* rows_ = nullptr;
  const float* scales_ = nullptr;
  const index_t* ids_ = nullptr;
  offset_t n_rows_ = 0;
  offset_t stride_ = 0;
  bool is_own_ = false;
  std::vector<T> own_rows_;
  std::vector<float> own_scales_;
  std::vector<index_t> own_ids_;
};

/// How much of the index a query looks at. 0 clusters: as many as exactness needs.
struct MipsEffort {
  offset_t n_probe = 1;
};

template <class T>
class MipsIndex {
 public:
  /// `centres` are unit rows, `stride` apart like all others. The rows of cluster c are those
  /// from begin[c] to begin[c + 1]; ids are in 0 .. n_ids - 1, each at most once. Rows of 8-bit
  /// numbers have `scales`.
  MipsIndex(offset_t stride, const std::vector<float>& centres, std::span<const offset_t> begin,
            std::span<const index_t> ids, const T* rows, const float* scales, offset_t n_ids)
      : stride_(stride),
        centres_(centres.begin(), centres.end()),
        clusters_(begin.size() - 1),
        place_(static_cast<std::size_t>(n_ids)) {
    for (offset_t c = 0; c < n_clusters(); ++c) {
      const offset_t n_rows = begin[c + 1] - begin[c];
      clusters_[c] = RowCluster<T>(rows + begin[c] * stride, scales ? scales + begin[c] : nullptr,
                                   ids.data() + begin[c], n_rows, stride);
      for (offset_t slot = 0; slot < n_rows; ++slot)
        place_[ids[begin[c] + slot]] = {static_cast<index_t>(c), static_cast<index_t>(slot)};
      tighten(c);
    }
    n_rows_ = begin.back();
    for (const RowCluster<T>& cluster : clusters_) n_empty_ += cluster.size() == 0;
  }

  offset_t stride() const { return stride_; }
  offset_t n_clusters() const { return static_cast<offset_t>(clusters_.size()); }
  offset_t n_rows() const { return n_rows_; }
  offset_t n_ids() const { return static_cast<offset_t>(place_.size()); }
  std::span<const float> centres() const { return centres_; }
  const RowCluster<T>& cluster(offset_t c) const { return clusters_[c]; }
  bool has(index_t id) const { return id >= 0 && id < n_ids() && place_[at(id)].cluster >= 0; }
  /// A row as it is searched; `scratch` may hold it.
  const float* row(index_t id, std::vector<float>& scratch) const {
    const Place place = place_[at(id)];
    return clusters_[place.cluster].row(place.slot, scratch);
  }

  // --- changes ---------------------------------------------------------------------------------

  /// The cluster that suits a row. Centres never change, so that this may be asked at any time.
  index_t nearest(const float* row) const {
    std::vector<float> scores(clusters_.size());
    inner_products(centres_.data(), n_clusters(), row, 1, stride_, scores.data());
    return static_cast<index_t>(std::max_element(scores.begin(), scores.end()) - scores.begin());
  }
  index_t cluster_of(index_t id) const { return place_[at(id)].cluster; }

  /// Gives a row another value; it moves to the cluster `best`, its nearest.
  void update(index_t id, const float* row, index_t best) {
    const Place place = place_[at(id)];
    if (place.cluster == best) {
      clusters_[best].replace(place.slot, row);
      widen(best, place.slot);
      return;
    }
    remove(id);
    insert(id, row, best);
  }

  /// Adds a row with an id that is free, or the next one.
  void add(index_t id, const float* row, index_t best) {
    if (id >= n_ids()) place_.resize(static_cast<std::size_t>(id) + 1);
    insert(id, row, best);
  }

  void remove(index_t id) {
    Place& place = place_[at(id)];
    const index_t moved = clusters_[place.cluster].remove(place.slot);
    n_empty_ += clusters_[place.cluster].size() == 0;
    if (moved >= 0) place_[at(moved)].slot = place.slot;
    place = Place{};
    --n_rows_;
  }

  /// Measures lengths and angles of a cluster anew.
  void tighten(offset_t c) {
    RowCluster<T>& cluster = clusters_[c];
    cluster.longest = 0.0F;
    cluster.shortest = std::numeric_limits<float>::infinity();
    cluster.least_cosine = 1.0F;
    for (offset_t slot = 0; slot < cluster.size(); ++slot) widen(static_cast<index_t>(c), slot);
  }

  // --- queries ---------------------------------------------------------------------------------

  /// Scratch space of one thread.
  struct Scratch {
    std::vector<float> centre_scores;
    std::vector<float> bounds;  ///< of queries by clusters
    std::vector<float> scores;
    std::vector<Scored<float>> order;
    TopK<float> top;
    TopK<float> clusters;
    std::vector<std::pair<index_t, index_t>> visits;  ///< of a cluster by a query
    AlignedVector<float> queries;
    std::vector<TopK<float>> tops;
  };

  /// Calls found(query, best rows) for each of `n_queries` queries, in no definite order, from
  /// `n_threads` threads. Returns the inner products that were computed, centres included.
  template <class Found>
  offset_t search(const float* queries, offset_t n_queries, std::size_t k, MipsEffort effort,
                  int n_threads, const Monitor* monitor, Found&& found) const {
    if (effort.n_probe > 0)
      return probe_all(queries, n_queries, k, effort.n_probe, n_threads, monitor, found);
    if (n_queries > 1) return scan_all(queries, n_queries, k, n_threads, monitor, found);
    return for_each_query(queries, n_queries, n_threads, monitor,
                          [&](offset_t q, const float* query, const float* scores, Scratch& s) {
                            s.top.start(k);
                            const offset_t work = scan_by_bound(query, scores, s, s.top);
                            found(q, s.top.finish());
                            return work;
                          });
  }

  /// Calls found(query, rows) with all rows whose inner product is above the threshold, best first.
  template <class Found>
  offset_t search_above(const float* queries, offset_t n_queries, float threshold, int n_threads,
                        const Monitor* monitor, Found&& found) const {
    return for_each_query(queries, n_queries, n_threads, monitor,
                          [&](offset_t q, const float* query, const float* scores, Scratch& s) {
                            Above above{threshold, {}};
                            const offset_t work = scan_by_bound(query, scores, s, above);
                            std::sort(above.items.begin(), above.items.end(), ranks_before<float>);
                            found(q, std::span<const Scored<float>>(above.items));
                            return work;
                          });
  }

 private:
  struct Place {
    index_t cluster = -1;
    index_t slot = -1;
  };

  /// Collects what is above a fixed bar, as TopK collects what is above a rising one.
  struct Above {
    float threshold;
    std::vector<Scored<float>> items;

    float bar() const { return threshold; }
    void offer(index_t id, float score) {
      if (score > threshold) items.push_back({score, id});
    }
  };

  static constexpr offset_t kQueriesAtOnce = 8;
  static constexpr offset_t kQueriesOfBlock = 4096;
  static constexpr offset_t kQueriesOfScan = 512;
  static constexpr std::size_t kFirstClusters = 4;
  static constexpr std::size_t kVisitsAtOnce = 16;

  float length(const float* row) const {
    float squared = 0.0F;
    inner_products(row, 1, row, 1, stride_, &squared);
    return std::sqrt(squared);
  }

  void insert(index_t id, const float* row, index_t c) {
    n_empty_ -= clusters_[c].size() == 0;
    place_[at(id)] = {c, static_cast<index_t>(clusters_[c].size())};
    clusters_[c].append(id, row);
    widen(c, clusters_[c].size() - 1);
    ++n_rows_;
  }

  /// Makes the bounds of a cluster hold for one of its rows.
  void widen(index_t c, offset_t slot) {
    RowCluster<T>& cluster = clusters_[c];
    const float* row = cluster.row(slot, scratch_);
    float score = 0.0F;
    inner_products(centres_.data() + c * stride_, 1, row, 1, stride_, &score);
    const float norm = length(row);
    cluster.longest = std::max(cluster.longest, norm);
    cluster.shortest = std::min(cluster.shortest, norm);
    // A zero row has every angle and needs none: its inner product is 0, as |q| 0 cos says.
    if (norm > 0.0F) cluster.least_cosine = std::min(cluster.least_cosine, score / norm);
  }

  /// Above every inner product of the query with a row of the cluster, rounding included.
  float bound(offset_t c, float centre_score, float query_norm) const {
    const RowCluster<T>& cluster = clusters_[c];
    if (cluster.size() == 0) return -std::numeric_limits<float>::infinity();
    const float inside = std::min(1.0F, std::max(-1.0F, cluster.least_cosine - kSlack));
    const float cosine =
        query_norm > 0.0F ? std::min(1.0F, std::max(-1.0F, centre_score / query_norm)) : 1.0F;
    float best = 1.0F;
    if (cosine < inside)
      best = cosine * inside + std::sqrt((1 - cosine * cosine) * (1 - inside * inside));
    const float norm = best >= 0.0F ? cluster.longest : cluster.shortest;
    return query_norm * (norm * best + kSlack * cluster.longest);
  }

  template <class Collector>
  void scan(const RowCluster<T>& cluster, const float* query, Scratch& s, Collector& best) const {
    s.scores.resize(static_cast<std::size_t>(cluster.size()));
    cluster.products(query, 1, s.scores.data());
    const std::span<const index_t> ids = cluster.ids();
    for (std::size_t slot = 0; slot < ids.size(); ++slot) best.offer(ids[slot], s.scores[slot]);
  }

  /// Exact search of many queries: as scan_by_bound, but queries of a block meet a cluster
  /// together. Each begins with the clusters of its best bounds, so that the others are held
  /// against a bar.
  template <class Found>
  offset_t scan_all(const float* queries, offset_t n_queries, std::size_t k, int n_threads,
                    const Monitor* monitor, Found&& found) const {
    const offset_t share = n_queries / std::max(1, n_threads) + 1;
    const offset_t size = std::min(kQueriesOfScan, std::max(kQueriesAtOnce, share));
    const offset_t n_blocks = (n_queries + size - 1) / size;
    const int threads = effective_threads(n_blocks, n_threads);
    std::vector<Scratch> scratch(static_cast<std::size_t>(threads));
    std::vector<offset_t> work(static_cast<std::size_t>(threads), 0);
    parallel_for(n_blocks, threads, monitor, [&](offset_t block, int thread) {
      Scratch& s = scratch[thread];
      const offset_t first = block * size, count = std::min(size, n_queries - first);
      const float* own = queries + first * stride_;
      s.tops.resize(static_cast<std::size_t>(count));
      for (TopK<float>& top : s.tops) top.start(k);
      list_bounds(own, count, s);
      work[thread] += count * n_clusters() + make_visits(own, s);
      for (offset_t c = 0; c < n_clusters(); ++c) {
        if (monitor != nullptr && monitor->stop_requested()) return;
        s.visits.clear();
        for (offset_t q = 0; q < count; ++q) {
          // False as long as the bar is NaN; a cluster that was visited has no bound any more.
          if (!(s.bounds[q * n_clusters() + c] < s.tops[q].bar()) &&
              s.bounds[q * n_clusters() + c] > -std::numeric_limits<float>::infinity())
            s.visits.emplace_back(static_cast<index_t>(c), static_cast<index_t>(q));
        }
        work[thread] += make_visits(own, s);
      }
      for (offset_t q = 0; q < count; ++q) found(first + q, s.tops[q].finish());
    });
    offset_t total = 0;
    for (const offset_t part : work) total += part;
    return total;
  }

  /// Bounds of all clusters for each query, and visits to those of the best ones.
  void list_bounds(const float* queries, offset_t count, Scratch& s) const {
    s.bounds.resize(static_cast<std::size_t>(count * n_clusters()));
    inner_products(centres_.data(), n_clusters(), queries, count, stride_, s.bounds.data());
    s.visits.clear();
    for (offset_t q = 0; q < count; ++q) {
      float* bounds = s.bounds.data() + q * n_clusters();
      const float norm = length(queries + q * stride_);
      for (offset_t c = 0; c < n_clusters(); ++c) bounds[c] = bound(c, bounds[c], norm);
      for (const Scored<float>& item :
           top_k<float>({bounds, clusters_.size()}, kFirstClusters, s.clusters)) {
        if (clusters_[item.id].size() == 0) continue;
        s.visits.emplace_back(item.id, static_cast<index_t>(q));
        bounds[item.id] = -std::numeric_limits<float>::infinity();
      }
    }
    std::sort(s.visits.begin(), s.visits.end());
  }

  /// Searches a few clusters for each query. Queries of a block that look at the same cluster do so
  /// together: its rows come from memory once, which is what a search waits for.
  template <class Found>
  offset_t probe_all(const float* queries, offset_t n_queries, std::size_t k, offset_t n_probe,
                     int n_threads, const Monitor* monitor, Found&& found) const {
    const offset_t share = n_queries / std::max(1, n_threads) + 1;
    const offset_t size = std::min(kQueriesOfBlock, std::max(kQueriesAtOnce, share));
    const offset_t n_blocks = (n_queries + size - 1) / size;
    const int threads = effective_threads(n_blocks, n_threads);
    std::vector<Scratch> scratch(static_cast<std::size_t>(threads));
    std::vector<offset_t> work(static_cast<std::size_t>(threads), 0);
    parallel_for(n_blocks, threads, monitor, [&](offset_t block, int thread) {
      Scratch& s = scratch[thread];
      const offset_t first = block * size, count = std::min(size, n_queries - first);
      const float* own = queries + first * stride_;
      list_visits(own, count, n_probe, s);
      s.tops.resize(static_cast<std::size_t>(count));
      for (TopK<float>& top : s.tops) top.start(k);
      work[thread] += count * n_clusters() + make_visits(own, s);
      for (offset_t q = 0; q < count; ++q) found(first + q, s.tops[q].finish());
    });
    offset_t total = 0;
    for (const offset_t part : work) total += part;
    return total;
  }

  /// Which clusters each query looks at: those whose centres it likes best, ordered by cluster.
  void list_visits(const float* queries, offset_t n_queries, offset_t n_probe, Scratch& s) const {
    s.visits.clear();
    const auto n_best = static_cast<std::size_t>(std::min(n_probe + n_empty_, n_clusters()));
    for (offset_t first = 0; first < n_queries; first += kQueriesAtOnce) {
      const offset_t count = std::min(kQueriesAtOnce, n_queries - first);
      s.centre_scores.resize(static_cast<std::size_t>(count * n_clusters()));
      s.queries.assign(queries + first * stride_, queries + (first + count) * stride_);
      inner_products(centres_.data(), n_clusters(), s.queries.data(), count, stride_,
                     s.centre_scores.data());
      for (offset_t q = 0; q < count; ++q) {
        const std::span<const float> scores(s.centre_scores.data() + q * n_clusters(),
                                            clusters_.size());
        offset_t left = n_probe;
        for (const Scored<float>& item : best_of(scores, n_best, s)) {
          if (clusters_[item.id].size() == 0) continue;
          s.visits.emplace_back(item.id, static_cast<index_t>(first + q));
          if (--left == 0) break;
        }
      }
    }
    std::sort(s.visits.begin(), s.visits.end());
  }

  /// The clusters of largest scores. One alone, the usual case, is found without a collector.
  static std::span<const Scored<float>> best_of(std::span<const float> scores, std::size_t n_best,
                                                Scratch& s) {
    if (n_best != 1) return top_k<float>(scores, n_best, s.clusters);
    Scored<float> best{scores[0], 0};
    for (std::size_t c = 0; c < scores.size(); c += 64) {
      const std::size_t end = std::min(c + 64, scores.size());
      if (end == c + 64 && !any_reaches(scores.data() + c, best.score)) continue;
      for (std::size_t i = c; i < end; ++i) {
        if (scores[i] > best.score) best = {scores[i], static_cast<index_t>(i)};
      }
    }
    s.order.assign(1, best);
    return s.order;
  }

  /// Scans cluster by cluster; returns the inner products computed.
  offset_t make_visits(const float* queries, Scratch& s) const {
    offset_t work = 0;
    for (std::size_t v = 0; v < s.visits.size();) {
      const RowCluster<T>& cluster = clusters_[s.visits[v].first];
      std::size_t end = v + 1;
      while (end < s.visits.size() && end - v < kVisitsAtOnce &&
             s.visits[end].first == s.visits[v].first)
        ++end;
      const auto count = static_cast<offset_t>(end - v);
      s.queries.resize(static_cast<std::size_t>(count * stride_));
      for (offset_t i = 0; i < count; ++i)
        std::copy_n(queries + s.visits[v + static_cast<std::size_t>(i)].second * stride_, stride_,
                    s.queries.begin() + i * stride_);
      s.scores.resize(static_cast<std::size_t>(count * cluster.size()));
      cluster.products(s.queries.data(), count, s.scores.data());
      for (offset_t i = 0; i < count; ++i)
        offer_all(cluster.ids(), s.scores.data() + i * cluster.size(),
                  s.tops[s.visits[v + static_cast<std::size_t>(i)].second]);
      work += count * cluster.size();
      v = end;
    }
    return work;
  }

  /// Whether one of 64 scores reaches the bar; NaN is reached by all. A reduction that vectorises.
  static bool any_reaches(const float* scores, float bar) {
    int any = 0;
    for (int i = 0; i < 64; ++i) any |= !(scores[i] < bar);
    return any != 0;
  }

  /// Most rows are below the bar: blocks without one above it are passed over as a whole.
  static void offer_all(std::span<const index_t> ids, const float* scores, TopK<float>& top) {
    std::size_t slot = 0;
    for (; slot + 64 <= ids.size(); slot += 64) {
      if (!any_reaches(scores + slot, top.bar())) continue;
      for (std::size_t i = slot; i < slot + 64; ++i) top.offer(ids[i], scores[i]);
    }
    for (; slot < ids.size(); ++slot) top.offer(ids[slot], scores[slot]);
  }

  /// All clusters whose bound is above the bar, the best bound first.
  template <class Collector>
  offset_t scan_by_bound(const float* query, const float* scores, Scratch& s,
                         Collector& best) const {
    const float norm = length(query);
    s.order.clear();
    for (offset_t c = 0; c < n_clusters(); ++c) {
      if (clusters_[c].size() > 0)
        s.order.push_back({bound(c, scores[c], norm), static_cast<index_t>(c)});
    }
    std::sort(s.order.begin(), s.order.end(), ranks_before<float>);
    offset_t work = 0;
    for (const Scored<float>& item : s.order) {
      if (item.score < best.bar()) break;  // false as long as the bar is NaN
      scan(clusters_[item.id], query, s, best);
      work += clusters_[item.id].size();
    }
    return work;
  }

  template <class Body>
  offset_t for_each_query(const float* queries, offset_t n_queries, int n_threads,
                          const Monitor* monitor, Body&& body) const {
    const offset_t n_blocks = (n_queries + kQueriesAtOnce - 1) / kQueriesAtOnce;
    const int threads = effective_threads(n_blocks, n_threads);
    std::vector<Scratch> scratch(static_cast<std::size_t>(threads));
    std::vector<offset_t> work(static_cast<std::size_t>(threads), 0);
    parallel_for(n_blocks, threads, monitor, [&](offset_t block, int thread) {
      Scratch& s = scratch[thread];
      const offset_t first = block * kQueriesAtOnce;
      const offset_t count = std::min(kQueriesAtOnce, n_queries - first);
      s.centre_scores.resize(static_cast<std::size_t>(count * n_clusters()));
      inner_products(centres_.data(), n_clusters(), queries + first * stride_, count, stride_,
                     s.centre_scores.data());
      for (offset_t q = 0; q < count; ++q) {
        work[thread] += n_clusters();
        work[thread] += body(first + q, queries + (first + q) * stride_,
                             s.centre_scores.data() + q * n_clusters(), s);
      }
    });
    offset_t total = 0;
    for (const offset_t part : work) total += part;
    return total;
  }

  /// Of cosines in float32: inner products of unit rows are off by at most a few 1e-6.
  static constexpr float kSlack = 1e-5F;

  offset_t stride_;
  AlignedVector<float> centres_;
  std::vector<RowCluster<T>> clusters_;
  std::vector<float> scratch_;  ///< of changes, which come one at a time
  std::vector<Place> place_;
  offset_t n_rows_ = 0;
  offset_t n_empty_ = 0;  ///< clusters
};

}  // namespace sublearn
