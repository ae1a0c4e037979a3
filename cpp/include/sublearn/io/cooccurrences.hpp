// How often words stand near each other: from sentences to a sparse symmetric matrix of counts.
//
// A pair d words apart counts (window - d + 1) / window, which is what word2vec's random windows
// give on average. A word is dropped with probability 1 - keep before the pairs are made, as
// there; sentence s draws from stream s, so that the counts do not depend on threads or pieces.
//
// Pairs are bucketed by their first word, kPairsAtOnce at a time, then each bucket is summed in a
// dense row. Memory: 8 bytes for each pair of a piece, 8 for each distinct pair.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "sublearn/core/monitor.hpp"
#include "sublearn/core/parallel_for.hpp"
#include "sublearn/core/rng.hpp"
#include "sublearn/core/types.hpp"
#include "sublearn/io/corpus.hpp"

namespace sublearn {

/// Sparse rows; columns rise in each.
struct PairCounts {
  std::vector<offset_t> begin;
  std::vector<index_t> ids;
  std::vector<float> counts;
};

struct WindowSettings {
  int window = 5;
  std::uint64_t seed = 0;
};

class PairCounter {
 public:
  /// `id_of` maps words of the corpus to rows, or to -1; `keep` is a probability for each row.
  PairCounter(std::span<const index_t> id_of, std::span<const float> keep, WindowSettings settings)
      : id_of_(id_of), keep_(keep), settings_(settings) {
    found_.begin.assign(keep.size() + 1, 0);
  }

  PairCounts count(const Corpus& corpus, int n_threads, const Monitor* monitor) {
    offset_t n_pairs = 0;
    for (std::size_t s = 0; s < corpus.ends().size(); ++s) {
      n_pairs += append(corpus, s);
      if (n_pairs >= kPairsAtOnce) n_pairs = flush(n_threads, monitor);
      if ((s & 1023U) == 0 && monitor != nullptr && monitor->stop_requested()) break;
    }
    flush(n_threads, monitor);
    return std::move(found_);
  }

 private:
  static constexpr offset_t kPairsAtOnce = 1 << 25;
  struct Weighted {
    index_t id;
    float weight;
  };

  /// The words of a sentence that stay; returns how many pairs they make.
  offset_t append(const Corpus& corpus, std::size_t sentence) {
    const offset_t end = corpus.ends()[sentence];
    const offset_t start = sentence == 0 ? 0 : corpus.ends()[sentence - 1] + 1;
    Rng rng = Rng(settings_.seed).split(sentence);
    offset_t length = 0;
    for (offset_t p = start; p < end; ++p) {
      const index_t id = id_of_[at(corpus.tokens()[p])];
      if (id < 0 || (keep_[id] < 1.0F && rng.uniform() >= keep_[id])) continue;
      kept_.push_back(id);
      ++length;
    }
    kept_.push_back(-1);
    return 2 * settings_.window * length;
  }

  /// Calls visit(a, b, weight) for each pair of the words kept so far, a before b.
  template <class Visit>
  void for_each_pair(Visit&& visit) const {
    for (std::size_t i = 0; i < kept_.size(); ++i) {
      if (kept_[i] < 0) continue;
      for (int d = 1; d <= settings_.window && kept_[i + d] >= 0; ++d)
        visit(kept_[i], kept_[i + d],
              static_cast<float>(settings_.window - d + 1) / static_cast<float>(settings_.window));
    }
  }

  /// Adds the pairs of the words kept so far to what was found before.
  offset_t flush(int n_threads, const Monitor* monitor) {
    const std::size_t n_rows = keep_.size();
    std::vector<offset_t> begin(n_rows + 1, 0);
    for_each_pair([&](index_t a, index_t b, float) { ++begin[a + 1], ++begin[b + 1]; });
    for (std::size_t r = 0; r < n_rows; ++r) begin[r + 1] += begin[r];
    std::vector<Weighted> pairs(static_cast<std::size_t>(begin[n_rows]));
    std::vector<offset_t> next(begin.begin(), begin.end() - 1);
    for_each_pair([&](index_t a, index_t b, float weight) {
      pairs[next[a]++] = {b, weight};
      pairs[next[b]++] = {a, weight};
    });
    kept_.clear();
    merge(begin, pairs, n_threads, monitor);
    return 0;
  }

  void merge(std::span<const offset_t> begin, std::span<const Weighted> pairs, int n_threads,
             const Monitor* monitor) {
    const auto n_rows = static_cast<offset_t>(keep_.size());
    const offset_t n_blocks = (n_rows + kRowsAtOnce - 1) / kRowsAtOnce;
    std::vector<PairCounts> parts(static_cast<std::size_t>(n_blocks));
    const int threads = effective_threads(n_blocks, n_threads);
    std::vector<std::vector<float>> sums(static_cast<std::size_t>(threads));
    parallel_for(n_blocks, threads, monitor, [&](offset_t block, int thread) {
      std::vector<float>& sum = sums[thread];
      sum.resize(static_cast<std::size_t>(n_rows), 0.0F);
      PairCounts& part = parts[block];
      for (offset_t r = block * kRowsAtOnce; r < std::min(n_rows, (block + 1) * kRowsAtOnce); ++r)
        sum_row(r, pairs.subspan(begin[r], begin[r + 1] - begin[r]), sum, part);
    });
    join(parts);
  }

  /// Old and new counts of row r, summed in a dense row that is zero again afterwards.
  void sum_row(offset_t r, std::span<const Weighted> pairs, std::vector<float>& sum,
               PairCounts& part) const {
    const std::size_t first = part.ids.size();
    const auto add = [&](index_t id, float weight) {
      if (sum[id] == 0.0F) part.ids.push_back(id);
      sum[id] += weight;
    };
    for (offset_t p = found_.begin[r]; p < found_.begin[r + 1]; ++p)
      add(found_.ids[p], found_.counts[p]);
    for (const Weighted& pair : pairs) add(pair.id, pair.weight);
    std::sort(part.ids.begin() + static_cast<std::ptrdiff_t>(first), part.ids.end());
    for (std::size_t p = first; p < part.ids.size(); ++p) {
      part.counts.push_back(sum[part.ids[p]]);
      sum[part.ids[p]] = 0.0F;
    }
    part.begin.push_back(static_cast<offset_t>(part.ids.size() - first));
  }

  void join(const std::vector<PairCounts>& parts) {
    PairCounts all;
    all.begin.push_back(0);
    for (const PairCounts& part : parts) {
      for (const offset_t length : part.begin) all.begin.push_back(all.begin.back() + length);
      all.ids.insert(all.ids.end(), part.ids.begin(), part.ids.end());
      all.counts.insert(all.counts.end(), part.counts.begin(), part.counts.end());
    }
    all.begin.resize(keep_.size() + 1, all.begin.back());  // shorter after a request to stop
    found_ = std::move(all);
  }

  static constexpr offset_t kRowsAtOnce = 256;

  std::span<const index_t> id_of_;
  std::span<const float> keep_;
  WindowSettings settings_;
  std::vector<index_t> kept_;  ///< ids, and -1 behind each sentence
  PairCounts found_;
};

}  // namespace sublearn
