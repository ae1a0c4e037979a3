// parallel_for: each block once, thread ids in range, exceptions after the loop, nesting, stopping.
#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

#include "check.hpp"
#include "sublearn/core/parallel_for.hpp"

using sublearn::effective_threads;
using sublearn::Monitor;
using sublearn::offset_t;
using sublearn::parallel_for;

namespace {

constexpr int kMaxThreads = 4;

std::unique_ptr<std::atomic<int>[]> zeros(offset_t n) {
  return std::make_unique<std::atomic<int>[]>(static_cast<std::size_t>(n) + 1);
}

int count(const std::atomic<int>* counters, offset_t n) {
  int total = 0;
  for (offset_t i = 0; i < n; ++i) total += counters[i].load();
  return total;
}

}  // namespace

TEST(parallel_for_visits_each_block_once) {
  for (int threads = 1; threads <= kMaxThreads; ++threads) {
    for (const offset_t n : {0, 1, 2, 3, 100, 5000}) {
      const auto visits = zeros(n);
      parallel_for(n, threads, [&](offset_t block, int) { ++visits[block]; });
      bool each_once = true;
      for (offset_t i = 0; i < n; ++i) each_once &= visits[i] == 1;
      CHECK(each_once);
    }
  }
}

TEST(parallel_for_keeps_thread_ids_in_range) {
  for (int threads = 1; threads <= kMaxThreads; ++threads) {
    for (const offset_t n : {1, 2, 3, 1000}) {
      const int limit = effective_threads(n, threads);
      CHECK(limit >= 1 && limit <= threads && limit <= n);
      std::atomic<int> out_of_range{0};
      parallel_for(n, threads, [&](offset_t, int t) { out_of_range += t < 0 || t >= limit; });
      CHECK(out_of_range == 0);
    }
  }
}

TEST(parallel_for_never_runs_one_thread_id_twice_at_once) {
  const auto busy = zeros(kMaxThreads);
  std::atomic<int> clashes{0};
  parallel_for(2000, kMaxThreads, [&](offset_t, int t) {
    clashes += busy[t].fetch_add(1) != 0;
    busy[t].fetch_sub(1);
  });
  CHECK(clashes == 0);
}

TEST(parallel_for_takes_a_senseless_thread_count_as_one) {
  for (const int threads : {0, -3}) {
    CHECK(effective_threads(10, threads) == 1);
    std::atomic<int> visited{0};
    parallel_for(10, threads, [&](offset_t, int) { ++visited; });
    CHECK(visited == 10);
  }
}

TEST(parallel_for_asks_for_no_more_threads_than_a_system_gives) {
  constexpr offset_t many = offset_t{1} << 40;
  CHECK(effective_threads(many, 1 << 30) <= sublearn::kMostThreads);
  CHECK(effective_threads(3, 1 << 30) <= 3);
}

TEST(parallel_for_raises_an_exception_of_a_block_after_the_loop) {
  for (int threads = 1; threads <= kMaxThreads; ++threads) {
    std::atomic<int> running{0};
    std::string message;
    try {
      parallel_for(1000, threads, [&](offset_t block, int) {
        ++running;
        if (block == 17) {
          --running;
          throw std::runtime_error("block 17");
        }
        --running;
      });
    } catch (const std::runtime_error& error) {
      message = error.what();
      CHECK(running == 0);
    }
    CHECK(message == "block 17");
  }
}

TEST(parallel_for_hands_out_no_block_after_an_exception) {
  std::atomic<int> visited{0};
  const auto body = [&](offset_t block, int) {
    ++visited;
    if (block == 3) throw std::invalid_argument("stop");
  };
  CHECK_THROWS(parallel_for(1000, 1, body), std::invalid_argument);
  CHECK(visited == 4);
}

TEST(parallel_for_raises_one_exception_when_all_blocks_throw) {
  for (int threads = 1; threads <= kMaxThreads; ++threads) {
    const auto body = [](offset_t block, int) { throw std::out_of_range(std::to_string(block)); };
    CHECK_THROWS(parallel_for(100, threads, body), std::out_of_range);
  }
}

TEST(parallel_for_works_again_after_an_exception) {
  CHECK_THROWS(parallel_for(10, 4, [](offset_t, int) { throw 1; }), int);
  std::atomic<int> visited{0};
  parallel_for(10, 4, [&](offset_t, int) { ++visited; });
  CHECK(visited == 10);
}

TEST(parallel_for_is_serial_inside_another) {
  constexpr offset_t kOuter = 8;
  constexpr offset_t kInner = 50;
  std::atomic<int> visited{0};
  std::atomic<int> other_threads{0};
  parallel_for(kOuter, 2, [&](offset_t, int) {
#ifdef _OPENMP
    if (omp_in_parallel()) other_threads += effective_threads(kInner, kMaxThreads) != 1;
    const bool outer_is_parallel = omp_in_parallel();
#else
    const bool outer_is_parallel = true;
#endif
    parallel_for(kInner, kMaxThreads, [&](offset_t, int t) {
      ++visited;
      other_threads += outer_is_parallel && t != 0;
    });
  });
  CHECK(visited == kOuter * kInner);
  CHECK(other_threads == 0);
}

TEST(parallel_for_passes_an_exception_through_both_levels) {
  const auto inner = [](offset_t block, int) {
    if (block == 2) throw std::domain_error("inner");
  };
  const auto outer = [&](offset_t, int) { parallel_for(5, 2, inner); };
  CHECK_THROWS(parallel_for(4, 2, outer), std::domain_error);
}

TEST(parallel_for_ends_early_on_request) {
  constexpr offset_t n = 1000;
  for (int threads = 1; threads <= kMaxThreads; ++threads) {
    Monitor monitor;
    const auto visits = zeros(n);
    parallel_for(n, threads, &monitor, [&](offset_t block, int) {
      ++visits[block];
      if (block == 10) monitor.request_stop();
      while (block > 10 && !monitor.stop_requested()) std::this_thread::yield();
    });
    const int visited = count(visits.get(), n);
    CHECK(visited >= 11 && visited <= 10 + threads);  // each thread finishes the block it holds
    for (offset_t i = 1; i < n; ++i) CHECK(visits[i] <= visits[i - 1]);  // handed out in order
  }
}

TEST(parallel_for_does_nothing_if_stopped_before_the_start) {
  Monitor monitor;
  monitor.request_stop();
  std::atomic<int> visited{0};
  for (int threads = 1; threads <= kMaxThreads; ++threads) {
    parallel_for(100, threads, &monitor, [&](offset_t, int) { ++visited; });
  }
  CHECK(visited == 0);
}
