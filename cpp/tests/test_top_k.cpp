// TopK: agrees with a full sort, needs no new memory when reused, takes offers in any order.
#include "sublearn/core/top_k.hpp"

#include <cmath>
#include <numeric>
#include <vector>

#include "check.hpp"
#include "sublearn/core/rng.hpp"

using sublearn::index_t;
using sublearn::Rng;
using sublearn::Scored;
using sublearn::TopK;

namespace {

template <class T>
std::vector<index_t> ids_of(std::span<const Scored<T>> best) {
  std::vector<index_t> ids;
  for (const auto& item : best) ids.push_back(item.id);
  return ids;
}

template <class T>
std::vector<index_t> ids_by_sorting(const std::vector<T>& scores, std::size_t k) {
  std::vector<index_t> ids(scores.size());
  std::iota(ids.begin(), ids.end(), 0);
  std::stable_sort(ids.begin(), ids.end(), [&](index_t a, index_t b) {
    const T x = scores[static_cast<std::size_t>(a)];
    const T y = scores[static_cast<std::size_t>(b)];
    return std::isnan(y) ? !std::isnan(x) : x > y;
  });
  ids.resize(std::min(k, ids.size()));
  return ids;
}

/// Few distinct values and some NaN.
template <class T>
std::vector<T> tied_scores(Rng& rng, std::size_t n) {
  std::vector<T> scores(n);
  for (T& score : scores) {
    const auto drawn = rng.below(12);
    score = drawn == 0 ? std::numeric_limits<T>::quiet_NaN() : static_cast<T>(drawn);
  }
  return scores;
}

template <class T>
void check_against_sorting() {
  Rng rng(1);
  TopK<T> scratch;
  for (const std::size_t n : {0, 1, 5, 64, 65, 300, 2000}) {
    const auto scores = tied_scores<T>(rng, n);
    for (const std::size_t k : {0, 1, 2, 63, 64, 65, 500, 5000}) {
      const auto expected = ids_by_sorting(scores, k);
      CHECK(ids_of(top_k(scores, k, scratch)) == expected);
      std::vector<index_t> candidates(n);
      std::iota(candidates.begin(), candidates.end(), 0);
      rng.shuffle(std::span<index_t>(candidates));
      CHECK(ids_of(top_k(candidates, scores, k, scratch)) == expected);
    }
  }
}

}  // namespace

TEST(top_k_agrees_with_sorting) {
  check_against_sorting<float>();
  check_against_sorting<double>();
}

TEST(top_k_order_is_strict_and_total) {
  const double values[] = {1.0, 0.0, -0.0, -INFINITY, INFINITY, std::nan("")};
  for (const double a : values) {
    for (const double b : values) {
      const Scored<double> x{a, 1};
      const Scored<double> y{b, 2};
      CHECK(ranks_before(x, y) != ranks_before(y, x));
      CHECK(!ranks_before(x, x));
    }
  }
}

TEST(top_k_keeps_its_memory) {
  Rng rng(2);
  TopK<float> scratch;
  const auto scores = tied_scores<float>(rng, 10'000);
  const auto* first = top_k(scores, 100, scratch).data();
  for (int i = 0; i < 10; ++i) CHECK(top_k(scores, 100, scratch).data() == first);
}

TEST(top_k_survives_an_enormous_k) {
  TopK<double> scratch;
  const std::vector<double> scores{1.0, 3.0, 2.0};
  const auto all = std::numeric_limits<std::size_t>::max();
  CHECK(ids_of(top_k(scores, all, scratch)) == (std::vector<index_t>{1, 2, 0}));
}

TEST(top_k_bar_only_leaves_out_what_cannot_enter) {
  Rng rng(3);
  const auto scores = tied_scores<double>(rng, 3000);
  TopK<double> all(7);
  TopK<double> barred(7);
  for (std::size_t i = 0; i < scores.size(); ++i) {
    all.offer(static_cast<index_t>(i), scores[i]);
    if (!(scores[i] <= barred.bar())) barred.offer(static_cast<index_t>(i), scores[i]);
  }
  CHECK(ids_of(all.finish()) == ids_of(barred.finish()));
}
