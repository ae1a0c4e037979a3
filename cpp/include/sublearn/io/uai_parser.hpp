// Reads the text of a factor graph in the format of the UAI inference competitions.
//
//   MARKOV | BAYES          both mean a product of tables; a BAYES table is P(last | others)
//   n  K_1 ... K_n          variables and their numbers of labels
//   m  (k  v_1 ... v_k)*    factors and the variables of each
//   (c  t_1 ... t_c)*       a table for each factor, last variable fastest
//
// White space of any kind separates words. Values are probabilities up to a factor (logarithms on
// request); they become natural logarithms, zeros -inf. Errors are std::invalid_argument, "line 17,
// column 3: ...". The whole text is in memory: the largest of the competitions has 20 MB.
#pragma once

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "sublearn/core/types.hpp"
#include "sublearn/io/number.hpp"

namespace sublearn {

/// What the numbers of the tables are.
enum class UaiTables { linear, log, log10 };

struct UaiModel {
  bool is_bayes = false;
  std::vector<index_t> domain{};
  std::vector<offset_t> scope_begin{0};
  std::vector<index_t> scope{};  ///< variables of all factors; may repeat within a factor
  std::vector<offset_t> table_begin{0};
  std::vector<double> scores{};        ///< natural logarithms of all tables, -inf for zeros
  std::vector<offset_t> table_line{};  ///< where each table begins, for messages
};

/// Words of a text with their places. The text must end with a character that is white space.
class WordReader {
 public:
  explicit WordReader(std::string_view text) : begin_(text.data()), end_(begin_ + text.size()) {
    p_ = begin_;
    while (end_ > begin_ && is_space(end_[-1])) --end_;
  }

  static bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

  bool at_end() {
    while (p_ < end_ && is_space(*p_)) ++p_;
    return p_ >= end_;
  }

  /// Bytes that are left: no count of things in the text can be larger.
  offset_t n_left() const { return end_ - p_; }

  /// The next word; `what` names it if there is none.
  std::string_view next(const char* what) {
    if (at_end()) fail_at(end_, std::string("the file ends where ") + what + " should be");
    word_ = p_;
    while (p_ < end_ && !is_space(*p_)) ++p_;
    return {word_, static_cast<std::size_t>(p_ - word_)};
  }

  /// An integer within low..high.
  offset_t integer(const char* what, offset_t low, offset_t high) {
    const std::string_view word = next(what);
    offset_t value = 0;
    const bool is_read = word.size() <= 18 && std::all_of(word.begin(), word.end(), is_digit);
    for (const char c : word) value = is_read ? 10 * value + (c - '0') : 0;
    if (!is_read || value < low || value > high) {
      fail(std::string(what) + " must be an integer in " + std::to_string(low) + ".." +
           std::to_string(high) + ", got " + quoted(word));
    }
    return value;
  }

  /// A number, possibly infinite: what is too large for a double, and in words -inf.
  double number(const char* what) {
    const std::string_view word = next(what);
    double value = 0.0;
    const char* const stop = parse_number(word.data(), value);
    if (stop == p_) return value;
    if (is_minus_infinity(word)) return -std::numeric_limits<double>::infinity();
    fail(std::string(what) + " must be a number, got " + quoted(word));
  }

  /// Refuses the last word.
  [[noreturn]] void fail(const std::string& what) const { fail_at(word_, what); }

  std::string last_word() const { return quoted({word_, static_cast<std::size_t>(p_ - word_)}); }

  /// Line of the last word. Words are asked for in order: each byte is looked at once.
  offset_t line() {
    line_ += std::count(counted_ == nullptr ? begin_ : counted_, word_, '\n');
    counted_ = word_;
    return line_;
  }

 private:
  [[noreturn]] void fail_at(const char* place, const std::string& what) const {
    const offset_t line = 1 + std::count(begin_, place, '\n');
    const char* start = place;
    while (start > begin_ && start[-1] != '\n') --start;
    throw std::invalid_argument("line " + std::to_string(line) + ", column " +
                                std::to_string(place - start + 1) + ": " + what);
  }

  static bool is_minus_infinity(std::string_view word) {
    std::string lower;
    for (const char c : word.substr(0, 10)) {
      lower += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
    return lower == "-inf" || lower == "-infinity";
  }

  /// For messages: short, and plain ASCII whatever the file holds.
  static std::string quoted(std::string_view word) {
    constexpr std::size_t max_shown = 40;
    std::string out = "'";
    for (const char c : word.substr(0, max_shown)) out += c >= ' ' && c <= '~' ? c : '?';
    return out + (word.size() > max_shown ? "...'" : "'");
  }

  const char* begin_;
  const char* end_;
  const char* p_ = nullptr;
  const char* word_ = nullptr;     ///< start of the last word
  const char* counted_ = nullptr;  ///< lines are counted up to here
  offset_t line_ = 1;
};

class UaiParser {
 public:
  UaiParser(std::string_view text, UaiTables tables) : words_(text), tables_(tables) {}

  UaiModel parse() {
    parse_header();
    parse_scopes();
    for (std::size_t f = 0; f + 1 < model_.scope_begin.size(); ++f) parse_table(f);
    if (!words_.at_end()) {
      words_.next("nothing");
      words_.fail("the file must end after the last table, got " + words_.last_word());
    }
    return std::move(model_);
  }

 private:
  static constexpr offset_t max_ids = std::numeric_limits<index_t>::max();
  static constexpr offset_t free_labels = 1'000'000;

  void parse_header() {
    const std::string_view kind = words_.next("MARKOV or BAYES");
    if (kind != "MARKOV" && kind != "BAYES") {
      words_.fail("the first word must be MARKOV or BAYES, got " + words_.last_word());
    }
    model_.is_bayes = kind == "BAYES";
    const offset_t n = words_.integer("the number of variables", 1, max_ids);
    check_count(n, "variables");
    model_.domain.reserve(static_cast<std::size_t>(n));
    offset_t n_labels = 0;
    for (offset_t i = 0; i < n; ++i) {
      const auto size = words_.integer("a variable's number of labels", 1, max_ids);
      model_.domain.push_back(static_cast<index_t>(size));
      n_labels += size;
      // A table has an entry for each label of its variable. Only variables without a factor can
      // have more labels than the file has bytes, and memory is not worth risking for them.
      if (n_labels > words_.n_left() + free_labels) {
        words_.fail("the file is too short for tables of variables with " +
                    std::to_string(n_labels) + " labels");
      }
    }
  }

  void parse_scopes() {
    const offset_t m = words_.integer("the number of factors", 0, max_ids);
    check_count(m, "factors");
    const auto last = static_cast<offset_t>(model_.domain.size()) - 1;
    for (offset_t f = 0; f < m; ++f) {
      const offset_t arity = words_.integer("a factor's number of variables", 0, max_ids);
      check_count(arity, "variables of a factor");
      for (offset_t p = 0; p < arity; ++p) {
        model_.scope.push_back(
            static_cast<index_t>(words_.integer("a variable of a factor", 0, last)));
      }
      model_.scope_begin.push_back(static_cast<offset_t>(model_.scope.size()));
    }
  }

  /// A word takes two bytes: a larger count is wrong, and would only cost memory.
  void check_count(offset_t count, const char* of) {
    if (count > (words_.n_left() + 1) / 2) {
      words_.fail("the file is too short for " + std::to_string(count) + " " + of);
    }
  }

  void parse_table(std::size_t f) {
    const offset_t expected = n_cells(f);
    const offset_t found = words_.integer("a table's number of entries", 0, most_cells);
    if (found != expected) {
      words_.fail("the table of factor " + std::to_string(f) + " must have " +
                  (expected > most_cells ? "more than 10^18" : std::to_string(expected)) +
                  " entries, the product of its variables' numbers of labels, got " +
                  std::to_string(found));
    }
    check_count(found, "entries of a table");
    model_.table_line.push_back(words_.line());
    bool has_allowed = false;
    for (offset_t c = 0; c < found; ++c) {
      const double score = parse_score();
      has_allowed |= score > -std::numeric_limits<double>::infinity();
      model_.scores.push_back(score);
    }
    if (!has_allowed) {
      words_.fail("the table of factor " + std::to_string(f) +
                  " is zero everywhere: the model gives every assignment probability zero");
    }
    model_.table_begin.push_back(static_cast<offset_t>(model_.scores.size()));
  }

  static constexpr offset_t most_cells = 999'999'999'999'999'999;

  offset_t n_cells(std::size_t f) const {
    offset_t n = 1;
    for (offset_t p = model_.scope_begin[f]; p < model_.scope_begin[f + 1]; ++p) {
      const index_t size = model_.domain[at(model_.scope[at(p)])];
      n = n > most_cells / size ? most_cells + 1 : n * size;
    }
    return n;
  }

  double parse_score() {
    constexpr double ln10 = 2.302585092994045684;
    const double value = words_.number("a table entry");
    if (tables_ == UaiTables::linear) {
      if (value < 0.0) words_.fail("a table entry must not be negative, got " + words_.last_word());
      check_not_infinite(value);
      return std::log(value);
    }
    check_not_infinite(value);
    return tables_ == UaiTables::log10 ? ln10 * value : value;
  }

  void check_not_infinite(double value) {
    if (value == std::numeric_limits<double>::infinity()) {
      words_.fail("a table entry must fit a float64 number, got " + words_.last_word());
    }
  }

  WordReader words_;
  UaiTables tables_;
  UaiModel model_;
};

/// All numbers of a text of integers (evidence, assignments), with the line of each.
struct PlacedIntegers {
  std::vector<offset_t> values{};
  std::vector<offset_t> lines{};
};

/// `keyword`, if not empty, may stand first.
inline PlacedIntegers parse_integers(std::string_view text, std::span<const std::string> keywords) {
  WordReader words(text);
  PlacedIntegers out;
  bool is_first = true;
  while (!words.at_end()) {
    WordReader ahead = words;
    const std::string_view word = ahead.next("a number");
    if (is_first && std::find(keywords.begin(), keywords.end(), word) != keywords.end()) {
      words = ahead;
    } else {
      out.values.push_back(words.integer("a number", 0, std::numeric_limits<index_t>::max()));
      out.lines.push_back(words.line());
    }
    is_first = false;
  }
  return out;
}

/// Tables as text, a number of entries and the entries of each row of `values`.
inline std::string format_tables(std::span<const double> values, std::size_t n_cells) {
  std::string out;
  for (std::size_t begin = 0; begin < values.size(); begin += n_cells) {
    append_integer(out, static_cast<std::int64_t>(n_cells));
    char separator = '\n';
    for (const double value : values.subspan(begin, n_cells)) {
      out += separator;
      append_number(out, value);
      separator = ' ';
    }
    out += "\n\n";
  }
  return out;
}

}  // namespace sublearn
