// GDMM for structural SVMs (algorithms 1 and 4 of 001): multiclass problems of nodes and of
// factors, connected by messages.
//
//   min_w  1/2 |w|^2 + C sum_i L(w; x_i, y_i),   L the structured hinge loss, relaxed to the local
//   polytope (5); exact on trees.
//
// In terms of distributions p_j over the labels of node j and q_f over the states of factor f,
// where alpha = C (truth - p), the dual (10), divided by C, is
//
//   min  1/(2C) |w(p, q)|^2 - sum_j delta_j' p_j   s.t.  M_jf q_f = p_j
//   W = C sum_j x_j (e_truth - p_j)',  T = C sum_f s_f (e_truth - q_f)
//
// and the augmented Lagrangian adds lambda_jf'(M q - p) + rho/2 |M q - p|^2. A pass visits the
// samples in random order. In a sample: each node is searched over all labels (scores through the
// sparse rows of W) and its p is corrected exactly by a simplex projection, for its Hessian is a
// multiple of the identity; each factor is searched over all states by best_cell (appendix C-1),
// and its q is corrected by projected steps (25) with a line search on Q_f; then the multipliers
// move (13). W and T follow at once, at the cost of the labels that changed.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "sublearn/core/monitor.hpp"
#include "sublearn/core/rng.hpp"
#include "sublearn/core/types.hpp"
#include "sublearn/prox/simplex.hpp"
#include "sublearn/search/hashed_rows.hpp"
#include "sublearn/search/heap_table.hpp"
#include "sublearn/search/pair_search.hpp"
#include "sublearn/search/score_board.hpp"
#include "sublearn/solvers/away_step.hpp"
#include "sublearn/solvers/gdmm_coupling.hpp"
#include "sublearn/solvers/gdmm_learn_task.hpp"

namespace sublearn {

template <class T, class I>
class GdmmLearn {
 public:
  GdmmLearn(const StructuredData<T, I>& data, const GdmmLearnSettings& settings)
      : data_(data),
        settings_(settings),
        rho_(settings.rho),
        rng_(settings.seed),
        weights_(static_cast<std::size_t>(data.X.n_cols()), data.n_labels, T{0},
                 Rng(settings.seed)),
        board_(data.n_labels) {
    tables_.reserve(static_cast<std::size_t>(data.n_tables));
    for (index_t t = 0; t < data.n_tables; ++t) tables_.emplace_back(data.n_labels, data.n_labels);
    mean_tables_.resize(tables_.size());
    for (std::size_t t = 0; t < tables_.size(); ++t) {
      mean_tables_[t].assign(tables_[t].values().size(), 0.0);
    }
    for (auto& marks : slot_of_) marks.assign(static_cast<std::size_t>(data.n_labels), kNoSlot);
    connect();
    start();
    if (!(rho_ > 0.0)) rho_ = typical_rho();
  }

  /// One visit to every node and every factor.
  GdmmLearnPass pass(const Monitor* monitor) {
    GdmmLearnPass out;
    out.rho = rho_;
    work_ = 0;
    primal_ = dual_ = 0.0;
    std::vector<index_t> order(data_.n_samples());
    std::iota(order.begin(), order.end(), index_t{0});
    rng_.shuffle(std::span<index_t>(order));
    for (const index_t sample : order) {
      if (monitor != nullptr && monitor->stop_requested()) break;
      visit(static_cast<std::size_t>(sample));
    }
    const double n_ends = std::max<double>(1.0, static_cast<double>(data_.scope.size()));
    out.primal_residual = std::sqrt(primal_ / n_ends);
    out.dual_residual = rho_ * std::sqrt(dual_ / n_ends);
    out.n_labels = update_means();
    for (const Factor& factor : factors_) out.n_states += static_cast<offset_t>(factor.size());
    out.work = work_;
    return out;
  }

  /// Value of the dual (10) at a point that fulfils its constraints, made from p and q: a lower
  /// bound on the least objective, relaxed where samples have cycles.
  ///
  /// The nodes keep their p, so W stays; only q moves, by as much as it disagrees with p.
  double feasible_dual() const {
    std::vector<std::vector<double>> tables;
    for (const HeapTable& table : tables_) {
      tables.emplace_back(table.values().begin(), table.values().end());
    }
    Coupling coupling;
    for (std::size_t i = 0; i < data_.n_samples(); ++i) {
      const double C = settings_.C * data_.weight_of(i);
      for (auto f = static_cast<std::size_t>(data_.factor_begin[i]);
           f < static_cast<std::size_t>(data_.factor_begin[i + 1]); ++f) {
        coupling.move(factors_[f], node(f, 0), node(f, 1), C * data_.scale_of(f),
                      static_cast<std::size_t>(data_.n_labels),
                      tables[static_cast<std::size_t>(data_.table[f])]);
      }
    }
    double norm = squared_norm(weights_);
    for (const auto& table : tables) {
      for (const double v : table) norm += v * v;
    }
    // between the truth (value 0) and this point: the best share of it
    const double gain = loss();
    const double share = norm > gain ? gain / norm : 1.0;
    return share * gain - 0.5 * share * share * norm;
  }

  const HashedRows<T>& weights() const { return weights_; }
  const HeapTable& table(index_t t) const { return tables_[static_cast<std::size_t>(t)]; }
  double rho() const { return rho_; }

  /// 1/(2C) |w|^2 - sum delta' p, times -C: the dual value, a bound only where M q = p.
  double dual_value() const {
    double norm = squared_norm(weights_);
    for (const HeapTable& table : tables_) {
      for (const double v : table.values()) norm += v * v;
    }
    return loss() - 0.5 * norm;
  }

  /// W of the mean of p over passes, the later ones counting more: pass t as t.
  HashedRows<T> mean_weights() const {
    HashedRows<T> mean(weights_.n_rows(), data_.n_labels, T{0}, Rng(settings_.seed));
    std::vector<typename HashedRows<T>::Change> changes;
    for (std::size_t i = 0; i < data_.n_samples(); ++i) {
      const double C = settings_.C * data_.weight_of(i);
      for (auto j = static_cast<std::size_t>(data_.node_begin[i]);
           j < static_cast<std::size_t>(data_.node_begin[i + 1]); ++j) {
        const Node& at = nodes_[j];
        changes.clear();
        for (std::size_t s = 0; s < at.labels.size(); ++s) {
          const double change = (s == 0 ? 1.0 : 0.0) - at.mean(s);
          if (change == 0.0) continue;
          changes.push_back({mean.place(at.labels[s]), static_cast<T>(C * change)});
        }
        if (changes.empty()) continue;
        const auto row = data_.X.row(static_cast<offset_t>(j));
        for (std::size_t k = 0; k < row.size(); ++k) {
          mean.add(static_cast<std::size_t>(row.ids[k]), changes, row.values[k]);
        }
      }
    }
    return mean;
  }
  /// Likewise of a table.
  std::span<const double> mean_table(index_t t) const {
    return mean_tables_[static_cast<std::size_t>(t)];
  }

 private:
  static constexpr int kSteps = 3;
  static constexpr double kFlat = 1e-6;   ///< slopes below are not followed
  static constexpr int kMostEntries = 3;  ///< labels that may enter a node in one visit

  using Node = LearnNode;
  using State = LearnState;
  using Factor = LearnFactor;

  /// Which of its node's factors an end is.
  void connect() {
    const std::size_t n_nodes = data_.truth.size();
    nodes_.resize(n_nodes);
    end_of_.resize(data_.scope.size());
    std::vector<std::uint32_t> degree(n_nodes, 0);
    for (std::size_t e = 0; e < data_.scope.size(); ++e) {
      end_of_[e] = degree[static_cast<std::size_t>(data_.scope[e])]++;
    }
    for (std::size_t j = 0; j < n_nodes; ++j) nodes_[j].stride = 2 + 2 * degree[j];
  }

  /// The truth everywhere: all weights zero.
  void start() {
    factors_.resize(data_.table.size());
    squares_.resize(nodes_.size());
    for (std::size_t j = 0; j < nodes_.size(); ++j) {
      nodes_[j].enter(data_.truth[j]);
      nodes_[j].p(0) = nodes_[j].mean(0) = 1.0;
      double sum = 0.0;
      for (const T x : data_.X.row(static_cast<offset_t>(j)).values) {
        sum += static_cast<double>(x) * static_cast<double>(x);
      }
      squares_[j] = sum;
    }
    for (std::size_t f = 0; f < factors_.size(); ++f) {
      factors_[f].push_back({{0, 0}, 1.0});
      for (std::size_t side = 0; side < 2; ++side) node(f, side).marginal(0, end(f, side)) = 1.0;
    }
  }

  /// A share of the curvature C |x|^2 of a typical node, so that it does not depend on the scale of
  /// the features. Fixed values from 0.1 to 10 were tried on handwriting (|x|^2 = 29) and on tags
  /// from 2 and from 14 features of words: the best lay at shares from 0.07 to 1.
  double typical_rho() const {
    constexpr double kShare = 0.3;
    const double sum = std::accumulate(squares_.begin(), squares_.end(), 0.0);
    const double mean = squares_.empty() ? 1.0 : sum / static_cast<double>(squares_.size());
    return kShare * settings_.C * std::max(mean, 1.0);  // 1: |x|^2 of a pair
  }

  /// C sum (1 - p(truth)), the linear part of the dual.
  double loss() const {
    double sum = 0.0;
    for (std::size_t i = 0; i < data_.n_samples(); ++i) {
      double of_sample = 0.0;
      for (auto j = static_cast<std::size_t>(data_.node_begin[i]);
           j < static_cast<std::size_t>(data_.node_begin[i + 1]); ++j) {
        of_sample += 1.0 - nodes_[j].p(0);
      }
      sum += data_.weight_of(i) * of_sample;
    }
    return settings_.C * sum;
  }

  static double squared_norm(const HashedRows<T>& weights) {
    double sum = 0.0;
    for (std::size_t d = 0; d < weights.n_rows(); ++d) {
      weights.for_each_weight(
          d, [&](index_t, T w) { sum += static_cast<double>(w) * static_cast<double>(w); });
    }
    return sum;
  }

  const Node& node(std::size_t f, std::size_t side) const {
    return nodes_[static_cast<std::size_t>(data_.scope[2 * f + side])];
  }
  Node& node(std::size_t f, std::size_t side) {
    return nodes_[static_cast<std::size_t>(data_.scope[2 * f + side])];
  }
  std::size_t end(std::size_t f, std::size_t side) const { return end_of_[2 * f + side]; }

  void visit(std::size_t sample) {
    C_ = settings_.C * data_.weight_of(sample);
    if (C_ == 0.0) return;
    const auto nodes = numbers(data_.node_begin[sample], data_.node_begin[sample + 1]);
    for (const index_t j : nodes) correct_node(static_cast<std::size_t>(j));
    const auto factors = numbers(data_.factor_begin[sample], data_.factor_begin[sample + 1]);
    for (const index_t f : factors) correct_factor(static_cast<std::size_t>(f));
    update_multipliers(sample);
  }

  std::span<const index_t> numbers(offset_t begin, offset_t end) {
    order_.resize(static_cast<std::size_t>(end - begin));
    std::iota(order_.begin(), order_.end(), static_cast<index_t>(begin));
    rng_.shuffle(std::span<index_t>(order_));
    return order_;
  }

  // ---- nodes -----------------------------------------------------------------------------------

  /// p of least augmented Lagrangian, over the slots and the labels that the search lets in.
  void correct_node(std::size_t j) {
    const auto row = data_.X.row(static_cast<offset_t>(j));
    Node& node = nodes_[j];
    gather_scores(row, node);
    const double curvature = C_ * squares_[j];
    // A node without features and factors bends nowhere: any label but the truth costs one.
    const double Q = std::max(1e-9, curvature + rho_ * static_cast<double>(node.degree()));
    wanted_.clear();
    for (std::size_t s = 0; s < node.labels.size(); ++s) {
      const double score = static_cast<double>(board_.take(node.labels[s]));
      double pull = curvature * node.p(s) + score + (s == 0 ? 0.0 : 1.0);
      for (std::size_t e = 0; e < node.degree(); ++e) {
        pull += rho_ * node.marginal(s, e) + node.lambda(s, e);
      }
      wanted_.push_back(pull / Q);
    }
    if (settings_.uses_away_steps) {
      take_away_steps(node, Q);
    } else {
      project(node, Q);
    }
    board_.clear();
    move_node(j, row);
  }

  /// The nearest point to wanted_ (25), after up to kMostEntries labels have entered that have a
  /// share in it.
  void project(Node& node, double Q) {
    for (int n = 0;; ++n) {
      point_ = wanted_;
      project_simplex<double>(point_, 1.0, sorted_);
      if (n == kMostEntries) break;
      const auto top = std::max_element(point_.begin(), point_.end()) - point_.begin();
      const double threshold =
          wanted_[static_cast<std::size_t>(top)] - point_[static_cast<std::size_t>(top)];
      const index_t label = best_outside();
      if (label < 0) break;
      const double value = (static_cast<double>(board_[label]) + 1.0) / Q;
      if (value <= threshold) break;
      board_.take(label);
      node.enter(label);
      wanted_.push_back(value);
    }
  }

  /// Algorithm 2 on one node: until a step that drops nothing.
  void take_away_steps(Node& node, double Q) {
    point_.clear();
    for (std::size_t s = 0; s < node.labels.size(); ++s) point_.push_back(node.p(s));
    double lowest = std::numeric_limits<double>::infinity();  // of the gradients over Q
    for (std::size_t s = 0; s < point_.size(); ++s) {
      lowest = std::min(lowest, point_[s] - wanted_[s]);
    }
    if (const index_t label = best_outside(); label >= 0) {
      const double value = (static_cast<double>(board_[label]) + 1.0) / Q;
      if (-value < lowest) {
        node.enter(label);
        wanted_.push_back(value);
        point_.push_back(0.0);
      }
    }
    gradient_.resize(point_.size());
    change_.resize(point_.size());
    for (bool is_drop = true; is_drop;) {
      for (std::size_t s = 0; s < point_.size(); ++s) gradient_[s] = Q * (point_[s] - wanted_[s]);
      const AwayStep step = choose_step(point_, gradient_);
      if (step.slope <= kFlat) return;
      fill_direction(step, point_, change_);
      double bend = 0.0;
      for (const double change : change_) bend += Q * change * change;
      is_drop = advance(step, step.length(bend), point_);
    }
  }

  /// Moves a point along change_; whether that dropped a vertex.
  bool advance(const AwayStep& step, double length, std::span<double> point) const {
    for (std::size_t s = 0; s < point.size(); ++s) {
      point[s] = std::max(0.0, point[s] + length * change_[s]);
    }
    if (step.is_drop(length)) point[step.vertex] = 0.0;
    return step.is_drop(length);
  }

  /// Scores of the labels that are searched onto the board: all, or those of one part (21), and of
  /// the slots. Rows are scattered in memory: each is asked for before the first is read.
  void gather_scores(const SparseVector<T, I>& row, const Node& node) {
    for (const I d : row.ids) weights_.prefetch(static_cast<std::size_t>(d));
    for (const I d : row.ids) weights_.prefetch_block(static_cast<std::size_t>(d));
    part_ = draw_part();
    const bool is_whole = part_.size() == data_.n_labels;
    for (std::size_t k = 0; k < row.size(); ++k) {
      const auto d = static_cast<std::size_t>(row.ids[k]);
      if (is_whole) {
        weights_.add_to(d, row.values[k], board_);
        work_ += weights_.n_weights(d);
      } else {
        weights_.add_to(d, row.values[k], part_.begin, part_.end, board_);
        work_ += std::min(weights_.n_weights(d), part_.size());
      }
    }
    if (is_whole) return;
    for (const index_t label : node.labels) {
      if (part_.holds(label)) continue;
      const auto place = weights_.place(label);
      T score{0};
      for (std::size_t k = 0; k < row.size(); ++k) {
        score += row.values[k] * weights_.weight(static_cast<std::size_t>(row.ids[k]), place);
      }
      board_.add(label, score);
      work_ += static_cast<offset_t>(row.size());
    }
  }

  /// Labels begin .. end - 1.
  struct Part {
    index_t begin, end;
    index_t size() const { return end - begin; }
    bool holds(index_t label) const { return begin <= label && label < end; }
  };

  Part draw_part() {
    const index_t n = std::clamp<index_t>(settings_.n_parts, 1, data_.n_labels);
    if (n == 1) return {0, data_.n_labels};
    const auto k = static_cast<offset_t>(rng_.below(static_cast<std::uint32_t>(n)));
    return {static_cast<index_t>(k * data_.n_labels / n),
            static_cast<index_t>((k + 1) * data_.n_labels / n)};
  }

  /// The label of highest score that is searched and no slot, -1 if there is none.
  index_t best_outside() {
    const index_t at = find_largest(board_.scores() + part_.begin, part_.size());
    return at < 0 ? at : part_.begin + at;
  }

  void move_node(std::size_t j, const SparseVector<T, I>& row) {
    Node& node = nodes_[j];
    changes_.clear();
    for (std::size_t s = 0; s < point_.size(); ++s) {
      const double change = point_[s] - node.p(s);
      if (change == 0.0) continue;
      dual_ += change * change * static_cast<double>(node.degree());
      node.p(s) = point_[s];
      changes_.push_back({weights_.place(node.labels[s]), static_cast<T>(-C_ * change)});
    }
    if (changes_.empty()) return;
    for (std::size_t k = 0; k < row.size(); ++k) {
      weights_.add(static_cast<std::size_t>(row.ids[k]), changes_, row.values[k]);
    }
    work_ += static_cast<offset_t>(row.size() * changes_.size());
  }

  // ---- factors ---------------------------------------------------------------------------------

  void correct_factor(std::size_t f) {
    HeapTable& table = tables_[static_cast<std::size_t>(data_.table[f])];
    const double scale = data_.scale_of(f);
    for (std::size_t side = 0; side < 2; ++side) {
      const Node& at = node(f, side);
      const std::size_t e = end(f, side);
      auto& message = message_[side];
      message.resize(at.labels.size());
      for (std::size_t s = 0; s < message.size(); ++s) {
        message[s] = at.lambda(s, e) + rho_ * (at.marginal(s, e) - at.p(s));
        slot_of_[side][static_cast<std::size_t>(at.labels[s])] = static_cast<index_t>(s);
      }
    }
    const BestCell best = search(f, table, scale);
    for (std::size_t side = 0; side < 2; ++side) {
      for (const index_t label : node(f, side).labels) {
        slot_of_[side][static_cast<std::size_t>(label)] = kNoSlot;
      }
    }
    admit(f, best);
    if (factors_[f].size() > 1) take_steps(f, table, scale);
  }

  BestCell search(std::size_t f, const HeapTable& table, double scale) {
    SparseMessage messages[2];
    for (std::size_t side = 0; side < 2; ++side) {
      const auto& labels = node(f, side).labels;
      messages[side] = {labels, message_[side], slot_of_[side],
                        labels.size() < static_cast<std::size_t>(data_.n_labels)};
    }
    BestCell known;
    for (const State& state : factors_[f]) {
      const index_t a = messages[0].labels[state.slots[0]], b = messages[1].labels[state.slots[1]];
      known.offer(
          scale * table.pair(a, b) - message_[0][state.slots[0]] - message_[1][state.slots[1]], a,
          b);
    }
    std::size_t unused = 0;
    return best_cell(table, scale, messages[0], messages[1], known, unused, work_);
  }

  void admit(std::size_t f, const BestCell& best) {
    std::uint32_t slots[2];
    for (std::size_t side = 0; side < 2; ++side) {
      Node& at = node(f, side);
      slots[side] = static_cast<std::uint32_t>(at.slot(best.labels[side]));
      message_[side].resize(at.labels.size(), 0.0);
    }
    for (const State& state : factors_[f]) {
      if (state.slots[0] == slots[0] && state.slots[1] == slots[1]) return;
    }
    factors_[f].push_back({{slots[0], slots[1]}, 0.0});
  }

  /// Projected steps over the active states; the table follows at the end.
  void take_steps(std::size_t f, HeapTable& table, double scale) {
    Factor& factor = factors_[f];
    const std::size_t n = factor.size();
    const double curvature = C_ * scale * scale;
    double Q = curvature + 2.0 * rho_;
    theta_.resize(n);
    start_.resize(n);
    for (std::size_t s = 0; s < n; ++s) {
      theta_[s] = scale * table.pair(label(f, 0, factor[s]), label(f, 1, factor[s]));
      start_[s] = factor[s].q;
    }
    for (std::size_t side = 0; side < 2; ++side) moved_[side].assign(message_[side].size(), 0.0);
    gradient_.resize(n);
    change_.resize(n);
    bool goes_on = true;
    for (int step = 0; goes_on && (step < kSteps || settings_.uses_away_steps); ++step) {
      fill_gradient(factor, curvature);
      goes_on = settings_.uses_away_steps ? step_away(factor, curvature)
                                          : step_down(factor, curvature, Q);
    }
    for (std::size_t s = 0; s < n; ++s) {
      const double change = factor[s].q - start_[s];
      if (change == 0.0) continue;
      table.add(label(f, 0, factor[s]), label(f, 1, factor[s]), -C_ * scale * change);
      for (std::size_t side = 0; side < 2; ++side) {
        node(f, side).marginal(factor[s].slots[side], end(f, side)) += change;
      }
    }
    std::erase_if(factor, [](const State& state) { return state.q <= 0.0; });
  }

  index_t label(std::size_t f, std::size_t side, const State& state) {
    return node(f, side).labels[state.slots[side]];
  }

  void fill_gradient(const Factor& factor, double curvature) {
    for (std::size_t s = 0; s < factor.size(); ++s) {
      gradient_[s] = -theta_[s] + curvature * (factor[s].q - start_[s]) +
                     message_[0][factor[s].slots[0]] + message_[1][factor[s].slots[1]];
    }
    work_ += static_cast<offset_t>(factor.size());
  }

  /// A projected step (25), with the least of the doubled Q that bounds the Hessian along it. False
  /// if there is nothing to gain.
  bool step_down(Factor& factor, double curvature, double& Q) {
    double lowest = std::numeric_limits<double>::infinity(), mean = 0.0;
    for (std::size_t s = 0; s < factor.size(); ++s) {
      lowest = std::min(lowest, gradient_[s]);
      mean += factor[s].q * gradient_[s];
    }
    if (mean - lowest <= kFlat) return false;
    while (!step_fits(factor, curvature, Q)) Q *= 2.0;
    move_factor(factor);
    return true;
  }

  /// Algorithm 2 on one factor; whether the step dropped a state, so that another one is due.
  bool step_away(Factor& factor, double curvature) {
    point_.clear();
    for (const State& state : factor) point_.push_back(state.q);
    const AwayStep step = choose_step(point_, gradient_);
    if (step.slope <= kFlat) return false;
    fill_direction(step, point_, change_);
    const bool is_drop = advance(step, step.length(bend_along(factor, curvature)), point_);
    for (std::size_t s = 0; s < factor.size(); ++s) change_[s] = point_[s] - factor[s].q;
    move_factor(factor);
    return is_drop;
  }

  /// q <- point_; the messages follow.
  void move_factor(Factor& factor) {
    for (std::size_t s = 0; s < factor.size(); ++s) {
      factor[s].q = point_[s];
      for (std::size_t side = 0; side < 2; ++side) {
        message_[side][factor[s].slots[side]] += rho_ * change_[s];
      }
    }
  }

  bool step_fits(const Factor& factor, double curvature, double Q) {
    const std::size_t n = factor.size();
    point_.resize(n);
    for (std::size_t s = 0; s < n; ++s) point_[s] = factor[s].q - gradient_[s] / Q;
    project_simplex<double>(point_, 1.0, sorted_);
    double length = 0.0;
    for (std::size_t s = 0; s < n; ++s) {
      change_[s] = point_[s] - factor[s].q;
      length += change_[s] * change_[s];
    }
    return bend_along(factor, curvature) <= Q * length * (1.0 + 1e-12);
  }

  /// change' H change, H the Hessian of the factor: C s^2 and rho M'M.
  double bend_along(const Factor& factor, double curvature) {
    double length = 0.0, along = 0.0;
    for (const double change : change_) length += change * change;
    for (std::size_t side = 0; side < 2; ++side) {
      auto& moved = moved_[side];
      for (std::size_t s = 0; s < factor.size(); ++s) moved[factor[s].slots[side]] += change_[s];
      for (std::size_t s = 0; s < factor.size(); ++s) {
        along += moved[factor[s].slots[side]] * moved[factor[s].slots[side]];
        moved[factor[s].slots[side]] = 0.0;
      }
    }
    return curvature * length + rho_ * along;
  }

  // ---- multipliers -----------------------------------------------------------------------------

  void update_multipliers(std::size_t sample) {
    const double eta = settings_.eta > 0.0 ? settings_.eta : rho_;
    for (auto j = static_cast<std::size_t>(data_.node_begin[sample]);
         j < static_cast<std::size_t>(data_.node_begin[sample + 1]); ++j) {
      Node& node = nodes_[j];
      for (std::size_t s = 0; s < node.labels.size(); ++s) {
        for (std::size_t e = 0; e < node.degree(); ++e) {
          const double difference = node.marginal(s, e) - node.p(s);
          primal_ += difference * difference;
          node.lambda(s, e) += eta * difference;
        }
      }
    }
  }

  /// Means of p and of the tables take in the pass that ended, as (27) of Lacoste-Julien et al.
  /// (2013) does for block-coordinate Frank-Wolfe. Returns the number of labels with a share.
  offset_t update_means() {
    const double share = 2.0 / (static_cast<double>(++n_passes_) + 1.0);
    offset_t n_labels = 0;
    for (Node& node : nodes_) {
      for (std::size_t s = 0; s < node.labels.size(); ++s) {
        n_labels += node.p(s) > 0.0;
        node.mean(s) += share * (node.p(s) - node.mean(s));
      }
    }
    for (std::size_t t = 0; t < tables_.size(); ++t) {
      const auto values = tables_[t].values();
      auto& mean = mean_tables_[t];
      for (std::size_t cell = 0; cell < mean.size(); ++cell) {
        mean[cell] += share * (values[cell] - mean[cell]);
      }
    }
    return n_labels;
  }

  StructuredData<T, I> data_;
  GdmmLearnSettings settings_;
  double rho_;
  Rng rng_;
  HashedRows<T> weights_;
  std::vector<HeapTable> tables_;
  std::vector<std::vector<double>> mean_tables_;
  std::vector<Node> nodes_;
  std::vector<Factor> factors_;
  std::vector<std::uint32_t> end_of_;
  std::vector<double> squares_;

  ScoreBoard<T> board_;
  Part part_{0, 0};
  std::vector<index_t> order_, slot_of_[2];
  std::vector<double> wanted_, point_, sorted_, theta_, start_, gradient_, change_;
  std::vector<double> message_[2], moved_[2];
  std::vector<typename HashedRows<T>::Change> changes_;
  double primal_ = 0.0, dual_ = 0.0;
  offset_t work_ = 0, n_passes_ = 0;
  double C_ = 1.0;  ///< of the sample that is visited
};

}  // namespace sublearn
