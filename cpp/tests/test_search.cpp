// The search room: inverted lists and random sparsification.
#include <algorithm>
#include <cmath>
#include <vector>

#include "check.hpp"
#include "random_problems.hpp"
#include "sublearn/search/inverted_lists.hpp"
#include "sublearn/search/sparsify.hpp"

using namespace sublearn;
using sublearn::testing::RandomMatrix;

namespace {

template <class T, class I>
void check_lists() {
  const RandomMatrix<T, I> X(40, 12, 0.3, Rng(1));
  const InvertedLists<T> lists(X.view());
  std::size_t n_entries = 0;
  for (index_t j = 0; j < 12; ++j) {
    const auto list = lists.list(j);
    CHECK(list.size() == lists.length(j));
    n_entries += list.size();
    CHECK(std::is_sorted(list.ids.begin(), list.ids.end()));
    for (std::size_t p = 0; p < list.size(); ++p) {
      CHECK(X.product(list.ids[p], [&](index_t f) { return f == j ? 1.0 : 0.0; }) ==
            static_cast<double>(list.values[p]));
    }
  }
  CHECK(n_entries == X.values.size());
}

}  // namespace

TEST(inverted_lists_are_the_transpose) {
  check_lists<float, std::int32_t>();
  check_lists<double, std::int64_t>();
}

TEST(sparsify_keeps_large_weights_and_zeros) {
  CHECK(sparsify(2.0, 0.5, 0.99) == 2.0);
  CHECK(sparsify(-0.5, 0.5, 0.99) == -0.5);
  CHECK(sparsify(0.0, 0.5, 0.0) == 0.0);
  CHECK(sparsify(0.0, 0.0, 0.0) == 0.0);
  CHECK(sparsify(0.2, 0.5, 0.39) == 0.5);
  CHECK(sparsify(-0.2, 0.5, 0.39) == -0.5);
  CHECK(sparsify(-0.2, 0.5, 0.41) == 0.0);
}

TEST(sparsify_is_right_on_average) {
  Rng rng(1);
  for (const double w : {0.3, -0.3, 0.01, -0.9, 1.7}) {
    constexpr int kDraws = 200000;
    double sum = 0;
    for (int draw = 0; draw < kDraws; ++draw) sum += sparsify(w, 1.0, rng.uniform());
    const double size = std::min(std::abs(w), 1.0);
    const double deviation = std::sqrt(size * (1 - size) / kDraws);
    CHECK_NEAR(sum / kDraws, w, 5 * deviation + 1e-9);
  }
}

TEST(sparsify_keeps_about_as_many_as_asked) {
  Rng rng(2);
  std::vector<double> w;
  double norm = 0;
  for (int j = 0; j < 4000; ++j) {
    w.push_back(rng.uniform() - 0.5);
    norm += std::abs(w.back());
  }
  constexpr double kAsked = 500;
  double kept = 0;
  for (const double weight : w) kept += sparsify(weight, norm / kAsked, rng.uniform()) != 0;
  CHECK(kept <= 1.2 * kAsked);
  CHECK(kept >= 0.5 * kAsked);
}
