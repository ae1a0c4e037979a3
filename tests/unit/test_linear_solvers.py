"""minimise_linear and the multinomial objective: agreement, bad data and refusals."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from sublearn.errors import ParameterError
from sublearn.optim import (
    CoordinateDescent,
    Huber,
    lhac,
    linear_objective,
    minimise_linear,
    multinomial_objective,
)
from sublearn.trace import Status

SOLVERS = ["newton", "lhac", "cd1", "interior_point"]
each_solver = pytest.mark.parametrize("solver", SOLVERS)
#: Relative gaps that each can show: below, what LHAC's models promise is lost in rounding.
FINE = {"newton": 1e-9, "lhac": 1e-7, "cd1": 1e-9, "interior_point": 1e-9}
LOSSES = ["logistic", "squared", "squared_hinge", "huber", "poisson"]


def data(loss="logistic", n_rows=50, n_features=12, density=0.5):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n_rows, n_features)) * (rng.random((n_rows, n_features)) < density)
    z = X[:, 0] - 0.8 * X[:, 1] + 0.5 * rng.normal(size=n_rows) + 0.3
    if loss == "poisson":
        return X, rng.poisson(np.exp(0.5 * z)).astype(float)
    return X, z if loss in ("squared", "huber") else np.where(z > 0, 1.0, -1.0)


def loss_of(loss, z, y, delta=1.35):
    r = np.abs(z - y)
    return {
        "logistic": lambda: np.logaddexp(0, -y * z),
        "squared": lambda: 0.5 * r**2,
        "squared_hinge": lambda: np.maximum(0, 1 - y * z) ** 2,
        "huber": lambda: np.where(r <= delta, 0.5 * r**2, delta * (r - 0.5 * delta)),
        "poisson": lambda: np.exp(z) - y * z,
    }[loss]()


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("l2", [0.0, 0.1])
def test_all_solvers_agree_and_report_their_objective(loss, fit_intercept, l2):
    X, y = data(loss)
    solvers = [s for s in SOLVERS if not (s == "cd1" and loss == "poisson")]
    found = [
        minimise_linear(
            X, y, loss, 0.02, l2=l2, solver=s, fit_intercept=fit_intercept, tol=FINE[s],
            max_iter=50_000,
        )
        for s in solvers
    ]  # fmt: skip
    for solution in found:
        w, b = solution.x, solution.intercept
        objective = loss_of(loss, X @ w + b, y).mean() + 0.02 * np.abs(w).sum() + l2 / 2 * w @ w
        assert solution.status is Status.CONVERGED
        assert solution.objective == pytest.approx(objective, rel=1e-12)
        assert solution.objective == pytest.approx(found[0].objective, rel=1e-7)
        np.testing.assert_array_equal(w != 0, found[0].x != 0)
        assert (b != 0) is fit_intercept


@each_solver
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix, sp.csc_array, sp.coo_matrix])
def test_the_form_of_the_data_changes_nothing(solver, dtype, form):
    X, y = data()
    X = X.astype(dtype)
    dense = minimise_linear(X, y, l1=0.02, solver=solver, tol=1e-7)
    other = minimise_linear(form(X), y, l1=0.02, solver=solver, tol=1e-7)
    assert other.objective == pytest.approx(dense.objective, rel=1e-7)
    np.testing.assert_allclose(other.x, dense.x, atol=1e-3)


@each_solver
def test_weights_of_rows_are_repetitions(solver):
    X, y = data()
    times = np.arange(len(y)) % 3
    repeated = minimise_linear(
        np.repeat(X, times, axis=0), np.repeat(y, times), l1=0.02, solver=solver,
        tol=FINE[solver], fit_intercept=True,
    )  # fmt: skip
    weighted = minimise_linear(
        X, y, l1=0.02, solver=solver, tol=FINE[solver], weights=times / times.sum(),
        fit_intercept=True,
    )  # fmt: skip
    assert weighted.objective == pytest.approx(repeated.objective, rel=1e-7)


@each_solver
def test_a_penalty_above_the_largest_slope_leaves_nothing(solver):
    X, y = data()
    largest = np.abs(X.T @ y / 2 / len(y)).max()
    assert not minimise_linear(X, y, l1=1.0001 * largest, solver=solver).x.any()
    assert minimise_linear(X, y, l1=0.99 * largest, solver=solver).x.any()


@each_solver
def test_a_start_at_the_optimum_needs_no_further_step(solver):
    X, y = data()
    first = minimise_linear(X, y, l1=0.02, solver=solver, tol=1e-7, fit_intercept=True)
    again = minimise_linear(
        X, y, l1=0.02, solver=solver, tol=2e-7, fit_intercept=True, init=first
    )  # fmt: skip
    assert again.n_iter == 0
    assert again.objective == pytest.approx(first.objective, rel=1e-12)


@each_solver
def test_separable_data_at_a_tiny_penalty_are_solved(solver):
    X, _ = data()
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    X = X + 0.5 * y[:, None] * (np.arange(12) == 0)
    solution = minimise_linear(X, y, l1=1e-4, solver=solver, tol=1e-3, max_iter=200_000)
    assert solution.status is Status.CONVERGED
    assert ((X @ solution.x) * y > 0).all()


@each_solver
def test_awkward_columns_are_solved(solver):
    X, y = data()
    X[:, 2] = 0.0  # zeros
    X[:, 3] = 1.0  # constant
    X[:, 4] = X[:, 0]  # a duplicate
    X[:, 5] *= 1e3  # scales that differ
    X[:, 6] *= 1e-3
    solution = minimise_linear(
        X, y, l1=0.02, solver=solver, fit_intercept=True, tol=1e-4, max_iter=200_000
    )
    assert solution.status is Status.CONVERGED
    assert solution.x[2] == 0


@each_solver
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_one_class_only_is_solved_or_stops_by_its_limit(solver, fit_intercept):
    X, _ = data()
    solution = minimise_linear(
        X, np.ones(len(X)), l1=0.05, solver=solver, fit_intercept=fit_intercept, max_iter=50
    )
    assert np.isfinite(solution.objective)
    assert np.isfinite(solution.x).all()


FAR = {
    "targets on the flat side of the loss": ("huber", 1e4, {}),
    "targets of a large scale": ("squared", 1e5, {}),
    "a start far away": ("logistic", 0.0, {"init": np.append(np.full(12, 500.0), 0.0)}),
    "an intercept far away": ("logistic", 0.0, {"init": np.append(np.zeros(12), 1e3)}),
    "an intercept on the flat side of the loss": (
        "squared_hinge",
        0.0,
        {"init": np.append(np.zeros(12), 1e3)},
    ),
}


@pytest.mark.parametrize("solver", ["cd1", "interior_point"])
@pytest.mark.parametrize(("loss", "shift", "start"), FAR.values(), ids=FAR)
def test_the_intercept_finds_its_way_from_afar(solver, loss, shift, start):
    X, y = data(loss)
    near = minimise_linear(X, y, loss, 0.02, solver=solver, fit_intercept=True, tol=1e-6)
    far = minimise_linear(
        X, y + shift, loss, 0.02, solver=solver, fit_intercept=True, tol=1e-6, **start
    )
    assert far.status is Status.CONVERGED
    assert far.objective == pytest.approx(near.objective, rel=1e-5)
    assert far.intercept == pytest.approx(near.intercept + shift, abs=0.01)


def test_large_counts_do_not_overflow():
    X, _ = data()
    y = np.floor(np.exp(8 + X[:, 0]))
    solution = minimise_linear(
        X, y, "poisson", 0.01, solver="interior_point", fit_intercept=True, tol=1e-9
    )
    assert solution.status is Status.CONVERGED
    assert solution.intercept == pytest.approx(8, abs=0.01)


@pytest.mark.parametrize("bound", ["coordinate", "global"])
def test_both_bounds_of_cd1_reach_the_optimum(bound):
    X, y = data()
    judge = minimise_linear(X, y, l1=0.02, tol=1e-9)
    solution = minimise_linear(X, y, l1=0.02, solver=CoordinateDescent(bound), tol=1e-9)
    assert solution.objective == pytest.approx(judge.objective, rel=2e-9)


def test_conjugate_gradients_serve_many_features():
    X, y = data(n_rows=60, n_features=500, density=0.2)
    judge = minimise_linear(X, y, l1=0.02, tol=1e-9, fit_intercept=True)
    solution = minimise_linear(X, y, l1=0.02, solver="interior_point", tol=1e-7, fit_intercept=True)
    assert solution.status is Status.CONVERGED
    assert solution.objective == pytest.approx(judge.objective, rel=1e-7)
    np.testing.assert_array_equal(solution.x != 0, judge.x != 0)


@each_solver
def test_threads_change_no_bit(solver):
    X, y = data(n_features=200)
    one, two = (minimise_linear(X, y, l1=0.02, solver=solver, n_jobs=n).x for n in (1, 2))
    np.testing.assert_array_equal(one, two)


@each_solver
def test_a_limit_that_is_too_low_is_said(solver):
    X, y = data()
    solution = minimise_linear(X, y, l1=1e-3, solver=solver, tol=1e-12, max_iter=1)
    assert solution.status is Status.MAX_ITER
    assert solution.certificate > 1e-12


@each_solver
def test_a_callback_stops_a_solver(solver):
    X, y = data(n_rows=20_000, n_features=100, density=1.0)
    solution = minimise_linear(
        X, y, l1=1e-6, solver=solver, tol=0.0, max_iter=100_000, callback=lambda event: True
    )
    assert solution.status in (Status.STOPPED, Status.STALLED)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"loss": "0-1"}, "loss must be"),
        ({"solver": "sag"}, "solver must be"),
        ({"y": np.zeros(50)}, "y must be -1 or 1"),
        ({"y": np.ones(49)}, "y must be 50 finite numbers"),
        ({"y": np.full(50, np.nan)}, "y must be 50 finite numbers"),
        ({"loss": "poisson", "y": -np.ones(50)}, "y must be non-negative"),
        ({"l1": -1.0}, "l1 must be non-negative"),
        ({"l1": 0.0}, "l1 must be positive where there is neither l2 nor a finite box"),
        ({"l1": np.ones(3)}, "l1 must be 12 finite numbers"),
        ({"l2": -1.0}, "l2 must be"),
        ({"bounds": (1.0, 2.0)}, "bounds must be a pair of numbers with 0 between"),
        ({"bounds": 3}, "bounds must be a pair"),
        ({"solver": "interior_point", "bounds": (0.0, np.inf)}, "bounds must be infinite"),
        ({"solver": "cd1", "loss": "poisson", "y": np.ones(50)}, "bounded curvature"),
        ({"weights": -np.ones(50)}, "weights must be non-negative"),
        ({"weights": np.zeros(50)}, "weights must be non-negative and not all zero"),
        ({"weights": np.ones(3)}, "weights must be 50 finite"),
        ({"init": np.ones(3)}, "init must be 12 finite"),
        ({"init": np.ones(12), "fit_intercept": True}, "init must be 13 finite"),
        ({"tol": -1.0}, "tol must be"),
        ({"max_iter": 0}, "max_iter must be"),
        ({"fit_intercept": "yes"}, "fit_intercept must be"),
    ],
)
def test_refuses_a_parameter_by_name(change, message):
    X, y = data()
    arguments = {"X": X, "y": y, "l1": 0.1} | change
    with pytest.raises(ParameterError, match=rf"minimise_linear\..*{message}"):
        minimise_linear(**arguments)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Huber(0.0), r"Huber\.delta must be a positive number, got 0\.0"),
        (
            lambda: CoordinateDescent("local"),
            r"CoordinateDescent\.curvature_bound must be 'coordinate' or 'global', got 'local'",
        ),
    ],
)
def test_refuses_settings_when_they_are_made(make, message):
    with pytest.raises(ParameterError, match=f"^{message}$"):
        make()


def test_hubers_loss_by_name_has_the_usual_delta():
    X, y = data("huber")
    named, given, other = (
        minimise_linear(X, y, loss, 0.02).objective for loss in ("huber", Huber(1.35), Huber(0.1))
    )
    assert named == given
    assert other != given


def test_cd1_by_name_draws_the_same_coordinates_in_every_call():
    X, y = data()
    named, seeded, other = (
        minimise_linear(X, y, l1=0.02, solver=solver, max_iter=3, tol=0.0).x
        for solver in ("cd1", CoordinateDescent(random_state=0), CoordinateDescent(random_state=1))
    )
    np.testing.assert_array_equal(named, seeded)
    assert (other != named).any()


@pytest.mark.parametrize("name", ["l1", "weights", "init"])
def test_refuses_numbers_whose_products_overflow(name):
    X, y = data()
    numbers = np.full(50 if name == "weights" else 12, 1e200)
    with pytest.raises(
        ValueError, match=rf"minimise_linear\.{name} must be at most .*, got 1e\+200"
    ):
        minimise_linear(X, y, **({"l1": 0.1} | {name: numbers}))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_refuses_features_that_are_not_finite(bad):
    X, y = data()
    X[3, 4] = bad
    with pytest.raises(ValueError, match=r"contains (NaN|infinity)"):
        minimise_linear(X, y, l1=0.1)


@pytest.mark.parametrize("form", [np.asarray, sp.csc_matrix])
def test_the_multinomial_loss_of_two_classes_is_the_logistic_loss(form):
    X, y = data()
    objective = multinomial_objective(form(X), (y > 0).astype(int), 2)
    rng = np.random.default_rng(0)
    W = rng.normal(size=(12, 2))
    value, gradient = objective.value_and_gradient(W.ravel())
    z = X @ (W[:, 1] - W[:, 0])
    assert value == pytest.approx(np.logaddexp(0, -y * z).mean(), rel=1e-12)
    slope = X.T @ (-y / (1 + np.exp(y * z))) / len(y)
    np.testing.assert_allclose(gradient.reshape(12, 2), np.c_[-slope, slope], atol=1e-14)


def test_the_multinomial_objective_agrees_with_scikit_learn():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(90, 5))
    codes = np.argmax(X[:, :3] + 0.5 * rng.normal(size=(90, 3)), axis=1)
    solution = lhac(multinomial_objective(X, codes, 3), np.zeros(15), l1=0.0, l2=0.1, tol=1e-10)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        judge = LogisticRegression(C=1 / (0.1 * 90), fit_intercept=False, tol=1e-10).fit(X, codes)
    np.testing.assert_allclose(solution.x.reshape(5, 3).T, judge.coef_, atol=1e-4)
    assert solution.certificate <= 1e-10
    assert solution.lower_bound <= solution.objective


def test_the_multinomial_objective_certifies_a_sparse_solution():
    rng = np.random.default_rng(6)
    X = sp.random(200, 40, 0.3, format="csr", random_state=1)
    codes = rng.integers(0, 4, 200)
    solution = lhac(multinomial_objective(X, codes, 4), np.zeros(160), l1=0.003, tol=1e-6)
    assert solution.status is Status.CONVERGED
    assert 0 < (solution.x != 0).sum() < 160
    assert 0 <= solution.objective - solution.lower_bound <= 1e-6 * solution.objective


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_classes": 1}, "n_classes must be an integer of at least 2"),
        ({"y_codes": np.arange(50)}, "y_codes must be classes 0 to 2"),
        ({"y_codes": np.zeros(50)}, "y_codes must be 50 integers"),
        ({"y_codes": np.zeros(3, int)}, "y_codes must be 50 integers"),
        ({"weights": np.ones(2)}, "weights must be 50 finite numbers"),
        ({"weights": -np.ones(50)}, "weights must be non-negative"),
    ],
)
def test_the_multinomial_objective_refuses_an_argument_by_name(change, message):
    X, _ = data()
    arguments = {"X": X, "y_codes": np.zeros(50, int), "n_classes": 3} | change
    with pytest.raises(ParameterError, match=rf"multinomial_objective\.{message}"):
        multinomial_objective(**arguments)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"loss": "hinge"}, "loss must be 'logistic', .* or a Huber, got 'hinge'"),
        ({"y": [1.0]}, "y must be 50 finite numbers"),
        ({"y": np.zeros(50)}, "y must be -1 or 1 for the logistic loss"),
        ({"weights": np.full(50, np.nan)}, "weights must be 50 finite numbers"),
    ],
)
def test_the_linear_objective_refuses_an_argument_by_name(change, message):
    X, y = data()
    with pytest.raises(ParameterError, match=rf"linear_objective\.{message}"):
        linear_objective(**{"X": X, "y": y} | change)


_FAR = np.random.default_rng(0).normal(size=(50, 5))
_FAR_SIGNS = np.where(_FAR[:, 0] + 0.5 * _FAR[:, 1] > 0, 1.0, -1.0)


@pytest.mark.parametrize(
    ("loss", "y", "start"),
    [
        ("huber", 1e3 * _FAR[:, 0] + 1e4, {}),
        ("logistic", _FAR_SIGNS, {"init": np.append(np.full(5, 500.0), 0.0)}),
        ("logistic", _FAR_SIGNS, {"init": np.append(np.zeros(5), 1000.0)}),
        ("squared_hinge", _FAR_SIGNS, {"init": np.append(np.zeros(5), 100.0)}),
        ("squared", 1e8 * _FAR[:, 0] + 1e9, {}),
    ],
    ids=["large residuals", "far weights", "far intercept", "far hinge", "huge targets"],
)
def test_newton_steps_leave_the_flat_parts_of_a_loss(loss, y, start):
    options = {"fit_intercept": True, "tol": 1e-6}
    found = minimise_linear(_FAR, y, loss, 0.01, solver="newton", **options, **start)
    judge = minimise_linear(_FAR, y, loss, 0.01, solver="lhac", **options)
    assert found.status is Status.CONVERGED
    assert found.objective == pytest.approx(judge.objective, rel=2e-6)


@pytest.mark.parametrize(
    ("loss", "message"),
    [("logistic", "be -1 or 1 for the logistic loss, got 0.5"), ("poisson", "got -2.0")],
)
def test_the_refusal_of_targets_shows_the_one_that_does_not_fit(loss, message):
    with pytest.raises(ValueError, match=message):
        minimise_linear(np.eye(4), [1.0, -1.0, 0.5, -2.0], loss, l1=0.1)
