// Python face of maximum inner-product search.

#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "refuse.hpp"
#include "sublearn/search/mips_index.hpp"

namespace sublearn::bindings {
namespace {

using Ids = Vector<index_t>;
using Rows = Matrix<float>;

/// Keeps the arrays that the index may still look at. Any number of threads may read, or one may
/// change rows: each lets go of Python's lock before it waits for its turn.
template <class T>
class Index {
  static constexpr bool kIsScaled = std::is_same_v<T, std::int8_t>;

 public:
  /// `scales` holds a number for each row of 8-bit numbers, and none for float32.
  Index(Rows centres, Vector<offset_t> begin, Ids ids, Matrix<T> rows, Vector<float> scales,
        offset_t n_ids)
      : ids_(ids), rows_(rows), scales_(scales) {
    const auto stride = static_cast<offset_t>(centres.shape(1));
    check(centres, begin, ids, rows, n_ids);
    if (scales.size() != (kIsScaled ? rows.shape(0) : 0))
      throw std::invalid_argument("scales must have a number for each row of 8-bit numbers");
    std::vector<float> copy(centres.data(), centres.data() + centres.size());
    nb::gil_scoped_release unlocked;
    index_ = std::make_unique<MipsIndex<T>>(stride, std::move(copy), as_span<offset_t>(begin),
                                            as_span<index_t>(ids), rows.data(),
                                            kIsScaled ? scales.data() : nullptr, n_ids);
  }

  offset_t n_rows() const {
    const Reading turn(mutex_);
    return index_->n_rows();
  }
  offset_t n_ids() const {
    const Reading turn(mutex_);
    return index_->n_ids();
  }
  offset_t n_clusters() const { return index_->n_clusters(); }  // never changes

  std::tuple<NumpyMatrix<index_t>, NumpyMatrix<float>, offset_t> search(
      const Rows& queries, offset_t k, offset_t n_probe, int n_threads, Monitor& monitor) const {
    check_rows("queries", queries);
    if (k < 1 || n_probe < 0) throw std::invalid_argument("k must be positive, n_probe not less");
    const auto n = static_cast<offset_t>(queries.shape(0));
    std::vector<index_t> ids(static_cast<std::size_t>(n * k), -1);
    std::vector<float> scores(static_cast<std::size_t>(n * k),
                              -std::numeric_limits<float>::infinity());
    offset_t work = 0;
    {
      const Reading turn(mutex_);
      const auto keep = [&](offset_t q, std::span<const Scored<float>> best) {
        for (std::size_t p = 0; p < best.size(); ++p) {
          ids[q * k + p] = best[p].id;
          scores[q * k + p] = best[p].score;
        }
      };
      const auto count = static_cast<std::size_t>(k);
      const float* all = queries.data();
      work = index_->search(all, n, count, {n_probe}, n_threads, &monitor, keep);
      // Where the clusters looked at have fewer than k rows, all are: in the same turn.
      for (offset_t q = 0; q < n && n_probe > 0 && k <= index_->n_rows(); ++q) {
        if (ids[(q + 1) * k - 1] >= 0 || monitor.stop_requested()) continue;
        work += index_->search(all + q * index_->stride(), 1, count, {0}, 1, &monitor,
                               [&](offset_t, auto best) { keep(q, best); });
      }
    }
    const auto rows = static_cast<std::size_t>(n), columns = static_cast<std::size_t>(k);
    return {to_numpy(std::move(ids), rows, columns), to_numpy(std::move(scores), rows, columns),
            work};
  }

  std::tuple<NumpyVector<offset_t>, NumpyVector<index_t>, NumpyVector<float>, offset_t>
  search_above(const Rows& queries, float threshold, int n_threads, Monitor& monitor) const {
    check_rows("queries", queries);
    const auto n = static_cast<offset_t>(queries.shape(0));
    std::vector<std::vector<Scored<float>>> found(static_cast<std::size_t>(n));
    std::vector<offset_t> begin(static_cast<std::size_t>(n) + 1, 0);
    std::vector<index_t> ids;
    std::vector<float> scores;
    offset_t work = 0;
    {
      const Reading turn(mutex_);
      work = index_->search_above(queries.data(), n, threshold, n_threads, &monitor,
                                  [&](offset_t q, std::span<const Scored<float>> rows) {
                                    found[q].assign(rows.begin(), rows.end());
                                  });
      for (offset_t q = 0; q < n; ++q) {
        begin[q + 1] = begin[q] + static_cast<offset_t>(found[q].size());
        for (const Scored<float>& item : found[q]) {
          ids.push_back(item.id);
          scores.push_back(item.score);
        }
      }
    }
    return {to_numpy(std::move(begin)), to_numpy(std::move(ids)), to_numpy(std::move(scores)),
            work};
  }

  /// The clusters of rows; needs no turn, since centres never change.
  NumpyVector<index_t> nearest(const Rows& rows) const {
    check_rows("rows", rows);
    std::vector<index_t> found(rows.shape(0));
    {
      nb::gil_scoped_release unlocked;
      for (std::size_t p = 0; p < found.size(); ++p)
        found[p] = index_->nearest(rows.data() + static_cast<offset_t>(p) * index_->stride());
    }
    return to_numpy(std::move(found));
  }

  NumpyVector<index_t> clusters_of(const Ids& ids) const {
    std::vector<index_t> found;
    {
      const Reading turn(mutex_);
      check_known(ids);
      for (const index_t id : as_span<index_t>(ids)) found.push_back(index_->cluster_of(id));
    }
    return to_numpy(std::move(found));
  }

  NumpyVector<offset_t> sizes() const {
    std::vector<offset_t> found;
    {
      const Reading turn(mutex_);
      for (offset_t c = 0; c < index_->n_clusters(); ++c)
        found.push_back(index_->cluster(c).size());
    }
    return to_numpy(std::move(found));
  }

  void update(const Ids& ids, const Rows& rows, const Ids& clusters) {
    check_pairs(ids, rows, clusters);
    const Changing turn(mutex_);
    check_known(ids);
    for (std::size_t p = 0; p < ids.size(); ++p)
      index_->update(ids.data()[p], rows.data() + static_cast<offset_t>(p) * index_->stride(),
                     clusters.data()[p]);
  }

  void add(const Ids& ids, const Rows& rows, const Ids& clusters) {
    check_pairs(ids, rows, clusters);
    const Changing turn(mutex_);
    for (const index_t id : as_span<index_t>(ids)) {
      if (id < 0 || index_->has(id)) refuse("ids", "be free", std::to_string(id));
    }
    for (std::size_t p = 0; p < ids.size(); ++p)
      index_->add(ids.data()[p], rows.data() + static_cast<offset_t>(p) * index_->stride(),
                  clusters.data()[p]);
  }

  void remove(const Ids& ids) {
    const Changing turn(mutex_);
    for (const index_t id : as_span<index_t>(ids)) {
      if (!index_->has(id)) refuse("ids", "be rows of the index", std::to_string(id));
      index_->remove(id);
    }
  }

  /// begin, ids, rows, scales: what the constructor takes.
  std::tuple<NumpyVector<offset_t>, NumpyVector<index_t>, NumpyMatrix<T>, NumpyVector<float>>
  packed() const {
    std::vector<offset_t> begin{0};
    std::vector<index_t> ids;
    std::vector<T> rows;
    std::vector<float> scales;
    {
      const Reading turn(mutex_);
      for (offset_t c = 0; c < index_->n_clusters(); ++c) {
        const RowCluster<T>& cluster = index_->cluster(c);
        const offset_t n = cluster.size();
        ids.insert(ids.end(), cluster.ids().begin(), cluster.ids().end());
        rows.insert(rows.end(), cluster.rows(), cluster.rows() + n * index_->stride());
        if (kIsScaled) scales.insert(scales.end(), cluster.scales(), cluster.scales() + n);
        begin.push_back(begin.back() + n);
      }
    }
    const std::size_t n = ids.size();
    return {to_numpy(std::move(begin)), to_numpy(std::move(ids)),
            to_numpy(std::move(rows), n, static_cast<std::size_t>(index_->stride())),
            to_numpy(std::move(scales))};
  }

  NumpyMatrix<float> rows_of(const Ids& ids) const {
    std::vector<float> rows, scratch;
    {
      const Reading turn(mutex_);
      check_known(ids);
      for (const index_t id : as_span<index_t>(ids)) {
        const float* row = index_->row(id, scratch);
        rows.insert(rows.end(), row, row + index_->stride());
      }
    }
    return to_numpy(std::move(rows), ids.size(), static_cast<std::size_t>(index_->stride()));
  }

 private:
  /// Without Python's lock, and in turn.
  template <class Lock>
  struct Turn {
    explicit Turn(std::shared_mutex& mutex) : lock(mutex) {}
    nb::gil_scoped_release unlocked;
    Lock lock;
  };
  using Reading = Turn<std::shared_lock<std::shared_mutex>>;
  using Changing = Turn<std::unique_lock<std::shared_mutex>>;

  static void check(const Rows& centres, const Vector<offset_t>& begin, const Ids& ids,
                    const Matrix<T>& rows, offset_t n_ids) {
    if (centres.shape(0) == 0 || centres.shape(1) == 0 || centres.shape(1) % kRowFloats != 0)
      refuse("centres", "have rows of a multiple of 16 numbers", std::to_string(centres.shape(1)));
    if (begin.size() != centres.shape(0) + 1)
      throw std::invalid_argument("begin must have one entry more than centres");
    check_offsets("begin", as_span<offset_t>(begin), ids.size());
    if (rows.shape(0) != ids.size() || rows.shape(1) != centres.shape(1))
      throw std::invalid_argument("rows must have a row for each id, as wide as a centre");
    std::vector<bool> is_taken(static_cast<std::size_t>(std::max<offset_t>(n_ids, 0)), false);
    for (const index_t id : as_span<index_t>(ids)) {
      if (id < 0 || id >= n_ids || is_taken[id])
        refuse("ids", "differ and be below " + std::to_string(n_ids), std::to_string(id));
      is_taken[id] = true;
    }
  }

  void check_rows(const char* name, const Rows& rows) const {
    if (static_cast<offset_t>(rows.shape(1)) != index_->stride())
      refuse(name, "have " + std::to_string(index_->stride()) + " columns",
             std::to_string(rows.shape(1)));
  }
  void check_known(const Ids& ids) const {
    for (const index_t id : as_span<index_t>(ids)) {
      if (!index_->has(id)) refuse("ids", "be rows of the index", std::to_string(id));
    }
  }
  void check_pairs(const Ids& ids, const Rows& rows, const Ids& clusters) const {
    check_rows("rows", rows);
    if (rows.shape(0) != ids.size() || clusters.size() != ids.size())
      throw std::invalid_argument("rows and clusters must have a row for each id");
    check_ids("clusters", as_span<index_t>(clusters), index_->n_clusters());
  }

  Ids ids_;
  Matrix<T> rows_;
  Vector<float> scales_;
  std::unique_ptr<MipsIndex<T>> index_;
  mutable std::shared_mutex mutex_;
};

void products(const Rows& rows, const Rows& queries, MutableMatrix<float> out) {
  if (rows.shape(1) != queries.shape(1) || rows.shape(1) % kRowFloats != 0)
    throw std::invalid_argument("rows and queries must have the same multiple of 16 columns");
  if (out.shape(0) != queries.shape(0) || out.shape(1) != rows.shape(0))
    throw std::invalid_argument("out must have a row for each query, a column for each row");
  nb::gil_scoped_release unlocked;
  inner_products(rows.data(), static_cast<offset_t>(rows.shape(0)), queries.data(),
                 static_cast<offset_t>(queries.shape(0)), static_cast<offset_t>(rows.shape(1)),
                 out.data());
}

/// The rows as 8-bit numbers, and their scales.
std::tuple<NumpyMatrix<std::int8_t>, NumpyVector<float>> quantised(const Rows& rows) {
  const auto stride = static_cast<offset_t>(rows.shape(1));
  std::vector<std::int8_t> levels(rows.size());
  std::vector<float> scales(rows.shape(0));
  {
    nb::gil_scoped_release unlocked;
    for (std::size_t r = 0; r < scales.size(); ++r) {
      const auto at = static_cast<offset_t>(r) * stride;
      scales[r] = quantise(rows.data() + at, stride, levels.data() + at);
    }
  }
  return {to_numpy(std::move(levels), rows.shape(0), rows.shape(1)), to_numpy(std::move(scales))};
}

template <class T>
void bind_index(nb::module_& m, const char* name, const char* doc) {
  using Bound = Index<T>;
  nb::class_<Bound>(m, name, doc)
      .def(nb::init<Rows, Vector<offset_t>, Ids, Matrix<T>, Vector<float>, offset_t>(), "centres"_a,
           "begin"_a, "ids"_a, "rows"_a, "scales"_a, "n_ids"_a)
      .def_prop_ro("n_rows", &Bound::n_rows)
      .def_prop_ro("n_ids", &Bound::n_ids)
      .def_prop_ro("n_clusters", &Bound::n_clusters)
      .def("search", &Bound::search, "queries"_a, "k"_a, "n_probe"_a, "n_threads"_a, "monitor"_a,
           "ids, scores, and how many inner products were computed; n_probe 0 is exact.")
      .def("search_above", &Bound::search_above, "queries"_a, "threshold"_a, "n_threads"_a,
           "monitor"_a, "begin of each query, ids, scores, inner products computed; exact.")
      .def("nearest", &Bound::nearest, "rows"_a, "The cluster that suits each row.")
      .def("clusters_of", &Bound::clusters_of, "ids"_a)
      .def("sizes", &Bound::sizes, "Rows of each cluster.")
      .def("update", &Bound::update, "ids"_a, "rows"_a, "clusters"_a)
      .def("add", &Bound::add, "ids"_a, "rows"_a, "clusters"_a)
      .def("remove", &Bound::remove, "ids"_a)
      .def("packed", &Bound::packed, "begin, ids, rows and scales, cluster by cluster.")
      .def("rows_of", &Bound::rows_of, "ids"_a, "Rows in float32, as they are searched.");
}

}  // namespace

void bind_mips(nb::module_& m) {
  bind_index<float>(m, "MipsIndex", "Rows in spherical clusters, searched by inner product.");
  bind_index<std::int8_t>(m, "MipsIndex8", "The same of rows of 8-bit numbers.");
  m.def("quantise_rows", &quantised, "rows"_a, "The nearest 8-bit numbers, and their scales.");
  m.def("inner_products", &products, "rows"_a, "queries"_a, "out"_a,
        "out[q, r] = inner product of query q and row r.");
}

}  // namespace sublearn::bindings
