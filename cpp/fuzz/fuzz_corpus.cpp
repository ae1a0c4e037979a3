// Text as word ids and their counts in windows: any bytes, any bounds of words, any window.
#include <cmath>
#include <numeric>

#include "input.hpp"
#include "sublearn/core/compressed.hpp"
#include "sublearn/io/cooccurrences.hpp"
#include "sublearn/io/corpus.hpp"

namespace {

using namespace sublearn;

void check(const Corpus& corpus) {
  const auto counts = corpus.counts();
  fuzz::require(counts.size() == corpus.n_words());
  fuzz::require(std::accumulate(counts.begin(), counts.end(), offset_t{0}) == corpus.n_tokens());
  for (const offset_t end : corpus.ends())
    fuzz::require(corpus.tokens()[static_cast<std::size_t>(end)] == -1);
  for (std::size_t w = 0; w < corpus.n_words(); ++w) fuzz::require(!corpus.word(w).empty());
}

void count(const Corpus& corpus, std::uint8_t choice) {
  std::vector<index_t> ids(corpus.n_words());
  std::iota(ids.begin(), ids.end(), 0);
  if ((choice & 1) != 0 && !ids.empty()) ids[0] = -1;  // a word that is not counted
  const std::vector<float> keep(ids.size(), (choice & 2) != 0 ? 0.5F : 1.0F);
  const WindowSettings settings{.window = 1 + choice / 16, .seed = choice};
  const PairCounts pairs = PairCounter(ids, keep, settings).count(corpus, 1, nullptr);
  const auto n = static_cast<offset_t>(ids.size());
  const std::span<const offset_t> begin(pairs.begin);
  const std::span<const index_t> columns(pairs.ids);
  fuzz::require(is_compressed(begin, columns, n, n) && has_increasing_ids(begin, columns));
  for (const float number : pairs.counts) fuzz::require(std::isfinite(number) && number > 0.0F);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  const auto choice = input.take<std::uint8_t>();
  const fuzz::Exact text(input.rest());
  Corpus corpus;
  corpus.add_text(text.text(), Corpus::Split(choice % 3));
  corpus.add_text(text.text().substr(0, text.text().size() / 2), Corpus::Split::at_spaces);
  check(corpus);
  count(corpus, choice);
  return 0;
}
