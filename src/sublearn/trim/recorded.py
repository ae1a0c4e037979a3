"""Logits of the samples, with all that lies below the first layer to trim computed only once.

Trimming changes weights of the chosen layers and nothing else. Convolutions below them would be
computed in every pass over the data, always with the same result.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves, tree_map

from sublearn.trim.replay import Chunk, Replay
from sublearn.trim.samples import Augment, Samples, call

__all__ = ["Answers", "Batch", "RecordedAnswers", "answers_of"]

#: Larger inputs of a layer are computed again rather than kept.
_MOST_BYTES = 1 << 31


class Batch(NamedTuple):
    """Logits of some samples, which samples they are, and what became of them if they changed."""

    logits: Tensor
    rows: Tensor
    changed: Samples | None = None


class Answers:
    """A network's logits for samples in any order."""

    def __init__(self, module: nn.Module, samples: Samples, augment: Augment | None = None):
        self._module, self.samples, self._augment = module, samples, augment

    def active(self) -> AbstractContextManager[None]:
        """To be entered around all other calls, inside of `in_blocks`."""
        return contextlib.nullcontext()

    def of(self, rows: Tensor | slice) -> tuple[Tensor, Tensor]:
        """Logits and targets of some of the samples."""
        part = self.samples.take(rows)
        return call(self._module, part.inputs), part.targets

    def in_order(self, size: int) -> Iterator[tuple[Tensor, Tensor]]:
        """Logits and targets of all samples, `size` at a time."""
        for start in range(0, len(self.samples), size):
            yield self.of(slice(start, start + size))

    def shuffled(self, size: int, generator: torch.Generator) -> Iterator[Batch]:
        """All samples in random order, changed at random if there is an `augment`."""
        for rows in torch.randperm(len(self.samples), generator=generator).split(size):
            rows = rows.to(self.samples.targets.device)
            if self._augment is None:
                yield Batch(self.of(rows)[0], rows)
            else:
                part = self.samples.take(rows).changed(self._augment)
                yield Batch(call(self._module, part.inputs), rows, part)


class RecordedAnswers(Answers):
    """The same from the recorded input of the first layer that can change."""

    def __init__(self, module: nn.Module, samples: Samples, replay: Replay):
        super().__init__(module, samples)
        self._replay = replay
        self._layer_input = torch.cat([chunk.layer_input for chunk in replay.chunks])
        self._outputs = replay.chunks[0].outputs
        del replay.chunks[1:]  # kept in one piece now

    def active(self) -> AbstractContextManager[None]:
        """Modules below answer from memory while it lasts."""
        return self._replay.active()

    def of(self, rows: Tensor | slice) -> tuple[Tensor, Tensor]:
        """Logits and targets of some of the samples."""
        part = self.samples.take(rows)
        size = len(part)
        outputs = {
            key: tree_map(lambda leaf: leaf[:1].expand(size, *leaf.shape[1:]), output)
            for key, output in self._outputs.items()
        }
        chunk = Chunk(part, self._layer_input[rows], outputs)
        return self._replay.logits(chunk), part.targets


@torch.no_grad()
def answers_of(
    module: nn.Module,
    layers: Collection[nn.Module],
    samples: Samples,
    chunk_size: int,
    augment: Augment | None = None,
) -> Answers:
    """Recorded answers if there is something to save, and the samples are the first axis of it."""
    if augment is not None:
        return Answers(module, samples, augment)  # no input comes twice
    first = _first_called(module, layers, next(samples.chunks(1)))
    if first is None:
        return Answers(module, samples)
    replay = Replay(module, first, next(samples.chunks(2)), 2)
    below = {part for part, _ in replay.chunks[0].outputs}
    costs = any(True for part in below for _ in part.parameters())
    n_bytes = replay.chunks[0].layer_input[:1].nbytes * len(samples)
    is_safe = not replay.needed and _is_by_sample(replay.chunks[0])
    if not (costs and is_safe and n_bytes <= _MOST_BYTES):
        return Answers(module, samples)
    return RecordedAnswers(module, samples, Replay(module, first, samples, chunk_size))


def _is_by_sample(chunk: Chunk) -> bool:
    """Whether the first axis of all that was recorded counts the samples."""
    leaves = [chunk.layer_input, *tree_leaves(list(chunk.outputs.values()))]
    return all(
        isinstance(leaf, Tensor)
        and leaf.is_floating_point()
        and leaf.ndim > 0
        and len(leaf) == len(chunk)
        for leaf in leaves
    )


def _first_called(
    module: nn.Module, layers: Collection[nn.Module], samples: Samples
) -> nn.Module | None:
    called: list[nn.Module] = []
    hooks = [
        layer.register_forward_pre_hook(lambda part, _: called.append(part)) for layer in layers
    ]
    try:
        call(module, samples.inputs)
    finally:
        for hook in hooks:
            hook.remove()
    return called[0] if called else None
