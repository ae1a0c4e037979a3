"""Files of tokens as CoNLL's shared tasks have them: a token on a line, a blank line between
sequences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from sublearn.io.files import Lines, open_binary, plain_name, reading
from sublearn.io.limits import ReadLimits
from sublearn.typing import PathLike
from sublearn.validation.values import is_int64, show

__all__ = ["Tokens", "load_conll"]

#: FORM and UPOS of CoNLL-U, counted from 1.
_CONLLU = (2, 4)


@dataclass(frozen=True)
class Tokens:
    """Sequences of tokens; unpacks as ``tokens, tags = data``.

    Parameters
    ----------
    tokens : list of list of tuple of str
        For each token its columns without the tag: the word first.
    tags : list of list of str, or None
        Of each token; None if they were not asked for.
    """

    tokens: list[list[tuple[str, ...]]] = field(repr=False)
    tags: list[list[str]] | None = field(repr=False)

    def __iter__(self) -> Iterator[Any]:
        yield self.tokens
        yield self.tags


def load_conll(
    path: PathLike,
    *,
    columns: Sequence[int] | None = None,
    has_tags: bool = True,
    limits: ReadLimits | None = None,
) -> Tokens:
    """Read sequences of tokens and their tags.

    Parameters
    ----------
    path : path
        UTF-8, a token on each line and a blank line after each sequence; ``.gz``, ``.xz`` and
        ``.bz2`` are decompressed. Columns have tabs between them, or spaces if the file has no
        tab. In a file with tabs, lines that begin with ``#`` and have none are comments. In a
        ``.conllu`` file words that stand for several (``3-4``) or for none (``3.1``) are passed
        over.
    columns : sequence of int, optional
        Which columns to read, counted from 1: the word's, further ones if there are any, and the
        tag's last. By default all of them, and 2 and 4 (FORM and UPOS) of a ``.conllu`` file.
    has_tags : bool, default=True
        If False, tags are not read, and the column that `columns` has last may be absent.
    limits : ReadLimits, optional
        How long a line may be, and what a compressed file may unpack to.

    Returns
    -------
    Tokens

    Raises
    ------
    DataFileError
        For a line that lacks a column or is not UTF-8, naming file and line.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "words.conll"
    >>> _ = path.write_text("the DET\\ndog NOUN\\n\\nruns VERB\\n")
    >>> load_conll(path).tags
    [['DET', 'NOUN'], ['VERB']]
    """
    is_conllu = plain_name(path).endswith(".conllu")
    chosen = _as_columns(columns, _CONLLU if is_conllu else None)
    with open_binary(path, limits) as stream:  # columns have spaces only if no line has a tab
        has_tabs = any(b"\t" in chunk for chunk in iter(lambda: stream.read(1 << 20), b""))
    reader = _Reader(chosen, has_tags, is_conllu, has_tabs)
    with open_binary(path, limits) as stream:
        lines = Lines(stream, limits)
        with reading(path, lines):
            for line in lines.texts():
                reader.take(line.removesuffix("\n").rstrip("\r"))
        reader.end_sequence()
        if not reader.tokens:
            raise ValueError("must have at least one token, got none")
    return Tokens(reader.tokens, reader.tags if has_tags else None)


def _as_columns(columns: object, default: tuple[int, ...] | None) -> tuple[int, ...] | None:
    if columns is None:
        return default
    found = tuple(columns) if isinstance(columns, Iterable) else ()
    if len(found) < 2 or not all(is_int64(n) and n > 0 for n in found):
        raise ValueError(
            "load_conll.columns must be at least two numbers from 1, the word's first and the "
            f"tag's last, got {show(columns)}"
        )
    return tuple(int(n) for n in found)


class _Reader:
    """Takes lines; sequences so far."""

    def __init__(
        self, columns: tuple[int, ...] | None, has_tags: bool, is_conllu: bool, has_tabs: bool
    ):
        self.columns, self.has_tags = columns, has_tags
        self.is_conllu, self.has_tabs = is_conllu, has_tabs
        self.tokens: list[list[tuple[str, ...]]] = []
        self.tags: list[list[str]] = []
        self._open: list[tuple[str, ...]] = []
        self._open_tags: list[str] = []
        self._width: int | None = None

    def take(self, line: str) -> None:
        if not line.strip(" \t"):
            self.end_sequence()
            return
        if line.startswith("#") and self.has_tabs and "\t" not in line:
            return
        # Not `split()`: words may hold spaces that do not break (1 000) and other separators.
        fields = line.split("\t") if self.has_tabs else [part for part in line.split(" ") if part]
        if self.is_conllu and not fields[0].isdigit():
            return
        wanted = self._wanted(len(fields))
        if self.has_tags:
            self._open_tags.append(fields[wanted.pop() - 1])
        self._open.append(tuple(fields[n - 1] for n in wanted))

    def end_sequence(self) -> None:
        if self._open:
            self.tokens.append(self._open)
            self.tags.append(self._open_tags)
            self._open, self._open_tags = [], []

    def _wanted(self, width: int) -> list[int]:
        """Columns to read of a line with `width` fields, the tag's last if it is read."""
        if self.columns is not None:
            wanted = list(self.columns if self.has_tags else self.columns[:-1])
            if width < max(wanted):
                raise ValueError(f"must have at least {max(wanted)} columns, got {width}")
            return wanted
        self._width = self._width or width
        if width != self._width:
            raise ValueError(f"must have {self._width} columns, as the first line, got {width}")
        if width < 2 and self.has_tags:
            raise ValueError("must have a word and a tag, got one column")
        return list(range(1, width + 1))
