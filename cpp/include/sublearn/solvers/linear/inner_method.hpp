// What the active set of solvers/linear/solver.hpp asks of the method inside it.
#pragma once

#include <cstdint>
#include <span>

#include "sublearn/core/monitor.hpp"
#include "sublearn/core/types.hpp"
#include "sublearn/objectives/linear.hpp"

namespace sublearn {

class InnerMethod {
 public:
  virtual ~InnerMethod() = default;

  /// Moves over the features `ids` (and the intercept) until none of them violates by more than
  /// `target`. Returns whether that was reached.
  virtual bool minimise(LinearPoint& at, std::span<const index_t> ids, double target, int n_threads,
                        Monitor& monitor) = 0;

  std::int64_t work = 0;    ///< entries of X looked at
  std::int64_t passes = 0;  ///< of coordinate descent
};

}  // namespace sublearn
