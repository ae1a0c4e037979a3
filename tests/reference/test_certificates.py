"""Certificates cannot lie: random tiny problems, each before a judge that knows no solver of ours.

A method reports the objective of what it returns and a bound on its distance from the optimum. For
each problem the objective is computed once more in NumPy, and a judge (enumeration, SciPy, cvxpy or
scikit-learn) names the best point it knows. No point may be better than the bound allows, beyond a
rounding that is stated below for each method. Any point may judge: one that is not optimal makes
the test weaker, never wrong. Limits of one to three iterations take the bounds far away from
optima, and the problems have what real ones should not: equal columns, columns of zeros, one
sample, constant targets, units of very different size, penalties beyond the largest that matters.

100 problems for each method; ``SUBLEARN_CASES=1000`` asks for more.
"""

import contextlib
import itertools
import os
import threading
from dataclasses import dataclass

import cvxpy as cp
import inverse_covariance_judges
import numpy as np
import pairwise_judges
import pd_judges
import ppd_judges
import pytest
from scipy.optimize import minimize
from sklearn.covariance import graphical_lasso
from structured_judges import EnumeratedSVM, chain_sample

from sublearn import _core
from sublearn.embed import MIPSIndex
from sublearn.extreme import PDSparseClassifier, PPDSparseClassifier
from sublearn.forecast.tube_regression import TubeLoss, fit_interior_point
from sublearn.graph import FactorGraph, solve_map
from sublearn.latent import LatentFeatureLasso, solve_boolean_quadratic, solve_max_cut
from sublearn.latent.mix_program import MixtureProgram
from sublearn.linear import (
    GroupLinearRegression,
    GroupLogisticRegression,
    SparseInverseCovariance,
    SparseLinearRegression,
    SparseLogisticRegression,
)
from sublearn.optim import LhacSettings, lhac, linear_objective, minimise_linear
from sublearn.optim.linear_objective import as_columns, linear_data
from sublearn.optim.linear_solvers import METHODS as SOLVERS
from sublearn.structured import ChainSVM, PairwiseMultilabelSVM, Sample, StructuralSVM

N_CASES = int(os.environ.get("SUBLEARN_CASES", "100"))
SLOW_SHARE = 4  # one case in so many for methods whose judge takes a tenth of a second


@dataclass(frozen=True)
class Claim:
    """What a method reported, and what the judge found; smaller is better."""

    objective: float  # as reported
    gap: float  # how far from the optimum at most, as reported
    value: float  # of what was returned, computed here
    best: float  # of the best point that the judge knows
    scale: float  # of the terms of the objective: what rounding is a share of

    def excess(self):
        """By what share of the scale the report is wrong: of another point, or too sure."""
        of_another = abs(self.objective - self.value)
        too_sure = self.value - self.best - self.gap
        return max(of_another, too_sure) / self.scale


def claim(objective, certificate, value, best, scale=None):
    """With the certificate as a share of the objective."""
    scale = max(abs(objective), abs(value)) if scale is None else scale
    return Claim(objective, certificate * abs(objective), value, best, max(scale, 1e-300))


# --- random problems ---------------------------------------------------------------------------


def random_rows(rng, *, most_rows=12, most_features=6, spread=2.0):
    n, d = int(rng.integers(1, most_rows + 1)), int(rng.integers(1, most_features + 1))
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < rng.choice([0.3, 1.0]))
    if rng.random() < 0.3:
        X[:, 0] = X[:, -1]
    if rng.random() < 0.2:
        X[:, int(rng.integers(d))] = 0.0
    if rng.random() < 0.2:
        X[:, 0] = 1.0
    if rng.random() < 0.3:
        X *= 10.0 ** rng.uniform(-spread, spread, size=d)
    return X * 10.0 ** rng.uniform(-spread, spread) if rng.random() < 0.2 else X


def random_limit(rng, enough):
    """So few iterations that the bound is far from closed, or enough."""
    return int(rng.integers(1, 4)) if rng.random() < 0.5 else enough


def random_labels(rng, n, k):
    Y = rng.random((n, k)) < rng.choice([0.15, 0.5, 0.9])
    Y[rng.integers(n), rng.integers(k)] = True  # one label at least
    return Y


def random_targets(rng, loss, n):
    if loss in ("logistic", "squared_hinge"):
        y = rng.choice([-1.0, 1.0], size=n)
        return np.ones(n) if rng.random() < 0.1 else y
    if loss == "poisson":
        return rng.poisson(rng.choice([0.0, 1.0, 5.0]), size=n).astype(float)
    y = rng.normal(size=n) * 10.0 ** rng.uniform(-2, 2)
    return np.full(n, y[0]) if rng.random() < 0.1 else y


# --- the loss of a row, written down once more -------------------------------------------------

HUBER = 1.35


def loss_and_slope(loss, z, y):
    if loss == "logistic":
        return np.logaddexp(0, -y * z), -y / (1 + np.exp(np.minimum(y * z, 700)))
    if loss == "squared":
        return 0.5 * (z - y) ** 2, z - y
    if loss == "squared_hinge":
        short = np.maximum(1 - y * z, 0)
        return short**2, -2 * y * short
    if loss == "huber":
        r = z - y
        far = np.abs(r) > HUBER
        return np.where(far, HUBER * (np.abs(r) - HUBER / 2), r**2 / 2), np.clip(r, -HUBER, HUBER)
    grown = np.exp(np.minimum(z, 300))
    return grown - y * z, grown - y


def least_penalised(smooth, start, l1, l2, bounds=(-np.inf, np.inf)):
    """The best value that L-BFGS meets, over the positive and the negative parts of x."""
    n, best = len(l1), [np.inf]

    def function(parts):
        x = parts[:n] - parts[n:]
        value, gradient = smooth(x)
        value, gradient = value + 0.5 * l2 @ (x * x), gradient + l2 * x
        best[0] = min(best[0], value + l1 @ np.abs(x))
        return value + l1 @ (parts[:n] + parts[n:]), np.concatenate([gradient + l1, l1 - gradient])

    lower, upper = bounds
    box = [(0, upper)] * n + [(0, -lower)] * n
    at = np.concatenate([np.maximum(start, 0), np.maximum(-start, 0)])
    minimize(function, at, jac=True, method="L-BFGS-B", bounds=box,
             options={"maxiter": 1000, "maxfun": 2000, "ftol": 1e-15, "gtol": 1e-12})  # fmt: skip
    return best[0]


def linear_loss(loss, X, y, weights, has_intercept):
    """Value and gradient of the loss at (w, b)."""
    A = np.column_stack([X, np.ones(len(X))]) if has_intercept else X

    def smooth(x):
        values, slopes = loss_and_slope(loss, A @ x, y)
        return float(weights @ values), A.T @ (weights * slopes)

    return smooth


# --- the methods -------------------------------------------------------------------------------


def ppd_sparse(rng):
    X = random_rows(rng, spread=0.5)
    n, k = len(X), int(rng.integers(2, 4))
    Y = random_labels(rng, n, k)
    dtype = rng.choice([np.float32, np.float64])
    X = X.astype(dtype).astype(np.float64)
    terms = {
        "loss": str(rng.choice(["squared_hinge", "hinge"])),
        "fit_intercept": (True, "fixed")[rng.choice(2)],
        "l1": float(rng.choice([0.0, 0.1, 1.0, 1e3])),
        "C": float(10.0 ** rng.uniform(-1, 1)),
    }
    rows = rng.choice([0.5, 1.0, 4.0], size=n) if rng.random() < 0.4 else np.ones(n)
    of_labels = rng.choice([0.5, 2.0], size=k) if rng.random() < 0.3 else np.ones(k)
    model = PPDSparseClassifier(
        **terms,
        tol=float(10.0 ** rng.uniform(-5, -1)),
        max_iter=random_limit(rng, 2000),
        search=str(rng.choice(["exact", "sparsified"])),
        prune=float(rng.choice([0.0, 0.1, 1e300], p=[0.5, 0.4, 0.1])),
        class_weight=of_labels,
        warm_start=True,
        random_state=0,
    )
    if rng.random() < 0.3:
        model.fit(X.astype(dtype), np.roll(Y, 1, axis=0))  # another problem to start from
    model.fit(X.astype(dtype), Y, sample_weight=rows)
    weights = rows[:, None] * np.where(Y, of_labels, 1.0)
    W, b = model.coef_.toarray(), model.intercept_
    value = ppd_judges.objective(W, b, X, Y, weights=weights, **terms)
    best = ppd_judges.optimum(X, Y, weights=weights, **terms)
    return claim(model.objective_, model.certificate_, value, best)


def pd_sparse(rng):
    X = random_rows(rng, most_rows=8, spread=0.5)
    Y = random_labels(rng, len(X), int(rng.integers(2, 4)))
    dtype = rng.choice([np.float32, np.float64])
    X = X.astype(dtype).astype(np.float64)
    terms = {"l1": float(rng.choice([0.0, 0.1, 1e3])), "C": float(10.0 ** rng.uniform(-1, 1))}
    has_intercept = bool(rng.random() < 0.5)
    model = PDSparseClassifier(
        **terms,
        fit_intercept=has_intercept,
        tol=float(10.0 ** rng.uniform(-4, -1)),
        max_iter=random_limit(rng, 1000),
        search=str(rng.choice(["auto", "exact", "partition", "sampled"])),
        prune=float(rng.choice([0.0, 0.1, 1e300], p=[0.5, 0.4, 0.1])),
        random_state=0,
    ).fit(X.astype(dtype), Y)
    W, b = model.coef_.toarray().astype(np.float64), model.intercept_.astype(np.float64)
    value = pd_judges.objective(W, X, Y, **terms)
    if has_intercept:
        with_ones = np.column_stack([X, np.ones(len(X))])
        value = pd_judges.objective(np.column_stack([W, b]), with_ones, Y, **terms)
        value -= terms["l1"] * np.abs(b).sum()
    best = pd_judges.optimum(X, Y, fit_intercept=has_intercept, **terms)
    return claim(model.objective_, model.certificate_, value, best)


LOSSES = ("logistic", "squared", "squared_hinge", "huber", "poisson")


def one_linear_problem(rng):
    X = random_rows(rng)
    n, d = X.shape
    loss = str(rng.choice(LOSSES))
    y = random_targets(rng, loss, n)
    solver = str(rng.choice(["newton", "lhac", "cd1", "interior_point"]))
    if solver == "cd1" and loss == "poisson":
        solver = "newton"
    has_intercept = bool(rng.random() < 0.5)
    weights = rng.choice([0.5, 1.0, 2.0], size=n) / n
    l1 = rng.choice([0.01, 0.1, 1e4]) * rng.choice([0.5, 1.0], size=d)
    l2 = float(rng.choice([0.0, 0.3]))
    free = (-np.inf, np.inf)
    box = free if solver == "interior_point" or rng.random() < 0.5 else (-0.2, 0.5)
    init = None
    if loss != "poisson" and rng.random() < 0.3:  # exp(<x, init>) might be too large
        init = np.append(rng.normal(size=d), 0.0)[: d + has_intercept]
    found = minimise_linear(
        X, y, loss, l1, l2=l2, bounds=box, solver=solver, fit_intercept=has_intercept,
        weights=weights, init=init, tol=1e-7, max_iter=random_limit(rng, 500),
    )  # fmt: skip
    smooth = linear_loss(loss, X, y, weights, has_intercept)

    def objective(x):
        return smooth(x)[0] + l1 @ np.abs(x[:d]) + 0.5 * l2 * x[:d] @ x[:d]

    at = np.append(found.x, found.intercept)[: d + has_intercept]
    wide = lambda values: np.append(values, 0.0)[: d + has_intercept]  # noqa: E731
    best = np.inf
    if box == free or not has_intercept:
        best = least_penalised(smooth, at, wide(l1), wide(np.full(d, l2)), box)
    tight = minimise_linear(
        X, y, loss, l1, l2=l2, bounds=box, solver="newton", fit_intercept=has_intercept,
        weights=weights, init=found, tol=1e-12,
    )  # fmt: skip
    best = min(best, objective(np.append(tight.x, tight.intercept)[: d + has_intercept]))
    return claim(
        found.objective, found.certificate, objective(at), best,
        scale=max(abs(found.objective), abs(smooth(np.zeros(len(at)))[0])),
    )  # fmt: skip


def linear_models(rng):
    X = random_rows(rng, spread=1.0)
    n, d = X.shape
    loss = str(rng.choice(["logistic", "squared", "huber", "poisson"]))
    y = random_targets(rng, loss, n)
    if loss == "logistic":
        if n < 2:
            X, n = np.vstack([X, X + 1.0]), 2
            y = np.ones(n)
        y[0] = -y[-1]  # two classes
    if loss == "poisson":
        y[0] += 1.0
    dtype = rng.choice([np.float32, np.float64])
    X = X.astype(dtype).astype(np.float64)
    l1, l2 = float(rng.choice([1e-3, 0.1, 1e4])), float(rng.choice([0.0, 0.3]))
    options = {
        "l2": l2, "fit_intercept": bool(rng.random() < 0.5), "tol": 1e-7,
        "max_iter": random_limit(rng, 300),
    }  # fmt: skip
    if loss == "logistic":
        model = SparseLogisticRegression(l1, **options).fit(X.astype(dtype), y)
    else:
        model = SparseLinearRegression(l1, loss=loss, **options).fit(X.astype(dtype), y)
    smooth = linear_loss(loss, X, y, np.full(n, 1 / n), options["fit_intercept"])
    at = np.append(model.coef_.astype(float), model.intercept_)[: d + options["fit_intercept"]]
    levels, squares = (np.append(np.full(d, v), 0.0)[: len(at)] for v in (l1, l2))
    # A perfect fit has no Poisson deviance: half of it is the loss plus this.
    shift = np.mean(y * np.log(np.maximum(y, 1e-300)) - y) if loss == "poisson" else 0.0
    value = shift + smooth(at)[0] + levels @ np.abs(at) + 0.5 * squares @ (at * at)
    best = shift + least_penalised(smooth, at, levels, squares)
    scale = max(value, abs(shift) + abs(smooth(np.zeros(len(at)))[0]))
    return claim(model.objective_, model.certificate_, value, best, scale)


def group_models(rng):
    """The optimum is that of a tight fit, or what the same model reaches from elsewhere."""
    X = random_rows(rng, spread=1.0)
    X = np.vstack([X, X[:1] + 1.0])
    n, d = X.shape
    is_logistic = bool(rng.random() < 0.5)
    y = random_targets(rng, "logistic" if is_logistic else "squared", n)
    if is_logistic:
        y[0] = -y[-1]
    kind = GroupLogisticRegression if is_logistic else GroupLinearRegression
    options = {
        "feature_groups": rng.integers(3, size=d), "within_share": float(rng.choice([0.0, 0.4])),
        "l2": float(rng.choice([0.0, 0.3])), "fit_intercept": bool(rng.random() < 0.5),
    }  # fmt: skip
    l1 = float(rng.choice([1e-3, 0.1, 1e4]))
    model = kind(l1, **options, tol=1e-7, max_iter=random_limit(rng, 100)).fit(X, y)
    tight = kind(l1, **options, tol=1e-12, max_iter=1000).fit(X, y)
    z = X @ model.coef_.ravel() + model.intercept_
    loss = np.logaddexp(0, -y * z).mean() if is_logistic else 0.5 * np.mean((z - y) ** 2)
    w, share = model.coef_.ravel(), options["within_share"]
    sizes = np.bincount(np.unique(options["feature_groups"], return_inverse=True)[1])
    norms = np.sqrt(sizes) @ np.atleast_1d(model.group_norms_)
    value = loss + l1 * ((1 - share) * norms + share * np.abs(w).sum())
    value += 0.5 * options["l2"] * (w @ w)
    at_zero = np.log(2) if is_logistic else 0.5 * np.mean(y**2)
    return claim(
        model.objective_, model.certificate_, value, min(tight.objective_, value),
        max(value, at_zero),
    )  # fmt: skip


def multinomial(rng):
    X = random_rows(rng, most_rows=10, most_features=4, spread=0.5)
    X = np.vstack([X, rng.normal(size=(3, X.shape[1]))])
    (n, d), k = X.shape, 3
    y = np.append(rng.integers(k, size=n - k), np.arange(k))
    l1, l2 = float(rng.choice([1e-2, 0.1, 1e3])), float(rng.choice([0.0, 0.3]))
    has_intercept = bool(rng.random() < 0.5)
    model = SparseLogisticRegression(
        l1, l2=l2, multinomial=True, fit_intercept=has_intercept, tol=1e-7,
        max_iter=random_limit(rng, 100),
    ).fit(X, y)  # fmt: skip
    A = np.column_stack([X, np.ones(n)]) if has_intercept else X

    def smooth(x):
        z = A @ x.reshape(-1, k)
        largest = z.max(axis=1, keepdims=True)
        p = np.exp(z - largest)
        total = p.sum(axis=1, keepdims=True)
        value = (np.log(total) + largest).mean() - z[np.arange(n), y].mean()
        return float(value), (A.T @ ((p / total - np.eye(k)[y]) / n)).ravel()

    at = np.vstack([model.coef_.T, model.intercept_])[: A.shape[1]].ravel()
    levels, squares = (np.repeat(np.append(np.full(d, v), 0.0)[: A.shape[1]], k) for v in (l1, l2))
    value = smooth(at)[0] + levels @ np.abs(at) + 0.5 * squares @ (at * at)
    best = least_penalised(smooth, at, levels, squares)
    return claim(model.objective_, model.certificate_, value, best, max(value, np.log(k)))


def low_rank_hessian(rng):
    X = random_rows(rng)
    loss = str(rng.choice(["logistic", "squared"]))
    y = random_targets(rng, loss, len(X))
    l1, l2 = float(rng.choice([0.01, 0.1, 1e4])), float(rng.choice([0.0, 0.3]))
    start = rng.normal(size=X.shape[1]) if rng.random() < 0.5 else np.zeros(X.shape[1])
    found = lhac(
        linear_objective(X, y, loss), start, l1, l2=l2, tol=1e-7,
        max_iter=random_limit(rng, 1000), active_set=bool(rng.random() < 0.5),
        settings=LhacSettings(
            globalisation=str(rng.choice(["prox", "line_search", "null_step"]))
        ),
    )  # fmt: skip
    smooth = linear_loss(loss, X, y, np.full(len(X), 1 / len(X)), False)
    levels, squares = np.full(X.shape[1], l1), np.full(X.shape[1], l2)
    value = smooth(found.x)[0] + levels @ np.abs(found.x) + 0.5 * squares @ found.x**2
    best = least_penalised(smooth, found.x, levels, squares)
    scale = max(value, smooth(np.zeros(X.shape[1]))[0])
    return claim(found.objective, found.certificate, value, best, scale)


def inverse_covariance(rng):
    n = int(rng.integers(1, 6))
    S = inverse_covariance_judges.random_covariance(n, int(rng.integers(n + 2, 20)), rng)
    S = S * 10.0 ** rng.uniform(-1, 1)
    if n > 1 and rng.random() < 0.2:
        S[0, 1:] = S[1:, 0] = 0.0
    l1 = float(rng.choice([0.01, 0.1, 1.0, 100.0])) * S[0, 0]
    options = {"covariance": "precomputed", "solver": str(rng.choice(["newton", "lhac"]))}
    model = SparseInverseCovariance(
        l1, max_iter=random_limit(rng, 200), tol=1e-7, **options
    ).fit(S)  # fmt: skip
    weights = inverse_covariance_judges.as_weights(l1, n)
    points = [SparseInverseCovariance(l1, tol=1e-11, max_iter=500, **options).fit(S).precision_]
    if n > 1:
        with contextlib.suppress(FloatingPointError):  # the judge gives up
            points.append(graphical_lasso(S, l1, tol=1e-8, max_iter=50)[1])
    best = min(inverse_covariance_judges.primal(point, S, weights) for point in points)
    value = inverse_covariance_judges.primal(model.precision_, S, weights)
    unit = max(abs(model.objective_), n)
    return Claim(model.objective_, model.certificate_ * unit, value, best, unit)


def pairs_of_labels(rng):
    X = random_rows(rng, most_rows=6, most_features=3, spread=0.3)
    Y = random_labels(rng, len(X), 3).astype(int)
    C, gamma = float(rng.choice([0.1, 1.0])), float(rng.choice([0.2, 1.0]))
    model = PairwiseMultilabelSVM(
        C=C, pair_penalty=gamma, tol=1e-3, max_iter=random_limit(rng, 200), random_state=0
    ).fit(X, Y)
    V = model.interactions_.toarray()
    W, b = model.coef_.toarray(), model.intercept_
    value = pairwise_judges.objective(W, b, V, X, Y, C=C, gamma=gamma)
    best = pairwise_judges.optimum(X, Y, C=C, gamma=gamma)
    return claim(model.objective_, model.certificate_, value, best)


def random_chains(rng):
    lengths = rng.integers(1, 4, size=int(rng.integers(1, 4)))
    X = [rng.normal(size=(n, 2)) for n in lengths]
    if rng.random() < 0.2:
        X = [np.zeros_like(rows) for rows in X]
    y = [rng.integers(2, size=n) for n in lengths]
    y[0][0] = 0
    if sum(map(len, y)) > 1:
        y[-1][-1] = 1
    else:
        X, y = [*X, rng.normal(size=(1, 2))], [*y, np.array([1])]
    judge = EnumeratedSVM([chain_sample(*pair) for pair in zip(X, y, strict=True)], 2, 1)
    C = float(10.0 ** rng.uniform(-1, 1))
    return X, y, judge, C, judge.objective(judge.optimum(C)[1], C)


def chains(rng):
    X, y, judge, C, best = random_chains(rng)
    model = ChainSVM(
        C, fit_intercept=False, tol=1e-4, max_iter=random_limit(rng, 200), random_state=0
    ).fit(X, y)
    w = np.concatenate([model.coef_.toarray().ravel(), model.transitions_.ravel()])
    return claim(model.objective_, model.certificate_, judge.objective(w, C), best)


def structures(rng):
    X, y, judge, C, best = random_chains(rng)
    model = StructuralSVM(
        C, fit_intercept=False, tol=1e-4, max_iter=random_limit(rng, 200), random_state=0
    ).fit([Sample.chain(rows) for rows in X], y)
    tables = model.tables_.get("next", np.zeros((2, 2)))
    w = np.concatenate([model.coef_.toarray().ravel(), tables.ravel()])
    return claim(model.objective_, model.certificate_, judge.objective(w, C), best)


MAP_SOLVERS = [
    "auto", "gdmm", "gdmm_and_search", "messages", "local_search", "neighbourhoods",
]  # fmt: skip


def assignments(rng):
    n = int(rng.integers(1, 6))
    domain = rng.integers(1, 4, size=n)
    graph = FactorGraph(unary=[rng.normal(size=k) * rng.choice([0.0, 1.0]) for k in domain])
    for _ in range(int(rng.integers(0, 8)) if n > 1 else 0):
        scope = rng.choice(n, 2, replace=False)
        table = rng.normal(size=tuple(domain[scope])) * 10.0 ** rng.uniform(-2, 2)
        graph.add_factor(scope, table)
    found = solve_map(
        graph, solver=str(rng.choice(MAP_SOLVERS)), max_iter=random_limit(rng, 500),
        search_work=float(rng.choice([1.0, 1e6])), random_state=0,
        time_limit=None if rng.random() < 0.8 else 1e-9,
    )  # fmt: skip
    best = max(graph.score(x) for x in itertools.product(*(range(k) for k in domain)))
    scale = max(1.0, abs(best))
    value = graph.score(found.assignment)
    return Claim(-found.score, found.bound - found.score, -value, -best, scale)


def boolean_quadratics(rng):
    n = int(rng.integers(1, 8))
    C = rng.normal(size=(n, n)) * (rng.random((n, n)) < rng.choice([0.3, 1.0]))
    C = (C + C.T) * 10.0 ** rng.uniform(-3, 3)
    linear = rng.normal(size=n) if rng.random() < 0.5 else None
    domain, levels = [("01", (0, 1)), ("pm1", (-1, 1))][int(rng.integers(2))]
    found = solve_boolean_quadratic(
        C, linear=linear, domain=domain, max_iter=random_limit(rng, 500), tol=1e-4, random_state=0
    )

    def value(z):
        z = np.asarray(z, dtype=float)
        return float(z @ C @ z + (0.0 if linear is None else linear @ z))

    best = max(value(z) for z in itertools.product(levels, repeat=n))
    scale = np.abs(C).sum() + (0.0 if linear is None else np.abs(linear).sum()) + 1e-300
    return Claim(-found.value, found.bound - found.value, -value(found.z), -best, scale)


def cuts(rng):
    n = int(rng.integers(2, 8))
    G = np.triu(rng.normal(size=(n, n)) * (rng.random((n, n)) < 0.6), 1)
    G = G + G.T
    found = solve_max_cut(G, max_iter=random_limit(rng, 500), tol=1e-4, random_state=0)

    def weight(side):
        side = np.asarray(side)
        return float(G[side[:, None] != side[None, :]].sum() / 2)

    best = max(weight(side) for side in itertools.product((0, 1), repeat=n))
    scale = np.abs(G).sum() + 1e-300
    return Claim(-found.cut, found.bound - found.cut, -weight(found.side), -best, scale)


def latent_features(rng):
    X = rng.normal(size=(int(rng.integers(2, 6)), int(rng.integers(1, 4))))
    if rng.random() < 0.3:
        X[0] = X[-1]
    n, d = X.shape
    l1, l2, has_intercept = float(rng.choice([0.02, 0.3])), 0.7, bool(rng.random() < 0.5)
    model = LatentFeatureLasso(
        1, l1=l1, l2=l2, fit_intercept=has_intercept, violation_tol=1e-3,
        max_iter=random_limit(rng, 50), random_state=0,
    ).fit(X)  # fmt: skip
    atoms = np.array(list(itertools.product((0, 1), repeat=n)), dtype=float)[1:].T
    W, b = cp.Variable((atoms.shape[1], d)), cp.Variable((1, d))
    fit = atoms @ W + (np.ones((n, 1)) @ b if has_intercept else 0)
    penalty = np.sqrt(2 * l1 * l2) * cp.sum(cp.norm(W, 2, axis=1))
    best = cp.Problem(cp.Minimize(cp.sum_squares(X - fit) / (2 * n) + penalty)).solve(
        solver=cp.CLARABEL
    )
    scale = (X**2).sum() / (2 * n)
    return claim(model.objective_, model.certificate_, model.objective_, best, scale)


def mixtures(rng):
    n, r = int(rng.integers(2, 6)), int(rng.integers(1, 3))
    features, targets = rng.normal(size=(n, r)), rng.normal(size=n) * 10.0 ** rng.uniform(-1, 1)
    program = MixtureProgram(features, targets)
    l1 = float(rng.choice([0.05, 0.3, 1.5])) * program.l1_max()
    point = program.solve(l1, None, tol=1e-4, max_iter=random_limit(rng, 50))
    atoms = np.array(list(itertools.product([0.0, 1.0], repeat=n)))[1:]
    W = cp.Variable((len(atoms), r))
    fitted = cp.sum(cp.multiply(atoms.T @ W, features), axis=1)
    loss = cp.sum_squares(targets - fitted) / (2 * n) + l1 * cp.sum(cp.norm(W, axis=1))
    best = cp.Problem(cp.Minimize(loss)).solve(solver=cp.CLARABEL)
    scale = (targets**2).sum() / (2 * n)
    coef = point.coef(features)
    residual = targets - (point.atoms.T * (features @ coef.T)).sum(axis=1)
    value = (residual**2).sum() / (2 * n) + l1 * np.linalg.norm(coef, axis=1).sum()
    return Claim(point.objective, point.objective - point.bound, value, best, scale)


def tubes(rng):
    features = random_rows(rng, spread=3.0)
    y = random_targets(rng, "squared", len(features))
    epsilon, shift = float(rng.choice([0.0, 0.3])), 0.2 * float(rng.random() < 0.5)
    loss = TubeLoss(-(epsilon + shift), epsilon - shift)
    if rng.random() < 0.5:
        loss = TubeLoss.quantile(float(rng.choice([0.1, 0.5, 0.9])))
    C = float(10.0 ** rng.uniform(-3, 3))
    found = fit_interior_point(features, y, loss, C, tol=1e-6, max_iter=random_limit(rng, 60))

    def objective(w):
        return 0.5 * w @ w + C * loss.values(y - features @ w).sum()

    tight = fit_interior_point(features, y, loss, C, tol=1e-11, max_iter=100)
    best = min(objective(tight.w), objective(np.zeros(features.shape[1])))
    scale = max(found.objective, objective(np.zeros(features.shape[1])))
    return claim(found.objective, found.certificate, objective(found.w), best, scale)


def searches(rng):
    """An exact search promises the best rows: the gap that it claims is zero."""
    rows = random_rows(rng, most_rows=40, spread=1.0).astype(np.float32)
    query = rng.normal(size=rows.shape[1]).astype(np.float32)
    k = int(rng.integers(1, len(rows) + 1))
    ids, scores = (
        MIPSIndex(1 + len(rows) // 8, random_state=0).fit(rows).search(query, k, n_probe=None)
    )
    truth = rows.astype(np.float64) @ query.astype(np.float64)
    scale = float(np.linalg.norm(rows, axis=1).max() * np.linalg.norm(query)) + 1e-300
    return Claim(-float(scores.sum()) / k, 0.0, -truth[ids].mean(), -np.sort(truth)[-k:].mean(),
                 scale)  # fmt: skip


# Each with the rounding that is allowed, as a share of the terms of its objective. Sums of float32
# have 24 bits; values of cvxpy, where they judge as they are, are off by up to about 1e-7.
#
# Not here: HierarchicalClassifier and HierarchicalMultilabelClassifier report the worst certificate
# of their `linear_models`, LoadForecaster that of its `tubes`; what the models of `sublearn.embed`
# call so says how much a search misses, and bounds no distance from an optimum.
METHODS = {
    ppd_sparse: 3e-6,
    pd_sparse: 3e-6,
    one_linear_problem: 1e-9,
    linear_models: 1e-6,
    group_models: 1e-9,
    multinomial: 1e-9,
    low_rank_hessian: 1e-9,
    inverse_covariance: 1e-9,
    pairs_of_labels: 1e-6,
    chains: 1e-9,
    structures: 1e-9,
    assignments: 1e-9,
    boolean_quadratics: 1e-9,
    cuts: 1e-9,
    latent_features: 1e-5,
    mixtures: 1e-6,
    tubes: 1e-9,
    searches: 1e-6,
}
SLOW = (pairs_of_labels, latent_features, pd_sparse, chains, structures, mixtures)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:Solution may be inaccurate:UserWarning")
@pytest.mark.filterwarnings("ignore:.*features leave no error:UserWarning")
@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.__name__)
def test_no_certificate_is_below_the_true_gap(method):
    n_cases = N_CASES // (SLOW_SHARE if method in SLOW and N_CASES <= 100 else 1)
    excess = np.array([method(np.random.default_rng(seed)).excess() for seed in range(n_cases)])
    worst = int(np.argmax(excess))
    assert np.isfinite(excess).all()
    assert excess[worst] <= METHODS[method], f"case {worst}: by {excess[worst]:.3g}"


@pytest.mark.parametrize("delay", [0.0, 0.02, 0.1])
@pytest.mark.parametrize("solver", SOLVERS)
def test_a_solve_that_is_stopped_reports_the_point_it_returns(solver, delay):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 400)), rng.choice([-1.0, 1.0], size=300)
    weights, l1 = np.full(300, 1 / 300), np.full(400, 1e-4)
    data = linear_data(as_columns(X), y, "logistic", weights, True, 1.0)
    monitor = _core.Monitor()
    timer = threading.Timer(delay, monitor.request_stop)
    timer.start()
    if delay == 0.0:
        timer.join()
    settings, start = SOLVERS[solver].settings(0.0, 10**6, 1), (np.zeros(400), 0.0)
    w, b, _, columns = _core.fit_linear(
        data, l1, _core.SeparablePenalty(), settings, *start, monitor
    )
    timer.join()
    value = linear_loss("logistic", X, y, weights, True)(np.append(w, b))[0] + l1 @ np.abs(w)
    assert columns["objective"][-1] == pytest.approx(value, rel=1e-12)
