// Sweeps over the active pairs and labels of a row (algorithm 3 of 001): one q or one p at a time
// is set to the minimum of the augmented Lagrangian, which is piecewise quadratic along it. Used
// by: pairwise_multilabel.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sublearn/core/types.hpp"
#include "sublearn/solvers/pairwise_active.hpp"
#include "sublearn/solvers/pairwise_task.hpp"

namespace sublearn {

class RowSweeps {
 public:
  double violated = 0.0;  ///< sum of squares of violations
  double moved = 0.0;     ///< of changes of p, over their pairs
  offset_t n_constraints = 0;
  offset_t work = 0;

  RowSweeps(double label_curvature, double pair_curvature)
      : label_curvature_(label_curvature), pair_curvature_(pair_curvature) {}

  /// As many sweeps as the row's budget allows, or until little moves. `square` is |x|^2.
  void run(PairRow& row, RowVisit& visit, double square, double rho) {
    rho_ = rho;
    curvature_ = label_curvature_ * square;
    link(row);
    const double tolerance = tolerance_of(row);
    int n_sweeps = 0;
    for (bool is_moving = true; is_moving && n_sweeps < row.budget; ++n_sweeps) {
      double most = 0.0;
      for (std::size_t e = 0; e < row.pairs.size(); ++e) correct_pair(row, visit, e);
      for (std::size_t s = 0; s < row.labels.size(); ++s) {
        most = std::max(most, correct_label(row, visit, s, 0.01 * tolerance));
      }
      for (ActivePair& pair : row.pairs) most = std::max(most, update_multipliers(row, pair));
      is_moving = most > tolerance && !row.pairs.empty();
    }
    work += n_sweeps * static_cast<offset_t>(row.labels.size() + 3 * row.pairs.size());
  }

 private:
  static constexpr int kMostNewton = 8;

  static double tolerance_of(const PairRow& row) {
    const double share = static_cast<double>(PairRow::kFewestSweeps) / row.budget;
    return 1e-2 * share * share;
  }

  /// The active pairs of each slot.
  void link(const PairRow& row) {
    link_begin_.assign(row.labels.size() + 1, 0);
    for (const ActivePair& pair : row.pairs) {
      for (const auto end : pair.ends) ++link_begin_[end + 1];
    }
    for (std::size_t s = 0; s < row.labels.size(); ++s) link_begin_[s + 1] += link_begin_[s];
    links_.resize(2 * row.pairs.size());
    next_.assign(link_begin_.begin(), link_begin_.end() - 1);
    for (std::uint32_t e = 0; e < row.pairs.size(); ++e) {
      for (std::uint32_t side = 0; side < 2; ++side) {
        links_[next_[row.pairs[e].ends[side]]++] = 2 * e + side;
      }
    }
  }

  /// q of least augmented Lagrangian: the root of a piecewise linear, increasing derivative with
  /// three kinks.
  void correct_pair(PairRow& row, RowVisit& visit, std::size_t e) {
    ActivePair& pair = row.pairs[e];
    const double p[2] = {row.p[pair.ends[0]], row.p[pair.ends[1]]};
    const double floor = p[0] + p[1] - 1.0, from = pair.q, curvature = pair_curvature_;
    const auto slope = [&](double q) {
      return curvature * (q - from) - visit.values[e] +
             std::max(0.0, pair.up[0] + rho_ * (q - p[0])) +
             std::max(0.0, pair.up[1] + rho_ * (q - p[1])) -
             std::max(0.0, pair.down + rho_ * (floor - q));
    };
    double low = 0.0, high = 1.0;
    double at_low = slope(low), at_high = slope(high);
    double q = at_low >= 0.0 ? 0.0 : 1.0;
    if (at_low < 0.0 && at_high > 0.0) {
      for (const double kink :
           {p[0] - pair.up[0] / rho_, p[1] - pair.up[1] / rho_, floor + pair.down / rho_}) {
        if (kink <= low || kink >= high) continue;
        const double at_kink = slope(kink);
        (at_kink > 0.0 ? high : low) = kink;
        (at_kink > 0.0 ? at_high : at_low) = at_kink;
      }
      q = low - at_low * (high - low) / (at_high - at_low);
    }
    pair.q = static_cast<float>(q);
    visit.values[e] -= curvature * (static_cast<double>(pair.q) - from);
  }

  /// p of least augmented Lagrangian along one label: Newton steps inside a bracket. Returns how
  /// far it went.
  double correct_label(PairRow& row, RowVisit& visit, std::size_t s, double tolerance) {
    const double from = row.p[s], curvature = curvature_;
    const double wish = visit.score[s] + 1.0 - 2.0 * row.truth(s);
    double low = 0.0, high = 1.0, p = from;
    for (int step = 0; step < kMostNewton; ++step) {
      double slope = curvature * (p - from) - wish, bend = curvature;
      for (std::size_t l = link_begin_[s]; l < link_begin_[s + 1]; ++l) {
        const ActivePair& pair = row.pairs[links_[l] / 2];
        const std::size_t side = links_[l] % 2;
        const double up = pair.up[side] + rho_ * (pair.q - p);
        const double down = pair.down + rho_ * (p + row.p[pair.ends[1 - side]] - 1.0 - pair.q);
        slope -= std::max(0.0, up);
        slope += std::max(0.0, down);
        bend += (up > 0.0 ? rho_ : 0.0) + (down > 0.0 ? rho_ : 0.0);
      }
      if (slope == 0.0) break;
      (slope > 0.0 ? high : low) = p;
      double next = bend > 0.0 ? p - slope / bend : (slope > 0.0 ? 0.0 : 1.0);
      if (next <= low) next = low <= 0.0 ? 0.0 : 0.5 * (low + high);
      if (next >= high) next = high >= 1.0 ? 1.0 : 0.5 * (low + high);
      const double change = next - p;
      p = next;
      if (std::abs(change) <= tolerance) break;
    }
    p = static_cast<float>(p);
    row.p[s] = p;
    visit.score[s] -= curvature * (p - from);  // w_k = C sum (t - p) x
    moved += (p - from) * (p - from) * static_cast<double>(link_begin_[s + 1] - link_begin_[s]);
    return std::abs(p - from);
  }

  /// mu <- max(0, mu + rho h); returns by how much a constraint is violated, or pressed in vain.
  double update_multipliers(const PairRow& row, ActivePair& pair) {
    const double p[2] = {row.p[pair.ends[0]], row.p[pair.ends[1]]};
    double most = 0.0;
    const auto push = [&](float& multiplier, double violation) {
      const double after = std::max(0.0, multiplier + rho_ * violation);
      const double change = (after - multiplier) / rho_;
      violated += change * change;
      most = std::max(most, std::abs(change));
      multiplier = static_cast<float>(after);
    };
    push(pair.up[0], pair.q - p[0]);
    push(pair.up[1], pair.q - p[1]);
    push(pair.down, p[0] + p[1] - 1.0 - pair.q);
    n_constraints += 3;
    return most;
  }

  double label_curvature_, pair_curvature_;
  double rho_ = 1.0, curvature_ = 1.0;
  std::vector<std::size_t> link_begin_, next_;
  std::vector<std::uint32_t> links_;
};

}  // namespace sublearn
