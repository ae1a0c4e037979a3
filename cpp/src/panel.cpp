#include "sublearn/search/panel.hpp"

#include "sublearn/core/multiversion.hpp"

namespace sublearn {
namespace {

using Line = Pack<double>;

// Half a line. Sums are kept in these because g++ holds a 64-byte vector in memory, not in
// registers, on machines without 64-byte ones: 1.2 GFlop/s against 14.
typedef double Half __attribute__((vector_size(32), may_alias));

// Four lines at a time are eight sums in flight where registers have 32 bytes: additions take four
// cycles and two begin in each, so fewer would wait for each other. All of a[] passes over one
// group of columns before the next group, so that the sums stay in registers.
template <int n_lines, class RowOf>
SUBLEARN_INLINE void combine_group(std::size_t n, const double* a, RowOf row_of, Line* out) {
  constexpr int n_halves = 2 * n_lines;
  Half sums[n_halves] = {};
  for (std::size_t j = 0; j < n; ++j) {
    const auto* row = reinterpret_cast<const Half*>(row_of(j));
#pragma GCC unroll 8
    for (int l = 0; l < n_halves; ++l) sums[l] += a[j] * row[l];
  }
  auto* to = reinterpret_cast<Half*>(out);
#pragma GCC unroll 8
  for (int l = 0; l < n_halves; ++l) to[l] = sums[l];
}

template <class RowOf>
SUBLEARN_INLINE void combine(std::size_t n, const double* a, RowOf row_of, offset_t width,
                             Line* out) {
  offset_t l = 0;
  for (; l + 4 <= width; l += 4) {
    combine_group<4>(n, a, [&](std::size_t j) { return row_of(j) + l; }, out + l);
  }
  if (l + 2 <= width) {
    combine_group<2>(n, a, [&](std::size_t j) { return row_of(j) + l; }, out + l);
    l += 2;
  }
  if (l < width) combine_group<1>(n, a, [&](std::size_t j) { return row_of(j) + l; }, out + l);
}

}  // namespace

SUBLEARN_MULTIVERSION void combine_rows(std::span<const double> a, const Pack<double>* rows,
                                        offset_t width, Pack<double>* out) {
  combine(
      a.size(), a.data(), [&](std::size_t j) { return rows + static_cast<offset_t>(j) * width; },
      width, out);
}

SUBLEARN_MULTIVERSION void combine_rows(std::span<const index_t> ids, const double* values,
                                        const Pack<double>* rows, offset_t width,
                                        Pack<double>* out) {
  combine(ids.size(), values, [&](std::size_t p) { return rows + ids[p] * width; }, width, out);
}

SUBLEARN_MULTIVERSION void add_to_rows(std::span<const double> a, const Pack<double>* step,
                                       offset_t width, Pack<double>* rows) {
  for (std::size_t j = 0; j < a.size(); ++j, rows += width) {
    const auto* from = reinterpret_cast<const Half*>(step);
    auto* to = reinterpret_cast<Half*>(rows);
    for (offset_t l = 0; l < 2 * width; ++l) to[l] += a[j] * from[l];
  }
}

}  // namespace sublearn
