"""Bad input to the sparse linear models works or is refused by a sentence; nothing is endless."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import sublearn
from sublearn.errors import ParameterError
from sublearn.linear import Huber, SparseLinearRegression, SparseLogisticRegression
from sublearn.optim import minimise_linear

RNG = np.random.default_rng(0)
X = RNG.normal(size=(100, 20))
NUMBERS = X[:, 0] - X[:, 1] + RNG.normal(size=100)
COUNTS = RNG.poisson(np.exp(0.5 * X[:, 0])).astype(float)
CLASSES = X[:, 0] > 0


def assert_solved(model):
    assert model.certificate_ <= model.tol
    assert np.isfinite(model.coef_).all()
    assert np.isfinite(model.intercept_).all()


@pytest.mark.parametrize("l1", [1e-3, 1e-6, 1e-9, 1e-12, 1e-100])
def test_separable_classes_at_a_tiny_l1_are_solved(l1):
    model = SparseLogisticRegression(l1).fit(X, CLASSES)
    assert_solved(model)
    assert model.score(X, CLASSES) == 1.0


def test_a_nearly_interpolating_lasso_is_solved():
    rng = np.random.default_rng(1)
    assert_solved(SparseLinearRegression(1e-6).fit(rng.normal(size=(10, 500)), rng.normal(size=10)))


MODELS = {
    "logistic": (SparseLogisticRegression(1e-2), CLASSES),
    "squared": (SparseLinearRegression(1e-2), NUMBERS),
    "huber": (SparseLinearRegression(1e-2, loss="huber"), NUMBERS),
    "poisson": (SparseLinearRegression(1e-2, loss="poisson"), COUNTS),
}
DESIGNS = {
    "a constant column": np.column_stack([X, np.full(100, 3.0)]),
    "duplicated columns": np.hstack([X, X]),
    "zero columns": np.hstack([X, np.zeros((100, 3))]),
    "nothing but zeros": np.zeros((100, 3)),
    "a sparse matrix without entries": sp.csr_matrix((100, 3)),
    "explicit zeros": sp.csc_matrix((np.zeros(100), (np.arange(100), np.zeros(100, int)))),
    "columns from 1e-8 to 1e8": X * np.geomspace(1e-8, 1e8, 20),
    "columns from 1e-80 to 1e80": X * np.geomspace(1e-80, 1e80, 20),
    "one column": X[:, :1],
    "columns far from zero": X + 30.0,
    "integers": np.rint(3 * X).astype(int),
}


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("loss", MODELS)
def test_odd_columns_are_solved(loss, design):
    model, y = MODELS[loss]
    assert_solved(model.fit(DESIGNS[design], y))


def test_columns_far_from_zero_have_the_weights_of_centred_ones():
    for form in (np.asarray, lambda X: X.astype(np.float32)):
        near = SparseLinearRegression(0.05, tol=1e-9).fit(form(X), NUMBERS)
        far = SparseLinearRegression(0.05, tol=1e-9, warm_start=True).fit(form(X + 30.0), NUMBERS)
        np.testing.assert_allclose(far.coef_, near.coef_, atol=1e-4)
        np.testing.assert_allclose(far.predict(form(X + 30.0)), near.predict(form(X)), atol=1e-3)
        assert far.fit(form(X + 30.0), NUMBERS).n_iter_ <= 3
        path = far.fit_path(form(X + 30.0), NUMBERS, [0.05])
        np.testing.assert_allclose(path.intercepts, far.intercept_, rtol=1e-4)


@pytest.mark.parametrize("loss", ["squared", "huber", "poisson"])
def test_a_constant_target_needs_no_weights(loss):
    model = SparseLinearRegression(1e-3, loss=loss).fit(X, np.full(100, 5.1))
    assert_solved(model)
    assert not model.coef_.any()
    np.testing.assert_allclose(model.predict(X), 5.1)


@pytest.mark.parametrize(
    ("params", "y"),
    [
        ({"loss": "huber"}, 1e4 * X[:, 0] + 1e5),
        ({"loss": Huber(1e-6)}, X[:, 0] + 1e5 * RNG.standard_cauchy(100)),
        ({"loss": "poisson"}, np.rint(1e6 * np.exp(X[:, 0]))),
        ({}, 1e90 * X[:, 0]),
        ({}, 1e-150 * X[:, 0]),
    ],
    ids=["far outliers", "outliers only", "huge counts", "huge numbers", "tiny numbers"],
)
def test_targets_of_any_size_are_solved(params, y):
    assert_solved(SparseLinearRegression(1e-3, **params).fit(X, y))


def test_one_row_is_enough_for_an_intercept():
    model = SparseLinearRegression().fit(X[:1], [2.0])
    assert_solved(model)
    assert model.intercept_ == 2.0


def test_one_row_against_very_many():
    y = np.zeros(2000, dtype=bool)
    y[0] = True
    assert_solved(SparseLogisticRegression(1e-5).fit(np.tile(X, (20, 1)), y))


@settings(deadline=None, max_examples=40)
@given(
    st.integers(1, 8),
    st.integers(1, 6),
    st.sampled_from(["squared", "huber", "poisson"]),
    st.floats(1e-4, 10.0),
    st.integers(0, 2**31),
)
def test_small_whole_numbers_are_always_solved(n_rows, n_features, loss, l1, seed):
    rng = np.random.default_rng(seed)
    design = rng.integers(-1, 2, (n_rows, n_features)).astype(float)
    y = rng.integers(0, 4, n_rows).astype(float) + (loss == "poisson")
    assert_solved(SparseLinearRegression(l1, loss=loss).fit(design, y))


# --- refusals ------------------------------------------------------------------------------------


def with_entry(value):
    broken = X.copy()
    broken[3, 2] = value
    return broken


@pytest.mark.parametrize("model", [SparseLogisticRegression(), SparseLinearRegression()])
@pytest.mark.parametrize(
    ("design", "sentence"),
    [
        (with_entry(np.nan), "NaN"),
        (with_entry(np.inf), "infinity"),
        (with_entry(1e120), r"X must be at most 1e\+100 in size in float64, got 1e\+120"),
        (sp.csr_matrix(with_entry(-1e120)), r"X must be at most 1e\+100 in size"),
        (X[:0], "0 sample"),
        (X[:, :0], "0 feature"),
        (X[0], "Expected 2D array"),
    ],
)
def test_refuses_features_that_are_no_numbers(model, design, sentence):
    with pytest.raises(ValueError, match=sentence):
        model.fit(design, CLASSES[: len(np.atleast_2d(X))])


def test_refuses_broken_sparse_structure():
    broken = sp.csc_matrix(X)
    broken.indices = broken.indices.copy()
    broken.indices[0] = 1000
    with pytest.raises(ValueError, match=r"X\.indices must be from 0 to 99"):
        SparseLinearRegression().fit(broken, NUMBERS)


@pytest.mark.parametrize(
    ("y", "sentence"),
    [
        (np.ones(100), "needs at least 2 classes, got 1 class"),
        (np.eye(2, dtype=int)[CLASSES.astype(int)], "y must have one label per sample"),
        ([["a"], ["b"]] * 50, "y must have one label per sample"),
        (NUMBERS, "Unknown label type"),
        (CLASSES[:50], r"one row per sample \(100\), got 50"),
        (None, "requires y to be passed"),
    ],
)
def test_refuses_classes_that_are_none(y, sentence):
    with pytest.raises(ValueError, match=sentence):
        SparseLogisticRegression().fit(X, y)


@pytest.mark.parametrize(
    ("y", "sentence"),
    [
        (np.where(np.arange(100) == 3, np.nan, NUMBERS), "NaN"),
        (np.where(np.arange(100) == 3, np.inf, NUMBERS), "infinity"),
        (np.full(100, 1e200), r"y must be at most 1e\+100 in size"),
        (np.column_stack([NUMBERS, NUMBERS]), "1d array"),
        (NUMBERS[:50], "y must have one number for each of 100 samples, got 50"),
        (np.array(["a"] * 100, dtype=object), "y must be numbers, got 'a'"),
        (None, "requires y to be passed"),
    ],
)
def test_refuses_targets_that_are_no_numbers(y, sentence):
    with pytest.raises(ValueError, match=sentence):
        SparseLinearRegression().fit(X, y)


def test_refuses_counts_below_zero_and_only_zeros():
    model = SparseLinearRegression(loss="poisson")
    with pytest.raises(ValueError, match=r"y must not be negative for loss='poisson', got -1"):
        model.fit(X, COUNTS - 1)
    with pytest.raises(ValueError, match="y must have a positive entry for loss='poisson'"):
        model.fit(X, np.zeros(100))


def test_refuses_weights_that_leave_no_rows_of_a_class():
    with pytest.raises(ValueError, match="must leave rows of every class, got none of True"):
        SparseLogisticRegression().fit(X, CLASSES, sample_weight=~CLASSES * 1.0)
    with pytest.raises(ValueError, match="must leave rows of every class, got none of False"):
        SparseLogisticRegression(class_weight={False: 0}).fit(X, CLASSES)


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ({"l1": -1}, "l1 must be a non-negative number, 'cv' or 'cv_1se', got -1"),
        ({"l1": "best"}, "l1 must be a non-negative number, 'cv' or 'cv_1se', got 'best'"),
        ({"l1": 0}, "l1 must be positive where l2 is 0, got 0"),
        ({"l2": np.inf}, "l2 must be a non-negative number, got inf"),
        (
            {"solver": "cd9"},
            "solver must be 'auto', 'newton', 'lhac', 'cd1' or .*, got 'cd9'",
        ),
        ({"tol": 0}, "tol must be a positive number, got 0"),
        ({"max_iter": 0}, "max_iter must be a positive integer or None, got 0"),
        ({"cv": 1}, "cv must be an integer of at least 2, a splitter or pairs"),
        ({"cv": "five"}, "cv must be an integer of at least 2, a splitter or pairs"),
        ({"l1s": 0}, "l1s must be a positive integer or an array of positive numbers, got 0"),
        ({"l1": "cv", "l1s": [0.1, 0]}, "l1s must be positive numbers"),
        ({"penalty_weights": 3}, "penalty_weights must be an array of one number per feature"),
        ({"penalty_weights": [1.0]}, "penalty_weights must have one weight for each of 20"),
        ({"penalty_weights": [-1.0] * 20}, "penalty_weights must be finite and not negative"),
        ({"warm_start": 1}, "warm_start must be True or False, got 1"),
    ],
)
@pytest.mark.parametrize("kind", [SparseLogisticRegression, SparseLinearRegression])
def test_refuses_parameters_by_their_rules(kind, params, sentence):
    with pytest.raises(ValueError, match=f"{kind.__name__}.{sentence}"):
        kind(**params).fit(X, CLASSES)


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ({"class_weight": "fair"}, "class_weight must be None, 'balanced'"),
        ({"class_weight": {"maybe": 1.0}}, "class_weight must name labels of y, got 'maybe'"),
        ({"class_weight": [1.0, 2.0, 3.0]}, "class_weight must have one weight for each of 2"),
        ({"class_weight": [1.0, -2.0]}, "class_weight must be finite and not negative, got -2"),
        ({"multinomial": "ovr"}, "multinomial must be True or False, got 'ovr'"),
    ],
)
def test_refuses_parameters_of_the_classifier(params, sentence):
    with pytest.raises(ValueError, match=sentence):
        SparseLogisticRegression(**params).fit(X, CLASSES)


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        (
            {"loss": "absolute"},
            "loss must be 'squared', 'huber', 'quantile', 'poisson', a Huber or a Quantile, got 'a",
        ),
        ({"positive": "yes"}, "positive must be True or False, got 'yes'"),
    ],
)
def test_refuses_parameters_of_the_regression(params, sentence):
    with pytest.raises(ValueError, match=sentence):
        SparseLinearRegression(**params).fit(X, NUMBERS)


def test_refuses_very_many_unpenalised_features():
    wide = sp.csr_matrix((100, 3000))
    with pytest.raises(ValueError, match=r"at most 2000 features unpenalised .*, got 3000"):
        SparseLinearRegression(penalty_weights=np.zeros(3000)).fit(wide, NUMBERS)
    assert_solved(SparseLinearRegression(l2=1.0, penalty_weights=np.zeros(3000)).fit(wide, NUMBERS))


@pytest.mark.parametrize("as_column", [pd.Series, np.array, list, tuple])
def test_penalty_weights_and_l1s_may_be_columns_of_a_data_frame(as_column, tmp_path):
    factors, l1s = np.linspace(0.5, 2.0, 20), [0.3, 0.1]
    settings = {"cv": 3}
    plain = SparseLinearRegression("cv", penalty_weights=factors, l1s=l1s, **settings)
    given = SparseLinearRegression(
        "cv", penalty_weights=as_column(factors), l1s=as_column(l1s), **settings
    )
    plain.fit(X, NUMBERS)
    given.fit(X, NUMBERS).save(tmp_path / "model")
    np.testing.assert_array_equal(given.coef_, plain.coef_)
    assert list(sublearn.load(tmp_path / "model").penalty_weights) == factors.tolist()


@pytest.mark.parametrize("weights", [2.0, np.float64(2.0), np.array(2.0), "ones", {"a": 1.0}])
def test_refuses_penalty_weights_that_are_no_row_of_numbers(weights):
    with pytest.raises(ValueError, match="penalty_weights must be an array of one number"):
        SparseLinearRegression(penalty_weights=weights).fit(X, NUMBERS)


def test_the_refusal_of_huge_features_names_the_estimator():
    with pytest.raises(ValueError, match="SparseLinearRegression: X must be at most 1e"):
        SparseLinearRegression().fit(X * 1e150, NUMBERS)


@pytest.mark.parametrize("loss", ["squared", "huber"])
def test_refuses_targets_whose_squares_vanish(loss):
    X = np.random.default_rng(0).normal(size=(30, 4))
    with pytest.raises(ValueError, match=r"y must be 0 or reach 1e-150 in size.*got \d.*e-2"):
        SparseLinearRegression(1e-202, loss=loss).fit(X, 1e-200 * X[:, 0])
    with pytest.raises(ParameterError, match=r"minimise_linear\.y must be 0 or reach 1e-150"):
        minimise_linear(X, 1e-200 * X[:, 0], loss, 1e-202)


def test_targets_of_zeros_and_tiny_means_of_counts_are_fitted():
    X = np.random.default_rng(0).normal(size=(30, 4))
    assert not SparseLinearRegression(0.1).fit(X, np.zeros(30)).coef_.any()
    counts = SparseLinearRegression(1e-201, loss="poisson").fit(X, np.full(30, 1e-200))
    np.testing.assert_allclose(counts.predict(X), 1e-200, rtol=1e-3)
