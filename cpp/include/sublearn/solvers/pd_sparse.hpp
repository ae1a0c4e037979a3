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
// W is kept by feature (search/hashed_rows.hpp), so an exact search costs the weights of x_i's
// features, and gives the scores of the active set as well. The other searches look at one part of
// the labels (24), and at a sample of x_i's features (25). P - D bounds the distance to the
// optimum; D is known after each pass, P takes an exact search of all samples.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
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
#include "sublearn/prox/bisimplex.hpp"
#include "sublearn/search/hashed_rows.hpp"
#include "sublearn/search/sample_features.hpp"
#include "sublearn/search/score_board.hpp"

namespace sublearn {

enum class PDSearch {
  automatic,  ///< exact, until counted work says that parts of the labels are cheaper
  exact,      ///< all labels (20)
  partition,  ///< one of several parts of the labels (24)
  sampled,    ///< the same with a sample of the features (25)
};

struct PDSettings {
  double l1 = 0.1;
  bool has_bias = false;  ///< the last feature is a constant, free of l1
  double tol = 1e-2;      ///< on the duality gap, relative to the objective
  int max_iter = 100;
  PDSearch search = PDSearch::automatic;
  int n_partitions = 3;      ///< parts of the labels where a search looks at one
  int n_candidates = 0;      ///< labels that a search may find; 0 adapts the number
  int n_iter_no_change = 3;  ///< passes without better held-out precision before the end
  bool refit = false;        ///< solve again without l1 on the weights found; keep it if better
  std::uint64_t seed = 0;
  int n_threads = 1;  ///< for the passes that only read: evaluation and held-out rows
};

/// How a pass ended.
struct PDPass {
  double seconds = 0.0;  ///< since the start of the fit
  double primal = 0.0;   ///< at the last evaluation
  double dual = 0.0;
  double active = 0.0;    ///< labels in the active set of a sample, mean
  double held_out = 0.0;  ///< precision of the best label on the held-out rows
  std::int64_t work = 0;  ///< entries of W, X and V visited since the start
  std::int64_t nnz_primal = 0;
  std::int64_t nnz_dual = 0;
  int n_candidates = 0;
  int n_partitions = 0;
  bool is_evaluated = false;  ///< whether `primal` is of this pass
  bool is_refit = false;
};

/// What a fit returns: weights by feature, labels increasing within a feature.
template <class T>
struct PDSolution {
  std::vector<offset_t> indptr;
  std::vector<index_t> labels;
  std::vector<T> values;
  std::vector<PDPass> passes;
  double primal = 0.0;
  double dual = 0.0;
  bool is_certified = false;  ///< primal and dual are those of the weights returned
  bool is_refit = false;
};

/// The dual variables of all samples at some pass; enough to make V and W again.
template <class T>
struct PDDuals {
  struct Mass {
    index_t label;
    T mass;
  };
  std::vector<T> positive;                  ///< in the order of the samples' labels
  std::vector<std::vector<Mass>> negative;  ///< by sample, none of them zero
};

template <class T, class I>
class PDSolver {
 public:
  PDSolver(const LabelledRows<T, I>& train, std::span<const double> caps,
           const LabelledRows<T, I>& held_out, offset_t n_labels, const PDSettings& settings,
           Monitor& monitor)
      : train_(train),
        held_out_(held_out),
        caps_(caps),
        settings_(settings),
        monitor_(monitor),
        n_labels_(static_cast<index_t>(n_labels)),
        l1_(settings.l1),
        root_(settings.seed),
        rows_(0, 0, T{0}, root_),
        mean_rows_(0, 0, T{0}, root_),
        support_(0, 0, T{0}, root_),
        order_rng_(root_.split(kOrderStream)) {
    measure_data();
    duals_.positive.assign(train.labels.size(), T{0});
    duals_.negative.resize(static_cast<std::size_t>(train.X.n_rows()));
    if (has_held_out()) mean_duals_ = duals_;
    // A search draws untouched labels in proportion to its room, so room for no label costs time.
    n_candidates_ =
        settings.n_candidates > 0 ? std::min(settings.n_candidates, n_labels_) : first_candidates();
    const bool parts =
        settings.search == PDSearch::partition || settings.search == PDSearch::sampled;
    set_parts(parts ? settings.n_partitions : 1);
    is_sampled_ = settings.search == PDSearch::sampled;
    sample_rate_ = sample_rate();
  }

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
  // Rows per block of the passes that only read; sums are taken block by block.
  static constexpr offset_t kChunk = 64;
  // Rows of W are asked for this many features before they are read.
  static constexpr std::size_t kAhead = 8;
  // And their entries this many features before they are changed.
  static constexpr std::size_t kNext = 2;
  // Draws for each untouched label that a search has room for.
  static constexpr int kDraws = 4;

  using Place = typename HashedRows<T>::Place;
  using Mass = typename PDDuals<T>::Mass;

  using Change = typename HashedRows<T>::Change;

  bool has_held_out() const { return held_out_.X.n_rows() > 0; }

  // --- the data ------------------------------------------------------------------------------

  void measure_data() {
    const auto n_rows = static_cast<std::size_t>(train_.X.n_rows());
    squares_.resize(n_rows);
    column_counts_.assign(static_cast<std::size_t>(train_.X.n_cols()), 0);
    for (offset_t i = 0; i < train_.X.n_rows(); ++i) {
      const auto row = train_.X.row(i);
      double square = 0.0;
      for (const T x : row.values) square += static_cast<double>(x) * static_cast<double>(x);
      squares_[static_cast<std::size_t>(i)] = square;
      for (const I j : row.ids) ++column_counts_[static_cast<std::size_t>(j)];
      if (is_constant(i)) constant_loss_ += caps_[static_cast<std::size_t>(i)];
      if (is_live(i)) order_.push_back(static_cast<index_t>(i));
    }
  }

  /// Whether a sample has a loss at all: some labels and not all of them, and a weight.
  bool has_loss(offset_t i) const {
    const std::size_t n_positive = train_.labels.of(i).size();
    return n_positive > 0 && n_positive < static_cast<std::size_t>(n_labels_) &&
           caps_[static_cast<std::size_t>(i)] > 0.0;
  }
  bool is_empty(offset_t i) const {
    return squares_[static_cast<std::size_t>(i)] < std::numeric_limits<T>::min();
  }
  /// All scores of a row without features are zero: its loss is one, whatever the weights, and its
  /// total is C_i at any dual optimum.
  bool is_constant(offset_t i) const { return has_loss(i) && is_empty(i); }
  bool is_live(offset_t i) const { return has_loss(i) && !is_empty(i); }

  int first_candidates() const {
    if (order_.empty()) return 1;
    double total = 0.0;
    for (const index_t i : order_) total += static_cast<double>(train_.labels.of(i).size());
    const double wanted =
        std::round(kCandidatesPerLabel * total / static_cast<double>(order_.size()));
    return static_cast<int>(std::clamp(wanted, 1.0, static_cast<double>(kMostCandidates)));
  }

  // --- labels in parts -----------------------------------------------------------------------

  index_t part_of(index_t label) const { return n_parts_ == 1 ? 0 : label % n_parts_; }
  Place place_of(index_t label) const {
    return rows_.place(n_parts_ == 1 ? label : label / n_parts_);
  }
  index_t label_at(index_t part, index_t local) const { return local * n_parts_ + part; }
  std::size_t row_of(I feature, index_t part) const {
    return static_cast<std::size_t>(feature) * static_cast<std::size_t>(n_parts_) +
           static_cast<std::size_t>(part);
  }
  /// Labels of a part; the parts may differ by one.
  index_t part_size(index_t part) const { return (n_labels_ - part + n_parts_ - 1) / n_parts_; }

  void set_parts(int n_parts) {
    n_parts_ = std::clamp<index_t>(n_parts, 1, std::max<index_t>(n_labels_, 1));
    rows_ = empty_rows();
    mean_rows_ = HashedRows<T>(0, 0, T{0}, root_);
    board_ = ScoreBoard<T>(rows_.n_labels());
    changes_.resize(static_cast<std::size_t>(n_parts_));
  }

  /// A W of this stage without values.
  HashedRows<T> empty_rows() const {
    if (is_refit_) return support_;
    const auto n_rows = column_counts_.size() * static_cast<std::size_t>(n_parts_);
    return HashedRows<T>(n_rows, (n_labels_ + n_parts_ - 1) / n_parts_, static_cast<T>(l1_),
                         root_.split(kHashStream),
                         settings_.has_bias ? static_cast<std::size_t>(n_parts_) : 0);
  }

  /// Adds V of the duals to rows; costs what a pass of corrections costs.
  void add_all(const PDDuals<T>& duals, HashedRows<T>& rows) {
    for (const index_t i : order_) {
      for (auto& changes : changes_) changes.clear();
      const auto positives = train_.labels.of(i);
      const T* masses = duals.positive.data() + train_.labels.begin(i);
      for (std::size_t p = 0; p < positives.size(); ++p) add_change(positives[p], masses[p]);
      for (const Mass& m : duals.negative[static_cast<std::size_t>(i)]) {
        add_change(m.label, -m.mass);
      }
      work_ += apply_changes(i, rows);
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

  bool has_converged() const {
    return is_evaluated_ && std::isfinite(primal_) && primal_ - dual_ <= settings_.tol * primal_;
  }

  /// Visits all samples once, in random order; false if it was stopped on the way.
  bool run_pass() {
    search_work_ = correct_work_ = 0;
    is_evaluated_ = is_at_best_ = false;
    order_rng_.shuffle(std::span<index_t>(order_));
    for (std::size_t v = 0; v < order_.size(); ++v) {
      if (v % kChunk == 0 && monitor_.stop_requested()) return false;
      share_left_ = static_cast<T>(order_.size() - v) / static_cast<T>(order_.size());
      visit(order_[v]);
    }
    work_ += search_work_ + correct_work_;
    ++n_passes_;
    return true;
  }

  void visit(index_t i) {
    gather(i);
    if (n_parts_ == 1 && !is_sampled_) {
      score_exactly(i);
    } else {
      score_approximately(i);
    }
    correct(i);
    shrink(i);
  }

  // --- search --------------------------------------------------------------------------------

  /// The active set of a sample: its positives, then the negatives that have mass.
  void gather(index_t i) {
    const auto positives = train_.labels.of(i);
    n_positive_ = positives.size();
    active_.assign(positives.begin(), positives.end());
    const auto begin =
        duals_.positive.begin() + static_cast<std::ptrdiff_t>(train_.labels.begin(i));
    masses_.assign(begin, begin + static_cast<std::ptrdiff_t>(n_positive_));
    for (const Mass& m : duals_.negative[static_cast<std::size_t>(i)]) {
      active_.push_back(m.label);
      masses_.push_back(m.mass);
    }
    scores_.assign(active_.size(), T{0});
  }

  /// A negative violates above this score.
  T violation_bar() const {
    return *std::min_element(scores_.begin(),
                             scores_.begin() + static_cast<std::ptrdiff_t>(n_positive_)) -
           T{1};
  }

  void score_exactly(index_t i) {
    Rng rng = visit_stream(i);
    add_row_to_board(train_.X.row(i), 0, rows_, board_, search_work_);
    for (std::size_t a = 0; a < active_.size(); ++a) scores_[a] = board_.take(active_[a]);
    enter_candidates(0, violation_bar(), rng);
    board_.clear();
  }

  /// One part of the labels, or a sample of the features on it. The scores of the active set are
  /// looked up, and those of the labels found if they were estimated.
  void score_approximately(index_t i) {
    Rng rng = visit_stream(i);
    look_up(i, 0);
    const auto part = static_cast<index_t>(rng.below(static_cast<std::uint32_t>(n_parts_)));
    const auto row = train_.X.row(i);
    if (is_sampled_) {
      sample_features(row, sample_size(row.size()), rng, sample_);
      for (const auto& [at, weight] : sample_) {
        const std::size_t r = row_of(row.ids[at], part);
        rows_.add_to(r, weight, board_);
        search_work_ += rows_.n_weights(r);
      }
    } else {
      add_row_to_board(row, part, rows_, board_, search_work_);
    }
    for (const index_t label : active_) {
      if (part_of(label) == part) board_.take(place_of(label).label);
    }
    const std::size_t n_active = active_.size();
    enter_candidates(part, violation_bar(), rng);
    board_.clear();
    if (is_sampled_) look_up(i, n_active);
  }

  Rng visit_stream(index_t i) const {
    const auto n_rows = static_cast<std::uint64_t>(train_.X.n_rows());
    return root_.split(kFirstVisit + static_cast<std::uint64_t>(n_passes_) * n_rows +
                       static_cast<std::uint64_t>(i));
  }

  std::size_t sample_size(std::size_t n_features) const {
    return static_cast<std::size_t>(std::ceil(static_cast<double>(n_features) / sample_rate_));
  }

  /// d_i / d~_i as section 4.4 sets it from (30).
  double sample_rate() const {
    const double nnz = static_cast<double>(std::max<offset_t>(train_.X.nnz(), 1));
    const double n_rows = static_cast<double>(std::max<offset_t>(train_.X.n_rows(), 1));
    const double n_weights = static_cast<double>(train_.X.n_cols()) * n_labels_;
    const double C = std::accumulate(caps_.begin(), caps_.end(), 0.0) / n_rows;
    const double by_bound = 5 * n_weights / (C * nnz * std::log(std::max(2.0, 1.0 * n_labels_)));
    const double by_length = nnz / (5 * n_rows);
    return std::max(1.0, std::ceil(std::min(by_bound, by_length)));
  }

  /// Labels of the board become active with mass zero: the best that violate, and where they are
  /// too few, random ones of those that no weight touches, whose score is zero.
  void enter_candidates(index_t part, T bar, Rng& rng) {
    best_.start(static_cast<std::size_t>(n_candidates_));
    board_.offer_above(bar, best_);
    for (const Scored<T>& found : best_.select()) enter(part, found.id, found.score);
    if (!(T{0} > bar)) return;
    const auto size = static_cast<std::uint32_t>(part_size(part));
    const int n_free = n_candidates_ - static_cast<int>(best_.select().size());
    for (int draw = 0, found = 0; draw < kDraws * n_free && found < n_free; ++draw) {
      const auto local = static_cast<index_t>(rng.below(size));
      if (board_[local] != T{0}) continue;
      board_.take(local);
      enter(part, local, T{0});
      ++found;
    }
  }

  void enter(index_t part, index_t local, T score) {
    active_.push_back(label_at(part, local));
    masses_.push_back(T{0});
    scores_.push_back(score);
  }

  /// Scores of the active labels from position `first` on, one weight at a time.
  void look_up(index_t i, std::size_t first) {
    places_.clear();
    for (std::size_t a = first; a < active_.size(); ++a) {
      places_.emplace_back(part_of(active_[a]), place_of(active_[a]));
      scores_[a] = 0;
    }
    const auto row = train_.X.row(i);
    for (std::size_t p = 0; p < row.size(); ++p) {
      prefetch(row, p, rows_);
      for (std::size_t a = 0; a < places_.size(); ++a) {
        const auto& [part, place] = places_[a];
        scores_[first + a] += row.values[p] * rows_.weight(row_of(row.ids[p], part), place);
      }
    }
    correct_work_ += static_cast<std::int64_t>(row.size() * places_.size());
  }

  void prefetch(const SparseVector<T, I>& row, std::size_t p, const HashedRows<T>& rows) const {
    if (p + 2 * kAhead < row.size()) rows.prefetch(row_of(row.ids[p + 2 * kAhead], 0));
    if (p + kAhead < row.size()) rows.prefetch_block(row_of(row.ids[p + kAhead], 0));
  }

  void add_row_to_board(const SparseVector<T, I>& row, index_t part, const HashedRows<T>& rows,
                        ScoreBoard<T>& board, std::int64_t& work) const {
    for (std::size_t p = 0; p < row.size(); ++p) {
      prefetch(row, p, rows);
      const std::size_t r = row_of(row.ids[p], part);
      rows.add_to(r, row.values[p], board);
      work += rows.n_weights(r);
    }
  }

  // --- correct and shrink --------------------------------------------------------------------

  void correct(index_t i) {
    const double Q = squares_[static_cast<std::size_t>(i)];
    targets_.resize(active_.size());
    for (std::size_t a = 0; a < active_.size(); ++a) {
      const double score = static_cast<double>(scores_[a]);
      const double slope = a < n_positive_ ? -score : score + 1.0;
      targets_[a] = static_cast<double>(masses_[a]) + slope / Q;
    }
    const std::span<double> all(targets_);
    project_bisimplex<double>(all.subspan(n_positive_), all.first(n_positive_),
                              caps_[static_cast<std::size_t>(i)], projection_);
    for (auto& changes : changes_) changes.clear();
    for (std::size_t a = 0; a < active_.size(); ++a) {
      const T mass = static_cast<T>(targets_[a]);
      const T change = mass - masses_[a];
      masses_[a] = mass;
      add_change(active_[a], a < n_positive_ ? change : -change);
    }
    correct_work_ += apply_changes(i, rows_);
  }

  void add_change(index_t label, T amount) {
    if (amount == T{0}) return;
    changes_[static_cast<std::size_t>(part_of(label))].push_back({place_of(label), amount});
  }

  /// v_k += amount x_i for all changes (23), and W follows; returns the entries visited.
  std::int64_t apply_changes(index_t i, HashedRows<T>& rows) const {
    std::size_t n_changes = 0;
    for (const auto& changes : changes_) n_changes += changes.size();
    if (n_changes == 0) return 0;
    const auto row = train_.X.row(i);
    for (std::size_t p = 0; p < row.size(); ++p) {
      prefetch(row, p, rows);
      const T x = row.values[p];
      if (x == T{0}) continue;
      for (index_t part = 0; part < n_parts_; ++part) {
        const auto& changes = changes_[static_cast<std::size_t>(part)];
        if (changes.empty()) continue;
        if (p + kNext < row.size()) rows.prefetch(row_of(row.ids[p + kNext], part), changes);
        rows.add(row_of(row.ids[p], part), changes, x);
      }
    }
    return static_cast<std::int64_t>(row.size() * n_changes);
  }

  void shrink(index_t i) {
    if (has_held_out()) average(i);
    std::copy_n(masses_.begin(), n_positive_,
                duals_.positive.begin() + static_cast<std::ptrdiff_t>(train_.labels.begin(i)));
    auto& negative = duals_.negative[static_cast<std::size_t>(i)];
    negative.clear();
    for (std::size_t a = n_positive_; a < active_.size(); ++a) {
      if (masses_[a] > T{0}) negative.push_back({active_[a], masses_[a]});
    }
  }

  /// The mean over a pass of the duals of sample i: what they were until now, what they are for the
  /// rest of it. The active set still holds what left, so all labels of both are there.
  void average(index_t i) {
    const auto& old_negative = duals_.negative[static_cast<std::size_t>(i)];
    const std::size_t first = train_.labels.begin(i);
    for (std::size_t p = 0; p < n_positive_; ++p) {
      const T before = duals_.positive[first + p];
      mean_duals_.positive[first + p] = before + share_left_ * (masses_[p] - before);
    }
    auto& negative = mean_duals_.negative[static_cast<std::size_t>(i)];
    negative.clear();
    for (std::size_t a = n_positive_; a < active_.size(); ++a) {
      const std::size_t old = a - n_positive_;
      const T before = old < old_negative.size() ? old_negative[old].mass : T{0};
      const T mean = before + share_left_ * (masses_[a] - before);
      if (mean > T{0}) negative.push_back({active_[a], mean});
    }
  }

  // --- what a pass reached -------------------------------------------------------------------

  /// Squares, l1 penalty and number of the weights; totals of the masses.
  struct Sums {
    double squares = 0.0;
    double penalty = 0.0;
    double mass = 0.0;
    std::int64_t n_weights = 0;
    std::int64_t n_masses = 0;
  };

  Sums sum_up() const {
    Sums sums;
    for (std::size_t r = 0; r < rows_.n_rows(); ++r) {
      rows_.for_each_weight(r, [&](index_t, T w) {
        sums.squares += static_cast<double>(w) * static_cast<double>(w);
        sums.penalty += static_cast<double>(rows_.level(r)) * std::abs(static_cast<double>(w));
        sums.n_weights += w != T{0};
      });
    }
    for (const T mass : duals_.positive) sums.n_masses += mass != T{0};
    for (const auto& negative : duals_.negative) {
      for (const Mass& m : negative) sums.mass += static_cast<double>(m.mass);
      sums.n_masses += static_cast<std::int64_t>(negative.size());
    }
    return sums;
  }

  PDPass describe_pass() {
    sums_ = sum_up();
    dual_ = sums_.mass + constant_loss_ - 0.5 * sums_.squares;
    PDPass report;
    report.nnz_primal = sums_.n_weights;
    report.nnz_dual = sums_.n_masses;
    report.active = mean_active();
    report.n_candidates = n_candidates_;
    report.n_partitions = n_parts_;
    report.is_refit = is_refit_;
    return report;
  }

  double mean_active() const {
    if (order_.empty()) return 0.0;
    std::size_t total = 0;
    for (const index_t i : order_) {
      total += train_.labels.of(i).size() + duals_.negative[static_cast<std::size_t>(i)].size();
    }
    return static_cast<double>(total) / static_cast<double>(order_.size());
  }

  void record(PDPass report) {
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - started_;
    report.seconds = elapsed.count();
    report.work = work_;
    report.primal = primal_;
    report.dual = dual_;
    report.is_evaluated = is_evaluated_;
    passes_.push_back(report);
    monitor_.objective.store(primal_);
    monitor_.gap.store(primal_ - dual_);
    monitor_.nnz_primal.store(report.nnz_primal);
    monitor_.nnz_dual.store(report.nnz_dual);
    monitor_.work.store(work_);
    monitor_.n_done += 1;
  }

  /// Entries that an exact search of all samples visits.
  std::int64_t evaluation_cost() const {
    std::int64_t cost = 0;
    for (std::size_t r = 0; r < rows_.n_rows(); ++r) {
      cost += column_counts_[r / static_cast<std::size_t>(n_parts_)] * rows_.n_weights(r);
    }
    return cost;
  }

  bool may_evaluate() const {
    return passes_.empty() || evaluation_cost() * kEvaluationShare <= work_ - work_at_evaluation_;
  }

  /// P at the present weights: an exact search of all samples, on several threads. Sums are taken
  /// in the order of the samples, so they do not depend on the threads.
  void evaluate() {
    const std::vector<double> losses = for_each_chunk(train_, [&](offset_t i, Reader& reader) {
      return has_loss(i) ? caps_[static_cast<std::size_t>(i)] * loss_of(i, reader) : 0.0;
    });
    const double loss = std::accumulate(losses.begin(), losses.end(), 0.0);
    primal_ = 0.5 * sums_.squares + sums_.penalty + loss;
    is_evaluated_ = !monitor_.stop_requested();
    work_at_evaluation_ = work_;
  }

  double held_out_precision(const HashedRows<T>& rows) {
    const std::vector<double> hits = for_each_chunk(held_out_, [&](offset_t i, Reader& reader) {
      const index_t best = best_label(held_out_.X.row(i), rows, reader);
      const auto truth = held_out_.labels.of(i);
      return std::binary_search(truth.begin(), truth.end(), best) ? 1.0 : 0.0;
    });
    return std::accumulate(hits.begin(), hits.end(), 0.0) /
           static_cast<double>(held_out_.X.n_rows());
  }

  /// Scratch of a thread that only reads W.
  struct Reader {
    ScoreBoard<T> board;
    TopK<T> best;
    std::int64_t work = 0;
  };

  template <class Value>
  std::vector<double> for_each_chunk(const LabelledRows<T, I>& data, Value&& value) {
    const offset_t n_rows = data.X.n_rows();
    const offset_t n_chunks = (n_rows + kChunk - 1) / kChunk;
    std::vector<double> totals(static_cast<std::size_t>(n_chunks), 0.0);
    std::vector<Reader> readers(
        static_cast<std::size_t>(effective_threads(n_chunks, settings_.n_threads)),
        Reader{ScoreBoard<T>(rows_.n_labels()), TopK<T>(1), 0});
    parallel_for(n_chunks, settings_.n_threads, &monitor_, [&](offset_t chunk, int thread) {
      const offset_t end = std::min((chunk + 1) * kChunk, n_rows);
      for (offset_t i = chunk * kChunk; i < end; ++i) {
        totals[static_cast<std::size_t>(chunk)] +=
            value(i, readers[static_cast<std::size_t>(thread)]);
      }
    });
    for (const Reader& reader : readers) work_ += reader.work;
    return totals;
  }

  double loss_of(offset_t i, Reader& reader) const {
    T lowest_positive = std::numeric_limits<T>::infinity();
    T highest_negative = -std::numeric_limits<T>::infinity();
    for (index_t part = 0; part < n_parts_; ++part) {
      add_row_to_board(train_.X.row(i), part, rows_, reader.board, reader.work);
      for (const index_t label : train_.labels.of(i)) {
        if (part_of(label) != part) continue;
        lowest_positive = std::min(lowest_positive, reader.board.take(place_of(label).label));
      }
      highest_negative = std::max(highest_negative, reader.board.largest(part_size(part)));
      reader.board.clear();
    }
    const double margin =
        static_cast<double>(lowest_positive) - static_cast<double>(highest_negative);
    return std::max(0.0, 1.0 - margin);
  }

  index_t best_label(const SparseVector<T, I>& row, const HashedRows<T>& rows,
                     Reader& reader) const {
    Scored<T> best{-std::numeric_limits<T>::infinity(), std::numeric_limits<index_t>::max()};
    for (index_t part = 0; part < n_parts_; ++part) {
      add_row_to_board(row, part, rows, reader.board, reader.work);
      Scored<T> found = reader.board.best(part_size(part), reader.best);
      found.id = label_at(part, found.id);
      if (ranks_before(found, best)) best = found;
      reader.board.clear();
    }
    return best.id;
  }

  // --- adaptation ----------------------------------------------------------------------------

  /// Chooses the next pass's search by the work counted in this one: more labels per search where
  /// the search dominates, and where that is not enough, a search in one part of the labels. Then
  /// the scores of the active set have to be looked up, about as often as weights are changed.
  void adapt() {
    if (search_work_ <= kSearchShare * correct_work_) return;
    if (settings_.n_candidates == 0 && n_candidates_ < kMostCandidates) {
      n_candidates_ = std::min(2 * n_candidates_, kMostCandidates);
      return;
    }
    const bool may_divide = settings_.search == PDSearch::automatic && n_parts_ == 1 && !is_refit_;
    const std::int64_t divided =
        search_work_ / settings_.n_partitions + kLookupCost * correct_work_;
    if (!may_divide || 2 * divided > search_work_) return;
    set_parts(settings_.n_partitions);
    add_all(duals_, rows_);
  }

  // --- the best pass, refit, result ----------------------------------------------------------

  /// The better of two precisions on the held-out rows: of the weights at the end of the pass, and
  /// of the mean of the duals over the pass. The duals are kept if nothing has been better.
  double check_held_out() {
    const double last = held_out_precision(rows_);
    if (mean_rows_.n_rows() == 0) {
      mean_rows_ = empty_rows();
    } else {
      mean_rows_.reset();
    }
    add_all(mean_duals_, mean_rows_);
    const double mean = held_out_precision(mean_rows_);
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
    rows_ = empty_rows();
    add_all(duals_, rows_);
    describe_pass();
    evaluate();
    is_at_best_ = true;
  }

  /// Section 4.3: the weights that l1 selected, without l1. Unlike there the search goes on, and
  /// the result counts only if it is better on the held-out rows.
  void refit() {
    restore_best();
    rows_.close();
    support_ = mean_rows_ = rows_;
    is_refit_ = true;
    l1_ = 0.0;
    add_all(duals_, rows_);
    run_stage();
  }

  PDSolution<T> finish() {
    restore_best();
    PDSolution<T> solution;
    solution.primal = primal_;
    solution.dual = dual_;
    solution.is_certified = is_evaluated_;
    solution.is_refit = is_refit_;
    solution.passes = std::move(passes_);
    collect_weights(solution);
    return solution;
  }

  void collect_weights(PDSolution<T>& solution) const {
    std::vector<std::pair<index_t, T>> weights;
    solution.indptr.push_back(0);
    for (std::size_t j = 0; j < column_counts_.size(); ++j) {
      weights.clear();
      for (index_t part = 0; part < n_parts_; ++part) {
        rows_.for_each_weight(row_of(static_cast<I>(j), part), [&](index_t local, T w) {
          if (w != T{0}) weights.emplace_back(label_at(part, local), w);
        });
      }
      std::sort(weights.begin(), weights.end());
      for (const auto& [label, w] : weights) {
        solution.labels.push_back(label);
        solution.values.push_back(w);
      }
      solution.indptr.push_back(static_cast<offset_t>(solution.labels.size()));
    }
  }

  const LabelledRows<T, I>& train_;
  const LabelledRows<T, I>& held_out_;
  std::span<const double> caps_;  ///< C_i
  PDSettings settings_;
  Monitor& monitor_;
  std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();

  index_t n_labels_;
  double l1_;                    ///< of the present stage
  std::vector<double> squares_;  ///< Q_i
  std::vector<std::int64_t> column_counts_;
  double constant_loss_ = 0.0;  ///< of the rows without features

  Rng root_;
  HashedRows<T> rows_;
  HashedRows<T> mean_rows_;
  HashedRows<T> support_;  ///< closed and without values: where a refit may have weights
  Rng order_rng_;
  std::vector<index_t> order_;  ///< samples that a pass visits
  PDDuals<T> duals_;
  PDDuals<T> mean_duals_;  ///< over the present pass; only with held-out rows
  T share_left_ = 1;       ///< of the present pass
  index_t n_parts_ = 1;
  int n_candidates_ = 1;
  bool is_sampled_ = false;
  double sample_rate_ = 1.0;

  // The sample being visited: its positives first.
  std::size_t n_positive_ = 0;
  std::vector<index_t> active_;
  std::vector<T> masses_;
  std::vector<T> scores_;
  std::vector<double> targets_;
  std::vector<double> projection_;
  std::vector<std::vector<Change>> changes_;  ///< by part
  std::vector<std::pair<index_t, Place>> places_;
  std::vector<FeatureDraw<T>> sample_;
  ScoreBoard<T> board_;
  TopK<T> best_;

  std::int64_t work_ = 0;
  std::int64_t search_work_ = 0;   ///< of the present pass
  std::int64_t correct_work_ = 0;  ///< of the present pass
  std::int64_t work_at_evaluation_ = 0;
  std::int64_t n_passes_ = 0;
  std::vector<PDPass> passes_;
  Sums sums_;
  double primal_ = 0.0;
  double dual_ = 0.0;
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
