// Anytime improvement of an assignment: label moves, exact moves of large blocks, kicks.
//
// A local optimum of single label moves is improved by blocks: a random subset of the variables, of
// the whole graph or of a random connected ball, whose induced graph has buckets of bounded size,
// is maximised exactly given the rest (solvers/map/elimination.hpp). On sparse graphs such a block
// covers most of the variables. Kicks give a small ball random labels, shakes the best labels under
// random scores; both are repaired, and undone if they made things worse. Walks go by single labels
// through worse assignments and back to the best one they saw (solvers/map/tabu_walk.hpp). Which
// kind of move is tried next follows what each kind has gained for its work so far. When nothing
// gains any more, the best labels are scattered, improved again, and mixed with the best:
// elimination with two labels per variable, a fusion move (Lempitsky et al. 2010) that is exact
// where the difference is narrow.
//
// Work is counted in operations, not seconds: a run that is limited by work alone is reproducible.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "sublearn/core/factor_graph.hpp"
#include "sublearn/core/monitor.hpp"
#include "sublearn/core/rng.hpp"
#include "sublearn/core/types.hpp"
#include "sublearn/solvers/map/elimination.hpp"
#include "sublearn/solvers/map/elimination_plan.hpp"
#include "sublearn/solvers/map/scored_labels.hpp"
#include "sublearn/solvers/map/search_moves.hpp"
#include "sublearn/solvers/map/tabu_walk.hpp"

namespace sublearn {

/// The search ends at the first limit that it meets; it needs at least one.
struct MapSearchBudget {
  double work = std::numeric_limits<double>::infinity();  ///< operations
  std::optional<std::chrono::steady_clock::time_point> deadline{};
  const Monitor* monitor = nullptr;
  double target = std::numeric_limits<double>::infinity();  ///< a score that is good enough
  std::function<void(double score)> improved{};             ///< is told every better score
};

class MapSearch {
 public:
  /// The graph must be connected() and outlive the search.
  MapSearch(const FactorGraph& graph, Rng rng)
      : graph_(graph),
        current_(graph),
        elimination_(graph),
        rng_(rng),
        most_labels_(most_labels(graph)),
        moves_(graph.n_variables(), most_labels_, is_sparse(), step_work(graph)),
        walk_(graph) {}
  MapSearch(const FactorGraph& graph, std::uint64_t seed) : MapSearch(graph, Rng(seed)) {}

  /// Improves `labels` until the budget is used up; returns their score, never below the first.
  /// `candidates`, one list for each variable of the graph, restricts the labels of block moves
  /// (the current label is always allowed); an empty list means all labels.
  double improve(std::span<index_t> labels, const MapSearchBudget& budget,
                 const LabelLists* candidates = nullptr) {
    budget_ = &budget;
    candidates_ = candidates;
    current_.start(labels);
    best_.assign(labels.begin(), labels.end());
    best_score_ = top_score_ = current_.score();
    current_.push_all(rng_);
    climb();
    keep_best();
    optimal_ = false;
    if (!exhausted() && !solve_whole()) {
      measure_gaps();
      descend();
      while (!exhausted()) explore();
    }
    keep_best();
    std::copy(best_.begin(), best_.end(), labels.begin());
    return graph_.score(labels);
  }

  /// Operations of the last call.
  double work() const { return current_.work(); }

  /// Whether the last call solved the whole graph by elimination: the labels are optimal.
  bool optimal() const { return optimal_; }

 private:
  struct Scatter {
    double share;  ///< of the variables that get random labels
    double noise;  ///< or, if positive, strength of shaking
    double work = 0.0;
    double credit = 1.0;
  };
  static constexpr double kPatience = 300.0;

  void climb() {
    current_.climb([this] { return interrupted(); });
  }

  // ---- blocks ----------------------------------------------------------------------------------

  /// Whether planning a block of all variables is cheap enough.
  bool is_sparse() const { return graph_.scope.size() < 300000; }

  /// Solves the graph at once if its width is small.
  bool solve_whole() {
    optimal_ = false;
    if (!is_sparse() || too_wide_) return false;
    block_.resize(current_.labels().size());
    std::iota(block_.begin(), block_.end(), index_t{0});
    EliminationLimits limits;
    limits.bucket_cells = 1 << 24;  // 128 MB
    limits.total_cells = 2.5e8;     // about half a second
    limits.plan_work = 1e7;
    limits.monitor = budget_->monitor;
    limits.deadline = budget_->deadline;
    proposal_ = current_.labels();
    const bool restricted = candidates_ != nullptr && choose_labels(most_labels_);
    bool solved = false;
    for (const auto order : {EliminationOrder::min_size, EliminationOrder::min_fill}) {
      if (solved) break;
      limits.order = order;
      solved =
          elimination_.solve(block_, proposal_, limits, nullptr, restricted ? &lists_ : nullptr);
      current_.add_work(elimination_.work());
    }
    if (solved) adopt(elimination_.solved());
    optimal_ = solved && !restricted;
    too_wide_ = !solved && !restricted && !interrupted();
    return optimal_;
  }

  /// Moves until the last gain is as long ago as half the descent.
  void descend() {
    top_score_ = current_.score();
    const double begin = current_.work();
    double gained_at = current_.work();
    while (!exhausted()) {
      const double patience =
          std::max(kPatience * current_.refresh_work(), 0.5 * (gained_at - begin));
      if (current_.work() > gained_at + patience) return;
      if (try_move()) gained_at = current_.work();
    }
  }

  /// Descends from the best labels with a share of the variables thrown away, then takes from the
  /// result and from the best labels what is best of both.
  void explore() {
    Scatter& scatter = *std::min_element(
        scatters_.begin(), scatters_.end(),
        [](const Scatter& a, const Scatter& b) { return a.work / a.credit < b.work / b.credit; });
    const double work_before = current_.work();
    const double score_before = best_score_;
    current_.set_all(best_);
    measure_gaps();
    if (scatter.noise > 0.0) {
      shake_all(scatter.noise);
    } else {
      const double n = static_cast<double>(current_.labels().size());
      grow_ball(random_variable(), static_cast<index_t>(std::max(2.0, scatter.share * n)));
      kicked_ = block_;
      for (const index_t i : kicked_) current_.set(i, random_label(i));
    }
    climb();
    descend();
    fuse_with(best_);
    keep_best();
    if (best_score_ > score_before + current_.tolerance()) scatter.credit += 1.0;
    scatter.work += current_.work() - work_before;
  }

  /// Blocks that are best under random unary scores: other labels, but such as fit together.
  void shake_all(double strength) {
    for (int k = 0; k < 2; ++k) {
      take_whole_or_ball();
      begin_noise(strength);
      solve_block(std::max(2048.0, 2.0 * most_labels_), std::min<index_t>(most_labels_, 6));
    }
    elimination_.set_noise({});
  }

  /// Random scores for the block, measured by the median of what a variable would lose by its
  /// second label.
  void begin_noise(double strength) {
    noise_.resize(graph_.unary.size());
    for (const index_t i : block_) {
      double* noise = noise_.data() + graph_.unary_begin[at(i)];
      const index_t n_labels = graph_.domain[at(i)];
      for (index_t a = 0; a < n_labels; ++a) {
        noise[a] = strength * typical_gap_ * (2.0 * rng_.uniform() - 1.0);
      }
      current_.add_work(4.0 * n_labels);
    }
    elimination_.set_noise(noise_);
  }

  void measure_gaps() {
    gaps_.clear();
    for (index_t i = 0; i < graph_.n_variables(); ++i) {
      const auto own = current_.scores_of(i);
      double second = -std::numeric_limits<double>::infinity();
      for (std::size_t a = 0; a < own.size(); ++a) {
        if (a != at(current_[i])) second = std::max(second, own[a]);
      }
      if (own.size() > 1) gaps_.push_back(own[at(current_[i])] - second);
    }
    if (gaps_.empty()) return;
    const auto middle = gaps_.begin() + static_cast<std::ptrdiff_t>(gaps_.size() / 2);
    std::nth_element(gaps_.begin(), middle, gaps_.end());
    typical_gap_ = *middle;
  }

  void take_whole_or_ball() {
    if (is_sparse()) {
      block_.resize(current_.labels().size());
      std::iota(block_.begin(), block_.end(), index_t{0});
    } else {
      grow_ball(random_variable(), std::min<index_t>(graph_.n_variables(), 600));
    }
  }

  /// The best mixture of the current labels and others: elimination over the variables where they
  /// differ, each with two labels. Exact unless the differing set is wide.
  void fuse_with(std::span<const index_t> other) {
    block_.clear();
    lists_.clear();
    for (std::size_t i = 0; i < current_.labels().size(); ++i) {
      if (current_.labels()[i] == other[i]) continue;
      block_.push_back(static_cast<index_t>(i));
      lists_.labels.push_back(current_.labels()[i]);
      lists_.labels.push_back(other[i]);
      lists_.close();
    }
    if (block_.empty()) return;
    if (current_.score() < best_score_) {  // dropped variables keep the labels of the better
      proposal_.assign(other.begin(), other.end());
    } else {
      proposal_ = current_.labels();
    }
    EliminationLimits limits;
    limits.bucket_cells = 1 << 16;
    limits.drop = true;
    limits.monitor = budget_->monitor;
    limits.deadline = budget_->deadline;
    const bool solved = elimination_.solve(block_, proposal_, limits, &rng_, &lists_);
    current_.add_work(elimination_.work() + static_cast<double>(current_.labels().size()));
    if (!solved) return;
    current_.set_all(proposal_);
    climb();
  }

  bool try_move() {
    SearchMove& move = moves_.next(rng_);
    const double work_before = current_.work();
    if (move.kind == SearchMove::kick) {
      kick(move.variables);
    } else if (move.kind == SearchMove::shake) {
      shake_ball(move.variables);
    } else if (move.kind == SearchMove::walk) {
      walk(move.variables, static_cast<std::int64_t>(move.cells));
    } else {
      move_block(move);
    }
    current_.refresh_if_stale();
    keep_best();
    const double gain = current_.score() - top_score_;
    const bool gained = gain > current_.tolerance();
    move.record(current_.work() - work_before, gained ? gain : 0.0);
    if (gained) top_score_ = current_.score();
    return gained;
  }

  void move_block(const SearchMove& move) {
    index_t n_kept = 0;
    if (move.kind == SearchMove::whole) {
      n_kept = take_all();
    } else {
      grow_ball(random_variable(), move.variables);
    }
    solve_block(move.cells, move.labels, n_kept);
    climb();
  }

  /// block_ becomes all variables; every other time it begins with a random ball, whose size is
  /// returned: if these variables stay in the block, hubs that are mostly dropped get their turn.
  index_t take_all() {
    block_.clear();
    if (rng_.below(2) == 0) {
      const double size = std::exp(rng_.uniform() * std::log(0.2 * graph_.n_variables() + 2.0));
      grow_ball(random_variable(), static_cast<index_t>(size) + 1);
    }
    const std::size_t n_kept = block_.size();
    for (const index_t i : block_) in_ball_[at(i)] = 1;
    for (index_t i = 0; i < graph_.n_variables(); ++i) {
      if (n_kept == 0 || !in_ball_[at(i)]) block_.push_back(i);
    }
    for (std::size_t k = 0; k < n_kept; ++k) in_ball_[at(block_[k])] = 0;
    return static_cast<index_t>(n_kept);
  }

  void solve_block(double cells, index_t most_labels, index_t n_kept = 0) {
    EliminationLimits limits;
    limits.n_kept = n_kept;
    limits.bucket_cells = cells;
    limits.total_cells = 2e8;
    limits.plan_work = 3e8;
    limits.drop = true;
    limits.monitor = budget_->monitor;
    limits.deadline = budget_->deadline;
    const bool restricted = choose_labels(most_labels);
    proposal_ = current_.labels();
    const bool solved =
        elimination_.solve(block_, proposal_, limits, &rng_, restricted ? &lists_ : nullptr);
    current_.add_work(elimination_.work());
    if (solved) adopt(elimination_.solved());
  }

  void adopt(std::span<const index_t> solved) {
    for (const index_t i : solved) current_.set(i, proposal_[at(i)]);
  }

  /// Lists of at most `most` labels: the current one and the best given the others. False if no
  /// variable of the block is restricted.
  bool choose_labels(index_t most) {
    if (candidates_ == nullptr && most >= most_labels_) return false;
    lists_.clear();
    for (const index_t i : block_) {
      const index_t current = current_[i];
      const auto given =
          candidates_ == nullptr ? std::span<const index_t>{} : candidates_->of(at(i));
      ranked_.assign(given.begin(), given.end());
      if (given.empty()) {
        ranked_.resize(at(graph_.domain[at(i)]));
        std::iota(ranked_.begin(), ranked_.end(), index_t{0});
      }
      std::erase(ranked_, current);
      const auto own = current_.scores_of(i);
      const std::size_t n = std::min(ranked_.size(), at(most - 1));
      if (n < ranked_.size()) {
        std::nth_element(ranked_.begin(), ranked_.begin() + static_cast<std::ptrdiff_t>(n),
                         ranked_.end(),
                         [&](index_t a, index_t b) { return own[at(a)] > own[at(b)]; });
      }
      lists_.labels.push_back(current);
      lists_.labels.insert(lists_.labels.end(), ranked_.begin(),
                           ranked_.begin() + static_cast<std::ptrdiff_t>(n));
      lists_.close();
      current_.add_work(static_cast<double>(own.size()));
    }
    return true;
  }

  index_t random_variable() {
    return static_cast<index_t>(rng_.below(static_cast<std::uint32_t>(graph_.n_variables())));
  }

  /// block_ becomes a random connected set of up to `size` variables around `seed`.
  void grow_ball(index_t seed, index_t size) {
    if (in_ball_.size() != current_.labels().size()) in_ball_.assign(current_.labels().size(), 0);
    block_.assign(1, seed);
    in_ball_[at(seed)] = 1;
    for (index_t tries = 4 * size; tries > 0 && block_.size() < at(size); --tries) {
      const index_t i = block_[rng_.below(static_cast<std::uint32_t>(block_.size()))];
      const auto ends = graph_.ends_of(i);
      if (ends.empty()) break;
      const auto scope =
          graph_.scope_of(ends[rng_.below(static_cast<std::uint32_t>(ends.size()))].factor);
      const index_t j = scope[rng_.below(static_cast<std::uint32_t>(scope.size()))];
      if (in_ball_[at(j)]) continue;
      in_ball_[at(j)] = 1;
      block_.push_back(j);
    }
    for (const index_t i : block_) in_ball_[at(i)] = 0;
    current_.add_work(8.0 * static_cast<double>(block_.size()));
  }

  // ---- kicks -----------------------------------------------------------------------------------

  /// Random labels for a ball, repair around it while it is held, then freely; undone if worse.
  void kick(index_t size) {
    const double before = current_.score();
    current_.begin_trial();
    const index_t seed = random_variable();
    grow_ball(seed, size);
    kicked_ = block_;
    for (const index_t i : kicked_) {
      current_.set(i, random_label(i));
      current_.freeze(i);
    }
    climb();
    for (const index_t i : kicked_) {
      current_.thaw(i);
      current_.push(i);
    }
    climb();
    if (current_.score() < before - current_.tolerance()) repair(seed, size);
    current_.end_trial(current_.score() >= before - current_.tolerance());
  }

  void repair(index_t seed, index_t size) {
    grow_ball(seed, std::min(graph_.n_variables(), 8 * size + 8));
    solve_block(std::max(256.0, 2.0 * most_labels_), most_labels_ > 4 ? 4 : most_labels_);
    climb();
  }

  /// A ball is made best under noise, then the region around it without; undone if worse.
  void shake_ball(index_t size) {
    const double before = current_.score();
    current_.begin_trial();
    const index_t seed = random_variable();
    const index_t most_labels = std::min<index_t>(most_labels_, 6);
    grow_ball(seed, size);
    begin_noise(0.1 * std::exp(7.0 * rng_.uniform()));
    solve_block(256.0, most_labels);
    elimination_.set_noise({});
    for (int k = 0; k < 3 && current_.score() <= before; ++k) {
      climb();
      grow_ball(seed, std::min(graph_.n_variables(), 2 * size));
      solve_block(2048.0, most_labels);
    }
    climb();
    current_.end_trial(current_.score() >= before - current_.tolerance());
  }

  /// Through worse assignments; back to the best of the walk.
  void walk(index_t tenure, std::int64_t patience) {
    walk_.run(current_, tenure, patience, budget_->work - current_.work(), rng_,
              [this] { return interrupted(); });
    climb();
  }

  index_t random_label(index_t i) {
    const auto given = candidates_ == nullptr ? std::span<const index_t>{} : candidates_->of(at(i));
    if (!given.empty()) return given[rng_.below(static_cast<std::uint32_t>(given.size()))];
    return static_cast<index_t>(rng_.below(static_cast<std::uint32_t>(graph_.domain[at(i)])));
  }

  // ---- the end ---------------------------------------------------------------------------------

  void keep_best() {
    if (current_.score() <= best_score_ + current_.tolerance()) return;
    best_score_ = current_.score();
    best_ = current_.labels();
    if (budget_->improved) budget_->improved(best_score_);
  }

  bool exhausted() const {
    return current_.work() >= budget_->work || best_score_ >= budget_->target || interrupted();
  }

  bool interrupted() const {
    return (budget_->monitor != nullptr && budget_->monitor->stop_requested()) ||
           (budget_->deadline && std::chrono::steady_clock::now() >= *budget_->deadline);
  }

  /// Of a step of a walk: the lines of the factors of a variable, and the variables beside it.
  static double step_work(const FactorGraph& graph) {
    const double n = std::max<double>(1.0, graph.n_variables());
    const double n_labels = static_cast<double>(graph.unary.size()) / n;
    const double n_near = static_cast<double>(graph.scope.size()) / n;
    return 3.0 * n_near * (n_labels + 4.0) + 0.5 * n;
  }

  static index_t most_labels(const FactorGraph& graph) {
    index_t most = 1;
    for (const index_t k : graph.domain) most = std::max(most, k);
    return most;
  }

  const FactorGraph& graph_;
  ScoredLabels current_;
  MapElimination elimination_;
  Rng rng_;
  const MapSearchBudget* budget_ = nullptr;
  const LabelLists* candidates_ = nullptr;
  index_t most_labels_;
  SearchMoves moves_;
  TabuWalk walk_;
  std::vector<Scatter> scatters_{{0.02, 0.0}, {0.1, 0.0}, {0.4, 0.0}, {1.0, 0.0},  {0.0, 0.2},
                                 {0.0, 0.6},  {0.0, 2.0}, {0.0, 6.0}, {0.0, 20.0}, {0.0, 100.0}};
  bool optimal_ = false;
  bool too_wide_ = false;  ///< to be solved at once

  std::vector<index_t> best_, proposal_;
  double best_score_ = 0.0;
  double top_score_ = 0.0;  ///< best of the current descent
  double typical_gap_ = 0.0;
  std::vector<double> gaps_, noise_;
  std::vector<index_t> block_, kicked_, ranked_;
  std::vector<char> in_ball_;
  LabelLists lists_;
};

}  // namespace sublearn
