// Text as numbers: words get ids in the order in which they first appear, sentences become ids.
//
// The text itself is not kept, so a corpus may be longer than memory: a token takes four bytes.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "sublearn/core/types.hpp"

namespace sublearn {

namespace detail {

/// Bytes that belong to words: all but spaces, or letters, digits and what is not ASCII.
constexpr std::array<bool, 256> word_bytes(bool letters_only) {
  std::array<bool, 256> table{};
  for (int c = 0; c < 256; ++c) {
    const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                           (c >= '0' && c <= '9') || c >= 128 || c == '\'' || c == '_';
    const bool is_space = c == ' ' || (c >= 9 && c <= 13);
    table[static_cast<std::size_t>(c)] = letters_only ? is_letter : !is_space;
  }
  return table;
}
inline constexpr std::array<bool, 256> no_space = word_bytes(false);
inline constexpr std::array<bool, 256> of_words = word_bytes(true);
inline constexpr std::array<bool, 256> no_separator = [] {
  std::array<bool, 256> table{};
  for (std::size_t c = 0; c < 256; ++c) table[c] = c != 0x1f;  // as embed/corpus.py writes it
  return table;
}();

}  // namespace detail

class Corpus {
 public:
  /// What separates words in a text. Sentences end with a line in all cases.
  enum class Split { at_spaces, around_words, at_separator };

  /// Adds sentences, one in each line of UTF-8 text.
  void add_text(std::string_view text, Split split) {
    const std::array<bool, 256>& is_inside = inside(split);
    std::size_t at = 0;
    while (at < text.size()) {
      const std::size_t line_end = std::min(text.find('\n', at), text.size());
      while (at < line_end) {
        if (!is_inside[static_cast<unsigned char>(text[at])]) {
          ++at;
          continue;
        }
        const std::size_t start = at;
        while (at < line_end && is_inside[static_cast<unsigned char>(text[at])]) ++at;
        const std::string_view word = text.substr(start, at - start);
        add_word(split == Split::around_words ? without_quotes(word) : word);
      }
      end_sentence();
      ++at;
    }
  }

  /// Adds sentences whose words are given: word w is text[bounds[w] .. bounds[w + 1]), sentence s
  /// has the words from begin[s] to begin[s + 1].
  void add_words(std::string_view text, std::span<const offset_t> bounds,
                 std::span<const offset_t> begin) {
    for (std::size_t s = 0; s + 1 < begin.size(); ++s) {
      for (offset_t w = begin[s]; w < begin[s + 1]; ++w)
        add_word(text.substr(static_cast<std::size_t>(bounds[w]),
                             static_cast<std::size_t>(bounds[w + 1] - bounds[w])));
      end_sentence();
    }
  }

  std::size_t n_words() const { return words_.size(); }
  offset_t n_tokens() const { return static_cast<offset_t>(tokens_.size() - ends_.size()); }
  std::string_view word(std::size_t id) const { return *words_[id]; }
  std::span<const offset_t> counts() const { return counts_; }

  /// Ids, and -1 behind each sentence.
  std::span<const index_t> tokens() const { return tokens_; }
  /// Where each sentence ends in `tokens`: the place of its -1.
  std::span<const offset_t> ends() const { return ends_; }

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view word) const {
      return std::hash<std::string_view>{}(word);
    }
  };

  void add_word(std::string_view word) {
    if (word.empty()) return;
    auto found = ids_.find(word);
    if (found == ids_.end()) {
      if (words_.size() >= static_cast<std::size_t>(std::numeric_limits<index_t>::max()))
        throw std::length_error("a corpus has at most 2^31 - 1 words");
      found = ids_.emplace(std::string(word), static_cast<index_t>(words_.size())).first;
      words_.push_back(&found->first);  // nodes of the table do not move
      counts_.push_back(0);
    }
    ++counts_[static_cast<std::size_t>(found->second)];
    tokens_.push_back(found->second);
  }

  void end_sentence() {
    const offset_t start = ends_.empty() ? 0 : ends_.back() + 1;
    if (static_cast<offset_t>(tokens_.size()) == start) return;  // an empty line
    ends_.push_back(static_cast<offset_t>(tokens_.size()));
    tokens_.push_back(-1);
  }

  static const std::array<bool, 256>& inside(Split split) {
    if (split == Split::around_words) return detail::of_words;
    return split == Split::at_spaces ? detail::no_space : detail::no_separator;
  }

  /// An apostrophe belongs to a word inside it only.
  static std::string_view without_quotes(std::string_view word) {
    while (!word.empty() && word.front() == '\'') word.remove_prefix(1);
    while (!word.empty() && word.back() == '\'') word.remove_suffix(1);
    return word;
  }

  std::unordered_map<std::string, index_t, Hash, std::equal_to<>> ids_;
  std::vector<const std::string*> words_;
  std::vector<offset_t> counts_;
  std::vector<index_t> tokens_;
  std::vector<offset_t> ends_;
};

}  // namespace sublearn
