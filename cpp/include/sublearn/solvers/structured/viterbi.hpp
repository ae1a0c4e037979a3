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

#include "sublearn/core/monitor.hpp"
#include "sublearn/core/parallel_for.hpp"
#include "sublearn/core/types.hpp"
#include "sublearn/core/views.hpp"

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
      const double x = before_[at(a)], y = before_[at(b)];
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

/// Weights of features, by feature, and the transition table.
template <class T>
struct ChainWeights {
  std::span<const offset_t> indptr;  ///< where each feature's labels begin, and the end
  std::span<const index_t> labels;
  std::span<const T> values;
  std::span<const double> table;
  std::size_t n_labels;

  offset_t n_features() const { return static_cast<offset_t>(indptr.size()) - 1; }

  /// out += W'x.
  void add_scores(const SparseVector<T, index_t>& x, std::span<double> out) const {
    for (std::size_t k = 0; k < x.size(); ++k) {
      const std::size_t feature = at(x.ids[k]);
      for (offset_t e = indptr[feature]; e < indptr[feature + 1]; ++e) {
        out[at(labels[at(e)])] += static_cast<double>(x.values[k]) * values[at(e)];
      }
    }
  }
};

/// Labels of all nodes, scores of all chains.
struct DecodedChains {
  std::vector<index_t> labels;
  std::vector<double> scores;
};

/// Decodes the chains that begin at `begin` in X, each on one thread. With `truth`, a label that is
/// not the true one counts 1 more, or what the row of the true one in `loss` says.
template <class T>
DecodedChains decode_chains(const CsrView<T, index_t>& X, const ChainWeights<T>& weights,
                            std::span<const offset_t> begin, std::span<const index_t> truth,
                            int n_threads, const Monitor& monitor,
                            std::span<const double> loss = {}) {
  const std::size_t n_labels = weights.n_labels;
  const auto n_chains = static_cast<offset_t>(begin.size()) - 1;
  DecodedChains found{std::vector<index_t>(at(X.n_rows()), 0),
                      std::vector<double>(at(n_chains), 0.0)};
  const std::vector<double> tops = Viterbi::column_tops(weights.table, n_labels);
  std::vector<Viterbi> decoders(at(effective_threads(n_chains, n_threads)),
                                Viterbi(weights.table, tops));
  std::vector<std::vector<double>> rooms(decoders.size());
  parallel_for(n_chains, n_threads, &monitor, [&](offset_t n, int thread) {
    const std::size_t first = at(begin[at(n)]), length = at(begin[at(n) + 1]) - first;
    std::vector<double>& emissions = rooms[at(thread)];
    emissions.assign(length * n_labels, 0.0);
    for (std::size_t t = 0; t < length; ++t) {
      const std::span<double> out = std::span(emissions).subspan(t * n_labels, n_labels);
      weights.add_scores(X.row(static_cast<offset_t>(first + t)), out);
      if (truth.empty()) continue;
      if (!loss.empty()) {
        const auto costs = loss.subspan(at(truth[first + t]) * n_labels, n_labels);
        for (std::size_t label = 0; label < n_labels; ++label) out[label] += costs[label];
        continue;
      }
      for (double& score : out) score += 1.0;
      out[at(truth[first + t])] -= 1.0;
    }
    found.scores[at(n)] = decoders[at(thread)].decode(
        emissions, std::span<index_t>(found.labels).subspan(first, length));
  });
  return found;
}

}  // namespace sublearn
