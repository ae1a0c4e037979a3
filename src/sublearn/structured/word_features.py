"""Features of words in a sentence, as strings: what a tagger of raw text needs to begin with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

from sublearn.validation.values import show

__all__ = ["word_features"]

_OUTSIDE = "<s>"
_AFFIX = 4  # letters of beginnings and endings at most
_OFFSETS = (-2, -1, 1, 2)


def word_features(sentence: Iterable[str | Sequence[str]]) -> list[list[str]]:
    """Names of features of each word, for :class:`ChainSVM`.

    Parameters
    ----------
    sentence : iterable of str, or of sequences of str
        Words; or for each word a sequence with the word first and further columns after it, such as
        its part of speech.

    Returns
    -------
    list of list of str
        For each word: itself as it is and in small letters, its shape (``Xxx`` has ``Xxx``, ``A4``
        has ``Xd``, runs cut to two), beginnings and endings of up to four letters, the two
        words before and after it, and every further column of the word and of these neighbours.

    Examples
    --------
    >>> from sublearn.structured import word_features
    >>> word_features(["The", "dog"])[1][:4]
    ['word=dog', 'low=dog', 'shape=xx', 'begin=d']
    """
    if isinstance(sentence, str):
        raise ValueError(
            f"word_features.sentence must be words, as sentence.split() gives, got {show(sentence)}"
        )
    rows = [_as_row(token) for token in sentence]
    if not rows:
        return []
    n_columns = len(rows[0])
    _refuse_other_widths(rows, n_columns)
    edge = (_OUTSIDE,) * n_columns
    around = [edge, edge, *rows, edge, edge]
    found = []
    for t, row in enumerate(rows):
        names = [*_of_word(row[0])]
        names += [f"{offset:+d}={around[t + 2 + offset][0].lower()}" for offset in _OFFSETS]
        for column in range(1, n_columns):
            names += [f"{column}@{o:+d}={around[t + 2 + o][column]}" for o in (-2, -1, 0, 1, 2)]
        found.append(names)
    return found


def _refuse_other_widths(rows: list[Sequence[str]], n_columns: int) -> None:
    for row in rows:
        if len(row) != n_columns:
            raise ValueError(
                f"word_features.sentence must have {n_columns} column(s) for each word, as for "
                f"the first, got {len(row)}"
            )


def _as_row(token: object) -> Sequence[str]:
    row = (token,) if isinstance(token, str) else token
    if not isinstance(row, (list, tuple)) or not row or not all(isinstance(c, str) for c in row):
        raise ValueError(
            "word_features.sentence must have a word or a sequence of strings for each token, "
            f"got {show(token)}"
        )
    return row


@lru_cache(maxsize=200_000)
def _of_word(word: str) -> tuple[str, ...]:
    """Made once for a word, and shared by all places where it stands."""
    low = word.lower()
    sizes = range(1, min(len(low), _AFFIX) + 1)
    begins = (f"begin={low[:n]}" for n in sizes)
    ends = (f"end={low[-n:]}" for n in sizes)
    return (f"word={word}", f"low={low}", f"shape={_shape(word)}", *begins, *ends)


def _shape(word: str) -> str:
    """Letters as X or x, digits as d, the rest as it is, runs cut to two."""
    out = ""
    for letter in word:
        kind = "d" if letter.isdigit() else letter
        if letter.isalpha():
            kind = "X" if letter.isupper() else "x"
        if out[-2:] != 2 * kind:
            out += kind
    return out
