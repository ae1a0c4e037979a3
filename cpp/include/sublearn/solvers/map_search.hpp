// Anytime improvement of an assignment: label moves, exact moves of large blocks, kicks.
//
// A local optimum of single label moves is improved by blocks: a random subset of the variables, of
// the whole graph or of a random connected ball, whose induced graph has buckets of bounded size,
// is maximised exactly given the rest (map_elimination.hpp). On sparse graphs such a block covers
// most of the variables. Kicks give a small ball random labels, shakes the best labels under random
// scores; both are repaired, and undone if they made things worse. Which kind of move is tried next
// follows what each kind has gained for its work so far. When nothing gains any more, the best
// labels are scattered, improved again, and mixed with the best: elimination with two labels per
// variable, a fusion move (Lempitsky et al. 2010) that is exact where the difference is narrow.
//
// Work is counted in operations, not seconds: a run that is limited by work alone is reproducible.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "sublearn/core/factor_graph.hpp"
#include "sublearn/core/monitor.hpp"
#include "sublearn/core/parallel_for.hpp"
#include "sublearn/core/rng.hpp"
#include "sublearn/core/types.hpp"
#include "sublearn/solvers/map_elimination.hpp"

namespace sublearn {

/// The search ends at the first limit that it meets; it needs at least one.
struct MapSearchBudget {
  double work = std::numeric_limits<double>::infinity();  ///< operations
  std::optional<std::chrono::steady_clock::time_point> deadline{};
  const Monitor* monitor = nullptr;
  double target = std::numeric_limits<double>::infinity();  ///< a score that is good enough
};

class MapSearch {
 public:
  /// The graph must be connected() and outlive the search.
  MapSearch(const FactorGraph& graph, Rng rng)
      : graph_(graph), elimination_(graph), rng_(rng), frozen_(graph.domain.size(), 0) {
    for (const index_t k : graph.domain) most_labels_ = std::max(most_labels_, k);
    make_arms();
  }
  MapSearch(const FactorGraph& graph, std::uint64_t seed) : MapSearch(graph, Rng(seed)) {}

  /// Improves `labels` until the budget is used up; returns their score, never below the first.
  /// `candidates`, one list for each variable of the graph, restricts the labels of block moves
  /// (the current label is always allowed); an empty list means all labels.
  double improve(std::span<index_t> labels, const MapSearchBudget& budget,
                 const LabelLists* candidates = nullptr) {
    budget_ = &budget;
    candidates_ = candidates;
    spent_ = 0.0;
    labels_.assign(labels.begin(), labels.end());
    best_.assign(labels.begin(), labels.end());
    refresh();
    best_score_ = top_score_ = score_;
    climb_all();
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

  /// The best mixture of two assignments, in `labels`: exact unless the variables where they differ
  /// form a wide graph, never worse than the better of the two.
  double fuse(std::span<index_t> labels, std::span<const index_t> other) {
    const MapSearchBudget no_limit;
    budget_ = &no_limit;
    candidates_ = nullptr;
    optimal_ = false;
    spent_ = 0.0;
    labels_.assign(labels.begin(), labels.end());
    refresh();
    best_score_ = score_;
    best_ = labels_;
    waiting_.assign(labels_.size(), 0);
    queue_.clear();
    assign(other);
    keep_best();
    fuse_with(labels);
    keep_best();
    std::copy(best_.begin(), best_.end(), labels.begin());
    return graph_.score(labels);
  }

  /// Operations of the last call.
  double work() const { return spent_; }

  /// Whether the last call solved the whole graph by elimination: the labels are optimal.
  bool optimal() const { return optimal_; }

 private:
  /// A kind of move and what it has cost and brought. `labels` bounds the labels per variable.
  struct Arm {
    enum Kind : std::uint8_t { whole, ball, kick, shake } kind;
    double cells;
    index_t labels;
    index_t variables;
    double work;        ///< of a try, running mean; a guess at first
    double gain = 0.0;  ///< of a try, running mean
  };
  struct Scatter {
    double share;  ///< of the variables that get random labels
    double noise;  ///< or, if positive, strength of shaking
    double work = 0.0;
    double credit = 1.0;
  };
  struct Change {
    index_t variable, label;
  };

  static constexpr double kPatience = 300.0;

  static std::size_t at(offset_t i) { return static_cast<std::size_t>(i); }

  // ---- moves of one variable -------------------------------------------------------------------

  std::span<double> scores_of(index_t i) {
    return {scores_.data() + graph_.unary_begin[at(i)], at(graph_.domain[at(i)])};
  }

  /// Scores of every label of every variable, given the labels of the others.
  void refresh() {
    scores_ = graph_.unary;
    for (index_t f = 0; f < graph_.n_factors(); ++f) {
      const auto scope = graph_.scope_of(f);
      for (std::size_t p = 0; p < scope.size(); ++p) add_scores(f, p, 1.0);
    }
    score_ = graph_.score(labels_);
    refresh_work_ = static_cast<double>(graph_.scope.size() + scores_.size()) * 4.0;
    spent_ += refresh_work_;
    update_work_ = 0.0;
  }

  /// Adds sign times the row of factor f that the variable at position p sees to its scores.
  void add_scores(index_t f, std::size_t p, double sign) {
    const auto sum = scores_of(graph_.scope_of(f)[p]);
    graph_.add_line({f, static_cast<index_t>(p)}, labels_, sign, sum,
                    [](std::size_t a) { return static_cast<offset_t>(a); });
    update_work_ += static_cast<double>(sum.size()) + 4.0;
  }

  /// Gives i a label and brings score_ and the scores of its neighbours up to date.
  void set_label(index_t i, index_t label) {
    const index_t before = labels_[at(i)];
    if (label == before) return;
    const auto own = scores_of(i);
    score_ += own[at(label)] - own[at(before)];
    if (journaling_) journal_.push_back({i, before});
    const double work_before = update_work_;
    for (const FactorEnd& end : graph_.ends_of(i)) {
      const auto scope = graph_.scope_of(end.factor);
      for (std::size_t q = 0; q < scope.size(); ++q) {
        if (q == at(end.position)) continue;
        add_scores(end.factor, q, -1.0);
        labels_[at(i)] = label;
        add_scores(end.factor, q, 1.0);
        labels_[at(i)] = before;
        push(scope[q]);
      }
    }
    labels_[at(i)] = label;
    spent_ += update_work_ - work_before;
  }

  void push(index_t i) {
    if (waiting_[at(i)]) return;
    waiting_[at(i)] = 1;
    queue_.push_back(i);
  }

  void climb_all() {
    waiting_.assign(labels_.size(), 0);
    queue_.clear();
    for (index_t i = 0; i < graph_.n_variables(); ++i) push(i);
    rng_.shuffle(std::span(queue_));
    climb();
  }

  /// Label moves until no variable that is not frozen gains by one.
  void climb() {
    for (unsigned step = 1; !queue_.empty(); ++step) {
      if (step % 1024 == 0 && interrupted()) return;
      const index_t i = queue_.back();
      queue_.pop_back();
      waiting_[at(i)] = 0;
      if (frozen_[at(i)]) continue;
      const auto own = scores_of(i);
      spent_ += static_cast<double>(own.size());
      const auto best = std::max_element(own.begin(), own.end());
      if (*best > own[at(labels_[at(i)])] + tolerance()) {
        set_label(i, static_cast<index_t>(best - own.begin()));
      }
    }
  }

  double tolerance() const { return 1e-10 * (1.0 + std::abs(score_)); }

  // ---- blocks ----------------------------------------------------------------------------------

  /// Whether planning a block of all variables is cheap enough.
  bool is_sparse() const { return graph_.scope.size() < 300000; }

  void make_arms() {
    const index_t n = graph_.n_variables();
    std::vector<index_t> caps{most_labels_};
    for (const index_t cap : {index_t{12}, index_t{5}, index_t{2}}) {
      if (most_labels_ > cap + cap / 2) caps.push_back(cap);
    }
    for (const index_t cap : caps) {
      for (const double cells : {32.0, 256.0, 2048.0, 16384.0, 131072.0, 1048576.0}) {
        if (cells < 2.0 * cap * cap) continue;
        const double width = std::log(cells) / std::log(std::max(2.0, 1.0 * cap));
        if (is_sparse()) arms_.push_back({Arm::whole, cells, cap, n, guess(n, cells)});
        for (const index_t size : {index_t{12}, index_t{40}, index_t{150}, index_t{600}}) {
          if (size >= n || size <= 4.0 * width) continue;
          arms_.push_back({Arm::ball, cells, cap, size, guess(size, cells)});
        }
      }
    }
    for (const index_t size : {index_t{1}, index_t{3}, index_t{9}}) {
      if (size <= n) arms_.push_back({Arm::kick, 0.0, most_labels_, size, 500.0 * size});
    }
    for (const index_t size : {index_t{20}, index_t{80}, index_t{320}}) {
      if (size < n) arms_.push_back({Arm::shake, 2048.0, most_labels_, size, 5000.0 * size});
    }
  }

  static double guess(index_t n_variables, double cells) {
    return n_variables * (500.0 + 0.05 * cells);
  }

  /// Solves the graph at once if its width is small.
  bool solve_whole() {
    optimal_ = false;
    if (!is_sparse() || too_wide_) return false;
    block_.resize(labels_.size());
    std::iota(block_.begin(), block_.end(), index_t{0});
    EliminationLimits limits;
    limits.bucket_cells = 1 << 24;  // 128 MB
    limits.total_cells = 2.5e8;     // about half a second
    limits.plan_work = 1e7;
    limits.monitor = budget_->monitor;
    limits.deadline = budget_->deadline;
    proposal_ = labels_;
    const bool restricted = candidates_ != nullptr && choose_labels(most_labels_);
    bool solved = false;
    for (const auto order : {EliminationOrder::min_size, EliminationOrder::min_fill}) {
      if (solved) break;
      limits.order = order;
      solved =
          elimination_.solve(block_, proposal_, limits, nullptr, restricted ? &lists_ : nullptr);
      spent_ += elimination_.work();
    }
    if (solved) adopt(elimination_.solved());
    optimal_ = solved && !restricted;
    too_wide_ = !solved && !restricted && !interrupted();
    return optimal_;
  }

  /// Moves until the last gain is as long ago as half the descent.
  void descend() {
    top_score_ = score_;
    const double begin = spent_;
    double gained_at = spent_;
    while (!exhausted()) {
      const double patience = std::max(kPatience * refresh_work_, 0.5 * (gained_at - begin));
      if (spent_ > gained_at + patience) return;
      if (try_move()) gained_at = spent_;
    }
  }

  /// Descends from the best labels with a share of the variables thrown away, then takes from the
  /// result and from the best labels what is best of both.
  void explore() {
    Scatter& scatter = *std::min_element(
        scatters_.begin(), scatters_.end(),
        [](const Scatter& a, const Scatter& b) { return a.work / a.credit < b.work / b.credit; });
    const double work_before = spent_;
    const double score_before = best_score_;
    assign(best_);
    measure_gaps();
    if (scatter.noise > 0.0) {
      shake_all(scatter.noise);
    } else {
      const double n = static_cast<double>(labels_.size());
      grow_ball(random_variable(), static_cast<index_t>(std::max(2.0, scatter.share * n)));
      kicked_ = block_;
      for (const index_t i : kicked_) set_label(i, random_label(i));
    }
    climb();
    descend();
    fuse_with(best_);
    keep_best();
    if (best_score_ > score_before + tolerance()) scatter.credit += 1.0;
    scatter.work += spent_ - work_before;
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
    noise_.resize(scores_.size());
    for (const index_t i : block_) {
      double* noise = noise_.data() + graph_.unary_begin[at(i)];
      const index_t n_labels = graph_.domain[at(i)];
      for (index_t a = 0; a < n_labels; ++a) {
        noise[a] = strength * typical_gap_ * (2.0 * rng_.uniform() - 1.0);
      }
      spent_ += 4.0 * n_labels;
    }
    elimination_.set_noise(noise_);
  }

  void measure_gaps() {
    gaps_.clear();
    for (index_t i = 0; i < graph_.n_variables(); ++i) {
      const auto own = scores_of(i);
      double second = -std::numeric_limits<double>::infinity();
      for (std::size_t a = 0; a < own.size(); ++a) {
        if (a != at(labels_[at(i)])) second = std::max(second, own[a]);
      }
      if (own.size() > 1) gaps_.push_back(own[at(labels_[at(i)])] - second);
    }
    if (gaps_.empty()) return;
    const auto middle = gaps_.begin() + static_cast<std::ptrdiff_t>(gaps_.size() / 2);
    std::nth_element(gaps_.begin(), middle, gaps_.end());
    typical_gap_ = *middle;
  }

  void take_whole_or_ball() {
    if (is_sparse()) {
      block_.resize(labels_.size());
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
    for (std::size_t i = 0; i < labels_.size(); ++i) {
      if (labels_[i] == other[i]) continue;
      block_.push_back(static_cast<index_t>(i));
      lists_.labels.push_back(labels_[i]);
      lists_.labels.push_back(other[i]);
      lists_.close();
    }
    if (block_.empty()) return;
    if (score_ < best_score_) {  // dropped variables keep the labels of the better
      proposal_.assign(other.begin(), other.end());
    } else {
      proposal_ = labels_;
    }
    EliminationLimits limits;
    limits.bucket_cells = 1 << 16;
    limits.drop = true;
    limits.monitor = budget_->monitor;
    limits.deadline = budget_->deadline;
    const bool solved = elimination_.solve(block_, proposal_, limits, &rng_, &lists_);
    spent_ += elimination_.work() + static_cast<double>(labels_.size());
    if (!solved) return;
    assign(proposal_);
    climb();
  }

  /// Current labels become `labels`.
  void assign(std::span<const index_t> labels) {
    for (std::size_t i = 0; i < labels.size(); ++i) set_label(static_cast<index_t>(i), labels[i]);
  }

  bool try_move() {
    Arm& arm = next_arm();
    const double work_before = spent_;
    if (arm.kind == Arm::kick) {
      kick(arm.variables);
    } else if (arm.kind == Arm::shake) {
      shake_ball(arm.variables);
    } else {
      move_block(arm);
    }
    if (update_work_ > 2000.0 * refresh_work_) refresh();
    keep_best();
    arm.work += 0.2 * (spent_ - work_before + 50.0 - arm.work);
    const double gain = score_ - top_score_;
    const bool gained = gain > tolerance();
    // The root, since a repaired violation of a constraint counts for more than it is worth.
    arm.gain += 0.2 * ((gained ? std::cbrt(gain) : 0.0) - arm.gain);
    if (gained) top_score_ = score_;
    return gained;
  }

  /// Arms get work in proportion to what they gain per work, and a third of it in equal shares.
  Arm& next_arm() {
    double sum = 0.0;
    for (const Arm& arm : arms_) sum += arm.gain / arm.work;
    const double even = 0.5 * std::max(sum, 1e-300) / static_cast<double>(arms_.size());
    double total = 0.0;
    for (const Arm& arm : arms_) total += (arm.gain / arm.work + even) / arm.work;
    double draw = rng_.uniform() * total;
    for (Arm& arm : arms_) {
      draw -= (arm.gain / arm.work + even) / arm.work;
      if (draw < 0.0) return arm;
    }
    return arms_.back();
  }

  void move_block(const Arm& arm) {
    index_t n_kept = 0;
    if (arm.kind == Arm::whole) {
      n_kept = take_all();
    } else {
      grow_ball(random_variable(), arm.variables);
    }
    solve_block(arm.cells, arm.labels, n_kept);
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
    proposal_ = labels_;
    const bool solved =
        elimination_.solve(block_, proposal_, limits, &rng_, restricted ? &lists_ : nullptr);
    spent_ += elimination_.work();
    if (solved) adopt(elimination_.solved());
  }

  void adopt(std::span<const index_t> solved) {
    for (const index_t i : solved) set_label(i, proposal_[at(i)]);
  }

  /// Lists of at most `most` labels: the current one and the best given the others. False if no
  /// variable of the block is restricted.
  bool choose_labels(index_t most) {
    if (candidates_ == nullptr && most >= most_labels_) return false;
    lists_.clear();
    for (const index_t i : block_) {
      const index_t current = labels_[at(i)];
      const auto given =
          candidates_ == nullptr ? std::span<const index_t>{} : candidates_->of(at(i));
      ranked_.assign(given.begin(), given.end());
      if (given.empty()) {
        ranked_.resize(at(graph_.domain[at(i)]));
        std::iota(ranked_.begin(), ranked_.end(), index_t{0});
      }
      std::erase(ranked_, current);
      const auto own = scores_of(i);
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
      spent_ += static_cast<double>(own.size());
    }
    return true;
  }

  index_t random_variable() {
    return static_cast<index_t>(rng_.below(static_cast<std::uint32_t>(graph_.n_variables())));
  }

  /// block_ becomes a random connected set of up to `size` variables around `seed`.
  void grow_ball(index_t seed, index_t size) {
    if (in_ball_.size() != labels_.size()) in_ball_.assign(labels_.size(), 0);
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
    spent_ += 8.0 * static_cast<double>(block_.size());
  }

  // ---- kicks -----------------------------------------------------------------------------------

  /// Random labels for a ball, repair around it while it is held, then freely; undone if worse.
  void kick(index_t size) {
    const double before = score_;
    journaling_ = true;
    journal_.clear();
    const index_t seed = random_variable();
    grow_ball(seed, size);
    kicked_ = block_;
    for (const index_t i : kicked_) {
      set_label(i, random_label(i));
      frozen_[at(i)] = 1;
    }
    climb();
    for (const index_t i : kicked_) {
      frozen_[at(i)] = 0;
      push(i);
    }
    climb();
    if (score_ < before - tolerance()) repair(seed, size);
    journaling_ = false;
    if (score_ < before - tolerance()) roll_back();
  }

  void repair(index_t seed, index_t size) {
    grow_ball(seed, std::min(graph_.n_variables(), 8 * size + 8));
    solve_block(std::max(256.0, 2.0 * most_labels_), most_labels_ > 4 ? 4 : most_labels_);
    climb();
  }

  /// A ball is made best under noise, then the region around it without; undone if worse.
  void shake_ball(index_t size) {
    const double before = score_;
    journaling_ = true;
    journal_.clear();
    const index_t seed = random_variable();
    const index_t most_labels = std::min<index_t>(most_labels_, 6);
    grow_ball(seed, size);
    begin_noise(0.1 * std::exp(7.0 * rng_.uniform()));
    solve_block(256.0, most_labels);
    elimination_.set_noise({});
    for (int k = 0; k < 3 && score_ <= before; ++k) {
      climb();
      grow_ball(seed, std::min(graph_.n_variables(), 2 * size));
      solve_block(2048.0, most_labels);
    }
    climb();
    journaling_ = false;
    if (score_ < before - tolerance()) roll_back();
  }

  index_t random_label(index_t i) {
    const auto given = candidates_ == nullptr ? std::span<const index_t>{} : candidates_->of(at(i));
    if (!given.empty()) return given[rng_.below(static_cast<std::uint32_t>(given.size()))];
    return static_cast<index_t>(rng_.below(static_cast<std::uint32_t>(graph_.domain[at(i)])));
  }

  void roll_back() {
    for (std::size_t k = journal_.size(); k-- > 0;) {
      set_label(journal_[k].variable, journal_[k].label);
    }
    for (const index_t i : queue_) waiting_[at(i)] = 0;
    queue_.clear();
  }

  // ---- the end ---------------------------------------------------------------------------------

  void keep_best() {
    if (score_ <= best_score_ + tolerance()) return;
    best_score_ = score_;
    best_ = labels_;
  }

  bool exhausted() const {
    return spent_ >= budget_->work || best_score_ >= budget_->target || interrupted();
  }

  bool interrupted() const {
    return (budget_->monitor != nullptr && budget_->monitor->stop_requested()) ||
           (budget_->deadline && std::chrono::steady_clock::now() >= *budget_->deadline);
  }

  const FactorGraph& graph_;
  MapElimination elimination_;
  Rng rng_;
  const MapSearchBudget* budget_ = nullptr;
  const LabelLists* candidates_ = nullptr;
  index_t most_labels_ = 1;
  std::vector<Arm> arms_;
  std::vector<Scatter> scatters_{{0.02, 0.0}, {0.1, 0.0}, {0.4, 0.0}, {1.0, 0.0},  {0.0, 0.2},
                                 {0.0, 0.6},  {0.0, 2.0}, {0.0, 6.0}, {0.0, 20.0}, {0.0, 100.0}};
  double spent_ = 0.0, update_work_ = 0.0, refresh_work_ = 0.0;
  bool optimal_ = false;
  bool too_wide_ = false;  ///< to be solved at once

  std::vector<index_t> labels_, best_, proposal_;
  double score_ = 0.0, best_score_ = 0.0;
  double typical_gap_ = 0.0;
  double top_score_ = 0.0;  ///< best of the current descent
  std::vector<double> gaps_, noise_;
  std::vector<double> scores_;  ///< like graph.unary: score of each label given the neighbours
  std::vector<index_t> queue_, block_, kicked_, ranked_;
  std::vector<char> waiting_, frozen_, in_ball_;
  LabelLists lists_;
  bool journaling_ = false;
  std::vector<Change> journal_;
};

/// Improves each start on its own stream of random numbers; returns their scores. With a budget of
/// work (which each start has for itself) the result does not depend on the number of threads.
inline std::vector<double> improve_starts(const FactorGraph& graph, std::uint64_t seed,
                                          std::span<std::vector<index_t>> starts, int n_threads,
                                          const MapSearchBudget& budget,
                                          const LabelLists* candidates = nullptr) {
  std::vector<double> scores(starts.size());
  const Rng rng(seed);
  parallel_for(static_cast<offset_t>(starts.size()), n_threads, [&](offset_t k, int) {
    auto& labels = starts[static_cast<std::size_t>(k)];
    MapSearch search(graph, rng.split(static_cast<std::uint64_t>(k)));
    scores[static_cast<std::size_t>(k)] = search.improve(labels, budget, candidates);
  });
  return scores;
}

}  // namespace sublearn
