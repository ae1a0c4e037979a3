"""A trimmed network made for prediction: sparse layers, fewer neurons, fewer calls."""

from __future__ import annotations

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
    network = _replaced(network, max_density, whole_sequences(network), {})
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
        target.bias = nn.Parameter(_bias_of(target) + shift, requires_grad=False)
    _keep_outputs(source, keep)
    pair.keep_norms(keep)
    _keep_inputs(target, keep)
    return True


def _bias_of(layer: nn.Module) -> Tensor:
    if layer.bias is not None:
        return layer.bias.detach()
    return layer.weight.new_zeros(layer.weight.shape[0])


def _keep_outputs(layer: nn.Module, keep: Tensor) -> None:
    layer.weight = nn.Parameter(layer.weight[keep].clone(), requires_grad=False)
    if layer.bias is not None:
        layer.bias = nn.Parameter(layer.bias[keep].clone(), requires_grad=False)
    count = int(keep.sum())
    if isinstance(layer, nn.Linear):
        layer.out_features = count
    else:
        layer.out_channels = count


def _keep_inputs(layer: nn.Module, keep: Tensor) -> None:
    if isinstance(layer, nn.Linear):  # a channel has several columns if a picture was flattened
        columns = keep.repeat_interleave(layer.in_features // len(keep))
        layer.weight = nn.Parameter(layer.weight[:, columns].clone(), requires_grad=False)
        layer.in_features = int(columns.sum())
    else:
        layer.weight = nn.Parameter(layer.weight[:, keep].clone(), requires_grad=False)
        layer.in_channels = int(keep.sum())


def _replaced(
    module: nn.Module,
    max_density: float,
    whole: set[nn.Module],
    done: dict[nn.Module, nn.Module],
) -> nn.Module:
    """The module with sparse layers; one that is found in several places stays one."""
    if module not in done:
        done[module] = _made_sparse(module, max_density, whole, done)
    return done[module]


def _made_sparse(
    module: nn.Module,
    max_density: float,
    whole: set[nn.Module],
    done: dict[nn.Module, nn.Module],
) -> nn.Module:
    sparse = _as_sparse(module, max_density)
    if sparse is not None:
        return sparse
    for name, child in list(module._modules.items()):
        if child is not None:
            setattr(module, name, _replaced(child, max_density, whole, done))
    if isinstance(module, nn.TransformerEncoderLayer):
        module.activation_relu_or_gelu = 0  # else PyTorch reads dense weights of its layers
    if isinstance(module, nn.TransformerEncoder):
        module.use_nested_tensor = False
    return _stacked(module) if module in whole else module


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
    run: list[tuple[str, nn.Module]] = []

    def flush() -> None:
        layers = [part for _, part in run if isinstance(part, SparseLinear)]
        if len(layers) > 1:
            kinds = [part for _, part in run if isinstance(part, (SparseLinear, nn.ReLU))]
            is_relu = [
                isinstance(kinds[k + 1], nn.ReLU) if k + 1 < len(kinds) else False
                for k, part in enumerate(kinds)
                if isinstance(part, SparseLinear)
            ]
            parts[run[0][0]] = SparseStack(layers, is_relu)
        else:
            parts.update(run)
        run.clear()

    for name, part in sequence._modules.items():  # an activation may be there twice
        if isinstance(part, SparseLinear) or (
            run and isinstance(part, (nn.ReLU, nn.Dropout, nn.Identity))
        ):
            run.append((name, part))
        else:
            flush()
            parts[name] = part
    flush()
    stacked = nn.Sequential()
    for name, part in parts.items():
        stacked.add_module(name, part)
    return stacked
