"""Copies of networks: the caller's own is never changed."""

from __future__ import annotations

import copy

from torch import nn

from sublearn.errors import ParameterError
from sublearn.validation.values import show

__all__ = ["copy_of"]


def copy_of(module: nn.Module, caller: str) -> nn.Module:
    """A copy in evaluation mode."""
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
