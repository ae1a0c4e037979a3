// Where the rows of a sparse matrix begin, in either width that SciPy uses.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sublearn/core/types.hpp"

namespace sublearn {

/// A pointer to offsets of 32 or 64 bits that somebody else owns. Loops over rows ask it twice per
/// row, which costs nothing beside the row, so that no solver is compiled for each width.
class OffsetPointer {
 public:
  OffsetPointer() = default;
  OffsetPointer(const std::int32_t* narrow) : narrow_(narrow) {}  // NOLINT: stands for an array
  OffsetPointer(const std::int64_t* wide) : wide_(wide) {}        // NOLINT

  offset_t operator[](std::size_t i) const { return wide_ != nullptr ? wide_[i] : narrow_[i]; }

  /// Where entry `i` lies, to have it fetched.
  const void* address(std::size_t i) const {
    return wide_ != nullptr ? static_cast<const void*>(wide_ + i) : narrow_ + i;
  }

 private:
  const std::int32_t* narrow_ = nullptr;
  const std::int64_t* wide_ = nullptr;
};

}  // namespace sublearn
