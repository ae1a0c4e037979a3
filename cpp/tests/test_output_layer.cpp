// The last layer with very many labels: products by lanes, searches of a batch, threads.
#include "sublearn/solvers/embed/output_layer.hpp"

#include <cmath>
#include <vector>

#include "check.hpp"
#include "sublearn/core/rng.hpp"

using namespace sublearn;

namespace {

std::vector<float> random_rows(Rng& rng, offset_t n) {
  std::vector<float> rows(static_cast<std::size_t>(n));
  for (float& value : rows) value = static_cast<float>(2.0 * rng.uniform() - 1.0);
  return rows;
}

double product(const float* a, const float* b, offset_t dim) {
  double sum = 0.0;
  for (offset_t d = 0; d < dim; ++d) sum += static_cast<double>(a[d]) * static_cast<double>(b[d]);
  return sum;
}

/// 50 labels, 20 numbers padded to 32, one label per sample.
struct Problem {
  static constexpr offset_t kLabels = 50, kDim = 20, kStride = 32, kSamples = 40;
  std::vector<float> weights = std::vector<float>(kLabels * kStride, 0.0F);
  std::vector<float> features = std::vector<float>(kSamples * kStride, 0.0F);
  std::vector<offset_t> begin = {0};
  std::vector<index_t> labels;

  Problem() {
    Rng rng(3);
    for (auto* rows : {&weights, &features}) {
      for (std::size_t p = 0; p < rows->size(); ++p) {
        if (static_cast<offset_t>(p) % kStride < kDim)
          (*rows)[p] = static_cast<float>(2.0 * rng.uniform() - 1.0);
      }
    }
    for (offset_t i = 0; i < kSamples; ++i) {
      labels.push_back(static_cast<index_t>(rng.below(kLabels)));
      begin.push_back(i + 1);
    }
  }
  LabelBatch batch() const {
    return {features.data(), kStride, begin.data(), labels.data(), kSamples};
  }
  /// Two blocks of coordinates with seven clusters each, rows dealt out in turn.
  OutputLayer layer() const {
    OutputLayer made(weights, kLabels, kDim, StepRule::adagrad);
    std::vector<index_t> cluster_of;
    for (index_t k = 0; k < kLabels; ++k) cluster_of.push_back(k % 7);
    for (const offset_t first : {offset_t{0}, offset_t{12}}) {
      const offset_t dim = first == 0 ? 12 : 8;
      Rng rng(4);
      made.add_block(first, dim, random_rows(rng, 7 * dim), cluster_of);
    }
    return made;
  }
};

std::vector<float> trained(int n_threads) {
  const Problem problem;
  OutputLayer layer = problem.layer();
  LayerSettings settings;
  settings.candidates = {GradientKind::decomposed, 20, 3, 10, 1e-3};
  settings.n_threads = n_threads;
  for (int step = 0; step < 5; ++step) {  // refreshes after each: 40 samples pass 50 / 4
    layer.differentiate(problem.batch(), settings, 0);
    layer.move_rows(problem.batch(), settings, 0.1F);
  }
  return {layer.weights().begin(), layer.weights().end()};
}

}  // namespace

TEST(lane_products_are_inner_products) {
  Rng rng(1);
  for (const offset_t dim : {1, 7, 16, 33}) {
    for (const offset_t n_rows : {1, 16, 19}) {
      for (const offset_t n_queries : {1, 4, 11}) {
        const auto rows = random_rows(rng, n_rows * dim),
                   queries = random_rows(rng, n_queries * dim);
        std::vector<float> packs(n_packs(n_rows) * dim * kPackRows, 0.0F);
        for (offset_t r = 0; r < n_rows; ++r) set_lane(packs.data(), dim, r, rows.data() + r * dim);
        const offset_t wide = n_packs(n_rows) * kPackRows;
        std::vector<float> out(static_cast<std::size_t>(n_queries * wide));
        lane_products(packs.data(), n_packs(n_rows), dim, queries.data(), n_queries, dim,
                      out.data(), wide);
        for (offset_t q = 0; q < n_queries; ++q) {
          for (offset_t r = 0; r < n_rows; ++r) {
            const double exact = product(rows.data() + r * dim, queries.data() + q * dim, dim);
            CHECK(std::abs(out[q * wide + r] - exact) < 1e-4);
          }
        }
      }
    }
  }
}

TEST(a_batch_that_looks_at_all_clusters_finds_every_row_with_its_score) {
  const Problem problem;
  const OutputLayer layer = problem.layer();
  for (const ClusteredRows& block : layer.blocks()) {
    BatchSearch search;
    search.run(block, problem.features.data(), Problem::kSamples, Problem::kStride, 100, 2);
    for (offset_t q = 0; q < Problem::kSamples; ++q) {
      const auto ids = search.ids(q);
      CHECK(static_cast<offset_t>(ids.size()) == Problem::kLabels);
      for (std::size_t p = 0; p < ids.size(); ++p) {
        const double exact =
            product(problem.weights.data() + ids[p] * Problem::kStride + block.first(),
                    problem.features.data() + q * Problem::kStride + block.first(), block.dim());
        CHECK(std::abs(search.scores(q)[p] - exact) < 1e-4);
      }
    }
  }
}

TEST(training_does_not_depend_on_the_threads) { CHECK(trained(1) == trained(3)); }

TEST(a_step_that_is_not_finite_says_so) {
  Problem problem;
  problem.weights[Problem::kStride * problem.labels[0]] = NAN;
  OutputLayer layer(problem.weights, Problem::kLabels, Problem::kDim, StepRule::sgd);
  LayerSettings settings;
  for (const OutputLossKind kind : {OutputLossKind::softmax, OutputLossKind::margin,
                                    OutputLossKind::triplet, OutputLossKind::smoothed_margin}) {
    settings.loss.kind = kind;
    CHECK(!layer.differentiate(problem.batch(), settings, 0).is_finite);
  }
}
