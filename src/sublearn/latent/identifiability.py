r"""Can latent features be told from what they sum up to? Theorem 4 of the Latent Feature Lasso.

Theta = Z W of rank K has no other factorisation with K binary columns if Z and W are of rank K and
the span of Z holds no binary vectors but 0 and the columns of Z. A vector of the span is known from
K independent rows, so that there are 2^K to look at, as in Slawski, Hein, Lutsik (2013). Rows that
are equal say the same, and one row after another drops those vectors that are not binary there.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import scipy.linalg

from sublearn.errors import ParameterError
from sublearn.interruption import check
from sublearn.latent.codes import all_patterns
from sublearn.validation import Boolean, check_argument
from sublearn.validation.values import show

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["Identifiability", "check_identifiability"]

_MOST_COLUMNS = 22  # 4 million vectors: 2 s
_CHUNK_BITS = 16  # patterns that are held at once
_MOST_OTHERS = 1000  # binary vectors beside the columns: one is enough to say no
_FEW = 1e-6  # how far an entry may be from 0 or 1: entries are ratios of small determinants


@dataclass(frozen=True)
class Identifiability:
    """Whether features can be told from their sums.

    Parameters
    ----------
    holds : bool
        Whether the conditions of the theorem hold.
    rank : int
        Of the codes; with `fit_intercept` beside a column of ones, which is not counted.
    others : ndarray of int8, shape (n_samples, n_others)
        Binary vectors of the span that are no columns, 1,000 at most. Empty if the columns are
        dependent: then the span is not looked at.
    """

    holds: bool
    rank: int
    others: np.ndarray = field(repr=False)


def check_identifiability(
    codes: ArrayLike, components: ArrayLike | None = None, *, fit_intercept: bool = False
) -> Identifiability:
    r"""Check whether binary features are the only ones that explain :math:`\Theta = ZW`.

    They are by theorem 4 of the paper [1]_ if Z and W have rank K and the span of Z holds no binary
    vectors but zero and its columns. With an intercept, :math:`1 b^T + ZW`, a feature and its
    complement say the same, and the span of Z and the constants may hold no others.

    Parameters
    ----------
    codes : array-like of shape (n_samples, n_components)
        Z, zeros and ones; at most 22 columns, since 2^K vectors are looked at.
    components : array-like of shape (n_components, n_features), optional
        W, whose rank is checked if it is given.
    fit_intercept : bool, default=False
        Whether there is an intercept beside the features.

    Returns
    -------
    Identifiability

    References
    ----------
    .. [1] I. Yen, W.-C. Lee, S.-E. Chang, A. Suggala, S.-D. Lin, P. Ravikumar, "Latent Feature
       Lasso", ICML 2017.

    Examples
    --------
    >>> import numpy as np
    >>> from sublearn.latent import check_identifiability
    >>> check_identifiability([[1, 0], [0, 1], [1, 1]]).holds
    True
    >>> found = check_identifiability([[1, 0], [0, 1], [0, 0]])  # no row has both features
    >>> found.holds, found.others.T.tolist()
    (False, [[1, 1, 0]])
    """
    Z = _as_codes(codes)
    name = "check_identifiability"
    check_argument(f"{name}.fit_intercept", fit_intercept, Boolean())
    n_samples, n_components = Z.shape
    columns = np.hstack([np.ones((n_samples, 1)), Z]) if fit_intercept else Z
    nothing = np.empty((n_samples, 0), dtype=np.int8)
    rank = int(np.linalg.matrix_rank(columns)) - bool(fit_intercept) if columns.size else 0
    if rank < n_components:
        return Identifiability(False, max(rank, 0), nothing)
    others = _binary_vectors(columns)
    own = {z.tobytes() for z in Z.T.astype(np.int8)}
    if fit_intercept:
        own |= {z.tobytes() for z in (1 - Z).T.astype(np.int8)}
        own.add(np.ones(n_samples, dtype=np.int8).tobytes())
    foreign = [z for z in others if z.any() and z.tobytes() not in own]
    found = np.stack(foreign[:_MOST_OTHERS], axis=1) if foreign else nothing
    is_full = components is None or _rank_of_features(components, n_components) == n_components
    return Identifiability(not foreign and is_full, rank, found)


def _binary_vectors(columns: np.ndarray) -> np.ndarray:
    """The binary vectors in the span of independent columns, in rows, of int8; enough of them."""
    distinct, place = np.unique(columns, axis=0, return_inverse=True)
    k = columns.shape[1]
    pivots = scipy.linalg.qr(distinct.T, mode="economic", pivoting=True)[2]
    basis = distinct[pivots[:k]]
    onto = np.linalg.solve(
        basis.T, distinct[pivots[k:]].T
    )  # (k, others): from entries in the basis
    onto = onto[:, np.argsort(-np.abs(onto).sum(axis=0), kind="stable")]
    held = [np.empty((0, k))]
    for begin in range(0, 2**k, 2**_CHUNK_BITS):
        check()
        held.append(_surviving(onto, k, begin)[: 2 * _MOST_OTHERS])
        if sum(map(len, held)) >= 2 * _MOST_OTHERS:
            break
    full = np.rint(np.vstack(held) @ np.linalg.solve(basis.T, distinct.T)).astype(np.int8)
    return np.ascontiguousarray(full[:, place.ravel()])


def _surviving(onto: np.ndarray, k: int, begin: int) -> np.ndarray:
    """Of the patterns of a chunk those that are binary in every row."""
    low = min(k, _CHUNK_BITS)
    high = (begin >> (low + np.arange(k - low))) & 1
    left = np.hstack([all_patterns(low), np.tile(high.astype(np.float64), (2**low, 1))])
    for row in onto.T:
        entries = left @ row
        left = left[np.minimum(np.abs(entries), np.abs(entries - 1.0)) <= _FEW]
    return left


def _as_codes(codes: ArrayLike) -> np.ndarray:
    name = "check_identifiability.codes"
    Z = np.asarray(codes)
    if Z.ndim != 2 or not Z.size:
        raise ParameterError(f"{name} must be a matrix with rows and columns, got {show(codes)}")
    if Z.dtype.kind not in "biuf" or not np.isin(Z, (0, 1)).all():
        raise ParameterError(f"{name} must be zeros and ones, got {show(codes)}")
    if Z.shape[1] > _MOST_COLUMNS:
        raise ParameterError(f"{name} must have at most {_MOST_COLUMNS} columns, got {Z.shape[1]}")
    return Z.astype(np.float64)


def _rank_of_features(components: ArrayLike, n_components: int) -> int:
    name = "check_identifiability.components"
    W = np.asarray(components)
    if W.dtype.kind not in "biuf" or W.ndim != 2 or not np.isfinite(W).all():
        raise ParameterError(f"{name} must be a matrix of finite numbers, got {show(components)}")
    if len(W) != n_components:
        raise ParameterError(f"{name} must have {n_components} rows, got shape {W.shape}")
    return int(np.linalg.matrix_rank(W.astype(np.float64))) if W.size else 0
