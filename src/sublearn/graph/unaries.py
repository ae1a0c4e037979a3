"""Domains and unary scores in the forms that users have them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeGuard

import numpy as np
from numpy.typing import ArrayLike

from sublearn.validation.values import show

__all__ = ["as_domain", "as_numbers", "as_unaries", "refuse_nan"]

_MAX_LABELS = int(np.iinfo(np.int32).max)


def as_domain(domain: ArrayLike | None, unary: ArrayLike | None) -> np.ndarray:
    """Number of labels of each variable, given or told by the unary scores."""
    if domain is None:
        domain = _domain_of(unary)
    sizes = np.asarray(domain)
    if sizes.ndim != 1 or sizes.size == 0 or sizes.dtype.kind not in "iu":
        raise ValueError(
            f"FactorGraph.domain must be a list of integers, numbers of labels, got {show(domain)}"
        )
    if sizes.min() < 1 or sizes.max() > _MAX_LABELS:
        bad = sizes.min() if sizes.min() < 1 else sizes.max()
        raise ValueError(f"FactorGraph.domain must hold numbers in 1..{_MAX_LABELS}, got {bad}")
    out = np.array(sizes, dtype=np.int32)
    out.flags.writeable = False
    return out


def as_unaries(unary: ArrayLike | None, domain: np.ndarray, name: str) -> np.ndarray:
    """All unary scores in one row, finite or -inf."""
    n_scores = int(domain.sum(dtype=np.int64))
    if unary is None:
        return np.zeros(n_scores)
    if _is_list_of_rows(unary):
        _check_rows([len(scores) for scores in unary], domain, name)
        unary = np.concatenate([as_numbers(scores, name) for scores in unary])
    scores = as_numbers(unary, name)
    if scores.ndim == 2:
        _check_rows([scores.shape[1]] * len(scores), domain, name)
    out = scores.ravel()
    if out.shape != (n_scores,):
        raise ValueError(f"{name} must have {n_scores} scores, one for each label, got {out.size}")
    refuse_nan(out, name)
    return out


def _domain_of(unary: ArrayLike | None) -> ArrayLike:
    if unary is None:
        raise ValueError("FactorGraph.domain must be given where unary is not")
    if _is_list_of_rows(unary):
        return [len(scores) for scores in unary]
    scores = as_numbers(unary, "FactorGraph.unary")
    if scores.ndim != 2:
        raise ValueError(
            f"FactorGraph.domain must be given where unary has {scores.ndim} axes, not two"
        )
    return np.full(len(scores), scores.shape[1])


def _is_list_of_rows(unary: object) -> TypeGuard[Sequence[np.ndarray]]:
    """Whether each variable has an array or list of its own."""
    return isinstance(unary, (list, tuple)) and all(np.ndim(scores) == 1 for scores in unary)


def _check_rows(sizes: list[int], domain: np.ndarray, name: str) -> None:
    if len(sizes) != len(domain):
        raise ValueError(
            f"{name} must have a row for each of {len(domain)} variables, got {len(sizes)}"
        )
    is_bad = np.asarray(sizes) != domain
    if is_bad.any():
        i = int(np.argmax(is_bad))
        raise ValueError(f"{name} must have {domain[i]} scores for variable {i}, got {sizes[i]}")


def as_numbers(values: ArrayLike, name: str) -> np.ndarray:
    """A copy in float64."""
    try:
        return np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must hold numbers, got {show(values)}") from None


def refuse_nan(scores: np.ndarray, name: str) -> None:
    """Scores are finite or -inf."""
    if np.isnan(scores).any() or np.isposinf(scores).any():
        raise ValueError(f"{name} must hold finite numbers or -inf, got NaN or +inf")
