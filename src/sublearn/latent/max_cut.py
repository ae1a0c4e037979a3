"""The largest cut of a graph, approximately, with a bound that no cut exceeds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from sublearn.errors import ParameterError
from sublearn.latent.boolean_quadratic import (
    BooleanQuadraticSolution,
    as_symmetric,
    relative_gap,
    solve_boolean_quadratic,
)
from sublearn.trace import Solution
from sublearn.typing import Matrix, MatrixLike

if TYPE_CHECKING:
    import networkx

__all__ = ["MaxCutSolution", "solve_max_cut"]


@dataclass(frozen=True)
class MaxCutSolution(Solution):
    """What :func:`solve_max_cut` found.

    `certificate` is (bound - cut) / bound, 0 where both are 0. `status` is converged if the
    relaxation is solved to `tol`; `n_iter` and `trace` are of sweeps.

    Parameters
    ----------
    side : ndarray of int8, shape (n_vertices,)
        0 or 1 for each vertex; vertex 0 is on side 0.
    bound : float
        No cut weighs more.
    relaxed_cut : float
        Value of the semidefinite relaxation.
    details : BooleanQuadraticSolution
        The Boolean quadratic problem behind it: vectors for `init`, candidates.
    """

    side: np.ndarray = field(repr=False)
    bound: float
    relaxed_cut: float
    details: BooleanQuadraticSolution = field(repr=False)

    @property
    def cut(self) -> float:
        """The objective: weight of the edges between the sides."""
        return self.objective


def solve_max_cut(graph: MatrixLike | networkx.Graph, **options: Any) -> MaxCutSolution:
    r"""Split the vertices of a graph so that much weight lies between the two sides.

    Maximises :math:`\tfrac12 \sum_{i<j} w_{ij} (1 - y_i y_j)` over signs y, a Boolean quadratic
    problem. On a graph with non-negative weights the hyperplanes alone reach 0.878 of the optimum
    on average [1]_.

    Parameters
    ----------
    graph : array-like or sparse matrix of shape (n, n), or networkx Graph
        Symmetric weights; the diagonal does not matter. Weights may be negative. Of a networkx
        graph the attribute "weight" counts, 1 if there is none; vertices are in the order of its
        nodes.
    **options
        As of :func:`sublearn.latent.solve_boolean_quadratic`: `n_rounds`, `tol`, `max_iter`,
        `rank`, `init`, `n_jobs`, `random_state`, `verbose`, `callback`, `certify`.

    Returns
    -------
    MaxCutSolution

    References
    ----------
    .. [1] M. Goemans, D. Williamson, "Improved Approximation Algorithms for Maximum Cut and
       Satisfiability Problems Using Semidefinite Programming", JACM 42, 1995.

    Examples
    --------
    >>> from sublearn.latent import solve_max_cut
    >>> found = solve_max_cut([[0, 1, 1], [1, 0, 1], [1, 1, 0]], random_state=0)
    >>> found.cut, found.side.tolist().count(0) in (1, 2)
    (2.0, True)
    """
    for name in ("quadratic", "factor", "linear", "domain"):
        if name in options:
            raise ParameterError(f"solve_max_cut takes no {name}: the graph stands for it")
    weights = as_symmetric("solve_max_cut.graph", _as_weights(graph))
    weights = weights - _diagonal(weights)
    found = solve_boolean_quadratic(-0.25 * weights, domain="pm1", **options)
    all_edges = 0.25 * float(weights.sum())
    cut, bound = _tidy(found.value + all_edges), found.bound + all_edges
    return MaxCutSolution(
        status=found.status,
        objective=cut,
        certificate=relative_gap(cut, bound),
        n_iter=found.n_iter,
        trace=found.trace,
        side=((found.z + 1) // 2).astype(np.int8),
        bound=bound,
        relaxed_cut=found.relaxed_value + all_edges,
        details=found,
    )


def _as_weights(graph: MatrixLike | networkx.Graph) -> MatrixLike:
    """The matrix of a graph of networkx, in the order of its nodes; others as they are."""
    if not hasattr(graph, "is_directed"):
        return graph
    import networkx

    if graph.is_directed():
        raise ParameterError("solve_max_cut.graph must be undirected, got a directed one")
    return networkx.to_scipy_sparse_array(graph, dtype=np.float64, format="csr")


def _diagonal(weights: Matrix) -> Matrix:
    if sp.issparse(weights):
        return sp.diags(weights.diagonal(), format="csr")
    return np.diag(np.diag(weights))


def _tidy(value: float) -> float:
    """Rounding of the sum apart, whole weights give whole cuts."""
    nearest = round(value)
    return float(nearest) if abs(value - nearest) <= 1e-9 * max(1.0, abs(value)) else value
