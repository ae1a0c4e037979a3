// Scores of labels: all ways to the best k, every storage, and lists that must not be trusted.
#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "check.hpp"
#include "random_problems.hpp"
#include "sublearn/search/label_scores.hpp"

using namespace sublearn;
using sublearn::testing::RandomMatrix;

namespace {

constexpr offset_t kFeatures = 15;
constexpr offset_t kRows = 30;

/// Random lists in any storage; integer values lie in -100 .. 100, with a scale per feature.
template <class T, class Id, class V>
struct Model {
  using Lists = WeightLists<T, Id, V>;

  Model(std::size_t n_labels, double density)
      : matrix(kFeatures, static_cast<offset_t>(n_labels), density, Rng(2)),
        labels(matrix.indices.begin(), matrix.indices.end()) {
    Rng rng(7);
    for (const double value : matrix.values) {
      values.push_back(static_cast<V>(std::is_same_v<T, V> ? value : 100 * value));
    }
    if (!std::is_same_v<T, V>) scales.assign(static_cast<std::size_t>(kFeatures), T(0.015625));
    for (std::size_t k = 0; k < n_labels; ++k) {
      bias.push_back(static_cast<T>(-1 - static_cast<int>(4 * rng.uniform()) / 4.0));
    }
  }

  Lists lists() const {
    return Lists(Offsets(std::span<const std::int64_t>(matrix.indptr)), labels, values, scales,
                 bias.size());
  }

  double weight(index_t feature, std::size_t label) const {
    for (auto p = matrix.indptr[static_cast<std::size_t>(feature)];
         p < matrix.indptr[static_cast<std::size_t>(feature) + 1]; ++p) {
      if (static_cast<std::size_t>(labels[static_cast<std::size_t>(p)]) != label) continue;
      const auto value = static_cast<double>(values[static_cast<std::size_t>(p)]);
      return scales.empty() ? value : value * static_cast<double>(scales[0]);
    }
    return 0;
  }

  RandomMatrix<double, std::int64_t> matrix;
  std::vector<Id> labels;
  std::vector<V> values;
  std::vector<T> scales;
  std::vector<T> bias;
};

template <class T>
bool same(std::span<const Scored<T>> a, const std::vector<Scored<T>>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.id == y.id && x.score == y.score;
  });
}

template <class T, class Id, class V>
void check_storage(std::size_t n_labels, double density) {
  const Model<T, Id, V> model(n_labels, density);
  const auto lists = model.lists();
  const RankedBias<T> ranked{std::span<const T>(model.bias)};
  LabelScores<typename Model<T, Id, V>::Lists> scorer(lists, ranked);
  const RandomMatrix<T, index_t> X(kRows, kFeatures, 0.4, Rng(3));
  for (offset_t i = 0; i < kRows; ++i) {
    const auto row = X.view().row(i);
    const auto all = scorer.score(row);
    std::vector<Scored<T>> order;
    for (std::size_t k = 0; k < n_labels; ++k) {
      const double product = X.product(i, [&](index_t j) { return model.weight(j, k); });
      CHECK_NEAR(all[k], product + static_cast<double>(model.bias[k]), 1e-5);
      order.push_back({all[k], static_cast<index_t>(k)});
    }
    std::sort(order.begin(), order.end(), ranks_before<T>);
    for (const std::size_t k : {std::size_t{1}, std::min<std::size_t>(5, n_labels), n_labels}) {
      const std::vector<Scored<T>> expected(order.begin(),
                                            order.begin() + static_cast<std::ptrdiff_t>(k));
      CHECK(same<T>(scorer.top_plain(row, k), expected));
      CHECK(same<T>(scorer.top_touched(row, k), expected));
      CHECK(same<T>(scorer.top_touched(row, k), expected));  // what the first call left behind
      CHECK(same<T>(scorer.top_bounded(row, k), expected));
      CHECK(same<T>(scorer.top(row, k, 1.0), expected));
    }
  }
  CHECK(scorer.take_work() > 0);
  CHECK(scorer.take_work() == 0);
}

template <class Lists>
std::string message_of(const Lists& lists, std::size_t feature) {
  try {
    lists.list(feature);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "nothing";
}

bool contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST(all_ways_find_the_same_labels_in_every_storage) {
  check_storage<float, std::uint16_t, std::int8_t>(70, 0.2);
  check_storage<float, std::uint16_t, std::int16_t>(70, 0.2);
  check_storage<float, std::uint16_t, float>(70, 0.02);
  check_storage<float, std::int32_t, float>(200, 0.01);
  check_storage<double, std::int64_t, double>(70, 0.2);
  check_storage<double, std::int32_t, std::int8_t>(1, 0.5);
  // Long enough that lists are bounded.
  check_storage<float, std::uint16_t, std::int8_t>(400, 0.3);
  check_storage<float, std::int32_t, float>(400, 0.3);
  check_storage<double, std::int64_t, double>(400, 0.3);
}

TEST(bounds_are_never_below_the_weights) {
  const Model<float, std::int32_t, float> model(400, 0.3);
  const auto lists = model.lists();
  std::size_t n_bounded = 0;
  for (std::size_t j = 0; j < lists.n_features(); ++j) {
    const auto list = lists.list(j);
    const auto bounds = lists.bounds(j);
    std::size_t at = 0;
    for (std::size_t p = 0; p < list.size; ++p) {
      CHECK(std::abs(list.weight(p)) <= bounds.largest);
      if (bounds.raising == nullptr || !(list.weight(p) > 0)) continue;
      CHECK(bounds.raising->labels[at] == list.labels[p]);
      const float most = bounds.raising->step * static_cast<float>(bounds.raising->levels[at]);
      CHECK(most >= list.weight(p) && most <= list.weight(p) + 1.01f * bounds.raising->step);
      ++at;
    }
    if (bounds.raising != nullptr) n_bounded += at == bounds.raising->labels.size();
  }
  CHECK(n_bounded > 0);
}

TEST(weights_that_are_not_finite_are_scored_in_the_plain_way) {
  constexpr std::size_t kLabels = 40;
  std::vector<std::int32_t> labels(kLabels);
  std::iota(labels.begin(), labels.end(), 0);
  std::vector<float> values(kLabels, -1.0f);
  values[3] = std::numeric_limits<float>::quiet_NaN();
  values[5] = std::numeric_limits<float>::infinity();
  const std::vector<std::int32_t> offsets{0, static_cast<std::int32_t>(kLabels)};
  const std::vector<float> bias(kLabels, 0.0f);
  using Lists = WeightLists<float, std::int32_t, float>;
  const Lists lists(Offsets(std::span<const std::int32_t>(offsets)), labels, values, {}, kLabels);
  const RankedBias<float> ranked{std::span<const float>(bias)};
  LabelScores<Lists> scorer(lists, ranked);
  const std::vector<index_t> ids{0};
  const std::vector<float> x{1.0f};
  const auto best = scorer.top_bounded({ids, x}, kLabels);
  CHECK(best[0].id == 5 && best[1].id == 0 && best[kLabels - 1].id == 3);
}

TEST(block_maxima_find_what_sorting_finds) {
  Rng rng(5);
  for (const std::size_t n : {1, 63, 64, 65, 1000}) {
    std::vector<double> scores;
    for (std::size_t i = 0; i < n; ++i) scores.push_back(static_cast<int>(20 * rng.uniform()));
    if (n > 64) std::fill(scores.begin(), scores.begin() + 64, std::nan(""));
    std::vector<Scored<double>> order;
    for (std::size_t i = 0; i < n; ++i) order.push_back({scores[i], static_cast<index_t>(i)});
    std::sort(order.begin(), order.end(), ranks_before<double>);
    BlockMaxima<double> maxima;
    maxima.find(scores);
    for (const std::size_t k : {std::size_t{1}, std::min<std::size_t>(5, n), n}) {
      TopK<double> scratch;
      const auto best = maxima.top(k, scratch);
      CHECK(best.size() == k);
      for (std::size_t r = 0; r < k; ++r) CHECK(best[r].id == order[r].id);
    }
  }
}

TEST(untouched_labels_behind_the_ranked_ones_are_found) {
  // The ranked labels all have a weight that pulls them down: the best are those never ranked.
  constexpr std::size_t kRanked = RankedBias<float>::kMostRanked;
  constexpr std::size_t kLabels = kRanked + 10;
  std::vector<float> bias(kLabels, -1.0f);
  std::fill(bias.begin(), bias.begin() + kRanked, 0.0f);
  std::vector<std::int32_t> labels(kRanked);
  std::iota(labels.begin(), labels.end(), 0);
  const std::vector<std::int32_t> offsets{0, static_cast<std::int32_t>(kRanked)};
  const std::vector<float> values(kRanked, -5.0f);
  using Lists = WeightLists<float, std::int32_t, float>;
  const Lists lists(Offsets(std::span<const std::int32_t>(offsets)), labels, values, {}, kLabels);
  const RankedBias<float> ranked{std::span<const float>(bias)};
  LabelScores<Lists> scorer(lists, ranked);
  const std::vector<index_t> ids{0};
  const std::vector<float> x{1.0f};
  const auto best = scorer.top_touched({ids, x}, 2);
  CHECK(best.size() == 2);
  CHECK(best[0].id == static_cast<index_t>(kRanked) && best[0].score == -1.0f);
  CHECK(best[1].id == static_cast<index_t>(kRanked) + 1);
}

TEST(scores_of_minus_infinity_are_still_ranked) {
  const std::vector<std::int32_t> offsets{0, 2};
  const std::vector<std::int32_t> labels{0, 2};
  const std::vector<float> values{-std::numeric_limits<float>::max(), 1.0f};
  const std::vector<float> bias{0.0f, -1.0f, 0.0f};
  using Lists = WeightLists<float, std::int32_t, float>;
  const Lists lists(Offsets(std::span<const std::int32_t>(offsets)), labels, values, {}, 3);
  const RankedBias<float> ranked{std::span<const float>(bias)};
  LabelScores<Lists> scorer(lists, ranked);
  const std::vector<index_t> ids{0};
  const std::vector<float> x{4.0f};
  const auto best = scorer.top_touched({ids, x}, 3);
  CHECK(best.size() == 3);
  CHECK(best[0].id == 2 && best[1].id == 1 && best[2].id == 0);
}

TEST(less_effort_reads_the_shortest_lists) {
  const std::vector<std::int32_t> offsets{0, 3, 4, 6, 8};
  const std::vector<std::int32_t> labels{0, 1, 2, 1, 0, 2, 1, 2};
  const std::vector<double> values{1, 1, 1, 10, 100, 100, 1000, 1000};
  const std::vector<double> bias(3, 0.0);
  using Lists = WeightLists<double, std::int32_t, double>;
  const Lists lists(Offsets(std::span<const std::int32_t>(offsets)), labels, values, {}, 3);
  const RankedBias<double> ranked{std::span<const double>(bias)};
  LabelScores<Lists> scorer(lists, ranked);
  const std::vector<index_t> ids{0, 1, 2, 3};
  const std::vector<double> x(4, 1.0);
  const auto scores = [&](double effort) {
    std::vector<double> found(3);
    for (const auto& best : scorer.top({ids, x}, 3, effort)) {
      found[static_cast<std::size_t>(best.id)] = best.score;
    }
    return found;
  };
  CHECK(scores(1.0) == (std::vector<double>{101, 1011, 1101}));
  CHECK(scores(0.7) == (std::vector<double>{100, 1010, 1100}));  // 5 of 8 weights
  CHECK(scores(0.4) == (std::vector<double>{100, 10, 100}));     // ties: the first list
  CHECK(scores(0.001) == (std::vector<double>{0, 10, 0}));       // one list at least
}

TEST(damaged_lists_are_refused_when_they_are_read) {
  using Lists = WeightLists<float, std::int32_t, float>;
  const std::vector<std::int32_t> offsets{0, 2, 4, 3, 9, 6, -1};
  const std::vector<std::int32_t> labels{0, 2, 1, 1, 5, -1};
  const std::vector<float> values(6, 1.0f);
  const Lists lists(Offsets(std::span<const std::int32_t>(offsets)), labels, values, {}, 5);
  CHECK(message_of(lists, 0) == "nothing");
  CHECK(contains(message_of(lists, 1), "weights.labels must increase from 0 to 4, got 1 after 1"));
  CHECK(contains(message_of(lists, 2), "weights.offsets must rise from 0 to 6, got 4 and 3"));
  CHECK(contains(message_of(lists, 3), "got 3 and 9 at feature 3"));
  CHECK(contains(message_of(lists, 4), "got 9 and 6"));
  CHECK(contains(message_of(lists, 5), "got 6 and -1"));
  const std::vector<std::int32_t> others{0, 5, 6};
  const Lists outside(Offsets(std::span<const std::int32_t>(others)), labels, values, {}, 5);
  CHECK(contains(message_of(outside, 1), "got -1 after -1"));
}
