"""Training data as tensors in memory: what goes into the network, and the targets."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, TypeGuard

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import IterableDataset

from sublearn.errors import ParameterError
from sublearn.validation.values import show

if TYPE_CHECKING:
    from torch.utils.data import Dataset

__all__ = ["Augment", "Data", "Inputs", "Samples", "call", "logits_of", "read_samples"]

#: What a network is called with: one tensor, several in order, or several by name.
Inputs: TypeAlias = "Tensor | tuple[Tensor, ...] | dict[str, Tensor]"
#: What users pass: inputs and targets, or what yields such pairs, by number or one by one.
Data: TypeAlias = "Sequence[object] | Iterable[Sequence[object]] | Dataset"
#: From the inputs of a batch to others of the same targets, at random.
Augment: TypeAlias = Callable[..., Inputs]
#: What PyTorch has no or not all functions for.
_SHORT = (
    torch.int8, torch.int16, torch.int32, torch.uint8, torch.uint16, torch.uint32, torch.uint64,
)  # fmt: skip


@dataclass(frozen=True)
class Samples:
    """Inputs and targets; the first axis of every tensor counts the samples."""

    inputs: Inputs
    targets: Tensor

    def __len__(self) -> int:
        return len(self.targets)

    def take(self, rows: Tensor | slice) -> Samples:
        """Some of the samples, in the order of `rows`."""
        return Samples(_map(self.inputs, lambda tensor: tensor[rows]), self.targets[rows])

    def few(self) -> Samples:
        """Copies of the first two samples, or of the only one."""
        return self.take(torch.arange(min(2, len(self)), device=self.targets.device))

    def chunks(self, size: int) -> Iterator[Samples]:
        """All samples in order, `size` at a time."""
        for start in range(0, len(self), size):
            yield self.take(slice(start, start + size))

    def first(self) -> Inputs:
        """The inputs of the first sample, on the CPU."""
        return _map(self.inputs, lambda tensor: tensor[:1].cpu().clone())

    def versions(self) -> list[int]:
        """Numbers that grow when an input is changed in place."""
        return [tensor._version for tensor in _parts(self.inputs).values()]

    def changed(self, augment: Augment) -> Samples:
        """The same targets with other inputs; those given may be changed in place."""
        inputs = augment(self.inputs)
        tensors = [part for part in _parts(inputs).values() if hasattr(part, "shape")]
        wrong = [len(tensor) for tensor in tensors if len(tensor) != len(self)]
        if wrong:
            raise ParameterError(
                f"Retraining.augment must return as many inputs as it gets, got {wrong[0]} for "
                f"{len(self)}"
            )
        return Samples(inputs, self.targets)

    def changed_in_parts(self, augment: Augment, size: int) -> Samples:
        """The same, `size` at a time."""
        parts = [
            Samples(_map(part.inputs, torch.clone), part.targets).changed(augment).inputs
            for part in self.chunks(size)
        ]
        return Samples(_joined(parts, torch.cat), self.targets)

    def beside(self, weight: Tensor) -> Samples:
        """The same samples on the device of a weight, in types that PyTorch can work with.

        Doubles, NumPy's default, come in the type of the weight, short integers as class numbers.
        """

        def moved(tensor: Tensor) -> Tensor:
            return tensor.to(weight if tensor.dtype == torch.float64 else weight.device)

        targets = self.targets
        if targets.dtype.is_floating_point:
            targets = moved(targets)
        elif targets.dtype in _SHORT:
            targets = targets.long()
        return Samples(_map(self.inputs, moved), targets.to(weight.device))


def call(module: nn.Module, inputs: Inputs) -> Tensor:
    """The logits of the network for these inputs."""
    if isinstance(inputs, dict):
        return logits_of(module(**inputs))
    if isinstance(inputs, tuple):
        return logits_of(module(*inputs))
    return logits_of(module(inputs))


def logits_of(output: object) -> Tensor:
    """A tensor, the `logits` of an output object, or the first part of a tuple."""
    if isinstance(output, Tensor):
        return output
    logits = output.get("logits") if isinstance(output, Mapping) else None
    logits = getattr(output, "logits", logits)
    if logits is None and isinstance(output, (tuple, list)) and output:
        logits = output[0]
    if not isinstance(logits, Tensor):
        raise ParameterError(
            "deep_trim.module must return a tensor of logits, an object with logits, or a tuple "
            f"that begins with them, got {show(type(output).__name__)}"
        )
    return logits


def read_samples(name: str, data: Data) -> Samples:
    """`(inputs, targets)`, or anything that yields such pairs: a Dataset, a DataLoader, a list."""
    is_list_of_pairs = isinstance(data, list) and all(map(_is_pair, data))
    if isinstance(data, (tuple, list)) and len(data) == 2 and not is_list_of_pairs:
        return _checked(name, Samples(_as_inputs(name, data[0]), _as_tensor(name, data[1])))
    try:
        found = _listed(data)
    except TypeError as error:
        raise ParameterError(
            f"deep_trim.{name} must be (inputs, targets), a Dataset or a DataLoader, "
            f"got {show(type(data).__name__)}"
        ) from error
    pairs = [pair for pair in found if _is_pair(pair)]
    if not pairs or len(pairs) < len(found):
        raise ParameterError(
            f"deep_trim.{name} must yield pairs of inputs and targets, got "
            + (f"{show(found[0])}" if found else "nothing")
        )
    join = torch.stack if _is_by_number(data) else torch.cat  # samples or batches
    inputs = [_as_inputs(name, pair[0]) for pair in pairs]
    targets = [_as_tensor(name, pair[1]) for pair in pairs]
    try:
        return _checked(name, Samples(_joined(inputs, join), join(targets)))
    except (RuntimeError, KeyError, IndexError, TypeError) as error:
        raise ParameterError(
            f"deep_trim.{name} must have samples of one shape, got others: {error}"
        ) from error


def _listed(data: Data) -> list[object]:
    """All that the data yield; raises TypeError for what yields nothing."""
    if isinstance(data, Mapping):
        raise TypeError("names do not tell inputs from targets")
    if isinstance(data, IterableDataset) or not _is_by_number(data):
        return list(data)
    return [data[i] for i in range(len(data))]


def _is_by_number(data: Data) -> TypeGuard[Sequence[object]]:
    """Whether it has samples by number, as a Dataset; a loader yields batches."""
    return hasattr(data, "__getitem__")


def _is_pair(value: object) -> TypeGuard[Sequence[object]]:
    return isinstance(value, (tuple, list)) and len(value) == 2


def _as_inputs(name: str, value: object) -> Inputs:
    if isinstance(value, Mapping):
        return {str(key): _as_tensor(name, part) for key, part in value.items()}
    if isinstance(value, tuple):
        return tuple(_as_tensor(name, part) for part in value)
    return _as_tensor(name, value)


def _as_tensor(name: str, value: object) -> Tensor:
    if isinstance(value, Tensor):
        return value.detach()
    try:
        array = np.asarray(value)
        return torch.from_numpy(array if array.flags.writeable else array.copy())
    except (TypeError, ValueError) as error:
        raise ParameterError(
            f"deep_trim.{name} must hold tensors or arrays of numbers, "
            f"got {show(type(value).__name__)}: {error}"
        ) from error


def _checked(name: str, samples: Samples) -> Samples:
    inputs = list(_parts(samples.inputs).values())
    tensors = [*inputs, samples.targets]
    sizes = {len(tensor) if tensor.ndim else -1 for tensor in tensors}
    if sizes & {-1, 0} or len(sizes) > 1:
        raise ParameterError(
            f"deep_trim.{name} must have the same number of inputs and targets, and at least one, "
            f"got shapes {', '.join(str(tuple(tensor.shape)) for tensor in tensors)}"
        )
    if any(t.is_floating_point() and not bool(t.isfinite().all()) for t in inputs):
        raise ParameterError(f"deep_trim.{name} must be finite, got NaN or infinity")
    return samples


# --- inputs of any form --------------------------------------------------------------------------


def _parts(inputs: Inputs) -> dict[Hashable, Tensor]:
    """The tensors by name, by place, or a single one."""
    if isinstance(inputs, dict):
        return {**inputs}
    return dict(enumerate(inputs)) if isinstance(inputs, tuple) else {None: inputs}


def _as_form(form: Inputs, parts: Mapping[Hashable, Tensor]) -> Inputs:
    """Tensors in the form that the inputs had."""
    if isinstance(form, dict):
        return {str(name): tensor for name, tensor in parts.items()}
    return tuple(parts.values()) if isinstance(form, tuple) else parts[None]


def _map(inputs: Inputs, function: Callable[[Tensor], Tensor]) -> Inputs:
    return _as_form(inputs, {key: function(part) for key, part in _parts(inputs).items()})


def _joined(inputs: list[Inputs], join: Callable[[list[Tensor]], Tensor]) -> Inputs:
    parts = [_parts(part) for part in inputs]
    return _as_form(inputs[0], {key: join([part[key] for part in parts]) for key in parts[0]})
