"""LabelReranker: its numbers against brute force, its second stage against scikit-learn."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import expit
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

import sublearn
from sublearn.errors import ParameterError
from sublearn.extreme import LabelReranker, PPDSparseClassifier, TextTagger
from sublearn.extreme.rerank_features import Pieces, features, support
from sublearn.extreme.rerank_sources import Candidates, Listed, Neighbours, Titles
from sublearn.io import load_quickstart
from sublearn.metrics import bootstrap_difference, f1_micro, ndcg_at_k

RECORDS = load_quickstart(600)
TEXTS, LABELS = RECORDS.train_texts, RECORDS.train_labels
NEW, NEW_LABELS = RECORDS.test_texts[:300], RECORDS.test_labels[:300]
NAMES = {"c1": "coasts", "c2": "surveys", "c3": "lighthouses"}
FEW = ["sailing on the Baltic", "the Baltic coast", "survey statistics", "survey data"] * 10
FEW_LABELS = [["c1"], ["c1"], ["c2"], ["c2"]] * 10


def tagger(**options):
    learner = PPDSparseClassifier(random_state=0)
    return TextTagger(learner, **{"analyzer": "word", "decision": "above_zero"} | options)


def small(**options):
    return LabelReranker(tagger(), **{"random_state": 0, "validation_fraction": 0.5} | options)


@pytest.fixture(scope="module")
def model():
    return LabelReranker(tagger(), random_state=0).fit(TEXTS, LABELS)


# --- the parts ------------------------------------------------------------------------------------


def lists(seed, n_texts=5, n_labels=12, k=4):
    rng = np.random.default_rng(seed)
    labels = np.array([rng.permutation(n_labels)[:k] for _ in range(n_texts)])
    scores = -np.sort(-rng.normal(size=labels.shape), axis=1)
    labels[0, 2:] = -1
    return Listed(labels, scores)


def test_candidates_are_all_that_a_source_lists():
    found = Candidates.union([lists(1), lists(2)], 12)
    for text in range(5):
        own = set(lists(1).labels[text]) | set(lists(2).labels[text])
        mine = found.labels[found.starts[text] : found.starts[text + 1]]
        assert mine.tolist() == sorted(own - {-1})


def test_a_score_is_that_of_the_source_and_its_least_elsewhere():
    one = lists(1)
    found = Candidates.union([one, lists(2)], 12)
    for text, label, score in zip(found.texts, found.labels, found.scores_by(one), strict=True):
        listed = dict(zip(one.labels[text], one.scores[text], strict=True))
        listed.pop(-1, None)
        assert score == listed.get(label, min(listed.values()))


def test_places_and_leads_are_those_within_a_text():
    found = Candidates.union([lists(1), lists(2)], 12)
    scores = np.random.default_rng(0).integers(4, size=len(found.labels)).astype(float)
    places, behind = found.ranks(scores), found.behind_best(scores)
    for text in range(5):
        own = slice(found.starts[text], found.starts[text + 1])
        order = np.argsort(-scores[own], kind="stable")
        assert places[own][order].tolist() == list(range(len(order)))
        np.testing.assert_array_equal(behind[own], scores[own].max() - scores[own])


def test_neighbours_vote_with_their_squared_cosines():
    rng = np.random.default_rng(0)
    X = sp.random(40, 30, 0.3, "csr", np.float32, random_state=rng)
    X = sp.csr_matrix(sp.diags(1 / np.sqrt(X.multiply(X).sum(axis=1).A1)) @ X, dtype=np.float32)
    Y = sp.csr_matrix(rng.random((40, 9)) < 0.3)
    found = Neighbours.of(X, Y).listed(X[:6], 7, 4, n_threads=1)
    cosines = (X[:6] @ X.T).toarray()
    for i in range(6):
        near = np.argsort(-cosines[i], kind="stable")[:7]
        votes = (cosines[i, near] ** 2) @ Y.toarray()[near]
        best = np.sort(votes[votes > 0])[::-1][:4]
        np.testing.assert_allclose(found.scores[i, : len(best)], best, rtol=1e-5)
        known = found.labels[i][found.labels[i] >= 0]
        np.testing.assert_allclose(votes[known], best, rtol=1e-5)


def test_overlaps_are_those_of_whole_vectors():
    titles = ["Baltic sea", "coast", "", "surveys of coasts"]
    texts = ["the Baltic coast", "a survey", "nothing"]
    part = Titles.of(titles, texts)
    judge = TfidfVectorizer(analyzer="char_wb", ngram_range=(5, 5), sublinear_tf=True)
    judge.fit(titles)  # the sequences
    judge = TfidfVectorizer(
        analyzer="char_wb", ngram_range=(5, 5), sublinear_tf=True, vocabulary=judge.vocabulary_
    ).fit(titles + texts)
    T, X = judge.transform(titles).toarray(), judge.transform(texts).toarray()
    every = Listed(np.tile(np.arange(4), (3, 1)), np.zeros((3, 4)))
    found = Candidates.union([every], 4)
    cosines, shares = part.overlaps(part.rows(texts), found)
    np.testing.assert_allclose(cosines, (X @ T.T).ravel(), atol=1e-6)
    np.testing.assert_allclose(shares, ((X > 0) @ (T**2).T).ravel(), atol=1e-6)
    assert part.listed(part.rows(texts), 2, 1).labels[1].tolist()[0] == 3
    assert part.listed(part.rows(["zzz"]), 2, 1).labels.tolist() == [[-1, -1]]


def test_support_sums_chances_times_shares():
    one = Listed(np.array([[0, 2], [1, -1]]), np.array([[1.0, -1.0], [0.5, -9.0]]))
    together = sp.csr_matrix(np.array([[0, 0.5, 0], [0.2, 0, 0.1], [0.3, 0.4, 0]]))
    judge = [
        expit(3.0) * together[0].toarray() + expit(-3.0) * together[2].toarray(),
        expit(1.5) * together[1].toarray(),
    ]
    np.testing.assert_allclose(support(one, together).toarray(), np.vstack(judge))


def test_a_function_of_pieces_is_a_line_that_bends_at_the_knots():
    rng = np.random.default_rng(0)
    raw = np.column_stack([rng.normal(size=200), np.log1p(rng.integers(100, size=200))])
    pieces = Pieces.of(raw, rng.random(200) < 0.3)
    columns = pieces.expand(raw)
    assert np.abs(columns.mean(axis=0)).max() < 1e-8
    weights = rng.normal(size=columns.shape[1]) * (np.arange(columns.shape[1]) < 6)
    knots = np.sort(pieces.knots[0])
    for low, high in itertools.pairwise(knots):
        x = np.column_stack([np.linspace(low, high, 5), np.full(5, 1.0)])
        assert np.abs(np.diff(pieces.expand(x) @ weights, n=2)).max() < 1e-9


# --- the second stage -----------------------------------------------------------------------------


def test_the_second_stage_is_logistic_regression(monkeypatch):
    seen = {}
    solve = LabelReranker._solve

    def remember(self, X, is_true):
        seen.update(X=X, y=is_true, solution=solve(self, X, is_true))
        return seen["solution"]

    monkeypatch.setattr(LabelReranker, "_solve", remember)
    model = LabelReranker(tagger(), C=0.5, tol=1e-9, random_state=0).fit(TEXTS[:200], LABELS[:200])
    judge = LogisticRegression(C=0.5, tol=1e-10, solver="newton-cholesky")
    judge.fit(seen["X"], seen["y"])
    margins = np.where(seen["y"], 1, -1) * judge.decision_function(seen["X"])
    objective = (judge.coef_**2).sum() / len(margins) + np.logaddexp(0, -margins).mean()
    assert model.objective_ == pytest.approx(objective, rel=1e-6)
    assert model.certificate_ <= 1e-9
    mine = seen["X"] @ model.weights_ + model.intercept_
    np.testing.assert_allclose(mine, judge.decision_function(seen["X"]), atol=1e-2)


def test_ranks_as_brute_force_does(model):
    """Every number of every candidate of a text, made again by the definition."""
    stage, text = model._stage, NEW[3]
    first, scores = stage.taggers[0].predict_top_k([text], 50)
    place = {label: i for i, label in enumerate(model.classes_.tolist())}
    row = stage.taggers[0].transform([text])
    near = stage.neighbours.listed(row, 50, 50, 1)
    grams = stage.titles.rows([text])
    titled = stage.titles.listed(grams, 50, 1)
    own = np.array([[place[label] for label in first[0].tolist()]])
    candidates = Candidates.union([Listed(own, scores), near, titled], len(place))
    by = {
        "tagger": candidates.scores_by(Listed(own, scores)),
        "neighbours": candidates.scores_by(near),
        "support": candidates.values_in(support(Listed(own, scores), stage.together)),
    }
    by["title"], by["title in text"] = stage.titles.overlaps(grams, candidates)
    names, raw = features(candidates, by, model.label_counts_)
    assert names == model.pair_features_.tolist()
    z = model._pieces.expand(raw) @ model.weights_ + model.intercept_ - model.threshold_
    order = np.lexsort((candidates.labels, -z))[:10]
    labels, found = model.predict_top_k([text], 10)
    assert labels[0].tolist() == model.classes_[candidates.labels[order]].tolist()
    np.testing.assert_allclose(found[0], z[order])
    np.testing.assert_allclose(
        model.predict_proba_top_k([text], 10)[1][0], expit(z[order] + model.threshold_)
    )


def test_ranks_new_texts_better_than_its_first_stage(model):
    alone = model.taggers_[0].predict_top_k(NEW, 20)[0]
    ranked = model.predict_top_k(NEW, 20)[0]
    found = bootstrap_difference(
        lambda truth, labels: ndcg_at_k(truth, labels, 20), NEW_LABELS, ranked, alone,
        n_resamples=200, random_state=0,
    )  # fmt: skip
    assert found.low > 0
    by_itself = tagger(decision="auto").fit(TEXTS, LABELS).predict(NEW)
    assert f1_micro(NEW_LABELS, model.predict(NEW)) > f1_micro(NEW_LABELS, by_itself)


def test_a_label_without_a_text_is_found_by_its_title():
    model = small().fit(FEW, FEW_LABELS, label_names=NAMES)
    assert model.classes_.tolist() == ["c1", "c2", "c3"]
    assert model.label_counts_.tolist() == [20, 20, 0]
    candidates, _, raw = model._look(model._stage, ["old lighthouses"], 3)
    at = candidates.labels.tolist().index(2)
    title = model.pair_features_.tolist().index("title")
    assert raw[at, title] == raw[:, title].max() > 0.9
    assert model.label_names_.tolist() == ["coasts", "surveys", "lighthouses"]


def test_labels_that_are_words_are_their_own_titles():
    assert "title" in small().fit(FEW, FEW_LABELS).pair_features_
    assert "title" not in small().fit(FEW, FEW_LABELS, label_names={}).pair_features_
    numbers = [[int(name[1]) for name in own] for own in FEW_LABELS]
    assert "title" not in small().fit(FEW, numbers).pair_features_


def test_all_labels_are_ranked_if_that_many_are_asked_for(model):
    few, _ = model.predict_top_k(NEW[:3], 5)
    labels, scores = model.predict_top_k(NEW[:3], len(model.classes_))
    np.testing.assert_array_equal(labels[:, :5], few)
    assert all(len(set(row)) == len(model.classes_) for row in labels.tolist())
    assert (np.diff(scores, axis=1) <= 0).all()


def test_a_set_is_what_scores_above_zero_and_at_least_one(model):
    sets = model.predict([*NEW[:40], "zzzz qqqq"])
    labels, scores = model.predict_top_k(NEW[:40], 50)
    for own, row, z in zip(sets[:40], labels, scores, strict=True):
        assert set(own) == set(row[: max(1, (z > 0).sum())])
    assert sets[40] == []


@pytest.mark.parametrize("form", ["dense", "sparse", "one", "two"])
def test_takes_labels_in_every_form(form):
    Y = np.array([[name == "c1", name == "c2"] for [name] in FEW_LABELS]).astype(int)
    one = [name for [name] in FEW_LABELS]
    y = {"dense": Y, "sparse": sp.csr_matrix(Y), "one": one, "two": FEW_LABELS}[form]
    found = small().fit(FEW, y).predict(FEW[:4])
    judge = {"dense": Y[:4], "one": one[:4], "two": FEW_LABELS[:4]}
    if form == "sparse":
        np.testing.assert_array_equal(found.toarray(), Y[:4])
    else:
        np.testing.assert_array_equal(found, judge[form])


def test_several_taggers_are_mixed(tmp_path):
    both = [tagger(), tagger(analyzer="char_wb")]
    model = LabelReranker(both, random_state=0, refit=False).fit(TEXTS[:300], LABELS[:300])
    assert [one.analyzer_ for one in model.taggers_] == ["word", "char_wb"]
    assert "tagger 2" in model.pair_features_
    model.save(tmp_path / "m")
    again = sublearn.load(tmp_path / "m")
    for left, right in zip(again.predict_top_k(NEW), model.predict_top_k(NEW), strict=True):
        np.testing.assert_array_equal(left, right)


def test_without_refit_the_first_stage_does_not_know_the_held_out_texts():
    assert small(refit=False).fit(FEW, FEW_LABELS).label_counts_.sum() == 20
    assert small().fit(FEW, FEW_LABELS).label_counts_.sum() == 40


def test_without_neighbours_no_text_is_stored(tmp_path):
    model = small(n_neighbors=0).fit(FEW, FEW_LABELS)
    assert "neighbours" not in model.pair_features_
    model.save(tmp_path / "m")
    assert not any(name.startswith("neighbours.") for name in model._to_bundle())
    assert sublearn.load(tmp_path / "m").predict(FEW[:4]) == model.predict(FEW[:4])


def test_explains_by_the_words_of_its_tagger():
    model = small().fit(FEW, FEW_LABELS)
    assert str(model.explain(FEW[1], "c1")) == str(model.taggers_[0].explain(FEW[1], "c1"))


# --- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"taggers": PPDSparseClassifier()}, "LabelReranker.taggers must be a TextTagger, a list"),
        ({"taggers": []}, "LabelReranker.taggers must be a TextTagger, a list"),
        ({"candidates": 0}, "LabelReranker.candidates must be a positive integer"),
        ({"n_neighbors": -1}, "LabelReranker.n_neighbors must be"),
        ({"validation_fraction": 1.0}, "LabelReranker.validation_fraction must be"),
        ({"refit": "no"}, "LabelReranker.refit must be"),
        ({"C": 0.0}, "LabelReranker.C must be a positive number"),
    ],
)
def test_refuses_parameters(options, said):
    with pytest.raises(ParameterError, match=said):
        LabelReranker(**options).fit(FEW, FEW_LABELS)


@pytest.mark.parametrize(
    ("texts", "labels", "names", "said"),
    [
        (["one"], [["a"]], None, "fit.texts must be two or more, got 1"),
        (FEW, FEW_LABELS, ["c1"], "label_names must be a mapping from labels to strings"),
        (FEW, FEW_LABELS, {"c1": 1}, "label_names must be a mapping from labels to strings"),
        (FEW, FEW_LABELS, {3: "three"}, "label_names must have labels of the type of y"),
        (FEW, [["a"]] * 40, None, "right and wrong candidates"),
    ],
)
def test_refuses_what_it_cannot_learn_from(texts, labels, names, said):
    with pytest.raises(ValueError, match=said):
        small().fit(texts, labels, label_names=names)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda m: setattr(m, "weights_", m.weights_[:-1]), "weights_"),
        (lambda m: setattr(m, "pair_features_", m.pair_features_[:-1]), "pair_features_"),
        (lambda m: setattr(m, "classes_", np.array(["c1", "other"])), "must be among classes_"),
        (lambda m: m._pieces.sizes.fill(0), "sizes must be above 0"),
    ],
)
def test_refuses_a_file_whose_parts_do_not_belong_together(tmp_path, change, said):
    model = small().fit(FEW, FEW_LABELS)
    change(model)
    model.save(tmp_path / "m")
    with pytest.raises(sublearn.errors.ModelFileError, match=said):
        sublearn.load(tmp_path / "m")
