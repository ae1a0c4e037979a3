// Python face of skip-gram: text to counts of pairs, passes over them, the exact objective.
#include <nanobind/stl/string.h>

#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "refuse.hpp"
#include "sublearn/io/cooccurrences.hpp"
#include "sublearn/io/corpus.hpp"
#include "sublearn/objectives/log_partition.hpp"
#include "sublearn/solvers/embed/skip_gram.hpp"

namespace sublearn::bindings {
namespace {

using Bytes = Vector<std::uint8_t>;

std::string_view text_of(const Bytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void add_text(Corpus& corpus, const Bytes& text, const std::string& split) {
  using Split = Corpus::Split;
  Split at = Split::at_spaces;
  if (split == "words") {
    at = Split::around_words;
  } else if (split == "separators") {
    at = Split::at_separator;
  } else if (split != "spaces") {
    refuse("split", "be spaces, words or separators", split);
  }
  nb::gil_scoped_release unlocked;
  corpus.add_text(text_of(text), at);
}

void add_words(Corpus& corpus, const Bytes& text, const Vector<offset_t>& bounds,
               const Vector<offset_t>& begin) {
  check_offsets("bounds", as_span<offset_t>(bounds), text.size());
  check_offsets("begin", as_span<offset_t>(begin), bounds.size() - 1);
  nb::gil_scoped_release unlocked;
  corpus.add_words(text_of(text), as_span<offset_t>(bounds), as_span<offset_t>(begin));
}

/// UTF-8 bytes of all words, where each begins, and how often each was seen.
std::tuple<NumpyVector<std::uint8_t>, NumpyVector<offset_t>, NumpyVector<offset_t>> words_of(
    const Corpus& corpus) {
  std::vector<std::uint8_t> text;
  std::vector<offset_t> bounds{0};
  for (std::size_t id = 0; id < corpus.n_words(); ++id) {
    const std::string_view word = corpus.word(id);
    text.insert(text.end(), word.begin(), word.end());
    bounds.push_back(static_cast<offset_t>(text.size()));
  }
  std::vector<offset_t> counts(corpus.counts().begin(), corpus.counts().end());
  return {to_numpy(std::move(text)), to_numpy(std::move(bounds)), to_numpy(std::move(counts))};
}

std::tuple<NumpyVector<offset_t>, NumpyVector<index_t>, NumpyVector<float>> count_pairs(
    const Corpus& corpus, const Vector<index_t>& id_of, const Vector<float>& keep, int window,
    std::uint64_t seed, int n_threads, const Monitor& monitor) {
  if (id_of.size() != corpus.n_words())
    refuse("id_of", "have " + std::to_string(corpus.n_words()) + " entries",
           std::to_string(id_of.size()));
  for (const index_t id : as_span<index_t>(id_of)) {
    if (id < -1 || id >= static_cast<offset_t>(keep.size()))
      refuse("id_of", "be -1 or below " + std::to_string(keep.size()), std::to_string(id));
  }
  if (window < 1) refuse("window", "be positive", std::to_string(window));
  PairCounts found;
  {
    nb::gil_scoped_release unlocked;
    found = PairCounter(as_span<index_t>(id_of), as_span<float>(keep), {window, seed})
                .count(corpus, n_threads, &monitor);
  }
  return {to_numpy(std::move(found.begin)), to_numpy(std::move(found.ids)),
          to_numpy(std::move(found.counts))};
}

/// Arrays of a fit, checked and kept alive. Vectors and sums are written to.
class Problem {
 public:
  using Sums = std::tuple<MutableVector<float>, MutableVector<float>>;  ///< of words and contexts
  using Pairs = Arrays<offset_t, index_t, float>;                       ///< begin, ids, counts

  Problem(MutableMatrix<float> words, MutableMatrix<float> contexts, Sums sums, Pairs pairs,
          Vector<float> noise, offset_t bias)
      : words_(words), contexts_(contexts), sums_(sums), pairs_(pairs), noise_(noise), bias_(bias) {
    const auto& [word_sums, context_sums] = sums_;
    const auto& [begin, ids, counts] = pairs_;
    const std::size_t n = words.shape(0);
    if (n == 0 || words.shape(1) == 0 || words.shape(1) % kRowFloats != 0)
      refuse("words", "have rows of a multiple of 16 numbers", std::to_string(words.shape(1)));
    if (contexts.shape(0) != n || contexts.shape(1) != words.shape(1) || word_sums.size() != n ||
        context_sums.size() != n || noise.size() != n || begin.size() != n + 1)
      throw std::invalid_argument("all arrays must have a row for each word");
    if (bias < 0 || bias >= static_cast<offset_t>(words.shape(1)))
      refuse("bias", "be a column", std::to_string(bias));
    check_offsets("begin", as_span<offset_t>(begin), ids.size());
    if (counts.size() != ids.size()) throw std::invalid_argument("counts must be as long as ids");
    check_ids("ids", as_span<index_t>(ids), static_cast<offset_t>(n));
  }

  /// Lets passes search: the arrays of an index over the contexts, as bind_mips.cpp takes them.
  void set_index(const Matrix<float>& centres, const Vector<offset_t>& begin, Vector<index_t> ids,
                 Matrix<float> rows) {
    if (centres.shape(1) != words_.shape(1) || rows.shape(1) != words_.shape(1) ||
        rows.shape(0) != words_.shape(0) || ids.size() != words_.shape(0))
      throw std::invalid_argument("the index must hold the contexts");
    if (begin.size() != centres.shape(0) + 1) throw std::invalid_argument("begin and centres");
    check_offsets("begin", as_span<offset_t>(begin), ids.size());
    std::vector<bool> is_taken(ids.size(), false);
    for (const index_t id : as_span<index_t>(ids)) {
      if (id < 0 || id >= static_cast<offset_t>(ids.size()) || is_taken[id])
        refuse("ids", "differ and be below " + std::to_string(ids.size()), std::to_string(id));
      is_taken[id] = true;
    }
    index_ids_ = ids;
    index_rows_ = rows;
    std::vector<float> copy(centres.data(), centres.data() + centres.size());
    index_ = std::make_unique<MipsIndex<float>>(
        static_cast<offset_t>(words_.shape(1)), std::move(copy), as_span<offset_t>(begin),
        as_span<index_t>(ids), rows.data(), nullptr, static_cast<offset_t>(ids.size()));
  }

  void clear_blocks() { blocks_.clear(); }

  /// Lets passes search in blocks of coordinates. `rows` have those of the contexts from `first`
  /// on, and their share of the bias; each is in the cluster of one of the `centres`.
  void add_block(offset_t first, const Matrix<float>& rows, const Matrix<float>& centres,
                 const Vector<index_t>& cluster_of) {
    const auto dim = static_cast<offset_t>(rows.shape(1));
    if (first < 0 || dim < 2 || first + dim - 1 > bias_)
      throw std::invalid_argument("the block must lie within the dimensions");
    if (rows.shape(0) != words_.shape(0) || cluster_of.size() != rows.shape(0) ||
        centres.shape(1) != rows.shape(1) || centres.shape(0) < 1)
      throw std::invalid_argument("the block must hold the contexts");
    check_ids("cluster_of", as_span<index_t>(cluster_of), static_cast<offset_t>(centres.shape(0)));
    std::vector<index_t> clusters(cluster_of.data(), cluster_of.data() + cluster_of.size());
    blocks_.push_back({first, dim - 1,
                       ClusteredRows(0, dim, {centres.data(), centres.size()}, std::move(clusters),
                                     rows.data(), dim)});
  }

  SkipGramReport run(const SkipGramSettings& settings, int n_threads, Monitor& monitor) const {
    if (settings.visits_at_once < 1 || settings.visits_at_once > kMostVisits)
      refuse("visits_at_once", "be in 1 .. " + std::to_string(kMostVisits),
             std::to_string(settings.visits_at_once));
    if (settings.pairs_of_visit < 1 || settings.n_sampled < 1)
      throw std::invalid_argument("pairs_of_visit and n_sampled must be positive");
    SkipGramModel model{words_.data(),
                        contexts_.data(),
                        std::get<0>(sums_).data(),
                        std::get<1>(sums_).data(),
                        static_cast<offset_t>(words_.shape(0)),
                        static_cast<offset_t>(words_.shape(1)),
                        bias_};
    const auto& [begin, ids, counts] = pairs_;
    const SkipGramData data{as_span(begin), as_span(ids), as_span(counts), as_span(noise_)};
    nb::gil_scoped_release unlocked;
    const ContextBlocks* blocks = blocks_.empty() ? nullptr : &blocks_;
    return SkipGramPass(model, data, settings, index_.get(), blocks, n_threads, monitor).run();
  }

 private:
  MutableMatrix<float> words_, contexts_;
  Sums sums_;
  Pairs pairs_;
  Vector<float> noise_;
  offset_t bias_;
  Vector<index_t> index_ids_;
  Matrix<float> index_rows_;
  std::unique_ptr<MipsIndex<float>> index_;
  ContextBlocks blocks_;
};

NumpyVector<double> log_partitions_of(const Matrix<float>& rows, const Matrix<float>& queries,
                                      int n_threads, const Monitor& monitor) {
  if (rows.shape(1) != queries.shape(1) || rows.shape(1) % kRowFloats != 0)
    throw std::invalid_argument("rows and queries must have the same multiple of 16 columns");
  std::vector<double> out(queries.shape(0));
  {
    nb::gil_scoped_release unlocked;
    log_partitions(rows.data(), static_cast<offset_t>(rows.shape(0)), queries.data(),
                   static_cast<offset_t>(queries.shape(0)), static_cast<offset_t>(rows.shape(1)),
                   n_threads, &monitor, out);
  }
  return to_numpy(std::move(out));
}

}  // namespace

void bind_skip_gram(nb::module_& m) {
  nb::class_<Corpus>(m, "Corpus", "Sentences as ids of their words.")
      .def(nb::init<>())
      .def_prop_ro("n_words", &Corpus::n_words)
      .def_prop_ro("n_tokens", &Corpus::n_tokens)
      .def("add_text", &add_text, "text"_a, "split"_a)
      .def("add_words", &add_words, "text"_a, "bounds"_a, "begin"_a)
      .def("words", &words_of)
      .def("count_pairs", &count_pairs, "id_of"_a, "keep"_a, "window"_a, "seed"_a, "n_threads"_a,
           "monitor"_a, "begin, ids and counts of sparse rows.");
  nb::class_<SkipGramSettings>(m, "SkipGramSettings")
      .def(nb::init<>())
      .def_rw("is_contrastive", &SkipGramSettings::is_contrastive)
      .def_rw("is_exact", &SkipGramSettings::is_exact)
      .def_rw("moves_words", &SkipGramSettings::moves_words)
      .def_rw("moves_contexts", &SkipGramSettings::moves_contexts)
      .def_rw("learning_rate", &SkipGramSettings::learning_rate)
      .def_rw("n_negative", &SkipGramSettings::n_negative)
      .def_rw("n_sampled", &SkipGramSettings::n_sampled)
      .def_rw("n_found", &SkipGramSettings::n_found)
      .def_rw("n_probe", &SkipGramSettings::n_probe)
      .def_rw("visits_at_once", &SkipGramSettings::visits_at_once)
      .def_rw("pairs_of_visit", &SkipGramSettings::pairs_of_visit)
      .def_rw("seed", &SkipGramSettings::seed);
  nb::class_<SkipGramReport>(m, "SkipGramReport")
      .def_ro("objective", &SkipGramReport::objective)
      .def_ro("lower_bound", &SkipGramReport::lower_bound)
      .def_ro("work", &SkipGramReport::work)
      .def_ro("is_finite", &SkipGramReport::is_finite);
  nb::class_<Problem>(m, "SkipGramProblem")
      .def(nb::init<MutableMatrix<float>, MutableMatrix<float>, Problem::Sums, Problem::Pairs,
                    Vector<float>, offset_t>(),
           "words"_a, "contexts"_a, "sums"_a, "pairs"_a, "noise"_a, "bias"_a,
           "sums are of (words, contexts), pairs (begin, ids, counts) of sparse rows.")
      .def("set_index", &Problem::set_index, "centres"_a, "begin"_a, "ids"_a, "rows"_a)
      .def("clear_blocks", &Problem::clear_blocks)
      .def("add_block", &Problem::add_block, "first"_a, "rows"_a, "centres"_a, "cluster_of"_a)
      .def("run", &Problem::run, "settings"_a, "n_threads"_a, "monitor"_a,
           "One pass over all pairs.");
  m.def("log_partitions", &log_partitions_of, "rows"_a, "queries"_a, "n_threads"_a, "monitor"_a,
        "log of the sum of exponentials of each query's inner products with all rows.");
}

}  // namespace sublearn::bindings
