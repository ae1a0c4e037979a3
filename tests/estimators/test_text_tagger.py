"""TextTagger: the same model as its parts, saved as one file without pickle."""

import numpy as np
import pandas as pd
import pytest
from sklearn.feature_extraction.text import HashingVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold

import sublearn
from sublearn.errors import ParameterError
from sublearn.extreme import PDSparseClassifier, PPDSparseClassifier, TextTagger
from sublearn.io import load_quickstart
from sublearn.metrics import precision_scorer

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
        ({"vectorizer": "count"}, "vectorizer must be 'tfidf' or 'hashing', got 'count'"),
        ({"analyzer": "sentence"}, "analyzer must be 'word', 'char' or 'char_wb'"),
        ({"ngram_range": (2, 1)}, "ngram_range must be a pair of positive integers"),
        ({"ngram_range": 2}, "ngram_range must be a pair of positive integers"),
        ({"ngram_range": (0, 1)}, "ngram_range must be a pair of positive integers"),
        ({"min_df": 0}, "min_df must be a positive integer or a number in"),
        ({"max_df": 1.5}, "max_df must be a positive integer or a number in"),
        ({"max_features": -1}, "max_features must be a positive integer or None"),
        ({"n_hashes": 0}, r"n_hashes must be an integer in \[1, 2147483646\] or None"),
        ({"n_hashes": 2**31}, r"n_hashes must be an integer in \[1, 2147483646\] or None"),
        ({"stop_words": "finnish"}, "stop_words must be 'english' or None"),
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
    kept = TextTagger(max_df=1.0, analyzer="char").fit(texts, labels)
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
