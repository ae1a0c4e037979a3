// Independent blocks on a given number of threads.
//
// Takes the thread count as an argument and touches no global setting; runs serially inside another
// parallel region; re-raises the first exception after the loop; stops handing out blocks once the
// monitor asks for it or a block has thrown; works in a process that was forked.
#pragma once

#include <atomic>
#include <exception>
#include <utility>

#include "sublearn/core/monitor.hpp"
#include "sublearn/core/types.hpp"

#ifdef _OPENMP
#include <omp.h>

#include <thread>
#if defined(__unix__) || defined(__APPLE__)
#include <unistd.h>
#define SUBLEARN_CAN_FORK
#endif
#endif

namespace sublearn {

#ifdef _OPENMP
namespace detail {

#ifdef SUBLEARN_CAN_FORK
inline const pid_t loading_process = getpid();
inline bool is_forked() { return getpid() != loading_process; }
#else
inline bool is_forked() { return false; }
#endif

/// Calls work(thread) on several threads. OpenMP keeps the threads of a region for the next region
/// of the same calling thread; fork does not copy them, and the child would wait for them forever.
/// So a child calls from a new thread, for which OpenMP makes new ones.
template <class Work>
void on_threads(int n_threads, Work& work) {
  const auto region = [&] {
#pragma omp parallel num_threads(n_threads)
    work(omp_get_thread_num());
  };
  if (is_forked()) {
    std::thread(region).join();
  } else {
    region();
  }
}

}  // namespace detail
#endif

/// More than machines have processors. OpenMP ends the process if the system refuses it a thread.
inline constexpr int kMostThreads = 1024;

/// Threads that parallel_for will use for `n_blocks` blocks when asked for `n_threads`.
inline int effective_threads(offset_t n_blocks, int n_threads) {
#ifdef _OPENMP
  if (omp_in_parallel()) return 1;
  if (n_threads > kMostThreads) n_threads = kMostThreads;
  if (n_blocks < n_threads) n_threads = static_cast<int>(n_blocks);
  return n_threads < 1 ? 1 : n_threads;
#else
  (void)n_blocks;
  (void)n_threads;
  return 1;
#endif
}

/// Calls body(block, thread) for each block in 0 .. n_blocks-1, handed out in order.
/// `thread` is below effective_threads(n_blocks, n_threads), so scratch space can be kept per
/// thread.
template <class Body>
void parallel_for(offset_t n_blocks, int n_threads, const Monitor* monitor, Body&& body) {
  std::atomic<offset_t> next{0};
  std::atomic<bool> failed{false};
  std::exception_ptr error;

  auto worker = [&](int thread) {
    while (!failed.load(std::memory_order_relaxed)) {
      if (monitor != nullptr && monitor->stop_requested()) return;
      const offset_t block = next.fetch_add(1, std::memory_order_relaxed);
      if (block >= n_blocks) return;
      try {
        body(block, thread);
      } catch (...) {
        if (!failed.exchange(true)) error = std::current_exception();
      }
    }
  };

  const int threads = effective_threads(n_blocks, n_threads);
  if (threads == 1) {
    worker(0);
  } else {
#ifdef _OPENMP
    detail::on_threads(threads, worker);
#endif
  }
  if (error) std::rethrow_exception(error);
}

template <class Body>
void parallel_for(offset_t n_blocks, int n_threads, Body&& body) {
  parallel_for(n_blocks, n_threads, nullptr, std::forward<Body>(body));
}

}  // namespace sublearn
