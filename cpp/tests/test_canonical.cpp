// Canonical rows: what passes as it stands, and dense rows made so.
#include <limits>
#include <vector>

#include "check.hpp"
#include "sublearn/core/canonical.hpp"

using namespace sublearn;

namespace {

bool passes(std::vector<std::int32_t> indptr, std::vector<std::int32_t> indices,
            std::vector<float> values, offset_t n_rows = 2) {
  return is_canonical_csr<float, std::int32_t>(indptr, indices, values, n_rows, 3);
}

}  // namespace

TEST(canonical_rows_pass_and_others_do_not) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  CHECK(passes({0, 2, 3}, {0, 2, 1}, {1, 0, -1}));
  CHECK(passes({0, 0, 0}, {}, {}));
  CHECK(!passes({0, 2, 3}, {0, 2, 1}, {1, 2}));
  CHECK(!passes({0, 2, 3}, {2, 0, 1}, {1, 2, 3}));
  CHECK(!passes({0, 2, 3}, {0, 0, 1}, {1, 2, 3}));
  CHECK(!passes({0, 2, 3}, {0, 3, 1}, {1, 2, 3}));
  CHECK(!passes({0, 2, 3}, {-1, 2, 1}, {1, 2, 3}));
  CHECK(!passes({1, 2, 3}, {0, 2, 1}, {1, 2, 3}));
  CHECK(!passes({0, 5, 3}, {0, 2, 1}, {1, 2, 3}));
  CHECK(!passes({0, 2, 1}, {0, 2, 1}, {1, 2, 3}));
  CHECK(!passes({0, 2, 2}, {0, 2, 1}, {1, 2, 3}));
  CHECK(!passes({0, 2, 3}, {0, 2, 1}, {1, 2, 3}, 1));
  CHECK(!passes({0, 2, 3}, {0, 2, 1}, {1, kInf, 3}));
  CHECK(!passes({0, 2, 3}, {0, 2, 1}, {1, 2, kNaN}));
  CHECK(passes({0, 2, 3}, {0, 2, 1}, {1, 2, -kLargestValue<float>}));
  CHECK(!passes({0, 2, 3}, {0, 2, 1}, {1, 2, -2 * kLargestValue<float>}));
  CHECK(!passes({}, {}, {}, -1));
}

TEST(dense_rows_keep_what_is_not_zero) {
  std::vector<double> row(150, 0.0);
  row[0] = 1.5;
  row[70] = -0.0;
  row[149] = std::numeric_limits<double>::quiet_NaN();
  RowEntries<double> out;
  append_row<double>(row, out);
  append_row<double>(std::vector<double>(150, 0.0), out);
  CHECK(out.indices == (std::vector<index_t>{0, 149}));
  CHECK(out.indptr == (std::vector<index_t>{0, 2, 2}));
  CHECK(out.values[0] == 1.5);
  CHECK(!all_moderate<double>(out.values));
}
