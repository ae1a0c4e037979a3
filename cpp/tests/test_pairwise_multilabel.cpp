// Weights of pairs of labels: the dual is feasible at all times, rises, and meets the objective.
#include "sublearn/solvers/pairwise_multilabel.hpp"

#include <cmath>
#include <cstdint>
#include <vector>

#include "check.hpp"
#include "sublearn/core/rng.hpp"

using namespace sublearn;

namespace {

/// Rows of two features and three labels, the first two of which mostly come together.
struct SmallProblem {
  std::vector<index_t> indptr{0}, indices;
  std::vector<double> values;
  std::vector<offset_t> begin{0};
  std::vector<index_t> rows;
  static constexpr offset_t kRows = 24;

  SmallProblem() {
    Rng rng(5);
    std::vector<std::vector<index_t>> of_label(3);
    for (index_t i = 0; i < kRows; ++i) {
      const double angle = 1.5 * rng.uniform();
      indices.insert(indices.end(), {0, 1});
      values.insert(values.end(), {std::cos(angle), std::sin(angle)});
      indptr.push_back(static_cast<index_t>(indices.size()));
      const bool is_left = angle < 0.7;
      if (is_left) of_label[0].push_back(i);
      if (is_left != (rng.uniform() < 0.15)) of_label[1].push_back(i);
      if (!is_left) of_label[2].push_back(i);
    }
    for (const auto& some : of_label) {
      rows.insert(rows.end(), some.begin(), some.end());
      begin.push_back(static_cast<offset_t>(rows.size()));
    }
  }

  LabelledRows<double, index_t> labelled() const {
    CsrView<double, index_t> X;
    X.indptr = indptr.data();
    X.indices = indices.data();
    X.values = values.data();
    X.n_major = kRows;
    X.n_minor = 2;
    return {X, RowLabels(LabelRows{begin, rows}, kRows)};
  }
};

}  // namespace

TEST(pairwise_dual_rises_to_the_objective) {
  const SmallProblem problem;
  const auto data = problem.labelled();
  PairwiseSettings settings;
  settings.gamma = 0.5;
  PairwiseMultilabel<double, index_t> learner(data, 3, settings);
  double dual = 0.0;
  PairwiseCertificate found;
  for (int pass = 0; pass < 400; ++pass) {
    learner.pass(nullptr);
    found = learner.certify(nullptr);
    CHECK(found.is_complete);
    CHECK(found.dual >= dual - 1e-6 * (1.0 + dual));
    CHECK(found.primal >= found.dual - 1e-6 * found.primal);
    dual = found.dual;
  }
  CHECK(found.primal - found.dual <= 1e-3 * found.primal);
}

TEST(pairwise_weights_are_symmetric_and_tell_who_belongs_together) {
  const SmallProblem problem;
  const auto data = problem.labelled();
  PairwiseMultilabel<double, index_t> learner(data, 3, PairwiseSettings{});
  for (int pass = 0; pass < 50; ++pass) learner.pass(nullptr);
  const auto V = learner.pairs();
  std::vector<double> dense(9, 0.0);
  for (std::size_t k = 0; k < 3; ++k) {
    for (auto e = static_cast<std::size_t>(V.indptr[k]);
         e < static_cast<std::size_t>(V.indptr[k + 1]); ++e) {
      dense[3 * k + static_cast<std::size_t>(V.indices[e])] = V.values[e];
    }
  }
  CHECK(dense[1] == dense[3] && dense[2] == dense[6] && dense[5] == dense[7]);
  CHECK(dense[0] == 0.0 && dense[4] == 0.0 && dense[8] == 0.0);
  CHECK(dense[1] > 0.0);
  CHECK(dense[2] < 0.0);
}

TEST(pairs_that_join_later_lead_to_the_same_optimum) {
  const SmallProblem problem;
  const auto data = problem.labelled();
  PairwiseSettings settings;
  settings.gamma = 0.5;
  PairwiseMultilabel<double, index_t> whole(data, 3, settings), joined(data, 3, settings);
  joined.leave_pairs_out();
  for (int pass = 0; pass < 20; ++pass) joined.pass(nullptr);
  const double alone = joined.certify(nullptr).dual;
  CHECK(joined.pairs().values.empty());
  Monitor stopped;
  stopped.request_stop();
  joined.join_pairs(&stopped);
  CHECK(joined.pairs().values.empty());
  joined.join_pairs(nullptr);
  // p stays and |V| is as small as it can be: the value of labels alone, less gamma/2 |V|^2.
  double before = joined.certify(nullptr).dual;
  CHECK(before <= alone + 1e-9);
  for (int pass = 0; pass < 300; ++pass) {
    joined.pass(nullptr);
    whole.pass(nullptr);
    if (pass % 50 != 0) continue;
    const auto now = joined.certify(nullptr);
    CHECK(now.dual >= before - 1e-6);
    CHECK(now.primal >= now.dual - 1e-6);
    before = now.dual;
  }
  const auto one = joined.certify(nullptr), other = whole.certify(nullptr);
  CHECK(std::abs(one.dual - other.dual) < 1e-3 * other.dual);
  CHECK(one.primal - one.dual < 1e-2 * one.primal);
}
