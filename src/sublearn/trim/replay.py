"""A network whose part below one layer is answered from memory.

Trimming a layer asks for the loss hundreds of times, and nothing below the layer changes. One pass
over the data records what enters the layer and what each module below it returns; afterwards those
modules only hand out what was recorded. A recorded output that nothing above needs (most, unless
a connection skips the layer) is not kept: it is found by putting NaN in its place and seeing the
same logits. This needs hooks alone, so it works for any module, whatever its `forward` does.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves, tree_map

from sublearn.errors import ParameterError
from sublearn.trim.samples import Samples, call

__all__ = ["Chunk", "Replay", "answering"]

#: A module and the how-manieth time it was called in one forward pass.
Call = tuple[nn.Module, int]


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
            counts: dict[nn.Module, int] = {}
            stack.enter_context(_hook(self._module, lambda: counts.clear()))
            for module in below:
                stack.enter_context(answering(module, self._recorded(module, counts)))
            own = forward or self._layer.forward
            stack.enter_context(answering(self._layer, self._from_layer(own, counts)))
            yield

    # --- recording ------------------------------------------------------------------------------

    def _record(self, samples: Samples, needed: set[Call], below: list[Call]) -> Chunk:
        seen: dict[Call, object] = {}
        inputs: list[Tensor] = []

        def keep(module: nn.Module, index: int, output: object) -> None:
            key = (module, index)
            if key in below:
                seen[key] = tree_map(kept if key in needed else _placeholder, output)

        kept = _copied if self._is_written else _detached
        with _listening(self._module, keep), _first_input(self._layer, inputs, kept):
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
        tensors = [
            leaf
            for leaf in tree_leaves(list(self.chunks[0].outputs.values()))
            if isinstance(leaf, Tensor)
        ]
        before = [tensor._version for tensor in tensors]
        with self.active():
            self.logits(self.chunks[0])
        return before != [tensor._version for tensor in tensors]

    def _recorded(self, module: nn.Module, counts: dict[nn.Module, int]) -> Callable[..., object]:
        own = module.forward

        def forward(*args: object, **kwargs: object) -> object:
            index = counts[module] = counts.get(module, -1) + 1
            assert self._current is not None
            outputs = self._current.outputs
            # A module that is called again above the layer computes there.
            if (module, index) not in outputs:
                return own(*args, **kwargs)
            output = outputs[module, index]
            return tree_map(_copied, output) if self._is_written else output

        return forward

    def _from_layer(
        self, own: Callable[..., object], counts: dict[nn.Module, int]
    ) -> Callable[..., object]:
        def forward(*args: object, **kwargs: object) -> object:
            index = counts[self._layer] = counts.get(self._layer, -1) + 1
            if index:
                return own(*args, *kwargs.values())
            assert self._current is not None
            return own(self._current.layer_input)

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

    hooks = [part.register_forward_pre_hook(enter) for part in module.modules()]
    try:
        with _listening(module, leave):
            call(module, samples.inputs)
    finally:
        for hook in hooks:
            hook.remove()
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
    counts: dict[nn.Module, int] = {}

    def hook(part: nn.Module, args: object, output: object) -> None:
        counts[part] = counts.get(part, -1) + 1
        heard(part, counts[part], output)

    hooks = [part.register_forward_hook(hook) for part in module.modules()]
    try:
        yield
    finally:
        for handle in hooks:
            handle.remove()


@contextlib.contextmanager
def _first_input(
    layer: nn.Module, inputs: list[Tensor], kept: Callable[[object], object]
) -> Iterator[None]:
    def hook(part: nn.Module, args: tuple[Tensor, ...], kwargs: dict[str, Tensor]) -> None:
        if not inputs:
            inputs.append(kept(args[0] if args else kwargs["input"]))

    handle = layer.register_forward_pre_hook(hook, with_kwargs=True)
    try:
        yield
    finally:
        handle.remove()


@contextlib.contextmanager
def _hook(module: nn.Module, before: Callable[[], None]) -> Iterator[None]:
    handle = module.register_forward_pre_hook(lambda *_: before())
    try:
        yield
    finally:
        handle.remove()


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
