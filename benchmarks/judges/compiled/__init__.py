"""The judges of structural SVMs in C++ (chains.cpp), built on demand into the user's cache.

They take the steps of judges/bcfw.py, judges/subgradient.py and judges/soft_bcfw.py, so that what
is compared with this library is as fast as a rival can be made by a compiler. Nothing in the
library needs them, so they are no part of its core.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from judges.chains import Model

__all__ = ["CompiledBcfw", "CompiledSoftBcfw", "CompiledSubgradient", "library"]

_SOURCE = Path(__file__).with_name("chains.cpp")
_FLAGS = ("-O3", "-march=native", "-std=c++20", "-shared", "-fPIC")


@functools.cache
def library() -> ctypes.CDLL:
    """The compiled judges; the name of the file has a digest of the source and the flags."""
    digest = hashlib.sha256(_SOURCE.read_bytes() + " ".join(_FLAGS).encode()).hexdigest()[:16]
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    built = Path(home) / "sublearn-benchmarks" / f"chains-{digest}.so"
    if not built.exists():
        built.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=built.parent) as folder:
            made = Path(folder) / "chains.so"
            compiler = os.environ.get("CXX", "c++")
            subprocess.run([compiler, *_FLAGS, str(_SOURCE), "-o", str(made)], check=True)
            os.replace(made, built)
    lib = ctypes.CDLL(str(built))
    size, pointer, real = ctypes.c_size_t, ctypes.c_void_p, ctypes.c_double
    lib.judge_make.argtypes = [ctypes.c_int, size, size, *[pointer] * 5, real, real, *[pointer] * 4]
    lib.judge_make.restype = pointer
    lib.judge_step.argtypes, lib.judge_step.restype = [pointer, size], real
    lib.judge_mistakes.argtypes, lib.judge_mistakes.restype = [pointer], real
    lib.judge_free.argtypes, lib.judge_free.restype = [pointer], None
    return lib


class _Compiled:
    """Weights that Python owns, and a judge that moves them."""

    method: int

    def __init__(
        self, train: dict[str, Any], n_features: int, n_labels: int, C: float, rho: float = 0.0
    ):
        X = sp.csr_matrix(train["X"], dtype=np.float64)
        X.sort_indices()
        lengths = np.asarray(train["lengths"])
        self.C, self.n = C, int((lengths > 0).sum())
        self.model, self.late = (Model.zero(n_features, n_labels) for _ in range(2))
        begin = np.concatenate([[0], np.cumsum(lengths[lengths > 0])]).astype(np.int64)
        self._kept = (
            begin, X.indptr.astype(np.int64), X.indices.astype(np.int32), X.data,
            np.ascontiguousarray(train["y"], dtype=np.int32),
        )  # fmt: skip
        weights = (self.model.W, self.model.T, self.late.W, self.late.T)
        arrays, held = ([a.ctypes.data for a in part] for part in (self._kept, weights))
        self._judge = library().judge_make(self.method, self.n, n_labels, *arrays, C, rho, *held)

    def step(self, i: int) -> float:
        """Visit sequence i."""
        return float(library().judge_step(self._judge, i))

    def __del__(self) -> None:
        if getattr(self, "_judge", None):
            library().judge_free(self._judge)


class CompiledBcfw(_Compiled):
    """Steps of :class:`judges.bcfw.Bcfw`."""

    method = 0

    def dual(self) -> float:
        """The dual value of the current point: no weights have an objective below it."""
        mistakes = float(library().judge_mistakes(self._judge))
        return self.C * mistakes - 0.5 * self.model.squared_norm()


class CompiledSubgradient(_Compiled):
    """Steps of :class:`judges.subgradient.Subgradient`."""

    method = 1

    def __init__(self, *args: Any, **settings: Any):
        super().__init__(*args, **settings)
        self.t = 0

    def step(self, i: int) -> float:
        """Visit sequence i."""
        self.t += 1
        return super().step(i)

    def average(self) -> Model:
        """The averaged weights."""
        t, sums = self.t, (self.model, self.late)
        factor = 2.0 * self.C * self.n / (t * (t + 1)) if t else 0.0
        whole, late = sums
        W = factor * ((t + 1) * whole.W - late.W)
        return Model(W, factor * ((t + 1) * whole.T - late.T))


class CompiledSoftBcfw(_Compiled):
    """Steps of :class:`judges.soft_bcfw.SoftBcfw`."""

    method = 2
