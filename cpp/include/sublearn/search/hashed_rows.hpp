// A matrix of values by feature and label, most of them never touched, whose soft-thresholded
// values are the weights: v, and w = soft(v, level), kept by feature (PD-Sparse, 4.1 and 4.2).
//
// Each row is one block of memory in the form that is smallest for what it holds:
//
//   sparse  entries (label, v), those with a weight in front, so that a search reads nothing else.
//           A few entries are found by looking at all of them; more by open addressing over a
//           power of two of slots that name entries. All rows share one hash function, a random
//           permutation of the labels: it is evaluated once for a label and used for all features
//           of a sample.
//   dense   v for all labels, and one bit per label that has a weight.
//
// Labels are added and never leave. A closed matrix takes no new labels and has no threshold: v is
// the weight, on a support that stays.
//
// Used by: solvers/pd_sparse/, solvers/structured/.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "sublearn/core/rng.hpp"
#include "sublearn/core/types.hpp"
#include "sublearn/prox/soft_threshold.hpp"
#include "sublearn/search/score_board.hpp"

namespace sublearn {

/// scores[k] += x * soft(values[k], level) for all k; compiled once per instruction set.
void add_soft(const float* values, float level, float x, std::size_t n, float* scores);
void add_soft(const double* values, double level, double x, std::size_t n, double* scores);

template <class T>
class HashedRows {
 public:
  /// A label and its hash: what a row needs to find it.
  struct Place {
    index_t label;
    std::uint32_t hash;
  };

  struct Change {
    Place place;
    T amount;
  };

  /// `level` is the threshold of all rows but the last `n_free`, which have none.
  HashedRows(std::size_t n_rows, index_t n_labels, T level, Rng rng, std::size_t n_free = 0)
      : rows_(n_rows),
        hash_(static_cast<std::size_t>(n_labels)),
        first_free_(n_rows - n_free),
        level_(level) {
    std::iota(hash_.begin(), hash_.end(), 0U);
    rng.shuffle(std::span<std::uint32_t>(hash_));
  }

  HashedRows(const HashedRows& other)
      : rows_(other.rows_.size()),
        hash_(other.hash_),
        first_free_(other.first_free_),
        level_(other.level_),
        is_closed_(other.is_closed_) {
    for (std::size_t r = 0; r < rows_.size(); ++r) rows_[r] = copy_of(other.rows_[r]);
  }
  HashedRows(HashedRows&&) noexcept = default;
  HashedRows& operator=(HashedRows other) noexcept {
    std::swap(rows_, other.rows_);
    std::swap(hash_, other.hash_);
    first_free_ = other.first_free_;
    level_ = other.level_;
    is_closed_ = other.is_closed_;
    return *this;
  }

  index_t n_labels() const { return static_cast<index_t>(hash_.size()); }
  std::size_t n_rows() const { return rows_.size(); }
  T level(std::size_t r) const { return r < first_free_ ? level_ : T{0}; }
  Place place(index_t label) const { return {label, hash_[static_cast<std::size_t>(label)]}; }

  /// Weights of a row that are not zero (of a closed matrix: its support).
  index_t n_weights(std::size_t r) const { return rows_[r].n_weights; }
  bool is_dense(std::size_t r) const { return rows_[r].capacity == kDense; }

  void prefetch(std::size_t r) const { __builtin_prefetch(&rows_[r]); }
  void prefetch_block(std::size_t r) const { __builtin_prefetch(rows_[r].block.get()); }

  /// Asks for the memory at which `changes` will begin to look.
  void prefetch(std::size_t r, std::span<const Change> changes) const {
    const Row& row = rows_[r];
    if (row.capacity == kDense) {
      const T* values = values_of(row);
      for (const Change& c : changes) __builtin_prefetch(values + c.place.label);
    } else if (row.capacity > kUnhashed) {
      const index_t* slots = slots_of(row);
      const std::size_t mask = n_slots(row.capacity) - 1;
      for (const Change& c : changes) __builtin_prefetch(slots + (c.place.hash & mask));
    }
  }

  /// v += amount.
  void add(std::size_t r, Place place, T amount) {
    Row& row = rows_[r];
    if (row.capacity == kDense) {
      add_dense(row, place.label, amount, level(r));
    } else {
      add_sparse(row, place, amount, level(r));
    }
  }

  /// v += x * amount for several labels of a row.
  void add(std::size_t r, std::span<const Change> changes, T x) {
    Row& row = rows_[r];
    const T threshold = level(r);
    std::size_t c = 0;
    for (; c < changes.size() && row.capacity != kDense; ++c) {
      add_sparse(row, changes[c].place, x * changes[c].amount, threshold);
    }
    for (; c < changes.size(); ++c) {
      add_dense(row, changes[c].place.label, x * changes[c].amount, threshold);
    }
  }

  T weight(std::size_t r, Place place) const {
    const Row& row = rows_[r];
    if (row.capacity == kDense) return soft_threshold(values_of(row)[place.label], level(r));
    const index_t at = find(row, place);
    return at < 0 ? T{0} : soft_threshold(entries_of(row)[at].value, level(r));
  }

  /// Adds x times the weights of a row to the scores of their labels.
  void add_to(std::size_t r, T x, ScoreBoard<T>& board) const {
    const Row& row = rows_[r];
    const T threshold = level(r);
    if (row.capacity != kDense) {
      const Entry* entries = entries_of(row);
      for (index_t e = 0; e < row.n_weights; ++e) {
        board.add(entries[e].label, x * soft_threshold(entries[e].value, threshold));
      }
    } else if (row.n_weights > n_labels() / kScanShare) {
      add_soft(values_of(row), threshold, x, hash_.size(), board.scores());
      board.mark_all();
    } else {
      const T* values = values_of(row);
      for_each_bit(row, [&](index_t label) {
        board.add(label, x * soft_threshold(values[label], threshold));
      });
    }
  }

  /// Likewise of the labels begin .. end - 1 alone. A dense row is read there only, a sparse one as
  /// a whole.
  void add_to(std::size_t r, T x, index_t begin, index_t end, ScoreBoard<T>& board) const {
    const Row& row = rows_[r];
    const T threshold = level(r);
    if (row.capacity == kDense) {
      add_soft(values_of(row) + begin, threshold, x, static_cast<std::size_t>(end - begin),
               board.scores() + begin);
      board.mark_all();
      return;
    }
    const Entry* entries = entries_of(row);
    for (index_t e = 0; e < row.n_weights; ++e) {
      if (entries[e].label < begin || entries[e].label >= end) continue;
      board.add(entries[e].label, x * soft_threshold(entries[e].value, threshold));
    }
  }

  /// Calls f(label, w) for the weights of a row, labels in any order.
  template <class F>
  void for_each_weight(std::size_t r, F&& f) const {
    const Row& row = rows_[r];
    const T threshold = level(r);
    if (row.capacity == kDense) {
      const T* values = values_of(row);
      for_each_bit(row, [&](index_t label) { f(label, soft_threshold(values[label], threshold)); });
    } else {
      const Entry* entries = entries_of(row);
      for (index_t e = 0; e < row.n_weights; ++e) {
        f(entries[e].label, soft_threshold(entries[e].value, threshold));
      }
    }
  }

  /// Forgets all values and keeps the memory; a closed matrix keeps its support.
  void reset() {
    for (Row& row : rows_) {
      if (row.capacity == kDense) {
        std::fill_n(values_of(row), hash_.size(), T{0});
        if (!is_closed_) std::fill_n(row.block.get(), n_words(), std::uint64_t{0});
      } else if (is_closed_) {
        for (index_t e = 0; e < row.size; ++e) entries_of(row)[e].value = 0;
      } else {
        row.size = 0;
        if (row.capacity > kUnhashed) std::fill_n(slots_of(row), n_slots(row.capacity), kEmpty);
      }
      if (!is_closed_) row.n_weights = 0;
    }
  }

  /// Keeps the labels that have a weight now, sets their values to zero, lets no other label in and
  /// drops the threshold: what is added from now on is the weight.
  void close() {
    for (Row& row : rows_) {
      if (row.capacity == kDense) {
        std::fill_n(values_of(row), hash_.size(), T{0});
      } else {
        keep_first(row);
      }
    }
    is_closed_ = true;
    level_ = 0;
  }

  std::size_t n_bytes() const {
    std::size_t total = rows_.size() * sizeof(Row) + hash_.size() * sizeof(hash_[0]);
    for (const Row& row : rows_) total += row_bytes(row);
    return total;
  }

 private:
  struct Entry {
    index_t label;
    T value;
  };
  struct Row {
    std::unique_ptr<std::uint64_t[]> block;
    index_t size = 0;      ///< labels held (sparse rows)
    index_t capacity = 0;  ///< room for labels, or kDense
    index_t n_weights = 0;
  };

  static constexpr index_t kDense = -1;
  static constexpr index_t kFirstCapacity = 4;
  // Up to one cache line of entries is searched without slots.
  static constexpr index_t kUnhashed = 64 / static_cast<index_t>(sizeof(Entry));
  // A dense row is read as a whole when more than this share of its labels have weights: then the
  // vector loop takes fewer instructions than a scatter of the weights alone.
  static constexpr index_t kScanShare = 8;

  static constexpr index_t kEmpty = -1;

  static bool has_weight(T v, T level) { return std::abs(v) > level; }

  std::size_t n_words() const { return (hash_.size() + 63) / 64; }
  std::size_t dense_bytes() const { return n_words() * 8 + hash_.size() * sizeof(T); }
  static std::size_t n_slots(index_t capacity) {
    return capacity > kUnhashed ? 2 * static_cast<std::size_t>(capacity) : 0;
  }
  static std::size_t sparse_bytes(index_t capacity) {
    return static_cast<std::size_t>(capacity) * sizeof(Entry) + n_slots(capacity) * sizeof(index_t);
  }
  std::size_t row_bytes(const Row& row) const {
    return row.capacity == kDense ? dense_bytes() : sparse_bytes(row.capacity);
  }
  static std::unique_ptr<std::uint64_t[]> allocate(std::size_t n_bytes) {
    return std::unique_ptr<std::uint64_t[]>(new std::uint64_t[(n_bytes + 7) / 8]);
  }

  Row copy_of(const Row& row) const {
    Row copy;
    copy.size = row.size;
    copy.capacity = row.capacity;
    copy.n_weights = row.n_weights;
    if (row.block == nullptr) return copy;
    copy.block = allocate(row_bytes(row));
    std::memcpy(copy.block.get(), row.block.get(), row_bytes(row));
    return copy;
  }

  static Entry* entries_of(const Row& row) { return reinterpret_cast<Entry*>(row.block.get()); }
  static index_t* slots_of(const Row& row) {
    return reinterpret_cast<index_t*>(entries_of(row) + row.capacity);
  }
  T* values_of(const Row& row) const { return reinterpret_cast<T*>(row.block.get() + n_words()); }

  static index_t find(const Row& row, Place place) {
    const Entry* entries = entries_of(row);
    if (row.capacity <= kUnhashed) {
      for (index_t e = 0; e < row.size; ++e) {
        if (entries[e].label == place.label) return e;
      }
      return -1;
    }
    const index_t* slots = slots_of(row);
    const std::size_t mask = n_slots(row.capacity) - 1;
    for (std::size_t s = place.hash & mask;; s = (s + 1) & mask) {
      if (slots[s] == kEmpty || entries[slots[s]].label == place.label) return slots[s];
    }
  }

  /// The slot that names entry `at`.
  std::size_t slot_of(const Row& row, index_t at) const {
    const index_t* slots = slots_of(row);
    const std::size_t mask = n_slots(row.capacity) - 1;
    std::size_t s = place(entries_of(row)[at].label).hash & mask;
    while (slots[s] != at) s = (s + 1) & mask;
    return s;
  }

  static void enter_slot(const Row& row, std::uint32_t hash, index_t at) {
    index_t* slots = slots_of(row);
    const std::size_t mask = n_slots(row.capacity) - 1;
    std::size_t s = hash & mask;
    while (slots[s] != kEmpty) s = (s + 1) & mask;
    slots[s] = at;
  }

  static index_t append(Row& row, Place place) {
    const index_t at = row.size++;
    entries_of(row)[at] = {place.label, T{0}};
    if (row.capacity > kUnhashed) enter_slot(row, place.hash, at);
    return at;
  }

  void grow(Row& row) {
    const index_t capacity = row.capacity == 0 ? kFirstCapacity : 2 * row.capacity;
    if (sparse_bytes(capacity) >= dense_bytes()) return make_dense(row);
    move_to(row, capacity);
  }

  void move_to(Row& row, index_t capacity) {
    Row larger;
    larger.block = allocate(sparse_bytes(capacity));
    larger.size = row.size;
    larger.capacity = capacity;
    larger.n_weights = row.n_weights;
    if (row.size > 0) {
      std::memcpy(entries_of(larger), entries_of(row),
                  static_cast<std::size_t>(row.size) * sizeof(Entry));
    }
    std::fill_n(slots_of(larger), n_slots(capacity), kEmpty);
    row = std::move(larger);
    if (capacity <= kUnhashed) return;
    for (index_t e = 0; e < row.size; ++e) {
      enter_slot(row, place(entries_of(row)[e].label).hash, e);
    }
  }

  void make_dense(Row& row) {
    Row dense;
    dense.block = allocate(dense_bytes());
    dense.capacity = kDense;
    dense.n_weights = row.n_weights;
    std::fill_n(dense.block.get(), n_words(), std::uint64_t{0});
    std::fill_n(values_of(dense), hash_.size(), T{0});
    const Entry* entries = entries_of(row);
    for (index_t e = 0; e < row.size; ++e) {
      values_of(dense)[entries[e].label] = entries[e].value;
      if (e < row.n_weights) flip_bit(dense, entries[e].label);
    }
    row = std::move(dense);
  }

  void keep_first(Row& row) {
    row.size = row.n_weights;
    Entry* entries = entries_of(row);
    for (index_t e = 0; e < row.size; ++e) entries[e].value = 0;
    if (row.capacity > kUnhashed) move_to(row, row.capacity);  // slots of the kept entries alone
  }

  static void flip_bit(const Row& row, index_t label) {
    row.block[static_cast<std::size_t>(label) / 64] ^= std::uint64_t{1} << (label % 64);
  }

  template <class F>
  void for_each_bit(const Row& row, F&& f) const {
    for (std::size_t word = 0; word < n_words(); ++word) {
      for (std::uint64_t bits = row.block[word]; bits != 0; bits &= bits - 1) {
        f(static_cast<index_t>(word * 64) + std::countr_zero(bits));
      }
    }
  }

  void add_sparse(Row& row, Place place, T amount, T level) {
    index_t at = find(row, place);
    if (at < 0) {
      if (is_closed_) return;
      if (row.size == row.capacity) {
        grow(row);
        if (row.capacity == kDense) return add_dense(row, place.label, amount, level);
      }
      at = append(row, place);
    }
    Entry* entries = entries_of(row);
    const T before = entries[at].value;
    const T after = before + amount;
    entries[at].value = after;
    const bool has_now = has_weight(after, level);
    if (!is_closed_ && has_weight(before, level) != has_now) cross(row, at, has_now);
  }

  void add_dense(Row& row, index_t label, T amount, T level) {
    T& value = values_of(row)[label];
    if (is_closed_) {
      if ((row.block[static_cast<std::size_t>(label) / 64] >> (label % 64) & 1) != 0) {
        value += amount;
      }
      return;
    }
    const bool before = has_weight(value, level);
    value += amount;
    const bool after = has_weight(value, level);
    if (before == after) [[likely]] {
      return;
    }
    flip_bit(row, label);
    row.n_weights += after ? 1 : -1;
  }

  /// Entry `at` gets or loses its weight: moves it to its side of the border.
  void cross(Row& row, index_t at, bool has_weight_now) {
    if (!has_weight_now) --row.n_weights;
    swap_entries(row, at, row.n_weights);
    if (has_weight_now) ++row.n_weights;
  }

  void swap_entries(Row& row, index_t a, index_t b) {
    if (a == b) return;
    Entry* entries = entries_of(row);
    if (row.capacity > kUnhashed) {
      const std::size_t slot_a = slot_of(row, a);
      const std::size_t slot_b = slot_of(row, b);
      std::swap(slots_of(row)[slot_a], slots_of(row)[slot_b]);
    }
    std::swap(entries[a], entries[b]);
  }

  std::vector<Row> rows_;
  std::vector<std::uint32_t> hash_;
  std::size_t first_free_;
  T level_;
  bool is_closed_ = false;
};

}  // namespace sublearn
