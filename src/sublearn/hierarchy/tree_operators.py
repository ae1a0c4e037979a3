r"""Recursions over a forest for any operators: treeMap and treeReduce, algorithms 9 and 10.

Tang, "Big Data Optimization in Machine Learning", 2016, section 3.5, writes Leaf Reduce, Root Map
and the hierarchical operator with these two. All labels of one level are visited at once, for all
rows at once, so that an operator is called on arrays: a NumPy function such as `np.add` or
`np.logical_and`, or any function of two arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from sublearn.errors import ParameterError
from sublearn.hierarchy.taxonomy import Taxonomy
from sublearn.validation.values import show

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["tree_map", "tree_reduce"]

#: Of two arrays of one shape, an array of that shape.
Operator: TypeAlias = Callable[[np.ndarray, np.ndarray], np.ndarray]
#: Of eta, phi and u, the value of rho.
NodeRule: TypeAlias = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]


def tree_map(
    rho: ArrayLike, taxonomy: Taxonomy, gamma: Operator, *, above: float | None = None
) -> np.ndarray:
    r"""Values handed down from the roots (treeMap, algorithm 9 of [1]_).

    .. math:: \rho_t \leftarrow \Gamma(\rho_t, \rho_{\mathrm{parent}(t)})

    from the roots to the leaves.

    Parameters
    ----------
    rho : array-like of shape (n_labels,) or (n_samples, n_labels)
        Values of the labels.
    taxonomy : Taxonomy
        The labels; each has at most one parent.
    gamma : callable
        Takes the values of labels and those of their parents, two arrays of one shape.
    above : float or None, default=None
        The value above the roots; without one roots stay as they are.

    Returns
    -------
    ndarray of the shape of `rho`

    References
    ----------
    .. [1] X. Tang, "Big Data Optimization in Machine Learning", thesis, Lehigh University, 2016.

    Examples
    --------
    The depth of each label, and Root Map (algorithm 12):

    >>> import numpy as np
    >>> taxonomy = Taxonomy([-1, 0, 0, 1])
    >>> tree_map(np.ones(4), taxonomy, np.add, above=-1)
    array([0., 1., 1., 2.])
    >>> tree_map(np.array([0.9, 0.3, 0.8, 0.9]) >= 0.5, taxonomy, np.logical_and)
    array([ True, False,  True, False])
    """
    values, is_single = _read("tree_map: rho", rho, taxonomy)
    apply = _checked("tree_map.gamma", gamma)
    if above is not None:
        roots = np.flatnonzero(_parent_of(taxonomy) < 0)
        own = values[:, roots]
        values = _with(values, roots, apply(own, np.full(own.shape, above)))
    for labels, parents in _levels_down(taxonomy):
        values = _with(values, labels, apply(values[:, labels], values[:, parents]))
    return values[0] if is_single else values


def _with(values: np.ndarray, labels: np.ndarray, found: np.ndarray) -> np.ndarray:
    """Values with those of some labels replaced, of a type that holds what was found."""
    values = values.astype(np.result_type(values, found), copy=False)
    values[:, labels] = found
    return values


def tree_reduce(
    eta: ArrayLike,
    taxonomy: Taxonomy,
    gamma_1: Operator,
    gamma_2: Operator,
    rule: NodeRule,
    *,
    phi: ArrayLike = 0.0,
    u: ArrayLike = 0.0,
) -> tuple[np.ndarray, np.ndarray]:
    r"""Values gathered from the leaves (treeReduce, algorithm 10 of [1]_).

    .. math::
        \eta_t \leftarrow \Gamma_1(r_c, \eta_t) \text{ for each child } c, \qquad
        \rho_t \leftarrow R(\eta_t, \phi_t, u_t), \qquad r_t = \Gamma_2(\eta_t, \rho_t)

    where :math:`r_c` is what a child returns; children come in the order of their positions.

    Parameters
    ----------
    eta : array-like of shape (n_labels,) or (n_samples, n_labels)
        Values of the labels to begin with.
    taxonomy : Taxonomy
        The labels; each has at most one parent.
    gamma_1, gamma_2 : callable
        Of two arrays of one shape: what a child returned and eta of its parent; eta and rho.
    rule : callable
        R, of three arrays of one shape: eta, phi and u.
    phi, u : float or array-like that can be broadcast to the shape of `eta`, default=0
        What R takes besides.

    Returns
    -------
    rho, eta : ndarray of the shape of `eta`

    References
    ----------
    .. [1] X. Tang, "Big Data Optimization in Machine Learning", thesis, Lehigh University, 2016.

    Examples
    --------
    The hierarchical operator (algorithm 13): factors from the leaves up, then their products down.

    >>> import numpy as np
    >>> taxonomy, u = Taxonomy([-1, 0, 0]), np.array([0.3, 0.9, 0.8])
    >>> def shrink(eta, phi, u):
    ...     return np.maximum(1 - phi / np.sqrt(eta), 0)
    >>> rho, _ = tree_reduce(u**2, taxonomy, np.add, lambda e, r: r**2 * e, shrink, phi=0.5)
    >>> (u * tree_map(rho, taxonomy, np.multiply)).round(3)
    array([0.043, 0.057, 0.043])
    """
    values, is_single = _read("tree_reduce: eta", eta, taxonomy)
    first, second = (
        _checked("tree_reduce.gamma_1", gamma_1),
        _checked("tree_reduce.gamma_2", gamma_2),
    )
    decide = _checked("tree_reduce.rule", rule)
    others = [
        _spread(f"tree_reduce: {name}", v, values.shape) for name, v in (("phi", phi), ("u", u))
    ]
    rho: np.ndarray | None = None
    for labels, parents in _levels_up(taxonomy):
        own = values[:, labels]
        found = decide(own, *(other[:, labels] for other in others))
        rho = np.empty(values.shape, dtype=found.dtype) if rho is None else rho
        rho = _with(rho, labels, found)
        returned = second(own, found)
        for some in _one_child_each(parents):
            at = parents[some]
            values = _with(values, at, first(returned[:, some], values[:, at]))
    if rho is None:
        rho = values.copy()
    return (rho[0], values[0]) if is_single else (rho, values)


# --- the order of visits -----------------------------------------------------------------------


def _parent_of(taxonomy: Taxonomy) -> np.ndarray:
    """The parent of each label, -1 for roots."""
    parent = np.full(taxonomy.n_labels, -1)
    parent[np.diff(taxonomy.indptr) > 0] = taxonomy.indices
    return parent


def _levels_down(taxonomy: Taxonomy) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Labels of each level below the roots, and their parents."""
    parent = _parent_of(taxonomy)
    for level in range(1, int(taxonomy.levels.max(initial=0)) + 1):
        labels = np.flatnonzero(taxonomy.levels == level)
        yield labels, parent[labels]


def _levels_up(taxonomy: Taxonomy) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Labels of each level from the deepest one to the roots, and their parents."""
    parent = _parent_of(taxonomy)
    for level in range(int(taxonomy.levels.max(initial=-1)), -1, -1):
        labels = np.flatnonzero(taxonomy.levels == level)
        yield labels, parent[labels]


def _one_child_each(parents: np.ndarray) -> Iterator[np.ndarray]:
    """Places in `parents`: the first child of each parent, then the second ones, and so on."""
    order = np.argsort(parents, kind="stable")
    order = order[parents[order] >= 0]
    own = parents[order]
    if not len(own):
        return
    starts = np.flatnonzero(np.concatenate([[True], own[1:] != own[:-1]]))
    rank = np.arange(len(own)) - np.repeat(starts, np.diff(np.append(starts, len(own))))
    for k in range(int(rank.max()) + 1):
        yield order[rank == k]


# --- what is given -----------------------------------------------------------------------------


def _read(what: str, values: ArrayLike, taxonomy: Taxonomy) -> tuple[np.ndarray, bool]:
    """A copy of the values as rows, and whether there was one row."""
    who = what.split(":")[0]
    if not isinstance(taxonomy, Taxonomy):
        raise ParameterError(f"{who}: taxonomy must be a Taxonomy, got {show(taxonomy)}")
    if not taxonomy.is_forest:
        raise ParameterError(f"{who}: taxonomy must be a forest, got labels with several parents")
    found = _numbers(what, values)
    if found.ndim not in (1, 2) or found.shape[-1] != taxonomy.n_labels:
        raise ParameterError(
            f"{what} must have {taxonomy.n_labels} entries in a row, one for each label, "
            f"got shape {found.shape}"
        )
    return np.atleast_2d(found).copy(), found.ndim == 1


def _numbers(what: str, values: ArrayLike) -> np.ndarray:
    try:
        found = np.asarray(values)
    except (TypeError, ValueError):
        found = np.empty(0, dtype=str)
    if found.dtype.kind not in "biuf":
        raise ParameterError(f"{what} must be numbers or booleans, got {show(values)}")
    return found


def _spread(what: str, values: ArrayLike, shape: tuple[int, ...]) -> np.ndarray:
    found = _numbers(what, values)
    try:
        return np.broadcast_to(found, shape)
    except ValueError:
        raise ParameterError(f"{what} must have shape {shape}, got {found.shape}") from None


def _checked(what: str, operator: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    """The operator, whose results must have the shape of its arguments."""
    if not callable(operator):
        raise ParameterError(f"{what} must be a function of arrays, got {show(operator)}")

    def apply(*given: np.ndarray) -> np.ndarray:
        found = np.asarray(operator(*given))
        if found.shape != given[0].shape:
            raise ParameterError(
                f"{what} must return an array of shape {given[0].shape}, got {found.shape}"
            )
        return found

    return apply
