"""Whatever the data, a fit of PDSparseClassifier ends with finite weights and an honest word."""

import warnings

import numpy as np
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.exceptions import ConvergenceWarning

from sublearn.extreme import PDSparseClassifier

ENTRIES = st.sampled_from([0.0, 0.0, 0.0, 1.0, -1.0, 0.5, 2.0, 1e-3, 1e3, -1e3, 1 / 3])


@st.composite
def problems(draw):
    """Few rows, features and labels; rows without features, without or with all labels."""
    n_rows = draw(st.integers(1, 12))
    n_features = draw(st.integers(1, 6))
    n_labels = draw(st.integers(2, 80))
    X = draw(hnp.arrays(np.float64, (n_rows, n_features), elements=ENTRIES))
    scale = draw(st.sampled_from([1e-3, 1.0, 1e3]))
    Y = draw(hnp.arrays(np.bool_, (n_rows, n_labels)))
    if draw(st.booleans()):
        Y &= draw(hnp.arrays(np.bool_, (n_rows, n_labels)))
    Y[0, 0] = True
    return X * scale, Y


estimators = st.builds(
    PDSparseClassifier,
    C=st.sampled_from([1e-3, 0.1, 1.0, 100.0]),
    l1=st.sampled_from([0.0, 0.1, 10.0]),
    fit_intercept=st.booleans(),
    search=st.sampled_from(["auto", "exact", "partition", "sampled"]),
    tol=st.sampled_from([0.1, 1e-2, 1e-4]),
    max_iter=st.sampled_from([1, 2, 7, 100]),
    n_jobs=st.sampled_from([None, 2]),
    random_state=st.integers(0, 5),
)


def loss_of(Z, Y):
    has_loss = Y.any(axis=1) & ~Y.all(axis=1)
    worst = np.where(Y, -np.inf, Z).max(axis=1) - np.where(Y, Z, np.inf).min(axis=1)
    return np.maximum(0, 1 + worst[has_loss]).sum()


@settings(deadline=None, max_examples=300, derandomize=True)
@given(problems(), estimators, st.sampled_from([np.float32, np.float64]), st.booleans())
def test_a_fit_is_finite_and_converges_or_says_that_it_did_not(problem, model, dtype, held_out):
    X, Y = problem
    X = sp.csr_matrix(X.astype(dtype))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.set_params(refit=held_out).fit(X, Y, eval_set=(X, Y) if held_out else None)
    assert {w.category for w in caught} <= {ConvergenceWarning}
    assert np.isfinite(model.coef_.data).all()
    assert np.isfinite(model.intercept_).all()
    assert np.isfinite(model.objective_)
    assert np.isfinite(model.certificate_)
    assert caught or held_out or model.certificate_ <= model.tol
    rounding = 1e-3 if dtype == np.float32 else 1e-9
    assert model.certificate_ >= -rounding
    assert np.isfinite(model.decision_function(X)).all()


@settings(deadline=None, max_examples=150, derandomize=True)
@given(problems(), estimators, st.booleans())
def test_the_objective_is_that_of_the_weights(problem, model, held_out):
    X, Y = problem
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, Y, eval_set=(X, Y) if held_out else None)
    W, b = model.coef_.toarray(), model.intercept_
    total = 0.5 * (W**2).sum() + model.l1 * np.abs(W).sum() + 0.5 * (b**2).sum()
    total += model.C * loss_of(X @ W.T + b, Y)
    np.testing.assert_allclose(model.objective_, total, rtol=1e-8, atol=1e-12 * model.C)
