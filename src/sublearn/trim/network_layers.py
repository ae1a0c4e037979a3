"""The closed list of layers that a network from a file may have, and their settings.

A layer is made without memory, on PyTorch's device *meta*, and gets its tensors only when the
file's arrays have exactly the names and shapes that its settings ask for. So a file cannot claim
a size that it does not hold.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import TypeGuard, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from sublearn.trim.network_ops import named_lines
from sublearn.trim.sparse_layers import SparseConv, SparseEmbedding, SparseLinear, SparseStack
from sublearn.validation.values import show

__all__ = ["below", "describe_layer", "make_layer", "tensors_of"]

_Value = TypeVar("_Value")

_CONV = "in_channels out_channels kernel_size stride padding:margin dilation groups bias"
_NORM = "num_features eps momentum affine track_running_stats bias"
_RNN = "input_size hidden_size num_layers bias batch_first dropout:share bidirectional"
_MAX_POOL = "kernel_size stride:strides? padding dilation return_indices ceil_mode"
_AVG_POOL = "kernel_size stride:strides? padding ceil_mode count_include_pad"
_ATTENTION = "dropout:share bias add_bias_kv add_zero_attn kdim vdim batch_first"
_EMBEDDING = "num_embeddings embedding_dim padding_idx max_norm norm_type scale_grad_by_freq sparse"
#: Layers and, after the colon, their settings; a setting is of the kind behind its own colon, else
#: as in _KIND_OF. It may be None where the kind ends in a question mark.
_LAYERS = f"""
    Linear: in_features out_features bias
    Bilinear: in1_features in2_features out_features bias
    Conv1d Conv2d Conv3d: {_CONV} padding_mode
    ConvTranspose1d ConvTranspose2d ConvTranspose3d: {_CONV} output_padding padding_mode
    BatchNorm1d BatchNorm2d BatchNorm3d InstanceNorm1d InstanceNorm2d InstanceNorm3d: {_NORM}
    LayerNorm: normalized_shape eps elementwise_affine bias
    RMSNorm: normalized_shape eps:number? elementwise_affine
    GroupNorm: num_groups num_channels eps affine bias
    LocalResponseNorm: size alpha beta k
    Embedding: {_EMBEDDING}
    EmbeddingBag: {_EMBEDDING} mode include_last_offset
    RNN: {_RNN} nonlinearity
    LSTM: {_RNN} proj_size
    GRU: {_RNN}
    RNNCell: input_size hidden_size bias nonlinearity
    LSTMCell GRUCell: input_size hidden_size bias
    MultiheadAttention: embed_dim num_heads {_ATTENTION}
    ReLU ReLU6 SELU SiLU Mish Hardswish Hardsigmoid: inplace
    LeakyReLU: negative_slope inplace
    RReLU: lower upper inplace
    PReLU: num_parameters init
    ELU CELU: alpha inplace
    GELU: approximate
    Hardtanh: min_val max_val inplace
    Hardshrink Softshrink: lambd
    Softplus: beta threshold
    Threshold: threshold value inplace
    Sigmoid LogSigmoid Tanh Tanhshrink Softsign Softmax2d Identity:
    GLU Softmax Softmin LogSoftmax: dim
    Dropout Dropout1d Dropout2d Dropout3d AlphaDropout FeatureAlphaDropout: p:share inplace
    MaxPool1d MaxPool2d MaxPool3d: {_MAX_POOL}
    AvgPool1d: {_AVG_POOL}
    AvgPool2d AvgPool3d: {_AVG_POOL} divisor_override
    AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d: output_size:lengths?
    AdaptiveMaxPool1d AdaptiveMaxPool2d AdaptiveMaxPool3d: output_size:lengths? return_indices
    LPPool1d LPPool2d: norm_type kernel_size stride:strides? ceil_mode
    ConstantPad1d ConstantPad2d ConstantPad3d: padding:shifts value
    ZeroPad1d ZeroPad2d ZeroPad3d ReflectionPad1d ReflectionPad2d ReflectionPad3d: padding:shifts
    ReplicationPad1d ReplicationPad2d ReplicationPad3d: padding:shifts
    CircularPad1d CircularPad2d CircularPad3d: padding:shifts
    Flatten: start_dim end_dim
    Unflatten: dim unflattened_size
    PixelShuffle: upscale_factor
    PixelUnshuffle: downscale_factor
    ChannelShuffle: groups
    Upsample: size:strides? scale_factor mode align_corners recompute_scale_factor
    UpsamplingNearest2d UpsamplingBilinear2d: size:strides? scale_factor
    Fold: output_size kernel_size dilation padding stride
    Unfold: kernel_size dilation padding stride
    CosineSimilarity: dim eps
"""
#: Settings and, after the colon, their kind.
_SETTINGS = """
    in_features out_features in1_features in2_features in_channels out_channels: count
    groups num_features num_groups num_channels size num_embeddings embedding_dim input_size: count
    hidden_size num_layers embed_dim num_heads kdim vdim num_parameters upscale_factor: count
    downscale_factor: count
    kernel_size stride dilation normalized_shape output_size: strides
    padding output_padding: widths
    unflattened_size: shifts
    eps alpha beta k norm_type negative_slope lower upper min_val max_val lambd threshold: number
    value init: number
    momentum max_norm: number?
    scale_factor: numbers?
    bias affine track_running_stats elementwise_affine scale_grad_by_freq sparse: flag
    include_last_offset batch_first bidirectional add_bias_kv add_zero_attn inplace: flag
    return_indices ceil_mode count_include_pad: flag
    align_corners recompute_scale_factor: flag?
    dim start_dim end_dim padding_idx: axis?
    divisor_override: count?
    proj_size: width
    padding_mode mode nonlinearity approximate: word
"""
_TABLE = dict(named_lines(_LAYERS))
_KIND_OF = {name: kind for name, (kind,) in named_lines(_SETTINGS)}
_WORDS = (
    "zeros", "reflect", "replicate", "circular", "sum", "mean", "max", "tanh", "relu", "none",
    "nearest", "nearest-exact", "linear", "bilinear", "bicubic", "trilinear",
)  # fmt: skip
_MAX_COUNT = 2**31 - 1
_MAX_LENGTH = 2**24
_MAX_AXES = 8


def _whole(low: int, high: int) -> Callable[[object], bool]:
    return lambda value: type(value) is int and low <= value <= high


def _each(rule: Callable[[object], bool]) -> Callable[[object], bool]:
    """One value, or one for each axis."""

    def is_right(value: object) -> bool:
        values = value if isinstance(value, (list, tuple)) else [value]
        return 0 < len(values) <= _MAX_AXES and all(map(rule, values))

    return is_right


def _is_number(value: object) -> TypeGuard[float]:
    return (type(value) is int or type(value) is float) and abs(value) < 2.0**63  # so it is no NaN


_is_width, _is_length = _whole(0, _MAX_LENGTH), _whole(1, _MAX_LENGTH)
_are_lengths = _each(lambda value: value is None or _is_length(value))
_are_widths = _each(_is_width)
#: Kinds of settings: the rule, and its words in messages.
_KINDS: dict[str, tuple[Callable[[object], bool], str]] = {
    "count": (_whole(1, _MAX_COUNT), "an integer from 1 below 2**31"),
    "width": (_is_width, "an integer from 0 to 2**24"),
    "strides": (_each(_is_length), "integers from 1 to 2**24"),
    "lengths": (_are_lengths, "integers from 1 to 2**24 or None"),
    "widths": (_are_widths, "integers from 0 to 2**24"),
    "margin": (
        lambda value: value in ("same", "valid") or _are_widths(value),
        "integers from 0 to 2**24, 'same' or 'valid'",
    ),
    "shifts": (_each(_whole(-_MAX_LENGTH, _MAX_LENGTH)), "integers of at most 2**24"),
    "axis": (_whole(-_MAX_COUNT, _MAX_COUNT), "an integer below 2**31"),
    "number": (_is_number, "a finite number"),
    "numbers": (_each(_is_number), "finite numbers"),
    "share": (lambda value: _is_number(value) and 0 <= value <= 1, "a number from 0 to 1"),
    "flag": (lambda value: isinstance(value, bool), "True or False"),
    "word": (lambda value: isinstance(value, str) and value in _WORDS, f"one of {_WORDS}"),
}
_MAKERS = {kind: getattr(nn, kind) for kind in _TABLE if hasattr(nn, kind)}
#: Layers that may go without a bias only in later versions of PyTorch.
_ALWAYS_BIASED = {
    kind
    for kind in _MAKERS
    if kind.startswith(("BatchNorm", "InstanceNorm", "GroupNorm"))
    and "bias" not in inspect.signature(_MAKERS[kind]).parameters
}
_SPARSE: dict[str, type[SparseLinear | SparseConv | SparseEmbedding]] = {
    kind.__name__: kind for kind in (SparseConv, SparseEmbedding, SparseLinear)
}


def _kinds(layer: str) -> dict[str, str]:
    """The kind of each setting of a layer."""
    pairs = (setting.partition(":") for setting in _TABLE[layer])
    return {name: kind or _KIND_OF[name] for name, _, kind in pairs}


# --- writing -------------------------------------------------------------------------------------


def describe_layer(part: nn.Module) -> dict[str, object]:
    """A layer's kind and settings, as a file has them; whether it is on the list is not checked."""
    if isinstance(part, SparseStack):
        links = [describe_layer(layer) for layer in part.layers]
        return {"kind": "SparseStack", "layers": links, "is_relu": part.is_relu}
    kind = type(part).__name__
    if type(part) is _SPARSE.get(kind):
        return {"kind": kind, "settings": part._settings()}
    if type(part) is not _MAKERS.get(kind):  # for `make_layer` to refuse
        return {"kind": f"{type(part).__module__}.{kind}", "settings": {}}
    return {"kind": kind, "settings": {key: _setting(part, key) for key in _kinds(kind)}}


def _setting(part: nn.Module, key: str) -> object:
    if key == "bias" and isinstance(part, nn.MultiheadAttention):
        return part.in_proj_bias is not None
    if key == "add_bias_kv":
        return part.bias_k is not None
    value = getattr(part, key)
    if key == "bias" and not isinstance(value, bool):
        return value is not None
    return list(value) if isinstance(value, tuple) else value


# --- reading -------------------------------------------------------------------------------------


def make_layer(what: object, arrays: Mapping[str, np.ndarray]) -> nn.Module:
    """A layer from its kind, settings and arrays; raises ValueError for what does not fit."""
    what = what if isinstance(what, dict) else {}
    kind = what.get("kind")
    if kind == "SparseStack":
        return _make_stack(what, arrays)
    if not isinstance(kind, str) or (kind not in _SPARSE and kind not in _MAKERS):
        raise ValueError(
            f"kind must be one of the layers that a network in a file may have, got {show(kind)}; "
            "write it with layers of torch.nn that are, or leave it out of the network"
        )
    settings = what.get("settings")
    if set(what) != {"kind", "settings"} or not isinstance(settings, dict):
        raise ValueError(f"a layer must have a kind and settings by name, got {show(what)}")
    if kind in _SPARSE:
        return _SPARSE[kind]._restore(settings, tensors_of(arrays))
    return _make_dense(kind, settings, arrays)


def _make_stack(what: dict[str, object], arrays: Mapping[str, np.ndarray]) -> SparseStack:
    if set(what) != {"kind", "layers", "is_relu"}:
        raise ValueError(f"a stack must have layers and is_relu, got {show(what)}")
    links = what["layers"]
    if not isinstance(links, list) or not 0 < len(links) <= len(arrays):
        raise ValueError(f"layers must be those that the file has arrays of, got {show(links)}")
    for k, link in enumerate(links):
        if not isinstance(link, dict) or link.get("kind") != "SparseLinear":
            raise ValueError(f"layers[{k}] must be a SparseLinear, got {show(link)}")
    groups = below(arrays, [f"layers.{k}" for k in range(len(links))])
    layers = [make_layer(link, part) for link, part in zip(links, groups.values(), strict=True)]
    if sum(map(len, groups.values())) != len(arrays):
        raise ValueError("arrays must each belong to a layer, got others")
    return SparseStack._restore(layers, what["is_relu"])


def _make_dense(
    kind: str, settings: Mapping[str, object], arrays: Mapping[str, np.ndarray]
) -> nn.Module:
    for name, value in settings.items():
        _refuse_setting(name, value, _kinds(kind))
    n_layers = settings.get("num_layers")
    if isinstance(n_layers, int) and n_layers > len(arrays):
        raise ValueError(f"num_layers must be as many as have arrays, got {len(arrays)} arrays")
    plain = {key: tuple(v) if isinstance(v, list) else v for key, v in settings.items()}
    if kind in _ALWAYS_BIASED:
        plain.pop("bias", None)  # if it was False, the arrays do not fit
    try:
        with torch.device("meta"), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it was said to who made the layer
            part = _MAKERS[kind](**plain)
    except Exception as error:  # whatever PyTorch says of settings that do not go together
        raise ValueError(f"settings must make a {kind}, got some that do not: {error}") from error
    _refuse_other_arrays(part.state_dict(), arrays)
    part.load_state_dict(tensors_of(arrays), assign=True)
    return part


def _refuse_setting(name: str, value: object, kinds: Mapping[str, str]) -> None:
    if name not in kinds:
        raise ValueError(f"settings must be {', '.join(kinds) or 'none'}, got {show(name)}")
    rule, words = _KINDS[kinds[name].removesuffix("?")]
    may_be_none = kinds[name].endswith("?")
    if not (rule(value) or (may_be_none and value is None)):
        raise ValueError(f"{name} must be {words}{' or None' * may_be_none}, got {show(value)}")


def _refuse_other_arrays(wanted: Mapping[str, Tensor], arrays: Mapping[str, np.ndarray]) -> None:
    if set(wanted) != set(arrays):
        raise ValueError(
            f"arrays must be {', '.join(wanted) or 'none'}, got {', '.join(arrays) or 'none'}"
        )
    for name, tensor in wanted.items():
        shape, dtype = arrays[name].shape, arrays[name].dtype
        if shape != tuple(tensor.shape):
            raise ValueError(
                f"{name} must have the shape {tuple(tensor.shape)} of the settings, got {shape}"
            )
        is_float = tensor.is_floating_point()
        if dtype.kind != "f" if is_float else dtype != np.int64:
            raise ValueError(f"{name} must hold {'floats' if is_float else 'int64'}, got {dtype}")


def tensors_of(arrays: Mapping[str, np.ndarray]) -> dict[str, Tensor]:
    """Arrays as tensors; one that maps a file is copied, since tensors can be written to."""
    return {
        name: torch.from_numpy(array if array.flags.writeable else np.array(array))
        for name, array in arrays.items()
    }


def below(arrays: Mapping[str, _Value], owners: Iterable[str]) -> dict[str, dict[str, _Value]]:
    """The arrays of each owner by the rest of their names; no owner is inside another."""
    found: dict[str, dict[str, _Value]] = {owner: {} for owner in owners}
    for name, array in arrays.items():
        for cut in (k for k, letter in enumerate(name) if letter == "."):
            if name[:cut] in found:
                found[name[:cut]][name[cut + 1 :]] = array
                break
    return found
