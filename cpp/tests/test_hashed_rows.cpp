// Rows of values by label against a dense matrix: growth, crossing the threshold, closing, copies.
#include "sublearn/search/hashed_rows.hpp"

#include <cmath>
#include <vector>

#include "check.hpp"
#include "sublearn/core/rng.hpp"
#include "sublearn/search/score_board.hpp"

using namespace sublearn;

namespace {

constexpr std::size_t kRows = 5;

/// The slow twin: every value, at its place.
template <class T>
struct DenseTwin {
  index_t n_labels;
  T level;
  std::vector<T> values;
  std::vector<bool> support;

  DenseTwin(index_t n, T threshold)
      : n_labels(n),
        level(threshold),
        values(kRows * static_cast<std::size_t>(n), T{0}),
        support(values.size(), true) {}

  std::size_t at(std::size_t r, index_t label) const {
    return r * static_cast<std::size_t>(n_labels) + static_cast<std::size_t>(label);
  }
  void add(std::size_t r, index_t label, T amount) {
    if (support[at(r, label)]) values[at(r, label)] += amount;
  }
  T weight(std::size_t r, index_t label) const {
    return soft_threshold(values[at(r, label)], level);
  }
  void close() {
    for (std::size_t p = 0; p < values.size(); ++p) {
      support[p] = std::abs(values[p]) > level;
      values[p] = 0;
    }
    level = 0;
  }
};

template <class T>
void check_same(const HashedRows<T>& rows, const DenseTwin<T>& twin, bool closed) {
  for (std::size_t r = 0; r < kRows; ++r) {
    index_t n_weights = 0;
    ScoreBoard<T> board(twin.n_labels);
    rows.add_to(r, T{2}, board);
    std::vector<T> listed(static_cast<std::size_t>(twin.n_labels), T{0});
    rows.for_each_weight(r,
                         [&](index_t label, T w) { listed[static_cast<std::size_t>(label)] += w; });
    for (index_t label = 0; label < twin.n_labels; ++label) {
      const T expected = twin.weight(r, label);
      CHECK(rows.weight(r, rows.place(label)) == expected);
      CHECK(board[label] == T{2} * expected);
      CHECK(listed[static_cast<std::size_t>(label)] == expected);
      n_weights += closed ? twin.support[twin.at(r, label)] : expected != T{0};
    }
    CHECK(rows.n_weights(r) == n_weights);
  }
}

template <class T>
void add_randomly(HashedRows<T>& rows, DenseTwin<T>& twin, Rng& rng, int n_steps) {
  for (int step = 0; step < n_steps; ++step) {
    const std::size_t r = rng.below(kRows);
    // Row r meets a share of the labels, so that rows of all forms appear.
    const auto reach = static_cast<std::uint32_t>(twin.n_labels >> r);
    const auto label = static_cast<index_t>(rng.below(std::max(reach, 1U)));
    const T amount = static_cast<T>(rng.below(9)) - T{4};
    rows.add(r, rows.place(label), amount);
    twin.add(r, label, amount);
  }
}

template <class T>
void check_rows(index_t n_labels, T level) {
  HashedRows<T> rows(kRows, n_labels, level, Rng(3));
  DenseTwin<T> twin(n_labels, level);
  Rng rng(static_cast<std::uint64_t>(n_labels));
  for (int round = 0; round < 6; ++round) {
    add_randomly(rows, twin, rng, 20 << round);
    check_same(rows, twin, false);
  }
  HashedRows<T> copy = rows;
  check_same(copy, twin, false);
  copy.reset();
  check_same(copy, DenseTwin<T>(n_labels, level), false);
  DenseTwin<T> again(n_labels, level);
  add_randomly(copy, again, rng, 300);
  check_same(copy, again, false);
  rows.close();
  twin.close();
  check_same(rows, twin, true);
  add_randomly(rows, twin, rng, 500);
  check_same(rows, twin, true);
  const HashedRows<T> closed = rows;
  check_same(closed, twin, true);
  rows.reset();
  std::fill(twin.values.begin(), twin.values.end(), T{0});
  check_same(rows, twin, true);
}

}  // namespace

TEST(hashed_rows_hold_what_a_dense_matrix_holds) {
  for (const index_t n_labels : {1, 2, 3, 17, 64, 65, 300, 5000}) {
    for (const double level : {0.0, 2.0}) {
      check_rows<float>(n_labels, static_cast<float>(level));
      check_rows<double>(n_labels, level);
    }
  }
}

TEST(hashed_rows_become_dense_where_that_is_smaller) {
  HashedRows<float> rows(2, 1000, 0.5F, Rng(1));
  for (index_t label = 0; label < 1000; ++label) rows.add(0, rows.place(label), 1.0F);
  for (index_t label = 0; label < 20; ++label) rows.add(1, rows.place(label * 7), 1.0F);
  CHECK(rows.is_dense(0));
  CHECK(!rows.is_dense(1));
  CHECK(rows.n_bytes() < 4096 + 4096 + 200 + 1024);
}

TEST(hashed_rows_add_a_range_of_labels_alone) {
  HashedRows<double> rows(2, 300, 0.0, Rng(3));
  Rng rng(4);
  for (index_t label = 0; label < 300; ++label) rows.add(0, rows.place(label), rng.uniform());
  for (index_t label = 0; label < 300; label += 40) rows.add(1, rows.place(label), rng.uniform());
  CHECK(rows.is_dense(0) && !rows.is_dense(1));
  for (std::size_t r = 0; r < 2; ++r) {
    ScoreBoard<double> board(300);
    rows.add_to(r, 2.0, 75, 130, board);
    for (index_t label = 0; label < 300; ++label) {
      const bool is_inside = 75 <= label && label < 130;
      CHECK(board[label] == (is_inside ? 2.0 * rows.weight(r, rows.place(label)) : 0.0));
    }
    board.clear();
    for (index_t label = 0; label < 300; ++label) CHECK(board[label] == 0.0);
  }
}
