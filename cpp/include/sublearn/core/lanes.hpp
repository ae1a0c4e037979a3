// Several labels side by side: one cache line holds the same quantity of kLanes labels.
//
// Solvers whose labels share the data matrix work on a block of labels at once: each entry of the
// matrix that is read serves all of them, and the arithmetic of a block is one vector instruction
// on machines with 64-byte registers (two with 32-byte ones). Lanes never mix, so a lane computes
// what it would compute alone, and the same on every instruction set.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace sublearn {

template <class T>
inline constexpr int kLanes = 64 / static_cast<int>(sizeof(T));

using LaneMask = std::uint32_t;  ///< bit l speaks of lane l

/// One number per lane. `v` takes part in arithmetic as a whole; single lanes are read and set.
template <class T>
struct alignas(64) Pack {
  using Integer = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;
  typedef T Vector __attribute__((vector_size(64)));
  typedef Integer Bits __attribute__((vector_size(64)));

  Vector v;

  T operator[](int lane) const { return v[lane]; }
  void set(int lane, T value) { v[lane] = value; }

  static Pack all(T value) {
    Pack pack;
    pack.v = Vector{} + value;
    return pack;
  }
};

/// A double for each lane: sums are kept in these, whatever T is.
template <class T>
using LaneSums = std::array<double, static_cast<std::size_t>(kLanes<T>)>;

constexpr LaneMask lane_bit(int lane) { return LaneMask{1} << lane; }

/// Calls f(lane) for each set bit, lowest first.
template <class F>
inline void for_each_lane(LaneMask mask, F&& f) {
  for (; mask != 0; mask &= mask - 1) f(std::countr_zero(mask));
}

}  // namespace sublearn
