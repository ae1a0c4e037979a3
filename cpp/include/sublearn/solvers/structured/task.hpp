// What solvers/structured/gdmm.hpp is given, what it returns, and what it keeps for a node and a
// factor.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "sublearn/core/rng.hpp"
#include "sublearn/core/types.hpp"
#include "sublearn/core/views.hpp"

namespace sublearn {

/// Nodes with features and a true label each, factors over two or more of them; samples are ranges
/// of both.
template <class T, class I>
struct StructuredData {
  CsrView<T, I> X;                           ///< a row for each node
  std::span<const index_t> truth;            ///< of each node
  index_t n_labels = 0;                      ///< of every node
  std::span<const offset_t> node_begin;      ///< of each sample, and the end
  std::span<const offset_t> factor_begin;    ///< likewise
  std::span<const index_t> scope;            ///< the nodes of each factor, one factor after another
  std::span<const index_t> table;            ///< of each factor
  std::span<const double> scale;             ///< of each factor; empty: 1
  std::span<const double> weight;            ///< of each sample, what its loss counts; empty: 1
  std::span<const index_t> arity;            ///< of each table, how many nodes its factors have
  CsrView<double, index_t> factor_features;  ///< a row for each factor, or no rows
  std::span<const index_t> width;            ///< of each table, features of its factors; 0: a scale
  std::span<const double> loss;  ///< what labels cost, a row for each true one; empty: 1 if wrong

  bool has_features(std::size_t f) const {
    return !width.empty() && width[static_cast<std::size_t>(table[f])] > 0;
  }
  double loss_of(index_t true_label, index_t label) const {
    if (loss.empty()) return true_label == label ? 0.0 : 1.0;
    return loss[static_cast<std::size_t>(true_label) * static_cast<std::size_t>(n_labels) +
                static_cast<std::size_t>(label)];
  }
  std::size_t arity_of(std::size_t f) const {
    return static_cast<std::size_t>(arity[static_cast<std::size_t>(table[f])]);
  }
  std::size_t n_samples() const { return node_begin.size() - 1; }
  double scale_of(std::size_t f) const { return scale.empty() ? 1.0 : scale[f]; }
  double weight_of(std::size_t sample) const { return weight.empty() ? 1.0 : weight[sample]; }
};

/// Which factors a pass visits: all; those that violated once, and all that begin to; those, and in
/// each sample the one that violates most (algorithm 3).
enum class FactorVisits { kAll, kViolating, kMostViolating };

struct GdmmLearnSettings {
  double C = 1.0;
  double rho = 0.0;     ///< 0: a share of the curvature
  double eta = 0.0;     ///< 0: rho
  index_t n_parts = 1;  ///< label parts of which a visit to a node searches one (21)
  FactorVisits visits = FactorVisits::kAll;
  index_t n_factor_parts = 1;    ///< parts of idle nodes and factors of which a pass searches one
  bool has_full_search = false;  ///< reads all states of a factor: the oracle without heaps
  bool uses_away_steps = false;  ///< algorithm 2 on each node and factor instead of algorithm 4
  std::uint64_t seed = 0;
};

/// Labels begin .. end - 1.
struct LabelPart {
  index_t begin, end;
  index_t size() const { return end - begin; }
  bool holds(index_t label) const { return begin <= label && label < end; }
};

inline LabelPart draw_part(index_t n_labels, index_t n_parts, Rng& rng) {
  const index_t n = std::clamp<index_t>(n_parts, 1, n_labels);
  if (n == 1) return {0, n_labels};
  const auto k = static_cast<offset_t>(rng.below(static_cast<std::uint32_t>(n)));
  return {static_cast<index_t>(k * n_labels / n), static_cast<index_t>((k + 1) * n_labels / n)};
}

/// What a pass did.
struct GdmmLearnPass {
  double primal_residual = 0.0;  ///< root mean square of M q - p over the ends of factors
  double dual_residual = 0.0;    ///< of rho times the change of p
  double rho = 0.0;
  offset_t n_labels = 0;  ///< labels with a share, over all nodes
  offset_t n_states = 0;
  offset_t n_factors = 0;  ///< that are active
  offset_t n_visits = 0;   ///< to nodes and factors, idle ones that were looked at included
  offset_t work = 0;
};

/// A share, or a step of a multiplier, that is no more than what rounding leaves.
inline constexpr double kRounding = 1e-12;

/// The end of a factor that is idle: its q is the truth, and its lambda that of all idle factors of
/// the node.
inline constexpr std::size_t kIdleEnd = std::numeric_limits<std::size_t>::max();

/// A node's labels by slot, the truth first; for each slot p, the mean of p over passes and the
/// lambda of idle factors, then lambda and M q for each active factor.
struct LearnNode {
  static constexpr std::uint32_t kAlone = 3;  ///< numbers of a slot that belong to no active factor

  std::vector<index_t> labels;
  std::vector<double> numbers;
  std::uint32_t stride = kAlone;
  std::uint32_t n_idle = 0;   ///< factors
  bool is_active = false;     ///< p has left the truth, or a factor is active
  std::uint32_t n_moves = 0;  ///< passes in which its messages to factors may have changed

  double& p(std::size_t s) { return numbers[s * stride]; }
  double p(std::size_t s) const { return numbers[s * stride]; }
  double& mean(std::size_t s) { return numbers[s * stride + 1]; }
  double mean(std::size_t s) const { return numbers[s * stride + 1]; }
  double& idle_lambda(std::size_t s) { return numbers[s * stride + 2]; }
  double idle_lambda(std::size_t s) const { return numbers[s * stride + 2]; }
  double& lambda(std::size_t s, std::size_t e) { return numbers[s * stride + kAlone + 2 * e]; }
  double lambda(std::size_t s, std::size_t e) const { return numbers[s * stride + kAlone + 2 * e]; }
  double& marginal(std::size_t s, std::size_t e) {
    return numbers[s * stride + kAlone + 1 + 2 * e];
  }
  double marginal(std::size_t s, std::size_t e) const {
    return numbers[s * stride + kAlone + 1 + 2 * e];
  }
  std::size_t degree() const { return (stride - kAlone) / 2; }  ///< active factors
  static double of_truth(std::size_t s) { return s == 0 ? 1.0 : 0.0; }

  /// What a label costs the states of a factor: lambda + rho (M q - p).
  double message(std::size_t s, std::size_t e, double rho) const {
    if (e == kIdleEnd) return idle_lambda(s) + rho * (of_truth(s) - p(s));
    return lambda(s, e) + rho * (marginal(s, e) - p(s));
  }
  /// Whether idle factors get any.
  bool has_message() const {
    for (std::size_t s = 0; s < labels.size(); ++s) {
      if (std::abs(p(s) - of_truth(s)) > kRounding || std::abs(idle_lambda(s)) > kRounding) {
        return true;
      }
    }
    return false;
  }

  std::size_t enter(index_t label) {
    labels.push_back(label);
    numbers.resize(numbers.size() + stride, 0.0);
    return labels.size() - 1;
  }
  std::size_t slot(index_t label) {
    const auto at = std::find(labels.begin(), labels.end(), label);
    return at == labels.end() ? enter(label) : static_cast<std::size_t>(at - labels.begin());
  }
  /// One more active factor, whose q is the truth; which one it is.
  std::size_t attach() {
    const std::size_t old = stride, e = degree();
    std::vector<double> wider(labels.size() * (old + 2));
    for (std::size_t s = 0; s < labels.size(); ++s) {
      std::copy_n(numbers.begin() + static_cast<std::ptrdiff_t>(s * old), old,
                  wider.begin() + static_cast<std::ptrdiff_t>(s * (old + 2)));
    }
    numbers.swap(wider);
    stride += 2;
    for (std::size_t s = 0; s < labels.size(); ++s) {
      lambda(s, e) = idle_lambda(s);
      marginal(s, e) = of_truth(s);
    }
    --n_idle;
    is_active = true;
    return e;
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
