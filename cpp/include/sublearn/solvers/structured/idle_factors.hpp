// Factors that no pass needs to visit: their q is the truth, and no state beats it. Used by:
// gdmm.hpp.
//
// Which idle factor begins to violate (appendix C-2 of Yen et al., NIPS 2016, for any labels):
//
//   no node has left its truth     the score of a state is the scale times a cell: factors of one
//                                  template and one true state violate together, the one of largest
//                                  scale most
//   a node has left it             its idle factors are looked at one by one; all of them have the
//                                  same multipliers there, which the node keeps once
//   the factor has features        scores are its own: it is looked at, in parts
//
// Whoever was looked at is not looked at again before its messages change, or its table has changed
// by as much as the best state lacked. The same holds for active factors whose q is the truth
// again.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "sublearn/core/types.hpp"
#include "sublearn/solvers/structured/task.hpp"

namespace sublearn {

template <class T, class I>
class IdleFactors {
 public:
  /// Factors of one template, one true state and one sample, by decreasing scale.
  struct Group {
    index_t table;
    std::vector<index_t> truth;  ///< labels of the nodes
    std::vector<index_t> members;
    std::size_t n_gone = 0;  ///< of the first ones, that are active
  };

  /// What the last look at a factor saw: by how much the best state lacked, after which moves of
  /// its nodes and of its table.
  struct Look {
    double slack = -1.0;
    double drift = 0.0;
    std::uint32_t n_moves = 0;
  };

  IdleFactors(const StructuredData<T, I>& data, std::span<const std::size_t> scope_begin)
      : looks(data.table.size()),
        is_active_(data.table.size(), 0),
        active_(data.n_samples()),
        nodes_(data.n_samples()),
        groups_(data.n_samples()),
        featured_(data.n_samples()),
        begin_(data.truth.size() + 1, 0) {
    for (const index_t node : data.scope) ++begin_[at(node) + 1];
    std::partial_sum(begin_.begin(), begin_.end(), begin_.begin());
    of_node_.resize(data.scope.size());
    std::vector<std::size_t> next(begin_.begin(), begin_.end() - 1);
    for (std::size_t f = 0; f < data.table.size(); ++f) {
      for (std::size_t e = scope_begin[f]; e < scope_begin[f + 1]; ++e) {
        of_node_[next[at(data.scope[e])]++] = static_cast<index_t>(f);
      }
    }
    for (std::size_t i = 0; i < data.n_samples(); ++i) group(data, scope_begin, i);
  }

  std::vector<Look> looks;  ///< of each factor

  bool is_active(index_t f) const { return is_active_[at(f)] != 0; }
  void activate(std::size_t sample, index_t f) {
    is_active_[at(f)] = 1;
    active_[sample].push_back(f);
  }

  /// Active factors of a sample, and nodes that have left the truth or have such factors.
  const std::vector<index_t>& active(std::size_t sample) const { return active_[sample]; }
  std::vector<index_t>& nodes(std::size_t sample) { return nodes_[sample]; }

  std::vector<Group>& groups(std::size_t sample) { return groups_[sample]; }
  /// Factors with features.
  std::span<const index_t> featured(std::size_t sample) const { return featured_[sample]; }
  /// All factors of a node.
  std::span<const index_t> of_node(std::size_t j) const {
    return std::span(of_node_).subspan(begin_[j], begin_[j + 1] - begin_[j]);
  }

  offset_t n_active() const {
    offset_t n = 0;
    for (const auto& factors : active_) n += static_cast<offset_t>(factors.size());
    return n;
  }

 private:
  void group(const StructuredData<T, I>& data, std::span<const std::size_t> scope_begin,
             std::size_t sample) {
    std::vector<index_t> plain;
    for (auto f = data.factor_begin[sample]; f < data.factor_begin[sample + 1]; ++f) {
      (data.has_features(at(f)) ? featured_[sample] : plain).push_back(static_cast<index_t>(f));
    }
    const auto truth_of = [&](index_t f) {
      std::vector<index_t> labels;
      for (std::size_t e = scope_begin[at(f)]; e < scope_begin[at(f) + 1]; ++e) {
        labels.push_back(data.truth[at(data.scope[e])]);
      }
      return labels;
    };
    std::vector<std::vector<index_t>> keys(plain.size());
    std::vector<std::size_t> order(plain.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    for (std::size_t k = 0; k < plain.size(); ++k) {
      keys[k] = truth_of(plain[k]);
      keys[k].insert(keys[k].begin(), data.table[at(plain[k])]);
    }
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      if (keys[a] != keys[b]) return keys[a] < keys[b];
      const double x = data.scale_of(at(plain[a])), y = data.scale_of(at(plain[b]));
      return x != y ? x > y : a < b;
    });
    for (std::size_t k = 0; k < order.size(); ++k) {
      const auto& key = keys[order[k]];
      if (k == 0 || key != keys[order[k - 1]]) {
        groups_[sample].push_back({key[0], {key.begin() + 1, key.end()}, {}});
      }
      groups_[sample].back().members.push_back(plain[order[k]]);
    }
  }

  std::vector<std::uint8_t> is_active_;
  std::vector<std::vector<index_t>> active_, nodes_;  ///< by sample
  std::vector<std::vector<Group>> groups_;
  std::vector<std::vector<index_t>> featured_;
  std::vector<std::size_t> begin_;
  std::vector<index_t> of_node_;
};

}  // namespace sublearn
