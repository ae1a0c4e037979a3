"""Results of PPDSparseClassifier stored by version 0.1.0: fits still agree.

A change of the algorithm that is meant is a reason to store `ppd_sparse_fit.npz` again
(`python tests/golden/test_ppd_sparse_golden.py`). The model file was written from the same data.
"""

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from make_golden import model_file

import sublearn
from sublearn.extreme import PPDSparseClassifier

FIT = Path(__file__).parent / "ppd_sparse_fit.npz"
MODEL = model_file("PPDSparseClassifier")
CASES = {
    "default": {},
    "hinge": {"loss": "hinge", "l1": 0.02, "C": 3.0},
    "fixed": {"fit_intercept": "fixed", "search": "sparsified", "tol": 1e-3},
}


def problem(n_rows=80, n_features=12, n_labels=18):
    """Entries with two digits, so that they are the same wherever they are made and stored."""
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(n_rows, n_features)), 2)
    X *= rng.random(X.shape) < 0.4
    return X.astype(np.float32), rng.random((n_rows, n_labels)) < 0.15


def fit(X, Y, **options):
    return PPDSparseClassifier(random_state=42, **options).fit(X, Y)


@pytest.fixture(scope="module")
def stored():
    with np.load(FIT) as file:
        return dict(file)


@pytest.mark.parametrize("case", CASES)
def test_a_fit_with_a_fixed_seed_gives_the_stored_weights(stored, case):
    model = fit(stored["X"], stored["Y"], **CASES[case])
    expected = stored[f"{case}.coef"]
    np.testing.assert_allclose(model.coef_.toarray(), expected, rtol=0, atol=1e-5)
    np.testing.assert_allclose(model.intercept_, stored[f"{case}.intercept"], rtol=0, atol=1e-5)
    figures = [model.objective_, model.n_iter_, model.coef_.nnz]
    np.testing.assert_allclose(figures, stored[f"{case}.figures"], rtol=1e-5)


def test_a_stored_model_loads_and_predicts_the_stored_scores(stored):
    model = sublearn.load(MODEL)
    assert type(model) is PPDSparseClassifier
    assert model.get_params()["C"] == 1.0
    scores = model.decision_function(stored["X"])
    np.testing.assert_allclose(scores, stored["model.scores"], rtol=0, atol=1e-6)
    assert model.classes_.tolist() == [f"label {k:02}" for k in range(stored["Y"].shape[1])]
    expected = [
        [f"label {k:02}" for k in np.flatnonzero(row > 0)] for row in stored["model.scores"]
    ]
    assert model.predict(sp.csr_matrix(stored["X"])) == expected
    assert model.certificate_ <= model.tol
    assert len(model.trace_) == len(model.classes_)


def store():
    X, Y = problem()
    arrays = {"X": X, "Y": Y}
    for case, options in CASES.items():
        model = fit(X, Y, **options)
        arrays[f"{case}.coef"] = model.coef_.toarray()
        arrays[f"{case}.intercept"] = model.intercept_
        arrays[f"{case}.figures"] = np.array([model.objective_, model.n_iter_, model.coef_.nnz])
    arrays["model.scores"] = sublearn.load(MODEL).decision_function(X)
    np.savez_compressed(FIT, **arrays)


if __name__ == "__main__":
    store()
