// The best set of labels under scores of labels and of pairs of labels:
//
//   max over y in {0, 1}^n of  sum_k u_k y_k + sum_{k < l} V_kl y_k y_l
//
// with V symmetric, sparse and shared by very many problems that differ in u alone. Most labels
// never have a chance, see `begin`. Of the others, label k is off if u_k + sum_l max(0, V_kl) <= 0
// over the labels l that are not yet decided, and on if u_k + sum_l min(0, V_kl) > 0. What these
// rules leave open goes to roof duality, whose bound is the value of the linear program (3.25) with
// the constraints (3.35) of Yen 2018, and then, if a set is wanted, to branch and bound on that
// bound.
//
// Used by: solvers/pairwise/certificate.hpp, prediction.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "sublearn/core/factor_graph.hpp"
#include "sublearn/core/types.hpp"
#include "sublearn/core/views.hpp"
#include "sublearn/solvers/map/roof_duality.hpp"

namespace sublearn {

/// A problem in which some labels are decided.
class LabelQuadratic {
 public:
  static constexpr signed char kOpen = -1;

  struct Edge {
    index_t ends[2];
    double weight;
  };

  double constant = 0.0;        ///< what the labels decided on contribute
  std::vector<index_t> on;      ///< decided: on
  std::vector<index_t> labels;  ///< open
  std::vector<double> unary;    ///< of open labels
  std::vector<Edge> edges;      ///< between places in `labels`

  bool is_decided() const { return labels.empty(); }

  /// Decides labels by the two rules until none applies.
  void reduce() {
    link();
    std::vector<signed char> state(labels.size(), kOpen);
    std::vector<double> most = unary, least = unary;
    for (const Edge& edge : edges) {
      for (const index_t k : edge.ends) {
        most[at(k)] += std::max(0.0, edge.weight);
        least[at(k)] += std::min(0.0, edge.weight);
      }
    }
    std::vector<index_t> queue(labels.size());
    for (std::size_t k = 0; k < queue.size(); ++k) queue[k] = static_cast<index_t>(k);
    while (!queue.empty()) {
      const std::size_t k = at(queue.back());
      queue.pop_back();
      if (state[k] != kOpen) continue;
      const double slack = 1e-12 * (std::abs(unary[k]) + std::abs(most[k]) + std::abs(least[k]));
      if (most[k] > slack && least[k] <= slack) continue;
      state[k] = most[k] > slack ? 1 : 0;
      for (offset_t e = link_begin_[k]; e < link_begin_[k + 1]; ++e) {
        const auto [other, weight] = links_[at(e)];
        if (state[at(other)] != kOpen) continue;
        most[at(other)] += (state[k] == 1 ? weight : 0.0) - std::max(0.0, weight);
        least[at(other)] += (state[k] == 1 ? weight : 0.0) - std::min(0.0, weight);
        queue.push_back(other);
      }
    }
    decide(state);
  }

  /// Takes labels whose state is not open out of the problem.
  void decide(std::span<const signed char> state) {
    std::vector<index_t> place(labels.size(), -1);
    std::size_t n = 0;
    for (std::size_t k = 0; k < labels.size(); ++k) {
      if (state[k] == kOpen) place[k] = static_cast<index_t>(n++);
      if (state[k] != 1) continue;
      constant += unary[k];
      on.push_back(labels[k]);
    }
    if (n == labels.size()) return;
    std::size_t kept = 0;
    for (const Edge& edge : edges) {
      const std::size_t i = at(edge.ends[0]), j = at(edge.ends[1]);
      if (state[i] == kOpen && state[j] == kOpen) {
        edges[kept++] = {{place[i], place[j]}, edge.weight};
      } else if (state[i] == 1 && state[j] == 1) {
        constant += edge.weight;
      } else if (state[i] == kOpen && state[j] == 1) {
        unary[i] += edge.weight;
      } else if (state[i] == 1 && state[j] == kOpen) {
        unary[j] += edge.weight;
      }
    }
    edges.resize(kept);
    for (std::size_t k = 0; k < labels.size(); ++k) {
      if (place[k] < 0) continue;
      labels[at(place[k])] = labels[k];
      unary[at(place[k])] = unary[k];
    }
    labels.resize(n);
    unary.resize(n);
  }

  /// The open part as a factor graph, for roof duality.
  FactorGraph graph() const {
    static const auto attraction = FactorTable::dense({2, 2}, {0.0, 0.0, 0.0, 1.0});
    static const auto repulsion = FactorTable::dense({2, 2}, {0.0, 0.0, 0.0, -1.0});
    FactorGraph graph;
    graph.add_table(attraction);
    graph.add_table(repulsion);
    for (const double score : unary) {
      const double scores[2] = {0.0, score};
      graph.add_variable(scores);
    }
    for (const Edge& edge : edges) {
      graph.add_factor(edge.ends, edge.weight > 0.0 ? 0 : 1, std::abs(edge.weight));
    }
    return graph;
  }

  /// Score of a set of open labels, those decided included.
  double score(std::span<const signed char> y) const {
    double sum = constant;
    for (std::size_t k = 0; k < y.size(); ++k) sum += y[k] != 0 ? unary[k] : 0.0;
    for (const Edge& edge : edges) {
      if (y[at(edge.ends[0])] != 0 && y[at(edge.ends[1])] != 0) sum += edge.weight;
    }
    return sum;
  }

  /// Bounds the open part by labels on their own: each attraction is divided between its two
  /// labels, each repulsion takes some z from both and gives one z back. Single divisions are made
  /// best by turns, which is where both labels gain the same, or nothing together (max-sum
  /// diffusion); any division is a bound. `gain` is what it leaves of each label.
  double split_bound(std::vector<double>& gain) const {
    std::vector<double> part(edges.size());  // of an attraction to its first label; z
    gain = unary;
    for (std::size_t e = 0; e < edges.size(); ++e) {
      part[e] = 0.5 * std::max(0.0, edges[e].weight);
      for (const index_t k : edges[e].ends) gain[at(k)] += part[e];
    }
    double z_sum = 0.0, best = bound_of(gain, z_sum);
    for (int sweep = 0; sweep < kSplitSweeps; ++sweep) {
      for (std::size_t e = 0; e < edges.size(); ++e) {
        const double weight = edges[e].weight;
        double& first = gain[at(edges[e].ends[0])];
        double& second = gain[at(edges[e].ends[1])];
        if (weight > 0.0) {
          const double after = std::clamp(part[e] + 0.5 * (second - first), 0.0, weight);
          first += after - part[e];
          second -= after - part[e];
          part[e] = after;
        } else {
          const double after = std::clamp(part[e] + 0.5 * (first + second), 0.0, -weight);
          first -= after - part[e];
          second -= after - part[e];
          z_sum += after - part[e];
          part[e] = after;
        }
      }
      const double bound = bound_of(gain, z_sum);
      const bool is_still = best - bound <= 1e-4 * std::abs(best);
      best = std::min(best, bound);
      if (is_still && sweep >= 4) break;
    }
    return best;
  }

  /// Changes single labels of a set while that raises the score.
  void climb(std::span<signed char> y) {
    link();
    std::vector<double> gain = unary;  // of being on
    for (const Edge& edge : edges) {
      if (y[at(edge.ends[0])] != 0) gain[at(edge.ends[1])] += edge.weight;
      if (y[at(edge.ends[1])] != 0) gain[at(edge.ends[0])] += edge.weight;
    }
    for (bool is_moving = true; is_moving;) {
      is_moving = false;
      for (std::size_t k = 0; k < y.size(); ++k) {
        if ((y[k] != 0 ? -gain[k] : gain[k]) <= 1e-12 * std::abs(unary[k])) continue;
        is_moving = true;
        y[k] = y[k] != 0 ? 0 : 1;
        for (offset_t e = link_begin_[k]; e < link_begin_[k + 1]; ++e) {
          const auto [other, weight] = links_[at(e)];
          gain[at(other)] += y[k] != 0 ? weight : -weight;
        }
      }
    }
  }

  /// The open label with most at stake in its pairs.
  std::size_t most_entangled() const {
    std::vector<double> weight(labels.size(), 0.0);
    for (const Edge& edge : edges) {
      for (const index_t k : edge.ends) weight[at(k)] += std::abs(edge.weight);
    }
    return static_cast<std::size_t>(std::max_element(weight.begin(), weight.end()) -
                                    weight.begin());
  }

 private:
  struct Link {
    index_t other;
    double weight;
  };

  static constexpr int kSplitSweeps = 40;

  static double bound_of(std::span<const double> gain, double z_sum) {
    double sum = z_sum;
    for (const double value : gain) sum += std::max(0.0, value);
    return sum;
  }

  /// Neighbours of each open label.
  void link() {
    link_begin_.assign(labels.size() + 1, 0);
    for (const Edge& edge : edges) {
      for (const index_t k : edge.ends) ++link_begin_[at(k) + 1];
    }
    for (std::size_t k = 0; k < labels.size(); ++k) link_begin_[k + 1] += link_begin_[k];
    links_.resize(2 * edges.size());
    std::vector<offset_t> next(link_begin_.begin(), link_begin_.end() - 1);
    for (const Edge& edge : edges) {
      for (int side = 0; side < 2; ++side) {
        links_[at(next[at(edge.ends[side])]++)] = {edge.ends[1 - side], edge.weight};
      }
    }
  }

  std::vector<offset_t> link_begin_;
  std::vector<Link> links_;
};

/// A set of labels and how good any other can be.
struct LabelSet {
  std::vector<index_t> labels;  ///< increasing
  double score = 0.0;
  double bound = 0.0;  ///< of the linear program, or `score` if no set is better
};

/// Problems with the same V. Keeps scratch memory: one for each thread.
class LabelInference {
 public:
  /// `pairs` is symmetric without a diagonal, and outlives this; `attraction` is `attraction_of`
  /// it.
  LabelInference(const CsrView<double, offset_t>& pairs, std::span<const double> attraction)
      : pairs_(pairs), attraction_(attraction), place_(attraction.size(), -1) {}

  /// sum_l max(0, V_kl) for each label.
  static std::vector<double> attraction_of(const CsrView<double, offset_t>& pairs) {
    std::vector<double> sums(static_cast<std::size_t>(pairs.n_rows()), 0.0);
    for (std::size_t k = 0; k < sums.size(); ++k) {
      for (const double v : pairs.row(static_cast<offset_t>(k)).values) sums[k] += std::max(0.0, v);
    }
    return sums;
  }

  /// Value of the linear program; `support` gets the labels that are not zero in a solution. Where
  /// very much is open an upper bound of the value, and the labels that gain in it.
  double relaxed(std::span<const double> unary, std::vector<index_t>& support) {
    LabelQuadratic problem = begin(unary);
    support = problem.on;
    if (problem.is_decided()) return problem.constant;
    if (problem.edges.size() > kFewEdges) {
      const double bound = problem.split_bound(gain_);
      for (std::size_t k = 0; k < gain_.size(); ++k) {
        if (gain_[k] > 0.0) support.push_back(problem.labels[k]);
      }
      return problem.constant + bound;
    }
    const FactorGraph graph = problem.graph();
    RoofDuality roof(graph);
    roof.solve();
    const auto found = roof.labels();
    for (std::size_t k = 0; k < found.size(); ++k) {
      if (found[k] != 0) support.push_back(problem.labels[k]);
    }
    return problem.constant + roof.bound();
  }

  /// The best set, or the best found within `most_nodes` linear programs.
  LabelSet best(std::span<const double> unary, int most_nodes = 1000) {
    LabelQuadratic problem = begin(unary);
    best_ = {};
    best_.score = -1e300;
    nodes_left_ = most_nodes;
    root_bound_ = 1e300;
    is_cut_ = false;
    branch(std::move(problem), true);
    best_.bound = is_cut_ ? std::max(root_bound_, best_.score) : best_.score;
    std::sort(best_.labels.begin(), best_.labels.end());
    return std::move(best_);
  }

 private:
  static constexpr signed char kOpen = LabelQuadratic::kOpen;
  static constexpr std::size_t kMostEdges = 20000;  ///< of a flow: about 200 labels, all pairs
  /// Of a flow in `relaxed`, which a fit asks for every row. On delicious, where programs have ten
  /// times as many, bounds are 0.2 % above the values of flows and take half the time.
  static constexpr std::size_t kFewEdges = 2000;

  /// The problem over a set S of labels that has a best set, reduced: for k outside S,
  ///   u_k + sum_{l in S} max(0, V_kl) + 1/2 sum_{l not in S} max(0, V_kl) <= 0,
  /// so that whoever takes labels outside S away from a set does not lower its score.
  LabelQuadratic begin(std::span<const double> unary) {
    LabelQuadratic problem;
    const auto enter = [&](std::size_t k) {
      place_[k] = static_cast<index_t>(problem.labels.size());
      problem.labels.push_back(static_cast<index_t>(k));
      problem.unary.push_back(unary[k]);
    };
    most_.resize(unary.size());
    for (std::size_t k = 0; k < unary.size(); ++k) {
      most_[k] = unary[k] + 0.5 * attraction_[k];
      if (most_[k] > 0.0) enter(k);
    }
    for (std::size_t i = 0; i < problem.labels.size(); ++i) {  // the list grows on the way
      const auto row = pairs_.row(problem.labels[i]);
      for (std::size_t e = 0; e < row.size(); ++e) {
        const auto k = static_cast<std::size_t>(row.ids[e]);
        if (place_[k] >= 0) continue;
        most_[k] += 0.5 * std::max(0.0, row.values[e]);
        if (most_[k] > 0.0) enter(k);
      }
    }
    for (std::size_t i = 0; i < problem.labels.size(); ++i) {
      const auto row = pairs_.row(problem.labels[i]);
      for (std::size_t e = 0; e < row.size(); ++e) {
        const index_t j = place_[at(row.ids[e])];
        if (j > static_cast<index_t>(i) && row.values[e] != 0.0) {
          problem.edges.push_back({{static_cast<index_t>(i), j}, row.values[e]});
        }
      }
    }
    for (const index_t k : problem.labels) place_[at(k)] = -1;
    problem.reduce();
    return problem;
  }

  void offer(const LabelQuadratic& problem, std::span<const signed char> y) {
    const double score = problem.score(y);
    if (score <= best_.score) return;
    best_.score = score;
    best_.labels = problem.on;
    for (std::size_t k = 0; k < y.size(); ++k) {
      if (y[k] == 1) best_.labels.push_back(problem.labels[k]);
    }
  }

  void branch(LabelQuadratic problem, bool is_root) {
    if (problem.is_decided()) return offer(problem, {});
    if (nodes_left_-- <= 0) {
      is_cut_ = true;
      return;
    }
    if (problem.edges.size() > kMostEdges) return climb_only(problem);
    const FactorGraph graph = problem.graph();
    RoofDuality roof(graph);
    roof.solve();
    const double bound = problem.constant + roof.bound();
    if (is_root) root_bound_ = bound;
    if (bound <= best_.score + 1e-9 * std::max(1.0, std::abs(best_.score))) return;
    const auto found = roof.labels();
    std::vector<signed char> state(found.begin(), found.end());
    std::vector<signed char> y(state);
    std::replace(y.begin(), y.end(), kOpen, static_cast<signed char>(0));
    problem.climb(y);
    offer(problem, y);
    problem.decide(state);
    problem.reduce();
    if (problem.is_decided()) return offer(problem, {});
    const std::size_t k = problem.most_entangled();
    for (const signed char value : {1, 0}) {
      LabelQuadratic child = problem;
      std::vector<signed char> fixed(child.labels.size(), kOpen);
      fixed[k] = value;
      child.decide(fixed);
      child.reduce();
      branch(std::move(child), false);
    }
  }

  /// Too much is open for a flow, which happens at the root alone: single changes from two starts.
  void climb_only(LabelQuadratic& problem) {
    root_bound_ = problem.constant + problem.split_bound(gain_);
    is_cut_ = true;
    std::vector<signed char> y(problem.labels.size(), 0);
    problem.climb(y);
    offer(problem, y);
    for (std::size_t k = 0; k < y.size(); ++k) y[k] = problem.unary[k] > 0.0 ? 1 : 0;
    problem.climb(y);
    offer(problem, y);
  }

  CsrView<double, offset_t> pairs_;
  std::span<const double> attraction_;
  std::vector<index_t> place_;
  std::vector<double> most_, gain_;
  LabelSet best_;
  double root_bound_ = 0.0;
  int nodes_left_ = 0;
  bool is_cut_ = false;
};

}  // namespace sublearn
