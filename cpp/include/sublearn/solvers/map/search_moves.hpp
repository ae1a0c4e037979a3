// Kinds of moves that improve labels, and which kind is worth trying next.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "sublearn/core/rng.hpp"
#include "sublearn/core/types.hpp"

namespace sublearn {

/// A kind of move, and what a try of it has cost and gained so far.
struct SearchMove {
  enum Kind : std::uint8_t { whole, ball, kick, shake, walk } kind;
  double cells;       ///< largest bucket of its elimination; of a walk, steps without a gain
  index_t labels;     ///< most labels of a variable
  index_t variables;  ///< of a ball; of a walk, how long a label is forbidden
  double work;        ///< of a try, running mean; a guess at first
  double gain = 0.0;  ///< of a try, running mean

  void record(double spent, double gained) {
    work += 0.2 * (spent + 50.0 - work);
    // The root, since a repaired violation of a constraint counts for more than it is worth.
    gain += 0.2 * (std::cbrt(std::max(gained, 0.0)) - gain);
  }
};

class SearchMoves {
 public:
  /// `whole` moves plan a block of all variables, which pays on sparse graphs only.
  /// `step_work` is what a change of one label costs.
  SearchMoves(index_t n_variables, index_t most_labels, bool with_whole, double step_work) {
    add_blocks(n_variables, most_labels, with_whole);
    for (const index_t size : {index_t{1}, index_t{3}, index_t{9}}) {
      if (size > n_variables) continue;
      moves_.push_back({SearchMove::kick, 0.0, most_labels, size, 500.0 * size});
    }
    for (const index_t size : {index_t{20}, index_t{80}, index_t{320}}) {
      if (size >= n_variables) continue;
      moves_.push_back({SearchMove::shake, 2048.0, most_labels, size, 5000.0 * size});
    }
    for (const index_t tenure : {index_t{3}, index_t{10}, index_t{35}}) {
      if (tenure >= n_variables) continue;
      for (const double patience : {4.0, 40.0, 400.0}) {
        const double steps = patience * n_variables;
        moves_.push_back({SearchMove::walk, steps, most_labels, tenure, 1.5 * steps * step_work});
      }
    }
  }

  /// Moves get work in proportion to what they gain per work, and a third of it in equal shares.
  SearchMove& next(Rng& rng) {
    double sum = 0.0;
    for (const SearchMove& move : moves_) sum += move.gain / move.work;
    const double even = 0.5 * std::max(sum, 1e-300) / static_cast<double>(moves_.size());
    double total = 0.0;
    for (const SearchMove& move : moves_) total += (move.gain / move.work + even) / move.work;
    double draw = rng.uniform() * total;
    for (SearchMove& move : moves_) {
      draw -= (move.gain / move.work + even) / move.work;
      if (draw < 0.0) return move;
    }
    return moves_.back();
  }

 private:
  void add_blocks(index_t n_variables, index_t most_labels, bool with_whole) {
    std::vector<index_t> caps{most_labels};
    for (const index_t cap : {index_t{12}, index_t{5}, index_t{2}}) {
      if (most_labels > cap + cap / 2) caps.push_back(cap);
    }
    for (const index_t cap : caps) {
      for (const double cells : {32.0, 256.0, 2048.0, 16384.0, 131072.0, 1048576.0}) {
        if (cells < 2.0 * cap * cap) continue;
        const double width = std::log(cells) / std::log(std::max(2.0, 1.0 * cap));
        if (with_whole) {
          moves_.push_back({SearchMove::whole, cells, cap, n_variables, guess(n_variables, cells)});
        }
        for (const index_t size : {index_t{12}, index_t{40}, index_t{150}, index_t{600}}) {
          if (size >= n_variables || size <= 4.0 * width) continue;
          moves_.push_back({SearchMove::ball, cells, cap, size, guess(size, cells)});
        }
      }
    }
  }

  static double guess(index_t n_variables, double cells) {
    return n_variables * (500.0 + 0.05 * cells);
  }

  std::vector<SearchMove> moves_;
};

}  // namespace sublearn
