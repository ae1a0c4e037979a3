// What the weights of PD-Sparse are worth: P, D and the gap between them, precision on held-out
// rows.
//
// These passes only read W, so they run on several threads. Sums are taken block by block of rows,
// in the order of the rows: they do not depend on the threads.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "sublearn/core/labelled_rows.hpp"
#include "sublearn/core/monitor.hpp"
#include "sublearn/core/parallel_for.hpp"
#include "sublearn/core/top_k.hpp"
#include "sublearn/core/types.hpp"
#include "sublearn/search/hashed_rows.hpp"
#include "sublearn/search/score_board.hpp"
#include "sublearn/solvers/pd_sparse/data.hpp"
#include "sublearn/solvers/pd_sparse/types.hpp"
#include "sublearn/solvers/pd_sparse/weights.hpp"

namespace sublearn {

/// Squares, l1 penalty and number of the weights; totals of the masses.
struct PDSums {
  double squares = 0.0;
  double penalty = 0.0;
  double mass = 0.0;
  std::int64_t n_weights = 0;
  std::int64_t n_masses = 0;
};

template <class T>
PDSums sum_up(const HashedRows<T>& rows, const PDDuals<T>& duals) {
  PDSums sums;
  for (std::size_t r = 0; r < rows.n_rows(); ++r) {
    rows.for_each_weight(r, [&](index_t, T w) {
      sums.squares += static_cast<double>(w) * static_cast<double>(w);
      sums.penalty += static_cast<double>(rows.level(r)) * std::abs(static_cast<double>(w));
      sums.n_weights += w != T{0};
    });
  }
  for (const T mass : duals.positive) sums.n_masses += mass != T{0};
  for (const auto& negative : duals.negative) {
    for (const auto& m : negative) sums.mass += static_cast<double>(m.mass);
    sums.n_masses += static_cast<std::int64_t>(negative.size());
  }
  return sums;
}

/// The s between 0 and 1 at which P(s W) is least: 1/2 s^2 `squares` + s `penalty` + the losses
/// max(0, 1 - s m_i), since scores grow with s and keep their order. P is convex along s.
inline double best_scale(const PDSums& sums, std::span<const double> caps,
                         std::span<const double> margins) {
  const auto slope = [&](double s) {
    double total = s * sums.squares + sums.penalty;
    for (std::size_t i = 0; i < margins.size(); ++i) {
      if (s * margins[i] < 1.0) total -= caps[i] * margins[i];
    }
    return total;
  };
  constexpr int kHalvings = 60;
  double low = 0.0, high = 1.0;
  if (slope(low) >= 0.0) return low;
  for (int step = 0; step < kHalvings && slope(high) > 0.0; ++step) {
    const double middle = 0.5 * (low + high);
    (slope(middle) > 0.0 ? high : low) = middle;
  }
  return high;
}

/// P and D at some weights. P - D bounds the distance of either to the optimum.
struct PDValues {
  double primal = 0.0;
  double dual = 0.0;

  double gap() const { return primal - dual; }
  bool is_within(double tol) const { return std::isfinite(primal) && gap() <= tol * primal; }
};

/// P of (13), `loss` being its last sum.
inline double primal_value(const PDSums& sums, double loss) {
  return 0.5 * sums.squares + sums.penalty + loss;
}

/// D; `constant_loss` is the mass of the rows that no weight can help.
inline double dual_value(const PDSums& sums, double constant_loss) {
  return sums.mass + constant_loss - 0.5 * sums.squares;
}

template <class T, class I>
class PDMeasures {
 public:
  PDMeasures(int n_threads, Monitor& monitor) : n_threads_(n_threads), monitor_(monitor) {}

  /// sum_i C_i max(0, 1 + max_{N_i} z - min_{P_i} z): an exact search of all samples.
  double loss(const PDData<T, I>& data, const PDWeights<T, I>& weights) {
    return sum_over(data.rows(), weights, [&](offset_t i, Reader& reader) {
      return data.has_loss(i) ? data.cap(i) * loss_of(i, data, weights, reader) : 0.0;
    });
  }

  /// min_{P_i} z - max_{N_i} z of each sample; zero where it has no loss.
  std::vector<double> margins(const PDData<T, I>& data, const PDWeights<T, I>& weights) {
    std::vector<double> found(static_cast<std::size_t>(data.n_rows()), 0.0);
    sum_over(data.rows(), weights, [&](offset_t i, Reader& reader) {
      if (data.has_loss(i)) found[at(i)] = margin_of(i, data, weights, reader);
      return 0.0;
    });
    return found;
  }

  /// Share of the rows whose best label is one of theirs.
  double precision(const LabelledRows<T, I>& rows, const PDWeights<T, I>& weights) {
    const double hits = sum_over(rows, weights, [&](offset_t i, Reader& reader) {
      const index_t best = best_label(rows.X.row(i), weights, reader);
      const auto truth = rows.labels.of(i);
      return std::binary_search(truth.begin(), truth.end(), best) ? 1.0 : 0.0;
    });
    return hits / static_cast<double>(rows.X.n_rows());
  }

  std::int64_t work = 0;  ///< entries visited by all calls

 private:
  static constexpr offset_t kChunk = 64;  ///< rows of a block

  /// Scratch of a thread.
  struct Reader {
    ScoreBoard<T> board;
    TopK<T> best;
    std::int64_t work = 0;
  };

  template <class Value>
  double sum_over(const LabelledRows<T, I>& data, const PDWeights<T, I>& weights, Value&& value) {
    const offset_t n_rows = data.X.n_rows();
    const offset_t n_chunks = (n_rows + kChunk - 1) / kChunk;
    std::vector<double> totals(static_cast<std::size_t>(n_chunks), 0.0);
    std::vector<Reader> readers(static_cast<std::size_t>(effective_threads(n_chunks, n_threads_)),
                                Reader{ScoreBoard<T>(weights.rows().n_labels()), TopK<T>(1), 0});
    parallel_for(n_chunks, n_threads_, &monitor_, [&](offset_t chunk, int thread) {
      const offset_t end = std::min((chunk + 1) * kChunk, n_rows);
      for (offset_t i = chunk * kChunk; i < end; ++i) {
        totals[at(chunk)] += value(i, readers[at(thread)]);
      }
    });
    for (const Reader& reader : readers) work += reader.work;
    return std::accumulate(totals.begin(), totals.end(), 0.0);
  }

  static double loss_of(offset_t i, const PDData<T, I>& data, const PDWeights<T, I>& weights,
                        Reader& reader) {
    return std::max(0.0, 1.0 - margin_of(i, data, weights, reader));
  }

  static double margin_of(offset_t i, const PDData<T, I>& data, const PDWeights<T, I>& weights,
                          Reader& reader) {
    const LabelParts& parts = weights.parts();
    T lowest_positive = std::numeric_limits<T>::infinity();
    T highest_negative = -std::numeric_limits<T>::infinity();
    for (index_t part = 0; part < parts.n_parts; ++part) {
      weights.add_row_to_board(data.row(i), part, reader.board, reader.work);
      for (const index_t label : data.labels().of(i)) {
        if (parts.part_of(label) != part) continue;
        lowest_positive =
            std::min(lowest_positive, reader.board.take(weights.place_of(label).label));
      }
      highest_negative = std::max(highest_negative, reader.board.largest(parts.size(part)));
      reader.board.clear();
    }
    return static_cast<double>(lowest_positive) - static_cast<double>(highest_negative);
  }

  static index_t best_label(const SparseVector<T, I>& row, const PDWeights<T, I>& weights,
                            Reader& reader) {
    const LabelParts& parts = weights.parts();
    Scored<T> best{-std::numeric_limits<T>::infinity(), std::numeric_limits<index_t>::max()};
    for (index_t part = 0; part < parts.n_parts; ++part) {
      weights.add_row_to_board(row, part, reader.board, reader.work);
      Scored<T> found = reader.board.best(parts.size(part), reader.best);
      found.id = parts.label_at(part, found.id);
      if (ranks_before(found, best)) best = found;
      reader.board.clear();
    }
    return best.id;
  }

  int n_threads_;
  Monitor& monitor_;
};

}  // namespace sublearn
