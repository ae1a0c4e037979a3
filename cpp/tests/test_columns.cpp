// Columns, sparse and dense: every product against a loop over the entries.
#include "sublearn/core/columns.hpp"

#include <vector>

#include "check.hpp"
#include "sublearn/core/column_rows.hpp"
#include "sublearn/core/rng.hpp"

using namespace sublearn;

namespace {

/// A matrix column by column, with its sparse form. Column 1 is empty.
template <class T>
struct Columnwise {
  offset_t n_rows, n_cols;
  std::vector<T> dense;
  std::vector<index_t> indptr{0}, indices;
  std::vector<T> values;

  Columnwise(offset_t rows, offset_t cols, double density)
      : n_rows(rows), n_cols(cols), dense(static_cast<std::size_t>(rows * cols)) {
    Rng rng(7);
    for (offset_t j = 0; j < cols; ++j) {
      for (offset_t i = 0; i < rows; ++i) {
        if (j == 1 || rng.uniform() >= density) continue;
        const auto x = static_cast<T>(2 * rng.uniform() - 1);
        dense[static_cast<std::size_t>(j * rows + i)] = x;
        indices.push_back(static_cast<index_t>(i));
        values.push_back(x);
      }
      indptr.push_back(static_cast<index_t>(indices.size()));
    }
  }

  double at(offset_t i, offset_t j) const {
    return static_cast<double>(dense[static_cast<std::size_t>(j * n_rows + i)]);
  }
  SparseColumns<T, index_t> as_sparse() const {
    CscView<T, index_t> view;
    view.indptr = indptr.data(), view.indices = indices.data(), view.values = values.data();
    view.n_major = n_cols, view.n_minor = n_rows;
    return SparseColumns<T, index_t>(view);
  }
  DenseColumns<T> as_dense() const { return DenseColumns<T>(dense.data(), n_rows, n_cols); }
};

template <class Columns, class T>
void check_products(const Columns& X, const Columnwise<T>& judge) {
  Rng rng(1);
  const auto n = static_cast<std::size_t>(judge.n_rows);
  std::vector<double> v(n), h(n);
  for (std::size_t i = 0; i < n; ++i) v[i] = rng.uniform() - 0.5, h[i] = rng.uniform();
  CHECK(X.n_rows() == judge.n_rows && X.n_cols() == judge.n_cols);
  for (offset_t j = 0; j < judge.n_cols; ++j) {
    double dot = 0.0, square = 0.0;
    std::vector<double> added = v, scaled = v;
    X.add(j, 1.5, added.data());
    X.add_scaled(j, -0.5, h.data(), scaled.data());
    for (std::size_t i = 0; i < n; ++i) {
      const double x = judge.at(static_cast<offset_t>(i), j);
      dot += x * v[i], square += h[i] * x * x;
      CHECK_NEAR(added[i], v[i] + 1.5 * x, 1e-15);
      CHECK_NEAR(scaled[i], v[i] - 0.5 * h[i] * x, 1e-15);
    }
    CHECK_NEAR(X.dot(j, v.data()), dot, 1e-13);
    CHECK_NEAR(X.square(j, h.data()), square, 1e-13);
  }
  const std::vector<index_t> bs = {4, 0, 3}, as = {0, 3};
  std::vector<double> out(2 * 5, 7.0);
  const typename Columns::Products products(X, bs);
  products(1, 2, h.data(), out.data(), 5);
  for (std::size_t a = 0; a < as.size(); ++a) {
    for (std::size_t b = 0; b < bs.size(); ++b) {
      double sum = 0.0;
      for (std::size_t i = 0; i < n; ++i) {
        const auto row = static_cast<offset_t>(i);
        sum += h[i] * judge.at(row, as[a]) * judge.at(row, bs[b]);
      }
      CHECK_NEAR(out[a * 5 + b], sum, 1e-12);
    }
    CHECK(out[a * 5 + 3] == 7.0);  // beyond the columns that were asked for
  }
}

template <class T>
void check_both(offset_t n_rows) {
  const Columnwise<T> judge(n_rows, 5, 0.4);
  check_products(judge.as_sparse(), judge);
  check_products(judge.as_dense(), judge);
}

}  // namespace

// Lengths around whole packs of vector registers, and one row.
TEST(products_of_columns_are_those_of_their_entries) {
  for (const offset_t n_rows : {1, 2, 7, 8, 9, 31, 32, 33, 64, 100}) {
    check_both<float>(n_rows);
    check_both<double>(n_rows);
  }
}

TEST(columns_know_how_many_entries_they_store) {
  const Columnwise<double> judge(20, 3, 0.5);
  CHECK(judge.as_sparse().nnz(1) == 0);
  CHECK(judge.as_sparse().nnz(0) + judge.as_sparse().nnz(2) ==
        static_cast<offset_t>(judge.indices.size()));
  CHECK(judge.as_dense().nnz(1) == 20);
}

TEST(the_rows_of_a_column_are_visited_in_order) {
  const Columnwise<float> judge(9, 3, 0.5);
  const ColumnRows sparse{judge.indptr.data(), judge.indices.data(), 9};
  const ColumnRows dense{nullptr, nullptr, 9};
  for (offset_t j = 0; j < 3; ++j) {
    std::vector<std::size_t> seen, all, expected;
    sparse.visit(j, [&](std::size_t i) { seen.push_back(i); });
    dense.visit(j, [&](std::size_t i) { all.push_back(i); });
    for (offset_t i = 0; i < 9; ++i) {
      if (judge.at(i, j) != 0.0) expected.push_back(static_cast<std::size_t>(i));
    }
    CHECK(seen == expected);
    CHECK(all.size() == 9 && all.front() == 0 && all.back() == 8);
  }
}
