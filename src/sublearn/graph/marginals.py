"""Marginal probabilities of a factor graph, and the best score that each label can have."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass

import numpy as np

from sublearn import _core
from sublearn.errors import ParameterError
from sublearn.graph.bucket_tree import BucketTree, log_sum, maximum
from sublearn.graph.factor_graph import FactorGraph
from sublearn.graph.map import run_map
from sublearn.typing import Seed
from sublearn.validation import NonNegative, OrNone, Positive, Rule, as_seed, check_arguments
from sublearn.validation.values import show

__all__ = ["Marginals", "MaxMarginals", "marginals", "max_marginals"]

_RULES: dict[str, Rule] = {"tol": NonNegative(float), "search_work": NonNegative(float),
                           "time_limit": OrNone(Positive(float))}  # fmt: skip


@dataclass(frozen=True)
class Marginals:
    """What :func:`marginals` found.

    Parameters
    ----------
    probabilities : list of ndarray
        Of the labels of each variable.
    log_partition : float
        log of the sum of exp(score) over all assignments.
    names : list of hashable, optional
        What the variables are called, if the graph has names.
    """

    probabilities: list[np.ndarray]
    log_partition: float
    names: list[Hashable] | None = None

    def __getitem__(self, variable: Hashable) -> np.ndarray:
        return self.probabilities[_place(self.names, variable)]


@dataclass(frozen=True)
class MaxMarginals:
    """What :func:`max_marginals` found: for each label the best score of an assignment that has it.

    Parameters
    ----------
    lower, upper : list of ndarray
        Bounds for the labels of each variable: `lower` is the score of an assignment, no other
        with that label scores more than `upper`. Both are -inf for a label that is never allowed.
    is_exact : bool
        Whether the two are one.
    names : list of hashable, optional
        What the variables are called, if the graph has names.
    """

    lower: list[np.ndarray]
    upper: list[np.ndarray]
    is_exact: bool
    names: list[Hashable] | None = None

    def __getitem__(self, variable: Hashable) -> np.ndarray:
        return self.lower[_place(self.names, variable)]


def _place(names: list[Hashable] | None, variable: Hashable) -> int:
    if names is not None:
        return names.index(variable)
    if not isinstance(variable, (int, np.integer)):
        raise TypeError(
            f"variable must be a number, as the graph has no names, got {show(variable)}"
        )
    return int(variable)


def marginals(graph: FactorGraph) -> Marginals:
    r"""Compute the probability of each label of each variable, exactly.

    With probabilities of assignments in proportion to :math:`\exp(\mathrm{score})`, that of label
    a at variable i is

    .. math::
        p_i(a) = \frac{\sum_{x:\, x_i = a} \exp(\mathrm{score}(x))}{\sum_x \exp(\mathrm{score}(x))}

    Parameters
    ----------
    graph : FactorGraph
        Of small width: chains, trees, narrow grids. The tables that elimination makes may have a
        million cells each and 17 million in all; a wider graph is refused.

    Returns
    -------
    Marginals

    Examples
    --------
    >>> from sublearn.graph import FactorGraph, marginals, potts
    >>> graph = FactorGraph(unary=[[0.0, 1.0], [0.0, 0.0]], names=["rain", "road"])
    >>> graph.add_factor(["rain", "road"], potts(2, 2.0))
    >>> marginals(graph)["road"].round(3).tolist()
    [0.324, 0.676]
    """
    _check_graph(graph, "marginals")
    tree = BucketTree(graph)
    if not tree.is_narrow:
        raise ValueError(
            "marginals.graph must have a small width, as chains and trees have, got one whose "
            "elimination needs too large tables; max_marginals takes any graph"
        )
    scores, total = tree.run(graph._unary, log_sum)
    if np.isneginf(total):
        raise ValueError("marginals.graph must allow an assignment, got none without a -inf")
    return Marginals([np.exp(own - total) for own in scores], total, graph.names)


def max_marginals(
    graph: FactorGraph,
    *,
    tol: float = 1e-6,
    search_work: float = 1e7,
    time_limit: float | None = None,
    random_state: Seed = None,
) -> MaxMarginals:
    r"""Find for each label the best score of all assignments that have it, or bounds on that score.

    .. math::
        M_i(a) = \max_{x:\, x_i = a} \mathrm{score}(x)

    Exact on graphs of small width, chains and trees among them. On others :func:`solve_map` is
    asked once for each label: `lower` is what it found and `upper` its bound.

    Parameters
    ----------
    graph : FactorGraph
    tol : float, default 1e-6
        Relative gap at which a label's search ends.
    search_work : float, default 1e7
        Operations of each label's search after its bound has converged.
    time_limit : float, optional
        Seconds for each label.
    random_state : int, RandomState, Generator or None, optional
        Seed of the searches.

    Returns
    -------
    MaxMarginals
    """
    check_arguments("max_marginals", locals(), _RULES)
    _check_graph(graph, "max_marginals")
    tree = BucketTree(graph)
    if tree.is_narrow:
        scores, _ = tree.run(graph._unary, maximum)
        return MaxMarginals(scores, scores, True, graph.names)
    settings = _core.MapSettings()
    settings.tol, settings.search_work, settings.seed = tol, search_work, as_seed(random_state)
    settings.time_limit = np.inf if time_limit is None else time_limit
    found = list(_label_by_label(graph, settings))
    cuts = np.cumsum(graph.domain)[:-1]
    lower, upper = (np.split(np.array(side), cuts) for side in zip(*found, strict=True))
    is_exact = all(np.array_equal(a, b) for a, b in zip(lower, upper, strict=True))
    return MaxMarginals(lower, upper, is_exact, graph.names)


def _label_by_label(
    graph: FactorGraph, settings: _core.MapSettings
) -> Iterator[tuple[float, float]]:
    base = graph.copy()
    for i, n_labels in enumerate(graph.domain.tolist()):
        begin = int(graph._begin[i])
        for a in range(n_labels):
            if np.isneginf(graph._unary[begin + a]):
                yield -np.inf, -np.inf
                continue
            fixed = np.full(graph.n_variables, -1)
            fixed[i] = a
            base = base.copy()  # a graph with the core's tables of the one before
            base._unary, base._is_unary_new = graph._only(fixed), True
            result = run_map(base, settings)
            yield result.score, result.bound if np.isfinite(result.score) else result.score


def _check_graph(graph: FactorGraph, name: str) -> None:
    if not isinstance(graph, FactorGraph):
        raise ParameterError(f"{name}.graph must be a FactorGraph, got {show(graph)}")
