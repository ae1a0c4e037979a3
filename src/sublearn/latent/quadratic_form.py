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
from scipy.sparse.linalg import splu

from sublearn import _core  # type: ignore[attr-defined,unused-ignore]

__all__ = ["DenseForm", "FactoredForm", "QuadraticForm", "SparseForm"]

_MOST_DENSE = 12_000  # vertices of a dense Cholesky factor: 1.2 GB, a minute


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
        return len(self.C)

    def times(self, v: np.ndarray) -> np.ndarray:
        return self.C @ v

    def native(self, scale: float, b: np.ndarray | None) -> Any:
        return _core.dense_boolean_quadratic(self.C, scale, b)

    def is_dominated(self, d: np.ndarray, scale: float, b: np.ndarray | None) -> bool | None:
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
        return len(self.diagonal)

    def times(self, v: np.ndarray) -> np.ndarray:
        return self.off_diagonal @ v + self.diagonal * v

    def native(self, scale: float, b: np.ndarray | None) -> Any:
        C = self.off_diagonal
        return _core.sparse_boolean_quadratic(C.indptr, C.indices, C.data, self.diagonal, scale, b)

    def is_dominated(self, d: np.ndarray, scale: float, b: np.ndarray | None) -> bool | None:
        S = -scale * (self.off_diagonal + sp.diags(self.diagonal))
        if b is not None:
            edge = sp.csr_matrix(-b[:, None])
            S = sp.bmat([[S, edge], [edge.T, None]])
        S = sp.csc_matrix(S + sp.diags(d))
        if S.shape[0] <= 3000:
            return _has_cholesky(S.toarray(order="F"))
        return _has_sparse_factor(S)


@dataclass(frozen=True)
class FactoredForm(QuadraticForm):
    """C = A A'."""

    A: np.ndarray

    @property
    def size(self) -> int:
        return len(self.A)

    def times(self, v: np.ndarray) -> np.ndarray:
        return self.A @ (self.A.T @ v)

    def native(self, scale: float, b: np.ndarray | None) -> Any:
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


def _has_cholesky(S: np.ndarray) -> bool:
    try:
        scipy.linalg.cholesky(S, lower=True, overwrite_a=True, check_finite=False)
    except scipy.linalg.LinAlgError:
        return False
    return True


def _has_sparse_factor(S: sp.csc_matrix) -> bool:
    """S = L U with pivots from the diagonal only, and these positive."""
    try:
        factor = splu(
            S, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True}
        )
    except RuntimeError:  # a pivot of zero
        return False
    is_symmetric = np.array_equal(factor.perm_r, factor.perm_c)
    return bool(is_symmetric and (factor.U.diagonal() > 0).all())
