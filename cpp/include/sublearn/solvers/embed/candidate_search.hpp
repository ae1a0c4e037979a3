// The labels of a batch whose scores matter, and the gradient of the loss on them (Yen 2018,
// section 3.3).
//
//   exact       all labels
//   sampled     negatives drawn uniformly, the same for the whole batch; softmax adds
//               log(K / n_sampled) to their scores, so that the partition sum is right on average
//               (labels that a search does not find count with z = 0 in softmax's sum)
//   mips        the best rows of some clusters (algorithm 10): one block of all coordinates
//   decomposed  the best rows of each block by their part of the score, then scored in full: one
//               step of greedy message passing (algorithm 11) with eta = 1, which makes the blocks
//               agree on the labels that it visits
//
// In block j of B a label stands for the score B z_jk. By convexity (theorem 12) a label whose
// B z_jk is below the bar in every block has a score below the bar, so it has no gradient worth
// having; the bar comes from the positives (score_bar), which are candidates in any case.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "sublearn/core/inner_products.hpp"
#include "sublearn/core/parallel_for.hpp"
#include "sublearn/core/rng.hpp"
#include "sublearn/core/top_k.hpp"
#include "sublearn/objectives/output_loss.hpp"
#include "sublearn/search/batch_search.hpp"

namespace sublearn {

enum class GradientKind { exact, sampled, mips, decomposed };

struct CandidateSettings {
  GradientKind kind = GradientKind::exact;
  offset_t n_candidates = 100;  ///< negatives for each sample, at most (mips, decomposed)
  offset_t n_probe = 8;         ///< clusters of each index that a sample looks at
  offset_t n_sampled = 100;     ///< negatives for each batch (sampled)
  double tau = 1e-4;            ///< gradients of at most this size are left out; 0 for exact
};

/// Samples of a batch: rows of features, and their labels in increasing order.
struct LabelBatch {
  const float* features = nullptr;
  offset_t stride = 0;
  const offset_t* label_begin = nullptr;  ///< n_samples + 1
  const index_t* labels = nullptr;
  offset_t count = 0;

  offset_t n_samples() const { return count; }
  const float* row(offset_t i) const { return features + i * stride; }
  std::span<const index_t> labels_of(offset_t i) const {
    return {labels + label_begin[i], static_cast<std::size_t>(label_begin[i + 1] - label_begin[i])};
  }
};

struct WeightRows {
  const float* data;
  offset_t n_rows;
  offset_t stride;
  const float* row(offset_t k) const { return data + k * stride; }
};

struct LabelGradient {
  index_t label;
  float value;
};
struct SampleGradient {
  double loss = 0.0;
  std::vector<LabelGradient> gradient;
};

class CandidateSearch {
 public:
  std::span<const SampleGradient> samples() const {
    return std::span<const SampleGradient>(samples_).first(static_cast<std::size_t>(n_samples_));
  }
  offset_t work = 0;

  void find(const LabelBatch& batch, const WeightRows& weights,
            std::span<const ClusteredRows> blocks, const OutputLoss& loss,
            const CandidateSettings& settings, std::uint64_t seed, int n_threads) {
    n_samples_ = batch.n_samples();
    if (samples_.size() < static_cast<std::size_t>(n_samples_)) samples_.resize(n_samples_);
    scratch_.resize(static_cast<std::size_t>(std::max(n_threads, 1)));
    work = 0;
    if (settings.kind == GradientKind::exact) {
      score(weights.data, weights.n_rows, batch, n_threads);
    } else if (settings.kind == GradientKind::sampled) {
      draw(weights, settings.n_sampled, seed);
      score(gathered_.data(), static_cast<offset_t>(sampled_.size()), batch, n_threads);
    } else {
      search_blocks(batch, blocks, settings.n_probe, n_threads);
    }
    parallel_for(n_samples_, n_threads, [&](offset_t i, int thread) {
      Scratch& s = scratch_[at(thread)];
      start(i, batch, weights, s);
      if (settings.kind == GradientKind::exact) {
        take_all(i, batch, weights.n_rows, s);
      } else if (settings.kind == GradientKind::sampled) {
        take_sampled(i, batch, weights.n_rows, loss, s);
      } else {
        take_found(i, batch, weights, blocks.size(), loss, settings, s);
      }
      const bool sees_few =
          settings.kind == GradientKind::mips || settings.kind == GradientKind::decomposed;
      const auto n_seen = static_cast<offset_t>(s.ids.size());
      s.n_rest = sees_few ? static_cast<double>(weights.n_rows - n_seen) : 0.0;
      differentiate(samples_[i], loss, settings.tau, s);
    });
  }

 private:
  struct Scratch {
    std::vector<index_t> ids;
    std::vector<float> scores, gradient, projection;
    std::size_t n_positives = 0;
    double n_rest = 0.0;  // labels that no search has found
    TopK<float> best;
    std::vector<std::uint32_t> seen;  // by label: the sample that took it last
    std::uint32_t stamp = 0;
  };

  static constexpr std::size_t kAhead = 4;  // rows asked for before they are needed

  // --- scores ----------------------------------------------------------------------------------

  /// Scores of the batch with some rows, a pack of them at a time.
  void score(const float* rows, offset_t n_rows, const LabelBatch& batch, int n_threads) {
    const offset_t stride = batch.stride, count = n_packs(n_rows);
    wide_ = count * kPackRows;
    dense_.resize(static_cast<std::size_t>(n_samples_ * wide_));
    parallel_for(count, n_threads, [&](offset_t p, int thread) {
      std::vector<float>& pack = scratch_[at(thread)].gradient;
      pack.assign(static_cast<std::size_t>(stride * kPackRows), 0.0F);
      const offset_t first = p * kPackRows;
      for (offset_t r = 0; r < std::min(kPackRows, n_rows - first); ++r)
        set_lane(pack.data(), stride, r, rows + (first + r) * stride);
      lane_products(pack.data(), 1, stride, batch.features, n_samples_, stride,
                    dense_.data() + first, wide_);
    });
    work += n_samples_ * n_rows;
  }

  /// Different labels, uniformly; all of them if there are no more.
  void draw(const WeightRows& weights, offset_t n_sampled, std::uint64_t seed) {
    Rng rng(seed);
    const auto n_labels = static_cast<std::uint32_t>(weights.n_rows);
    const auto count = std::min<offset_t>(n_sampled, weights.n_rows);
    is_drawn_.resize(n_labels, false);
    sampled_.clear();
    while (static_cast<offset_t>(sampled_.size()) < count) {
      // Floyd's way: the j-th draw is below j, or j itself if that is taken.
      const auto j = n_labels - static_cast<std::uint32_t>(count) +
                     static_cast<std::uint32_t>(sampled_.size());
      const std::uint32_t drawn = rng.below(j + 1);
      const std::uint32_t label = is_drawn_[drawn] ? j : drawn;
      is_drawn_[label] = true;
      sampled_.push_back(static_cast<index_t>(label));
    }
    for (const index_t label : sampled_) is_drawn_[label] = false;
    gathered_.resize(static_cast<std::size_t>(count * weights.stride));
    for (offset_t p = 0; p < count; ++p)
      std::copy_n(weights.row(sampled_[p]), weights.stride, gathered_.data() + p * weights.stride);
  }

  void search_blocks(const LabelBatch& batch, std::span<const ClusteredRows> blocks,
                     offset_t n_probe, int n_threads) {
    found_.resize(blocks.size());
    for (std::size_t j = 0; j < blocks.size(); ++j) {
      found_[j].run(blocks[j], batch.features, n_samples_, batch.stride, n_probe, n_threads);
      work += found_[j].work / static_cast<offset_t>(blocks.size());
    }
  }

  // --- candidates of one sample ----------------------------------------------------------------

  void start(offset_t i, const LabelBatch& batch, const WeightRows& weights, Scratch& s) {
    const auto positives = batch.labels_of(i);
    s.ids.assign(positives.begin(), positives.end());
    s.n_positives = positives.size();
    s.scores.resize(positives.size());
    for (std::size_t p = 0; p < positives.size(); ++p)
      inner_products(weights.row(positives[p]), 1, batch.row(i), 1, weights.stride, &s.scores[p]);
  }

  /// All other labels: the ranges between the positives.
  void take_all(offset_t i, const LabelBatch& batch, offset_t n_labels, Scratch& s) {
    const float* row = dense_.data() + i * wide_;
    index_t next = 0;
    const auto take_until = [&](index_t end) {
      const std::size_t size = s.ids.size();
      s.ids.resize(size + static_cast<std::size_t>(end - next));
      std::iota(s.ids.begin() + static_cast<std::ptrdiff_t>(size), s.ids.end(), next);
      s.scores.insert(s.scores.end(), row + next, row + end);
      next = end + 1;
    };
    for (const index_t label : batch.labels_of(i)) take_until(label);
    take_until(static_cast<index_t>(n_labels));
  }

  void take_sampled(offset_t i, const LabelBatch& batch, offset_t n_labels, const OutputLoss& loss,
                    Scratch& s) {
    const float* row = dense_.data() + i * wide_;
    const auto positives = batch.labels_of(i);
    const auto share = static_cast<float>(n_labels) / static_cast<float>(sampled_.size());
    const float offset = loss.kind == OutputLossKind::softmax ? std::log(share) : 0.0F;
    for (std::size_t c = 0; c < sampled_.size(); ++c) {
      if (is_among(positives, sampled_[c])) continue;
      s.ids.push_back(sampled_[c]);
      s.scores.push_back(row[c] + offset);
    }
  }

  /// Negatives that the blocks have found, scored in full.
  void take_found(offset_t i, const LabelBatch& batch, const WeightRows& weights,
                  std::size_t n_blocks, const OutputLoss& loss, const CandidateSettings& settings,
                  Scratch& s) {
    const auto positives = batch.labels_of(i);
    const auto n_rest = static_cast<double>(weights.n_rows - settings.n_candidates) -
                        static_cast<double>(positives.size());
    const float bar = score_bar<float>(loss, s.scores, settings.tau, n_rest);
    const auto scale = static_cast<float>(n_blocks);
    const std::size_t most =
        std::max<std::size_t>(1, static_cast<std::size_t>(settings.n_candidates) / n_blocks);
    mark_new_sample(weights.n_rows, s);
    for (std::size_t j = 0; j < n_blocks; ++j) {
      const auto ids = found_[j].ids(i);
      const auto scores = found_[j].scores(i);
      s.best.start(most);
      for (std::size_t p = 0; p < ids.size(); ++p) {
        if (scale * scores[p] > bar) s.best.offer(ids[p], scores[p]);
      }
      for (const Scored<float>& item : s.best.select()) {
        if (s.seen[item.id] == s.stamp || is_among(positives, item.id)) continue;
        s.seen[item.id] = s.stamp;
        s.ids.push_back(item.id);
        s.scores.push_back(item.score);
      }
    }
    // With the rows as they are now, and all blocks.
    for (std::size_t p = s.n_positives; p < s.ids.size(); ++p) {
      if (p + kAhead < s.ids.size()) prefetch_row(weights.row(s.ids[p + kAhead]), weights.stride);
      inner_products(weights.row(s.ids[p]), 1, batch.row(i), 1, weights.stride, &s.scores[p]);
    }
  }

  static void mark_new_sample(offset_t n_labels, Scratch& s) {
    if (s.seen.size() != static_cast<std::size_t>(n_labels) || ++s.stamp == 0) {
      s.seen.assign(static_cast<std::size_t>(n_labels), 0);
      s.stamp = 1;
    }
  }

  static bool is_among(std::span<const index_t> sorted, index_t label) {
    return std::binary_search(sorted.begin(), sorted.end(), label);
  }

  static void differentiate(SampleGradient& out, const OutputLoss& loss, double tau, Scratch& s) {
    s.gradient.resize(s.scores.size());
    out.loss =
        output_loss<float>(loss, s.scores, s.n_positives, s.gradient, s.projection, s.n_rest);
    // A margin does not see NaN: no comparison is true.
    for (std::size_t p = 0; p < s.n_positives; ++p) out.loss += 0.0F * s.scores[p];
    out.gradient.clear();
    for (std::size_t p = 0; p < s.ids.size(); ++p) {
      if (std::abs(s.gradient[p]) > static_cast<float>(tau))
        out.gradient.push_back({s.ids[p], s.gradient[p]});
    }
  }

  offset_t n_samples_ = 0;
  offset_t wide_ = 0;  // of a row of dense_
  std::vector<SampleGradient> samples_;
  std::vector<Scratch> scratch_;
  std::vector<float> dense_, gathered_;
  std::vector<index_t> sampled_;
  std::vector<bool> is_drawn_;
  std::vector<BatchSearch> found_;
};

}  // namespace sublearn
