// What solvers/pairwise/solver.hpp is given and returns, and what it keeps for a row of the data.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "sublearn/core/types.hpp"
#include "sublearn/search/hashed_rows.hpp"

namespace sublearn {

struct PairwiseSettings {
  double C = 1.0;
  double gamma = 1.0;     ///< weight of 1/2 |V|^2
  bool has_pairs = true;  ///< false: V = 0, independent support vector machines
  std::uint64_t seed = 0;
  int n_threads = 1;  ///< of certify
};

/// What a pass did.
struct PairwisePass {
  offset_t n_labels = 0;  ///< held by rows
  offset_t n_pairs = 0;   ///< with a multiplier, over all rows
  offset_t work = 0;      ///< weights, scores and pairs visited
};

/// Values at a point that satisfies all constraints.
struct PairwiseCertificate {
  double primal = 0.0;  ///< NaN if stopped on the way
  double dual = 0.0;
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

/// How a pair with V > 0 divides it between its labels: pull[0] + pull[1] = V where rows agree.
struct Attraction {
  std::uint32_t ends[2];  ///< slots
  float pull[2];
};
/// What a pair with V < 0 takes from both of its labels.
struct Repulsion {
  std::uint32_t ends[2];
  float push;
};

/// What a row holds: labels by slot, increasing, with their shares; multipliers of pairs.
struct PairRow {
  static constexpr std::size_t kMostEntries = 10;  ///< in one visit, or as many as there are labels

  std::vector<index_t> labels;
  std::vector<double> p;
  std::vector<std::uint8_t> is_true;
  std::vector<Attraction> attractions;
  std::vector<Repulsion> repulsions;
  std::size_t n_true = 0;

  std::size_t size() const { return labels.size(); }
  std::size_t most_entries() const { return std::max(kMostEntries, n_true); }
  double truth(std::size_t slot) const { return is_true[slot]; }
  bool holds(index_t label) const {
    return std::binary_search(labels.begin(), labels.end(), label);
  }

  /// Lets labels in that it does not hold, with a share of zero. `slots` is scratch.
  void enter(std::span<const index_t> more, std::vector<std::uint32_t>& slots) {
    if (more.empty()) return;
    const std::size_t n = size();
    std::vector<std::pair<index_t, std::uint32_t>> all;
    for (std::size_t s = 0; s < n; ++s) all.emplace_back(labels[s], s);
    for (const index_t l : more) all.emplace_back(l, all.size());
    std::sort(all.begin(), all.end());
    slots.assign(all.size(), 0);
    std::vector<double> shares(all.size(), 0.0);
    std::vector<std::uint8_t> truths(all.size(), 0);
    labels.resize(all.size());
    for (std::uint32_t s = 0; s < all.size(); ++s) {
      const auto [label, from] = all[s];
      labels[s] = label;
      slots[from] = s;
      if (from >= n) continue;
      shares[s] = p[from];
      truths[s] = is_true[from];
    }
    p = std::move(shares);
    is_true = std::move(truths);
    renumber(slots);
  }

  /// Drops labels that are back at zero, and multipliers whose label left or, if they are `done`,
  /// that are zero: the search brings them back, with the weight of their pair.
  void shrink(std::vector<std::uint32_t>& slots, bool done) {
    slots.assign(size(), kGone);
    std::uint32_t n = 0;
    for (std::size_t s = 0; s < size(); ++s) {
      if (is_true[s] == 0 && p[s] == 0.0) continue;
      slots[s] = n;
      labels[n] = labels[s];
      p[n] = p[s];
      is_true[n++] = is_true[s];
    }
    labels.resize(n);
    p.resize(n);
    is_true.resize(n);
    const auto is_lost = [&](const auto& pair) {
      return slots[pair.ends[0]] == kGone || slots[pair.ends[1]] == kGone;
    };
    std::erase_if(attractions, [&](const Attraction& pair) {
      return is_lost(pair) || (done && pair.pull[0] == 0.0F && pair.pull[1] == 0.0F);
    });
    std::erase_if(repulsions, [&](const Repulsion& pair) {
      return is_lost(pair) || (done && pair.push == 0.0F);
    });
    renumber(slots);
  }

 private:
  static constexpr std::uint32_t kGone = ~std::uint32_t{0};

  void renumber(const std::vector<std::uint32_t>& slots) {
    for (Attraction& pair : attractions) {
      for (auto& end : pair.ends) end = slots[end];
    }
    for (Repulsion& pair : repulsions) {
      for (auto& end : pair.ends) end = slots[end];
    }
  }
};

}  // namespace sublearn
