"""Layers that keep only the weights that are not 0; they predict, on a CPU, and do not train."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from sublearn import _core
from sublearn.errors import ParameterError
from sublearn.validation.values import show

__all__ = ["SparseConv", "SparseEmbedding", "SparseLinear", "SparseStack"]

_Layer = TypeVar("_Layer", bound="_SparseLayer")
_DTYPES = ("float16", "bfloat16", "float32", "float64")
_MAX_INDEX = 2**31 - 1  # of the core
#: What a sparse layer holds; only the bias may be missing.
_BUFFERS = {"indptr": "int32", "indices": "int32", "values": "floats", "bias": "floats"}


class _SparseLayer(nn.Module):
    """CSR weights, one row for each output, as buffers: they are saved but not trained."""

    dtype_name = "float32"  # of the dense layer; products are in float32

    def __init__(self, weight: Tensor, bias: Tensor | None):
        super().__init__()
        flat = weight.detach().float().cpu().reshape(weight.shape[0], -1)
        rows, columns = flat.nonzero(as_tuple=True)
        counts = torch.bincount(rows, minlength=len(flat))
        zero = torch.zeros(1, dtype=torch.int64)
        self.n_columns = flat.shape[1]
        self.dtype_name = str(weight.dtype).removeprefix("torch.")
        self.register_buffer("indptr", torch.cat([zero, counts.cumsum(0)]).int())
        self.register_buffer("indices", columns.int())
        self.register_buffer("values", flat[rows, columns])
        self.register_buffer("bias", None if bias is None else bias.detach().float().cpu().clone())
        self.n_threads = 1

    _saved: tuple[str, ...] = ("n_columns", "dtype_name")

    def _settings(self) -> dict[str, object]:
        """What makes the layer again, with its buffers."""
        found = {name: getattr(self, name) for name in self._saved}
        return {name: list(v) if isinstance(v, tuple) else v for name, v in found.items()}

    @classmethod
    def _restore(
        cls: type[_Layer], settings: Mapping[str, object], tensors: Mapping[str, Tensor]
    ) -> _Layer:
        """A layer from its settings and buffers; raises ValueError for what does not fit."""
        if set(settings) != set(cls._saved):
            raise ValueError(f"settings must be {', '.join(cls._saved)}, got {show([*settings])}")
        if set(tensors) | {"bias"} != set(_BUFFERS):
            raise ValueError(f"arrays must be {', '.join(_BUFFERS)}, got {show([*tensors])}")
        layer = cls.__new__(cls)
        nn.Module.__init__(layer)
        for name in _BUFFERS:
            layer.register_buffer(name, tensors.get(name))
        layer.n_threads = 1
        for name, value in settings.items():
            setattr(layer, name, tuple(value) if isinstance(value, list) else value)
        layer._check()
        return layer

    def _check(self) -> None:
        """Raise ValueError unless settings and buffers make a layer."""
        _refuse_unless_whole("n_columns", self.n_columns, 1)
        if not (isinstance(self.dtype_name, str) and self.dtype_name in _DTYPES):
            raise ValueError(f"dtype_name must be one of {_DTYPES}, got {show(self.dtype_name)}")
        for name, kind in _BUFFERS.items():
            _refuse_unless_vector(name, getattr(self, name), kind)
        if self.bias is not None and len(self.bias) != self.n_outputs:
            raise ValueError(f"bias must have {self.n_outputs} entries, got {len(self.bias)}")
        if not len(self.indptr) > 1 or self.indptr[0] != 0 or bool((self.indptr.diff() < 0).any()):
            raise ValueError("indptr must start at 0, not decrease, have an entry more than rows")
        n_indices, n_values, end = len(self.indices), len(self.values), int(self.indptr[-1])
        if not end == n_indices == n_values:
            raise ValueError(
                f"indptr must end at the {n_indices} indices of {n_values} values, got {end}"
            )
        if bool(((self.indices < 0) | (self.indices >= self.n_columns)).any()):
            raise ValueError(f"indices must be columns below {self.n_columns}, got others")

    @property
    def n_weights(self) -> int:
        """Weights that are kept."""
        return len(self.values)

    @property
    def n_outputs(self) -> int:
        """Rows of the weights."""
        return len(self.indptr) - 1

    def dense_weight(self) -> Tensor:
        """The weights as a matrix with a row for each output."""
        dense = self.values.new_zeros(self.n_outputs, self.n_columns)
        rows = torch.repeat_interleave(torch.arange(self.n_outputs), self.indptr.diff().long())
        dense[rows, self.indices.long()] = self.values
        return dense

    @property
    def weight(self) -> Tensor:
        """The dense layer's weight, for networks that read it beside the layer."""
        return self.dense_weight().to(getattr(torch, self.dtype_name))

    def _rows(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return self.indptr.numpy(), self.indices.numpy(), self.values.float().numpy()

    def _bias(self) -> np.ndarray | None:
        return None if self.bias is None else self.bias.float().numpy()

    def extra_repr(self) -> str:
        return f"{self.n_weights:,} of {self.n_outputs:,} x {self.n_columns:,} weights"


class _Chained:
    """A compiled chain that is made when it is first called, and not copied or pickled."""

    _chain: _core.SparseChain | None = None
    n_threads: int

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in self.__dict__.items() if name != "_chain"}

    def _links(self) -> list[tuple[SparseLinear, bool]]:
        raise NotImplementedError

    def forward(self, input: Tensor) -> Tensor:
        """The output for samples along all axes but the last."""
        if self._chain is None:
            chain = _core.SparseChain()
            for layer, is_relu in self._links():
                chain.add(*layer._rows(), layer.n_columns, layer._bias(), is_relu)
            self._chain = chain
        rows = _as_input(input)
        rows = rows if rows.ndim == 2 else rows.reshape(-1, rows.shape[-1])
        out = torch.empty(rows.shape[0], self._chain.n_outputs)
        self._chain(rows.numpy(), out.numpy(), self.n_threads)
        if input.ndim != 2:
            out = out.view(*input.shape[:-1], self._chain.n_outputs)
        return out if input.dtype is torch.float32 else out.to(input.dtype)


class SparseLinear(_Chained, _SparseLayer):
    """A fully connected layer of few weights."""

    @staticmethod
    def of(layer: nn.Linear) -> SparseLinear:
        """From a dense layer."""
        return SparseLinear(layer.weight, layer.bias)

    @property
    def in_features(self) -> int:
        """As in the dense layer, for networks that ask for it."""
        return self.n_columns

    @property
    def out_features(self) -> int:
        """As in the dense layer."""
        return self.n_outputs

    def _links(self) -> list[tuple[SparseLinear, bool]]:
        return [(self, False)]


class SparseStack(_Chained, nn.Module):
    """Fully connected layers and rectifiers between them, run by one compiled call."""

    def __init__(self, layers: Sequence[SparseLinear], is_relu: Sequence[bool]):
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.is_relu = list(is_relu)
        self.n_threads = 1

    @staticmethod
    def _restore(layers: Sequence[SparseLinear], is_relu: object) -> SparseStack:
        """A stack from its parts; raises ValueError for what does not fit."""
        if not isinstance(is_relu, list) or [*map(type, is_relu)] != [bool] * len(layers):
            raise ValueError(f"is_relu must be True or False for each layer, got {show(is_relu)}")
        for first, second in pairwise(layers):
            if first.n_outputs != second.n_columns:
                raise ValueError(
                    f"n_columns must be the {first.n_outputs} outputs of the layer before, got "
                    f"{second.n_columns}"
                )
        return SparseStack(layers, is_relu)

    def _links(self) -> list[tuple[SparseLinear, bool]]:
        return list(zip(self.layers, self.is_relu, strict=True))


class SparseConv(_SparseLayer):
    """A convolution of few weights over one, two or three axes, computed without im2col."""

    _saved = (
        "n_columns", "dtype_name", "kernel", "n_axes", "stride", "padding", "dilation", "groups",
        "n_inputs",
    )  # fmt: skip

    def __init__(
        self,
        weight: Tensor,
        bias: Tensor | None,
        *,
        stride: Sequence[int],
        padding: Sequence[int],
        dilation: Sequence[int],
        groups: int,
    ):
        super().__init__(weight, bias)
        self.kernel = tuple(weight.shape[2:])
        self.n_axes = len(self.kernel)
        self.stride, self.padding, self.dilation = tuple(stride), tuple(padding), tuple(dilation)
        self.groups = groups
        self.n_inputs = weight.shape[1] * groups

    def _check(self) -> None:
        super()._check()
        _refuse_unless_whole("n_axes", self.n_axes, 1, 3)
        for name, low in (("kernel", 1), ("stride", 1), ("padding", 0), ("dilation", 1)):
            value = getattr(self, name)
            if not isinstance(value, tuple) or len(value) != self.n_axes:
                raise ValueError(f"{name} must have {self.n_axes} entries, got {show(value)}")
            for item in value:
                _refuse_unless_whole(name, item, low)
        for name in ("groups", "n_inputs"):
            _refuse_unless_whole(name, getattr(self, name), 1)
        if self.n_inputs % self.groups or self.n_outputs % self.groups:
            raise ValueError(
                f"groups must divide {self.n_inputs} inputs and {self.n_outputs} outputs, got "
                f"{self.groups}"
            )
        n_columns = self.n_inputs // self.groups * math.prod(self.kernel)
        if self.n_columns != n_columns:
            raise ValueError(
                f"n_columns must be the {n_columns} of channels and kernel, got {self.n_columns}"
            )

    @staticmethod
    def knows(layer: nn.Conv1d | nn.Conv2d | nn.Conv3d) -> bool:
        """Whether the layer pads with zeros, as many on one side as on the other."""
        return _padding(layer) is not None

    @staticmethod
    def of(layer: nn.Conv1d | nn.Conv2d | nn.Conv3d) -> SparseConv:
        """From a dense layer."""
        padding = _padding(layer)
        if padding is None:
            raise ParameterError(
                "SparseConv.layer must pad with as many zeros on one side as on the other, got "
                f"{layer}"
            )
        return SparseConv(
            layer.weight, layer.bias, stride=layer.stride, padding=padding,
            dilation=layer.dilation, groups=layer.groups,
        )  # fmt: skip

    @property
    def weight(self) -> Tensor:
        """The dense layer's weight."""
        return super().weight.view(self.n_outputs, -1, *self.kernel)

    def forward(self, input: Tensor) -> Tensor:
        """The layer's output for samples of shape (n, channels, ...), or one without the n."""
        x = input
        if x.ndim == self.n_axes + 1:
            return self(x.unsqueeze(0)).squeeze(0)
        if x.ndim != self.n_axes + 2 or x.shape[1] != self.n_inputs:
            raise ValueError(
                f"SparseConv: x must have shape (n, {self.n_inputs}) and {self.n_axes} further "
                f"axes, got {tuple(x.shape)}"
            )
        lengths = [self._length(axis, length) for axis, length in enumerate(x.shape[2:])]
        shape, out = self._shape(x.shape[2:]), torch.empty(len(x), self.n_outputs, *lengths)
        flat_x, flat_out = (part.numpy().reshape(-1) for part in (_as_input(x), out))
        rows, bias = self._rows(), self._bias()
        _core.sparse_convolution(*rows, bias, shape, flat_x, flat_out, self.n_threads)
        return out.to(x.dtype)

    def _length(self, axis: int, length: int) -> int:
        """Length of the output along an axis."""
        reach = self.dilation[axis] * (self.kernel[axis] - 1) + 1
        padded = length + 2 * self.padding[axis]
        if not reach <= padded <= _MAX_INDEX:
            raise ValueError(
                f"SparseConv: x must have a padded length from {reach} to {_MAX_INDEX} along axis "
                f"{axis + 2}, got {padded}"
            )
        return (padded - reach) // self.stride[axis] + 1

    def _shape(self, lengths: Sequence[int]) -> _core.ConvolutionShape:
        """Of three axes, the first of which may be of length 1."""
        ones, zeros = (1,) * (3 - self.n_axes), (0,) * (3 - self.n_axes)
        shape = _core.ConvolutionShape()
        shape.n_inputs, shape.n_groups = self.n_inputs, self.groups
        shape.input, shape.kernel = (*ones, *lengths), (*ones, *self.kernel)
        shape.stride, shape.dilation = (*ones, *self.stride), (*ones, *self.dilation)
        shape.padding = (*zeros, *self.padding)
        return shape


class SparseEmbedding(_SparseLayer):
    """A table of vectors with few entries."""

    def __init__(self, weight: Tensor):
        super().__init__(weight, None)

    @staticmethod
    def of(layer: nn.Embedding) -> SparseEmbedding:
        """From a dense table."""
        return SparseEmbedding(layer.weight)

    def forward(self, input: Tensor) -> Tensor:
        """The vectors of the ids."""
        if input.is_floating_point():
            raise ValueError(f"SparseEmbedding: ids must be integers, got {input.dtype}")
        out = torch.empty(input.numel(), self.n_columns)
        ids = input.reshape(-1).to(torch.int64).contiguous()
        _core.sparse_embedding(*self._rows(), ids.numpy(), out.numpy())
        return out.view(*input.shape, self.n_columns).to(getattr(torch, self.dtype_name))


def _as_input(x: Tensor) -> Tensor:
    # Each of these costs a microsecond even where it changes nothing.
    if x.dtype is torch.float32 and not x.requires_grad and x.is_cpu and x.is_contiguous():
        return x
    if not x.is_cpu:
        raise ValueError(f"sparse layers compute on the CPU, got a tensor on {x.device}")
    if not x.is_floating_point():
        raise ValueError(f"sparse layers: x must be a tensor of floats, got {x.dtype}")
    return x.detach().float().contiguous()


def _padding(layer: nn.Conv1d | nn.Conv2d | nn.Conv3d) -> tuple[int, ...] | None:
    """Zeros on each side along each axis; None where the sides differ, or zeros are not padded."""
    if layer.padding_mode != "zeros":
        return None
    if layer.padding != "same":
        return (0,) * len(layer.kernel_size) if layer.padding == "valid" else tuple(layer.padding)
    reach = [d * (k - 1) for d, k in zip(layer.dilation, layer.kernel_size, strict=True)]
    return None if any(total % 2 for total in reach) else tuple(total // 2 for total in reach)


def _refuse_unless_whole(name: str, value: object, low: int, high: int = _MAX_INDEX) -> None:
    if type(value) is not int or not low <= value <= high:
        raise ValueError(f"{name} must be an integer from {low} to {high}, got {show(value)}")


def _refuse_unless_vector(name: str, value: Tensor | None, kind: str) -> None:
    if value is None:
        return
    is_right = value.is_floating_point() if kind == "floats" else value.dtype is torch.int32
    if value.ndim != 1 or not is_right:
        shape = tuple(value.shape)
        raise ValueError(f"{name} must be a vector of {kind}, got {value.dtype} of shape {shape}")
