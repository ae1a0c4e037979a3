"""Rows of a data set that lie on workers, block by block, and sums over all of them.

A block is the result of a task (reading a part of a file, a block of a Dask array), so that the
scheduler makes it again where a worker that held it is gone. Nothing but points goes to the
workers, and nothing but sums comes back.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterable, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import dask
import dask.array as da
import numpy as np
import scipy.sparse as sp
from distributed import Client, Future

from sublearn import _core
from sublearn.distributed.on_dask import TIMEOUTS, check_client, refuse_if_gone, saying_if_gone
from sublearn.errors import ClusterError, ParameterError
from sublearn.io import load_svmlight
from sublearn.optim.linear_objective import as_columns, linear_data
from sublearn.typing import JsonObject, Matrix, PathLike
from sublearn.validation.sparse import check_layout
from sublearn.validation.values import is_int64, show

if TYPE_CHECKING:
    from dask.delayed import Delayed
    from numpy.typing import DTypeLike

__all__ = ["RowBlock", "RowBlocks", "RowLoss", "refuse_cut_columns"]

_FAN_IN = 8  # sums that one task adds up
_WAIT_SECONDS = 5.0  # until it is asked again whether the scheduler is there
_MOST_OBJECTIVES = 64  # that a block keeps


@dataclass(frozen=True)
class RowLoss:
    """The loss of rows against their targets.

    `positive` is the class, or the column of the label, whose rows have the target 1, all others
    -1; None where targets are numbers.
    """

    name: str  # a loss of `sublearn.optim.linear_objective`
    parameter: float  # of Huber's loss
    row_weight: float  # what each row's loss is multiplied by
    fit_intercept: bool  # whether the last coordinate of points is an intercept
    positive: Hashable = None


@dataclass(eq=False)
class RowBlock:
    """Rows that one worker holds."""

    X: Matrix  # CSC, or dense in Fortran order
    y: Matrix  # a number or a class for each row, or an indicator matrix of labels in CSC
    _objectives: dict[RowLoss, _core.SmoothObjective] = field(default_factory=dict, repr=False)

    def __reduce__(self) -> tuple[type[RowBlock], tuple[Matrix, Matrix]]:
        return RowBlock, (self.X, self.y)

    def __sizeof__(self) -> int:
        return _n_bytes(self.X) + _n_bytes(self.y)

    def targets(self, loss: RowLoss) -> np.ndarray:
        """What the loss compares predictions with."""
        if loss.positive is None:
            return np.asarray(self.y, dtype=np.float64)
        signs = np.full(self.X.shape[0], -1.0)
        if isinstance(self.y, np.ndarray):
            signs[self.y == loss.positive] = 1.0
        elif isinstance(loss.positive, int):
            first, last = self.y.indptr[loss.positive : loss.positive + 2]
            signs[self.y.indices[first:last]] = 1.0
        return signs

    def objective(self, loss: RowLoss) -> _core.SmoothObjective:
        """The compiled sum of losses over these rows, made once."""
        if loss not in self._objectives:
            while len(self._objectives) >= _MOST_OBJECTIVES:
                self._objectives.pop(next(iter(self._objectives)))
            weights = np.full(self.X.shape[0], loss.row_weight)
            data = linear_data(
                self.X, self.targets(loss), loss.name, weights, loss.fit_intercept, loss.parameter
            )
            self._objectives[loss] = data.objective(1)
        return self._objectives[loss]


def _n_bytes(matrix: Matrix) -> int:
    if isinstance(matrix, np.ndarray):
        return int(matrix.nbytes)
    return int(matrix.data.nbytes + matrix.indices.nbytes + matrix.indptr.nbytes)


@dataclass(frozen=True, eq=False)
class _Summary:
    """What the client knows of a block."""

    n_rows: int
    n_features: int
    n_bytes: int
    dtype: np.dtype
    total: float  # of numbers
    classes: np.ndarray  # or columns of an indicator matrix
    counts: np.ndarray


class RowBlocks:
    """A data set whose rows lie on the workers of a cluster.

    Made by :meth:`from_svmlight`, :meth:`from_dask` or :meth:`from_delayed`; learned from by
    :func:`fit_by_rows`. The blocks stay on the workers as long as this object lives.

    Attributes
    ----------
    n_rows, n_features : int
        Of all blocks together.
    n_bytes : int
        What the blocks take on all workers together.
    """

    def __init__(self, client: Client, blocks: Sequence[Future]):
        self.client, self._blocks = client, list(blocks)
        summaries = [client.submit(_summarise, block) for block in self._blocks]
        found: list[_Summary] = [self._result(future) for future in summaries]
        filled = [s for s in found if s.n_rows]
        if not filled:
            raise ValueError("RowBlocks must have at least one row, got none")
        widths = sorted({summary.n_features for summary in filled})
        if len(widths) > 1:
            raise ValueError(f"RowBlocks must have one number of features, got {widths}")
        kinds = sorted({_kind_of_targets(summary) for summary in filled})
        if len(kinds) > 1:
            raise ValueError(f"RowBlocks must have one kind of y, got {' and '.join(kinds)}")
        self.n_rows = sum(s.n_rows for s in filled)
        self.n_features = widths[0]
        self.n_bytes = sum(s.n_bytes for s in found)
        self.dtype = np.result_type(*(s.dtype for s in filled))
        self.total = sum(s.total for s in filled)
        self.is_indicator = filled[0].classes.ndim == 2
        self.classes, self.counts = _join_classes(filled)

    def __repr__(self) -> str:
        return (
            f"RowBlocks({self.n_rows} rows, {self.n_features} features, "
            f"{len(self._blocks)} blocks, {dask.utils.format_bytes(self.n_bytes)})"
        )

    def __len__(self) -> int:
        return len(self._blocks)

    # --- where rows come from ------------------------------------------------------------------

    @classmethod
    def from_svmlight(
        cls,
        client: Client,
        paths: PathLike | Iterable[PathLike],
        *,
        n_features: int,
        n_labels: int | None = None,
        zero_based: bool = False,
        dtype: DTypeLike = np.float32,
        parts_per_file: int = 1,
    ) -> RowBlocks:
        """Files on a path that all workers see; each worker reads its own part of them.

        Parameters
        ----------
        client : dask.distributed.Client
            Of the cluster.
        paths : path or list of paths
            LIBSVM files; see :func:`sublearn.io.load_svmlight`.
        n_features : int
            Number of columns.
        n_labels : int or None, default=None
            Number of labels, where rows have lists of them; None where each row has one number.
        zero_based : bool, default=False
            Whether features count from 0.
        dtype : float32 or float64
            Of the values.
        parts_per_file : int, default=1
            In how many blocks a file is read. While a block is read it takes twice its memory, so
            several blocks for each worker keep the peak low.

        Returns
        -------
        RowBlocks
        """
        check_client(client, "RowBlocks.from_svmlight")
        if not is_int64(parts_per_file) or parts_per_file < 1:
            raise ParameterError(
                "RowBlocks.from_svmlight: parts_per_file must be a positive integer, "
                f"got {show(parts_per_file)}"
            )
        if not is_int64(n_features):
            raise ParameterError(
                f"RowBlocks.from_svmlight: n_features must be an integer, got {show(n_features)}"
            )
        files = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
        options = {
            "n_features": int(n_features), "n_labels": n_labels, "zero_based": zero_based,
            "multilabel": n_labels is not None, "dtype": np.dtype(dtype).name,
        }  # fmt: skip
        n = int(parts_per_file)
        parts = [(os.path.abspath(path), (k, n) if n > 1 else None)
                 for path in files for k in range(n)]  # fmt: skip
        homes = _homes(client, len(parts))
        return cls(client, [
            client.submit(_read_block, *part, options, workers=[home], allow_other_workers=True)
            for part, home in zip(parts, homes, strict=True)
        ])  # fmt: skip

    @classmethod
    def from_dask(cls, client: Client, X: da.Array, y: da.Array) -> RowBlocks:
        """Dask arrays, cut by rows in the same way; blocks of `X` may be sparse matrices.

        Parameters
        ----------
        client : dask.distributed.Client
            Of the cluster.
        X : dask.array.Array of shape (n_samples, n_features)
            One block of columns.
        y : dask.array.Array of shape (n_samples,) or (n_samples, n_labels)
            Numbers, classes, or an indicator matrix.

        Returns
        -------
        RowBlocks
        """
        who = "RowBlocks.from_dask"
        check_client(client, who)
        for name, array in (("X", X), ("y", y)):
            if not isinstance(array, da.Array):
                raise ParameterError(f"{who}: {name} must be a Dask array, got {show(array)}")
        refuse_cut_columns(X, who)
        if X.numblocks[0] != y.numblocks[0] or (y.ndim == 2 and y.numblocks[1] != 1):
            raise ParameterError(
                f"{who}: y must be cut by rows as X is, got {y.numblocks} blocks for {X.numblocks}"
            )
        parts = zip(X.to_delayed().ravel(), y.to_delayed().ravel(), strict=True)
        return cls.from_delayed(client, parts)

    @classmethod
    def from_delayed(
        cls, client: Client, parts: Iterable[Delayed | tuple[Delayed, Delayed]]
    ) -> RowBlocks:
        """Delayed parts, computed where they will stay.

        Parameters
        ----------
        client : dask.distributed.Client
            Of the cluster.
        parts : iterable of pairs (X, y)
            Delayed objects; or delayed objects that give such a pair.

        Returns
        -------
        RowBlocks
        """
        check_client(client, "RowBlocks.from_delayed")
        make = dask.delayed(_make_block, pure=False)
        listed = [part if isinstance(part, tuple) else (part, None) for part in parts]
        if not listed:
            raise ParameterError("RowBlocks.from_delayed: parts must not be empty, got none")
        return cls(client, [
            client.compute(make(X, y), workers=[home], allow_other_workers=True)
            for (X, y), home in zip(listed, _homes(client, len(listed)), strict=True)
        ])  # fmt: skip

    # --- sums over all rows --------------------------------------------------------------------

    def sum_over(self, function: Callable[..., np.ndarray], *arguments: object) -> np.ndarray:
        """Sum of `function(block, *arguments)` over the blocks, added in a fixed order."""
        refuse_if_gone(self.client)
        layer = [
            self.client.submit(function, block, *arguments, pure=False, priority=10)
            for block in self._blocks
        ]
        while len(layer) > 1:
            layer = [
                self.client.submit(_add, *layer[i : i + _FAN_IN], pure=False, priority=10)
                for i in range(0, len(layer), _FAN_IN)
            ]
        total: np.ndarray = self._result(layer[0])
        return total

    def _result(self, future: Future) -> Any:
        while True:
            try:
                with saying_if_gone(self.client):
                    return future.result(timeout=_WAIT_SECONDS)
            except TIMEOUTS:
                refuse_if_gone(self.client)
            except CancelledError as error:
                refuse_if_gone(self.client)
                raise ClusterError("blocks of rows were cancelled from elsewhere") from error


def refuse_cut_columns(X: da.Array, who: str) -> None:
    """Refuse a Dask array whose rows lie in several blocks."""
    if X.ndim != 2 or X.numblocks[1] != 1:
        raise ParameterError(
            f"{who}: X must have one block of columns, got {X.numblocks}; "
            "X.rechunk({1: -1}) makes it so"
        )


def _homes(client: Client, n_blocks: int) -> list[str]:
    """A worker for each block: neighbours together, and every thread as many as the others.

    Left to itself the scheduler may put all blocks on the first worker that is free.
    """
    client.wait_for_workers(1)
    threads = [address for address, n in sorted(client.nthreads().items()) for _ in range(n)]
    return [threads[i * len(threads) // n_blocks] for i in range(n_blocks)]


def _summarise(block: RowBlock) -> _Summary:
    y = block.y
    if not isinstance(y, np.ndarray):
        classes, counts, total = np.arange(y.shape[1])[None], np.diff(y.indptr), 0.0
    else:
        classes, counts = np.unique(y, return_counts=True)
        total = float(y.sum()) if y.dtype.kind in "iuf" else 0.0
    n_rows, n_features = block.X.shape
    size, dtype = block.__sizeof__(), block.X.dtype
    return _Summary(n_rows, n_features, size, dtype, total, classes, counts)


def _kind_of_targets(summary: _Summary) -> str:
    if summary.classes.ndim == 2:
        return f"{summary.classes.shape[1]} columns of labels"
    return "numbers" if summary.classes.dtype.kind in "biuf" else "names"


def _join_classes(found: list[_Summary]) -> tuple[np.ndarray, np.ndarray]:
    if found[0].classes.ndim == 2:
        return found[0].classes[0], np.sum([s.counts for s in found], axis=0)
    classes, at = np.unique(np.concatenate([s.classes for s in found]), return_inverse=True)
    return classes, np.bincount(at, np.concatenate([s.counts for s in found])).astype(np.int64)


def _read_block(path: str, part: tuple[int, int] | None, options: JsonObject) -> RowBlock:
    data = load_svmlight(path, part=part, **options)
    return _make_block(data.X, data.Y)


def _make_block(X: Any, y: Any) -> RowBlock:
    if y is None:
        if not isinstance(X, (tuple, list)) or len(X) != 2:
            raise ValueError(f"a part must be a pair (X, y), got {show(X)}")
        X, y = X
    X, y = (check_layout(part if sp.issparse(part) else np.asarray(part), name)
            for part, name in ((X, "X"), (y, "y")))  # fmt: skip
    if X.ndim != 2 or y.ndim not in (1, 2):
        raise ValueError(f"X must be a matrix in a block, y a vector or matrix, got {X.shape}, "
                         f"{y.shape}")  # fmt: skip
    if X.shape[0] != y.shape[0]:
        raise ValueError(f"a block must have as many rows in y as in X, got {y.shape}, {X.shape}")
    if X.dtype.kind not in "biuf":
        raise ValueError(f"X must hold numbers, got {X.dtype} in a block")
    for name, part in (("X", X), ("y", y)):
        values = part.data if sp.issparse(part) else part
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            raise ValueError(f"{name} must be finite, got NaN or infinity in a block")
    return RowBlock(as_columns(X), _indicator(y) if y.ndim == 2 else y)


def _indicator(y: Matrix) -> sp.csc_matrix:
    """By columns, without stored zeros, which would count as labels."""
    labels = sp.csc_matrix(y)
    if not labels.data.all():
        labels = labels.copy()
        labels.eliminate_zeros()
    return labels


def _add(*parts: np.ndarray) -> np.ndarray:
    total = parts[0].copy()
    for part in parts[1:]:
        total += part
    return total
