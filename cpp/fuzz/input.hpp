// What harnesses share: the bytes of a case cut into settings and text.
//
// A harness is one file, `fuzz_<target>.cpp`, with libFuzzer's entry point. It must return for
// every input; what a parser refuses by std::invalid_argument or std::length_error is a good end.
// Clang links it with libFuzzer, other compilers with driver.cpp, which replays files and mutates
// them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <stdexcept>
#include <string_view>
#include <type_traits>
#include <vector>

namespace sublearn::fuzz {

/// Reads from the front; zeros once nothing is left.
class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : left_(data, size) {}

  template <class T>
  T take() {
    static_assert(std::is_trivially_copyable_v<T>);
    T value{};
    const std::size_t n = std::min(sizeof(T), left_.size());
    if (n > 0) std::memcpy(&value, left_.data(), n);
    left_ = left_.subspan(n);
    return value;
  }

  /// `n` numbers, fewer if the input ends.
  template <class T>
  std::vector<T> take_many(std::size_t n) {
    std::vector<T> out;
    while (out.size() < n && !left_.empty()) out.push_back(take<T>());
    return out;
  }

  std::span<const std::uint8_t> rest() const { return left_; }

 private:
  std::span<const std::uint8_t> left_;
};

/// A copy that ends exactly where its memory ends, so that a sanitizer sees a step beyond.
class Exact {
 public:
  explicit Exact(std::span<const std::uint8_t> bytes)
      : size_(bytes.size()), copy_(std::make_unique<char[]>(size_)) {
    if (size_ > 0) std::memcpy(copy_.get(), bytes.data(), size_);
  }
  std::string_view text() const { return {copy_.get(), size_}; }

 private:
  std::size_t size_;
  std::unique_ptr<char[]> copy_;
};

/// What must hold for every input, also in builds without assertions.
inline void require(bool holds) {
  if (!holds) __builtin_trap();
}

/// Calls `parse`; a refusal is a good end.
template <class Parse>
void allow_refusals(Parse&& parse) {
  try {
    parse();
  } catch (const std::invalid_argument&) {
  } catch (const std::length_error&) {
  }
}

}  // namespace sublearn::fuzz
