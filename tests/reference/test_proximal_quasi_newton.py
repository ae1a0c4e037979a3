"""Proximal quasi-Newton methods: optima by cvxpy, operators by search, rates of the theorems."""

import cvxpy as cp
import numpy as np
import pytest

from sublearn.errors import ParameterError
from sublearn.optim import (
    GroupNorm,
    Mcp,
    NuclearNorm,
    ProximalSettings,
    Scad,
    Separable,
    TreeNorm,
    linear_objective,
    proximal_quasi_newton,
)
from sublearn.trace import Status

N = 12


def design():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, N)) * np.linspace(0.5, 2.0, N)
    return X, np.sign(X[:, 0] - X[:, 4] + 0.5 * rng.normal(size=40))


def smooth():
    X, y = design()
    return linear_objective(X, y)


def optimum(penalty, constraints=lambda x: []):
    X, y = design()
    x = cp.Variable(N)
    loss = cp.sum(cp.logistic(-cp.multiply(y, X @ x))) / len(y)
    problem = cp.Problem(cp.Minimize(loss + penalty(x)), constraints(x))
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10)
    return problem.value


GROUPS = np.array([0, 0, 0, 1, 1, 2, 2, 2, 2, 3, -1, -1])
WEIGHTS = 0.05 * np.sqrt([3, 2, 4, 1])
PARENTS = np.array([-1, 0, 0, 1, 1, 2, -1, 6, 6, 7, 7, -1])


def below(t):
    return [t, *(d for c in np.flatnonzero(t == PARENTS) for d in below(c))]


CASES = {
    "l1": (Separable(N, 0.05), lambda x: 0.05 * cp.norm1(x), lambda x: []),
    "elastic_net": (
        Separable(N, 0.03, l2=0.1),
        lambda x: 0.03 * cp.norm1(x) + 0.05 * cp.sum_squares(x),
        lambda x: [],
    ),
    "box": (
        Separable(N, bounds=(-0.2, 0.3)),
        lambda x: 0,
        lambda x: [x >= -0.2, x <= 0.3],
    ),
    "groups": (
        GroupNorm(GROUPS, WEIGHTS),
        lambda x: sum(w * cp.norm(x[np.flatnonzero(g == GROUPS)]) for g, w in enumerate(WEIGHTS)),
        lambda x: [],
    ),
    "tree": (
        TreeNorm(PARENTS, 0.04),
        lambda x: sum(0.04 * cp.norm(x[below(t)]) for t in range(N)),
        lambda x: [],
    ),
    "nuclear": (
        NuclearNorm((3, 4), 0.1),
        lambda x: 0.1 * cp.normNuc(cp.reshape(x, (4, 3), order="F")),
        lambda x: [],
    ),
}
BEST = {name: optimum(*judge) for name, (_, *judge) in CASES.items()}


@pytest.mark.parametrize("memory", [0, 5])
@pytest.mark.parametrize("name", CASES)
def test_reaches_the_optimum_under_every_penalty(name, memory):
    settings = ProximalSettings(memory=memory)
    found = proximal_quasi_newton(
        smooth(), np.zeros(N), CASES[name][0], tol=1e-7, max_iter=5000, settings=settings
    )
    assert found.status is Status.CONVERGED
    assert found.objective == pytest.approx(BEST[name], abs=2e-7)
    assert (np.diff(found.trace["objective"]) <= 1e-14).all()


@pytest.mark.parametrize("inner", ["coordinate", "random", "ista", "fista"])
@pytest.mark.parametrize("accuracy", [None, "quadratic", "geometric", "gap"])
def test_every_inner_solver_with_every_schedule_reaches_the_optimum(inner, accuracy):
    settings = ProximalSettings(
        inner=inner, accuracy=accuracy, a=0.1, mu=5.0, random_state=0, budget=(0.5, 2.0)
    )
    found = proximal_quasi_newton(
        smooth(), np.zeros(N), Separable(N, 0.05), tol=1e-6, settings=settings
    )
    assert found.objective == pytest.approx(BEST["l1"], abs=1e-6)


# --- operators -----------------------------------------------------------------------------------


@pytest.mark.parametrize("step", [0.5, 1.5, 4.0])
@pytest.mark.parametrize("kind", [Mcp, Scad])
def test_concave_operators_agree_with_a_search(kind, step):
    penalty = kind(0.7)
    grid = np.linspace(-8, 8, 32_001)
    for v in np.linspace(-6, 6, 25):
        values = np.array([penalty._each(grid)]) if kind is Scad else each_of_mcp(penalty, grid)
        scores = np.ravel(values) + (grid - v) ** 2 / (2 * step)
        u = penalty.prox(np.array([v]), step)
        score = penalty.value(u) + (u[0] - v) ** 2 / (2 * step)
        assert score == pytest.approx(scores.min(), abs=1e-6)


def each_of_mcp(penalty, t):
    size = np.minimum(np.abs(t), penalty.gamma * penalty.l1)
    return penalty.l1 * size - size**2 / (2 * penalty.gamma)


@pytest.mark.parametrize("name", CASES)
def test_operators_beat_every_point_nearby(name):
    penalty, rng = CASES[name][0], np.random.default_rng(0)
    v = rng.normal(size=N)
    u = penalty.prox(v, 0.7)

    def score(x):
        return penalty.value(x) + ((x - v) ** 2).sum() / 1.4

    for size in (1e-3, 0.1, 1.0):
        for _ in range(20):
            assert score(u) <= score(u + size * rng.normal(size=N)) + 1e-12


@pytest.mark.parametrize("kind", [Mcp, Scad])
def test_concave_penalties_end_at_a_stationary_point(kind):
    penalty = kind(0.05)
    found = proximal_quasi_newton(smooth(), np.zeros(N), penalty, max_iter=3000)
    gradient = smooth().value_and_gradient(found.x)[1]
    inside = found.x != 0
    slopes = penalty.slope(found.x) * np.sign(found.x)
    np.testing.assert_allclose(gradient[inside], -slopes[inside], atol=1e-5)
    assert (np.abs(gradient[~inside]) <= 0.05 + 1e-9).all()


# --- rates ---------------------------------------------------------------------------------------


def flat():
    """Convex and smooth but not strongly convex: a rate of 1/k is what one may ask for."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(30, 60)) * 0.9 ** np.arange(60)
    y = X[:, :3].sum(axis=1)
    L = np.linalg.eigvalsh(X.T @ X / 30)[-1]
    return X, y, L


def excess(settings, max_iter=300):
    X, y, _ = flat()
    objective, penalty = linear_objective(X, y, "squared"), Separable(60, 1e-3)
    best = proximal_quasi_newton(objective, np.zeros(60), penalty, tol=1e-13, max_iter=20_000)
    run = proximal_quasi_newton(
        objective, np.zeros(60), penalty, tol=0.0, max_iter=max_iter, settings=settings
    )
    return run, run.trace["objective"] - best.objective, best.x


def test_without_memory_it_is_ista_with_its_rate():
    """Beck and Teboulle: F(x_k) - F* <= L / beta |x_0 - x*|^2 / (2 k) with backtracking, rho 1."""
    settings = ProximalSettings(memory=0, rho=1.0, beta=0.5)
    _, gaps, best = excess(settings)
    L = flat()[2]
    k = np.arange(1, len(gaps))
    assert (gaps[1:] <= 2 * L * (best @ best) / (2 * k) + 1e-12).all()


@pytest.mark.parametrize("inner", ["ista", "fista", "coordinate"])
@pytest.mark.parametrize("accuracy", ["quadratic", "geometric"])
def test_accuracy_schedules_give_a_rate_of_one_over_k(inner, accuracy):
    """Theorem 15: k (F(x_k) - F*) stays bounded, and here falls."""
    settings = ProximalSettings(inner=inner, accuracy=accuracy, a=0.5, delta=0.9, mu=1.0)
    run, gaps, _ = excess(settings, 60)
    k = np.arange(1, len(gaps))
    scaled = k * gaps[1:]
    assert scaled[-1] <= 0.5 * scaled.max()
    assert (run.trace["accuracy"][1:] <= (0.25 / k**2 if accuracy == "quadratic" else 0.9**k)).all()


def test_a_linear_budget_has_the_count_of_theorem_16():
    """K = beta t + alpha (t - 1) t / 2 inner iterations, but for trials that were refused."""
    settings = ProximalSettings(inner="fista", budget=(1.0, 2.0), mu=0.05)
    run, gaps, _ = excess(settings, 40)
    t = run.n_iter
    assert run.trace["n_values"][-1] == t + 1  # none was refused
    assert run.trace["n_inner"][-1] == 2 * t + t * (t + 1) // 2
    assert 20 * gaps[20] >= 40 * gaps[40] * 0.999


def test_random_coordinates_keep_the_rate_in_the_mean():
    """Theorem 18, over three seeds."""
    means = np.mean(
        [
            excess(ProximalSettings(inner="random", random_state=s, budget="log", mu=1.0), 40)[1]
            for s in range(3)
        ],
        axis=0,
    )
    k = np.arange(1, len(means))
    assert (k * means[1:])[-1] <= 0.5 * (k * means[1:]).max()


# --- refusals ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: Separable(3, -1.0), r"Separable\.l1 must be non-negative"),
        (lambda: Separable(3, bounds=(1, 2)), r"Separable\.bounds must be a pair"),
        (lambda: GroupNorm([0, 3], 1.0), r"GroupNorm\.groups must be"),
        (lambda: GroupNorm([-1, -1], 1.0), r"GroupNorm\.groups must name"),
        (lambda: GroupNorm([0, 0], [1.0, 2.0]), r"GroupNorm\.weights must be"),
        (lambda: TreeNorm([1, 0], 1.0), r"must be a forest"),
        (lambda: NuclearNorm((0, 2), 1.0), r"NuclearNorm\.shape must be"),
        (lambda: NuclearNorm(5, 1.0), r"NuclearNorm\.shape must be two positive .*, got 5"),
        (lambda: NuclearNorm((2.5, 2), 1.0), r"NuclearNorm\.shape must be"),
        (lambda: Mcp(0.1, 0.5), r"Mcp\.gamma must be a number in \(1"),
        (lambda: Scad(0.1, 2.0), r"Scad\.gamma must be a number in \(2"),
        (lambda: ProximalSettings(inner="newton"), r"ProximalSettings\.inner must be"),
        (lambda: ProximalSettings(delta=1.0), r"ProximalSettings\.delta must be"),
    ],
)
def test_refuses_by_name(make, match):
    with pytest.raises(ParameterError, match=match):
        make()


def test_coordinate_descent_is_for_separable_penalties():
    settings = ProximalSettings(inner="random")
    with pytest.raises(ParameterError, match=r"inner must be 'auto', 'ista' or 'fista'"):
        proximal_quasi_newton(smooth(), np.zeros(N), GroupNorm(GROUPS, 0.1), settings=settings)


def test_refuses_what_cannot_be_called():
    with pytest.raises(ParameterError, match=r"proximal_quasi_newton\.objective must be callable"):
        proximal_quasi_newton(3.0, np.zeros(N), Separable(N, 0.1))


def test_refuses_a_start_outside_the_domain():
    with pytest.raises(ParameterError, match=r"init must be where"):
        proximal_quasi_newton(smooth(), np.ones(N), Separable(N, bounds=(0, 0.5)))


@pytest.mark.parametrize(
    ("gradient", "words"),
    [
        (np.full(2, np.nan), "a finite gradient"),
        (np.zeros(3), r"the shape of x, \(2,\), got \(3,\)"),
    ],
)
def test_refuses_a_gradient_that_is_none(gradient, words):
    with pytest.raises(ValueError, match=words):
        proximal_quasi_newton(lambda x: (1.0, gradient), np.zeros(2), Separable(2, 0.1))
