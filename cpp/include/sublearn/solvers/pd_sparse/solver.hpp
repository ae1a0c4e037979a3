// PD-Sparse: one linear model of very many labels under the separation ranking loss, sparse in the
// primal and in the dual. (Yen, Huang, Zhong, Ravikumar, Dhillon, "PD-Sparse", ICML 2016; "(13)"
// and the like are its equations.)
//
// With P_i the labels of sample i, N_i the others and z = W'x_i,
//
//   P(W) = sum_k 1/2 ||w_k||^2 + l1 ||w_k||_1 + sum_i C_i max(0, 1 + max_{N_i} z - min_{P_i} z)
//   (13)
//
// The dual has a block per sample: masses a_k >= 0 on P_i and b_k >= 0 on N_i with one total
// t_i = sum a = sum b <= C_i (16), and
//
//   D = sum_i t_i - 1/2 sum_k ||w_k||^2,   w_k = soft(v_k, l1),
//   v_k = sum_{i: k in P_i} a_ik x_i - sum_{i: k in N_i} b_ik x_i.                         (14),
//   (15)
//
// The gradient of -D is z_k in a_k and -(z_k + 1) in b_k (the sign in (17) is a misprint), its
// second derivative at most Q_i = ||x_i||^2. The loop is algorithm 1, all samples once per pass:
//
//   search    negatives of x_i with the largest scores that violate: z_k + 1 > min_{P_i} z   (20)
//   correct   a, b <- projection of (a - z / Q_i, b + (z + 1) / Q_i) over the active set (21), (22)
//   shrink    negatives whose mass is zero leave; positives stay
//
//
// W is kept by feature (search/hashed_rows.hpp), so an exact search costs the weights of x_i's
// features, and gives the scores of the active set as well. The other searches look at one part of
// the labels (24), and at a sample of x_i's features (25). P - D bounds the distance to the
// optimum; D is known after each pass, P takes an exact search of all samples.
//
// solvers/pd_sparse/data.hpp has the rows, solvers/pd_sparse/weights.hpp W,
// solvers/pd_sparse/visit.hpp what a visit to a sample does, and solvers/pd_sparse/measures.hpp P,
// D and held-out precision. Here are the passes: when they end, which search the next one uses, and
// which of them is returned.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "sublearn/core/labelled_rows.hpp"
#include "sublearn/core/monitor.hpp"
#include "sublearn/core/rng.hpp"
#include "sublearn/core/types.hpp"
#include "sublearn/search/hashed_rows.hpp"
#include "sublearn/solvers/pd_sparse/data.hpp"
#include "sublearn/solvers/pd_sparse/measures.hpp"
#include "sublearn/solvers/pd_sparse/types.hpp"
#include "sublearn/solvers/pd_sparse/visit.hpp"
#include "sublearn/solvers/pd_sparse/weights.hpp"

namespace sublearn {

template <class T, class I>
class PDSolver {
 public:
  PDSolver(const LabelledRows<T, I>& train, std::span<const double> caps,
           const LabelledRows<T, I>& held_out, offset_t n_labels, const PDSettings& settings,
           Monitor& monitor)
      : data_(train, caps, static_cast<index_t>(n_labels)),
        held_out_(held_out),
        settings_(settings),
        monitor_(monitor),
        l1_(settings.l1),
        root_(settings.seed),
        order_rng_(root_.split(kOrderStream)),
        order_(data_.live()),
        weights_(no_weights(1)),
        mean_weights_(no_weights(1)),
        support_(no_weights(1)),
        visitor_(data_, weights_, duals_, has_held_out() ? &mean_duals_ : nullptr),
        measures_(settings.n_threads, monitor) {
    duals_.positive.assign(train.labels.size(), T{0});
    duals_.negative.resize(static_cast<std::size_t>(train.X.n_rows()));
    if (has_held_out()) mean_duals_ = duals_;
    // A search draws untouched labels in proportion to its room, so room for no label costs time.
    n_candidates_ = settings.n_candidates > 0 ? std::min(settings.n_candidates, data_.n_labels())
                                              : first_candidates();
    is_sampled_ = settings.search == PDSearch::sampled;
    const bool in_parts = settings.search == PDSearch::partition || is_sampled_;
    set_parts(in_parts ? settings.n_partitions : 1);
  }
  PDSolver(const PDSolver&) = delete;  // the visitor refers to the other members
  PDSolver& operator=(const PDSolver&) = delete;

  PDSolution<T> solve() {
    run_stage();
    if (settings_.refit && has_held_out() && !monitor_.stop_requested()) refit();
    return finish();
  }

 private:
  // Streams of the seed: one each for the hash and the order of samples, then one per visit.
  static constexpr std::uint64_t kHashStream = 0;
  static constexpr std::uint64_t kOrderStream = 1;
  static constexpr std::uint64_t kFirstVisit = 2;
  // An adapted number of labels per search starts with so many per label of a sample, and doubles
  // up to the second number. On delicious (19 labels a row) 100 at once instead of 19 raise the
  // held-out precision of the first pass from .52 to .55.
  static constexpr int kCandidatesPerLabel = 5;
  static constexpr int kMostCandidates = 100;
  // A search that takes more than this many times the work of the rest finds more labels at once.
  static constexpr std::int64_t kSearchShare = 2;
  // Finding a weight costs so many times what reading the next one costs.
  static constexpr std::int64_t kLookupCost = 3;
  // Evaluations take at most one entry in so many, except where the fit ends.
  static constexpr std::int64_t kEvaluationShare = 4;
  // Of P, a sum over samples.
  static constexpr double kRounding = 1e-9;
  // Visits between two looks at the monitor.
  static constexpr std::size_t kVisitsPerLook = 64;

  bool has_held_out() const { return held_out_.X.n_rows() > 0; }

  int first_candidates() const {
    if (order_.empty()) return 1;
    double total = 0.0;
    for (const index_t i : order_) total += static_cast<double>(data_.labels().of(i).size());
    const double wanted =
        std::round(kCandidatesPerLabel * total / static_cast<double>(order_.size()));
    return static_cast<int>(std::clamp(wanted, 1.0, static_cast<double>(kMostCandidates)));
  }

  // --- weights -------------------------------------------------------------------------------

  /// Stands for weights that are not made yet.
  PDWeights<T, I> no_weights(int n_parts) const {
    return {LabelParts(data_.n_labels(), n_parts), HashedRows<T>(0, 0, T{0}, root_)};
  }

  /// A W of this stage without values.
  PDWeights<T, I> empty_weights(LabelParts parts) const {
    if (is_refit_) return support_;
    const auto n_parts = static_cast<std::size_t>(parts.n_parts);
    return {parts, HashedRows<T>(data_.column_counts().size() * n_parts, parts.largest_size(),
                                 static_cast<T>(l1_), root_.split(kHashStream),
                                 settings_.has_bias ? n_parts : 0)};
  }

  void set_parts(int n_parts) {
    weights_ = empty_weights(LabelParts(data_.n_labels(), n_parts));
    mean_weights_ = no_weights(n_parts);
    visitor_.fit_to_parts();
  }

  /// Adds V of the duals to weights; costs what a pass of corrections costs.
  void add_all(const PDDuals<T>& duals, PDWeights<T, I>& weights) {
    typename PDWeights<T, I>::Changes changes(static_cast<std::size_t>(weights.parts().n_parts));
    for (const index_t i : order_) {
      for (auto& of_part : changes) of_part.clear();
      const auto positives = data_.labels().of(i);
      const T* masses = duals.positive.data() + data_.labels().begin(i);
      for (std::size_t p = 0; p < positives.size(); ++p) {
        weights.list_change(positives[p], masses[p], changes);
      }
      for (const auto& m : duals.negative[at(i)]) {
        weights.list_change(m.label, -m.mass, changes);
      }
      work_ += weights.apply(changes, data_.row(i));
    }
  }

  // --- the loop ------------------------------------------------------------------------------

  /// Passes until the gap is small, the held-out precision stops rising, or max_iter.
  void run_stage() {
    stage_best_ = -1.0;
    passes_since_better_ = 0;
    for (int pass = 1; pass <= settings_.max_iter; ++pass) {
      if (!run_pass()) return;
      PDPass report = describe_pass();
      bool is_last = pass == settings_.max_iter;
      if (has_held_out()) {
        report.held_out = check_held_out();
        is_last = is_last || passes_since_better_ >= settings_.n_iter_no_change;
      }
      if (is_last || may_evaluate()) evaluate();
      record(report);
      if (is_last || has_converged() || monitor_.stop_requested()) return;
      adapt();
    }
  }

  bool has_converged() const { return is_evaluated_ && values_.is_within(settings_.tol); }

  bool is_worse_than_zero() const {
    return values_.primal > data_.loss_at_zero() * (1.0 + kRounding);
  }

  /// Visits all samples once, in random order; false if it was stopped on the way.
  bool run_pass() {
    visitor_.search_work = visitor_.correct_work = 0;
    is_evaluated_ = is_at_best_ = false;
    order_rng_.shuffle(std::span<index_t>(order_));
    for (std::size_t v = 0; v < order_.size(); ++v) {
      if (v % kVisitsPerLook == 0 && monitor_.stop_requested()) return false;
      const T share_left = static_cast<T>(order_.size() - v) / static_cast<T>(order_.size());
      const index_t i = order_[v];
      visitor_.visit(i, visit_stream(i), n_candidates_, is_sampled_, share_left);
    }
    work_ += visitor_.search_work + visitor_.correct_work;
    ++n_passes_;
    return true;
  }

  Rng visit_stream(index_t i) const {
    const auto n_rows = static_cast<std::uint64_t>(data_.n_rows());
    return root_.split(kFirstVisit + static_cast<std::uint64_t>(n_passes_) * n_rows +
                       static_cast<std::uint64_t>(i));
  }

  // --- what a pass reached -------------------------------------------------------------------

  std::int64_t work() const { return work_ + measures_.work; }

  PDPass describe_pass() {
    sums_ = sum_up(weights_.rows(), duals_);
    values_.dual = dual_value(sums_, data_.constant_loss());
    PDPass report;
    report.nnz_primal = sums_.n_weights;
    report.nnz_dual = sums_.n_masses;
    report.active = mean_active();
    report.n_candidates = n_candidates_;
    report.n_partitions = weights_.parts().n_parts;
    report.is_refit = is_refit_;
    return report;
  }

  double mean_active() const {
    if (order_.empty()) return 0.0;
    std::size_t total = 0;
    for (const index_t i : order_) {
      total += data_.labels().of(i).size() + duals_.negative[at(i)].size();
    }
    return static_cast<double>(total) / static_cast<double>(order_.size());
  }

  void record(PDPass report) {
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - started_;
    report.seconds = elapsed.count();
    report.work = work();
    report.primal = values_.primal;
    report.dual = values_.dual;
    report.is_evaluated = is_evaluated_;
    passes_.push_back(report);
    monitor_.objective.store(values_.primal);
    monitor_.gap.store(values_.gap());
    monitor_.nnz_primal.store(report.nnz_primal);
    monitor_.nnz_dual.store(report.nnz_dual);
    monitor_.work.store(work());
    monitor_.n_done += 1;
  }

  /// Entries that an exact search of all samples visits.
  std::int64_t evaluation_cost() const {
    const HashedRows<T>& rows = weights_.rows();
    const auto n_parts = static_cast<std::size_t>(weights_.parts().n_parts);
    std::int64_t cost = 0;
    for (std::size_t r = 0; r < rows.n_rows(); ++r) {
      cost += data_.column_counts()[r / n_parts] * rows.n_weights(r);
    }
    return cost;
  }

  bool may_evaluate() const {
    return passes_.empty() || evaluation_cost() * kEvaluationShare <= work() - work_at_evaluation_;
  }

  /// P at the present weights.
  void evaluate() {
    values_.primal = primal_value(sums_, measures_.loss(data_, weights_));
    is_evaluated_ = !monitor_.stop_requested();
    work_at_evaluation_ = work();
  }

  // --- adaptation ----------------------------------------------------------------------------

  /// Chooses the next pass's search by the work counted in this one: more labels per search where
  /// the search dominates, and where that is not enough, a search in one part of the labels. Then
  /// the scores of the active set have to be looked up, about as often as weights are changed.
  void adapt() {
    const std::int64_t search = visitor_.search_work, correct = visitor_.correct_work;
    if (search <= kSearchShare * correct) return;
    if (settings_.n_candidates == 0 && n_candidates_ < kMostCandidates) {
      n_candidates_ = std::min(2 * n_candidates_, kMostCandidates);
      return;
    }
    const bool may_divide =
        settings_.search == PDSearch::automatic && weights_.parts().n_parts == 1 && !is_refit_;
    const std::int64_t divided = search / settings_.n_partitions + kLookupCost * correct;
    if (!may_divide || 2 * divided > search) return;
    set_parts(settings_.n_partitions);
    add_all(duals_, weights_);
  }

  // --- the best pass, refit, result ----------------------------------------------------------

  /// The better of two precisions on the held-out rows: of the weights at the end of the pass, and
  /// of the mean of the duals over the pass. The duals are kept if nothing has been better.
  double check_held_out() {
    const double last = measures_.precision(held_out_, weights_);
    if (mean_weights_.is_made()) {
      mean_weights_.reset();
    } else {
      mean_weights_ = empty_weights(weights_.parts());
    }
    add_all(mean_duals_, mean_weights_);
    const double mean = measures_.precision(held_out_, mean_weights_);
    const double better = std::max(last, mean);
    passes_since_better_ = better > stage_best_ ? 0 : passes_since_better_ + 1;
    stage_best_ = std::max(stage_best_, better);
    if (better > best_held_out_) {
      best_held_out_ = better;
      best_duals_ = mean >= last ? mean_duals_ : duals_;
      best_is_refit_ = is_refit_;
      is_at_best_ = mean < last;
    }
    return better;
  }

  /// W as it was at the best pass, made from the duals kept then.
  void restore_best() {
    if (best_held_out_ < 0.0 || is_at_best_) return;
    duals_ = best_duals_;
    is_refit_ = best_is_refit_;
    l1_ = is_refit_ ? 0.0 : settings_.l1;
    weights_ = empty_weights(weights_.parts());
    add_all(duals_, weights_);
    describe_pass();
    evaluate();
    is_at_best_ = true;
  }

  /// Section 4.3: the weights that l1 selected, without l1. The search goes on, unless it is to be
  /// as there; the result counts only if it is better on the held-out rows.
  void refit() {
    restore_best();
    visitor_.is_closed = settings_.is_refit_closed;
    weights_.close();
    support_ = mean_weights_ = weights_;
    is_refit_ = true;
    l1_ = 0.0;
    add_all(duals_, weights_);
    run_stage();
  }

  /// Weights that are worse than none become as short as P wants them; labels keep their ranks.
  void shorten() {
    if (has_held_out() || !is_evaluated_ || !is_worse_than_zero()) return;
    const std::vector<double> margins = measures_.margins(data_, weights_);
    scale_ = best_scale(sums_, data_.caps(), margins);
    double loss = 0.0;
    for (std::size_t i = 0; i < margins.size(); ++i) {
      if (data_.has_loss(static_cast<offset_t>(i))) {
        loss += data_.caps()[i] * std::max(0.0, 1.0 - scale_ * margins[i]);
      }
    }
    values_.primal = 0.5 * scale_ * scale_ * sums_.squares + scale_ * sums_.penalty + loss;
    if (!passes_.empty()) passes_.back().primal = values_.primal;
  }

  PDSolution<T> finish() {
    restore_best();
    shorten();
    PDSolution<T> solution;
    solution.status = has_converged()             ? Status::converged
                      : monitor_.stop_requested() ? Status::stopped
                                                  : Status::max_iter;
    solution.primal = values_.primal;
    solution.dual = values_.dual;
    solution.is_certified = is_evaluated_;
    solution.is_refit = is_refit_;
    solution.passes = std::move(passes_);
    collect_weights(solution);
    return solution;
  }

  void collect_weights(PDSolution<T>& solution) const {
    const LabelParts& parts = weights_.parts();
    std::vector<std::pair<index_t, T>> found;
    solution.indptr.push_back(0);
    for (std::size_t j = 0; j < data_.column_counts().size(); ++j) {
      found.clear();
      for (index_t part = 0; part < parts.n_parts; ++part) {
        weights_.rows().for_each_weight(parts.row_of(j, part), [&](index_t local, T w) {
          const T scaled = static_cast<T>(scale_) * w;
          if (scaled != T{0}) found.emplace_back(parts.label_at(part, local), scaled);
        });
      }
      std::sort(found.begin(), found.end());
      for (const auto& [label, w] : found) {
        solution.labels.push_back(label);
        solution.values.push_back(w);
      }
      solution.indptr.push_back(static_cast<offset_t>(solution.labels.size()));
    }
  }

  PDData<T, I> data_;
  const LabelledRows<T, I>& held_out_;
  PDSettings settings_;
  Monitor& monitor_;
  std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();

  double l1_;  ///< of the present stage
  Rng root_;
  Rng order_rng_;
  std::vector<index_t> order_;  ///< samples that a pass visits
  PDDuals<T> duals_;
  PDDuals<T> mean_duals_;  ///< over the present pass; only with held-out rows
  PDWeights<T, I> weights_;
  PDWeights<T, I> mean_weights_;
  PDWeights<T, I> support_;  ///< closed and without values: where a refit may have weights
  PDVisitor<T, I> visitor_;
  PDMeasures<T, I> measures_;
  int n_candidates_ = 1;
  bool is_sampled_ = false;

  std::int64_t work_ = 0;  ///< without that of the measures
  std::int64_t work_at_evaluation_ = 0;
  std::int64_t n_passes_ = 0;
  std::vector<PDPass> passes_;
  PDSums sums_;
  PDValues values_;     ///< the primal one of the last evaluation
  double scale_ = 1.0;  ///< of the weights that are returned
  bool is_evaluated_ = false;
  bool is_refit_ = false;

  PDDuals<T> best_duals_;
  double best_held_out_ = -1.0;
  double stage_best_ = -1.0;
  int passes_since_better_ = 0;
  bool best_is_refit_ = false;
  bool is_at_best_ = false;
};

/// Solves (13) with caps[i] = C_i. `held_out` may have no rows; with rows, the fit ends when its
/// precision stops rising and the best pass is returned. The result depends on the data and the
/// seed, not on the number of threads. After a stop request the weights are those of the moment
/// (with held-out rows, of the best pass) and nothing is certified.
template <class T, class I>
PDSolution<T> solve_pd_sparse(const LabelledRows<T, I>& train, std::span<const double> caps,
                              const LabelledRows<T, I>& held_out, offset_t n_labels,
                              const PDSettings& settings, Monitor& monitor) {
  return PDSolver<T, I>(train, caps, held_out, n_labels, settings, monitor).solve();
}

}  // namespace sublearn
