// A visit to a factor in GDMM for structural SVMs: search all states, correct the distribution q
// over the active ones, move the table. Used by: gdmm.hpp.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <span>
#include <type_traits>
#include <vector>

#include "sublearn/core/rng.hpp"
#include "sublearn/core/types.hpp"
#include "sublearn/prox/simplex.hpp"
#include "sublearn/search/feature_table.hpp"
#include "sublearn/search/heap_table.hpp"
#include "sublearn/search/line_table.hpp"
#include "sublearn/search/pair_search.hpp"
#include "sublearn/solvers/structured/away_step.hpp"
#include "sublearn/solvers/structured/task.hpp"

namespace sublearn {

/// The scores of a factor's states: the table of its template, scaled.
template <class Table>
struct ScaledTable {
  Table& table;
  double scale;

  double square() const { return scale * scale; }  ///< |phi|^2
};

/// Likewise, where the factor has features.
struct TableOfFeatures {
  FeatureTable& table;
  FeatureTable::Row features;

  double square() const {
    double sum = 0.0;
    for (const double z : features.values) sum += z * z;
    return sum;
  }
};

/// Pairs are searched in heaps (Yen et al., NIPS 2016, appendix C-1); where some factors have more
/// than two nodes, all tables are searched line by line; with features, or if so asked, all states.
template <std::size_t kEnds>
class FactorStep {
 public:
  static_assert(kEnds >= 2 && kEnds <= LineTable::kMostEnds);
  static constexpr bool is_pair = kEnds == 2;
  using Table = std::conditional_t<is_pair, HeapTable, LineTable>;
  using Factor = LearnFactor<kEnds>;
  using State = LearnState<kEnds>;
  using Labels = std::array<index_t, kEnds>;

  offset_t work = 0;

  FactorStep(index_t n_labels, const GdmmLearnSettings& settings)
      : n_labels_(n_labels), settings_(settings), uses_away_steps_(settings.uses_away_steps) {
    const auto n = static_cast<std::size_t>(n_labels);
    for (auto& slots : slot_of_) slots.assign(is_pair ? n : 0, kNoSlot);
    for (auto& costs : costs_) costs.assign(n, 0.0);
  }

  /// A table of zeros.
  static Table make_table(index_t n_labels, std::size_t n_ends) {
    if constexpr (is_pair) {
      return HeapTable(n_labels, n_labels);
    } else {
      return LineTable(n_labels, n_ends);
    }
  }

  /// q of less augmented Lagrangian, over the active states and the best of all.
  template <class Scores>
  void correct(Factor& factor, const Scores& scores, double C, double rho, Rng& rng) {
    fill_messages(factor, rho);
    admit(factor, search(factor, scores, rng));
    if (factor.states.size() > 1) take_steps(factor, scores, C);
  }

  /// By how much the best state beats the only one, the truth of an idle factor.
  template <class Scores>
  double violation(const Factor& factor, const Scores& scores, double rho, Rng& rng) {
    fill_messages(factor, rho);
    const Labels best = search(factor, scores, rng);
    double most = value(scores, best);
    for (std::size_t side = 0; side < factor.size(); ++side) {
      const auto& labels = factor.nodes[side]->labels;
      const auto slot = std::find(labels.begin(), labels.end(), best[side]) - labels.begin();
      if (slot < std::ssize(labels)) most -= message_[side][static_cast<std::size_t>(slot)];
    }
    return most - score(factor, scores, factor.states.front());
  }

 private:
  static constexpr int kSteps = 3;

  void fill_messages(const Factor& factor, double rho) {
    rho_ = rho;
    for (std::size_t side = 0; side < factor.size(); ++side) {
      const LearnNode& at = *factor.nodes[side];
      auto& message = message_[side];
      message.resize(at.labels.size());
      for (std::size_t s = 0; s < message.size(); ++s) {
        message[s] = at.message(s, factor.ends[side], rho);
      }
    }
  }

  static double value(const ScaledTable<Table>& scores, const Labels& labels) {
    if constexpr (is_pair) {
      return scores.scale * scores.table.pair(labels[0], labels[1]);
    } else {
      return scores.scale * scores.table.at(labels.data());
    }
  }
  double value(const TableOfFeatures& scores, const Labels& labels) const {
    return scores.table.at(scores.features, cell(scores, labels));
  }

  static void add(const ScaledTable<Table>& scores, const Labels& labels, double amount) {
    if constexpr (is_pair) {
      scores.table.add(labels[0], labels[1], scores.scale * amount);
    } else {
      scores.table.add(labels.data(), scores.scale * amount);
    }
  }
  void add(const TableOfFeatures& scores, const Labels& labels, double amount) const {
    scores.table.add(scores.features, cell(scores, labels), amount);
  }

  /// Tables of other arities than kEnds have fewer axes.
  std::size_t cell(const TableOfFeatures& scores, const Labels& labels) const {
    const auto n = static_cast<std::size_t>(n_labels_);
    std::size_t out = 0;
    for (std::size_t side = 0, cells = 1; cells < scores.table.n_cells(); ++side, cells *= n) {
      out = out * n + static_cast<std::size_t>(labels[side]);
    }
    return out;
  }

  // ---- search ----------------------------------------------------------------------------------

  /// The labels of the best of all states. Those that are active are a lower bound to begin with.
  Labels search(const Factor& factor, const ScaledTable<Table>& scores, Rng&) {
    if (settings_.has_full_search) {
      work += std::ssize(scores.table.values());
      return scan(factor, scores, scores.table.values(), 0, scores.scale);
    }
    if constexpr (is_pair) {
      return search_heaps(factor, scores);
    } else {
      return search_lines(factor, scores);
    }
  }

  /// Of the states whose first label is in a part that is drawn, and the active ones.
  Labels search(const Factor& factor, const TableOfFeatures& scores, Rng& rng) {
    const LabelPart part = draw_part(n_labels_, settings_.n_parts, rng);
    const std::size_t width = scores.table.n_cells() / static_cast<std::size_t>(n_labels_);
    scores.table.gather(scores.features, at(part.begin) * width, at(part.end) * width, cells_,
                        work);
    return scan(factor, scores, cells_, part.begin, 1.0);
  }

  template <class Scores>
  double score(const Factor& factor, const Scores& scores, const State& state) const {
    double sum = value(scores, factor.labels(state));
    for (std::size_t side = 0; side < factor.size(); ++side) {
      sum -= message_[side][state.slots[side]];
    }
    return sum;
  }

  /// The best of the states from the first one with label `first` on, whose scores are `cells`
  /// times `scale` less the messages, and of the active ones.
  template <class Scores>
  Labels scan(const Factor& factor, const Scores& scores, std::span<const double> cells,
              index_t first, double scale) {
    double most = -std::numeric_limits<double>::infinity();
    Labels best{};
    for (const State& state : factor.states) {
      const double found = score(factor, scores, state);
      if (found > most) {
        most = found;
        best = factor.labels(state);
      }
    }
    spread_costs(factor);
    const std::size_t n_ends = factor.size(), n = static_cast<std::size_t>(n_labels_);
    const double* last = costs_[n_ends - 1].data();
    Labels labels{};
    labels[0] = first;
    for (std::size_t begin = 0; begin < cells.size(); begin += n) {
      double cost = 0.0;
      for (std::size_t side = 0; side + 1 < n_ends; ++side) cost += costs_[side][at(labels[side])];
      for (std::size_t label = 0; label < n; ++label) {
        const double found = scale * cells[begin + label] - cost - last[label];
        if (found <= most) continue;
        most = found;
        best = labels;
        best[n_ends - 1] = static_cast<index_t>(label);
      }
      for (std::size_t side = n_ends - 1; side-- > 0;) {  // the next line
        if (++labels[side] < n_labels_) break;
        labels[side] = 0;
      }
    }
    clear_costs(factor);
    return best;
  }

  void spread_costs(const Factor& factor) {
    for (std::size_t side = 0; side < factor.size(); ++side) {
      const auto& labels = factor.nodes[side]->labels;
      for (std::size_t s = 0; s < labels.size(); ++s) {
        costs_[side][at(labels[s])] = message_[side][s];
      }
    }
  }
  void clear_costs(const Factor& factor) {
    for (std::size_t side = 0; side < factor.size(); ++side) {
      for (const index_t label : factor.nodes[side]->labels) costs_[side][at(label)] = 0.0;
    }
  }

  Labels search_heaps(const Factor& factor, const ScaledTable<Table>& scores) {
    SparseMessage messages[2];
    for (std::size_t side = 0; side < 2; ++side) {
      const auto& labels = factor.nodes[side]->labels;
      for (std::size_t s = 0; s < labels.size(); ++s) {
        slot_of_[side][at(labels[s])] = static_cast<index_t>(s);
      }
      messages[side] = {labels, message_[side], slot_of_[side],
                        labels.size() < static_cast<std::size_t>(n_labels_)};
    }
    BestCell known;
    for (const State& state : factor.states) {
      const Labels labels = factor.labels(state);
      known.offer(score(factor, scores, state), labels[0], labels[1]);
    }
    std::size_t unused = 0;
    const BestCell best =
        best_cell(scores.table, scores.scale, messages[0], messages[1], known, unused, work);
    for (std::size_t side = 0; side < 2; ++side) {
      for (const index_t label : factor.nodes[side]->labels) {
        slot_of_[side][at(label)] = kNoSlot;
      }
    }
    return {best.labels[0], best.labels[1]};
  }

  Labels search_lines(const Factor& factor, const ScaledTable<Table>& scores) {
    LineTable::Best known{-std::numeric_limits<double>::infinity(), {}};
    for (const State& state : factor.states) {
      const double found = score(factor, scores, state);
      if (found > known.value) known = {found, padded(factor.labels(state))};
    }
    spread_costs(factor);
    const auto best = scores.table.search(scores.scale, costs_, known, work);
    clear_costs(factor);
    Labels out{};
    std::copy_n(best.labels.begin(), factor.size(), out.begin());
    return out;
  }

  static LineTable::Labels padded(const Labels& labels) {
    LineTable::Labels out{};
    std::copy(labels.begin(), labels.end(), out.begin());
    return out;
  }

  void admit(Factor& factor, const Labels& labels) {
    State entrant{{}, 0.0};
    for (std::size_t side = 0; side < factor.size(); ++side) {
      LearnNode& at = *factor.nodes[side];
      entrant.slots[side] = static_cast<std::uint32_t>(at.slot(labels[side]));
      message_[side].resize(at.labels.size(), 0.0);
    }
    for (const State& state : factor.states) {
      if (state.slots == entrant.slots) return;
    }
    factor.states.push_back(entrant);
  }

  // ---- steps -----------------------------------------------------------------------------------

  /// Projected or away steps over the active states; the table follows at the end.
  template <class Scores>
  void take_steps(Factor& factor, const Scores& scores, double C) {
    auto& states = factor.states;
    const std::size_t n = states.size();
    const double curvature = C * scores.square();
    double Q = curvature + static_cast<double>(factor.size()) * rho_;
    theta_.resize(n);
    start_.resize(n);
    for (std::size_t s = 0; s < n; ++s) {
      theta_[s] = value(scores, factor.labels(states[s]));
      start_[s] = states[s].q;
    }
    for (std::size_t side = 0; side < factor.size(); ++side) {
      moved_[side].assign(message_[side].size(), 0.0);
    }
    gradient_.resize(n);
    change_.resize(n);
    bool goes_on = true;
    for (int step = 0; goes_on && (step < kSteps || uses_away_steps_); ++step) {
      fill_gradient(factor, curvature);
      goes_on = uses_away_steps_ ? step_away(factor, curvature) : step_down(factor, curvature, Q);
    }
    follow(factor, scores, C);
    std::erase_if(states, [](const State& state) { return state.q <= 0.0; });
  }

  /// The table and the marginals after q has moved from start_.
  template <class Scores>
  void follow(Factor& factor, const Scores& scores, double C) const {
    for (std::size_t s = 0; s < factor.states.size(); ++s) {
      const State& state = factor.states[s];
      const double change = state.q - start_[s];
      if (change == 0.0) continue;
      add(scores, factor.labels(state), -C * change);
      for (std::size_t side = 0; side < factor.size(); ++side) {
        factor.nodes[side]->marginal(state.slots[side], factor.ends[side]) += change;
      }
    }
  }

  void fill_gradient(const Factor& factor, double curvature) {
    const auto& states = factor.states;
    for (std::size_t s = 0; s < states.size(); ++s) {
      gradient_[s] = -theta_[s] + curvature * (states[s].q - start_[s]);
      for (std::size_t side = 0; side < factor.size(); ++side) {
        gradient_[s] += message_[side][states[s].slots[side]];
      }
    }
    work += static_cast<offset_t>(states.size());
  }

  /// A projected step (25), with the least of the doubled Q that bounds the Hessian along it. False
  /// if there is nothing to gain.
  bool step_down(Factor& factor, double curvature, double& Q) {
    double lowest = std::numeric_limits<double>::infinity(), mean = 0.0;
    for (std::size_t s = 0; s < factor.states.size(); ++s) {
      lowest = std::min(lowest, gradient_[s]);
      mean += factor.states[s].q * gradient_[s];
    }
    if (mean - lowest <= kFlatSlope) return false;
    while (!step_fits(factor, curvature, Q)) Q *= 2.0;
    move(factor);
    return true;
  }

  /// Algorithm 2 on one factor; whether the step dropped a state, so that another one is due.
  bool step_away(Factor& factor, double curvature) {
    point_.clear();
    for (const State& state : factor.states) point_.push_back(state.q);
    const AwayStep step = choose_step(point_, gradient_);
    if (step.slope <= kFlatSlope) return false;
    fill_direction(step, point_, change_);
    const bool is_drop = advance(step, step.length(bend_along(factor, curvature)), change_, point_);
    for (std::size_t s = 0; s < point_.size(); ++s) change_[s] = point_[s] - factor.states[s].q;
    move(factor);
    return is_drop;
  }

  /// q <- point_; the messages follow.
  void move(Factor& factor) {
    for (std::size_t s = 0; s < factor.states.size(); ++s) {
      State& state = factor.states[s];
      state.q = point_[s];
      for (std::size_t side = 0; side < factor.size(); ++side) {
        message_[side][state.slots[side]] += rho_ * change_[s];
      }
    }
  }

  bool step_fits(const Factor& factor, double curvature, double Q) {
    const std::size_t n = factor.states.size();
    point_.resize(n);
    for (std::size_t s = 0; s < n; ++s) point_[s] = factor.states[s].q - gradient_[s] / Q;
    project_simplex<double>(point_, 1.0, sorted_);
    double length = 0.0;
    for (std::size_t s = 0; s < n; ++s) {
      change_[s] = point_[s] - factor.states[s].q;
      length += change_[s] * change_[s];
    }
    return bend_along(factor, curvature) <= Q * length * (1.0 + 1e-12);
  }

  /// change' H change, H the Hessian of the factor: C s^2 and rho M'M.
  double bend_along(const Factor& factor, double curvature) {
    double length = 0.0, along = 0.0;
    for (const double change : change_) length += change * change;
    for (std::size_t side = 0; side < factor.size(); ++side) {
      auto& moved = moved_[side];
      const auto slot = [&](std::size_t s) { return factor.states[s].slots[side]; };
      for (std::size_t s = 0; s < change_.size(); ++s) moved[slot(s)] += change_[s];
      for (std::size_t s = 0; s < change_.size(); ++s) {
        along += moved[slot(s)] * moved[slot(s)];
        moved[slot(s)] = 0.0;
      }
    }
    return curvature * length + rho_ * along;
  }

  index_t n_labels_;
  GdmmLearnSettings settings_;
  bool uses_away_steps_;
  double rho_ = 1.0;
  std::array<std::vector<index_t>, kEnds> slot_of_;
  std::array<std::vector<double>, kEnds> message_, moved_, costs_;
  std::vector<double> theta_, start_, gradient_, change_, point_, sorted_, cells_;
};

}  // namespace sublearn
