"""Which layers of a network can be trimmed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import torch
from torch import nn

from sublearn.errors import ParameterError
from sublearn.trim.blocks import in_blocks
from sublearn.trim.layer_objective import only_gradient_of
from sublearn.trim.replay import hooked
from sublearn.trim.samples import Samples, call
from sublearn.validation.values import show

__all__ = ["TRIMMABLE", "candidates_in", "choose_layers"]

TRIMMABLE = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.Embedding)


def candidates_in(module: nn.Module) -> dict[str, nn.Module]:
    """All layers of a kind that can be trimmed, by name."""
    found = {name: part for name, part in module.named_modules() if _is_trimmable(part)}
    if not found:
        raise ParameterError(
            "deep_trim.module must have a fully connected, convolution or embedding layer, "
            f"got {show(type(module).__name__)}"
        )
    for name, layer in found.items():
        if layer.weight.dtype not in (torch.float32, torch.float64):
            raise ParameterError(
                "deep_trim.module must have weights of float32 or float64, "
                f"got {layer.weight.dtype} ({name}); module.float() has"
            )
    return found


def choose_layers(
    module: nn.Module,
    candidates: Mapping[str, nn.Module],
    names: Iterable[str] | None,
    samples: Samples,
) -> dict[str, nn.Module]:
    """The layers to trim: those named, or all whose weights no other part of the network uses."""
    others = _not_alone(module, candidates, samples)
    able = [name for name in candidates if name not in others]
    if names is None and not able:
        name, reason = next(iter(others.items()))
        raise ParameterError(
            f"deep_trim.module must have a layer that can be trimmed, got {show(name)}, {reason}"
        )
    wanted: Sequence[object] = able
    if names is not None:
        is_one = isinstance(names, str) or not isinstance(names, Iterable)
        wanted = [names] if is_one else list(names)
    refused = [name for name in wanted if name not in able]
    if refused or not wanted:
        reason = f", {others[refused[0]]}" if refused and refused[0] in others else ""
        raise ParameterError(
            f"deep_trim.layers must be names of layers that can be trimmed "
            f"({', '.join(able)}), got {show(refused[0] if refused else wanted)}{reason}"
        )
    return {name: part for name, part in candidates.items() if name in set(wanted)}


def _not_alone(
    module: nn.Module, layers: Mapping[str, nn.Module], samples: Samples
) -> dict[str, str]:
    """Layers whose calls are not all that their weights do, told by gradients, and why."""
    parts = module.modules()
    holders = Counter(id(own) for part in parts for own in part.parameters(recurse=False))
    weights = [layer.weight for layer in layers.values()]
    called: list[nn.Module] = []
    with (
        only_gradient_of(module, weights),
        in_blocks(list(layers.values())) as blocks,
        hooked(layers.values(), lambda part, _: called.append(part)),
    ):
        total = call(module, samples.inputs).sum()
        n_called = len(called)
        wanted = [*weights, *(block.weight for block in blocks)]
        slopes = [None] * len(wanted)
        if total.requires_grad:
            slopes = torch.autograd.grad(total, wanted, allow_unused=True)
    if len(called) > n_called:
        raise ParameterError(
            "deep_trim.module must not call its layers again for gradients, got "
            f"{show(type(module).__name__)}, which does (torch.utils.checkpoint)"
        )
    reasons = {}
    for name, weight, own, in_layer in zip(
        layers, weights, slopes, slopes[len(weights) :], strict=False
    ):
        if own is not None or holders[id(weight)] > 1:
            reasons[name] = "whose weights another part of the network uses as well"
        elif in_layer is None:
            reasons[name] = "which the network does not call, or not with gradients"
    return reasons


def _is_trimmable(part: nn.Module) -> bool:
    """Whether the part is its weights and PyTorch's function of them, and nothing more."""
    return (
        isinstance(part, TRIMMABLE)
        and isinstance(part.weight, nn.Parameter)
        and any(type(part).forward is kind.forward for kind in TRIMMABLE)
        and getattr(part, "max_norm", None) is None  # an embedding that changes its own weights
    )
