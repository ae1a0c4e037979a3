// The symmetric matrix C of a Boolean quadratic problem, stored in one of three ways, and its
// products with a panel of vectors while rows of the panel move.
//
// Each way answers the same questions (concept Couplings), so the mixing method is written once:
//   dense      C itself               a product row costs n_rows * width
//   sparse     its nonzeros           nnz of the row * width
//   factored   A with C = A A'        n_cols of A * width, and as much for each move
#pragma once

#include <concepts>
#include <span>
#include <vector>

#include "sublearn/core/types.hpp"
#include "sublearn/core/views.hpp"
#include "sublearn/search/panel.hpp"

namespace sublearn {

/// `Products` follows one panel V: row(i, out) is (C V)_i without the term of C_ii, and moved(i,
/// step) must be told that V_i has become V_i + step.
template <class C>
concept Couplings = requires(const C& c, typename C::Products& products, const Panel& V, offset_t i,
                             const Pack<double>* step, Pack<double>* out) {
  { c.size() } -> std::convertible_to<offset_t>;
  { c.diagonal(i) } -> std::convertible_to<double>;
  requires std::constructible_from<typename C::Products, const C&, const Panel&>;
  products.row(i, out);
  products.moved(i, step);
};

namespace detail {

inline void subtract(const Pack<double>* row, double times, offset_t width, Pack<double>* out) {
  for (offset_t l = 0; l < width; ++l) out[l].v -= times * row[l].v;
}

}  // namespace detail

struct DenseCouplings {
  DenseView<const double> C;

  offset_t size() const { return C.n_rows; }
  double diagonal(offset_t i) const { return C.row(i)[at(i)]; }

  class Products {
   public:
    Products(const DenseCouplings& c, const Panel& V) : c_(c), V_(V) {}
    void row(offset_t i, Pack<double>* out) const {
      combine_rows(c_.C.row(i), V_.data(), V_.width, out);
      detail::subtract(V_.row(i), c_.diagonal(i), V_.width, out);
    }
    void moved(offset_t, const Pack<double>*) {}

   private:
    const DenseCouplings& c_;
    const Panel& V_;
  };
};

/// Rows without their diagonal entries, which are kept apart.
struct SparseCouplings {
  CsrView<double, index_t> C;
  std::span<const double> on_diagonal;

  offset_t size() const { return C.n_rows(); }
  double diagonal(offset_t i) const { return on_diagonal[at(i)]; }

  class Products {
   public:
    Products(const SparseCouplings& c, const Panel& V) : c_(c), V_(V) {}
    void row(offset_t i, Pack<double>* out) const {
      const auto entries = c_.C.row(i);
      combine_rows(entries.ids, entries.values.data(), V_.data(), V_.width, out);
    }
    void moved(offset_t, const Pack<double>*) {}

   private:
    const SparseCouplings& c_;
    const Panel& V_;
  };
};

/// C = A A' is never formed: U = A'V is kept instead.
struct FactoredCouplings {
  explicit FactoredCouplings(DenseView<const double> A) : A(A) {
    for (offset_t i = 0; i < A.n_rows; ++i) {
      double sum = 0.0;
      for (const double a : A.row(i)) sum += a * a;
      squares_.push_back(sum);
    }
  }

  DenseView<const double> A;

  offset_t size() const { return A.n_rows; }
  double diagonal(offset_t i) const { return squares_[at(i)]; }

  class Products {
   public:
    Products(const FactoredCouplings& c, const Panel& V) : c_(c), V_(V), U_(c.A.n_cols, V.width) {
      for (offset_t i = 0; i < V.n_rows() && i < c.size(); ++i) moved(i, V.row(i));
    }
    void row(offset_t i, Pack<double>* out) const {
      combine_rows(c_.A.row(i), U_.data(), U_.width, out);
      detail::subtract(V_.row(i), c_.diagonal(i), V_.width, out);
    }
    void moved(offset_t i, const Pack<double>* step) {
      add_to_rows(c_.A.row(i), step, U_.width, U_.data());
    }

   private:
    const FactoredCouplings& c_;
    const Panel& V_;
    Panel U_;
  };

 private:
  std::vector<double> squares_;
};

}  // namespace sublearn
