"""ChainSVM and StructuralSVM against cvxpy with all labelings written down."""

import itertools
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from structured_judges import EnumeratedSVM, chain_sample, labelings

from sublearn.structured import ChainSVM, Passes, Sample, StructuralSVM


def sequences(n_labels, n_features=4, lengths=(4, 1, 3, 2, 4), seed=0):
    """Tags that follow features and the tag before, with some noise."""
    rng = np.random.default_rng(seed)
    X = [rng.normal(size=(n, n_features)) for n in lengths]
    y = [rng.integers(n_labels, size=n) for n in lengths]
    y[0][: min(n_labels, len(y[0]))] = np.arange(min(n_labels, len(y[0])))  # no tag is missing
    return X, y


def weights_of(model):
    """All weights in the order of the judge."""
    return np.concatenate([model.coef_.toarray().ravel(), model.transitions_.ravel()])


def tight(**options):
    return {
        "tol": 1e-4,
        "max_iter": 3000,
        "passes": Passes(evaluate_every=20),
        "random_state": 0,
    } | options


@pytest.mark.parametrize("n_labels", [2, 3, 4])
@pytest.mark.parametrize("C", [0.01, 0.3, 10.0])
def test_chain_reaches_the_optimum(n_labels, C):
    X, y = sequences(n_labels)
    judge = EnumeratedSVM([chain_sample(*pair) for pair in zip(X, y, strict=True)], n_labels, 1)
    best, w = judge.optimum(C)
    model = ChainSVM(C, fit_intercept=False, **tight()).fit(X, y)
    assert model.certificate_ <= 1e-4
    found = weights_of(model)
    assert model.objective_ == pytest.approx(judge.objective(found, C), rel=1e-9)
    assert best * (1 - 1e-6) <= model.objective_ <= best * (1 + 1.1e-4)
    # The objective is 1-strongly convex: this near in value is this near in weights.
    assert 0.5 * np.sum((found - w) ** 2) <= 2e-4 * best + 1e-5


def test_every_bound_is_below_the_optimum():
    X, y = sequences(3)
    judge = EnumeratedSVM([chain_sample(*pair) for pair in zip(X, y, strict=True)], 3, 1)
    best, _ = judge.optimum(1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = ChainSVM(
            1.0, fit_intercept=False, max_iter=25, passes=Passes(evaluate_every=1), tol=1e-9
        ).fit(X, y)
    trace = model.trace_
    assert (trace["bound"] <= best * (1 + 1e-6)).all()
    assert (trace["primal"] >= best * (1 - 1e-6)).all()
    assert np.allclose(
        trace["certificate"],
        1 - np.maximum.accumulate(trace["bound"]) / trace["primal"],
    )


def test_without_transitions_it_is_a_multiclass_svm():
    X, y = sequences(3)
    alone = [(x[None], [], np.zeros(0), [label]) for x, label in
             zip(np.concatenate(X), np.concatenate(y), strict=True)]  # fmt: skip
    best, _ = EnumeratedSVM(alone, 3, 1).optimum(0.5)
    model = ChainSVM(0.5, transitions=False, fit_intercept=False, **tight()).fit(X, y)
    assert model.objective_ == pytest.approx(best, rel=2e-4)
    assert not model.transitions_.any()


@pytest.mark.parametrize("ends", [False, True])
def test_bias_and_ends_are_features_like_others(ends):
    X, y = sequences(3)
    wider = []
    for rows in X:
        n = len(rows)
        first, last = np.eye(n)[:, :1], np.eye(n)[:, -1:]
        wider.append(np.hstack([rows, np.ones((n, 1)), *([first, last] if ends else [])]))
    judge = EnumeratedSVM([chain_sample(*pair) for pair in zip(wider, y, strict=True)], 3, 1)
    best, w = judge.optimum(1.0)
    model = ChainSVM(1.0, end_features=ends, **tight(tol=1e-5)).fit(X, y)
    assert model.objective_ == pytest.approx(best, rel=2e-5)
    nodes = w[: 3 * wider[0].shape[1]].reshape(3, -1)
    assert np.allclose(model.coef_.toarray(), nodes[:, :4], atol=0.02)
    assert np.allclose(model.intercept_, nodes[:, 4], atol=0.02)
    expected = nodes[:, 5:7].T if ends else np.zeros((2, 3))
    assert np.allclose([model.start_, model.end_], expected, atol=0.02)


@pytest.mark.parametrize("length", [1, 2, 5])
def test_decoding_is_exact(length):
    rng = np.random.default_rng(length)
    X, y = sequences(4, seed=3)
    model = ChainSVM(1.0, **tight(tol=0.01)).fit(X, y)
    for _ in range(20):
        rows = 3.0 * rng.normal(size=(length, 4))
        unary = model.decision_function([rows])[0]
        scores = [
            unary[np.arange(length), labels].sum()
            + sum(model.transitions_[a, b] for a, b in itertools.pairwise(labels))
            for labels in labelings(length, 4)
        ]
        (tags,), (score,) = model.predict_with_scores([rows])
        assert score == pytest.approx(max(scores))
        assert tags == labelings(length, 4)[int(np.argmax(scores))].tolist()


# --- other graphs --------------------------------------------------------------------------------


def tree(rng, n_nodes):
    """Each node hangs on an earlier one, by one of two kinds of edges."""
    edges = [(int(rng.integers(2)), int(rng.integers(j)), j) for j in range(1, n_nodes)]
    return edges, rng.uniform(0.2, 2.0, size=len(edges))


def as_sample(X, edges, scale):
    kinds = {}
    scales = {}
    for name, number in (("a", 0), ("b", 1)):
        mine = [k for k, edge in enumerate(edges) if edge[0] == number]
        if mine:
            kinds[name] = np.array([edges[k][1:] for k in mine])
            scales[name] = scale[mine]
    return Sample(X, kinds, scales)


@pytest.mark.parametrize("C", [0.1, 2.0])
def test_trees_with_two_templates_and_scales_reach_the_optimum(C):
    rng = np.random.default_rng(5)
    samples, labels, judged = [], [], []
    for n_nodes in (1, 3, 4, 5, 4):
        X, truth = rng.normal(size=(n_nodes, 3)), rng.integers(3, size=n_nodes)
        edges, scale = tree(rng, n_nodes)
        samples.append(as_sample(X, edges, scale))
        labels.append(truth)
        judged.append((X, edges, scale, truth))
    judge = EnumeratedSVM(judged, 3, 2)
    best, w = judge.optimum(C)
    model = StructuralSVM(C, fit_intercept=False, **tight(max_iter=6000)).fit(samples, labels)
    assert model.templates_ == ("a", "b")
    tables = [model.tables_[name].ravel() for name in model.templates_]
    found = np.concatenate([model.coef_.toarray().ravel(), *tables])
    assert model.objective_ == pytest.approx(judge.objective(found, C), rel=1e-6)
    assert model.objective_ == pytest.approx(best, rel=2e-4)
    assert 0.5 * np.sum((found - w) ** 2) <= 3e-4 * best + 1e-5


def factor_trees(seed):
    """Samples without cycles: pairs, triples and quadruples that share a node."""
    rng = np.random.default_rng(seed)
    shapes = [
        (4, {"b": [[0, 1, 2]], "a": [[2, 3]]}),
        (5, {"b": [[0, 1, 2], [2, 3, 4]]}),
        (4, {"c": [[3, 1, 0, 2]]}),
        (5, {"c": [[0, 1, 2, 3]], "a": [[4, 0]]}),
        (2, {}),
    ]
    samples, labels, judged = [], [], []
    for n_nodes, scopes in shapes:
        X, truth = rng.normal(size=(n_nodes, 3)), rng.integers(2, size=n_nodes)
        scale = {name: rng.uniform(0.3, 2.0, size=len(found)) for name, found in scopes.items()}
        samples.append(Sample(X, scopes, scale))
        labels.append(truth)
        edges = [("abc".index(n), *nodes) for n, found in scopes.items() for nodes in found]
        scales = np.concatenate([np.zeros(0), *(scale[name] for name in scopes)])
        judged.append((X, edges, scales, truth))
    return samples, labels, EnumeratedSVM(judged, 2, 3, arities=[2, 3, 4])


@pytest.mark.parametrize("solver", ["block_descent", "frank_wolfe"])
@pytest.mark.parametrize("C", [0.1, 2.0])
def test_factors_of_three_and_four_nodes_reach_the_optimum(C, solver):
    samples, labels, judge = factor_trees(3)
    best, w = judge.optimum(C)
    model = StructuralSVM(C, fit_intercept=False, solver=solver, **tight(max_iter=6000))
    model.fit(samples, labels)
    assert [table.ndim for table in model.tables_.values()] == [2, 3, 4]
    tables = [table.ravel() for table in model.tables_.values()]
    found = np.concatenate([model.coef_.toarray().ravel(), *tables])
    assert model.objective_ == pytest.approx(judge.objective(found, C), rel=1e-6)
    assert model.objective_ == pytest.approx(best, rel=2e-4)
    assert np.nanmax(model.trace_["bound"]) <= best * (1 + 1e-6)
    assert 0.5 * np.sum((found - w) ** 2) <= 3e-4 * best + 1e-5


def test_a_chain_is_a_graph():
    X, y = sequences(3)
    chain = ChainSVM(1.0, **tight()).fit(X, y)
    graph = StructuralSVM(1.0, **tight()).fit([Sample.chain(rows) for rows in X], y)
    assert graph.objective_ == pytest.approx(chain.objective_, rel=2e-4)
    assert np.allclose(graph.tables_["next"], chain.transitions_, atol=0.02)
    assert graph.predict([Sample.chain(rows) for rows in X]) == chain.predict(X)


def test_on_cycles_the_relaxed_optimum_is_no_less_than_the_exact_one():
    rng = np.random.default_rng(1)
    samples, labels, judged = [], [], []
    for _ in range(4):
        pixels, truth = rng.normal(size=(2, 3, 2)), rng.integers(2, size=(2, 3))
        sample = Sample.grid(pixels)
        pairs = [(0, *pair) for pair in sample.edges["horizontal"].tolist()]
        pairs += [(1, *pair) for pair in sample.edges["vertical"].tolist()]
        samples.append(sample)
        labels.append(truth)
        judged.append((sample.features, pairs, np.ones(len(pairs)), truth.ravel()))
    judge = EnumeratedSVM(judged, 2, 2)
    best, _ = judge.optimum(0.5)
    model = StructuralSVM(0.5, fit_intercept=False, **tight(tol=1e-3)).fit(samples, labels)
    tables = [model.tables_[name].ravel() for name in ("horizontal", "vertical")]
    found = np.concatenate([model.coef_.toarray().ravel(), *tables])
    assert best * (1 - 1e-6) <= judge.objective(found, 0.5) <= model.objective_ * (1 + 1e-6)
    assert model.objective_ <= best * 1.05  # the relaxation is nearly tight here
    assert model.certificate_ <= 1e-3
    bounds = model.trace_["bound"]
    assert np.nanmax(bounds) <= model.objective_ * (1 + 1e-9)
    assert np.isfinite(bounds[-1])


@pytest.mark.parametrize(
    "options",
    [
        {"solver": "frank_wolfe"},
        {"passes": Passes(20, label_parts=2)},
        {"average": False},
        {"passes": Passes(20, rho=5.0)},
        {"passes": Passes(20, eta=0.1)},
        {"passes": Passes(20, full_search=True)},
        {"passes": Passes(20, factors="violating")},
        {"passes": Passes(20, factors="violating", factor_parts=3)},
        {"passes": Passes(20, factors="most_violating")},
    ],
    ids=str,
)
def test_every_way_leads_to_the_same_optimum(options):
    X, y = sequences(4)
    judge = EnumeratedSVM([chain_sample(*pair) for pair in zip(X, y, strict=True)], 4, 1)
    best, _ = judge.optimum(0.5)
    model = ChainSVM(0.5, fit_intercept=False, **tight(tol=1e-3, **options)).fit(X, y)
    assert model.certificate_ <= 1e-3
    assert model.objective_ == pytest.approx(judge.objective(weights_of(model), 0.5), rel=1e-9)
    assert best * (1 - 1e-6) <= model.objective_ <= best * (1 + 1.1e-3)


def costs_of(n_labels, seed=0):
    costs = np.random.default_rng(seed).uniform(0.2, 3.0, size=(n_labels, n_labels))
    np.fill_diagonal(costs, 0.0)
    return costs


@pytest.mark.parametrize("solver", ["block_descent", "frank_wolfe"])
@pytest.mark.parametrize("label_parts", [1, 2])
def test_any_costs_of_labels_reach_the_optimum(solver, label_parts):
    X, y = sequences(3)
    costs = costs_of(3)
    samples = [chain_sample(*pair) for pair in zip(X, y, strict=True)]
    judge = EnumeratedSVM(samples, 3, 1, costs=costs)
    best, w = judge.optimum(0.5)
    options = tight(solver=solver, passes=Passes(20, label_parts=label_parts))
    model = ChainSVM(0.5, fit_intercept=False, **options).fit(X, y, costs=costs)
    assert model.objective_ == pytest.approx(judge.objective(weights_of(model), 0.5), rel=1e-9)
    assert best * (1 - 1e-6) <= model.objective_ <= best * (1 + 1.1e-4)
    assert np.nanmax(model.trace_["bound"]) <= best * (1 + 1e-6)
    assert 0.5 * np.sum((weights_of(model) - w) ** 2) <= 2e-4 * best + 1e-5


def test_costs_of_one_are_no_costs():
    X, y = sequences(3)
    plain = ChainSVM(0.5, random_state=0).fit(X, y)
    ones = ChainSVM(0.5, random_state=0).fit(X, y, costs=1.0 - np.eye(3))
    assert np.allclose(ones.transitions_, plain.transitions_, atol=1e-9)


def trees_with_edge_features(seed, sparse=False):
    """Trees of two templates: "a" has three features, "b" has a scale alone."""
    rng = np.random.default_rng(seed)
    samples, labels, judged = [], [], []
    for n_nodes in (1, 3, 4, 5, 4):
        X, truth = rng.normal(size=(n_nodes, 2)), rng.integers(3, size=n_nodes)
        edges, scale = tree(rng, n_nodes)
        plain = as_sample(X, edges, scale)
        z = rng.normal(size=(len(edges), 3)) * (rng.random((len(edges), 3)) < 0.7)
        mine = [k for k, edge in enumerate(edges) if edge[0] == 0]
        features = {"a": sp.csr_matrix(z[mine]) if sparse else z[mine]} if mine else {}
        samples.append(Sample(X, plain.edges, plain.scale, features))
        labels.append(truth)
        scales = [
            np.concatenate([[s], z[k]]) if edge[0] == 0 else np.array([s])
            for k, (edge, s) in enumerate(zip(edges, scale, strict=True))
        ]
        judged.append((X, edges, scales, truth))
    return samples, labels, judged


def weights_of_graph(model):
    tables = []
    for name in model.templates_:
        tables.append(model.tables_[name].ravel())
        if name in model.edge_coef_:
            tables.append(model.edge_coef_[name].ravel())
    return np.concatenate([model.coef_.toarray().ravel(), *tables])


@pytest.mark.parametrize("factors", ["all", "violating"])
@pytest.mark.parametrize("C", [0.1, 2.0])
def test_features_of_edges_reach_the_optimum(C, factors):
    samples, labels, judged = trees_with_edge_features(2)
    costs = costs_of(3, 1)
    judge = EnumeratedSVM(judged, 3, 2, widths=[4, 1], costs=costs)
    best, w = judge.optimum(C)
    options = tight(max_iter=8000, passes=Passes(20, factors=factors))
    model = StructuralSVM(C, fit_intercept=False, **options).fit(samples, labels, costs=costs)
    found = weights_of_graph(model)
    assert model.edge_coef_["a"].shape == (3, 3, 3)
    assert model.objective_ == pytest.approx(judge.objective(found, C), rel=1e-6)
    assert model.objective_ == pytest.approx(best, rel=2e-4)
    assert np.nanmax(model.trace_["bound"]) <= best * (1 + 1e-6)
    assert 0.5 * np.sum((found - w) ** 2) <= 3e-4 * best + 1e-5


def test_sparse_features_of_edges_are_those_of_an_array():
    dense, labels, _ = trees_with_edge_features(2)
    sparse, _, _ = trees_with_edge_features(2, sparse=True)
    models = [
        StructuralSVM(max_iter=20, random_state=0).fit(found, labels) for found in (dense, sparse)
    ]
    assert np.array_equal(*(model.edge_coef_["a"] for model in models))


def test_features_of_factors_of_three_nodes_reach_the_optimum():
    rng = np.random.default_rng(4)
    samples, labels, judged = [], [], []
    for _ in range(4):
        X, truth, z = rng.normal(size=(4, 2)), rng.integers(2, size=4), rng.normal(size=(1, 2))
        edges = {"t": [[2, 0, 1]], "u": [[1, 3]]}
        samples.append(Sample(X, edges, edge_features={"t": z}))
        labels.append(truth)
        scales = [np.concatenate([[1.0], z[0]]), np.ones(1)]
        judged.append((X, [(0, 2, 0, 1), (1, 1, 3)], scales, truth))
    best, w = EnumeratedSVM(judged, 2, 2, arities=[3, 2], widths=[3, 1]).optimum(1.0)
    model = StructuralSVM(1.0, fit_intercept=False, **tight()).fit(samples, labels)
    assert model.objective_ == pytest.approx(best, rel=2e-4)
    assert 0.5 * np.sum((weights_of_graph(model) - w) ** 2) <= 3e-4 * best + 1e-5


@pytest.mark.parametrize("factors", ["violating", "most_violating"])
def test_active_factors_reach_the_optimum_with_scales_and_larger_factors(factors):
    samples, labels, judge = factor_trees(3)
    best, _ = judge.optimum(0.5)
    passes = Passes(20, factors=factors, factor_parts=2)
    model = StructuralSVM(0.5, fit_intercept=False, **tight(max_iter=6000, passes=passes))
    model.fit(samples, labels)
    assert model.objective_ == pytest.approx(best, rel=2e-4)
    assert np.nanmax(model.trace_["bound"]) <= best * (1 + 1e-6)


def test_a_weight_of_two_is_the_sequence_twice():
    X, y = sequences(3)
    weight = np.array([2.0, 1.0, 0.0, 1.0, 1.0])
    copies = [i for i, n in enumerate(weight) for _ in range(int(n))]
    judge = EnumeratedSVM([chain_sample(X[i], y[i]) for i in copies], 3, 1)
    best, _ = judge.optimum(0.5)
    model = ChainSVM(0.5, fit_intercept=False, **tight()).fit(X, y, sample_weight=weight)
    assert model.objective_ == pytest.approx(judge.objective(weights_of(model), 0.5), rel=1e-9)
    assert best * (1 - 1e-6) <= model.objective_ <= best * (1 + 1.1e-4)
