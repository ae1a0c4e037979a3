// How a running solver and the thread that waits for it talk: counters out, a stop request in.
//
// The solver works on its own threads without Python's lock; the waiting thread reads the counters
// about ten times a second, draws the progress bar, and turns Ctrl-C into request_stop().
#pragma once

#include <atomic>
#include <cstdint>

namespace sublearn {

class Monitor {
 public:
  void request_stop() { stop_.store(true, std::memory_order_relaxed); }
  bool stop_requested() const { return stop_.load(std::memory_order_relaxed); }

  /// Adds to a total. `+=` would do, but before version 18 libc++ has none for atomic doubles.
  static void add(std::atomic<double>& total, double amount) {
    double before = total.load();
    while (!total.compare_exchange_weak(before, before + amount)) {
    }
  }

  /// Totals over the finished blocks; a reader may see one block half added.
  std::atomic<std::int64_t> n_done{0};
  std::atomic<double> objective{0.0};
  std::atomic<double> gap{0.0};
  std::atomic<std::int64_t> nnz_primal{0};
  std::atomic<std::int64_t> nnz_dual{0};
  std::atomic<std::int64_t> work{0};

 private:
  std::atomic<bool> stop_{false};
};

}  // namespace sublearn
