"""PairwiseMultilabelSVM against cvxpy, and its best sets against enumeration and solve_map."""

import numpy as np
import pytest
import scipy.sparse as sp
from pairwise_judges import best_set, objective, optimum, relaxed_best, set_score

from sublearn import _core
from sublearn.graph import FactorGraph, solve_map
from sublearn.structured import PairwiseMultilabelSVM, pairwise_learning


def random_problem(seed, n_rows=12, n_features=4, n_labels=5):
    """Labels that depend on features and on each other, some for and some against."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_features))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    Y = X @ rng.normal(size=(n_features, n_labels)) + 0.4 * rng.normal(size=(n_rows, 1)) > 0.3
    Y[:, 1] = Y[:, 0] ^ (rng.random(n_rows) < 0.2)  # mostly together
    Y[:, 2] = ~Y[:, 0] ^ (rng.random(n_rows) < 0.2)  # mostly apart
    return X, Y.astype(int)


def random_scores(rng, n_labels, density=0.6):
    V = np.triu(
        rng.normal(size=(n_labels, n_labels)) * (rng.random((n_labels, n_labels)) < density), 1
    )
    return rng.normal(size=n_labels), V + V.T


def best_label_sets(scores, V, most_nodes=1000, n_threads=1):
    csr = sp.csr_matrix(V)
    return _core.best_label_sets(
        scores, csr.indptr.astype(np.int64), csr.indices.astype(np.int64), csr.data, most_nodes,
        n_threads,
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("C", "gamma"), [(0.1, 1.0), (1.0, 1.0), (1.0, 0.2), (5.0, 3.0)])
def test_reaches_the_optimum_of_the_relaxed_problem(C, gamma, seed):
    X, Y = random_problem(seed)
    model = PairwiseMultilabelSVM(
        C=C, pair_penalty=gamma, tol=1e-4, max_iter=5000, random_state=seed
    ).fit(X, Y)
    least = optimum(X, Y, C=C, gamma=gamma)
    assert model.certificate_ <= 1e-4
    assert least * (1 - 1e-6) <= model.objective_ <= least * (1 + 1e-4)
    assert least * (1 - 1e-4) <= model.trace_["dual"].max() <= least * (1 + 1e-6)


@pytest.mark.parametrize("seed", [1, 2, 4])
def test_no_row_is_stuck_where_rough_multipliers_lead_down(seed):
    X, Y = random_problem(seed)
    model = PairwiseMultilabelSVM(
        C=0.1, pair_penalty=0.01, tol=1e-3, max_iter=1000, random_state=0
    ).fit(X, Y)
    assert model.certificate_ <= 1e-3


@pytest.mark.parametrize("seed", range(3))
def test_pairs_that_join_later_lead_to_the_same_optimum(seed, monkeypatch):
    monkeypatch.setattr(pairwise_learning, "_MANY_LABELS", 4)  # as if five were many
    X, Y = random_problem(seed)
    model = PairwiseMultilabelSVM(tol=1e-4, max_iter=5000, random_state=seed).fit(X, Y)
    least = optimum(X, Y, C=1.0, gamma=1.0)
    assert least * (1 - 1e-6) <= model.objective_ <= least * (1 + 1e-4)
    trace = model.trace_
    assert (trace["active_pairs"] == 0).any()  # the first passes were without
    assert (trace["dual"] <= least * (1 + 1e-6)).all()


@pytest.mark.parametrize("seed", range(3))
def test_the_objective_is_that_of_the_weights(seed):
    X, Y = random_problem(seed)
    model = PairwiseMultilabelSVM(C=0.7, pair_penalty=0.5, random_state=0).fit(X, Y)
    V = model.interactions_.toarray()
    value = objective(model.coef_.toarray(), model.intercept_, V, X, Y, C=0.7, gamma=0.5)
    assert model.objective_ == pytest.approx(value, rel=1e-6)
    np.testing.assert_allclose(V, V.T)
    assert (np.diag(V) == 0).all()


def test_the_dual_never_falls_and_the_gap_closes():
    X, Y = random_problem(7, n_rows=30)
    model = PairwiseMultilabelSVM(tol=1e-3, max_iter=3000, evaluate_every=1, random_state=0)
    trace = model.fit(X, Y).trace_
    assert (np.diff(trace["dual"]) >= 0).all()
    assert trace["certificate"][-1] <= 1e-3 < trace["certificate"][0]


def test_without_pairs_each_label_is_a_support_vector_machine():
    X, Y = random_problem(3)
    model = PairwiseMultilabelSVM(pairs="none", tol=1e-5, max_iter=5000, random_state=0).fit(X, Y)
    assert model.interactions_.nnz == 0
    separate = [
        PairwiseMultilabelSVM(tol=1e-5, max_iter=5000, random_state=0).fit(
            X, [[c] if on else [] for on in y]
        )
        for c, y in zip("abcde", Y.T, strict=True)
    ]
    assert model.objective_ == pytest.approx(sum(m.objective_ for m in separate), rel=1e-4)
    margins = np.column_stack([X @ m.coef_.toarray()[0] + m.intercept_[0] for m in separate])
    np.testing.assert_allclose(X @ model.coef_.toarray().T + model.intercept_, margins, atol=0.05)


@pytest.mark.parametrize("n_labels", [1, 2, 6, 11])
def test_best_sets_are_those_of_enumeration(n_labels):
    rng = np.random.default_rng(n_labels)
    for _ in range(40):
        u, V = random_scores(rng, n_labels)
        indptr, labels, scores, bounds = best_label_sets(u[None], V)
        y = np.zeros(n_labels)
        y[labels[indptr[0] : indptr[1]]] = 1
        assert scores[0] == pytest.approx(best_set(u, V), abs=1e-9)
        assert set_score(u, V, y) == pytest.approx(scores[0], abs=1e-9)
        assert bounds[0] == pytest.approx(scores[0], abs=1e-9)


def test_a_search_cut_short_still_bounds_what_it_missed():
    rng = np.random.default_rng(0)
    n_gaps = 0
    for _ in range(30):
        u, V = random_scores(rng, 12, density=1.0)
        _, _, scores, bounds = best_label_sets(u[None], 2 * V, most_nodes=1)
        assert scores[0] <= best_set(u, 2 * V) + 1e-9 <= bounds[0] + 2e-9
        assert bounds[0] <= relaxed_best(u, 2 * V) + 1e-6
        n_gaps += bounds[0] > scores[0] + 1e-6
    assert n_gaps > 0


def test_best_sets_do_not_depend_on_the_threads():
    rng = np.random.default_rng(1)
    _, V = random_scores(rng, 40, density=0.3)
    scores = rng.normal(size=(60, 40))
    for one, two in zip(
        best_label_sets(scores, V), best_label_sets(scores, V, n_threads=2), strict=True
    ):
        np.testing.assert_array_equal(one, two)


def test_predictions_are_the_map_assignments_of_the_graph_room():
    X, Y = random_problem(11, n_rows=60, n_features=6, n_labels=9)
    model = PairwiseMultilabelSVM(C=2.0, pair_penalty=0.3, random_state=0).fit(X, Y)
    predicted, scores, bounds = model.predict_with_bounds(X)
    V = sp.triu(model.interactions_, 1).tocoo()
    assert V.nnz > 0
    for x, y, score, bound in zip(X, predicted, scores, bounds, strict=True):
        u = model.coef_ @ x + model.intercept_
        graph = FactorGraph([2] * len(u))
        graph.set_unary(np.column_stack([np.zeros_like(u), u]))
        graph.add_interactions(np.column_stack([V.row, V.col]), V.data)
        result = solve_map(graph, random_state=0)
        assert score == pytest.approx(result.score, abs=1e-6)
        assert graph.score(y) == pytest.approx(score, abs=1e-9)
        assert bound >= score - 1e-9
