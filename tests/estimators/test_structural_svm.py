"""StructuralSVM as an estimator: grids, templates, refusals, saving.

scikit-learn's check_estimator does not apply: a sample is a graph and not a row.
"""

import numpy as np
import pytest
import scipy.sparse as sp

from sublearn import load
from sublearn.errors import ParameterError
from sublearn.structured import Passes, Sample, StructuralSVM


def stripes(n_samples=12, shape=(5, 6), seed=0):
    """Images whose columns have one colour, seen through noise."""
    rng = np.random.default_rng(seed)
    samples, labels = [], []
    for _ in range(n_samples):
        truth = np.repeat(rng.integers(3, size=(1, shape[1])), shape[0], axis=0)
        pixels = np.eye(3)[truth] + 0.9 * rng.normal(size=(*shape, 3))
        samples.append(Sample.grid(pixels))
        labels.append(np.array(["red", "green", "blue"])[truth])
    return samples, labels


def svm(**options):
    return StructuralSVM(**({"C": 0.1, "random_state": 0, "tol": 0.05, "max_iter": 300} | options))


@pytest.fixture(scope="module")
def images():
    return stripes()


@pytest.fixture(scope="module")
def fitted(images):
    return svm().fit(*images)


def test_learns_which_neighbours_agree(fitted):
    samples, labels = stripes(6, seed=1)
    alone = np.concatenate([s.argmax(axis=1) for s in fitted.decision_function(samples)])
    truth = np.concatenate([grid.ravel() for grid in labels])
    accuracy = fitted.score(samples, labels)
    assert accuracy > np.mean(fitted.classes_[alone] == truth) + 0.05
    vertical = fitted.tables_["vertical"]
    assert np.trace(vertical) > np.trace(fitted.tables_["horizontal"])
    assert (
        np.diag(vertical) > vertical.max(axis=1, where=~np.eye(3, dtype=bool), initial=-9)
    ).all()
    found = fitted.predict(samples)
    assert accuracy == np.mean(np.concatenate(found) == truth)


def test_sparse_features_give_the_same_model(images, fitted):
    samples = [Sample(sp.csr_matrix(s.features), s.edges) for s in images[0]]
    model = svm().fit(samples, images[1])
    assert (model._weights != fitted._weights).nnz == 0
    assert model.predict(images[0]) == fitted.predict(samples)


def test_a_scale_of_one_is_no_scale(images, fitted):
    samples = [Sample(s.features, s.edges, {"vertical": 1.0}) for s in images[0]]
    assert np.array_equal(svm().fit(samples, images[1]).tables_["vertical"],
                          fitted.tables_["vertical"])  # fmt: skip


def test_a_scale_of_zero_is_no_edge(images):
    samples, labels = images
    switched_off = [Sample(s.features, s.edges, {"vertical": 0.0}) for s in samples]
    model = svm().fit(switched_off, labels)
    assert not model.tables_["vertical"].any()
    assert model.tables_["horizontal"].any()


def test_samples_may_lack_templates_and_edges():
    samples = [
        Sample(np.array([[1.0], [-1.0]]), {"a": [[0, 1]]}),
        Sample(np.array([[1.0]])),
        Sample(np.array([[-1.0], [1.0]]), {"b": [[1, 0]], "a": []}),
    ]
    model = svm(C=1.0).fit(samples, [["p", "q"], ["p"], ["q", "p"]])
    assert model.templates_ == ("a", "b")
    assert model.predict(samples) == [["p", "q"], ["p"], ["q", "p"]]
    assert model.certificate_ <= 0.05


def test_nodes_without_any_edge_are_a_multiclass_svm():
    samples = [Sample(np.array([[1.0], [-1.0]]))]
    model = svm(C=1.0).fit(samples, [["p", "q"]])
    assert model.tables_ == {}
    assert model.predict(samples) == [["p", "q"]]


def test_early_stopping_keeps_the_best(images):
    model = svm(C=1.0, early_stopping=True, validation_fraction=0.3).fit(*images)
    held_out = model.trace_["held_out"]
    assert model.held_out_accuracy_ == held_out.max()


def two(edges=None, scale=None, **options):
    """A sample of two nodes."""
    return Sample(np.eye(2), edges or {}, scale or {}, **options)


BAD_SAMPLES = {
    "X must be a list of Sample": two(),
    "X must have at least one Sample": [],
    r"X\[1\] must be a Sample, got": [two(), np.eye(2)],
    r"X\[0\]\.features must have shape": [Sample(np.zeros(3))],
    "at least one node": [Sample(np.zeros((0, 3)))],
    r"one number of features, got 2 and 3 \(X\[1\]\)": [two(), Sample(np.eye(3))],
    "must have 2 to 4 nodes for each factor, got 5": [two({"t": [[0, 1, 2, 3, 4]]})],
    "must have 2 to 4 nodes for each factor, got 1": [two({"t": [[0]]})],
    "must have as many nodes in each row": [two({"t": [[0, 1], [0]]})],
    r"must connect different nodes, got \[0, 1, 0\]": [two({"t": [[0, 1, 0]]})],
    r"X\[1\].edges\['t'\] must have 2 nodes for each factor, as in samples before, got 3": [
        two({"t": [[0, 1]]}),
        Sample(np.eye(3, 2), {"t": [[0, 1, 2]]}),
    ],
    r"edges\['t'\] must be integers of shape": [two({"t": [0, 1]})],
    r"edges\['t'\] must be integers": [two({"t": [[0.0, 1.0]]})],
    r"edges\['t'\] must be nodes in 0\.\.1, got 0 to 2": [two({"t": [[0, 2]]})],
    r"edges\['t'\] must connect different nodes, got \[1, 1\]": [two({"t": [[1, 1]]})],
    "edges must be a mapping from the name": [two([[0, 1]])],
    r"mapping from the name of a template to an array, got \{3": [two({3: [[0, 1]]})],
    "edge_features must be a mapping from the name": [two(edge_features=np.eye(2))],
    r"edge_features must be of templates in edges, got 'u'": [
        two({"t": [[0, 1]]}, edge_features={"u": [[1.0]]})
    ],
    r"edge_features\['t'\] must have shape \(n_edges, n\), got": [
        two({"t": [[0, 1]]}, edge_features={"t": [1.0]})
    ],
    r"edge_features\['t'\] must have a row for each of 1 edges and 2 columns, got \(2, 2\)": [
        two({"t": [[0, 1]]}, edge_features={"t": np.eye(2)})
    ],
    r"edge_features\['t'\] must be finite": [two({"t": [[0, 1]]}, edge_features={"t": [[np.inf]]})],
    r"edge_features\['t'\] must hold real numbers, got complex": [
        two({"t": [[0, 1]]}, edge_features={"t": [[1j]]})
    ],
    r"edge_features\['t'\] must hold numbers": [
        two({"t": [[0, 1]]}, edge_features={"t": [["near"]]})
    ],
    r"X\[1\]\.edge_features\['t'\] must be given, as in other samples, got none": [
        two({"t": [[0, 1]]}, edge_features={"t": [[1.0]]}),
        two({"t": [[0, 1]]}),
    ],
    r"scale must be of templates in edges, got 'u'": [two({"t": [[0, 1]]}, {"u": 1.0})],
    r"scale\['t'\] must be a number or have one for each of 1": [
        two({"t": [[0, 1]]}, {"t": [1.0, 2.0]})
    ],
    r"scale\['t'\] must be finite and not negative": [two({"t": [[0, 1]]}, {"t": -1.0})],
    "contains NaN": [Sample(np.full((2, 2), np.nan))],
}


@pytest.mark.parametrize("sentence", BAD_SAMPLES)
def test_refuses_bad_samples_by_a_sentence(sentence):
    samples = BAD_SAMPLES[sentence]
    n_samples = len(samples) if isinstance(samples, list) else 1
    with pytest.raises(ValueError, match=sentence):
        StructuralSVM().fit(samples, [["a", "b"]] * n_samples)


@pytest.mark.parametrize(
    ("labels", "sentence"),
    [
        ([["a"]], r"y\[0\] must have 2 labels, got 1"),
        ([["a", "b"], ["a"]], "y must have a list of labels for each of 1 samples, got 2"),
        (["ab"], r"y\[0\] must be a list of labels, got 'ab'"),
        (3, "y must have a list of labels for each of 1 samples, got 3"),
        ([["a", "a"]], "y needs at least 2 different labels"),
        ([["a", 1]], "y must hold labels of one type"),
    ],
)
def test_refuses_bad_labels_by_a_sentence(labels, sentence):
    with pytest.raises(ValueError, match=sentence):
        StructuralSVM().fit([two()], labels)


def test_transitions_of_several_kinds_have_tables_of_their_own():
    rng = np.random.default_rng(0)
    samples, labels = [], []
    for _ in range(30):  # the label changes after a comma, and the first alone can be seen
        comma = rng.random(7) < 0.4
        y = (rng.integers(2) + np.concatenate([[0], np.cumsum(comma)])) % 2
        X = np.zeros((8, 2))
        X[0, y[0]] = 1.0
        pairs = np.column_stack([np.arange(7), np.arange(1, 8)])
        samples.append(Sample(X, {"next": pairs[~comma], "comma": pairs[comma]}))
        labels.append(y)
    model = StructuralSVM(max_iter=100, passes=Passes(evaluate_every=0), random_state=0)
    model.fit(samples[:20], labels[:20])
    assert model.score(samples[20:], labels[20:]) == 1.0
    assert (np.diag(model.tables_["next"]) > 1.0).all()
    assert (np.diag(model.tables_["comma"]) < -1.0).all()


def contrasts(n_samples=8, seed=0):
    """Chains in which the label changes where the edge says so; the first node alone is seen."""
    rng = np.random.default_rng(seed)
    samples, labels = [], []
    for _ in range(n_samples):
        change = rng.random(5) < 0.5
        y = (rng.integers(2) + np.concatenate([[0], np.cumsum(change)])) % 2
        X = np.zeros((6, 2))
        X[0, y[0]] = 1.0
        pairs = np.column_stack([np.arange(5), np.arange(1, 6)])
        samples.append(Sample(X, {"next": pairs}, edge_features={"next": change[:, None] * 1.0}))
        labels.append(y)
    return samples, labels


def test_features_of_edges_tell_what_tables_cannot(tmp_path):
    model = svm(C=1.0, max_iter=60, tol=None).fit(*contrasts(30))
    new, expected = contrasts(10, seed=1)
    assert model.score(new, expected) == 1.0
    table, change = model.tables_["next"], model.edge_coef_["next"][0]
    assert np.trace(table) > np.trace(table[::-1]) + 1.0
    assert np.trace(change) < np.trace(change[::-1]) - 1.0
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.predict(new) == model.predict(new)
    assert np.array_equal(again.edge_coef_["next"], model.edge_coef_["next"])


def test_features_of_edges_are_asked_for_again_in_predict():
    model = svm(C=1.0, max_iter=5, tol=None).fit(*contrasts())
    (sample,), _ = contrasts(1)
    with pytest.raises(ValueError, match=r"edge_features\['next'\] must be given, as in other"):
        model.predict([Sample(sample.features, sample.edges)])
    with pytest.raises(ValueError, match="a row for each of 5 edges and 1 columns, got"):
        model.predict([Sample(sample.features, sample.edges, {}, {"next": np.zeros((5, 2))})])
    plain = svm(max_iter=5, tol=None).fit([two({"t": [[0, 1]]})], [["a", "b"]])
    with pytest.raises(ValueError, match="templates that had features in the fit, got 't'"):
        plain.predict([two({"t": [[0, 1]]}, edge_features={"t": [[1.0]]})])


def test_dearer_mistakes_are_made_less_often():
    samples, labels = stripes(8)
    found = {}
    for price in (0.3, 3.0):
        costs = np.ones((3, 3)) - np.eye(3)
        costs[2] *= price  # of "red" pixels, in sorted order
        model = svm(C=0.01, max_iter=30, tol=None).fit(samples, labels, costs=costs)
        found[price] = sum(labels.count("red") for labels in model.predict(samples))
    assert found[3.0] > found[0.3]


@pytest.mark.parametrize(
    ("costs", "sentence"),
    [
        ([[0, 1]], r"costs must have shape \(2, 2\), got \(1, 2\)"),
        ([[0, -1], [1, 0]], "costs must be finite and not negative"),
        ([[0, np.nan], [1, 0]], "costs must be finite and not negative"),
        ([[1, 1], [1, 0]], "costs must be 0 where the label is the true one"),
        ([[0, 0], [0, 0]], "costs must have a positive entry, got zeros"),
        ("all", "costs must be a table of numbers, got 'all'"),
    ],
)
def test_refuses_bad_costs_by_a_sentence(costs, sentence):
    with pytest.raises(ValueError, match=sentence):
        StructuralSVM().fit([two()], [["a", "b"]], costs=costs)


def test_refuses_parts_of_factors_that_are_all_visited():
    with pytest.raises(ParameterError, match=r"Passes\.factor_parts must be 1 where factors is"):
        Passes(factor_parts=2)


def test_active_factors_are_fewer_than_all_and_end_at_the_same_model(images):
    ways = [Passes(5, factors=factors) for factors in ("all", "violating")]
    every, active = (svm(tol=0.02, passes=passes).fit(*images) for passes in ways)
    n_factors = sum(len(edges) for sample in images[0] for edges in sample.edges.values())
    assert (every.trace_["n_factors"] == n_factors).all()
    assert active.trace_["n_factors"][0] < n_factors
    assert (np.diff(active.trace_["n_factors"]) >= 0).all()
    assert active.objective_ == pytest.approx(every.objective_, rel=0.02)


def test_tables_of_too_many_cells_are_refused():
    sample = Sample(np.eye(200, 2), {"t": [[0, 1, 2, 3]]})
    with pytest.raises(ValueError, match="at most 100,000,000 cells, got 200 labels at 4 nodes"):
        StructuralSVM().fit([sample], [list(range(200))])


def majority(n_samples, seed):
    """Stars of three leaves: the middle has the label of most leaves, which no pair tells."""
    rng = np.random.default_rng(seed)
    leaves = rng.integers(2, size=(n_samples, 3))
    truth = np.column_stack([leaves.sum(axis=1) >= 2, leaves]).astype(int)
    samples = []
    for labels in truth:
        X = np.zeros((4, 2))
        X[np.arange(1, 4), labels[1:]] = 1.0  # the middle has no feature
        samples.append(Sample(X, {"vote": [[0, 1, 2, 3]]}))
    return samples, truth


def test_factors_of_four_nodes_learn_what_pairs_cannot():
    samples, truth = majority(40, 0)
    model = StructuralSVM(C=1.0, max_iter=300, tol=0.02, random_state=0).fit(samples, truth)
    assert model.tables_["vote"].shape == (2, 2, 2, 2)
    new, expected = majority(20, 1)
    assert model.score(new, expected) == 1.0


def test_refuses_unknown_templates_and_other_features(fitted):
    with pytest.raises(ValueError, match=r"templates of the fit \('horizontal', 'vertical'\), got"):
        fitted.predict([Sample(np.zeros((2, 3)), {"diagonal": [[0, 1]]})])
    with pytest.raises(ValueError, match="features, but StructuralSVM is expecting 3"):
        fitted.predict([two()])
    with pytest.raises(ParameterError, match=r"StructuralSVM\.map_time_limit must be"):
        StructuralSVM(map_time_limit=0.0).fit([two()], [["a", "b"]])
    with pytest.raises(ValueError, match=r"Sample.grid: features must have shape"):
        Sample.grid(np.zeros((2, 2)))
    with pytest.raises(
        ValueError, match="X must have at least 2 samples for early_stopping, got 1"
    ):
        StructuralSVM(early_stopping=True).fit([two()], [["a", "b"]])
