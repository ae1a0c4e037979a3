// The text parser: a chunk may end anywhere, and no text makes it read outside its chunk.
#include "sublearn/io/text_parser.hpp"

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "check.hpp"
#include "sublearn/core/rng.hpp"

using namespace sublearn;

namespace {

const TextFormat kRepository{.has_header = true};
const TextFormat kLibsvm{.first_feature = 1, .labels = LabelRule::either};

const std::string kRepositoryText =
    "5 100 20\n"
    "0,3,7 0:1.5 12:-2e-3 99:0.25\r\n"
    " 5:1\n"
    "\n"
    "19\n"
    "4,2,4 7:0 6:3.25e2 1:123456789012345678901234567890";

/// Feeds chunks that end exactly where their memory ends, so that a sanitizer sees a step beyond.
template <class T>
TextRows<T> parse(const TextFormat& format, const std::string& text, std::size_t chunk) {
  TextParser<T> parser(format);
  for (std::size_t p = 0; p < text.size(); p += chunk) {
    const std::size_t size = std::min(chunk, text.size() - p);
    const auto copy = std::make_unique<char[]>(size);
    std::memcpy(copy.get(), text.data() + p, size);
    parser.feed(copy.get(), size);
  }
  return parser.finish();
}

template <class T>
bool same_rows(const TextRows<T>& a, const TextRows<T>& b) {
  return a.indptr == b.indptr && a.indices == b.indices && a.values == b.values &&
         a.label_indptr == b.label_indptr && a.label_ids == b.label_ids && a.targets == b.targets &&
         a.n_features == b.n_features && a.n_labels == b.n_labels;
}

std::string message_of(const TextFormat& format, const std::string& text, std::size_t chunk) {
  try {
    parse<float>(format, text, chunk);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST(text_parser_reads_the_repository_dialect) {
  const auto rows = parse<double>(kRepository, kRepositoryText, 1000);
  CHECK(rows.indptr == std::vector<offset_t>({0, 3, 4, 4, 4, 6}));
  CHECK(rows.indices == std::vector<index_t>({0, 12, 99, 5, 1, 6}));
  CHECK(rows.values ==
        std::vector<double>({1.5, -2e-3, 0.25, 1, 123456789012345678901234567890., 325}));
  CHECK(rows.label_indptr == std::vector<offset_t>({0, 3, 3, 3, 4, 6}));
  CHECK(rows.label_ids == std::vector<index_t>({0, 3, 7, 19, 2, 4}));
  CHECK(rows.n_features == 100 && rows.n_labels == 20);
}

TEST(text_parser_reads_the_libsvm_dialect) {
  const auto rows = parse<float>(kLibsvm, "+1 1:2 3:4 # a comment\n\n-0.5\n# nothing\n2 2:1\n", 99);
  CHECK(rows.indptr == std::vector<offset_t>({0, 2, 2, 3}));
  CHECK(rows.indices == std::vector<index_t>({0, 2, 1}));
  CHECK(rows.targets == std::vector<double>({1, -0.5, 2}));
  CHECK(rows.n_features == 3);
}

TEST(text_parser_does_not_care_where_chunks_end) {
  const auto whole = parse<float>(kRepository, kRepositoryText, kRepositoryText.size());
  for (std::size_t chunk = 1; chunk < kRepositoryText.size(); ++chunk) {
    CHECK(same_rows(whole, parse<float>(kRepository, kRepositoryText, chunk)));
  }
}

TEST(text_parser_names_the_line_of_a_mistake_wherever_chunks_end) {
  const std::vector<std::string> wrong = {
      "3 4\n",
      "1 2 3 4\n",
      "a b c\n",
      "-1 2 3\n",
      "1 9999999999 3\n",
      "1111111111111111111111 2 3\n",
      "2 4 4\n0 0:1\n",
      "1 4 4\n0 0:1\n0 1:1\n",
      "1 4 4\n4 0:1\n",
      "1 4 4\n-1 0:1\n",
      "1 4 4\n0, 0:1\n",
      "1 4 4\n,0 0:1\n",
      "1 4 4\n0.5 0:1\n",
      "1 4 4\n0 4:1\n",
      "1 4 4\n0 -1:1\n",
      "1 4 4\n0 1:\n",
      "1 4 4\n0 1\n",
      "1 4 4\n0 :1\n",
      "1 4 4\n0 1:nan\n",
      "1 4 4\n0 1:inf\n",
      "1 4 4\n0 1:1e39\n",
      "1 4 4\n0 1:1e\n",
      "1 4 4\n0 1:1e+\n",
      "1 4 4\n0 1:--1\n",
      "1 4 4\n0 1:.\n",
      "1 4 4\n0 1:1 1:2\n",
      "1 4 4\n0 1:1x\n",
      "1 4 4\n0 99999999999999999999999999:1\n",
  };
  for (const std::string& text : wrong) {
    const std::string message = message_of(kRepository, text, text.size() + 1);
    CHECK(message.rfind("line ", 0) == 0);
    for (std::size_t chunk = 1; chunk <= text.size(); ++chunk) {
      CHECK(message_of(kRepository, text, chunk) == message);
    }
  }
}

TEST(text_parser_survives_damaged_text) {
  const std::string alphabet = "0123456789:,.-+eE# \t\r\n\0x";
  Rng rng(1);
  int n_refused = 0;
  for (int trial = 0; trial < 3000; ++trial) {
    std::string text = kRepositoryText;
    for (int edit = 0; edit < 3; ++edit) {
      const std::size_t at = rng.below(static_cast<std::uint32_t>(text.size()));
      const char c = alphabet[rng.below(static_cast<std::uint32_t>(alphabet.size()))];
      if (edit == 0) text.erase(at, 1 + rng.below(4));
      text.insert(std::min(at, text.size()), 1, c);
    }
    const std::size_t chunk = 1 + rng.below(40);
    for (const TextFormat& format : {kRepository, kLibsvm}) {
      n_refused += !message_of(format, text, chunk).empty();
    }
  }
  CHECK(n_refused > 1000);
}
