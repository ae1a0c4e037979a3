"""From raw text to labels: a vectoriser and a classifier with very many labels in one model."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.feature_extraction.text import HashingVectorizer, TfidfVectorizer
from sklearn.utils import Tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from sublearn.errors import ParameterError
from sublearn.execution import all_or_nothing
from sublearn.extreme.explanation import Explanation, HashedNames
from sublearn.extreme.ppd_sparse import PPDSparseClassifier
from sublearn.fitting.labels import LabelClassifier
from sublearn.io.fields import Fields, Floats, Integers, ListOf, Parts, Strings
from sublearn.io.models import SavedModel, nested_state, restore_nested, storable_params
from sublearn.typing import LabelsLike, State, WeightsLike
from sublearn.validation import (
    Either,
    EncodedLabels,
    Interval,
    NonNegative,
    OneOf,
    OneOfOrNone,
    OrNone,
    Positive,
    Rule,
    check_params,
    encode_labels,
)
from sublearn.validation.values import is_int64, show

if TYPE_CHECKING:
    from sublearn.validation.labels import DecodedLabels

__all__ = ["TextTagger"]

_CLASSIFIER = "classifier."  # heads the stored names of the classifier's parts
_TFIDF_ONLY = ("min_df", "max_df", "max_features")
_HASHING_ONLY = ("n_hashes",)
_N_HASHES = 2**20
_MOST_HASHES = 2**31 - 2  # scikit-learn's limit


def _has_probabilities(tagger: TextTagger) -> bool:
    return hasattr(getattr(tagger, "classifier_", None), "predict_proba")


class _Classifier(Rule):
    """An estimator of this library that ranks labels, or None."""

    def accepts(self, value: object) -> bool:
        """Whether `value` obeys the rule."""
        return value is None or (hasattr(value, "fit") and hasattr(value, "predict_top_k"))

    def __str__(self) -> str:
        return "a classifier with predict_top_k, or None"


class _NgramRange(Rule):
    """A pair of sizes."""

    def accepts(self, value: object) -> bool:
        """Whether `value` obeys the rule."""
        if not isinstance(value, (tuple, list)) or len(value) != 2:
            return False
        return all(is_int64(n) for n in value) and 1 <= value[0] <= value[1]

    def __str__(self) -> str:
        return "a pair of positive integers, the smaller first"


_DOCUMENT_COUNT = OrNone(Either(Positive(int), Interval(float, 0.0, 1.0, "right")))


class TextTagger(SavedModel, ClassifierMixin, BaseEstimator):
    """Learns to tag texts: scikit-learn's vectoriser and a classifier, saved as one file.

    A scikit-learn pipeline of the two predicts as well, but has no `predict_top_k` and is pickled.

    Parameters
    ----------
    classifier : estimator or None, default=None
        With `predict_top_k`; None means ``PPDSparseClassifier()``. It is cloned, not changed.
    vectorizer : {"tfidf", "hashing"}, default="tfidf"
        "tfidf" learns which words there are and how rare each is; "hashing" learns nothing and
        needs no memory for words, but gives no names to features.
    analyzer : {"word", "char", "char_wb"}, default="word"
        Whether features are words or sequences of characters ("char_wb": within words).
    ngram_range : pair of int, default=(1, 1)
        Shortest and longest sequence of words or characters.
    stop_words : {"english"} or None, default=None
        Words that are left out.
    min_df, max_df : int, float or None, default=None
        Leave out words of fewer or more texts, as a count or a share; "tfidf" only.
    max_features : int or None, default=None
        Keep the most frequent words only; "tfidf" only.
    n_hashes : int or None, default=None
        Number of columns; None means 2**20. "hashing" only.

    Attributes
    ----------
    classifier_ : estimator
        The fitted classifier.
    vectorizer_ : TfidfVectorizer or HashingVectorizer
        Turns texts into rows of length one, in float32.
    feature_names_ : ndarray of str, or None
        The word of each column; None if they are hashed.
    classes_ : ndarray
        Labels.
    label_counts_ : ndarray of int64
        Number of training texts that carry each label.
    fit_size_ : tuple of int
        Texts, features, and stored values of the matrix that the classifier was fitted to.

    Examples
    --------
    >>> from sublearn.extreme import TextTagger
    >>> texts = ["sailing on the Baltic", "the Baltic coast", "survey statistics", "survey data"]
    >>> tagger = TextTagger().fit(texts, [["sea"], ["sea"], ["numbers"], ["numbers"]])
    >>> labels, scores = tagger.predict_top_k(["sailing along the coast"], k=1)
    >>> str(labels[0, 0])
    'sea'
    """

    _kind: ClassVar[str] = "text_labels"

    _rules: ClassVar[dict[str, Rule]] = {
        "classifier": _Classifier(),
        "vectorizer": OneOf("tfidf", "hashing"),
        "analyzer": OneOf("word", "char", "char_wb"),
        "ngram_range": _NgramRange(),
        "stop_words": OneOfOrNone("english"),
        "min_df": _DOCUMENT_COUNT,
        "max_df": _DOCUMENT_COUNT,
        "max_features": OrNone(Positive(int)),
        "n_hashes": OrNone(Interval(int, 1, _MOST_HASHES)),
    }

    vectorizer_: TfidfVectorizer | HashingVectorizer
    feature_names_: np.ndarray | None

    def __init__(
        self,
        classifier: BaseEstimator | None = None,
        *,
        vectorizer: str = "tfidf",
        analyzer: str = "word",
        ngram_range: tuple[int, int] = (1, 1),
        stop_words: str | None = None,
        min_df: int | float | None = None,
        max_df: int | float | None = None,
        max_features: int | None = None,
        n_hashes: int | None = None,
    ):
        self.classifier = classifier
        self.vectorizer = vectorizer
        self.analyzer = analyzer
        self.ngram_range = ngram_range
        self.stop_words = stop_words
        self.min_df = min_df
        self.max_df = max_df
        self.max_features = max_features
        self.n_hashes = n_hashes

    @all_or_nothing
    def fit(
        self,
        texts: Iterable[str],
        y: LabelsLike | EncodedLabels,
        *,
        eval_set: tuple[Iterable[str], LabelsLike] | None = None,
        **fit_params: object,
    ) -> TextTagger:
        """Learn words and labels.

        Parameters
        ----------
        texts : sequence of str
            Texts.
        y : array-like, sparse matrix, or list of label lists
            Their labels, in any form that the classifier takes.
        eval_set : pair (texts, y) or None, default=None
            Held-out texts and their labels, for a classifier whose `fit` takes an `eval_set`.
        **fit_params
            Further arguments of the classifier's `fit`.

        Returns
        -------
        TextTagger
            Itself, fitted.
        """
        self._check_params()
        texts = _check_texts(texts)
        vectorizer = self._make_vectorizer()
        X = _fit_transform(vectorizer, texts)
        classifier = PPDSparseClassifier() if self.classifier is None else clone(self.classifier)
        if eval_set is not None:
            fit_params["eval_set"] = _as_rows(vectorizer, eval_set)
        labels = encode_labels(y, len(texts), estimator_name=type(self).__name__)
        takes_read = isinstance(classifier, LabelClassifier)
        classifier.fit(X, labels if takes_read else y, **fit_params)
        self.vectorizer_, self.classifier_ = vectorizer, classifier
        self.feature_names_ = self._words()
        self.label_counts_ = labels.counts()
        self.fit_size_ = (*X.shape, int(X.nnz))
        return self

    @property
    def classes_(self) -> np.ndarray:
        """Labels, in the order of the classifier."""
        return self._fitted().classes_

    @property
    def coef_(self) -> sp.csc_matrix:
        """The classifier's weights, of shape (n_classes, n_features)."""
        return self._fitted().coef_

    @property
    def intercept_(self) -> np.ndarray:
        """Bias of each label."""
        return self._fitted().intercept_

    def transform(self, texts: Iterable[str]) -> sp.csr_matrix:
        """The rows that the classifier sees.

        Parameters
        ----------
        texts : sequence of str
            Texts. One without a known word is a row without values.

        Returns
        -------
        csr_matrix of float32, shape (n_texts, n_features)
        """
        check_is_fitted(self)
        return self.vectorizer_.transform(_check_texts(texts))

    def predict(self, texts: Iterable[str]) -> DecodedLabels:
        """Labels, in the form in which `fit` got them; see the classifier's `predict`."""
        return self._fitted().predict(self.transform(texts))

    def predict_top_k(self, texts: Iterable[str], k: int = 5) -> tuple[np.ndarray, np.ndarray]:
        """The `k` best labels of each text, best first, and their scores.

        Parameters
        ----------
        texts : sequence of str
            Texts.
        k : int, default=5
            How many; all labels if there are fewer.

        Returns
        -------
        labels : ndarray of shape (n_texts, k)
            Labels.
        scores : ndarray of shape (n_texts, k)
            Positive where the label would be predicted on its own.
        """
        return self._fitted().predict_top_k(self.transform(texts), k)

    def decision_function(self, texts: Iterable[str]) -> np.ndarray:
        """Scores of all labels, dense; with very many labels prefer `predict_top_k`."""
        return self._fitted().decision_function(self.transform(texts))

    def score(
        self, texts: Iterable[str], y: LabelsLike, sample_weight: WeightsLike | None = None
    ) -> float:
        """The classifier's `score`: share of texts whose labels are all right."""
        return self._fitted().score(self.transform(texts), y, sample_weight)

    def calibrate(
        self,
        texts: Iterable[str],
        y: LabelsLike,
        method: str = "sigmoid",
        *,
        min_positives: int | None = None,
    ) -> TextTagger:
        """Learn from held-out texts what probability a score stands for.

        Parameters
        ----------
        texts : sequence of str
            Texts that were not used to fit.
        y : array-like, sparse matrix, or list of label lists
            Their labels, in the form given to `fit`.
        method, min_positives
            As in the classifier's `calibrate`.

        Returns
        -------
        TextTagger
            Itself.
        """
        X = self.transform(texts)
        self.classifier_.calibrate(X, y, method, min_positives=min_positives)
        return self

    @available_if(_has_probabilities)
    def predict_proba(self, texts: Iterable[str]) -> np.ndarray:
        """Probabilities of all labels, dense; there after `calibrate` only."""
        return self._fitted().predict_proba(self.transform(texts))

    @available_if(_has_probabilities)
    def predict_proba_top_k(
        self, texts: Iterable[str], k: int = 5
    ) -> tuple[np.ndarray, np.ndarray]:
        """The `k` best labels of each text and their probabilities; after `calibrate` only."""
        return self._fitted().predict_proba_top_k(self.transform(texts), k)

    def explain(self, text: str, label: Hashable, k: int = 10) -> Explanation:
        """The words behind a label's score of one text.

        Parameters
        ----------
        text : str
            One text.
        label : object
            An entry of `classes_`.
        k : int, default=10
            Most words to list.

        Returns
        -------
        Explanation
            If words are hashed, each stands for the column it falls into, named with all words of
            the text that fall there.
        """
        if not isinstance(text, str):
            raise ValueError(f"explain.text must be a string, got {show(text)}")
        x = self.transform([text])
        words = self.feature_names_
        names = HashedNames(self.vectorizer_, text) if words is None else words
        return self.classifier_.explain(x, label, k, feature_names=names)

    def _fitted(self) -> BaseEstimator:
        check_is_fitted(self)
        return self.classifier_

    def _check_params(self) -> None:
        check_params(self)
        others = _HASHING_ONLY if self.vectorizer == "tfidf" else _TFIDF_ONLY
        for name in others:
            if getattr(self, name) is not None:
                raise ParameterError(
                    f"{type(self).__name__}.{name} must be None for vectorizer="
                    f"{self.vectorizer!r}, got {show(getattr(self, name))}"
                )

    def _make_vectorizer(self) -> TfidfVectorizer | HashingVectorizer:
        """In float32; what is None keeps scikit-learn's default.

        Rows have length one; tf-idf takes the logarithm of counts, so that a word said ten times
        does not drown the others.
        """
        names = ("analyzer", "stop_words", *_TFIDF_ONLY)
        given = {n: getattr(self, n) for n in names if getattr(self, n) is not None}
        given |= {"ngram_range": tuple(self.ngram_range), "dtype": np.float32}
        if self.vectorizer == "hashing":
            return HashingVectorizer(n_features=self.n_hashes or _N_HASHES, **given)
        return TfidfVectorizer(sublinear_tf=True, **given)

    def _words(self) -> np.ndarray | None:
        """What the vectoriser learnt, in the order of columns; None if it hashes."""
        if self.vectorizer == "hashing":
            return None
        columns = self.vectorizer_.vocabulary_
        return np.array(sorted(columns, key=columns.__getitem__), dtype=object)

    def _stored_params(self) -> State:
        return storable_params(self) | {"classifier": None}

    def _to_bundle(self) -> State:
        has_words = self.feature_names_ is not None
        words = {"words": self.feature_names_, "idf": self.vectorizer_.idf_} if has_words else {}
        return {
            **words,
            **nested_state(self.classifier_, _CLASSIFIER),
            "label_counts_": self.label_counts_,
            "fit_size_": tuple(self.fit_size_),
        }

    def _fields(self) -> Fields:
        words = {"words": Strings("features", distinct=True), "idf": Floats("features")}
        return {
            **(words if self.vectorizer == "tfidf" else {}),
            "label_counts_": Integers("classes"),
            "fit_size_": ListOf(NonNegative(int), 3),
            f"{_CLASSIFIER}*": Parts(),
        }

    def _restore(self, state: State) -> None:
        self.classifier_ = restore_nested(state, _CLASSIFIER)
        self.classifier = clone(self.classifier_)
        self.vectorizer_ = self._make_vectorizer()
        self.feature_names_ = state.pop("words", None)
        if self.feature_names_ is not None:
            words = self.feature_names_.tolist()
            self.vectorizer_.vocabulary_ = {word: column for column, word in enumerate(words)}
            self.vectorizer_.fixed_vocabulary_ = False
            self.vectorizer_.idf_ = np.asarray(state.pop("idf"))
        self._refuse_another_classifier(len(state["label_counts_"]))
        super()._restore(state)

    def _refuse_another_classifier(self, n_counts: int) -> None:
        own, words = self.classifier_, self.feature_names_
        n_columns = self.vectorizer_.n_features if words is None else len(words)
        n_features = getattr(own, "n_features_in_", None)
        if not _Classifier().accepts(own) or n_features != n_columns:
            raise ValueError(
                f"{_CLASSIFIER}class must rank labels of {n_columns} features, "
                f"got {type(own).__name__} of {n_features}"
            )
        if n_counts != len(own.classes_):
            raise ValueError(
                f"label_counts_ must have shape ({len(own.classes_)},), got ({n_counts},)"
            )

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "classifier_")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        tags.classifier_tags.multi_label = True
        return tags


def _check_texts(texts: Iterable[str], argument: str = "texts") -> list[str]:
    if isinstance(texts, (str, bytes)) or not hasattr(texts, "__iter__"):
        raise ValueError(f"{argument} must be a sequence of strings, got {show(texts)}")
    found = list(texts)
    for i, text in enumerate(found):
        if not isinstance(text, str):
            raise ValueError(f"{argument} must hold strings, got {show(text)} at position {i}")
    if not found:
        raise ValueError(f"{argument} must have at least one text, got none")
    return found


def _as_rows(
    vectorizer: TfidfVectorizer | HashingVectorizer, eval_set: tuple[Iterable[str], LabelsLike]
) -> tuple[sp.csr_matrix, LabelsLike]:
    """Held-out texts and labels as the classifier takes them."""
    if not isinstance(eval_set, (tuple, list)) or len(eval_set) != 2:
        raise ValueError(f"eval_set must be a pair (texts, y), got {show(eval_set)}")
    return vectorizer.transform(_check_texts(eval_set[0], "eval_set[0]")), eval_set[1]


def _fit_transform(
    vectorizer: TfidfVectorizer | HashingVectorizer, texts: list[str]
) -> sp.csr_matrix:
    try:
        return vectorizer.fit_transform(texts)
    except ValueError as error:  # no word at all, or none left by min_df and max_df
        reason = str(error).rstrip(".").lower()
        raise ValueError(f"texts must have words to learn from, got none: {reason}") from error
