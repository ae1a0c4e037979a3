// Which labels score highest for a row? A linear model kept by feature: W is a CSR matrix with one
// row per feature, so a data row visits only the labels that share a feature with it.
//
// Used by: prediction in the extreme room.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "sublearn/core/top_k.hpp"
#include "sublearn/core/types.hpp"
#include "sublearn/core/views.hpp"

namespace sublearn {

/// Scores of one row after another, <w_k, x> + b_k; keeps its memory from row to row.
template <class T, class WI>
class LabelScores {
 public:
  LabelScores(const CsrView<T, WI>& weights, std::span<const T> bias)
      : weights_(weights), bias_(bias), scores_(bias.begin(), bias.end()) {}

  /// All scores of a row; valid until the next call.
  template <class I>
  std::span<const T> score(const SparseVector<T, I>& row) {
    std::copy(bias_.begin(), bias_.end(), scores_.begin());
    T* scores = scores_.data();
    for (std::size_t p = 0; p < row.size(); ++p) {
      const auto labels = weights_.row(static_cast<offset_t>(row.ids[p]));
      const T x = row.values[p];
      for (std::size_t q = 0; q < labels.size(); ++q) scores[labels.ids[q]] += x * labels.values[q];
    }
    return scores_;
  }

  /// The k best labels of a row, best first, equal scores by increasing label.
  template <class I>
  std::span<const Scored<T>> top(const SparseVector<T, I>& row, std::size_t k) {
    return top_k(score(row), k, best_);
  }

 private:
  CsrView<T, WI> weights_;
  std::span<const T> bias_;
  std::vector<T> scores_;
  TopK<T> best_;
};

}  // namespace sublearn
