"""SparseLogisticRegression and SparseLinearRegression keep the promises of every estimator."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import PoissonRegressor
from sklearn.metrics import d2_tweedie_score, r2_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sublearn.linear import Huber, SparseLinearRegression, SparseLogisticRegression

FLAVOURS = {
    "two classes": SparseLogisticRegression(0.02),
    "three classes": SparseLogisticRegression(0.02),
    "squared": SparseLinearRegression(0.05),
    "huber": SparseLinearRegression(0.05, loss=Huber(1.0)),
    "poisson": SparseLinearRegression(0.05, loss="poisson"),
}


def rows_for(flavour, n_rows=120, n_features=30, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_features)) * (rng.random((n_rows, n_features)) < 0.5)
    z = 2 * X[:, 0] - X[:, 1] + X[:, 2] + 0.2
    if flavour == "two classes":
        return X, np.where(z + rng.logistic(size=n_rows) > 0, "yes", "no")
    if flavour == "three classes":
        return X, np.array(["a", "b", "c"])[np.digitize(z, [-0.7, 0.7])]
    if flavour == "poisson":
        return X, rng.poisson(np.exp(0.5 * z)).astype(float)
    return X, z + rng.standard_t(3, size=n_rows)


@pytest.fixture(params=FLAVOURS)
def flavour(request):
    return request.param


# --- input and output ----------------------------------------------------------------------------

FORMS = {
    "C order": np.ascontiguousarray,
    "Fortran order": np.asfortranarray,
    "strided": lambda X: np.repeat(X, 2, axis=0)[::2],
    "csr": sp.csr_matrix,
    "csc": sp.csc_matrix,
    "coo": sp.coo_matrix,
    "csr array": sp.csr_array,
    "int64 indices": lambda X: _with_long_indices(sp.csc_matrix(X)),
    "pandas": lambda X: pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])]),
    "polars": lambda X: pl.DataFrame(X, schema=[f"x{j}" for j in range(X.shape[1])]),
    "lists": lambda X: X.tolist(),
}


def _with_long_indices(X):
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


@pytest.mark.parametrize("form", FORMS)
def test_takes_features_of_any_form(flavour, form):
    X, y = rows_for(flavour)
    plain = clone(FLAVOURS[flavour]).set_params(tol=1e-12).fit(X, y)
    model = clone(FLAVOURS[flavour]).set_params(tol=1e-12).fit(FORMS[form](X), y)
    np.testing.assert_allclose(model.coef_, plain.coef_, atol=1e-5)  # one certificate, two ways
    np.testing.assert_array_equal(model.predict(FORMS[form](X)), model.predict(FORMS[form](X)))
    assert hasattr(model, "feature_names_in_") == (form in ("pandas", "polars"))


@pytest.mark.parametrize("series", [list, pd.Series, pl.Series, lambda y: y[:, None]])
@pytest.mark.filterwarnings("ignore:A column-vector y was passed")
def test_takes_targets_of_any_form(flavour, series):
    X, y = rows_for(flavour)
    plain = clone(FLAVOURS[flavour]).fit(X, y)
    np.testing.assert_array_equal(clone(plain).fit(X, series(y)).coef_, plain.coef_)


def test_shapes_follow_scikit_learn(flavour):
    X, y = rows_for(flavour)
    model = clone(FLAVOURS[flavour]).fit(X, y)
    shape = {"two classes": (1, 30), "three classes": (3, 30)}.get(flavour, (30,))
    assert model.coef_.shape == shape
    np.testing.assert_array_equal(model.sparse_coef_.toarray(), np.atleast_2d(model.coef_))
    assert model.sparse_coef_.nnz < model.coef_.size
    assert model.n_iter_ >= 1
    assert model.certificate_ <= model.tol
    assert {"seconds", "objective", "certificate", "nnz_primal", "work"} <= set(
        model.trace_.columns
    )
    assert model.trace_["certificate"][-1] <= model.tol


def test_probabilities_sum_to_one_and_agree_with_predictions():
    for flavour in ("two classes", "three classes"):
        X, y = rows_for(flavour)
        model = clone(FLAVOURS[flavour]).fit(X, y)
        found = model.predict_proba(X)
        np.testing.assert_allclose(found.sum(axis=1), 1.0)
        np.testing.assert_allclose(np.log(found), model.predict_log_proba(X))
        np.testing.assert_array_equal(model.classes_[found.argmax(axis=1)], model.predict(X))


def test_log_probabilities_of_far_rows_are_finite():
    X, y = rows_for("three classes")
    model = clone(FLAVOURS["three classes"]).fit(X, y)
    assert np.isfinite(model.predict_log_proba(1e6 * X)).all()


def test_poisson_predicts_means_that_never_overflow():
    X, y = rows_for("poisson")
    model = clone(FLAVOURS["poisson"]).fit(X, y)
    np.testing.assert_allclose(model.predict(X), np.exp(X @ model.coef_ + model.intercept_))
    assert np.isfinite(model.predict(1e9 * X)).all()


# --- weights -------------------------------------------------------------------------------------


def test_sample_weights_count_like_copies_of_rows(flavour):
    X, y = rows_for(flavour)
    counts = np.random.default_rng(3).integers(0, 3, len(y))
    model = clone(FLAVOURS[flavour]).set_params(tol=1e-9)
    weighted = clone(model).fit(X, y, sample_weight=counts)
    repeated = clone(model).fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-8)
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-4)


@pytest.mark.parametrize(
    "class_weight", ["balanced", {"yes": 3.0, "no": 0.5}, {"yes": 3.0}, [0.5, 3.0]]
)
def test_class_weights_count_like_sample_weights(class_weight):
    X, y = rows_for("two classes")
    n_yes = (y == "yes").sum()
    per_class = {
        "balanced": {"yes": len(y) / (2 * n_yes), "no": len(y) / (2 * (len(y) - n_yes))},
    }.get(class_weight if isinstance(class_weight, str) else "", {"yes": 3.0, "no": 0.5})
    if class_weight == {"yes": 3.0}:
        per_class = {"yes": 3.0, "no": 1.0}
    model = SparseLogisticRegression(0.02, class_weight=class_weight).fit(X, y)
    weights = [per_class[label] for label in y]
    other = SparseLogisticRegression(0.02).fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(model.coef_, other.coef_, atol=1e-10)


def test_an_unpenalised_feature_stays_when_all_others_are_gone():
    X, y = rows_for("squared")
    factors = np.ones(30)
    factors[5] = 0.0
    model = SparseLinearRegression(0.1, penalty_weights=factors)
    top = model.l1_max(X, y)
    found = model.set_params(l1=1.001 * top).fit(X, y)
    assert np.flatnonzero(found.coef_).tolist() == [5]
    found = model.set_params(l1=0.98 * top).fit(X, y)
    assert len(np.flatnonzero(found.coef_)) == 2


def test_from_l1_max_on_all_weights_are_zero(flavour):
    X, y = rows_for(flavour)
    model = clone(FLAVOURS[flavour])
    top = model.l1_max(X, y)
    assert not model.set_params(l1=top * (1 + 1e-9)).fit(X, y).coef_.any()
    assert model.set_params(l1=0.97 * top).fit(X, y).coef_.any()


def test_positive_weights_are_not_negative():
    X, y = rows_for("squared")
    model = SparseLinearRegression(0.01, positive=True).fit(X, y)
    assert (model.coef_ >= 0).all()
    assert (SparseLinearRegression(0.01).fit(X, y).coef_ < 0).any()


# --- running -------------------------------------------------------------------------------------


def test_a_warm_start_at_the_solution_ends_in_one_round(flavour):
    X, y = rows_for(flavour)
    model = clone(FLAVOURS[flavour]).set_params(warm_start=True).fit(X, y)
    assert model.n_iter_ > 1
    before = model.coef_.copy()
    assert model.fit(X, y).n_iter_ == 1
    np.testing.assert_allclose(model.coef_, before, atol=1e-6)


def test_a_warm_start_from_other_features_is_a_cold_one():
    X, y = rows_for("squared")
    model = SparseLinearRegression(0.05, warm_start=True).fit(X[:, :10], y)
    cold = SparseLinearRegression(0.05).fit(X, y)
    np.testing.assert_array_equal(model.fit(X, y).coef_, cold.coef_)


def test_too_few_rounds_are_told_with_what_was_reached(flavour):
    X, y = rows_for(flavour)
    model = clone(FLAVOURS[flavour]).set_params(max_iter=1)
    with pytest.warns(ConvergenceWarning, match=r"iteration limit .* reached certificate"):
        model.fit(X, y)
    assert model.certificate_ > model.tol


def test_a_callback_may_stop_the_fit():
    X, y = rows_for("two classes")
    events = []

    def stop(event):
        events.append(event)
        return True

    with pytest.warns(ConvergenceWarning, match="callback asked to stop"):
        model = SparseLogisticRegression(
            "cv", tol=1e-14, max_iter=10_000, l1s=2000, callback=stop
        ).fit(X, y)
    assert events
    assert np.isfinite(model.coef_).all()


@pytest.mark.parametrize("columns", ["80", "160"])
def test_verbose_draws_a_bar_without_figures_that_the_solver_lacks(capsys, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", columns)
    X, y = rows_for("three classes")
    SparseLogisticRegression(0.02, verbose=1).fit(X, y)
    drawn = capsys.readouterr().err
    assert "SparseLogisticRegression" in drawn
    assert "gap" in drawn
    assert "duals" not in drawn


# --- saved models and other tools ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "former", "now"),
    [
        (SparseLogisticRegression, {"multi_class": "ovr"}, {"multinomial": False}),
        (SparseLogisticRegression, {"multi_class": "multinomial"}, {"multinomial": True}),
        (SparseLogisticRegression, {"l1": 0.1, "cv_rule": "1se"}, {"l1": 0.1}),
        (SparseLinearRegression, {"l1": "cv", "cv_rule": "1se"}, {"l1": "cv_1se"}),
        (SparseLinearRegression, {"l1": "cv", "cv_rule": "best", "random_state": 3}, {"l1": "cv"}),
        (SparseLinearRegression, {"loss": "huber", "huber_delta": 2.0}, {"loss": Huber(2.0)}),
        (SparseLinearRegression, {"loss": "squared", "huber_delta": 2.0}, {"loss": "squared"}),
        (SparseLinearRegression, {"loss": {"delta": 2.0}}, {"loss": Huber(2.0)}),
    ],
)
def test_parameters_of_earlier_files_are_translated(kind, former, now):
    assert kind._current_params(former) == now


def test_the_trace_of_an_earlier_file_has_the_names_of_today():
    X, y = rows_for("squared")
    model = SparseLinearRegression(0.05).fit(X, y)
    state = model._to_bundle()
    state["trace_"]["n_working"] = state["trace_"].pop("n_active")
    other = SparseLinearRegression(0.05)
    other._restore(state)
    assert set(other.trace_.columns) == set(model.trace_.columns)


def test_works_in_a_pipeline_and_in_a_grid_search():
    X, y = rows_for("two classes")
    pipeline = make_pipeline(StandardScaler(), SparseLogisticRegression())
    search = GridSearchCV(pipeline, {"sparselogisticregression__l1": [0.3, 0.03]}, cv=3).fit(X, y)
    assert search.best_params_ == {"sparselogisticregression__l1": 0.03}


@pytest.mark.parametrize("flavour", ["two classes", "three classes"])
def test_the_best_classes_come_first(flavour):
    X, y = rows_for(flavour)
    model = clone(FLAVOURS[flavour]).fit(X, y)
    n_classes = len(model.classes_)
    labels, scores = model.predict_top_k(X, n_classes)
    same, probabilities = model.predict_proba_top_k(X, n_classes)
    np.testing.assert_array_equal(labels[:, 0], model.predict(X))
    np.testing.assert_array_equal(labels, same)
    assert (np.diff(scores) <= 0).all()
    assert (np.diff(probabilities) <= 0).all()
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)


@pytest.mark.parametrize("mean", [0.0, 1e5])
def test_the_certificate_of_float32_weights_is_theirs(mean):
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(200, 5)) + mean).astype(np.float32)
    exact = X.astype(np.float64)
    y = (exact - mean) @ [1, 2, 0, 0, -1] + 0.01 * rng.normal(size=200)

    def objective(model):
        w = model.coef_.astype(np.float64)
        z = exact @ w + float(model.intercept_)
        return 0.5 * np.mean((z - y) ** 2) + 1e-4 * np.abs(w).sum()

    found = objective(model := SparseLinearRegression(l1=1e-4).fit(X, y))
    best = objective(SparseLinearRegression(l1=1e-4, tol=1e-10).fit(exact, y))
    assert found - best <= model.certificate_ * found + 1e-9 * best


# --- scores --------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
def test_the_score_of_a_poisson_model_is_the_share_of_deviance_that_it_explains(weighted):
    X, y = rows_for("poisson")
    weights = np.random.default_rng(1).integers(0, 3, len(y)).astype(float) if weighted else None
    model = SparseLinearRegression(0.05, loss="poisson").fit(X, y)
    expected = d2_tweedie_score(y, model.predict(X), sample_weight=weights, power=1)
    assert model.score(X, y, weights) == pytest.approx(expected, rel=1e-9)
    assert model.score(X, y, weights) != pytest.approx(r2_score(y, model.predict(X)), rel=1e-2)
    rival = PoissonRegressor(alpha=0).fit(X, y)
    model.coef_, model.intercept_ = rival.coef_, rival.intercept_
    assert model.score(X, y, weights) == pytest.approx(rival.score(X, y, weights), rel=1e-9)


@pytest.mark.parametrize("loss", ["squared", "huber"])
def test_the_score_of_other_regressions_is_r2(loss):
    X, y = rows_for("squared")
    model = SparseLinearRegression(0.05, loss=loss).fit(X, y)
    assert model.score(X, y) == r2_score(y, model.predict(X))


def test_the_score_of_a_poisson_model_where_counts_do_not_differ():
    X, y = rows_for("poisson")
    model = SparseLinearRegression(0.05, loss="poisson").fit(X, y)
    assert model.score(X, np.zeros(len(y))) == model.score(X, np.full(len(y), 2.0)) == 0
    model.coef_, model.intercept_ = np.zeros(X.shape[1]), 0.0
    assert model.score(X, np.ones(len(y))) == 1
    with pytest.raises(ValueError, match="y must not be negative for loss='poisson', got -1"):
        model.score(X, y - 1)
