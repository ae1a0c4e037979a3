// A table over two, three or more ends whose cells change, searched line by line.
//
// A line has the labels of all ends but the last fixed. It keeps an upper bound of its cells, which
// rises with them and is made exact whenever the line is read, so that a search reads the lines
// that can win and asks the others one question: about K^(n - 1) steps for n ends of K labels.
//
// heap_table.hpp does better for pairs. Used by: solvers/structured/, for factors of more than two
// nodes.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "sublearn/core/types.hpp"

namespace sublearn {

class LineTable {
 public:
  static constexpr std::size_t kMostEnds = 4;
  using Labels = std::array<index_t, kMostEnds>;

  /// A state and its score less what its labels cost.
  struct Best {
    double value;
    Labels labels;
  };

  LineTable(index_t n_labels, std::size_t n_ends)
      : n_labels_(static_cast<std::size_t>(n_labels)), n_ends_(n_ends) {
    std::size_t n_lines = 1;
    for (std::size_t end = 1; end < n_ends; ++end) n_lines *= n_labels_;
    tops_.assign(n_lines, 0.0);
    values_.assign(n_lines * n_labels_, 0.0);
  }

  std::span<const double> values() const { return values_; }

  /// At least the best value of all.
  double most() const { return *std::max_element(tops_.begin(), tops_.end()); }

  std::size_t cell(const index_t* labels) const {
    std::size_t at = 0;
    for (std::size_t end = 0; end < n_ends_; ++end) {
      at = at * n_labels_ + static_cast<std::size_t>(labels[end]);
    }
    return at;
  }
  double at(const index_t* labels) const { return values_[cell(labels)]; }

  void add(const index_t* labels, double amount) {
    const std::size_t at = cell(labels);
    values_[at] += amount;
    double& top = tops_[at / n_labels_];
    top = std::max(top, values_[at]);
  }

  /// max over all states of scale times the cell - sum of `costs` (of each end, n_labels each), if
  /// it exceeds `known`; `scale` is not negative. Adds what it looked at to `work`.
  Best search(double scale, std::span<const std::vector<double>> costs, Best known,
              offset_t& work) {
    Best best = known;
    const auto& last = costs[n_ends_ - 1];
    const double least = *std::min_element(last.begin(), last.end());
    Labels labels{};
    for (std::size_t line = 0; line < tops_.size(); ++line, advance(labels)) {
      double cost = 0.0;
      for (std::size_t end = 0; end + 1 < n_ends_; ++end) {
        cost += costs[end][static_cast<std::size_t>(labels[end])];
      }
      if (scale * tops_[line] - cost - least > best.value) {
        read(line, scale, cost, last, labels, best);
        work += static_cast<offset_t>(n_labels_);
      }
    }
    work += static_cast<offset_t>(tops_.size());
    return best;
  }

 private:
  /// The next line: the labels of all ends but the last, counted up.
  void advance(Labels& labels) const {
    for (std::size_t end = n_ends_ - 1; end-- > 0;) {
      if (static_cast<std::size_t>(++labels[end]) < n_labels_) return;
      labels[end] = 0;
    }
  }

  void read(std::size_t line, double scale, double cost, std::span<const double> last,
            const Labels& labels, Best& best) {
    const double* cells = values_.data() + line * n_labels_;
    tops_[line] = *std::max_element(cells, cells + n_labels_);
    for (std::size_t label = 0; label < n_labels_; ++label) {
      const double value = scale * cells[label] - cost - last[label];
      if (value <= best.value) continue;
      best = {value, labels};
      best.labels[n_ends_ - 1] = static_cast<index_t>(label);
    }
  }

  std::size_t n_labels_, n_ends_;
  std::vector<double> values_;
  std::vector<double> tops_;  ///< of each line at least its largest cell
};

}  // namespace sublearn
