"""From raw text to labels: a vectoriser and a classifier with very many labels in one model."""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import Tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from sublearn.errors import ParameterError
from sublearn.execution import all_or_nothing, one_at_a_time
from sublearn.extreme.explanation import Explanation, HashedNames, Names, explain_score
from sublearn.extreme.linear_classifier import LinearLabelClassifier
from sublearn.extreme.ppd_sparse import PPDSparseClassifier
from sublearn.extreme.text_choice import Choice, Trial, choose
from sublearn.extreme.text_vectors import (
    Analyzer,
    AnalyzerRule,
    Embedder,
    NgramRange,
    StopWords,
    Transformer,
    TransformerRule,
    check_texts,
    make_vectorizer,
    stack,
    text_rows,
)
from sublearn.fitting.html import FitOnDisplay
from sublearn.fitting.labels import LabelClassifier
from sublearn.io.fields import Fields, Floats, Integers, ListOf, OrAbsent, Parts, Strings
from sublearn.io.models import SavedModel, nested_state, restore_nested, storable_params
from sublearn.metrics.names import find_positions
from sublearn.typing import LabelsLike, PathLike, State, WeightsLike
from sublearn.validation import (
    CallableOrNone,
    Either,
    EncodedLabels,
    InstanceOf,
    Interval,
    NonNegative,
    OneOf,
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
_OF_WORDS = ("ngram_range", "stop_words", "token_pattern", "stemmer")
_MOST_HASHES = 2**31 - 2  # scikit-learn's limit
_CODE = ("analyzer", "stemmer", "vectorizer", "embedder")  # parameters that may be functions


def _has_probabilities(tagger: TextTagger) -> bool:
    if not hasattr(tagger.__dict__.get("classifier_"), "predict_proba"):
        raise AttributeError(
            "TextTagger gives probabilities after calibrate(texts, y) on held-out texts"
        )
    return True


def _can(method: str, instead: str) -> Callable[[TextTagger], bool]:
    """Whether the classifier has a method; what to call instead."""

    def check(tagger: TextTagger) -> bool:
        own = tagger.__dict__.get("classifier_", tagger.classifier)
        own = PPDSparseClassifier() if own is None else own
        if not hasattr(own, method):
            raise AttributeError(f"{type(own).__name__} has no {method}: {instead}")
        return True

    return check


class _Classifier(Rule):
    """An estimator of this library that ranks labels, or None."""

    def accepts(self, value: object) -> bool:
        """Whether `value` obeys the rule."""
        return value is None or (hasattr(value, "fit") and hasattr(value, "predict_top_k"))

    def __str__(self) -> str:
        return "a classifier with predict_top_k, or None"


_DOCUMENT_COUNT = OrNone(Either(Positive(int), Interval(float, 0.0, 1.0, "right")))


class TextTagger(FitOnDisplay, SavedModel, ClassifierMixin, BaseEstimator):
    """Learns to tag texts: scikit-learn's vectoriser and a classifier, saved as one file.

    A scikit-learn pipeline of the two predicts as well, but has no `predict_top_k` and is pickled.

    Parameters
    ----------
    classifier : estimator or None, default=None
        With `predict_top_k`; None means ``PPDSparseClassifier()``. It is cloned, not changed.
    vectorizer : {"tfidf", "hashing"} or transformer, default="tfidf"
        "tfidf" learns which words there are and how rare each is; "hashing" learns nothing and
        needs no memory for words, but gives no names to features. Any scikit-learn transformer of
        texts is cloned and used as it is; such a tagger cannot be saved.
    analyzer : {"auto", "word", "char", "char_wb"} or callable, default="auto"
        Whether features are words or sequences of characters ("char_wb": within words), or a
        function from a text to its terms. "auto" takes words, or "char_wb" where that ranks the
        labels of held-out texts clearly better, in nDCG@5 by two standard errors: it fits the
        classifier to at most 4,000 of the texts for each. It takes words without a trial where
        there are fewer than 50 texts or more than five million characters, and where one of
        `ngram_range`, `stop_words`, `token_pattern` and `stemmer` is given.
    ngram_range : pair of int or None, default=None
        Shortest and longest sequence; None means (1, 1) for words and (4, 4) for characters.
    stop_words : {"english"}, list of str or None, default=None
        Words that are left out.
    token_pattern : str or None, default=None
        Regular expression of a word; None means scikit-learn's, two characters or more.
    stemmer : callable or None, default=None
        Makes its stem of a word.
    min_df, max_df : int, float or None, default=None
        Leave out words of fewer or more texts, as a count or a share; "tfidf" only.
    max_features : int or None, default=None
        Keep the most frequent words only; "tfidf" only.
    n_hashes : int or None, default=None
        Number of columns; None means 2**20. "hashing" only.
    embedder : callable or None, default=None
        Makes a dense vector of each of a list of texts, such as a sentence encoder: they stand
        beside the words, scaled to length one.
    decision : {"auto", "above_zero"}, default="auto"
        Which labels `predict` gives where a text may carry several. "auto" tunes one threshold on
        held-out texts, with a fit to at most 4,000 of them (:meth:`tune_thresholds`), and gives
        at least one label; for classifiers without `tune_thresholds` it is their own `predict`.
        "above_zero" are the labels that score above zero, often none.

    Attributes
    ----------
    classifier_ : estimator
        The fitted classifier.
    vectorizer_ : transformer
        Turns texts into rows, of length one and in float32 if it is scikit-learn's own.
    analyzer_ : str or callable
        What `analyzer` is, or was chosen to be.
    feature_names_ : ndarray of str, or None
        The word of each column; None if they are hashed or have no names.
    label_names_ : ndarray of str, or None
        What `set_label_names` was told, in the order of `classes_`, or the columns of a data frame.
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
        "vectorizer": TransformerRule(),
        "analyzer": AnalyzerRule(),
        "ngram_range": NgramRange(),
        "stop_words": StopWords(),
        "token_pattern": OrNone(InstanceOf(str)),
        "stemmer": CallableOrNone(),
        "min_df": _DOCUMENT_COUNT,
        "max_df": _DOCUMENT_COUNT,
        "max_features": OrNone(Positive(int)),
        "n_hashes": OrNone(Interval(int, 1, _MOST_HASHES)),
        "embedder": CallableOrNone(),
        "decision": OneOf("auto", "above_zero"),
    }

    vectorizer_: Transformer
    analyzer_: str | Analyzer
    feature_names_: np.ndarray | None
    label_names_: np.ndarray | None = None

    def __init__(
        self,
        classifier: BaseEstimator | None = None,
        *,
        vectorizer: str | Transformer = "tfidf",
        analyzer: str | Analyzer = "auto",
        ngram_range: tuple[int, int] | None = None,
        stop_words: str | Collection[str] | None = None,
        token_pattern: str | None = None,
        stemmer: Callable[[str], str] | None = None,
        min_df: int | float | None = None,
        max_df: int | float | None = None,
        max_features: int | None = None,
        n_hashes: int | None = None,
        embedder: Embedder | None = None,
        decision: str = "auto",
    ):
        self.classifier = classifier
        self.vectorizer = vectorizer
        self.analyzer = analyzer
        self.ngram_range = ngram_range
        self.stop_words = stop_words
        self.token_pattern = token_pattern
        self.stemmer = stemmer
        self.min_df = min_df
        self.max_df = max_df
        self.max_features = max_features
        self.n_hashes = n_hashes
        self.embedder = embedder
        self.decision = decision

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
        texts = check_texts(texts)
        labels = encode_labels(y, len(texts), estimator_name=type(self).__name__)
        classifier = PPDSparseClassifier() if self.classifier is None else clone(self.classifier)
        weights = fit_params.get("sample_weight")
        trial = Trial(texts, labels, classifier, self._rows_of, weights)
        tunes = self.decision == "auto" and eval_set is None
        choice = choose(trial, self._wanted_analyzer(), tunes=tunes)
        vectorizer = make_vectorizer(self.get_params(deep=False), choice.analyzer)
        X = stack(text_rows(vectorizer, texts, learns=True), self.embedder, texts)
        if eval_set is not None:
            fit_params["eval_set"] = self._held_out_rows(vectorizer, eval_set)
        takes_read = isinstance(classifier, LabelClassifier)
        classifier.fit(X, labels if takes_read else y, **fit_params)
        self._take(vectorizer, classifier, choice)
        self.label_names_, self.label_counts_ = labels.names, labels.counts()
        self.fit_size_ = (*X.shape, int(X.nnz))
        return self

    def _take(self, vectorizer: Transformer, classifier: BaseEstimator, choice: Choice) -> None:
        if choice.decision is not None:
            classifier.decision_ = choice.decision
        self.vectorizer_, self.classifier_ = vectorizer, classifier
        self.analyzer_ = choice.analyzer
        self.feature_names_ = self._words()

    def _wanted_analyzer(self) -> str | Analyzer:
        """The parameter; what says something of words makes "auto" words."""
        is_open = isinstance(self.analyzer, str) and self.analyzer == "auto"
        says_more = any(getattr(self, name) is not None for name in _OF_WORDS)
        own = isinstance(self.vectorizer, BaseEstimator)
        return "word" if is_open and (says_more or own) else self.analyzer

    def _rows_of(
        self, analyzer: str | Analyzer, train: list[str], held_out: list[str]
    ) -> tuple[sp.csr_matrix, sp.csr_matrix]:
        """Rows of two lists of texts for a trial; the first one is learnt from."""
        vectorizer = make_vectorizer(self.get_params(deep=False), analyzer)
        X = text_rows(vectorizer, train, learns=True)
        X_new = text_rows(vectorizer, held_out, learns=False)
        return stack(X, self.embedder, train), stack(X_new, self.embedder, held_out)

    def _held_out_rows(
        self, vectorizer: Transformer, eval_set: tuple[Iterable[str], LabelsLike]
    ) -> tuple[sp.csr_matrix, LabelsLike]:
        """Held-out texts and labels as the classifier takes them."""
        if not isinstance(eval_set, (tuple, list)) or len(eval_set) != 2:
            raise ValueError(f"eval_set must be a pair (texts, y), got {show(eval_set)}")
        texts = check_texts(eval_set[0], "eval_set[0]")
        rows = text_rows(vectorizer, texts, learns=False)
        return stack(rows, self.embedder, texts), eval_set[1]

    @available_if(_can("partial_fit", "call fit with the old texts and the new ones"))
    @one_at_a_time
    @all_or_nothing
    def partial_fit(self, texts: Iterable[str], y: LabelsLike, **fit_params: object) -> TextTagger:
        """Learn from further texts; on a tagger that is not fitted this is `fit`.

        Words that it does not know are passed over: only a hashing tagger has columns for them.
        Thresholds stay as they are.

        Parameters
        ----------
        texts : sequence of str
            Texts.
        y : array-like, sparse matrix, or list of label lists
            Their labels, in the form given to `fit`; there may be new ones among them.
        **fit_params
            Further arguments of the classifier's `partial_fit`, such as `update_known`.

        Returns
        -------
        TextTagger
            Itself.
        """
        if not self.__sklearn_is_fitted__():
            return self.fit(texts, y)
        texts = check_texts(texts)
        X, before = self.transform(texts), self.classes_
        labels = encode_labels(y, len(texts), estimator_name="partial_fit", for_fit=False)
        classifier = copy.copy(self.classifier_)
        classifier.partial_fit(X, y, **fit_params)
        self.classifier_ = classifier
        self._recount(before, labels)
        n_texts, n_features, n_values = self.fit_size_
        self.fit_size_ = (n_texts + X.shape[0], n_features, n_values + int(X.nnz))
        return self

    def _recount(self, before: np.ndarray, labels: EncodedLabels | None) -> None:
        """Counts and names of labels after some have come or gone."""
        places = find_positions(before, self.classes_, argument="y")
        counts = np.where(places >= 0, self.label_counts_[places], 0)
        if labels is not None:
            more = find_positions(labels.classes, self.classes_, argument="y")
            counts += np.where(more >= 0, np.append(labels.counts(), 0)[more], 0)
        self.label_counts_ = counts
        if self.label_names_ is not None:
            self.label_names_ = np.where(places >= 0, self.label_names_[places], "").astype(object)

    @available_if(_can("remove_labels", "call fit without them"))
    @one_at_a_time
    @all_or_nothing
    def remove_labels(self, labels: Iterable[Hashable]) -> TextTagger:
        """Forget labels; see the classifier's `remove_labels`."""
        before = self._fitted().classes_
        classifier = copy.copy(self.classifier_)
        self.classifier_ = classifier.remove_labels(labels)
        self._recount(before, None)
        return self

    @available_if(_can("compress", "its weights have one form"))
    def compress(self, bits: int = 8, *, prune: float = 0.0) -> TextTagger:
        """A copy with smaller weights; see the classifier's `compress`."""
        tagger = copy.copy(self)
        tagger.classifier_ = self._fitted().compress(bits, prune=prune)
        return tagger

    @available_if(_can("tune_thresholds", "choose labels by predict_top_k"))
    @one_at_a_time
    def tune_thresholds(
        self, texts: Iterable[str], y: LabelsLike, rule: str = "global", **how: object
    ) -> TextTagger:
        """Learn from held-out texts which labels `predict` gives.

        Parameters
        ----------
        texts : sequence of str
            Texts that were not used to fit.
        y : array-like, sparse matrix, or list of label lists
            Their labels, in the form given to `fit`.
        rule, **how
            As in the classifier's `tune_thresholds`.

        Returns
        -------
        TextTagger
            Itself.
        """
        X = self.transform(texts)
        self.classifier_.tune_thresholds(X, y, rule, **how)
        return self

    def set_label_names(self, names: Mapping[Hashable, str]) -> TextTagger:
        """Say what labels are called, where they are ids; stored with the tagger.

        Parameters
        ----------
        names : mapping
            From labels to names. Labels without one keep their own; others are passed over.

        Returns
        -------
        TextTagger
            Itself, with `label_names_`.
        """
        classes = self._fitted().classes_.tolist()
        if not isinstance(names, Mapping) or not all(isinstance(n, str) for n in names.values()):
            raise ValueError(
                f"set_label_names.names must be a mapping from labels to strings, got {show(names)}"
            )
        own = [str(names.get(label, label)) for label in classes]
        self.label_names_ = np.array(own, dtype=object)
        return self

    def name_labels(self, labels: np.ndarray) -> np.ndarray:
        """Names of labels, such as `predict_top_k` gives; the labels as strings without names."""
        found = np.asarray(labels)
        if self.label_names_ is None:
            return found.astype(str).astype(object)
        places = find_positions(self.classes_, found, argument="name_labels.labels")
        return np.where(places >= 0, self.label_names_[places], found.astype(str))

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
        texts = check_texts(texts)
        return stack(text_rows(self.vectorizer_, texts, learns=False), self.embedder, texts)

    def predict(self, texts: Iterable[str]) -> DecodedLabels:
        """Labels, in the form in which `fit` got them; see the classifier's `predict`.

        Where a text may carry several labels and thresholds were tuned, as `decision="auto"` does,
        one without a known word has none.
        """
        X = self.transform(texts)
        found = self._fitted().predict(X)
        is_mute = np.diff(X.indptr) == 0
        if not is_mute.any() or "decision_" not in self.classifier_.__dict__:
            return found
        if isinstance(found, list):
            return [[] if mute else own for own, mute in zip(found, is_mute, strict=True)]
        if not sp.issparse(found):
            return np.where(is_mute[:, None], found.dtype.type(0), found)
        keep = sp.diags((~is_mute).astype(found.dtype), dtype=found.dtype)
        return sp.csr_matrix(keep @ found)

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
        names = self._feature_names(text, x.shape[1])
        if isinstance(self.classifier_, LinearLabelClassifier):
            return self.classifier_.explain(x, label, k, feature_names=names)
        if not is_int64(k) or k < 1:
            raise ValueError(f"explain.k must be a positive integer, got {show(k)}")
        weights, bias = self._weights_of(label)
        return explain_score(x, weights, bias, label, int(k), names)

    def _weights_of(self, label: Hashable) -> tuple[sp.csr_matrix, float]:
        """Weights and bias of a label in any linear classifier."""
        own = self.classifier_
        found = [k for k, known in enumerate(own.classes_.tolist()) if known == label]
        if not found:
            raise ValueError(f"explain.label must be one of classes_, got {show(label)}")
        try:
            weights, bias = sp.csr_matrix(own.coef_), np.ravel(own.intercept_)
        except AttributeError:
            raise ValueError(
                f"explain needs a linear classifier with coef_, got {type(own).__name__}"
            ) from None
        if weights.shape[0] == 1 and len(own.classes_) == 2:  # those of the second class
            sign = 1 if found[0] else -1
            return sign * weights, sign * float(bias[0])
        return weights[found[0]], float(bias[found[0]])

    def _feature_names(self, text: str, n_columns: int) -> Names | None:
        """Names of the columns: words, what is hashed to them, or what a dense vector has."""
        words = self.feature_names_
        if words is None and self.vectorizer == "hashing" and self.embedder is None:
            return HashedNames(self.vectorizer_, text)
        if words is None:
            return None
        more = [f"vector {i}" for i in range(n_columns - len(words))]
        return [*words.tolist(), *more] if more else words

    def _fitted(self) -> BaseEstimator:
        check_is_fitted(self)
        return self.classifier_

    def _check_params(self) -> None:
        check_params(self)
        own = isinstance(self.vectorizer, BaseEstimator)
        others = {"tfidf": ("n_hashes",), "hashing": _TFIDF_ONLY}
        names = (*_TFIDF_ONLY, *_OF_WORDS, "n_hashes") if own else others[str(self.vectorizer)]
        for name in names:
            if getattr(self, name) is not None:
                raise ParameterError(
                    f"{type(self).__name__}.{name} must be None for vectorizer="
                    f"{show(self.vectorizer)}, got {show(getattr(self, name))}"
                )
        is_auto = isinstance(self.analyzer, str) and self.analyzer == "auto"
        if own and not is_auto:
            raise ParameterError(
                f"{type(self).__name__}.analyzer must be 'auto' for a vectorizer of its own, "
                f"got {show(self.analyzer)}"
            )

    def _words(self) -> np.ndarray | None:
        """What the vectoriser learnt, in the order of columns; None if it has no names."""
        if isinstance(self.vectorizer, BaseEstimator):
            try:
                return np.asarray(self.vectorizer_.get_feature_names_out(), dtype=object)
            except (AttributeError, ValueError):
                return None
        if self.vectorizer == "hashing":
            return None
        columns = self.vectorizer_.vocabulary_
        return np.array(sorted(columns, key=columns.__getitem__), dtype=object)

    def save(self, path: PathLike, *, notes: Mapping[str, object] | None = None) -> None:
        """Write the tagger to one file for `sublearn.load`; see `SavedModel.save`.

        A file holds no code: a tagger with a function among its parameters, or with a vectoriser
        of its own, is refused.
        """
        check_is_fitted(self)
        for name in _CODE:
            value = getattr(self, name)
            if value is not None and not isinstance(value, str):
                raise TypeError(
                    f"TextTagger.save cannot store {name}={show(value)}: a file holds no code. "
                    "Save classifier_ alone and keep the vectoriser beside it, or pickle the tagger"
                )
        super().save(path, notes=notes)

    def _stored_params(self) -> State:
        words = self.stop_words
        plain = {"stop_words": words if words is None or isinstance(words, str) else sorted(words)}
        return storable_params(self) | plain | {"classifier": None}

    def _to_bundle(self) -> State:
        has_words = self.feature_names_ is not None
        words = {"words": self.feature_names_, "idf": self.vectorizer_.idf_} if has_words else {}
        return {
            **words,
            **nested_state(self.classifier_, _CLASSIFIER),
            **({} if self.label_names_ is None else {"label_names_": self.label_names_}),
            "analyzer_": self.analyzer_,
            "label_counts_": self.label_counts_,
            "fit_size_": tuple(self.fit_size_),
        }

    def _fields(self) -> Fields:
        words = {"words": Strings("features", distinct=True), "idf": Floats("features")}
        return {
            **(words if self.vectorizer == "tfidf" else {}),
            "analyzer_": OrAbsent(OneOf("word", "char", "char_wb")),
            "label_names_": OrAbsent(Strings("classes")),
            "label_counts_": Integers("classes"),
            "fit_size_": ListOf(NonNegative(int), 3),
            f"{_CLASSIFIER}*": Parts(),
        }

    def _restore(self, state: State) -> None:
        self.classifier_ = restore_nested(state, _CLASSIFIER)
        self.classifier = clone(self.classifier_)
        self.analyzer_ = state.pop("analyzer_", self._wanted_analyzer())
        self.vectorizer_ = make_vectorizer(self.get_params(deep=False), self.analyzer_)
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
