"""What classifiers with a dense last layer have in common: the fit, prediction and saving."""

from __future__ import annotations

import abc
import itertools
import time
import warnings
from collections.abc import Mapping
from typing import ClassVar, Generic, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from sublearn import _core
from sublearn.embed.blas_threads import blas_threads
from sublearn.embed.distances import METRIC_LOSSES, lifted_queries, lifted_rows
from sublearn.embed.label_index import LabelIndex
from sublearn.embed.label_search import LAYER_RULES, LabelSearch
from sublearn.embed.layer_training import EpochReport, LabelRows, LayerTrainer
from sublearn.errors import ParameterError
from sublearn.execution import all_or_nothing
from sublearn.fitting.held_out import patience_of, split_rows
from sublearn.fitting.labels import LabelClassifier, as_k
from sublearn.fitting.progress import Progress
from sublearn.interruption import check
from sublearn.io.fields import Fields, Floats, Number, OrAbsent
from sublearn.metrics.names import find_positions
from sublearn.trace import Callback, Solution, Status, Trace
from sublearn.typing import LabelsLike, MatrixLike, Seed, State
from sublearn.validation import (
    EARLY_STOPPING,
    RUN_RULES,
    Boolean,
    Either,
    EncodedLabels,
    Interval,
    LabelKind,
    OneOf,
    Positive,
    Rule,
    as_n_threads,
    as_seed,
    check_params,
    decode_predictions,
    encode_labels,
)
from sublearn.validation.labels import DecodedLabels
from sublearn.validation.values import show

__all__ = ["LayerClassifier"]

_N_MEASURED = 500  # training rows on which losses, recall and the threshold are measured
_SCORES_AT_ONCE = 1 << 22  # of a scan
_N_IN_STREAM = 10_000  # samples of a label that a stream is taken to have
_COLUMNS = ("seconds", "objective", "n_updates", "work", "rate", "held_out")

_Rows = TypeVar("_Rows", np.ndarray, sp.csr_matrix)  # what `_check_features` gives
_Self = TypeVar("_Self", bound="LayerClassifier")


class LayerClassifier(LabelClassifier, BaseEstimator, abc.ABC, Generic[_Rows]):
    """Everything but the features: a subclass says how rows become dense vectors."""

    _kind: ClassVar[str] = "row_labels"

    _rules: ClassVar[Mapping[str, Rule]] = {
        **LAYER_RULES,
        "optimizer": OneOf("sgd", "adagrad", "adam"),
        "learning_rate": Either(OneOf("auto"), Positive(float)),
        "max_iter": Positive(int),
        "batch_size": Positive(int),
        "fit_intercept": Boolean(),
        "early_stopping": EARLY_STOPPING,
        "validation_fraction": Interval(float, 0, 1, "neither"),
        **RUN_RULES,
    }
    _FORMER_PARAMS: ClassVar[dict[str, str | None]] = {
        **{name: f"search.{name}" for name in LabelSearch._rules},
        "tau": "search.min_gradient",
        "mu": "search.smoothing",
        "schedule": None,
    }

    weights_: np.ndarray
    threshold_: float
    scores_: str = "inner_products"

    def __init__(
        self,
        loss: str = "softmax",
        gradient: str = "decomposed",
        *,
        optimizer: str = "adagrad",
        learning_rate: float | str = "auto",
        max_iter: int = 10,
        batch_size: int = 256,
        search: LabelSearch | None = None,
        fit_intercept: bool = True,
        early_stopping: bool | int = False,
        validation_fraction: float = 0.1,
        n_jobs: int | None = None,
        random_state: Seed = None,
        verbose: int = 0,
        callback: Callback | None = None,
    ):
        self.loss = loss
        self.gradient = gradient
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.max_iter = max_iter
        self.batch_size = batch_size
        self.search = search
        self.fit_intercept = fit_intercept
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback

    # --- what a subclass does ----------------------------------------------------------------

    @abc.abstractmethod
    def _check_features(self, X: MatrixLike, *, reset: bool) -> _Rows:
        """Rows that `_hidden` takes."""

    @abc.abstractmethod
    def _hidden(self, X: _Rows) -> np.ndarray:
        """Dense float32 rows, the input of the last layer but for the constant."""

    @abc.abstractmethod
    def _start_below(self, X: _Rows) -> int:
        """Begin with the layers below the last one; the numbers in a row that it gets from them."""

    def _epoch(
        self,
        X: _Rows,
        labels: LabelRows,
        settings: _core.LayerSettings,
        rates: tuple[float, float],
        monitor: _core.Monitor,
    ) -> EpochReport:
        """One pass over the rows; trains the last layer alone, if a subclass has no other."""
        rows = self._trainer.inputs(self._embed(X))
        return self._trainer.run(rows, labels, settings, int(self.batch_size), rates, monitor)

    # --- fitting -----------------------------------------------------------------------------

    @all_or_nothing
    def fit(self: _Self, X: MatrixLike, y: LabelsLike) -> _Self:
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
        rows = self._check_features(X, reset=True)
        labels = encode_labels(y, rows.shape[0], estimator_name=type(self).__name__)
        self._begin(rows, labels, labels.classes)
        theirs, held_out = LabelRows.of(labels.to_csr()), None
        if self.early_stopping:
            kept, out = split_rows(rows.shape[0], self.validation_fraction, self._rng)
            held_out = (rows[out], theirs.take(out))
            rows, theirs = rows[kept], theirs.take(kept)
        self._trainer = self._train(self._first_weights(rows, theirs))
        self._trainer.l2 = self._l2
        # The rate falls to 0 in a line: the last epochs settle, however many there are.
        rate = self._rate(len(theirs.ids) / len(self.classes_))
        ends = rate * (1 - np.arange(self.max_iter + 1) / self.max_iter)
        self._run(list(itertools.pairwise(ends.tolist())), rows, theirs, held_out)
        self._trainer.l2 = 0.0  # streams have no end, and no pull
        self._finish(rows, theirs)
        return self

    @all_or_nothing
    def partial_fit(
        self: _Self, X: MatrixLike, y: LabelsLike, classes: ArrayLike | None = None
    ) -> _Self:
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
        if not is_first and self.scores_ != self._wanted_scores:
            raise ParameterError(
                f"{type(self).__name__}.loss must be one of {self.scores_.replace('_', ' ')} in "
                f"partial_fit, as before, got {self.loss!r}"
            )
        rows = self._check_features(X, reset=is_first)
        name = type(self).__name__
        labels = encode_labels(
            y, rows.shape[0], estimator_name=name, for_fit=is_first and classes is None
        )
        if is_first:
            names = labels.classes if classes is None else np.unique(np.asarray(classes))
            self._begin(rows, labels, names)
            self._trainer = self._train(self._no_weights())
        elif getattr(getattr(self, "_trainer", None), "is_under_way", True):
            self._trainer = self._resume()
        theirs = self._known_labels(labels, "partial_fit")
        rate = self._rate(_N_IN_STREAM)
        self._run([(rate, rate)], rows, theirs)
        self._finish(rows, theirs)
        return self

    def exact_objective(self, X: MatrixLike, y: LabelsLike) -> float:
        """Mean loss of these samples over all labels, by a scan: nothing is left out.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.
        y : array-like, sparse matrix, or list of label lists
            Their labels, all of `classes_`.

        Returns
        -------
        float
        """
        check_params(self)
        queries = self._queries(X)
        labels = encode_labels(y, len(queries), estimator_name=type(self).__name__, for_fit=False)
        theirs = self._known_labels(labels, "exact_objective")
        trainer = LayerTrainer(
            self.weights_, np.random.default_rng(0), loss=self.loss, gradient="exact",
            search=self.search, n_threads=self._threads,
        )  # fmt: skip
        settings, total = trainer.settings("exact"), 0.0
        step = max(1, _SCORES_AT_ONCE // len(self.classes_))
        for start in range(0, len(queries), step):
            check()
            some = np.arange(start, min(start + step, len(queries)))
            part = trainer.mean_loss(trainer.inputs(queries[some]), theirs.take(some), settings)
            total += len(some) * part
        return total / len(queries)

    def _known_labels(self, labels: EncodedLabels, argument: str) -> LabelRows:
        places = find_positions(self.classes_, labels.classes, argument="y")
        if (places < 0).any():
            unknown = show(labels.classes[places < 0][0])
            raise ValueError(
                f"{type(self).__name__}.{argument}: y must have labels of classes_, got {unknown}"
            )
        return LabelRows.of(labels.to_csr(places, len(self.classes_)))

    def _begin(self, X: _Rows, labels: EncodedLabels, classes: np.ndarray) -> None:
        self.classes_ = classes
        self.scores_ = self._wanted_scores
        kind = labels.kind
        if not kind.is_multilabel:
            kind = LabelKind.BINARY if len(classes) == 2 else LabelKind.MULTICLASS
        self.label_kind_ = kind.name
        self._rng = np.random.default_rng(as_seed(self.random_state))
        n_hidden = self._start_below(X)
        self._dim = n_hidden + (2 if self._is_metric else bool(self.fit_intercept))
        self.n_iter_ = 0
        self._rows: list[tuple[float, ...]] = []

    def _rate(self, n_of_label: float) -> float:
        """Of the first step. Measured: the more samples a label has, the longer steps may be."""
        if isinstance(self.learning_rate, str):
            return 0.1 * (1 + float(np.log10(max(n_of_label, 1.0))))
        return float(self.learning_rate)

    @property
    def _l2(self) -> float:
        """Of the pull towards the first weights in `fit`."""
        return 0.0

    @property
    def _damping(self) -> float:
        """What Adagrad divides the first gradient of a row by, at least."""
        return 0.0

    def _no_weights(self) -> np.ndarray:
        if self._is_metric:
            return lifted_rows(np.zeros((len(self.classes_), self._dim - 2), dtype=np.float32))
        return np.zeros((len(self.classes_), self._dim), dtype=np.float32)

    def _first_weights(self, X: _Rows, labels: LabelRows) -> np.ndarray:
        """Where `fit` begins: zeros, if a subclass knows nothing better."""
        return self._no_weights()

    def _resume(self) -> LayerTrainer:
        self._rng = np.random.default_rng(as_seed(self.random_state))
        self._rows = [tuple(row.values()) for row in self.trace_.rows()]
        return self._train(self.weights_)

    def _train(self, weights: np.ndarray) -> LayerTrainer:
        return LayerTrainer(
            weights,
            self._rng,
            loss=self.loss,
            gradient=self.gradient,
            optimizer=self.optimizer,
            damping=self._damping,
            search=self.search,
            n_threads=self._threads,
        )

    def _run(
        self,
        rates: list[tuple[float, float]],
        X: _Rows,
        labels: LabelRows,
        held_out: tuple[_Rows, LabelRows] | None = None,
    ) -> None:
        """One epoch for each pair of rates, unless held-out rows or the user end them before."""
        progress = Progress(X.shape[0] * len(rates))
        started = time.perf_counter()
        patience = patience_of(self.early_stopping)

        def job() -> bool:
            scores: list[float] = []
            for pair in rates:
                settings = self._trainer.prepare(self.n_iter_)
                report = self._epoch(X, labels, settings, pair, progress.core)
                seconds = time.perf_counter() - started
                if held_out is not None:
                    scores.append(self._hit_rate(*held_out))
                row: list[float] = [seconds, report.loss, report.n_updates, report.work, pair[0]]
                self._rows.append((*row, *scores[-1:]))
                self.n_iter_ += 1
                if not report.is_finite or report.n_seen < X.shape[0]:
                    return report.is_finite
                if scores and len(scores) - 1 - np.argmax(scores) >= patience:
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

    def _hit_rate(self, X: _Rows, labels: LabelRows) -> float:
        """Share of rows whose best label is one of theirs."""
        index = LabelIndex(self._trainer.weights(), n_threads=1)
        best = index.top_k(self._embed(X), 1, exact=True)[0][:, 0]
        best_of_each = np.repeat(best, np.diff(labels.begin))
        return float((labels.ids == best_of_each).sum() / len(best))

    def _finish(self, X: _Rows, labels: LabelRows) -> None:
        """Set the fitted attributes."""
        self.weights_ = self._trainer.weights()
        rows = np.sort(self._rng.permutation(X.shape[0])[:_N_MEASURED])
        queries, theirs = self._embed(X[rows]), labels.take(rows)
        self._index = self._indexed(queries[np.diff(theirs.begin) > 0])
        with np.errstate(over="ignore", invalid="ignore"):  # the last good model may be large
            self._measure(queries, theirs)

    def _measure(self, queries: np.ndarray, labels: LabelRows) -> None:
        trainer = self._trainer
        wide = trainer.inputs(queries)
        objective = trainer.mean_loss(wide, labels, trainer.settings("exact"))
        distance = abs(objective - trainer.mean_loss(wide, labels, trainer.prepare(np.inf)))
        certificate = distance if np.isfinite(distance) else np.inf
        by_column = itertools.zip_longest(*self._rows, fillvalue=np.nan)
        columns = np.array(list(by_column), dtype=np.float64)
        trace = Trace(dict(zip(_COLUMNS[: len(columns)], columns, strict=True)))
        solution = Solution(Status.MAX_ITER, objective, certificate, self.n_iter_, trace)
        self._keep_solution(solution, warns=False)
        with blas_threads(1):  # a product's last digits depend on how it is shared
            scores = (queries @ self._index.weights.T).ravel()
        self.threshold_ = _threshold(scores, max(len(labels.ids), 1))

    def _indexed(self, samples: np.ndarray) -> LabelIndex:
        recall = LabelSearch.of(self.search).recall
        return LabelIndex(self.weights_, self._threads, samples, recall)

    # --- prediction --------------------------------------------------------------------------

    def predict_top_k(
        self, X: MatrixLike, k: int = 5, *, exact: bool = False
    ) -> tuple[np.ndarray, np.ndarray]:
        """The k best labels of each sample, best first, and their scores.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.
        k : int, default=5
            How many; all labels if there are fewer.
        exact : bool, default=False
            Score all labels. Otherwise the index is asked, which finds the share
            `search.recall` of the best five; below 2,000 labels every answer is exact.

        Returns
        -------
        labels, scores : ndarrays of shape (n_samples, k)
            Entries of `classes_`; equal scores in the order of `classes_`.
        """
        queries = self._queries(X)
        ids, scores = self._index.top_k(queries, as_k(k, len(self.classes_)), exact=exact)
        return self.classes_[ids], scores

    def decision_function(self, X: MatrixLike) -> np.ndarray:
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
        scores = self._index.scores(queries)
        return scores[:, 1] - scores[:, 0] if self._label_kind is LabelKind.BINARY else scores

    def predict(self, X: MatrixLike, *, exact: bool = False) -> DecodedLabels:
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
        if not self._label_kind.is_multilabel:
            return self.classes_[self._index.top_k(queries, 1, exact=exact)[0][:, 0]]
        found = [sp.csr_matrix(s > self.threshold_) for s in self._index.chunks(queries)]
        return decode_predictions(self._label_kind, self.classes_, sp.vstack(found, format="csr"))

    @property
    def recall_(self) -> float:
        """Share of the best five labels of training rows that the index finds."""
        check_is_fitted(self)
        return self._index.measured_recall()

    @property
    def proxies_(self) -> np.ndarray:
        """The point of each label, if scores are distances."""
        check_is_fitted(self)
        if not self._is_metric:
            raise AttributeError(f"{type(self).__name__} has proxies_ if loss is 'nca' or so")
        return self.weights_[:, :-2]

    @property
    def _is_metric(self) -> bool:
        return self.scores_ == "distances"

    @property
    def _wanted_scores(self) -> str:
        return "distances" if self.loss in METRIC_LOSSES else "inner_products"

    @property
    def _threads(self) -> int:
        return as_n_threads(self.n_jobs)

    def _queries(self, X: MatrixLike) -> np.ndarray:
        check_is_fitted(self)
        return self._embed(self._check_features(X, reset=False))

    def _embed(self, X: _Rows) -> np.ndarray:
        """The input of the last layer; a constant learns the intercepts."""
        hidden = self._hidden(X)
        if self._is_metric:
            return lifted_queries(hidden)
        if not self.fit_intercept:
            return hidden
        return np.hstack([hidden, np.ones((len(hidden), 1), dtype=np.float32)])

    # --- saving ------------------------------------------------------------------------------

    def __getstate__(self) -> State:
        state = dict(super().__getstate__())
        for name in ("_trainer", "_rng", "_rows"):  # the core's objects are not pickled
            state.pop(name, None)
        return state

    _STORED = (*LabelClassifier._STORED, "weights_", "threshold_", "scores_")

    def _to_bundle(self) -> State:
        return super()._to_bundle() | {"samples": self._index.samples}

    def _fields(self) -> Fields:
        return super()._fields() | {
            "weights_": Floats("classes", "numbers", bits=32),
            "samples": Floats(None, "numbers", bits=32),
            "threshold_": Number(),
            "scores_": OrAbsent(OneOf("inner_products", "distances")),
        }

    def _restore(self, state: State) -> None:
        n_classes, n_numbers = state["weights_"].shape
        # Files of earlier versions have inner products, also where loss="nca" said softmax.
        is_metric = state.setdefault("scores_", "inner_products") == "distances"
        if self.loss == "nca" and not is_metric:
            self.loss = "softmax"
        wanted = self._n_inputs(state) + (2 if is_metric else bool(self.fit_intercept))
        if n_numbers != wanted:
            raise ValueError(f"weights_ must have {wanted} columns, got {n_numbers}")
        if state["label_kind_"] == LabelKind.BINARY.name and n_classes != 2:
            raise ValueError(f"classes_ must be two for a binary label_kind_, got {n_classes}")
        samples = state.pop("samples")
        super()._restore(state)
        self._index = self._indexed(samples)

    def _n_inputs(self, state: State) -> int:
        """Numbers in a row of the last layer but for the constant, in a file."""
        return int(state["n_features_in_"])


def _threshold(scores: np.ndarray, count: int) -> float:
    """What `count` scores are above: half-way to the next one, or just below all of them."""
    if count >= len(scores):
        return float(np.nextafter(scores.min(), np.float32(-np.inf)))
    low, high = np.sort(np.partition(scores, -count - 1)[-count - 1 :])[:2]
    return float((low + high) / 2)
