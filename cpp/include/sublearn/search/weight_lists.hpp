// The weights of a linear model by feature: for each feature the labels that give it a weight, in
// increasing order, and the weights, as they are or quantised.
//
// The arrays may be a file mapped into memory, so nothing is read when the lists are opened, and
// nothing is trusted: a list is checked when it is first asked for. Opening costs a few bytes per
// feature whatever the number of weights, and a damaged file ends in an exception, never in a read
// outside the arrays.
//
// Used by: search/label_scores.hpp.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "sublearn/core/offsets.hpp"
#include "sublearn/core/types.hpp"

namespace sublearn {

/// Where each list begins; one entry more than lists.
class Offsets {
 public:
  explicit Offsets(std::span<const std::int32_t> narrow)
      : begins_(narrow.data()), size_(narrow.size()) {}
  explicit Offsets(std::span<const std::int64_t> wide) : begins_(wide.data()), size_(wide.size()) {}

  std::size_t size() const { return size_; }
  offset_t operator[](std::size_t i) const { return begins_[i]; }

 private:
  OffsetPointer begins_;
  std::size_t size_;
};

/// One feature: labels[p] gives it weight(p).
template <class T, class Id, class V>
struct LabelList {
  const Id* labels;
  const V* values;
  std::size_t size;
  T scale;

  T weight(std::size_t p) const {
    if constexpr (std::is_same_v<T, V>) {
      return values[p];
    } else {
      return scale * static_cast<T>(values[p]);
    }
  }
};

/// The weights of one feature that can raise a score, those above zero, rounded up: labels[p] has a
/// weight of at most step * levels[p].
template <class T, class Id>
struct RaisingList {
  std::vector<Id> labels;
  std::vector<std::uint8_t> levels;
  T step;
};

/// T is the type of scores. V is T, or an integer type: then a weight is scales[feature] * value.
template <class T, class Id, class V>
class WeightLists {
 public:
  using Score = T;
  using LabelId = Id;
  using List = LabelList<T, Id, V>;
  using Raising = RaisingList<T, Id>;

  /// A list that is shorter is read as it is.
  static constexpr std::size_t kShortest = 32;

  struct Bounds {
    T largest;               ///< of the sizes of the weights; infinity if one is not finite
    const Raising* raising;  ///< null where the whole list is as good
  };

  /// `scales` has one entry per feature if V is an integer type, none otherwise.
  WeightLists(Offsets offsets, std::span<const Id> labels, std::span<const V> values,
              std::span<const T> scales, std::size_t n_labels)
      : offsets_(offsets),
        labels_(labels),
        values_(values),
        scales_(scales),
        n_labels_(n_labels),
        state_(n_features()),
        largest_(n_features()),
        raising_(n_features()) {}
  ~WeightLists() {
    for (auto& raising : raising_) delete raising.load(std::memory_order_relaxed);
  }
  WeightLists(const WeightLists&) = delete;
  WeightLists& operator=(const WeightLists&) = delete;

  std::size_t n_features() const { return offsets_.size() - 1; }
  std::size_t n_labels() const { return n_labels_; }

  /// The list of a feature below n_features(). Throws std::invalid_argument if it is damaged.
  List list(std::size_t feature) const {
    if (state_[feature].load(std::memory_order_relaxed) == kUnknown) check(feature);
    return at(feature);
  }

  /// What bounds a checked list from above. Made when first asked for, in one walk.
  Bounds bounds(std::size_t feature) const {
    if (state_[feature].load(std::memory_order_acquire) != kBounded) bound(feature);
    return {largest_[feature].load(std::memory_order_relaxed),
            raising_[feature].load(std::memory_order_relaxed)};
  }

 private:
  enum State : std::uint8_t { kUnknown, kChecked, kBounded };

  List at(std::size_t feature) const {
    const auto begin = static_cast<std::size_t>(offsets_[feature]);
    const auto end = static_cast<std::size_t>(offsets_[feature + 1]);
    return {labels_.data() + begin, values_.data() + begin, end - begin,
            scales_.empty() ? T(1) : scales_[feature]};
  }

  // Two threads may do this at once; both find the same, and one copy is dropped.
  void bound(std::size_t feature) const {
    const List list = at(feature);
    T largest = 0, highest = 0;
    std::size_t n_raising = 0;
    for (std::size_t p = 0; p < list.size; ++p) {
      const T weight = list.weight(p);
      const T size = std::abs(weight);
      if (!(size <= largest)) largest = size <= kFinite ? size : kInfinity;
      if (weight > highest) highest = weight;
      n_raising += weight > 0;
    }
    largest_[feature].store(largest, std::memory_order_relaxed);
    if (list.size >= kShortest && 3 * n_raising <= 2 * list.size && largest <= kFinite) {
      auto raising = raise(list, highest, n_raising);
      const Raising* none = nullptr;
      if (raising_[feature].compare_exchange_strong(none, raising.get())) raising.release();
    }
    state_[feature].store(kBounded, std::memory_order_release);
  }

  static std::unique_ptr<Raising> raise(const List& list, T highest, std::size_t n) {
    auto raising = std::make_unique<Raising>();
    raising->labels.reserve(n);
    raising->levels.reserve(n);
    const T step = std::max(highest / 254, std::numeric_limits<T>::min());
    raising->step = step;
    for (std::size_t p = 0; p < list.size; ++p) {
      const T weight = list.weight(p);
      if (!(weight > 0)) continue;
      T level = std::ceil(weight / step);
      if (step * level < weight) ++level;
      raising->labels.push_back(list.labels[p]);
      raising->levels.push_back(static_cast<std::uint8_t>(level));
    }
    return raising;
  }

  // Two threads may check the same list at once; both find the same.
  void check(std::size_t feature) const {
    const offset_t begin = offsets_[feature];
    const offset_t end = offsets_[feature + 1];
    if (begin < 0 || end < begin || static_cast<std::size_t>(end) > labels_.size()) {
      refuse("offsets", "rise from 0 to " + std::to_string(labels_.size()), feature,
             std::to_string(begin) + " and " + std::to_string(end));
    }
    auto previous = offset_t{-1};
    for (auto p = static_cast<std::size_t>(begin); p < static_cast<std::size_t>(end); ++p) {
      const auto label = static_cast<offset_t>(labels_[p]);
      if (label <= previous || label >= static_cast<offset_t>(n_labels_)) {
        refuse("labels", "increase from 0 to " + std::to_string(n_labels_ - 1), feature,
               std::to_string(label) + " after " + std::to_string(previous));
      }
      previous = label;
    }
    state_[feature].store(kChecked, std::memory_order_relaxed);
  }

  [[noreturn]] static void refuse(const char* what, const std::string& must, std::size_t feature,
                                  const std::string& got) {
    throw std::invalid_argument(std::string("weights.") + what + " must " + must + ", got " + got +
                                " at feature " + std::to_string(feature));
  }

  Offsets offsets_;
  std::span<const Id> labels_;
  std::span<const V> values_;
  std::span<const T> scales_;
  std::size_t n_labels_;
  static constexpr T kFinite = std::numeric_limits<T>::max();
  static constexpr T kInfinity = std::numeric_limits<T>::infinity();
  mutable std::vector<std::atomic<std::uint8_t>> state_;
  mutable std::vector<std::atomic<T>> largest_;
  mutable std::vector<std::atomic<const Raising*>> raising_;
};

}  // namespace sublearn
