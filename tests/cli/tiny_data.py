"""Tiny data for the command line, and how it is called."""

import os
import sys

import numpy as np
from scipy import sparse

N_ROWS, N_FEATURES, N_LABELS = 60, 30, 12


def environment():
    return os.environ | {"COLUMNS": "200", "PYTHONIOENCODING": "utf-8", "NO_COLOR": "1"}


def command_line(*arguments):
    return [sys.executable, "-m", "sublearn", *map(str, arguments)]


def make_data(seed=0):
    """Label k goes with features 2k and 2k + 1; the rest is noise, and rows have any length."""
    rng = np.random.default_rng(seed)
    Y = np.zeros((N_ROWS, N_LABELS), dtype=np.int8)
    Y[np.arange(N_ROWS), np.arange(N_ROWS) % N_LABELS] = 1
    Y[np.arange(N_ROWS), rng.integers(0, N_LABELS, N_ROWS)] = 1
    X = rng.uniform(0, 0.2, (N_ROWS, N_FEATURES)) * (rng.random((N_ROWS, N_FEATURES)) < 0.3)
    for k in range(N_LABELS):
        X[:, 2 * k : 2 * k + 2] += Y[:, k : k + 1]
    X *= rng.uniform(0.5, 20, (N_ROWS, 1))
    return sparse.csr_matrix(X.astype(np.float32)), sparse.csr_matrix(Y)


def as_arff(X, Y):
    attributes = [f"@attribute word{j} numeric" for j in range(X.shape[1])]
    attributes += [f"@attribute topic{k} {{0,1}}" for k in range(Y.shape[1])]
    rows = [",".join(map(str, [*x, *y])) for x, y in zip(X.tolist(), Y.tolist(), strict=True)]
    return "\n".join(["@relation tiny", *attributes, "@data", *rows, ""])
