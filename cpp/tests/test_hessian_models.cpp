// The kept matrix X'DX of Newton's models.
#include "sublearn/solvers/linear/hessian_models.hpp"

#include <numeric>
#include <span>
#include <vector>

#include "check.hpp"

using namespace sublearn;

TEST(a_kept_matrix_says_when_more_features_would_exceed_its_memory) {
  using Model = GramModel<DenseColumns<double>>;
  const auto most = static_cast<offset_t>(Model::kMost);
  const std::vector<double> values(Model::kMost + 10, 1.0);  // one row
  const DenseColumns<double> X(values.data(), 1, most + 10);
  std::vector<index_t> ids(values.size());
  std::iota(ids.begin(), ids.end(), index_t{0});
  const std::span<const index_t> all(ids);
  RowState rows(1);
  rows.curvatures[0] = 1.0;
  Model model(X);
  CHECK(model.has_room(all.first(Model::kMost)));
  CHECK(!model.has_room(all));
  model.restart(rows);
  model.extend(all.first(20));
  CHECK(model.has_room(all.first(Model::kMost)));  // twenty of them are there already
  CHECK(!model.has_room(all.last(Model::kMost - 9)));
  model.restart(rows);
  CHECK(model.has_room(all.last(Model::kMost)));
}
