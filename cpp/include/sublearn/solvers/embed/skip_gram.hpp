// Skip-gram in its collapsed form (Yen 2018, (3.45)): pairs of words are counted once, and a
// pass visits words, not positions of a text. With u_x the vector of a word, v_y of a context
// (the last number of v_y is its bias, that of u_x a constant) and N_xy the counts,
//
//   min  sum_x [ N_x log Z_x - sum_y N_xy <u_x, v_y> ] / N,     Z_x = sum_y exp <u_x, v_y>
//
// A visit to a word meets its positives (or a share of them, where there are many), the contexts
// that a search finds, and a sample T of the others, weighted by w_y = 1 / (expected times drawn):
//
//   Z_x ~ sum_{y in S} exp s_y + sum_{y in T \ S} w_y exp s_y        S: positives and found ones
//
// With blocks of coordinates (`ContextBlocks`) there is no sample. A search runs in each block,
// whose scores share the bias; what is found is scored in full, and contexts that are not found
// count with <u_x, v_y> = 0 (algorithms 10 and 11), that is with their bias:
//
//   Z_x ~ sum_{y in S} exp s_y + sum_{y not in S} exp b_y
//
// The second sum is known but for S. Its gradient by the biases is gathered over visits and taken
// some times in a pass. A pass then moves words or contexts, not both.
//
// The first sum alone is a lower bound of Z_x. The gradient in s is N_x p_y - N_xy. Before that,
// passes of negative sampling (noise-contrastive, so that exp s_y is a probability afterwards):
//
//   N_xy (sigmoid(s_y - log k P_y) - 1)  for positives,  (k N_x / |T|) sigmoid(s_y - log k P_y)
//
// for T, drawn from the noise P. Steps are Adagrad's, with one scale for each vector.
//
// A batch of visits is taken from the same vectors: coefficients in parallel by visit, steps of
// contexts in parallel by columns, each in a fixed order. So threads change nothing.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "sublearn/core/alias_table.hpp"
#include "sublearn/core/inner_products.hpp"
#include "sublearn/core/monitor.hpp"
#include "sublearn/core/parallel_for.hpp"
#include "sublearn/core/rng.hpp"
#include "sublearn/core/row_kernels.hpp"
#include "sublearn/core/top_k.hpp"
#include "sublearn/core/types.hpp"
#include "sublearn/search/batch_search.hpp"
#include "sublearn/search/mips_index.hpp"

namespace sublearn {

/// Vectors, padded to `stride` numbers, and Adagrad's sums for each of them.
struct SkipGramModel {
  float* words = nullptr;
  float* contexts = nullptr;
  float* word_sums = nullptr;
  float* context_sums = nullptr;
  offset_t n_words = 0;
  offset_t stride = 0;
  offset_t bias = 0;  ///< the column where words have a number that stays
};

/// Counts in sparse rows, and the noise that contexts are drawn from.
struct SkipGramData {
  std::span<const offset_t> begin;
  std::span<const index_t> ids;
  std::span<const float> counts;
  std::span<const float> noise;  ///< probabilities
};

struct SkipGramSettings {
  bool is_contrastive = false;  ///< negative sampling instead of the softmax
  bool is_exact = false;        ///< the partition sum runs over all contexts
  float learning_rate = 0.1F;
  float n_negative = 5.0F;  ///< k above
  bool moves_words = true;
  bool moves_contexts = true;
  offset_t n_sampled = 1024;  ///< |T|, drawn anew for each batch
  offset_t n_found = 0;       ///< contexts to search for
  offset_t n_probe = 0;       ///< of the index
  offset_t visits_at_once = 64;
  offset_t pairs_of_visit = 256;  ///< a word with more has several visits
  std::uint64_t seed = 0;
};

/// A block of coordinates of the contexts, by clusters. Its rows have their share of the bias as a
/// last number; queries have a 1 there.
struct ContextBlock {
  offset_t first;
  offset_t count;
  ClusteredRows rows;
};
using ContextBlocks = std::vector<ContextBlock>;

inline constexpr offset_t kMostVisits = 256;  ///< of visits_at_once

struct SkipGramReport {
  double objective = 0.0;    ///< with the estimate of Z, at the vectors of each visit
  double lower_bound = 0.0;  ///< with the part of Z that was summed without sampling
  double work = 0.0;         ///< inner products
  bool is_finite = true;
};

class SkipGramPass {
 public:
  SkipGramPass(SkipGramModel model, SkipGramData data, const SkipGramSettings& settings,
               const MipsIndex<float>* index, const ContextBlocks* blocks, int n_threads,
               Monitor& monitor)
      : model_(model),
        data_(data),
        settings_(settings),
        index_(index),
        blocks_(settings.is_contrastive || settings.is_exact ? nullptr : blocks),
        n_threads_(n_threads),
        monitor_(monitor),
        table_(data.noise) {
    list_visits();
    scratch_.resize(static_cast<std::size_t>(std::max(1, n_threads)));
    results_.resize(static_cast<std::size_t>(settings.visits_at_once));
    if (blocks_ != nullptr) {
      found_in_.resize(blocks_->size());
      best_.resize(results_.size());
      rest_.start(model_);
    }
  }

  offset_t n_batches() const {
    return (static_cast<offset_t>(visits_.size()) + settings_.visits_at_once - 1) /
           settings_.visits_at_once;
  }

  SkipGramReport run() {
    SkipGramReport report;
    for (offset_t batch = 0; batch < n_batches() && report.is_finite; ++batch) {
      if (monitor_.stop_requested()) break;
      const offset_t first = batch * settings_.visits_at_once;
      const offset_t last = std::min<offset_t>(first + settings_.visits_at_once, visits_.size());
      draw(Rng(settings_.seed).split(static_cast<std::uint64_t>(batch) + 1));
      take(std::span<const Visit>(visits_).subspan(first, last - first), report);
      const bool settles = (batch + 1) % (n_batches() / kSettlements + 1) == 0;
      if (blocks_ != nullptr && report.is_finite && (settles || batch + 1 == n_batches())) settle();
    }
    const double n_pairs = std::max(n_visited_, 1e-300);  // all of them, unless it was stopped
    report.objective /= n_pairs;
    report.lower_bound /= n_pairs;
    return report;
  }

 private:
  /// Every `step`-th pair of a word, from pair `first` on.
  struct Visit {
    index_t word;
    index_t first;
    index_t step;
  };
  /// What a visit leaves for the steps.
  struct Result {
    std::vector<index_t> ids;    ///< S
    std::vector<float> factors;  ///< derivatives by their scores, then steps
    std::vector<float> gradient;
    double objective = 0.0;
    double lower_bound = 0.0;
    double share = 0.0;    ///< N_v / Z_v
    float n_pairs = 0.0F;  ///< count of the visit
    float square = 0.0F;   ///< of the word's length
  };
  struct Scratch {
    std::vector<float> scores;
    std::vector<float> counts;
    std::vector<offset_t> seen;  ///< number of the last visit that had a context in S
    offset_t n_seen = 0;
  };

  /// The sum of exp b_y over all contexts, and the gradient by biases of those that are not found.
  struct Rest {
    std::vector<double> exps;  ///< exp b_y
    std::vector<double> near;  ///< by context: sum of N_v / Z_v over the visits that found it
    double sum = 0.0;          ///< of exps
    double total = 0.0;        ///< sum of N_v / Z_v
    float unit = 0.0F;         ///< what words have in the column of the bias

    void start(const SkipGramModel& model) {
      unit = model.n_words > 0 ? model.words[model.bias] : 0.0F;
      exps.resize(static_cast<std::size_t>(model.n_words));
      near.assign(exps.size(), 0.0);
      for (offset_t y = 0; y < model.n_words; ++y) read(model, y);
    }
    void read(const SkipGramModel& model, offset_t y) {
      const double value =
          std::exp(static_cast<double>(model.contexts[y * model.stride + model.bias] * unit));
      sum += value - exps[static_cast<std::size_t>(y)];
      exps[static_cast<std::size_t>(y)] = value;
    }
  };

  void list_visits() {
    for (offset_t x = 0; x < model_.n_words; ++x) {
      const offset_t n_pairs = data_.begin[x + 1] - data_.begin[x];
      const offset_t parts = (n_pairs + settings_.pairs_of_visit - 1) / settings_.pairs_of_visit;
      for (offset_t part = 0; part < parts; ++part)
        visits_.push_back(
            {static_cast<index_t>(x), static_cast<index_t>(part), static_cast<index_t>(parts)});
    }
    Rng rng = Rng(settings_.seed).split(0);
    rng.shuffle(std::span<Visit>(visits_));
  }

  // --- the sample ------------------------------------------------------------------------------

  /// Contexts drawn from the noise, each once, and their weights.
  void draw(Rng rng) {
    if (blocks_ != nullptr) return;
    if (settings_.is_exact) {
      if (!tail_.empty()) return;
      tail_.resize(static_cast<std::size_t>(model_.n_words));
      for (std::size_t y = 0; y < tail_.size(); ++y) tail_[y] = static_cast<index_t>(y);
      weights_.assign(tail_.size(), 1.0F);
      return;
    }
    tail_.clear();
    for (offset_t draw = 0; draw < settings_.n_sampled; ++draw) tail_.push_back(table_.draw(rng));
    std::sort(tail_.begin(), tail_.end());
    weights_.clear();
    std::size_t kept = 0;
    for (std::size_t p = 0; p < tail_.size();) {
      std::size_t end = p;
      while (end < tail_.size() && tail_[end] == tail_[p]) ++end;
      weights_.push_back(static_cast<float>(end - p) /
                         (static_cast<float>(settings_.n_sampled) * data_.noise[tail_[p]]));
      tail_[kept++] = tail_[p];
      p = end;
    }
    tail_.resize(kept);
  }

  // --- a batch ---------------------------------------------------------------------------------

  void take(std::span<const Visit> visits, SkipGramReport& report) {
    const auto n = static_cast<offset_t>(visits.size());
    gather(visits);
    if (n_tail() > 0)
      inner_products(tail_rows(), n_tail(), words_.data(), n, model_.stride, tail_scores_.data());
    search(n);
    if (blocks_ != nullptr) search_blocks(n);
    parallel_for(n, n_threads_, &monitor_,
                 [&](offset_t v, int thread) { visit(visits[v], v, scratch_[thread]); });
    if (monitor_.stop_requested()) return;
    for (offset_t v = 0; v < n; ++v) {
      const Result& result = results_[v];
      report.objective += result.objective;
      report.lower_bound += result.lower_bound;
      n_visited_ += result.n_pairs;
      report.work += static_cast<double>(result.ids.size()) + static_cast<double>(n_tail());
      report.is_finite = report.is_finite && std::isfinite(result.objective);
    }
    if (!report.is_finite) return;  // the vectors stay as they were
    if (settings_.moves_contexts) {
      scale_steps(n);
      parallel_for(effective_columns(), n_threads_, [&](offset_t part, int) { step(n, part); });
      if (blocks_ != nullptr) note_rest(n);
    }
    if (settings_.moves_words) step_words(visits);
  }

  offset_t n_tail() const { return static_cast<offset_t>(tail_.size()); }
  const float* tail_rows() const {
    return settings_.is_exact ? model_.contexts : tail_rows_.data();
  }

  /// The vectors of the words and of the sample, side by side.
  void gather(std::span<const Visit> visits) {
    const offset_t stride = model_.stride;
    words_.resize(visits.size() * static_cast<std::size_t>(stride));
    for (std::size_t v = 0; v < visits.size(); ++v)
      std::copy_n(model_.words + visits[v].word * stride, stride,
                  words_.begin() + static_cast<offset_t>(v) * stride);
    if (!settings_.is_exact) {
      tail_rows_.resize(tail_.size() * static_cast<std::size_t>(stride));
      for (std::size_t t = 0; t < tail_.size(); ++t)
        std::copy_n(model_.contexts + tail_[t] * stride, stride,
                    tail_rows_.begin() + static_cast<offset_t>(t) * stride);
    }
    tail_scores_.resize(visits.size() * tail_.size());
  }

  /// The index has biases as they are; queries meet them with a 1.
  void search(offset_t n) {
    found_.resize(static_cast<std::size_t>(n));
    if (index_ == nullptr || settings_.n_found == 0) return;
    queries_ = words_;
    for (offset_t v = 0; v < n; ++v) queries_[v * model_.stride + model_.bias] = 1.0F;
    index_->search(queries_.data(), n, static_cast<std::size_t>(settings_.n_found),
                   {settings_.n_probe}, n_threads_, &monitor_,
                   [&](offset_t v, std::span<const Scored<float>> best) {
                     found_[v].clear();
                     for (const Scored<float>& item : best) found_[v].push_back(item.id);
                   });
  }

  /// The best contexts of each block, by the part of the score that it sees.
  void search_blocks(offset_t n) {
    for (offset_t v = 0; v < n; ++v) found_[v].clear();
    const auto share = static_cast<std::size_t>(settings_.n_found) / blocks_->size();
    for (std::size_t j = 0; j < blocks_->size(); ++j) {
      const ContextBlock& block = (*blocks_)[j];
      const offset_t dim = block.count + 1;
      queries_.resize(static_cast<std::size_t>(n * dim));
      for (offset_t v = 0; v < n; ++v) {
        std::copy_n(words_.data() + v * model_.stride + block.first, block.count,
                    queries_.data() + v * dim);
        queries_[v * dim + block.count] = 1.0F;
      }
      found_in_[j].run(block.rows, queries_.data(), n, dim, settings_.n_probe, n_threads_);
      parallel_for(n, n_threads_, [&](offset_t v, int) {
        const auto ids = found_in_[j].ids(v);
        const auto scores = found_in_[j].scores(v);
        best_[v].start(std::max<std::size_t>(1, share));
        for (std::size_t p = 0; p < ids.size(); ++p) best_[v].offer(ids[p], scores[p]);
        for (const Scored<float>& item : best_[v].select()) found_[v].push_back(item.id);
      });
    }
  }

  // --- one visit -------------------------------------------------------------------------------

  void visit(const Visit& visit, offset_t v, Scratch& s) {
    Result& result = results_[v];
    const float* word = words_.data() + v * model_.stride;
    float* tail = tail_scores_.data() + v * n_tail();
    const float n_pairs = result.n_pairs = collect(visit, v, result, s);
    const auto n_near = static_cast<offset_t>(result.ids.size());
    s.scores.resize(result.ids.size());
    if (settings_.is_exact) {
      for (offset_t p = 0; p < n_near; ++p) s.scores[p] = tail[result.ids[p]];
    } else {
      gathered_products(model_.contexts, result.ids.data(), n_near, word, model_.stride,
                        s.scores.data());
    }
    float highest = n_tail() > 0 ? *std::max_element(tail, tail + n_tail()) : s.scores[0];
    double attraction = 0.0, rest = blocks_ != nullptr ? rest_.sum : 0.0;
    for (offset_t p = 0; p < n_near; ++p) {
      highest = std::max(highest, s.scores[p]);
      attraction += static_cast<double>(s.counts[p]) * s.scores[p];
      if (blocks_ != nullptr) rest -= rest_.exps[result.ids[p]];
    }
    exponentials(s.scores.data(), n_near, highest, s.scores.data());
    exponentials(tail, n_tail(), highest, tail);
    const auto [near, sampled] = sums(s, tail);
    double far = sampled;
    if (blocks_ != nullptr) {
      const double scale = std::exp(-static_cast<double>(highest));
      far = std::max(rest, 0.0) * scale;
      result.share = static_cast<double>(n_pairs) / (near + far) * scale;
    }
    result.objective = n_pairs * (std::log(near + far) + highest) - attraction;
    const double sure = settings_.is_exact ? near + far : near;
    result.lower_bound = n_pairs * (std::log(std::max(sure, 1e-300)) + highest) - attraction;
    derivatives(result, s, tail, n_pairs, near + far, highest);
    finish(result, word, tail);
  }

  /// S and its counts; returns the count of the visit.
  float collect(const Visit& visit, offset_t v, Result& result, Scratch& s) {
    result.ids.clear();
    s.counts.clear();
    s.seen.resize(static_cast<std::size_t>(model_.n_words), 0);
    ++s.n_seen;
    float n_pairs = 0.0F;
    for (offset_t p = data_.begin[visit.word] + visit.first; p < data_.begin[visit.word + 1];
         p += visit.step) {
      result.ids.push_back(data_.ids[p]);
      s.counts.push_back(data_.counts[p]);
      s.seen[data_.ids[p]] = s.n_seen;
      n_pairs += data_.counts[p];
    }
    for (const index_t y : found_[v]) {
      if (s.seen[y] == s.n_seen) continue;
      s.seen[y] = s.n_seen;
      result.ids.push_back(y);
      s.counts.push_back(0.0F);
    }
    found_[v].clear();
    return n_pairs;
  }

  /// The sums of exponentials over S and over the sample; the latter's are weighted by the way.
  std::pair<double, double> sums(const Scratch& s, float* tail) const {
    double near = 0.0, far = 0.0;
    if (!settings_.is_exact) {
      for (const float value : s.scores) near += value;
    }
    const bool skips = !settings_.is_exact;
    for (offset_t t = 0; t < n_tail(); ++t) {
      if (skips && s.seen[tail_[t]] == s.n_seen) {
        if (!settings_.is_contrastive) tail[t] = 0.0F;
        continue;
      }
      far += static_cast<double>(weights_[t]) * tail[t];
    }
    return {near, far};
  }

  /// From exponentials to derivatives by scores.
  void derivatives(Result& result, const Scratch& s, float* tail, float n_pairs, double partition,
                   float highest) const {
    result.factors.resize(result.ids.size());
    if (!settings_.is_contrastive) {
      const float rate = n_pairs / static_cast<float>(partition);
      const float near_rate = settings_.is_exact ? 0.0F : rate;
      for (std::size_t p = 0; p < result.ids.size(); ++p)
        result.factors[p] = near_rate * s.scores[p] - s.counts[p];
      for (offset_t t = 0; t < n_tail(); ++t) tail[t] *= rate * weights_[t];
      return;
    }
    const float scale = settings_.n_negative * std::exp(-highest);
    for (std::size_t p = 0; p < result.ids.size(); ++p) {
      const float noise = scale * data_.noise[result.ids[p]];
      result.factors[p] = -s.counts[p] * noise / (s.scores[p] + noise);
    }
    for (offset_t t = 0; t < n_tail(); ++t) {
      const float noise = data_.noise[tail_[t]];
      const float share = tail[t] / (tail[t] + scale * noise);
      tail[t] = n_pairs * settings_.n_negative * noise * weights_[t] * share;
    }
  }

  /// The word's gradient.
  void finish(Result& result, const float* word, const float* tail) const {
    const offset_t stride = model_.stride;
    result.gradient.assign(static_cast<std::size_t>(stride), 0.0F);
    add_scaled_rows(model_.contexts, result.ids.data(), result.factors.data(),
                    static_cast<offset_t>(result.ids.size()), stride, result.gradient.data());
    add_scaled_rows(tail_rows(), nullptr, tail, n_tail(), stride, result.gradient.data());
    result.gradient[model_.bias] = 0.0F;
    inner_products(word, 1, word, 1, stride, &result.square);
  }

  // --- steps -----------------------------------------------------------------------------------

  /// Adagrad's step for a derivative, whose squares are summed in `sum`.
  float scaled(float& sum, float square) const {
    sum += square / static_cast<float>(model_.bias + 1);
    return sum > 0.0F ? -settings_.learning_rate / std::sqrt(sum) : 0.0F;
  }

  /// Factors of S become steps, in the order of the visits.
  void scale_steps(offset_t n) {
    for (offset_t v = 0; v < n; ++v) {
      Result& result = results_[v];
      for (std::size_t p = 0; p < result.ids.size(); ++p) {
        const float factor = result.factors[p];
        result.factors[p] =
            factor * scaled(model_.context_sums[result.ids[p]], factor * factor * result.square);
      }
    }
    const auto size = static_cast<std::size_t>(n_tail() * model_.stride);
    tail_steps_.assign(size, 0.0F);
    const offset_t n_blocks = (n_tail() + kTailRows - 1) / kTailRows;
    parallel_for(n_blocks, n_threads_, [&](offset_t block, int) {
      for (offset_t t = block * kTailRows; t < std::min(n_tail(), (block + 1) * kTailRows); ++t)
        tail_step(n, t);
    });
  }

  void tail_step(offset_t n, offset_t t) {
    float* step = tail_steps_.data() + t * model_.stride;
    float factors[kMostVisits], square = 0.0F;
    for (offset_t v = 0; v < n; ++v) factors[v] = tail_scores_[v * n_tail() + t];
    add_scaled_rows(words_.data(), nullptr, factors, n, model_.stride, step);
    inner_products(step, 1, step, 1, model_.stride, &square);
    const float scale = scaled(model_.context_sums[tail_[t]], square);
    for (offset_t d = 0; d < model_.stride; ++d) step[d] *= scale;
  }

  /// Biases have moved; contexts that were found have no part in the rest of this batch.
  void note_rest(offset_t n) {
    for (offset_t v = 0; v < n; ++v) {
      rest_.total += results_[v].share;
      for (const index_t y : results_[v].ids) {
        rest_.near[y] += results_[v].share;
        rest_.read(model_, y);
      }
    }
  }

  /// Steps of the biases by what was gathered: d/db_y sum_v N_v log Z_v = exp b_y sum_v N_v / Z_v
  /// over the visits that have not found y.
  void settle() {
    if (!settings_.moves_contexts || rest_.total == 0.0) return;
    for (offset_t y = 0; y < model_.n_words; ++y) {
      const double left = std::max(rest_.total - rest_.near[y], 0.0);
      const auto slope = static_cast<float>(rest_.exps[y] * left) * rest_.unit;
      model_.contexts[y * model_.stride + model_.bias] +=
          slope * scaled(model_.context_sums[y], slope * slope);
      rest_.near[y] = 0.0;
      rest_.read(model_, y);
    }
    rest_.total = 0.0;
  }

  offset_t effective_columns() const {
    return std::min<offset_t>(std::max(1, n_threads_), model_.stride / kRowFloats);
  }

  /// Moves contexts, in the columns of one part.
  void step(offset_t n, offset_t part) {
    const offset_t n_lines = model_.stride / kRowFloats, n_parts = effective_columns();
    const offset_t first = part * n_lines / n_parts * kRowFloats;
    const offset_t last = (part + 1) * n_lines / n_parts * kRowFloats;
    for (offset_t v = 0; v < n; ++v) {
      const Result& result = results_[v];
      add_to_rows(model_.contexts, result.ids.data(), result.factors.data(),
                  static_cast<offset_t>(result.ids.size()), model_.stride,
                  words_.data() + v * model_.stride, first, last);
    }
    for (offset_t t = 0; t < n_tail(); ++t) {
      float* row = model_.contexts + tail_[t] * model_.stride;
      const float* move = tail_steps_.data() + t * model_.stride;
      for (offset_t d = first; d < last; ++d) row[d] += move[d];
    }
  }

  void step_words(std::span<const Visit> visits) {
    for (std::size_t v = 0; v < visits.size(); ++v) {
      const std::vector<float>& gradient = results_[v].gradient;
      float* word = model_.words + visits[v].word * model_.stride;
      float square = 0.0F;
      inner_products(gradient.data(), 1, gradient.data(), 1, model_.stride, &square);
      const float factor = scaled(model_.word_sums[visits[v].word], square);
      for (offset_t d = 0; d < model_.bias; ++d) word[d] += factor * gradient[d];
    }
  }

  static constexpr offset_t kTailRows = 64;
  static constexpr offset_t kSettlements = 16;  // in a pass

  SkipGramModel model_;
  SkipGramData data_;
  SkipGramSettings settings_;
  const MipsIndex<float>* index_;
  const ContextBlocks* blocks_;
  Rest rest_;
  std::vector<BatchSearch> found_in_;
  std::vector<TopK<float>> best_;
  int n_threads_;
  Monitor& monitor_;
  AliasTable table_;
  double n_visited_ = 0.0;
  std::vector<Visit> visits_;
  std::vector<index_t> tail_;
  std::vector<float> weights_, tail_rows_, tail_scores_, tail_steps_, words_, queries_;
  std::vector<std::vector<index_t>> found_;
  std::vector<Result> results_;
  std::vector<Scratch> scratch_;
};

}  // namespace sublearn
