// Views: rows and columns of compressed and dense storage, empty ones, both index types.
#include "sublearn/core/views.hpp"

#include <cstdint>
#include <vector>

#include "check.hpp"

using sublearn::CscView;
using sublearn::CsrView;
using sublearn::DenseView;

namespace {

// [ 1 0 2 ]
// [ 0 0 0 ]
// [ 0 3 0 ]
// [ 4 5 6 ]
template <class I>
struct Example {
  std::vector<I> indptr{0, 2, 2, 3, 6};
  std::vector<I> indices{0, 2, 1, 0, 1, 2};
  std::vector<double> values{1, 2, 3, 4, 5, 6};

  template <template <class, class> class View>
  View<double, I> view() const {
    View<double, I> out;
    out.indptr = indptr.data();
    out.indices = indices.data();
    out.values = values.data();
    out.n_major = 4;
    out.n_minor = 3;
    return out;
  }
};

template <class I>
void check_rows() {
  const Example<I> example;
  const auto rows = example.template view<CsrView>();
  CHECK(rows.n_rows() == 4 && rows.n_cols() == 3 && rows.nnz() == 6);
  CHECK(rows.row(0).size() == 2 && rows.row(1).size() == 0 && rows.row(3).size() == 3);
  CHECK(rows.row(0).ids[1] == 2 && rows.row(0).values[1] == 2.0);
  CHECK(rows.row(2).ids[0] == 1 && rows.row(2).values[0] == 3.0);
  CHECK(rows.row(3).values.back() == 6.0);
}

}  // namespace

TEST(csr_view_gives_rows_for_both_index_types) {
  check_rows<std::int32_t>();
  check_rows<std::int64_t>();
}

TEST(csc_view_of_the_same_arrays_is_the_transpose) {
  const Example<std::int32_t> example;
  const auto columns = example.view<CscView>();
  CHECK(columns.n_rows() == 3 && columns.n_cols() == 4 && columns.nnz() == 6);
  CHECK(columns.column(3).ids[0] == 0 && columns.column(3).values[0] == 4.0);
}

TEST(csr_view_may_be_empty) {
  const std::int32_t indptr[] = {0, 0};
  CsrView<float, std::int32_t> view;
  view.indptr = indptr;
  view.n_major = 1;
  CHECK(view.nnz() == 0 && view.row(0).size() == 0);
}

TEST(dense_view_gives_rows_that_write_through) {
  std::vector<float> data{1, 2, 3, 4, 5, 6};
  const DenseView<float> view{data.data(), 2, 3};
  CHECK(view.row(1).size() == 3 && view.row(1)[0] == 4.0f);
  view.row(1)[2] = 9.0f;
  CHECK(data[5] == 9.0f);
  CHECK(DenseView<float>{}.row(0).empty());
}
