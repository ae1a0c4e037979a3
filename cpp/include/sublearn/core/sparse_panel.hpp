// A sparse matrix times a panel of eight columns: an entry that is read serves all eight, and the
// arithmetic of a row is one vector instruction where registers have 64 bytes.
#pragma once

#include <span>

#include "sublearn/core/lanes.hpp"
#include "sublearn/core/types.hpp"

namespace sublearn {

/// out[k] = sum of values[e] * panel[columns[e]] over the entries starts[k] <= e < starts[k + 1].
void multiply_panel(std::span<const offset_t> starts, const index_t* columns, const double* values,
                    const Pack<double>* panel, Pack<double>* out);

}  // namespace sublearn
