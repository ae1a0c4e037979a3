"""TextTagger: the same model as its parts, saved as one file without pickle."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.feature_extraction.text import (
    CountVectorizer,
    HashingVectorizer,
    TfidfTransformer,
    TfidfVectorizer,
)
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline

import sublearn
from sublearn.errors import ParameterError
from sublearn.extreme import PDSparseClassifier, PPDSparseClassifier, TextTagger
from sublearn.extreme.text_vectors import make_vectorizer, text_rows
from sublearn.io import load_quickstart
from sublearn.linear import SparseLogisticRegression
from sublearn.metrics import f1_micro, precision_at_k, precision_scorer

RECORDS = load_quickstart(800)
TEXTS, LABELS = RECORDS.train_texts, RECORDS.train_labels
NEW, NEW_LABELS = RECORDS.test_texts[:300], RECORDS.test_labels[:300]
SETTINGS = [
    {},
    {"min_df": 2, "max_df": 0.5, "max_features": 500, "ngram_range": (1, 2)},
    {"analyzer": "char_wb", "ngram_range": (2, 3), "stop_words": None},
    {"stop_words": "english"},
    {"vectorizer": "hashing", "n_hashes": 2**14},
    {"vectorizer": "hashing", "analyzer": "char", "ngram_range": [3, 3]},
]


def classifier(**options):
    return PPDSparseClassifier(random_state=0, l1=0.3, **options)


def fitted(**options):
    options = {"analyzer": "word", "decision": "above_zero"} | options
    return TextTagger(classifier(), **options).fit(TEXTS, LABELS)


def test_is_its_vectoriser_and_its_classifier():
    tagger = fitted(min_df=2)
    vectorizer = TfidfVectorizer(sublinear_tf=True, min_df=2, dtype=np.float32)
    X = vectorizer.fit_transform(TEXTS)
    model = classifier().fit(X, LABELS)
    X_new = vectorizer.transform(NEW)
    assert (tagger.transform(NEW) != X_new).nnz == 0
    for left, right in zip(tagger.predict_top_k(NEW), model.predict_top_k(X_new), strict=True):
        np.testing.assert_array_equal(left, right)
    assert tagger.predict(NEW) == model.predict(X_new)
    assert tagger.score(NEW, NEW_LABELS) == model.score(X_new, NEW_LABELS)
    np.testing.assert_array_equal(tagger.decision_function(NEW), model.decision_function(X_new))
    np.testing.assert_array_equal(tagger.intercept_, model.intercept_)
    assert tagger.feature_names_.tolist() == vectorizer.get_feature_names_out().tolist()
    assert tagger.fit_size_ == (*X.shape, X.nnz)
    counts = dict.fromkeys(tagger.classes_.tolist(), 0)
    for name in (name for names in LABELS for name in names):
        counts[name] += 1
    assert tagger.label_counts_.tolist() == list(counts.values())


def test_hashing_is_that_of_scikit_learn():
    tagger = fitted(vectorizer="hashing", n_hashes=2**14)
    expected = HashingVectorizer(n_features=2**14, dtype=np.float32).transform(NEW)
    assert (tagger.transform(NEW) != expected).nnz == 0
    assert tagger.feature_names_ is None


def test_probabilities_go_with_it(tmp_path):
    tagger = fitted()
    assert not hasattr(tagger, "predict_proba")
    assert tagger.calibrate(NEW, NEW_LABELS, "isotonic") is tagger
    tagger.save(tmp_path / "tags")
    again = sublearn.load(tmp_path / "tags")
    np.testing.assert_array_equal(again.predict_proba(NEW), tagger.predict_proba(NEW))
    labels, found = again.predict_proba_top_k(NEW, 3)
    np.testing.assert_array_equal(labels, tagger.predict_top_k(NEW, 3)[0])
    assert ((found >= 0) & (found <= 1)).all()


def test_takes_classes_and_series_and_its_default_classifier():
    names = [labels[0] for labels in LABELS[:200]]
    tagger = TextTagger().fit(pd.Series(TEXTS[:200]), names)
    assert tagger.predict(np.array(NEW)).shape == (300,)
    assert tagger.classifier is None
    assert isinstance(tagger.classifier_, PPDSparseClassifier)


def test_works_in_a_grid_search():
    search = GridSearchCV(
        TextTagger(classifier()),
        {"classifier__l1": [0.1, 1.0], "ngram_range": [(1, 1), (1, 2)]},
        scoring=precision_scorer(1),
        cv=KFold(2),
    ).fit(TEXTS, LABELS)
    assert search.best_score_ > 0
    labels, _ = search.best_estimator_.predict_top_k(NEW, 1)
    assert labels.shape == (300, 1)


def test_a_text_without_a_known_word_gets_the_biases():
    tagger = fitted()
    _, scores = tagger.predict_top_k([""], 1)
    assert scores[0, 0] == tagger.intercept_.max()


# --- explanations ----------------------------------------------------------------------------


@pytest.mark.parametrize("options", SETTINGS, ids=str)
def test_words_add_up_to_the_score(options):
    tagger = fitted(**options)
    labels, scores = tagger.predict_top_k(NEW[:20], 1)
    for text, label, score in zip(NEW[:20], labels[:, 0], scores[:, 0], strict=True):
        found = tagger.explain(text, label, k=3)
        parts = sum(c.contribution for c in found.contributions)
        assert found.bias + parts + found.others == pytest.approx(score, abs=1e-5)
        assert found.score == pytest.approx(score, abs=1e-5)


def test_hashed_words_are_named_by_the_text():
    tagger = fitted(vectorizer="hashing", n_hashes=2**16)
    (label,), _ = (part[0] for part in tagger.predict_top_k(NEW[:1], 1))
    names = [c.feature for c in tagger.explain(NEW[0], label).contributions]
    words = set(tagger.vectorizer_.build_analyzer()(NEW[0]))
    assert names
    assert set(names) <= words


def test_words_that_share_a_column_are_all_named():
    tagger = fitted(vectorizer="hashing", n_hashes=2)
    found = tagger.explain("one two three four", tagger.classes_[0])
    assert any(" or " in c.feature for c in found.contributions)


# --- refusals --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"classifier": LogisticRegression()}, "classifier must be a classifier with predict_top"),
        (
            {"vectorizer": "count"},
            "vectorizer must be 'tfidf' or 'hashing', or a scikit-learn",
        ),
        (
            {"analyzer": "sentence"},
            "analyzer must be one of 'auto', 'word', 'char', 'char_wb'",
        ),
        ({"ngram_range": (2, 1)}, "ngram_range must be a pair of positive integers"),
        ({"ngram_range": 2}, "ngram_range must be a pair of positive integers"),
        ({"ngram_range": (0, 1)}, "ngram_range must be a pair of positive integers"),
        ({"min_df": 0}, "min_df must be a positive integer or a number in"),
        ({"max_df": 1.5}, "max_df must be a positive integer or a number in"),
        ({"max_features": -1}, "max_features must be a positive integer or None"),
        ({"n_hashes": 0}, r"n_hashes must be an integer in \[1, 2147483646\] or None"),
        ({"n_hashes": 2**31}, r"n_hashes must be an integer in \[1, 2147483646\] or None"),
        ({"stop_words": "finnish"}, "stop_words must be 'english', a list of words, or None"),
        ({"n_hashes": 8}, "n_hashes must be None for vectorizer='tfidf', got 8"),
        ({"vectorizer": "hashing", "min_df": 2}, "min_df must be None for vectorizer='hashing'"),
    ],
)
def test_refuses_parameters_by_name(options, words):
    with pytest.raises(ParameterError, match=f"TextTagger.{words}"):
        TextTagger(**options).fit(TEXTS, LABELS)


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        ("one string", "texts must be a sequence of strings, got 'one string'"),
        (3, "texts must be a sequence of strings, got 3"),
        ([], "texts must have at least one text, got none"),
        (["a text", None], "texts must hold strings, got None at position 1"),
        (["", "?!"], "texts must have words to learn from, got none"),
    ],
)
def test_refuses_what_is_no_text(texts, words):
    with pytest.raises(ValueError, match=words):
        TextTagger().fit(texts, ["a", "b"])


def test_refuses_limits_that_leave_no_word():
    with pytest.raises(ValueError, match="texts must have words to learn from, got none: "):
        TextTagger(min_df=2).fit(["one", "two"], ["a", "b"])


def test_refuses_to_explain_several_texts():
    with pytest.raises(ValueError, match=r"explain\.text must be a string"):
        fitted().explain(NEW, LABELS[0][0])


class Foreign(LogisticRegression):
    def predict_top_k(self, X, k=None):
        return super().predict(X)[:, None], np.zeros((X.shape[0], 1))


def test_refuses_to_save_a_classifier_of_others(tmp_path):
    tagger = TextTagger(Foreign()).fit(["one", "two"], ["a", "b"])
    with pytest.raises(TypeError, match="a classifier of this library is needed to be saved"):
        tagger.save(tmp_path / "tags")
    assert not (tmp_path / "tags").exists()


def test_words_of_all_texts_may_stay_by_a_share_of_one():
    texts, labels = ["a sea", "a coast", "a table"], ["x", "x", "y"]
    kept = TextTagger(max_df=1.0, analyzer="char", ngram_range=(1, 1)).fit(texts, labels)
    assert "a" in kept.feature_names_.tolist()


def test_held_out_texts_end_the_fit_of_a_classifier_that_takes_them():
    texts, labels = ["sea coast", "coast sea", "table data", "data table"], ["x", "x", "y", "y"]
    tagger = TextTagger(PDSparseClassifier(l1=0.01, random_state=0))
    tagger.fit(texts, labels, eval_set=(["the sea", "a table"], ["x", "y"]))
    assert tagger.classifier_.held_out_precision_ == 1.0
    for wrong, words in [
        (texts, r"eval_set must be a pair \(texts, y\)"),
        (("sea", ["x"]), r"eval_set\[0\] must be a sequence of strings"),
        (([3], ["x"]), r"eval_set\[0\] must hold strings, got 3 at position 0"),
    ]:
        with pytest.raises(ValueError, match=words):
            tagger.fit(texts, labels, eval_set=wrong)


# --- words, characters, vectors ----------------------------------------------------------------

#: Words of a made-up language: a stem says the label, an ending says nothing, and no word is twice.
STEMS = {"sea": "meri", "coast": "ranta", "ship": "laiva", "fish": "kala"}


def inflected(n=400, seed=0):
    rng = np.random.default_rng(seed)
    letters = np.array(list("bcdfghjkmnoprstuv"))
    texts, labels = [], []
    for name in rng.choice(list(STEMS), n):
        ending = "".join(rng.choice(letters, 5))
        texts.append(f"{STEMS[name]}{ending} {''.join(rng.choice(letters, 6))}")
        labels.append([str(name)])
    return texts, labels


def test_characters_are_chosen_where_words_do_not_come_again():
    texts, labels = inflected()
    tagger = TextTagger(classifier()).fit(texts[:300], labels[:300])
    assert (tagger.analyzer, tagger.analyzer_) == ("auto", "char_wb")
    assert tagger.score(texts[300:], labels[300:]) > 0.9
    words = TextTagger(classifier(), analyzer="word").fit(texts[:300], labels[:300])
    assert words.score(texts[300:], labels[300:]) < 0.5


def test_words_are_chosen_where_characters_are_not_clearly_better():
    rng = np.random.default_rng(0)
    words = ["".join(rng.choice(list("abcdefghij"), 7)) for _ in range(30)]
    texts = [" ".join(rng.choice(words, 4)) for _ in range(300)]
    labels = [sorted(set(text.split())) for text in texts]
    tagger = TextTagger(classifier()).fit(texts, labels)
    assert tagger.analyzer_ == "word"
    plain = TextTagger(classifier(), analyzer="word").fit(texts, labels)
    np.testing.assert_array_equal(tagger.intercept_, plain.intercept_)
    assert (tagger.coef_ != plain.coef_).nnz == 0


@pytest.mark.parametrize(
    "options",
    [{"ngram_range": (1, 1)}, {"stop_words": ["x"]}, {"token_pattern": r"\w+"}, {"stemmer": str}],
    ids=str,
)
def test_who_speaks_of_words_gets_words(options):
    texts, labels = inflected(120)
    assert TextTagger(classifier(), **options).fit(texts, labels).analyzer_ == "word"


def test_the_choice_is_the_same_again_and_is_saved(tmp_path):
    texts, labels = inflected()
    one, two = (TextTagger().fit(texts, labels) for _ in range(2))
    assert one.analyzer_ == two.analyzer_ == "char_wb"
    assert one.classifier_.decision_.shared == two.classifier_.decision_.shared
    one.save(tmp_path / "m")
    loaded = sublearn.load(tmp_path / "m")
    assert (loaded.analyzer, loaded.analyzer_) == ("auto", "char_wb")
    assert loaded.predict(texts[:50]) == one.predict(texts[:50])


def test_words_may_be_told_by_a_pattern_a_list_and_a_stemmer(tmp_path):
    texts, labels = ["Ships a-b sailed", "a ship sails"], [["x"], ["y"]]
    names = lambda **o: TextTagger(**o).fit(texts, labels).feature_names_.tolist()  # noqa: E731
    assert names(token_pattern=r"[a-z]-[a-z]|sail\w+") == ["a-b", "sailed", "sails"]
    assert names(stop_words=["sails", "sailed", "ship"]) == ["ships"]
    assert names(stemmer=lambda word: word[:4], stop_words=["ships"]) == ["sail", "ship"]
    two = names(stemmer=lambda word: word[:4], ngram_range=(2, 2))
    assert two == ["ship sail"]
    assert names(analyzer=lambda text: text.split(" ")[-1:]) == ["sailed", "sails"]
    tagger = TextTagger(stop_words={"ship"}, token_pattern=r"\w+").fit(texts, labels)
    tagger.save(tmp_path / "m")
    assert sublearn.load(tmp_path / "m").feature_names_.tolist() == tagger.feature_names_.tolist()


def test_any_transformer_of_texts_will_do():
    vectorizer = make_pipeline(CountVectorizer(min_df=2), TfidfTransformer())
    tagger = TextTagger(classifier(), vectorizer=vectorizer).fit(TEXTS, LABELS)
    X = clone(vectorizer).fit(TEXTS).transform(NEW)
    np.testing.assert_allclose(tagger.transform(NEW).toarray(), X.toarray(), rtol=1e-6)
    assert tagger.predict_top_k(NEW, 2)[0].shape == (300, 2)
    found = tagger.explain(NEW[0], tagger.predict_top_k(NEW[:1], 1)[0][0, 0])
    assert any(c.feature in NEW[0].lower() for c in found.contributions)
    with pytest.raises(ParameterError, match=r"TextTagger.min_df must be None for vectorizer="):
        TextTagger(vectorizer=vectorizer, min_df=2).fit(TEXTS, LABELS)
    with pytest.raises(ParameterError, match=r"analyzer must be 'auto' for a vectorizer of"):
        TextTagger(vectorizer=vectorizer, analyzer="word").fit(TEXTS, LABELS)


def lengths(texts):
    return np.array([[len(text), text.count(" "), 1.0] for text in texts])


def test_dense_vectors_stand_beside_words():
    tagger = fitted(embedder=lengths)
    X = tagger.transform(NEW[:5]).toarray()
    dense = lengths(NEW[:5])
    np.testing.assert_allclose(
        X[:, -3:], dense / np.linalg.norm(dense, axis=1, keepdims=True), rtol=1e-5
    )
    assert (X[:, :-3] == fitted().transform(NEW[:5]).toarray()).all()
    label = tagger.predict_top_k(NEW[:1], 1)[0][0, 0]
    parts = {c.feature for c in tagger.explain(NEW[0], label, k=50).contributions}
    assert parts & {"vector 0", "vector 1", "vector 2"}
    with pytest.raises(ValueError, match=r"embedder must give one row of finite numbers"):
        fitted(embedder=lambda texts: np.zeros((1, 2)))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("analyzer", str.split),
        ("stemmer", str.lower),
        ("embedder", lengths),
        ("vectorizer", TfidfVectorizer()),
    ],
)
def test_code_is_not_saved(name, value, tmp_path):
    options = {name: value} if name != "vectorizer" else {name: value, "analyzer": "auto"}
    tagger = fitted(**options)
    with pytest.raises(TypeError, match=rf"TextTagger.save cannot store {name}=.*holds no code"):
        tagger.save(tmp_path / "m")
    assert not list(tmp_path.iterdir())


# --- sets of labels ----------------------------------------------------------------------------


def test_predict_gives_useful_sets_by_default(tmp_path):
    tagger = TextTagger(classifier(), analyzer="word").fit(TEXTS, LABELS)
    plain = fitted()
    assert (tagger.coef_ != plain.coef_).nnz == 0
    found = tagger.predict(NEW)
    assert sum(not names for names in found) == 0
    assert sum(not names for names in plain.predict(NEW)) > 200
    assert f1_micro(NEW_LABELS, found) > 3 * f1_micro(NEW_LABELS, plain.predict(NEW))
    tagger.save(tmp_path / "m")
    assert sublearn.load(tmp_path / "m").predict(NEW) == found
    tagger.tune_thresholds(NEW, NEW_LABELS, "per_label", min_positives=3)
    assert f1_micro(NEW_LABELS, tagger.predict(NEW)) > f1_micro(NEW_LABELS, found)


def test_few_texts_are_given_the_best_label_at_least():
    tagger = TextTagger().fit(["a sea", "the coast", "a table"], [["x"], ["x", "z"], ["y"]])
    assert tagger.analyzer_ == "word"
    assert all(tagger.predict(["a sea", "the table", "the coast"]))


@pytest.mark.parametrize("form", ["lists", "dense", "sparse"])
def test_a_text_without_a_known_word_has_no_label(form):
    lists = [["a"] if i % 5 else ["a", "b"] for i in range(len(TEXTS[:100]))]
    Y = np.array([["a" in names, "b" in names] for names in lists]).astype(int)
    y = {"lists": lists, "dense": Y, "sparse": sp.csr_matrix(Y)}[form]
    tagger = TextTagger(PPDSparseClassifier(random_state=0)).fit(TEXTS[:100], y)
    assert tagger.intercept_[0] > 0  # by bias alone the label would be given
    found = tagger.predict(["", "zzzzzz", TEXTS[0]])
    found = found.toarray() if form == "sparse" else found
    assert [bool(np.any(row)) for row in found] == [False, False, True]


# --- further texts -----------------------------------------------------------------------------


def test_learns_from_further_texts():
    half = len(TEXTS) // 2
    tagger = TextTagger(classifier(), analyzer="word").fit(TEXTS[:half], LABELS[:half])
    known = set(tagger.classes_.tolist())
    rest = [[n for n in names if n in known] for names in LABELS[half:]]
    before = precision_at_k(rest, tagger.predict_top_k(TEXTS[half:], 1)[0], 1)
    counts, threshold = tagger.label_counts_.sum(), tagger.classifier_.decision_.shared
    assert tagger.partial_fit(TEXTS[half:], LABELS[half:]) is tagger
    assert precision_at_k(rest, tagger.predict_top_k(TEXTS[half:], 1)[0], 1) > before + 0.2
    old = precision_at_k(LABELS[:half], tagger.predict_top_k(TEXTS[:half], 1)[0], 1)
    assert old > 0.9
    assert set(tagger.classes_.tolist()) == {n for names in LABELS for n in names}
    assert tagger.label_counts_.sum() == counts + sum(len(set(names)) for names in LABELS[half:])
    assert tagger.fit_size_[0] == len(TEXTS)
    assert tagger.classifier_.decision_.shared == threshold
    assert TextTagger(classifier()).partial_fit(TEXTS[:60], LABELS[:60]).fit_size_[0] == 60


def test_forgets_and_compresses(tmp_path):
    tagger = fitted()
    name = tagger.classes_[3]
    counts = dict(zip(tagger.classes_, tagger.label_counts_, strict=True))
    tagger.set_label_names({name: "gone", tagger.classes_[4]: "kept"}).remove_labels([name])
    assert name not in tagger.classes_
    assert tagger.label_counts_.tolist() == [counts[n] for n in tagger.classes_]
    assert tagger.label_names_[3] == "kept"
    small = tagger.compress(8)
    assert small.coef_.nnz <= tagger.coef_.nnz
    small.save(tmp_path / "small")
    tagger.save(tmp_path / "large")
    assert (tmp_path / "small").stat().st_size < (tmp_path / "large").stat().st_size


def test_says_what_to_call_where_a_classifier_cannot():
    tagger = TextTagger(PDSparseClassifier(l1=0.01, max_iter=3)).fit(TEXTS[:40], LABELS[:40])
    with pytest.raises(AttributeError) as found:
        tagger.partial_fit(TEXTS, LABELS)
    assert "PDSparseClassifier has no partial_fit: call fit with" in str(found.value.__cause__)
    with pytest.raises(AttributeError) as found:
        tagger.predict_proba(TEXTS)
    assert "after calibrate(texts, y) on held-out texts" in str(found.value.__cause__)


def test_labels_have_names_beside_their_ids(tmp_path):
    tagger = fitted()
    ids = tagger.classes_
    assert tagger.label_names_ is None
    assert tagger.name_labels(ids[:2]).tolist() == ids[:2].tolist()
    tagger.set_label_names({ids[0]: "the first", "unknown": "nothing"})
    tagger.save(tmp_path / "m")
    loaded = sublearn.load(tmp_path / "m")
    assert loaded.name_labels(ids[:2]).tolist() == ["the first", ids[1]]
    with pytest.raises(ValueError, match=r"set_label_names.names must be a mapping"):
        tagger.set_label_names(["a"])


def test_explains_any_linear_classifier():
    names = [labels[0] for labels in LABELS[:200]]
    two = ["a" if "the" in text else "b" for text in TEXTS[:200]]
    for y in (names, two):
        tagger = TextTagger(SparseLogisticRegression(l1=0.001), analyzer="word")
        tagger.fit(TEXTS[:200], y)
        scores = tagger.decision_function(TEXTS[:3])
        label = tagger.classes_[1]
        found = tagger.explain(TEXTS[0], label)
        score = scores[0] if scores.ndim == 1 else scores[0, 1]
        assert found.score == pytest.approx(score, abs=1e-4)
        with pytest.raises(ValueError, match=r"explain.label must be one of classes_"):
            tagger.explain(TEXTS[0], "no such label")


OWN_ROWS = {
    "words": {},
    "pairs of words": {"ngram_range": (1, 2), "stop_words": "english"},
    "characters": {"analyzer": "char"},
    "characters within words": {"analyzer": "char_wb", "max_features": 5000},
    "stems": {"stemmer": lambda word: word[:5]},
}


@pytest.mark.parametrize("how", list(OWN_ROWS))
def test_rows_of_a_few_texts_are_those_of_scikit_learn_to_the_last_bit(how):
    texts = [
        *load_quickstart(n_train=1500).train_texts,
        "",
        " ",
        "Ünïcode \U0001f600",
        "word " * 500,
    ]
    params = TextTagger(analyzer="word").set_params(**OWN_ROWS[how]).get_params(deep=False)
    vectorizer = make_vectorizer(params, params["analyzer"])
    text_rows(vectorizer, texts[:1000], learns=True)
    for part in (texts[900:1300], texts[1500:], texts[1500:1501], texts[3:4]):
        own, theirs = text_rows(vectorizer, part, learns=False), vectorizer.transform(part)
        assert own.shape == theirs.shape
        for name in ("data", "indices", "indptr"):
            mine, other = getattr(own, name), getattr(theirs, name)
            assert mine.dtype == other.dtype
            np.testing.assert_array_equal(mine, other)
        assert own.has_sorted_indices
