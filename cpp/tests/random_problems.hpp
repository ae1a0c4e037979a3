// Random sparse matrices and labels for tests, and the slow formulas that judge solvers on them.
#pragma once

#include <algorithm>
#include <vector>

#include "sublearn/core/rng.hpp"
#include "sublearn/core/types.hpp"
#include "sublearn/core/views.hpp"
#include "sublearn/solvers/ppd_sparse/solver.hpp"

namespace sublearn::testing {

/// A CSR matrix that owns its arrays, with offsets of type P. About one row in eight is empty.
template <class T, class P>
struct RandomMatrix {
  std::vector<P> indptr{0};
  std::vector<index_t> indices;
  std::vector<T> values;
  offset_t n_cols = 0;

  RandomMatrix(offset_t n_rows, offset_t n_columns, double density, Rng rng) : n_cols(n_columns) {
    for (offset_t i = 0; i < n_rows; ++i) {
      const bool is_empty = rng.uniform() < 0.125;
      for (offset_t j = 0; j < n_columns && !is_empty; ++j) {
        if (rng.uniform() >= density) continue;
        indices.push_back(static_cast<index_t>(j));
        values.push_back(static_cast<T>(2 * rng.uniform() - 1));
      }
      indptr.push_back(static_cast<P>(indices.size()));
    }
  }

  CsrView<T, index_t> view() const {
    CsrView<T, index_t> view;
    view.indptr = indptr.data();
    view.indices = indices.data();
    view.values = values.data();
    view.n_major = static_cast<offset_t>(indptr.size()) - 1;
    view.n_minor = n_cols;
    return view;
  }

  /// <row i, w>, where w(j) is the weight of feature j.
  template <class Weight>
  double product(offset_t i, Weight&& w) const {
    const auto row = view().row(i);
    double sum = 0;
    for (std::size_t p = 0; p < row.size(); ++p) {
      sum += static_cast<double>(row.values[p]) * w(row.ids[p]);
    }
    return sum;
  }
};

/// The rows of each label; label 1 has none and label 2 has all, where there are so many labels.
struct RandomLabels {
  std::vector<offset_t> indptr{0};
  std::vector<index_t> rows;

  RandomLabels(offset_t n_rows, offset_t n_labels, double density, Rng rng) {
    for (offset_t k = 0; k < n_labels; ++k) {
      const double share = k == 1 ? 0.0 : k == 2 ? 2.0 : density;
      for (offset_t i = 0; i < n_rows; ++i) {
        if (rng.uniform() < share) rows.push_back(static_cast<index_t>(i));
      }
      indptr.push_back(static_cast<offset_t>(rows.size()));
    }
  }

  LabelRows view() const { return {indptr, rows}; }

  bool has(offset_t label, offset_t row) const {
    const auto positives = view().of(label);
    return std::binary_search(positives.begin(), positives.end(), static_cast<index_t>(row));
  }
};

}  // namespace sublearn::testing
