// Branch and bound in a cost network.
//
// Depth first, and after some closed nodes from the open node with the best bound, so that one
// early mistake does not hold the search for ever (hybrid best-first search, Allouche et al. 2015).
// Every node passes messages where its branching has changed something, and drops the labels that
// its bound excludes.
//
// Used by: solvers/map/branch.hpp, solvers/map/neighbourhood_search.hpp.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "sublearn/core/monitor.hpp"
#include "sublearn/core/types.hpp"
#include "sublearn/solvers/map/cost_network.hpp"

namespace sublearn {

class BranchSearch {
 public:
  /// Looks for costs below `upper` by more than `slack`, among what `root` leaves open.
  BranchSearch(CostNetwork& network, CostState root, double upper, double slack)
      : network_(&network),
        upper_(upper),
        slack_(slack),
        weights_(static_cast<std::size_t>(network.n_variables()), 1.0),
        state_bytes_(root.bytes()) {
    stack_.push_back(std::move(root));
  }

  /// A root that its messages have left as it is needs few sweeps: branching begins at once.
  void begin_at_once() { root_gain_ = kNodeGain; }

  /// Whether the component was searched to the end.
  bool run(double work_limit, std::chrono::steady_clock::time_point deadline,
           const Monitor* monitor) {
    const auto must_stop = [&] {
      return work_ > work_limit || (monitor != nullptr && monitor->stop_requested()) ||
             std::chrono::steady_clock::now() >= deadline;
    };
    double least_gain = root_gain_;
    while (!stack_.empty()) {
      if (must_stop()) return false;
      ++n_nodes_;
      const index_t i = is_open(stack_.back(), least_gain, must_stop) ? branch_variable() : kNone;
      least_gain = kNodeGain;
      if (i == kNone) {
        stack_.pop_back();
        if (++n_closed_ % kDive == 0) go_to_best();
        if (last_branch_ != kNone) weights_[static_cast<std::size_t>(last_branch_)] += 1.0;
        continue;
      }
      stack_.push_back(stack_.back());
      const index_t label = stack_.back().labels[static_cast<std::size_t>(i)];
      network_->fix(stack_.back(), i, label);
      network_->remove(stack_[stack_.size() - 2], i, label);
      last_branch_ = i;
    }
    return true;
  }

  /// The best labels below the first `upper`, empty if none were found.
  std::span<const index_t> labels() const { return best_; }

  /// No assignment costs less, except by `slack`.
  double lower() const {
    double least = upper_;
    for (const CostState& state : stack_) least = std::min(least, state.lower);
    return least;
  }
  double work() const { return work_; }
  /// Of the variables: those that have led to closed nodes are branched on first.
  std::span<double> weights() { return weights_; }
  std::int64_t n_nodes() const { return n_nodes_; }

 private:
  static constexpr index_t kNone = -1;
  static constexpr double kRootGain = 1e-4;  ///< share of the gap that two sweeps must close
  static constexpr double kNodeGain = 0.05;
  static constexpr double kLeastChange = 1e-5;  ///< of a message, as a share of the gap
  static constexpr double kFactorWork = 8.0;    ///< to add up the cost of an assignment
  static constexpr int kMostRounds = 300;
  static constexpr std::int64_t kDive = 32;  ///< closed nodes between two choices of the best
  static constexpr std::size_t kMostBytes = std::size_t{1} << 28;

  double cut() const { return upper_ - slack_; }

  /// The open node with the least bound goes on top. Not if the stack is large: from there on
  /// depth first, which needs no more nodes than variables.
  void go_to_best() {
    if (stack_.empty() || stack_.size() * state_bytes_ > kMostBytes) return;
    const auto best =
        std::min_element(stack_.begin(), stack_.end(),
                         [](const CostState& a, const CostState& b) { return a.lower < b.lower; });
    std::iter_swap(best, stack_.end() - 1);
  }

  template <class MustStop>
  bool is_open(CostState& state, double least_gain, const MustStop& must_stop) {
    for (int round = 0; round < kMostRounds && !must_stop(); ++round) {
      const double before = state.lower, least_change = kLeastChange * (cut() - state.lower);
      if (!network_->sweep(state, true, cut(), least_change, work_)) return false;
      if (!network_->sweep(state, false, cut(), least_change, work_)) return false;
      if (state.lower - before < least_gain * (cut() - state.lower)) break;
    }
    network_->decode(state);
    const double cost = network_->cost(state.labels);
    work_ += kFactorWork * network_->n_factors();
    if (cost < cut()) {
      upper_ = cost;
      best_ = state.labels;
    }
    return state.lower < cut();
  }

  /// A variable whose label costs most in the assignment just decoded, with few labels, that has
  /// led to closed nodes before. None if all have one label.
  index_t branch_variable() {
    const CostState& state = stack_.back();
    network_->blame(state, blames_);
    index_t best = kNone;
    double most = -1.0;
    for (index_t i = 0; i < network_->n_variables(); ++i) {
      const auto at = static_cast<std::size_t>(i);
      if (state.n_alive[at] < 2) continue;
      const double merit = (blames_[at] + slack_) * weights_[at] / state.n_alive[at];
      if (merit > most) {
        most = merit;
        best = i;
      }
    }
    return best;
  }

  CostNetwork* network_;
  double upper_;
  double slack_;
  std::vector<double> weights_;
  std::size_t state_bytes_;
  std::vector<CostState> stack_;  ///< open nodes; each is what its left branches leave over
  std::vector<index_t> best_;
  std::vector<double> blames_;
  index_t last_branch_ = kNone;
  double root_gain_ = kRootGain;
  double work_ = 0.0;
  std::int64_t n_nodes_ = 0;
  std::int64_t n_closed_ = 0;
};

}  // namespace sublearn
