"""Whether a network can be copied and fits its data, before anything is trimmed."""

from __future__ import annotations

import copy

import torch
from torch import nn

from sublearn.errors import ParameterError
from sublearn.trim.losses import (
    Loss,
    as_loss,
    refuse_no_classes,
    refuse_other_loss,
    refuse_other_targets,
)
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
    try:
        with torch.no_grad():
            logits = call(module, first.inputs)
    except (RuntimeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise ParameterError(
            f"deep_trim.{name} must have inputs that the network takes, got one it fails on: "
            f"{error}"
        ) from error
    if first.versions() != versions:
        raise ParameterError(
            f"deep_trim.module must leave its inputs as they are, got "
            f"{show(type(module).__name__)}, which changes them in place"
        )
    if len(logits) != len(first):
        raise ParameterError(
            f"deep_trim.module must return logits for each sample, got {len(logits)} for "
            f"{len(first)}"
        )
    if callable(loss):
        refuse_other_loss(loss, name, logits, first.targets)
    else:
        as_loss(loss)
        refuse_other_targets(name, logits, samples.targets)
    if distill and (logits.ndim < 2 or logits.shape[1] < 2):
        raise ParameterError(
            f"Retraining.distill must be 0 where the network has one output, got {distill}"
        )
    if criterion == "error":
        refuse_no_classes(name, logits, samples.targets)


def refuse_other_inputs(module: nn.Module, samples: Samples, augment: Augment) -> None:
    """Told by two samples; the random numbers that this takes are given back."""
    few = samples.few()
    with torch.random.fork_rng():
        changed = few.changed(augment)
    try:
        with torch.no_grad():
            logits = call(module, changed.inputs)
    except (RuntimeError, IndexError, TypeError) as error:
        raise ParameterError(
            f"Retraining.augment must return inputs that the network takes, got some it fails on: "
            f"{error}"
        ) from error
    if not bool(logits.isfinite().all()):
        raise ParameterError(
            "Retraining.augment must return finite inputs, got some that lead to NaN or infinity"
        )
