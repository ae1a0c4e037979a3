// The tables of a factor graph, prepared for max-product messages.
//
//   message to position p:  out(a) = max_{y : y_p = a} scale theta(y) - sum_{q != p} m_q(y_q)
//
// How a table is best read is decided once: two labels a side without loops, one number off the
// diagonal (Potts) and truncated linear differences in O(K), everything else as rows that are
// contiguous in memory. A table of differences is such a matrix, too: its rows lie one cell apart.
//
// Used by: solvers/map/messages.hpp.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <memory>
#include <numeric>
#include <span>
#include <vector>

#include "sublearn/core/factor_graph.hpp"
#include "sublearn/core/max_plus.hpp"
#include "sublearn/core/types.hpp"

namespace sublearn {

/// Memory that messages need on their way; one per thread.
struct MessageScratch {
  std::vector<double> base;
  std::vector<double> best;
  std::vector<index_t> order;
};

class MessageTable {
 public:
  enum class Form : std::uint8_t { binary, cube, diagonal, truncated, rows, inner, sparse };

  explicit MessageTable(const FactorTable& table) : table_(&table), is_pair_(table.arity() == 2) {
    switch (table.kind) {
      case TableKind::dense:
        read_dense();
        break;
      case TableKind::difference:
        read_differences(table.values);
        break;
      case TableKind::sparse:
        read_sparse();
        break;
      case TableKind::low_rank:
        read_low_rank();
        break;
    }
  }

  Form form() const { return form_; }
  const FactorTable& table() const { return *table_; }

  /// Numbers that are read for one message, if the table has no structure beyond its kind.
  static double work(const FactorTable& table) {
    const double n = static_cast<double>(table.n_cells());
    if (table.kind == TableKind::low_rank && table.n_cells() > kInnerCells) {
      return n * static_cast<double>(table.rank + 1);
    }
    if (table.kind == TableKind::sparse && reads_as_sparse(table)) {
      return 16.0 * static_cast<double>(table.cells.size()) + 16.0 * table.shape[0];
    }
    return n;
  }

  /// `messages[q]` is the message m_q of each position; the one of `p` is not read.
  void message(index_t p, double scale, std::span<const double* const> messages, double* out,
               MessageScratch& scratch) const {
    if (form_ == Form::cube) return cube(p, scale, messages, out);
    if (!is_pair_) return many(p, scale, messages, out, scratch);
    const double* minus = messages[at(1 - p)];
    switch (form_) {
      case Form::binary:
        return binary(p, scale, minus, out);
      case Form::diagonal:
        return diagonal(p, scale, minus, out);
      case Form::truncated:
        return truncated(p, scale, minus, out, scratch);
      case Form::rows:
        return p == 0 ? max_plus_rows(matrix(), scale, minus, out)
                      : max_plus_columns(matrix(), scale, minus, out);
      case Form::inner:
        return inner(p, scale, minus, out, scratch);
      case Form::sparse:
        return sparse(p, scale, minus, out, scratch);
      case Form::cube:
        return;
    }
  }

  /// scores(a) += scale theta(a, label of the other position), for tables of two positions.
  void add_given(index_t p, double scale, index_t other, std::span<double> scores) const {
    const auto n = static_cast<index_t>(scores.size());
    if (form_ == Form::rows || form_ == Form::binary) {
      const double* from = cells_ + (p == 1 ? other * stride_ : other);
      const offset_t step = p == 1 ? 1 : stride_;
      for (index_t a = 0; a < n; ++a) scores[at(a)] += scale * from[a * step];
      return;
    }
    for (index_t a = 0; a < n; ++a) {
      const double value = p == 0 ? table_->pair(a, other) : table_->pair(other, a);
      scores[at(a)] += scale * value;
    }
  }

 private:
  static constexpr double kLowest = -std::numeric_limits<double>::infinity();
  static constexpr offset_t kDenseCells = offset_t{1} << 16;  ///< sparse tables up to here: copied
  static constexpr offset_t kInnerCells = offset_t{1} << 22;  ///< low rank: 32 MB
  static constexpr index_t kSpecialLabels = 6;  ///< below, plain rows are as fast as any trick

  static bool reads_as_sparse(const FactorTable& table) {
    return table.arity() == 2 && table.n_cells() > kDenseCells;
  }

  index_t labels(index_t p) const { return table_->shape[at(p)]; }
  RowMatrix matrix() const { return {cells_, stride_, labels(0), labels(1)}; }

  void use_rows(const double* cells, offset_t stride) {
    form_ = Form::rows;
    cells_ = cells;
    stride_ = stride;
  }

  double* own(std::size_t n) {
    auto owned = std::make_shared<std::vector<double>>(n);
    double* cells = owned->data();
    owned_ = std::move(owned);
    return cells;
  }

  // ---- deciding the form

  void read_dense() {
    use_rows(table_->values.data(), table_->shape.back());
    if (table_->shape == std::vector<index_t>{2, 2, 2}) form_ = Form::cube;
    if (!is_pair_) return;
    if (labels(0) == 2 && labels(1) == 2) {
      form_ = Form::binary;
      return;
    }
    if (std::min(labels(0), labels(1)) < kSpecialLabels) return;
    if (is_diagonal()) {
      form_ = Form::diagonal;
      diagonal_step_ = stride_ + 1;
      off_ = cells_[1];
    } else if (depends_on_difference()) {
      const std::size_t n = static_cast<std::size_t>(labels(0) + labels(1)) - 1;
      double* values = own(n);
      for (std::size_t k = 0; k < n; ++k) {
        const offset_t d = static_cast<offset_t>(k) - labels(0) + 1;
        values[k] = d < 0 ? cells_[-d * stride_] : cells_[d];
      }
      read_differences({values, n});
    }
  }

  bool is_diagonal() const {
    const double off = cells_[1];
    for (offset_t a = 0; a < labels(0); ++a) {
      for (offset_t b = 0; b < labels(1); ++b) {
        if (a != b && cells_[a * stride_ + b] != off) return false;
      }
    }
    return true;
  }

  bool depends_on_difference() const {
    for (offset_t a = 1; a < labels(0); ++a) {
      const double* row = cells_ + a * stride_;
      if (!std::equal(row + 1, row + labels(1), row - stride_)) return false;
    }
    return true;
  }

  void read_differences(std::span<const double> values) {
    const std::size_t middle = static_cast<std::size_t>(labels(0)) - 1;
    use_rows(values.data() + middle, -1);
    if (std::min(labels(0), labels(1)) < kSpecialLabels) return;
    bool is_potts = true;
    for (std::size_t k = 0; k < values.size(); ++k) {
      is_potts = is_potts && (k == middle || values[k] == values[0]);
    }
    if (is_potts) {
      form_ = Form::diagonal;
      diagonal_step_ = 0;
      off_ = values[0];
    } else if (is_truncated_linear(values, middle)) {
      form_ = Form::truncated;
    }
  }

  /// Whether value(d) = max(top - slope |d|, floor) up to rounding; keeps the three numbers.
  bool is_truncated_linear(std::span<const double> values, std::size_t middle) {
    top_ = values[middle];
    slope_ = top_ - values[middle + 1];
    off_ = *std::min_element(values.begin(), values.end());
    const double slack = 1e-14 * (std::abs(top_) + std::abs(off_));
    if (slope_ < 0.0) return false;
    for (std::size_t k = 0; k < values.size(); ++k) {
      const double distance = std::abs(static_cast<double>(k) - static_cast<double>(middle));
      const double expected = std::max(top_ - slope_ * distance, off_);
      if (std::abs(values[k] - expected) > slack) return false;
    }
    return true;
  }

  void read_sparse() {
    if (reads_as_sparse(*table_)) {
      form_ = Form::sparse;
      return;
    }
    const auto n = static_cast<std::size_t>(table_->n_cells());
    double* cells = own(n);
    std::fill(cells, cells + n, table_->default_value);
    for (std::size_t k = 0; k < table_->cells.size(); ++k) {
      cells[table_->cells[k]] = table_->values[k];
    }
    use_rows(cells, table_->shape.back());
  }

  /// All inner products if they fit, else the right side transposed, so that a row is made by
  /// `rank` additions of contiguous rows.
  void read_low_rank() {
    const std::size_t n_cols = static_cast<std::size_t>(labels(1));
    const std::size_t rank = static_cast<std::size_t>(table_->rank);
    if (table_->n_cells() <= kInnerCells) {
      double* cells = own(static_cast<std::size_t>(table_->n_cells()));
      for (index_t a = 0; a < labels(0); ++a) {
        for (index_t b = 0; b < labels(1); ++b) *cells++ = table_->pair(a, b);
      }
      use_rows(owned_->data(), labels(1));
      return;
    }
    form_ = Form::inner;
    double* right = own(rank * n_cols);
    for (std::size_t b = 0; b < n_cols; ++b) {
      for (std::size_t r = 0; r < rank; ++r) right[r * n_cols + b] = table_->right[b * rank + r];
    }
  }

  // ---- messages

  void binary(index_t p, double scale, const double* minus, double* out) const {
    const double t00 = scale * cells_[0], t11 = scale * cells_[3];
    const double t01 = scale * cells_[p == 0 ? 1 : 2];  // own label 0, other label 1
    const double t10 = scale * cells_[p == 0 ? 2 : 1];
    out[0] = std::max(t00 - minus[0], t01 - minus[1]);
    out[1] = std::max(t10 - minus[0], t11 - minus[1]);
  }

  /// Three binary variables: eight cells without a loop over positions.
  void cube(index_t p, double scale, std::span<const double* const> messages, double* out) const {
    const double* left = messages[p == 0 ? 1 : 0];
    const double* right = messages[p == 2 ? 1 : 2];
    const int own = 4 >> p, first = p == 0 ? 2 : 4, second = p == 2 ? 2 : 1;
    for (int a = 0; a < 2; ++a) {
      const double* cells = cells_ + a * own;
      const double none = scale * cells[0] - (left[0] + right[0]);
      const double one = scale * cells[second] - (left[0] + right[1]);
      const double other = scale * cells[first] - (left[1] + right[0]);
      const double both = scale * cells[first + second] - (left[1] + right[1]);
      out[a] = std::max(std::max(none, one), std::max(other, both));
    }
  }

  /// Off the diagonal one number: the best other label, or the second best for that label itself.
  void diagonal(index_t p, double scale, const double* minus, double* out) const {
    const index_t n_in = labels(1 - p), n_out = labels(p);
    double first = kLowest, second = kLowest;
    index_t winner = -1;
    for (index_t a = 0; a < n_in; ++a) {
      const double value = -minus[a];
      if (value > first) {
        second = first;
        first = value;
        winner = a;
      } else if (value > second) {
        second = value;
      }
    }
    for (index_t b = 0; b < n_out; ++b) {
      double best = scale * off_ + (b == winner ? second : first);
      if (b < n_in) best = std::max(best, scale * cells_[b * diagonal_step_] - minus[b]);
      out[b] = best;
    }
  }

  /// The distance transform of Felzenszwalb and Huttenlocher: one pass up, one down, then the
  /// floor.
  void truncated(index_t p, double scale, const double* minus, double* out,
                 MessageScratch& scratch) const {
    const index_t n_in = labels(1 - p), n_out = labels(p), n = std::max(n_in, n_out);
    scratch.best.resize(static_cast<std::size_t>(n));
    double* best = scratch.best.data();
    const double step = scale * slope_;
    double carry = kLowest, highest = kLowest;
    for (index_t a = 0; a < n; ++a) {
      carry = a < n_in ? std::max(carry - step, -minus[a]) : carry - step;
      best[a] = carry;
      if (a < n_in) highest = std::max(highest, -minus[a]);
    }
    for (index_t a = n - 1; a-- > 0;) best[a] = std::max(best[a], best[a + 1] - step);
    const double floor = scale * off_ + highest;
    for (index_t b = 0; b < n_out; ++b) out[b] = std::max(scale * top_ + best[b], floor);
  }

  void inner(index_t p, double scale, const double* minus, double* out,
             MessageScratch& scratch) const {
    const index_t n_rows = labels(0), n_cols = labels(1);
    scratch.best.resize(static_cast<std::size_t>(n_cols));
    double* row = scratch.best.data();
    if (p == 1) std::fill(out, out + n_cols, kLowest);
    for (index_t a = 0; a < n_rows; ++a) {
      std::fill(row, row + n_cols, 0.0);
      for (index_t r = 0; r < table_->rank; ++r) {
        const double left = table_->values[at(a) * table_->rank + r];
        const double* right = owned_->data() + static_cast<std::size_t>(r) * n_cols;
        for (index_t b = 0; b < n_cols; ++b) row[b] += left * right[b];
      }
      if (p == 0) {
        max_plus_rows({row, n_cols, 1, n_cols}, scale, minus, out + a);
      } else {
        for (index_t b = 0; b < n_cols; ++b) out[b] = std::max(out[b], scale * row[b] - minus[a]);
      }
    }
  }

  /// Of the cells that are not listed a label's best is the first one in the order of `minus`:
  /// there are as many steps past listed cells as listed cells.
  void sparse(index_t p, double scale, const double* minus, double* out,
              MessageScratch& scratch) const {
    const index_t n_in = labels(1 - p), n_out = labels(p);
    auto& order = scratch.order;
    order.resize(static_cast<std::size_t>(n_in));
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](index_t a, index_t b) {
      return minus[a] != minus[b] ? minus[a] < minus[b] : a < b;
    });
    const auto cell = [&](index_t own, index_t other) {
      return p == 0 ? static_cast<offset_t>(own) * labels(1) + other
                    : static_cast<offset_t>(other) * labels(1) + own;
    };
    for (index_t b = 0; b < n_out; ++b) {
      out[b] = kLowest;
      for (const index_t a : order) {
        if (std::binary_search(table_->cells.begin(), table_->cells.end(), cell(b, a))) continue;
        out[b] = scale * table_->default_value - minus[a];
        break;
      }
    }
    for (std::size_t k = 0; k < table_->cells.size(); ++k) {
      const auto a = static_cast<index_t>(table_->cells[k] / labels(1));
      const auto b = static_cast<index_t>(table_->cells[k] % labels(1));
      double& best = out[p == 0 ? a : b];
      best = std::max(best, scale * table_->values[k] - minus[p == 0 ? b : a]);
    }
  }

  /// More than two positions: the table is a matrix whose rows are the states of all positions
  /// but the last. `base` holds the messages of a row, without that of `p`.
  void many(index_t p, double scale, std::span<const double* const> messages, double* out,
            MessageScratch& scratch) const {
    const index_t last = table_->arity() - 1;
    auto& base = scratch.base;
    base.assign(1, 0.0);
    offset_t below = 1;  // rows that differ in positions after p only
    for (index_t q = 0; q < last; ++q) {
      if (q > p) below *= labels(q);
      append_position(labels(q), q == p ? nullptr : messages[at(q)], scratch);
    }
    const auto n_rows = static_cast<offset_t>(base.size());
    const RowMatrix rows{cells_, stride_, n_rows, labels(last)};
    if (p == last) return max_plus_columns(rows, scale, base.data(), out);
    scratch.best.resize(base.size());
    max_plus_rows(rows, scale, messages[at(last)], scratch.best.data());
    std::fill(out, out + labels(p), kLowest);
    for (offset_t row = 0; row < n_rows; ++row) {
      const auto r = static_cast<std::size_t>(row);
      double& best = out[(row / below) % labels(p)];
      best = std::max(best, scratch.best[r] - base[r]);
    }
  }

  /// base(r, a) = base(r) + message(a)
  static void append_position(index_t n, const double* message, MessageScratch& scratch) {
    auto& base = scratch.base;
    const std::size_t n_rows = base.size(), width = static_cast<std::size_t>(n);
    base.resize(n_rows * width);
    for (std::size_t r = n_rows; r-- > 0;) {
      const double start = base[r];
      for (std::size_t a = width; a-- > 0;) {
        base[r * width + a] = start + (message ? message[a] : 0.0);
      }
    }
  }

  const FactorTable* table_;
  Form form_ = Form::rows;
  bool is_pair_;
  const double* cells_ = nullptr;
  offset_t stride_ = 0;
  offset_t diagonal_step_ = 0;
  double off_ = 0.0;    ///< off the diagonal, or the floor of a truncated line
  double top_ = 0.0;    ///< of a truncated line, at difference 0
  double slope_ = 0.0;  ///< of a truncated line
  std::shared_ptr<std::vector<double>> owned_;
};

}  // namespace sublearn
