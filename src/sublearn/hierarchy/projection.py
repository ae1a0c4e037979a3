"""Scores of labels made consistent with a taxonomy: the hierarchical operator and its kin."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from sublearn.errors import ParameterError
from sublearn.hierarchy.taxonomy import Taxonomy
from sublearn.trace import attend
from sublearn.validation import Positive, as_n_threads, check_argument
from sublearn.validation.values import show

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = [
    "as_group_weights",
    "hierarchy_support",
    "leaf_reduce",
    "project_hierarchy",
    "project_hierarchy_gradient",
    "project_rows",
    "root_map",
]

_MAX_SWEEPS = 10_000


def project_hierarchy(
    u: ArrayLike, taxonomy: Taxonomy, phi: ArrayLike, *, tol: float = 1e-10, n_jobs: int | None = 1
) -> np.ndarray:
    r"""The hierarchical operator (3.3.1) of [1]_, for one row of scores or many.

    .. math::
        P(u, \phi) = \operatorname{argmin}_v \tfrac12 \|u - v\|^2 + \sum_t \phi_t \|v_{D(t)}\|

    where :math:`D(t)` is label t with all its descendants. A group whose norm is below its weight
    becomes zero as a whole, so what is left of the scores agrees with the taxonomy. Where every
    label has at most one parent, one pass from the leaves to the roots and one back give the
    result (theorem 2), in a time linear in the number of labels. Else the dual (3.4.1) is
    maximised one group after another until its gap is closed; where a group is about to become
    zero that can take thousands of sweeps.

    Parameters
    ----------
    u : array-like of shape (n_labels,) or (n_samples, n_labels)
        Scores; float32 stays float32.
    taxonomy : Taxonomy
        The labels.
    phi : float or array-like of shape (n_labels,)
        Weights of the groups, not negative.
    tol : float, default=1e-10
        On the duality gap divided by half the squared norm of a row, where labels have several
        parents.
    n_jobs : int or None, default=1
        Threads. The result does not depend on it.

    Returns
    -------
    ndarray of the shape of `u`

    References
    ----------
    .. [1] X. Tang, "Big Data Optimization in Machine Learning", thesis, Lehigh University, 2016.

    Examples
    --------
    The second child pulls its parent along, or is pulled down by it and its sister (section 3.5):

    >>> taxonomy = Taxonomy([-1, 0, 0])
    >>> project_hierarchy([0.3, 0.9, 0.8], taxonomy, 0.5).round(3)
    array([0.043, 0.057, 0.043])
    >>> project_hierarchy([0.3, 0.3, 0.8], taxonomy, 0.5)
    array([0., 0., 0.])
    """
    rows, weights, is_single = _read("project_hierarchy", u, taxonomy, phi, tol)
    v = np.empty_like(rows)
    project_rows(taxonomy, rows, weights, v, _NO_SUPPORT, tol, n_jobs)
    return v[0] if is_single else v


def hierarchy_support(
    u: ArrayLike, taxonomy: Taxonomy, phi: ArrayLike, *, tol: float = 1e-6, n_jobs: int | None = 1
) -> np.ndarray:
    """Which labels :func:`project_hierarchy` keeps: those whose group is not zero.

    With a label all its ancestors are kept, also one whose own score is 0: its descendants speak
    for it. This is the mask that algorithm 13 of [1]_ returns.

    Parameters
    ----------
    u, taxonomy, phi, n_jobs
        As for :func:`project_hierarchy`.
    tol : float, default=1e-6
        As for :func:`project_hierarchy`. The labels agree with the taxonomy whatever it is: groups
        that the gap cannot tell from zero are zero.

    Returns
    -------
    ndarray of bool, of the shape of `u`
    """
    rows, weights, is_single = _read("hierarchy_support", u, taxonomy, phi, tol)
    on = np.empty(rows.shape, dtype=bool)
    project_rows(taxonomy, rows, weights, np.empty((0, 0), rows.dtype), on, tol, n_jobs)
    return on[0] if is_single else on


def project_hierarchy_gradient(
    u: ArrayLike,
    taxonomy: Taxonomy,
    phi: ArrayLike,
    slope: ArrayLike,
    *,
    tol: float = 1e-12,
    n_jobs: int | None = 1,
) -> tuple[np.ndarray, np.ndarray]:
    r"""Gradients of :math:`\langle \mathrm{slope}, P(u, \phi) \rangle` in u and in phi.

    Backwards through the two passes, in linear time; where labels have several parents, by a
    system of equations on the labels that are kept. At points where a group is about to become
    zero the operator has no derivative, and one of the two sides is returned.

    Parameters
    ----------
    u, taxonomy, phi, n_jobs
        As for :func:`project_hierarchy`.
    slope : array-like of the shape of `u`
        Gradient of a function in the projected scores.
    tol : float, default=1e-12
        As for :func:`project_hierarchy`.

    Returns
    -------
    u_slope : ndarray of the shape of `u`
        Gradient in u.
    phi_slope : ndarray of shape (n_labels,)
        Gradient in phi, added up over the rows.

    Examples
    --------
    >>> u_slope, phi_slope = project_hierarchy_gradient([3.0, 4.0], Taxonomy([-1, 0]), 1.0, [1, 0])
    >>> u_slope.round(3), phi_slope.round(3)
    (array([0.882, 0.118]), array([-0.707, -0.118]))
    """
    who = "project_hierarchy_gradient"
    rows, weights, is_single = _read(who, u, taxonomy, phi, tol)
    slopes = np.atleast_2d(_as_numbers(f"{who}: slope", slope))
    slopes = np.ascontiguousarray(slopes, dtype=rows.dtype)
    if slopes.shape != rows.shape:
        raise ParameterError(f"{who}: slope must have the shape of u, got {slopes.shape}")
    out = np.empty_like(rows)
    settings = (tol, _MAX_SWEEPS, as_n_threads(n_jobs))
    found = attend(
        lambda monitor: taxonomy._graph.gradient(rows, weights, slopes, out, *settings, monitor),
        _n_operations(taxonomy, rows),
    )
    return (out[0] if is_single else out), found


def leaf_reduce(u: ArrayLike, taxonomy: Taxonomy, phi: ArrayLike) -> np.ndarray:
    """Leaf Reduce (algorithm 11): a label is on if its score or one below it reaches phi.

    Parameters
    ----------
    u : array-like of shape (n_labels,) or (n_samples, n_labels)
        Scores.
    taxonomy : Taxonomy
        The labels.
    phi : float or array-like of shape (n_labels,)
        Thresholds.

    Returns
    -------
    ndarray of bool, of the shape of `u`

    Examples
    --------
    >>> leaf_reduce([0.3, 0.3, 0.8], Taxonomy([-1, 0, 0]), 0.5)
    array([ True, False,  True])
    """
    on, is_single = _above("leaf_reduce", u, taxonomy, phi)
    taxonomy._graph.leaf_reduce(on)
    return on[0] if is_single else on


def root_map(u: ArrayLike, taxonomy: Taxonomy, phi: ArrayLike) -> np.ndarray:
    """Root Map (algorithm 12): a label is on if its score and all above it reach phi.

    Parameters
    ----------
    u, taxonomy, phi
        As for :func:`leaf_reduce`.

    Returns
    -------
    ndarray of bool, of the shape of `u`

    Examples
    --------
    >>> root_map([0.3, 0.9, 0.8], Taxonomy([-1, 0, 0]), 0.5)
    array([False, False, False])
    """
    on, is_single = _above("root_map", u, taxonomy, phi)
    taxonomy._graph.root_map(on)
    return on[0] if is_single else on


_NO_SUPPORT = np.empty((0, 0), dtype=bool)


def project_rows(
    taxonomy: Taxonomy,
    rows: np.ndarray,
    phi: np.ndarray,
    v: np.ndarray,
    on: np.ndarray,
    tol: float,
    n_jobs: int | None,
) -> None:
    """The operator into `v` and `on`, either of which may be empty; `rows` are not checked."""
    settings = (tol, _MAX_SWEEPS, as_n_threads(n_jobs))
    gap = attend(
        lambda monitor: taxonomy._graph.project(rows, phi, v, on, *settings, monitor),
        _n_operations(taxonomy, rows),
    )
    if gap > tol:
        warnings.warn(
            f"project_hierarchy: {_MAX_SWEEPS} sweeps reached a relative gap of {gap:.3g}, "
            f"asked for tol={tol:g}",
            ConvergenceWarning,
            stacklevel=3,
        )


def _n_operations(taxonomy: Taxonomy, rows: np.ndarray) -> float:
    """Of two passes over a forest; else of all the sweeps that there may be."""
    return 10.0 * rows.size * (1 if taxonomy.is_forest else _MAX_SWEEPS)


def _above(who: str, u: ArrayLike, taxonomy: Taxonomy, phi: ArrayLike) -> tuple[np.ndarray, bool]:
    rows, is_single = _as_rows(who, u, taxonomy)
    thresholds = _per_label(f"{who}: phi", phi, taxonomy.n_labels)
    return np.ascontiguousarray(rows >= thresholds), is_single


def _read(
    who: str, u: ArrayLike, taxonomy: Taxonomy, phi: ArrayLike, tol: float
) -> tuple[np.ndarray, np.ndarray, bool]:
    """Rows of scores, weights of groups, and whether `u` was one row."""
    rows, is_single = _as_rows(who, u, taxonomy)
    check_argument(f"{who}.tol", tol, Positive(float))
    return rows, as_group_weights(f"{who}: phi", phi, taxonomy.n_labels), is_single


def _as_rows(who: str, u: ArrayLike, taxonomy: Taxonomy) -> tuple[np.ndarray, bool]:
    """Finite scores as a C-contiguous matrix of float32 or float64."""
    if not isinstance(taxonomy, Taxonomy):
        raise ParameterError(f"{who}: taxonomy must be a Taxonomy, got {show(taxonomy)}")
    rows = _as_numbers(f"{who}: u", u)
    rows = rows.astype(rows.dtype if rows.dtype in (np.float32, np.float64) else np.float64)
    if rows.ndim not in (1, 2) or rows.shape[-1] != taxonomy.n_labels:
        raise ParameterError(
            f"{who}: u must have {taxonomy.n_labels} entries in a row, one for each label, "
            f"got shape {rows.shape}"
        )
    return np.ascontiguousarray(np.atleast_2d(rows)), rows.ndim == 1


def _as_numbers(what: str, values: ArrayLike) -> np.ndarray:
    """An array of finite numbers."""
    if sp.issparse(values):
        raise ParameterError(f"{what} must be dense (toarray), got a sparse matrix")
    try:
        found = np.asarray(values)
        found = found.astype(np.float64) if found.dtype.kind == "O" else found
    except (TypeError, ValueError):
        found = np.empty(0, dtype=str)  # rows of several lengths, or things that are no numbers
    if values is None or found.dtype.kind not in "biuf":
        raise ParameterError(f"{what} must be numbers, got {show(values)}")
    if not np.isfinite(found).all():
        raise ParameterError(f"{what} must be finite, got NaN or infinity")
    return found


def as_group_weights(what: str, phi: ArrayLike, n_labels: int) -> np.ndarray:
    """Weights of groups, one for each label and none negative."""
    weights = _per_label(what, phi, n_labels)
    if (weights < 0).any():
        raise ParameterError(f"{what} must not be negative, got {weights.min():g}")
    return weights


def _per_label(what: str, phi: ArrayLike, n_labels: int) -> np.ndarray:
    weights = _as_numbers(what, phi).astype(np.float64)
    if weights.shape not in ((), (n_labels,)):
        raise ParameterError(
            f"{what} must be a number or {n_labels} of them, got shape {weights.shape}"
        )
    return np.ascontiguousarray(np.broadcast_to(weights, n_labels))
