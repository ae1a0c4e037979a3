"""Classes learned together, and every solver behind the estimators, judged by scikit-learn."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import log_softmax, softmax
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from sublearn.linear import SparseLinearRegression, SparseLogisticRegression
from sublearn.optim.linear_solve import METHODS, SOLVERS

N_ROWS, N_FEATURES, N_CLASSES = 150, 12, 4


def _rows(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N_ROWS, N_FEATURES)) * (rng.random((N_ROWS, N_FEATURES)) < 0.6)
    W = np.zeros((N_FEATURES, N_CLASSES))
    W[:4] = 2 * rng.normal(size=(4, N_CLASSES))
    z = X @ W + [0.5, 0.0, 0.0, -0.5]
    return X, (z + rng.gumbel(size=z.shape)).argmax(axis=1)


X, Y = _rows()
LABELS = np.array(["ash", "beech", "oak", "yew"])[Y]
NUMBERS = X[:, 0] - 2 * X[:, 1] + np.random.default_rng(1).normal(size=N_ROWS)
ROW_WEIGHTS = np.random.default_rng(2).integers(0, 4, size=N_ROWS).astype(float)


def together(l1=0.01, **params):
    return SparseLogisticRegression(l1, multinomial=True, **{"tol": 1e-9} | params)


def objective_of(model, weights=None, factors=1.0):
    weights = np.ones(N_ROWS) if weights is None else weights
    z = X @ model.coef_.T + model.intercept_
    losses = -log_softmax(z, axis=1)[np.arange(N_ROWS), Y]
    w = model.coef_
    l1, l2 = getattr(model, "l1_", 0.0), getattr(model, "l2", 0.0)
    return weights @ losses / weights.sum() + l1 * (factors * abs(w)).sum() + l2 / 2 * (w**2).sum()


def judge(l1, l2, fit_intercept, weights=None):
    """scikit-learn's weights, with the attributes that `objective_of` reads."""
    total = l1 + l2
    n = N_ROWS if weights is None else weights.sum()
    params = {"l1_ratio": l1 / total, "C": 1 / (n * total), "solver": "saga", "tol": 1e-9}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what `penalty` is called changes between versions
        model = LogisticRegression(
            penalty="elasticnet", max_iter=20_000, fit_intercept=fit_intercept, **params
        ).fit(X, Y, weights)
    model.l1_, model.l2 = l1, l2
    return model


# --- every solver ---------------------------------------------------------------------------------


def test_the_estimators_offer_every_solver_of_the_one_table():
    assert set(SOLVERS) == {"auto", *METHODS}


@pytest.mark.parametrize("l2", [0.0, 0.1])
@pytest.mark.parametrize(
    ("kind", "params", "y"),
    [
        (SparseLogisticRegression, {}, Y > 1),
        (SparseLogisticRegression, {"fit_intercept": False}, Y),
        (SparseLinearRegression, {}, NUMBERS),
        (SparseLinearRegression, {"loss": "huber"}, NUMBERS),
        (SparseLinearRegression, {"loss": "poisson"}, Y.astype(float)),
        (SparseLinearRegression, {"positive": True}, NUMBERS),
    ],
)
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_all_solvers_agree(kind, params, y, l2, form):
    models = {}
    for solver in SOLVERS:
        if (solver, params.get("loss")) == ("cd1", "poisson"):
            continue
        if solver == "interior_point" and params.get("positive"):
            continue
        model = kind(0.03, l2=l2, solver=solver, tol=1e-9, **params)
        models[solver] = model.fit(form(X), y, ROW_WEIGHTS)
    best = min(model.objective_ for model in models.values())
    for model in models.values():
        assert model.certificate_ <= 1e-9
        assert model.objective_ <= best * (1 + 2e-9)
        np.testing.assert_allclose(model.coef_, models["auto"].coef_, atol=2e-4)
        assert ((model.coef_ == 0) == (models["auto"].coef_ == 0)).all()


@pytest.mark.parametrize("solver", ["cd1", "interior_point"])
def test_iterations_are_passes_or_newton_steps_and_end_the_trace(solver):
    model = SparseLogisticRegression(0.02, solver=solver).fit(X, Y > 1)
    assert model.n_iter_ == model.trace_["n_passes"][-1] > 1
    assert model.trace_["certificate"][-1] == model.certificate_
    assert (np.diff(model.trace_["certificate"]) < 0).any()


@pytest.mark.parametrize(("solver", "most"), [("auto", 100), ("cd1", 10_000)])
def test_the_limit_is_that_of_the_solver_if_none_is_given(solver, most):
    assert SparseLogisticRegression(solver=solver)._settings.max_iter == most
    assert SparseLogisticRegression(solver=solver, max_iter=7)._settings.max_iter == 7


@pytest.mark.parametrize("solver", ["cd1", "interior_point"])
def test_says_that_the_limit_was_reached(solver):
    model = SparseLogisticRegression(1e-3, solver=solver, max_iter=3)
    with pytest.warns(ConvergenceWarning, match=r"iteration limit.*n_iter=3"):
        model.fit(X, Y > 1)
    truth = SparseLogisticRegression(1e-3, tol=1e-9).fit(X, Y > 1)
    assert model.certificate_ > 1e-6
    assert model.objective_ * (1 - model.certificate_) <= truth.objective_


@pytest.mark.parametrize("solver", ["cd1", "interior_point"])
def test_paths_and_folds_take_every_solver(solver):
    path = SparseLogisticRegression(solver=solver).fit_path(X, Y > 1, l1s=4)
    truth = SparseLogisticRegression().fit_path(X, Y > 1, l1s=4)
    np.testing.assert_allclose(path.objectives, truth.objectives, rtol=2e-6)
    model = SparseLogisticRegression("cv", solver=solver, l1s=4).fit(X, Y > 1)
    assert model.certificate_ <= 1e-6


NO_L1 = np.r_[0.0, np.ones(N_FEATURES - 1)]


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        (
            {"solver": "cd1", "loss": "poisson"},
            "loss must have a bounded curvature for solver='cd1', got 'poisson'",
        ),
        (
            {"solver": "interior_point", "positive": True},
            "positive must be False for solver='interior_point', got True",
        ),
        (
            {"solver": "cd1", "penalty_weights": NO_L1},
            "penalty_weights must be positive for solver='cd1' where l2 is 0, got 0",
        ),
        (
            {"solver": "interior_point", "penalty_weights": NO_L1},
            "penalty_weights must be positive for solver='interior_point' where l2 is 0, got 0",
        ),
    ],
)
def test_refuses_what_a_solver_cannot_do(params, sentence):
    with pytest.raises(ValueError, match=f"SparseLinearRegression.{sentence}"):
        SparseLinearRegression(**params).fit(X, Y)


@pytest.mark.parametrize("solver", ["cd1", "interior_point"])
def test_l2_alone_may_hold_a_feature_whatever_the_solver(solver):
    params = {"l2": 0.1, "penalty_weights": NO_L1, "tol": 1e-9}
    model = SparseLogisticRegression(0.05, solver=solver, **params).fit(X, Y > 1)
    truth = SparseLogisticRegression(0.05, **params).fit(X, Y > 1)
    assert model.coef_[0, 0] != 0
    np.testing.assert_allclose(model.coef_, truth.coef_, atol=1e-4)
    assert SparseLogisticRegression(solver=solver, **params).l1_max(X, Y > 1) == pytest.approx(
        SparseLogisticRegression(**params).l1_max(X, Y > 1)
    )


# --- classes learned together ---------------------------------------------------------------------


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize(("l1", "l2"), [(0.02, 0.0), (1e-3, 0.0), (0.01, 0.1), (0.0, 0.1)])
def test_reaches_the_objective_of_scikit_learn(l1, l2, fit_intercept):
    model = together(l1, l2=l2, fit_intercept=fit_intercept).fit(X, LABELS)
    value = objective_of(judge(l1, l2, fit_intercept))
    assert model.coef_.shape == (N_CLASSES, N_FEATURES)
    assert model.objective_ == pytest.approx(objective_of(model), rel=1e-12)
    assert model.objective_ <= value * (1 + 1e-9)
    assert model.objective_ * (1 - model.certificate_) <= value * (1 + 1e-12)
    assert model.certificate_ <= 1e-9


def test_sample_weights_are_those_of_scikit_learn():
    model = together(0.02).fit(X, LABELS, ROW_WEIGHTS)
    truth = judge(0.02, 0.0, True, ROW_WEIGHTS)
    assert model.objective_ == pytest.approx(objective_of(truth, ROW_WEIGHTS), rel=1e-8)
    np.testing.assert_allclose(model.predict_proba(X), truth.predict_proba(X), atol=1e-4)


def test_class_weights_multiply_sample_weights():
    by_class = together(class_weight={"oak": 3.0, "yew": 0.5}).fit(X, LABELS)
    by_row = together().fit(X, LABELS, np.array([1.0, 1.0, 3.0, 0.5])[Y])
    np.testing.assert_allclose(by_class.coef_, by_row.coef_, atol=1e-12)


def test_penalty_weights_are_those_of_scaled_columns():
    factors = np.linspace(0.5, 3.0, N_FEATURES)
    model = together(penalty_weights=factors).fit(X, LABELS)
    scaled = together().fit(X / factors, LABELS)
    assert model.objective_ == pytest.approx(scaled.objective_, rel=1e-8)
    assert model.objective_ == pytest.approx(objective_of(model, factors=factors), rel=1e-12)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("l2", [0.0, 0.05])
def test_features_without_l1_are_certified(fit_intercept, l2):
    params = {"penalty_weights": NO_L1, "l2": l2, "fit_intercept": fit_intercept}
    model = together(0.05, **params).fit(X, LABELS)
    nearly = together(0.05, **params | {"penalty_weights": np.maximum(NO_L1, 1e-9), "tol": 1e-6})
    assert model.certificate_ <= 1e-9
    assert model.coef_[:, 0].all()
    assert model.objective_ == pytest.approx(nearly.fit(X, LABELS).objective_, rel=2e-6)


def test_probabilities_are_the_softmax_of_scores():
    model = together().fit(X, LABELS)
    probabilities = model.predict_proba(X)
    np.testing.assert_allclose(probabilities, softmax(model.decision_function(X), axis=1))
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    assert (model.predict(X) == model.classes_[probabilities.argmax(axis=1)]).all()


def test_the_mean_probability_of_a_class_is_its_share():
    probabilities = together().fit(X, LABELS).predict_proba(X)
    shares = np.bincount(Y) / N_ROWS
    np.testing.assert_allclose(probabilities.mean(axis=0), shares, atol=1e-9)


def test_the_trace_is_one_for_all_classes():
    model = together(1e-3).fit(X, LABELS)
    assert "output" not in model.trace_.columns
    assert len(model.trace_) == model.n_iter_ + 1 > 2  # the first row is of the start
    assert (np.diff(model.trace_["objective"]) <= 1e-15).all()
    assert model.trace_["certificate"][-1] == model.certificate_
    assert model.trace_["nnz_primal"][-1] == np.count_nonzero(model.coef_)


@pytest.mark.parametrize("factors", [None, NO_L1])
@pytest.mark.parametrize("l2", [0.0, 0.1])
def test_the_largest_l1_is_the_least_that_leaves_no_weight(factors, l2):
    model = together(penalty_weights=factors, l2=l2)
    largest = model.l1_max(X, LABELS)
    held = slice(None) if factors is None else slice(1, None)
    above = model.set_params(l1=largest * 1.0001).fit(X, LABELS).coef_[:, held]
    below = model.set_params(l1=largest * 0.99).fit(X, LABELS).coef_[:, held]
    assert not above.any()
    assert below.any()


def test_a_path_is_warm_started_and_the_same_as_single_fits():
    path = together(tol=1e-7).fit_path(X, LABELS, l1s=8)
    assert len(path.coefs) == N_CLASSES
    assert path.certificates.max() <= 1e-7
    cold = [together(float(l1), tol=1e-7).fit(X, LABELS) for l1 in path.l1s]
    np.testing.assert_allclose(path.objectives[0], [m.objective_ for m in cold], rtol=2e-7)
    np.testing.assert_array_equal(path.objectives, np.tile(path.objectives[0], (N_CLASSES, 1)))
    assert path.n_iters[0, 1:].sum() < sum(model.n_iter_ for model in cold[1:])


def test_warm_starts_save_rounds():
    model = together(warm_start=True, tol=1e-6).fit(X, LABELS)
    n_cold, weights = model.n_iter_, model.coef_
    assert model.fit(X, LABELS).n_iter_ == 1 < n_cold
    np.testing.assert_allclose(model.coef_, weights, atol=1e-12)


def test_folds_choose_an_l1():
    model = together("cv", tol=1e-6, l1s=6, cv=3).fit(X, LABELS)
    assert model.cv_scores_.shape == (6, 3)
    assert model.l1_ == model.l1_path_[model.cv_scores_.mean(axis=1).argmax()]
    assert model.score(X, LABELS) > 0.6


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("form", [np.asfortranarray, sp.csc_matrix])
def test_the_form_of_the_features_changes_nothing(form, dtype):
    truth = together(tol=1e-6).fit(X, LABELS)
    model = together(tol=1e-6, n_jobs=2).fit(form(X.astype(dtype)), LABELS)
    assert model.coef_.dtype == dtype
    assert model.objective_ == pytest.approx(truth.objective_, rel=3e-6)


def test_two_classes_are_the_one_problem_that_they_are():
    labels = Y > 1
    model = together().fit(X, labels)
    np.testing.assert_array_equal(
        model.coef_, SparseLogisticRegression(0.01, tol=1e-9).fit(X, labels).coef_
    )
    assert model.coef_.shape == (1, N_FEATURES)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)


def test_columns_far_from_zero_and_of_wild_scale_change_nothing():
    truth = together(tol=1e-7, penalty_weights=None).fit(X, LABELS)
    sizes = np.geomspace(1e-3, 1e3, N_FEATURES)
    model = together(tol=1e-7, penalty_weights=sizes).fit(X * sizes, LABELS)
    assert model.objective_ == pytest.approx(truth.objective_, rel=1e-6)
    np.testing.assert_allclose(model.coef_ * sizes, truth.coef_, atol=1e-2)
    moved = together(tol=1e-7).fit(X + 1000.0, LABELS)
    assert moved.objective_ == pytest.approx(truth.objective_, rel=1e-6)


def test_separable_classes_at_a_tiny_l1_end_with_a_certificate():
    rows = np.vstack([np.eye(3)] * 5)
    labels = np.tile([0, 1, 2], 5)
    model = together(1e-6, tol=1e-4).fit(rows, labels)
    assert model.certificate_ <= 1e-4
    assert model.score(rows, labels) == 1.0


def test_says_what_was_reached_where_free_features_separate_the_classes():
    rows = np.hstack([np.vstack([np.eye(3)] * 5), X[:15]])
    free = np.r_[np.zeros(3), np.ones(N_FEATURES)]
    with pytest.warns(ConvergenceWarning, match="SparseLogisticRegression"):
        model = together(0.1, penalty_weights=free).fit(rows, np.tile([0, 1, 2], 5))
    assert np.isfinite(model.coef_).all()


def test_a_limit_of_rounds_is_kept_and_told():
    with pytest.warns(ConvergenceWarning, match="iteration limit"):
        model = together(1e-3, max_iter=2).fit(X, LABELS)
    truth = together(1e-3).fit(X, LABELS)
    assert model.certificate_ > 1e-9
    assert model.objective_ * (1 - model.certificate_) <= truth.objective_ <= model.objective_


def test_a_callback_stops_it():
    path = together(tol=1e-3, callback=lambda event: True).fit_path(X, LABELS, l1s=10_000)
    assert 1 <= len(path) < 10_000


@pytest.mark.parametrize("solver", ["newton", "cd1", "interior_point"])
def test_refuses_solvers_that_do_not_learn_classes_together(solver):
    sentence = (
        "SparseLogisticRegression.solver must be 'auto' or 'lhac' for more than two classes "
        f"with multinomial=True, got '{solver}'"
    )
    with pytest.raises(ValueError, match=sentence):
        together(solver=solver).fit(X, LABELS)


def test_refuses_too_many_features_without_penalty():
    free = np.zeros(600)
    with pytest.raises(ValueError, match="penalty_weights must leave at most 500 features"):
        together(penalty_weights=free).fit(np.tile(X, 50), LABELS)
