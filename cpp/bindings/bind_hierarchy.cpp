// Python face of core/label_graph.hpp, prox/hierarchy.hpp and prox/overlapping_groups.hpp: many
// rows of label scores at a time.
#include <algorithm>
#include <optional>
#include <span>
#include <type_traits>

#include "arrays.hpp"
#include "sublearn/core/label_graph.hpp"
#include "sublearn/core/monitor.hpp"
#include "sublearn/core/parallel_for.hpp"
#include "sublearn/prox/hierarchy.hpp"
#include "sublearn/prox/overlapping_groups.hpp"

namespace sublearn::bindings {
namespace {

template <class A, class B>
bool same_shape(const A& a, const B& b) {
  return a.shape(0) == b.shape(0) && a.shape(1) == b.shape(1);
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
    const bool wants_values = v.shape(0) != 0, wants_support = on.shape(0) != 0;
    if ((wants_values && !same_shape(u, v)) || (wants_support && !same_shape(u, on))) {
      throw std::invalid_argument("v and on must be empty or have the shape of u");
    }
    std::vector<double> gaps(u.shape(0), 0.0);
    nb::gil_scoped_release unlocked;
    const GroupSettings settings{tol, max_sweeps, &monitor};
    for_rows(u.shape(0), settings, n_threads, [&](std::size_t i, std::size_t, auto& shrinker) {
      const auto row_of = row(u, i);
      gaps[i] = shrinker.template solve<T>(row_of, as_span(phi));
      for (std::size_t t = 0; wants_values && t < row_of.size(); ++t) {
        row(v, i)[t] = shrinker.template value<T>(row_of, t);
      }
      for (std::size_t t = 0; wants_support && t < row_of.size(); ++t) {
        row(on, i)[t] = shrinker.is_on(t);
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
    if (!same_shape(u, slope)) throw std::invalid_argument("slope must have the shape of u");
    if (!same_shape(u, u_slope)) throw std::invalid_argument("u_slope must have the shape of u");
    std::vector<double> total(phi.size(), 0.0);
    {
      nb::gil_scoped_release unlocked;
      const GroupSettings settings{tol, max_sweeps, &monitor};
      std::vector<std::vector<double>> sums(n_blocks(u.shape(0)));
      for_rows(u.shape(0), settings, n_threads,
               [&](std::size_t i, std::size_t block, auto& shrinker) {
                 sums[block].resize(total.size(), 0.0);
                 shrinker.template solve<T>(row(u, i), as_span(phi));
                 shrinker.template gradient<T>(row(u, i), as_span(phi), row(slope, i),
                                               row(u_slope, i), sums[block]);
               });
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
  /// Rows of a block: made from the data alone, so that sums do not depend on the threads.
  std::size_t block_rows() const {
    constexpr std::size_t kBlockEntries = 1 << 15;
    return std::max<std::size_t>(1, kBlockEntries / std::max<std::size_t>(1, at(graph_.size())));
  }
  std::size_t n_blocks(std::size_t n_rows) const {
    return (n_rows + block_rows() - 1) / block_rows();
  }

  template <class Array>
  static auto row(const Array& matrix, std::size_t i) {
    return std::span(matrix.data() + i * matrix.shape(1), matrix.shape(1));
  }

  /// Calls body(row, block, shrinker) for all rows, blocks of them on several threads.
  template <class Body>
  void for_rows(std::size_t n_rows, const GroupSettings& settings, int n_threads,
                const Body& body) const {
    if (is_forest_) {
      run_blocks(n_rows, *settings.monitor, n_threads, [&] { return TreeShrinker(graph_); }, body);
    } else {
      const GroupList groups(graph_);
      run_blocks(
          n_rows, *settings.monitor, n_threads,
          [&] { return GroupShrinker(graph_, groups, settings); }, body);
    }
  }

  template <class Make, class Body>
  void run_blocks(std::size_t n_rows, const Monitor& monitor, int n_threads, const Make& make,
                  const Body& body) const {
    const auto n = static_cast<offset_t>(n_blocks(n_rows));
    std::vector<std::optional<std::invoke_result_t<Make>>> shrinkers(
        at(effective_threads(n, n_threads)));
    parallel_for(n, n_threads, &monitor, [&](offset_t block, int thread) {
      auto& shrinker = shrinkers[at(thread)];
      if (!shrinker) shrinker.emplace(make());
      const std::size_t end = std::min(n_rows, (at(block) + 1) * block_rows());
      for (std::size_t i = at(block) * block_rows(); i < end; ++i) body(i, at(block), *shrinker);
    });
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
        row_hits[at(i)] = n_hits;
        row_sizes[at(i)] = n_on;
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
