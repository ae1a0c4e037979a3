"""How texts become rows of numbers: scikit-learn's vectorisers, and dense vectors beside them."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, clone
from sklearn.feature_extraction.text import HashingVectorizer, TfidfVectorizer
from sklearn.preprocessing import normalize
from sklearn.utils.sparsefuncs_fast import inplace_csr_row_normalize_l2

from sublearn.typing import State
from sublearn.validation import Rule
from sublearn.validation.values import is_int64, show

__all__ = [
    "Analyzer",
    "AnalyzerRule",
    "Embedder",
    "NgramRange",
    "Stemmed",
    "StopWords",
    "Transformer",
    "TransformerRule",
    "check_texts",
    "make_vectorizer",
    "stack",
    "text_rows",
]

#: Turns a text into the terms that are counted.
Analyzer: TypeAlias = Callable[[str], Iterable[str]]
#: Turns texts into rows of numbers, shape (n_texts, n_dimensions).
Embedder: TypeAlias = Callable[[list[str]], np.ndarray]
#: A scikit-learn transformer of texts.
Transformer: TypeAlias = BaseEstimator
_ANALYZERS = ("auto", "word", "char", "char_wb")
#: Sizes of sequences, where the user says nothing. On 5,000 Finnish titles 4 characters had the
#: precision of 3 to 5 within noise, .396 and .401, for a quarter of the time.
_SIZES = {"word": (1, 1), "char": (4, 4), "char_wb": (4, 4)}
_N_HASHES = 2**20
#: From about here on scikit-learn's own loop is the quicker one.
_FEW_TEXTS = 512


class AnalyzerRule(Rule):
    """`analyzer`."""

    def accepts(self, value: object) -> bool:
        """Whether `value` obeys the rule."""
        return callable(value) or (isinstance(value, str) and value in _ANALYZERS)

    def __str__(self) -> str:
        return f"one of {', '.join(map(repr, _ANALYZERS))}, or a function from text to terms"


class StopWords(Rule):
    """`stop_words`."""

    def accepts(self, value: object) -> bool:
        """Whether `value` obeys the rule."""
        if value is None or (isinstance(value, str) and value == "english"):
            return True
        return isinstance(value, (list, tuple, set, frozenset)) and all(
            isinstance(word, str) for word in value
        )

    def __str__(self) -> str:
        return "'english', a list of words, or None"


class NgramRange(Rule):
    """A pair of sizes, or None."""

    def accepts(self, value: object) -> bool:
        """Whether `value` obeys the rule."""
        if value is None:
            return True
        if not isinstance(value, (tuple, list)) or len(value) != 2:
            return False
        return all(is_int64(n) for n in value) and 1 <= value[0] <= value[1]

    def __str__(self) -> str:
        return "a pair of positive integers, the smaller first, or None"


class TransformerRule(Rule):
    """`vectorizer`."""

    def accepts(self, value: object) -> bool:
        """Whether `value` obeys the rule."""
        if isinstance(value, str):
            return value in ("tfidf", "hashing")
        is_one = isinstance(value, BaseEstimator)
        return is_one and hasattr(value, "fit_transform") and hasattr(value, "transform")

    def __str__(self) -> str:
        return "'tfidf' or 'hashing', or a scikit-learn transformer of texts"


@dataclass(frozen=True)
class Stemmed:
    """An analyzer whose terms are words after a stemmer, stop words left out before."""

    words: Analyzer
    stem: Callable[[str], str]

    def __call__(self, text: str) -> list[str]:
        """The terms of a text."""
        return [self.stem(word) for word in self.words(text)]


def make_vectorizer(params: State, analyzer: str | Analyzer) -> Transformer:
    """The vectoriser that parameters of `TextTagger` name, for an analyzer that is chosen.

    In float32; what is None keeps scikit-learn's default. Rows have length one; tf-idf takes the
    logarithm of counts, so that a word said ten times does not drown the others.
    """
    vectorizer = params["vectorizer"]
    if isinstance(vectorizer, BaseEstimator):
        return clone(vectorizer)
    names = ["min_df", "max_df", "max_features"]
    if isinstance(analyzer, str) and analyzer == "word":
        names += ["token_pattern", "stop_words"]
    given = {name: params[name] for name in names if params[name] is not None}
    if "stop_words" in given and not isinstance(given["stop_words"], str):
        given["stop_words"] = sorted(given["stop_words"])
    given |= {"analyzer": analyzer, "dtype": np.float32}
    if isinstance(analyzer, str):
        given["ngram_range"] = tuple(params["ngram_range"] or _SIZES[analyzer])
    if params["stemmer"] is not None:
        given = _with_stems(given, params["stemmer"])
    if vectorizer == "hashing":
        return HashingVectorizer(n_features=params["n_hashes"] or _N_HASHES, **given)
    return TfidfVectorizer(sublinear_tf=True, **given)


def _with_stems(given: State, stem: Callable[[str], str]) -> State:
    """Settings whose analyzer gives stems: sequences are those of the words that are left."""
    names = ("token_pattern", "stop_words", "ngram_range", "analyzer")
    own = {name: given.pop(name) for name in names if name in given}
    if not isinstance(own["analyzer"], str):
        return given | {"analyzer": Stemmed(own["analyzer"], stem)}
    sizes = own.pop("ngram_range")
    words = TfidfVectorizer(**own, ngram_range=(1, 1)).build_analyzer()
    return given | {"analyzer": _Sequences(Stemmed(words, stem), *sizes)}


@dataclass(frozen=True)
class _Sequences:
    """An analyzer that gives sequences of the terms of another one, joined by blanks."""

    terms: Analyzer
    shortest: int
    longest: int

    def __call__(self, text: str) -> list[str]:
        """The sequences of a text, the shortest first."""
        words = list(self.terms(text))
        sizes = range(self.shortest, self.longest + 1)
        return [" ".join(words[i : i + n]) for n in sizes for i in range(len(words) - n + 1)]


def text_rows(vectorizer: Transformer, texts: list[str], *, learns: bool) -> sp.csr_matrix:
    """Rows of texts in float32; the vectoriser learns from them before, if asked to."""
    if not learns:
        if len(texts) <= _FEW_TEXTS and _is_plain_tfidf(vectorizer):
            return _tfidf_rows(vectorizer, texts)
        return sp.csr_matrix(vectorizer.transform(texts), dtype=np.float32)
    try:
        return sp.csr_matrix(vectorizer.fit_transform(texts), dtype=np.float32)
    except ValueError as error:  # no word at all, or none left by min_df and max_df
        reason = str(error).rstrip(".").lower()
        raise ValueError(f"texts must have words to learn from, got none: {reason}") from error


def _is_plain_tfidf(vectorizer: Transformer) -> bool:
    if type(vectorizer) is not TfidfVectorizer or vectorizer.dtype is not np.float32:
        return False
    return bool(vectorizer.norm == "l2" and vectorizer.use_idf and not vectorizer.binary)


def _tfidf_rows(vectorizer: TfidfVectorizer, texts: list[str]) -> sp.csr_matrix:
    """What the vectoriser's `transform` gives, to the last bit.

    That one validates its own matrices four times, which takes .3 milliseconds, and a title .01.
    """
    terms, column_of = vectorizer.build_analyzer(), vectorizer.vocabulary_.get
    columns, counts, ends = array("i"), array("f"), [0]
    for text in texts:
        found = Counter(map(column_of, terms(text)))
        found.pop(None, None)  # terms that were not learnt
        for column in sorted(found):
            columns.append(column)
            counts.append(found[column])
        ends.append(len(columns))
    indices, data = np.array(columns, dtype=np.int32), np.array(counts, dtype=np.float32)
    if vectorizer.sublinear_tf:
        data = np.log(data) + np.float32(1)
    data *= vectorizer.idf_[indices]
    rows = sp.csr_matrix((data, indices, ends), shape=(len(texts), len(vectorizer.vocabulary_)))
    inplace_csr_row_normalize_l2(rows)
    return rows


def stack(rows: sp.csr_matrix, embed: Embedder | None, texts: list[str]) -> sp.csr_matrix:
    """Rows with dense vectors of length one beside them, if there is a function that makes them."""
    if embed is None:
        return rows
    vectors = np.asarray(embed(texts), dtype=np.float32)
    if vectors.ndim != 2 or len(vectors) != len(texts) or not np.isfinite(vectors).all():
        raise ValueError(
            "embedder must give one row of finite numbers for each text, "
            f"got shape {vectors.shape} for {len(texts)} texts"
        )
    return sp.csr_matrix(sp.hstack([rows, sp.csr_matrix(normalize(vectors))], format="csr"))


def check_texts(texts: Iterable[str], argument: str = "texts") -> list[str]:
    """Texts as a list; refuses anything else."""
    if isinstance(texts, (str, bytes)) or not isinstance(texts, Iterable):
        raise ValueError(f"{argument} must be a sequence of strings, got {show(texts)}")
    found: Sequence[str] = list(texts)
    for i, text in enumerate(found):
        if not isinstance(text, str):
            raise ValueError(f"{argument} must hold strings, got {show(text)} at position {i}")
    if not found:
        raise ValueError(f"{argument} must have at least one text, got none")
    return list(found)
