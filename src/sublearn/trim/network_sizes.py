"""How many numbers a step may make at most, told from the shapes of what goes in.

A step that has no rule here makes no more numbers than its tensors have together. Rules are upper
bounds, and close ones for what networks do. PyTorch's own device *meta* knows all shapes exactly,
but to use it takes seconds of imports.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import zip_longest
from typing import Any

import torch
from torch import Tensor, nn

from sublearn.trim.network_ops import FUNCTIONS, METHODS, named_lines
from sublearn.trim.sparse_layers import SparseConv, SparseEmbedding, SparseLinear, SparseStack

__all__ = ["most_of_call", "most_of_layer", "tensors_in"]

_MAX_PIECES = 65_536  # of a tensor that is taken apart
#: An argument of the call by its name, whatever that is; None where it is left out.
Get = Callable[[str], Any]


def tensors_in(value: object) -> list[Tensor]:
    """All tensors of nested values, as often as they are there."""
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, (tuple, list)):
        return []
    return [tensor for item in value for tensor in tensors_in(item)]


def most_of_call(op: str, target: str, given: Sequence[object], named: Mapping[str, object]) -> int:
    """Most numbers that a function or method makes; raises ValueError for sizes that are no ints.

    Sizes from the values of tensors are refused: then shapes would not follow from shapes.
    """
    name = target.rpartition(":")[2]
    parameters = (METHODS if op == "call_method" else FUNCTIONS)[target].parameters
    names = [key for key in parameters if key != "*"]
    values = dict(zip(names, given, strict=False)) | dict(named)
    rest: Sequence[object] = ()
    if name in ("einsum", "meshgrid"):  # tensors one by one
        values, rest = {names[0]: given[0], **named}, given[1:]
    elif "*" in parameters and name != "to":  # sizes one by one
        values[names[1]] = _flat([values.get(names[1]), *given[2:]])
    for key, value in values.items():
        is_other = key == "dim" and name in ("max", "min")
        if key not in _TENSORS and not is_other and tensors_in(value):
            raise ValueError(f"{key} must be a number or numbers, got a tensor")
    _refuse_pieces(name, values)
    if name == "where" and "input" not in values:
        raise ValueError("where must have input and other, got a condition alone")
    rule = _RULES.get(f"{op}:{name}") or _RULES.get(name)
    if rule is None:
        return _sum(tensors_in([*values.values(), *rest]))
    values["*"] = list(rest)
    return rule(values.get)


def most_of_layer(part: nn.Module, given: Sequence[object], named: Mapping[str, object]) -> int:
    """Most numbers that a layer makes."""
    tensors = tensors_in([*given, named])
    for kinds, most in _LAYERS.items():
        if tensors and isinstance(part, kinds):
            return most(part, tensors)
    rule = _RULES.get(_FUNCTION_OF.get(type(part).__name__, ""))
    if rule is None or not tensors:
        return _sum(tensors)
    own = {"input": tensors[0], "x1": tensors[0], "x2": tensors[-1]}
    return rule(lambda key: own.get(key, getattr(part, key, None)))


# --- rules ---------------------------------------------------------------------------------------


def _sum(tensors: Sequence[Tensor]) -> int:
    return sum(tensor.numel() for tensor in tensors)


def _flat(values: Sequence[object]) -> list[object]:
    """Sizes that may come one by one or as a tuple."""
    return [
        item for part in values for item in (part if isinstance(part, (tuple, list)) else [part])
    ]


def _ints(value: Any, n: int | None = None) -> list[int]:
    """Sizes, one for each of `n` axes; None is no size."""
    values = list(value) if isinstance(value, (tuple, list)) else [value] * (n or 1)
    if not all(type(item) is int for item in values) or (n is not None and len(values) != n):
        raise ValueError(f"sizes must be integers, one for each axis, got {values}")
    return values


def _together(shapes: Sequence[Sequence[int]]) -> list[int]:
    """The shape of tensors of these shapes that are combined one by one."""
    backwards = zip_longest(*(reversed(shape) for shape in shapes), fillvalue=1)
    return [max(sizes) if 0 not in sizes else 0 for sizes in backwards][::-1]


def _broadcast(get: Get) -> int:
    keys = ("input", "self", "a", "b", "other", "condition", "end", "weight", "tensor1", "tensor2",
            "mask", "value", "min", "max", "exponent", "x1", "x2", "indices", "dim")  # fmt: skip
    return math.prod(_together([v.shape for v in map(get, keys) if isinstance(v, Tensor)]))


def _product(left: Tensor, right: Tensor) -> int:
    rows = left.shape[-2] if left.ndim > 1 else 1
    columns = right.shape[-1] if right.ndim > 1 else 1
    return math.prod(_together([left.shape[:-2], right.shape[:-2]])) * rows * columns


def _matmul(get: Get) -> int:
    pairs = (("batch1", "batch2"), ("mat1", "mat2"), ("a", "b"))
    left, right = next(
        ((get(a), get(b)) for a, b in pairs if get(a) is not None),
        (_x(get), next((v for v in map(get, ("other", "mat2", "vec")) if v is not None), None)),
    )
    if not isinstance(left, Tensor) or not isinstance(right, Tensor):
        raise ValueError("factors must be tensors")
    extra = _x(get) if get("batch1") is not None or get("mat1") is not None else None
    return _product(left, right) + (extra.numel() if isinstance(extra, Tensor) else 0)


def _x(get: Get) -> Tensor:
    keys = ("input", "self", "a", "x1", "input1")
    return next((value for value in map(get, keys) if value is not None), None)


def _outer(get: Get) -> int:
    left, right = (t for key in ("input", "vec2", "x1", "x2") for t in tensors_in(get(key)))
    width = left.shape[-1] if get("x1") is not None else 1
    return left.numel() * right.numel() // max(width, 1) ** 2


def _meshgrid(get: Get) -> int:
    tensors = tensors_in([get("tensors"), get("*")])
    return len(tensors) * math.prod(tensor.numel() for tensor in tensors)


def _einsum(get: Get) -> int:
    tensors = tensors_in(get("*"))
    inputs, _, output = get("equation").replace(" ", "").partition("->")
    sizes: dict[str, int] = {}
    for term, tensor in zip(inputs.split(","), tensors, strict=True):
        before, dots, after = term.partition("...")
        n_dots = tensor.ndim - len(before) - len(after) if dots else 0
        labels = [*before, *(f"...{k}" for k in range(n_dots, 0, -1)), *after]
        for label, size in zip(labels, tensor.shape, strict=True):
            sizes[label] = max(size, sizes.get(label, 1))
    is_pair = len(tensors) <= 2 and "->" in get("equation")
    kept = [size for label, size in sizes.items() if label in output or label[0] == "."]
    return math.prod(kept if is_pair else sizes.values()) + _sum(tensors)


def _tensordot(get: Get) -> int:
    left, right, dims = get("a"), get("b"), get("dims")
    dims = 2 if dims is None else dims
    axes = dims[0] if isinstance(dims, (tuple, list)) else range(left.ndim - dims, left.ndim)
    axes = axes if isinstance(axes, (tuple, list, range)) else [axes]
    common = max(math.prod(left.shape[axis] for axis in axes), 1)
    return left.numel() * right.numel() // common**2


def _linear(get: Get) -> int:
    x = _x(get)
    return x.numel() // max(x.shape[-1], 1) * get("weight").shape[0]


def _lead(x: Tensor, n_axes: int) -> int:
    """Pictures, or those of all channels if `n_axes` counts the axes of a picture alone."""
    return math.prod(x.shape[: max(x.ndim - n_axes, 0)])


def _slid(get: Get, x: Tensor, n_axes: int, stride: object) -> int:
    """Positions of a window that slides over the last axes."""
    given = get("padding")
    padding = [0] * n_axes if given is None or isinstance(given, str) else _ints(given, n_axes)
    steps = _ints(1 if stride is None else stride, n_axes)
    lengths = x.shape[x.ndim - n_axes :]
    return math.prod(
        (n + 2 * p) // max(s, 1) + 1 for n, p, s in zip(lengths, padding, steps, strict=True)
    )


def _convolution(get: Get) -> int:
    x, weight = _x(get), get("weight")
    n_axes = weight.ndim - 2
    return _lead(x, n_axes + 1) * weight.shape[0] * _slid(get, x, n_axes, get("stride"))


def _transposed(get: Get) -> int:
    x, weight = _x(get), get("weight")
    n_axes, groups = weight.ndim - 2, get("groups")
    steps, dilation, more = (
        _ints(default if value is None else value, n_axes)
        for value, default in ((get("stride"), 1), (get("dilation"), 1), (get("output_padding"), 0))
    )
    lengths = x.shape[x.ndim - n_axes :]
    sizes = zip(lengths, steps, dilation, more, weight.shape[2:], strict=True)
    positions = math.prod(n * s + d * k + m for n, s, d, m, k in sizes)
    channels = weight.shape[1] * (1 if groups is None else groups)
    return _lead(x, n_axes + 1) * channels * positions


def _pool(n_axes: int, get: Get) -> int:
    x, stride = _x(get), get("stride")
    stride = get("kernel_size") if stride is None or stride == [] else stride
    return _lead(x, n_axes) * _slid(get, x, n_axes, stride)


def _adaptive(n_axes: int, get: Get) -> int:
    x, sizes = _x(get), get("output_size")
    sizes = list(sizes) if isinstance(sizes, (tuple, list)) else [sizes] * n_axes
    lengths = x.shape[x.ndim - n_axes :]
    found = [n if size is None else size for n, size in zip(lengths, sizes, strict=True)]
    return _lead(x, n_axes) * math.prod(_ints(found))


def _unfolded(get: Get) -> int:
    x, kernel = _x(get), math.prod(_ints(get("kernel_size"), 2))
    return _lead(x, 2) * kernel * _slid(get, x, 2, get("stride"))


def _folded(get: Get) -> int:
    x = _x(get)
    return _lead(x, 1) * math.prod(_ints(get("output_size"), 2)) + x.numel()


def _windows(get: Get) -> int:
    return _x(get).numel() * max(_ints(get("size"))[0], 1)


def _padded(get: Get) -> int:
    x = _x(get)
    pad = get("pad") if get("pad") is not None else get("padding")
    widths = _ints(pad) if isinstance(pad, (tuple, list)) else _ints(pad, 2 * max(x.ndim - 1, 1))
    sizes = list(x.shape)
    for k in range(min(len(widths) // 2, x.ndim)):
        sizes[-1 - k] += max(widths[2 * k], 0) + max(widths[2 * k + 1], 0)
    return math.prod(sizes)


def _interpolated(get: Get) -> int:
    x, size, scale = _x(get), get("size"), get("scale_factor")
    lengths = x.shape[2:]
    if size is not None:
        return _lead(x, len(lengths)) * math.prod(_ints(size, len(lengths)))
    factors = scale if isinstance(scale, (tuple, list)) else [scale] * len(lengths)
    return _lead(x, len(lengths)) * math.prod(
        math.ceil(n * factor) + 1 for n, factor in zip(lengths, factors, strict=True)
    )


def _expanded(get: Get) -> int:
    x, sizes = _x(get), _ints(get("size"))
    shape = [1] * (len(sizes) - x.ndim) + list(x.shape)
    return math.prod(n if size < 0 else size for size, n in zip(sizes, shape, strict=True))


def _repeated(get: Get) -> int:
    sizes = next(v for v in map(get, ("repeats", "dims")) if v is not None)
    return _x(get).numel() * math.prod(max(size, 0) for size in _ints(sizes))


def _new(get: Get) -> int:
    return math.prod(_ints(get("size")))


def _embedding(get: Get) -> int:
    return _x(get).numel() * get("weight").shape[-1]


def _selected(get: Get) -> int:
    x = _x(get)
    return x.numel() // max(x.shape[get("dim")], 1) * get("index").numel()


def _attention(get: Get) -> int:
    query, key, value = get("query"), get("key"), get("value")
    batch = math.prod(_together([query.shape[:-2], key.shape[:-2], value.shape[:-2]]))
    return batch * query.shape[-2] * (key.shape[-2] + value.shape[-1])


def _item(get: Get) -> int:
    x, index = get("a"), get("b")
    if not isinstance(x, Tensor):
        return _sum(tensors_in(x))
    parts = list(index) if isinstance(index, tuple) else [index]
    if any(isinstance(v, Tensor) for p in parts if isinstance(p, slice)
           for v in (p.start, p.stop, p.step)):  # fmt: skip
        raise ValueError("slices must be between numbers, got a tensor")
    chosen = [torch.tensor(part) if isinstance(part, list) else part for part in parts]
    tensors = [part for part in chosen if isinstance(part, Tensor)]
    if any(tensor.dtype in (torch.bool, torch.uint8) for tensor in tensors):
        raise ValueError("indices must be integers, got a mask, whose values decide on shapes")
    if not tensors:
        return x.numel()
    axes = [part for part in chosen if part is not None and part is not ...]
    dots = parts.index(...) if any(part is ... for part in parts) else len(parts)
    taken = 1  # entries along the axes that tensors choose from
    for k, part in enumerate(axes):
        before = sum(p is not None for p in parts[:dots])
        axis = k if k < before else x.ndim - len(axes) + k
        taken *= x.shape[axis] if isinstance(part, Tensor) and axis < x.ndim else 1
    return math.prod(_together([t.shape for t in tensors])) * x.numel() // max(taken, 1)


def _refuse_pieces(name: str, values: Mapping[str, Any]) -> None:
    if name not in ("unbind", "split", "chunk"):
        return
    x = next(iter(values.values()))
    size = values.get("split_size_or_sections") if name == "split" else 1
    n_pieces = values.get("chunks", 0) if name == "chunk" else 0
    if name != "chunk" and isinstance(x, Tensor) and x.ndim and isinstance(size, int):
        n_pieces = max(x.shape) // max(size, 1)
    if n_pieces > _MAX_PIECES:
        raise ValueError(f"a tensor must be taken apart into at most {_MAX_PIECES} pieces")


#: Parameters that may be tensors; where another one is, shapes would depend on values.
_TENSORS = {
    "input", "self", "a", "b", "tensor", "tensors", "other", "tensor1", "tensor2", "batch1",
    "batch2", "mat1", "mat2", "vec", "vec2", "end", "weight", "bias", "index", "indices", "mask",
    "value", "min", "max", "exponent", "running_mean", "running_var", "x1", "x2", "input1",
    "input2", "query", "key", "attn_mask", "condition", "alpha", "beta", "fill_value",
}  # fmt: skip
_FUNCTIONS_OF: dict[Callable[[Get], int], str] = {
    _broadcast: """
            add and_ eq floordiv ge gt le lt mod mul ne or_ pow sub truediv xor addcdiv addcmul
            atan2 bitwise_and bitwise_or bitwise_xor clamp clamp_max clamp_min clip div divide
            floor_divide fmod lerp logical_and logical_or logical_xor masked_fill max maximum min
            minimum multiply remainder true_divide where cosine_similarity pairwise_distance
            expand_as take_along_dim
        """,
    _matmul: "matmul mm bmm mv addmm baddbmm",
    _outer: "outer cdist",
    _meshgrid: "meshgrid",
    _einsum: "einsum",
    _tensordot: "tensordot",
    _linear: "linear bilinear",
    _convolution: "conv1d conv2d conv3d",
    _transposed: "conv_transpose1d conv_transpose2d conv_transpose3d",
    _folded: "fold",
    _unfolded: "unfold",
    _windows: "call_method:unfold",
    _padded: "pad",
    _interpolated: "interpolate",
    _expanded: "expand broadcast_to",
    _repeated: "repeat tile repeat_interleave",
    _new: "new_full new_ones new_zeros",
    _embedding: "embedding",
    _selected: "index_select",
    _attention: "scaled_dot_product_attention",
    _item: "getitem",
    **{partial(_pool, n): f"max_pool{n}d avg_pool{n}d lp_pool{n}d" for n in (1, 2, 3)},
    **{partial(_adaptive, n): f"adaptive_avg_pool{n}d adaptive_max_pool{n}d" for n in (1, 2, 3)},
}
_RULES = {name: rule for rule, names in _FUNCTIONS_OF.items() for name in names.split()}
#: Layers and the functions whose rules they have, with their settings as arguments; # is 1d to 3d.
_LAYERS_AS_FUNCTIONS = """
    Linear Bilinear: linear
    Embedding: embedding
    Upsample UpsamplingNearest2d UpsamplingBilinear2d: interpolate
    Fold: fold
    Unfold: unfold
    CosineSimilarity: cosine_similarity
    Conv#: conv#
    ConvTranspose#: conv_transpose#
    MaxPool#: max_pool#
    AvgPool#: avg_pool#
    LPPool#: lp_pool#
    AdaptiveAvgPool#: adaptive_avg_pool#
    AdaptiveMaxPool#: adaptive_max_pool#
    ConstantPad# ZeroPad# ReflectionPad# ReplicationPad# CircularPad#: pad
"""
_FUNCTION_OF = {
    layer: function
    for n in (1, 2, 3)
    for layer, (function,) in named_lines(_LAYERS_AS_FUNCTIONS.replace("#", f"{n}d"))
}


def _of_recurrent(part: nn.Module, tensors: Sequence[Tensor]) -> int:
    n_ways = 2 if getattr(part, "bidirectional", False) else 1
    gates = 4 * part.hidden_size * getattr(part, "num_layers", 1) * n_ways
    return tensors[0].numel() // part.input_size * gates


def _of_attention(part: nn.Module, tensors: Sequence[Tensor]) -> int:
    query, key = tensors[0], tensors[min(1, len(tensors) - 1)]
    rows = query.numel() // max(query.shape[-1], 1)
    return rows * (part.num_heads * (max(key.shape[:-1], default=1) + 2) + 3 * part.embed_dim)


def _of_sparse(part: nn.Module, tensors: Sequence[Tensor]) -> int:
    x = tensors[0]
    if isinstance(part, SparseEmbedding):
        return x.numel() * part.n_columns
    if isinstance(part, SparseConv):
        lengths = x.shape[max(x.ndim - part.n_axes, 0) :]
        positions = math.prod(part._length(axis, n) for axis, n in enumerate(lengths))
        return _lead(x, part.n_axes + 1) * part.n_outputs * positions
    layers = part.layers if isinstance(part, SparseStack) else [part]
    return x.numel() // layers[0].n_columns * layers[-1].n_outputs


_LAYERS: dict[tuple[type, ...], Callable[[nn.Module, Sequence[Tensor]], int]] = {
    (nn.RNNBase, nn.RNNCellBase): _of_recurrent,
    (nn.MultiheadAttention,): _of_attention,
    (nn.EmbeddingBag,): lambda part, tensors: _sum(tensors) * part.embedding_dim,
    (SparseConv, SparseEmbedding, SparseLinear, SparseStack): _of_sparse,
}
