// The minimiser over one group of a quadratic model plus its penalty,
//
//   min_u  1/2 <u, H u> - <v, u> + level ||u||_2 + within ||u||_1 + l2/2 ||u||^2,
//
// by coordinate descent. Away from 0 the norm is smooth, and descent over coordinates is safe; at 0
// it is not, so whether 0 is the minimiser is asked first, and if it is not, descent starts from a
// point that is better than 0 and never comes back.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>

#include "sublearn/prox/groups.hpp"
#include "sublearn/prox/soft_threshold.hpp"

namespace sublearn {

/// argmin over t of  a/2 t^2 - c t + level sqrt(t^2 + rest) + within |t|,  a > 0, from `near` it.
inline double minimise_beside(double a, double c, double level, double rest, double within,
                              double near) {
  constexpr int kMostSteps = 50;
  constexpr double kSettled = 1e-8;  // Newton's steps: the next error is about its square
  if (rest == 0.0) return soft_threshold(c, level + within) / a;
  const double pull = std::abs(soft_threshold(c, within));
  if (pull == 0.0) return 0.0;
  // a t + level t / sqrt(t^2 + rest) rises towards `pull` and is concave: Newton's steps from the
  // left do not pass the answer, and one from the right lands on the left.
  const double least = pull / (a + level / std::sqrt(rest));
  double t = std::max(least, c > 0.0 ? near : -near);
  for (int step = 0; step < kMostSteps; ++step) {
    const double norm = std::sqrt(t * t + rest);
    const double missing = pull - (a + level / norm) * t;
    const double next = std::max(least, t + missing / (a + level * (rest / (norm * norm)) / norm));
    const bool is_settled = std::abs(next - t) <= kSettled * t;
    t = next;
    if (is_settled) break;
  }
  return c > 0.0 ? t : -t;
}

class GroupBlock {
 public:
  /// Moves `u` to the minimiser, or near it. `H` is row-major with `stride` numbers a row;
  /// `diagonal` is its diagonal or a little more. `v` is scratch memory afterwards.
  static void minimise(const double* H, std::size_t stride, std::span<const double> diagonal,
                       const GroupPenalty& penalty, double level, std::span<double> v,
                       std::span<double> u) {
    const Quadratic of{H, stride, diagonal, penalty.within, penalty.l2, level};
    if (penalty.pull(v) <= level) {
      for (double& t : u) t = 0.0;
      return;
    }
    if (!(gain(of, v, u) < 0.0)) leave_zero(of, v, u);
    subtract(of, u, v);
    const double first = descend(of, v, u);
    for (int sweep = 1; sweep < kMostSweeps; ++sweep) {
      if (descend(of, v, u) <= kSmall * first) return;
    }
  }

 private:
  struct Quadratic {
    const double* H;
    std::size_t stride;
    std::span<const double> diagonal;
    double within, l2, level;
  };

  static constexpr int kMostSweeps = 20;
  static constexpr double kSmall =
      0.1;  ///< of the first sweep's move, below which a sweep is the last

  static double product(const Quadratic& of, std::size_t k, std::span<const double> u) {
    double sum = 0.0;
    for (std::size_t l = 0; l < u.size(); ++l) sum += of.H[k * of.stride + l] * u[l];
    return sum;
  }

  /// The model at u less that at 0.
  static double gain(const Quadratic& of, std::span<const double> v, std::span<const double> u) {
    double squares = 0.0, smooth = 0.0, sizes = 0.0;
    for (std::size_t k = 0; k < u.size(); ++k) {
      smooth += u[k] * (0.5 * product(of, k, u) - v[k]);
      squares += u[k] * u[k];
      sizes += std::abs(u[k]);
    }
    return smooth + of.level * std::sqrt(squares) + of.within * sizes + 0.5 * of.l2 * squares;
  }

  /// The best point of the ray from 0 along which the model falls fastest.
  static void leave_zero(const Quadratic& of, std::span<const double> v, std::span<double> u) {
    double squares = 0.0, curvature = 0.0;
    for (std::size_t k = 0; k < u.size(); ++k) {
      u[k] = soft_threshold(v[k], of.within);
      squares += u[k] * u[k];
    }
    for (std::size_t k = 0; k < u.size(); ++k) curvature += u[k] * product(of, k, u);
    curvature += of.l2 * squares;
    const double length = (squares - of.level * std::sqrt(squares)) / std::max(curvature, 1e-300);
    for (double& t : u) t *= length;
  }

  static void subtract(const Quadratic& of, std::span<const double> u, std::span<double> v) {
    for (std::size_t k = 0; k < u.size(); ++k) v[k] -= product(of, k, u);
  }

  /// A sweep over the coordinates; returns how far they moved.
  static double descend(const Quadratic& of, std::span<double> v, std::span<double> u) {
    double squares = 0.0, moved = 0.0;
    for (const double t : u) squares += t * t;
    for (std::size_t k = 0; k < u.size(); ++k) {
      const double before = u[k], a = of.diagonal[k];
      const double rest = std::max(squares - before * before, 0.0);
      const double after =
          minimise_beside(a + of.l2, v[k] + a * before, of.level, rest, of.within, before);
      if (after == before) continue;
      u[k] = after;
      squares = rest + after * after;
      const double step = after - before;
      moved += a * std::abs(step);
      for (std::size_t l = 0; l < u.size(); ++l) v[l] -= step * of.H[l * of.stride + k];
    }
    return moved;
  }
};

}  // namespace sublearn
