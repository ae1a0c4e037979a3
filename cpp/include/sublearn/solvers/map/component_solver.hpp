// MAP inference on one connected component, in steps that can be interrupted and gone on with.
//
//   start     elimination if it costs next to nothing, else label moves: good labels at once
//   exact     small width: elimination, and that is all
//   sweep     where dense messages are cheap, sweeps of them
//   branch    short branch and bound, also for scores far above the best known one, and searches
//   dual      GDMM (algorithms 8 and 9 of Yen 2018) lowers the bound to that of the linear program
//             and excludes labels, local search from its decoded points raises the score, in turns
//             of equal work
//   again     if many labels are out, all of it once more on what is left
//   search    local search, large neighbourhoods, branch and bound for the rest of the time
//
// Steps are counted in operations: two runs without a deadline do the same, however they were cut.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "sublearn/core/factor_graph.hpp"
#include "sublearn/core/types.hpp"
#include "sublearn/solvers/map/branch.hpp"
#include "sublearn/solvers/map/elimination.hpp"
#include "sublearn/solvers/map/gdmm.hpp"
#include "sublearn/solvers/map/gdmm_binary.hpp"
#include "sublearn/solvers/map/messages.hpp"
#include "sublearn/solvers/map/run.hpp"
#include "sublearn/solvers/map/search.hpp"

namespace sublearn {

class GraphSolver;

class ComponentSolver {
 public:
  using Report = MapRun::Report;

  /// The graph must be connected() and outlive the solver. `depth`: how often it was reduced.
  ComponentSolver(MapRun& run, const FactorGraph& graph, MapAnswer answer, int depth, Report report)
      : run_(&run),
        graph_(&graph),
        answer_(std::move(answer)),
        depth_(depth),
        report_(std::move(report)),
        stage_(first_stage(run.settings.parts)) {
    if (stage_ == Stage::search) begin_search(all_labels());
  }
  ~ComponentSolver();
  ComponentSolver(const ComponentSolver&) = delete;
  ComponentSolver& operator=(const ComponentSolver&) = delete;

  const MapAnswer& answer() const { return answer_; }
  bool is_done() const { return stage_ == Stage::done; }

  /// Goes on for about so many operations, or until the run has to stop.
  void go_on(double work) {
    const double end = run_->work + work;
    while (!is_done() && run_->work < end && !run_->should_stop()) {
      step(end - run_->work);
      if (run_->is_closed(answer_)) stage_ = Stage::done;
    }
    if (is_done()) forget();
  }

 private:
  enum class Stage { start, exact, sweep, branch, dual, again, search, done };

  static Stage first_stage(MapParts parts) {
    if (parts == MapParts::everything) return Stage::start;
    if (parts == MapParts::local_search) return Stage::search;
    return parts == MapParts::gdmm_and_search ? Stage::dual : Stage::sweep;
  }

  static constexpr int kMostDepth = 8;
  static constexpr double kSearchShare = 3.0;   ///< operations of search for one of branching
  static constexpr double kMoreThanDual = 2.0;  ///< and for one of GDMM after messages
  static constexpr double kFirstBranch = 1e7, kLastBranch = 2e8;  ///< cells read in a slice
  static constexpr index_t kMostOpen = 1000;   ///< open variables for which more of it may help
  static constexpr double kLeastShare = 1e-3;  ///< of the gap, above a target
  static constexpr double kFirstSlice = 2e8;   ///< operations of the first slice of the last search
  static constexpr double kManyNeighbours = 20.0;

  void step(double budget) {
    switch (stage_) {
      case Stage::start:
        return begin();
      case Stage::exact:
        if (!eliminate(2.5e8)) stage_ = has_cheap_messages() ? Stage::sweep : Stage::dual;
        return;
      case Stage::sweep:
        return sweep();
      case Stage::branch:
        return branch_first();
      case Stage::dual:
        return with_dual([&](auto& dual) { go_on_with(dual); });
      case Stage::again:
        return solve_again(budget);
      case Stage::search:
        return look_further(budget);
      case Stage::done:
        return;
    }
  }

  void tell(MapCredit credit) {
    run_->credit = credit;
    report_(answer_.score, answer_.bound);
  }
  MapSearch& search() {
    if (!search_) search_.emplace(*graph_, run_->next_rng());
    return *search_;
  }
  void forget();

  // ---- exact -----------------------------------------------------------------------------------

  void begin() {
    if (eliminate(2e6)) return;
    stage_ = Stage::exact;
    decoded_ = answer_.labels;
    MapSearchBudget budget = search_budget();
    budget.work = 0.0;
    MapSearch first(*graph_, run_->settings.seed);
    const double score = first.improve(decoded_, budget);
    run_->work += first.work();
    answer_.offer(*graph_, decoded_, score);
    tell(MapCredit::local_search);
  }

  /// Chains, trees and graphs of small width, if so many cells are enough; 5e8 take a second.
  bool eliminate(double total_cells) {
    EliminationLimits limits;
    limits.bucket_cells = 1 << 24;  // 128 MB
    limits.total_cells = total_cells;
    limits.plan_work = std::min(1e7, total_cells);
    limits.monitor = &run_->monitor;
    std::vector<index_t> all(graph_->domain.size());
    std::iota(all.begin(), all.end(), index_t{0});
    MapElimination elimination(*graph_);
    const bool is_solved = elimination.solve(all, answer_.labels, limits);
    run_->work += elimination.work();
    if (is_solved) {
      answer_.score = answer_.bound = graph_->score(answer_.labels);
      run_->credit = MapCredit::elimination;
      stage_ = Stage::done;
    }
    return is_solved;
  }

  bool has_cheap_messages() const {
    constexpr double kMostBytes = 256e6, kMostWork = 5e7;
    return static_cast<double>(MapMessages::memory_needed(*graph_)) <= kMostBytes &&
           static_cast<double>(MapMessages::work_per_sweep(*graph_)) <= kMostWork;
  }

  // ---- messages --------------------------------------------------------------------------------

  /// Sweeps until the bound stalls or as much work is done as some hundred iterations of GDMM
  /// take; a step ends after those whose point is decoded.
  void sweep() {
    constexpr double kMostWork = 5e8;
    constexpr int kMostSweeps = 400, kDecode = 4;
    if (!messages_) messages_.emplace(*graph_);
    const double work = std::max(1.0, static_cast<double>(MapMessages::work_per_sweep(*graph_)));
    const int most = run_->has_all_parts()
                         ? static_cast<int>(std::clamp(kMostWork / work, 4.0, double{kMostSweeps}))
                         : run_->settings.max_iter;
    bool decodes = false;
    while (!decodes) {
      const int n = ++n_sweeps_;
      const auto direction = n % 2 == 1 ? SweepDirection::forward : SweepDirection::backward;
      decodes = n % kDecode < 2;
      if (n > most || !messages_->sweep(direction, decodes, &run_->monitor)) {
        if (!run_->should_stop()) leave_messages();
        return;
      }
      run_->work += work;
    }
    decoded_.assign(messages_->labels().begin(), messages_->labels().end());
    answer_.offer(*graph_, decoded_, graph_->score(decoded_));
    answer_.bound = std::min(answer_.bound, std::max(certified(), answer_.score));
    tell(MapCredit::messages);
    if (run_->has_all_parts()) {
      climb(nullptr);
      tell(MapCredit::local_search);
    }
    if (messages_->stalled(answer_.score)) leave_messages();
  }

  void leave_messages() {
    stage_ = Stage::branch;
    if (run_->settings.parts == MapParts::neighbourhoods) begin_search(all_labels());
    if (run_->settings.parts == MapParts::messages) {
      run_->is_stalled = true;
      stage_ = Stage::done;
    }
  }

  /// The bound of the messages, with room for the rounding of its running sum.
  double certified() const {
    constexpr double kRounding = 1e-11;
    return messages_->bound() + kRounding * std::max(1.0, std::abs(messages_->bound()));
  }

  /// Label moves from the decoded point.
  void climb(const LabelLists* lists) {
    MapSearchBudget budget = search_budget();
    budget.work = 0.0;
    const double score = search().improve(decoded_, budget, lists);
    run_->work += search().work();
    answer_.offer(*graph_, decoded_, score);
  }

  // ---- branch and bound ------------------------------------------------------------------------

  /// A round: branch and bound in growing slices, search and targets far above the score in turns
  /// with it. Again if a better score has closed many labels, for then it prunes more.
  void branch_first() {
    if (lists_.begin.size() != graph_->domain.size() + 1) lists_ = all_labels();
    const offset_t n_before = count_open_labels();
    for (double work = kFirstBranch; work <= kLastBranch; work *= 4.0) {
      const index_t n_open = branch(work);
      if (run_->is_closed(answer_) || run_->should_stop()) return;
      use_cheaper_way(kSearchShare * work);
      if (run_->is_closed(answer_) || run_->should_stop()) return;
      if (n_open > kMostOpen) break;
      while (aim_high(2.0 * work)) {
      }
      if (run_->is_closed(answer_) || run_->should_stop()) return;
    }
    if (!is_worth_branching(n_before)) stage_ = Stage::dual;
  }

  /// Labels that the bounds of the messages leave open at the present score.
  offset_t count_open_labels() const {
    const auto bounds = messages_->label_bounds();
    const double score = answer_.score + run_->slack(answer_.score);
    return std::count_if(bounds.begin(), bounds.end(), [&](double b) { return b > score; });
  }

  /// Whether there are much fewer open labels than at an earlier try.
  bool is_worth_branching(offset_t n_before) const {
    constexpr double kFewer = 0.9;
    return static_cast<double>(count_open_labels()) < kFewer * static_cast<double>(n_before);
  }

  BranchSettings branch_settings(double work) const {
    BranchSettings settings;
    settings.work_limit = work;
    settings.deadline = run_->deadline;
    settings.tolerance = 0.5 * run_->settings.tol;
    return settings;
  }

  /// Branch and bound over what the messages leave open, within half the time that is left. Returns
  /// how many variables were open.
  index_t branch(double work) {
    const auto now = MapRun::Clock::now();
    if (messages_->n_sweeps() == 0 || run_->should_stop()) return 0;
    BranchSettings settings = branch_settings(work);
    settings.deadline = now + (run_->deadline - now) / 2;
    const BranchReport found = run_branch(settings);
    if (found.is_optimal) answer_.lower_bound_to(answer_.score + run_->slack(answer_.score));
    tell(MapCredit::branch_and_bound);
    return found.n_open;
  }

  BranchReport run_branch(const BranchSettings& settings) {
    const BranchReport found =
        MapBranch(*graph_, *messages_, answer_.labels, settings).run(&run_->monitor);
    run_->work += found.work;
    answer_.offer(*graph_, found.labels, found.score);
    answer_.lower_bound_to(found.bound);
    return found;
  }

  /// Branch and bound for scores far above the best known one. Where a broken constraint costs
  /// much more than all wishes together, a target that no assignment with one can reach makes
  /// every table a hard one: labels go out at once, and the search is that of a constraint
  /// problem. The lowest such target is tried, and the next one if that costs little. True if a
  /// better assignment was found.
  bool aim_high(double work) {
    const double score = answer_.score, bound = answer_.bound;
    weights_.resize(graph_->domain.size(), 1.0);
    double share = 0.25;
    while (share > kLeastShare && spread() < share * (bound - score)) share *= 0.25;
    for (int n = work > 5.0 * kFirstBranch ? 1 : 2; n > 0 && share > kLeastShare;
         --n, share *= 0.25) {
      if (messages_->n_sweeps() == 0 || run_->is_closed(answer_) || run_->should_stop()) break;
      BranchSettings settings = branch_settings(work);
      settings.target = bound - share * (bound - score);
      settings.weights = &weights_;
      run_branch(settings);
      tell(MapCredit::branch_and_bound);
      if (answer_.score > score) return true;
    }
    return false;
  }

  /// By how much the best and the worst state of a factor differ: nine of ten differ by less.
  double spread() {
    if (!spread_) {
      std::vector<double> spreads;
      for (index_t f = 0; f < graph_->n_factors(); ++f) {
        spreads.push_back(graph_->scale[at(f)] * spread_of(graph_->table(f)));
      }
      const auto nth =
          spreads.begin() + static_cast<std::ptrdiff_t>(0.9 * static_cast<double>(spreads.size()));
      std::nth_element(spreads.begin(), nth, spreads.end());
      spread_ = *nth;
    }
    return *spread_;
  }

  static double spread_of(const FactorTable& table) {
    if (table.kind == TableKind::low_rank) return 2.0 * table.upper_bound();
    double low = table.upper_bound();
    for (const double value : table.values) low = std::min(low, value);
    if (table.kind == TableKind::sparse) low = std::min(low, table.default_value);
    return table.upper_bound() - low;
  }

  /// Large neighbourhoods of the best assignment.
  void look_around(double work) {
    if (!messages_ || messages_->n_sweeps() == 0) return;
    if (!neighbourhood_rng_) neighbourhood_rng_ = run_->next_rng();
    MapBranch near(*graph_, *messages_, answer_.labels, branch_settings(work));
    const BranchReport found =
        near.look_around(neighbourhood_size_, *neighbourhood_rng_, &run_->monitor);
    run_->work += found.work;
    answer_.offer(*graph_, found.labels, found.score);
    answer_.bound = std::max(answer_.bound, answer_.score);
    tell(MapCredit::neighbourhoods);
  }

  // ---- the linear program ----------------------------------------------------------------------

  template <class Use>
  void with_dual(const Use& use) {
    const GdmmSettings settings{run_->settings.rho, run_->settings.eta, run_->settings.n_threads};
    if (is_binary_pairwise(*graph_)) {
      if (!binary_dual_) binary_dual_.emplace(*graph_, settings);
      use(*binary_dual_);
    } else {
      if (!dual_) dual_.emplace(*graph_, settings);
      use(*dual_);
    }
  }

  /// GDMM up to the next look at its bound and point, and a search.
  template <class Dual>
  void go_on_with(Dual& dual) {
    constexpr int kFirstCheck = 10, kLastCheck = 20;
    if (check_ == 0) {
      begin_dual();
      check_ = next_check_ = kFirstCheck;
    }
    bool is_solved = false, is_check = false;
    while (!is_check && iter_ < run_->settings.max_iter) {
      if (run_->should_stop()) return;
      dual.iterate(&run_->monitor);
      ++run_->n_iter;
      is_solved = is_converged(dual, ++iter_);
      is_check = iter_ >= next_check_ || is_solved;
    }
    if (is_check) {
      check_ = std::min(2 * check_, kLastCheck);
      next_check_ = iter_ + check_;
      if (!use_point(dual)) return;
    }
    if (is_solved || iter_ >= run_->settings.max_iter) leave_dual(dual);
  }

  void begin_dual() {
    search_.emplace(*graph_, run_->next_rng());
    decoded_.resize(answer_.labels.size());
  }

  /// Bound, decoded point, search, labels that are out. False if the run was stopped.
  template <class Dual>
  bool use_point(Dual& dual) {
    const double bound = dual.bound(&run_->monitor);
    if (run_->monitor.stop_requested()) return false;  // of part of the factors only
    dual.decode(decoded_);
    const offset_t work = dual.work() - std::exchange(dual_work_, dual.work());
    const LabelLists lists = candidates(dual);
    answer_.offer(*graph_, decoded_, graph_->score(decoded_));
    const double slack = run_->slack(answer_.score);
    answer_.bound = std::min(answer_.bound, std::max(bound, answer_.score + slack));
    run_->n_labels = dual.n_active_labels();
    run_->n_states = dual.n_active_states();
    run_->work += static_cast<double>(work);
    tell(MapCredit::gdmm);
    climb(&lists);
    improve((messages_ ? kMoreThanDual : 1.0) * static_cast<double>(work), &lists);
    if (!run_->is_closed(answer_))
      n_excluded_ += dual.exclude(bound, answer_.score + run_->slack(answer_.score));
    return true;
  }

  /// Residuals as small as they need to be for the bound to be within the tolerance.
  template <class Dual>
  static bool is_converged(const Dual& dual, int iter) {
    constexpr double kSmall = 1e-6;
    const GdmmResiduals& residuals = dual.residuals();
    return iter > 1 && residuals.primal < kSmall && residuals.dual < kSmall * dual.rho();
  }

  /// The LP is solved and a gap is left: the same again without the excluded labels, or search.
  template <class Dual>
  void leave_dual(const Dual& dual) {
    constexpr double kWorthIt = 0.1;  // share of the labels that must be gone for another round
    const bool is_smaller =
        static_cast<double>(n_excluded_) > kWorthIt * static_cast<double>(graph_->unary.size());
    if (run_->has_all_parts() && depth_ < kMostDepth && is_smaller) {
      begin_again(without_excluded(dual));
      stage_ = Stage::again;
    } else {
      begin_search(candidates(dual));
    }
    dual_.reset();
    binary_dual_.reset();
  }

  void begin_search(LabelLists lists) {
    lists_ = std::move(lists);
    const double most = run_->settings.search_work;
    slice_ = has_limit() ? kFirstSlice : std::min(kFirstSlice, most);
    branching_helps_ = run_->has_all_parts() && messages_.has_value();
    stage_ = slice_ > 0.0 ? Stage::search : Stage::done;
  }

  /// No variable is restricted.
  LabelLists all_labels() const {
    LabelLists lists;
    for (index_t i = 0; i < graph_->n_variables(); ++i) lists.close();
    return lists;
  }

  bool has_limit() const { return std::isfinite(run_->settings.time_limit); }

  /// For variables of many labels those that the dual solution uses; all labels for the others.
  template <class Dual>
  LabelLists candidates(const Dual& dual) const {
    constexpr std::size_t kAll = 32, kMost = 12;
    LabelLists lists;
    for (index_t i = 0; i < graph_->n_variables(); ++i) {
      if constexpr (requires { dual.candidates(i); }) {
        if (static_cast<std::size_t>(graph_->domain[at(i)]) > kAll) {
          const auto labels = dual.candidates(i);
          const auto n = static_cast<std::ptrdiff_t>(std::min(kMost, labels.size()));
          lists.labels.insert(lists.labels.end(), labels.begin(), labels.begin() + n);
        }
      }
      lists.close();
    }
    return lists;
  }

  /// Unary scores of excluded labels fall so low that a reduction sees that they are out.
  template <class Dual>
  FactorGraph without_excluded(const Dual& dual) const {
    FactorGraph graph = *graph_;
    const double fall = 1.0 + 2.0 * (MapAnswer::first(graph, answer_.labels).bound - answer_.score);
    for (index_t i = 0; i < graph.n_variables(); ++i) {
      const auto keep = dual.remaining(i);
      const auto unary = graph.unary_of(i);
      std::size_t next = 0;
      for (std::size_t label = 0; label < unary.size(); ++label) {
        if (next < keep.size() && keep[next] == static_cast<index_t>(label)) {
          ++next;
        } else {
          unary[label] -= fall;
        }
      }
    }
    return graph;
  }

  void begin_again(FactorGraph smaller);
  void solve_again(double budget);

  // ---- the search ------------------------------------------------------------------------------

  MapSearchBudget search_budget() {
    MapSearchBudget budget;
    budget.monitor = &run_->monitor;
    budget.deadline = run_->deadline;
    return budget;
  }

  /// The search from the best assignment.
  void improve(double work, const LabelLists* lists) {
    MapSearchBudget budget = search_budget();
    budget.work = work;
    budget.target = answer_.bound;
    const double begin = run_->work;
    run_->credit = MapCredit::local_search;
    budget.improved = [&](double score) {
      run_->work = begin + search().work();
      report_(score, answer_.bound);
    };
    answer_.score = search().improve(answer_.labels, budget, lists);
    run_->work = begin + search().work();
    const bool is_optimal = run_->has_all_parts() && search().optimal();
    if (is_optimal) answer_.bound = answer_.score;
    answer_.bound = std::max(answer_.bound, answer_.score);
    tell(is_optimal ? MapCredit::elimination : MapCredit::local_search);
  }

  /// What a way to search has cost and how often it has gained.
  struct Way {
    double credit;
    double work = kFirstSlice;
    double price() const { return work / credit; }
  };

  /// A slice of the search; slices double, the last one is cut by time or work. Branch and bound
  /// after each while it gets somewhere or has a better score to start from.
  void look_further(double budget) {
    const double gap = answer_.bound - answer_.score;
    const double begin = run_->work, slice = std::min(slice_, budget);
    use_cheaper_way(slice);
    if (run_->has_all_parts() && messages_ && !run_->is_closed(answer_) &&
        (branching_helps_ || is_worth_branching(n_open_labels_))) {
      n_open_labels_ = count_open_labels();
      branch(slice);
      branching_helps_ = answer_.bound - answer_.score <= 0.99 * gap;
    }
    spent_ += std::max(slice, 1.0);
    slice_ = std::max(slice_, 2.0 * slice);
    if (!has_limit()) slice_ = std::min(slice_, run_->settings.search_work - spent_);
    const bool is_stuck = run_->work <= begin && !run_->should_stop();
    if (slice_ <= 0.0 || is_stuck) stage_ = Stage::done;
  }

  /// Moves of blocks are best where variables have few neighbours, and lose by being interrupted;
  /// propagation has its chance where they have many.
  void use_cheaper_way(double work) {
    if (!messages_) return improve(work, &lists_);
    if (run_->settings.parts == MapParts::neighbourhoods) return look_around(work);
    const double ends = static_cast<double>(graph_->scope.size());
    const double n_near = ends / static_cast<double>(graph_->domain.size());
    if (neighbourhoods_.credit == 0.0) {
      neighbourhoods_.credit = std::min(1.0, std::pow(n_near / kManyNeighbours, 2.0));
    }
    const double turn = n_near < 0.5 * kManyNeighbours ? work : std::max(work / 8.0, kFirstBranch);
    for (double spent = 0.0; spent < work && !run_->is_closed(answer_); spent += turn) {
      if (run_->should_stop()) return;
      const double score = answer_.score;
      Way& way = moves_.price() <= neighbourhoods_.price() ? moves_ : neighbourhoods_;
      if (&way == &moves_) {
        improve(turn, &lists_);
      } else {
        look_around(turn);
      }
      if (answer_.score > score + run_->slack(score)) way.credit += 1.0;
      way.work += turn;
    }
  }

  MapRun* run_;
  const FactorGraph* graph_;
  MapAnswer answer_;
  int depth_;
  Report report_;
  Stage stage_;

  std::optional<MapSearch> search_;
  std::vector<index_t> decoded_;
  LabelLists lists_;

  std::optional<MapMessages> messages_;
  int n_sweeps_ = 0;
  std::vector<double> weights_;  ///< of variables in branch and bound
  std::optional<double> spread_;
  std::optional<Rng> neighbourhood_rng_;
  double neighbourhood_size_ = 8.0;

  std::optional<GdmmBinary> binary_dual_;
  std::optional<GdmmMap> dual_;
  int iter_ = 0, check_ = 0, next_check_ = 0;
  offset_t dual_work_ = 0, n_excluded_ = 0;

  std::unique_ptr<FactorGraph> smaller_;
  std::unique_ptr<GraphSolver> again_;

  Way moves_{1.0}, neighbourhoods_{0.0};
  double slice_ = 0.0, spent_ = 0.0;
  bool branching_helps_ = false;
  offset_t n_open_labels_ = 0;  ///< at the last branching of the last search
};

}  // namespace sublearn
