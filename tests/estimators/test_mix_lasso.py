"""MixLassoRegressor as an estimator: what it recovers, odd data, files, scikit-learn's contract."""

import numpy as np
import pytest
import scipy.sparse as sp

import sublearn
from sublearn.errors import ParameterError
from sublearn.latent import Gate, Kernel, MixLassoRegressor, MixtureSearch
from sublearn.latent.missing import GaussianFill
from sublearn.latent.mix_program import Point
from sublearn.latent.mix_starts import pattern_functions
from sublearn.latent.mixture import ComponentEM

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

FAST = {"search": MixtureSearch(n_starts=2), "random_state": 0}


# --- problems --------------------------------------------------------------------------------


def lines(n=160, noise=0.02, seed=0):
    """Two crossing lines."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, size=(n, 1))
    label = rng.integers(2, size=n)
    y = np.where(label, 1.5 * x[:, 0] + 0.5, -x[:, 0]) + noise * rng.normal(size=n)
    return x, y, label


def planes(n, n_features, n_components, seed=0, is_general=False):
    rng = np.random.default_rng(seed)
    X, W = rng.normal(size=(n, n_features)), rng.normal(size=(n_components, n_features))
    Z = np.eye(n_components)[rng.integers(n_components, size=n)]
    if is_general:
        Z = (rng.random((n, n_components)) < 0.5).astype(float)
    return X, (Z * (X @ W.T)).sum(axis=1), W, Z


def distance(found, W):
    """Of each true component from the nearest found one."""
    return np.sqrt(((found[:, None] - W[None]) ** 2).mean(axis=2)).min(axis=0)


# --- what is recovered -------------------------------------------------------------------------


def test_recovers_components_exactly_without_noise_or_intercept():
    X, y, W, Z = planes(250, 10, 4)
    model = MixLassoRegressor(4, fit_intercept=False, random_state=0).fit(X, y)
    assert distance(model.coef_, W).max() < 1e-5
    order = ((model.coef_[:, None] - W[None]) ** 2).sum(axis=2).argmin(axis=1)
    assert (order[model.labels_] == Z.argmax(axis=1)).mean() > 0.99


def test_recovers_a_generalised_mixture():
    X, y, W, Z = planes(250, 6, 3, is_general=True)
    model = MixLassoRegressor(
        3, mixture="generalised", fit_intercept=False, random_state=0
    ).fit(X, y)  # fmt: skip
    assert distance(model.coef_, W).max() < 1e-5
    order = ((model.coef_[:, None] - W[None]) ** 2).sum(axis=2).argmin(axis=1)
    assert (np.round(model.codes_) == Z[:, order]).mean() > 0.99
    assert not hasattr(model, "labels_")


def test_own_noise_levels_and_peeling_find_what_em_from_random_starts_misses():
    X, y, W, _ = planes(500, 8, 8, seed=1)
    model = MixLassoRegressor(8, fit_intercept=False, random_state=0).fit(X, y)
    assert distance(model.coef_, W).max() < 1e-4
    em, rng = ComponentEM(X, y, 1e-9, is_hard=True), np.random.default_rng(0)
    plain = [em.run(em.start(rng.normal(size=(8, 8)))).coef for _ in range(10)]
    assert min(distance(coef, W).max() for coef in plain) > 0.1


@pytest.mark.parametrize("starts", ["cover", "patterns", "random"])
@pytest.mark.parametrize("mixture", ["standard", "generalised"])
def test_each_kind_of_start_finds_an_easy_mixture(mixture, starts):
    X, y, W, _ = planes(200, 4, 3, is_general=mixture == "generalised")
    search = MixtureSearch(starts=starts, refine="hard" if starts == "patterns" else "soft")
    model = MixLassoRegressor(
        3, mixture=mixture, fit_intercept=False, search=search, random_state=0
    ).fit(X, y)  # fmt: skip
    assert distance(model.coef_, W).max() < 1e-5
    assert (model.n_iter_ == 0) == (starts == "random")  # which does without the program
    assert len(model.l1_) == 0 if starts == "random" else len(model.l1_) > 0


def test_patterns_are_the_most_frequent_ones_of_the_strongest_atoms():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    owner = rng.permutation(np.repeat([0, 1, 2], [30, 20, 10]))
    W = np.array([[1.0, 0], [0, 2], [3, 3]])
    y = (X * W[owner]).sum(axis=1)
    noise = rng.random(60) < 0.5
    atoms = np.array([owner == 0, owner == 1, owner == 2, noise], dtype=float)
    point = Point(0.1, atoms, np.array([4.0, 3, 2, 1]), y, 1.0, 0.5, 1)
    rounded = list(pattern_functions(point, X, y, 2, is_general=False))
    assert len(rounded) == 4  # of 1, 2, 3 and 4 atoms
    np.testing.assert_allclose(rounded[2], W[:2], atol=1e-5)  # the third is the least frequent
    (general,) = pattern_functions(point, X, y, 3, is_general=True)
    np.testing.assert_allclose(general, W, atol=1e-5)
    (short,) = pattern_functions(point, X, y, 6, is_general=True)
    assert short.shape == (6, 2)
    assert not short[4:].any()


@pytest.mark.parametrize("seed", [0, 1])
def test_finds_the_number_of_lines(seed):
    x, y, label = lines(seed=seed)
    model = MixLassoRegressor(max_components=3, **FAST).fit(x, y)
    assert model.n_components_ == 2
    assert model.criteria_[2] == min(model.criteria_.values())
    agreement = (model.labels_ == label).mean()
    assert max(agreement, 1 - agreement) > 0.95
    np.testing.assert_allclose(model.noise_, 0.02, rtol=0.5)
    assert np.argmax(model.shares_) == 0


def test_sets_wild_rows_apart():
    x, y, _ = lines(n=200)
    wild = np.arange(0, 200, 12)
    y[wild] += np.random.default_rng(0).uniform(-6, 6, size=len(wild))
    search = MixtureSearch(l1_share=0.5, n_starts=2)
    model = MixLassoRegressor(search=search, max_components=3, random_state=0).fit(x, y)
    assert model.n_components_ == 2
    assert 0.03 < model.outlier_share_ < 0.12
    np.testing.assert_allclose(sorted(model.coef_.ravel()), [-1, 1.5], atol=0.05)


def test_adding_a_function_of_x_to_all_targets_adds_it_to_all_components():
    x, y, _ = lines()
    plain = MixLassoRegressor(2, **FAST).fit(x, y)
    shifted = MixLassoRegressor(2, **FAST).fit(x, y + 7 * x[:, 0] - 3)
    np.testing.assert_allclose(shifted.coef_, plain.coef_ + 7, atol=1e-5)
    np.testing.assert_allclose(shifted.intercept_, plain.intercept_ - 3, atol=1e-5)


@pytest.mark.parametrize(
    "options",
    [
        {"kernel": Kernel("poly", degree=2)},
        {"kernel": Kernel("rbf", gamma=1.0), "l2": 1e-5},
        {"kernel": Kernel("rbf", gamma=1.0, n_basis=15), "l2": 1e-5},
    ],
    ids=["poly", "rbf", "nystroem"],
)
def test_separates_curves_with_a_kernel(options):
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, size=(200, 1))
    label = rng.integers(2, size=200)
    curves = np.column_stack([x[:, 0] ** 2 - 0.5, 1.5 - x[:, 0] - x[:, 0] ** 2])
    y = curves[np.arange(200), label] + 0.02 * rng.normal(size=200)
    model = MixLassoRegressor(2, **options, **FAST).fit(x, y)
    values = model.predict_components(x)
    errors = [np.abs(curves - values[:, order]).mean() for order in ([0, 1], [1, 0])]
    assert min(errors) < 0.05
    assert not hasattr(model, "coef_")


def test_curves_that_cross_are_found_exactly():
    """Syn13 of the paper with 100 rows; roundings and random starts alone end in other curves."""
    rng = np.random.default_rng([0, 100])
    x = rng.uniform(-1, 1, size=(100, 1))
    truth = x ** np.arange(1, 7) @ rng.uniform(-4, 4, size=(4, 6)).T  # all of them meet at 0
    y = truth[np.arange(100), rng.integers(4, size=100)]
    kernel = Kernel("poly", degree=6, gamma=1.0)
    model = MixLassoRegressor(4, kernel=kernel, random_state=0).fit(x, y)
    assert np.abs(model.predict_components(x) - y[:, None]).min(axis=1).max() < 1e-4


def test_a_precomputed_linear_kernel_gives_the_linear_model():
    X, y, _, _ = planes(80, 3, 2)
    options = {"n_components": 2, "fit_intercept": False, "l2": 1e-9, **FAST}
    linear = MixLassoRegressor(**options).fit(X, y)
    kernel = MixLassoRegressor(kernel=Kernel("precomputed"), **options).fit(X @ X.T, y)
    new = np.random.default_rng(9).normal(size=(5, 3))
    found, expected = kernel.predict_components(new @ X.T), linear.predict_components(new)
    # Both components have half of the rows: which one comes first is left to rounding.
    first = np.abs(found[0, 0] - expected[0]).argmin()
    np.testing.assert_allclose(found, expected[:, [first, 1 - first]], atol=1e-5)


def test_hard_and_unrefined_fits_give_each_row_to_one_component():
    x, y, _ = lines()
    searches = [MixtureSearch(n_starts=2, refine=refine) for refine in ("hard", None)]
    hard, rounded = (MixLassoRegressor(2, search=s, random_state=0).fit(x, y) for s in searches)
    for model in (hard, rounded):
        assert set(np.unique(model.codes_)) == {0.0, 1.0}
    assert hard.noise_.mean() <= rounded.noise_.mean() + 1e-12


# --- prediction --------------------------------------------------------------------------------


def split_lines():
    """The component depends on the side of zero, so that a gate can know it."""
    x = np.linspace(-1, 1, 200)[:, None]
    return x, np.where(x[:, 0] < 0, 2 + x[:, 0], -3 * x[:, 0])


@pytest.mark.parametrize("gate", ["neighbours", "classifier"])
def test_a_gate_that_sees_the_side_predicts_well(gate):
    x, y = split_lines()
    model = MixLassoRegressor(2, gate=Gate(gate), **FAST).fit(x, y)
    assert model.score(x, y) > 0.9


def test_shares_predict_the_mean_of_the_components():
    x, y = split_lines()
    model = MixLassoRegressor(2, gate=Gate("shares"), **FAST).fit(x, y)
    np.testing.assert_allclose(model.predict(x), model.predict_components(x) @ model.shares_)


def test_codes_of_rows_with_targets_say_which_component_they_follow():
    x, y, _ = lines()
    model = MixLassoRegressor(2, **FAST).fit(x, y)
    np.testing.assert_allclose(model.predict_codes(x, y), model.codes_)
    exact = model.predict_components(x)[:, 1]
    assert (model.predict_codes(x, exact).argmax(axis=1) == 1).mean() > 0.9


# --- promises ----------------------------------------------------------------------------------


def test_float32_and_sparse_matrices_are_taken():
    x, y, _ = lines()
    model = MixLassoRegressor(2, **FAST).fit(x, y)
    single = MixLassoRegressor(2, **FAST).fit(x.astype(np.float32), y)
    assert single.predict(x.astype(np.float32)).dtype == np.float32
    np.testing.assert_allclose(single.coef_, model.coef_, atol=1e-3)
    sparse = MixLassoRegressor(2, **FAST).fit(sp.csr_matrix(x), y)
    np.testing.assert_allclose(sparse.coef_, model.coef_)


def test_parameters_of_earlier_files_become_settings():
    stored = {
        "kernel": "rbf", "gamma": 2.0, "degree": 3, "coef0": 1.0, "n_basis": 8, "l1": 0.4,
        "refine": None, "n_starts": 5, "gate": "classifier", "n_neighbors": 7, "l2": 1e-3,
    }  # fmt: skip
    expected = {
        "kernel": Kernel("rbf", gamma=2.0, n_basis=8), "gate": Gate("classifier", n_neighbors=7),
        "search": MixtureSearch(l1_share=0.4, n_starts=5, refine=None), "l2": 1e-3,
    }  # fmt: skip
    assert MixLassoRegressor._current_params(stored) == expected
    backwards = dict(reversed(stored.items()))
    assert MixLassoRegressor._current_params(backwards) == expected


def test_certificate_and_trace_tell_how_the_program_went():
    x, y, _ = lines()
    search = MixtureSearch(l1_share=0.5, n_starts=2)
    model = MixLassoRegressor(2, search=search, tol=0.2, random_state=0).fit(x, y)
    assert 0 <= model.certificate_ <= 0.2
    assert len(model.trace_) == model.n_iter_
    assert model.trace_["certificate"][-1] == pytest.approx(model.certificate_)


@pytest.mark.filterwarnings("error")
def test_warns_with_the_certificate_if_the_searches_run_out():
    x, y, _ = lines()
    with pytest.warns(Warning, match="iteration limit.*asked for tol=1e-06"):
        MixLassoRegressor(2, tol=1e-6, max_iter=1, **FAST).fit(x, y)


# --- odd data ----------------------------------------------------------------------------------


def test_one_row_is_one_component():
    model = MixLassoRegressor(random_state=0).fit([[1.0, 2.0]], [3.0])
    assert model.predict([[1.0, 2.0]]) == pytest.approx(3.0, abs=1e-5)


def test_constant_and_collinear_columns_change_no_prediction():
    x, y, _ = lines()
    plain = MixLassoRegressor(2, **FAST).fit(x, y)
    odd = np.column_stack([x, np.full(len(x), 4.0), 2 * x])
    model = MixLassoRegressor(2, **FAST).fit(odd, y)
    np.testing.assert_allclose(
        model.predict_components(odd), plain.predict_components(x), atol=1e-3
    )
    assert (model.coef_[:, 1] == 0).all()


@pytest.mark.parametrize("mixture", ["standard", "generalised"])
def test_targets_that_are_all_zero_are_explained(mixture):
    x = np.linspace(-1, 1, 30)[:, None]
    model = MixLassoRegressor(2, mixture=mixture, **FAST).fit(x, np.zeros(30))
    np.testing.assert_allclose(model.predict(x), 0, atol=1e-12)


def test_what_was_fitted_decides_about_missing_entries():
    x = np.linspace(-1, 1, 30)[:, None]
    model = MixLassoRegressor(1, **FAST).fit(x, x[:, 0])
    before = model.predict(x)
    np.testing.assert_array_equal(model.set_params(missing="mask").predict(x), before)


def test_constant_targets_and_duplicated_rows_are_explained():
    x = np.repeat([[0.0], [1.0]], 10, axis=0)
    model = MixLassoRegressor(2, **FAST).fit(x, np.full(20, 5.0))
    np.testing.assert_allclose(model.predict(x), 5.0, atol=1e-6)
    two = MixLassoRegressor(2, **FAST).fit(np.zeros((20, 1)), np.tile([0.0, 4.0], 10))
    np.testing.assert_allclose(sorted(two.intercept_), [0, 4], atol=1e-5)


def test_more_components_than_patterns_leave_some_without_harm():
    model = MixLassoRegressor(4, **FAST).fit(np.zeros((20, 1)), np.tile([0.0, 4.0], 10))
    assert np.isfinite(model.coef_).all()
    assert np.isfinite(model.intercept_).all()
    fitted = (model.codes_ * model.predict_components(np.zeros((20, 1)))).sum(axis=1)
    np.testing.assert_allclose(fitted, np.tile([0.0, 4.0], 10), atol=1e-3)


def test_features_of_zeros_without_an_intercept_explain_nothing():
    y = np.arange(30.0)
    model = MixLassoRegressor(2, fit_intercept=False, **FAST).fit(np.zeros((30, 2)), y)
    assert not model.coef_.any()
    assert not model.predict(np.ones((3, 2))).any()


def test_fewer_rows_than_features_are_fitted():
    X, y, _, _ = planes(8, 20, 2)
    assert np.isfinite(MixLassoRegressor(2, **FAST).fit(X, y).predict(X)).all()


def refusals():
    x, y, _ = lines(n=30)
    holes = x.copy()
    holes[3] = np.nan
    given = Kernel("precomputed")
    return [
        ({"n_components": 31}, x, y, "n_components must be at most the number of samples, 30"),
        ({"n_components": 11, "mixture": "generalised"}, x, y, "at most 10 for mixture"),
        ({"n_components": "many"}, x, y, "n_components must be a positive integer or 'auto'"),
        (
            {"kernel": "rbf"},
            x,
            y,
            r"MixLassoRegressor\.kernel must be an instance of Kernel or None, got 'rbf'",
        ),
        ({"kernel": given}, x, y, r"symmetric matrix.*got shape \(30, 1\)"),
        ({"kernel": given}, np.tri(30), y, "symmetric matrix.*entries that differ by 1"),
        ({}, 1e200 * x, y, r"X must be at most 1e\+100 in size"),
        ({}, x, ["many"] * 30, "y must be numbers, got 'many'"),
        ({}, [["many"]] * 30, y, "X must hold numbers alone, got 'many' in row 0"),
        ({"kernel": given}, -np.eye(30), y, "positive semidefinite"),
        ({}, holes, y, "NaN"),
        ({}, x, y[:-1], "one number for each of 30 samples"),
    ]


@pytest.mark.parametrize(("options", "X", "y", "message"), refusals())
def test_refuses_with_a_sentence(options, X, y, message):
    with pytest.raises((ParameterError, ValueError), match=message):
        MixLassoRegressor(**options).fit(X, y)


@pytest.mark.parametrize(
    ("settings", "field", "value"),
    [
        (Kernel, "kind", "sigmoid"), (Kernel, "gamma", 0.0), (Kernel, "n_basis", 0),
        (Gate, "kind", "trees"), (Gate, "n_neighbors", 0),
        (MixtureSearch, "l1_share", 1.5), (MixtureSearch, "refine", "softly"),
        (MixtureSearch, "starts", "everywhere"),
    ],
)  # fmt: skip
def test_settings_are_refused_when_they_are_made(settings, field, value):
    with pytest.raises(ParameterError, match=rf"^{settings.__name__}\.{field} must be"):
        settings(**{field: value})


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_missing_entries_are_expected_from_the_others(dtype, tmp_path):
    rng = np.random.default_rng(0)
    base = rng.normal(size=(400, 2))
    X = np.hstack([base, base @ [[1.0], [2.0]], rng.normal(size=(400, 1))]).astype(dtype)
    X[:, 2] += 0.1 * rng.normal(size=400)  # nearly told by the first two
    w = np.array([[2.0, 0, 1, 1], [-1, 1, 0, -2]])
    label = rng.integers(2, size=400)
    y = np.einsum("ij,ij->i", X, w[label])
    X[rng.random(400) < 0.2, 2] = np.nan
    model = MixLassoRegressor(2, missing="mask", random_state=0).fit(X, y)
    assert model.coef_.dtype == dtype
    order = np.argsort(-model.coef_[:, 0])
    np.testing.assert_allclose(model.coef_[order], w, atol=0.1)
    assert np.mean(model.labels_ == np.argsort(order)[label]) > 0.95
    model.save(tmp_path / "model")
    again = sublearn.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_filled_entries_are_conditional_means():
    rng = np.random.default_rng(1)
    covariance = np.array([[2.0, 1.2, 0.0], [1.2, 1.0, 0.3], [0.0, 0.3, 1.5]])
    X = rng.multivariate_normal([1.0, -2.0, 3.0], covariance, size=4000)
    X[rng.random(X.shape) < 0.15] = np.nan
    fill = GaussianFill.of(X)
    np.testing.assert_allclose(fill.mean, [1, -2, 3], atol=0.1)
    np.testing.assert_allclose(fill.covariance, covariance, atol=0.15)
    filled = fill(np.array([[2.0, np.nan, 3.0], [np.nan] * 3]))
    expected = -2 + covariance[1, [0, 2]] @ np.linalg.solve(covariance[::2, ::2], [1.0, 0.0])
    np.testing.assert_allclose(filled, [[2, expected, 3], [1, -2, 3]], atol=0.1)


def test_missing_entries_are_refused_with_a_hint():
    X = np.array([[1.0], [np.nan], [3.0]])
    with pytest.raises(ValueError, match="missing='mask'") as caught:
        MixLassoRegressor(1).fit(X, [1.0, 2, 3])
    assert "HistGradientBoosting" not in str(caught.value)
    with pytest.raises(ParameterError, match="'refuse' for a precomputed kernel"):
        MixLassoRegressor(1, kernel=Kernel("precomputed"), missing="mask").fit(X @ X.T, [1.0, 2, 3])
