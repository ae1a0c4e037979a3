// The check that every sparse matrix passes: what it accepts can be walked through without a step
// outside, and what it refuses says why.
#include <string>

#include "input.hpp"
#include "sublearn/core/canonical.hpp"
#include "sublearn/core/compressed.hpp"
#include "sublearn/core/views.hpp"

namespace {

using namespace sublearn;

template <class P, class I>
void attack(fuzz::Input input) {
  const auto n_major = static_cast<offset_t>(input.take<std::int8_t>());
  const auto n_minor = static_cast<offset_t>(input.take<std::int16_t>());
  const auto n_offsets = static_cast<std::size_t>(input.take<std::uint8_t>());
  const auto indptr = input.take_many<P>(n_offsets);
  const auto indices = input.take_many<I>(4096);
  const std::span<const P> begin(indptr);
  const std::span<const I> ids(indices);
  const bool is_sound = is_compressed(begin, ids, n_major, n_minor);
  bool is_refused = false;
  try {
    check_compressed(begin, ids, n_major, n_minor, "indptr", "indices");
  } catch (const std::invalid_argument& error) {
    is_refused = true;
    fuzz::require(std::string(error.what()).find(" must ") != std::string::npos);
  }
  fuzz::require(is_sound == !is_refused);
  if (!is_sound) return;
  std::vector<double> hits(static_cast<std::size_t>(std::max<offset_t>(n_minor, 0)));
  for (offset_t m = 0; m < n_major; ++m)
    for (auto p = static_cast<std::size_t>(indptr[m]); p < static_cast<std::size_t>(indptr[m + 1]);
         ++p)
      hits[static_cast<std::size_t>(indices[p])] += 1.0;
  if constexpr (std::is_same_v<P, I>) {
    const std::vector<float> values(indices.size(), 1.0F);
    const bool is_canonical = is_canonical_csr<float, I>(begin, ids, values, n_major, n_minor);
    fuzz::require(!is_canonical || has_increasing_ids(begin, ids));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  switch (input.take<std::uint8_t>() % 3) {
    case 0:
      attack<std::int32_t, std::int32_t>(input);
      break;
    case 1:
      attack<std::int64_t, std::int64_t>(input);
      break;
    default:
      attack<std::int64_t, std::int32_t>(input);
  }
  return 0;
}
