"""The closed list of what a network from a file may call, and with which kinds of arguments.

Each line below names functions or methods, and after the colon the parameters of each; ``*`` stands
for any number of further ones. On the list is what computes tensors from tensors, with results
whose shapes follow from the shapes of what goes in. What reads values into Python (``item``,
``nonzero``), touches files, devices, storage or attributes is not, and neither is what chooses at
random where the layer of the same name would not.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, fx, nn

from sublearn.validation.values import show

__all__ = ["FUNCTIONS", "METHODS", "Call", "Ref", "name_of", "named_lines", "read_value"]

_ELEMENTWISE = """
    abs atan bitwise_not ceil clone cos cosh detach erf exp expm1 floor isfinite isinf isnan log:
    log10 log1p log2 logical_not neg reciprocal relu rsqrt sigmoid sign sin sinh sqrt square t tan:
    tanh trunc:
    add sub: other alpha
    addcdiv addcmul: tensor1 tensor2 value
    addmm: mat1 mat2 beta alpha
    all amax amin any argmax argmin logsumexp: dim keepdim
    argsort sort: dim descending stable
    atan2 bitwise_and bitwise_or bitwise_xor eq floor_divide fmod ge gt le logical_and: other
    logical_or logical_xor lt matmul maximum minimum mul multiply ne remainder true_divide: other
    baddbmm: batch1 batch2 beta alpha
    bmm mm: mat2
    chunk: chunks dim
    clamp clip: min max
    clamp_max: max
    clamp_min: min
    cumprod cumsum log_softmax softmax: dim dtype
    diagonal: offset dim1 dim2
    div divide: other rounding_mode
    flatten: start_dim end_dim
    flip permute tile: dims *
    gather index_select select: dim index
    lerp: end weight
    logit: eps
    masked_fill: mask value
    max min: dim keepdim other
    mean prod sum: dim keepdim dtype
    movedim: source destination
    mv: vec
    nan_to_num: nan posinf neginf
    narrow: dim start length
    norm: p dim keepdim dtype
    pow: exponent
    repeat_interleave: repeats dim
    reshape: shape *
    roll: shifts dims
    round: decimals
    split: split_size_or_sections dim
    squeeze unbind unsqueeze: dim
    std var: dim unbiased keepdim correction
    swapaxes: axis0 axis1
    swapdims transpose: dim0 dim1
    take_along_dim: indices dim
    topk: k dim largest sorted
    tril triu: diagonal
    unflatten: dim sizes
"""
_LISTS = {
    # of the module torch, beside those that are methods too
    "torch": """
        broadcast_to: input size
        cat concat stack: tensors dim
        cdist: x1 x2 p
        celu: input alpha
        einsum: equation *
        full_like: input fill_value dtype
        hstack vstack: tensors
        meshgrid: tensors * indexing
        ones_like zeros_like: input dtype
        outer: input vec2
        relu_ selu: input
        std_mean var_mean: input dim unbiased keepdim correction
        tensordot: a b dims
        where: condition input other
    """,
    "torch.nn.functional": """
        adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d: input output_size
        adaptive_max_pool1d adaptive_max_pool2d: input output_size return_indices
        adaptive_max_pool3d: input output_size return_indices
        alpha_dropout dropout dropout1d dropout2d dropout3d: input p training inplace
        avg_pool1d: input kernel_size stride padding ceil_mode count_include_pad
        avg_pool2d: input kernel_size stride padding ceil_mode count_include_pad divisor_override
        avg_pool3d: input kernel_size stride padding ceil_mode count_include_pad divisor_override
        batch_norm: input running_mean running_var weight bias training momentum eps
        bilinear: input1 input2 weight bias
        celu elu: input alpha inplace
        channel_shuffle: input groups
        conv1d conv2d conv3d: input weight bias stride padding dilation groups
        conv_transpose1d: input weight bias stride padding output_padding groups dilation
        conv_transpose2d: input weight bias stride padding output_padding groups dilation
        conv_transpose3d: input weight bias stride padding output_padding groups dilation
        cosine_similarity: x1 x2 dim eps
        embedding: input weight padding_idx max_norm norm_type scale_grad_by_freq sparse
        fold: input output_size kernel_size dilation padding stride
        gelu: input approximate
        glu: input dim
        group_norm: input num_groups weight bias eps
        hardshrink softshrink: input lambd
        hardsigmoid hardswish mish relu relu6 selu silu: input inplace
        hardtanh: input min_val max_val inplace
        instance_norm: input running_mean running_var weight bias use_input_stats momentum eps
        interpolate: input size scale_factor mode align_corners recompute_scale_factor antialias
        layer_norm: input normalized_shape weight bias eps
        leaky_relu: input negative_slope inplace
        linear: input weight bias
        local_response_norm: input size alpha beta k
        log_softmax softmax softmin: input dim _stacklevel dtype
        logsigmoid sigmoid softsign tanh tanhshrink: input
        lp_pool1d lp_pool2d: input norm_type kernel_size stride ceil_mode
        max_pool1d max_pool2d: input kernel_size stride padding dilation ceil_mode return_indices
        max_pool3d: input kernel_size stride padding dilation ceil_mode return_indices
        normalize: input p dim eps
        pad: input pad mode value
        pairwise_distance: x1 x2 p eps keepdim
        pixel_shuffle: input upscale_factor
        pixel_unshuffle: input downscale_factor
        prelu: input weight
        rms_norm: input normalized_shape weight eps
        scaled_dot_product_attention: query key value attn_mask dropout_p is_causal scale enable_gqa
        softplus: input beta threshold
        threshold: input threshold value inplace
        unfold: input kernel_size dilation padding stride
    """,
    "operator": """
        add and_ eq floordiv ge getitem gt le lt matmul mod mul ne or_ pow sub truediv xor: a b
        invert neg: a
    """,
}
_METHODS = """
    add_ sub_: other alpha
    bool contiguous cpu dim double float half int long numel relu_ sigmoid_ tanh_:
    clamp_: min max
    div_: other rounding_mode
    expand view: size *
    expand_as mul_ reshape_as type_as view_as: other
    masked_fill_: mask value
    new_full: size fill_value dtype
    new_ones new_zeros: size * dtype
    repeat: repeats *
    size: dim
    to: other * dtype
    unfold: dimension size step
"""
#: What `getattr` may ask a tensor for.
_ATTRIBUTES = ("T", "device", "dtype", "mT", "ndim", "shape")
_WORDS = (
    "area", "bicubic", "bilinear", "border", "circular", "constant", "cpu", "floor", "fro", "ij",
    "linear", "nearest", "nearest-exact", "none", "reflect", "replicate", "same", "tanh",
    "trilinear", "trunc", "valid", "xy", "zeros",
)  # fmt: skip
_EQUATION = re.compile(r"[A-Za-z., ]{1,100}(->[A-Za-z. ]{0,50})?")
_DTYPES = {
    name: getattr(torch, name)
    for name in (
        "bool", "uint8", "int8", "int16", "int32", "int64",
        "float16", "bfloat16", "float32", "float64",
    )
}  # fmt: skip
_MAX_INT = 2**31 - 1
_MAX_DEPTH = 8
_MAX_ITEMS = 4096
_MAX_LENGTH = 64  # of a tuple of numbers, such as a shape
_MAX_POWER = 64


@dataclass(frozen=True)
class Call:
    """A function or method on the list; `function` is None for a method."""

    parameters: tuple[str, ...]
    function: Callable[..., object] | None = None

    def check(self, n_args: int, keywords: Mapping[str, object]) -> None:
        """Raise ValueError unless so many arguments and these keywords are among its parameters."""
        named = [name for name in self.parameters if name != "*"]
        most = n_args if "*" in self.parameters else len(named)
        taken = named[:n_args] if "*" not in self.parameters else []
        unknown = [key for key in keywords if key not in named or key in taken]
        if unknown or n_args > most:
            got = f"{show(unknown[0])}" if unknown else f"{n_args} of them"
            raise ValueError(f"arguments must be among {', '.join(self.parameters)}, got {got}")


@dataclass(frozen=True, slots=True)
class Ref:
    """An argument that is the result of an earlier step."""

    slot: int


def name_of(function: object) -> str:
    """The name of a function in a file, whether or not it is on the list."""
    if function is getattr:
        return "builtins:getattr"
    if function in _NAMES:
        return _NAMES[function]
    home = getattr(function, "__module__", None) or "unknown"
    return f"{home}:{getattr(function, '__name__', type(function).__name__)}"


def read_value(value: object, slots: Mapping[str, int], target: str, depth: int = 0) -> object:
    """An argument from its form in a file, with a :class:`Ref` for each step that it names."""
    if value is None or isinstance(value, (bool, float)):
        return value
    if isinstance(value, int):
        if abs(value) > _MAX_INT:
            raise ValueError(f"numbers must be below 2**31, got {show(value)}")
        return value
    if isinstance(value, str):
        return _read_word(value, target)
    if not isinstance(value, dict) or len(value) != 1 or depth >= _MAX_DEPTH:
        raise ValueError(
            f"arguments must be plain values, nested at most {_MAX_DEPTH} deep, got {show(value)}"
        )
    ((kind, content),) = value.items()
    if kind == "node" and isinstance(content, str) and content in slots:
        return Ref(slots[content])
    if kind == "ellipsis" and content is True:
        return ...
    if kind == "dtype" and isinstance(content, str) and content in _DTYPES:
        return _DTYPES[content]
    is_sequence = kind in ("tuple", "list", "slice") and isinstance(content, list)
    if is_sequence and len(content) <= _MAX_ITEMS:
        items = [read_value(item, slots, target, depth + 1) for item in content]
        if kind == "slice" and len(items) == 3:
            return slice(*items)
        if kind != "slice":
            return tuple(items) if kind == "tuple" else items
    raise ValueError(
        f"arguments must be values, types of numbers or results of earlier steps, got {show(value)}"
    )


def _read_word(word: str, target: str) -> str:
    if target == "builtins:getattr":
        is_known = word in _ATTRIBUTES
    elif target == "torch:einsum":
        is_known = _EQUATION.fullmatch(word) is not None
    else:
        is_known = word in _WORDS
    if not is_known:
        raise ValueError(f"words must be on the list of what a network may say, got {show(word)}")
    return word


def _attribute(tensor: object, name: str) -> object:
    """What `getattr` is in a network: nothing but what describes a tensor."""
    if not isinstance(tensor, (Tensor, fx.Proxy)) or name not in _ATTRIBUTES:
        raise ValueError(f"a network may not ask {type(tensor).__name__} for {show(name)}")
    return getattr(tensor, name)


def _of_tensors(function: Callable[..., object]) -> Callable[..., object]:
    """An operator that grows nothing but tensors: Python's numbers and tuples stay small."""

    def run(*operands: Any) -> object:
        for operand in operands:
            if isinstance(operand, (Tensor, fx.Proxy)):
                return function(*operands)
        if function is operator.getitem:
            return function(*operands)
        if function is operator.add and all(isinstance(operand, tuple) for operand in operands):
            if sum(map(len, operands)) > _MAX_LENGTH:
                raise ValueError(f"tuples must have at most {_MAX_LENGTH} entries")
            return tuple(operator.add(*operands))
        if not all(isinstance(operand, (int, float)) for operand in operands):
            raise ValueError("operators must have tensors or numbers as operands")
        if function is operator.pow and not all(abs(value) <= _MAX_POWER for value in operands[1:]):
            raise ValueError(f"exponents must be at most {_MAX_POWER}, got {show(operands[1])}")
        result = function(*operands)
        if isinstance(result, int) and abs(result) >= 2**63:
            raise ValueError("numbers must be below 2**63, got an integer of more than 64 bits")
        return result

    return run


def named_lines(text: str, *first: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Each name of a table such as those above, with `first` and the words after its colon."""
    for line in text.splitlines():
        names, _, parameters = line.partition(":")
        for name in names.split():
            yield name, (*first, *parameters.split())


def _listed() -> Iterator[tuple[str, object, Call]]:
    """Names in files, what a trace finds, and what is called."""
    homes = {"torch.nn.functional": nn.functional, "torch": torch, "operator": operator}
    lists = {space: dict(named_lines(text)) for space, text in _LISTS.items()}
    lists["torch"] |= dict(named_lines(_ELEMENTWISE, "input"))
    for space, home in homes.items():
        for name, parameters in lists[space].items():
            function = getattr(home, name, None)  # some came after PyTorch 2.2
            if function is not None:
                called = _of_tensors(function) if space == "operator" else function
                yield f"{space}:{name}", function, Call(parameters, called)


#: By their names in files, such as "torch:relu".
FUNCTIONS = {name: call for name, _, call in _listed()}
FUNCTIONS["builtins:getattr"] = Call(("tensor", "name"), _attribute)
METHODS = {
    name: Call(parameters)
    for name, parameters in (*named_lines(_ELEMENTWISE, "self"), *named_lines(_METHODS, "self"))
    if hasattr(Tensor, name)
}
_NAMES: dict[object, str] = {}
for _name, _function, _ in _listed():  # the first name of a function that has several
    _NAMES.setdefault(_function, _name)
