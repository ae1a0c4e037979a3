// Index types used by every header of the core.
#pragma once

#include <cstdint>

namespace sublearn {

using index_t = std::int32_t;   ///< ids of rows, features, labels: 32 bits, so lists stay small
using offset_t = std::int64_t;  ///< positions inside a sparse matrix: may pass 2^31

}  // namespace sublearn
