// Dense loops that gain from wide registers. Compiled once per instruction set in cpp/src/dense.cpp
// and chosen when the module is loaded, so one portable binary is fast on every machine.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "sublearn/core/types.hpp"

namespace sublearn {

/// Appends to `out` every i with scores[i] > threshold, in increasing order. NaN never passes.
void append_above(std::span<const float> scores, float threshold, std::vector<index_t>& out);
void append_above(std::span<const double> scores, double threshold, std::vector<index_t>& out);

}  // namespace sublearn
