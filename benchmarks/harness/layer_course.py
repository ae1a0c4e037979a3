"""Courses of last layers: precision on test rows after so many CPU seconds of training."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from sublearn import _core
from sublearn.embed import DenseExtremeClassifier, EmbeddingExtremeClassifier, LabelSearch
from sublearn.embed.layer_training import LabelRows
from sublearn.validation import encode_labels

__all__ = ["Course", "Method", "course_of"]

_AT_ONCE = 1024  # samples between two looks at the clock


@dataclass(frozen=True)
class Method:
    """A loss and a way to its gradient, with the learning rate that suited it."""

    name: str
    loss: str
    gradient: str
    rate: float
    search: dict[str, Any] = field(default_factory=dict)


@dataclass
class Course:
    """What was reached at each of the times that were asked for."""

    epochs: list[float]
    precisions: list[float]  # of test rows, percent
    seconds_of_epoch: float


def course_of(
    method: Method,
    data: Any,
    times: Sequence[float],
    seed: int,
    *,
    batch_size: int = 32,
    n_components: int = 0,
    n_test: int = 2000,
) -> Course:
    """Train until the last of `times`, in CPU seconds; judging takes none of them.

    `n_components` numbers in a hidden layer, if there is one. The first part of training is by
    sampling where a method searches, as in section 3.3.3.
    """
    given = {
        "loss": method.loss, "gradient": method.gradient, "batch_size": batch_size,
        "search": LabelSearch(**method.search), "random_state": seed,
    }  # fmt: skip
    model: Any = DenseExtremeClassifier(**given)
    if n_components:
        model = EmbeddingExtremeClassifier(n_components, fit_intercept=False, **given)
    X = sp.csr_matrix(data.X, dtype=np.float32) if n_components else data.X
    encoded = encode_labels(data.Y, X.shape[0], estimator_name="course")
    model._begin(X, encoded, np.arange(data.Y.shape[1]))
    model._trainer = model._train(model._no_weights())
    labels, order = LabelRows.of(sp.csr_matrix(data.Y)), _Order(X.shape[0], seed)
    monitor, spent, course = _core.Monitor(), 0.0, Course([], [], 0.0)
    n_seen, n_searched, searching = 0, 0, 0.0
    for limit in times:
        while spent < limit:
            rows, start = order.next(_AT_ONCE), time.process_time()
            n_epochs = n_seen / X.shape[0]
            settings = model._trainer.prepare(n_epochs)
            rates = (method.rate, method.rate)
            model._epoch(X[rows], labels.take(rows), settings, rates, monitor)
            lap = time.process_time() - start
            spent, n_seen = spent + lap, n_seen + len(rows)
            if n_epochs >= method.search.get("n_warm", 0):
                n_searched, searching = n_searched + len(rows), searching + lap
        course.epochs.append(n_seen / X.shape[0])
        course.precisions.append(_precision(model, data, n_test))
    course.seconds_of_epoch = searching / max(n_searched, 1) * X.shape[0]
    return course


class _Order:
    """Rows in random orders, one after the other."""

    def __init__(self, n: int, seed: int):
        self._rng, self._n, self._left = np.random.default_rng(seed), n, np.empty(0, np.int64)

    def next(self, count: int) -> np.ndarray:
        if len(self._left) < count:
            self._left = np.concatenate([self._left, self._rng.permutation(self._n)])
        rows, self._left = self._left[:count], self._left[count:]
        return np.asarray(rows)


def _precision(model: Any, data: Any, n_test: int) -> float:
    """Percent of test rows whose best label, of all, is one of theirs."""
    X_test, Y_test = data.X_test[:n_test], sp.csr_matrix(data.Y_test[:n_test])
    queries = model._embed(model._check_features(X_test, reset=False))
    best = np.concatenate([
        (part @ model._trainer.weights().T).argmax(axis=1)
        for part in np.array_split(queries, max(1, len(queries) // 250))
    ])  # fmt: skip
    return 100 * float(np.mean(np.asarray(Y_test[np.arange(len(best)), best]).ravel() > 0))
