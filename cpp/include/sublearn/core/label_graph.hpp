// Labels in a taxonomy: who is whose parent, and the two ways to walk over all of them.
//
// A label may have no parent (a root), one, or several. A walk up sees children before parents, a
// walk down parents before children: all that follows is built of these two (algorithms 9 and 10 of
// Tang, "Big Data Optimization in Machine Learning", 2016).
#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "sublearn/core/compressed.hpp"
#include "sublearn/core/types.hpp"

namespace sublearn {

class LabelGraph {
 public:
  /// The parents of label t are parents[indptr[t]] .. parents[indptr[t + 1] - 1].
  LabelGraph(std::vector<offset_t> indptr, std::vector<index_t> parents)
      : indptr_(std::move(indptr)), parents_(std::move(parents)) {
    if (!rises_to<offset_t>(indptr_, parents_.size())) {
      throw std::invalid_argument("indptr must rise from 0 to the number of parents");
    }
    if (!all_below<index_t>(parents_, size())) {
      throw std::invalid_argument("parents must be labels");
    }
    order_ = parents_first();
  }

  index_t size() const { return static_cast<index_t>(indptr_.size()) - 1; }

  std::span<const index_t> parents(index_t t) const {
    const auto begin = static_cast<std::size_t>(indptr_[t]);
    return {parents_.data() + begin, static_cast<std::size_t>(indptr_[t + 1]) - begin};
  }

  /// Labels in an order in which parents come first; shorter than size() if there is a cycle.
  std::span<const index_t> order() const { return order_; }

  /// Whether no label has two parents.
  bool is_forest() const {
    for (index_t t = 0; t < size(); ++t) {
      if (parents(t).size() > 1) return false;
    }
    return true;
  }

  /// visit(label, its parents), children first.
  template <class Visit>
  void walk_up(Visit&& visit) const {
    for (std::size_t k = order_.size(); k-- > 0;) visit(order_[k], parents(order_[k]));
  }

  /// visit(label, its parents), parents first.
  template <class Visit>
  void walk_down(Visit&& visit) const {
    for (const index_t t : order_) visit(t, parents(t));
  }

  /// The groups of (3.2.1): each label with all its descendants, children of no order.
  std::vector<std::vector<index_t>> groups() const {
    std::vector<std::vector<index_t>> found(static_cast<std::size_t>(size()));
    walk_up([&](index_t t, std::span<const index_t> parents_of_t) {
      auto& own = found[t];
      own.push_back(t);
      std::sort(own.begin(), own.end());
      own.erase(std::unique(own.begin(), own.end()), own.end());
      for (const index_t p : parents_of_t) {
        found[p].insert(found[p].end(), own.begin(), own.end());
      }
    });
    return found;
  }

 private:
  /// Kahn's algorithm; the numbers themselves if parents have lower ones, which keeps memory local.
  std::vector<index_t> parents_first() const {
    std::vector<index_t> order(static_cast<std::size_t>(size()));
    std::iota(order.begin(), order.end(), 0);
    const bool is_numbered_so = std::all_of(order.begin(), order.end(), [&](index_t t) {
      return std::ranges::all_of(parents(t), [&](index_t p) { return p < t; });
    });
    if (is_numbered_so) return order;

    std::vector<offset_t> first(order.size() + 1, 0);  // children by parent
    for (const index_t p : parents_) ++first[p + 1];
    std::partial_sum(first.begin(), first.end(), first.begin());
    std::vector<index_t> children(parents_.size());
    std::vector<offset_t> next(first.begin(), first.end() - 1);
    std::vector<index_t> n_missing(order.size());
    order.clear();
    for (index_t t = 0; t < size(); ++t) {
      n_missing[t] = static_cast<index_t>(parents(t).size());
      if (n_missing[t] == 0) order.push_back(t);
      for (const index_t p : parents(t)) children[next[p]++] = t;
    }
    for (std::size_t k = 0; k < order.size(); ++k) {
      for (offset_t c = first[order[k]]; c < first[order[k] + 1]; ++c) {
        if (--n_missing[children[c]] == 0) order.push_back(children[c]);
      }
    }
    return order;
  }

  std::vector<offset_t> indptr_;
  std::vector<index_t> parents_;
  std::vector<index_t> order_;
};

}  // namespace sublearn
