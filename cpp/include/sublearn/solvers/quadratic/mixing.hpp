// The mixing method for   max  scale * y'Cy + 2 b'y   over y in {-1,1}^n:
// coordinate ascent on the semidefinite relaxation, random hyperplanes, and flips until no single
// one helps. A linear term b is the coupling to one more vertex, number n, so that
//
//   max  scale * sum_ij C_ij <v_i, v_j> + 2 sum_i b_i <v_i, v_n>   over unit vectors v_0 .. v_n
//
// is the relaxation. With g_i the sum over the neighbours of i, the best v_i is g_i / |g_i| (Wang
// and Kolter, "The mixing method", 2016), and |g_i| + scale * C_ii are the multipliers of the dual
//
//   min  sum_i lambda_i   s.t.   Diag(lambda) - [scale C, b; b', 0]  positive semidefinite.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <numeric>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "sublearn/core/monitor.hpp"
#include "sublearn/core/parallel_for.hpp"
#include "sublearn/core/rng.hpp"
#include "sublearn/solvers/quadratic/couplings.hpp"

namespace sublearn {

/// The answer of one random hyperplane after its flips.
struct RoundedSigns {
  std::vector<std::int8_t> y;
  double value = 0.0;  ///< scale * y'Cy + 2 b'y
};

template <Couplings C>
class Mixing {
 public:
  using Line = Pack<double>;

  /// `b` is empty if there is no linear term. C and b must outlive this object.
  Mixing(const C& couplings, double scale, std::span<const double> b)
      : c_(couplings), scale_(scale), b_(b) {}

  offset_t n_vertices() const { return c_.size() + (b_.empty() ? 0 : 1); }
  offset_t rank() const { return V_.width * kLanes<double>; }
  const Panel& vectors() const { return V_; }

  /// Random unit vectors, of at least `rank` entries.
  void start_at_random(offset_t rank, std::uint64_t seed) {
    reset(rank);
    Rng rng(seed);
    for (offset_t i = 0; i < n_vertices(); ++i) {
      for (offset_t l = 0; l < V_.width; ++l) V_.row(i)[l] = normal(rng);
      normalise(V_.row(i));
    }
    follow();
  }

  /// Rows of a given matrix; a zero row is left to the first sweep.
  void start_from(DenseView<const double> given) {
    reset(given.n_cols);
    for (offset_t i = 0; i < n_vertices(); ++i) {
      const auto row = given.row(i);
      for (std::size_t k = 0; k < row.size(); ++k) {
        V_.row(i)[k / 8].set(static_cast<int>(k % 8), row[k]);
      }
      normalise(V_.row(i));
    }
    follow();
  }

  /// One pass over the vertices in the order that `rng` gives, each moved past its optimum by
  /// `relaxation` - 1 of its way (1 is the mixing method itself; below 2 the value never falls).
  /// Returns the gain in value.
  double sweep(double relaxation, Rng& rng, const Monitor& monitor) {
    rng.shuffle(std::span(order_));
    double gain = 0.0;
    for (const index_t i : order_) {
      if (monitor.stop_requested()) break;
      gain += move(i, relaxation);
    }
    return gain;
  }

  /// The relaxation's value and, by vertex, the dual multipliers at the present vectors.
  double evaluate(std::vector<double>& multipliers) {
    multipliers.resize(static_cast<std::size_t>(n_vertices()));
    double value = 0.0;
    for (offset_t i = 0; i < n_vertices(); ++i) {
      gradient(i);
      const double own = diagonal(i);
      value += dot(gradient_.data(), V_.row(i)) + own;
      multipliers[at(i)] = std::sqrt(dot(gradient_.data(), gradient_.data())) + own;
    }
    return value;
  }

  /// 32 random hyperplanes and, after them, flips of single vertices while one helps, at most
  /// `max_passes` passes. The same `block` and seed give the same answers.
  std::vector<RoundedSigns> round(std::uint64_t seed, offset_t block, int max_passes,
                                  const Monitor& monitor) const {
    Rng rng = Rng(seed).split(static_cast<std::uint64_t>(block));
    Panel Y = hyperplane_signs(rng);
    typename C::Products products(c_, Y);
    for (int pass = 0; pass < max_passes && !monitor.stop_requested(); ++pass) {
      if (!flip_pass(Y, products)) break;
    }
    return gather(Y, products);
  }

  static constexpr offset_t kHyperplanes = 32;  ///< of a block: four lines

 private:
  static constexpr offset_t kRoundWidth = kHyperplanes / kLanes<double>;

  void reset(offset_t rank) {
    V_ = Panel(n_vertices(), (rank + kLanes<double> - 1) / kLanes<double>);
    gradient_.assign(static_cast<std::size_t>(V_.width), Line::all(0.0));
    step_ = gradient_;
    order_.resize(static_cast<std::size_t>(n_vertices()));
    std::iota(order_.begin(), order_.end(), index_t{0});
  }

  /// Called when all vectors have changed.
  void follow() {
    products_.emplace(c_, V_);
    if (b_.empty()) return;
    pull_.assign(static_cast<std::size_t>(V_.width), Line::all(0.0));
    combine_rows(b_, V_.data(), V_.width, pull_.data());
  }

  bool is_extra(offset_t i) const { return i == c_.size(); }
  double diagonal(offset_t i) const { return is_extra(i) ? 0.0 : scale_ * c_.diagonal(i); }

  /// gradient_ = the sum over the neighbours of i.
  void gradient(offset_t i) {
    if (is_extra(i)) {
      std::copy(pull_.begin(), pull_.end(), gradient_.begin());
      return;
    }
    products_->row(i, gradient_.data());
    for (auto& line : gradient_) line.v *= scale_;
    if (b_.empty()) return;
    const Line* extra = V_.row(c_.size());
    const double b = b_[at(i)];
    for (offset_t l = 0; l < V_.width; ++l) gradient_[at(l)].v += b * extra[l].v;
  }

  double move(offset_t i, double relaxation) {
    gradient(i);
    const double norm = std::sqrt(dot(gradient_.data(), gradient_.data()));
    if (!(norm > 0.0)) return 0.0;  // any unit vector is best
    Line* v = V_.row(i);
    const double before = dot(gradient_.data(), v);
    std::copy(v, v + V_.width, step_.begin());
    for (offset_t l = 0; l < V_.width; ++l) {
      v[l].v = (relaxation / norm) * gradient_[at(l)].v - (relaxation - 1.0) * v[l].v;
    }
    normalise(v);
    const double after = dot(gradient_.data(), v);
    for (offset_t l = 0; l < V_.width; ++l) {
      auto& line = step_[at(l)];
      line.v = v[l].v - line.v;
    }
    if (is_extra(i)) return 2.0 * (after - before);
    products_->moved(i, step_.data());
    if (!b_.empty()) {
      const double b = b_[at(i)];
      for (offset_t l = 0; l < V_.width; ++l) {
        pull_[at(l)].v += b * step_[at(l)].v;
      }
    }
    return 2.0 * (after - before);
  }

  double dot(const Line* a, const Line* b) const {
    Line::Vector sum{};
    for (offset_t l = 0; l < V_.width; ++l) sum += a[l].v * b[l].v;
    return ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
  }

  void normalise(Line* v) const {
    const double norm = std::sqrt(dot(v, v));
    if (!(norm > 0.0)) return;
    for (offset_t l = 0; l < V_.width; ++l) v[l].v *= 1.0 / norm;
  }

  /// Eight normal numbers, by Box and Muller.
  static Line normal(Rng& rng) {
    Line out;
    for (int k = 0; k < kLanes<double>; k += 2) {
      const double radius = std::sqrt(-2.0 * std::log(1.0 - rng.uniform()));
      const double angle = 2.0 * std::numbers::pi * rng.uniform();
      out.set(k, radius * std::cos(angle));
      out.set(k + 1, radius * std::sin(angle));
    }
    return out;
  }

  /// Row i of the result says on which side of each hyperplane v_i lies, as seen from v_n if there
  /// is a linear term: that vertex is then at 1.
  Panel hyperplane_signs(Rng& rng) const {
    Panel normals(rank(), kRoundWidth);
    for (offset_t k = 0; k < rank(); ++k) {
      for (offset_t l = 0; l < kRoundWidth; ++l) normals.row(k)[l] = normal(rng);
    }
    std::vector<Line> extra(kRoundWidth, Line::all(1.0));
    if (!b_.empty()) project(c_.size(), normals, extra.data());
    Panel Y(c_.size(), kRoundWidth);
    for (offset_t i = 0; i < c_.size(); ++i) {
      project(i, normals, Y.row(i));
      for (offset_t l = 0; l < kRoundWidth; ++l) {
        for (int k = 0; k < kLanes<double>; ++k) {
          const double side = Y.row(i)[l][k] * extra[at(l)][k];
          Y.row(i)[l].set(k, side >= 0.0 ? 1.0 : -1.0);
        }
      }
    }
    return Y;
  }

  void project(offset_t i, const Panel& normals, Line* out) const {
    const auto* v = reinterpret_cast<const double*>(V_.row(i));
    combine_rows(std::span(v, static_cast<std::size_t>(rank())), normals.data(), kRoundWidth, out);
  }

  /// scale * sum over j != i of C_ij y_j + b_i, by hyperplane: its sign is the better one for y_i.
  void wish(offset_t i, typename C::Products& products, Line* out) const {
    products.row(i, out);
    const double b = b_.empty() ? 0.0 : b_[at(i)];
    for (offset_t l = 0; l < kRoundWidth; ++l) out[l].v = scale_ * out[l].v + b;
  }

  /// One pass of flips for all hyperplanes at once; true if one was made.
  bool flip_pass(Panel& Y, typename C::Products& products) const {
    Line wishes[kRoundWidth], step[kRoundWidth];
    bool has_flipped = false;
    for (offset_t i = 0; i < c_.size(); ++i) {
      wish(i, products, wishes);
      // Rounding must not make a vertex flip to and fro for ever.
      const double least = 1e-12 * std::abs(diagonal(i));
      bool flips_here = false;
      for (offset_t l = 0; l < kRoundWidth; ++l) {
        for (int k = 0; k < kLanes<double>; ++k) {
          const double y = Y.row(i)[l][k];
          const bool flips = y * wishes[l][k] < -least;
          step[l].set(k, flips ? -2.0 * y : 0.0);
          flips_here |= flips;
        }
      }
      if (!flips_here) continue;
      has_flipped = true;
      for (offset_t l = 0; l < kRoundWidth; ++l) Y.row(i)[l].v += step[l].v;
      products.moved(i, step);
    }
    return has_flipped;
  }

  std::vector<RoundedSigns> gather(const Panel& Y, typename C::Products& products) const {
    std::vector<RoundedSigns> out(kHyperplanes);
    for (auto& signs : out) signs.y.resize(static_cast<std::size_t>(c_.size()));
    Line wishes[kRoundWidth];
    for (offset_t i = 0; i < c_.size(); ++i) {
      wish(i, products, wishes);
      const double b = b_.empty() ? 0.0 : b_[at(i)];
      for (offset_t h = 0; h < kHyperplanes; ++h) {
        const int k = static_cast<int>(h % kLanes<double>);
        const double y = Y.row(i)[h / kLanes<double>][k];
        auto& signs = out[at(h)];
        signs.y[at(i)] = y > 0 ? 1 : -1;
        signs.value += y * (wishes[h / kLanes<double>][k] + b) + diagonal(i);
      }
    }
    return out;
  }

  const C& c_;
  double scale_;
  std::span<const double> b_;
  Panel V_;
  std::optional<typename C::Products> products_;
  std::vector<Line> pull_;  ///< sum of b_i v_i
  std::vector<Line> gradient_, step_;
  std::vector<index_t> order_;
};

}  // namespace sublearn
