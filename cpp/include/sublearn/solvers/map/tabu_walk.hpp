// A walk by the best label moves, also through worse assignments (tabu search, Glover 1989).
//
// Each step takes the move of one label that loses least, and forbids the label that was left for a
// random number of steps, unless taking it again would give the best score of the walk. What each
// variable would gain is kept, and looked at again only where a step has changed it: on a graph of
// few labels a step costs the lines of the factors of one variable.
//
// Used by: solvers/map/search.hpp.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "sublearn/core/factor_graph.hpp"
#include "sublearn/core/rng.hpp"
#include "sublearn/core/types.hpp"
#include "sublearn/solvers/map/scored_labels.hpp"

namespace sublearn {

class TabuWalk {
 public:
  explicit TabuWalk(const FactorGraph& graph) : graph_(graph) {}

  /// Walks until no better score was seen for `patience` steps, `most_work` operations are done, or
  /// `interrupted()` says stop; `current` is then at the best labels of the walk. A label that was
  /// left is forbidden for `tenure` to twice as many steps.
  template <class Interrupted>
  void run(ScoredLabels& current, index_t tenure, std::int64_t patience, double most_work, Rng& rng,
           Interrupted&& interrupted) {
    begin(current);
    const double end = current.work() + most_work;
    double best = current.score();
    for (std::int64_t since = 0; since < patience && current.work() < end; ++since) {
      if (++step_ % 256 == 0 && interrupted()) break;
      expire(current);
      const index_t i = choose(current, best, rng);
      if (i == kNone) break;
      take(current, i,
           tenure + static_cast<index_t>(rng.below(static_cast<std::uint32_t>(tenure))));
      if (current.score() <= best + current.tolerance()) continue;
      best = current.score();
      journal_.clear();
      since = 0;
    }
    go_back(current);
  }

 private:
  static constexpr index_t kNone = -1;
  static constexpr std::size_t kBuckets = 256;  ///< longer than twice any tenure
  static constexpr double kNever = -std::numeric_limits<double>::infinity();

  /// The best move of a variable: among the labels that are free, and among all.
  struct Best {
    index_t free = 0, any = 0;
  };
  struct Change {
    index_t variable, label;
  };

  void begin(ScoredLabels& current) {
    const auto n = graph_.domain.size();
    tabu_until_.resize(graph_.unary.size(), 0);
    free_gain_.resize(n);
    any_gain_.resize(n);
    best_.resize(n);
    expiring_.resize(kBuckets);
    journal_.clear();
    current.drain([](index_t) {});
    for (index_t i = 0; i < graph_.n_variables(); ++i) look(current, i);
  }

  void look(ScoredLabels& current, index_t i) {
    const auto own = current.scores_of(i);
    const std::int64_t* until = tabu_until_.data() + graph_.unary_begin[at(i)];
    const index_t label = current[i];
    double free = kNever, any = kNever;
    Best& best = best_[at(i)];
    for (index_t a = 0; a < graph_.domain[at(i)]; ++a) {
      if (a == label || own[at(a)] <= free) continue;  // then it is below `any` as well
      if (own[at(a)] > any) {
        any = own[at(a)];
        best.any = a;
      }
      if (until[a] > step_) continue;
      free = own[at(a)];
      best.free = a;
    }
    free_gain_[at(i)] = free - own[at(label)];
    any_gain_[at(i)] = any - own[at(label)];
    current.add_work(static_cast<double>(own.size()));
  }

  /// Labels that are free again.
  void expire(ScoredLabels& current) {
    auto& due = expiring_[static_cast<std::size_t>(step_) % kBuckets];
    for (const index_t i : due) look(current, i);
    due.clear();
  }

  /// The variable to move; the scan begins anywhere, so that ties fall to each in turn.
  index_t choose(ScoredLabels& current, double best, Rng& rng) {
    const auto n = graph_.n_variables();
    const auto first = static_cast<index_t>(rng.below(static_cast<std::uint32_t>(n)));
    double most = kNever, most_of_any = kNever;
    index_t chosen = kNone, chosen_of_any = kNone;
    const auto scan = [&](index_t begin, index_t end) {
      for (index_t i = begin; i < end; ++i) {
        if (free_gain_[at(i)] > most) {
          most = free_gain_[at(i)];
          chosen = i;
        }
        if (any_gain_[at(i)] > most_of_any) {
          most_of_any = any_gain_[at(i)];
          chosen_of_any = i;
        }
      }
    };
    scan(first, n);
    scan(0, first);
    current.add_work(0.5 * n);
    is_aspiring_ = most_of_any > most && current.score() + most_of_any > best + current.tolerance();
    return is_aspiring_ ? chosen_of_any : chosen;
  }

  void take(ScoredLabels& current, index_t i, index_t tenure) {
    const index_t before = current[i];
    current.set(i, is_aspiring_ ? best_[at(i)].any : best_[at(i)].free);
    journal_.push_back({i, before});
    tabu_until_[at(graph_.unary_begin[at(i)] + before)] = step_ + tenure + 1;
    expiring_[static_cast<std::size_t>(step_ + tenure + 1) % kBuckets].push_back(i);
    look(current, i);
    current.drain([&](index_t j) { look(current, j); });
  }

  /// Undoes what came after the best score.
  void go_back(ScoredLabels& current) {
    if (journal_.empty()) return;
    labels_ = current.labels();
    for (std::size_t k = journal_.size(); k-- > 0;)
      labels_[at(journal_[k].variable)] = journal_[k].label;
    current.set_all(labels_);
  }

  const FactorGraph& graph_;
  std::int64_t step_ = 0;
  std::vector<std::int64_t> tabu_until_;  ///< by label, laid out like graph.unary
  std::vector<double> free_gain_, any_gain_;
  std::vector<Best> best_;
  std::vector<std::vector<index_t>> expiring_;  ///< variables, by step
  std::vector<Change> journal_;
  std::vector<index_t> labels_;
  bool is_aspiring_ = false;
};

}  // namespace sublearn
