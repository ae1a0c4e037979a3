// The table of a bucket while inputs are added to it.
//
// A bucket has an axis for its variable and one for each variable of its scope, the last fastest.
// An input (a factor, a message) depends on some of them, and stores its cells in its own way: for
// each axis it says how far each label moves the position it is read at.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "sublearn/core/types.hpp"

namespace sublearn {

class BucketTable {
 public:
  /// A table over the axes `variables` with `sizes` labels each; cells are not set.
  void open(std::span<const index_t> variables, std::span<const index_t> sizes) {
    variables_.assign(variables.begin(), variables.end());
    sizes_.assign(sizes.begin(), sizes.end());
    std::size_t n_cells = 1;
    for (const index_t size : sizes_) n_cells *= at(size);
    if (cells_.size() < n_cells) cells_.resize(n_cells);
  }

  double* cells() { return cells_.data(); }

  /// A new input, which no axis moves yet.
  void begin_input() {
    axes_.clear();
    std::size_t labels = 0;
    for (const index_t size : sizes_) {
      axes_.push_back({size, nullptr});
      labels += at(size);
    }
    moves_.clear();
    moves_.reserve(labels);  // pointers into it must stay
  }

  /// Label a of `variable` moves the reading position by stride * choice[a]; by stride * a if the
  /// choice is empty.
  void set_axis(index_t variable, offset_t stride, std::span<const index_t> choice) {
    const auto place = std::find(variables_.begin(), variables_.end(), variable);
    Axis& axis = axes_[at(place - variables_.begin())];
    axis.move = moves_.data() + moves_.size();
    for (index_t a = 0; a < axis.size; ++a) {
      moves_.push_back(stride * (choice.empty() ? a : choice[at(a)]));
    }
  }

  /// cells += input, whose value at a position is cell(position). The last axes are unrolled into a
  /// list of positions, at least 16 cells long where possible, so that an odometer step serves many
  /// cells even if all variables are binary.
  template <class Cell>
  void accumulate(Cell&& cell) {
    std::size_t n_outer = axes_.size();
    inner_.assign(1, 0);
    while (n_outer > 0 && inner_.size() < 16) unroll(axes_[--n_outer]);
    const std::size_t n_inner = inner_.size();
    odometer_.assign(n_outer, 0);
    double* out = cells_.data();
    offset_t base = 0;
    for (std::size_t d = 0; d < n_outer; ++d) {
      if (axes_[d].move != nullptr) base += axes_[d].move[0];
    }
    for (;;) {
      for (std::size_t c = 0; c < n_inner; ++c) out[c] += cell(base + inner_[c]);
      out += n_inner;
      std::size_t d = n_outer;
      for (; d-- > 0;) {
        const Axis& axis = axes_[d];
        const index_t a = odometer_[d]++;
        if (odometer_[d] < axis.size) {
          if (axis.move != nullptr) base += axis.move[a + 1] - axis.move[a];
          break;
        }
        odometer_[d] = 0;
        if (axis.move != nullptr) base += axis.move[0] - axis.move[a];
      }
      if (d == static_cast<std::size_t>(-1)) return;
    }
  }

 private:
  /// One axis as an input sees it: where each label moves the reading position.
  struct Axis {
    index_t size;
    const offset_t* move;  ///< null: the input does not depend on it
  };

  /// inner_ becomes the positions over (axis, old inner axes); move[0] of each is counted in.
  void unroll(const Axis& axis) {
    const std::size_t n = inner_.size();
    inner_.resize(n * at(axis.size));
    for (index_t a = axis.size; a-- > 0;) {
      const offset_t move = axis.move == nullptr ? 0 : axis.move[a];
      for (std::size_t c = 0; c < n; ++c) inner_[at(a) * n + c] = inner_[c] + move;
    }
  }

  std::vector<index_t> variables_, sizes_;
  std::vector<double> cells_;
  std::vector<Axis> axes_;
  std::vector<index_t> odometer_;
  std::vector<offset_t> moves_, inner_;
};

}  // namespace sublearn
