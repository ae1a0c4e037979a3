// The structure of compressed storage: what passes, what is refused and in which words.
#include "sublearn/core/compressed.hpp"

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "check.hpp"

using namespace sublearn;

namespace {

/// What is wrong with two arrays as a matrix of shape (2, 3); empty if nothing is.
template <class P = std::int32_t, class I = std::int32_t>
std::string fault(std::vector<P> indptr, std::vector<I> indices, offset_t n_major = 2,
                  offset_t n_minor = 3) {
  const std::span<const P> offsets(indptr);
  const std::span<const I> ids(indices);
  const bool passes = is_compressed(offsets, ids, n_major, n_minor);
  try {
    check_compressed(offsets, ids, n_major, n_minor, "X.indptr", "X.indices");
  } catch (const std::invalid_argument& error) {
    CHECK(!passes);
    return error.what();
  }
  CHECK(passes);
  return "";
}

}  // namespace

TEST(compressed_storage_passes_sorted_or_not_and_with_entries_to_spare) {
  CHECK(fault({0, 2, 3}, {0, 2, 1}).empty());
  CHECK(fault({0, 2, 3}, {2, 0, 1, -7}).empty());
  CHECK(fault({0, 0, 0}, {}).empty());
  CHECK(fault({0}, {}, 0, 0).empty());
  CHECK(fault({0, 0}, {}, 1, 0).empty());
  CHECK((fault<std::int64_t, std::int32_t>({0, 2, 3}, {0, 2, 1}).empty()));
  CHECK((fault<std::int32_t, std::int64_t>({0, 2, 3}, {0, 2, 1}).empty()));
}

TEST(offsets_that_leave_the_entries_are_refused) {
  CHECK(fault({0, 2}, {0, 2, 1}) == "X.indptr must have one entry more than 2, got 2");
  CHECK(fault({}, {}) == "X.indptr must have one entry more than 2, got 0");
  CHECK(fault({}, {}, -1) == "X.indptr must have one entry more than -1, got 0");
  CHECK(fault({1, 2, 3}, {0, 2, 1}) == "X.indptr must start at 0, got 1");
  CHECK(fault({-1, 2, 3}, {0, 2, 1}) == "X.indptr must start at 0, got -1");
  CHECK(fault({0, 2'000'000'000, 0}, {0, 2, 1}) ==
        "X.indptr must not decrease, got 0 after 2000000000");
  CHECK(fault({0, -1, 3}, {0, 2, 1}) == "X.indptr must not decrease, got -1 after 0");
  CHECK(fault({0, 2, 4}, {0, 2, 1}) == "X.indices must have 4 entries as X.indptr says, got 3");
}

TEST(indices_outside_the_matrix_are_refused) {
  CHECK(fault({0, 2, 3}, {0, 3, 1}) == "X.indices must be from 0 to 2, got 3");
  CHECK(fault({0, 2, 3}, {0, 2, -1}) == "X.indices must be from 0 to 2, got -1");
  CHECK(fault({0, 1, 1}, {0}, 2, 0) == "X.indices must be from 0 to -1, got 0");
}

TEST(limits_beyond_the_index_type_hold_every_index_that_is_not_negative) {
  constexpr auto kMax = std::numeric_limits<std::int32_t>::max();
  constexpr offset_t kHuge = std::numeric_limits<offset_t>::max();
  CHECK(fault({0, 1, 2}, {0, kMax}, 2, kHuge).empty());
  CHECK(!fault({0, 1, 2}, {0, kMax}, 2, kMax).empty());
  CHECK(fault({0, 1, 2}, {0, kMax}, 2, offset_t{kMax} + 1).empty());
  CHECK(!fault({0, 1, 2}, {0, std::numeric_limits<std::int32_t>::min()}, 2, kHuge).empty());
  CHECK((!fault<std::int64_t, std::int64_t>({0, 1, 2}, {0, offset_t{1} << 32}).empty()));
}

TEST(ids_increase_within_each_row_alone) {
  const auto increases = [](std::vector<std::int32_t> indptr, std::vector<std::int32_t> indices) {
    return has_increasing_ids<std::int32_t, std::int32_t>(indptr, indices);
  };
  CHECK(increases({0, 2, 3}, {0, 2, 1}));
  CHECK(increases({0, 0, 0}, {}));
  CHECK(!increases({0, 2, 3}, {2, 0, 1}));
  CHECK(!increases({0, 1, 3}, {0, 1, 1}));
}
