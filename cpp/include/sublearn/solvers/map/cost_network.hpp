// What is left of a factor graph when most labels are out: small tables of costs, all at least
// zero, and a lower bound that message passing raises.
//
//   cost(x) = lower + sum_i u_i(x_i) + sum_f [ c_f(x_f) - sum_i m_fi(x_i) ]
//
// holds in every state for the same cost(x), and all terms stay at least zero, so `lower` is a
// bound. A state is a value: branch and bound copies it.
//
// Used by: solvers/map/branch_search.hpp, neighbourhood_search.hpp, branch.hpp.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "sublearn/core/rng.hpp"
#include "sublearn/core/types.hpp"

namespace sublearn {

struct CostState {
  std::vector<double> unary;     ///< u_i(a), at CostNetwork::label_begin[i] + a
  std::vector<double> messages;  ///< m_fi(a), by ends of factors
  std::vector<index_t> alive;    ///< the first n_alive[i] of each variable's labels may be used
  std::vector<index_t> n_alive;
  std::vector<index_t> labels;  ///< decoded
  double lower = 0.0;

  /// Ends whose factor another variable has changed, by position in the scopes; variables with
  /// such an end; variables visited since they were decoded.
  std::vector<std::uint8_t> to_collect;
  std::vector<std::uint8_t> to_visit;
  std::vector<std::uint8_t> to_decode;

  std::size_t bytes() const {
    return sizeof(double) * (unary.size() + messages.size()) +
           sizeof(index_t) * (alive.size() + n_alive.size() + labels.size()) + to_collect.size() +
           2 * to_visit.size();
  }
};

class CostNetwork {
 public:
  std::vector<offset_t> label_begin{0};
  std::vector<double> unary;

  index_t n_variables() const { return static_cast<index_t>(label_begin.size()) - 1; }
  index_t n_factors() const { return static_cast<index_t>(scope_begin_.size()) - 1; }
  index_t labels_of(index_t i) const {
    return static_cast<index_t>(label_begin[i + 1] - label_begin[i]);
  }

  void add_variable(std::span<const double> costs) {
    unary.insert(unary.end(), costs.begin(), costs.end());
    label_begin.push_back(static_cast<offset_t>(unary.size()));
  }

  /// Costs of the joint states, last position fastest, at least zero.
  void add_factor(std::span<const index_t> scope, std::span<const double> costs) {
    for (const index_t i : scope) {
      scope_.push_back(i);
      message_begin_.push_back(message_begin_.back() + labels_of(i));
    }
    scope_begin_.push_back(static_cast<offset_t>(scope_.size()));
    cells_.insert(cells_.end(), costs.begin(), costs.end());
    cell_begin_.push_back(static_cast<offset_t>(cells_.size()));
  }

  /// To be called after the last factor.
  void connect() {
    ends_.assign(static_cast<std::size_t>(n_variables()), {});
    for (index_t f = 0; f < n_factors(); ++f) {
      const auto scope = scope_of(f);
      const auto [first, last] = std::minmax_element(scope.begin(), scope.end());
      for (std::size_t p = 0; p < scope.size(); ++p) {
        const index_t i = scope[p];
        ends_[static_cast<std::size_t>(i)].push_back(
            {f, static_cast<index_t>(p), i != *first, i != *last});
      }
    }
  }

  CostState start() const {
    CostState state;
    state.unary = unary;
    state.messages.assign(static_cast<std::size_t>(message_begin_.back()), 0.0);
    state.alive.resize(unary.size());
    for (index_t i = 0; i < n_variables(); ++i) {
      state.n_alive.push_back(labels_of(i));
      for (index_t a = 0; a < labels_of(i); ++a) {
        state.alive[static_cast<std::size_t>(label_begin[i] + a)] = a;
      }
    }
    state.labels.assign(static_cast<std::size_t>(n_variables()), 0);
    state.to_visit.assign(static_cast<std::size_t>(n_variables()), 1);
    state.to_decode = state.to_visit;
    state.to_collect.assign(scope_.size(), 1);
    return state;
  }

  std::span<const index_t> alive(const CostState& state, index_t i) const {
    return {state.alive.data() + label_begin[i],
            static_cast<std::size_t>(state.n_alive[static_cast<std::size_t>(i)])};
  }

  void fix(CostState& state, index_t i, index_t label) const {
    index_t* labels = state.alive.data() + label_begin[i];
    std::iter_swap(labels,
                   std::find(labels, labels + state.n_alive[static_cast<std::size_t>(i)], label));
    state.n_alive[static_cast<std::size_t>(i)] = 1;
    announce(state, i);
  }

  void remove(CostState& state, index_t i, index_t label) const {
    index_t* labels = state.alive.data() + label_begin[i];
    index_t& n = state.n_alive[static_cast<std::size_t>(i)];
    std::iter_swap(std::find(labels, labels + n, label), labels + n - 1);
    --n;
    announce(state, i);
  }

  /// Collects and distributes as solvers/map/messages.hpp does, at the variables whose factors have
  /// changed by more than `least_change`, and drops the labels that cannot lead below `upper`.
  /// False if nothing can. Adds the cells read to `work`.
  bool sweep(CostState& state, bool forward, double upper, double least_change, double& work) {
    const index_t n = n_variables();
    for (index_t k = 0; k < n; ++k) {
      const index_t i = forward ? k : n - 1 - k;
      const auto at = static_cast<std::size_t>(i);
      if (!state.to_visit[at]) continue;
      state.to_visit[at] = 0;
      state.to_decode[at] = 1;
      if (!visit(state, i, forward, upper, least_change, work)) return false;
    }
    return true;
  }

  /// Labels picked one after another, each the best given those before it, where something has
  /// changed. After a backward sweep.
  void decode(CostState& state) {
    for (index_t i = 0; i < n_variables(); ++i) {
      const auto at = static_cast<std::size_t>(i);
      if (!state.to_decode[at]) continue;
      state.to_decode[at] = 0;
      const index_t pick = best_label(state, i);
      if (pick == state.labels[at]) continue;
      state.labels[at] = pick;
      for (const End& end : ends_[at]) {
        for (const index_t j : scope_of(end.factor)) {
          if (j > i) state.to_decode[static_cast<std::size_t>(j)] = 1;
        }
      }
    }
  }

  double cost(std::span<const index_t> labels) const {
    double sum = 0.0;
    for (index_t i = 0; i < n_variables(); ++i) {
      sum += unary[static_cast<std::size_t>(label_begin[i] + labels[static_cast<std::size_t>(i)])];
    }
    for (index_t f = 0; f < n_factors(); ++f) sum += cells_[cell_of(f, labels)];
    return sum;
  }

  double n_cells() const { return static_cast<double>(cells_.size()); }

  /// A random variable of a random factor of i, i itself if it has none.
  index_t neighbour(index_t i, Rng& rng) const {
    const auto& ends = ends_[static_cast<std::size_t>(i)];
    if (ends.empty()) return i;
    const auto scope = scope_of(ends[rng.below(static_cast<std::uint32_t>(ends.size()))].factor);
    return scope[rng.below(static_cast<std::uint32_t>(scope.size()))];
  }

  /// blame(i) = what the factors of i cost under the decoded labels beyond `lower`, and its own.
  void blame(const CostState& state, std::vector<double>& blames) const {
    const std::span<const index_t> labels = state.labels;
    blames.assign(static_cast<std::size_t>(n_variables()), 0.0);
    for (index_t i = 0; i < n_variables(); ++i) {
      const auto at = static_cast<std::size_t>(i);
      blames[at] = state.unary[static_cast<std::size_t>(label_begin[i] + labels[at])];
    }
    for (index_t f = 0; f < n_factors(); ++f) {
      double rest = cells_[cell_of(f, labels)];
      const auto scope = scope_of(f);
      for (std::size_t p = 0; p < scope.size(); ++p) {
        rest -= message_at(state, f, p)[labels[static_cast<std::size_t>(scope[p])]];
      }
      for (const index_t i : scope) blames[static_cast<std::size_t>(i)] += rest;
    }
  }

 private:
  struct End {
    index_t factor;
    index_t position;
    bool has_earlier;  ///< of the factor's variables
    bool has_later;
  };
  struct Choice {
    const index_t* labels;
    index_t n;
    offset_t stride;
    const double* message;
  };

  std::span<const index_t> scope_of(index_t f) const {
    return {scope_.data() + scope_begin_[static_cast<std::size_t>(f)],
            static_cast<std::size_t>(scope_begin_[static_cast<std::size_t>(f) + 1] -
                                     scope_begin_[static_cast<std::size_t>(f)])};
  }
  double n_cells(index_t f) const {
    return static_cast<double>(cell_begin_[static_cast<std::size_t>(f) + 1] -
                               cell_begin_[static_cast<std::size_t>(f)]);
  }
  std::size_t place_of(index_t f, std::size_t p) const {
    return static_cast<std::size_t>(scope_begin_[static_cast<std::size_t>(f)]) + p;
  }
  offset_t message_offset(index_t f, std::size_t p) const { return message_begin_[place_of(f, p)]; }
  const double* message_at(const CostState& state, index_t f, std::size_t p) const {
    return state.messages.data() + message_offset(f, p);
  }
  const double* message_of(const CostState& state, const End& end) const {
    return message_at(state, end.factor, static_cast<std::size_t>(end.position));
  }
  double* message_of(CostState& state, const End& end) const {
    return state.messages.data() +
           message_offset(end.factor, static_cast<std::size_t>(end.position));
  }

  std::size_t cell_of(index_t f, std::span<const index_t> labels) const {
    offset_t cell = 0;
    for (const index_t i : scope_of(f)) {
      cell = cell * labels_of(i) + labels[static_cast<std::size_t>(i)];
    }
    return static_cast<std::size_t>(cell_begin_[static_cast<std::size_t>(f)] + cell);
  }

  void announce(CostState& state, index_t i) const {
    state.to_visit[static_cast<std::size_t>(i)] = 1;
    for (const End& end : ends_[static_cast<std::size_t>(i)]) announce_to(state, end);
  }
  /// Tells the other ends of a factor that it has changed.
  void announce_to(CostState& state, const End& end) const {
    const auto scope = scope_of(end.factor);
    for (std::size_t q = 0; q < scope.size(); ++q) {
      if (q == static_cast<std::size_t>(end.position)) continue;
      state.to_collect[place_of(end.factor, q)] = 1;
      state.to_visit[static_cast<std::size_t>(scope[q])] = 1;
    }
  }

  bool visit(CostState& state, index_t i, bool forward, double upper, double least_change,
             double& work) {
    const auto at = static_cast<std::size_t>(i);
    const auto& ends = ends_[at];
    const auto width = static_cast<std::size_t>(labels_of(i));
    before_.resize(std::max(before_.size(), ends.size() * width));
    int n_collect = 0, n_distribute = 0;
    for (std::size_t e = 0; e < ends.size(); ++e) {
      const End& end = ends[e];
      const double* own = message_of(state, end);
      std::copy(own, own + width, before_.data() + e * width);
      n_collect += forward ? end.has_earlier : end.has_later;
      n_distribute += forward ? end.has_later : end.has_earlier;
      std::uint8_t& has_news =
          state.to_collect[place_of(end.factor, static_cast<std::size_t>(end.position))];
      if (has_news) {
        project(state, end, i);
        work += 16.0 + n_cells(end.factor);
      }
      has_news = 0;
    }
    work += 4.0 * static_cast<double>(ends.size() * width);
    const index_t n_before = state.n_alive[at];
    if (!settle(state, i, upper)) return false;
    distribute(state, i, forward, 1.0 / std::max({1, n_collect, n_distribute}), n_distribute);
    const bool has_lost = state.n_alive[at] < n_before;
    for (std::size_t e = 0; e < ends.size(); ++e) {
      const double* own = message_of(state, ends[e]);
      const double* before = before_.data() + e * width;
      bool has_changed = has_lost;
      for (const index_t a : alive(state, i)) {
        has_changed = has_changed || std::abs(own[a] - before[a]) > least_change;
      }
      if (has_changed) announce_to(state, ends[e]);
    }
    state.to_visit[at] = 0;
    return true;
  }

  index_t best_label(const CostState& state, index_t i) {
    const double* costs = state.unary.data() + label_begin[i];
    best_.assign(costs, costs + labels_of(i));
    for (const End& end : ends_[static_cast<std::size_t>(i)]) {
      if (!end.has_earlier) continue;
      least_over_others(state, end, i, true);
      const double* own = message_of(state, end);
      for (const index_t a : alive(state, i)) {
        best_[static_cast<std::size_t>(a)] += least_[static_cast<std::size_t>(a)] - own[a];
      }
    }
    index_t pick = alive(state, i)[0];
    for (const index_t a : alive(state, i)) {
      const double gain =
          best_[static_cast<std::size_t>(pick)] - best_[static_cast<std::size_t>(a)];
      if (gain > 0.0 || (gain == 0.0 && a < pick)) pick = a;
    }
    return pick;
  }

  /// least_(a) = min over the other positions of cost less their messages, for labels that live.
  /// With `given_earlier`, variables before i have their decoded label only.
  void least_over_others(const CostState& state, const End& end, index_t i,
                         bool given_earlier = false) {
    const auto scope = scope_of(end.factor);
    least_.resize(std::max(least_.size(), static_cast<std::size_t>(labels_of(i))));
    if (scope.size() == 2 && !given_earlier) return least_of_pair(state, end, i);
    choices_.resize(scope.size());
    offset_t stride = 1, own_stride = 1;
    for (std::size_t p = scope.size(); p-- > 0;) {
      const auto j = static_cast<std::size_t>(scope[p]);
      const bool is_decided = given_earlier && scope[p] < i;
      choices_[p] = {is_decided ? &state.labels[j] : alive(state, scope[p]).data(),
                     is_decided ? 1 : state.n_alive[j], stride, message_at(state, end.factor, p)};
      if (p == static_cast<std::size_t>(end.position)) own_stride = stride;
      stride *= labels_of(scope[p]);
    }
    choices_.erase(choices_.begin() + end.position);
    const double* cells = cells_.data() + cell_begin_[static_cast<std::size_t>(end.factor)];
    for (const index_t a : alive(state, i)) {
      least_[static_cast<std::size_t>(a)] = least(cells + a * own_stride, choices_);
    }
  }

  /// The same for two positions, most factors of most graphs: no list of choices.
  void least_of_pair(const CostState& state, const End& end, index_t i) {
    const std::size_t q = end.position == 0 ? 1 : 0;
    const index_t j = scope_of(end.factor)[q];
    const offset_t own_stride = q == 1 ? labels_of(j) : 1, stride = q == 1 ? 1 : labels_of(i);
    const double* cells = cells_.data() + cell_begin_[static_cast<std::size_t>(end.factor)];
    const double* message = message_at(state, end.factor, q);
    const auto others = alive(state, j);
    for (const index_t a : alive(state, i)) {
      const double* row = cells + a * own_stride;
      double best = std::numeric_limits<double>::infinity();
      for (const index_t b : others) best = std::min(best, row[b * stride] - message[b]);
      least_[static_cast<std::size_t>(a)] = best;
    }
  }

  static double least(const double* cells, std::span<const Choice> choices) {
    const Choice& choice = choices.back();
    double best = std::numeric_limits<double>::infinity();
    for (index_t k = 0; k < choice.n; ++k) {
      const index_t b = choice.labels[k];
      const double* there = cells + b * choice.stride;
      const double value =
          choices.size() == 1 ? *there : least(there, choices.first(choices.size() - 1));
      best = std::min(best, value - choice.message[b]);
    }
    return best;
  }

  void project(CostState& state, const End& end, index_t i) {
    least_over_others(state, end, i);
    double* own = message_of(state, end);
    double* costs = state.unary.data() + label_begin[i];
    for (const index_t a : alive(state, i)) {
      const double least = least_[static_cast<std::size_t>(a)];
      costs[a] += least - own[a];
      own[a] = least;
    }
  }

  /// Moves the least cost of a variable into the bound; drops labels that reach `upper`.
  bool settle(CostState& state, index_t i, double upper) const {
    double* costs = state.unary.data() + label_begin[i];
    double least = std::numeric_limits<double>::infinity();
    for (const index_t a : alive(state, i)) least = std::min(least, costs[a]);
    state.lower += least;
    if (!(state.lower < upper)) return false;
    index_t* labels = state.alive.data() + label_begin[i];
    index_t& n = state.n_alive[static_cast<std::size_t>(i)];
    for (index_t k = n; k-- > 0;) {
      costs[labels[k]] -= least;
      if (state.lower + costs[labels[k]] >= upper) std::swap(labels[k], labels[--n]);
    }
    return true;
  }

  void distribute(CostState& state, index_t i, bool forward, double share, int n_shares) const {
    double* costs = state.unary.data() + label_begin[i];
    for (const End& end : ends_[static_cast<std::size_t>(i)]) {
      if (!(forward ? end.has_later : end.has_earlier)) continue;
      double* own = message_of(state, end);
      for (const index_t a : alive(state, i)) own[a] -= share * costs[a];
    }
    const double kept = std::max(0.0, 1.0 - share * n_shares);
    for (const index_t a : alive(state, i)) costs[a] *= kept;
  }

  std::vector<offset_t> scope_begin_{0};
  std::vector<index_t> scope_;
  std::vector<offset_t> cell_begin_{0};
  std::vector<double> cells_;
  std::vector<offset_t> message_begin_{0};
  std::vector<std::vector<End>> ends_;

  std::vector<double> least_;
  std::vector<double> best_;
  std::vector<double> before_;
  std::vector<Choice> choices_;
};

}  // namespace sublearn
