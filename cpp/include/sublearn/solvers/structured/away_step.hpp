// Which way a Frank-Wolfe method with away steps goes on a simplex (Yen et al., NIPS 2016,
// algorithm 2): towards the best vertex, or away from the worst one that has a share. On a simplex
// the shares of vertices are the coordinates themselves. Used by: node_step.hpp, factor_step.hpp.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

namespace sublearn {

inline constexpr double kFlatSlope = 1e-6;  ///< slopes below are not followed

struct AwayStep {
  std::size_t vertex = 0;
  bool is_away = false;
  double slope = 0.0;    ///< by which the objective falls at first, per unit of the step
  double longest = 1.0;  ///< an away step of this length drops the vertex

  /// The step of least objective, if that bends by `bend` along the direction.
  double length(double bend) const { return bend * longest > slope ? slope / bend : longest; }
  bool is_drop(double length) const { return is_away && length >= longest; }
};

/// The steeper of the two directions (17). `point` is on the simplex.
inline AwayStep choose_step(std::span<const double> point, std::span<const double> gradient) {
  double mean = 0.0;
  std::size_t best = 0, worst = point.size();
  for (std::size_t s = 0; s < point.size(); ++s) {
    mean += point[s] * gradient[s];
    if (gradient[s] < gradient[best]) best = s;
    if (point[s] > 0.0 && (worst == point.size() || gradient[s] > gradient[worst])) worst = s;
  }
  const AwayStep towards{best, false, mean - gradient[best], 1.0};
  // The only vertex with a share cannot be left behind.
  if (worst == point.size() || point[worst] >= 1.0) return towards;
  const AwayStep away{worst, true, gradient[worst] - mean, point[worst] / (1.0 - point[worst])};
  return towards.slope >= away.slope ? towards : away;
}

/// change <- vertex - point, or point - vertex.
inline void fill_direction(const AwayStep& step, std::span<const double> point,
                           std::span<double> change) {
  const double sign = step.is_away ? 1.0 : -1.0;
  for (std::size_t s = 0; s < point.size(); ++s) change[s] = sign * point[s];
  change[step.vertex] -= sign;
}

/// Moves `point` along `change`; whether that dropped a vertex.
inline bool advance(const AwayStep& step, double length, std::span<const double> change,
                    std::span<double> point) {
  for (std::size_t s = 0; s < point.size(); ++s) {
    point[s] = std::max(0.0, point[s] + length * change[s]);
  }
  if (step.is_drop(length)) point[step.vertex] = 0.0;
  return step.is_drop(length);
}

}  // namespace sublearn
