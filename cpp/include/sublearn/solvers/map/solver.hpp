// MAP inference from end to end.
//
//   MapSolver          one call: a first assignment, then everything below until a limit
//   GraphSolver        reductions that keep the optimum, then the connected components in rounds
//   ComponentSolver    solvers/map/component_solver.hpp; may reduce and split what is left again
//
// At any moment the best assignment so far and a bound on all assignments are known; every answer
// is between them. Rounds keep it so for graphs of several components: all of them have their first
// short turn, the small ones first, before one has a long one.
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <limits>
#include <memory>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "sublearn/core/factor_graph.hpp"
#include "sublearn/core/monitor.hpp"
#include "sublearn/core/status.hpp"
#include "sublearn/core/types.hpp"
#include "sublearn/solvers/map/component_solver.hpp"
#include "sublearn/solvers/map/components.hpp"
#include "sublearn/solvers/map/gdmm_run.hpp"
#include "sublearn/solvers/map/reduction.hpp"
#include "sublearn/solvers/map/run.hpp"

namespace sublearn {

class GraphSolver {
 public:
  /// The graph must outlive the solver; `answer` is an assignment of it. `depth`: how often it was
  /// reduced before.
  GraphSolver(MapRun& run, const FactorGraph& graph, MapAnswer answer, int depth,
              MapRun::Report report)
      : run_(&run),
        graph_(&graph),
        answer_(std::move(answer)),
        report_(std::move(report)),
        reduction_(graph, limits()),
        labels_(reduction_.restricted(answer_.labels)),
        components_(split_components(reduction_.graph())) {
    score_ = bound_ = reduction_.constant();
    for (const GraphComponent& component : components_) {
      std::vector<index_t> own;
      for (const index_t i : component.variables) own.push_back(labels_[at(i)]);
      begin_part(component.graph, MapAnswer::first(component.graph, own), depth);
    }
    std::stable_sort(turns_.begin(), turns_.end(), [&](const Turn& a, const Turn& b) {
      return size_of(a.part) < size_of(b.part);
    });
  }
  GraphSolver(const GraphSolver&) = delete;
  GraphSolver& operator=(const GraphSolver&) = delete;

  bool is_done() const { return turns_.empty(); }

  /// Goes on for about so many operations, or until the run has to stop.
  void go_on(double work) {
    const double end = run_->work + work;
    while (!is_done() && run_->work < end && !run_->should_stop()) {
      if (parts_.size() == 1) {
        take_turn(turns_[0], end - run_->work);
      } else {
        go_round(end);
      }
      std::erase_if(turns_, [&](const Turn& turn) { return parts_[turn.part].is_done(); });
    }
  }

  /// The best assignment of the graph so far, and the bound.
  MapAnswer answer() {
    for (std::size_t c = 0; c < parts_.size(); ++c) {
      const auto& found = parts_[c].answer().labels;
      for (std::size_t k = 0; k < found.size(); ++k) {
        labels_[at(components_[c].variables[k])] = found[k];
      }
    }
    const std::vector<index_t> lifted = reduction_.lift(labels_);
    answer_.offer(*graph_, lifted, graph_->score(lifted));
    // assignments that the reduction lost score no more than the one it was given
    answer_.lower_bound_to(bound_);
    return answer_;
  }

 private:
  static constexpr double kOneStep = 1.0;    ///< operations: a first turn is one step
  static constexpr double kShortTurn = 2e6;  ///< the second; then they become longer
  static constexpr double kLonger = 1.5;

  struct Turn {
    std::size_t part;
    double work;
  };

  ReductionLimits limits() const {
    ReductionLimits limits;
    limits.incumbent = answer_.score;
    if (!run_->has_all_parts()) limits.rounds = 0;
    return limits;
  }

  std::size_t size_of(std::size_t part) const {
    return components_[part].graph.unary.size() + components_[part].graph.scope.size();
  }

  void begin_part(const FactorGraph& graph, MapAnswer answer, int depth) {
    const std::size_t c = parts_.size();
    seen_.push_back({answer.score, answer.bound});
    score_ += answer.score;
    bound_ += answer.bound;
    turns_.push_back({c, kOneStep});
    parts_.emplace_back(*run_, graph, std::move(answer), depth, [this, c](double s, double b) {
      see(c, s, b);
      report_(std::max(answer_.score, score_), bound_);
    });
  }

  /// What is known of a part now.
  void see(std::size_t part, double score, double bound) {
    auto& [own_score, own_bound] = seen_[part];
    score_ += score - own_score;
    bound_ += bound - own_bound;
    own_score = score;
    own_bound = bound;
  }

  /// Every part has its turn. One that gained by it has a longer one next time, and is first.
  void go_round(double end) {
    std::vector<std::pair<double, Turn>> next;
    for (Turn turn : turns_) {
      const double gain = run_->work < end ? take_turn(turn, turn.work) : 0.0;
      turn.work = std::max(kShortTurn, turn.work * (gain > 0.0 ? 2.0 * kLonger : kLonger));
      next.emplace_back(gain, turn);
    }
    std::stable_sort(next.begin(), next.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    turns_.clear();
    for (const auto& [gain, turn] : next) turns_.push_back(turn);
  }

  /// Returns how much better the part is for each operation.
  double take_turn(const Turn& turn, double work) {
    ComponentSolver& part = parts_[turn.part];
    const double score = part.answer().score, begin = run_->work;
    part.go_on(work);
    see(turn.part, part.answer().score, part.answer().bound);
    report_(std::max(answer_.score, score_), bound_);
    const double spent = std::max(1.0, run_->work - begin);
    return std::max(0.0, part.answer().score - score - run_->slack(score)) / spent;
  }

  MapRun* run_;
  const FactorGraph* graph_;
  MapAnswer answer_;
  MapRun::Report report_;
  MapReduction reduction_;
  std::vector<index_t> labels_;  ///< of the reduced graph
  std::vector<GraphComponent> components_;
  std::deque<ComponentSolver> parts_;
  std::vector<std::pair<double, double>> seen_;  ///< score and bound of each part
  std::vector<Turn> turns_;                      ///< of the parts that are not done
  double score_, bound_;                         ///< of all parts
};

inline ComponentSolver::~ComponentSolver() = default;

/// Gives back the memory of a part that is done.
inline void ComponentSolver::forget() {
  search_.reset();
  messages_.reset();
  again_.reset();
  smaller_.reset();
}

inline void ComponentSolver::begin_again(FactorGraph smaller) {
  smaller_ = std::make_unique<FactorGraph>(std::move(smaller));
  again_ = std::make_unique<GraphSolver>(*run_, *smaller_, answer_, depth_ + 1, report_);
  search_.reset();
  messages_.reset();
}

inline void ComponentSolver::solve_again(double budget) {
  again_->go_on(budget);
  answer_ = again_->answer();
  if (again_->is_done()) stage_ = Stage::done;
}

class MapSolver {
 public:
  MapSolver(const MapSettings& settings, Monitor& monitor) : run_(settings, monitor) {}

  /// `labels` is where to start from; empty: the best label of each variable by itself.
  MapAnswer solve(const FactorGraph& graph, std::span<const index_t> labels) {
    MapAnswer answer = MapAnswer::first(graph, labels);
    run_.report(answer.score, answer.bound);
    if (run_.settings.parts == MapParts::gdmm) {
      solve_gdmm(graph, run_, answer);
      status_ = status_of(answer);
      return answer;
    }
    GraphSolver solver(run_, graph, std::move(answer), 0,
                       [&](double score, double bound) { run_.report(score, bound); });
    solver.go_on(std::numeric_limits<double>::infinity());
    answer = solver.answer();
    run_.report(answer.score, answer.bound);
    status_ = status_of(answer);
    return answer;
  }

  const std::vector<MapRow>& rows() const { return run_.rows(); }
  MapCredit found_by() const { return run_.found_by(); }
  MapCredit bounded_by() const { return run_.bounded_by(); }
  std::int64_t n_iter() const { return run_.n_iter; }
  Status status() const { return status_; }  ///< how solve() ended

 private:
  Status status_of(const MapAnswer& answer) const {
    if (run_.is_closed(answer)) return Status::converged;
    if (run_.monitor.stop_requested()) return Status::stopped;
    if (run_.is_stalled) return Status::stalled;
    return run_.is_late() ? Status::time_limit : Status::max_iter;
  }

  MapRun run_;
  Status status_ = Status::max_iter;
};

}  // namespace sublearn
