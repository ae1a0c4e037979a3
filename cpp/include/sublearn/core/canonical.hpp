// Canonical rows: column ids of each row in range and strictly increasing, all values finite. What
// sublearn.validation gives to every kernel; here the quick test for rows that are so already, and
// the quick way from dense rows to such ones.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "sublearn/core/compressed.hpp"
#include "sublearn/core/types.hpp"

namespace sublearn {

template <class T>
inline bool all_finite(std::span<const T> values) {
  int any = 0;
  for (const T value : values)
    any |= !(value - value == T(0));  // vectorises, unlike a loop that ends
  return any == 0;
}

/// Whether three arrays are a canonical CSR matrix of this shape that wastes no entry.
template <class T, class I>
bool is_canonical_csr(std::span<const I> indptr, std::span<const I> indices,
                      std::span<const T> values, offset_t n_rows, offset_t n_cols) {
  return indices.size() == values.size() && is_compressed(indptr, indices, n_rows, n_cols) &&
         static_cast<std::size_t>(indptr.back()) == indices.size() &&
         has_increasing_ids(indptr, indices) && all_finite(values);
}

/// The non-zero entries of dense rows.
template <class T>
struct RowEntries {
  std::vector<index_t> indptr{0};
  std::vector<index_t> indices;
  std::vector<T> values;
};

namespace detail {

/// Whether one of 64 numbers is not zero; a reduction that vectorises. NaN is not zero.
template <class T>
inline bool any_nonzero(const T* values) {
  int any = 0;
  for (std::size_t i = 0; i < 64; ++i) any |= values[i] != T(0);
  return any != 0;
}

}  // namespace detail

/// Appends the non-zero entries of one dense row. Zeros are the rule: 64 are passed over at once.
template <class T>
void append_row(std::span<const T> row, RowEntries<T>& out) {
  constexpr std::size_t kBlock = 64;
  const auto append = [&](std::size_t begin, std::size_t end) {
    for (std::size_t j = begin; j < end; ++j) {
      if (row[j] == T(0)) continue;
      out.indices.push_back(static_cast<index_t>(j));
      out.values.push_back(row[j]);
    }
  };
  std::size_t j = 0;
  for (; j + kBlock <= row.size(); j += kBlock) {
    if (detail::any_nonzero(row.data() + j)) append(j, j + kBlock);
  }
  append(j, row.size());
  out.indptr.push_back(static_cast<index_t>(out.indices.size()));
}

}  // namespace sublearn
