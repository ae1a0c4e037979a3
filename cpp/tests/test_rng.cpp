// Rng: streams are reproducible and apart, below() stays below and is even, shuffle permutes.
#include "sublearn/core/rng.hpp"

#include <algorithm>
#include <limits>
#include <set>
#include <vector>

#include "check.hpp"
#include "sublearn/core/parallel_for.hpp"

using sublearn::offset_t;
using sublearn::Rng;

TEST(rng_repeats_itself_for_the_same_seed) {
  Rng a(5);
  Rng b(5);
  Rng c(6);
  bool differs = false;
  for (int i = 0; i < 100; ++i) {
    const auto drawn = a();
    CHECK(drawn == b());
    differs |= drawn != c();
  }
  CHECK(differs);
}

TEST(rng_split_neither_advances_nor_depends_on_what_was_drawn) {
  Rng fresh(5);
  Rng used(5);
  for (int i = 0; i < 10; ++i) used();
  Rng a = fresh.split(3);
  Rng b = used.split(3);
  for (int i = 0; i < 100; ++i) CHECK(a() == b());
  Rng untouched(5);
  CHECK(fresh() == untouched());
}

TEST(rng_streams_are_apart_at_every_level) {
  std::set<std::uint64_t> seen;
  int n_drawn = 0;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    for (std::uint64_t stream = 0; stream < 10; ++stream) {
      Rng once = Rng(seed).split(stream);
      Rng twice = once.split(stream);
      for (int i = 0; i < 20; ++i, n_drawn += 2) {
        seen.insert(once());
        seen.insert(twice());
      }
    }
  }
  CHECK(static_cast<int>(seen.size()) == n_drawn);
}

TEST(rng_streams_do_not_depend_on_the_threads) {
  constexpr offset_t n = 200;
  std::vector<std::uint64_t> serial(n);
  for (offset_t i = 0; i < n; ++i) serial[static_cast<std::size_t>(i)] = Rng(1).split(i)();
  for (int threads = 1; threads <= 4; ++threads) {
    std::vector<std::uint64_t> parallel(n);
    const Rng rng(1);
    sublearn::parallel_for(n, threads, [&](offset_t i, int) {
      parallel[static_cast<std::size_t>(i)] = rng.split(static_cast<std::uint64_t>(i))();
    });
    CHECK(parallel == serial);
  }
}

TEST(rng_uniform_stays_in_the_half_open_interval) {
  Rng rng(7);
  double sum = 0.0;
  for (int i = 0; i < 100'000; ++i) {
    const double u = rng.uniform();
    CHECK(u >= 0.0 && u < 1.0);
    sum += u;
  }
  CHECK_NEAR(sum / 100'000, 0.5, 0.006);  // six standard deviations
}

TEST(rng_below_stays_below_and_is_even) {
  Rng rng(11);
  for (const std::uint32_t n : {1u, 2u, 3u, 10u, 1000u}) {
    std::vector<int> counts(n);
    const int n_draws = 1000 * static_cast<int>(n);
    for (int i = 0; i < n_draws; ++i) {
      const std::uint32_t drawn = rng.below(n);
      CHECK(drawn < n);
      if (drawn >= n) return;
      ++counts[drawn];
    }
    const auto [low, high] = std::minmax_element(counts.begin(), counts.end());
    CHECK(*low > 800 && *high < 1200);  // six standard deviations
  }
}

TEST(rng_below_covers_the_widest_range) {
  Rng rng(13);
  constexpr std::uint32_t n = std::numeric_limits<std::uint32_t>::max();
  std::uint32_t low = n;
  std::uint32_t high = 0;
  for (int i = 0; i < 1000; ++i) {
    const std::uint32_t drawn = rng.below(n);
    CHECK(drawn < n);
    low = std::min(low, drawn);
    high = std::max(high, drawn);
  }
  CHECK(low < n / 100 && high > n / 100 * 99);
}

TEST(rng_shuffle_is_a_permutation) {
  Rng rng(17);
  for (const int n : {0, 1, 2, 3, 64, 1000}) {
    std::vector<int> items(static_cast<std::size_t>(n));
    for (int i = 0; i < n; ++i) items[static_cast<std::size_t>(i)] = i;
    const std::vector<int> sorted = items;
    rng.shuffle(std::span<int>(items));
    if (n >= 64) CHECK(items != sorted);
    std::sort(items.begin(), items.end());
    CHECK(items == sorted);
  }
}
