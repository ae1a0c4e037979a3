// How a solver ended; the sentences that a user reads are in src/sublearn/trace.py.
#pragma once

namespace sublearn {

enum class Status {
  converged,   ///< the certificate reached the tolerance
  max_iter,    ///< the limit of iterations came first
  time_limit,  ///< the limit of time came first
  stopped,     ///< the monitor asked to stop
  stalled,     ///< no step makes progress that rounding lets one see
};

}  // namespace sublearn
