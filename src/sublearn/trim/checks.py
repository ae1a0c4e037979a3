"""Whether a network can be copied and fits its data, before anything is trimmed."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

from sublearn.errors import ParameterError
from sublearn.trim.losses import IGNORED, Loss, as_loss
from sublearn.trim.samples import Augment, Samples, call
from sublearn.validation.values import show

__all__ = ["copy_of", "refuse_misfit", "refuse_other_inputs"]


def copy_of(module: nn.Module, caller: str) -> nn.Module:
    """A copy in evaluation mode: the caller's own network is never changed."""
    if not isinstance(module, nn.Module):
        raise ParameterError(f"{caller}.module must be a torch.nn.Module, got {show(module)}")
    try:
        return copy.deepcopy(module).eval()
    except RuntimeError as error:
        raise ParameterError(
            f"{caller}.module must be one that copy.deepcopy can copy, got one that it cannot "
            "(weights of torch.nn.utils.weight_norm, spectral_norm or prune? They can be removed): "
            f"{error}"
        ) from error


def refuse_misfit(
    name: str, module: nn.Module, samples: Samples, loss: str | Loss, criterion: str, distill: float
) -> None:
    """Inputs that the network does not take, told by a few, and targets beside its logits."""
    first = samples.few()
    versions = first.versions()
    logits = _logits(module, first, f"deep_trim.{name} must have inputs")
    if first.versions() != versions:
        raise ParameterError(
            f"deep_trim.module must leave its inputs as they are, got "
            f"{show(type(module).__name__)}, which changes them in place"
        )
    if len(logits) != len(first):
        raise ParameterError(
            f"deep_trim.module must return logits of {len(first)} samples, got {len(logits)}"
        )
    if callable(loss):
        _refuse_other_loss(loss, name, logits, first.targets)
    else:
        as_loss(loss)
        _refuse_other_targets(name, logits, samples.targets)
    if distill and (logits.ndim < 2 or logits.shape[1] < 2):
        raise ParameterError(
            f"Retraining.distill must be 0 where the network has one output, got {distill}"
        )
    if criterion == "error":
        _refuse_no_classes(name, logits, samples.targets)


@torch.no_grad()
def _logits(module: nn.Module, samples: Samples, must: str) -> Tensor:
    try:
        return call(module, samples.inputs)
    except (RuntimeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise ParameterError(
            f"{must} that the network takes, got some it fails on: {error}"
        ) from error


def _refuse_other_targets(name: str, logits: Tensor, targets: Tensor) -> None:
    """Targets that the named losses cannot compare with logits of this shape."""
    n_classes = logits.shape[1] if logits.ndim > 1 else 0
    if n_classes == 1:
        raise ParameterError(
            "deep_trim.loss must be a function of logits and targets where the network has one "
            f"output, got the name of a loss of several classes beside {name}"
        )
    if targets.ndim >= logits.ndim:
        if logits.ndim < 2 or targets.shape[1:] != logits.shape[1:]:
            raise ParameterError(
                f"deep_trim: targets of {name} must be class numbers, or rows of 0 and 1 as long "
                f"as the logits, {n_classes}, got shape {tuple(targets.shape)}"
            )
        wrong = targets[~((targets >= 0) & (targets <= 1))]
        if len(wrong):
            raise ParameterError(
                f"deep_trim: targets of {name} must be rows of 0 and 1, got {wrong[0].item()}; "
                "numbers to predict need another loss, torch.nn.functional.mse_loss say"
            )
        return
    expected = (len(targets), *logits.shape[2:])
    if targets.shape != expected:
        raise ParameterError(
            f"deep_trim: targets of {name} must be class numbers of shape {expected} beside "
            f"logits of shape {(len(targets), *logits.shape[1:])}, got shape "
            f"{tuple(targets.shape)}"
        )
    got: object = targets.dtype
    if not (targets.is_floating_point() or targets.is_complex() or targets.dtype == torch.bool):
        known = targets[targets != IGNORED]
        beyond = known[(known < 0) | (known >= n_classes)]
        if not len(beyond):
            return
        got = beyond[0].item()
    raise ParameterError(
        f"deep_trim: targets of {name} must be integers from 0 to {n_classes - 1}, got {got}"
    )


def _refuse_other_loss(loss: Loss, name: str, logits: Tensor, targets: Tensor) -> None:
    """A function that does not take the logits and targets of a sample to a number with slopes."""
    logits = logits.detach().requires_grad_()
    try:
        with torch.enable_grad():
            value = loss(logits, targets)
    except (RuntimeError, IndexError, TypeError, ValueError) as error:
        raise ParameterError(
            f"deep_trim.loss must take the logits and targets of {name}, got one that fails on "
            f"shapes {tuple(logits.shape)} and {tuple(targets.shape)}, types {logits.dtype} and "
            f"{targets.dtype}: {error}"
        ) from error
    if not isinstance(value, Tensor) or value.numel() != 1 or not value.requires_grad:
        kind = show(type(value).__name__)
        if isinstance(value, Tensor):
            lack = "" if value.requires_grad else " without a gradient"
            kind = f"a tensor of shape {tuple(value.shape)}{lack}"
        raise ParameterError(
            "deep_trim.loss must return the mean of the batch, a tensor of one number that "
            f"depends on the logits, got {kind}"
        )


def _refuse_no_classes(name: str, logits: Tensor, targets: Tensor) -> None:
    """Targets without classes, of which an error could be counted."""
    fits = not targets.is_floating_point()
    if targets.ndim >= logits.ndim:
        is_binary = bool(((targets == 0) | (targets == 1)).all())
        fits = is_binary and targets.shape[1:] == logits.shape[1:]
    if logits.ndim < 2 or not fits:
        raise ParameterError(
            "deep_trim.criterion must be 'loss' where targets are neither class numbers nor rows "
            f"of 0 and 1, got 'error' for {targets.dtype} of shape {tuple(targets.shape)} in "
            f"{name}"
        )


def refuse_other_inputs(module: nn.Module, samples: Samples, augment: Augment) -> None:
    """Told by two samples; the random numbers that this takes are given back."""
    few = samples.few()
    with torch.random.fork_rng():
        changed = few.changed(augment)
    logits = _logits(module, changed, "Retraining.augment must return inputs")
    if not bool(logits.isfinite().all()):
        raise ParameterError(
            "Retraining.augment must return finite inputs, got some that lead to NaN or infinity"
        )
