// What PPD-Sparse is given and what it returns: data, labels, settings; weights and reports.
// solvers/ppd_sparse/solver.hpp says what is solved.
#pragma once

#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "sublearn/core/label_rows.hpp"
#include "sublearn/core/status.hpp"
#include "sublearn/core/types.hpp"
#include "sublearn/core/views.hpp"
#include "sublearn/search/inverted_lists.hpp"

namespace sublearn {

enum class PPDSearch {
  exact,       ///< every search scores with all weights
  sparsified,  ///< some searches score with randomly sparsified weights (search/sparsify.hpp)
};

struct PPDSettings {
  double l1 = 0.1;
  double tol = 3e-2;   ///< on the duality gap of a label, relative to its objective
  double prune = 0.0;  ///< weights of at most this size are not returned
  int max_iter = 100;  ///< searches per label
  bool learn_bias = true;
  PPDSearch search = PPDSearch::exact;
  double delta = 0.0;     ///< of theorem 5, which gives R; 0 keeps a fixed share of the weights
  bool is_drawn = false;  ///< R draws with replacement (algorithm 4), not one choice per weight
  int kappa = 0;          ///< rows that a search may add to a label; 0 as many as it has
  int n_between = 1;      ///< sparsified searches between two exact ones
  std::uint64_t seed = 0;
  int n_threads = 1;
};

/// How a label went. `n_iter` is 0 if it was not solved: not reached, or without positives.
struct LabelReport {
  double primal = 0.0;
  double dual = 0.0;
  double seconds = 0.0;   ///< from the start of the fit to the end of this label
  std::int64_t work = 0;  ///< matrix entries visited, its share of the block's
  index_t nnz_primal = 0;
  index_t nnz_dual = 0;
  int n_iter = 0;
  Status status = Status::stopped;

  bool has_converged() const { return status == Status::converged; }
};

/// Non-zero weights by label, features increasing.
template <class T>
struct LabelWeights {
  std::vector<index_t> features;
  std::vector<T> values;
  T bias = 0;
};

/// Numbers by label: a CSR matrix and the biases that go with it.
template <class T>
struct PPDStart {
  std::span<const offset_t> indptr;
  std::span<const index_t> features;
  std::span<const T> values;
  std::span<const T> bias;

  bool is_given() const { return !indptr.empty(); }
};

/// What is to be learnt: the rows of each label and, if not empty, what their losses weigh. Weights
/// are positive; a row counts row_weight, times positive_weight of the label if it carries it.
template <class T>
struct PPDTask {
  LabelRows labels;
  std::span<const T> row_weight;       ///< by row
  std::span<const T> positive_weight;  ///< by label
  PPDStart<T> start;                   ///< weights to start from
  PPDStart<T> held;  ///< what rows seen earlier add to v and to the bias; solver.hpp says how
};

/// The data as the solver wants it: rows, inverted lists, squared row lengths.
template <class T, class I>
struct PPDData {
  explicit PPDData(const CsrView<T, I>& X) : rows(X), lists(X) { measure_rows(); }

  /// With the lists of X as they were made before.
  PPDData(const CsrView<T, I>& X, std::span<const offset_t> indptr,
          std::span<const index_t> list_rows, std::span<const T> values)
      : rows(X), lists(indptr, list_rows, values) {
    measure_rows();
  }

  CsrView<T, I> rows;
  InvertedLists<T> lists;
  std::vector<T> row_squares;

 private:
  void measure_rows() {
    row_squares.reserve(static_cast<std::size_t>(rows.n_rows()));
    for (offset_t i = 0; i < rows.n_rows(); ++i) {
      const auto values = rows.row(i).values;
      row_squares.push_back(
          static_cast<T>(std::inner_product(values.begin(), values.end(), values.begin(), 0.0)));
    }
  }
};

}  // namespace sublearn
