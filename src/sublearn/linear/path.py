"""Values of l1, and weights along them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from sublearn.errors import ParameterError
from sublearn.fitting.path import FittedPath
from sublearn.optim.linear_solve import LinearSolution
from sublearn.validation import Positive, Rule
from sublearn.validation.values import show
from sublearn.validation.weights import as_weights

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, DTypeLike

    from sublearn.display import PathDisplay
    from sublearn.display.base import AxesLike
    from sublearn.linear.model import SparseLinearModel

__all__ = ["CoefficientPath", "L1Values", "as_dtype", "falling_l1s"]

_FIGURES = ("intercept", "objective", "certificate", "n_iter")


def as_dtype(values: np.ndarray, dtype: DTypeLike) -> np.ndarray:
    """Numbers in the type of the features, as large as that type can hold."""
    limit = np.finfo(dtype).max
    return np.clip(values, -limit, limit).astype(dtype)


class L1Values(Rule):
    """`l1s`: how many values of l1, or the values; :func:`falling_l1s` looks at these."""

    def accepts(self, value: object) -> bool:
        """Whether `value` obeys the rule."""
        is_array = hasattr(value, "__array__") and np.ndim(np.asarray(value)) > 0
        return isinstance(value, (list, tuple)) or is_array or Positive(int).accepts(value)

    def __str__(self) -> str:
        return "a positive integer or an array of positive numbers"


def falling_l1s(l1_max: float, l1s: ArrayLike, least: float, name: str) -> np.ndarray:
    """`l1s` from the largest on; if it is a number, so many from `l1_max` to `least` times it."""
    if isinstance(l1s, (int, np.integer)):
        top = l1_max if l1_max > 0 else 1.0  # every model is the same then
        return np.geomspace(top, least * top, int(l1s)) if l1s > 1 else np.array([top])
    found = as_weights(l1s, name)
    if found.ndim != 1 or not len(found) or not found.all():
        raise ParameterError(f"{name} must be positive numbers, got {show(l1s)}")
    return np.sort(found)[::-1].copy()


@dataclass(frozen=True, eq=False)
class CoefficientPath(FittedPath["SparseLinearModel"]):
    """Weights along falling values of l1; as a sequence, a fitted model for each.

    Parameters
    ----------
    l1s : ndarray of shape (n_l1s,)
        The values, largest first.
    coefs : csr_matrix of shape (n_l1s, n_features), or a list of them
        Weights, a row for each value; with more than two classes one such matrix for each class.
    intercepts : ndarray of shape (n_l1s,), or (n_classes, n_l1s)
        Intercepts.
    objectives, certificates : ndarray of the shape of `intercepts`
        Objective reached, and its relative duality gap; of the whole problem, the same for every
        class, where classes are learned together.
    n_iters : ndarray of the shape of `intercepts`
        Iterations of the solver, in the unit of `max_iter`.
    model : SparseLinearModel
        The estimator whose path this is.
    """

    l1s: np.ndarray
    coefs: sp.csr_matrix | list[sp.csr_matrix]
    intercepts: np.ndarray
    objectives: np.ndarray
    certificates: np.ndarray
    n_iters: np.ndarray
    model: SparseLinearModel

    @classmethod
    def gather(
        cls,
        l1s: np.ndarray,
        steps: Iterable[list[LinearSolution]],
        dtype: DTypeLike,
        model: SparseLinearModel,
    ) -> CoefficientPath:
        """A path from the solutions of each l1, one for each output."""
        rows, figures = [], []
        for solutions in steps:  # dense weights are let go at once
            rows.append([sp.csr_matrix(as_dtype(found.x, dtype)) for found in solutions])
            figures.append([[getattr(found, name) for name in _FIGURES] for found in solutions])
        coefs = [sp.vstack(output, format="csr") for output in zip(*rows, strict=True)]
        columns = np.transpose(np.array(figures), (2, 1, 0))
        if len(coefs) == 1:
            coefs, columns = coefs[0], columns[:, 0]
        return cls(
            l1s=l1s[: len(rows)],
            coefs=coefs,
            intercepts=as_dtype(columns[0], dtype),
            objectives=columns[1],
            certificates=columns[2],
            n_iters=columns[3].astype(np.int64),
            model=model,
        )

    def _step(self, position: int) -> SparseLinearModel:
        coefs = self.coefs if isinstance(self.coefs, list) else [self.coefs]
        weights = np.array([one[position].toarray()[0] for one in coefs])
        figures = (self.objectives, self.certificates, self.n_iters, self.intercepts)
        *found, intercepts = (np.atleast_2d(values)[:, position] for values in figures)
        return self.model._at(float(self.l1s[position]), weights, intercepts, *found)

    def __repr__(self) -> str:
        return f"CoefficientPath({len(self)} values of l1, {self.l1s[0]:.3g} to {self.l1s[-1]:.3g})"

    def plot(
        self, ax: AxesLike = None, *, n_names: int = 10, position: int = 0,
        names: Sequence[object] | None = None,
    ) -> PathDisplay:  # fmt: skip
        """Draw the weights against l1, which falls from left to right; needs matplotlib.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw; new axes if None.
        n_names : int, default=10
            How many of the features that are largest at the end get a colour and their name.
        position : int, default=0
            With more than two classes, which of them.
        names : sequence of n_features, optional
            Of the features; by default `feature_names_in_` of the model, or else their numbers.

        Returns
        -------
        PathDisplay
        """
        from sublearn.display import PathDisplay

        coefs = self.coefs[position] if isinstance(self.coefs, list) else self.coefs
        known = getattr(self.model, "feature_names_in_", range(coefs.shape[1]))
        known = known if names is None else names
        if len(known) != coefs.shape[1]:
            raise ValueError(
                f"CoefficientPath.plot.names must be {coefs.shape[1]} names, got {show(names)}"
            )
        used = np.unique(coefs.indices)
        shown = [known[int(k)] for k in used]
        weights = coefs[:, used].toarray()  # (n_l1s, n_ever_used)
        display = PathDisplay(self.l1s, weights, shown, n_names=n_names)
        return display.called_by("CoefficientPath.plot").plot(ax)
