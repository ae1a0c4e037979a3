"""Which method suits a data file: `sublearn fit DATA` without a method asks here."""

from __future__ import annotations

import csv
import itertools
import re
from dataclasses import dataclass
from pathlib import Path

from sublearn.kinds.base import Refused

__all__ = ["Choice", "choose_methods"]

_N_LINES = 2000  # of a file that are looked at
_FEW_CLASSES = 50


@dataclass(frozen=True)
class Choice:
    """Methods that suit a file, the best first, and why."""

    methods: tuple[str, ...]
    reason: str


def choose_methods(path: Path, data_format: str | None, labels: str | None) -> Choice:
    """Methods that suit a file, by the ending of its name and its first lines."""
    from sublearn.io.files import plain_name

    name = plain_name(path)
    ending = f".{data_format}" if data_format else name[name.rfind(".") :] if "." in name else ""
    if ending in (".tsv", ".jsonl"):
        return Choice(("text",), f"a {ending} file holds texts with labels")
    if ending in (".conll", ".conllu", ".iob"):
        return Choice(("chain",), f"a {ending} file holds tokens with tags")
    if ending in (".uai", ".evid"):
        raise Refused("DATA", f"{path.name} holds a factor graph; use `sublearn map {path.name}`")
    if ending == ".hmc":
        return Choice(("hml", "hiclass"), "the file has a taxonomy inside")
    if ending == ".npz":
        return _archive(path)
    head = _head(path)
    if ending == ".csv":
        return _table(head, labels)
    if ending in (".svm", ".svmlight", ".libsvm"):
        return _libsvm(head)
    if ending == ".arff":
        is_tree = any(re.search(r"(?i)@attribute\s+\S+\s+hierarchical", line) for line in head)
        return Choice(("hml", "hiclass"), "the file has a taxonomy inside") if is_tree else _MANY
    if ending == ".txt" and head and not re.fullmatch(r"\s*\d+\s+\d+\s+\d+\s*", head[0]):
        return _plain(head)
    return _MANY


_UNLABELLED = ("mix-lasso", "latent-features", "inverse-covariance", "forecast")
_MANY = Choice(
    ("ppd-sparse", "pd-sparse", "hml", "hiclass", "pairwise", "embedding-extreme",
     "dense-extreme", "latent-features", "inverse-covariance"),
    "rows with any number of labels",
)  # fmt: skip


def _head(path: Path) -> list[str]:
    from sublearn.io.files import Lines, open_binary, reading

    with open_binary(path) as stream:
        lines = Lines(stream)
        with reading(path, lines):
            return list(itertools.islice(lines.texts(), _N_LINES))


def _table(head: list[str], labels: str | None) -> Choice:
    names = [name.strip().strip('"').lower() for name in (head or [""])[0].split(",")]
    if "text" in names:
        return Choice(("text",), "a table with a column of texts")
    first = head[1].split(",")[0].strip().strip('"') if len(head) > 1 else ""
    if re.match(r"\d{4}-\d\d-\d\d|\d\d?[./]\d\d?[./]\d{4}", first):
        return Choice(("forecast",), "the first column holds times")
    if labels is None:
        return Choice(("sparse-linear", *_UNLABELLED), "a table of numbers")
    wanted = [name.lower() for name in labels.split(",")]
    if len(wanted) > 1 or (labels.isdigit() and int(labels) > 1):
        return _MANY
    column = names.index(wanted[0]) if wanted[0] in names else -1
    values = [fields[column].strip() for fields in csv.reader(head[1:]) if len(fields) > 1]
    return _of_words(values)


def _libsvm(head: list[str]) -> Choice:
    fields = [line.split()[0] for line in head if line.strip() and not line.startswith("#")]
    if not fields or any("," in one or ":" in one for one in fields):
        return _MANY
    return _of_words(fields)


def _of_words(labels: list[str]) -> Choice:
    """By what stands for the rows, one word for each."""
    kinds, others = set(labels), _MANY.methods
    has_words = any(not re.fullmatch(r"[-+]?[\d.]+(e[-+]?\d+)?", one) for one in kinds)
    has_fractions = any(not re.fullmatch(r"[-+]?\d+(\.0*)?", one) for one in kinds)
    if has_fractions and not has_words:
        return Choice(("sparse-linear", "mix-lasso"), "one number with a fraction for each row")
    if len(kinds) <= _FEW_CLASSES and len(kinds) < 0.5 * max(2, len(labels)):
        reason = f"{len(kinds)} classes, one for each row"
        return Choice(("sparse-logistic", *others, "sparse-linear"), reason)
    return Choice((*others, "sparse-logistic", "sparse-linear"), f"{len(kinds)} or more classes")


def _archive(path: Path) -> Choice:
    from sublearn.io import load_npz

    Y = load_npz(path).Y
    return _of_words([str(one) for one in Y.tolist()]) if Y.ndim == 1 else _MANY


def _plain(head: list[str]) -> Choice:
    """A .txt file that is none of the extreme classification repository."""
    filled = [line for line in head if line.strip()]
    if sum("\t" in line for line in filled) > 0.9 * len(filled):
        return Choice(("text",), "labels, a tab and a text on each line")
    words = {len(line.split()) for line in filled}
    if len(words) == 1 and words <= {2, 3, 4} and len(filled) < len(head):
        return Choice(("chain",), "a token and its tag on each line, blank lines between")
    return Choice(("skip-gram",), "plain text")
