"""The loss as a function of one layer's weights: values, gradients, and parts of them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from sublearn.trim.blocks import with_other_rows
from sublearn.trim.losses import Loss
from sublearn.trim.replay import Replay
from sublearn.trim.samples import Samples, call

__all__ = [
    "LayerObjective",
    "LinearObjective",
    "evaluate",
    "layer_objective",
    "least_subgradient",
    "only_gradient_of",
]


#: Mean loss, its gradient and the number of samples of a chunk.
Part: TypeAlias = "tuple[float, Tensor, int]"


class LayerObjective:
    """L(X^(J)(W), Y) / N of (2.51), over the weights of one layer, for :func:`sublearn.optim.lhac`.

    Sums over samples are taken in float64, whatever the network computes in: a decrease of the mean
    loss of many samples is smaller than what float32 can tell.
    """

    def __init__(
        self, module: nn.Module, layer: nn.Module, samples: Samples, loss: Loss, chunk_size: int
    ):
        self._layer, self._loss, self._n_samples = layer, loss, len(samples)
        self._replay = Replay(module, layer, samples, chunk_size)
        self.size = layer.weight.numel()

    def start(self) -> np.ndarray:
        """The weights as they are."""
        return self._layer.weight.detach().double().reshape(-1).cpu().numpy()

    def put(self, x: np.ndarray) -> None:
        """Give the layer these weights."""
        weight = self._layer.weight
        with torch.no_grad():
            weight.copy_(torch.from_numpy(x).view(weight.shape))

    def value_and_gradient(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """Mean loss at x and its gradient, over all samples."""
        self.put(x)
        return self._sum(self._whole_parts(), self._layer.weight.shape)

    def noise(self, x: np.ndarray, penalty: np.ndarray) -> float:
        """Variance of the mean gradient over the samples, by the squared least subgradient."""
        self.put(x)
        parts = [(part.double().ravel().cpu().numpy(), n) for _, part, n in self._whole_parts()]
        gradients, sizes = zip(*parts, strict=True)
        mean = np.average(gradients, axis=0, weights=sizes)
        variance = sum(((gradient - mean) ** 2).sum() for gradient in gradients)
        variance /= max(1, len(gradients) * (len(gradients) - 1))
        length = (least_subgradient(x, mean, penalty) ** 2).sum()
        return float(variance / length) if length > 0 else np.inf

    def _whole_parts(self) -> Iterator[Part]:
        """Of the whole weight, at its present value."""
        with self._replay.active():
            yield from self._parts(self._layer.weight)

    def _parts(self, weight: Tensor) -> Iterator[Part]:
        for chunk in self._replay.chunks:
            loss = self._loss(self._replay.logits(chunk), chunk.samples.targets)
            (part,) = torch.autograd.grad(loss, weight, materialize_grads=True)
            yield loss.item(), part, len(chunk)

    def _sum(self, parts: Iterable[Part], shape: Sequence[int]) -> tuple[float, np.ndarray]:
        value = 0.0
        gradient = torch.zeros(tuple(shape), dtype=torch.float64, device=self._layer.weight.device)
        for loss, part, size in parts:
            value += loss * size
            gradient.add_(part, alpha=size)
        gradient /= self._n_samples
        return value / self._n_samples, gradient.reshape(-1).cpu().numpy()


class LinearObjective(LayerObjective):
    """The same for a fully connected layer, where a part of the gradient costs less than all of it.

    The weights of an active set lie in few rows and columns of the matrix. Only that block is
    multiplied; the columns of the recorded input that it needs are kept from call to call. Even the
    whole gradient needs few rows: those of units that the layers above look at.
    """

    _columns: np.ndarray | None = None
    _index: Tensor
    _inputs: dict[int, Tensor]

    def partial(self, x: np.ndarray, support: np.ndarray) -> tuple[float, np.ndarray]:
        """Mean loss at x, which is 0 outside of `support`, and the gradient there."""
        shape = self._layer.weight.shape
        row_of, column_of = np.divmod(support, shape[1])
        rows, row_at = np.unique(row_of, return_inverse=True)
        columns, column_at = np.unique(column_of, return_inverse=True)
        if len(rows) * len(columns) > 0.7 * self.size:  # copies would cost what the block saves
            value, gradient = self.value_and_gradient(x)
            return value, gradient[support]
        self._gather(columns)
        block = torch.from_numpy(x.reshape(shape)[np.ix_(rows, columns)])
        weight = self._layer.weight
        block = block.to(weight).requires_grad_()
        with self._replay.active(self._block_forward(block, torch.from_numpy(rows))):
            value, gradient = self._sum(self._parts(block), block.shape)
        return value, gradient.reshape(block.shape)[row_at, column_at]

    def _whole_parts(self) -> Iterator[Part]:
        weight = self._layer.weight.detach()
        rows = (weight != 0).any(1).nonzero().ravel()
        calls: list[tuple[Tensor, Tensor]] = []

        def forward(layer_input: Tensor) -> Tensor:
            product = functional.linear(layer_input, weight[rows])
            output = with_other_rows(self._layer, product, rows)
            calls.append((layer_input.detach(), output.requires_grad_()))
            return output.clone()  # a rectifier may work in place

        with self._replay.active(forward):
            for chunk in self._replay.chunks:
                calls.clear()
                loss = self._loss(self._replay.logits(chunk), chunk.samples.targets)
                slopes = torch.autograd.grad(loss, [output for _, output in calls])
                part = torch.zeros_like(weight)
                for (layer_input, _), slope in zip(calls, slopes, strict=True):
                    _add_product(part, slope.flatten(0, -2), layer_input.flatten(0, -2))
                yield loss.item(), part, len(chunk)

    def _gather(self, columns: np.ndarray) -> None:
        if self._columns is not None and np.array_equal(columns, self._columns):
            return
        self._columns = columns
        self._index = torch.from_numpy(columns).to(self._layer.weight.device)
        self._inputs = {
            id(chunk.layer_input): chunk.layer_input.index_select(-1, self._index)
            for chunk in self._replay.chunks
        }

    def _block_forward(self, block: Tensor, rows: Tensor) -> Callable[[Tensor], Tensor]:
        rows = rows.to(block.device)

        def forward(layer_input: Tensor) -> Tensor:
            # Only the recorded input is gathered: a layer that is called again gets another one.
            own = self._inputs.get(id(layer_input))
            if own is None:
                own = layer_input.index_select(-1, self._index)
            return with_other_rows(self._layer, functional.linear(own, block), rows)

        return forward


def _add_product(total: Tensor, slopes: Tensor, inputs: Tensor) -> None:
    """Add slopes' inputs, where most units have no slope."""
    rows = slopes.any(0).nonzero().ravel()
    total.index_add_(0, rows, slopes.index_select(1, rows).T @ inputs)


def least_subgradient(x: np.ndarray, gradient: np.ndarray, penalty: np.ndarray) -> np.ndarray:
    """The shortest subgradient of the loss plus the weighted l1 norm."""
    at_zero = np.sign(gradient) * np.maximum(np.abs(gradient) - penalty, 0.0)
    return np.where(x != 0, gradient + penalty * np.sign(x), at_zero)


def layer_objective(
    module: nn.Module, layer: nn.Module, samples: Samples, loss: Loss, chunk_size: int
) -> LayerObjective:
    """The objective that suits the layer."""
    kind = LinearObjective if isinstance(layer, nn.Linear) else LayerObjective
    return kind(module, layer, samples, loss, chunk_size)


@contextlib.contextmanager
def only_gradient_of(module: nn.Module, weights: list[Tensor]) -> Iterator[None]:
    """While it lasts, no other parameter of the network takes part in differentiation."""
    chosen = {id(weight) for weight in weights}
    before = [(parameter, parameter.requires_grad) for parameter in module.parameters()]
    for parameter, _ in before:
        parameter.requires_grad_(id(parameter) in chosen)
    try:
        yield
    finally:
        for parameter, flag in before:
            parameter.requires_grad_(flag)


@torch.no_grad()
def evaluate(module: nn.Module, samples: Samples, chunk_size: int, measure: Loss) -> float:
    """The mean over all samples of a mean over a chunk."""
    total = 0.0
    for chunk in samples.chunks(chunk_size):
        total += measure(call(module, chunk.inputs), chunk.targets).item() * len(chunk)
    return total / len(samples)
