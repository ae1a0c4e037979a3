// All classes in one problem: the multinomial logistic loss of objectives/multinomial.hpp under a
// separable penalty that leaves out the intercepts. LHAC in an active set, with two moves before
// each certificate that do not make the point worse:
//
//   settle   The same number taken from the weights of a feature for all classes changes no loss,
//            but the penalty. Without l2 it is least where any number between the two middle
//            weights becomes 0; the one nearer to the mean does.
//   centre   What no penalty holds is minimised over (free_weights.hpp), which makes the slopes a
//            dual point: shrunk by t, they prove that no weights have an objective below
//            -sum_i s_i sum_k q_ik log q_ik,  q = t p + (1 - t) e_y.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "sublearn/active/outer_loop.hpp"
#include "sublearn/core/monitor.hpp"
#include "sublearn/core/status.hpp"
#include "sublearn/core/types.hpp"
#include "sublearn/objectives/multinomial.hpp"
#include "sublearn/prox/separable.hpp"
#include "sublearn/solvers/lhac/active_set_lhac.hpp"
#include "sublearn/solvers/lhac/lhac.hpp"
#include "sublearn/solvers/lhac/lhac_on_set.hpp"
#include "sublearn/solvers/multinomial/free_weights.hpp"

namespace sublearn {

template <class Columns>
class MultinomialProblem : public LhacProblem {
 public:
  MultinomialProblem(MultinomialObjective<Columns>& objective, const SeparablePenalty& penalty,
                     const LhacSettings& settings, std::vector<double>& x)
      : LhacProblem(objective, penalty, settings, x),
        n_weights_(objective.data().n_weights()),
        n_classes_(static_cast<std::size_t>(objective.data().n_classes)),
        free_(objective, free_features()),
        closed_l1_(penalty.l1.begin(), penalty.l1.end()),
        closed_(penalty) {
    for (std::size_t j = 0; j < x.size(); ++j) {
      const bool is_open = penalty.is_open(static_cast<offset_t>(j));
      if (is_open) closed_l1_[j] = std::numeric_limits<double>::infinity();
    }
    closed_.l1 = closed_l1_;
    closed_.n_free_last = 0;
    is_counted_ = false;
    most_share_ = kMostShare;
  }

  double certify(std::span<const index_t> kept, std::span<double> gradient) {
    if (penalty_.l2 == 0.0) settle(kept);
    is_centred_ = free_.centre(*x_);
    return LhacProblem::certify(kept, gradient);
  }

  /// The equations of what has no penalty hold: it asks for no shrinking.
  DualPoint dual_point(std::span<const index_t> kept, std::span<const double> gradient) {
    if (!is_centred_) return {};
    return kept_objective().dual_point(PenaltyPart(closed_, kept).get(), gradient);
  }

 private:
  /// Centring puts some of the violation back, so that rounds which leave more hardly get on.
  static constexpr double kMostShare = 0.01;

  std::vector<index_t> free_features() const {
    std::vector<index_t> features;
    for (offset_t id = 0; id < n_weights_; id += static_cast<offset_t>(n_classes_)) {
      if (penalty_.is_open(id)) {
        features.push_back(static_cast<index_t>(id / static_cast<offset_t>(n_classes_)));
      }
    }
    return features;
  }

  /// A feature that has a weight ruled out, which stays 0, is settled by that.
  void settle(std::span<const index_t> kept) {
    const auto n = static_cast<index_t>(n_classes_);
    for (std::size_t at = 0; at + n_classes_ <= kept.size();) {
      const index_t first = kept[at];
      if (first >= n_weights_) break;
      const bool is_whole = first % n == 0 && kept[at + n_classes_ - 1] == first + n - 1;
      if (is_whole) settle_feature(static_cast<std::size_t>(first));
      at += is_whole ? n_classes_ : 1;
    }
  }

  void settle_feature(std::size_t first) {
    const std::span<double> w = std::span(*x_).subspan(first, n_classes_);
    if (std::all_of(w.begin(), w.end(), [](double weight) { return weight == 0.0; })) return;
    sorted_.assign(w.begin(), w.end());
    std::sort(sorted_.begin(), sorted_.end());
    const double mean = std::accumulate(w.begin(), w.end(), 0.0) / static_cast<double>(n_classes_);
    const double low = sorted_[(n_classes_ - 1) / 2], high = sorted_[n_classes_ / 2];
    const double middle = std::abs(low - mean) <= std::abs(high - mean) ? low : high;
    const double shift = penalty_.l1[first] == 0.0 ? mean : middle;
    for (double& weight : w) weight -= shift;
  }

  offset_t n_weights_;
  std::size_t n_classes_;
  FreeWeights<Columns> free_;
  std::vector<double> closed_l1_, sorted_;
  SeparablePenalty closed_;  ///< infinite l1 where there is no penalty
  bool is_centred_ = false;
};

struct MultinomialSolution {
  Status status;
  std::vector<Round> rounds;
};

/// From x to an (approximate) minimiser, left in x; max_iter limits the rounds.
template <class Columns>
MultinomialSolution solve_multinomial(MultinomialObjective<Columns>& objective,
                                      const SeparablePenalty& penalty, double tol, int max_iter,
                                      std::vector<double>& x, Monitor& monitor) {
  constexpr std::size_t kFirstFeatures = 100;
  constexpr double kCancellation = 1e-12;  // an objective below this share of the loss at 0
  const auto n_classes = static_cast<std::size_t>(objective.data().n_classes);
  LhacSettings settings;
  settings.tol = settings.violation_tol = tol;
  MultinomialProblem<Columns> problem(objective, penalty, settings, x);
  OuterLoop loop(problem, penalty,
                 {.tol = tol,
                  .max_iter = max_iter,
                  .first_size = kFirstFeatures * n_classes,
                  .least_unit = kCancellation * std::log(static_cast<double>(n_classes))});
  const Status status = loop.run(monitor);
  return {status, std::move(loop.rounds)};
}

}  // namespace sublearn
