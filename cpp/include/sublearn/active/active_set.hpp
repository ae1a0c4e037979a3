// The active set of an outer loop around a method for few coordinates: which to hand over next.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include "sublearn/active/round.hpp"
#include "sublearn/core/types.hpp"

namespace sublearn {

class ActiveSet {
 public:
  explicit ActiveSet(std::size_t first_size = 100) : first_size_(first_size) {}

  /// The support, coordinates that nothing holds, and as many of the worst violators again; in
  /// ascending order. `gradient` goes with `kept`, `x` and the penalty have all coordinates.
  template <class Penalty>
  std::span<const index_t> choose(const Penalty& penalty, std::span<const index_t> kept,
                                  std::span<const double> x, std::span<const double> gradient) {
    ids_.clear();
    candidates_.clear();
    for (std::size_t k = 0; k < kept.size(); ++k) {
      if (x[static_cast<std::size_t>(kept[k])] != 0.0 || penalty.is_open(kept[k])) {
        ids_.push_back(kept[k]);
      } else {
        const double violation = penalty.violation(kept[k], 0.0, gradient[k]);
        if (violation > 0.0) candidates_.push_back({violation, kept[k]});
      }
    }
    extend();
    return ids_;
  }

  std::span<const index_t> ids() const { return ids_; }

  /// Whether the last set was used up, so that the next is larger.
  bool is_growing() const { return growth_ > 1; }

  /// What the method is to leave of the largest violation: nothing is solved well before the set
  /// holds what matters. Once it holds every violator, on to the end: a gap falls with the square
  /// of the violation.
  double share(const Round& round, double tol, double most = kShare) const {
    if (is_growing()) return kRoughShare;
    if (last_size_ != kEverything) return kShare;
    const double left = tol / round.certificate();
    return std::clamp(std::isfinite(round.bound) ? 0.5 * std::sqrt(left) : 0.5 * left, kLeastShare,
                      most);
  }

  static constexpr double kShare = 0.3;

 private:
  static constexpr double kRoughShare = 0.7;
  static constexpr double kLeastShare = 1e-3;

  struct Candidate {
    double violation;
    index_t id;
  };

  /// A set that was used up to the last coordinate was too small: the next grows faster.
  void extend() {
    const bool is_used_up = 10 * ids_.size() > 9 * last_size_;
    growth_ = last_size_ > 0 && is_used_up ? std::min(2 * growth_, kMostGrowth) : 1;
    const std::size_t n =
        std::min(candidates_.size(), std::max(first_size_, growth_ * ids_.size()));
    std::partial_sort(candidates_.begin(), candidates_.begin() + static_cast<std::ptrdiff_t>(n),
                      candidates_.end(), [](const Candidate& a, const Candidate& b) {
                        return a.violation != b.violation ? a.violation > b.violation : a.id < b.id;
                      });
    for (std::size_t c = 0; c < n; ++c) ids_.push_back(candidates_[c].id);
    std::sort(ids_.begin(), ids_.end());
    last_size_ = n < candidates_.size() ? ids_.size() : kEverything;
  }

  static constexpr std::size_t kMostGrowth = 4;
  static constexpr std::size_t kEverything = std::numeric_limits<std::size_t>::max() / 16;

  std::size_t first_size_;
  std::vector<index_t> ids_;
  std::vector<Candidate> candidates_;
  std::size_t last_size_ = 0;  ///< kEverything if it held every violator
  std::size_t growth_ = 1;
};

}  // namespace sublearn
