// Labels of all variables, and what each label would score given those of the others.
//
// A change of one label costs the rows that its factors show to its neighbours. Variables whose
// scores have changed wait in a queue; climbing takes them one by one to their best label. Work is
// counted in operations, so that a run limited by work is the same on every machine.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

#include "sublearn/core/factor_graph.hpp"
#include "sublearn/core/rng.hpp"
#include "sublearn/core/types.hpp"

namespace sublearn {

class ScoredLabels {
 public:
  explicit ScoredLabels(const FactorGraph& graph)
      : graph_(graph), frozen_(graph.domain.size(), 0) {}

  /// Begins anew with these labels, no work and an empty queue.
  void start(std::span<const index_t> labels) {
    labels_.assign(labels.begin(), labels.end());
    waiting_.assign(labels_.size(), 0);
    queue_.clear();
    work_ = 0.0;
    refresh();
  }

  const std::vector<index_t>& labels() const { return labels_; }
  index_t operator[](index_t i) const { return labels_[at(i)]; }
  double score() const { return score_; }

  /// Scores of every label of variable i, given the labels of the others.
  std::span<const double> scores_of(index_t i) const {
    return {scores_.data() + graph_.unary_begin[at(i)], at(graph_.domain[at(i)])};
  }

  /// A difference of scores that is not rounding.
  double tolerance() const { return 1e-10 * (1.0 + std::abs(score_)); }

  double work() const { return work_; }
  void add_work(double operations) { work_ += operations; }
  double refresh_work() const { return refresh_work_; }

  /// Computes the scores anew when updates may have summed up a rounding error.
  void refresh_if_stale() {
    if (update_work_ > 2000.0 * refresh_work_) refresh();
  }

  /// Gives i a label and brings the score and the scores of its neighbours up to date.
  void set(index_t i, index_t label) {
    const index_t before = labels_[at(i)];
    if (label == before) return;
    const auto own = scores_of(i);
    score_ += own[at(label)] - own[at(before)];
    if (journaling_) journal_.push_back({i, before});
    const double work_before = update_work_;
    for (const FactorEnd& end : graph_.ends_of(i)) {
      const auto scope = graph_.scope_of(end.factor);
      for (std::size_t q = 0; q < scope.size(); ++q) {
        if (q == at(end.position)) continue;
        add_scores(end.factor, q, -1.0);
        labels_[at(i)] = label;
        add_scores(end.factor, q, 1.0);
        labels_[at(i)] = before;
        push(scope[q]);
      }
    }
    labels_[at(i)] = label;
    work_ += update_work_ - work_before;
  }

  void set_all(std::span<const index_t> labels) {
    for (std::size_t i = 0; i < labels.size(); ++i) set(static_cast<index_t>(i), labels[i]);
  }

  /// Puts i into the queue.
  void push(index_t i) {
    if (waiting_[at(i)]) return;
    waiting_[at(i)] = 1;
    queue_.push_back(i);
  }

  /// Calls body(i) for each that waits, and none waits any more.
  template <class Body>
  void drain(Body&& body) {
    for (const index_t i : queue_) {
      waiting_[at(i)] = 0;
      body(i);
    }
    queue_.clear();
  }

  /// All variables wait, in a random order.
  void push_all(Rng& rng) {
    for (index_t i = 0; i < graph_.n_variables(); ++i) push(i);
    rng.shuffle(std::span(queue_));
  }

  /// Climbing leaves a frozen variable as it is.
  void freeze(index_t i) { frozen_[at(i)] = 1; }
  void thaw(index_t i) { frozen_[at(i)] = 0; }

  /// Label moves until no variable that is not frozen gains by one, or `interrupted()` says stop.
  template <class Interrupted>
  void climb(Interrupted&& interrupted) {
    for (unsigned step = 1; !queue_.empty(); ++step) {
      if (step % 1024 == 0 && interrupted()) return;
      const index_t i = queue_.back();
      queue_.pop_back();
      waiting_[at(i)] = 0;
      if (frozen_[at(i)]) continue;
      const auto own = scores_of(i);
      work_ += static_cast<double>(own.size());
      const auto best = std::max_element(own.begin(), own.end());
      if (*best > own[at(labels_[at(i)])] + tolerance()) {
        set(i, static_cast<index_t>(best - own.begin()));
      }
    }
  }

  /// From here on changes are written down, until they are kept or undone.
  void begin_trial() {
    journaling_ = true;
    journal_.clear();
  }

  /// Ends a trial; changes since begin_trial() are undone unless `keep`.
  void end_trial(bool keep) {
    journaling_ = false;
    if (keep) return;
    for (std::size_t k = journal_.size(); k-- > 0;) set(journal_[k].variable, journal_[k].label);
    for (const index_t i : queue_) waiting_[at(i)] = 0;
    queue_.clear();
  }

 private:
  struct Change {
    index_t variable, label;
  };

  void refresh() {
    scores_ = graph_.unary;
    for (index_t f = 0; f < graph_.n_factors(); ++f) {
      const auto scope = graph_.scope_of(f);
      for (std::size_t p = 0; p < scope.size(); ++p) add_scores(f, p, 1.0);
    }
    score_ = graph_.score(labels_);
    refresh_work_ = static_cast<double>(graph_.scope.size() + scores_.size()) * 4.0;
    work_ += refresh_work_;
    update_work_ = 0.0;
  }

  /// Adds sign times the row of factor f that the variable at position p sees to its scores.
  void add_scores(index_t f, std::size_t p, double sign) {
    const index_t i = graph_.scope_of(f)[p];
    const std::span<double> sum{scores_.data() + graph_.unary_begin[at(i)],
                                at(graph_.domain[at(i)])};
    graph_.add_line({f, static_cast<index_t>(p)}, labels_, sign, sum,
                    [](std::size_t a) { return static_cast<offset_t>(a); });
    update_work_ += static_cast<double>(sum.size()) + 4.0;
  }

  const FactorGraph& graph_;
  std::vector<index_t> labels_;
  std::vector<double> scores_;  ///< laid out like graph.unary
  double score_ = 0.0;
  double work_ = 0.0, update_work_ = 0.0, refresh_work_ = 0.0;
  std::vector<index_t> queue_;
  std::vector<char> waiting_, frozen_;
  bool journaling_ = false;
  std::vector<Change> journal_;
};

}  // namespace sublearn
