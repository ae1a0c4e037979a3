"""Text for word vectors: sentences from lists, strings or a file, as ids of their words."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator
from typing import TypeAlias

import numpy as np

from sublearn import _core
from sublearn.errors import ParameterError
from sublearn.io.files import Lines, open_binary, reading
from sublearn.io.state import pack_strings
from sublearn.typing import PathLike
from sublearn.validation.values import show

__all__ = ["Text", "TextsLike", "is_table", "is_words", "read_corpus"]

#: A text, split or not.
Text: TypeAlias = str | Iterable[str]
#: A file with a text on each line, or texts.
TextsLike: TypeAlias = PathLike | Iterable[Text]

_AT_ONCE = 1024  # sentences that are handed to the core together
_SEPARATOR = "\x1f"  # as io/corpus.hpp reads it


def read_corpus(owner: str, corpus: TextsLike, tokens: str, lowercase: bool) -> _core.Corpus:
    """The sentences of a file, one on each line, or of an iterable, read once.

    Strings are split as `tokens` says, "words" or "spaces", after they were written in small
    letters if `lowercase`; lists of words are taken as they are. Refusals name the class `owner`.
    """
    found = _core.Corpus()
    for batch in _batches(_sentences(owner, corpus)):
        strings = [sentence for sentence in batch if isinstance(sentence, str)]  # all, or none
        if strings:
            text = "\n".join(sentence.replace("\n", " ") for sentence in strings)
            found.add_text(_bytes(text.lower() if lowercase else text), tokens)
        else:
            _add_words(owner, found, batch)
    if found.n_tokens == 0:
        raise ParameterError(f"{owner}: X must have words, got none")
    return found


def _sentences(owner: str, corpus: TextsLike) -> Iterator[Text]:
    if isinstance(corpus, (str, os.PathLike)):
        if not os.path.exists(corpus):
            raise ParameterError(
                f"{owner}: X must be sentences or the path of a file, got {show(corpus)}, "
                "which is no file"
            )
        return _lines(corpus)
    if isinstance(corpus, bytes) or is_table(corpus) or not isinstance(corpus, Iterable):
        raise ParameterError(
            f"{owner}: X must be a path or an iterable of strings or lists of words, "
            f"got {show(corpus)}"
        )
    return iter(corpus)


def _lines(path: PathLike) -> Iterator[str]:
    with open_binary(path) as file:
        lines = Lines(file)
        with reading(path, lines):
            for line in lines:
                yield line.decode("utf-8", "replace")


def _batches(sentences: Iterator[Text]) -> Iterator[list[Text]]:
    """Sentences of one kind together."""
    for _, group in itertools.groupby(sentences, key=lambda sentence: isinstance(sentence, str)):
        while batch := list(itertools.islice(group, _AT_ONCE)):
            yield batch


def _add_words(owner: str, corpus: _core.Corpus, batch: list[Text]) -> None:
    try:
        sentences = [list(sentence) for sentence in batch]
        text = "\n".join(_SEPARATOR.join(sentence) for sentence in sentences)
    except TypeError:
        bad = next(s for s in batch if not is_words(s))
        raise ParameterError(
            f"{owner}: X must hold strings or lists of words, got {show(bad)}"
        ) from None
    n_words = [len(sentence) for sentence in sentences]
    n_gaps = sum(n_words) - sum(n > 0 for n in n_words)
    if text.count(_SEPARATOR) == n_gaps and text.count("\n") == len(batch) - 1:
        corpus.add_text(_bytes(text), "separators")
        return
    utf8, bounds = pack_strings(itertools.chain.from_iterable(sentences))
    corpus.add_words(utf8, bounds, np.cumsum([0, *n_words]))  # a word has a separator in it


def is_words(sentence: object) -> bool:
    """Whether it is a list, or another iterable, of strings."""
    return isinstance(sentence, Iterable) and all(isinstance(word, str) for word in sentence)


def is_table(corpus: object) -> bool:
    """Whether it is a data frame, which gives the names of its columns instead of texts."""
    return hasattr(corpus, "columns")


def _bytes(text: str) -> np.ndarray:
    return np.frombuffer(text.encode("utf-8", "surrogatepass"), dtype=np.uint8)
