// Labels and their parents: orders, cycles, groups; and the operator on them, forest and graph
// alike.
#include "sublearn/core/label_graph.hpp"

#include <cmath>
#include <stdexcept>
#include <vector>

#include "check.hpp"
#include "sublearn/prox/hierarchy.hpp"
#include "sublearn/prox/overlapping_groups.hpp"

using sublearn::GroupList;
using sublearn::GroupShrinker;
using sublearn::index_t;
using sublearn::LabelGraph;
using sublearn::offset_t;
using sublearn::TreeShrinker;

namespace {

/// Parents of one label each, -1 for none.
LabelGraph forest(const std::vector<index_t>& parents) {
  std::vector<offset_t> indptr{0};
  std::vector<index_t> indices;
  for (const index_t p : parents) {
    if (p >= 0) indices.push_back(p);
    indptr.push_back(static_cast<offset_t>(indices.size()));
  }
  return {indptr, indices};
}

std::vector<index_t> order_of(const LabelGraph& graph) {
  return {graph.order().begin(), graph.order().end()};
}

bool refuses(const std::vector<offset_t>& indptr, const std::vector<index_t>& parents) {
  try {
    const LabelGraph graph(indptr, parents);
  } catch (const std::invalid_argument&) {
    return true;
  }
  return false;
}

}  // namespace

TEST(parents_come_first) {
  CHECK(order_of(forest({-1, 0, 0, 1})) == (std::vector<index_t>{0, 1, 2, 3}));
  CHECK(order_of(forest({2, 2, -1})) == (std::vector<index_t>{2, 0, 1}));
}

TEST(a_cycle_is_left_out_of_the_order) {
  CHECK(order_of(forest({1, 0, -1})) == (std::vector<index_t>{2}));
  CHECK(order_of(forest({0})).empty());
}

TEST(broken_lists_of_parents_are_refused) {
  CHECK(refuses({}, {}));
  CHECK(refuses({0, 2}, {0}));
  CHECK(refuses({0, 1}, {7}));
  CHECK(refuses({0, 1}, {-1}));
}

TEST(groups_are_labels_with_their_descendants) {
  const LabelGraph diamond({0, 0, 1, 2, 4}, {0, 0, 1, 2});
  CHECK(!diamond.is_forest());
  const auto groups = diamond.groups();
  CHECK(groups[0] == (std::vector<index_t>{0, 1, 2, 3}));
  CHECK(groups[1] == (std::vector<index_t>{1, 3}));
  CHECK(groups[3] == (std::vector<index_t>{3}));
}

TEST(the_dual_iteration_gives_what_the_two_passes_give) {
  const LabelGraph graph = forest({-1, 0, 0, 1, 1, -1});
  const std::vector<double> u{0.9, -0.4, 0.3, 1.5, 0.2, 0.1};
  const std::vector<double> phi{0.3, 0.2, 0.5, 0.1, 0.05, 0.2};
  TreeShrinker tree(graph);
  tree.solve<double>(u, phi);
  const GroupList groups(graph);
  GroupShrinker shrinker(graph, groups, {1e-14, 100});
  const double gap = shrinker.solve<double>(u, phi);
  CHECK(gap <= 1e-14);
  for (std::size_t t = 0; t < u.size(); ++t) {
    CHECK(std::abs(shrinker.value<double>(u, t) - tree.value<double>(u, t)) < 1e-12);
    CHECK(shrinker.is_on(t) == tree.is_on(t));
  }
}
