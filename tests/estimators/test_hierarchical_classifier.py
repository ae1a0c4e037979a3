"""HiClass: nodes learned apart, paths predicted top down, and everything a user may pass."""

import functools
import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.svm import LinearSVC
from taxonomy_rows import FORMS, PATHS, TAXONOMY, single_rows

import sublearn
from sublearn.extreme import PPDSparseClassifier
from sublearn.hierarchy import HierarchicalClassifier, Taxonomy
from sublearn.hierarchy.cost_model import choose_solver, predicted_seconds
from sublearn.hierarchy.nodes import TOP, collect_nodes
from sublearn.hierarchy.paths import best_leaves, path_probabilities
from sublearn.linear import SparseLogisticRegression
from sublearn.optim import minimise_linear

STRATEGIES = ["top_down", "flat", "global", "blend"]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_finds_the_labels(strategy):
    X, y = single_rows()
    model = HierarchicalClassifier(TAXONOMY, strategy=strategy).fit(X, y)
    X_new, y_new = single_rows(seed=1)
    assert model.score(X_new, y_new) > 0.85
    assert model.certificate_ <= model.tol
    assert model.counts_[TAXONOMY.position("a")] == sum(label.startswith("a") for label in y)


def test_a_node_is_the_optimum_on_the_rows_of_its_parent():
    X, y = single_rows()
    C = 0.3
    model = HierarchicalClassifier(TAXONOMY, C=C, tol=1e-9).fit(X, y)
    rows = np.flatnonzero([label.startswith("a") for label in y])
    side = np.where([label == "a.y" for label in y[rows]], 1.0, -1.0)
    with_ones = np.hstack([X[rows], np.ones((len(rows), 1))])
    found = minimise_linear(with_ones, side, l1=1 / (C * len(rows)), tol=1e-10, solver="lhac")
    at = TAXONOMY.position("a.y")
    np.testing.assert_allclose(model.coef_[[at]].toarray()[0], found.x[:-1], atol=1e-5)
    assert model.intercept_[at] == pytest.approx(found.x[-1], abs=1e-5)


@pytest.mark.parametrize("solver", ["newton", "lhac", "interior_point", ["cd1", "newton"]])
def test_every_solver_finds_the_same_model(solver):
    X, y = single_rows(120)
    plain = HierarchicalClassifier(TAXONOMY, tol=1e-8).fit(X, y)
    other = clone(plain).set_params(solver=solver).fit(X, y)
    np.testing.assert_allclose(other.coef_.toarray(), plain.coef_.toarray(), atol=1e-3)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_two_classes_are_told_apart(strategy):
    X, y = single_rows(100, labels=["c", "b.w"])
    assert HierarchicalClassifier(strategy=strategy).fit(X, y).score(X, y) > 0.95


def test_the_solver_can_be_set_for_each_level():
    X, y = single_rows(120)
    model = HierarchicalClassifier(TAXONOMY, solver=["lhac", "newton"]).fit(X, y)
    trace = model.trace_
    assert set(trace["solver"][trace["level"] == 0]) == {2}
    assert set(trace["solver"][trace["level"] > 0]) == {1}


def test_the_cost_model_chooses_what_it_predicts_to_be_fastest():
    sizes = [(n, d, n * d) for n in (20, 1000, 100_000) for d in (5, 500)]
    for size in sizes:
        times = {s: predicted_seconds(s, size) for s in ("newton", "lhac", "interior_point")}
        fastest = min(times, key=times.get)
        assert choose_solver(size) == {"newton": "auto"}.get(fastest, fastest)


@pytest.mark.parametrize("solver", ["newton", "lhac", "interior_point"])
def test_no_size_makes_a_solver_look_cheaper_than_a_smaller_one(solver):
    sizes = [1, 10, 10**3, 10**6, 10**9]
    for grows in range(3):
        nodes = [tuple(n if k == grows else 50 for k in range(3)) for n in sizes]
        seconds = [predicted_seconds(solver, node) for node in nodes]
        assert (np.diff(seconds) >= 0).all()
        assert seconds[0] > 0


def test_huge_nodes_are_left_to_coordinate_descent():
    for size in [(10**6, 10**6, 10**8), (10**7, 50, 10**8), (100, 10**7, 10**8)]:
        assert choose_solver(size) == "auto"


NEVER = "rows have labels above others, such as 'a.x', which leaf='mandatory' never predicts"


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("leaf", ["auto", "mandatory", "optional"])
@pytest.mark.filterwarnings(f"ignore:.*{NEVER}")
def test_probabilities_add_up_along_the_tree(strategy, leaf):
    if (strategy, leaf) == ("blend", "optional"):
        return
    X, y = single_rows(labels=[*PATHS, "a.x"])
    model = HierarchicalClassifier(TAXONOMY, strategy=strategy, leaf=leaf).fit(X, y)
    through = model.path_proba(X)
    np.testing.assert_allclose(through[:, TAXONOMY.roots].sum(axis=1), 1)
    for name in ("a", "b"):
        below = [TAXONOMY.position(child) for child in TAXONOMY.children(name)]
        left = through[:, TAXONOMY.position(name)] - through[:, below].sum(axis=1)
        assert (left >= -1e-9).all()
        assert leaf == "optional" or (left < 1e-9).all()
    ends = model.predict_proba(X)
    if leaf == "auto":
        assert ends[y == "a.x", model.classes_.tolist().index("a.x")].mean() > 0.4
    np.testing.assert_allclose(ends.sum(axis=1), 1)
    if leaf == "mandatory" and strategy == "top_down":
        assert (ends[:, model.classes_.tolist().index("a.x")] == 0).all()
    labels, best = model.predict_top_k(X, k=2)
    np.testing.assert_allclose(best[:, 0], ends.max(axis=1))
    assert labels.shape == (len(y), 2)


def by_hand(model, X):
    """The leaf of the largest product, from the probabilities of all of them."""
    return model.classes_[model.predict_proba(X).argmax(axis=1)]


@pytest.mark.parametrize("estimator", [None, RandomForestClassifier(20, random_state=0)])
def test_the_best_path_has_the_largest_product(estimator):
    X, y = single_rows(120)
    noisy = X + 0.5 * np.random.default_rng(2).normal(size=X.shape)
    model = HierarchicalClassifier(TAXONOMY, estimator=estimator, C=0.3).fit(X, y)
    best = model.predict(noisy)
    np.testing.assert_array_equal(best, by_hand(model, noisy))
    greedy = model.set_params(decoding="greedy").predict(noisy)
    assert (greedy != best).any()  # a step that looks best need not lead to the best leaf
    roots, is_forest = TAXONOMY.roots, estimator is not None
    scores = model.node_models_[-1].predict_proba(noisy) if is_forest else noisy @ model.coef_.T
    scores = scores if is_forest else (scores + model.intercept_)[:, roots]
    firsts = TAXONOMY.names[roots][scores.argmax(axis=1)]
    assert [end.split(".")[0] for end in greedy] == firsts.tolist()


def reached_nodes(tree, labels):
    return [part.node for part in collect_nodes(tree, np.array(labels), is_optional=False)]


def test_a_path_counts_what_its_steps_say_against_all_siblings():
    tree = Taxonomy([-1, -1, 0, 0, 1])  # the children of 0 suit nobody, the only one of 1 is sure
    nodes = reached_nodes(tree, [2, 3, 4])
    chances = {TOP: [0.6, 0.5], 0: [0.1, 0.02], 1: [1.0]}

    def ask(node, rows):
        return np.log(np.tile(chances[node.label], (len(rows), 1))), np.full(len(rows), -np.inf)

    through, ends = path_probabilities(nodes, ask, 2, tree.n_labels)
    top, below = np.sqrt(1.1), np.sqrt(0.12)
    steps = np.array([0.6 / top * 0.1 / below, 0.6 / top * 0.02 / below, 0.5 / top])
    np.testing.assert_allclose(ends[0, [2, 3, 4]], steps / steps.sum())
    np.testing.assert_allclose(through[0, [0, 1]], ends[0, [2, 3, 4]] @ [[1, 0], [1, 0], [0, 1]])
    assert best_leaves(nodes, ask, 2, tree.n_labels).tolist() == [4, 4]


def test_a_node_is_asked_only_where_it_can_still_win():
    tree = Taxonomy([-1, -1, 0, 0, 1, 1])
    nodes = reached_nodes(tree, [2, 3, 4, 5])
    asked = []

    def ask(node, rows):
        asked.append((node.label, len(rows)))
        sure = [0.9, 0.1] if node.label == TOP else [0.5, 0.5]
        return np.log(np.tile(sure, (len(rows), 1))), np.full(len(rows), -np.inf)

    assert best_leaves(nodes, ask, 3, tree.n_labels).tolist() == [2, 2, 2]
    assert (1, 3) not in asked  # 0.1 is below the 0.45 that is known


def test_paths_lead_to_the_predictions():
    X, y = single_rows()
    model = HierarchicalClassifier(TAXONOMY).fit(X, y)
    for path, end in zip(model.predict_paths(X), model.predict(X), strict=True):
        assert path[-1] == end
        assert path[:-1] == TAXONOMY.ancestors(end)


def test_optional_leaves_end_where_a_threshold_says():
    X, y = single_rows()
    model = HierarchicalClassifier(TAXONOMY, leaf="optional", threshold=0.0).fit(X, y)
    leaves = set(TAXONOMY.names[TAXONOMY.leaves])
    assert set(model.predict(X)) <= leaves
    above = model.set_params(threshold=1.0).predict(X)
    assert set(above) <= {"a", "b", "c"}
    some = model.set_params(threshold={"a.x": 1.0}).predict(X)
    assert "a" in some
    assert not [name for name in some if name.startswith("a.x")]
    with pytest.raises(ValueError, match="must name labels of the taxonomy, got 'nowhere'"):
        model.set_params(threshold={"nowhere": 1.0}).predict(X)


def test_rows_labelled_at_inner_labels_end_there():
    X, y = single_rows(400, labels=["a.x", "a.x.p", "a.x.q", "b.z", "b.w"])
    model = HierarchicalClassifier(TAXONOMY, leaf="optional").fit(X, y)
    assert model.score(X, y) > 0.8
    assert "a.x" in model.predict(X)
    with pytest.warns(UserWarning, match=f"of 400 {NEVER}; leaf='auto' does"):
        mandatory = HierarchicalClassifier(TAXONOMY, leaf="mandatory").fit(X, y)
    assert "a.x" not in mandatory.predict(X)
    assert mandatory.score(X[y != "a.x"], y[y != "a.x"]) > 0.8


@pytest.mark.parametrize("estimator", [None, LogisticRegression(), LinearSVC()])
@pytest.mark.parametrize("strategy", ["top_down", "global"])
def test_inner_labels_are_predicted_by_default(strategy, estimator):
    if strategy == "global" and estimator is not None:
        return
    labels = ["a", "a.x", "a.x.p", "a.x.q", "b.z", "b.w"]
    X, y = single_rows(600, labels=labels)
    model = HierarchicalClassifier(TAXONOMY, strategy=strategy, estimator=estimator).fit(X, y)
    X_new, y_new = single_rows(600, seed=1, labels=labels)
    found = model.predict(X_new)
    for label in labels:
        assert (found[y_new == label] == label).mean() > 0.5
    assert TAXONOMY.names[model.stops_].tolist() == ["a", "a.x"]
    paths = model.predict_paths(X_new)
    assert [path[-1] for path in paths] == found.tolist()
    np.testing.assert_allclose(model.predict_proba(X_new).sum(axis=1), 1)


def test_a_label_that_all_rows_below_it_carry_is_a_leaf():
    X, y = single_rows(200, labels=["a", "b.z", "b.w"])  # nothing goes on below a
    model = HierarchicalClassifier(TAXONOMY, leaf="mandatory").fit(X, y)
    assert len(model.stops_) == 0
    assert (model.predict(X[y == "a"]) == "a").mean() > 0.9


def test_models_of_ends_are_saved(tmp_path):
    X, y = single_rows(300, labels=["a.x", "a.x.p", "a.x.q", "b.z"])
    for estimator in (None, SparseLogisticRegression(0.01), PPDSparseClassifier(random_state=0)):
        model = HierarchicalClassifier(TAXONOMY, estimator=estimator).fit(X, y)
        model.save(tmp_path / type(estimator).__name__)
        loaded = sublearn.load(tmp_path / type(estimator).__name__)
        np.testing.assert_allclose(loaded.predict_proba(X), model.predict_proba(X), rtol=1e-6)
        assert "a.x" in loaded.predict(X)
        assert estimator is not None or loaded.coef_.shape == (TAXONOMY.n_labels, X.shape[1])


@pytest.mark.parametrize("estimator", [None, PPDSparseClassifier(random_state=0)])
def test_a_blend_multiplies_what_both_sides_say(estimator, tmp_path):
    X, y = single_rows(200)
    X_new = single_rows(100, seed=1)[0]
    learner = functools.partial(HierarchicalClassifier, TAXONOMY, C=1.0)
    sides = [
        learner(strategy=s, estimator=estimator).fit(X, y).predict_proba
        for s in ("flat", "top_down")
    ]
    model = learner(strategy="blend", estimator=estimator).fit(X, y)
    flat, nodes = (side(X_new) for side in sides)
    expected = flat**0.7 * nodes**0.3
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(X_new), expected, atol=1e-8)
    np.testing.assert_array_equal(model.predict(X_new), by_hand(model, X_new))
    model.save(tmp_path / "m")
    loaded = sublearn.load(tmp_path / "m")
    np.testing.assert_allclose(loaded.predict_proba(X_new), expected, atol=1e-6)


def test_the_expected_f1_is_that_of_all_ends():
    X, y = single_rows(150, labels=[*PATHS, "a.x"])
    noisy = X + np.random.default_rng(2).normal(size=X.shape)
    model = HierarchicalClassifier(TAXONOMY, decoding="expected_f1").fit(X, y)
    chances, found = model.predict_proba(noisy), model.predict(noisy)
    sets = [set(TAXONOMY.ancestors(name)) | {name} for name in model.classes_.tolist()]
    for row, name in zip(chances, found.tolist(), strict=True):
        size = sum(p * len(own) for p, own in zip(row, sets, strict=True))
        hits = [sum(p * len(one & own) for p, own in zip(row, sets, strict=True)) for one in sets]
        values = [2 * h / (len(one) + size) for h, one in zip(hits, sets, strict=True)]
        assert values[model.classes_.tolist().index(name)] == pytest.approx(max(values))
    assert (found != by_hand(model, noisy)).any()


def test_labels_without_rows_are_never_predicted_and_single_children_always():
    X, y = single_rows(labels=["a.x.p", "b.z", "b.w"])  # a and a.x have one child with rows
    model = HierarchicalClassifier(TAXONOMY).fit(X, y)
    assert set(model.predict(X)) == {"a.x.p", "b.z", "b.w"}
    assert model.path_proba(X)[:, TAXONOMY.position("c")].max() == 0


@pytest.mark.parametrize(
    "estimator", [LogisticRegression(), RandomForestClassifier(20, random_state=0), LinearSVC()]
)
@pytest.mark.parametrize("leaf", ["mandatory", "optional"])
@pytest.mark.filterwarnings(f"ignore:.*{NEVER}")
def test_any_classifier_serves_the_nodes(estimator, leaf):
    X, y = single_rows(labels=[*PATHS, "a.x"])
    model = HierarchicalClassifier(TAXONOMY, estimator=estimator, leaf=leaf).fit(X, y)
    assert model.score(X, y) > (0.75 if leaf == "mandatory" else 0.6)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)
    assert set(model.node_models_) == {-1, *map(TAXONOMY.position, ["a", "a.x", "b"])}
    with pytest.raises(AttributeError, match="has no weights of its own"):
        _ = model.coef_


@pytest.mark.parametrize("form", FORMS)
def test_takes_features_of_any_form(form):
    X, y = single_rows(100)
    plain = HierarchicalClassifier(TAXONOMY, tol=1e-8).fit(X, y)
    model = HierarchicalClassifier(TAXONOMY, tol=1e-8).fit(FORMS[form](X), y)
    np.testing.assert_allclose(model.coef_.toarray(), plain.coef_.toarray(), atol=1e-4)
    np.testing.assert_array_equal(model.predict(FORMS[form](X)), plain.predict(X))


def test_a_model_does_not_keep_its_training_rows():
    X, y = single_rows(120)
    large, small = (
        HierarchicalClassifier(TAXONOMY).fit(*rows) for rows in ((X, y), (X[:60], y[:60]))
    )
    assert len(pickle.dumps(large)) < len(pickle.dumps(small)) + 500


def test_parameters_of_earlier_versions_are_translated():
    current = HierarchicalClassifier._current_params
    assert current({"path": "best", "random_state": 3}) == {"decoding": "best_path"}
    assert current({"path": "greedy"}) == {"decoding": "greedy"}


def test_nodes_of_this_library_are_saved_and_others_refused(tmp_path):
    X, y = single_rows(120)
    own = HierarchicalClassifier(TAXONOMY, estimator=SparseLogisticRegression(0.01)).fit(X, y)
    own.save(tmp_path / "m")
    np.testing.assert_array_equal(sublearn.load(tmp_path / "m").predict(X), own.predict(X))
    other = HierarchicalClassifier(TAXONOMY, estimator=LogisticRegression()).fit(X, y)
    with pytest.raises(TypeError, match="a classifier of this library is needed"):
        other.save(tmp_path / "n")


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("leaf", ["mandatory", "optional"])
def test_progress_counts_the_models_that_are_solved(strategy, leaf):
    if (strategy, leaf) == ("blend", "optional"):
        return
    X, y = single_rows()
    model = HierarchicalClassifier(TAXONOMY, strategy=strategy, leaf=leaf).fit(X, y)
    positions = np.array([TAXONOMY.position(label) for label in y])
    assert model._n_models(model._make_nodes(positions)) == len(model.trace_)


@pytest.mark.parametrize(("estimator", "n_fits"), [(LogisticRegression(), 1), (LinearSVC(), 4)])
def test_progress_counts_the_fits_of_an_estimator(estimator, n_fits):
    X, y = single_rows(120)
    events = []
    HierarchicalClassifier(TAXONOMY, estimator=estimator, callback=events.append).fit(X, y)
    assert events[-1].n_done == events[-1].n_total == 4 * n_fits  # above the roots, a, a.x and b


def test_the_strategy_of_the_fit_decides_about_predictions():
    X, y = single_rows(80)
    model = HierarchicalClassifier(TAXONOMY, leaf="optional").fit(X, y)
    before = model.predict_proba(X)
    model.set_params(strategy="global")
    np.testing.assert_array_equal(model.predict_proba(X), before)


def test_says_when_it_did_not_converge():
    X, y = single_rows(100)
    with pytest.warns(UserWarning, match="iteration limit"):
        HierarchicalClassifier(TAXONOMY, solver="cd1", max_iter=1, tol=1e-12).fit(X, y)


GRAPH = Taxonomy([-1, 0, 0, [1, 2]], names=["a", "b", "c", "d"])


@pytest.mark.parametrize(
    ("params", "y", "sentence"),
    [
        ({"taxonomy": TAXONOMY}, ["a.x.p", "z"], "y must hold labels of the taxonomy, got 'z'"),
        ({"taxonomy": GRAPH}, ["b", "d"], "at most one parent, got several for 'd'"),
        ({"taxonomy": TAXONOMY}, ["c", "c"], "needs at least 2 classes"),
        ({"taxonomy": TAXONOMY}, [["c"], ["a", "b"]], "y must have one label per sample"),
        ({"taxonomy": [-1, 0]}, ["a", "b"], "taxonomy must be an instance of Taxonomy or NamedE"),
        ({"C": 0.0}, ["a", "b"], "C must be a positive number, got 0.0"),
        ({"solver": ["newton", "simplex"]}, ["a", "b"], "solver must be one of auto, newton"),
        ({"solver": []}, ["a", "b"], "solver must be one of"),
        ({"threshold": 2.0}, ["a", "b"], "threshold must be a number from 0 to 1"),
        ({"leaf": "none"}, ["a", "b"], "leaf must be 'auto', 'mandatory' or 'optional'"),
        ({"decoding": "longest"}, ["a", "b"], "decoding must be 'best_path', 'greedy' or 'expe"),
        (
            {"strategy": "blend", "leaf": "optional"},
            ["a", "b"],
            "leaf must be not 'optional' for strategy='blend', got 'optional'",
        ),
        (
            {"decoding": "expected_f1", "leaf": "optional"},
            ["a", "b"],
            "leaf must be not 'optional' for decoding='expected_f1'",
        ),
        ({"threshold": {"z": 0.5}}, ["a", "b"], "threshold must name labels of the taxonomy, got"),
        ({"estimator": 3}, ["a", "b"], "estimator must be an estimator with fit"),
        ({"estimator": LinearRegression()}, ["a", "b"], "predict_proba or decision_function"),
        (
            {"strategy": "global", "estimator": LogisticRegression()},
            ["a", "b"],
            "estimator must be None for strategy='global'",
        ),
    ],
)
def test_refuses_bad_input(params, y, sentence):
    with pytest.raises(ValueError, match=sentence):
        HierarchicalClassifier(**params).fit(np.eye(2), y)
