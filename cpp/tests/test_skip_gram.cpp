// Text to counts, and one pass of skip-gram: what sanitizers should look at.
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "check.hpp"
#include "sublearn/core/alias_table.hpp"
#include "sublearn/core/row_kernels.hpp"
#include "sublearn/io/cooccurrences.hpp"
#include "sublearn/io/corpus.hpp"
#include "sublearn/objectives/log_partition.hpp"
#include "sublearn/solvers/embed/skip_gram.hpp"

using namespace sublearn;

namespace {

Corpus small_corpus() {
  Corpus corpus;
  for (int i = 0; i < 30; ++i)
    corpus.add_text("a b c\n\nb a 'd' e\nlonely", Corpus::Split::around_words);
  return corpus;
}

PairCounts counts_of(const Corpus& corpus, int n_threads) {
  std::vector<index_t> id_of(corpus.n_words());
  for (std::size_t i = 0; i < id_of.size(); ++i) id_of[i] = static_cast<index_t>(i);
  const std::vector<float> keep(id_of.size(), 1.0F);
  return PairCounter(id_of, keep, {2, 7}).count(corpus, n_threads, nullptr);
}

struct Arrays {
  std::vector<float> words, contexts, word_sums, context_sums, noise;
};

Arrays start(std::size_t n) {
  Arrays arrays{std::vector<float>(n * 16, 0.1F), std::vector<float>(n * 16, 0.0F),
                std::vector<float>(n, 1.0F), std::vector<float>(n, 1.0F),
                std::vector<float>(n, 1.0F / static_cast<float>(n))};
  for (std::size_t i = 0; i < arrays.words.size(); ++i)
    arrays.words[i] += 0.01F * static_cast<float>(i % 7);
  return arrays;
}

SkipGramReport pass(Arrays& arrays, const PairCounts& pairs, SkipGramSettings settings,
                    int n_threads, const ContextBlocks* blocks = nullptr) {
  const auto n = static_cast<offset_t>(arrays.noise.size());
  Monitor monitor;
  const SkipGramModel model{arrays.words.data(),
                            arrays.contexts.data(),
                            arrays.word_sums.data(),
                            arrays.context_sums.data(),
                            n,
                            16,
                            15};
  const SkipGramData data{pairs.begin, pairs.ids, pairs.counts, arrays.noise};
  return SkipGramPass(model, data, settings, nullptr, blocks, n_threads, monitor).run();
}

}  // namespace

TEST(skip_gram_a_corpus_counts_words_and_leaves_empty_lines_out) {
  const Corpus corpus = small_corpus();
  CHECK(corpus.n_words() == 6);
  CHECK(corpus.n_tokens() == 30 * 8);
  CHECK(corpus.word(3) == "d");
  CHECK(corpus.ends().size() == 30 * 3);
}

TEST(skip_gram_pairs_are_symmetric_and_their_rows_sorted) {
  const PairCounts pairs = counts_of(small_corpus(), 2);
  CHECK(pairs.begin.back() == static_cast<offset_t>(pairs.ids.size()));
  CHECK(pairs.begin[6] == pairs.begin[5]);               // the lonely word
  CHECK(pairs.ids[0] == 1 && pairs.counts[0] == 60.0F);  // a and b, neighbours twice
  CHECK(pairs.ids[1] == 2 && pairs.counts[1] == 15.0F);  // a and c, two apart
}

TEST(row_kernels_exponentials_are_those_of_the_standard_library) {
  std::vector<float> x;
  for (int i = -1000; i <= 900; ++i) x.push_back(0.09F * static_cast<float>(i));
  std::vector<float> out(x.size());
  exponentials(x.data(), static_cast<offset_t>(x.size()), 0.5F, out.data());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double exact = std::exp(static_cast<double>(x[i] - 0.5F));
    CHECK(std::abs(out[i] - exact) <= 4e-7 * exact + 2e-38);
  }
}

TEST(alias_table_draws_by_its_probabilities) {
  const std::vector<float> share{0.5F, 0.0F, 0.3F, 0.2F};
  const AliasTable table{std::span<const float>(share)};
  Rng rng(3);
  std::vector<int> drawn(4, 0);
  for (int i = 0; i < 100000; ++i) ++drawn[table.draw(rng)];
  for (std::size_t i = 0; i < 4; ++i)
    CHECK(std::abs(drawn[i] / 100000.0 - static_cast<double>(share[i])) < 0.01);
}

TEST(skip_gram_a_pass_is_the_same_on_any_number_of_threads) {
  const PairCounts pairs = counts_of(small_corpus(), 1);
  for (const bool is_exact : {false, true}) {
    SkipGramSettings settings;
    settings.is_exact = is_exact;
    settings.n_sampled = 5;
    settings.visits_at_once = 4;
    settings.pairs_of_visit = 2;
    Arrays one = start(6), three = start(6);
    settings.is_contrastive = true;
    pass(one, pairs, settings, 1);
    pass(three, pairs, settings, 3);
    settings.is_contrastive = false;
    const double first = pass(one, pairs, settings, 1).objective;
    CHECK(first == pass(three, pairs, settings, 3).objective);
    CHECK(one.words == three.words && one.contexts == three.contexts);
    CHECK(pass(one, pairs, settings, 1).objective < first);
  }
}

TEST(skip_gram_a_pass_with_blocks_is_the_same_on_any_number_of_threads) {
  const PairCounts pairs = counts_of(small_corpus(), 1);
  SkipGramSettings settings;
  settings.n_found = 4;
  settings.n_probe = 2;
  settings.visits_at_once = 4;
  Arrays one = start(6), three = start(6);
  const std::vector<float> rows(6 * 9, 0.1F), centres(3 * 9, 0.3F);
  ContextBlocks blocks;
  for (const offset_t first : {offset_t{0}, offset_t{7}})
    blocks.push_back({first, 8, ClusteredRows(0, 9, centres, {0, 1, 2, 0, 1, 2}, rows.data(), 9)});
  for (const bool is_of_words : {true, false}) {
    settings.moves_words = is_of_words;
    settings.moves_contexts = !is_of_words;
    const SkipGramReport report = pass(one, pairs, settings, 1, &blocks);
    pass(three, pairs, settings, 3, &blocks);
    CHECK(report.is_finite && report.lower_bound <= report.objective);
  }
  CHECK(one.words == three.words && one.contexts == three.contexts);
}
