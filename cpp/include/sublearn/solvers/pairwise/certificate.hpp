// The relaxed losses of all rows, over all labels: what makes the dual value over sets of labels
// a certificate, and brings in labels that the search of a visit cannot see. Used by:
// solvers/pairwise/solver.hpp.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "sublearn/core/labelled_rows.hpp"
#include "sublearn/core/monitor.hpp"
#include "sublearn/core/parallel_for.hpp"
#include "sublearn/core/types.hpp"
#include "sublearn/core/views.hpp"
#include "sublearn/search/hashed_rows.hpp"
#include "sublearn/search/score_board.hpp"
#include "sublearn/solvers/pairwise/label_quadratic.hpp"
#include "sublearn/solvers/pairwise/task.hpp"

namespace sublearn {

/// Looks at W and V as they are when it is made.
template <class T, class I>
class RelaxedLosses {
 public:
  RelaxedLosses(const LabelledRows<T, I>& data, const HashedRows<T>& weights,
                const HashedRows<T>& pairs)
      : data_(data), weights_(weights), pairs_(pairs), owned_(sorted_rows(pairs)) {
    values_.assign(owned_.values.begin(), owned_.values.end());
    ids_.assign(owned_.indices.begin(), owned_.indices.end());
    view_.indptr = owned_.indptr.data();
    view_.indices = ids_.data();
    view_.values = values_.data();
    view_.n_major = view_.n_minor = pairs.n_labels();
    attraction_ = LabelInference::attraction_of(view_);
  }

  /// Their sum; rows get labels that their programs use.
  double sum(std::span<PairRow> rows, int n_threads, const Monitor* monitor) const {
    const auto n_blocks = (static_cast<offset_t>(rows.size()) + kBlock - 1) / kBlock;
    n_threads = effective_threads(n_blocks, n_threads);
    std::vector<double> losses(static_cast<std::size_t>(n_blocks), 0.0);
    std::vector<Scratch> scratch(static_cast<std::size_t>(n_threads), Scratch(*this));
    parallel_for(n_blocks, n_threads, monitor, [&](offset_t block, int thread) {
      const auto end =
          std::min<std::size_t>(rows.size(), static_cast<std::size_t>((block + 1) * kBlock));
      for (auto i = static_cast<std::size_t>(block * kBlock); i < end; ++i) {
        losses[at(block)] += loss(i, rows[i], scratch[at(thread)]);
      }
    });
    return std::accumulate(losses.begin(), losses.end(), 0.0);
  }

 private:
  static constexpr offset_t kBlock = 16;  ///< rows

  struct Scratch {
    LabelInference inference;
    ScoreBoard<T> board;
    std::vector<double> unary;
    std::vector<index_t> support;
    std::vector<std::uint32_t> slots;

    explicit Scratch(const RelaxedLosses& of)
        : inference(of.view_, of.attraction_),
          board(of.weights_.n_labels()),
          unary(static_cast<std::size_t>(of.weights_.n_labels())) {}
  };

  double loss(std::size_t i, PairRow& row, Scratch& scratch) const {
    const auto x = data_.X.row(static_cast<offset_t>(i));
    for (std::size_t k = 0; k < x.size(); ++k) {
      weights_.add_to(static_cast<std::size_t>(x.ids[k]), x.values[k], scratch.board);
    }
    for (index_t l = 0; l < weights_.n_labels(); ++l) {
      scratch.unary[at(l)] = static_cast<double>(scratch.board[l]) + 1.0;
    }
    scratch.board.clear();
    const auto labels = data_.labels.of(static_cast<offset_t>(i));
    double truth = 0.0;
    for (std::size_t s = 0; s < labels.size(); ++s) {
      double& unary = scratch.unary[at(labels[s])];
      truth += unary - 1.0;
      unary -= 2.0;
      for (std::size_t r = 0; r < s; ++r) {
        truth += static_cast<double>(
            pairs_.weight(static_cast<std::size_t>(labels[r]), pairs_.place(labels[s])));
      }
    }
    const double most = scratch.inference.relaxed(scratch.unary, scratch.support);
    hold_best(row, scratch);
    return most + static_cast<double>(row.n_true) - truth;
  }

  /// Lets in what a program uses and its row lacks: as many labels as a visit would, those of
  /// highest score. In early passes V is far too large and programs use hundreds of labels, which
  /// would stay: on 1,000 rows of delicious 250 labels a row were held instead of 80.
  static void hold_best(PairRow& row, Scratch& scratch) {
    auto& support = scratch.support;
    std::erase_if(support, [&](index_t l) { return row.holds(l); });
    const auto n = static_cast<std::ptrdiff_t>(std::min(support.size(), row.most_entries()));
    const auto score = [&](index_t l) { return scratch.unary[at(l)]; };
    std::partial_sort(
        support.begin(), support.begin() + n, support.end(),
        [&](index_t a, index_t b) { return std::pair(-score(a), a) < std::pair(-score(b), b); });
    row.enter({support.data(), static_cast<std::size_t>(n)}, scratch.slots);
  }

  const LabelledRows<T, I>& data_;
  const HashedRows<T>& weights_;
  const HashedRows<T>& pairs_;
  OwnedRows<T> owned_;
  std::vector<double> values_, attraction_;
  std::vector<offset_t> ids_;
  CsrView<double, offset_t> view_;
};

}  // namespace sublearn
