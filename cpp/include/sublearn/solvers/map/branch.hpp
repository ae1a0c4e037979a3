// Branch and bound for what message passing leaves open.
//
// Labels whose bound (MapMessages::label_bounds) does not beat the best known score are left out.
// What remains often falls apart: variables with one label left go, factors that then say nothing
// go, and each connected component is a small problem of its own, searched by
// solvers/map/branch_search.hpp.
//
// Same input, same answer while no deadline cuts in: the limit counts work, not time.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "sublearn/core/factor_graph.hpp"
#include "sublearn/core/monitor.hpp"
#include "sublearn/core/types.hpp"
#include "sublearn/solvers/map/branch_search.hpp"
#include "sublearn/solvers/map/cost_network.hpp"
#include "sublearn/solvers/map/messages.hpp"
#include "sublearn/solvers/map/neighbourhood_search.hpp"

namespace sublearn {

struct BranchSettings {
  double work_limit = 1e9;  ///< cells read; some 1e8 a second
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
  double tolerance = 1e-9;  ///< relative to the score: gains below do not count
  /// Only assignments above this score are looked for, where it is higher than the best known: more
  /// labels are out from the beginning, above all where broken constraints cost much.
  double target = -std::numeric_limits<double>::infinity();
  std::vector<double>* weights = nullptr;  ///< of variables, learnt by earlier runs and by this one
  std::size_t max_cells = std::size_t{1} << 24;  ///< more are left: nothing is tried
};

struct BranchReport {
  std::vector<index_t> labels;  ///< the best assignment, that of the caller if none is better
  double score = 0.0;
  double bound = 0.0;  ///< of all assignments
  bool is_optimal = false;
  std::int64_t n_nodes = 0;
  index_t n_open = 0;  ///< variables with more than one label when the search began
  index_t n_components = 0;
  index_t n_solved = 0;  ///< components
  double work = 0.0;
};

/// Cuts a graph down to its open labels and searches the components. Score and labels:
/// score(x) = -(base + costs of the components) for x with open labels only.
class MapBranch {
 public:
  /// `labels` is the best known assignment. The messages may be those of any number of sweeps.
  MapBranch(const FactorGraph& graph, MapMessages& messages, std::span<const index_t> labels,
            BranchSettings settings = {})
      : graph_(&graph), messages_(&messages), settings_(settings) {
    report_.labels.assign(labels.begin(), labels.end());
    report_.score = graph.score(labels);
    report_.bound = std::max(messages.bound(), report_.score);
    slack_ = settings.tolerance * std::max(1.0, std::abs(report_.score));
    target_ = std::max(report_.score, settings.target);
  }

  BranchReport run(const Monitor* monitor = nullptr) {
    if (!find_open_labels(false)) {
      prove();
    } else if (n_cells_left() <= settings_.max_cells) {
      read_costs();
      search(monitor);
    }
    return report_;
  }

  /// Large neighbourhoods of the known assignment, of about `size` variables at first, instead of
  /// everything: may find a better one, and proves nothing.
  BranchReport look_around(double& size, Rng& rng, const Monitor* monitor = nullptr) {
    if (!find_open_labels(true) || n_cells_left() > settings_.max_cells) return report_;
    read_costs();
    std::vector<index_t> place(open_.size(), -1);
    std::vector<index_t> found = report_.labels;
    const double slack = slack_ / std::max<double>(1.0, static_cast<double>(components_.size()));
    for (const Component& component : components_) {
      CostNetwork network = network_of(component, place);
      NeighbourhoodSearch task(network, known_labels(component), size, slack, rng);
      task.run(share_of(component), settings_.deadline, monitor);
      report_.work += task.work();
      put(component, task.labels(), found);
      if (component.size >= largest_) size = task.size();
    }
    keep(found);
    return report_;
  }

 private:
  struct OpenFactor {
    std::vector<index_t> scope;  ///< open variables of a factor, two or more
    std::vector<double> costs;
  };
  struct Component {
    std::vector<index_t> variables;
    std::vector<std::size_t> factors;
    double size = 0.0;
  };

  std::size_t n_open(index_t i) const { return open_[at(i)].size(); }
  index_t label(index_t i) const { return report_.labels[at(i)]; }

  /// Nothing beats the target.
  void prove() {
    report_.is_optimal = target_ <= report_.score;
    report_.bound = std::max(report_.score, std::min(report_.bound, target_ + slack_));
  }

  void read_costs() {
    read_unaries();
    read_factors();
    split();
  }

  /// False if a variable has no label left: nothing beats the target. The known label stays if
  /// `with_known`.
  bool find_open_labels(bool with_known) {
    const auto bounds = messages_->label_bounds();
    open_.resize(graph_->domain.size());
    for (index_t i = 0; i < graph_->n_variables(); ++i) {
      auto& open = open_[at(i)];
      for (index_t a = 0; a < graph_->domain[at(i)]; ++a) {
        const auto place = static_cast<std::size_t>(graph_->unary_begin[i] + a);
        if (bounds[place] > target_ + slack_ || (with_known && a == label(i))) open.push_back(a);
      }
      if (open.empty()) return false;
      report_.n_open += open.size() > 1;
    }
    return true;
  }

  std::size_t n_cells_left() const {
    double sum = 0.0;
    for (index_t f = 0; f < graph_->n_factors(); ++f) {
      double n = 1.0;
      for (const index_t i : graph_->scope_of(f)) n *= static_cast<double>(n_open(i));
      sum += n;
    }
    return static_cast<std::size_t>(std::min(sum, 1e18));
  }

  void read_unaries() {
    const auto beliefs = messages_->beliefs();
    unary_.resize(open_.size());
    for (index_t i = 0; i < graph_->n_variables(); ++i) {
      auto& costs = unary_[at(i)];
      for (const index_t a : open_[at(i)]) {
        costs.push_back(-beliefs[at(graph_->unary_begin[i] + a)]);
      }
      base_ += take_least(costs);
    }
  }

  /// Subtracts the least cost from all and returns it.
  static double take_least(std::span<double> costs) {
    const double least = *std::min_element(costs.begin(), costs.end());
    for (double& cost : costs) cost -= least;
    return least;
  }

  void read_factors() {
    const double nothing = 1e-4 * slack_ / std::max(1, graph_->n_factors());
    for (index_t f = 0; f < graph_->n_factors(); ++f) {
      OpenFactor factor = read_factor(f);
      base_ += take_least(factor.costs);
      if (factor.scope.empty()) continue;
      if (*std::max_element(factor.costs.begin(), factor.costs.end()) <= nothing) continue;
      if (factor.scope.size() > 1) {
        factors_.push_back(std::move(factor));
        continue;
      }
      auto& costs = unary_[at(factor.scope[0])];
      for (std::size_t a = 0; a < costs.size(); ++a) costs[a] += factor.costs[a];
    }
    for (auto& costs : unary_) base_ += take_least(costs);
  }

  /// Costs of a factor over its open labels, last position fastest.
  OpenFactor read_factor(index_t f) const {
    const auto scope = graph_->scope_of(f);
    const FactorTable& table = graph_->table(f);
    OpenFactor factor;
    for (const index_t i : scope) {
      if (n_open(i) > 1) factor.scope.push_back(i);
    }
    std::vector<std::size_t> place(scope.size(), 0);
    for (std::size_t p = 0; p <= scope.size();) {
      offset_t cell = 0;
      double taken = 0.0;
      for (std::size_t q = 0; q < scope.size(); ++q) {
        const index_t a = open_[at(scope[q])][place[q]];
        cell = cell * table.shape[q] + a;
        taken += messages_->message(f, static_cast<index_t>(q))[at(a)];
      }
      factor.costs.push_back(taken - graph_->scale[at(f)] * table.at(cell));
      for (p = scope.size(); p > 0; --p) {
        if (++place[p - 1] < n_open(scope[p - 1])) break;
        place[p - 1] = 0;
      }
      if (p == 0) break;
    }
    return factor;
  }

  /// Connected components, the smallest first.
  void split() {
    std::vector<index_t> leader(open_.size());
    std::iota(leader.begin(), leader.end(), 0);
    const auto find = [&](index_t i) {
      while (leader[at(i)] != i) {
        auto& up = leader[at(i)];
        up = leader[at(up)];
        i = up;
      }
      return i;
    };
    for (const OpenFactor& factor : factors_) {
      for (const index_t i : factor.scope) {
        leader[at(find(i))] = find(factor.scope[0]);
      }
    }
    std::vector<index_t> number(open_.size(), -1);
    for (const index_t i : messages_->order()) {
      if (n_open(i) < 2) continue;
      index_t& k = number[at(find(i))];
      if (k < 0) {
        k = static_cast<index_t>(components_.size());
        components_.emplace_back();
      }
      components_[at(k)].variables.push_back(i);
    }
    for (std::size_t f = 0; f < factors_.size(); ++f) {
      const index_t k = number[at(find(factors_[f].scope[0]))];
      auto& component = components_[at(k)];
      component.factors.push_back(f);
      component.size += static_cast<double>(factors_[f].costs.size());
    }
    std::stable_sort(components_.begin(), components_.end(),
                     [](const Component& a, const Component& b) { return a.size < b.size; });
    report_.n_components = static_cast<index_t>(components_.size());
    if (!components_.empty()) largest_ = components_.back().size;
  }

  CostNetwork network_of(const Component& component, std::vector<index_t>& place) const {
    CostNetwork network;
    for (const index_t i : component.variables) {
      place[at(i)] = network.n_variables();
      network.add_variable(unary_[at(i)]);
    }
    std::vector<index_t> scope;
    for (const std::size_t f : component.factors) {
      scope.clear();
      for (const index_t i : factors_[f].scope) scope.push_back(place[at(i)]);
      network.add_factor(scope, factors_[f].costs);
    }
    network.connect();
    return network;
  }

  /// The known assignment of a component, empty if it uses a label that is out.
  std::vector<index_t> known_labels(const Component& component) const {
    std::vector<index_t> labels;
    for (const index_t i : component.variables) {
      const auto& open = open_[at(i)];
      const auto found = std::find(open.begin(), open.end(), label(i));
      if (found == open.end()) return {};
      labels.push_back(static_cast<index_t>(found - open.begin()));
    }
    return labels;
  }

  double known_cost(const Component& component, const CostNetwork& network) const {
    const std::vector<index_t> labels = known_labels(component);
    return labels.empty() ? std::numeric_limits<double>::infinity() : network.cost(labels);
  }

  /// Labels of a component into those of the graph.
  void put(const Component& component, std::span<const index_t> labels,
           std::vector<index_t>& found) const {
    for (std::size_t k = 0; k < labels.size(); ++k) {
      const auto i = static_cast<std::size_t>(component.variables[k]);
      found[i] = open_[i][at(labels[k])];
    }
  }

  /// Of the work limit, by size.
  double share_of(const Component& component) const {
    double sum = 0.0;
    for (const Component& each : components_) sum += each.size;
    return settings_.work_limit * component.size / std::max(1.0, sum);
  }

  void search(const Monitor* monitor) {
    std::vector<index_t> place(open_.size(), -1);
    std::vector<index_t> found = report_.labels;
    for (std::size_t i = 0; i < open_.size(); ++i) {
      if (open_[i].size() == 1) found[i] = open_[i][0];
    }
    double left = -target_ - base_;  // cost that all components may have in sum
    double lower = 0.0;
    const double slack = slack_ / std::max<double>(1.0, static_cast<double>(components_.size()));
    for (const Component& component : components_) {
      CostNetwork network = network_of(component, place);
      const double known = known_cost(component, network);
      BranchSearch task(network, network.start(), std::min(known, left), slack);
      if (target_ > report_.score) task.begin_at_once();
      if (settings_.weights != nullptr) give_weights(component, task);
      const bool is_solved =
          task.run(settings_.work_limit - report_.work, settings_.deadline, monitor);
      report_.work += task.work();
      report_.n_nodes += task.n_nodes();
      if (settings_.weights != nullptr) take_weights(component, task);
      if (is_solved && task.labels().empty() && known > left) return prove();
      put(component, task.labels(), found);
      report_.n_solved += is_solved;
      left -= task.lower();
      lower += task.lower();
    }
    finish(found, lower);
  }

  void give_weights(const Component& component, BranchSearch& task) const {
    const auto weights = task.weights();
    for (std::size_t k = 0; k < weights.size(); ++k) {
      weights[k] = (*settings_.weights)[at(component.variables[k])];
    }
  }

  void take_weights(const Component& component, BranchSearch& task) const {
    const auto weights = task.weights();
    for (std::size_t k = 0; k < weights.size(); ++k) {
      (*settings_.weights)[at(component.variables[k])] = weights[k];
    }
  }

  void finish(const std::vector<index_t>& found, double lower) {
    const double known = target_;
    keep(found);
    // Labels that are out lead at most to the target, up to slack.
    const double bound = std::max(known, -(base_ + lower)) + slack_;
    report_.bound = std::max(std::min(report_.bound, bound), report_.score);
    report_.is_optimal = report_.n_solved == report_.n_components && report_.score >= known;
  }

  void keep(const std::vector<index_t>& found) {
    const double reached = graph_->score(found);
    if (reached <= report_.score) return;
    report_.labels = found;
    report_.score = reached;
  }

  const FactorGraph* graph_;
  MapMessages* messages_;
  BranchSettings settings_;
  BranchReport report_;
  double slack_ = 0.0;
  double target_ = 0.0;
  double largest_ = 0.0;  ///< size of a component
  double base_ = 0.0;
  std::vector<std::vector<index_t>> open_;  ///< labels of each variable that may be better
  std::vector<std::vector<double>> unary_;  ///< their costs
  std::vector<OpenFactor> factors_;
  std::vector<Component> components_;
};

}  // namespace sublearn
