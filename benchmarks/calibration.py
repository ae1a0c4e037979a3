"""How far probabilities can be trusted, with and without calibration, on test rows."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np
from harness.bench import Bench
from harness.data import mulan, xmc
from harness.problem import Split
from harness.table import Figures, Table
from harness.timing import cpu_timed
from scipy.special import expit

from sublearn.extreme import PPDSparseClassifier
from sublearn.metrics import brier_score, expected_calibration_error

#: Sets whose probabilities of all labels fit into memory.
SMALL = ("bibtex", "delicious")
METHODS = ("sigmoid", "isotonic")
K = 5


def held_out(n_rows: int, one_of: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows to fit, and one row of `one_of` to calibrate on."""
    is_held = np.random.default_rng(seed).permutation(n_rows) % one_of == 0
    return np.flatnonzero(~is_held), np.flatnonzero(is_held)


def fitted(
    split: Split, one_of: int, seed: int, **settings: Any
) -> tuple[PPDSparseClassifier, tuple[Any, Any]]:
    """A model, and the rows that it has not seen."""
    X, Y = split.train["X"], split.train["Y"]
    fit, held = held_out(X.shape[0], one_of, seed)
    return PPDSparseClassifier(random_state=seed, **settings).fit(X[fit], Y[fit]), (
        X[held],
        Y[held],
    )


def all_labels(bench: Bench) -> Figures:
    """Every pair of a test row and a label."""
    found = []
    for name in bench.some(SMALL):
        split = mulan(name).load(bench.data, bench.seed)
        truth = split.truth["Y"]
        for kind, p in probabilities(split, bench.seed):
            error = expected_calibration_error(truth, None, p)
            found.append([name, kind, error, brier_score(truth, None, p), log_loss(truth, p)])
    columns = {"data": "", "probability": "", "calibration error": ".4f<"}
    return Figures({**columns, "Brier score": ".4f<", "log loss": ".4f<"}, found)


def probabilities(split: Split, seed: int) -> Iterator[tuple[str, np.ndarray]]:
    """Probabilities of all labels for the test rows, by how they were made."""
    model, held = fitted(split, 5, seed)
    X = split.test["X"]
    yield "logistic of the score", expit(model.decision_function(X).astype(np.float64))
    frequency = np.asarray(held[1].mean(axis=0)).ravel()
    yield "frequency of the label", np.broadcast_to(frequency, (X.shape[0], len(frequency)))
    for method in METHODS:
        yield f"`{method}`", model.calibrate(*held, method=method).predict_proba(X)


def log_loss(truth: Any, p: np.ndarray) -> float:
    """Mean over all pairs; a probability of 0 or 1 counts as 1e-7 from it."""
    p = np.clip(p, 1e-7, 1 - 1e-7)
    return float(-np.log(np.where(truth.toarray() > 0, p, 1 - p)).mean())


def best_labels(bench: Bench) -> Figures:
    """The five best labels of a large set, most of whose labels share one map."""
    split = bench.size(xmc("yso_en"), mulan("bibtex")).load(bench.data, bench.seed)
    model, held = fitted(split, 10, bench.seed)
    X, truth = split.test["X"], split.truth["Y"]
    labels, scores = model.predict_top_k(X, k=K)
    plain = expit(scores.astype(np.float64))
    rows = [["logistic of the score", None, *judged(truth, labels, plain), None, None]]
    for method in METHODS:
        _, seconds = cpu_timed(functools.partial(model.calibrate, *held, method=method))
        (labels, p), asked = cpu_timed(lambda: model.predict_proba_top_k(X, k=K))
        ms = 1000 * asked / X.shape[0]
        shared = int(model.calibration_.is_pooled.sum())
        rows.append([f"{method}", shared, *judged(truth, labels, p), seconds, ms])
    columns = {"probability": "", "labels that share": ",", "calibration error": ".4f<"}
    times = {"calibrate, CPU s": ".1f<", "predict, CPU ms/row": ".3f<"}
    return Figures({**columns, "Brier score": ".4f<", **times}, rows)


def judged(truth: Any, labels: np.ndarray, p: np.ndarray) -> list[float]:
    return [expected_calibration_error(truth, labels, p), brier_score(truth, labels, p)]


TABLES = [
    Table(
        "all",
        "All labels of a row",
        "A fifth of the training rows held out; calibration error (15 groups), Brier score and log "
        "loss are means over all pairs of a test row and a label. The frequencies are well "
        "calibrated and say nothing about the row; the Brier score shows the difference.",
        all_labels,
    ),
    Table(
        "best",
        "The five best labels of `yso_en`",
        "20,578 labels, a tenth of the 50,000 training rows held out; means over the five best "
        "labels of 9,995 test rows. Labels with too few held-out rows share one map.",
        best_labels,
    ),
]
