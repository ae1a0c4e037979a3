"""Small data with a taxonomy, for the tests of estimators over one."""

import numpy as np
import scipy.sparse as sp

from sublearn.hierarchy import Taxonomy

PATHS = ["a.x.p", "a.x.q", "a.y", "b.z", "b.w", "c"]
TAXONOMY = Taxonomy.from_paths(PATHS)


def single_rows(n=240, seed=0, labels=PATHS):
    """Rows with one label each; features of a label are those of its ancestors and its own."""
    rng = np.random.default_rng(seed)
    ends = rng.integers(len(labels), size=n)
    y = np.array(labels)[ends]
    closed = TAXONOMY.encode(y).toarray().astype(float)
    X = closed + 0.4 * rng.normal(size=closed.shape)
    return np.hstack([X, rng.normal(size=(n, 4))]), y


def label_rows(n=240, seed=0):
    """Rows with one or two labels each, as lists."""
    rng = np.random.default_rng(seed)
    lists = [
        [PATHS[k] for k in rng.choice(len(PATHS), rng.integers(1, 3), replace=False)]
        for _ in range(n)
    ]
    closed = TAXONOMY.encode(lists).toarray().astype(float)
    X = closed + 0.4 * rng.normal(size=closed.shape)
    return np.hstack([X, rng.normal(size=(n, 4))]), lists


FORMS = {
    "csr": sp.csr_matrix,
    "csc": sp.csc_matrix,
    "coo": sp.coo_matrix,
    "Fortran order": np.asfortranarray,
    "lists": lambda X: X.tolist(),
}
