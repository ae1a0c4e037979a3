"""Labels as arrays of paths, as names of columns, and taxonomies as files hold them."""

import numpy as np
import pandas as pd
import pytest
from sklearn.svm import LinearSVC
from taxonomy_rows import PATHS, TAXONOMY, label_rows, single_rows

import sublearn
from sublearn.hierarchy import (
    HierarchicalClassifier,
    HierarchicalMultilabelClassifier,
    Taxonomy,
)
from sublearn.io import load_hmc
from sublearn.io.taxonomies import NamedEdges
from sublearn.metrics import hierarchical_f1


def as_paths(y, fill=""):
    """Rows of three places, as hiclass has them."""
    rows = [label.split(".") for label in y]
    return np.array([row + [fill] * (3 - len(row)) for row in rows], dtype=object)


@pytest.mark.parametrize("fill", ["", None, np.nan])
def test_paths_are_labels_and_come_back_as_paths(fill):
    X, y = single_rows(labels=[*PATHS, "a.x"])
    by_name = HierarchicalClassifier(TAXONOMY).fit(X, y)
    by_path = HierarchicalClassifier(TAXONOMY).fit(X, as_paths(y, fill))
    np.testing.assert_array_equal(by_path.predict(X), as_paths(by_name.predict(X)))
    assert by_path.score(X, as_paths(y, fill)) == by_name.score(X, y)
    assert by_path.score(X, y) == by_name.score(X, y)
    found = hierarchical_f1(as_paths(y), by_path.predict(X), TAXONOMY)
    assert found == hierarchical_f1(y, by_name.predict(X), TAXONOMY)


def test_paths_bring_their_taxonomy(tmp_path):
    X, y = single_rows()
    texts = as_paths(y).astype(str)
    model = HierarchicalClassifier().fit(X, pd.DataFrame(texts))
    assert set(model.taxonomy_.names) == {*"abcpqxyzw"}
    assert model.taxonomy_.ancestors("p") == ["a", "x"]
    found = model.predict(X)
    assert found.shape == texts.shape
    assert (found == texts).all(axis=1).mean() > 0.85
    model.save(tmp_path / "m")
    np.testing.assert_array_equal(sublearn.load(tmp_path / "m").predict(X), found)


def test_a_name_under_two_parents_is_two_labels():
    paths = np.array([["a", "other"], ["b", "other"], ["b", ""]])
    taxonomy = Taxonomy.from_path_array(paths)
    assert taxonomy.names.tolist() == ["a", "a.other", "b", "b.other"]
    X = np.tile(np.eye(3), (20, 1))
    model = HierarchicalClassifier(C=10.0).fit(X, np.tile(paths, (20, 1)))
    np.testing.assert_array_equal(model.predict(np.eye(3)), paths)


def test_sets_of_labels_may_be_one_path():
    X, y = single_rows()
    model = HierarchicalMultilabelClassifier(TAXONOMY, random_state=0)
    by_path = model.fit(X, as_paths(y)).predict(X)
    np.testing.assert_array_equal(by_path, model.fit(X, y).predict(X))


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ([["a", "", "p"], ["a", "y", ""]], r"empty places behind them alone, got \['a', '', 'p'\]"),
        ([["", "", ""], ["a", "y", ""]], "must have paths from a root on"),
        ([["a", "y", ""], ["a", "v", ""]], "y must hold labels of the taxonomy, got 'v'"),
    ],
)
def test_refuses_what_is_no_path(rows, sentence):
    with pytest.raises(ValueError, match=sentence):
        HierarchicalClassifier(TAXONOMY).fit(np.eye(2), np.array(rows))


def test_refuses_a_path_that_the_taxonomy_has_not():
    taxonomy = Taxonomy.from_parents({"a": None, "b": None, "c": "a", "d": "b"})
    with pytest.raises(ValueError, match=r"must hold paths of the taxonomy, got \['a', 'd'\]"):
        HierarchicalClassifier(taxonomy).fit(np.eye(2), np.array([["a", "c"], ["a", "d"]]))
    with pytest.raises(ValueError, match=r"Taxonomy.paths must be an array of texts"):
        Taxonomy.from_path_array(np.eye(2))


def test_takes_the_taxonomy_of_a_file(tmp_path):
    path = tmp_path / "t.arff"
    rows = "1,0,A/B\n0,1,A/C\n" * 10
    path.write_text(
        "@relation t\n@attribute x numeric\n@attribute z numeric\n"
        f"@attribute class hierarchical A,A/B,A/C\n@data\n{rows}"
    )
    data = load_hmc(path)
    assert isinstance(data.taxonomy, NamedEdges)
    model = HierarchicalClassifier(data.taxonomy, C=10.0).fit(
        data.X, [own[0] for own in data.labels]
    )
    assert model.predict(np.eye(2)).tolist() == ["A/B", "A/C"]
    assert model.taxonomy_ == Taxonomy.from_edges(data.taxonomy)
    sets = HierarchicalMultilabelClassifier(data.taxonomy, random_state=0)
    assert sets.fit(data.X, data.labels).predict(np.eye(2)) == [["A", "A/B"], ["A", "A/C"]]


@pytest.mark.parametrize("taxonomy", [None, TAXONOMY])
def test_a_frame_of_indicators_keeps_its_names(taxonomy, tmp_path):
    X, lists = label_rows()
    Y = pd.DataFrame({name: [int(name in own) for own in lists] for name in PATHS[::-1]})
    model = HierarchicalMultilabelClassifier(taxonomy, random_state=0).fit(X, Y)
    expected = PATHS[::-1] if taxonomy is None else TAXONOMY.names.tolist()
    assert model.classes_.tolist() == expected
    assert set(model.predict_top_k(X, k=1)[0].ravel()) <= set(expected)
    assert model.score(X, Y) > 0.7
    model.save(tmp_path / "m")
    loaded = sublearn.load(tmp_path / "m")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert loaded.classes_.tolist() == expected


def many_small_nodes(n, seed):
    """Eight branches of five labels, and few rows of each; margins of nodes differ in size."""
    rng = np.random.default_rng(seed)
    ends = rng.integers(40, size=n)
    centres = np.random.default_rng(99).normal(size=(40, 30))
    centres += 1.5 * np.repeat(np.random.default_rng(98).normal(size=(8, 30)), 5, axis=0)
    X = centres[ends] + 2.0 * rng.normal(size=(n, 30))
    return X, np.array([f"{k // 5}.{k}" for k in ends])


def test_margins_of_different_nodes_are_made_comparable():
    X, y = many_small_nodes(600, 0)
    X_new, y_new = many_small_nodes(2000, 1)
    taxonomy = Taxonomy.from_paths(np.unique(y).tolist())
    model = HierarchicalClassifier(taxonomy, estimator=LinearSVC(C=1.0, max_iter=20_000)).fit(X, y)
    best = model.score(X_new, y_new)
    log_loss = -np.log(model.predict_proba(X_new)[np.arange(2000), index_of(model, y_new)]).mean()
    greedy = model.set_params(decoding="greedy").score(X_new, y_new)
    assert best >= greedy
    model._lines = dict.fromkeys(model._lines, type(model._lines[-1])())  # margins as they are
    raw = -np.log(model.predict_proba(X_new)[np.arange(2000), index_of(model, y_new)]).mean()
    assert log_loss < raw
    assert model.set_params(decoding="best_path").score(X_new, y_new) < best


def index_of(model, y):
    return np.searchsorted(model.classes_, y)
