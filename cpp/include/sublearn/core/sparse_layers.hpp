// Layers of a trimmed network: what a weight that is not 0 does to a batch of samples.
//
// Inputs and outputs are dense, contiguous and row-major as PyTorch keeps them; weights are the
// rows of a CSR matrix, one row for each output. A sample costs one multiplication for each weight
// that is left (for each position too in a convolution), whatever the size of the dense layer.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "sublearn/core/parallel_for.hpp"
#include "sublearn/core/types.hpp"
#include "sublearn/core/views.hpp"

namespace sublearn {

/// Weights, one row for each output, and biases of one layer. An empty bias is 0.
struct SparseLayer {
  CsrView<float, index_t> weights;
  std::span<const float> bias;

  offset_t n_outputs() const { return weights.n_rows(); }
  float bias_of(offset_t output) const { return bias.empty() ? 0.0F : bias[output]; }
};

/// y = W x + b of one sample, cut off at 0 if `is_relu`.
inline void sparse_linear(const SparseLayer& layer, const float* x, float* y, bool is_relu) {
  for (offset_t output = 0; output < layer.n_outputs(); ++output) {
    const SparseVector<float, index_t> row = layer.weights.row(output);
    float sum = layer.bias_of(output);
    for (std::size_t p = 0; p < row.size(); ++p) sum += row.values[p] * x[row.ids[p]];
    y[output] = is_relu ? std::max(sum, 0.0F) : sum;
  }
}

/// Rows `ids` of a sparse table as dense rows of `y`.
inline void sparse_embedding(const CsrView<float, index_t>& table,
                             std::span<const std::int64_t> ids, float* y) {
  std::fill_n(y, static_cast<offset_t>(ids.size()) * table.n_cols(), 0.0F);
  for (const std::int64_t id : ids) {
    const SparseVector<float, index_t> row = table.row(id);
    for (std::size_t p = 0; p < row.size(); ++p) y[row.ids[p]] = row.values[p];
    y += table.n_cols();
  }
}

/// Fully connected layers one after the other; the values between them never leave the cache.
class SparseChain {
 public:
  /// A layer that owns its arrays.
  struct Link {
    std::vector<index_t> indptr;
    std::vector<index_t> indices;
    std::vector<float> values;
    std::vector<float> bias;
    offset_t n_inputs = 0;
    bool is_relu = false;

    offset_t n_outputs() const { return static_cast<offset_t>(indptr.size()) - 1; }
    SparseLayer view() const {
      SparseLayer layer;
      layer.weights.indptr = indptr.data();
      layer.weights.indices = indices.data();
      layer.weights.values = values.data();
      layer.weights.n_major = n_outputs();
      layer.weights.n_minor = n_inputs;
      layer.bias = bias;
      return layer;
    }
  };

  void add(Link link) { links_.push_back(std::move(link)); }
  offset_t n_inputs() const { return links_.empty() ? 0 : links_.front().n_inputs; }
  offset_t n_outputs() const { return links_.empty() ? 0 : links_.back().n_outputs(); }

  /// Rows of `x` to rows of `y`.
  void run(const float* x, float* y, offset_t n_rows, int n_threads) const {
    const offset_t n_blocks = (n_rows + kRowsPerBlock - 1) / kRowsPerBlock;
    parallel_for(n_blocks, n_threads, [&](offset_t block, int) {
      std::vector<float> here(widest()), next(widest());
      const offset_t end = std::min(n_rows, (block + 1) * kRowsPerBlock);
      for (offset_t row = block * kRowsPerBlock; row < end; ++row)
        run_row(x + row * n_inputs(), y + row * n_outputs(), here, next);
    });
  }

 private:
  static constexpr offset_t kRowsPerBlock = 64;

  std::size_t widest() const {
    offset_t width = 0;
    for (const Link& link : links_) width = std::max(width, link.n_outputs());
    return static_cast<std::size_t>(width);
  }

  void run_row(const float* x, float* y, std::vector<float>& here, std::vector<float>& next) const {
    for (const Link& link : links_) {
      const bool is_first = &link == &links_.front(), is_last = &link == &links_.back();
      sparse_linear(link.view(), is_first ? x : here.data(), is_last ? y : next.data(),
                    link.is_relu);
      here.swap(next);
    }
  }

  std::vector<Link> links_;
};

/// Shape of a convolution over up to three axes; fewer are padded in front with axes of length 1.
struct ConvolutionShape {
  index_t n_inputs = 0;  ///< channels
  index_t n_groups = 1;
  std::array<index_t, 3> input{1, 1, 1};
  std::array<index_t, 3> kernel{1, 1, 1};
  std::array<index_t, 3> stride{1, 1, 1};
  std::array<index_t, 3> padding{0, 0, 0};
  std::array<index_t, 3> dilation{1, 1, 1};

  index_t output(int axis) const {
    const index_t reach = dilation[axis] * (kernel[axis] - 1) + 1;
    return (input[axis] + 2 * padding[axis] - reach) / stride[axis] + 1;
  }
  offset_t input_size() const { return offset_t{input[0]} * input[1] * input[2]; }
  offset_t output_size() const { return offset_t{output(0)} * output(1) * output(2); }
};

namespace detail {

/// Output positions [begin, end) along one axis whose input for kernel position `k` is not padding.
struct Reach {
  index_t begin;
  index_t end;
  index_t shift;  ///< input position of output position o is o * stride + shift

  Reach(const ConvolutionShape& shape, int axis, index_t k) {
    const index_t stride = shape.stride[axis];
    shift = k * shape.dilation[axis] - shape.padding[axis];
    begin = shift >= 0 ? 0 : (-shift + stride - 1) / stride;
    const index_t last = shape.input[axis] - 1 - shift;
    end = last < 0 ? 0 : std::min(shape.output(axis), last / stride + 1);
    begin = std::min(begin, end);
  }
};

/// Adds `weight` times a shifted input channel to an output channel.
inline void add_shifted(const ConvolutionShape& shape, index_t position, float weight,
                        const float* in, float* out) {
  const index_t k2 = position % shape.kernel[2], rest = position / shape.kernel[2];
  const Reach r0(shape, 0, rest / shape.kernel[1]), r1(shape, 1, rest % shape.kernel[1]);
  const Reach r2(shape, 2, k2);
  const index_t stride = shape.stride[2];
  for (index_t a = r0.begin; a < r0.end; ++a) {
    for (index_t b = r1.begin; b < r1.end; ++b) {
      const offset_t in_line = offset_t{a * shape.stride[0] + r0.shift} * shape.input[1] +
                               (b * shape.stride[1] + r1.shift);
      const float* from = in + in_line * shape.input[2] + r2.shift;
      float* to = out + (offset_t{a} * shape.output(1) + b) * shape.output(2);
      if (stride == 1) {
        for (index_t c = r2.begin; c < r2.end; ++c) to[c] += weight * from[c];
      } else {
        for (index_t c = r2.begin; c < r2.end; ++c) to[c] += weight * from[c * stride];
      }
    }
  }
}

}  // namespace detail

/// Convolution of a batch: each weight that is left adds one shifted channel to another. Columns of
/// the weights count (channel in the group, kernel position), as PyTorch flattens them.
inline void sparse_convolution(const SparseLayer& layer, const ConvolutionShape& shape,
                               const float* x, float* y, offset_t n_samples, int n_threads) {
  const offset_t n_outputs = layer.n_outputs();
  const index_t n_positions = shape.kernel[0] * shape.kernel[1] * shape.kernel[2];
  const offset_t inputs_per_group = shape.n_inputs / shape.n_groups;
  const offset_t outputs_per_group = n_outputs / shape.n_groups;
  parallel_for(n_samples, n_threads, [&](offset_t sample, int) {
    const float* in = x + sample * shape.n_inputs * shape.input_size();
    float* out = y + sample * n_outputs * shape.output_size();
    for (offset_t o = 0; o < n_outputs; ++o, out += shape.output_size()) {
      std::fill_n(out, shape.output_size(), layer.bias_of(o));
      const offset_t first = o / outputs_per_group * inputs_per_group;
      const SparseVector<float, index_t> row = layer.weights.row(o);
      for (std::size_t p = 0; p < row.size(); ++p) {
        const offset_t channel = first + row.ids[p] / n_positions;
        detail::add_shifted(shape, row.ids[p] % n_positions, row.values[p],
                            in + channel * shape.input_size(), out);
      }
    }
  });
}

}  // namespace sublearn
