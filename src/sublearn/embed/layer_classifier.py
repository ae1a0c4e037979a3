"""What classifiers with a dense last layer have in common: the fit, prediction and saving."""

from __future__ import annotations

import abc
import itertools
import time
import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from sublearn.embed.label_search import LabelSearch
from sublearn.embed.layer_training import EpochReport, LabelRows, LayerPlan, LayerTrainer
from sublearn.embed.padding import padded
from sublearn.execution import all_or_nothing
from sublearn.fitting.held_out import split_rows
from sublearn.fitting.labels import LabelClassifier, as_k
from sublearn.fitting.progress import Progress
from sublearn.io.fields import Floats, Number
from sublearn.metrics.names import find_positions
from sublearn.trace import Solution, Status, Trace
from sublearn.validation import (
    EncodedLabels,
    LabelKind,
    as_n_threads,
    as_seed,
    check_params,
    decode_predictions,
    encode_labels,
)
from sublearn.validation.values import show

__all__ = ["LayerClassifier"]

_N_MEASURED = 500  # training rows on which losses, recall and the threshold are measured
_COLUMNS = ("seconds", "objective", "n_updates", "work", "rate", "held_out")


class LayerClassifier(LabelClassifier, BaseEstimator, abc.ABC):
    """Everything but the features: a subclass says how rows become dense vectors.

    A subclass has the parameters that `_plan` and `_fit` read.
    """

    # --- what a subclass does ----------------------------------------------------------------

    @abc.abstractmethod
    def _check_features(self, X: Any, *, reset: bool) -> Any:
        """Rows that `_embed` takes."""

    @abc.abstractmethod
    def _embed(self, X: Any) -> np.ndarray:
        """Dense float32 rows, the input of the last layer."""

    @abc.abstractmethod
    def _start_layers(self, X: Any, n_labels: int, rng: np.random.Generator) -> LayerTrainer:
        """Weights of all layers before the first step."""

    @abc.abstractmethod
    def _epoch(
        self, X: Any, labels: LabelRows, rates: tuple[float, float], is_warm: bool, monitor: Any
    ) -> EpochReport:
        """One pass over the rows."""

    # --- fitting -----------------------------------------------------------------------------

    @all_or_nothing
    def fit(self, X: Any, y: Any) -> Any:
        """Train from the start.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.
        y : array-like, sparse matrix, or list of label lists
            One label per sample, an indicator matrix, or a list of labels per sample.

        Returns
        -------
        estimator
        """
        check_params(self)
        X = self._check_features(X, reset=True)
        labels = encode_labels(y, X.shape[0], estimator_name=type(self).__name__)
        self._begin(X, labels)
        self._fit(X, LabelRows.of(labels.to_csr()))
        return self

    @all_or_nothing
    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Any:
        """One more pass, over these samples alone, with a constant learning rate.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.
        y : array-like, sparse matrix, or list of label lists
            Their labels.
        classes : array-like or None
            All labels that will ever come, in the first call; None means those of `y`, or the
            columns of an indicator matrix.

        Returns
        -------
        estimator

        Notes
        -----
        A model that was loaded or unpickled goes on with its weights; the optimizer starts anew. So
        does one after a pass that Ctrl-C or an exception has ended, which leaves the weights as
        they were.
        """
        check_params(self)
        is_first = not self.__sklearn_is_fitted__()
        X = self._check_features(X, reset=is_first)
        labels = encode_labels(
            y, X.shape[0], estimator_name=type(self).__name__, for_fit=is_first and classes is None
        )
        if is_first:
            names = labels.classes if classes is None else np.unique(np.asarray(classes))
            self._begin(X, labels, names)
        elif getattr(getattr(self, "_trainer", None), "is_under_way", True):
            self._trainer = self._resume()
        places = find_positions(self.classes_, labels.classes, argument="y")
        if (places < 0).any():
            unknown = show(labels.classes[places < 0][0])
            raise ValueError(
                f"{type(self).__name__}.partial_fit: y must have labels of classes_, got {unknown}"
            )
        rows = LabelRows.of(labels.to_csr(places, len(self.classes_)))
        rates = (self.learning_rate, self.learning_rate)
        self._run([rates], X, rows, None)
        self._finish(X, rows)
        return self

    def _begin(self, X: Any, labels: EncodedLabels, classes: np.ndarray | None = None) -> None:
        self.classes_ = labels.classes if classes is None else classes
        kind = labels.kind
        if not kind.is_multilabel:
            kind = LabelKind.BINARY if len(self.classes_) == 2 else LabelKind.MULTICLASS
        self.label_kind_ = kind.name
        self._rng = np.random.default_rng(as_seed(self.random_state))
        self._trainer = self._start_layers(X, len(self.classes_), self._rng)
        self.n_iter_ = 0
        self._rows: list[tuple[float, ...]] = []

    def _fit(self, X: Any, labels: LabelRows) -> None:
        held_out = None
        if self.early_stopping:
            kept, out = split_rows(X.shape[0], self.validation_fraction, self._rng)
            held_out = (X[out], labels.take(out))
            X, labels = X[kept], labels.take(kept)
        ends = [self._rate(epoch) for epoch in range(self.max_iter + 1)]
        self._run(list(itertools.pairwise(ends)), X, labels, held_out)
        self._finish(X, labels)

    def _rate(self, epoch: int) -> float:
        """Learning rate after some epochs."""
        if self.schedule == "linear":
            return self.learning_rate * (1 - epoch / self.max_iter)
        return self.learning_rate / (1 + epoch if self.schedule == "inverse" else 1)

    def _run(self, rates: list[tuple[float, float]], X: Any, labels: LabelRows, out: Any) -> None:
        """Epochs, until the rates are used up, the held-out rows say so, or somebody stops it."""
        progress = Progress(X.shape[0] * len(rates))
        started = time.perf_counter()

        def job() -> bool:
            best, since_best = -np.inf, 0
            for pair in rates:
                report = self._epoch(X, labels, pair, self.n_iter_ >= self.n_warm, progress.core)
                seconds = time.perf_counter() - started
                row = (seconds, report.loss, report.n_updates, report.work, pair[0])
                self._rows.append(row if out is None else (*row, self._hit_rate(*out)))
                self.n_iter_ += 1
                if not report.is_finite or report.n_seen < X.shape[0]:
                    return report.is_finite
                if out is None:
                    continue
                score = self._rows[-1][-1]
                since_best = 0 if score > best else since_best + 1
                best = max(best, score)
                if since_best >= self.n_iter_no_change:
                    break
            return True

        self._trainer.is_under_way = True
        is_finite = self._watch(job, progress)
        self._trainer.is_under_way = False
        if not is_finite:
            warnings.warn(
                f"{type(self).__name__}: the gradient is not finite in epoch {self.n_iter_}; the "
                "weights before it are kept. Lower learning_rate, or scale the features",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _hit_rate(self, X: Any, labels: LabelRows) -> float:
        """Share of rows whose best label is one of theirs."""
        queries = self._embed(X)
        weights = self._trainer.weights()
        best = LabelSearch(weights, queries[:0], 1.0, 1).top_k(queries, 1, exact=True)[0][:, 0]
        return float(
            np.mean(
                [
                    best[i] in labels.ids[a:b]
                    for i, (a, b) in enumerate(itertools.pairwise(labels.begin))
                ]
            )
        )

    def _finish(self, X: Any, labels: LabelRows) -> None:
        """The fitted attributes."""
        self.weights_ = self._trainer.weights()
        rows = np.sort(self._rng.permutation(X.shape[0])[:_N_MEASURED])
        some, their = X[rows], labels.take(rows)
        queries = self._embed(some)
        with np.errstate(over="ignore", invalid="ignore"):  # the last good model may be large
            self._measure(queries, their)
        self._search = LabelSearch(
            self.weights_, queries[their.begin[1:] > their.begin[:-1]], self.recall, self._threads
        )

    def _measure(self, queries: np.ndarray, labels: LabelRows) -> None:
        wide = padded(queries)
        objective = self._trainer.mean_loss(wide, labels, "exact")
        gradient = self._trainer.prepare(is_warm=True)
        distance = abs(objective - self._trainer.mean_loss(wide, labels, gradient))
        certificate = distance if np.isfinite(distance) else np.inf
        by_column = itertools.zip_longest(*self._rows, fillvalue=np.nan)
        columns = np.array(list(by_column), dtype=np.float64)
        trace = Trace(dict(zip(_COLUMNS[: len(columns)], columns, strict=True)))
        solution = Solution(Status.MAX_ITER, objective, certificate, self.n_iter_, trace)
        self._keep_solution(solution, warns=False)
        scores = np.concatenate(
            list(LabelSearch(self.weights_, queries[:0], 1.0, self._threads).chunks(queries))
        ).ravel()
        self.threshold_ = _threshold(scores, max(len(labels.ids), 1))

    def _resume(self) -> LayerTrainer:
        self._rng = np.random.default_rng(as_seed(self.random_state))
        self._rows = [tuple(row.values()) for row in self.trace_.rows()]
        return LayerTrainer(self.weights_, self._plan(len(self.classes_)), self._rng)

    def _plan(self, n_labels: int) -> LayerPlan:
        return LayerPlan.with_defaults(
            n_labels,
            n_candidates=int(self.n_candidates),
            n_sampled=self.n_sampled,
            loss=self.loss,
            mu=float(self.mu),
            gradient=self.gradient,
            optimizer=self.optimizer,
            n_blocks=int(self.n_blocks),
            n_probe=int(self.n_probe),
            tau=float(self.tau),
            n_threads=self._threads,
        )

    # --- prediction --------------------------------------------------------------------------

    def predict_top_k(
        self, X: Any, k: int = 5, *, exact: bool = False
    ) -> tuple[np.ndarray, np.ndarray]:
        """The k best labels of each sample, best first, and their scores.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.
        k : int, default=5
            How many; all labels if there are fewer.
        exact : bool, default=False
            Score all labels. Otherwise the index is asked, which finds the share `recall` of the
            best five; below 2,000 labels every answer is exact.

        Returns
        -------
        labels, scores : ndarrays of shape (n_samples, k)
            Entries of `classes_`; equal scores in the order of `classes_`.
        """
        queries = self._queries(X)
        k = as_k(k, len(self.classes_))
        ids, scores = self._search.top_k(queries, k, exact=exact)
        return self.classes_[ids], scores

    def decision_function(self, X: Any) -> np.ndarray:
        """Scores of all labels, dense; with very many labels prefer `predict_top_k`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples, n_classes), or (n_samples,) for two classes in a 1-D `y`
        """
        queries = self._queries(X)
        scores = np.concatenate(list(self._search.chunks(queries)))
        return scores[:, 1] - scores[:, 0] if self._kind is LabelKind.BINARY else scores

    def predict(self, X: Any, *, exact: bool = False) -> Any:
        """The best label of each sample, or all labels above `threshold_`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.
        exact : bool, default=False
            Score all labels, as in `predict_top_k`. Several labels per sample are always exact.

        Returns
        -------
        ndarray, sparse matrix or list of lists
            In the form in which `fit` got the labels.
        """
        queries = self._queries(X)
        if not self._kind.is_multilabel:
            return self.classes_[self._search.top_k(queries, 1, exact=exact)[0][:, 0]]
        found = [sp.csr_matrix(s > self.threshold_) for s in self._search.chunks(queries)]
        return decode_predictions(self._kind, self.classes_, sp.vstack(found, format="csr"))

    @property
    def recall_(self) -> float:
        """Share of the best five labels of training rows that the index finds."""
        check_is_fitted(self)
        return self._search.measured_recall()

    @property
    def _threads(self) -> int:
        return as_n_threads(self.n_jobs)

    def _queries(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        return self._embed(self._check_features(X, reset=False))

    # --- saving ------------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        for name in ("_trainer", "_rng", "_rows"):  # the core's objects are not pickled
            state.pop(name, None)
        return state

    _STORED = (*LabelClassifier._STORED, "weights_", "threshold_")

    def _to_bundle(self) -> dict[str, Any]:
        return super()._to_bundle() | {"samples": self._search.samples}

    def _fields(self) -> Any:
        return super()._fields() | {
            "weights_": Floats("classes", "numbers", bits=32),
            "samples": Floats(None, "numbers", bits=32),
            "threshold_": Number(),
        }

    def _refuse_other_layers(self, state: dict[str, Any], n_inputs: int) -> None:
        n_classes, n_numbers = state["weights_"].shape
        wanted = n_inputs + bool(self.fit_intercept)
        if n_numbers != wanted:
            raise ValueError(f"weights_ must have {wanted} columns, got {n_numbers}")
        if state["label_kind_"] == LabelKind.BINARY.name and n_classes != 2:
            raise ValueError(f"classes_ must be two for a binary label_kind_, got {n_classes}")

    def _restore(self, state: dict[str, Any]) -> None:
        samples = state.pop("samples")
        super()._restore(state)
        self._search = LabelSearch(self.weights_, samples, self.recall, self._threads)


def _threshold(scores: np.ndarray, count: int) -> float:
    """What `count` scores are above: half-way to the next one, or just below all of them."""
    if count >= len(scores):
        return float(np.nextafter(scores.min(), np.float32(-np.inf)))
    low, high = np.sort(np.partition(scores, -count - 1)[-count - 1 :])[:2]
    return float((low + high) / 2)
