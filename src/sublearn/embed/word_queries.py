"""What fitted word vectors are asked: neighbours, analogies, means of texts, files."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from sublearn.embed.clustering import unit_rows
from sublearn.embed.corpus import Text, is_table, is_words
from sublearn.embed.word_files import write_word_vectors
from sublearn.errors import ParameterError
from sublearn.io.files import PathLike
from sublearn.validation import Positive
from sublearn.validation.values import show

__all__ = ["WordQueries"]

# The words that io/corpus.hpp finds.
_WORD = re.compile(r"[A-Za-z0-9_'\u0080-\U0010ffff]+")
_AT_ONCE = 256  # questions whose cosines with all words are held together


class WordQueries(ClassNamePrefixFeaturesOutMixin, TransformerMixin):
    """Questions to `words_` and `vectors_`; cosines of vectors say how alike words are."""

    words_: np.ndarray
    vectors_: np.ndarray
    tokens: str
    lowercase: bool

    @property
    def vocabulary_(self) -> dict[str, int]:
        """Row of each word."""
        check_is_fitted(self)
        if self._places is None:
            self._places = {word: i for i, word in enumerate(self.words_)}
        return self._places

    def __contains__(self, word: object) -> bool:
        return word in self.vocabulary_

    def __getitem__(self, word: str) -> np.ndarray:
        return self.vectors_[self._rows([word])[0]]

    def most_similar(self, word: str, k: int = 10) -> tuple[np.ndarray, np.ndarray]:
        """The words whose vectors have the largest cosines with that of a word.

        Parameters
        ----------
        word : str
            Of the vocabulary.
        k : int
            How many, at most all others.

        Returns
        -------
        words, cosines : ndarrays of shape (k,)
            Best first, without the word itself.
        """
        rows = self._rows([word])
        return self._nearest(self._unit[rows[0]], rows, k)

    def analogy(self, a: str, b: str, c: str, k: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """What is to `c` as `b` is to `a`: words near b - a + c.

        Parameters
        ----------
        a, b, c : str
            Of the vocabulary.
        k : int
            How many answers.

        Returns
        -------
        words, cosines : ndarrays of shape (k,)
            Best first, without the three words.
        """
        rows = self._rows([a, b, c])
        first, second, third = self._unit[rows]
        return self._nearest(second - first + third, rows, k)

    def analogy_accuracy(self, questions: Iterable[tuple[str, str, str, str]]) -> tuple[float, int]:
        """Share of questions "a is to b as c is to d" whose first answer is d.

        Parameters
        ----------
        questions : iterable of (a, b, c, d)
            Those with a word outside the vocabulary are left out.

        Returns
        -------
        accuracy : float
            NaN if no question is left.
        n_asked : int
            Questions that were left.
        """
        places = self.vocabulary_
        listed = [tuple(question) for question in questions]
        bad = next((q for q in listed if len(q) != 4 or not is_words(q)), None)
        if bad is not None:
            raise ParameterError(
                f"{type(self).__name__}.analogy_accuracy: questions must hold four words each, "
                f"got {show(bad)}"
            )
        known = [q for q in listed if all(word in places for word in q)]
        if not known:
            return float("nan"), 0
        rows = np.array([[places[word] for word in question] for question in known])
        n_right = 0
        for start in range(0, len(rows), _AT_ONCE):
            part = rows[start : start + _AT_ONCE]
            a, b, c = (self._unit[part[:, i]] for i in range(3))
            cosines = (b - a + c) @ self._unit.T
            np.put_along_axis(cosines, part[:, :3], -np.inf, axis=1)
            n_right += int((cosines.argmax(axis=1) == part[:, 3]).sum())
        return n_right / len(rows), len(rows)

    def fit_transform(
        self, X: Iterable[Text], y: object = None, **fit_params: object
    ) -> np.ndarray:
        """Learn vectors from texts, and give the mean vector of each text.

        Parameters
        ----------
        X : iterable of str or of lists of words
            The texts; those of a generator are held, since they are gone through twice.
        y : ignored
            For pipelines.
        **fit_params
            For :meth:`fit`.

        Returns
        -------
        ndarray of float32 of shape (n_texts, n_components)
        """
        texts = list(X) if isinstance(X, Iterator) else X
        return super().fit_transform(texts, y, **fit_params)

    def transform(self, X: Iterable[Text]) -> np.ndarray:
        """Mean vector of the known words of each text; zeros where there is none.

        Parameters
        ----------
        X : iterable of str or of lists of words
            The texts, strings split as in :meth:`fit`.

        Returns
        -------
        ndarray of float32 of shape (n_texts, n_components)
        """
        check_is_fitted(self)
        if isinstance(X, (str, bytes, os.PathLike)) or is_table(X) or not isinstance(X, Iterable):
            raise ParameterError(
                f"{type(self).__name__}.transform: X must be an iterable of texts, got {show(X)}"
            )
        places = self.vocabulary_
        means = []
        for text in X:
            rows = [places[word] for word in self._split(text) if word in places]
            mean = self.vectors_[rows].mean(axis=0) if rows else np.zeros_like(self.vectors_[0])
            means.append(mean)
        return np.array(means, dtype=np.float32).reshape(len(means), self.vectors_.shape[1])

    def export(self, path: PathLike, *, binary: bool = False) -> None:
        """Write the vectors in a format of word2vec, which gensim and others read.

        Parameters
        ----------
        path : path
            Replaced atomically.
        binary : bool
            Which of the two formats.
        """
        check_is_fitted(self)
        write_word_vectors(path, self.words_, self.vectors_, binary)

    # --- inside ----------------------------------------------------------------------------------

    _places: dict[str, int] | None = None
    _units: np.ndarray | None = None

    def _forget_queries(self) -> None:
        self._places = self._units = None

    @property
    def _unit(self) -> np.ndarray:
        if self._units is None:
            self._units = unit_rows(self.vectors_)
        return self._units

    def _rows(self, words: Sequence[str]) -> np.ndarray:
        places = self.vocabulary_
        unknown = [word for word in words if not isinstance(word, str) or word not in places]
        if unknown:
            raise ParameterError(
                f"{type(self).__name__}: word must be in the vocabulary of {len(places)} words, "
                f"got {show(unknown[0])}"
            )
        return np.array([places[word] for word in words])

    def _nearest(
        self, query: np.ndarray, without: np.ndarray, k: int
    ) -> tuple[np.ndarray, np.ndarray]:
        most = len(self.words_) - len(without)
        if not Positive(int).accepts(k) or k > most:
            raise ParameterError(
                f"{type(self).__name__}: k must be an integer from 1 to {most}, got {show(k)}"
            )
        cosines = (unit_rows(query[None]) @ self._unit.T)[0]
        cosines[without] = -np.inf
        best = np.argsort(-cosines, kind="stable")[:k]
        return self.words_[best], cosines[best]

    def _split(self, text: Text) -> list[str]:
        if not isinstance(text, str):
            words = list(text) if isinstance(text, Iterable) else [text]
            if not is_words(words):
                raise ParameterError(
                    f"{type(self).__name__}.transform: X must hold strings or lists of words, "
                    f"got {show(text)}"
                )
            return words
        text = text.lower() if self.lowercase else text
        if self.tokens == "spaces":
            return text.split()
        return [word.strip("'") for word in _WORD.findall(text)]
