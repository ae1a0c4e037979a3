// log sum_y exp <query, row_y> over all rows: what a softmax over very many outputs divides by.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "sublearn/core/inner_products.hpp"
#include "sublearn/core/monitor.hpp"
#include "sublearn/core/parallel_for.hpp"
#include "sublearn/core/row_kernels.hpp"
#include "sublearn/core/types.hpp"

namespace sublearn {

/// out[q] for each query, at the cost of all inner products; rows and queries are padded.
inline void log_partitions(const float* rows, offset_t n_rows, const float* queries,
                           offset_t n_queries, offset_t stride, int n_threads,
                           const Monitor* monitor, std::span<double> out) {
  constexpr offset_t kQueries = 16, kRows = 1024;  // their products stay in the nearest cache
  const offset_t n_blocks = (n_queries + kQueries - 1) / kQueries;
  const int threads = effective_threads(n_blocks, n_threads);
  std::vector<std::vector<float>> scratch(static_cast<std::size_t>(threads));
  parallel_for(n_blocks, threads, monitor, [&](offset_t block, int thread) {
    std::vector<float>& scores = scratch[thread];
    scores.resize(static_cast<std::size_t>(kQueries * kRows));
    const offset_t first = block * kQueries, n = std::min(kQueries, n_queries - first);
    double sums[kQueries] = {};
    float highest[kQueries];
    std::fill_n(highest, n, -std::numeric_limits<float>::infinity());
    for (offset_t r = 0; r < n_rows; r += kRows) {
      const offset_t count = std::min(kRows, n_rows - r);
      inner_products(rows + r * stride, count, queries + first * stride, n, stride, scores.data());
      for (offset_t q = 0; q < n; ++q) {
        float* part = scores.data() + q * count;
        const float top = std::max(highest[q], *std::max_element(part, part + count));
        sums[q] *= std::exp(static_cast<double>(highest[q]) - top);
        highest[q] = top;
        exponentials(part, count, top, part);
        for (offset_t p = 0; p < count; ++p) sums[q] += part[p];
      }
    }
    for (offset_t q = 0; q < n; ++q) out[first + q] = std::log(sums[q]) + highest[q];
  });
}

}  // namespace sublearn
