// A seeded random generator that splits: stream (seed, k) is the same whoever draws it and when, so
// a block that owns stream k gives the same result on any number of threads.
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <utility>

namespace sublearn {

/// xoshiro256** seeded by splitmix64. Satisfies UniformRandomBitGenerator.
class Rng {
 public:
  using result_type = std::uint64_t;

  explicit Rng(std::uint64_t seed) : seed_(seed) {
    std::uint64_t state = seed;
    for (auto& word : state_) word = splitmix64(state);
  }

  /// An independent generator for block `stream`; does not advance this one.
  Rng split(std::uint64_t stream) const {
    std::uint64_t state = seed_;
    std::uint64_t child = splitmix64(state) ^ (stream * 0xd1342543de82ef95ULL);
    return Rng(splitmix64(child));
  }

  static constexpr result_type min() { return 0; }
  static constexpr result_type max() { return ~result_type{0}; }

  result_type operator()() {
    const std::uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
    const std::uint64_t t = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= t;
    state_[3] = std::rotl(state_[3], 45);
    return result;
  }

  /// Uniform on [0, 1), 53 random bits.
  double uniform() { return static_cast<double>((*this)() >> 11) * 0x1.0p-53; }

  /// Uniform on {0, ..., n-1} for 0 < n < 2^32: multiply-shift, bias below n / 2^32.
  std::uint32_t below(std::uint32_t n) {
    return static_cast<std::uint32_t>((((*this)() >> 32) * n) >> 32);
  }

  template <class T>
  void shuffle(std::span<T> items) {
    for (std::size_t i = items.size(); i > 1; --i) {
      std::swap(items[i - 1], items[below(static_cast<std::uint32_t>(i))]);
    }
  }

 private:
  static std::uint64_t splitmix64(std::uint64_t& state) {
    std::uint64_t z = (state += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }

  std::uint64_t seed_;
  std::uint64_t state_[4];
};

}  // namespace sublearn
