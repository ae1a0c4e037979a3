"""Every estimator with no parameter set, beside the rival a user would take with its defaults.

A cell is one set: both learn the same training rows and are scored on the same test rows; larger
scores are better. A difference within two standard errors over the test rows is a tie. Sets named
in `UNSEEN` were written down here before any default was measured on them, and none may be tuned
on them; half of the sets of each contest are such.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from harness.bench import Bench
from harness.data import mulan, svmlight_random_half
from harness.table import Cell, Figures, Table
from harness.timing import cpu_timed
from linear import SETS
from sklearn import datasets
from sklearn.covariance import GraphicalLasso
from sklearn.linear_model import Lasso, LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from sublearn.embed import DenseExtremeClassifier
from sublearn.extreme import PDSparseClassifier, PPDSparseClassifier
from sublearn.linear import (
    SparseInverseCovariance,
    SparseLinearRegression,
    SparseLogisticRegression,
)

#: Not looked at while defaults are chosen.
UNSEEN = frozenset(
    {"wine", "digits", "iris", "sparse_uncorrelated", "friedman2", "linnerud", "emotions",
     "corel5k", "enron"}
)  # fmt: skip
#: Estimators that are still to come, and what they wait for.
NOT_YET = {
    "ChainSVM": "tagged texts beside a conditional random field",
    "HierarchicalClassifier": "taxonomies beside a flat classifier",
    "HierarchicalMultilabelClassifier": "taxonomies beside a flat classifier with a threshold",
    "EmbeddingExtremeClassifier": "records beside one-versus-rest",
    "LatentFeatureLasso": "reconstructed rows beside NMF",
    "LoadForecaster": "series beside gradient boosting on lagged rows",
    "MIPSIndex": "recall at equal time beside a brute-force search",
    "MixLassoRegressor": "mixtures beside one regression",
    "PairwiseMultilabelSVM": "sets of labels beside one-versus-rest",
    "SkipGram": "similarities of words beside gensim",
    "StructuralSVM": "graphs, for which no rival has defaults",
    "TextTagger": "texts beside tf-idf and LinearSVC",
}
_LIMIT = 20.0  # CPU seconds of a cell; a set is cut to so many rows before that
_MOST_ROWS = 4_000

Rows = tuple[Any, Any, Any, Any]  # training X and y, test X and y
Scores = np.ndarray  # of the test rows


@dataclass(frozen=True)
class Contest:
    """An estimator and its rival on several sets; `score` gives a number for each test row."""

    name: str
    make: Callable[[], Any]
    rival: Callable[[], Any]
    sets: Sequence[str]
    score: Callable[[Any, Any, Any], Scores]


def right(model: Any, X: Any, y: Any) -> Scores:
    return (model.predict(X) == y).astype(float)


def explained(model: Any, X: Any, y: Any) -> Scores:
    """Terms whose mean is R2."""
    return 1 - (model.predict(X) - y) ** 2 / y.var()


def likelihoods(model: Any, X: Any, y: Any) -> Scores:
    """Log-likelihoods of the rows, from what both kinds of covariance have."""
    P, centred = model.precision_, X - model.location_
    squares = ((centred @ P) * centred).sum(axis=1)
    return 0.5 * (np.linalg.slogdet(P)[1] - squares - X.shape[1] * np.log(2 * np.pi))


def best_label(model: Any, X: Any, Y: Any) -> Scores:
    """Whether the label of the best score is among those of the row."""
    best = np.asarray(model.decision_function(X)).argmax(axis=1)
    return np.asarray(sp.csr_matrix(Y)[np.arange(len(best)), best], dtype=float).ravel()


def table_rows(name: str, bench: Bench) -> Rows:
    """A set of scikit-learn, or of those of `linear.py`, scaled by its training rows."""
    loaders: dict[str, Callable[[], tuple[Any, Any]]] = {
        "breast_cancer": functools.partial(datasets.load_breast_cancer, return_X_y=True),
        "wine": functools.partial(datasets.load_wine, return_X_y=True),
        "iris": functools.partial(datasets.load_iris, return_X_y=True),
        "digits": functools.partial(datasets.load_digits, return_X_y=True),
        "diabetes": functools.partial(datasets.load_diabetes, return_X_y=True),
        "linnerud": lambda: _first_target(*datasets.load_linnerud(return_X_y=True)),
        "friedman1": functools.partial(datasets.make_friedman1, 500, 50, noise=1.0, random_state=0),
        "friedman2": functools.partial(datasets.make_friedman2, 500, noise=50.0, random_state=0),
        "sparse_uncorrelated": functools.partial(
            datasets.make_sparse_uncorrelated, 400, 100, random_state=0
        ),
    }
    X, y = loaders[name]() if name in loaders else SETS[name][1](bench.data, bench.seed)
    parts = train_test_split(X[:_MOST_ROWS], y[:_MOST_ROWS], test_size=0.3, random_state=bench.seed)
    if sp.issparse(X):
        return parts[0], parts[2], parts[1], parts[3]
    scaler = StandardScaler().fit(parts[0])
    return scaler.transform(parts[0]), parts[2], scaler.transform(parts[1]), parts[3]


def _first_target(X: np.ndarray, Y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return X, Y[:, 0]


def label_rows(name: str, bench: Bench) -> Rows:
    """Rows of several labels each."""
    problem = svmlight_random_half(name) if name in ("ng20", "reutersk500") else mulan(name)
    split = problem.load(bench.data, bench.seed)
    n = _MOST_ROWS
    return split.train["X"][:n], split.train["Y"][:n], split.test["X"][:n], split.truth["Y"][:n]


def one_versus_rest() -> OneVsRestClassifier:
    return OneVsRestClassifier(LinearSVC())


CLASSES = ("breast_cancer", "a9a", "mnist", "wine", "digits", "iris")
NUMBERS = ("diabetes", "friedman1", "friedman2", "sparse_uncorrelated", "linnerud")
LABELS = ("bibtex", "yeast", "reutersk500", "emotions", "corel5k", "enron")
CONTESTS = [
    Contest(
        "SparseLogisticRegression", SparseLogisticRegression, LogisticRegression, CLASSES, right
    ),
    Contest("SparseLinearRegression", SparseLinearRegression, Lasso, NUMBERS, explained),
    Contest(
        "SparseInverseCovariance", SparseInverseCovariance, GraphicalLasso,
        ("breast_cancer", "diabetes", "wine", "iris"), likelihoods,
    ),
    Contest("PPDSparseClassifier", PPDSparseClassifier, one_versus_rest, LABELS, best_label),
    Contest("PDSparseClassifier", PDSparseClassifier, one_versus_rest, LABELS, best_label),
    Contest(
        "DenseExtremeClassifier", DenseExtremeClassifier, MLPClassifier,
        ("breast_cancer", "mnist", "wine", "digits", "iris"), right,
    ),
]  # fmt: skip


def measure(contest: Contest, bench: Bench) -> Figures:
    """One row for each set."""
    rows: list[list[Cell]] = []
    for name in bench.cases(contest.sets):
        key = {"contest": contest.name, "set": name}
        rows.append(bench.once(key, functools.partial(cell, contest, name, bench)))
    counts = [sum(row[-1] == outcome for row in rows) for outcome in ("win", "tie", "loss")]
    columns = {"set": "", "unseen": "", "ours": ".4f>", "rival": ".4f", "ours CPU s": ".2f<"}
    note = "Wins, ties and losses: {}, {}, {}.".format(*counts)
    return Figures({**columns, "rival CPU s": ".2f", "outcome": ""}, rows, note)


def cell(contest: Contest, name: str, bench: Bench) -> list[Cell]:
    """Both on one set."""
    rows_of = label_rows if contest.score is best_label else table_rows
    X, y, X_test, y_test = rows_of(name, bench)
    is_unseen = "yes" if name in UNSEEN else "no"

    def scored(make: Callable[[], Any]) -> tuple[Scores, float]:
        model, seconds = cpu_timed(functools.partial(make().fit, X, y))
        if seconds > _LIMIT:
            bench.say(f"{contest.name} or its rival took {seconds:.0f} s on {name}")
        return contest.score(model, X_test, y_test), seconds

    ours, seconds = scored(contest.make)
    try:
        theirs, rival_seconds = scored(contest.rival)
    except (FloatingPointError, ValueError) as error:
        bench.say(f"the rival of {contest.name} failed on {name}: {error}")
        return [name, is_unseen, float(ours.mean()), None, seconds, None, "rival failed"]
    difference = ours - theirs
    error = difference.std() / np.sqrt(len(difference))
    is_tie = abs(difference.mean()) <= 2 * error
    outcome = "tie" if is_tie else "win" if difference.mean() > 0 else "loss"
    means = float(ours.mean()), float(theirs.mean())
    return [name, is_unseen, *means, seconds, rival_seconds, outcome]


TABLES = [
    Table(
        contest.name,
        f"{contest.name} by default",
        "No parameter is set on either side. Two standard errors over the test rows are a tie.",
        functools.partial(measure, contest),
        page=None,
    )
    for contest in CONTESTS
]
