"""Layers computed from their living rows and columns alone, while a network is being trimmed.

After the first weights have gone, whole inputs and outputs of a layer have no weight left. Copying
the others into a smaller dense block makes every later pass as cheap as the network has become,
and works wherever PyTorch does.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor, nn

from sublearn.trim.replay import answering

__all__ = ["Block", "in_blocks", "with_other_rows"]

#: A block as large as this share of the layer saves less than copying to and from it costs.
_WORTH_IT = 0.7


class Block:
    """The living part of a layer's weights, as a tensor of its own that can be trained."""

    def __init__(self, layer: nn.Module):
        self.layer = layer
        weight = layer.weight.detach()
        self.rows, self.columns = self._living(layer, weight)
        part = self.part_of(weight).clone(memory_format=torch.contiguous_format)
        self.weight = part.requires_grad_()

    def part_of(self, values: Tensor) -> Tensor:
        """The block of a tensor of the layer's shape."""
        return values if self.rows is None else values[self.rows][:, self.columns]

    @staticmethod
    def _living(layer: nn.Module, weight: Tensor) -> tuple[Tensor | None, Tensor | None]:
        is_divisible = isinstance(layer, nn.Linear) or (
            isinstance(layer, (nn.Conv1d, nn.Conv2d, nn.Conv3d)) and layer.groups == 1
        )
        if not is_divisible:
            return None, None
        alive = (weight != 0).flatten(2).any(2) if weight.ndim > 2 else weight != 0
        rows, columns = alive.any(1).nonzero().ravel(), alive.any(0).nonzero().ravel()
        if not len(rows) or len(rows) * len(columns) > _WORTH_IT * alive.numel():
            return None, None
        return rows, columns

    def forward(self, input: Tensor) -> Tensor:
        """What the layer would compute with the block's weights."""
        layer, layer_input = self.layer, input
        if self.rows is None:
            return with_weight(layer, layer_input, self.weight, getattr(layer, "bias", None))
        axis = -1 if isinstance(layer, nn.Linear) else -self.weight.ndim + 1
        part = with_weight(layer, layer_input.index_select(axis, self.columns), self.weight, None)
        return with_other_rows(layer, part, self.rows, axis)

    @torch.no_grad()
    def write_back(self) -> None:
        """Give the layer the block's weights."""
        if self.rows is None:
            self.layer.weight.copy_(self.weight)
        else:
            self.layer.weight[self.rows[:, None], self.columns] = self.weight.detach()


def with_other_rows(layer: nn.Module, part: Tensor, rows: Tensor, axis: int = -1) -> Tensor:
    """The layer's output from that of some rows without the bias, if all other weights are 0."""
    shape = list(part.shape)
    shape[axis] = layer.weight.shape[0]
    if layer.bias is None:
        return part.new_zeros(shape).index_copy(axis, rows, part)
    bias = layer.bias.view(-1, *[1] * (-axis - 1))
    return bias.expand(shape).index_copy(axis, rows, part + bias[rows])


def with_weight(
    layer: nn.Module, layer_input: Tensor, weight: Tensor, bias: Tensor | None
) -> Tensor:
    """The layer's function with other weights."""
    if isinstance(layer, nn.Linear):
        return nn.functional.linear(layer_input, weight, bias)
    if isinstance(layer, nn.Embedding):
        return nn.functional.embedding(layer_input, weight, layer.padding_idx)
    return layer._conv_forward(layer_input, weight, bias)


@contextlib.contextmanager
def in_blocks(layers: Sequence[nn.Module]) -> Iterator[list[Block]]:
    """While it lasts, the layers compute with blocks; afterwards the blocks are written back."""
    blocks = [Block(layer) for layer in layers]
    with contextlib.ExitStack() as stack:
        for block in blocks:
            stack.enter_context(answering(block.layer, block.forward))
        yield blocks
    for block in blocks:
        block.write_back()
