"""Sets of labels with and without weights of pairs, for benchmarks/structured.py."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np

from harness.bench import Bench
from harness.table import Figures, Table
from harness.timing import cpu_timed

__all__ = ["LABEL_SETS"]

MULTILABEL_SETS = ("yeast", "enron", "bibtex", "delicious")
MULTILABEL_C, MULTILABEL_TOL = 1.0, 0.01
MULTILABEL_LIMIT = 300.0


def multilabel(bench: Bench) -> Figures:
    """Each set without and with weights of pairs, all else equal."""
    rows = [
        multilabel_row(bench, bench.data / name, pairs)
        for name in bench.some(MULTILABEL_SETS)
        for pairs in ("none", "all")
    ]
    columns = {
        "set": "", "pairs": "", "sets right": ".2%>", "labels wrong": ".3%<", "CPU s": ".1f<",
        "passes": "", "above the optimum at most": ".2%", "predictions proven best": ".1%",
    }  # fmt: skip
    return Figures(columns, rows)


def multilabel_row(bench: Bench, folder: Path, pairs: str) -> list[Any]:
    from sklearn.metrics import hamming_loss
    from sklearn.preprocessing import Normalizer

    from sublearn.io import load_arff
    from sublearn.structured import PairwiseMultilabelSVM

    train, test = (
        load_arff(folder / f"{folder.name}-{part}.arff.xz", labels=folder / f"{folder.name}.xml")
        for part in ("train", "test")
    )
    X, X_test = (Normalizer().fit_transform(part.X) for part in (train, test))
    start, limit = time.process_time(), bench.limit(MULTILABEL_LIMIT)
    model = PairwiseMultilabelSVM(
        MULTILABEL_C,
        pairs=pairs,
        tol=MULTILABEL_TOL,
        random_state=bench.seed,
        callback=lambda _: time.process_time() - start > limit,
    )
    _, seconds = cpu_timed(lambda: model.fit(X, train.Y))
    found, scores, bounds = model.predict_with_bounds(X_test)
    row = [
        f"{folder.name} ({X.shape[0]:,} rows, {train.Y.shape[1]} labels)", pairs,
        model.score(X_test, test.Y), hamming_loss(test.Y, found), seconds, str(model.n_iter_),
        model.certificate_, float(np.mean(bounds <= scores + 1e-7)),
    ]  # fmt: skip
    bench.say(row)
    return row


LABEL_SETS = Table(
    "multilabel",
    "Sets of labels: with and without weights of pairs",
    f"PairwiseMultilabelSVM with C = {MULTILABEL_C:g} and tol = {MULTILABEL_TOL:g} on rows of "
    "length one, the split that comes with the data; without pairs it is one support vector "
    "machine for each label. `sets right`: rows with exactly their labels. A fit is stopped "
    f"after {MULTILABEL_LIMIT:g} CPU seconds.",
    multilabel,
)
