// What a dual solver needs to know about a loss of the margin z = y * score, y in {-1, +1}.
//
// Every loss here is the maximum over one bounded or half-bounded dual variable:
//
//   value(z) = max over 0 <= alpha <= upper_bound() of conjugate_term(alpha) - alpha z,
//
// so that  1/2 ||w||^2 + sum_i value(y_i <w, x_i>)  has the dual, to be maximised over that box,
//
//   sum_i conjugate_term(alpha_i) - 1/2 ||sum_i alpha_i y_i x_i||^2.
//
// A loss is a struct with the weight C; solvers are templated on it, and a new loss is a new file.
#pragma once

#include <concepts>

namespace sublearn {

template <class L>
concept MarginLoss = requires(const L& loss, double a) {
  { loss.value(a) } -> std::convertible_to<double>;  // loss at margin a
  { loss.slope(a) } -> std::convertible_to<double>;  // -value'(a): the alpha that belongs to a
  {
    loss.total(a, a)
  } -> std::convertible_to<double>;  // of many margins, from sum (1 - z)_+ and squares
  { loss.conjugate_term(a) } -> std::convertible_to<double>;  // its part of the maximised dual
  { loss.upper_bound() } -> std::convertible_to<double>;      // alpha lies in [0, upper_bound()]
  { loss.dual_diagonal() } -> std::convertible_to<double>;    // -(d/d alpha)^2 conjugate_term
};

}  // namespace sublearn
