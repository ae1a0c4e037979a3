// The UAI parser: no text, cut or changed anywhere, makes it read outside of it.
#include "sublearn/io/uai_parser.hpp"

#include <string>
#include <vector>

#include "check.hpp"
#include "sublearn/core/rng.hpp"

using namespace sublearn;

namespace {

const std::string kText =
    "BAYES\n2\n2 3\n3\n0\n1 0\n2 0 1\n"
    "1 0.5\n2 0.25 0.75\n6\n 1 0 2e-3 .5 7. 1E1";

/// In memory of its own that ends with the white space the parser asks for.
bool parses(const std::string& text) {
  std::vector<char> copy(text.begin(), text.end());
  copy.push_back('\n');
  try {
    UaiParser({copy.data(), copy.size()}, UaiTables::linear).parse();
    return true;
  } catch (const std::invalid_argument&) {
    return false;
  }
}

}  // namespace

TEST(a_uai_file_is_read_into_scores) {
  const UaiModel model = UaiParser(kText + "\n", UaiTables::linear).parse();
  CHECK(model.is_bayes);
  CHECK(model.domain == (std::vector<index_t>{2, 3}));
  CHECK(model.scope == (std::vector<index_t>{0, 0, 1}));
  CHECK(model.scope_begin == (std::vector<offset_t>{0, 0, 1, 3}));
  CHECK(model.table_begin == (std::vector<offset_t>{0, 1, 3, 9}));
  CHECK(model.table_line == (std::vector<offset_t>{8, 9, 10}));
  CHECK(model.scores[0] == std::log(0.5));
  CHECK(std::isinf(model.scores[4]) && model.scores[4] < 0);
  CHECK(model.scores[8] == std::log(10.0));
}

TEST(a_uai_file_cut_anywhere_stays_inside_its_memory) {
  for (std::size_t end = 0; end + 5 < kText.size(); ++end) CHECK(!parses(kText.substr(0, end)));
}

TEST(changed_bytes_of_a_uai_file_stay_inside_its_memory) {
  Rng rng(1);
  int n_read = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string text = kText;
    for (int change = 0; change < 3; ++change) {
      text[rng.below(text.size())] = static_cast<char>(rng.below(256));
    }
    n_read += parses(text);
  }
  CHECK(n_read < 20000);
}
