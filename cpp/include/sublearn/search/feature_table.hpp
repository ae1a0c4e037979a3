// Tables of one template whose factors have features: the score of a state is z'V(state), with one
// table V_d for each feature d of the factor.
//
// Every factor has scores of its own, so that no order can be kept between visits: a search adds up
// the tables of the features that the factor has, and reads all states, or those of one part of the
// first node's labels (Yen et al., NIPS 2016, (21)). Used by: solvers/structured/.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "sublearn/core/types.hpp"
#include "sublearn/core/views.hpp"

namespace sublearn {

class FeatureTable {
 public:
  using Row = SparseVector<double, index_t>;

  FeatureTable(index_t n_features, std::size_t n_cells)
      : n_cells_(n_cells), values_(static_cast<std::size_t>(n_features) * n_cells, 0.0) {}

  /// One table after another, a table for each feature.
  std::span<const double> values() const { return values_; }
  std::size_t n_cells() const { return n_cells_; }

  double at(const Row& z, std::size_t cell) const {
    double sum = 0.0;
    for (std::size_t k = 0; k < z.size(); ++k) sum += z.values[k] * values_[place(z, k, cell)];
    return sum;
  }

  void add(const Row& z, std::size_t cell, double amount) {
    for (std::size_t k = 0; k < z.size(); ++k) values_[place(z, k, cell)] += z.values[k] * amount;
  }

  /// out <- the scores of the states begin .. end - 1; adds what it read to `work`.
  void gather(const Row& z, std::size_t begin, std::size_t end, std::vector<double>& out,
              offset_t& work) const {
    out.assign(end - begin, 0.0);
    for (std::size_t k = 0; k < z.size(); ++k) {
      const double* table = values_.data() + place(z, k, begin);
      const double value = z.values[k];
      for (std::size_t cell = 0; cell < out.size(); ++cell) out[cell] += value * table[cell];
    }
    work += static_cast<offset_t>(z.size() * out.size());
  }

 private:
  std::size_t place(const Row& z, std::size_t k, std::size_t cell) const {
    return static_cast<std::size_t>(z.ids[k]) * n_cells_ + cell;
  }

  std::size_t n_cells_;
  std::vector<double> values_;
};

}  // namespace sublearn
