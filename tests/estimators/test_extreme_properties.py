"""Whatever the data, a fit for very many labels ends with finite weights and an honest word."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from sublearn.extreme import PDSparseClassifier, PPDSparseClassifier

ENTRIES = [0.0, 0.0, 0.0, 1.0, -1.0, 0.5, 2.0, 1e-3, 1e3, -1e3, 1 / 3]
SHARED = {
    "C": st.sampled_from([1.0, 0.1, 100.0, 1e-3]),
    "l1": st.sampled_from([0.1, 0.0, 1e-3, 10.0]),
    "tol": st.sampled_from([0.1, 1e-2, 1e-4]),
    "max_iter": st.sampled_from([100, 7, 2, 1]),
    "n_jobs": st.sampled_from([None, 2]),
    "random_state": st.integers(0, 5),
}
ESTIMATORS = {
    PDSparseClassifier: st.builds(
        PDSparseClassifier,
        fit_intercept=st.booleans(),
        search=st.sampled_from(["auto", "exact", "partition", "sampled"]),
        **SHARED,
    ),
    PPDSparseClassifier: st.builds(
        PPDSparseClassifier,
        loss=st.sampled_from(["hinge", "squared_hinge"]),
        fit_intercept=st.sampled_from([True, "fixed"]),
        search=st.sampled_from(["exact", "sparsified"]),
        **SHARED,
    ),
}
#: How far below zero a gap may be for rounding, in float32 and float64.
ROUNDING = {
    PDSparseClassifier: {np.float32: 1e-3, np.float64: 1e-9},
    PPDSparseClassifier: {np.float32: 1e-5, np.float64: 1e-12},
}
every = pytest.mark.parametrize("kind", ESTIMATORS)


@st.composite
def problems(draw):
    """Few rows, features and labels; rows without features, without or with all labels.

    Entries come from a seed: of arrays that Hypothesis draws most are constant, and most weights 0.
    """
    n_rows = draw(st.integers(1, 12))
    n_features = draw(st.integers(1, 6))
    n_labels = draw(st.integers(2, 80))
    scale = draw(st.sampled_from([1.0, 1e-3, 1e3]))
    shape = draw(st.sampled_from(["any", "few", "one row", "all rows", "one label"]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X = scale * rng.choice(ENTRIES, (n_rows, n_features)) * rng.choice([0.1, 1, 10], (n_rows, 1))
    Y = rng.random((n_rows, n_labels)) < (0.1 if shape == "few" else 0.5)
    if shape == "one row":
        Y[:] = np.arange(n_rows)[:, None] == 0
    elif shape == "all rows":
        Y[:] = True
    elif shape == "one label":
        Y[:, 1:] = False
    Y[0, 0] = True
    return X, Y


def fit(model, X, Y, held_out, refit):
    """With the rows held out as well, where the method can use them."""
    if isinstance(model, PPDSparseClassifier):
        return model.fit(X, Y)
    model.set_params(refit=held_out and refit)
    return model.fit(X, Y, eval_set=(X, Y) if held_out else None)


@every
@settings(deadline=None, max_examples=400, derandomize=True)
@given(st.data(), problems(), st.sampled_from([np.float32, np.float64]), st.booleans())
def test_a_fit_is_finite_and_converges_or_says_that_it_did_not(
    kind, data, problem, dtype, held_out
):
    X, Y = problem
    X = sp.csr_matrix(X.astype(dtype))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = fit(data.draw(ESTIMATORS[kind]), X, Y, held_out, refit=True)
    assert {w.category for w in caught} <= {ConvergenceWarning}
    assert np.isfinite(model.coef_.data).all()
    assert np.isfinite(model.intercept_).all()
    assert np.isfinite(model.objective_)
    assert np.isfinite(model.certificate_)
    stopped_early = held_out and kind is PDSparseClassifier
    assert caught or stopped_early or model.certificate_ <= model.tol
    assert model.certificate_ >= -ROUNDING[kind][dtype]
    assert np.isfinite(model.decision_function(X)).all()
    if kind is PPDSparseClassifier:
        assert (model.trace_["nnz_dual"] <= X.shape[0] * Y.shape[1]).all()


def ranking_loss(Z, Y):
    """By how much a wrong label is above a right one."""
    has_loss = Y.any(axis=1) & ~Y.all(axis=1)
    worst = np.where(Y, -np.inf, Z).max(axis=1) - np.where(Y, Z, np.inf).min(axis=1)
    return np.maximum(0, 1 + worst[has_loss]).sum()


def separate_loss(Z, Y, power):
    """Of all labels, each for itself."""
    return (np.maximum(1 - np.where(Y, Z, -Z), 0) ** power).sum()


def objective_of(model, X, Y):
    W, b = model.coef_.toarray(), model.intercept_
    if isinstance(model, PPDSparseClassifier):
        known = Y.any(axis=0)
        W, b, Y = W[known], b[known], Y[:, known]
        loss = separate_loss(X @ W.T + b, Y, 2 if model.loss == "squared_hinge" else 1)
    else:
        loss = ranking_loss(X @ W.T + b, Y)
    intercepts = 0.5 * (b**2).sum() if model.fit_intercept is True else 0.0
    l1 = 0.0 if getattr(model, "refit_", False) else model.l1
    return 0.5 * (W**2).sum() + l1 * np.abs(W).sum() + intercepts + model.C * loss


@every
@settings(deadline=None, max_examples=150, derandomize=True)
@given(st.data(), problems(), st.booleans(), st.booleans())
def test_the_objective_is_that_of_the_weights(kind, data, problem, held_out, refit):
    X, Y = problem
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = fit(data.draw(ESTIMATORS[kind]), X, Y, held_out, refit)
    expected = objective_of(model, X, Y)
    np.testing.assert_allclose(model.objective_, expected, rtol=1e-9, atol=1e-12 * model.C)
