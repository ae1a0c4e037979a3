// The labels of a batch whose scores matter, and the gradient of the loss on them (Yen 2018,
// section 3.3).
//
//   exact       all labels
//   sampled     negatives drawn uniformly, the same for the whole batch; softmax adds
//               log(K / n_sampled) to their scores, so that the partition sum is right on average
//               (labels that a search does not find count with z = 0 in softmax's sum)
//   mips        the best rows of some clusters (algorithm 10): one block of all coordinates
//   decomposed  the best rows of each block by their part of the score, then messages between the
//               blocks: T steps of algorithm 11 (message_passing.hpp), or the labels scored in
//               full, which is where messages with the parts of all blocks would end
//
// In block j of B a label stands for the score B z_jk. By convexity (theorem 12) a label whose
// B z_jk is below the bar in every block has a score below the bar, so it has no gradient worth
// having; the bar comes from the positives (score_bar), which are candidates in any case.
//
// With `widens`, the labels that a block has retrieved raise its bar, since they bound the
// partition sum from below (section 3.3.3): it takes all labels above, and looks at twice as many
// clusters as long as the second half of them has such a label.
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
#include "sublearn/solvers/embed/message_passing.hpp"

namespace sublearn {

enum class GradientKind { exact, sampled, mips, decomposed };

struct CandidateSettings {
  GradientKind kind = GradientKind::exact;
  offset_t n_candidates = 100;  ///< negatives for each sample, at most (mips, decomposed)
  offset_t n_probe = 8;         ///< clusters of each index that a sample looks at
  offset_t n_sampled = 100;     ///< negatives for each batch (sampled)
  double tau = 1e-4;            ///< gradients of at most this size are left out; 0 for exact
  offset_t n_messages = 0;      ///< T of algorithm 11 (decomposed); 0 scores labels in full
  bool widens = false;          ///< look further as long as the partition sum says so
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
  const float* mean = nullptr;  ///< of all rows, for the score of the rest; it is 0 without
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
      if (settings.widens) widen(batch, weights, blocks, loss, settings, n_threads);
    }
    parallel_for(n_samples_, n_threads, [&](offset_t i, int thread) {
      Scratch& s = scratch_[at(thread)];
      start(i, batch, weights, s);
      if (settings.kind == GradientKind::exact) {
        take_all(i, batch, weights.n_rows, s);
      } else if (settings.kind == GradientKind::sampled) {
        take_sampled(i, batch, weights.n_rows, loss, s);
      } else {
        take_found(i, batch, weights, blocks, loss, settings, s);
      }
      const bool passes = settings.kind == GradientKind::decomposed && settings.n_messages > 0;
      const double value = passes ? pass_messages(i, batch, weights, blocks, loss, settings, s)
                                  : score_in_full(i, batch, weights, loss, settings.kind, s);
      keep(samples_[i], value, settings.tau, s);
    });
  }

 private:
  /// A block that has found the candidate at `place`.
  struct Hit {
    std::uint32_t place;
    std::uint32_t block;
  };
  struct Scratch {
    std::vector<index_t> ids;
    std::vector<float> scores, gradient, projection;
    std::size_t n_positives = 0;
    TopK<float> best;
    std::vector<std::uint32_t> seen;   // by label: the sample that took it last
    std::vector<std::uint32_t> place;  // by label: where it stands in ids
    std::uint32_t stamp = 0;
    std::vector<Hit> hits;
    std::vector<float> parts;  // a row of scores for each block
    MessagePassing<float> messages;
  };
  /// Labels of a sample and a block, where it looked further than others.
  struct Wide {
    std::vector<index_t> ids;
    std::vector<float> scores;
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
    wider_.assign(at(n_samples_) * blocks.size(), {});
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

  /// Negatives that the blocks have found.
  void take_found(offset_t i, const LabelBatch& batch, const WeightRows& weights,
                  std::span<const ClusteredRows> blocks, const OutputLoss& loss,
                  const CandidateSettings& settings, Scratch& s) {
    const auto positives = batch.labels_of(i);
    const std::size_t n_blocks = blocks.size();
    const float bar = bar_of(i, batch, weights, loss, settings, s);
    const auto scale = static_cast<float>(n_blocks);
    const std::size_t share =
        std::max<std::size_t>(1, static_cast<std::size_t>(settings.n_candidates) / n_blocks);
    mark_new_sample(weights.n_rows, s);
    s.hits.clear();
    for (std::size_t j = 0; j < n_blocks; ++j) {
      const auto ids = ids_of(i, j);
      const auto scores = scores_of(i, j);
      const float own_bar = settings.widens ? raised(bar, loss, settings, scale, scores) : bar;
      s.best.start(settings.widens ? std::max<std::size_t>(ids.size(), 1) : share);
      for (std::size_t p = 0; p < ids.size(); ++p) {
        if (scale * scores[p] > own_bar) s.best.offer(ids[p], scores[p]);
      }
      for (const Scored<float>& item : s.best.select()) {
        if (is_among(positives, item.id)) continue;
        if (s.seen[item.id] != s.stamp) {
          s.seen[item.id] = s.stamp;
          s.place[item.id] = static_cast<std::uint32_t>(s.ids.size());
          s.ids.push_back(item.id);
        }
        s.hits.push_back({s.place[item.id], static_cast<std::uint32_t>(j)});
      }
    }
    s.scores.resize(s.ids.size(), 0.0F);
  }

  /// What a label's score must pass, as far as the positives tell.
  float bar_of(offset_t i, const LabelBatch& batch, const WeightRows& weights,
               const OutputLoss& loss, const CandidateSettings& settings, const Scratch& s) const {
    const auto n_known =
        static_cast<double>(settings.n_candidates) + static_cast<double>(s.n_positives);
    const Rest rest{static_cast<double>(weights.n_rows) - n_known, mean_score(i, batch, weights)};
    const auto own = std::span<const float>(s.scores).first(s.n_positives);
    return score_bar<float>(loss, own, settings.tau, settings.widens ? Rest{} : rest);
  }

  /// The bar that labels of a block set, whose sum is a lower bound of its partition sum.
  static float raised(float bar, const OutputLoss& loss, const CandidateSettings& settings,
                      float scale, std::span<const float> scores) {
    if (loss.kind != OutputLossKind::softmax || scores.empty()) return bar;
    const float top = scale * *std::max_element(scores.begin(), scores.end());
    double sum = 0.0;
    for (const float z : scores) sum += std::exp(static_cast<double>(scale * z - top));
    return std::max(bar, top + static_cast<float>(std::log(sum * settings.tau)));
  }

  static double mean_score(offset_t i, const LabelBatch& batch, const WeightRows& weights) {
    float score = 0.0F;
    if (weights.mean != nullptr)
      inner_products(weights.mean, 1, batch.row(i), 1, weights.stride, &score);
    return static_cast<double>(score);
  }

  // --- looking further ---------------------------------------------------------------------------

  std::span<const index_t> ids_of(offset_t i, std::size_t block) const {
    const auto& wide = wider_[at(i) * found_.size() + block];
    return wide.ids.empty() ? found_[block].ids(i) : std::span<const index_t>(wide.ids);
  }
  std::span<const float> scores_of(offset_t i, std::size_t block) const {
    const auto& wide = wider_[at(i) * found_.size() + block];
    return wide.ids.empty() ? found_[block].scores(i) : std::span<const float>(wide.scores);
  }

  /// Twice as many clusters for the samples whose second half of clusters has a label above the
  /// bar, until none is left.
  void widen(const LabelBatch& batch, const WeightRows& weights,
             std::span<const ClusteredRows> blocks, const OutputLoss& loss,
             const CandidateSettings& settings, int n_threads) {
    bars_.resize(at(n_samples_));
    parallel_for(n_samples_, n_threads, [&](offset_t i, int thread) {
      Scratch& s = scratch_[at(thread)];
      start(i, batch, weights, s);
      bars_[at(i)] = bar_of(i, batch, weights, loss, settings, s);
    });
    const auto scale = static_cast<float>(blocks.size());
    for (std::size_t j = 0; j < blocks.size(); ++j) {
      pending_.clear();
      for (offset_t i = 0; i < n_samples_; ++i) {
        const float bar = raised(bars_[at(i)], loss, settings, scale, found_[j].scores(i));
        if (has_above(found_[j].second_half(i), scale, bar)) pending_.push_back(i);
      }
      for (offset_t n_probe = 2 * settings.n_probe;
           !pending_.empty() && n_probe / 2 < blocks[j].n_clusters(); n_probe *= 2)
        probe_more(j, batch, blocks[j], loss, settings, scale, n_probe, n_threads);
    }
  }

  /// One more search for the samples that are pending; those that want another one stay so.
  void probe_more(std::size_t j, const LabelBatch& batch, const ClusteredRows& block,
                  const OutputLoss& loss, const CandidateSettings& settings, float scale,
                  offset_t n_probe, int n_threads) {
    queries_.resize(pending_.size() * at(batch.stride));
    for (std::size_t p = 0; p < pending_.size(); ++p)
      std::copy_n(batch.row(pending_[p]), batch.stride,
                  queries_.data() + static_cast<offset_t>(p) * batch.stride);
    const auto count = static_cast<offset_t>(pending_.size());
    again_.run(block, queries_.data(), count, batch.stride, n_probe, n_threads);
    work += again_.work / static_cast<offset_t>(found_.size());
    std::size_t kept = 0;
    for (offset_t p = 0; p < count; ++p) {
      const offset_t i = pending_[at(p)];
      Wide& wide = wider_[at(i) * found_.size() + j];
      wide.ids.assign(again_.ids(p).begin(), again_.ids(p).end());
      wide.scores.assign(again_.scores(p).begin(), again_.scores(p).end());
      const float bar = raised(bars_[at(i)], loss, settings, scale, again_.scores(p));
      if (has_above(again_.second_half(p), scale, bar)) pending_[kept++] = i;
    }
    pending_.resize(kept);
  }

  static bool has_above(std::span<const float> scores, float scale, float bar) {
    return std::any_of(scores.begin(), scores.end(),
                       [&](float score) { return scale * score > bar; });
  }

  // --- the loss ----------------------------------------------------------------------------------

  /// Candidates with the rows as they are now, and all blocks.
  double score_in_full(offset_t i, const LabelBatch& batch, const WeightRows& weights,
                       const OutputLoss& loss, GradientKind kind, Scratch& s) {
    Rest rest;
    if (kind == GradientKind::mips || kind == GradientKind::decomposed) {
      for (std::size_t p = s.n_positives; p < s.ids.size(); ++p) {
        if (p + kAhead < s.ids.size()) prefetch_row(weights.row(s.ids[p + kAhead]), weights.stride);
        inner_products(weights.row(s.ids[p]), 1, batch.row(i), 1, weights.stride, &s.scores[p]);
      }
      rest = rest_of(i, batch, weights, s);
    }
    s.gradient.resize(s.scores.size());
    return output_loss<float>(loss, s.scores, s.n_positives, s.gradient, s.projection, rest);
  }

  /// The labels that are no candidates: their mean score, if the mean row is known.
  Rest rest_of(offset_t i, const LabelBatch& batch, const WeightRows& weights,
               const Scratch& s) const {
    Rest rest{static_cast<double>(weights.n_rows) - static_cast<double>(s.ids.size())};
    if (weights.mean == nullptr || rest.count <= 0.0) return rest;
    double sum = static_cast<double>(weights.n_rows) * mean_score(i, batch, weights);
    for (const float score : s.scores) sum -= static_cast<double>(score);
    rest.score = sum / rest.count;
    return rest;
  }

  /// T steps between the blocks, from what each has found.
  double pass_messages(offset_t i, const LabelBatch& batch, const WeightRows& weights,
                       std::span<const ClusteredRows> blocks, const OutputLoss& loss,
                       const CandidateSettings& settings, Scratch& s) {
    const std::size_t n = s.ids.size(), n_blocks = blocks.size();
    s.parts.assign(n * n_blocks, 0.0F);
    const auto set_part = [&](std::size_t p, std::size_t j) {
      const float* row = weights.row(s.ids[p]) + blocks[j].first();
      const float* query = batch.row(i) + blocks[j].first();
      s.parts[j * n + p] = std::inner_product(row, row + blocks[j].dim(), query, 0.0F);
    };
    for (std::size_t p = 0; p < s.n_positives; ++p) {
      for (std::size_t j = 0; j < n_blocks; ++j) set_part(p, j);
    }
    for (const Hit& hit : s.hits) set_part(hit.place, hit.block);
    const Rest rest{static_cast<double>(weights.n_rows) - static_cast<double>(n),
                    mean_score(i, batch, weights)};
    s.gradient.resize(n);
    return s.messages.run(loss, s.parts, n_blocks, s.n_positives,
                          {settings.n_messages, settings.tau}, rest, s.gradient);
  }

  static void mark_new_sample(offset_t n_labels, Scratch& s) {
    if (s.seen.size() != static_cast<std::size_t>(n_labels) || ++s.stamp == 0) {
      s.seen.assign(static_cast<std::size_t>(n_labels), 0);
      s.place.assign(static_cast<std::size_t>(n_labels), 0);
      s.stamp = 1;
    }
  }

  static bool is_among(std::span<const index_t> sorted, index_t label) {
    return std::binary_search(sorted.begin(), sorted.end(), label);
  }

  static void keep(SampleGradient& out, double loss, double tau, Scratch& s) {
    out.loss = loss;
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
  std::vector<Wide> wider_;  // by sample and block; empty for those that look no further
  std::vector<float> bars_, queries_;
  std::vector<offset_t> pending_;
  BatchSearch again_;
};

}  // namespace sublearn
