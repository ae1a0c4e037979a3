"""Probabilities, n best taggings and forbidden neighbours of chains against all taggings."""

import itertools

import numpy as np
import pytest

import sublearn
from sublearn.structured import ChainSVM
from sublearn.structured.chain_inference import best_paths, chain_marginals

SEEDS = range(6)


def random_chain(seed, length=4, n_labels=3):
    rng = np.random.default_rng(seed)
    emissions, table = rng.normal(size=(length, n_labels)), rng.normal(size=(n_labels, n_labels))
    table[rng.integers(n_labels), rng.integers(n_labels)] = -np.inf
    emissions[0, rng.integers(n_labels)] = -np.inf
    return emissions, table


def every(emissions, table):
    paths = list(itertools.product(range(emissions.shape[1]), repeat=len(emissions)))
    scores = [
        sum(e[y] for e, y in zip(emissions, path, strict=True))
        + sum(table[a, b] for a, b in itertools.pairwise(path))
        for path in paths
    ]
    order = np.argsort(-np.array(scores), kind="stable")
    return np.array(paths)[order], np.array(scores)[order]


@pytest.mark.parametrize("length", [1, 2, 5])
@pytest.mark.parametrize("seed", SEEDS)
def test_marginals_are_those_of_all_paths(seed, length):
    emissions, table = random_chain(seed, length)
    paths, scores = every(emissions, table)
    weights = np.exp(scores - scores.max())
    expected = [[weights[paths[:, t] == k].sum() for k in range(3)] for t in range(length)]
    np.testing.assert_allclose(
        chain_marginals(emissions, table), np.array(expected) / weights.sum(), atol=1e-12
    )


@pytest.mark.parametrize("n", [1, 3, 1000])
@pytest.mark.parametrize("length", [1, 2, 4])
@pytest.mark.parametrize("seed", SEEDS)
def test_the_best_paths_are_those_of_all(seed, length, n):
    emissions, table = random_chain(seed, length)
    paths, scores = every(emissions, table)
    found, their_scores = best_paths(emissions, table, n)
    n_allowed = min(n, int(np.isfinite(scores).sum()))
    np.testing.assert_allclose(their_scores, scores[:n_allowed])
    assert len({tuple(path) for path in found.tolist()}) == n_allowed
    assert {tuple(p) for p in found.tolist()} <= {tuple(p) for p in paths.tolist()}


def entities(seed=0, n=60):
    """Words of which single tags are unclear, in spans."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        tags = ["O"]
        while len(tags) < 7:
            tags += (
                ["O"] if rng.random() < 0.4 else ["B-x", "I-x"] if rng.random() < 0.6 else ["B-y"]
            )
        words = [[f"w{t}" if rng.random() < 0.6 else f"w{rng.integers(3)}"] for t in tags]
        X.append(words)
        y.append(tags)
    return X, y


@pytest.fixture(scope="module")
def tagger():
    X, y = entities()
    return ChainSVM(0.1, transitions="bio", early_stopping=3, random_state=0, max_iter=10).fit(X, y)


def breaks_bio(tags):
    pairs = zip(["O", *tags], tags, strict=False)
    return any(b[:2] == "I-" and a[2:] != b[2:] for a, b in pairs)


def test_forbidden_neighbours_are_never_predicted():
    X, y = entities()
    odd = [[["wI-x"], ["wI-x"]], [["wB-y"], ["wI-x"], ["wO"]]]
    free = ChainSVM(0.1, transitions=False, random_state=0, max_iter=10).fit(X, y)
    bound = ChainSVM(0.1, transitions="bio", random_state=0, max_iter=10).fit(X, y)
    assert any(breaks_bio(tags) for tags in free.predict(odd))
    assert not any(breaks_bio(tags) for tags in bound.predict(odd))
    assert not any(breaks_bio(tags) for tags, _ in bound.predict_n_best(odd, 20)[0])
    first = bound.predict_proba(odd)[0][0]
    assert first[bound.classes_.tolist().index("I-x")] == 0.0


def test_pairs_may_be_forbidden_also_at_the_ends():
    X = [[["a"], ["b"]], [["b"], ["a"]], [["a"], ["a"]]]
    y = [["A", "B"], ["B", "A"], ["A", "A"]]
    rules = [("B", "B"), (None, "B"), ("B", None)]
    with pytest.raises(ValueError, match=r"y must not have neighbours that transitions forbids"):
        ChainSVM(transitions=rules).fit(X, y)
    model = ChainSVM(transitions=rules[:1], random_state=0).fit(X, y)
    assert ["B", "B"] not in model.predict([[["b"], ["b"]]])
    model.set_params(transitions=rules)
    assert model.predict([[["b"], ["b"], ["b"]]])[0][::2] == ["A", "A"]


def test_rules_that_allow_nothing_are_refused():
    X, y = [[["a"], ["b"]], [["b"]]], [["A", "B"], ["B"]]
    model = ChainSVM(random_state=0).fit(X, y)
    model.set_params(transitions=[(None, "A"), (None, "B")])
    for ask in (model.predict, model.predict_proba):
        with pytest.raises(ValueError, match="transitions must allow tags for every sequence"):
            ask(X)


def test_refuses_transitions_that_are_no_rules():
    for bad in ("iob", 3, [("A",)], []):
        with pytest.raises(ValueError, match=r"ChainSVM\.transitions must be"):
            ChainSVM(transitions=bad).fit([[["a"]], [["b"]]], [["A"], ["B"]])


def test_the_best_tagging_is_what_predict_gives(tagger):
    X, _ = entities(1, 10)
    tags, scores = tagger.predict_with_scores(X)
    best = tagger.predict_n_best(X, 3)
    assert [found[0][0] for found in best] == tags
    np.testing.assert_allclose([found[0][1] for found in best], scores, rtol=1e-5)
    assert all(found[0][1] >= found[1][1] >= found[2][1] for found in best)
    assert tagger.predict_n_best([[]], 2) == [[([], 0.0)]]
    with pytest.raises(ValueError, match=r"predict_n_best: n must be"):
        tagger.predict_n_best(X, 0)


def test_probabilities_sum_to_one_and_the_temperature_is_learnt(tagger):
    X, y = entities(2, 40)
    proba = tagger.predict_proba(X)
    assert [p.shape for p in proba] == [(len(tags), len(tagger.classes_)) for tags in y]
    np.testing.assert_allclose(np.concatenate(proba).sum(axis=1), 1.0)
    assert tagger.temperature_ != 1.0

    def loss(model):
        rows = np.concatenate(model.predict_proba(X))
        codes = np.searchsorted(model.classes_, np.concatenate(y))
        return -np.log(rows[np.arange(len(codes)), codes]).mean()

    plain = ChainSVM(0.1, transitions="bio", random_state=0, max_iter=10).fit(*entities())
    before = loss(plain)
    assert plain.temperature_ == 1.0
    assert loss(plain.calibrate(X, y)) < before


def test_one_matrix_gives_one_array():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 3))
    y = np.where(X[:, 0] > 0, "A", "B").tolist()
    model = ChainSVM(random_state=0).fit(X, y, lengths=[5, 7])
    proba = model.predict_proba(X, lengths=[5, 7])
    assert proba.shape == (12, 2)
    assert len(model.predict_n_best(X, 2, lengths=[5, 7])) == 2


def test_the_temperature_and_rules_are_saved(tagger, tmp_path):
    tagger.save(tmp_path / "m.sublearn")
    again = sublearn.load(tmp_path / "m.sublearn")
    X, _ = entities(3, 4)
    assert (again.temperature_, again.transitions) == (tagger.temperature_, "bio")
    for mine, its in zip(tagger.predict_proba(X), again.predict_proba(X), strict=True):
        np.testing.assert_array_equal(mine, its)
