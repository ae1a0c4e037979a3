// What solvers/structured/gdmm.hpp is given, what it returns, and what it keeps for a node and a
// factor.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sublearn/core/types.hpp"
#include "sublearn/core/views.hpp"

namespace sublearn {

/// Nodes with features and a true label each, factors over two or more of them; samples are ranges
/// of both.
template <class T, class I>
struct StructuredData {
  CsrView<T, I> X;                         ///< a row for each node
  std::span<const index_t> truth;          ///< of each node
  index_t n_labels = 0;                    ///< of every node
  std::span<const offset_t> node_begin;    ///< of each sample, and the end
  std::span<const offset_t> factor_begin;  ///< likewise
  std::span<const index_t> scope;          ///< the nodes of each factor, one factor after another
  std::span<const index_t> table;          ///< of each factor
  std::span<const double> scale;           ///< of each factor; empty: 1
  std::span<const double> weight;          ///< of each sample, what its loss counts; empty: 1
  std::span<const index_t> arity;          ///< of each table, how many nodes its factors have

  std::size_t arity_of(std::size_t f) const {
    return static_cast<std::size_t>(arity[static_cast<std::size_t>(table[f])]);
  }
  std::size_t n_samples() const { return node_begin.size() - 1; }
  double scale_of(std::size_t f) const { return scale.empty() ? 1.0 : scale[f]; }
  double weight_of(std::size_t sample) const { return weight.empty() ? 1.0 : weight[sample]; }
};

struct GdmmLearnSettings {
  double C = 1.0;
  double rho = 0.0;              ///< 0: a share of the curvature
  double eta = 0.0;              ///< 0: rho
  index_t n_parts = 1;           ///< label parts of which a visit to a node searches one (21)
  bool uses_away_steps = false;  ///< algorithm 2 on each node and factor instead of algorithm 4
  std::uint64_t seed = 0;
};

/// What a pass did.
struct GdmmLearnPass {
  double primal_residual = 0.0;  ///< root mean square of M q - p over the ends of factors
  double dual_residual = 0.0;    ///< of rho times the change of p
  double rho = 0.0;
  offset_t n_labels = 0;  ///< labels with a share, over all nodes
  offset_t n_states = 0;
  offset_t work = 0;
};

/// A node's labels by slot, the truth first; for each slot p, the mean of p over passes, then
/// lambda and M q for each of its factors.
struct LearnNode {
  std::vector<index_t> labels;
  std::vector<double> numbers;
  std::uint32_t stride = 2;

  double& p(std::size_t s) { return numbers[s * stride]; }
  double p(std::size_t s) const { return numbers[s * stride]; }
  double& mean(std::size_t s) { return numbers[s * stride + 1]; }
  double mean(std::size_t s) const { return numbers[s * stride + 1]; }
  double& lambda(std::size_t s, std::size_t e) { return numbers[s * stride + 2 + 2 * e]; }
  double lambda(std::size_t s, std::size_t e) const { return numbers[s * stride + 2 + 2 * e]; }
  double& marginal(std::size_t s, std::size_t e) { return numbers[s * stride + 3 + 2 * e]; }
  double marginal(std::size_t s, std::size_t e) const { return numbers[s * stride + 3 + 2 * e]; }
  std::size_t degree() const { return (stride - 2) / 2; }

  std::size_t enter(index_t label) {
    labels.push_back(label);
    numbers.resize(numbers.size() + stride, 0.0);
    return labels.size() - 1;
  }
  std::size_t slot(index_t label) {
    const auto at = std::find(labels.begin(), labels.end(), label);
    return at == labels.end() ? enter(label) : static_cast<std::size_t>(at - labels.begin());
  }
};

/// A state of a factor with a share, by the slots of its nodes.
template <std::size_t kEnds>
struct LearnState {
  std::array<std::uint32_t, kEnds> slots;
  double q;
};

/// A factor with its nodes; `ends` says which of a node's factors it is. `kEnds` is the largest
/// number of nodes: two are known when this is compiled, more are counted.
template <std::size_t kEnds>
struct LearnFactor {
  std::vector<LearnState<kEnds>>& states;
  std::array<LearnNode*, kEnds> nodes;
  std::array<std::size_t, kEnds> ends;
  std::size_t n_ends;
  double scale;

  std::size_t size() const {
    if constexpr (kEnds == 2) return 2;
    return n_ends;
  }
  /// Labels of a state, one for each node.
  std::array<index_t, kEnds> labels(const LearnState<kEnds>& state) const {
    std::array<index_t, kEnds> out{};
    for (std::size_t side = 0; side < size(); ++side) {
      out[side] = nodes[side]->labels[state.slots[side]];
    }
    return out;
  }
};

}  // namespace sublearn
