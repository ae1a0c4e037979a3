"""Passes over the data in small batches: proximal steps with l1, and plain ones on a support."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import NamedTuple

import torch
from torch import Tensor

from sublearn.trim.replay import Answers, Batch

__all__ = ["Passes", "ProximalAdam", "Trained", "train"]

_FIRST, _SECOND, _TINY = 0.9, 0.999, 1e-8
#: Five such arrays of float32 take a megabyte.
_PIECE = 1 << 16


class Trained(NamedTuple):
    """A tensor that passes change, and what it costs its entries not to be 0."""

    tensor: Tensor
    penalty: Tensor | None = None  # None: zeros stay, unless
    is_free: bool = False
    support: Tensor | None = None  # says which entries may change instead of zeros


class ProximalAdam:
    r"""Adam whose steps end in the proximal operator of :math:`\lambda \|W\|_1` in Adam's metric.

    With :math:`D = \mathrm{diag}(\sqrt{v + \lambda^2})`, where v is the mean square of the gradient
    and :math:`\lambda^2` that of the penalty, a step goes to

    .. math::
        \operatorname{argmin}_w\; m^\top w + \frac{1}{2 \eta} \|w - w_t\|_D^2 + \lambda \|w\|_1

    which is soft-thresholding by :math:`\eta \lambda / D_{jj} \le \eta`. Without :math:`\lambda^2`
    a network that makes no errors, and so has hardly a gradient, would lose all its weights before
    it makes one. `penalty` has a :math:`\lambda` for each weight of a tensor; without it a step is
    one of Adam.
    """

    def __init__(self, parts: Sequence[Trained]):
        self._pieces = [
            _Piece(weight, penalty, part.is_free, support)
            for part in parts
            for weight, penalty, support in zip_longest(
                _flat_pieces(part.tensor.detach()),
                () if part.penalty is None else _flat_pieces(part.penalty),
                () if part.support is None else _flat_pieces(part.support),
            )
        ]
        self._n_steps = 0

    @torch.no_grad()
    def step(self, gradients: Sequence[Tensor], rate: float) -> None:
        """One step against the gradients."""
        self._n_steps += 1
        slopes = (slope for gradient in gradients for slope in _flat_pieces(gradient))
        for piece, slope in zip(self._pieces, slopes, strict=True):
            piece.step(slope, rate, 1 - _FIRST**self._n_steps, 1 - _SECOND**self._n_steps)


class _Piece:
    """A part of a tensor that stays in the cache while a step goes over it a dozen times."""

    def __init__(
        self, weight: Tensor, penalty: Tensor | None, is_free: bool, support: Tensor | None
    ):
        self.weight, self.penalty, self.mask = weight, penalty, support
        if support is None and penalty is None and not is_free:
            self.mask = weight != 0
        self.first, self.second = torch.zeros_like(weight), torch.zeros_like(weight)

    def step(self, gradient: Tensor, rate: float, first_bias: float, second_bias: float) -> None:
        if self.mask is not None:
            gradient = gradient * self.mask
        self.first.lerp_(gradient, 1 - _FIRST)
        self.second.mul_(_SECOND).addcmul_(gradient, gradient, value=1 - _SECOND)
        metric = self.second / second_bias
        if self.penalty is not None:
            metric.addcmul_(self.penalty, self.penalty)
        rates = rate / metric.sqrt_().add_(_TINY)
        self.weight.addcmul_(self.first, rates, value=-1 / first_bias)
        if self.penalty is not None:
            threshold = rates.mul_(self.penalty)
            self.weight.sub_(self.weight.clamp(-threshold, threshold))


def _flat_pieces(tensor: Tensor) -> Sequence[Tensor]:
    return tensor.reshape(-1).split(_PIECE)


@dataclass(frozen=True)
class Passes:
    """How often and how fast the data are gone through."""

    n_epochs: int
    rate: float
    batch_size: int
    part: tuple[float, float] = (0.0, 1.0)  # of half a cosine, along which the rate falls to 0

    def one_by_one(self) -> Iterator[Passes]:
        """The same passes, each by itself."""
        for k in range(self.n_epochs):
            yield replace(self, n_epochs=1, part=(k / self.n_epochs, (k + 1) / self.n_epochs))

    def rate_at(self, progress: float) -> float:
        """The rate when this share of the passes is done."""
        begin, end = self.part
        return self.rate * 0.5 * (1 + math.cos(math.pi * (begin + progress * (end - begin))))


def train(
    answers: Answers,
    parts: Sequence[Trained],
    loss: Callable[[Batch], Tensor],
    passes: Passes,
    generator: torch.Generator,
    is_stopped: Callable[[], bool],
) -> None:
    """Change tensors by passes over the data."""
    optimizer, tensors = ProximalAdam(parts), [part.tensor for part in parts]
    n_batches = math.ceil(len(answers.samples) / passes.batch_size)
    for epoch in range(passes.n_epochs):
        batches = answers.shuffled(passes.batch_size, generator)
        for index, batch in enumerate(batches):
            if is_stopped():
                return
            progress = (epoch + index / n_batches) / passes.n_epochs
            gradients = torch.autograd.grad(loss(batch), tensors, materialize_grads=True)
            optimizer.step(gradients, passes.rate_at(progress))
