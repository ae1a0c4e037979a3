"""Library records as raw text with their subjects, and the titles of the subjects."""

from __future__ import annotations

import itertools
import lzma
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfVectorizer

from harness.arrays import Arrays
from harness.problem import Split, truth_of

__all__ = ["SETS", "RecordSet", "load_records", "pack", "unpack"]

_Record = tuple[list[str], str]


@dataclass(frozen=True)
class RecordSet:
    """A set by name: its files, and how a line of them is read."""

    name: str
    folder: str
    train: str
    test: str
    names: str
    read: Callable[[str], _Record]
    read_name: Callable[[str], tuple[str, str]]


def _gnd(column: int) -> Callable[[str], _Record]:
    def read(line: str) -> _Record:
        parts = line.split("\t", 3)
        return [label for label in parts[column].split("|") if label], parts[3]

    return read


def _labels_first(line: str) -> _Record:
    labels, text = line.split("\t", 1)
    return labels.split("|"), text


def _text_first(line: str) -> _Record:
    text, labels = line.rsplit("\t", 1)
    return labels.split(), text


def _first_name(line: str) -> tuple[str, str]:
    label, names = line.split("\t", 1)
    return label, names.split("|")[0]


def _numbered_name(line: str) -> tuple[str, str]:
    _, label, name = line.split("\t", 2)
    return label, name


_GND = ("gnd", "gnd_train.tsv.xz", "gnd_dev.tsv.xz", "gnd_names.tsv.xz")
_FI = ("yso_fi", "yso_fi_train.tsv.xz", "yso_fi_test.tsv.xz", "yso_fi_names.tsv.xz")
_EN = ("yso_en", "yso_en_train.raw.tsv.xz", "yso_en_test.raw.tsv.xz", "yso_en_labels.tsv.xz")
SETS = {
    one.name: one
    for one in (
        RecordSet("gnd", *_GND, _gnd(1), _first_name),
        RecordSet("gnd-keywords", *_GND, _gnd(2), _first_name),
        RecordSet("yso_fi", *_FI, _labels_first, _first_name),
        RecordSet("yso_en", *_EN, _text_first, _numbered_name),
    )
}


def load_records(data: Path, one: RecordSet, n_train: int | None, n_test: int, seed: int) -> Split:
    """Some records of a set, drawn at random; None takes all.

    Words with two records or more, tf-idf with the logarithm of counts. Columns are the labels that
    a training record has; the judge knows further ones behind them, which count as missed.
    """
    rng = np.random.default_rng(seed)
    folder = data / one.folder
    train = _some(_records(folder / one.train, one.read), n_train, rng)
    test = _some(_records(folder / one.test, one.read), n_test, rng)
    known = sorted({label for labels, _ in train for label in labels})
    more = sorted({label for labels, _ in test for label in labels} - set(known))
    column = {label: k for k, label in enumerate([*known, *more])}
    texts, asked = ([text for _, text in part] for part in (train, test))
    words = TfidfVectorizer(sublinear_tf=True, min_df=2, dtype=np.float32)
    X = words.fit_transform(texts)
    Y = _indicator(train, column)
    with lzma.open(folder / one.names, "rt", encoding="utf-8") as file:
        names = dict(one.read_name(line.rstrip("\n")) for line in file)
    titles = [names.get(label, "") for label in known]
    given: Arrays = {"X": X, "Y": Y[:, : len(known)], **pack("text", texts)}
    given = {**given, **pack("title", titles)}
    test_given = {"X": words.transform(asked), **pack("text", asked)}
    return Split(given, test_given, truth_of(Y, _indicator(test, column)))


def _records(path: Path, read: Callable[[str], _Record]) -> list[_Record]:
    with lzma.open(path, "rt", encoding="utf-8") as file:
        found = [read(line.rstrip("\n")) for line in file]
    return [record for record in found if record[0]]


def _some(records: list[_Record], n: int | None, rng: np.random.Generator) -> list[_Record]:
    if n is None or n >= len(records):
        return records
    return [records[i] for i in np.sort(rng.permutation(len(records))[:n])]


def _indicator(records: Sequence[_Record], column: dict[str, int]) -> sp.csr_matrix:
    ids = [sorted({column[label] for label in labels}) for labels, _ in records]
    ends = np.cumsum([0, *map(len, ids)])
    entries = (np.ones(ends[-1], np.float32), np.concatenate(ids), ends)
    return sp.csr_matrix(entries, shape=(len(ids), len(column)))


def pack(name: str, texts: Sequence[str]) -> dict[str, np.ndarray]:
    """Strings as arrays of numbers, which cross a process border."""
    raw = [text.encode() for text in texts]
    ends = np.cumsum([0, *map(len, raw)])
    return {f"{name}_bytes": np.frombuffer(b"".join(raw), np.uint8), f"{name}_ends": ends}


def unpack(name: str, arrays: Arrays) -> list[str]:
    """Inverse of `pack`."""
    raw, ends = arrays[f"{name}_bytes"].tobytes(), arrays[f"{name}_ends"].tolist()
    return [raw[a:b].decode() for a, b in itertools.pairwise(ends)]
