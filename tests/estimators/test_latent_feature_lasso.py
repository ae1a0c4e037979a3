"""LatentFeatureLasso as an estimator: scikit-learn's contract, recovery, odd data, files."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sublearn.errors import ParameterError
from sublearn.latent import LatentFeatureLasso
from sublearn.latent.feature_count import fewest_bits

# --- problems --------------------------------------------------------------------------------


def lasso(*args, **params):
    return LatentFeatureLasso(*args, **{"random_state": 0} | params)


def planted(n=120, d=30, k=5, noise=0.05, intercept=0.0, seed=0):
    """Rows, their codes and features."""
    rng = np.random.default_rng(seed)
    Z = rng.integers(0, 2, size=(n, k))
    W = rng.normal(size=(k, d))
    return Z @ W + intercept + noise * rng.normal(size=(n, d)), Z, W


def distance_of_codes(found, truth):
    """Wrong bits of the best match of each true column."""
    return sum(np.abs(found - truth[:, [k]]).sum(axis=0).min() for k in range(truth.shape[1]))


# --- what is learned ---------------------------------------------------------------------------


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("n_components", [5, "gap", "bic"])
def test_finds_planted_features_without_a_wrong_bit(n_components, fit_intercept):
    X, Z, W = planted()
    model = lasso(n_components, fit_intercept=fit_intercept).fit(X)
    assert model.n_components_ == 5
    assert distance_of_codes(model.transform(X), Z) == 0
    assert model.reconstruction_error_ < 0.05
    np.testing.assert_array_equal(model.transform(X), model.codes_)
    matched = [np.abs(model.components_ - w).max(axis=1).min() for w in W]
    assert max(matched) < 0.1


@pytest.mark.parametrize("share", [0.1, 0.85])
def test_finds_features_that_few_or_most_rows_have(share):
    rng = np.random.default_rng(4)
    Z = (rng.random((300, 6)) < share).astype(int)
    X = Z @ rng.normal(size=(6, 40)) + 0.1 * rng.normal(size=(300, 40))
    model = lasso(6).fit(X)
    assert distance_of_codes(np.hstack([model.codes_, 1 - model.codes_]), Z) == 0


def test_an_intercept_takes_the_mean_and_no_feature_does():
    X, Z, _ = planted(intercept=50.0)
    model = lasso(5).fit(X)
    assert distance_of_codes(np.hstack([model.codes_, 1 - model.codes_]), Z) == 0
    assert 0.2 < model.codes_.mean() < 0.8
    assert model.reconstruction_error_ < 0.05


def test_more_features_never_fit_worse():
    X, _, _ = planted(noise=0.5)
    errors = [lasso(k).fit(X).reconstruction_error_ for k in (1, 2, 4, 6, 9)]
    assert (np.diff(errors) < 0).all()


def test_refinement_fits_no_worse_than_the_rounding_of_the_paper():
    X = np.random.default_rng(3).normal(size=(80, 12))
    kwargs = {"n_components": 6, "max_iter": 3}
    with pytest.warns(ConvergenceWarning, match="limit of steps"):
        rounded = lasso(refine=False, **kwargs).fit(X)
    with pytest.warns(ConvergenceWarning):
        refined = lasso(**kwargs).fit(X)
    assert refined.reconstruction_error_ < rounded.reconstruction_error_


@pytest.mark.parametrize("intercept", [0.0, 5.0])
def test_the_default_l1_is_that_of_centred_data_with_and_without_an_intercept(intercept):
    """A tenth of the largest one leaves nothing but a column of ones where there is none."""
    X, _, _ = planted(k=10, intercept=intercept)
    plain, without = lasso(10).fit(X), lasso(10, fit_intercept=False).fit(X)
    assert without.l1_ == pytest.approx(plain.l1_)
    assert len(without.atom_weights_) >= 10


def test_the_search_alone_finds_planted_features():
    X, Z, _ = planted()
    options = {"refine": False, "fit_intercept": False}
    alone = lasso(5, span_atoms=False, **options).fit(X)
    assert distance_of_codes(alone.codes_, Z) == 0
    offered = lasso(5, **options).fit(X)
    assert alone.n_iter_ > 1
    assert alone.trace_["n_atoms"][0] == 0  # it begins with nothing
    assert offered.trace_["n_atoms"][0] > 5
    np.testing.assert_allclose(alone.objective_, offered.objective_, rtol=0.02)
    assert lasso("bic", span_atoms=False).fit(X).n_components_ == 5


def test_held_out_entries_choose_the_planted_number():
    X, _, _ = planted(n=150, k=3, noise=0.3, seed=1)
    model = lasso("cv", max_components=6).fit(X)
    assert model.n_components_ == 3
    assert model.cv_results_["errors"].shape == (6, 3)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_held_out_entries_count_features_of_few_columns():
    rng = np.random.default_rng(0)
    shapes = np.zeros((4, 36))
    for k, width in enumerate((5, 8, 5, 5)):
        shapes[k, 9 * k : 9 * k + width] = 1
    X = rng.integers(0, 2, size=(120, 4)) @ shapes + 0.6 * rng.normal(size=(120, 36))
    assert lasso("cv", max_components=6, max_iter=10).fit(X).n_components_ == 4


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("noise", [0.3, 0.6])
@pytest.mark.parametrize("n_components", ["bic", "gap"])
def test_a_feature_is_counted_once_though_noise_blurs_its_columns(n_components, noise):
    rng = np.random.default_rng(0)
    shapes = np.kron(np.eye(4), np.ones(9))  # four disjoint blocks of nine
    X = rng.integers(0, 2, size=(400, 4)) @ shapes + noise * rng.normal(size=(400, 36))
    model = lasso(n_components, max_iter=10).fit(X)
    assert model.n_components_ == 4
    assert model.gains_[3] > 3 * model.gains_[4]


@pytest.mark.parametrize("noise", [0.1, 0.5])
@pytest.mark.parametrize("n_components", ["bic", "gap"])
def test_features_of_few_rows_are_counted(n_components, noise):
    rng = np.random.default_rng(1)
    Z = rng.random((500, 6)) < [0.5, 0.4, 0.3, 0.2, 0.1, 0.05]
    X = Z @ rng.normal(size=(6, 40)) + noise * rng.normal(size=(500, 40))
    assert lasso(n_components).fit(X).n_components_ == 6


def test_the_fewest_bits_are_those_of_codes_features_and_errors():
    X, _, _ = planted(n=60, d=12, k=3, noise=0.2)
    gains = lasso().fit(X).gains_
    beyond = np.square(X - X.mean(axis=0)).sum() - gains.sum()
    errors = [beyond + gains[k:].sum() for k in range(len(gains))]
    bits = [
        60 * 12 / 2 * np.log(error) + 2 * k * (60 * np.log(2) + 12 / 2 * np.log(60))
        for k, error in enumerate(errors)
    ]
    assert fewest_bits(gains, beyond, X.shape) == int(np.argmin(bits)) == 3
    assert fewest_bits(np.array([0.0, 0.0]), 1.0, (5, 5)) == 0


def test_the_default_is_stable_under_bootstrap_where_the_gap_is_not():
    X = load_digits().data[:400]
    rng = np.random.default_rng(1)
    samples = [X[rng.integers(400, size=400)] for _ in range(4)]
    quick = {"max_iter": 2, "n_exchanges": 0, "violation_tol": 1e3}
    bic, gap = (
        np.array([lasso(how, **quick).fit(rows).n_components_ for rows in samples])
        for how in ("bic", "gap")
    )
    assert bic.std() <= 0.2 * bic.mean()
    assert bic.std() < gap.std()
    assert lasso().n_components == "bic"


def test_the_convex_objective_falls_and_has_a_certificate():
    X = np.random.default_rng(0).normal(size=(60, 20))
    model = lasso(4, l1=0.05).fit(X)
    assert (np.diff(model.trace_["objective"]) <= 1e-9).all()
    assert 0 < model.certificate_ < 0.3
    assert model.n_iter_ == len(model.trace_)


def test_scaling_the_data_scales_the_features():
    X, _, _ = planted()
    small, large = lasso(5).fit(X), lasso(5).fit(1e6 * X)
    np.testing.assert_array_equal(small.codes_, large.codes_)
    np.testing.assert_allclose(large.components_, 1e6 * small.components_, rtol=1e-6)


# --- new rows ----------------------------------------------------------------------------------


def test_codes_of_new_rows_are_those_that_made_them():
    X, _, _ = planted()
    model = lasso(5).fit(X)
    codes = np.random.default_rng(9).integers(0, 2, size=(50, 5))
    np.testing.assert_array_equal(model.transform(model.inverse_transform(codes)), codes)


def test_score_is_minus_the_mean_square_error():
    X, _, _ = planted()
    model = lasso(5).fit(X)
    left = X - model.inverse_transform(model.transform(X))
    assert model.score(X) == pytest.approx(-np.square(left).mean())


def test_works_in_pipelines_and_searches():
    X, _, _ = planted(n=60)
    search = GridSearchCV(lasso(), {"n_components": [1, 5]}, cv=2).fit(X)
    assert search.best_params_["n_components"] == 5
    codes = make_pipeline(StandardScaler(), lasso(3)).fit_transform(X)
    assert codes.shape == (60, 3)


# --- odd input ---------------------------------------------------------------------------------


def test_takes_sparse_matrices_and_names_what_comes_out():
    X, _, _ = planted(n=50, d=6, k=2)
    plain = lasso(2).fit(X)
    sparse = lasso(2).fit(sp.csr_matrix(X))
    np.testing.assert_array_equal(plain.components_, sparse.components_)
    assert list(plain.get_feature_names_out()) == ["latentfeaturelasso0", "latentfeaturelasso1"]


def test_refuses_missing_values_with_a_hint_and_leaves_them_out_if_asked():
    X, Z, _ = planted(n=200, noise=0.02)
    X[np.random.default_rng(1).random(X.shape) < 0.05] = np.nan
    with pytest.raises(ValueError, match="missing='mask'") as caught:
        lasso(5).fit(X)
    assert "HistGradientBoosting" not in str(caught.value)
    model = lasso(5, missing="mask").fit(X)
    assert distance_of_codes(model.transform(X), Z) == 0
    assert model.reconstruction_error_ < 0.03


def test_refuses_a_column_without_any_entry():
    X, _, _ = planted(n=20)
    X[:, 3] = np.nan
    with pytest.raises(ValueError, match="column 3"):
        lasso(2, missing="mask").fit(X)


def test_constant_columns_and_duplicated_rows_do_no_harm():
    X, Z, _ = planted(n=60, noise=0.0)
    X = np.hstack([np.vstack([X, X]), np.full((120, 2), 7.0)])
    model = lasso(5).fit(X)
    assert distance_of_codes(model.codes_, np.vstack([Z, Z])) == 0
    np.testing.assert_allclose(model.intercept_[-2:], 7.0)


def test_constant_data_have_no_features():
    model = lasso().fit(np.full((10, 3), 2.0))
    assert model.n_components_ == 0
    assert model.transform(np.full((4, 3), 2.0)).shape == (4, 0)
    np.testing.assert_array_equal(model.inverse_transform(np.zeros((2, 0))), np.full((2, 3), 2.0))


def test_one_row_is_its_own_intercept():
    model = lasso().fit([[1.0, 2.0]])
    np.testing.assert_array_equal(model.intercept_, [1.0, 2.0])


def test_asks_for_no_more_features_than_the_data_have():
    X, _, _ = planted(n=12, k=2, noise=0.0)
    with pytest.warns(UserWarning, match="2 features leave no error; n_components=20"):
        model = lasso(20).fit(X)
    assert model.n_components_ == 2
    with pytest.warns(UserWarning, match="leave no error"):  # fewer rows than features
        assert lasso(5).fit(X[:3]).reconstruction_error_ < 1e-6


def test_collinear_columns_do_no_harm():
    X, Z, _ = planted()
    model = lasso(5).fit(np.hstack([X, X, X[:, :3] + X[:, 3:6]]))
    assert distance_of_codes(model.codes_, Z) == 0


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("n_components", 0), ("n_components", "many"), ("l1", 0.0), ("l2", -1.0),
        ("violation_tol", 0), ("missing", "drop"), ("n_exchanges", -1), ("max_iter", 0),
        ("refine", 1), ("span_atoms", "no"),
    ],
)  # fmt: skip
def test_refuses_parameters_that_mean_nothing(parameter, value):
    with pytest.raises(ParameterError, match=rf"LatentFeatureLasso.{parameter} must be"):
        LatentFeatureLasso(**{parameter: value}).fit(np.eye(4))


@pytest.mark.parametrize(
    ("codes", "sentence"),
    [
        (np.zeros((3, 4)), r"X must have 2 columns, got shape \(3, 4\)"),
        ([1, 0], r"X must have 2 columns, got shape \(2,\)"),
        ([["a", "b"]], "X must hold finite numbers, got"),
        ([[1, np.nan]], "X must hold finite numbers, got"),
    ],
)
def test_refuses_what_are_no_codes(codes, sentence):
    model = lasso(2).fit(planted(n=30, k=2)[0])
    with pytest.raises(ValueError, match=sentence):
        model.inverse_transform(codes)


def test_takes_sparse_codes():
    model = lasso(2).fit(planted(n=30, k=2)[0])
    dense = model.inverse_transform(model.codes_)
    np.testing.assert_array_equal(model.inverse_transform(sp.csr_matrix(model.codes_)), dense)


@pytest.mark.parametrize(
    ("X", "sentence"),
    [
        ([["a", "b"], ["c", "d"]], "X must hold numbers alone, got 'a' in row 0, column 0"),
        (pd.DataFrame({"n": [1, 2], "city": ["3", "Rome"]}), "got 'Rome' in row 1, column 'city'"),
        (1e80 * np.eye(3), r"X must be at most 1e\+70 in size, got 1e\+80"),
    ],
)
def test_refuses_what_are_no_numbers(X, sentence):
    with pytest.raises(ValueError, match=sentence):
        lasso().fit(X)


def test_large_numbers_are_features_like_others():
    X, Z, _ = planted()
    assert distance_of_codes(lasso(5).fit(1e69 * X).codes_, Z) == 0


# --- watching, stopping, saving ----------------------------------------------------------------


def test_a_callback_sees_the_fit_and_may_stop_it():
    events = []
    X = np.random.default_rng(0).normal(size=(300, 60))
    model = lasso(10, callback=lambda event: events.append(event) or True)
    with pytest.warns(ConvergenceWarning, match="callback asked to stop"):
        model.fit(X)
    assert events
    assert model.codes_.shape[0] == 300


def test_features_are_drawn_as_images():
    pytest.importorskip("matplotlib").use("Agg")
    X, _, _ = planted()
    model = lasso(5).fit(X)
    display = model.plot_features((5, 6))
    assert len([ax for ax in display.axes_ if ax.images]) == 6
    np.testing.assert_array_equal(
        display.axes_[1].images[0].get_array(), model.components_[0].reshape(5, 6)
    )
    for shape, options, sentence in [
        ((5, 5), {}, "shape must have 30 pixels, got"),
        (30, {}, r"shape must be \(height, width\), got 30"),
        ((-5, -6), {}, r"shape must be \(height, width\)"),
        ((5, 6), {"n_columns": 0}, "n_columns must be a positive integer, got 0"),
        ((5, 6), {"ax": display.axes_[:3]}, "ax must be 6 matplotlib axes, got 3"),
    ]:
        with pytest.raises(ValueError, match=sentence):
            model.plot_features(shape, **options)


# --- the path ----------------------------------------------------------------------------------


def test_a_path_ends_where_a_fit_at_its_last_weight_ends():
    X, Z, _ = planted(noise=0.2)
    path = lasso(violation_tol=1e-3).fit_path(X, l1s=5)
    assert len(path.l1s) == len(path.n_atoms) == len(path.scores) == 5
    assert path.l1s[-1] == pytest.approx(0.05 / 0.05 ** (1 / 5) * path.l1s[0])
    alone = lasso(5, l1=path.l1s[-1], violation_tol=1e-3).fit(X)
    assert path.objectives[-1] == pytest.approx(alone.objective_, rel=1e-3)
    assert distance_of_codes(np.hstack([path.codes[-1], 1 - path.codes[-1]]), Z) == 0
    assert ((path.certificates >= 0) & (path.certificates < 0.2)).all()


def test_a_path_takes_given_weights_in_any_order_and_leaves_the_estimator_alone():
    X, _, _ = planted(noise=0.2)
    model = lasso(violation_tol=1e-3)
    counted = model.fit_path(X, l1s=3)
    given = model.fit_path(X, l1s=counted.l1s[[1, 0, 2]])
    np.testing.assert_array_equal(given.l1s, counted.l1s)
    np.testing.assert_allclose(given.objectives, counted.objectives, rtol=1e-3)
    assert not hasattr(model, "n_features_in_")


def test_a_path_leaves_missing_entries_out_if_asked():
    X, _, _ = planted(n=60, noise=0.02)
    X[3, 4] = np.nan
    with pytest.raises(ValueError, match="missing='mask'"):
        lasso().fit_path(X)
    assert np.isfinite(lasso(missing="mask").fit_path(X, l1s=2).objectives).all()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"ratio": 2.0}, r"ratio must be a number in \(0, 1\), got 2"),
        ({"l1s": 0}, "l1s must be a positive integer or numbers, got 0"),
        ({"l1s": [0.1, 0.0]}, "l1s must be positive numbers"),
        ({"l1s": [0.1, -1.0]}, "l1s must be finite and not negative, got -1"),
    ],
)
def test_a_path_refuses_weights_that_mean_nothing(options, sentence):
    with pytest.raises(ValueError, match=rf"LatentFeatureLasso\.fit_path\.{sentence}"):
        lasso().fit_path(np.eye(3), **options)


@pytest.mark.parametrize("X", [np.ones((4, 3)), np.ones((1, 3)), sp.csr_matrix((4, 3))])
def test_a_path_of_data_that_do_not_vary_has_no_columns(X):
    path = lasso().fit_path(X, l1s=2)
    assert path.n_atoms.tolist() == [0, 0]
    assert path.objectives.tolist() == [0, 0]
