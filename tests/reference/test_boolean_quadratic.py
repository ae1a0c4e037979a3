"""solve_boolean_quadratic and solve_max_cut against enumeration and a semidefinite solver."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp

from sublearn.errors import ParameterError
from sublearn.interruption import Abandoned, Work
from sublearn.latent import solve_boolean_quadratic, solve_max_cut
from sublearn.latent.quadratic_form import FactoredForm, form_of_matrix
from sublearn.latent.relaxation import Relaxation
from sublearn.trace import Status


def maximise(*args, **options):
    return solve_boolean_quadratic(*args, **{"random_state": 0} | options)


def cut_graph(graph, **options):
    return solve_max_cut(graph, **{"random_state": 0} | options)


def symmetric(n, seed, sparse=False):
    rng = np.random.default_rng(seed)
    C = rng.normal(size=(n, n))
    if sparse:
        C *= rng.random((n, n)) < 0.4
    return C + C.T


def value(C, z, linear=None):
    z = np.asarray(z, dtype=float)
    return float(z @ C @ z) + (0.0 if linear is None else float(linear @ z))


def best_by_enumeration(C, linear, domain):
    levels = (0, 1) if domain == "01" else (-1, 1)
    return max(value(C, z, linear) for z in itertools.product(levels, repeat=len(C)))


# --- against judges ----------------------------------------------------------------------------


@pytest.mark.parametrize("domain", ["01", "pm1"])
@pytest.mark.parametrize("with_linear", [False, True])
@pytest.mark.parametrize("kind", ["dense", "sparse", "factored", "wide factor"])
def test_agrees_with_enumeration_and_the_bound_holds(kind, with_linear, domain):
    for seed in range(6):
        rng = np.random.default_rng(100 + seed)
        n = 4 + seed
        A = rng.normal(size=(n, {"factored": 1, "wide factor": 9}.get(kind, 1)))
        C = A @ A.T if "factor" in kind else symmetric(n, seed, kind == "sparse")
        linear = rng.normal(size=n) if with_linear else None
        given = {"dense": {"quadratic": C}, "sparse": {"quadratic": sp.csr_matrix(C)}}.get(
            kind, {"factor": A}
        )
        found = maximise(**given, linear=linear, domain=domain, tol=1e-6)
        best = best_by_enumeration(C, linear, domain)
        assert found.value == pytest.approx(value(C, found.z, linear), abs=1e-9)
        assert found.value == pytest.approx(best, abs=1e-9)  # so small: the flips find it
        assert found.bound >= best - 1e-9
        assert found.is_proved
        assert set(np.unique(found.z)) <= ({0, 1} if domain == "01" else {-1, 1})


@pytest.mark.parametrize("domain", ["01", "pm1"])
def test_the_bound_is_the_optimum_of_the_semidefinite_program(domain):
    cp = pytest.importorskip("cvxpy")
    C, linear = symmetric(9, 3), np.random.default_rng(4).normal(size=9)
    if domain == "01":
        Q = np.block([[0.25 * C, 0.25 * (C.sum(axis=1) + linear)[:, None]],
                      [0.25 * (C.sum(axis=1) + linear)[None, :], np.zeros((1, 1))]])  # fmt: skip
        constant = 0.25 * C.sum() + 0.5 * linear.sum()
    else:
        Q = np.block([[C, 0.5 * linear[:, None]], [0.5 * linear[None, :], np.zeros((1, 1))]])
        constant = 0.0
    X = cp.Variable((10, 10), PSD=True)
    optimum = cp.Problem(cp.Maximize(cp.trace(Q @ X)), [cp.diag(X) == 1]).solve() + constant
    found = maximise(C, linear=linear, domain=domain, tol=1e-7, max_iter=20_000)
    assert found.status is Status.CONVERGED
    assert found.bound == pytest.approx(optimum, rel=1e-4)
    assert found.relaxed_value == pytest.approx(optimum, rel=1e-4)


def test_three_forms_of_one_matrix_give_one_answer():
    A = np.random.default_rng(0).normal(size=(40, 6))
    C = A @ A.T
    forms = [form_of_matrix(C), form_of_matrix(sp.csr_matrix(C)), FactoredForm(A)]
    found = []
    for form in forms:
        problem = Relaxation(form, None, "01")
        problem.start(None, None, 5)
        from sublearn import _core

        problem.sweep(30, 0.0, 1, _core.Monitor())
        found.append((*problem.evaluate(), problem.bound(problem.evaluate()[1])[0]))
    for relaxed, multipliers, bound in found[1:]:
        assert relaxed == pytest.approx(found[0][0], rel=1e-9)
        np.testing.assert_allclose(multipliers, found[0][1], rtol=1e-7)
        assert bound == pytest.approx(found[0][2], rel=1e-6)


@pytest.mark.parametrize("form", ["dense", "sparse", "factored"])
@pytest.mark.parametrize("with_linear", [False, True])
def test_a_form_knows_when_a_diagonal_dominates_it(form, with_linear):
    rng = np.random.default_rng(1)
    A = rng.normal(size=(12, 3))
    C, b = A @ A.T, rng.normal(size=12) if with_linear else None
    Q = 0.25 * C
    if with_linear:
        Q = np.block([[Q, b[:, None]], [b[None, :], np.zeros((1, 1))]])
    forms = {"dense": form_of_matrix(C), "sparse": form_of_matrix(sp.csr_matrix(C)),
             "factored": FactoredForm(A)}  # fmt: skip
    d = rng.uniform(1, 2, size=len(Q))
    least = np.linalg.eigvalsh(np.diag(d) - Q)[0]
    assert forms[form].is_dominated(d - least + 1e-6, 0.25, b)
    assert not forms[form].is_dominated(d - least - 1e-6, 0.25, b)


def test_without_a_factorisation_the_shift_still_covers_the_least_eigenvalue():
    C = symmetric(60, 7)
    problem = Relaxation(form_of_matrix(C), None, "pm1")
    d = np.random.default_rng(0).uniform(5, 9, size=60)
    least = np.linalg.eigvalsh(np.diag(d) - C)[0]
    assert least < 0
    assert -least <= problem._careful_shift(d) <= -least * 1.001


# --- how it goes -------------------------------------------------------------------------------


def test_a_bound_is_given_up_when_nobody_waits_for_it():
    problem = Relaxation(form_of_matrix(symmetric(30, 0)), None, "pm1")
    problem.start(None, 5, 0)
    _, multipliers = problem.evaluate()
    work = Work()
    with work.under_way():
        work.abandon()
        with pytest.raises(Abandoned):
            problem.bound(multipliers)


def test_the_relaxed_value_never_falls():
    found = maximise(symmetric(80, 0), domain="pm1", tol=1e-6)
    assert (np.diff(found.trace["relaxed_value"]) >= -1e-9).all()
    assert len(found.trace) == found.n_iter


def test_candidates_are_distinct_and_sorted():
    C = symmetric(60, 1)
    found = maximise(C, domain="pm1")
    assert len(np.unique(found.candidates, axis=0)) == len(found.candidates) <= 64
    assert (np.diff(found.candidate_values) <= 0).all()
    for z, claimed in zip(found.candidates, found.candidate_values, strict=True):
        assert value(C, z) == pytest.approx(claimed)
        flipped = [value(C, np.where(np.arange(60) == i, -z, z)) for i in range(60)]
        assert max(flipped) <= claimed + 1e-9  # no flip helps


def test_a_warm_start_needs_fewer_sweeps():
    A = np.random.default_rng(0).normal(size=(120, 20))
    first = maximise(factor=A)
    changed = A + 1e-3 * np.random.default_rng(1).normal(size=A.shape)
    cold = maximise(factor=changed)
    warm = maximise(factor=changed, init=first)
    assert warm.n_iter < cold.n_iter
    assert warm.relaxed_value == pytest.approx(cold.relaxed_value, rel=1e-3)


def test_the_same_seed_gives_the_same_answer_for_any_number_of_threads():
    C = symmetric(50, 2)
    found = [maximise(C, n_jobs=n, random_state=3) for n in (1, 2)]
    np.testing.assert_array_equal(found[0].candidates, found[1].candidates)
    assert found[0].bound == found[1].bound


def test_scale_does_not_matter():
    C = symmetric(30, 5)
    plain, tiny = maximise(C), maximise(1e-12 * C)
    np.testing.assert_array_equal(plain.z, tiny.z)
    assert tiny.bound == pytest.approx(1e-12 * plain.bound)


def test_without_a_certificate_the_bound_is_infinite():
    found = maximise(symmetric(20, 0), certify=False)
    assert np.isinf(found.bound)
    assert np.isinf(found.certificate)


def test_a_matrix_of_zeros_has_the_value_zero():
    found = maximise(np.zeros((4, 4)))
    assert found.value == found.bound == found.certificate == 0


def test_one_variable():
    assert maximise([[-2.0]]).value == 0
    assert maximise([[-2.0]], domain="pm1").value == -2
    assert maximise([[-2.0]], linear=[3.0]).value == 1


def test_a_callback_stops_the_sweeps_and_leaves_an_answer():
    C = symmetric(400, 0)
    found = maximise(C, tol=1e-12, max_iter=10**6, callback=lambda event: True)
    assert found.status is Status.STOPPED
    assert found.value == pytest.approx(value(C, found.z))


# --- refusals ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "either quadratic or factor, got neither"),
        ({"quadratic": np.eye(2), "factor": np.eye(2)}, "either quadratic or factor, got both"),
        ({"quadratic": np.ones((2, 3))}, r"quadratic must be a square matrix, got shape \(2, 3\)"),
        ({"quadratic": [[0.0, 1.0], [2.0, 0.0]]}, "quadratic must be symmetric"),
        ({"quadratic": np.eye(2), "linear": [1.0]}, r"linear must be of shape \(2,\)"),
        (
            {"quadratic": np.eye(2), "linear": 1.0},
            r"linear must be of shape \(2,\), got shape \(\)",
        ),
        ({"quadratic": [["a"]]}, "quadratic must be numbers, got"),
        ({"quadratic": [1.0, 2.0]}, "quadratic must be a matrix of finite numbers: Expected 2D"),
        (
            {"quadratic": 1e200 * np.eye(2)},
            r"quadratic must be at most 1e\+70 in size, got 1e\+200",
        ),
        ({"quadratic": np.eye(2), "init": "last"}, "init must be numbers, got 'last'"),
        ({"quadratic": np.eye(2), "domain": "0/1"}, "domain must be '01' or 'pm1'"),
        ({"quadratic": np.eye(2), "tol": 0}, "tol must be a positive number"),
        ({"quadratic": np.eye(2), "init": np.eye(5)}, "init must be from a problem with 3"),
    ],
)
def test_refuses_what_is_no_problem(given, message):
    with pytest.raises(ParameterError, match=message):
        maximise(**given)


def test_refuses_numbers_that_are_not_finite():
    with pytest.raises(ValueError, match="quadratic contains NaN"):
        maximise([[np.nan]])


# --- max-cut -----------------------------------------------------------------------------------


def cut_by_enumeration(W):
    n = len(W)
    sides = np.array(list(itertools.product((0, 1), repeat=n - 1)))
    sides = np.hstack([np.zeros((len(sides), 1), dtype=int), sides])
    between = sides[:, :, None] != sides[:, None, :]
    return 0.5 * (between * W).sum(axis=(1, 2)).max()


@pytest.mark.parametrize("as_sparse", [False, True])
def test_finds_the_largest_cut_of_small_graphs(as_sparse):
    rng = np.random.default_rng(0)
    for _ in range(5):
        W = np.triu((rng.random((11, 11)) < 0.5) * rng.integers(-2, 4, size=(11, 11)), 1)
        W = (W + W.T).astype(float)
        found = cut_graph(sp.csr_matrix(W) if as_sparse else W, tol=1e-6)
        assert found.cut == cut_by_enumeration(W)
        assert found.bound >= found.cut
        assert found.side[0] == 0


def test_a_bipartite_graph_is_cut_whole_and_proved():
    W = np.zeros((30, 30))
    W[:13, 13:] = np.random.default_rng(0).random((13, 17)) < 0.5
    found = cut_graph(W + W.T, tol=1e-7, max_iter=10_000)
    assert found.cut == W.sum()
    assert found.certificate < 1e-5


def test_the_diagonal_of_a_graph_does_not_matter():
    W = np.ones((5, 5))
    assert cut_graph(W).cut == cut_graph(W - np.eye(5)).cut == 6


def test_max_cut_refuses_what_the_graph_stands_for():
    with pytest.raises(ParameterError, match="takes no domain"):
        cut_graph(np.eye(2), domain="01")
    with pytest.raises(ParameterError, match=r"solve_max_cut\.graph must be a square matrix"):
        cut_graph(np.ones((2, 3)))
    with pytest.raises(ParameterError, match=r"solve_max_cut\.graph must be symmetric.*by 1$"):
        cut_graph([[0, 1], [0, 0]])


def test_takes_graphs_of_networkx():
    networkx = pytest.importorskip("networkx")
    ring = networkx.cycle_graph(7)
    assert cut_graph(ring).cut == 6
    ring[0][1]["weight"] = 5.0
    assert cut_graph(ring).cut == 10
    with pytest.raises(ParameterError, match="must be undirected"):
        cut_graph(networkx.DiGraph([(0, 1)]))
