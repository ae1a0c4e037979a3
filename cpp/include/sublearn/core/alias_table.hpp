// Draws from a fixed distribution in constant time (Walker's alias method).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sublearn/core/rng.hpp"
#include "sublearn/core/types.hpp"

namespace sublearn {

class AliasTable {
 public:
  /// `probabilities` sum to 1, as far as float32 can tell.
  explicit AliasTable(std::span<const float> probabilities)
      : share_(probabilities.size(), 1.0F), other_(probabilities.size(), 0) {
    const std::size_t n = probabilities.size();
    std::vector<double> mass(n);
    std::vector<index_t> poor, rich;
    for (std::size_t i = 0; i < n; ++i) {
      mass[i] = static_cast<double>(probabilities[i]) * static_cast<double>(n);
      (mass[i] < 1.0 ? poor : rich).push_back(static_cast<index_t>(i));
    }
    while (!poor.empty() && !rich.empty()) {  // a rich one fills the cell of a poor one
      const index_t small = poor.back(), large = rich.back();
      poor.pop_back();
      share_[small] = static_cast<float>(mass[small]);
      other_[small] = large;
      mass[large] -= 1.0 - mass[small];
      if (mass[large] < 1.0) {
        rich.pop_back();
        poor.push_back(large);
      }
    }
  }

  index_t draw(Rng& rng) const {
    const std::uint32_t cell = rng.below(static_cast<std::uint32_t>(share_.size()));
    return rng.uniform() < share_[cell] ? static_cast<index_t>(cell) : other_[cell];
  }

 private:
  std::vector<float> share_;
  std::vector<index_t> other_;
};

}  // namespace sublearn
