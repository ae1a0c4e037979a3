// Seconds since a stopwatch was made, for the rows of traces.
#pragma once

#include <chrono>

namespace sublearn {

class Stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - started_).count();
  }

 private:
  std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
};

}  // namespace sublearn
