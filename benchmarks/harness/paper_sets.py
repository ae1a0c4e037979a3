"""The data sets of the PD-Sparse papers by name, and generated problems of the same sizes.

The files are not part of this repository; a set that is missing says where they are to be put. They
are the Extreme Classification Repository's, and the multiclass sets of the authors as LIBSVM files.
"""

from __future__ import annotations

import lzma
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from harness.data import one_hot, unit_split
from harness.problem import Problem, Split
from harness.synthetic import Documents, make_documents

__all__ = ["PAPER_SETS", "PaperSet", "documents_like", "like", "real"]

_FORMS = {
    "xmc": (
        "train.txt", "test.txt", "the files of the Extreme Classification Repository: a first line "
        "'N D K', then a line a row, 'label,label feature:value feature:value'",
    ),
    "svm": ("train.svm", "test.svm", "LIBSVM files: a line a row, 'class feature:value'"),
}  # fmt: skip


@dataclass(frozen=True)
class PaperSet:
    """Sizes of a data set, and the form of its files; `nnz` and `positives` are means of a row."""

    name: str
    form: str
    n_train: int
    n_test: int
    n_features: int
    n_labels: int
    nnz: float
    positives: float


#: Rows, features and labels are those of tables 2.4 to 2.6 of the thesis, wiki10-31k and the means
#: of rows those of the repository; the features of a row of the last three are an assumption.
PAPER_SETS = {
    one.name: one
    for one in (
        PaperSet("eurlex-4k", "xmc", 15_539, 3_809, 5_000, 3_993, 237, 5.31),
        PaperSet("wiki10-31k", "xmc", 14_146, 6_616, 101_938, 30_938, 673, 18.64),
        PaperSet("amazoncat-13k", "xmc", 1_186_239, 306_782, 203_882, 13_330, 71, 5.04),
        PaperSet("amazon-670k", "xmc", 490_449, 153_025, 135_909, 670_091, 75, 5.45),
        PaperSet("wikilshtc-325k", "xmc", 1_778_351, 587_084, 1_617_899, 325_056, 42, 3.19),
        PaperSet("delicious-200k", "xmc", 196_606, 100_095, 782_585, 205_443, 301, 75.54),
        PaperSet("lshtc1", "svm", 88_806, 5_000, 347_255, 12_294, 50, 1.0),
        PaperSet("dmoz", "svm", 345_068, 38_340, 833_484, 11_947, 50, 1.0),
        PaperSet("aloi", "svm", 100_000, 8_000, 636_911, 1_000, 100, 1.0),
    )
}


def real(one: PaperSet) -> Problem:
    """The set itself, from `<data>/<name>/`; files may end in .xz."""
    train, test, form = _FORMS[one.form]

    def load(directory: Path, seed: int) -> Split:
        files = [_file(directory / one.name / name) for name in (train, test)]
        if None in files:
            fetch = f"sublearn datasets {one.name} --data-home {directory}"
            get = f"; `{fetch}` downloads it" if one.form == "xmc" else ""
            raise FileNotFoundError(
                f"{one.name} must be in {directory / one.name} as {train} and {test}, plain or "
                f"with .xz: {form}{get}; {one.name}-like is a generated problem of its size"
            )
        found = [file for file in files if file is not None]
        return (_xmc if one.form == "xmc" else _svm)(*found)

    return Problem(one.name, load, "official split, unit rows")


def like(one: PaperSet, share: float = 1.0) -> Problem:
    """A generated problem of its size, or of a share of its rows, features and labels."""
    size = documents_like(one, share)
    name = f"{one.name}-like" + ("" if share == 1 else f"-{share:g}")
    note = f"generated, {size.n_train} rows, {size.n_features} features, {size.n_labels} labels"
    return Problem(name, lambda directory, seed: make_documents(size, seed), note)


def documents_like(one: PaperSet, share: float = 1.0) -> Documents:
    """The size to generate; labels sit in groups of 25, and each has a row if there is room."""
    n_train, n_labels = round(share * one.n_train), max(2, round(share * one.n_labels))
    return Documents(
        n_train=n_train,
        n_test=min(max(round(share * one.n_test), 500), 2_000),  # all are alike
        n_features=max(10, round(share * one.n_features)),
        n_labels=n_labels,
        n_groups=max(1, n_labels // 25),
        labels_per_document=one.positives * _DRAWS_PER_LABEL if one.positives > 1 else 1.0,
        words_per_document=one.nnz * _WORDS_PER_FEATURE,
        every_label=2 * n_labels <= n_train * one.positives,
    )


# Some words and labels are drawn twice.
_WORDS_PER_FEATURE, _DRAWS_PER_LABEL = 1.3, 1.2


def _file(path: Path) -> Path | None:
    return next((p for p in (path, path.with_name(f"{path.name}.xz")) if p.is_file()), None)


def _opened(path: Path) -> Any:
    return lzma.open(path) if path.suffix == ".xz" else path.open("rb")


def _xmc(train: Path, test: Path) -> Split:
    from sublearn.io import load_xmc

    (X, Y), (X_test, Y_test) = load_xmc(train), load_xmc(test)
    return unit_split(X, Y, X_test, Y_test)


def _svm(train: Path, test: Path) -> Split:
    from sklearn.datasets import load_svmlight_files

    with _opened(train) as first, _opened(test) as second:
        X, y, X_test, y_test = load_svmlight_files([first, second])
    classes = np.unique(np.concatenate([y, y_test]))
    Y, Y_test = (
        sp.csr_matrix(one_hot(np.searchsorted(classes, part), len(classes))) for part in (y, y_test)
    )
    return unit_split(X, Y, X_test, Y_test)
