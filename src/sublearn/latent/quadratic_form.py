"""The symmetric matrix of a Boolean quadratic problem, in whichever form it was given.

Three forms answer the same questions: the product with a vector, the native problem, and whether
``Diag(d) - [scale Q, b; b', 0]`` is positive definite, which proves an upper bound.
"""

from __future__ import annotations

import abc

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from sublearn import _core
from sublearn.typing import Matrix

__all__ = ["FactoredForm", "QuadraticForm", "form_of_factor", "form_of_matrix"]

# Vertices of a dense Cholesky factor: where Q is dense as well, and where it is sparse (then sweeps
# take little time, and the factor must not take much more; a sparse one fills up on most graphs).
_MOST_DENSE, _MOST_SPARSE = 8000, 4000


class QuadraticForm(abc.ABC):
    """A symmetric matrix Q of `size` rows."""

    size: int

    @abc.abstractmethod
    def times(self, v: np.ndarray) -> np.ndarray:
        """Q v."""

    @abc.abstractmethod
    def native(self, scale: float, b: np.ndarray | None) -> _core.BooleanQuadratic:
        """scale * y'Qy + 2 b'y as the core has it."""

    @abc.abstractmethod
    def is_dominated(self, d: np.ndarray, scale: float, b: np.ndarray | None) -> bool | None:
        """Whether Diag(d) - [scale Q, b; b', 0] is positive definite; None if that costs too much.

        A factorisation that runs to its end is a proof but for rounding, for which the caller
        leaves a margin.
        """


class _DenseForm(QuadraticForm):
    """Q as an array; dominated as a dense Cholesky factor says."""

    def __init__(self, Q: np.ndarray):
        self.Q, self.size = Q, len(Q)

    def times(self, v: np.ndarray) -> np.ndarray:
        return self.Q @ v

    def native(self, scale: float, b: np.ndarray | None) -> _core.BooleanQuadratic:
        return _core.dense_boolean_quadratic(self.Q, scale, b)

    def is_dominated(self, d: np.ndarray, scale: float, b: np.ndarray | None) -> bool | None:
        if len(d) > _MOST_DENSE:
            return None
        S = np.zeros((len(d), len(d)), order="F")
        n = self.size
        np.multiply(self.Q, -scale, out=S[:n, :n])
        if b is not None:
            S[n, :n] = S[:n, n] = -b
        S[np.diag_indices(len(d))] += d
        try:
            np.linalg.cholesky(S)  # SciPy's would hold the lock of Python, and Ctrl-C, for seconds
        except np.linalg.LinAlgError:
            return False
        return True


class _SparseForm(QuadraticForm):
    """Q as a CSR matrix without its diagonal, and the diagonal; dominated as a dense one."""

    def __init__(self, Q: sp.csr_matrix):
        self.diagonal, self.size = Q.diagonal(), Q.shape[0]
        self.off = off = sp.csr_matrix(Q - sp.diags(self.diagonal))
        off.eliminate_zeros()
        off.sort_indices()
        off.indptr, off.indices = off.indptr.astype(np.int32), off.indices.astype(np.int32)

    def times(self, v: np.ndarray) -> np.ndarray:
        return self.off @ v + self.diagonal * v

    def native(self, scale: float, b: np.ndarray | None) -> _core.BooleanQuadratic:
        Q = self.off
        return _core.sparse_boolean_quadratic(Q.indptr, Q.indices, Q.data, self.diagonal, scale, b)

    def is_dominated(self, d: np.ndarray, scale: float, b: np.ndarray | None) -> bool | None:
        if len(d) > _MOST_SPARSE:
            return None
        Q = (self.off + sp.diags(self.diagonal)).toarray()
        return _DenseForm(Q).is_dominated(d, scale, b)


class FactoredForm(QuadraticForm):
    """Q = A A'."""

    def __init__(self, A: np.ndarray):
        self.A, self.size = A, len(A)

    def times(self, v: np.ndarray) -> np.ndarray:
        """Q v."""
        return self.A @ (self.A.T @ v)

    def native(self, scale: float, b: np.ndarray | None) -> _core.BooleanQuadratic:
        """The problem as the core has it."""
        return _core.factored_boolean_quadratic(self.A, scale, b)

    def is_dominated(self, d: np.ndarray, scale: float, b: np.ndarray | None) -> bool | None:
        """By Schur complements: D = Diag(d) dominates scale A A' where I - scale A'D^-1 A > 0."""
        n = self.size
        if (d <= 0).any():
            return False
        weighted = self.A / d[:n, None]
        inner = np.eye(self.A.shape[1]) - scale * (self.A.T @ weighted)
        try:
            factor = scipy.linalg.cho_factor(inner)
        except scipy.linalg.LinAlgError:
            return False
        if b is None:
            return True
        # b'(D - scale A A')^-1 b by the formula of Woodbury
        pull = weighted.T @ b
        inside = b @ (b / d[:n]) + scale * pull @ scipy.linalg.cho_solve(factor, pull)
        return bool(d[n] > inside)


def form_of_matrix(Q: Matrix) -> QuadraticForm:
    """An array or a CSR matrix that is symmetric but for rounding."""
    Q = 0.5 * (Q + Q.T)
    return _SparseForm(Q) if sp.issparse(Q) else _DenseForm(np.ascontiguousarray(Q))


def form_of_factor(A: np.ndarray) -> QuadraticForm:
    """A A' in the form with the cheaper sweeps: n^2 operations, or 2 n d to use and keep A'V."""
    A = np.ascontiguousarray(A)
    return _DenseForm(A @ A.T) if len(A) <= 2 * A.shape[1] else FactoredForm(A)
