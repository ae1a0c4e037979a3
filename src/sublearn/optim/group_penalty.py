r"""The penalty of features that enter in groups, and the groups as users give them.

.. math:: \lambda \Bigl(\alpha \|w\|_1 + (1 - \alpha) \sum_g c_g \|w_g\|_2\Bigr)
    + \tfrac{l_2}{2} \|w\|^2
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from sublearn import _core
from sublearn.errors import ParameterError
from sublearn.optim.linear_objective import LinearData
from sublearn.optim.linear_problem import CoreResult, SparsePenalty
from sublearn.typing import WeightsLike
from sublearn.validation.values import show
from sublearn.validation.weights import as_weights

__all__ = ["FeatureGroups", "GroupPenalty", "Groups", "read_groups"]

#: The group of each feature, or the features of each group; None makes each feature a group.
FeatureGroups: TypeAlias = "Sequence[object] | np.ndarray | None"

_HALVINGS = 64


@dataclass(frozen=True, eq=False)
class Groups:
    """Disjoint groups that hold every feature.

    Parameters
    ----------
    starts : ndarray of int32 of shape (n_groups + 1,)
        Where each group begins in `members`.
    members : ndarray of int32 of shape (n_features,)
        Features, group by group.
    """

    starts: np.ndarray
    members: np.ndarray

    @classmethod
    def of_ids(cls, ids: np.ndarray) -> Groups:
        """From the position of each feature's group, 0 to n_groups - 1."""
        counts = np.bincount(ids)
        starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
        return cls(starts, np.argsort(ids, kind="stable").astype(np.int32))

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def sizes(self) -> np.ndarray:
        """Features of each group."""
        return np.diff(self.starts)

    def norms(self, values: np.ndarray) -> np.ndarray:
        """The norm of each group's entries; `values` may have several rows."""
        squares = values[..., self.members].astype(np.float64) ** 2
        return np.sqrt(np.add.reduceat(squares, self.starts[:-1], axis=-1))


def read_groups(groups: FeatureGroups, n_features: int, name: str) -> Groups:
    """Groups as a user gives them; `name` heads the message of a refusal."""
    if groups is None:
        return Groups.of_ids(np.arange(n_features))
    if any(isinstance(one, (list, tuple, np.ndarray)) for one in groups):
        return Groups.of_ids(_ids_of_lists(groups, n_features, name))
    found = _as_array(groups)
    if found.shape != (n_features,):
        raise ValueError(
            f"{name} must have one group for each of {n_features} features, "
            f"got {len(groups)} entries"
        )
    if found.dtype.kind not in "iubU":
        raise ParameterError(
            f"{name} must be integers or strings, one for each feature, or lists of positions of "
            f"features, got {show(found[0])} among them"
        )
    return Groups.of_ids(np.unique(found, return_inverse=True)[1])


def _as_array(given: object) -> np.ndarray:
    """An array; of no kind that is accepted where the parts do not make one."""
    try:
        found = np.asarray(given)
    except ValueError:
        return np.empty(0, dtype=object)
    is_text = found.dtype.kind == "O" and all(isinstance(one, str) for one in found.ravel())
    return found.astype(str) if is_text else found  # a column of a data frame


def _ids_of_lists(groups: Sequence[object] | np.ndarray, n: int, name: str) -> np.ndarray:
    ids = np.full(n, -1)
    for g, one in enumerate(groups):
        features = _as_array(one)
        if features.ndim != 1 or features.dtype.kind not in "iu" or not len(features):
            raise ParameterError(
                f"{name} must be lists of positions of features, none empty, got {show(one)} "
                f"as group {g}"
            )
        if features.min() < 0 or features.max() >= n:
            outside = features[(features < 0) | (features >= n)][0]
            raise ValueError(f"{name} must name features 0 to {n - 1}, got {outside} in group {g}")
        again = features[(ids[features] >= 0)]
        if len(again) or len(np.unique(features)) < len(features):
            twice = (
                again[0]
                if len(again)
                else features[np.flatnonzero(np.diff(np.sort(features)) == 0)[0]]
            )
            raise ValueError(f"{name} must not overlap, got feature {twice} twice")
        ids[features] = g
    if (ids < 0).any():
        raise ValueError(
            f"{name} must hold every feature, got none with feature {np.flatnonzero(ids < 0)[0]} "
            "(a group of its own is a list of one)"
        )
    return ids


def check_group_weights(weights: WeightsLike | None, groups: Groups, name: str) -> np.ndarray:
    """One positive number per group; square roots of their sizes if `weights` is None."""
    if weights is None:
        return np.sqrt(groups.sizes.astype(np.float64))
    found = as_weights(weights, name)
    if found.shape != (len(groups),):
        raise ValueError(
            f"{name} must have one weight for each of {len(groups)} groups, "
            f"got an array of shape {found.shape}"
        )
    if not found.all():
        raise ParameterError(
            f"{name} must be positive, got 0 for group {np.flatnonzero(found == 0)[0]}"
        )
    return found


@dataclass(frozen=True, eq=False)
class GroupPenalty(SparsePenalty):
    """Norms of groups, and a share of l1 for single weights.

    Parameters
    ----------
    groups : Groups
        Of the features.
    weights : ndarray of shape (n_groups,)
        What l1 is multiplied by for each group; above 0.
    within_share : float
        The share of l1 that single weights bear, below 1.
    l2 : float
        Weight of half the squared norm.
    is_positive : bool
        Not of groups: signs are free.
    """

    groups: Groups
    weights: np.ndarray
    within_share: float
    l2: float
    is_positive: bool = False

    def least_l1(self, slope: np.ndarray) -> float:
        """The least l1 that holds all weights at 0 against this gradient.

        Beside l1 within groups it solves  |S(slope_g, a l1)| = (1 - a) c_g l1  for each group, S
        the soft threshold, by bisection; the end that holds is returned.
        """
        norms = self.groups.norms(slope)
        high = norms / ((1 - self.within_share) * self.weights)
        if self.within_share == 0:
            return float(high.max(initial=0.0))
        low, pull = np.zeros_like(high), np.abs(slope)
        owner = np.empty(len(slope), dtype=np.intp)
        owner[self.groups.members] = np.repeat(np.arange(len(high)), self.groups.sizes)
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            left = np.maximum(pull - self.within_share * middle[owner], 0.0)
            holds = self.groups.norms(left) <= (1 - self.within_share) * self.weights * middle
            low, high = np.where(holds, low, middle), np.where(holds, middle, high)
        return float(high.max(initial=0.0))

    def value(self, w: np.ndarray, l1: float) -> float:
        """The penalty of the weights."""
        norms = (1 - self.within_share) * float(self.weights @ self.groups.norms(w))
        within = self.within_share * float(np.abs(w).sum())
        return l1 * (norms + within) + 0.5 * self.l2 * float(w @ w)

    def run(
        self, data: LinearData, l1: float, settings: _core.LinearSettings, w: np.ndarray,
        intercept: float, monitor: _core.Monitor,
    ) -> CoreResult:  # fmt: skip
        """One call of the core from a point."""
        levels = l1 * (1 - self.within_share) * self.weights
        groups = self.groups.starts, self.groups.members, levels
        found: CoreResult = _core.fit_groups(
            data, groups, l1 * self.within_share, self.l2, settings, w, intercept, monitor
        )
        return found
