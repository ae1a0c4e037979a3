"""Rows squeezed into as many as there are features: the same objective, and when it pays."""

import numpy as np
import pytest
import scipy.sparse as sp

from sublearn.fitting.progress import Progress
from sublearn.hierarchy.label_models import TaskOptions, fit_labels
from sublearn.optim.linear_objective import as_columns
from sublearn.optim.squeezed_rows import is_squeezing_cheaper, squeeze_rows


def rows(form, n=60, d=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) + 3.0
    if form == "repeated columns":
        X = np.hstack([X, X[:, :2], np.ones((n, 1))])
    if form == "fewer rows than columns":
        X = rng.normal(size=(4, d))
    if form == "sparse":
        X = sp.csc_matrix(X * (rng.random(X.shape) < 0.5))
    if form == "float32":
        X = X.astype(np.float32)
    Y = sp.csc_matrix((rng.random((X.shape[0], 3)) < 0.4).astype(float))
    return as_columns(X), Y


FORMS = ["dense", "sparse", "float32", "repeated columns", "fewer rows than columns"]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_loss_is_the_same_at_all_weights(form, fit_intercept):
    X, Y = rows(form)
    squeezed = squeeze_rows(X, Y, fit_intercept)
    assert len(squeezed.X) <= min(X.shape) + 1
    dense = X.toarray() if sp.issparse(X) else X.astype(np.float64)
    rng = np.random.default_rng(1)
    for k in range(Y.shape[1]):
        w, y = rng.normal(size=X.shape[1]), Y[:, [k]].toarray()[:, 0]
        z = dense @ w + squeezed.intercept(k, w)
        assert squeezed.problem(k).value(w, 0.0) == pytest.approx(0.5 * np.mean((z - y) ** 2))
        if fit_intercept:
            assert np.mean(z - y) == pytest.approx(0, abs=1e-9)  # it is the best one


@pytest.mark.parametrize("is_sparse", [False, True])
def test_labels_get_the_models_that_all_rows_give(is_sparse, monkeypatch):
    X, Y = rows("sparse" if is_sparse else "dense", n=400)
    options = TaskOptions("squared", True, 1e-9, None, 1)
    found = []
    for cheaper in (True, False):
        monkeypatch.setattr(
            "sublearn.hierarchy.label_models.is_squeezing_cheaper",
            lambda X, n, answer=cheaper: answer,
        )
        found.append(fit_labels(X, Y, 0.01, options, Progress()))
    (models, one), (slow, other) = found
    np.testing.assert_allclose(models.weights.toarray(), slow.weights.toarray(), atol=1e-6)
    np.testing.assert_allclose(models.intercepts, slow.intercepts, atol=1e-6)
    assert one.objective == pytest.approx(other.objective)
    assert one.certificate <= 1e-9


def test_pays_for_many_labels_on_rows_that_are_many():
    tall, wide = np.zeros((5000, 50)), np.zeros((50, 5000))
    assert is_squeezing_cheaper(tall, 100)
    assert not is_squeezing_cheaper(wide, 100)
    assert not is_squeezing_cheaper(sp.random(5000, 5000, 1e-3, random_state=0), 100)
    assert is_squeezing_cheaper(sp.random(20000, 100, 0.1, random_state=0), 100)
    assert not is_squeezing_cheaper(sp.random(20000, 100, 0.1, random_state=0), 1)


def test_a_stop_ends_the_pass():
    X, Y = rows("dense")
    assert not squeeze_rows(X, Y, True, lambda: True).X.any()
