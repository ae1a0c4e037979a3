// Python face of the layers of trimmed networks.
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "refuse.hpp"
#include "sublearn/core/sparse_layers.hpp"

namespace sublearn::bindings {
namespace {

using Bias = std::optional<Vector<float>>;

SparseLayer layer_view(const Vector<index_t>& indptr, const Vector<index_t>& indices,
                       const Vector<float>& values, offset_t n_columns, const Bias& bias) {
  SparseLayer layer;
  layer.weights = compressed_view<CsrView, float, index_t>(indptr, indices, values, n_columns);
  if (bias) layer.bias = as_span<float>(*bias);
  if (bias && bias->size() != static_cast<std::size_t>(layer.n_outputs())) {
    refuse("bias", "have " + std::to_string(layer.n_outputs()) + " entries",
           std::to_string(bias->size()));
  }
  return layer;
}

template <class T>
std::vector<T> copy(std::span<const T> values) {
  return {values.begin(), values.end()};
}

void add_link(SparseChain& chain, Vector<index_t> indptr, Vector<index_t> indices,
              Vector<float> values, offset_t n_inputs, const Bias& bias, bool is_relu) {
  layer_view(indptr, indices, values, n_inputs, bias);  // refuses what does not fit
  if (chain.n_outputs() != 0 && chain.n_outputs() != n_inputs) {
    refuse("n_inputs", "be " + std::to_string(chain.n_outputs()), std::to_string(n_inputs));
  }
  SparseChain::Link link;
  link.indptr = copy(as_span<index_t>(indptr));
  link.indices = copy(as_span<index_t>(indices));
  link.values = copy(as_span<float>(values));
  if (bias) link.bias = copy(as_span<float>(*bias));
  link.n_inputs = n_inputs;
  link.is_relu = is_relu;
  chain.add(std::move(link));
}

void run_chain(const SparseChain& chain, Matrix<float> x, MutableMatrix<float> out, int n_threads) {
  if (x.shape(1) != static_cast<std::size_t>(chain.n_inputs())) {
    refuse("x", "have " + std::to_string(chain.n_inputs()) + " columns",
           std::to_string(x.shape(1)));
  }
  if (out.shape(0) != x.shape(0) || out.shape(1) != static_cast<std::size_t>(chain.n_outputs())) {
    throw std::invalid_argument("out must have a row for each row of x, a column for each output");
  }
  nb::gil_scoped_release unlocked;
  chain.run(x.data(), out.data(), static_cast<offset_t>(x.shape(0)), n_threads);
}

void check_shape(const SparseLayer& layer, const ConvolutionShape& shape) {
  for (int axis = 0; axis < 3; ++axis) {
    if (shape.kernel[axis] < 1 || shape.stride[axis] < 1 || shape.dilation[axis] < 1 ||
        shape.padding[axis] < 0 || shape.output(axis) < 1) {
      throw std::invalid_argument("shape must leave at least one output along each axis");
    }
  }
  if (shape.n_groups < 1 || shape.n_inputs % shape.n_groups != 0 ||
      layer.n_outputs() % shape.n_groups != 0) {
    throw std::invalid_argument("shape.n_groups must divide the numbers of channels");
  }
}

void convolution(Vector<index_t> indptr, Vector<index_t> indices, Vector<float> values,
                 const Bias& bias, const ConvolutionShape& shape, Vector<float> x,
                 MutableVector<float> out, int n_threads) {
  const offset_t n_columns = offset_t{shape.n_inputs} / std::max<index_t>(shape.n_groups, 1) *
                             shape.kernel[0] * shape.kernel[1] * shape.kernel[2];
  const SparseLayer layer = layer_view(indptr, indices, values, n_columns, bias);
  check_shape(layer, shape);
  const auto in_size = static_cast<std::size_t>(shape.n_inputs * shape.input_size());
  const auto out_size = static_cast<std::size_t>(layer.n_outputs() * shape.output_size());
  if (in_size == 0 || x.size() % in_size != 0 || out.size() != x.size() / in_size * out_size) {
    throw std::invalid_argument("x and out must hold the samples that shape says");
  }
  const auto n_samples = static_cast<offset_t>(x.size() / in_size);
  nb::gil_scoped_release unlocked;
  sparse_convolution(layer, shape, x.data(), out.data(), n_samples, n_threads);
}

void embedding(Vector<index_t> indptr, Vector<index_t> indices, Vector<float> values,
               Vector<std::int64_t> ids, MutableMatrix<float> out) {
  const auto table = compressed_view<CsrView, float, index_t>(indptr, indices, values,
                                                              static_cast<offset_t>(out.shape(1)));
  if (out.shape(0) != ids.size()) throw std::invalid_argument("out must have a row for each id");
  check_ids("ids", as_span<std::int64_t>(ids), table.n_rows());
  nb::gil_scoped_release unlocked;
  sparse_embedding(table, as_span<std::int64_t>(ids), out.data());
}

}  // namespace

void bind_trim(nb::module_& m) {
  nb::class_<SparseChain>(m, "SparseChain",
                          "Sparse fully connected layers, one after the other, as one call.")
      .def(nb::init<>())
      .def("add", &add_link, "indptr"_a, "indices"_a, "values"_a, "n_inputs"_a,
           "bias"_a.none() = nb::none(), "is_relu"_a = false, "Append a layer.")
      .def("__call__", &run_chain, "x"_a, "out"_a, "n_threads"_a = 1,
           "Rows of x through all layers into rows of out.")
      .def_prop_ro("n_inputs", &SparseChain::n_inputs)
      .def_prop_ro("n_outputs", &SparseChain::n_outputs);

  nb::class_<ConvolutionShape>(m, "ConvolutionShape",
                               "Channels, groups and lengths along three axes of a convolution.")
      .def(nb::init<>())
      .def_rw("n_inputs", &ConvolutionShape::n_inputs)
      .def_rw("n_groups", &ConvolutionShape::n_groups)
      .def_rw("input", &ConvolutionShape::input)
      .def_rw("kernel", &ConvolutionShape::kernel)
      .def_rw("stride", &ConvolutionShape::stride)
      .def_rw("padding", &ConvolutionShape::padding)
      .def_rw("dilation", &ConvolutionShape::dilation);

  m.def("sparse_convolution", &convolution, "indptr"_a, "indices"_a, "values"_a, "bias"_a.none(),
        "shape"_a, "x"_a, "out"_a, "n_threads"_a = 1,
        "Convolution of flat samples x into out by a sparse kernel.");
  m.def("sparse_embedding", &embedding, "indptr"_a, "indices"_a, "values"_a, "ids"_a, "out"_a,
        "Rows of a sparse table as dense rows of out.");
}

}  // namespace sublearn::bindings
