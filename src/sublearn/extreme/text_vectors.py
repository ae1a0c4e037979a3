"""Texts to rows of numbers: scikit-learn's vectorisers, stored as arrays and settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.feature_extraction import FeatureHasher
from sklearn.feature_extraction.text import HashingVectorizer, TfidfVectorizer

__all__ = [
    "HashedNames",
    "make_vectorizer",
    "n_columns_of",
    "restore_vectorizer",
    "vectorizer_state",
]

_N_HASHES = 2**20


def make_vectorizer(kind: str, settings: Mapping[str, Any]) -> Any:
    """An unfitted `TfidfVectorizer` ("tfidf") or `HashingVectorizer` ("hashing") in float32.

    Entries of `settings` that are None keep scikit-learn's default. Rows have length one; tf-idf
    takes the logarithm of counts, so that a word said ten times does not drown the others.
    """
    given = {name: value for name, value in settings.items() if value is not None}
    if kind == "hashing":
        n_features = given.pop("n_hashes", _N_HASHES)
        return HashingVectorizer(n_features=n_features, dtype=np.float32, **given)
    return TfidfVectorizer(sublinear_tf=True, dtype=np.float32, **given)


def n_columns_of(vectorizer: Any) -> int:
    """Columns of the rows that a fitted vectoriser makes."""
    is_hashing = isinstance(vectorizer, HashingVectorizer)
    return vectorizer.n_features if is_hashing else len(vectorizer.vocabulary_)


def vectorizer_state(vectorizer: Any) -> dict[str, np.ndarray]:
    """What a fitted vectoriser learnt: its words in the order of columns, and their idf."""
    if isinstance(vectorizer, HashingVectorizer):
        return {}
    words = sorted(vectorizer.vocabulary_, key=vectorizer.vocabulary_.__getitem__)
    return {"words": np.array(words, dtype=object), "idf": vectorizer.idf_}


def restore_vectorizer(kind: str, settings: Mapping[str, Any], state: Mapping[str, Any]) -> Any:
    """The vectoriser that `make_vectorizer` made and `vectorizer_state` took apart."""
    vectorizer = make_vectorizer(kind, settings)
    if kind == "hashing":
        return vectorizer
    words = state["words"].tolist()
    vectorizer.vocabulary_ = {word: column for column, word in enumerate(words)}
    vectorizer.fixed_vocabulary_ = False
    vectorizer.idf_ = np.asarray(state["idf"])
    return vectorizer


class HashedNames:
    """Names of the columns that the words of one text fall into; others are called by number.

    Parameters
    ----------
    vectorizer : HashingVectorizer
        Who hashes.
    text : str
        The text.
    """

    def __init__(self, vectorizer: HashingVectorizer, text: str):
        words = sorted(set(vectorizer.build_analyzer()(text)))
        hasher = FeatureHasher(vectorizer.n_features, input_type="string")
        columns = hasher.transform([[word] for word in words]).indices if words else []
        self._n = vectorizer.n_features
        self._names: dict[int, str] = {}
        for column, word in zip(np.asarray(columns).tolist(), words, strict=True):
            known = self._names.get(column)
            self._names[column] = word if known is None else f"{known} or {word}"

    def __len__(self) -> int:
        return self._n

    def __getitem__(self, column: int) -> str:
        return self._names.get(int(column), f"column {column}")
