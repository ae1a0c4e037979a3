// Scores of which most are untouched: the best, the largest, taking and clearing.
#include "sublearn/search/score_board.hpp"

#include <algorithm>
#include <limits>
#include <vector>

#include "check.hpp"
#include "sublearn/core/rng.hpp"

using namespace sublearn;

namespace {

template <class T>
void check_board(index_t n_labels, Rng rng) {
  ScoreBoard<T> board(n_labels);
  TopK<T> best;
  for (int round = 0; round < 30; ++round) {
    std::vector<T> scores(static_cast<std::size_t>(n_labels), T{0});
    std::vector<bool> taken(scores.size(), false);
    const auto n_touched = rng.below(static_cast<std::uint32_t>(n_labels) + 1);
    for (std::uint32_t t = 0; t < n_touched; ++t) {
      const auto label = static_cast<index_t>(rng.below(static_cast<std::uint32_t>(n_labels)));
      const T amount = static_cast<T>(rng.below(7)) - static_cast<T>(round % 2 == 0 ? 3 : 7);
      board.add(label, amount);
      scores[static_cast<std::size_t>(label)] += amount;
    }
    const auto first = std::max_element(scores.begin(), scores.end());
    const Scored<T> found = board.best(n_labels, best);
    CHECK(found.score == *first && found.id == first - scores.begin());
    for (index_t label = 0; label < n_labels; label += 3) {
      CHECK(board.take(label) == scores[static_cast<std::size_t>(label)]);
      taken[static_cast<std::size_t>(label)] = true;
    }
    const index_t left = find_largest(board.scores(), n_labels);
    T largest = -std::numeric_limits<T>::infinity();
    std::size_t n_above = 0;
    for (std::size_t k = 0; k < scores.size(); ++k) {
      if (taken[k]) continue;
      largest = std::max(largest, scores[k]);
      n_above += scores[k] > T{-2} && scores[k] != T{0};
    }
    CHECK(board.largest(n_labels) == largest);
    if (left < 0) {
      CHECK(n_labels == 1);  // taken, as every third label
    } else {
      const auto at = static_cast<std::size_t>(left);
      CHECK(!taken[at] && scores[at] == largest);
      for (std::size_t k = 0; k < at; ++k) CHECK(taken[k] || scores[k] < largest);
    }
    best.start(scores.size() + 1);
    board.offer_above(T{-2}, best);
    const auto above = best.finish();
    CHECK(above.size() == n_above);
    for (const auto& item : above) {
      CHECK(item.score == scores[static_cast<std::size_t>(item.id)]);
      CHECK(!taken[static_cast<std::size_t>(item.id)]);
    }
    board.clear();
    for (index_t label = 0; label < n_labels; ++label) CHECK(board[label] == T{0});
  }
}

}  // namespace

TEST(score_board_agrees_with_a_plain_array) {
  for (const index_t n_labels : {1, 2, 63, 64, 65, 130, 1000}) {
    check_board<float>(n_labels, Rng(1));
    check_board<double>(n_labels, Rng(2));
  }
}

TEST(score_board_offers_the_best_of_many) {
  ScoreBoard<float> board(1000);
  for (index_t label = 0; label < 1000; ++label) board.add(label, static_cast<float>(label % 100));
  TopK<float> best;
  best.start(3);
  board.offer_above(0.0F, best);
  const auto found = best.finish();
  CHECK(found.size() == 3);
  CHECK(found[0].id == 99 && found[1].id == 199 && found[2].id == 299);
}
