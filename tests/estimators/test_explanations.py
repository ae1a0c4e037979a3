"""explain: the parts of a score, sorted, named, and adding up."""

import json

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.preprocessing import normalize

from sublearn.extreme import Explanation, PPDSparseClassifier


def data(seed=0, n_rows=200, n_features=25, n_labels=8):
    rng = np.random.default_rng(seed)
    X = normalize(sp.random(n_rows, n_features, 0.3, "csr", random_state=rng))
    scores = X @ rng.normal(size=(n_features, n_labels))
    return X, scores > np.quantile(scores, 0.85), scores.argmax(axis=1)


@pytest.mark.parametrize("form", ["indicator", "classes", "two classes"])
def test_parts_add_up_to_the_score(form):
    X, Y, y = data()
    target = {"indicator": Y, "classes": y, "two classes": y > 3}[form]
    model = PPDSparseClassifier(random_state=0).fit(X, target)
    scores = model.decision_function(X[:5])
    if form == "two classes":
        scores = np.column_stack([-scores, scores])
    for i in range(5):
        for k, label in enumerate(model.classes_):
            found = model.explain(X[i], label, k=2)
            total = found.bias + sum(c.contribution for c in found.contributions) + found.others
            assert found.score == pytest.approx(scores[i, k], abs=1e-12)
            assert total == pytest.approx(found.score, abs=1e-12)


def test_the_largest_come_first_and_only_shared_features_count():
    X, Y, _ = data()
    model = PPDSparseClassifier(random_state=0).fit(X, Y)
    found = model.explain(X[3], 2, k=100)
    products = X[3].toarray()[0] * model.coef_.toarray()[2]
    order = [j for j in np.argsort(-np.abs(products), kind="stable") if products[j] != 0]
    assert [c.feature for c in found.contributions] == order
    assert found.n_others == 0
    for c in found.contributions:
        assert c.contribution == pytest.approx(c.value * c.weight)
        assert c.contribution == pytest.approx(products[c.feature])
    assert model.explain(X[3], 2, k=1).n_others == len(order) - 1


def test_takes_one_row_in_any_form():
    X, Y, _ = data()
    model = PPDSparseClassifier(random_state=0).fit(X, Y)
    expected = model.explain(X[0], 1)
    dense = X[0].toarray()
    for row in (dense, dense[0], dense[0].tolist(), sp.coo_array(dense)):
        assert model.explain(row, 1) == expected


def test_names_come_from_the_frame_or_the_caller():
    X, Y, _ = data()
    columns = [f"word{j}" for j in range(X.shape[1])]
    frame = pd.DataFrame(X.toarray(), columns=columns)
    model = PPDSparseClassifier(random_state=0).fit(frame, Y)
    named = model.explain(frame[:1], 1)
    assert all(c.feature.startswith("word") for c in named.contributions)
    other = PPDSparseClassifier(random_state=0).fit(X, Y)
    assert other.explain(X[0], 1, feature_names=columns) == named


def test_gives_the_probability_of_a_calibrated_model():
    X, Y, _ = data()
    model = PPDSparseClassifier(random_state=0).fit(X[:100], Y[:100])
    assert model.explain(X[0], 1).probability is None
    model.calibrate(X[100:], Y[100:])
    found = model.explain(X[0], 1)
    assert found.probability == model.predict_proba(X[0])[0, 1]
    assert f"probability {found.probability:.3f}" in str(found)


def test_reads_as_a_small_table_and_goes_into_json():
    X, Y, _ = data()
    names = [f"word{j}" for j in range(X.shape[1])]
    model = PPDSparseClassifier(random_state=0).fit(X, Y)
    found = model.explain(X[0], 1, k=2, feature_names=names)
    lines = str(found).splitlines()
    assert lines[0] == f"1: score {found.score:+.4f}"
    assert found.contributions[0].feature in lines[1]
    assert "other feature" in lines[3]
    assert lines[-1].endswith("(bias)")
    again = json.loads(json.dumps(found.to_dict()))
    assert again["score"] == found.score
    assert again["contributions"][1]["weight"] == found.contributions[1].weight


def test_a_row_without_shared_features_is_its_bias():
    X, Y, _ = data()
    model = PPDSparseClassifier(random_state=0).fit(X, Y)
    found = model.explain(np.zeros(X.shape[1]), 1)
    assert found == Explanation(1, model.intercept_[1], model.intercept_[1], ())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"label": 99}, r"explain\.label must be one of classes_, got 99"),
        ({"label": np.zeros(2)}, r"explain\.label must be one of classes_, got an array"),
        ({"feature_names": 3}, r"explain\.feature_names must be 25 names, got 3"),
        ({"label": "x"}, r"explain\.label must be one of classes_, got 'x'"),
        ({"k": 0}, r"explain\.k must be a positive integer, got 0"),
        ({"k": 2.0}, r"explain\.k must be a positive integer, got 2\.0"),
        ({"feature_names": ["a"]}, r"explain\.feature_names must be 25 names, got \['a'\]"),
        ({"x": np.zeros((2, 25))}, r"explain\.x must be one sample, got 2"),
        ({"x": np.zeros(3)}, "3 features"),
    ],
)
def test_refuses_with_a_sentence(change, words):
    X, Y, _ = data()
    model = PPDSparseClassifier(random_state=0).fit(X, Y)
    with pytest.raises(ValueError, match=words):
        model.explain(**({"x": X[0], "label": 1} | change))
