// What pairwise_multilabel.hpp is given and returns, and what it keeps for a row of the data.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "sublearn/core/types.hpp"
#include "sublearn/search/hashed_rows.hpp"

namespace sublearn {

struct PairwiseSettings {
  double C = 1.0;
  double gamma = 1.0;     ///< weight of 1/2 |V|^2
  bool has_pairs = true;  ///< false: V = 0, independent support vector machines
  double rho = 0.0;       ///< 0: 1 + C times the mean of |x_i|^2
  std::uint64_t seed = 0;
  int n_threads = 1;  ///< of certify
};

/// What a pass did.
struct PairwisePass {
  double primal_residual = 0.0;  ///< root mean square of violations, over the active pairs
  double dual_residual = 0.0;    ///< of rho times the change of p
  double rho = 0.0;
  offset_t n_labels = 0;  ///< held by rows
  offset_t n_pairs = 0;   ///< active
  offset_t work = 0;      ///< weights, scores and pairs visited
};

/// Values at a point that satisfies all constraints.
struct PairwiseCertificate {
  double primal = 0.0;
  double dual = 0.0;
  bool is_complete = false;  ///< false if stopped on the way
};

/// The three arrays of a CSR matrix.
template <class T>
struct OwnedRows {
  std::vector<offset_t> indptr{0};
  std::vector<index_t> indices;
  std::vector<T> values;
};

/// The weights that are not zero, labels increasing in each row.
template <class T>
OwnedRows<T> sorted_rows(const HashedRows<T>& rows) {
  OwnedRows<T> out;
  std::vector<std::pair<index_t, T>> row;
  for (std::size_t r = 0; r < rows.n_rows(); ++r) {
    row.clear();
    rows.for_each_weight(r, [&](index_t label, T w) { row.emplace_back(label, w); });
    std::sort(row.begin(), row.end());
    for (const auto& [label, w] : row) {
      out.indices.push_back(label);
      out.values.push_back(w);
    }
    out.indptr.push_back(static_cast<offset_t>(out.indices.size()));
  }
  return out;
}

/// An active pair of a row. Numbers are floats for memory; V counts them as they are rounded.
struct ActivePair {
  std::uint32_t ends[2];  ///< slots
  float q;
  float up[2], down;  ///< multipliers
};
/// What a row holds: labels by slot, the true ones first.
struct PairRow {
  static constexpr int kFewestSweeps = 4;          ///< over pairs and labels, in one visit
  static constexpr std::size_t kMostEntries = 10;  ///< in one visit, or as many as there are labels

  std::vector<index_t> labels;
  std::vector<double> p;
  std::vector<ActivePair> pairs;
  std::size_t n_true = 0;
  int budget = kFewestSweeps;  ///< sweeps of a visit

  std::size_t most_entries() const { return std::max(kMostEntries, n_true); }
  double truth(std::size_t slot) const { return slot < n_true ? 1.0 : 0.0; }
  double truth(const ActivePair& pair) const { return truth(pair.ends[0]) * truth(pair.ends[1]); }
};

/// The nearest q that the constraints allow.
inline float clipped(const PairRow& row, const ActivePair& pair) {
  const double p[2] = {row.p[pair.ends[0]], row.p[pair.ends[1]]};
  return static_cast<float>(
      std::clamp<double>(pair.q, std::max(0.0, p[0] + p[1] - 1.0), std::min(p[0], p[1])));
}

/// Whether q may stand between shares p and r.
inline bool is_between(double q, double p, double r) {
  return q <= p && q <= r && q >= p + r - 1.0;
}

/// Whether a pair is at its truth and nothing presses on it.
inline bool is_inert(const PairRow& row, const ActivePair& pair) {
  const double p[2] = {row.p[pair.ends[0]], row.p[pair.ends[1]]};
  return pair.q == row.truth(pair) && pair.up[0] == 0.0F && pair.up[1] == 0.0F &&
         pair.down == 0.0F && is_between(pair.q, p[0], p[1]);
}

}  // namespace sublearn
