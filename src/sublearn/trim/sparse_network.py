"""A trimmed network made for prediction: sparse layers, fewer neurons, fewer calls."""

from __future__ import annotations

from collections import OrderedDict

import torch
from torch import Tensor, nn

from sublearn.trim.checks import copy_of
from sublearn.trim.graph import Pair, pairs_of, whole_sequences
from sublearn.trim.sparse_layers import SparseConv, SparseEmbedding, SparseLinear, SparseStack
from sublearn.validation import Boolean, Interval, Rule, as_n_threads, check_arguments

__all__ = ["remove_neurons", "to_sparse"]

#: A layer with a larger share of its weights left is faster dense: a sparse product reads an index
#: with each weight and cannot use the vector units.
_MOST_DENSITY = 0.2
#: A fully connected layer of no more weights takes less time than a call of PyTorch.
_FEW_WEIGHTS = 4096

_SPARSE: dict[type, type[SparseLinear | SparseConv | SparseEmbedding]] = {
    nn.Linear: SparseLinear,
    **dict.fromkeys((nn.Conv1d, nn.Conv2d, nn.Conv3d), SparseConv),
    nn.Embedding: SparseEmbedding,
}
_RULES: dict[str, Rule] = {"remove_neurons": Boolean(), "max_density": Interval(float, 0, 1)}


def to_sparse(
    module: nn.Module,
    *,
    remove_neurons: bool = True,
    max_density: float = _MOST_DENSITY,
    n_jobs: int | None = None,
) -> nn.Module:
    """The same network for prediction, with only the weights that are not 0.

    Fully connected, convolution and embedding layers of which at most `max_density` is left become
    sparse ones, which compute in float32. Inside an ``nn.Sequential`` that is only called as a
    whole (as ``torch.fx`` sees it), fully connected layers with rectifiers between them become one
    :class:`SparseStack`. Convolutions that pad with anything but as many zeros on both sides,
    embeddings with a `max_norm` and parametrized layers stay dense.

    Parameters
    ----------
    module : Module
        A network, usually `TrimResult.module`. It is not changed.
    remove_neurons : bool
        First remove neurons and channels as :func:`remove_neurons` does.
    max_density : float
        Layers with a larger share of weights stay dense, except small fully connected ones.
    n_jobs : int, optional
        Threads over the samples of a batch.

    Returns
    -------
    Module
        In evaluation mode, for tensors on the CPU; it cannot be trained.
    """
    check_arguments("to_sparse", locals(), _RULES)
    network = _without_neurons(module, "to_sparse") if remove_neurons else None
    network = (network or copy_of(module, "to_sparse")).cpu()
    network = _Replacement(network, max_density).of(network)
    for parameter in network.parameters():
        parameter.requires_grad_(False)
    n_threads = as_n_threads(n_jobs)
    for part in network.modules():
        if hasattr(part, "n_threads"):
            part.n_threads = n_threads
    return network


def remove_neurons(module: nn.Module) -> nn.Module:
    """The same function with fewer neurons, where whole rows or columns of weights are 0.

    A neuron goes if the next layer does not look at it, or if it has no weights of its own: then
    it is a constant, which moves into the biases of the next layer. Looks at pairs of fully
    connected or convolution layers with nothing but elementwise functions, pooling, dropout and
    flattening between them, in networks that ``torch.fx`` can trace; other networks come back as
    they are. Constants are moved between fully connected layers only: next to the border of a
    picture, a convolution sees zeros and not the constant.

    Parameters
    ----------
    module : Module
        Not changed.

    Returns
    -------
    Module
        A copy.
    """
    return _without_neurons(module, "remove_neurons")


def _without_neurons(module: nn.Module, caller: str) -> nn.Module:
    network = copy_of(module, caller)
    is_changed = True
    while is_changed:  # a neuron that goes may leave the one before it without a reader
        is_changed = sum(_shrink(pair) for pair in pairs_of(network)) > 0
    return network


@torch.no_grad()
def _shrink(pair: Pair) -> bool:
    """Remove what the pair does not need between its layers; whether anything was."""
    source, target = pair.source, pair.target
    n_units = source.weight.shape[0]
    by_unit = target.weight.transpose(0, 1).reshape(n_units, -1)
    is_read = (by_unit != 0).any(1)
    is_fixed = ~(source.weight != 0).reshape(n_units, -1).any(1)
    constants = pair.apply(_bias_of(source))
    can_move = isinstance(source, nn.Linear) and isinstance(target, nn.Linear)
    if not can_move:
        is_fixed &= constants == 0
    keep = is_read & ~is_fixed
    if keep.all() or not keep.any():
        return False
    gone = is_read & is_fixed
    if can_move and bool(gone.any()):
        shift = target.weight[:, gone] @ constants[gone]
        target.bias = _fixed(_bias_of(target) + shift)
    _keep_outputs(source, keep)
    pair.keep_norms(keep)
    _keep_inputs(target, keep)
    return True


def _bias_of(layer: nn.Module) -> Tensor:
    if layer.bias is not None:
        return layer.bias.detach()
    return layer.weight.new_zeros(layer.weight.shape[0])


def _keep_outputs(layer: nn.Module, keep: Tensor) -> None:
    layer.weight = _fixed(layer.weight[keep])
    if layer.bias is not None:
        layer.bias = _fixed(layer.bias[keep])
    name = "out_features" if isinstance(layer, nn.Linear) else "out_channels"
    setattr(layer, name, int(keep.sum()))


def _keep_inputs(layer: nn.Module, keep: Tensor) -> None:
    if isinstance(layer, nn.Linear):  # a channel has several columns if a picture was flattened
        keep = keep.repeat_interleave(layer.in_features // len(keep))
    layer.weight = _fixed(layer.weight[:, keep])
    name = "in_features" if isinstance(layer, nn.Linear) else "in_channels"
    setattr(layer, name, int(keep.sum()))


def _fixed(values: Tensor) -> nn.Parameter:
    return nn.Parameter(values.clone(), requires_grad=False)


class _Replacement:
    """Puts sparse layers in place of dense ones; one that is found in several places stays one."""

    def __init__(self, network: nn.Module, max_density: float):
        self._max_density, self._whole = max_density, whole_sequences(network)
        self._done: dict[nn.Module, nn.Module] = {}

    def of(self, module: nn.Module) -> nn.Module:
        """The module with sparse layers."""
        if module not in self._done:
            self._done[module] = _as_sparse(module, self._max_density) or self._inside(module)
        return self._done[module]

    def _inside(self, module: nn.Module) -> nn.Module:
        for name, child in list(module._modules.items()):
            if child is not None:
                setattr(module, name, self.of(child))
        if isinstance(module, nn.TransformerEncoderLayer):
            module.activation_relu_or_gelu = 0  # else PyTorch reads dense weights of its layers
        if isinstance(module, nn.TransformerEncoder):
            module.use_nested_tensor = False
        return _stacked(module) if module in self._whole else module


def _as_sparse(layer: nn.Module, max_density: float) -> nn.Module | None:
    kind = _SPARSE.get(type(layer))
    if kind is None or not _is_known(layer):
        return None
    n_left = int(torch.count_nonzero(layer.weight))
    is_small = isinstance(layer, nn.Linear) and n_left <= _FEW_WEIGHTS
    if n_left > max_density * layer.weight.numel() and not is_small:
        return None
    return kind.of(layer)


def _is_known(layer: nn.Module) -> bool:
    """Whether there is a sparse layer that computes the same."""
    if isinstance(layer, nn.Embedding):
        return layer.max_norm is None
    return isinstance(layer, nn.Linear) or SparseConv.knows(layer)


def _stacked(sequence: nn.Sequential) -> nn.Sequential:
    """Runs of sparse layers, rectifiers and dropout as one module each; other names stay."""
    parts: dict[str, nn.Module] = {}
    run: dict[str, nn.Module] = {}
    for name, part in sequence._modules.items():  # an activation may be there twice
        is_between = bool(run) and isinstance(part, (nn.ReLU, nn.Dropout, nn.Identity))
        if isinstance(part, SparseLinear) or is_between:
            run[name] = part
        else:
            parts |= _as_one(run) | {name: part}
            run = {}
    return nn.Sequential(OrderedDict(parts | _as_one(run)))


def _as_one(run: dict[str, nn.Module]) -> dict[str, nn.Module]:
    """A stack under the first name, if there are several layers."""
    kinds = [part for part in run.values() if isinstance(part, (SparseLinear, nn.ReLU))]
    layers = [part for part in kinds if isinstance(part, SparseLinear)]
    if len(layers) < 2:
        return run
    after = [isinstance(part, nn.ReLU) for part in kinds[1:]] + [False]
    is_relu = [
        flag for part, flag in zip(kinds, after, strict=True) if isinstance(part, SparseLinear)
    ]
    return {next(iter(run)): SparseStack(layers, is_relu)}
