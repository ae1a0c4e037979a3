// The training rows of PD-Sparse, and what is known of them before the first pass.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "sublearn/core/labelled_rows.hpp"
#include "sublearn/core/types.hpp"

namespace sublearn {

template <class T, class I>
class PDData {
 public:
  PDData(const LabelledRows<T, I>& rows, std::span<const double> caps, index_t n_labels)
      : rows_(rows), caps_(caps), n_labels_(n_labels) {
    squares_.resize(static_cast<std::size_t>(rows.X.n_rows()));
    column_counts_.assign(static_cast<std::size_t>(rows.X.n_cols()), 0);
    for (offset_t i = 0; i < rows.X.n_rows(); ++i) measure(i);
  }

  offset_t n_rows() const { return rows_.X.n_rows(); }
  index_t n_labels() const { return n_labels_; }
  const CsrView<T, I>& X() const { return rows_.X; }
  const LabelledRows<T, I>& rows() const { return rows_; }
  SparseVector<T, I> row(offset_t i) const { return rows_.X.row(i); }
  const RowLabels& labels() const { return rows_.labels; }
  std::span<const double> caps() const { return caps_; }

  double cap(offset_t i) const { return caps_[at(i)]; }        ///< C_i
  double square(offset_t i) const { return squares_[at(i)]; }  ///< Q_i
  const std::vector<std::int64_t>& column_counts() const { return column_counts_; }
  const std::vector<index_t>& live() const { return live_; }  ///< samples that a pass visits
  double constant_loss() const { return constant_loss_; }     ///< of the rows without features
  double loss_at_zero() const { return loss_at_zero_; }       ///< P where all weights are zero

  /// Whether a sample has a loss at all: some labels and not all of them, and a weight.
  bool has_loss(offset_t i) const {
    const std::size_t n_positive = labels().of(i).size();
    return n_positive > 0 && n_positive < static_cast<std::size_t>(n_labels_) && cap(i) > 0.0;
  }

 private:
  void measure(offset_t i) {
    const auto row = rows_.X.row(i);
    double square = 0.0;
    for (const T x : row.values) square += static_cast<double>(x) * static_cast<double>(x);
    squares_[at(i)] = square;
    for (const I j : row.ids) ++column_counts_[at(j)];
    if (!has_loss(i)) return;
    loss_at_zero_ += cap(i);
    // All scores of a row without features are zero: its loss is one, whatever the weights, and
    // its total is C_i at any dual optimum.
    if (square < std::numeric_limits<T>::min()) {
      constant_loss_ += cap(i);
    } else {
      live_.push_back(static_cast<index_t>(i));
    }
  }

  const LabelledRows<T, I>& rows_;
  std::span<const double> caps_;
  index_t n_labels_;
  std::vector<double> squares_;
  std::vector<std::int64_t> column_counts_;
  std::vector<index_t> live_;
  double constant_loss_ = 0.0;
  double loss_at_zero_ = 0.0;
};

}  // namespace sublearn
