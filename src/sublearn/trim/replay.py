"""A network whose part below one layer is answered from memory.

Trimming a layer asks for the loss hundreds of times, and nothing below the layer changes. One pass
over the data records what enters the layer and what each module below it returns; afterwards those
modules only hand out what was recorded. A recorded output that nothing above needs (most, unless
a connection skips the layer) is not kept: it is found by putting NaN in its place and seeing the
same logits. This needs hooks alone, so it works for any module, whatever its `forward` does.

Passes over the data change all chosen layers at once; for them, all that lies below the first of
these (convolutions, say) is computed only once.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves, tree_map

from sublearn.errors import ParameterError
from sublearn.trim.samples import Augment, Samples, call

__all__ = ["Answers", "Batch", "RecordedAnswers", "Replay", "answering", "answers_of", "hooked"]

#: A module and the how-manieth time it was called in one forward pass.
Call = tuple[nn.Module, int]
#: Larger inputs of a layer are computed again rather than kept.
_MOST_BYTES = 1 << 31


@dataclass
class Chunk:
    """Some samples, what they are inside the network at the layer, and what lies below it."""

    samples: Samples
    layer_input: Tensor
    outputs: dict[Call, object] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.samples)


class Replay:
    """Runs a network from one of its layers on.

    Parameters
    ----------
    module : Module
        The network, in evaluation mode.
    layer : Module
        One of its layers.
    samples : Samples
        All data that will be asked for.
    chunk_size : int
        Samples in one run of the network.
    """

    def __init__(self, module: nn.Module, layer: nn.Module, samples: Samples, chunk_size: int):
        self._module, self._layer = module, layer
        self._current: Chunk | None = None
        self._is_written = False  # whether the layers above change what was recorded, in place
        with torch.no_grad():
            below = _calls_below(module, layer, next(samples.chunks(1)))
            self._is_written = self._sees_writes(below, next(samples.chunks(1)))
            self.needed = _needed(self, below, next(samples.chunks(min(chunk_size, 64))))
            self.chunks = [
                self._record(part, self.needed, below) for part in samples.chunks(chunk_size)
            ]

    def logits(self, chunk: Chunk) -> Tensor:
        """The network's answer for a chunk, computed from the layer on."""
        self._current = chunk
        return call(self._module, chunk.samples.inputs)

    @contextlib.contextmanager
    def active(self, forward: Callable[[Tensor], Tensor] | None = None) -> Iterator[None]:
        """While it lasts, modules below the layer answer from memory.

        `forward` stands for the layer's own when it is called for the first time, and gets what
        was recorded as its input.
        """
        below = list({module: None for chunk in self.chunks[:1] for module, _ in chunk.outputs})
        with contextlib.ExitStack() as stack:
            counts: Counter[nn.Module] = Counter()
            begin = self._module.register_forward_pre_hook(lambda *_: counts.clear())
            stack.enter_context(begin)
            for module in below:
                own = self._answer(module, module.forward, counts)
                stack.enter_context(answering(module, own))
            own = self._answer(self._layer, forward or self._layer.forward, counts)
            stack.enter_context(answering(self._layer, own))
            yield

    # --- recording ------------------------------------------------------------------------------

    def _record(self, samples: Samples, needed: set[Call], below: list[Call]) -> Chunk:
        seen: dict[Call, object] = {}
        inputs: list[Tensor] = []

        def keep(module: nn.Module, index: int, output: object) -> None:
            key = (module, index)
            if key in below:
                seen[key] = tree_map(kept if key in needed else _placeholder, output)

        def enter(_: nn.Module, args: tuple[Tensor, ...], kwargs: dict[str, Tensor]) -> None:
            if not inputs:
                inputs.append(kept(args[0] if args else kwargs["input"]))

        kept = _copied if self._is_written else _detached
        layer_hook = self._layer.register_forward_pre_hook(enter, with_kwargs=True)
        with _listening(self._module, keep), layer_hook:
            call(self._module, samples.inputs)
        if not inputs:
            raise ParameterError(
                "deep_trim.layers must be names of layers that the network calls whatever its "
                f"inputs are, got a {type(self._layer).__name__} that it did not call for some"
            )
        return Chunk(samples, inputs[0], seen)

    def _sees_writes(self, below: list[Call], samples: Samples) -> bool:
        """Whether a run from the layer on writes into tensors from below: `x += layer(x)`."""
        self.chunks = [self._record(samples, set(below), below)]
        leaves = tree_leaves(list(self.chunks[0].outputs.values()))
        tensors = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
        before = [tensor._version for tensor in tensors]
        with self.active():
            self.logits(self.chunks[0])
        return before != [tensor._version for tensor in tensors]

    def _answer(
        self, module: nn.Module, own: Callable[..., object], counts: Counter[nn.Module]
    ) -> Callable[..., object]:
        """What stands for the `forward` of the layer, or of a module below it."""

        def forward(*args: object, **kwargs: object) -> object:
            index, counts[module] = counts[module], counts[module] + 1
            chunk = self._current
            assert chunk is not None
            if module is self._layer:
                return own(*args, *kwargs.values()) if index else own(chunk.layer_input)
            # A module that is called again above the layer computes there.
            if (module, index) not in chunk.outputs:
                return own(*args, **kwargs)
            output = chunk.outputs[module, index]
            return tree_map(_copied, output) if self._is_written else output

        return forward


def _calls_below(module: nn.Module, layer: nn.Module, samples: Samples) -> list[Call]:
    """The outermost calls that have ended when the layer is first called."""
    ended: list[Call] = []
    running: list[list[Call]] = []  # calls that ended inside each call under way
    is_above = False

    def enter(module: nn.Module, *_: object) -> None:
        nonlocal is_above
        is_above = is_above or module is layer
        running.append([])

    def leave(module: nn.Module, index: int, output: object) -> None:
        inner = running.pop()
        if not is_above:
            inner = [(module, index)]
        (running[-1] if running else ended).extend(inner)

    with hooked(module.modules(), enter), _listening(module, leave):
        call(module, samples.inputs)
    return ended


def _needed(replay: Replay, below: list[Call], samples: Samples) -> set[Call]:
    """The calls below whose outputs change the logits even when the layer's input is known."""
    needed: set[Call] = set()
    for candidate in below:
        replay.chunks = [replay._record(samples, set(below) - {candidate}, below)]
        truth = call(replay._module, samples.inputs)
        with replay.active():
            if not torch.equal(replay.logits(replay.chunks[0]), truth):
                needed.add(candidate)
    return needed


@contextlib.contextmanager
def _listening(
    module: nn.Module, heard: Callable[[nn.Module, int, object], None]
) -> Iterator[None]:
    """Calls `heard(module, index, output)` whenever a part of the network has ended."""
    counts: Counter[nn.Module] = Counter()

    def hook(part: nn.Module, args: object, output: object) -> None:
        heard(part, counts[part], output)
        counts[part] += 1

    with contextlib.ExitStack() as hooks:
        for part in module.modules():
            hooks.enter_context(part.register_forward_hook(hook))
        yield


@contextlib.contextmanager
def hooked(layers: Iterable[nn.Module], before: Callable[..., None]) -> Iterator[None]:
    """While it lasts, `before(layer, inputs)` is called before each of the layers is."""
    with contextlib.ExitStack() as hooks:
        for layer in layers:
            hooks.enter_context(layer.register_forward_pre_hook(before))
        yield


@contextlib.contextmanager
def answering(module: nn.Module, forward: Callable[..., object]) -> Iterator[None]:
    """While it lasts, `forward` is what the module does."""
    before = module.__dict__.get("forward")
    module.forward = forward
    try:
        yield
    finally:
        del module.forward
        if before is not None:
            module.forward = before


def _detached(value: object) -> object:
    return value.detach() if isinstance(value, Tensor) else value


def _copied(value: object) -> object:
    return value.detach().clone() if isinstance(value, Tensor) else value


def _placeholder(value: object) -> object:
    """The shape of a tensor without its memory; integers, which may be indices, stay."""
    if not isinstance(value, Tensor) or not value.is_floating_point():
        return value
    nan = torch.full((1,) * value.ndim, torch.nan, dtype=value.dtype, device=value.device)
    return nan.expand(value.shape)


# --- all samples, whichever layer changes --------------------------------------------------------


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
        isinstance(leaf, Tensor) and leaf.is_floating_point() and leaf.shape[:1] == (len(chunk),)
        for leaf in leaves
    )


def _first_called(
    module: nn.Module, layers: Collection[nn.Module], samples: Samples
) -> nn.Module | None:
    called: list[nn.Module] = []
    with hooked(layers, lambda part, _: called.append(part)):
        call(module, samples.inputs)
    return called[0] if called else None
