// The inner loops of PPD-Sparse, lane by lane against loops that a reader can check.
#include "sublearn/solvers/ppd_sparse/kernels.hpp"

#include <algorithm>
#include <limits>
#include <vector>

#include "check.hpp"
#include "random_problems.hpp"
#include "sublearn/prox/soft_threshold.hpp"

using namespace sublearn;
using sublearn::testing::RandomMatrix;

namespace {

constexpr offset_t kRows = 60;
constexpr offset_t kCols = 25;

template <class T>
constexpr LaneMask kAllLanes = static_cast<LaneMask>((std::uint64_t{1} << kLanes<T>)-1);

template <class T>
double tolerance() {
  return sizeof(T) == 4 ? 2e-4 : 1e-11;
}

LaneMask random_lanes(Rng& rng, int n_lanes, double share) {
  LaneMask mask = 0;
  for (int l = 0; l < n_lanes; ++l) {
    if (rng.uniform() < share) mask |= lane_bit(l);
  }
  return mask;
}

/// A block in the middle of a fit: active rows, duals, and v and bias that belong to them.
template <class T, class I>
struct Block {
  RandomMatrix<T, I> matrix;
  std::vector<ActiveRow> active;
  std::vector<Pack<T>> alpha;
  std::vector<T> curvature;
  std::vector<Pack<T>> v;
  std::vector<index_t> order;
  SweepState<T> state;

  Block(std::uint64_t seed, double share, T diagonal, T upper, bool learn_bias)
      : matrix(kRows, kCols, 0.3, Rng(seed)), v(kCols, Pack<T>::all(0)) {
    Rng rng(seed + 1000);
    state.l1 = T(0.05);
    state.dual_diagonal = diagonal;
    state.upper_bound = upper;
    state.learn_bias = learn_bias;
    state.bias = Pack<T>::all(learn_bias ? 0 : -1);
    state.worst = Pack<T>::all(0);
    state.sleep_above = Pack<T>::all(std::numeric_limits<T>::infinity());
    for (offset_t i = 0; i < kRows; ++i) {
      ActiveRow a{.row = static_cast<index_t>(i)};
      a.member = random_lanes(rng, kLanes<T>, share);
      a.positive = a.member & random_lanes(rng, kLanes<T>, 0.3);
      a.awake = a.member;
      const double square = matrix.product(i, [&](index_t) { return 0.0; }) + row_square(i);
      curvature.push_back(static_cast<T>(square) + (learn_bias ? T(1) : T(0)) + diagonal);
      alpha.push_back(Pack<T>::all(0));
      active.push_back(a);
      if (curvature.back() > 0) order.push_back(static_cast<index_t>(i));
    }
    bind();
  }

  Block(const Block& other) : Block(other, 0) {}
  Block& operator=(const Block&) = delete;

  void bind() {
    state.v = v.data();
    state.alpha = alpha.data();
    state.curvature = curvature.data();
  }

  double row_square(offset_t i) const {
    double sum = 0;
    for (const T x : matrix.view().row(i).values) sum += static_cast<double>(x) * x;
    return sum;
  }

  double weight(index_t j, int l) const {
    return soft_threshold(static_cast<double>(v[j][l]), static_cast<double>(state.l1));
  }

  /// Whether a lane has something to learn; the margin of a negative starts at 1 under a fixed
  /// bias.
  bool has_positive(int l) const {
    return std::any_of(order.begin(), order.end(),
                       [&](index_t s) { return (active[s].positive & lane_bit(l)) != 0; });
  }

  /// The dual objective of a lane, to be minimised, from alpha alone.
  double dual(int l) const {
    std::vector<double> sums(kCols, 0.0);
    double bias = state.learn_bias ? 0 : -1, linear = 0, squares = 0;
    for (std::size_t s = 0; s < active.size(); ++s) {
      const double a = alpha[s][l];
      const double y = (active[s].positive & lane_bit(l)) ? 1 : -1;
      const auto row = matrix.view().row(active[s].row);
      for (std::size_t p = 0; p < row.size(); ++p) sums[row.ids[p]] += y * a * row.values[p];
      linear += state.learn_bias ? a : a * (1 + y);  // a fixed bias of -1 adds y alpha
      squares += a * a;
      if (state.learn_bias) bias += y * a;
    }
    double value = 0.5 * state.dual_diagonal * squares - linear;
    if (state.learn_bias) value += 0.5 * bias * bias;
    for (const double sum : sums) {
      const double w = soft_threshold(sum, static_cast<double>(state.l1));
      value += 0.5 * w * w;
    }
    return value;
  }

  /// How far v and the bias are from what alpha says.
  double drift(int l) const {
    std::vector<double> sums(kCols, 0.0);
    double bias = state.learn_bias ? 0 : -1;
    for (std::size_t s = 0; s < active.size(); ++s) {
      const double step = ((active[s].positive & lane_bit(l)) ? 1.0 : -1.0) * alpha[s][l];
      const auto row = matrix.view().row(active[s].row);
      for (std::size_t p = 0; p < row.size(); ++p) sums[row.ids[p]] += step * row.values[p];
      if (state.learn_bias) bias += step;
    }
    double worst = std::abs(bias - state.bias[l]);
    for (offset_t j = 0; j < kCols; ++j) worst = std::max(worst, std::abs(sums[j] - v[j][l]));
    return worst;
  }

 private:
  Block(const Block& other, int)
      : matrix(other.matrix),
        active(other.active),
        alpha(other.alpha),
        curvature(other.curvature),
        v(other.v),
        order(other.order),
        state(other.state) {
    bind();
  }
};

/// Calls body(block) for both losses, both biases and rows active in few lanes or in many.
template <class T, class I, class Body>
void for_each_block(Body&& body) {
  for (const double share : {0.12, 0.5, 1.0}) {
    for (const bool learn_bias : {false, true}) {
      Block<T, I> hinge(7, share, T(0), T(0.8), learn_bias);
      body(hinge);
      Block<T, I> squared(8, share, T(0.5), std::numeric_limits<T>::infinity(), learn_bias);
      body(squared);
    }
  }
}

template <class T, class I>
void check_sweep_descends() {
  for_each_block<T, I>([](Block<T, I>& block) {
    for (int s = 0; s < 4; ++s) {
      std::vector<double> before;
      for (int l = 0; l < kLanes<T>; ++l) before.push_back(block.dual(l));
      sweep<T, index_t>(block.matrix.view(), block.active, block.order, block.state);
      for (int l = 0; l < kLanes<T>; ++l) {
        CHECK(block.dual(l) <= before[static_cast<std::size_t>(l)] + tolerance<T>());
        CHECK_NEAR(block.drift(l), 0.0, tolerance<T>());
        if (s == 0 && block.has_positive(l)) {
          CHECK(block.dual(l) < before[static_cast<std::size_t>(l)]);
        }
      }
    }
    for (std::size_t i = 0; i < block.active.size(); ++i) {
      for (int l = 0; l < kLanes<T>; ++l) {
        const T a = block.alpha[i][l];
        CHECK(a >= 0 && a <= block.state.upper_bound);
        if ((block.active[i].member & lane_bit(l)) == 0) CHECK(a == 0);
      }
    }
    CHECK(block.state.work > 0);
  });
}

/// One lane alone is updated by the scalar path; all lanes together by the vector path.
template <class T, class I>
void check_lanes_do_not_mix() {
  Block<T, I> together(9, 1.0, T(0.5), T(10), true);
  for (auto& a : together.active) a.member = a.awake = kAllLanes<T>;
  const Block<T, I> start = together;
  for (int s = 0; s < 3; ++s) {
    sweep<T, index_t>(together.matrix.view(), together.active, together.order, together.state);
  }
  for (int l = 0; l < kLanes<T>; ++l) {
    Block<T, I> alone = start;
    for (int s = 0; s < 3; ++s) {
      for (auto& a : alone.active) a.member = a.awake = lane_bit(l);
      sweep<T, index_t>(alone.matrix.view(), alone.active, alone.order, alone.state);
    }
    for (std::size_t i = 0; i < alone.active.size(); ++i) {
      CHECK_NEAR(alone.alpha[i][l], together.alpha[i][l], tolerance<T>());
    }
    for (std::size_t j = 0; j < alone.v.size(); ++j) {
      CHECK_NEAR(alone.v[j][l], together.v[j][l], tolerance<T>());
      for (int other = 0; other < kLanes<T>; ++other) {
        if (other != l) CHECK(alone.v[j][other] == 0);
      }
    }
    CHECK_NEAR(alone.state.bias[l], together.state.bias[l], tolerance<T>());
    CHECK_NEAR(alone.state.worst[l], together.state.worst[l], 10 * tolerance<T>());
  }
}

template <class T>
void check_collect_weights() {
  Rng rng(3);
  std::vector<Pack<T>> v(kCols);
  std::vector<index_t> features;
  for (offset_t j = 0; j < kCols; ++j) {
    for (int l = 0; l < kLanes<T>; ++l) v[j].set(l, static_cast<T>(rng.uniform() - 0.5));
    if (j % 5 == 0) v[j] = Pack<T>::all(T(0.1));  // below the threshold
    features.push_back(static_cast<index_t>(kCols - 1 - j));
  }
  const T l1 = T(0.2);
  for (const LaneMask live : {kAllLanes<T>, LaneMask{5}, LaneMask{0}}) {
    std::vector<Coefficient<T>> found;
    const auto sums = collect_weights<T>(v.data(), features, l1, live, found);
    std::size_t next = 0;
    LaneSums<T> absolute{}, squares{}, count{};
    for (const index_t j : features) {
      bool any = false;
      for (int l = 0; l < kLanes<T>; ++l) {
        const double w = (live & lane_bit(l)) ? soft_threshold(v[j][l], l1) : T{0};
        absolute[l] += std::abs(w);
        squares[l] += w * w;
        count[l] += w != 0;
        any = any || w != 0;
      }
      if (!any) continue;
      CHECK(next < found.size() && found[next].feature == j);
      if (next >= found.size()) return;
      for (int l = 0; l < kLanes<T>; ++l) {
        CHECK(found[next].weight[l] == ((live & lane_bit(l)) ? soft_threshold(v[j][l], l1) : T{0}));
      }
      ++next;
    }
    CHECK(next == found.size());
    for (int l = 0; l < kLanes<T>; ++l) {
      CHECK_NEAR(sums.absolute[l], absolute[l], tolerance<T>());
      CHECK_NEAR(sums.squares[l], squares[l], tolerance<T>());
      CHECK(sums.count[l] == count[l]);
    }
  }
}

template <class T>
void check_add_scores() {
  const RandomMatrix<T, std::int32_t> X(kRows, kCols, 0.3, Rng(4));
  const InvertedLists<T> lists(X.view());
  Rng rng(5);
  std::vector<Coefficient<T>> weights;
  for (index_t j = 1; j < kCols; j += 3) {
    Coefficient<T> c{j, 0, Pack<T>::all(0)};
    for (int l = 0; l < kLanes<T>; ++l) c.weight.set(l, static_cast<T>(rng.uniform() - 0.5));
    weights.push_back(c);
  }
  std::vector<Pack<T>> scores(kRows, Pack<T>::all(T(1)));
  std::int64_t visited = 0;
  for (offset_t begin = 0; begin < kRows; begin += 7) {
    const auto tile = std::span<Pack<T>>(scores).subspan(
        static_cast<std::size_t>(begin),
        static_cast<std::size_t>(std::min<offset_t>(7, kRows - begin)));
    visited += add_scores<T>(weights, lists, static_cast<index_t>(begin), tile);
  }
  std::vector<index_t> place(kCols, 0);
  std::vector<Pack<T>> table(1, Pack<T>::all(0));
  for (const auto& c : weights) {
    place[static_cast<std::size_t>(c.feature)] = static_cast<index_t>(table.size());
    table.push_back(c.weight);
  }
  std::vector<Pack<T>> by_row(kRows - 2, Pack<T>::all(0));
  score_rows<T, std::int32_t>(X.view(), place.data(), table.data(), 2, by_row);
  std::int64_t expected = 0;
  for (const auto& c : weights) expected += static_cast<std::int64_t>(lists.length(c.feature));
  CHECK(visited == expected);
  for (offset_t i = 0; i < kRows; ++i) {
    for (int l = 0; l < kLanes<T>; ++l) {
      const double product = X.product(i, [&](index_t j) {
        return j % 3 == 1 ? static_cast<double>(weights[static_cast<std::size_t>(j / 3)].weight[l])
                          : 0.0;
      });
      CHECK_NEAR(scores[static_cast<std::size_t>(i)][l], 1 + product, tolerance<T>());
      if (i >= 2) CHECK_NEAR(by_row[static_cast<std::size_t>(i - 2)][l], product, tolerance<T>());
    }
  }
}

template <class T>
struct ScanCase {
  std::vector<Pack<T>> scores;
  std::vector<index_t> slot_of;
  std::vector<ActiveRow> active;
  std::vector<Pack<T>> active_scores;
  std::vector<T> row_weight;
  std::vector<TopK<T>> best{static_cast<std::size_t>(kLanes<T>)};
  Scan<T> scan;

  ScanCase(std::size_t n_rows, std::size_t k, bool join_free) {
    Rng rng(n_rows + k);
    scores.resize(n_rows);
    slot_of.assign(n_rows, -1);
    for (std::size_t i = 0; i < n_rows; ++i) {
      for (int l = 0; l < kLanes<T>; ++l) {  // few values: ties are common
        scores[i].set(l, static_cast<T>(static_cast<int>(rng.below(8)) - 4));
      }
      if (i % 3 != 0) continue;
      slot_of[i] = static_cast<index_t>(active.size());
      active.push_back({.row = static_cast<index_t>(i)});
      active.back().member = random_lanes(rng, kLanes<T>, 0.5);
      active.back().positive = active.back().member & random_lanes(rng, kLanes<T>, 0.3);
    }
    active_scores.resize(active.size());
    for (std::size_t i = 0; i < n_rows; ++i) row_weight.push_back(static_cast<T>(1 + i % 4));
    scan.slot_of = slot_of;
    scan.active = active;
    scan.active_scores = active_scores.data();
    scan.floor = Pack<T>::all(T(1));
    scan.best = best;
    scan.join_free = join_free;
    scan.threshold = Pack<T>::all(T(-1));
    scan.threshold.set(1, std::numeric_limits<T>::infinity());  // a finished lane
    scan.threshold.set(2, T(100));                              // a lane without violators
    for (auto& top : best) top.start(k);
  }
};

template <class T>
void check_find_violators(std::size_t n_rows, std::size_t k, bool join_free, bool weighted) {
  ScanCase<T> now(n_rows, k, join_free);
  if (weighted) now.scan.row_weight = now.row_weight.data();
  const std::vector<ActiveRow> before = now.active;
  const auto all = std::span<const Pack<T>>(now.scores);
  const std::size_t cut = n_rows / 2;
  find_violators<T>(0, all.first(cut), now.scan);
  find_violators<T>(static_cast<index_t>(cut), all.subspan(cut), now.scan);
  for (std::size_t s = 0; s < before.size(); ++s) {
    for (int l = 0; l < kLanes<T>; ++l) {
      CHECK(now.active_scores[s][l] == now.scores[static_cast<std::size_t>(before[s].row)][l]);
    }
  }
  for (int l = 0; l < kLanes<T>; ++l) {
    const T threshold = now.scan.threshold[l];
    double violation = 0, squares = 0;
    std::vector<Scored<T>> expected;
    for (std::size_t i = 0; i < n_rows; ++i) {
      const T score = now.scores[i][l];
      const index_t slot = now.slot_of[i];
      if (slot >= 0 && (before[slot].positive & lane_bit(l))) continue;
      if (!(score > threshold)) continue;
      const double weight = weighted ? static_cast<double>(now.row_weight[i]) : 1.0;
      violation += weight * (score - threshold);
      squares += weight * static_cast<double>(score - threshold) * (score - threshold);
      if (!(score > threshold + now.scan.floor[l])) continue;
      if (slot >= 0) {
        const bool was_member = before[slot].member & lane_bit(l);
        const bool is_member = now.active[slot].member & lane_bit(l);
        CHECK(is_member == (was_member || join_free));
        if (was_member || join_free) continue;
      }
      expected.push_back({score, static_cast<index_t>(i)});
    }
    std::sort(expected.begin(), expected.end(), ranks_before<T>);
    if (expected.size() > k) expected.resize(k);
    CHECK_NEAR(now.scan.violation[l], violation, tolerance<T>());
    CHECK_NEAR(now.scan.squares[l], squares, tolerance<T>());
    const auto found = now.best[static_cast<std::size_t>(l)].finish();
    CHECK(found.size() == expected.size());
    for (std::size_t r = 0; r < std::min(found.size(), expected.size()); ++r) {
      CHECK(found[r].id == expected[r].id && found[r].score == expected[r].score);
    }
  }
  for (std::size_t s = 0; s < before.size(); ++s) {
    CHECK((before[s].member & ~now.active[s].member) == 0);  // none leaves
  }
}

template <class T>
void check_sum_duals(std::size_t n_active, bool weighted) {
  Rng rng(n_active);
  std::vector<ActiveRow> active(n_active);
  std::vector<Pack<T>> alpha(n_active, Pack<T>::all(0));
  for (std::size_t s = 0; s < n_active; ++s) {
    active[s].positive = random_lanes(rng, kLanes<T>, 0.3);
    for (int l = 0; l < kLanes<T>; ++l) {
      if (rng.uniform() < 0.6) alpha[s].set(l, static_cast<T>(rng.uniform()));
    }
  }
  const std::vector<T> weight(n_active, T(2));
  SweepState<T> state;
  state.alpha = alpha.data();
  state.positive_weight = Pack<T>::all(T(3));
  if (weighted) state.weight = weight.data();
  const DualSums<T> sums = sum_duals<T>(active, state);
  for (int l = 0; l < kLanes<T>; ++l) {
    double total = 0, squares = 0, signed_total = 0, count = 0;
    for (std::size_t s = 0; s < n_active; ++s) {
      const double a = alpha[s][l];
      total += a;
      const double of_row = (active[s].positive & lane_bit(l)) ? 6.0 : 2.0;
      squares += a * a / (weighted ? of_row : 1.0);
      signed_total += (active[s].positive & lane_bit(l)) ? a : -a;
      count += a > 0;
    }
    CHECK_NEAR(sums.total[l], total, tolerance<T>() * 10);
    CHECK_NEAR(sums.squares[l], squares, tolerance<T>() * 10);
    CHECK_NEAR(sums.signed_total[l], signed_total, tolerance<T>() * 10);
    CHECK(sums.count[l] == count);
  }
}

template <class T>
void check_drop_idle() {
  Rng rng(11);
  const LaneMask live = kAllLanes<T> & ~lane_bit(3);
  std::vector<ActiveRow> active;
  std::vector<Pack<T>> alpha, scores;
  const Pack<T> threshold = Pack<T>::all(T(-0.5));
  for (index_t i = 0; i < 50; ++i) {
    ActiveRow a{.row = 49 - i};
    a.member = random_lanes(rng, kLanes<T>, 0.7);
    a.positive = a.member & random_lanes(rng, kLanes<T>, 0.2);
    active.push_back(a);
    alpha.push_back(Pack<T>::all(0));
    scores.push_back(Pack<T>::all(T(-0.5)));
    for (int l = 0; l < kLanes<T>; ++l) {
      if (rng.uniform() < 0.3) alpha.back().set(l, T(0.1));
      if (rng.uniform() < 0.5) scores.back().set(l, static_cast<T>(rng.uniform() - 1));
    }
  }
  const std::vector<ActiveRow> before = active;
  drop_idle<T>(active, alpha.data(), scores.data(), threshold, live);
  for (std::size_t s = 0; s < active.size(); ++s) {
    for (int l = 0; l < kLanes<T>; ++l) {
      const LaneMask bit = lane_bit(l);
      const bool is_busy =
          (before[s].positive & bit) || alpha[s][l] != 0 || scores[s][l] > threshold[l];
      CHECK(((active[s].member & bit) != 0) == ((before[s].member & live & bit) && is_busy));
    }
    CHECK(active[s].positive == before[s].positive);
  }
}

}  // namespace

TEST(ppd_sweep_never_increases_the_dual_objective) {
  check_sweep_descends<float, std::int32_t>();
  check_sweep_descends<float, std::int64_t>();
  check_sweep_descends<double, std::int32_t>();
  check_sweep_descends<double, std::int64_t>();
}

TEST(ppd_sweep_computes_each_lane_as_if_it_were_alone) {
  check_lanes_do_not_mix<float, std::int32_t>();
  check_lanes_do_not_mix<double, std::int64_t>();
}

TEST(ppd_sweep_puts_only_zero_duals_of_negatives_to_sleep) {
  Block<double, std::int32_t> block(12, 1.0, 0.5, 10.0, true);
  for (auto& a : block.active) {  // few lanes: only the scalar path puts rows to sleep
    a.member = a.awake = 3;
    a.positive &= 3;
  }
  for (int s = 0; s < 4; ++s) {
    sweep<double, std::int32_t>(block.matrix.view(), block.active, block.order, block.state);
    block.state.sleep_above = Pack<double>::all(1e-9);
  }
  int n_asleep = 0;
  for (std::size_t i = 0; i < block.active.size(); ++i) {
    const ActiveRow& a = block.active[i];
    for_each_lane(a.member & ~a.awake, [&](int l) {
      ++n_asleep;
      CHECK(block.alpha[i][l] == 0);
      CHECK((a.positive & lane_bit(l)) == 0);
    });
    CHECK((a.awake & ~a.member) == 0);
  }
  CHECK(n_asleep > 0);
}

TEST(ppd_collect_weights_lists_what_is_not_zero_in_a_live_lane) {
  check_collect_weights<float>();
  check_collect_weights<double>();
}

TEST(ppd_add_scores_is_the_product_with_the_weights) {
  check_add_scores<float>();
  check_add_scores<double>();
}

TEST(ppd_find_violators_agrees_with_a_scan_of_each_lane) {
  for (const std::size_t n_rows : {1, 50, 256, 1000}) {
    for (const std::size_t k : {1, 3, 70, 5000}) {
      check_find_violators<float>(n_rows, k, false, false);
      check_find_violators<double>(n_rows, k, false, true);
    }
    check_find_violators<float>(n_rows, n_rows, true, true);
    check_find_violators<double>(n_rows, n_rows, true, false);
  }
}

TEST(ppd_sum_duals_agrees_with_plain_sums) {
  for (const std::size_t n : {0, 1, 255, 256, 257, 700}) {
    check_sum_duals<float>(n, n % 2 == 0);
    check_sum_duals<double>(n, n % 2 == 1);
  }
}

TEST(ppd_drop_idle_keeps_positives_duals_and_violators) {
  check_drop_idle<float>();
  check_drop_idle<double>();
}
