"""Raw texts with labels: one record per line, in tab-separated, comma-separated or JSON form."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from sublearn.io.files import Lines, open_binary, plain_name, reading
from sublearn.io.limits import ReadLimits
from sublearn.typing import PathLike
from sublearn.validation.values import show

__all__ = ["Texts", "load_label_names", "load_texts"]

_ORDERS = ("labels,text", "text,labels")


@dataclass(frozen=True)
class Texts:
    """Texts and the labels of each; unpacks as ``texts, labels = data``.

    Parameters
    ----------
    texts : list of str
        One per record.
    labels : list of list of str
        Of each text; empty where the record has none.
    """

    texts: list[str] = field(repr=False)
    labels: list[list[str]] = field(repr=False)

    def __iter__(self) -> Iterator[Any]:
        yield self.texts
        yield self.labels


def load_texts(
    path: PathLike,
    *,
    separator: str = ",",
    columns: str = "labels,text",
    needs_labels: bool = True,
    limits: ReadLimits | None = None,
) -> Texts:
    """Read texts and their labels.

    Parameters
    ----------
    path : path
        The ending says the form, and a further ``.gz``, ``.xz`` or ``.bz2`` that it is compressed.
        All are UTF-8.

        - ``.jsonl``: on each line an object with ``"text"`` (a string) and ``"labels"`` (a list of
          strings, or one string with separators).
        - ``.csv``: a line of column names, among them ``text`` and ``labels``, then records, fields
          quoted as spreadsheets do.
        - any other, as ``.tsv``: on each line the labels, a tab, and the text. Further tabs belong
          to the text.

        A line without any character but white space is a record without text and labels: records
        are as many as lines, so that answers stand in the order of the file.
    separator : str, default=","
        What stands between two labels; white space around labels is dropped. A blank separates at
        any white space.
    columns : {"labels,text", "text,labels"}, default="labels,text"
        Order in a tab-separated line. In "text,labels" the last tab separates.
    needs_labels : bool, default=True
        Refuse a record without labels' column (a line without a tab, an object or a header without
        ``labels``). If False, all of it is text.
    limits : ReadLimits, optional
        How long a line may be, and what a compressed file may unpack to.

    Returns
    -------
    Texts

    Raises
    ------
    DataFileError
        For a record that does not have this form, naming file and line.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "records.tsv"
    >>> _ = path.write_text("history, sea\\tA history of lighthouses\\n")
    >>> load_texts(path).labels
    [['history', 'sea']]
    """
    if not isinstance(separator, str) or not separator:
        raise ValueError(
            f"load_texts.separator must be a string with characters, got {show(separator)}"
        )
    if columns not in _ORDERS:
        raise ValueError(f"load_texts.columns must be one of {_ORDERS}, got {show(columns)}")
    form = _Form(separator, columns == _ORDERS[0], needs_labels)
    ending = os.path.splitext(plain_name(path))[1]
    read: Callable[[Iterator[str], _Form], Iterator[tuple[str, list[str]]]]
    read = {".jsonl": _read_json, ".csv": _read_csv}.get(ending, _read_tsv)
    texts, labels = [], []
    with open_binary(path, limits) as stream:
        lines = Lines(stream, limits)
        with reading(path, lines):
            for text, names in read(lines.texts(), form):
                texts.append(text)
                labels.append(names)
    return Texts(texts, labels)


@dataclass(frozen=True)
class _Form:
    separator: str
    labels_come_first: bool
    needs_labels: bool

    def split(self, labels: str) -> list[str]:
        parts = labels.split() if self.separator.isspace() else labels.split(self.separator)
        return [part.strip() for part in parts if part.strip()]


def _read_tsv(lines: Iterator[str], form: _Form) -> Iterator[tuple[str, list[str]]]:
    for line in lines:
        if not line.strip():
            yield "", []
            continue
        head, tab, tail = line.partition("\t") if form.labels_come_first else line.rpartition("\t")
        if not tab and form.needs_labels:
            raise ValueError(f"must have a tab between labels and text, got {show(line.strip())}")
        if not tab:
            yield line.strip(), []
        elif form.labels_come_first:
            yield tail.strip(), form.split(head)
        else:
            yield head.strip(), form.split(tail)


def _read_json(lines: Iterator[str], form: _Form) -> Iterator[tuple[str, list[str]]]:
    for line in lines:
        if not line.strip():
            yield "", []
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"must be a JSON object: {error}") from None
        if not isinstance(record, dict) or not isinstance(record.get("text"), str):
            raise ValueError(f'must be an object with a string "text", got {show(line.strip())}')
        yield record["text"], _json_labels(record.get("labels"), form)


def _json_labels(labels: object, form: _Form) -> list[str]:
    if labels is None and not form.needs_labels:
        return []
    if isinstance(labels, str):
        return form.split(labels)
    if not isinstance(labels, list) or not all(isinstance(name, str) for name in labels):
        raise ValueError(f'"labels" must be a list of strings, got {show(labels)}')
    return labels


def _read_csv(lines: Iterator[str], form: _Form) -> Iterator[tuple[str, list[str]]]:
    reader = csv.reader(lines, strict=True)
    names = next(reader, [])
    needed = ["text", "labels"] if form.needs_labels else ["text"]
    missing = [name for name in needed if name not in names]
    if missing:
        found = ", ".join(names) or "none"
        raise ValueError(f"the first line must name a column {missing[0]!r}, got {found}")
    for fields in reader:
        if not fields:  # a blank line
            yield "", []
            continue
        if len(fields) > len(names):  # most often a comma in a text that is not quoted
            raise ValueError(f"must have {len(names)} fields as the first line, got more")
        record = dict(zip(names, fields, strict=False))
        if any(name not in record for name in needed):
            raise ValueError(f"must have {len(names)} fields as the first line, got fewer")
        yield record["text"], form.split(record.get("labels", ""))


def load_label_names(path: PathLike, *, limits: ReadLimits | None = None) -> dict[str, str]:
    """Read what labels are called.

    Parameters
    ----------
    path : path
        On each line a label, a tab, and its title; further tabs belong to the title. A further
        ``.gz``, ``.xz`` or ``.bz2`` says that the file is compressed. It is UTF-8.
    limits : ReadLimits, optional
        How long a line may be, and what a compressed file may unpack to.

    Returns
    -------
    dict of str to str
        In the order of the file.

    Raises
    ------
    DataFileError
        If a line has no tab, an empty label, or one that was there before.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "subjects.tsv"
    >>> _ = path.write_text("p10\\tenvironmental awareness\\n")
    >>> load_label_names(path)
    {'p10': 'environmental awareness'}
    """
    found: dict[str, str] = {}
    with open_binary(path, limits) as stream:
        lines = Lines(stream, limits)
        with reading(path, lines):
            for line in lines.texts():
                label, tab, title = (part.strip(" \r\n") for part in line.partition("\t"))
                if not line.strip():
                    continue
                if not tab or not label:
                    raise ValueError(
                        f"must be a label, a tab and a title, got {show(line.strip())}"
                    )
                if label in found:
                    raise ValueError(f"must have a label of its own, got {show(label)} again")
                found[label] = title
    return found
