// A linear problem over arrays of NumPy, for the binding files of its solvers.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "refuse.hpp"
#include "sublearn/active/round.hpp"
#include "sublearn/core/column_rows.hpp"
#include "sublearn/core/columns.hpp"
#include "sublearn/objectives/linear.hpp"
#include "sublearn/prox/separable.hpp"

namespace sublearn::bindings {

inline AnyLoss loss_by_name(const std::string& name, double parameter) {
  if (name == "logistic") return Logistic{};
  if (name == "squared") return Squared{};
  if (name == "squared_hinge") return OfMargin<SquaredHinge>{};
  if (name == "huber") return Huber{parameter};
  if (name == "poisson") return Poisson{};
  if (name == "quantile") return SmoothedLine{-parameter, 1.0 - parameter, false};
  if (name == "hinge") return SmoothedLine{-1.0, 0.0, true};
  refuse("loss", "be logistic, squared, squared_hinge, huber, poisson, quantile or hinge", name);
}

inline void check_lengths(offset_t n_rows, const Vector<double>& y, const Vector<double>& weights) {
  if (static_cast<offset_t>(y.size()) != n_rows ||
      static_cast<offset_t>(weights.size()) != n_rows) {
    throw std::invalid_argument("y and weights must have one number per row");
  }
}

/// What belongs to the rows of a problem beside their features.
struct RowArrays {
  Vector<double> y;
  Vector<double> weights;
  Vector<double> offsets;  ///< one per row, or none at all
};

/// A problem, and the arrays of NumPy that it looks at.
template <class Columns>
class LinearData {
 public:
  LinearData(Columns X, ColumnRows rows, nb::object owner, const RowArrays& of_rows, AnyLoss loss,
             bool has_intercept)
      : rows_(rows),
        owner_(std::move(owner)),
        of_rows_(of_rows),
        problem_{X,
                 as_span<double>(of_rows_.y),
                 as_span<double>(of_rows_.weights),
                 loss,
                 has_intercept,
                 as_span<double>(of_rows_.offsets)} {
    check_lengths(X.n_rows(), of_rows.y, of_rows.weights);
    const auto n_offsets = static_cast<offset_t>(of_rows.offsets.size());
    if (n_offsets != 0 && n_offsets != X.n_rows()) {
      throw std::invalid_argument("offsets must have one number per row or none");
    }
  }

  const LinearProblem<Columns>& problem() const { return problem_; }
  const ColumnRows& rows() const { return rows_; }

 private:
  ColumnRows rows_;
  nb::object owner_;
  RowArrays of_rows_;
  LinearProblem<Columns> problem_;
};

inline void check_penalty(const SeparablePenalty& penalty, offset_t size) {
  if (static_cast<offset_t>(penalty.l1.size()) != size) {
    throw std::invalid_argument("l1 must have one weight per coordinate");
  }
  if (!(penalty.lower <= 0.0 && penalty.upper >= 0.0)) {
    throw std::invalid_argument("0 must lie between lower and upper");
  }
}

/// The trace of a solver of linear models; without an active set all coordinates are kept.
inline nb::dict round_columns(const std::vector<Round>& rounds, bool has_active_set) {
  nb::dict out =
      to_columns(rounds, "seconds", &Round::seconds, "objective", &Round::objective, "gap",
                 &Round::gap, "violation", &Round::violation, "nnz_primal", &Round::n_nonzero);
  if (has_active_set) {
    add_columns(out, rounds, "n_kept", &Round::n_kept, "n_active", &Round::n_active);
  }
  add_columns(out, rounds, "n_passes", &Round::n_passes, "work", &Round::work);
  return out;
}

}  // namespace sublearn::bindings
