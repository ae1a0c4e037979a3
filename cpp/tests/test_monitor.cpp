// Monitor: counters add up under threads, a stop request is seen.
#include "sublearn/core/monitor.hpp"

#include "check.hpp"
#include "sublearn/core/parallel_for.hpp"

using sublearn::Monitor;
using sublearn::offset_t;

TEST(monitor_starts_at_zero_and_running) {
  const Monitor monitor;
  CHECK(!monitor.stop_requested());
  CHECK(monitor.n_done == 0 && monitor.nnz_primal == 0 && monitor.nnz_dual == 0);
  CHECK(monitor.work == 0 && monitor.objective == 0.0 && monitor.gap == 0.0);
}

TEST(monitor_keeps_a_stop_request) {
  Monitor monitor;
  monitor.request_stop();
  monitor.request_stop();
  CHECK(monitor.stop_requested());
}

TEST(monitor_adds_up_over_threads) {
  Monitor monitor;
  sublearn::parallel_for(1000, 4, &monitor, [&](offset_t block, int) {
    monitor.n_done += 1;
    monitor.work += block;
    Monitor::add(monitor.objective, 0.5);
  });
  CHECK(monitor.n_done == 1000);
  CHECK(monitor.work == 999 * 1000 / 2);
  CHECK(monitor.objective == 500.0);
}
