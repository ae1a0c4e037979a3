"""How far a figure of test samples can be trusted: intervals by drawing the samples again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import scipy.sparse as sp

from sublearn.interruption import check
from sublearn.typing import LabelsLike, Seed
from sublearn.validation import Interval as _Between
from sublearn.validation import Positive, RandomState, Rule, as_seed, check_arguments
from sublearn.validation.sparse import check_layout
from sublearn.validation.values import count_rows

__all__ = ["BootstrapInterval", "bootstrap_difference", "bootstrap_interval"]

#: ``metric(y_true, y_pred)``, as those of this module.
Metric = Callable[[LabelsLike, LabelsLike], float]
_RULES: dict[str, Rule] = {
    "level": _Between(float, 0, 1, "neither"),
    "n_resamples": Positive(int),
    "random_state": RandomState(),
}


@dataclass(frozen=True)
class BootstrapInterval:
    """A figure and where it lies in samples drawn again.

    Parameters
    ----------
    value : float
        Of the samples as they are.
    low, high : float
        Quantiles of the figure in samples drawn with replacement.
    level : float
        Share of the drawn figures between them.
    share_above_zero : float
        Of the drawn figures; for a difference of two models how sure the first is ahead.
    """

    value: float
    low: float
    high: float
    level: float
    share_above_zero: float

    def __str__(self) -> str:
        return f"{self.value:.4f} [{self.low:.4f}, {self.high:.4f}]"


def bootstrap_interval(
    metric: Metric,
    y_true: LabelsLike,
    y_pred: LabelsLike,
    *,
    level: float = 0.95,
    n_resamples: int = 1000,
    random_state: Seed = 0,
) -> BootstrapInterval:
    """A metric of test samples with its percentile interval.

    Parameters
    ----------
    metric : callable
        ``metric(y_true, y_pred)`` gives a number: a function of :mod:`sublearn.metrics`, with
        further arguments through `functools.partial` or a lambda, or one of scikit-learn's.
    y_true : array-like, sparse matrix or list of label lists
        True labels or values, one row for each sample.
    y_pred : array-like, sparse matrix or list of label lists
        Predictions in the form that the metric takes.
    level : float, default=0.95
        Share of the drawn figures in the interval.
    n_resamples : int, default=1000
        How often to draw as many samples as there are, with replacement.
    random_state : int, RandomState instance, Generator or None, default=0
        The same seed draws the same samples.

    Returns
    -------
    BootstrapInterval

    Examples
    --------
    >>> found = bootstrap_interval(
    ...     lambda y, p: float(np.mean(y == p)), np.array([1, 0, 1, 1]), np.array([1, 0, 0, 1])
    ... )
    >>> found.value, found.low <= 0.75 <= found.high
    (0.75, True)
    """
    return _interval(
        lambda parts: float(metric(*parts)), (y_true, y_pred), level, n_resamples, random_state
    )


def bootstrap_difference(
    metric: Metric,
    y_true: LabelsLike,
    y_pred: LabelsLike,
    y_other: LabelsLike,
    *,
    level: float = 0.95,
    n_resamples: int = 1000,
    random_state: Seed = 0,
) -> BootstrapInterval:
    """How far one model is ahead of another on the same test samples, drawn together.

    Parameters
    ----------
    metric, y_true, level, n_resamples, random_state
        As in :func:`bootstrap_interval`.
    y_pred, y_other : array-like, sparse matrix or list of label lists
        Predictions of the two models.

    Returns
    -------
    BootstrapInterval
        Of the metric of the first less that of the second: an interval without 0 tells them apart.
    """
    return _interval(
        lambda parts: float(metric(parts[0], parts[1])) - float(metric(parts[0], parts[2])),
        (y_true, y_pred, y_other), level, n_resamples, random_state,
    )  # fmt: skip


_Rows: TypeAlias = "np.ndarray | sp.csr_matrix | list[object]"


def _interval(
    figure: Callable[[list[_Rows]], float],
    given: tuple[LabelsLike, ...],
    level: float,
    n_resamples: int,
    random_state: Seed,
) -> BootstrapInterval:
    arguments = {"level": level, "n_resamples": n_resamples, "random_state": random_state}
    check_arguments("bootstrap", arguments, _RULES)
    n = count_rows(given[0], "y_true")
    parts = [_as_rows(part, n) for part in given]
    value = figure(parts)
    rng = np.random.default_rng(as_seed(random_state))
    drawn = np.empty(int(n_resamples))
    for b in range(len(drawn)):
        check()
        rows = rng.integers(0, n, n)
        drawn[b] = figure([_take(part, rows) for part in parts])
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2])
    above = float(np.mean(drawn > 0))
    return BootstrapInterval(value, float(low), float(high), float(level), above)


def _as_rows(part: LabelsLike, n: int) -> _Rows:
    """A form whose rows can be taken by number."""
    if sp.issparse(part):
        found: _Rows = sp.csr_matrix(check_layout(part, "y"))
    else:
        is_lists = isinstance(part, (list, tuple)) and any(
            isinstance(row, (list, tuple, set, frozenset)) for row in part
        )
        found = list(part) if is_lists else np.asarray(part)  # type: ignore[arg-type]
    length = found.shape[0] if not isinstance(found, list) else len(found)
    if length != n:
        raise ValueError(f"y_pred must have one row per sample ({n}), got {length}")
    return found


def _take(part: _Rows, rows: np.ndarray) -> _Rows:
    return [part[i] for i in rows.tolist()] if isinstance(part, list) else part[rows]
