"""The loss as a function of one layer's weights: values, gradients, and parts of them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

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
        with self._replay.active():
            return self._sum(self._layer.weight)

    def noise(self, x: np.ndarray, penalty: np.ndarray) -> float:
        """Variance of the mean gradient over the samples, by the squared least subgradient."""
        self.put(x)
        gradients, sizes = [], []
        with self._replay.active():
            for _, part, size in self._parts(self._layer.weight):
                gradients.append(part.double().reshape(-1).cpu().numpy())
                sizes.append(size)
        mean = np.average(gradients, axis=0, weights=sizes)
        variance = sum(((gradient - mean) ** 2).sum() for gradient in gradients)
        variance /= max(1, len(gradients) * (len(gradients) - 1))
        length = (least_subgradient(x, mean, penalty) ** 2).sum()
        return float(variance / length) if length > 0 else np.inf

    def _parts(self, weight: Tensor) -> Iterator[tuple[float, Tensor, int]]:
        """Mean loss, its gradient and the number of samples of each chunk."""
        for chunk in self._replay.chunks:
            loss = self._loss(self._replay.logits(chunk), chunk.samples.targets)
            (part,) = torch.autograd.grad(loss, weight)
            yield loss.item(), part, len(chunk)

    def _sum(self, weight: Tensor) -> tuple[float, np.ndarray]:
        value = 0.0
        gradient = torch.zeros(weight.shape, dtype=torch.float64, device=weight.device)
        for loss, part, size in self._parts(weight):
            value += loss * size
            gradient.add_(part, alpha=size)
        gradient /= self._n_samples
        return value / self._n_samples, gradient.reshape(-1).cpu().numpy()


class LinearObjective(LayerObjective):
    """The same for a fully connected layer, where a part of the gradient costs less than all of it.

    The weights of a working set lie in few rows and columns of the matrix. Only that block is
    multiplied; the columns of the recorded input that it needs are kept from call to call.
    """

    _columns: np.ndarray | None = None
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
            value, gradient = self._sum(block)
        return value, gradient.reshape(block.shape)[row_at, column_at]

    def _gather(self, columns: np.ndarray) -> None:
        if self._columns is not None and np.array_equal(columns, self._columns):
            return
        self._columns = columns
        index = torch.from_numpy(columns).to(self._layer.weight.device)
        self._inputs = {
            id(chunk.layer_input): chunk.layer_input.index_select(-1, index)
            for chunk in self._replay.chunks
        }

    def _block_forward(self, block: Tensor, rows: Tensor) -> Callable[[Tensor], Tensor]:
        layer = self._layer
        rows = rows.to(block.device)

        def forward(layer_input: Tensor) -> Tensor:
            product = functional.linear(self._inputs[id(layer_input)], block)
            shape = (*layer_input.shape[:-1], layer.weight.shape[0])
            if layer.bias is None:
                return product.new_zeros(shape).index_copy(-1, rows, product)
            rest = layer.bias.expand(shape)
            return rest.index_copy(-1, rows, product + layer.bias[rows])

        return forward


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


def evaluate(
    module: nn.Module,
    samples: Samples,
    chunk_size: int,
    measure: Callable[[Tensor, Samples], float],
) -> float:
    """The mean over all samples of a mean over a chunk."""
    total = 0.0
    with torch.no_grad():
        for chunk in samples.chunks(chunk_size):
            total += measure(call(module, chunk.inputs), chunk) * len(chunk)
    return total / len(samples)
