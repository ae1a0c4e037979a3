"""Other ways to make a network smaller: each yields ever smaller networks."""

from __future__ import annotations

import copy
import math
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.utils import prune

from harness.networks import Pictures, count, error, layers_of, train

__all__ = ["RIVALS", "Schedule", "smallest_as_good"]

#: Networks in a row with more held-out errors than allowed before a rival gives up.
_MOST_MISSES = 3


@dataclass(frozen=True)
class Schedule:
    """How a rival goes on: passes over the data after each step, and when to give up."""

    n_epochs: int
    shrink: float  # share of the weights that each step leaves
    n_steps: int
    augment: Callable[[Tensor], Tensor] | None = None  # what becomes of the inputs of a batch
    first_l1: float = 1e-5  # 1.6 times as much in every step


Rival = Callable[[nn.Module, Pictures, "list[str] | None", Schedule], Iterator[nn.Module]]


def magnitude(
    network: nn.Module, data: Pictures, names: list[str] | None, path: Schedule
) -> Iterator[nn.Module]:
    """torch.nn.utils.prune: the smallest weights of all layers, then fine-tuning, step by step."""
    dense, network = network, copy.deepcopy(network)
    layers = layers_of(network, names)
    targets = [(layer, "weight") for layer in layers.values()]
    for _ in range(path.n_steps):
        prune.global_unstructured(targets, prune.L1Unstructured, amount=1 - path.shrink)
        train(network, data.train, path.n_epochs, augment=path.augment)
        yield _plain(dense, network)


@torch.no_grad()
def _plain(dense: nn.Module, pruned: nn.Module) -> nn.Module:
    """A copy of the network that `prune` has wrapped, without its masks."""
    plain = copy.deepcopy(dense)
    sources = dict(pruned.named_modules())
    for name, part in plain.named_modules():
        for key, _ in part.named_parameters(recurse=False):
            getattr(part, key).copy_(getattr(sources[name], key))
    return plain


def adam_l1(
    network: nn.Module, data: Pictures, names: list[str] | None, path: Schedule
) -> Iterator[nn.Module]:
    """Adam on the loss plus l1, weights below a threshold to 0, fine-tuning of the others."""
    yield from _l1_paths(network, data, names, path, torch.optim.Adam, 1e-3)


def sgd_l1(
    network: nn.Module, data: Pictures, names: list[str] | None, path: Schedule
) -> Iterator[nn.Module]:
    """The same with plain stochastic gradients."""
    yield from _l1_paths(network, data, names, path, torch.optim.SGD, 5e-2)


def _l1_paths(
    network: nn.Module,
    data: Pictures,
    names: list[str] | None,
    path: Schedule,
    kind: type[torch.optim.Optimizer],
    rate: float,
) -> Iterator[nn.Module]:
    current, l1 = copy.deepcopy(network), path.first_l1
    for _ in range(path.n_steps):
        layers = layers_of(current, names)
        train(
            current,
            data.train,
            path.n_epochs,
            rate=rate,
            l1=l1,
            layers=layers,
            optimizer_kind=kind,
            augment=path.augment,
        )
        masks = {}
        with torch.no_grad():
            for name, layer in layers.items():
                masks[name] = layer.weight.abs() > 1e-3
                layer.weight.mul_(masks[name])
        masked = _masking(layers, masks)
        train(current, data.train, path.n_epochs, after_step=masked, augment=path.augment)
        yield copy.deepcopy(current)
        l1 *= 1.6


def _masking(layers: Mapping[str, nn.Module], masks: Mapping[str, Tensor]) -> Callable[[], None]:
    @torch.no_grad()
    def apply() -> None:
        for name, layer in layers.items():
            layer.weight.mul_(masks[name])

    return apply


def neurons(
    network: nn.Module, data: Pictures, names: list[str] | None, path: Schedule
) -> Iterator[nn.Module]:
    """torch-pruning: whole neurons and channels, the smallest first, then fine-tuning."""
    import torch_pruning

    network = copy.deepcopy(network)
    for _ in range(path.n_steps):
        layers = layers_of(network, names)
        every = layers_of(network, None)
        output = list(every)[-1]
        pruner = torch_pruning.pruner.MagnitudePruner(
            network,
            data.train[0][:1],
            importance=torch_pruning.importance.MagnitudeImportance(p=2),
            global_pruning=True,
            pruning_ratio=1 - math.sqrt(path.shrink),  # a weight is lost with either of its ends
            ignored_layers=[part for name, part in every.items() if name not in layers]
            + [every[output]],
        )
        pruner.step()
        train(network, data.train, path.n_epochs, augment=path.augment)
        yield copy.deepcopy(network)


RIVALS: Mapping[str, Rival] = {
    "magnitude pruning": magnitude,
    "Adam with l1": adam_l1,
    "SGD with l1": sgd_l1,
    "torch-pruning": neurons,
}


def smallest_as_good(
    networks: Iterator[nn.Module],
    data: Pictures,
    names: list[str] | None,
    limit: float,
    budget: float,
) -> nn.Module | None:
    """The smallest network whose held-out error is at most `limit`, of `budget` CPU seconds."""
    best: nn.Module | None = None
    start = time.process_time()
    misses = 0
    for network in networks:
        share, n_left = error(network, data.held_out), count(layers_of(network, names))
        print(f"    {n_left:,} weights, {share:.2%} held-out errors", file=sys.stderr, flush=True)
        if share <= limit:
            misses = 0
            if best is None or n_left < count(layers_of(best, names)):
                best = network
        else:
            misses += 1
        if misses == _MOST_MISSES or time.process_time() - start > budget:
            break
    return best
