"""The losses that a network is trimmed for, and their support labels (definition 1)."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from sublearn.errors import ParameterError
from sublearn.validation.values import show

__all__ = [
    "IGNORED",
    "LOSSES",
    "Loss",
    "as_loss",
    "count_support_labels",
    "cross_entropy",
    "divergence",
    "error",
    "max_margin",
]

_TEMPERATURE = 2.0
IGNORED = -100  # a target that PyTorch's cross-entropy passes over

#: Logits and targets of a batch to the mean loss of its samples.
Loss = Callable[[Tensor, Tensor], Tensor]


def cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """Mean of (2.49): targets are class numbers, or rows of 0 and 1 with a 1 for each label."""
    if targets.ndim < logits.ndim:
        loss = functional.cross_entropy(logits, targets)
        if loss.isnan() and bool((targets == IGNORED).all()):
            return 0 * logits.sum()
        return loss
    positive = targets.to(logits.dtype)
    positive = positive / positive.sum(dim=1, keepdim=True).clamp(min=1.0)
    return (logits.logsumexp(dim=1) * (positive.sum(dim=1) > 0) - (positive * logits).sum(1)).mean()


def max_margin(logits: Tensor, targets: Tensor) -> Tensor:
    """Mean of (2.50), cut off at 0: how far the worst label is from losing by 1 to every true one.

    A sample that is right by a margin of 1 has no support labels, so the bound of theorem 7 is much
    smaller than with cross-entropy, where every label of every sample is one.
    """
    infinity = torch.finfo(logits.dtype).max
    if targets.ndim < logits.ndim:
        classes = torch.arange(logits.shape[1], device=logits.device)
        classes = classes.view(-1, *[1] * (logits.ndim - 2))
        positive = targets.unsqueeze(1) == classes  # nothing where the target is ignored
    else:
        positive = targets.bool()
    best_negative = logits.masked_fill(positive, -infinity).amax(dim=1)
    worst_positive = logits.masked_fill(~positive, infinity).amin(dim=1)
    has_both = positive.any(dim=1) & ~positive.all(dim=1)
    return torch.where(has_both, (1 + best_negative - worst_positive).clamp(min=0), 0.0).mean()


def divergence(logits: Tensor, others: Tensor) -> Tensor:
    """Mean cross-entropy of the probabilities of two networks at temperature 2, as gradients go.

    What the other network deems likely beside the true label tells more than the label alone. At a
    temperature of 1 a network that is sure of its training data would say hardly more than that;
    the factor of 4 keeps the gradients as long as those of the labels.
    """
    likely = functional.softmax(others / _TEMPERATURE, dim=1)
    return _TEMPERATURE**2 * functional.cross_entropy(logits / _TEMPERATURE, likely)


def error(logits: Tensor, targets: Tensor) -> Tensor:
    """Share of samples whose largest logit is not (one of) theirs, of those not ignored."""
    best = logits.argmax(dim=1)
    if targets.ndim >= logits.ndim:
        return (targets.gather(1, best[:, None]) == 0).double().mean()
    known = targets != IGNORED
    return ((best != targets) & known).sum().double() / known.sum().clamp(min=1)


LOSSES: dict[str, Loss] = {"cross_entropy": cross_entropy, "max_margin": max_margin}


def as_loss(loss: str | Loss) -> Loss:
    """The function behind a name; a function stays itself."""
    if callable(loss):
        return loss
    if not isinstance(loss, str) or loss not in LOSSES:
        raise ParameterError(
            f"deep_trim.loss must be one of {', '.join(map(repr, LOSSES))} or a function of "
            f"logits and targets, got {show(loss)}"
        )
    return LOSSES[loss]


def count_support_labels(logits: Tensor, targets: Tensor, loss: Loss) -> int:
    """How many entries of the logits have a loss gradient other than 0."""
    logits = logits.detach().requires_grad_()
    with torch.enable_grad():
        (gradient,) = torch.autograd.grad(loss(logits, targets), logits)
    return int(torch.count_nonzero(gradient))
