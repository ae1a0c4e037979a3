"""The symmetric matrix of a Boolean quadratic problem, in whichever form it was given.

Three forms answer the same questions: the product with a vector, the native problem, and whether
``Diag(d) - [scale C, b; b', 0]`` is positive definite, which proves an upper bound.
"""

from __future__ import annotations

import abc
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from sublearn import _core

__all__ = ["DenseForm", "FactoredForm", "QuadraticForm", "SparseForm", "form_of_factor"]

# Vertices of a dense Cholesky factor: where C is dense as well, and where it is sparse (then sweeps
# take little time, and the factor must not take much more; a sparse one fills up on most graphs).
_MOST_DENSE, _MOST_SPARSE = 8000, 4000


class QuadraticForm(abc.ABC):
    """A symmetric matrix C."""

    @property
    @abc.abstractmethod
    def size(self) -> int:
        """Rows of C."""

    @abc.abstractmethod
    def times(self, v: np.ndarray) -> np.ndarray:
        """C v."""

    @abc.abstractmethod
    def native(self, scale: float, b: np.ndarray | None) -> Any:
        """scale * y'Cy + 2 b'y as the core has it."""

    @abc.abstractmethod
    def is_dominated(self, d: np.ndarray, scale: float, b: np.ndarray | None) -> bool | None:
        """Whether Diag(d) - [scale C, b; b', 0] is positive definite; None if that costs too much.

        A factorisation that runs to its end is a proof but for rounding, for which the caller
        leaves a margin.
        """


@dataclass(frozen=True)
class DenseForm(QuadraticForm):
    """C as an array."""

    C: np.ndarray

    @property
    def size(self) -> int:
        """Rows of C."""
        return len(self.C)

    def times(self, v: np.ndarray) -> np.ndarray:
        """C v."""
        return self.C @ v

    def native(self, scale: float, b: np.ndarray | None) -> Any:
        """The problem as the core has it."""
        return _core.dense_boolean_quadratic(self.C, scale, b)

    def is_dominated(self, d: np.ndarray, scale: float, b: np.ndarray | None) -> bool | None:
        """By a dense Cholesky factor."""
        if len(d) > _MOST_DENSE:
            return None
        S = np.zeros((len(d), len(d)), order="F")
        n = self.size
        np.multiply(self.C, -scale, out=S[:n, :n])
        if b is not None:
            S[n, :n] = S[:n, n] = -b
        S[np.diag_indices(len(d))] += d
        return _has_cholesky(S)


@dataclass(frozen=True)
class SparseForm(QuadraticForm):
    """C as a CSR matrix without its diagonal, and the diagonal."""

    off_diagonal: sp.csr_matrix
    diagonal: np.ndarray

    @property
    def size(self) -> int:
        """Rows of C."""
        return len(self.diagonal)

    def times(self, v: np.ndarray) -> np.ndarray:
        """C v."""
        return self.off_diagonal @ v + self.diagonal * v

    def native(self, scale: float, b: np.ndarray | None) -> Any:
        """The problem as the core has it."""
        C = self.off_diagonal
        return _core.sparse_boolean_quadratic(C.indptr, C.indices, C.data, self.diagonal, scale, b)

    def is_dominated(self, d: np.ndarray, scale: float, b: np.ndarray | None) -> bool | None:
        """By a dense Cholesky factor."""
        if len(d) > _MOST_SPARSE:
            return None
        C = (self.off_diagonal + sp.diags(self.diagonal)).toarray()
        return DenseForm(C).is_dominated(d, scale, b)


@dataclass(frozen=True)
class FactoredForm(QuadraticForm):
    """C = A A'."""

    A: np.ndarray

    @property
    def size(self) -> int:
        """Rows of C."""
        return len(self.A)

    def times(self, v: np.ndarray) -> np.ndarray:
        """C v."""
        return self.A @ (self.A.T @ v)

    def native(self, scale: float, b: np.ndarray | None) -> Any:
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


def form_of_factor(A: np.ndarray) -> QuadraticForm:
    """A A' in the form with the cheaper sweeps: n^2 operations, or 2 n d to use and keep A'V."""
    A = np.ascontiguousarray(A)
    return DenseForm(A @ A.T) if len(A) <= 2 * A.shape[1] else FactoredForm(A)


def _has_cholesky(S: np.ndarray) -> bool:
    try:
        np.linalg.cholesky(S)  # SciPy's would hold the lock of Python, and Ctrl-C, for seconds
    except scipy.linalg.LinAlgError:
        return False
    return True
