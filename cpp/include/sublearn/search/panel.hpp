// Short vectors stored row by row, and the three loops that the mixing method spends its time on.
// Compiled once per instruction set in cpp/src/panel.cpp.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "sublearn/core/lanes.hpp"
#include "sublearn/core/types.hpp"

namespace sublearn {

/// n_rows vectors of 8 * width doubles each, every one on cache lines of its own.
class Panel {
 public:
  using Line = Pack<double>;

  Panel() = default;
  Panel(offset_t n_rows, offset_t width)
      : width(width), lines_(static_cast<std::size_t>(n_rows * width), Line::all(0.0)) {}

  offset_t n_rows() const { return width == 0 ? 0 : static_cast<offset_t>(lines_.size()) / width; }
  Line* row(offset_t i) { return lines_.data() + i * width; }
  const Line* row(offset_t i) const { return lines_.data() + i * width; }
  const Line* data() const { return lines_.data(); }
  Line* data() { return lines_.data(); }

  offset_t width = 0;  ///< lines of a row

 private:
  std::vector<Line> lines_;
};

/// out = sum of a[j] * rows[j], `width` lines each.
void combine_rows(std::span<const double> a, const Pack<double>* rows, offset_t width,
                  Pack<double>* out);

/// out = sum of values[p] * rows[ids[p]].
void combine_rows(std::span<const index_t> ids, const double* values, const Pack<double>* rows,
                  offset_t width, Pack<double>* out);

/// rows[j] += a[j] * step for all j.
void add_to_rows(std::span<const double> a, const Pack<double>* step, offset_t width,
                 Pack<double>* rows);

}  // namespace sublearn
