// The structure of compressed sparse storage (CSR, CSC, the rows of each label), verified.
//
// SciPy does not look again after a matrix was built, and files and users are free to lie, so
// whatever becomes a view (core/views.hpp) passes here once; kernels trust. The loops have no early
// end, so that they vectorise; where the fault lies is looked up only once there is one.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "sublearn/core/types.hpp"

namespace sublearn {

/// Whether every id is in [0, limit). No limit is too large or too small.
template <class I>
bool all_below(std::span<const I> ids, offset_t limit) {
  using Unsigned = std::make_unsigned_t<I>;
  constexpr offset_t kLargest = std::numeric_limits<I>::max();
  if (limit <= 0) return ids.empty();
  // A negative id is above every id once its sign is read as a digit.
  const auto last = static_cast<Unsigned>(std::min(limit - 1, kLargest));
  int outside = 0;
  for (const I id : ids) outside |= static_cast<Unsigned>(id) > last;
  return outside == 0;
}

/// Whether offsets never decrease.
template <class P>
bool is_monotone(std::span<const P> offsets) {
  int decreases = 0;
  for (std::size_t m = 1; m < offsets.size(); ++m) decreases |= offsets[m] < offsets[m - 1];
  return decreases == 0;
}

/// Whether two index arrays are compressed storage of `n_major` rows (or columns) with ids in
/// [0, n_minor): one offset more than rows, from 0, never decreasing, and none behind the end of
/// `indices`. Entries that no row uses are not looked at.
template <class P, class I>
bool is_compressed(std::span<const P> indptr, std::span<const I> indices, offset_t n_major,
                   offset_t n_minor) {
  if (n_major < 0 || indptr.empty() || indptr.size() - 1 != static_cast<std::size_t>(n_major)) {
    return false;
  }
  if (indptr.front() != 0 || !is_monotone(indptr)) return false;
  const auto n_used = static_cast<std::size_t>(indptr.back());
  return n_used <= indices.size() && all_below(indices.first(n_used), n_minor);
}

/// Whether the ids of each row of compressed storage are strictly increasing.
template <class P, class I>
bool has_increasing_ids(std::span<const P> indptr, std::span<const I> indices) {
  int decreases = 0;
  for (std::size_t m = 1; m < indptr.size(); ++m) {
    const auto end = static_cast<std::size_t>(indptr[m]);
    for (auto p = static_cast<std::size_t>(indptr[m - 1]) + 1; p < end; ++p) {
      decreases |= indices[p] <= indices[p - 1];
    }
  }
  return decreases == 0;
}

namespace detail {

[[noreturn]] inline void refuse_structure(const std::string& what, const std::string& must,
                                          const std::string& got) {
  throw std::invalid_argument(what + " must " + must + ", got " + got);
}

}  // namespace detail

/// Throws std::invalid_argument "<name> must ..., got ..." for what is_compressed refuses.
template <class P, class I>
void check_compressed(std::span<const P> indptr, std::span<const I> indices, offset_t n_major,
                      offset_t n_minor, const std::string& indptr_name,
                      const std::string& indices_name) {
  using detail::refuse_structure;
  using std::to_string;
  if (is_compressed(indptr, indices, n_major, n_minor)) return;
  if (n_major < 0 || indptr.empty() || indptr.size() - 1 != static_cast<std::size_t>(n_major)) {
    refuse_structure(indptr_name, "have one entry more than " + to_string(n_major),
                     to_string(indptr.size()));
  }
  if (indptr.front() != 0) refuse_structure(indptr_name, "start at 0", to_string(indptr.front()));
  const auto drop = std::adjacent_find(indptr.begin(), indptr.end(), std::greater<P>());
  if (drop != indptr.end()) {
    refuse_structure(indptr_name, "not decrease",
                     to_string(*(drop + 1)) + " after " + to_string(*drop));
  }
  const auto n_used = static_cast<std::size_t>(indptr.back());
  if (n_used > indices.size()) {
    refuse_structure(indices_name,
                     "have " + to_string(n_used) + " entries as " + indptr_name + " says",
                     to_string(indices.size()));
  }
  const auto used = indices.first(n_used);
  const auto outside = std::find_if(used.begin(), used.end(), [&](const I id) {
    return id < 0 || static_cast<offset_t>(id) >= n_minor;
  });
  refuse_structure(indices_name, "be from 0 to " + to_string(n_minor - 1), to_string(*outside));
}

}  // namespace sublearn
