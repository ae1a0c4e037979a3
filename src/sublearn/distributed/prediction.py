"""Predictions for very many rows, block by block, on whoever runs blocks."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import dask
import dask.array as da
import numpy as np
import scipy.sparse as sp

from sublearn.distributed.row_blocks import refuse_cut_columns
from sublearn.errors import ParameterError
from sublearn.execution import map_blocks
from sublearn.io import load_svmlight
from sublearn.io.files import write_atomically
from sublearn.typing import Matrix, MatrixLike, PathLike
from sublearn.validation.sparse import check_sparse
from sublearn.validation.values import is_int64, show

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

_Found = TypeVar("_Found")

__all__ = ["predict", "predict_files"]


def predict(
    model: BaseEstimator,
    X: MatrixLike | da.Array,
    *,
    method: str = "predict",
    rows_per_block: int = 10_000,
    **options: object,
) -> Any:
    """What ``getattr(model, method)(X, **options)`` returns, block by block of rows.

    Inside :func:`cluster` the blocks go to the workers; model and rows are files there, which each
    machine maps once.

    Parameters
    ----------
    model : estimator
        Fitted; any that can be pickled.
    X : array, sparse matrix, pandas data frame or Dask array of shape (n_samples, n_features)
        Rows. Those of a Dask array, whose chunks may be sparse matrices, stay where they are: each
        chunk is a task of Dask's own.
    method : str, default="predict"
        Name of the method, for instance "predict_top_k".
    rows_per_block : int, default=10000
        Rows of one task; a Dask array has chunks of its own.
    **options
        For the method, for instance ``k=5``.

    Returns
    -------
    array, sparse matrix, list, or a tuple of them
        As from one call.
    """
    function = _method(model, method, "predict")
    if not is_int64(rows_per_block) or rows_per_block < 1:
        raise ParameterError(
            f"predict: rows_per_block must be a positive integer, got {show(rows_per_block)}"
        )
    if isinstance(X, da.Array):
        return _join(_of_chunks(X, function, options))
    is_frame = hasattr(X, "iloc")  # keeps the names of its columns
    rows: Any = check_sparse(X, "X").tocsr() if sp.issparse(X) else X if is_frame else np.asarray(X)
    if rows.ndim == 0:
        raise ParameterError(f"predict: X must have rows, got {show(X)}")

    def do(first: int) -> object:
        part = slice(first, first + int(rows_per_block))
        return function(rows.iloc[part] if is_frame else rows[part], **options)

    return _join(map_blocks(do, range(0, max(rows.shape[0], 1), int(rows_per_block))))


def predict_files(
    model: BaseEstimator,
    paths: PathLike | Iterable[PathLike],
    out: PathLike,
    *,
    n_features: int,
    method: str = "predict",
    zero_based: bool = False,
    **options: object,
) -> list[Path]:
    """Predictions for LIBSVM files, one shard for each file; shards that exist are kept.

    Inside :func:`cluster` each file is read, and its shard written, by a worker, so that both paths
    must be seen by all machines. A run that was cut short goes on where it ended.

    Parameters
    ----------
    model : estimator
        Fitted.
    paths : path or iterable of paths
        Files; see :func:`sublearn.io.load_svmlight`. Their names must differ.
    out : path
        Directory of the shards, made if it does not exist.
    n_features : int
        Number of columns.
    method : str, default="predict"
        Name of the method.
    zero_based : bool, default=False
        Whether features count from 0.
    **options
        For the method.

    Returns
    -------
    list of Path
        Files that :func:`numpy.load` reads: `values`, or `values_0`, `values_1`, ... where the
        method returns several arrays; in the order of `paths`. Lists of labels are two arrays: the
        labels of all rows, and where those of each row begin and the last ones end.
    """
    function = _method(model, method, "predict_files")
    listed = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    files = [Path(os.path.abspath(path)) for path in listed]
    shards = [Path(os.path.abspath(out)) / f"{file.name}.npz" for file in files]
    if len(set(shards)) < len(shards):
        raise ParameterError("predict_files: paths must have different names, got some twice")
    Path(out).mkdir(parents=True, exist_ok=True)
    left = [pair for pair in zip(files, shards, strict=True) if not pair[1].exists()]

    def do(pair: tuple[Path, Path]) -> None:
        file, shard = pair
        found = function(load_svmlight(file, n_features=n_features, zero_based=zero_based).X,
                         **options)  # fmt: skip
        parts = found if isinstance(found, tuple) else _flat(found)
        names = ["values"] if len(parts) == 1 else [f"values_{i}" for i in range(len(parts))]
        arrays = {name: _dense(part) for name, part in zip(names, parts, strict=True)}
        with write_atomically(shard) as stream:
            np.savez(stream, **arrays)  # type: ignore[arg-type]

    map_blocks(do, left)
    return shards


def _method(model: object, name: str, who: str) -> Callable[..., Any]:
    function = getattr(model, name, None) if isinstance(name, str) else None
    if not callable(function):
        raise ParameterError(
            f"{who}: method must be one of {type(model).__name__}, got {show(name)}"
        )
    return function


def _of_chunks(
    X: da.Array, function: Callable[..., _Found], options: Mapping[str, object]
) -> list[_Found]:
    refuse_cut_columns(X, "predict")
    ask = dask.delayed(function, pure=False)
    return list(dask.compute(*(ask(chunk, **options) for chunk in X.to_delayed().ravel())))


def _flat(values: Any) -> tuple[Any, ...]:
    """Lists of labels as one array, with their bounds; else the values alone."""
    if not isinstance(values, list):
        return (values,)
    bounds = np.cumsum([0, *(len(labels) for labels in values)])
    return [label for labels in values for label in labels], bounds


def _dense(values: Matrix | list[object]) -> np.ndarray:
    return np.asarray(values) if isinstance(values, (np.ndarray, list)) else values.toarray()


def _join(parts: Sequence[Any]) -> Any:
    first = parts[0]
    if isinstance(first, tuple):
        return tuple(_join(list(each)) for each in zip(*parts, strict=True))
    if isinstance(first, list):
        return [item for part in parts for item in part]
    if sp.issparse(first):
        return sp.vstack(parts, format=first.format)
    return np.concatenate(parts)
