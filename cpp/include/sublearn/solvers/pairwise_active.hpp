// Which labels and pairs of a row are active in GDMM over sets of labels: what a visit lets in,
// with the multipliers to begin with, and what leaves. Used by: pairwise_multilabel.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sublearn/core/types.hpp"
#include "sublearn/search/hashed_rows.hpp"
#include "sublearn/solvers/pairwise_task.hpp"

namespace sublearn {

/// V of two slots of a row.
template <class T>
struct PairWeights {
  const HashedRows<T>& pairs;

  double operator()(const PairRow& row, std::size_t a, std::size_t b) const {
    return static_cast<double>(
        pairs.weight(static_cast<std::size_t>(row.labels[a]), pairs.place(row.labels[b])));
  }
};

/// V += amount at a pair of a row; V is symmetric.
template <class T>
void add_pair(HashedRows<T>& pairs, const PairRow& row, const ActivePair& pair, double amount) {
  const index_t k = row.labels[pair.ends[0]], l = row.labels[pair.ends[1]];
  pairs.add(static_cast<std::size_t>(k), pairs.place(l), static_cast<T>(amount));
  pairs.add(static_cast<std::size_t>(l), pairs.place(k), static_cast<T>(amount));
}

/// What is known of the row that is visited, by slot and by active pair.
struct RowVisit {
  std::vector<double> score;           ///< w'x of each slot, as p moves
  std::vector<double> pull;            ///< at the start, with the pairs of labels at one
  std::vector<double> values;          ///< V of each pair, as q moves
  std::vector<double> before, starts;  ///< p and q at the start
  std::vector<double> first_score, first_value;
  std::vector<std::uint8_t> is_active;  ///< of two slots: whether their pair is

  void remember(const PairRow& row) {
    before = row.p;
    first_score = score;
    first_value = values;
  }
};

/// V has moved since the last visit: moves the multipliers, so that q is drawn nowhere.
inline void settle(const PairRow& row, ActivePair& pair, double v) {
  double drawn = v - pair.up[0] - pair.up[1] + pair.down;
  if (drawn > 0.0 && pair.q < 1.0F) {
    const double less = std::min<double>(drawn, pair.down);
    pair.down -= static_cast<float>(less);
    drawn -= less;
    const bool is_tight[2] = {pair.q >= row.p[pair.ends[0]], pair.q >= row.p[pair.ends[1]]};
    const int n_tight = is_tight[0] + is_tight[1];
    for (int side = 0; side < 2 && n_tight > 0; ++side) {
      if (is_tight[side]) pair.up[side] += static_cast<float>(drawn / n_tight);
    }
  } else if (drawn < 0.0 && pair.q > 0.0F) {
    const double sum = static_cast<double>(pair.up[0]) + pair.up[1];
    const double less = std::min(-drawn, sum);
    for (int side = 0; side < 2 && sum > 0.0; ++side) {
      pair.up[side] -= static_cast<float>(less * pair.up[side] / sum);
    }
    if (pair.q <= row.p[pair.ends[0]] + row.p[pair.ends[1]] - 1.0) {
      pair.down += static_cast<float>(-drawn - less);
    }
  }
}

/// Whether a pair at its truth q pulls at its labels. Two labels at zero need each other.
inline bool is_drawn(const PairRow& row, const RowVisit& visit, std::size_t a, std::size_t b,
                     double q, double v) {
  if (v < 0.0) return q <= row.p[a] + row.p[b] - 1.0;
  if (q > 0.0 || row.p[a] > 0.0 || row.p[b] > 0.0) return v > 0.0;
  return v > 0.0 && visit.pull[a] + visit.pull[b] + 2.0 + v > 0.0;
}

/// Lets a pair in, unless it is inert.
inline bool admit_pair(PairRow& row, RowVisit& visit, std::size_t a, std::size_t b, double v) {
  const double q = row.truth(a) * row.truth(b);
  if (!is_drawn(row, visit, a, b, q, v) && is_between(q, row.p[a], row.p[b])) return false;
  ActivePair pair{{static_cast<std::uint32_t>(a), static_cast<std::uint32_t>(b)},
                  static_cast<float>(q),
                  {0.0F, 0.0F},
                  0.0F};
  const bool is_tight[2] = {q >= row.p[a], q >= row.p[b]};
  if (v > 0.0 && is_tight[0] == is_tight[1]) {
    pair.up[0] = pair.up[1] = static_cast<float>(0.5 * v);
  } else if (v > 0.0) {
    pair.up[is_tight[0] ? 0 : 1] = static_cast<float>(v);
  } else if (q <= row.p[a] + row.p[b] - 1.0) {
    pair.down = static_cast<float>(-v);
  }
  row.pairs.push_back(pair);
  visit.values.push_back(v);
  return true;
}

/// V of all active pairs, after those have entered that are no longer inert. Returns the pairs
/// looked at.
template <class Value>
offset_t admit_pairs(PairRow& row, RowVisit& visit, Value&& value) {
  const std::size_t n = row.labels.size();
  visit.is_active.assign(n * n, 0);
  for (const ActivePair& pair : row.pairs) visit.is_active[pair.ends[0] * n + pair.ends[1]] = 1;
  visit.values.clear();
  for (const ActivePair& pair : row.pairs)
    visit.values.push_back(value(row, pair.ends[0], pair.ends[1]));
  if (row.budget ==
      PairRow::kFewestSweeps) {  // else it would undo what the sweeps are about to find
    for (std::size_t e = 0; e < row.pairs.size(); ++e) settle(row, row.pairs[e], visit.values[e]);
  }
  for (std::size_t a = 0; a < n; ++a) {
    for (std::size_t b = a + 1; b < n; ++b) {
      if (visit.is_active[a * n + b] == 0 && admit_pair(row, visit, a, b, value(row, a, b)))
        visit.is_active[a * n + b] = 1;
    }
  }
  visit.starts.clear();
  for (const ActivePair& pair : row.pairs) visit.starts.push_back(pair.q);
  return static_cast<offset_t>(n * n / 2);
}

/// Pairs that were inert enter if `target(a, b, q)` moves them.
template <class Value, class Target>
void admit_moved(PairRow& row, RowVisit& visit, Value&& value, Target&& target) {
  const std::size_t n = row.labels.size();
  for (std::size_t a = 0; a < n; ++a) {
    for (std::size_t b = a + 1; b < n; ++b) {
      if (visit.is_active[a * n + b] != 0) continue;
      const double q = row.truth(a) * row.truth(b), to = target(a, b, q);
      if (q == to) continue;
      visit.is_active[a * n + b] = 1;
      row.pairs.push_back({{static_cast<std::uint32_t>(a), static_cast<std::uint32_t>(b)},
                           static_cast<float>(to),
                           {0.0F, 0.0F},
                           0.0F});
      visit.starts.push_back(q);
      visit.first_value.push_back(value(row, a, b));
    }
  }
}

/// Drops labels that are back at zero, with their pairs, and pairs that are inert. The search
/// brings them back, with the multipliers that V asks for; a row that finds no way up keeps its
/// own. `new_slot` is scratch.
inline void shrink(PairRow& row, std::vector<std::uint32_t>& new_slot) {
  constexpr std::uint32_t kGone = ~std::uint32_t{0};
  const bool may_leave = row.budget <= 2 * PairRow::kFewestSweeps;
  new_slot.assign(row.labels.size(), kGone);
  std::uint32_t n = 0;
  for (std::size_t s = 0; s < row.labels.size(); ++s) {
    if (s >= row.n_true && row.p[s] == 0.0 && may_leave) continue;
    new_slot[s] = n;
    row.labels[n] = row.labels[s];
    row.p[n] = row.p[s];
    ++n;
  }
  row.labels.resize(n);
  row.p.resize(n);
  std::erase_if(row.pairs, [&](ActivePair& pair) {
    const bool is_kept = new_slot[pair.ends[0]] != kGone && new_slot[pair.ends[1]] != kGone;
    for (auto& end : pair.ends) end = new_slot[end];
    return !is_kept || is_inert(row, pair);
  });
}

}  // namespace sublearn
