"""Whatever the data, a fit of PPDSparseClassifier ends with finite weights and an honest word."""

import warnings

import numpy as np
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.exceptions import ConvergenceWarning

from sublearn.extreme import PPDSparseClassifier

ENTRIES = st.sampled_from([0.0, 0.0, 0.0, 1.0, -1.0, 0.5, 2.0, 1e-3, 1e3, -1e3, 1 / 3])


@st.composite
def problems(draw):
    """Few rows, features and labels; empty rows and columns are common."""
    n_rows = draw(st.integers(1, 12))
    n_features = draw(st.integers(1, 6))
    n_labels = draw(st.integers(2, 20))
    X = draw(hnp.arrays(np.float64, (n_rows, n_features), elements=ENTRIES))
    scale = draw(st.sampled_from([1e-3, 1.0, 1e3]))
    row_scale = draw(
        hnp.arrays(np.float64, (n_rows, 1), elements=st.sampled_from([0.1, 1.0, 10.0]))
    )
    Y = draw(hnp.arrays(np.bool_, (n_rows, n_labels)))
    shape = draw(st.sampled_from(["any", "one row", "all rows", "one label"]))
    if shape == "one row":
        Y[:] = np.arange(n_rows)[:, None] == 0
    elif shape == "all rows":
        Y[:] = True
    elif shape == "one label":
        Y[:, 1:] = False
    Y[0, 0] = True
    return X * scale * row_scale, Y


estimators = st.builds(
    PPDSparseClassifier,
    C=st.sampled_from([1e-3, 0.1, 1.0, 100.0]),
    l1=st.sampled_from([0.0, 0.1, 10.0]),
    loss=st.sampled_from(["hinge", "squared_hinge"]),
    fit_intercept=st.sampled_from([True, "fixed"]),
    search=st.sampled_from(["exact", "sparsified"]),
    tol=st.sampled_from([0.1, 1e-2, 1e-4]),
    max_iter=st.sampled_from([1, 2, 7, 100]),
    n_jobs=st.sampled_from([None, 2]),
    random_state=st.integers(0, 5),
)


@settings(deadline=None, max_examples=400, derandomize=True)
@given(problems(), estimators, st.sampled_from([np.float32, np.float64]))
def test_a_fit_is_finite_and_converges_or_says_that_it_did_not(problem, model, dtype):
    X, Y = problem
    X = sp.csr_matrix(X.astype(dtype))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, Y)
    assert {w.category for w in caught} <= {ConvergenceWarning}
    assert np.isfinite(model.coef_.data).all()
    assert np.isfinite(model.intercept_).all()
    assert np.isfinite(model.objective_)
    assert np.isfinite(model.certificate_)
    assert caught or model.certificate_ <= model.tol
    rounding = 1e-5 if dtype == np.float32 else 1e-12
    assert model.certificate_ >= -rounding
    assert np.isfinite(model.decision_function(X)).all()
    assert (model.trace_["nnz_dual"] <= X.shape[0] * Y.shape[1]).all()


@settings(deadline=None, max_examples=60, derandomize=True)
@given(problems(), estimators)
def test_the_objective_is_that_of_the_weights(problem, model):
    X, Y = problem
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, Y)
    trained = Y.any(axis=0)
    W, b = model.coef_.toarray()[trained], model.intercept_[trained]
    margins = np.where(Y[:, trained], 1, -1) * (X @ W.T + b)
    violation = np.maximum(1 - margins, 0)
    if model.loss == "squared_hinge":
        violation **= 2
    total = 0.5 * (W**2).sum() + model.l1 * np.abs(W).sum() + model.C * violation.sum()
    if model.fit_intercept is True:
        total += 0.5 * (b**2).sum()
    np.testing.assert_allclose(model.objective_, total, rtol=1e-9)
