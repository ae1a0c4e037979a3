"""Passes over the data in small batches: proximal steps with l1, and plain ones on a support."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from sublearn.trim.losses import Loss
from sublearn.trim.recorded import Answers

__all__ = ["Passes", "ProximalAdam", "train"]

_FIRST, _SECOND, _TINY = 0.9, 0.999, 1e-8
#: Five such arrays of float32 take a megabyte.
_PIECE = 1 << 16


class ProximalAdam:
    r"""Adam whose steps end in the proximal operator of :math:`\lambda \|W\|_1` in Adam's metric.

    With :math:`D = \mathrm{diag}(\sqrt{v + \lambda^2})`, where v is the mean square of the gradient
    and :math:`\lambda^2` that of the penalty, a step goes to

    .. math::
        \operatorname{argmin}_w\; m^\top w + \frac{1}{2 \eta} \|w - w_t\|_D^2 + \lambda \|w\|_1

    which is soft-thresholding by :math:`\eta \lambda / D_{jj} \le \eta`. Without :math:`\lambda^2`
    a network that makes no errors, and so has hardly a gradient, would lose all its weights before
    it makes one. `penalties` has a :math:`\lambda` for each of the weights; without it a step is
    one of Adam, and weights that are 0 stay 0.
    """

    def __init__(self, weights: Sequence[Tensor], penalties: Sequence[Tensor] | None):
        self._penalties = None if penalties is None else _pieces(penalties)
        self._weights = _pieces([weight.detach() for weight in weights])
        self._masks = [weight != 0 for weight in self._weights]
        self._first = [torch.zeros_like(weight) for weight in self._weights]
        self._second = [torch.zeros_like(weight) for weight in self._weights]
        self._n_steps = 0

    @torch.no_grad()
    def step(self, gradients: Sequence[Tensor], rate: float) -> None:
        """One step against the gradients."""
        self._n_steps += 1
        first_bias = 1 - _FIRST**self._n_steps
        second_bias = 1 - _SECOND**self._n_steps
        for k, (weight, gradient) in enumerate(zip(self._weights, _pieces(gradients), strict=True)):
            if self._penalties is None:
                gradient = gradient * self._masks[k]
            self._first[k].lerp_(gradient, 1 - _FIRST)
            self._second[k].mul_(_SECOND).addcmul_(gradient, gradient, value=1 - _SECOND)
            mean_square = self._second[k] / second_bias
            if self._penalties is None:
                scale = rate / mean_square.sqrt_().add_(_TINY)
                weight.addcmul_(self._first[k], scale, value=-1 / first_bias)
                continue
            penalty = self._penalties[k]
            scale = rate / mean_square.addcmul_(penalty, penalty).sqrt_().add_(_TINY)
            weight.addcmul_(self._first[k], scale, value=-1 / first_bias)
            threshold = scale.mul_(penalty)
            weight.sub_(weight.clamp(-threshold, threshold))


def _pieces(tensors: Sequence[Tensor]) -> list[Tensor]:
    """The tensors in pieces that stay in the cache while a step goes over them a dozen times."""
    return [piece for tensor in tensors for piece in tensor.reshape(-1).split(_PIECE)]


@dataclass(frozen=True)
class Passes:
    """How often and how fast the data are gone through."""

    n_epochs: int
    rate: float
    batch_size: int


def train(
    answers: Answers,
    weights: Sequence[Tensor],
    loss: Loss,
    passes: Passes,
    penalties: Sequence[Tensor] | None,
    generator: torch.Generator,
    is_stopped: Callable[[], bool],
) -> None:
    """Change the weights by passes over the data; the rate falls to 0 along half a cosine."""
    optimizer = ProximalAdam(weights, penalties)
    n_batches = math.ceil(len(answers.samples) / passes.batch_size)
    for epoch in range(passes.n_epochs):
        batches = answers.shuffled(passes.batch_size, generator)
        for index, (logits, targets) in enumerate(batches):
            if is_stopped():
                return
            progress = (epoch + index / n_batches) / passes.n_epochs
            gradients = torch.autograd.grad(loss(logits, targets), list(weights))
            optimizer.step(gradients, passes.rate * 0.5 * (1 + math.cos(math.pi * progress)))
