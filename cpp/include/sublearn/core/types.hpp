// Index types used by every header of the core.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sublearn {

using index_t = std::int32_t;   ///< ids of rows, features, labels: 32 bits, so lists stay small
using offset_t = std::int64_t;  ///< positions inside a sparse matrix: may pass 2^31

/// The position in an array that an id or offset names.
constexpr std::size_t at(offset_t i) { return static_cast<std::size_t>(i); }

}  // namespace sublearn
