// The last layer of a model with very many labels, z = W x, and the steps that train it.
//
// A step takes a mini-batch of (x_i, P_i), finds the labels whose scores matter (candidate_search),
// differentiates the loss on them (objectives/output_loss.hpp) and moves the rows of W that have a
// gradient:
//
//   dL/dW_k = 1/n sum_i g_ik x_i        dL/dx_i = sum_k g_ik W_k
//
// With l2 > 0 a row is also pulled towards where it stood at the first such step, by the gradient
// of l2 / 2 |W_k - O_k|^2. A row that has not moved for some steps gets theirs at once when it
// moves.
//
// Scores that are distances, z = -|x - w|^2, are inner products of lifted rows and features (the
// augmentation below (3.43)), block by block of coordinates:
//
//   row (w_1, -|w_1|^2, 1, w_2, ...),    features (2 x_1, 1, -|x_1|^2, 2 x_2, ...)
//
// so that searches and losses know nothing of them. Only steps do: with s = sum_i g_ik, the
// gradient by w_k is sum_i g_ik 2 x_i - 2 s w_k, and -|w|^2 follows.
//
// Scores of candidates are always those of the rows as they are. Searches look at copies
// (search/clustered_rows.hpp), which are made anew when as many samples have passed as `refresh`
// times the number of labels. Then a row that has moved by a tenth of its length since it last
// did so looks for its cluster again; a row that moves less hardly ever has another nearest centre.
// With a `refresh` of 0, the rows of a step are copied and look for their clusters after it.
//
// Everything is in float32 and in one definite order: samples, then labels as they first appear.
// The number of threads changes nothing.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <vector>

#include "sublearn/core/parallel_for.hpp"
#include "sublearn/objectives/output_loss.hpp"
#include "sublearn/solvers/embed/candidate_search.hpp"
#include "sublearn/solvers/embed/row_updates.hpp"

namespace sublearn {

/// How a step looks for labels, measures them and moves their rows.
struct LayerSettings {
  OutputLoss loss;
  CandidateSettings candidates;
  double refresh = 0.25;
  bool counts_mean = false;  ///< labels that are not found have their mean score, not 0
  double l2 = 0.0;           ///< of the pull towards the start
  int n_threads = 1;
};

/// A block of coordinates of rows whose scores are distances: behind its `count` coordinates from
/// `first` on stand their -|w|^2 and a 1.
struct DistanceBlock {
  offset_t first = 0;
  offset_t count = 0;
};

/// What a step did.
struct StepReport {
  double loss = 0.0;       ///< sum over the batch, on the candidates
  offset_t n_updates = 0;  ///< rows that moved
  offset_t work = 0;       ///< inner products of searches and scores
  bool is_finite = true;   ///< if not, nothing was changed
};

class OutputLayer {
 public:
  /// `weights` are n_labels rows of padded_dim(dim) numbers. Adagrad's sums of squares begin at the
  /// square of `damping`: without it the first step of a row is as long as the rate however small
  /// its gradient is, and labels with a row or two learn it by heart.
  OutputLayer(std::vector<float> weights, offset_t n_labels, offset_t dim, StepRule rule,
              float damping = 0.0F, std::vector<DistanceBlock> distances = {})
      : dim_(dim),
        stride_(padded_dim(dim)),
        n_labels_(n_labels),
        rule_(rule),
        distances_(std::move(distances)),
        weights_(std::move(weights)),
        moved_(static_cast<std::size_t>(n_labels), 0.0F),
        slot_(static_cast<std::size_t>(n_labels), -1) {
    states_.resize(static_cast<std::size_t>(n_states(rule)));
    const float first = rule == StepRule::adagrad ? damping * damping : 0.0F;
    for (auto& state : states_) state.assign(weights_.size(), first);
  }

  offset_t dim() const { return dim_; }
  offset_t stride() const { return stride_; }
  offset_t n_labels() const { return n_labels_; }
  std::span<const float> weights() const { return weights_; }
  std::span<const ClusteredRows> blocks() const { return blocks_; }
  std::vector<std::vector<float>>& states() { return states_; }
  std::int64_t n_steps = 0;  ///< taken so far; Adam's clock

  /// Losses and gradients with respect to scores. Keeps them for the next two functions.
  StepReport differentiate(const LabelBatch& batch, const LayerSettings& settings,
                           std::uint64_t seed) {
    const bool has_mean = settings.counts_mean && !mean_.empty();
    search_.find(batch, {weights_.data(), n_labels_, stride_, has_mean ? mean_.data() : nullptr},
                 blocks_, settings.loss, settings.candidates, seed, settings.n_threads);
    StepReport report;
    report.work = search_.work;
    for (const SampleGradient& sample : search_.samples()) report.loss += sample.loss;
    report.is_finite = std::isfinite(report.loss);
    group_by_label();
    report.n_updates = static_cast<offset_t>(touched_.size());
    return report;
  }

  /// out[i] = sum_k g_ik W_k for the batch that was differentiated last; rows `stride` apart.
  void feature_gradient(float* out, int n_threads) const {
    const auto samples = search_.samples();
    parallel_for(static_cast<offset_t>(samples.size()), n_threads, [&](offset_t i, int) {
      float* sum = out + i * stride_;
      std::fill_n(sum, stride_, 0.0F);
      for (const LabelGradient& item : samples[i].gradient)
        add_scaled(sum, weights_.data() + item.label * stride_, item.value, stride_);
    });
  }

  /// Moves the rows of the batch that was differentiated last.
  void move_rows(const LabelBatch& batch, const LayerSettings& settings, float rate) {
    ++n_steps;
    RowStep step{rule_, rate};
    const auto t = static_cast<double>(n_steps);
    step.mean_scale = static_cast<float>(1.0 / (1.0 - std::pow(0.9, t)));
    step.square_scale = static_cast<float>(1.0 / (1.0 - std::pow(0.999, t)));
    if (settings.l2 > 0.0 && origin_.empty()) {
      origin_ = weights_;
      pulled_at_.assign(static_cast<std::size_t>(n_labels_), n_steps - 1);
    }
    const float pull = rate * static_cast<float>(settings.l2);
    const auto n_chunks = (static_cast<offset_t>(touched_.size()) + kRowsAtOnce - 1) / kRowsAtOnce;
    const int threads = effective_threads(n_chunks, settings.n_threads);
    gradients_.resize(static_cast<std::size_t>(threads * stride_));
    parallel_for(n_chunks, threads, [&](offset_t chunk, int thread) {
      const auto last = std::min<std::size_t>((chunk + 1) * kRowsAtOnce, touched_.size());
      for (auto p = static_cast<std::size_t>(chunk * kRowsAtOnce); p < last; ++p) {
        if (p + kAhead < touched_.size()) ask_for(touched_[p + kAhead]);
        move_row(p, batch, step, gradients_.data() + thread * stride_);
        if (pull > 0.0F) pull_back(touched_[p], step, pull);
        lift(weights_.data() + touched_[p] * stride_);
      }
    });
    if (settings.refresh == 0.0) {
      for (ClusteredRows& block : blocks_)
        block.update(touched_, weights_.data(), stride_, settings.n_threads);
    }
    count_towards_refresh(batch.n_samples(), settings);
  }

  /// Gives rows values from outside, `stride` apart.
  void set_rows(std::span<const index_t> labels, const float* rows) {
    for (std::size_t p = 0; p < labels.size(); ++p) {
      const float* row = rows + static_cast<offset_t>(p) * stride_;
      float* own = weights_.data() + labels[p] * stride_;
      float squared = 0.0F;
      for (offset_t d = 0; d < stride_; ++d) squared += (row[d] - own[d]) * (row[d] - own[d]);
      moved_[labels[p]] += std::sqrt(squared);
      std::copy_n(row, stride_, own);
      lift(own);
    }
  }

  /// Samples have passed since the copies of searches were made.
  void count_towards_refresh(offset_t n_samples, const LayerSettings& settings) {
    n_stale_ += n_samples;
    const double share = settings.refresh > 0.0 ? settings.refresh : kMeanRefresh;
    if (blocks_.empty() || static_cast<double>(n_stale_) < share * static_cast<double>(n_labels_))
      return;
    n_stale_ = 0;
    find_mean();
    if (settings.refresh == 0.0) return;
    far_.clear();
    for (offset_t k = 0; k < n_labels_; ++k) {
      const float length = std::sqrt(squared_length(weights_.data() + k * stride_, stride_));
      if (moved_[k] <= kFar * length) continue;
      moved_[k] = 0.0F;
      far_.push_back(static_cast<index_t>(k));
    }
    for (ClusteredRows& block : blocks_)
      block.refresh(far_, weights_.data(), stride_, settings.n_threads);
  }

  void clear_blocks() { blocks_.clear(); }

  /// Makes coordinates searchable: unit centres, rows of `dim` numbers, and each row's cluster.
  void add_block(offset_t first, offset_t dim, std::span<const float> centres,
                 std::vector<index_t> cluster_of) {
    blocks_.emplace_back(first, dim, centres, std::move(cluster_of), weights_.data(), stride_);
    std::fill(moved_.begin(), moved_.end(), 0.0F);
    n_stale_ = 0;
    find_mean();
  }

  std::span<const SampleGradient> gradients() const { return search_.samples(); }

 private:
  struct Term {
    index_t sample;
    float value;
  };
  static constexpr offset_t kRowsAtOnce = 16;
  static constexpr std::size_t kAhead = 3;  // rows asked for before they are needed
  static constexpr float kFar = 0.1F;
  static constexpr double kMeanRefresh = 0.25;  // of the mean, where copies have no refresh

  void find_mean() {
    std::vector<double> sums(static_cast<std::size_t>(stride_), 0.0);
    for (offset_t k = 0; k < n_labels_; ++k) {
      for (offset_t d = 0; d < stride_; ++d)
        sums[at(d)] += static_cast<double>(weights_[at(k * stride_ + d)]);
    }
    mean_.resize(sums.size());
    for (std::size_t d = 0; d < sums.size(); ++d)
      mean_[d] = static_cast<float>(sums[d] / static_cast<double>(n_labels_));
  }

  /// Writes -|w|^2 and 1 of each block.
  void lift(float* row) const {
    for (const DistanceBlock& block : distances_) {
      float squared = 0.0F;
      for (offset_t d = block.first; d < block.first + block.count; ++d) squared += row[d] * row[d];
      row[block.first + block.count] = -squared;
      row[block.first + block.count + 1] = 1.0F;
    }
  }

  /// From the gradient by a lifted row to that by its coordinates.
  void unlift(float* gradient, const float* row) const {
    for (const DistanceBlock& block : distances_) {
      float* tail = gradient + block.first + block.count;
      for (offset_t d = block.first; d < block.first + block.count; ++d)
        gradient[d] -= 2.0F * tail[0] * row[d];
      tail[0] = tail[1] = 0.0F;
    }
  }

  /// Terms label by label, labels as they first appear. Linear: `slot_` says where a label stands.
  void group_by_label() {
    touched_.clear();
    first_term_.assign(1, 0);
    for (const SampleGradient& sample : search_.samples()) {
      for (const LabelGradient& item : sample.gradient) {
        if (slot_[item.label] < 0) {
          slot_[item.label] = static_cast<index_t>(touched_.size());
          touched_.push_back(item.label);
          first_term_.push_back(0);
        }
        ++first_term_[slot_[item.label] + 1];
      }
    }
    for (std::size_t p = 1; p < first_term_.size(); ++p) first_term_[p] += first_term_[p - 1];
    terms_.resize(static_cast<std::size_t>(first_term_.back()));
    next_term_.assign(first_term_.begin(), first_term_.end() - 1);
    index_t sample_id = 0;
    for (const SampleGradient& sample : search_.samples()) {
      for (const LabelGradient& item : sample.gradient)
        terms_[next_term_[slot_[item.label]]++] = {sample_id, item.value};
      ++sample_id;
    }
    for (const index_t label : touched_) slot_[label] = -1;
  }

  void ask_for(index_t label) const {
    prefetch_row(weights_.data() + label * stride_, stride_);
    for (const auto& state : states_) prefetch_row(state.data() + label * stride_, stride_);
  }

  void move_row(std::size_t p, const LabelBatch& batch, const RowStep& step, float* gradient) {
    std::fill_n(gradient, stride_, 0.0F);
    const float share = 1.0F / static_cast<float>(batch.n_samples());
    for (offset_t term = first_term_[p]; term < first_term_[p + 1]; ++term)
      add_scaled(gradient, batch.row(terms_[term].sample), share * terms_[term].value, stride_);
    const offset_t place = touched_[p] * stride_;
    unlift(gradient, weights_.data() + place);
    float* first = states_.empty() ? nullptr : states_[0].data() + place;
    float* second = states_.size() < 2 ? nullptr : states_[1].data() + place;
    moved_[touched_[p]] +=
        std::sqrt(step_row(step, weights_.data() + place, first, second, gradient, stride_));
  }

  void pull_back(index_t label, const RowStep& step, float pull) {
    const offset_t place = label * stride_;
    const auto n_missed = static_cast<float>(n_steps - pulled_at_[label]);
    pulled_at_[label] = n_steps;
    const float* first = states_.empty() ? nullptr : states_[0].data() + place;
    const float* second = states_.size() < 2 ? nullptr : states_[1].data() + place;
    pull_row(step, weights_.data() + place, origin_.data() + place, first, second, n_missed * pull,
             stride_);
  }

  offset_t dim_;
  offset_t stride_;
  offset_t n_labels_;
  StepRule rule_;
  std::vector<DistanceBlock> distances_;
  std::vector<float> weights_;
  std::vector<float> mean_;  // of the rows when copies were last made
  std::vector<std::vector<float>> states_;
  std::vector<float> moved_;             // length of a row's way since it last looked for a cluster
  std::vector<float> origin_;            // weights before the first pull
  std::vector<std::int64_t> pulled_at_;  // by label: the step of its last pull
  std::vector<ClusteredRows> blocks_;
  offset_t n_stale_ = 0;
  CandidateSearch search_;
  std::vector<index_t> slot_, touched_, far_;
  std::vector<offset_t> first_term_, next_term_;
  std::vector<Term> terms_;
  std::vector<float> gradients_;
};

}  // namespace sublearn
