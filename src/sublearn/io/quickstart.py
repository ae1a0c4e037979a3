"""The small real data set that comes with the package: library records and their headings."""

from __future__ import annotations

import lzma
from dataclasses import dataclass, field
from importlib import resources

from sublearn.validation.values import is_int64, show

__all__ = ["Quickstart", "load_quickstart"]


@dataclass(frozen=True)
class Quickstart:
    """Texts and the labels of each, as lists of strings.

    Parameters
    ----------
    train_texts, test_texts : list of str
        Title and description of each record.
    train_labels, test_labels : list of list of str
        Its subject headings, at least one.
    """

    train_texts: list[str] = field(repr=False)
    train_labels: list[list[str]] = field(repr=False)
    test_texts: list[str] = field(repr=False)
    test_labels: list[list[str]] = field(repr=False)


def load_quickstart(n_train: int | None = None) -> Quickstart:
    """Read the library records that come with the package (Finna metadata, CC0).

    12,923 records to learn from and 1,978 to test on, each with 3 of 3,861 subject headings on
    average. The README beside the file tells where they come from and how they were chosen.

    Parameters
    ----------
    n_train : int, optional
        Keep only so many training records, for a quick look; by default all.

    Returns
    -------
    Quickstart
    """
    if n_train is not None and not (is_int64(n_train) and n_train > 0):
        raise ValueError(f"load_quickstart.n_train must be a positive integer, got {show(n_train)}")
    file = resources.files("sublearn") / "data" / "quickstart.tsv.xz"
    lines = lzma.decompress(file.read_bytes()).decode("utf-8").splitlines()
    records: dict[str, tuple[list[str], list[list[str]]]] = {"train": ([], []), "test": ([], [])}
    for line in lines:
        part, text, labels = line.split("\t")
        records[part][0].append(text)
        records[part][1].append(labels.split(" | "))
    texts, labels_of = records["train"]
    return Quickstart(texts[:n_train], labels_of[:n_train], *records["test"])
