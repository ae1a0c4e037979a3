// Large neighbourhoods of an assignment in a cost network.
//
// All variables but a random connected set keep their labels, and branch and bound looks for
// anything better in what is left. Propagation closes most of it at once where tables are hard, so
// that a set may have many more variables than elimination could take in a dense graph. The set
// grows while it is searched to the end for nothing and shrinks where the search is cut; every
// other set begins at a variable that the current labels make pay.
//
// Same input, same answer while no deadline cuts in: limits count cells read.
// Used by: solvers/map/branch.hpp.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "sublearn/core/monitor.hpp"
#include "sublearn/core/rng.hpp"
#include "sublearn/core/types.hpp"
#include "sublearn/solvers/map/branch_search.hpp"
#include "sublearn/solvers/map/cost_network.hpp"

namespace sublearn {

class NeighbourhoodSearch {
 public:
  /// Begins with `labels`, and with sets of about `size` variables.
  NeighbourhoodSearch(CostNetwork& network, std::span<const index_t> labels, double size,
                      double slack, Rng& rng)
      : network_(&network),
        labels_(labels.begin(), labels.end()),
        cost_(network.cost(labels)),
        size_(size),
        slack_(slack),
        rng_(&rng),
        root_(network.start()),
        is_free_(labels.size(), 0) {}

  void run(double work_limit, std::chrono::steady_clock::time_point deadline,
           const Monitor* monitor) {
    while (work_ < work_limit && cost_ > slack_) {
      if (monitor != nullptr && monitor->stop_requested()) return;
      if (std::chrono::steady_clock::now() >= deadline) return;
      choose();
      const double most = std::min(work_limit - work_, kMostSweeps * network_->n_cells());
      const auto [is_better, is_solved] = look_around(most, deadline, monitor);
      const double n = static_cast<double>(labels_.size());
      if (is_solved && free_.size() == labels_.size()) return;  // nothing is better
      if (!is_better) size_ = std::clamp(size_ * (is_solved ? 1.05 : 0.8), std::min(kLeast, n), n);
    }
  }

  std::span<const index_t> labels() const { return labels_; }
  double size() const { return size_; }
  double work() const { return work_; }

 private:
  static constexpr double kMostSweeps = 60.0;  ///< of a try, in sweeps over all cells
  static constexpr double kLeast = 4.0;

  /// free_ becomes a connected set of variables.
  void choose() {
    for (const index_t i : free_) is_free_[at(i)] = 0;
    free_.clear();
    take(rng_->below(2) == 0 ? any_variable() : paying_variable());
    const auto size = static_cast<std::size_t>(size_);
    for (std::size_t tries = 8 * size; tries > 0 && free_.size() < size; --tries) {
      const index_t from = free_[rng_->below(static_cast<std::uint32_t>(free_.size()))];
      take(network_->neighbour(from, *rng_));
    }
    work_ += 8.0 * static_cast<double>(free_.size());
  }

  void take(index_t i) {
    if (std::exchange(is_free_[at(i)], 1) == 0) free_.push_back(i);
  }

  index_t any_variable() {
    return static_cast<index_t>(rng_->below(static_cast<std::uint32_t>(labels_.size())));
  }

  /// A variable drawn by what its label and its factors cost.
  index_t paying_variable() {
    root_.labels = labels_;
    network_->blame(root_, blames_);
    work_ += 4.0 * network_->n_factors();
    double sum = 0.0;
    for (const double blame : blames_) sum += blame;
    double draw = rng_->uniform() * sum;
    for (std::size_t i = 0; i < blames_.size(); ++i) {
      draw -= blames_[i];
      if (draw < 0.0) return static_cast<index_t>(i);
    }
    return any_variable();
  }

  struct Outcome {
    bool is_better, is_solved;
  };

  Outcome look_around(double work, std::chrono::steady_clock::time_point deadline,
                      const Monitor* monitor) {
    CostState state = root_;
    for (index_t i = 0; i < network_->n_variables(); ++i) {
      if (!is_free_[at(i)]) network_->fix(state, i, labels_[at(i)]);
    }
    BranchSearch task(*network_, std::move(state), cost_, slack_);
    const bool is_solved = task.run(work, deadline, monitor);
    work_ += task.work() + static_cast<double>(root_.bytes()) / 8.0;
    if (task.labels().empty()) return {false, is_solved};
    labels_.assign(task.labels().begin(), task.labels().end());
    cost_ = network_->cost(labels_);
    return {true, is_solved};
  }

  CostNetwork* network_;
  std::vector<index_t> labels_;
  double cost_, size_, slack_;
  Rng* rng_;
  CostState root_;
  std::vector<char> is_free_;
  std::vector<index_t> free_;
  std::vector<double> blames_;
  double work_ = 0.0;
};

}  // namespace sublearn
