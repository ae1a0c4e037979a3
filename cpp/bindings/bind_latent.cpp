// Python face of the mixing method for Boolean quadratic problems.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/unique_ptr.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "arrays.hpp"
#include "sublearn/solvers/quadratic/mixing.hpp"

namespace sublearn::bindings {
namespace {

/// A problem in any of the three forms of C, with its arrays and its present vectors.
class BooleanQuadratic {
 public:
  virtual ~BooleanQuadratic() = default;
  virtual void start(offset_t rank, std::uint64_t seed) = 0;
  virtual void start_from(const Matrix<double>& vectors) = 0;
  virtual nb::dict sweep(int max_sweeps, double least_gain, double relaxation, std::uint64_t seed,
                         Monitor& monitor) = 0;
  virtual nb::tuple evaluate() = 0;
  virtual nb::tuple round(offset_t n_blocks, int max_passes, std::uint64_t seed, int n_threads,
                          Monitor& monitor) = 0;
  virtual NumpyMatrix<double> vectors() const = 0;
};

using Clock = std::chrono::steady_clock;

/// `Arrays` is whatever must live as long as the couplings that view it.
template <Couplings C, class Arrays>
class Held final : public BooleanQuadratic {
 public:
  Held(C couplings, Arrays arrays, double scale, std::optional<Vector<double>> b)
      : arrays_(std::move(arrays)),
        b_(std::move(b)),
        couplings_(std::move(couplings)),
        mixing_(couplings_, scale, b_ ? as_span(*b_) : std::span<const double>{}) {
    if (b_ && static_cast<offset_t>(b_->size()) != couplings_.size()) {
      throw std::invalid_argument("b must have one entry for each row of C");
    }
  }

  void start(offset_t rank, std::uint64_t seed) override {
    if (rank < 1) throw std::invalid_argument("rank must be positive");
    nb::gil_scoped_release unlocked;
    mixing_.start_at_random(rank, seed);
  }

  void start_from(const Matrix<double>& vectors) override {
    const auto n = static_cast<offset_t>(vectors.shape(0));
    if (n != mixing_.n_vertices() || vectors.shape(1) == 0) {
      throw std::invalid_argument("vectors must have one row for each vertex");
    }
    nb::gil_scoped_release unlocked;
    mixing_.start_from({vectors.data(), n, static_cast<offset_t>(vectors.shape(1))});
  }

  nb::dict sweep(int max_sweeps, double least_gain, double relaxation, std::uint64_t seed,
                 Monitor& monitor) override {
    require_start();
    std::vector<double> gains, seconds;
    {
      nb::gil_scoped_release unlocked;
      const auto start = Clock::now();
      Rng rng(seed);
      while (static_cast<int>(gains.size()) < max_sweeps && !monitor.stop_requested()) {
        gains.push_back(mixing_.sweep(relaxation, rng, monitor));
        seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
        ++monitor.n_done;
        if (gains.back() <= least_gain) break;
      }
    }
    nb::dict out;
    out["gain"] = to_numpy(std::move(gains));
    out["seconds"] = to_numpy(std::move(seconds));
    return out;
  }

  nb::tuple evaluate() override {
    require_start();
    std::vector<double> multipliers;
    double value = 0.0;
    {
      nb::gil_scoped_release unlocked;
      value = mixing_.evaluate(multipliers);
    }
    return nb::make_tuple(value, to_numpy(std::move(multipliers)));
  }

  nb::tuple round(offset_t n_blocks, int max_passes, std::uint64_t seed, int n_threads,
                  Monitor& monitor) override {
    require_start();
    std::vector<std::int8_t> signs;
    std::vector<double> values;
    const auto n = static_cast<std::size_t>(couplings_.size());
    {
      nb::gil_scoped_release unlocked;
      std::vector<std::vector<RoundedSigns>> blocks(static_cast<std::size_t>(n_blocks));
      // A stopped solve must still have an answer: the first block, in which round() stops soon.
      parallel_for(n_blocks, n_threads, [&](offset_t block, int) {
        if (block > 0 && monitor.stop_requested()) return;
        blocks[at(block)] = mixing_.round(seed, block, max_passes, monitor);
      });
      for (const auto& block : blocks) {
        for (const auto& rounded : block) {
          signs.insert(signs.end(), rounded.y.begin(), rounded.y.end());
          values.push_back(rounded.value);
        }
      }
    }
    const std::size_t n_found = values.size();
    return nb::make_tuple(to_numpy(std::move(signs), n_found, n), to_numpy(std::move(values)));
  }

  NumpyMatrix<double> vectors() const override {
    const Panel& V = mixing_.vectors();
    const auto* begin = reinterpret_cast<const double*>(V.data());
    const auto n = static_cast<std::size_t>(V.n_rows());
    const auto rank = static_cast<std::size_t>(mixing_.rank());
    return to_numpy(std::vector<double>(begin, begin + n * rank), n, rank);
  }

 private:
  void require_start() const {
    if (mixing_.rank() == 0) throw std::logic_error("start or start_from must come first");
  }

  Arrays arrays_;
  std::optional<Vector<double>> b_;
  C couplings_;
  Mixing<C> mixing_;
};

template <Couplings C, class Arrays>
std::unique_ptr<BooleanQuadratic> hold(C couplings, Arrays arrays, double scale,
                                       std::optional<Vector<double>> b) {
  return std::make_unique<Held<C, Arrays>>(std::move(couplings), std::move(arrays), scale,
                                           std::move(b));
}

DenseView<const double> view(const Matrix<double>& A) {
  return {A.data(), static_cast<offset_t>(A.shape(0)), static_cast<offset_t>(A.shape(1))};
}

struct CompressedArrays {
  Vector<index_t> indptr, indices;
  Vector<double> values, diagonal;
};

}  // namespace

void bind_latent(nb::module_& m) {
  nb::class_<BooleanQuadratic>(m, "BooleanQuadratic",
                               "scale * y'Cy + 2 b'y over signs; see solvers/quadratic/mixing.hpp.")
      .def("start", &BooleanQuadratic::start, "rank"_a, "seed"_a)
      .def("start_from", &BooleanQuadratic::start_from, "vectors"_a.noconvert())
      .def("sweep", &BooleanQuadratic::sweep, "max_sweeps"_a, "least_gain"_a, "relaxation"_a,
           "seed"_a, "monitor"_a)
      .def("evaluate", &BooleanQuadratic::evaluate)
      .def("round", &BooleanQuadratic::round, "n_blocks"_a, "max_passes"_a, "seed"_a, "n_threads"_a,
           "monitor"_a)
      .def("vectors", &BooleanQuadratic::vectors);
  m.def(
      "dense_boolean_quadratic",
      [](Matrix<double> C, double scale, std::optional<Vector<double>> b) {
        if (C.shape(0) != C.shape(1)) throw std::invalid_argument("C must be square");
        const DenseCouplings couplings{view(C)};
        return hold(couplings, std::move(C), scale, std::move(b));
      },
      "C"_a.noconvert(), "scale"_a, "b"_a.noconvert().none());
  m.def(
      "sparse_boolean_quadratic",
      [](Vector<index_t> indptr, Vector<index_t> indices, Vector<double> values,
         Vector<double> diagonal, double scale, std::optional<Vector<double>> b) {
        const auto n = static_cast<offset_t>(diagonal.size());
        const SparseCouplings couplings{
            compressed_view<CsrView, double, index_t>(indptr, indices, values, n),
            as_span(diagonal)};
        if (couplings.size() != n) throw std::invalid_argument("C must be square");
        return hold(couplings, CompressedArrays{indptr, indices, values, diagonal}, scale,
                    std::move(b));
      },
      "indptr"_a.noconvert(), "indices"_a.noconvert(), "values"_a.noconvert(),
      "diagonal"_a.noconvert(), "scale"_a, "b"_a.noconvert().none());
  m.def(
      "factored_boolean_quadratic",
      [](Matrix<double> A, double scale, std::optional<Vector<double>> b) {
        FactoredCouplings couplings(view(A));
        return hold(std::move(couplings), std::move(A), scale, std::move(b));
      },
      "A"_a.noconvert(), "scale"_a, "b"_a.noconvert().none());
}

}  // namespace sublearn::bindings
