// The compact form of L-BFGS, B = B0 - G R G' with B0 = theta M (theorem 20 of chapter 5 of Tang's
// thesis), from the last few pairs s = change of the point, t = change of the gradient:
//
//   G = [theta M S  T],   R = [theta S'M S  L; L'  -D]^-1,
//
// D the diagonal and L the part below the diagonal of S'T. M is the identity, as in the thesis'
// experiments, or a diagonal that says how the sizes of coordinates differ: B is then what L-BFGS
// with the identity makes of the problem in the coordinates sqrt(M) x. Pairs live in a ring: the
// newest replaces the oldest where it stands, nothing is moved, and S'M S and S'T change by one row
// and column, which costs one product of S' and of T' with the new s.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "sublearn/core/columns.hpp"
#include "sublearn/core/types.hpp"

namespace sublearn {

/// A = A^-1 for a small row-major n x n matrix, by elimination with row pivots. False if singular.
inline bool invert(std::vector<double>& a, std::size_t n) {
  std::vector<std::size_t> swapped(n);
  for (std::size_t c = 0; c < n; ++c) {
    std::size_t pivot = c;
    for (std::size_t r = c + 1; r < n; ++r) {
      if (std::abs(a[r * n + c]) > std::abs(a[pivot * n + c])) pivot = r;
    }
    swapped[c] = pivot;
    for (std::size_t k = 0; k < n; ++k) std::swap(a[c * n + k], a[pivot * n + k]);
    const double head = a[c * n + c];
    if (!(std::abs(head) > 0.0) || !std::isfinite(head)) return false;
    a[c * n + c] = 1.0;
    for (std::size_t k = 0; k < n; ++k) a[c * n + k] /= head;
    for (std::size_t r = 0; r < n; ++r) {
      if (r == c) continue;
      const double factor = a[r * n + c];
      a[r * n + c] = 0.0;
      for (std::size_t k = 0; k < n; ++k) a[r * n + k] -= factor * a[c * n + k];
    }
  }
  for (std::size_t c = n; c-- > 0;) {
    if (swapped[c] == c) continue;
    for (std::size_t r = 0; r < n; ++r) std::swap(a[r * n + c], a[r * n + swapped[c]]);
  }
  return true;
}

class LowRankHessian {
 public:
  LowRankHessian(offset_t size, int memory)
      : size_(size),
        memory_(static_cast<std::size_t>(memory)),
        s_(memory_ * static_cast<std::size_t>(size)),
        t_(s_.size()),
        ss_(memory_ * memory_),
        st_(memory_ * memory_) {}

  double theta() const { return theta_; }
  /// The diagonal M; empty for the identity.
  std::span<const double> metric() const { return metric_; }

  /// Another M, all entries positive; the pairs stay.
  void set_metric(std::vector<double> metric) {
    metric_ = std::move(metric);
    for (std::size_t a = 0; a < n_; ++a) {
      for (std::size_t b = 0; b <= a; ++b) {
        ss_[a * memory_ + b] = ss_[b * memory_ + a] = product(s_at(a), s_at(b));
      }
    }
    if (n_ == 0) return;
    theta_ = square_by_inverse(t_at(newest_)) / st_[newest_ * memory_ + newest_];
    refresh();
  }
  void set_theta(double theta) { theta_ = theta; }
  /// Columns of G.
  std::size_t rank() const { return 2 * n_; }

  void clear() { n_ = 0, newest_ = 0, middle_.clear(); }

  /// Takes a pair in; refuses one without curvature along s, which would make B indefinite.
  bool append(std::span<const double> s, std::span<const double> t) {
    const double curvature = dense_dot(s.data(), t.data(), size_);
    const double t_squared = square_by_inverse(t.data());
    const double s_squared = product(s.data(), s.data());
    if (!(curvature > kLeastCosine * std::sqrt(s_squared * t_squared))) return false;
    theta_ = t_squared / curvature;
    if (memory_ == 0) return true;
    newest_ = n_ == 0 ? 0 : (newest_ + 1) % memory_;
    n_ = std::min(n_ + 1, memory_);
    std::copy(s.begin(), s.end(), s_at(newest_));
    std::copy(t.begin(), t.end(), t_at(newest_));
    for (std::size_t slot = 0; slot < n_; ++slot) {
      ss_[slot * memory_ + newest_] = ss_[newest_ * memory_ + slot] = product(s_at(slot), s.data());
      st_[newest_ * memory_ + slot] = dense_dot(t_at(slot), s.data(), size_);
    }
    return refresh();
  }

  /// Takes in the pairs of a matrix over other coordinates: entry k is its entry `places[k]`, 0
  /// where that is negative. A pair that loses its curvature by this is left out.
  void take_over(const LowRankHessian& other, std::span<const index_t> places) {
    clear();
    std::vector<double> s(places.size()), t(places.size());
    for (std::size_t back = other.n_; back-- > 0;) {
      const std::size_t slot = (other.newest_ + other.memory_ - back) % other.memory_;
      for (std::size_t k = 0; k < places.size(); ++k) {
        s[k] = places[k] < 0 ? 0.0 : other.s_at(slot)[places[k]];
        t[k] = places[k] < 0 ? 0.0 : other.t_at(slot)[places[k]];
      }
      append(s, t);
    }
  }

  /// Rows of G for the coordinates `ids`, and of G R, row-major with `stride()` columns.
  void rows(std::span<const index_t> ids, std::vector<double>& g, std::vector<double>& gr) const {
    const std::size_t width = stride();
    g.assign(ids.size() * width, 0.0);
    gr.assign(ids.size() * width, 0.0);
    for (std::size_t k = 0; k < ids.size(); ++k) {
      double* row = g.data() + k * width;
      for (std::size_t slot = 0; slot < n_; ++slot) {
        row[slot] = theta_ * size_of(ids[k]) * s_at(slot)[ids[k]];
        row[n_ + slot] = t_at(slot)[ids[k]];
      }
      double* out = gr.data() + k * width;
      for (std::size_t a = 0; a < rank(); ++a) {
        const double* middle = middle_.data() + a * rank();
        for (std::size_t b = 0; b < rank(); ++b) out[b] += row[a] * middle[b];
      }
    }
  }

  /// Padded to whole registers.
  std::size_t stride() const { return (rank() + 7) / 8 * 8; }

  /// Entry j of M.
  double size_of(offset_t j) const {
    return metric_.empty() ? 1.0 : metric_[static_cast<std::size_t>(j)];
  }

 private:
  static constexpr double kLeastCosine = 1e-10;

  /// <a, M b>
  double product(const double* a, const double* b) const {
    if (metric_.empty()) return dense_dot(a, b, size_);
    double sum = 0.0;
    for (std::size_t j = 0; j < metric_.size(); ++j) sum += metric_[j] * a[j] * b[j];
    return sum;
  }

  /// <t, M^-1 t>
  double square_by_inverse(const double* t) const {
    if (metric_.empty()) return dense_dot(t, t, size_);
    double sum = 0.0;
    for (std::size_t j = 0; j < metric_.size(); ++j) sum += t[j] * t[j] / metric_[j];
    return sum;
  }

  double* s_at(std::size_t slot) { return s_.data() + slot * static_cast<std::size_t>(size_); }
  double* t_at(std::size_t slot) { return t_.data() + slot * static_cast<std::size_t>(size_); }
  const double* s_at(std::size_t slot) const {
    return s_.data() + slot * static_cast<std::size_t>(size_);
  }
  const double* t_at(std::size_t slot) const {
    return t_.data() + slot * static_cast<std::size_t>(size_);
  }

  /// Steps back in time from the newest pair.
  std::size_t age(std::size_t slot) const { return (newest_ + memory_ - slot) % memory_; }

  /// R in the order of the slots: a permutation of rows and columns of both blocks alike, which
  /// leaves G R G' as it is. L_ab = <s_a, t_b> where a is newer than b.
  bool refresh() {
    const std::size_t r = rank();
    middle_.assign(r * r, 0.0);
    for (std::size_t a = 0; a < n_; ++a) {
      for (std::size_t b = 0; b < n_; ++b) {
        middle_[a * r + b] = theta_ * ss_[a * memory_ + b];
        if (age(a) < age(b)) {
          middle_[a * r + n_ + b] = middle_[(n_ + b) * r + a] = st_[a * memory_ + b];
        }
      }
      middle_[(n_ + a) * r + n_ + a] = -st_[a * memory_ + a];
    }
    if (invert(middle_, r)) return true;
    clear();
    return false;
  }

  offset_t size_;
  std::size_t memory_;
  std::vector<double> s_, t_;    ///< `memory` vectors each, one after the other
  std::vector<double> ss_, st_;  ///< <s_a, M s_b>; <s_a, t_b> for a at least as new as b
  std::vector<double> metric_;
  std::vector<double> middle_;  ///< R
  std::size_t n_ = 0;
  std::size_t newest_ = 0;
  double theta_ = 1.0;
};

/// (mu/2 M + B) restricted to some coordinates, for coordinate descent: a look and a step cost
/// O(rank), however many rows the data has.
class LowRankModel {
 public:
  /// d = 0 over the coordinates `ids`, where the gradient is `gradient` (of all coordinates).
  void reset(const LowRankHessian& hessian, std::span<const index_t> ids,
             std::span<const double> gradient) {
    hessian.rows(ids, g_, gr_);
    width_ = hessian.stride();
    theta_ = hessian.theta();
    gradient_.resize(ids.size());
    diagonal_.resize(ids.size());
    sizes_.resize(ids.size());
    for (std::size_t k = 0; k < ids.size(); ++k) {
      gradient_[k] = gradient[static_cast<std::size_t>(ids[k])];
      sizes_[k] = hessian.size_of(ids[k]);
      diagonal_[k] = theta_ * sizes_[k] - dot(row(g_, k), row(gr_, k));
    }
    d_.assign(ids.size(), 0.0);
    projected_.assign(width_, 0.0);
    half_mu_ = 0.0;
  }

  void set_half_mu(double half_mu) { half_mu_ = half_mu; }

  double curvature(index_t k) const {
    const auto at = static_cast<std::size_t>(k);
    return half_mu_ * sizes_[at] + std::max(diagonal_[at], kLeastShare * theta_ * sizes_[at]);
  }
  double slope(index_t k) const {
    const auto at = static_cast<std::size_t>(k);
    return gradient_[at] + product(at);
  }
  void move(index_t k, double step) {
    const auto at = static_cast<std::size_t>(k);
    d_[at] += step;
    const double* source = row(gr_, at);
    for (std::size_t c = 0; c < width_; ++c) projected_[c] += step * source[c];
  }

  std::span<const double> step() const { return d_; }

  /// What coordinate k adds to <g, d> + 1/2 <d, H d>.
  double value(std::size_t k) const { return d_[k] * (gradient_[k] + 0.5 * product(k)); }

 private:
  /// Rounding can eat the diagonal of B; what is left then is this share of theta.
  static constexpr double kLeastShare = 1e-8;

  double product(std::size_t k) const {
    return (half_mu_ + theta_) * sizes_[k] * d_[k] - dot(row(g_, k), projected_.data());
  }
  const double* row(const std::vector<double>& rows, std::size_t k) const {
    return rows.data() + k * width_;
  }
  double dot(const double* a, const double* b) const {
    double even = 0.0, odd = 0.0;
    for (std::size_t c = 0; c < width_; c += 2) {
      even += a[c] * b[c];
      odd += a[c + 1] * b[c + 1];
    }
    return even + odd;
  }

  std::vector<double> g_, gr_;
  std::size_t width_ = 0;
  double theta_ = 1.0;
  double half_mu_ = 0.0;
  std::vector<double> gradient_;
  std::vector<double> diagonal_;
  std::vector<double> sizes_;  ///< entries of M
  std::vector<double> d_;
  std::vector<double> projected_;  ///< R G' d
};

}  // namespace sublearn
