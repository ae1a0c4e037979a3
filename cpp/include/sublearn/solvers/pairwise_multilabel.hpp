// GDMM for multilabel classification with a weight for every pair of labels (algorithms 1 and 3 of
// 001, appendix C-2).
//
//   min_{W, V}  1/2 |W|^2 + gamma/2 sum_{k<l} V_kl^2 + C sum_i L_i
//   L_i = max_y [f(x_i, y) - f(x_i, t_i) + Hamming(y, t_i)],
//   f(x, y) = sum_k y_k w_k'x + sum_{k<l} V_kl y_k y_l
//
// with the maximum relaxed to the linear program over p in [0, 1]^K (the share of y_k = 1) and q
// (the share of y_k = y_l = 1) with the constraints (3.35) of 000:
//
//   q <= p_k (multiplier up_0),   q <= p_l (up_1),   q >= p_k + p_l - 1 (down),   0 <= q <= 1.
//
// The dual, divided by C, is to minimise over the (p_i, q_i) of all rows
//
//   1/(2C) |W|^2 + gamma/(2C) |V|^2 - sum_i Hamming(p_i, t_i),
//   w_k = C sum_i (t_ik - p_ik) x_i,      V_kl = C/gamma sum_i (t_ik t_il - q_ikl),
//
// and the constraints enter as an augmented Lagrangian, (max(0, mu + rho h)^2 - mu^2) / (2 rho) for
// a constraint h <= 0. A block is one variable, so that its majoriser is the function itself: along
// p_ik the curvature is C |x_i|^2 and rho for each constraint that is violated or pressed, along
// q_ikl it is C / gamma and rho likewise. Both are piecewise quadratic and minimised exactly.
//
// Active sets. A row holds its true labels and the labels that the search let in; all others stay
// at their truth, zero. What the search asks of label l is whether the loss grows as p_l leaves
// zero and the q_l. of the row follow as is best for them:
//
//   w_l'x + 1 + sum_{m: p_m = 1} V_lm + sum_{m: 0 < p_m < 1} max(0, V_lm) > 0.
//
// Pairs of held labels are active unless they are inert, feasible at the truth and not drawn away
// from it; those begin with multipliers that keep them there, V > 0 split over the ends that could
// let q rise, V < 0 on the lower bound. Two labels that are worth it only together escape this
// search; `certify` finds them, since it solves the linear program over all labels.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "sublearn/core/labelled_rows.hpp"
#include "sublearn/core/monitor.hpp"
#include "sublearn/core/parallel_for.hpp"
#include "sublearn/core/rng.hpp"
#include "sublearn/core/top_k.hpp"
#include "sublearn/core/types.hpp"
#include "sublearn/core/views.hpp"
#include "sublearn/search/hashed_rows.hpp"
#include "sublearn/search/score_board.hpp"
#include "sublearn/solvers/label_quadratic.hpp"
#include "sublearn/solvers/pairwise_task.hpp"

namespace sublearn {

template <class T, class I>
class PairwiseMultilabel {
 public:
  PairwiseMultilabel(const LabelledRows<T, I>& data, index_t n_labels,
                     const PairwiseSettings& settings)
      : data_(data),
        settings_(settings),
        n_labels_(n_labels),
        rho_(settings.rho),
        rng_(settings.seed),
        weights_(static_cast<std::size_t>(data.X.n_cols()), n_labels, T{0}, Rng(settings.seed)),
        pairs_(static_cast<std::size_t>(n_labels), n_labels, T{0}, Rng(settings.seed)),
        board_(n_labels),
        pair_board_(n_labels) {
    start();
  }

  /// One visit to every row.
  PairwisePass pass(const Monitor* monitor) {
    PairwisePass out;
    out.rho = rho_;
    violated_ = moved_ = 0.0;
    n_constraints_ = 0;
    std::vector<index_t> order(rows_.size());
    std::iota(order.begin(), order.end(), index_t{0});
    rng_.shuffle(std::span<index_t>(order));
    for (const index_t i : order) {
      if (monitor != nullptr && monitor->stop_requested()) break;
      visit(static_cast<std::size_t>(i));
    }
    const double n = std::max<double>(1.0, static_cast<double>(n_constraints_));
    out.primal_residual = std::sqrt(violated_ / n);
    out.dual_residual = rho_ * std::sqrt(moved_ / n);
    for (const Row& row : rows_) {
      out.n_labels += static_cast<offset_t>(row.labels.size());
      out.n_pairs += static_cast<offset_t>(row.pairs.size());
    }
    out.work = std::exchange(work_, 0);
    return out;
  }

  /// Solves the linear program of each row, and lets in what that program uses and the row lacks.
  PairwiseCertificate certify(const Monitor* monitor) {
    refresh();
    PairwiseCertificate out;
    out.dual = dual_value();
    const Model model(*this);
    const double losses = relaxed_losses(model, monitor);
    out.primal = settings_.C * losses + 0.5 * squared_norm();
    out.is_complete = monitor == nullptr || !monitor->stop_requested();
    return out;
  }

  OwnedRows<T> weights() const { return sorted_rows(weights_); }
  OwnedRows<T> pairs() const { return sorted_rows(pairs_); }  ///< symmetric
  double rho() const { return rho_; }

 private:
  static constexpr double kEnter = 1e-4;           ///< gain from which a label is let in
  static constexpr std::size_t kMostEntries = 10;  ///< in one visit, or as many as there are labels
  static constexpr int kMostSweeps = 64;
  static constexpr double kShort = 0.1;   ///< a step that says that the sweeps led nowhere
  static constexpr offset_t kBlock = 16;  ///< rows of a block of certify

  using Pair = ActivePair;
  using Row = PairRow;
  static constexpr int kFewestSweeps = PairRow::kFewestSweeps;

  double pair_curvature() const { return settings_.C / settings_.gamma; }

  /// The truth everywhere: all weights zero.
  void start() {
    rows_.resize(static_cast<std::size_t>(data_.X.n_rows()));
    squares_.resize(rows_.size());
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const auto truth = data_.labels.of(static_cast<offset_t>(i));
      rows_[i].labels.assign(truth.begin(), truth.end());
      rows_[i].p.assign(truth.size(), 1.0);
      rows_[i].n_true = truth.size();
      double sum = 0.0;
      for (const T x : data_.X.row(static_cast<offset_t>(i)).values) {
        sum += static_cast<double>(x) * static_cast<double>(x);
      }
      squares_[i] = sum;
    }
    if (rho_ > 0.0) return;
    // Scores are measured in margins, which are 1, and p moves by scores over C |x|^2.
    const double sum = std::accumulate(squares_.begin(), squares_.end(), 0.0);
    rho_ = 1.0 + settings_.C * sum / std::max<double>(1.0, static_cast<double>(rows_.size()));
  }

  void visit(std::size_t i) {
    Row& row = rows_[i];
    search(i);
    if (settings_.has_pairs) admit_pairs(row);
    before_ = row.p;
    first_score_ = score_;
    first_value_ = values_;
    link(row);
    const double tolerance = tolerance_of(row);
    int n_sweeps = 0;
    for (bool is_moving = true; is_moving && n_sweeps < row.budget; ++n_sweeps) {
      double most = 0.0;
      for (std::size_t e = 0; e < row.pairs.size(); ++e) correct_pair(row, e);
      for (std::size_t s = 0; s < row.labels.size(); ++s) {
        most = std::max(most, correct_label(row, s, squares_[i], 0.01 * tolerance));
      }
      for (Pair& pair : row.pairs) most = std::max(most, update_multipliers(row, pair));
      is_moving = most > tolerance && !row.pairs.empty();
    }
    work_ += n_sweeps * static_cast<offset_t>(row.labels.size() + 3 * row.pairs.size());
    if (settings_.has_pairs) make_feasible(row, squares_[i]);
    move_weights(i);
    shrink(row);
  }

  /// From the point that satisfied all constraints towards the one that the sweeps found, made
  /// feasible by moving its q: as far as the dual falls, by an exact line search.
  void make_feasible(Row& row, double square) {
    for (Pair& pair : row.pairs) pair.q = clipped(row, pair);
    admit_moved(row, [&](std::size_t a, std::size_t b, double q) {
      return std::clamp(q, std::max(0.0, row.p[a] + row.p[b] - 1.0), std::min(row.p[a], row.p[b]));
    });
    double step = best_step(row, square);
    adapt(row, step);
    if (step <= kShort && row.budget == kMostSweeps) {
      aim_at_program(row);
      step = best_step(row, square);
    }
    if (step >= 1.0) return;
    for (std::size_t s = 0; s < row.labels.size(); ++s) {
      row.p[s] = static_cast<float>(before_[s] + step * (row.p[s] - before_[s]));
    }
    for (std::size_t e = 0; e < row.pairs.size(); ++e) {
      Pair& pair = row.pairs[e];
      pair.q = static_cast<float>(starts_[e] + step * (pair.q - starts_[e]));
      pair.q = clipped(row, pair);
    }
  }

  /// How far the dual rises from the first point to the present one, at most 1.
  double best_step(const Row& row, double square) const {
    double along = 0.0, length_p = 0.0, length_q = 0.0;
    for (std::size_t s = 0; s < row.labels.size(); ++s) {
      const double change = row.p[s] - before_[s];
      along += change * (first_score_[s] + 1.0 - 2.0 * row.truth(s));
      length_p += change * change;
    }
    for (std::size_t e = 0; e < row.pairs.size(); ++e) {
      const double change = row.pairs[e].q - starts_[e];
      along += change * first_value_[e];
      length_q += change * change;
    }
    const double bend = settings_.C * square * length_p + pair_curvature() * length_q;
    return along <= 0.0 ? 0.0 : std::min(1.0, along / std::max(bend, 1e-300));
  }

  /// The last resort: the solution of the row's linear program over its labels (algorithm 2 of 001,
  /// without away steps). The dual rises towards it unless the row is optimal.
  void aim_at_program(Row& row) {
    LabelQuadratic problem;
    const std::size_t n = row.labels.size();
    for (std::size_t s = 0; s < n; ++s) {
      problem.labels.push_back(static_cast<index_t>(s));
      problem.unary.push_back(first_score_[s] + 1.0 - 2.0 * row.truth(s));
      for (std::size_t r = 0; r < s; ++r) {
        const double v = value(row, r, s);
        if (v == 0.0) continue;
        problem.edges.push_back({{static_cast<index_t>(r), static_cast<index_t>(s)}, v});
      }
    }
    std::fill(row.p.begin(), row.p.end(), 0.0);
    problem.reduce();
    for (const index_t s : problem.on) row.p[static_cast<std::size_t>(s)] = 1.0;
    if (!problem.is_decided()) {
      const FactorGraph graph = problem.graph();
      RoofDuality roof(graph);
      roof.solve();
      const auto found = roof.labels();
      for (std::size_t k = 0; k < found.size(); ++k) {
        row.p[static_cast<std::size_t>(problem.labels[k])] =
            found[k] == RoofDuality::kOpen ? 0.5 : static_cast<double>(found[k]);
      }
    }
    const auto target = [&](std::size_t a, std::size_t b, double) {
      return value(row, a, b) > 0.0 ? std::min(row.p[a], row.p[b])
                                    : std::max(0.0, row.p[a] + row.p[b] - 1.0);
    };
    for (Pair& pair : row.pairs) {
      pair.q = static_cast<float>(target(pair.ends[0], pair.ends[1], 0.0));
    }
    admit_moved(row, target);
  }

  /// A row whose sweeps lead nowhere gets more of them, to a finer tolerance.
  static void adapt(Row& row, double step) {
    if (step <= kShort) row.budget = std::min(2 * row.budget, kMostSweeps);
    if (step >= 1.0) row.budget = std::max(3 * row.budget / 4, kFewestSweeps);
  }

  static double tolerance_of(const Row& row) {
    const double share = static_cast<double>(kFewestSweeps) / row.budget;
    return 1e-2 * share * share;
  }

  // ---- search ----------------------------------------------------------------------------------

  /// Scores of the slots, and the labels with most to gain as new slots.
  void search(std::size_t i) {
    Row& row = rows_[i];
    const auto x = data_.X.row(static_cast<offset_t>(i));
    for (std::size_t k = 0; k < x.size(); ++k) {
      const auto d = static_cast<std::size_t>(x.ids[k]);
      weights_.add_to(d, x.values[k], board_);
      work_ += weights_.n_weights(d);
    }
    if (settings_.has_pairs) add_pair_scores(row);
    score_.clear();
    pull_.clear();
    for (std::size_t s = 0; s < row.labels.size(); ++s) take_score(row.labels[s]);
    best_.start(most_entries(row));
    const T* scores = board_.scores();
    const T* pair_scores = pair_board_.scores();
    for (index_t l = 0; l < n_labels_; ++l) {
      const T gain = scores[l] + pair_scores[l] + T{1};
      if (gain > static_cast<T>(kEnter)) best_.offer(l, gain);
    }
    work_ += n_labels_;
    for (const auto& found : best_.finish()) {
      row.labels.push_back(found.id);
      row.p.push_back(0.0);
      take_score(found.id);
    }
    board_.clear();
    pair_board_.clear();
  }

  void take_score(index_t label) {
    const auto pairs = static_cast<double>(pair_board_[label]);
    score_.push_back(static_cast<double>(board_.take(label)));
    pull_.push_back(score_.back() + pairs);
  }

  void add_pair_scores(const Row& row) {
    for (std::size_t s = 0; s < row.labels.size(); ++s) {
      if (row.p[s] <= 0.0) continue;
      const auto label = static_cast<std::size_t>(row.labels[s]);
      work_ += pairs_.n_weights(label);
      if (row.p[s] >= 1.0) {
        pairs_.add_to(label, T{1}, pair_board_);
        continue;
      }
      pairs_.for_each_weight(label, [&](index_t l, T v) {
        if (v > T{0}) pair_board_.add(l, v);
      });
    }
  }

  // ---- pairs -----------------------------------------------------------------------------------

  /// V of all active pairs, after those have entered that are no longer inert.
  void admit_pairs(Row& row) {
    const std::size_t n = row.labels.size();
    is_active_.assign(n * n, 0);
    for (const Pair& pair : row.pairs) is_active_[pair.ends[0] * n + pair.ends[1]] = 1;
    values_.clear();
    for (const Pair& pair : row.pairs) values_.push_back(value(row, pair.ends[0], pair.ends[1]));
    if (row.budget == kFewestSweeps) {  // else it would undo what the sweeps are about to find
      for (std::size_t e = 0; e < row.pairs.size(); ++e) settle(row, row.pairs[e], values_[e]);
    }
    for (std::size_t a = 0; a < n; ++a) {
      for (std::size_t b = a + 1; b < n; ++b) {
        if (is_active_[a * n + b] == 0 && admit_pair(row, a, b)) is_active_[a * n + b] = 1;
      }
    }
    work_ += static_cast<offset_t>(n * n / 2);
    starts_.clear();
    for (const Pair& pair : row.pairs) starts_.push_back(pair.q);
  }

  /// Pairs that were inert enter if `target` moves them.
  template <class Target>
  void admit_moved(Row& row, Target&& target) {
    const std::size_t n = row.labels.size();
    for (std::size_t a = 0; a < n; ++a) {
      for (std::size_t b = a + 1; b < n; ++b) {
        if (is_active_[a * n + b] != 0) continue;
        const double q = row.truth(a) * row.truth(b), to = target(a, b, q);
        if (q == to) continue;
        is_active_[a * n + b] = 1;
        row.pairs.push_back({{static_cast<std::uint32_t>(a), static_cast<std::uint32_t>(b)},
                             static_cast<float>(to),
                             {0.0F, 0.0F},
                             0.0F});
        starts_.push_back(q);
        first_value_.push_back(value(row, a, b));
      }
    }
  }

  double value(const Row& row, std::size_t a, std::size_t b) const {
    return static_cast<double>(
        pairs_.weight(static_cast<std::size_t>(row.labels[a]), pairs_.place(row.labels[b])));
  }

  /// V has moved since the last visit: moves the multipliers, so that q is drawn nowhere.
  void settle(const Row& row, Pair& pair, double v) const {
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
  bool is_drawn(const Row& row, std::size_t a, std::size_t b, double q, double v) const {
    if (v < 0.0) return q <= row.p[a] + row.p[b] - 1.0;
    if (q > 0.0 || row.p[a] > 0.0 || row.p[b] > 0.0) return v > 0.0;
    return v > 0.0 && pull_[a] + pull_[b] + 2.0 + v > 0.0;
  }

  bool admit_pair(Row& row, std::size_t a, std::size_t b) {
    const double v = value(row, a, b);
    const double q = row.truth(a) * row.truth(b);
    if (!is_drawn(row, a, b, q, v) && is_between(q, row.p[a], row.p[b])) return false;
    Pair pair{{static_cast<std::uint32_t>(a), static_cast<std::uint32_t>(b)},
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
    values_.push_back(v);
    return true;
  }

  /// The active pairs of each slot.
  void link(const Row& row) {
    link_begin_.assign(row.labels.size() + 1, 0);
    for (const Pair& pair : row.pairs) {
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
  void correct_pair(Row& row, std::size_t e) {
    Pair& pair = row.pairs[e];
    const double p[2] = {row.p[pair.ends[0]], row.p[pair.ends[1]]};
    const double floor = p[0] + p[1] - 1.0, from = pair.q, curvature = pair_curvature();
    const auto slope = [&](double q) {
      return curvature * (q - from) - values_[e] + std::max(0.0, pair.up[0] + rho_ * (q - p[0])) +
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
    values_[e] -= curvature * (static_cast<double>(pair.q) - from);
  }

  // ---- labels ----------------------------------------------------------------------------------

  /// p of least augmented Lagrangian along one label: Newton steps inside a bracket. Returns how
  /// far it went.
  double correct_label(Row& row, std::size_t s, double square, double tolerance) {
    const double from = row.p[s], curvature = settings_.C * square;
    const double wish = score_[s] + 1.0 - 2.0 * row.truth(s);
    double low = 0.0, high = 1.0, p = from;
    for (int step = 0; step < kMostNewton; ++step) {
      double slope = curvature * (p - from) - wish, bend = curvature;
      for (std::size_t l = link_begin_[s]; l < link_begin_[s + 1]; ++l) {
        const Pair& pair = row.pairs[links_[l] / 2];
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
    score_[s] -= curvature * (p - from);  // w_k = C sum (t - p) x
    moved_ += (p - from) * (p - from) * static_cast<double>(link_begin_[s + 1] - link_begin_[s]);
    return std::abs(p - from);
  }

  /// mu <- max(0, mu + rho h); returns by how much a constraint is violated, or pressed in vain.
  double update_multipliers(const Row& row, Pair& pair) {
    const double p[2] = {row.p[pair.ends[0]], row.p[pair.ends[1]]};
    double most = 0.0;
    const auto push = [&](float& multiplier, double violation) {
      const double after = std::max(0.0, multiplier + rho_ * violation);
      const double change = (after - multiplier) / rho_;
      violated_ += change * change;
      most = std::max(most, std::abs(change));
      multiplier = static_cast<float>(after);
    };
    push(pair.up[0], pair.q - p[0]);
    push(pair.up[1], pair.q - p[1]);
    push(pair.down, p[0] + p[1] - 1.0 - pair.q);
    n_constraints_ += 3;
    return most;
  }

  // ---- weights ---------------------------------------------------------------------------------

  void move_weights(std::size_t i) {
    const Row& row = rows_[i];
    changes_.clear();
    for (std::size_t s = 0; s < row.labels.size(); ++s) {
      const double change = row.p[s] - before_[s];
      if (change == 0.0) continue;
      changes_.push_back({weights_.place(row.labels[s]), static_cast<T>(-settings_.C * change)});
    }
    const auto x = data_.X.row(static_cast<offset_t>(i));
    for (std::size_t k = 0; k < x.size() && !changes_.empty(); ++k) {
      weights_.add(static_cast<std::size_t>(x.ids[k]), changes_, x.values[k]);
    }
    work_ += static_cast<offset_t>(x.size() * changes_.size());
    for (std::size_t e = 0; e < row.pairs.size(); ++e) {
      const double change = static_cast<double>(row.pairs[e].q) - starts_[e];
      if (change != 0.0) add_pair(row, row.pairs[e], -pair_curvature() * change);
    }
  }

  void add_pair(const Row& row, const Pair& pair, double amount) {
    const index_t k = row.labels[pair.ends[0]], l = row.labels[pair.ends[1]];
    pairs_.add(static_cast<std::size_t>(k), pairs_.place(l), static_cast<T>(amount));
    pairs_.add(static_cast<std::size_t>(l), pairs_.place(k), static_cast<T>(amount));
  }

  // ---- active sets -----------------------------------------------------------------------------

  /// Drops labels that are back at zero, with their pairs, and pairs that are inert. The search
  /// brings them back, with the multipliers that V asks for; a row that finds no way up keeps its
  /// own.
  void shrink(Row& row) {
    const bool may_leave = row.budget <= 2 * kFewestSweeps;
    new_slot_.assign(row.labels.size(), kGone);
    std::uint32_t n = 0;
    for (std::size_t s = 0; s < row.labels.size(); ++s) {
      if (s >= row.n_true && row.p[s] == 0.0 && may_leave) continue;
      new_slot_[s] = n;
      row.labels[n] = row.labels[s];
      row.p[n] = row.p[s];
      ++n;
    }
    row.labels.resize(n);
    row.p.resize(n);
    std::erase_if(row.pairs, [&](Pair& pair) {
      const bool is_kept = new_slot_[pair.ends[0]] != kGone && new_slot_[pair.ends[1]] != kGone;
      for (auto& end : pair.ends) end = new_slot_[end];
      return !is_kept || is_inert(row, pair);
    });
  }

  // ---- certificate -----------------------------------------------------------------------------

  /// What all rows share while the programs are solved.
  struct Model {
    OwnedRows<T> pairs;
    std::vector<double> values;
    CsrView<double, offset_t> view;
    std::vector<offset_t> ids;
    std::vector<double> attraction;

    explicit Model(const PairwiseMultilabel& of) : pairs(of.pairs()) {
      values.assign(pairs.values.begin(), pairs.values.end());
      ids.assign(pairs.indices.begin(), pairs.indices.end());
      view.indptr = pairs.indptr.data();
      view.indices = ids.data();
      view.values = values.data();
      view.n_major = view.n_minor = of.n_labels_;
      attraction = LabelInference::attraction_of(view);
    }
  };

  /// V made anew, free of rounding that had gathered.
  void refresh() {
    pairs_.reset();
    for (const Row& row : rows_) {
      for (const Pair& pair : row.pairs) {
        const double change = pair.q - row.truth(pair);
        if (change != 0.0) add_pair(row, pair, -pair_curvature() * change);
      }
    }
  }

  double squared_norm() const {
    double norm = 0.0;
    for (std::size_t d = 0; d < weights_.n_rows(); ++d) {
      weights_.for_each_weight(d, [&](index_t, T w) { norm += static_cast<double>(w) * w; });
    }
    double pairs = 0.0;  // each of them twice
    for (std::size_t k = 0; k < pairs_.n_rows(); ++k) {
      pairs_.for_each_weight(k, [&](index_t, T v) { pairs += static_cast<double>(v) * v; });
    }
    return norm + 0.5 * settings_.gamma * pairs;
  }

  double dual_value() const {
    double loss = 0.0;
    for (const Row& row : rows_) {
      for (std::size_t s = 0; s < row.p.size(); ++s) loss += std::abs(row.p[s] - row.truth(s));
    }
    return settings_.C * loss - 0.5 * squared_norm();
  }

  /// The sum of the relaxed losses; rows get the labels that their programs use.
  double relaxed_losses(const Model& model, const Monitor* monitor) {
    const auto n_blocks = (static_cast<offset_t>(rows_.size()) + kBlock - 1) / kBlock;
    const int n_threads = effective_threads(n_blocks, settings_.n_threads);
    std::vector<double> losses(static_cast<std::size_t>(n_blocks), 0.0);
    std::vector<Evaluation> scratch(static_cast<std::size_t>(n_threads),
                                    Evaluation(model, n_labels_));
    parallel_for(n_blocks, n_threads, monitor, [&](offset_t block, int thread) {
      const auto end =
          std::min<std::size_t>(rows_.size(), static_cast<std::size_t>((block + 1) * kBlock));
      for (auto i = static_cast<std::size_t>(block * kBlock); i < end; ++i) {
        losses[static_cast<std::size_t>(block)] +=
            relaxed_loss(i, scratch[static_cast<std::size_t>(thread)]);
      }
    });
    return std::accumulate(losses.begin(), losses.end(), 0.0);
  }

  struct Evaluation {
    LabelInference inference;
    ScoreBoard<T> board;
    std::vector<double> unary;
    std::vector<index_t> support;

    Evaluation(const Model& model, index_t n_labels)
        : inference(model.view, model.attraction),
          board(n_labels),
          unary(static_cast<std::size_t>(n_labels)) {}
  };

  double relaxed_loss(std::size_t i, Evaluation& scratch) {
    Row& row = rows_[i];
    const auto x = data_.X.row(static_cast<offset_t>(i));
    for (std::size_t k = 0; k < x.size(); ++k) {
      weights_.add_to(static_cast<std::size_t>(x.ids[k]), x.values[k], scratch.board);
    }
    for (index_t l = 0; l < n_labels_; ++l) {
      scratch.unary[static_cast<std::size_t>(l)] = static_cast<double>(scratch.board[l]) + 1.0;
    }
    scratch.board.clear();
    double truth = 0.0;
    for (std::size_t s = 0; s < row.n_true; ++s) {
      double& unary = scratch.unary[static_cast<std::size_t>(row.labels[s])];
      truth += unary - 1.0;
      unary -= 2.0;
      for (std::size_t r = 0; r < s; ++r) truth += value(row, r, s);
    }
    const double most = scratch.inference.relaxed(scratch.unary, scratch.support);
    hold_best(row, scratch);
    return most + static_cast<double>(row.n_true) - truth;
  }

  /// Lets in what a program uses and its row lacks: as many labels as a visit would, those of
  /// highest score. In early passes V is far too large and programs use hundreds of labels, which
  /// would stay: on 1,000 rows of delicious 250 labels a row were held instead of 80.
  static void hold_best(Row& row, Evaluation& scratch) {
    auto& support = scratch.support;
    std::erase_if(support, [&](index_t l) {
      return std::find(row.labels.begin(), row.labels.end(), l) != row.labels.end();
    });
    const std::size_t n = std::min(support.size(), most_entries(row));
    const auto score = [&](index_t l) { return scratch.unary[static_cast<std::size_t>(l)]; };
    std::partial_sort(
        support.begin(), support.begin() + static_cast<std::ptrdiff_t>(n), support.end(),
        [&](index_t a, index_t b) { return std::pair(-score(a), a) < std::pair(-score(b), b); });
    row.labels.insert(row.labels.end(), support.begin(),
                      support.begin() + static_cast<std::ptrdiff_t>(n));
    row.p.resize(row.labels.size(), 0.0);
  }

  static std::size_t most_entries(const Row& row) { return std::max(kMostEntries, row.n_true); }

  static constexpr std::uint32_t kGone = ~std::uint32_t{0};
  static constexpr int kMostNewton = 8;

  const LabelledRows<T, I>& data_;
  PairwiseSettings settings_;
  index_t n_labels_;
  double rho_;
  Rng rng_;
  HashedRows<T> weights_, pairs_;  ///< W by feature, V by label
  std::vector<Row> rows_;
  std::vector<double> squares_;

  ScoreBoard<T> board_, pair_board_;
  TopK<T> best_;
  std::vector<double> score_, pull_;  ///< w'x of each slot; with the pairs of labels at one
  std::vector<double> before_, values_, starts_, first_score_,
      first_value_;  ///< p of slots; V and first q of pairs
  std::vector<std::uint8_t> is_active_;
  std::vector<std::size_t> link_begin_, next_;
  std::vector<std::uint32_t> links_, new_slot_;
  std::vector<typename HashedRows<T>::Change> changes_;
  double violated_ = 0.0, moved_ = 0.0;
  offset_t n_constraints_ = 0, work_ = 0;
};

}  // namespace sublearn
