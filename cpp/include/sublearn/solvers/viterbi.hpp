// The best label sequence of a chain, exactly, in less than K^2 operations a position.
//
//   m_t(b) = e_t(b) + max_a [m_{t-1}(a) + T(a, b)]
//
// The labels a are taken in decreasing order of m_{t-1}(a); once m_{t-1}(a) + max_a' T(a', b) is no
// better than what b has, no later label is. How deep this goes depends on how much emissions and
// transitions disagree, not on K: some 5 labels a for 850 tags. The order comes from a heap, as
// deep as it is asked for.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "sublearn/core/types.hpp"

namespace sublearn {

/// Decodes chains with one transition table; holds scratch space, so one for each thread.
class Viterbi {
 public:
  /// `table`: T(a, b) at a * n_labels + b. `top`: the largest entry of each column.
  Viterbi(std::span<const double> table, std::span<const double> top)
      : table_(table), top_(top), n_labels_(top.size()) {}

  /// Largest entry of each column of a table.
  static std::vector<double> column_tops(std::span<const double> table, std::size_t n_labels) {
    std::vector<double> top(n_labels, -std::numeric_limits<double>::infinity());
    for (std::size_t cell = 0; cell < table.size(); ++cell) {
      top[cell % n_labels] = std::max(top[cell % n_labels], table[cell]);
    }
    return top;
  }

  /// emissions: a row of n_labels for each position; labels: one for each. Returns the score.
  double decode(std::span<const double> emissions, std::span<index_t> labels) {
    const std::size_t length = labels.size();
    from_.resize(emissions.size());
    before_.assign(emissions.begin(), emissions.begin() + static_cast<std::ptrdiff_t>(n_labels_));
    for (std::size_t t = 1; t < length; ++t) {
      step(emissions.subspan(t * n_labels_, n_labels_), from_.data() + t * n_labels_);
      before_.swap(after_);
    }
    const auto best = std::max_element(before_.begin(), before_.end());
    auto label = static_cast<std::size_t>(best - before_.begin());
    for (std::size_t t = length; t-- > 0;) {
      labels[t] = static_cast<index_t>(label);
      if (t > 0) label = static_cast<std::size_t>(from_[t * n_labels_ + label]);
    }
    return *best;
  }

  /// Pairs of labels looked at since the start.
  offset_t work() const { return work_; }

 private:
  void step(std::span<const double> emission, index_t* from) {
    order_.resize(n_labels_);
    std::iota(order_.begin(), order_.end(), index_t{0});
    const auto is_lower = [this](index_t a, index_t b) {
      const double x = before_[static_cast<std::size_t>(a)],
                   y = before_[static_cast<std::size_t>(b)];
      return x < y || (x == y && a > b);
    };
    std::make_heap(order_.begin(), order_.end(), is_lower);
    auto heap_end = order_.end();  // what was taken stands behind it, the best last
    const auto taken = [&](std::size_t n) {
      while (n >= static_cast<std::size_t>(order_.end() - heap_end)) {
        std::pop_heap(order_.begin(), heap_end--, is_lower);
      }
      return static_cast<std::size_t>(*(order_.end() - 1 - static_cast<std::ptrdiff_t>(n)));
    };
    after_.resize(n_labels_);
    for (std::size_t b = 0; b < n_labels_; ++b) {
      double best = -std::numeric_limits<double>::infinity();
      std::size_t source = 0, n = 0;
      for (; n < n_labels_; ++n) {
        const std::size_t a = taken(n);
        if (before_[a] + top_[b] <= best) break;
        const double value = before_[a] + table_[a * n_labels_ + b];
        if (value > best) {
          best = value;
          source = a;
        }
      }
      work_ += static_cast<offset_t>(n) + 1;
      after_[b] = best + emission[b];
      from[b] = static_cast<index_t>(source);
    }
  }

  std::span<const double> table_, top_;
  std::size_t n_labels_;
  std::vector<double> before_, after_;
  std::vector<index_t> from_, order_;
  offset_t work_ = 0;
};

}  // namespace sublearn
