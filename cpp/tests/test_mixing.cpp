// The mixing method: its loops against plain ones, three forms of one matrix, flips to the end.
#include "sublearn/solvers/quadratic/mixing.hpp"

#include <cmath>
#include <vector>

#include "check.hpp"

using namespace sublearn;

namespace {

/// A factor A and C = A A' in the two other forms.
struct OneMatrix {
  offset_t n, d;
  std::vector<double> A, C, off, diagonal;
  std::vector<index_t> indptr{0}, indices;

  OneMatrix(offset_t n, offset_t d) : n(n), d(d) {
    Rng rng(3);
    for (offset_t p = 0; p < n * d; ++p) A.push_back(2 * rng.uniform() - 1);
    for (offset_t i = 0; i < n; ++i) {
      for (offset_t j = 0; j < n; ++j) add(i, j);
      indptr.push_back(static_cast<index_t>(indices.size()));
    }
  }

  void add(offset_t i, offset_t j) {
    double sum = 0.0;
    for (offset_t k = 0; k < d; ++k) {
      sum += A[static_cast<std::size_t>(i * d + k)] * A[static_cast<std::size_t>(j * d + k)];
    }
    C.push_back(sum);
    if (i == j) {
      diagonal.push_back(sum);
      return;
    }
    indices.push_back(static_cast<index_t>(j));
    off.push_back(sum);
  }

  DenseCouplings as_dense() const { return {{C.data(), n, n}}; }
  FactoredCouplings as_factored() const { return FactoredCouplings({A.data(), n, d}); }
  SparseCouplings as_sparse() const {
    CsrView<double, index_t> view;
    view.indptr = indptr.data(), view.indices = indices.data(), view.values = off.data();
    view.n_major = n, view.n_minor = n;
    return {view, diagonal};
  }

  double value(const std::vector<std::int8_t>& y, double scale,
               const std::vector<double>& b) const {
    double sum = 0.0;
    for (offset_t i = 0; i < n; ++i) {
      const auto row = static_cast<std::size_t>(i);
      if (!b.empty()) sum += 2 * b[row] * y[row];
      for (offset_t j = 0; j < n; ++j) {
        const auto column = static_cast<std::size_t>(j);
        sum += scale * y[row] * y[column] * C[row * static_cast<std::size_t>(n) + column];
      }
    }
    return sum;
  }
};

/// Value of the relaxation after some sweeps, and of the first rounding.
template <class Form>
std::pair<double, std::vector<RoundedSigns>> solved(const Form& form,
                                                    const std::vector<double>& b) {
  Mixing<Form> mixing(form, 0.25, b);
  mixing.start_at_random(9, 1);
  const Monitor monitor;
  Rng rng(2);
  double gained = 0.0;
  std::vector<double> multipliers;
  const double before = mixing.evaluate(multipliers);
  for (int sweep = 0; sweep < 40; ++sweep) {
    const double gain = mixing.sweep(1.8, rng, monitor);
    CHECK(gain >= -1e-9);
    gained += gain;
  }
  const double value = mixing.evaluate(multipliers);
  CHECK_NEAR(before + gained, value, 1e-8 * std::abs(value));
  return {value, mixing.round(5, 0, 100, monitor)};
}

}  // namespace

TEST(rows_of_a_panel_are_combined_as_a_loop_would) {
  for (const offset_t width : {1, 2, 3, 4, 7}) {
    Panel rows(5, width);
    Rng rng(1);
    for (offset_t p = 0; p < 5 * width; ++p) rows.data()[p] = Pack<double>::all(rng.uniform());
    const std::vector<double> a{0.5, -1.0, 2.0, 0.0, 3.0};
    const std::vector<index_t> ids{4, 1};
    std::vector<Pack<double>> out(static_cast<std::size_t>(width));
    combine_rows(a, rows.data(), width, out.data());
    for (offset_t l = 0; l < width; ++l) {
      double sum = 0.0;
      for (offset_t j = 0; j < 5; ++j) sum += a[static_cast<std::size_t>(j)] * rows.row(j)[l][3];
      CHECK_NEAR(out[static_cast<std::size_t>(l)][3], sum, 1e-15);
    }
    combine_rows(ids, a.data(), rows.data(), width, out.data());
    const double last = rows.row(4)[width - 1][0];
    CHECK_NEAR(out.back()[0], 0.5 * last - rows.row(1)[width - 1][0], 1e-15);
    add_to_rows(a, out.data(), width, rows.data());
    CHECK_NEAR(rows.row(4)[width - 1][0], last + 3.0 * out.back()[0], 1e-14);
  }
}

TEST(three_forms_of_a_matrix_mix_to_the_same_value) {
  const OneMatrix matrix(23, 4);
  std::vector<double> b;
  for (int with_linear = 0; with_linear < 2; ++with_linear) {
    const auto dense = solved(matrix.as_dense(), b);
    const auto sparse = solved(matrix.as_sparse(), b);
    const auto factored = solved(matrix.as_factored(), b);
    CHECK_NEAR(dense.first, sparse.first, 1e-9 * dense.first);
    CHECK_NEAR(dense.first, factored.first, 1e-9 * dense.first);
    for (std::size_t h = 0; h < dense.second.size(); ++h) {
      const auto& signs = dense.second[h];
      CHECK(signs.y == sparse.second[h].y);
      CHECK_NEAR(signs.value, matrix.value(signs.y, 0.25, b), 1e-9);
      CHECK(signs.value <= dense.first + 1e-6);
    }
    for (offset_t i = 0; i < matrix.n; ++i) b.push_back(0.1 * static_cast<double>(i % 5) - 0.2);
  }
}

TEST(no_flip_improves_what_a_hyperplane_ends_with) {
  const OneMatrix matrix(17, 3);
  const std::vector<double> b(17, 0.3);
  for (const auto& signs : solved(matrix.as_dense(), b).second) {
    auto flipped = signs.y;
    for (auto& y : flipped) {
      y = static_cast<std::int8_t>(-y);
      CHECK(matrix.value(flipped, 0.25, b) <= signs.value + 1e-9);
      y = static_cast<std::int8_t>(-y);
    }
  }
}

TEST(a_stop_ends_a_sweep_and_leaves_unit_vectors) {
  const OneMatrix matrix(9, 2);
  const auto form = matrix.as_dense();
  Mixing<DenseCouplings> mixing(form, 1.0, {});
  mixing.start_at_random(3, 0);
  Monitor monitor;
  monitor.request_stop();
  Rng rng(0);
  CHECK(mixing.sweep(1.0, rng, monitor) == 0.0);
  for (offset_t i = 0; i < 9; ++i) {
    double square = 0.0;
    for (int k = 0; k < kLanes<double>; ++k) square += std::pow(mixing.vectors().row(i)[0][k], 2);
    CHECK_NEAR(square, 1.0, 1e-12);
  }
}
