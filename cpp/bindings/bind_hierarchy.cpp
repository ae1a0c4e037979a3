// Python face of core/label_graph.hpp, prox/hierarchy.hpp and prox/overlapping_groups.hpp: many
// rows of label scores at a time.
#include <algorithm>
#include <optional>

#include "arrays.hpp"
#include "sublearn/core/label_graph.hpp"
#include "sublearn/core/monitor.hpp"
#include "sublearn/core/parallel_for.hpp"
#include "sublearn/prox/hierarchy.hpp"
#include "sublearn/prox/overlapping_groups.hpp"

namespace sublearn::bindings {
namespace {

/// Rows of a block: made from the data alone, so that sums do not depend on the threads.
constexpr offset_t kBlockEntries = 1 << 15;

offset_t block_rows(offset_t n_labels) {
  return std::max<offset_t>(1, kBlockEntries / std::max<offset_t>(1, n_labels));
}

/// A taxonomy, and what its projections need.
class Taxonomy {
 public:
  Taxonomy(Vector<offset_t> indptr, Vector<index_t> parents)
      : graph_({indptr.data(), indptr.data() + indptr.size()},
               {parents.data(), parents.data() + parents.size()}),
        is_forest_(graph_.is_forest()) {}

  const LabelGraph& graph() const { return graph_; }
  bool is_forest() const { return is_forest_; }

  NumpyVector<index_t> order() const {
    return to_numpy(std::vector<index_t>(graph_.order().begin(), graph_.order().end()));
  }

  /// Calls body(row, scratch) for all rows, blocks of them on several threads.
  template <class Scratch, class Make, class Body>
  static void for_rows(offset_t n_rows, offset_t n_labels, int n_threads, const Monitor& monitor,
                       const Make& make, const Body& body) {
    const offset_t per_block = block_rows(n_labels);
    const offset_t n_blocks = (n_rows + per_block - 1) / per_block;
    std::vector<std::optional<Scratch>> rooms(
        static_cast<std::size_t>(effective_threads(n_blocks, n_threads)));
    parallel_for(n_blocks, n_threads, &monitor, [&](offset_t block, int thread) {
      auto& room = rooms[static_cast<std::size_t>(thread)];
      if (!room) room.emplace(make());
      const offset_t end = std::min(n_rows, (block + 1) * per_block);
      for (offset_t i = block * per_block; i < end; ++i) body(i, block, *room);
    });
  }

  template <class T>
  void check(const Matrix<T>& u, const Vector<double>& phi) const {
    const auto n = static_cast<std::size_t>(graph_.size());
    if (u.shape(1) != n || phi.size() != n) {
      throw std::invalid_argument("u and phi must have one entry per label");
    }
    if (graph_.order().size() != n) throw std::invalid_argument("the labels must have no cycle");
  }

  /// Values of the operator into `v` and whether each group is not zero into `on`; either may be
  /// empty. Returns the largest relative gap, 0 for forests.
  template <class T>
  double project(Matrix<T> u, Vector<double> phi, MutableMatrix<T> v, MutableMatrix<bool> on,
                 double tol, int max_sweeps, int n_threads, const Monitor& monitor) const {
    check(u, phi);
    const auto n_rows = static_cast<offset_t>(u.shape(0));
    const auto n = static_cast<offset_t>(graph_.size());
    const bool wants_values = v.shape(0) != 0, wants_support = on.shape(0) != 0;
    if ((wants_values && (v.shape(0) != u.shape(0) || v.shape(1) != u.shape(1))) ||
        (wants_support && (on.shape(0) != u.shape(0) || on.shape(1) != u.shape(1)))) {
      throw std::invalid_argument("v and on must be empty or have the shape of u");
    }
    const auto row = [n](const auto& matrix, offset_t i) {
      return std::span(matrix.data() + i * n, static_cast<std::size_t>(n));
    };
    const std::span<const double> weights = as_span<double>(phi);
    nb::gil_scoped_release unlocked;
    if (is_forest_) {
      for_rows<TreeScratch>(
          n_rows, n, n_threads, monitor, [&] { return tree_scratch(); },
          [&](offset_t i, offset_t, TreeScratch& room) {
            shrink_groups<T>(graph_, row(u, i), weights, room);
            for (std::size_t t = 0; wants_values && t < room.scale.size(); ++t) {
              row(v, i)[t] = static_cast<T>(row(u, i)[t] * room.scale[t]);
            }
            for (std::size_t t = 0; wants_support && t < room.scale.size(); ++t) {
              row(on, i)[t] = survives(room, t);
            }
          });
      return 0.0;
    }
    const GroupList groups(graph_);
    std::vector<double> gaps(static_cast<std::size_t>(n_rows), 0.0);
    for_rows<GroupShrinker>(
        n_rows, n, n_threads, monitor,
        [&] { return GroupShrinker(graph_, groups, {tol, max_sweeps, &monitor}); },
        [&](offset_t i, offset_t, GroupShrinker& room) {
          gaps[static_cast<std::size_t>(i)] = room.solve<T>(row(u, i), weights);
          for (std::size_t t = 0; wants_values && t < room.v.size(); ++t) {
            row(v, i)[t] = static_cast<T>(room.v[t] * room.unit());
          }
          for (std::size_t t = 0; wants_support && t < room.v.size(); ++t) {
            row(on, i)[t] = room.is_on[t] != 0;
          }
        });
    return gaps.empty() ? 0.0 : *std::max_element(gaps.begin(), gaps.end());
  }

  /// Gradients of sum of slope * P(u, phi): into `u_slope`; that in phi is returned.
  template <class T>
  NumpyVector<double> gradient(Matrix<T> u, Vector<double> phi, Matrix<T> slope,
                               MutableMatrix<T> u_slope, double tol, int max_sweeps, int n_threads,
                               const Monitor& monitor) const {
    check(u, phi);
    for (const auto* shape : {&slope}) {
      if (shape->shape(0) != u.shape(0) || shape->shape(1) != u.shape(1)) {
        throw std::invalid_argument("slope must have the shape of u");
      }
    }
    if (u_slope.shape(0) != u.shape(0) || u_slope.shape(1) != u.shape(1)) {
      throw std::invalid_argument("u_slope must have the shape of u");
    }
    const auto n_rows = static_cast<offset_t>(u.shape(0));
    const auto n = static_cast<offset_t>(graph_.size());
    const auto row = [n](const auto& matrix, offset_t i) {
      return std::span(matrix.data() + i * n, static_cast<std::size_t>(n));
    };
    const std::span<const double> weights = as_span<double>(phi);
    std::vector<double> total(static_cast<std::size_t>(n), 0.0);
    {
      nb::gil_scoped_release unlocked;
      const offset_t n_blocks = (n_rows + block_rows(n) - 1) / block_rows(n);
      std::vector<std::vector<double>> sums(static_cast<std::size_t>(n_blocks));
      const auto sum_of = [&](offset_t block) {
        auto& sum = sums[static_cast<std::size_t>(block)];
        sum.resize(total.size(), 0.0);
        return std::span(sum);
      };
      if (is_forest_) {
        for_rows<TreeScratch>(
            n_rows, n, n_threads, monitor, [&] { return tree_scratch(); },
            [&](offset_t i, offset_t block, TreeScratch& room) {
              shrink_groups<T>(graph_, row(u, i), weights, room);
              shrink_gradient<T>(graph_, row(u, i), weights, row(slope, i), room, row(u_slope, i),
                                 sum_of(block));
            });
      } else {
        const GroupList groups(graph_);
        for_rows<GroupShrinker>(
            n_rows, n, n_threads, monitor,
            [&] { return GroupShrinker(graph_, groups, {tol, max_sweeps, &monitor}); },
            [&](offset_t i, offset_t block, GroupShrinker& room) {
              room.solve<T>(row(u, i), weights);
              room.gradient<T>(weights, row(slope, i), row(u_slope, i), sum_of(block));
            });
      }
      for (const auto& sum : sums) {
        for (std::size_t t = 0; t < sum.size(); ++t) total[t] += sum[t];
      }
    }
    return to_numpy(std::move(total));
  }

  /// A label is on if it or a descendant is: algorithm 11, in place.
  void reduce(MutableMatrix<bool> on) const {
    for_masks(on, [this](bool* row) {
      graph_.walk_up([row](index_t t, std::span<const index_t> parents) {
        for (const index_t p : parents) row[p] = row[p] || row[t];
      });
    });
  }

  /// A label is on if it and all its ancestors are: algorithm 12, in place.
  void map(MutableMatrix<bool> on) const {
    for_masks(on, [this](bool* row) {
      graph_.walk_down([row](index_t t, std::span<const index_t> parents) {
        for (const index_t p : parents) row[t] = row[t] && row[p];
      });
    });
  }

 private:
  TreeScratch tree_scratch() const {
    TreeScratch room;
    room.resize(graph_.size());
    return room;
  }

  template <class Body>
  void for_masks(const MutableMatrix<bool>& on, const Body& body) const {
    if (static_cast<index_t>(on.shape(1)) != graph_.size()) {
      throw std::invalid_argument("on must have one column per label");
    }
    bool* data = on.data();
    const auto n_rows = static_cast<offset_t>(on.shape(0)), n = static_cast<offset_t>(on.shape(1));
    nb::gil_scoped_release unlocked;
    for (offset_t i = 0; i < n_rows; ++i) body(data + i * n);
  }

  LabelGraph graph_;
  bool is_forest_;
};

/// How many labels of predicted sets are right and how many there are: for each row, and for each
/// label in each group of rows. Group g is the rows from first[g] to first[g + 1] - 1.
nb::tuple count_hits(Matrix<bool> on, Matrix<bool> truth, Vector<offset_t> first) {
  const std::size_t n_rows = on.shape(0), n = on.shape(1);
  if (truth.shape(0) != n_rows || truth.shape(1) != n) {
    throw std::invalid_argument("on and truth must have one shape");
  }
  check_offsets("first", as_span<offset_t>(first), n_rows);
  const std::size_t n_groups = first.size() - 1;
  std::vector<index_t> row_hits(n_rows, 0), row_sizes(n_rows, 0);
  std::vector<index_t> label_hits(n_groups * n, 0), label_sizes(n_groups * n, 0);
  {
    nb::gil_scoped_release unlocked;
    for (std::size_t g = 0; g < n_groups; ++g) {
      index_t* hits = label_hits.data() + g * n;
      index_t* sizes = label_sizes.data() + g * n;
      for (offset_t i = first.data()[g]; i < first.data()[g + 1]; ++i) {
        const bool* a = on.data() + static_cast<std::size_t>(i) * n;
        const bool* b = truth.data() + static_cast<std::size_t>(i) * n;
        index_t n_hits = 0, n_on = 0;
        for (std::size_t t = 0; t < n; ++t) {
          const index_t hit = a[t] && b[t];
          n_hits += hit;
          n_on += a[t];
          hits[t] += hit;
          sizes[t] += a[t];
        }
        row_hits[static_cast<std::size_t>(i)] = n_hits;
        row_sizes[static_cast<std::size_t>(i)] = n_on;
      }
    }
  }
  return nb::make_tuple(to_numpy(std::move(row_hits)), to_numpy(std::move(row_sizes)),
                        to_numpy(std::move(label_hits), n_groups, n),
                        to_numpy(std::move(label_sizes), n_groups, n));
}

template <class T>
void bind_projections(nb::class_<Taxonomy>& cls) {
  cls.def("project", &Taxonomy::project<T>, "u"_a.noconvert(), "phi"_a.noconvert(),
          "v"_a.noconvert(), "on"_a.noconvert(), "tol"_a, "max_sweeps"_a, "n_threads"_a,
          "monitor"_a)
      .def("gradient", &Taxonomy::gradient<T>, "u"_a.noconvert(), "phi"_a.noconvert(),
           "slope"_a.noconvert(), "u_slope"_a.noconvert(), "tol"_a, "max_sweeps"_a, "n_threads"_a,
           "monitor"_a);
}

}  // namespace

void bind_hierarchy(nb::module_& m) {
  nb::class_<Taxonomy> cls(m, "LabelGraph", "Labels and their parents, as CSR lists.");
  cls.def(nb::init<Vector<offset_t>, Vector<index_t>>(), "indptr"_a.noconvert(),
          "parents"_a.noconvert())
      .def("order", &Taxonomy::order, "Labels, parents first; some are missing in a cycle.")
      .def_prop_ro("is_forest", &Taxonomy::is_forest)
      .def("leaf_reduce", &Taxonomy::reduce, "on"_a.noconvert(), "Turn on all ancestors, in place.")
      .def("root_map", &Taxonomy::map, "on"_a.noconvert(), "Turn off all descendants, in place.");
  bind_projections<float>(cls);
  bind_projections<double>(cls);
  m.def("count_hits", &count_hits, "on"_a.noconvert(), "truth"_a.noconvert(), "first"_a.noconvert(),
        "Right and predicted labels: of each row, and of each label by group of rows.");
}

}  // namespace sublearn::bindings
