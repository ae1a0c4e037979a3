"""Neurons and channels as groups of weights: those that go in and those that come out.

A unit between two layers can be removed if no weight goes into it or none comes out. The penalty

    lambda sum_u [log(mean |in_u| + e) + log(mean |out_u| + e)]

brings whole units to 0: it is concave in the sizes of groups, and its majoriser at the present
weights is l1 with a weight for each group, so that all steps of Deep-Trim apply to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from sublearn.trim.graph import pairs_of
from sublearn.trim.sparse_network import remove_neurons

__all__ = ["Units"]


@dataclass(frozen=True)
class _Between:
    """Two of the layers by name, with units between them."""

    source: str
    target: str
    n_units: int
    moves: bool  # a unit without inputs moves into the biases of the next layer


class Units:
    """The units between layers that are trimmed."""

    def __init__(self, module: nn.Module, layers: Mapping[str, nn.Module]):
        names = {layer: name for name, layer in layers.items()}
        self._layers = layers
        self._pairs = [
            _Between(
                names[pair.source],
                names[pair.target],
                pair.source.weight.shape[0],
                isinstance(pair.source, nn.Linear) and isinstance(pair.target, nn.Linear),
            )
            for pair in pairs_of(module)
            if pair.source in names and pair.target in names
        ]

    def __len__(self) -> int:
        return sum(pair.n_units for pair in self._pairs)

    def sizes(self, name: str) -> list[Tensor]:
        """Mean size of each weight's group, one tensor for each grouping of the layer."""
        weight = self._layers[name].weight.detach().abs()
        found = []
        for pair in self._pairs:
            if pair.source == name:
                rows = weight.reshape(pair.n_units, -1).mean(1)
                found.append(_by_row(rows, weight))
            if pair.target == name:
                columns = _by_unit(weight, pair.n_units).mean(1)
                found.append(_by_column(columns, weight))
        return found

    def alive(self, name: str) -> Tensor:
        """True for the weights between living units; all of a layer without units that are 0 not.

        A weight of 0 is alive if units on both of its sides are.
        """
        weight = self._layers[name].weight.detach()
        mask = torch.ones_like(weight, dtype=torch.bool)
        is_member = False
        for pair in self._pairs:
            if name in (pair.source, pair.target):
                is_member, living = True, self._living(pair).to(weight)
                spread = _by_row if pair.source == name else _by_column
                mask &= spread(living, weight) > 0
        return mask if is_member else weight != 0

    def _living(self, pair: _Between) -> Tensor:
        """Units with a weight on either side."""
        source, target = (self._layers[name].weight for name in (pair.source, pair.target))
        has_inputs = (source != 0).reshape(pair.n_units, -1).any(1)
        return has_inputs & (_by_unit(target, pair.n_units) != 0).any(1)

    @torch.no_grad()
    def drop_dead(self) -> None:
        """Bring what else belongs to dead units to 0, unless it can move into biases."""
        for pair in self._pairs:
            living = self._living(pair)
            source, target = (self._layers[name].weight for name in (pair.source, pair.target))
            source[~living] = 0.0
            if not pair.moves:
                target.mul_(_by_column(living.to(target), target))

    def n_dense(self, module: nn.Module) -> int:
        """Weights of the layers in the network without its dead units."""
        smaller = dict(remove_neurons(module).named_modules())
        return sum(smaller[name].weight.numel() for name in self._layers)


def _by_unit(weight: Tensor, n_units: int) -> Tensor:
    return weight.transpose(0, 1).reshape(n_units, -1)


def _by_row(values: Tensor, weight: Tensor) -> Tensor:
    """A value for each unit as one for each weight that goes into it."""
    return values.view(-1, *[1] * (weight.ndim - 1)).expand_as(weight)


def _by_column(values: Tensor, weight: Tensor) -> Tensor:
    """A value for each unit as one for each weight that comes out of it."""
    columns = values.repeat_interleave(weight.shape[1] // len(values))
    return columns.view(1, -1, *[1] * (weight.ndim - 2)).expand_as(weight)
