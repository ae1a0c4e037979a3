// Sparse rows with labels from text, fed in chunks of any size: `l1,l2,... j:v j:v ...`, one row a
// line.
//
// Two dialects, told apart by TextFormat: the Extreme Classification repository (a first line `N D
// K`, labels and features from 0) and LIBSVM (no such line, features from 1, comments, and files
// whose one label per row is any number). A line may be cut anywhere between chunks; only a cut
// line is copied. Errors are std::invalid_argument, "line 17: ..."; the parser is useless after
// one.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "sublearn/core/types.hpp"
#include "sublearn/io/number.hpp"

namespace sublearn {

/// What stands before the features of a row.
enum class LabelRule {
  ids,     ///< any number of label ids, integers from 0
  number,  ///< exactly one number of any sign
  either,  ///< `number` as long as every row has exactly one label, else `ids`
};

struct TextFormat {
  bool has_header = false;    ///< first line `N D K`; a blank line is then a row without anything
  index_t first_feature = 0;  ///< index of the first feature
  LabelRule labels = LabelRule::ids;
  offset_t n_features = -1;  ///< bound on the feature ids, -1 for none; a header decides itself
  offset_t n_labels = -1;    ///< bound on the label ids, likewise
};

template <class T>
struct TextRows {
  std::vector<offset_t> indptr{0};
  std::vector<index_t> indices;  ///< from 0, increasing within a row
  std::vector<T> values;         ///< no zeros
  std::vector<offset_t> label_indptr{0};
  std::vector<index_t> label_ids;  ///< increasing within a row
  std::vector<double> targets;  ///< one number per row; empty once a row has not exactly one label
  offset_t n_features = 0;      ///< as the header or the caller says, else the largest id + 1
  offset_t n_labels = 0;
};

template <class T>
class TextParser {
 public:
  explicit TextParser(const TextFormat& format)
      : format_(format), n_features_(format.n_features), n_labels_(format.n_labels) {}

  /// Size of the whole text, if known: lets the arrays be reserved once instead of growing.
  void expect_bytes(std::size_t n_bytes) { expected_bytes_ = n_bytes; }

  void feed(const char* data, std::size_t size) {
    const char* p = data;
    const char* const end = data + size;
    if (!cut_line_.empty()) p = complete_cut_line(p, end);
    while (const char* newline = find_newline(p, end)) {
      parse_line(p, newline);
      p = newline + 1;
    }
    cut_line_.append(p, end);
    fed_bytes_ += size;
    reserve_by_density();
  }

  /// Ends the text; the last line needs no newline.
  TextRows<T> finish() {
    if (!cut_line_.empty()) {
      cut_line_ += '\n';
      parse_line(cut_line_.data(), cut_line_.data() + cut_line_.size() - 1);
      cut_line_.clear();
    }
    if (format_.has_header && n_rows() != header_rows_) {
      fail("the header says " + std::to_string(header_rows_) + " rows, the file ends after " +
           std::to_string(n_rows()));
    }
    rows_.n_features = n_features_ >= 0 ? n_features_ : seen_features_;
    rows_.n_labels = n_labels_ >= 0 ? n_labels_ : seen_labels_;
    return std::move(rows_);
  }

 private:
  static constexpr offset_t max_ids = std::numeric_limits<index_t>::max();
  static constexpr std::size_t min_sample_bytes = std::size_t{1} << 18;

  offset_t n_rows() const { return static_cast<offset_t>(rows_.indptr.size()) - 1; }

  static const char* find_newline(const char* p, const char* end) {
    if (p == end) return nullptr;
    return static_cast<const char*>(std::memchr(p, '\n', static_cast<std::size_t>(end - p)));
  }

  const char* complete_cut_line(const char* p, const char* end) {
    const char* const newline = find_newline(p, end);
    if (newline == nullptr) return p;  // still cut: feed() appends the chunk
    cut_line_.append(p, newline + 1);
    parse_line(cut_line_.data(), cut_line_.data() + cut_line_.size() - 1);
    cut_line_.clear();
    return newline + 1;
  }

  /// Once, early: as many entries per byte as so far, with a little to spare.
  void reserve_by_density() {
    if (fed_bytes_ < min_sample_bytes || expected_bytes_ <= fed_bytes_) return;
    const double scale =
        1.05 * static_cast<double>(expected_bytes_) / static_cast<double>(fed_bytes_);
    const auto grown = [scale](std::size_t n) {
      return static_cast<std::size_t>(scale * static_cast<double>(n));
    };
    rows_.indices.reserve(grown(rows_.indices.size()));
    rows_.values.reserve(grown(rows_.values.size()));
    rows_.indptr.reserve(grown(rows_.indptr.size()));
    rows_.label_indptr.reserve(grown(rows_.label_indptr.size()));
    rows_.label_ids.reserve(grown(rows_.label_ids.size()));
    expected_bytes_ = 0;
  }

  /// [p, end) without its newline. The character at `end` is readable and stops every number.
  void parse_line(const char* p, const char* end) {
    ++line_;
    if (!format_.has_header) {
      if (const void* hash = std::memchr(p, '#', static_cast<std::size_t>(end - p))) {
        end = static_cast<const char*>(hash);
      }
    }
    while (end > p && (is_blank(end[-1]) || end[-1] == '\r')) --end;
    if (format_.has_header && line_ == 1) return parse_header(p, end);
    if (p == end && (!format_.has_header || n_rows() == header_rows_)) return;
    if (format_.has_header && n_rows() == header_rows_) {
      fail("more rows than the " + std::to_string(header_rows_) + " of the header");
    }
    p = parse_labels(p, end);
    parse_features(p, end);
    rows_.indptr.push_back(static_cast<offset_t>(rows_.indices.size()));
    rows_.label_indptr.push_back(static_cast<offset_t>(rows_.label_ids.size()));
  }

  void parse_header(const char* p, const char* end) {
    offset_t counts[3];
    for (offset_t& count : counts) {
      while (p < end && is_blank(*p)) ++p;
      const char* const begin = p;
      std::uint64_t value = 0;
      p = parse_digits(p, value);
      if (p == begin || p - begin > 18 || (p != end && !is_blank(*p))) fail_header();
      count = static_cast<offset_t>(value);
    }
    if (p != end) fail_header();
    if (counts[1] > max_ids || counts[2] > max_ids) {
      fail("the header may announce up to " + std::to_string(max_ids) +
           " features and labels, got " + std::to_string(std::max(counts[1], counts[2])));
    }
    header_rows_ = counts[0];
    n_features_ = counts[1];
    n_labels_ = counts[2];
  }

  const char* parse_labels(const char* p, const char* end) {
    const std::size_t begin = rows_.label_ids.size();
    std::size_t n_labels = 0;
    bool is_sorted = true;
    bool has_id = true;
    double number = 0.0;
    bool has_next = p != end && !is_blank(*p);
    while (has_next) {
      p = parse_label(p, end, number, has_id);
      ++n_labels;
      if (has_id) {
        const auto id = static_cast<index_t>(number);
        if (rows_.label_ids.size() > begin) is_sorted &= rows_.label_ids.back() < id;
        rows_.label_ids.push_back(id);
      }
      has_next = p != end && *p == ',';
      p += has_next;
    }
    if (!is_sorted) merge_labels(begin);
    if (rows_.label_ids.size() > begin) {
      seen_labels_ = std::max<offset_t>(seen_labels_, offset_t{rows_.label_ids.back()} + 1);
    }
    note_targets(n_labels, number, has_id);
    return p;
  }

  /// One label. It is an id, or (has_id false) a number where the format allows one.
  const char* parse_label(const char* p, const char* end, double& number, bool& has_id) {
    const char* const begin = p;
    std::uint64_t id = 0;
    p = parse_digits(p, id);
    bool is_read = p > begin && p - begin <= 15;  // 15 digits are exact in a double
    if (is_read) number = static_cast<double>(id);
    if (!is_read || !ends_label(p, end)) {
      p = parse_number(begin, number);
      is_read = p != nullptr && ends_label(p, end) && std::isfinite(number);
    }
    const auto limit = static_cast<double>(n_labels_ >= 0 ? n_labels_ : max_ids);
    has_id = is_read && number >= 0 && number < limit && number == std::floor(number);
    if (!(format_.labels == LabelRule::ids ? has_id : is_read)) fail_label(begin, end);
    return p;
  }

  static bool ends_label(const char* p, const char* end) {
    return p == end || is_blank(*p) || *p == ',';
  }

  void merge_labels(std::size_t begin) {
    const auto first = rows_.label_ids.begin() + static_cast<std::ptrdiff_t>(begin);
    std::sort(first, rows_.label_ids.end());
    rows_.label_ids.erase(std::unique(first, rows_.label_ids.end()), rows_.label_ids.end());
  }

  /// Keeps the numbers of a file with one label per row; refuses a file that mixes the two kinds.
  void note_targets(std::size_t n_labels, double number, bool has_id) {
    if (format_.labels == LabelRule::ids) return;
    if (n_labels != 1) {
      if (format_.labels == LabelRule::number) {
        fail("each row must have exactly one label, got " + std::to_string(n_labels));
      }
      if (several_line_ == 0) several_line_ = line_;
    }
    if (!has_id && number_line_ == 0) number_line_ = line_;
    if (several_line_ == 0) return rows_.targets.push_back(number);
    if (number_line_ != 0) {
      fail("labels must be integers >= 0 where rows have none or several of them (line " +
           std::to_string(several_line_) + "), got another number in line " +
           std::to_string(number_line_));
    }
    std::vector<double>().swap(rows_.targets);
  }

  void parse_features(const char* p, const char* end) {
    const std::size_t begin = rows_.indices.size();
    const auto limit = static_cast<std::uint64_t>(n_features_ >= 0 ? n_features_ : max_ids);
    const auto first = static_cast<std::uint64_t>(format_.first_feature);
    offset_t previous = -1;
    bool is_sorted = true;
    bool has_zero = false;
    while (true) {
      while (p < end && is_blank(*p)) ++p;
      if (p == end) break;
      const char* const token = p;
      std::uint64_t index = 0;
      p = parse_digits(p, index);
      if (p == token || *p != ':') fail_pair(token, end);
      // An index below `first` wraps to a huge number and is refused with the others.
      if (p - token > 18 || index - first >= limit) fail_index(token, p);
      const char* const number = p + 1;
      double value = 0.0;
      p = parse_number(number, value);
      if (p == nullptr || (p != end && !is_blank(*p))) fail_value(number, end);
      const T stored = static_cast<T>(value);
      if (!std::isfinite(stored)) fail_value(number, end);
      const auto id = static_cast<offset_t>(index - first);
      is_sorted &= id > previous;
      has_zero |= stored == T{0};
      previous = id;
      rows_.indices.push_back(static_cast<index_t>(id));
      rows_.values.push_back(stored);
    }
    if (!is_sorted) sort_features(begin);
    if (rows_.indices.size() > begin) {
      seen_features_ = std::max<offset_t>(seen_features_, offset_t{rows_.indices.back()} + 1);
    }
    if (has_zero) drop_zeros(begin);
  }

  void sort_features(std::size_t begin) {
    scratch_.clear();
    for (std::size_t q = begin; q < rows_.indices.size(); ++q) {
      scratch_.emplace_back(rows_.indices[q], rows_.values[q]);
    }
    std::sort(scratch_.begin(), scratch_.end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
    for (std::size_t q = 0; q < scratch_.size(); ++q) {
      if (q > 0 && scratch_[q].first == scratch_[q - 1].first) {
        fail("feature " + std::to_string(offset_t{scratch_[q].first} + format_.first_feature) +
             " must appear once in a row, got it twice");
      }
      rows_.indices[begin + q] = scratch_[q].first;
      rows_.values[begin + q] = scratch_[q].second;
    }
  }

  void drop_zeros(std::size_t begin) {
    std::size_t kept = begin;
    for (std::size_t q = begin; q < rows_.indices.size(); ++q) {
      if (rows_.values[q] == T{0}) continue;
      rows_.indices[kept] = rows_.indices[q];
      rows_.values[kept++] = rows_.values[q];
    }
    rows_.indices.resize(kept);
    rows_.values.resize(kept);
  }

  /// Wraps around silently; callers look at the number of digits.
  static const char* parse_digits(const char* p, std::uint64_t& value) {
    for (; is_digit(*p); ++p) value = 10 * value + static_cast<std::uint64_t>(*p - '0');
    return p;
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw std::invalid_argument("line " + std::to_string(line_) + ": " + what);
  }

  [[noreturn]] void fail_header() const {
    fail("the first line must be `N D K` (rows, features, labels), three integers >= 0");
  }

  [[noreturn]] void fail_label(const char* begin, const char* end) const {
    const char* stop = begin;
    while (!ends_label(stop, end)) ++stop;
    const std::string got = quoted(begin, stop);
    if (format_.labels != LabelRule::ids) fail("a label must be a finite number, got " + got);
    const offset_t last = (n_labels_ >= 0 ? n_labels_ : max_ids) - 1;
    fail("a label must be an integer in 0.." + std::to_string(last) + ", got " + got);
  }

  [[noreturn]] void fail_pair(const char* token, const char* end) const {
    const char* stop = end_of_token(token, end);
    const char* const colon = std::find(token, stop, ':');
    if (colon != stop && *token == '-') fail_index(token, colon);
    fail("a feature must be written index:value, got " + quoted(token, stop));
  }

  [[noreturn]] void fail_index(const char* begin, const char* stop) const {
    const offset_t first = format_.first_feature;
    const offset_t last = (n_features_ >= 0 ? n_features_ : max_ids) - 1 + first;
    fail("a feature index must be in " + std::to_string(first) + ".." + std::to_string(last) +
         ", got " + quoted(begin, stop));
  }

  [[noreturn]] void fail_value(const char* begin, const char* end) const {
    fail(std::string("a value must be a finite ") + (sizeof(T) == 4 ? "float32" : "float64") +
         " number, got " + quoted(begin, end_of_token(begin, end)));
  }

  static const char* end_of_token(const char* p, const char* end) {
    while (p < end && !is_blank(*p)) ++p;
    return p;
  }

  /// For messages: short, and plain ASCII whatever the file holds.
  static std::string quoted(const char* begin, const char* end) {
    constexpr std::ptrdiff_t max_shown = 40;
    std::string out = "'";
    for (const char* p = begin; p < end && p - begin < max_shown; ++p) {
      out += *p >= ' ' && *p <= '~' ? *p : '?';
    }
    return out + (end - begin > max_shown ? "...'" : "'");
  }

  TextFormat format_;
  offset_t n_features_;  ///< bound of the caller or of the header, -1 for none
  offset_t n_labels_;
  offset_t header_rows_ = 0;
  offset_t line_ = 0;          ///< lines begun so far
  offset_t several_line_ = 0;  ///< first line without exactly one label, 0 for none
  offset_t number_line_ = 0;   ///< first line whose label is no id, 0 for none
  offset_t seen_features_ = 0;
  offset_t seen_labels_ = 0;
  std::size_t expected_bytes_ = 0;
  std::size_t fed_bytes_ = 0;
  std::string cut_line_;
  std::vector<std::pair<index_t, T>> scratch_;
  TextRows<T> rows_;
};

}  // namespace sublearn
