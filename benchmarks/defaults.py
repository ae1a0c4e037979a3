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
from harness.contests import (
    Crfsuite,
    FlatLabels,
    FlatPath,
    Task,
    chain_rows,
    label_rows,
    path_rows,
    table_rows,
    text_rows,
    tree_rows,
)
from harness.table import Cell, Figures, Table
from harness.timing import cpu_timed
from sklearn.covariance import GraphicalLasso
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import Lasso, LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from sublearn.embed import DenseExtremeClassifier, EmbeddingExtremeClassifier
from sublearn.extreme import PDSparseClassifier, PPDSparseClassifier, TextTagger
from sublearn.hierarchy import HierarchicalClassifier, HierarchicalMultilabelClassifier
from sublearn.linear import (
    SparseInverseCovariance,
    SparseLinearRegression,
    SparseLogisticRegression,
)
from sublearn.structured import ChainSVM, PairwiseMultilabelSVM

#: Not looked at while defaults are chosen.
UNSEEN = frozenset(
    {"wine", "digits", "iris", "sparse_uncorrelated", "friedman2", "linnerud", "emotions",
     "corel5k", "enron", "tmc2007_500", "brown genres", "reuters topics", "gnd English",
     "ewt universal tags", "conll2000 parts of speech", "ocr_letters fold 7", "reuters", "yso_en",
     "hmc_cellcycle_fun"}
)  # fmt: skip
#: Estimators without a contest, and where they meet their rivals instead.
ELSEWHERE = {
    "LatentFeatureLasso": "binary codes have no rival with defaults; latent.py",
    "LoadForecaster": "three series that nothing was tuned on: forecast.py/untuned",
    "MIPSIndex": "exact by default; embed.py has its time",
    "MixLassoRegressor": "its rivals must be told the number of components; mixtures.py",
    "SkipGram": "gensim and fastText at equal time; embed_training.py",
    "StructuralSVM": "no rival has defaults for graphs",
}
_LIMIT = 20.0  # CPU seconds of a cell that are worth a remark

Scores = np.ndarray  # of the test rows


@dataclass(frozen=True)
class Contest:
    """An estimator and its rival on several sets; `score` gives a number for each test row."""

    name: str
    make: Callable[[Task], Any]
    rival: Callable[[Task], Any]
    sets: Sequence[str]
    score: Callable[[Any, Task], Scores]
    rows: Callable[[str, Bench], Task] = table_rows


def plain(make: Callable[[], Any]) -> Callable[[Task], Any]:
    """An estimator that needs to know nothing of its task."""
    return lambda _: make()


def right(model: Any, task: Task) -> Scores:
    return (model.predict(task.X_test) == task.y_test).astype(float)


def explained(model: Any, task: Task) -> Scores:
    """Terms whose mean is R2."""
    y = task.y_test
    return 1 - (model.predict(task.X_test) - y) ** 2 / y.var()


def likelihoods(model: Any, task: Task) -> Scores:
    """Log-likelihoods of the rows, from what both kinds of covariance have."""
    P, centred = model.precision_, task.X_test - model.location_
    squares = ((centred @ P) * centred).sum(axis=1)
    return 0.5 * (np.linalg.slogdet(P)[1] - squares - P.shape[0] * np.log(2 * np.pi))


def best_label(model: Any, task: Task) -> Scores:
    """Whether the label of the best score is among those of the row."""
    if hasattr(model, "predict_top_k"):
        best = model.predict_top_k(task.X_test, k=1)[0][:, 0].astype(int)
    else:
        best = np.asarray(model.decision_function(task.X_test)).argmax(axis=1)
    truth = sp.csr_matrix(task.y_test)[np.arange(len(best)), best]
    return np.asarray(truth, dtype=float).ravel()


def whole_sets(model: Any, task: Task) -> Scores:
    """Whether the predicted set of a row is the true one."""
    wrong = sp.csr_matrix(model.predict(task.X_test)) != sp.csr_matrix(task.y_test)
    return (np.asarray(wrong.sum(axis=1)).ravel() == 0).astype(float)


def right_tags(model: Any, task: Task) -> Scores:
    """The share of right tags of each sequence."""
    hits = np.asarray(model.predict(task.X_test, lengths=task.about[1])) == task.y_test
    ends = np.cumsum(task.about[1])
    return np.add.reduceat(hits.astype(float), ends - task.about[1]) / task.about[1]


def overlaps(model: Any, task: Task) -> Scores:
    """F1 of each row's labels with all their ancestors."""
    taxonomy, found = task.about, model.predict(task.X_test)
    ours = sp.csr_matrix(found) if sp.issparse(found) else taxonomy.encode([[e] for e in found])
    ours, truth = (taxonomy.close(sp.csr_matrix(Y, dtype=bool)) for Y in (ours, task.y_test))
    both = np.asarray(ours.astype(int).multiply(truth.astype(int)).sum(axis=1)).ravel()
    sizes = np.diff(ours.indptr) + np.diff(truth.indptr)
    return 2 * both / np.maximum(sizes, 1)


def one_versus_rest(task: Task) -> OneVsRestClassifier:
    return OneVsRestClassifier(LinearSVC())


def words_and_one_versus_rest(task: Task) -> Any:
    return make_pipeline(TfidfVectorizer(), one_versus_rest(task))


CLASSES = ("breast_cancer", "a9a", "mnist", "wine", "digits", "iris")
NUMBERS = ("diabetes", "friedman1", "friedman2", "sparse_uncorrelated", "linnerud")
LABELS = ("bibtex", "yeast", "reutersk500", "emotions", "corel5k", "enron")
TEXTS = ("20news", "yso_fi titles", "gnd German", "brown genres", "reuters topics", "gnd English")
TAGS = ("conll2000", "ud_english_ewt", "ocr_letters fold 0", "conll2000 parts of speech",
        "ewt universal tags", "ocr_letters fold 7")  # fmt: skip
TREES = ("rcv1_dev", "20news", "hmc_imclef07a", "hmc_cellcycle_fun", "yso_en", "reuters")
PATHS = TREES[:4]
SETS = ("yeast", "bibtex", "reutersk500", "emotions", "enron", "tmc2007_500")
CONTESTS = [
    Contest(
        "SparseLogisticRegression", plain(SparseLogisticRegression), plain(LogisticRegression),
        CLASSES, right,
    ),
    Contest(
        "SparseLinearRegression", plain(SparseLinearRegression), plain(Lasso), NUMBERS, explained
    ),
    Contest(
        "SparseInverseCovariance", plain(SparseInverseCovariance), plain(GraphicalLasso),
        ("breast_cancer", "diabetes", "wine", "iris"), likelihoods,
    ),
    Contest(
        "PPDSparseClassifier", plain(PPDSparseClassifier), one_versus_rest, LABELS, best_label,
        label_rows,
    ),
    Contest(
        "PDSparseClassifier", plain(PDSparseClassifier), one_versus_rest, LABELS, best_label,
        label_rows,
    ),
    Contest(
        "TextTagger", plain(TextTagger), words_and_one_versus_rest, TEXTS, best_label, text_rows
    ),
    Contest(
        "DenseExtremeClassifier", plain(DenseExtremeClassifier), plain(MLPClassifier),
        ("breast_cancer", "mnist", "wine", "digits", "iris"), right,
    ),
    Contest(
        "EmbeddingExtremeClassifier", plain(EmbeddingExtremeClassifier), one_versus_rest, LABELS,
        best_label, label_rows,
    ),
    Contest("ChainSVM", plain(ChainSVM), Crfsuite, TAGS, right_tags, chain_rows),
    Contest(
        "PairwiseMultilabelSVM", plain(PairwiseMultilabelSVM), one_versus_rest, SETS, whole_sets,
        label_rows,
    ),
    Contest(
        "HierarchicalClassifier", lambda task: HierarchicalClassifier(task.about), FlatPath, PATHS,
        overlaps, path_rows,
    ),
    Contest(
        "HierarchicalMultilabelClassifier",
        lambda task: HierarchicalMultilabelClassifier(task.about), FlatLabels, TREES, overlaps,
        tree_rows,
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
    task = contest.rows(name, bench)
    is_unseen = "yes" if name in UNSEEN else "no"

    def scored(make: Callable[[Task], Any]) -> tuple[Scores, float]:
        fit = functools.partial(make(task).fit, task.X, task.y, **task.more)
        model, seconds = cpu_timed(fit)
        if seconds > _LIMIT:
            bench.say(f"{contest.name} or its rival took {seconds:.0f} s on {name}")
        return contest.score(model, task), seconds

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
    )
    for contest in CONTESTS
]
