"""Paths along l1, and l1 chosen by cross-validation."""

import warnings

import matplotlib
import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold

from sublearn.linear import (
    SparseInverseCovariance,
    SparseLinearRegression,
    SparseLogisticRegression,
)

matplotlib.use("Agg")


def rows(n_classes=None, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(90, 25))
    z = 2 * X[:, 0] - X[:, 1] + 0.5 * X[:, 2]
    if n_classes is None:
        return X, z + rng.normal(size=90)
    return X, np.digitize(z + rng.normal(size=90), np.linspace(-1, 1, n_classes - 1))


def test_a_warm_started_path_equals_cold_fits():
    X, y = rows()
    path = SparseLinearRegression(tol=1e-10).fit_path(X, y, l1s=12)
    for l1, w, b in zip(path.l1s, path.coefs.toarray(), path.intercepts, strict=True):
        cold = SparseLinearRegression(l1, tol=1e-10).fit(X, y)
        np.testing.assert_allclose(w, cold.coef_, atol=1e-5)
        assert b == pytest.approx(cold.intercept_, abs=1e-5)


def test_a_path_begins_where_all_weights_are_zero_and_keeps_its_certificates():
    X, y = rows(2)
    model = SparseLogisticRegression()
    path = model.fit_path(X, y, l1s=model.l1_max(X, y) * np.geomspace(1, 1e-3, 20))
    assert path.l1s[0] == pytest.approx(model.l1_max(X, y))
    assert path.l1s[-1] == pytest.approx(1e-3 * path.l1s[0])
    assert (np.diff(path.l1s) < 0).all()
    assert path.coefs.shape == (20, 25)
    assert path.coefs[0].nnz == 0
    assert path.coefs[-1].nnz > 0
    assert (path.certificates <= model.tol).all()
    assert len(path) == 20
    assert not hasattr(model, "coef_")


def test_a_path_of_several_classes_has_a_matrix_for_each():
    X, y = rows(3)
    path = SparseLogisticRegression().fit_path(X, y, [0.1, 0.01])
    assert [matrix.shape for matrix in path.coefs] == [(2, 25)] * 3
    assert path.intercepts.shape == (3, 2)
    for i, l1 in enumerate(path.l1s):
        cold = SparseLogisticRegression(l1).fit(X, y)
        together = np.array([matrix.toarray()[i] for matrix in path.coefs])
        np.testing.assert_allclose(together, cold.coef_, atol=1e-3)


def test_given_values_are_taken_from_the_largest_on():
    X, y = rows()
    assert SparseLinearRegression().fit_path(X, y, [0.1, 0.5, 0.2]).l1s.tolist() == [0.5, 0.2, 0.1]


def test_a_path_that_does_not_converge_is_told():
    X, y = rows()
    with pytest.warns(ConvergenceWarning, match=r"\d+ of 10 fits ended before"):
        SparseLinearRegression(max_iter=1, tol=1e-12).fit_path(X, y, l1s=10)


def test_a_path_may_be_stopped():
    X, y = rows()
    model = SparseLinearRegression(callback=lambda event: True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # if a fit was cut short
        path = model.fit_path(X, y, l1s=20_000)
    assert len(path) < 20_000
    assert len(path.l1s) == path.coefs.shape[0] == len(path.certificates)


def test_a_path_draws_the_names_of_the_largest_features():
    X, y = rows()
    frame = pd.DataFrame(X, columns=[f"feature {j}" for j in range(25)])
    path = SparseLinearRegression().fit_path(frame, y, l1s=8)
    axes = path.plot(n_names=2).ax_
    assert [text.get_text() for text in axes.texts] == ["feature 0", "feature 1"]
    drawn = {line.get_label(): line.get_ydata() for line in axes.lines}
    np.testing.assert_array_equal(drawn["feature 1"], path.coefs[:, 1].toarray().ravel())
    low, high = axes.get_xlim()
    assert low > high
    other = path.plot(n_names=1, names=[f"word {j}" for j in range(25)])
    assert [text.get_text() for text in other.ax_.texts] == ["word 0"]
    with pytest.raises(ValueError, match=r"CoefficientPath.plot.names must be 25 names, got \['a'"):
        path.plot(names=["a"])
    matplotlib.pyplot.close("all")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"l1s": 0}, "fit_path.l1s must be a positive integer or an array"),
        ({"l1s": []}, "fit_path.l1s must be positive numbers"),
        ({"l1s": [0.1, 0.0]}, "fit_path.l1s must be positive numbers"),
        ({"l1s": [0.1, -1.0]}, "fit_path.l1s must be finite and not negative"),
        ({"l1s": "many"}, "fit_path.l1s must be a positive integer"),
    ],
)
def test_refuses_values_of_l1_that_are_none(arguments, sentence):
    X, y = rows()
    with pytest.raises(ValueError, match=sentence):
        SparseLinearRegression().fit_path(X, y, **arguments)


# --- cross-validation ----------------------------------------------------------------------------


def held_out_losses(X, y, l1s, folds):
    """Slow and obvious: a cold fit for each l1 and fold."""
    return np.array(
        [
            [
                0.5
                * np.mean((SparseLinearRegression(l1).fit(X[a], y[a]).predict(X[b]) - y[b]) ** 2)
                for a, b in folds
            ]
            for l1 in l1s
        ]
    )


def test_scores_are_those_of_cold_fits_on_the_folds():
    X, y = rows()
    folds = list(KFold(4).split(X))
    model = SparseLinearRegression("cv", cv=folds, l1s=[0.5, 0.1, 0.02]).fit(X, y)
    np.testing.assert_allclose(
        model.cv_scores_, -held_out_losses(X, y, model.l1_path_, folds), rtol=1e-4
    )
    assert model.l1_ == model.l1_path_[model.cv_scores_.mean(axis=1).argmax()]


def test_the_chosen_model_is_the_one_of_the_chosen_l1():
    for model, y in ((SparseLogisticRegression, rows(2)[1]), (SparseLinearRegression, rows()[1])):
        X = rows()[0]
        chosen = model("cv", l1s=10, tol=1e-9).fit(X, y)
        cold = model(chosen.l1_, tol=1e-9).fit(X, y)
        np.testing.assert_allclose(chosen.coef_, cold.coef_, atol=1e-4)
        assert chosen.cv_scores_.shape == (10, 5)
        assert chosen.certificate_ <= 1e-9


def test_one_standard_error_takes_a_larger_l1_that_is_nearly_as_good():
    X, y = rows()
    best = SparseLinearRegression("cv").fit(X, y)
    simple = SparseLinearRegression("cv_1se").fit(X, y)
    means = best.cv_scores_.mean(axis=1)
    error = best.cv_scores_[means.argmax()].std(ddof=1) / np.sqrt(5)
    assert simple.l1_ > best.l1_
    assert simple.l1_ == best.l1_path_[means >= means.max() - error].max()


def test_the_same_seed_gives_the_same_folds():
    X, y = rows(3)
    fits = [SparseLogisticRegression("cv", l1s=5).fit(X, y) for _ in range(2)]
    np.testing.assert_array_equal(fits[0].cv_scores_, fits[1].cv_scores_)


def test_splitters_and_rows_without_weight_go_together():
    X, y = rows()
    weights = np.ones(90)
    weights[::3] = 0.0
    folds = list(KFold(3, shuffle=True, random_state=0).split(X))
    l1s = [1.0, 0.3, 0.1, 0.03, 1e-3, 1e-4]
    some = SparseLinearRegression("cv", cv=KFold(3, shuffle=True, random_state=0), l1s=l1s)
    pairs = SparseLinearRegression("cv", cv=folds, l1s=l1s)
    np.testing.assert_array_equal(
        some.fit(X, y, weights).cv_scores_, pairs.fit(X, y, weights).cv_scores_
    )


@pytest.mark.parametrize("rule", ["cv", "cv_1se"])
@pytest.mark.parametrize("l1s", [4, [1.0, 0.3]])
def test_says_so_if_the_least_l1_is_the_best(rule, l1s):
    X = np.random.default_rng(0).normal(size=(90, 5))
    y = X.sum(axis=1)  # without noise the least l1 is always the best
    message = (
        r"SparseLinearRegression: the best of the \d values of l1 is the least, .*; set l1s to"
    )
    with pytest.warns(UserWarning, match=message) as found:
        SparseLinearRegression(rule, l1s=l1s).fit(X, y)
    assert [warning.filename for warning in found] == [__file__]
    with pytest.warns(UserWarning, match="SparseInverseCovariance: the best of the 2 values"):
        SparseInverseCovariance(rule, l1s=[0.9, 0.5]).fit(np.outer(y, [1.0, 1.0]) + X[:, :2])


def test_says_nothing_of_a_single_l1():
    X, y = rows()
    assert SparseLinearRegression("cv", l1s=[0.5]).fit(X, y).l1_ == 0.5


def test_a_number_for_l1_forgets_the_folds_of_an_earlier_fit():
    X, y = rows()
    model = SparseLinearRegression("cv", l1s=4).fit(X, y)
    assert not hasattr(model.set_params(l1=0.1).fit(X, y), "cv_scores_")
    assert model.l1_ == 0.1


@pytest.mark.parametrize("loss", ["huber", "poisson"])
def test_every_loss_can_be_cross_validated(loss):
    X, y = rows()
    model = SparseLinearRegression("cv", loss=loss, l1s=6).fit(X, np.abs(y))
    assert np.isfinite(model.cv_scores_).all()


def test_refuses_folds_that_cannot_be():
    X, y = rows(2)
    y = np.where(np.arange(90) < 3, 1, 0)
    with pytest.raises(ValueError, match=r"cv must be at most .* smallest class \(3\), got 5"):
        SparseLogisticRegression("cv").fit(X, y)
    with pytest.raises(ValueError, match=r"cv must be at most the number of samples \(4\), got 5"):
        SparseLinearRegression("cv").fit(X[:4], y[:4])
    with pytest.raises(ValueError, match="cv must leave every class in the training rows"):
        SparseLogisticRegression("cv", cv=[(np.arange(3, 90), np.arange(3))]).fit(X, y)
    with pytest.raises(ValueError, match="cv must give folds with rows on both sides"):
        SparseLinearRegression("cv", cv=[(np.arange(90), np.arange(0))]).fit(X, y)
