"""The measured process of a sweep: one solver, one problem, tolerances from loose to tight.

Run as ``python sweep.py job.json``, possibly by an interpreter of another environment, so it needs
NumPy and SciPy alone. The solver's script defines

    TOLERANCES                   from loose to tight, in its own unit
    fit(X, y, l1, tol) -> w      timed; mean logistic loss + l1 ||w||_1 without an intercept

X is a CSC matrix or a Fortran-ordered array of float64, y is -1 or 1. A tiny problem is solved
first and reported as the cold start: imports that happen late and compilation.
"""

from __future__ import annotations

import json
import resource
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

sys.path[0] = str(Path(__file__).resolve().parents[1])
from harness.child import forget_peak, load_script, peak_mb, resident_mb  # noqa: E402

del sys.path[0]


def main() -> None:
    """Run the job described by the file named on the command line."""
    job = json.loads(Path(sys.argv[1]).read_text())
    warnings.simplefilter("ignore")
    script = load_script(Path(job["script"]))
    X, y = load_problem(Path(job["directory"]))
    cold = cold_seconds(script, sp.issparse(X))
    fits: list[dict[str, Any]] = []
    data_mb = resident_mb()
    forget_peak()
    for tol in script.TOLERANCES:
        start = cpu_seconds()
        w = np.asarray(script.fit(X, y, job["l1"], tol), dtype=np.float64).ravel()
        seconds = cpu_seconds() - start
        fits.append(
            {
                "tol": tol,
                "cpu_seconds": seconds,
                "objective": objective(X, y, w, job["l1"]),
                "nnz": int(np.count_nonzero(w)),
            }
        )
        used = sum(fit["cpu_seconds"] for fit in fits)
        result = {"cold": cold, "fits": fits, "above_data_mb": peak_mb() - data_mb}
        Path(job["result"]).write_text(json.dumps(result))
        if used > job["budget"] or fits[-1]["objective"] <= job["enough"]:
            break


def load_problem(directory: Path) -> tuple[Any, np.ndarray]:
    """What `save_problem` wrote."""
    y = np.load(directory / "y.npy")
    sparse = directory / "X.npz"
    return (sp.load_npz(sparse) if sparse.exists() else np.load(directory / "X.npy")), y


def save_problem(directory: Path, X: Any, y: np.ndarray) -> None:
    """Into files of a directory."""
    np.save(directory / "y.npy", y)
    if sp.issparse(X):
        sp.save_npz(directory / "X.npz", X, compressed=False)
    else:
        np.save(directory / "X.npy", X)


def objective(X: Any, y: np.ndarray, w: np.ndarray, l1: float) -> float:
    """The judge's value, the same for everybody."""
    return float(np.logaddexp(0.0, -y * (X @ w)).mean() + l1 * np.abs(w).sum())


def cold_seconds(script: Any, is_sparse: bool) -> float:
    """CPU seconds of the first fit in this process, of a problem that takes no time itself."""
    rng = np.random.default_rng(0)
    X = np.asfortranarray(rng.standard_normal((40, 6)))
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    start = cpu_seconds()
    script.fit(sp.csc_matrix(X) if is_sparse else X, y, 0.05, script.TOLERANCES[0])
    return cpu_seconds() - start


def cpu_seconds() -> float:
    """User and system seconds of this process."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    main()
