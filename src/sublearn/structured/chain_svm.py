"""Sequences of tags: a structural SVM over chains, learnt by factorwise oracles."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from scipy.optimize import minimize_scalar
from sklearn.utils.validation import check_is_fitted

from sublearn import _core
from sublearn.execution import all_or_nothing
from sublearn.io.fields import Fields, Floats, OrAbsent, Strings
from sublearn.structured.chain_inference import best_paths, chain_marginals
from sublearn.structured.learning import Passes
from sublearn.structured.model import LEARNING_RULES, StructuredModel, append_columns
from sublearn.structured.problem import Problem, Weights, begins
from sublearn.structured.sequences import (
    FlatInput,
    LabelLists,
    Sequences,
    encode_flat,
    flatten,
    flatten_labels,
    learn_rows,
    read_rows,
    split_lists,
)
from sublearn.structured.transitions import (
    NEVER,
    ForbiddenPairs,
    PairRules,
    Transitions,
    no_way_through,
    with_rules,
)
from sublearn.trace import Callback, attend
from sublearn.typing import MatrixLike, Seed, State, WeightsLike
from sublearn.validation import (
    Boolean,
    Either,
    OneOf,
    Positive,
    Rule,
    as_n_threads,
    check_argument,
    check_params,
)
from sublearn.validation.features import as_precise_as
from sublearn.validation.values import show
from sublearn.validation.weights import check_sample_weight

if TYPE_CHECKING:
    from sublearn.structured.named_features import Position

__all__ = ["ChainSVM"]

_LOG_TEMPERATURES = (-4.0, 4.0)

EvalSequences: TypeAlias = (
    "tuple[Sequences, LabelLists] | tuple[Sequences, LabelLists, ArrayLike | None] | None"
)


class ChainSVM(StructuredModel):
    r"""Tags of sequences, chosen together: scores of single tags and of neighbouring tags.

    The score of tags :math:`y` for a sequence with features :math:`x_1, \dots, x_n` is

    .. math::
        \sum_t w_{y_t}^\top x_t + \sum_{t > 1} T(y_{t-1}, y_t)

    and `predict` finds the tags of highest score, exactly. Learning minimises

    .. math::
        \tfrac12 \|W\|^2 + \tfrac12 \|T\|^2 + C \sum_i \max_y \bigl[ \Delta(y, y_i)
        + \mathrm{score}(x_i, y) - \mathrm{score}(x_i, y_i) \bigr]

    where :math:`\Delta` counts the positions at which y is wrong, or adds up what `fit` got as
    `costs`. Instead of searching all
    sequences of tags, the solver (GDMM, algorithms 1 and 4 of [1]_) treats each position and each
    pair of neighbours as a small multiclass problem, lets messages make them agree, and looks at
    few of the K tags and few of the K x K pairs: the largest of the rest are found in heaps that
    follow the weights.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the loss, which is a sum over positions and not a mean. With 0/1 features
        values from 0.01 to 1 are usual.
    transitions : bool, "bio" or list of pairs, default=True
        Whether neighbouring tags have scores. False makes positions independent: a multiclass SVM.
        A list of pairs (a, b) means True, and that `predict` never gives b right after a; None as
        a is the begin of a sequence, as b its end. "bio": I-x comes after B-x or I-x only. The fit
        refuses sequences that break a rule. The objective is that without rules: learning keeps
        forbidden tags below the truth as it does others.
    fit_intercept : bool, default=True
        Whether each tag has a bias: a feature that is 1 everywhere. It is penalised like others.
    end_features : {"auto"} or bool, default="auto"
        Whether each tag has a score for being the first, and one for being the last of its
        sequence. "auto" means True if features have names and False for matrices.
    tol : float or None, default=None
        The fit ends when `certificate_` is at most this; a `ConvergenceWarning` says so if
        `max_iter` passes do not get there. None asks for no certificate: the fit ends at 0.01 or
        after `max_iter` passes, whichever comes first, without a warning.
    max_iter : int, default=30
        Limit on the passes over the sequences.
    early_stopping : bool or int, default=False
        Keep sequences away from training, end the fit when the share of right tags in them has not
        risen for so many passes, 3 if True, and return the best model, not the last.
    validation_fraction : float, default=0.1
        Share of the sequences that `early_stopping` keeps away if `fit` gets no `eval_set`.
    average : bool, default=True
        Whether the model is a mean over passes, in which pass t counts as t (t + 1) (t + 2): fewer
        of the last sequences that were visited show in it. It is mostly the better one before the
        optimum is reached, above all for large `C`. Where the objective is computed and there are
        no held-out sequences, the mean or the last weights are kept, whichever have the lower one.
    solver : {"block_descent", "frank_wolfe"}, default="block_descent"
        What a visit does to the shares of the active tags of a position, or of the active pairs of
        neighbours: "block_descent" is algorithm 4 of [1]_, the best shares at once; "frank_wolfe"
        is algorithm 2 on each of them, a step towards the best or away from the worst one. Both
        end at the same optimum; "frank_wolfe" takes more passes.
    passes : Passes or None, default=None
        How often the objective is computed, and what else passes may do differently; None means
        ``Passes()``.
    n_jobs : int or None, default=None
        Threads for prediction and for computing the objective; None means 1, -1 all processors.
        Passes run on one thread. The model does not depend on it.
    random_state : int, RandomState instance, Generator or None, default=None
        Order in which sequences, positions and pairs are visited, and the held-out sequences.
    verbose : int, default=0
        1 draws a progress bar on standard error.
    callback : callable or None, default=None
        Gets a :class:`sublearn.trace.Event` about ten times a second; a true return value stops
        the fit. The model is then what was reached, with held-out sequences the best so far.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Tags, sorted.
    coef_ : sparse matrix of shape (n_classes, n_features)
        Weights of features.
    intercept_ : ndarray of shape (n_classes,)
        Biases; zeros without `fit_intercept`.
    start_, end_ : ndarray of shape (n_classes,)
        Scores of the first and of the last tag; zeros without `end_features`.
    transitions_ : ndarray of shape (n_classes, n_classes)
        Score of tag a followed by tag b in row a, column b.
    feature_names_ : ndarray of str or None
        Names of the columns of `coef_`; None if `fit` got matrices.
    objective_ : float
        Value of the objective; NaN if it was never computed.
    certificate_ : float
        (objective - bound) / objective, where no weights have an objective below the bound.
        The bound is the value of the dual (10) of [1]_ at a feasible point made of the current one.
        Infinite if it was never computed.
    n_iter_ : int
        Passes over the sequences.
    held_out_accuracy_ : float or None
        Share of right tags in held-out sequences; None without them.
    temperature_ : float
        What `predict_proba` divides scores by: the one under which the tags of held-out sequences
        are most probable, or that `calibrate` found; 1 without either.
    trace_ : Trace
        One row per pass. Columns seconds, primal (the objective, NaN where not computed),
        dual (of the current point, which need not be feasible), bound (NaN where not computed),
        certificate, infeasibility (root mean square of the disagreement of positions and pairs),
        n_labels and n_states (tags and pairs of tags with a share, over all positions), n_factors
        (pairs of neighbours that are active), n_visits (to positions and pairs), work, rho,
        and held_out where there are held-out sequences.
    n_features_in_ : int
        Number of features, without bias and ends.

    References
    ----------
    .. [1] I. E.-H. Yen, X. Huang, K. Zhong, R. Zhang, P. Ravikumar, I. Dhillon, "Dual Decomposed
       Learning with Factorwise Oracle for Structural SVM of Large Output Domain", NIPS 2016.

    Examples
    --------
    >>> from sublearn.structured import ChainSVM
    >>> X = [[["the"], ["dog"], ["runs"]], [["a"], ["run"]], [["dogs"], ["run"]]]
    >>> y = [["DET", "NOUN", "VERB"], ["DET", "NOUN"], ["NOUN", "VERB"]]
    >>> model = ChainSVM(random_state=0).fit(X, y)
    >>> model.predict([[["the"], ["run"]], [["dog"], ["run"]]])
    [['DET', 'NOUN'], ['NOUN', 'VERB']]
    """

    _kind: ClassVar[str] = "sequence_tags"

    _rules: ClassVar[dict[str, Rule]] = LEARNING_RULES | {
        "transitions": Either(Boolean(), OneOf("bio"), ForbiddenPairs()),
        "end_features": Either(OneOf("auto"), Boolean()),
    }

    transitions_: np.ndarray
    temperature_: float
    feature_names_: np.ndarray | None
    _vocabulary: dict[str, int] | None
    _has_ends: bool

    def __init__(
        self,
        C: float = 1.0,
        *,
        transitions: Transitions = True,
        fit_intercept: bool = True,
        end_features: bool | str = "auto",
        tol: float | None = None,
        max_iter: int = 30,
        early_stopping: bool | int = False,
        validation_fraction: float = 0.1,
        average: bool = True,
        solver: str = "block_descent",
        passes: Passes | None = None,
        n_jobs: int | None = None,
        random_state: Seed = None,
        verbose: int = 0,
        callback: Callback | None = None,
    ):
        self.C = C
        self.transitions = transitions
        self.fit_intercept = fit_intercept
        self.end_features = end_features
        self.tol = tol
        self.max_iter = max_iter
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.average = average
        self.solver = solver
        self.passes = passes
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback

    @all_or_nothing
    def fit(
        self,
        X: Sequences,
        y: LabelLists,
        *,
        lengths: ArrayLike | None = None,
        sample_weight: WeightsLike | None = None,
        eval_set: EvalSequences = None,
        costs: ArrayLike | None = None,
    ) -> ChainSVM:
        """Learn from sequences and their tags.

        Parameters
        ----------
        X : list of matrices, one matrix, or list of lists of positions
            - A list with a matrix of shape (length, n_features), dense or sparse, for each
              sequence.
            - One matrix with all sequences one below the other, and `lengths`.
            - A list with a list of positions for each sequence, as python-crfsuite takes them. A
              position is a list of strings, or a dict in which a string value makes the feature
              "name=value", True counts one, False nothing, and a number counts as much as it is.
              Such features are stored in float32.
        y : list of lists of tags, or one list of tags with `lengths`
            Tags are strings, numbers or anything else that is hashable, of one type.
        lengths : array-like of int or None, default=None
            Length of each sequence, if `X` is one matrix.
        sample_weight : array-like of shape (n_sequences,) or None, default=None
            What the loss of each sequence counts; 0 leaves it out.
        eval_set : tuple (X, y) or (X, y, lengths) or None, default=None
            Held-out sequences for early stopping, which it turns on. Tags that `y` lacks count as
            mistakes.
        costs : array-like of shape (n_classes, n_classes) or None, default=None
            What a position loses that has the tag of the row and gets that of the column, tags in
            sorted order; zero where both are the same. None: 1 for each mistake.

        Returns
        -------
        ChainSVM
            Itself, fitted.
        """
        check_params(self)
        name = type(self).__name__
        flat = flatten(X, lengths, name)
        tags = flatten_labels(y, flat, f"{name}: y")
        rows, self._vocabulary = learn_rows(self, flat)
        self.classes_, truth = encode_flat(tags, name)
        names = self._vocabulary
        self.feature_names_ = None if names is None else np.array(list(names), dtype=object)
        self._has_ends = (
            flat.positions is not None if self.end_features == "auto" else bool(self.end_features)
        )
        self._pair_rules.check(truth, flat.lengths, f"{name}: y")
        weight = check_sample_weight(sample_weight, len(flat.lengths), estimator_name=name)
        problem = self._problem(rows, flat.lengths, truth, weight)
        problem = replace(problem, costs=self._check_costs(costs))
        held_out = None if eval_set is None else self._read_eval_set(eval_set)
        weights = self._learn(problem, held_out)
        self._weights, self.transitions_ = weights.W, self._table(weights)
        return self

    def _read_eval_set(self, eval_set: EvalSequences) -> Problem:
        name = type(self).__name__
        if not isinstance(eval_set, (tuple, list)) or len(eval_set) not in (2, 3):
            raise ValueError(
                f"{name}: eval_set must be (X, y) or (X, y, lengths), got {show(eval_set)}"
            )
        X, y, lengths = (*eval_set, None)[:3]
        flat = flatten(X, lengths, f"{name}.eval_set")
        tags = flatten_labels(y, flat, f"{name}.eval_set: y")
        return self._read(flat, self._codes_of(tags, "eval_set[1]"))

    def _problem(
        self, rows: sp.csr_matrix, lengths: np.ndarray, truth: np.ndarray, weight: np.ndarray | None
    ) -> Problem:
        node_begin = begins(lengths)
        n_pairs = np.maximum(lengths - 1, 0) if self.transitions else np.zeros_like(lengths)
        firsts = np.arange(rows.shape[0], dtype=np.int32)
        firsts = (
            np.delete(firsts, node_begin[1:][lengths > 0] - 1) if self.transitions else firsts[:0]
        )
        return Problem(
            X=self._with_extras(rows, lengths),
            truth=truth,
            n_labels=len(self.classes_),
            node_begin=node_begin,
            factor_begin=begins(n_pairs),
            scope=np.column_stack([firsts, firsts + 1]).reshape(-1),
            table=np.zeros(len(firsts), dtype=np.int32),
            arity=(2,) if self.transitions else (),
            scale=None,
            weight=weight,
        )

    def _with_extras(self, X: sp.csr_matrix, lengths: np.ndarray) -> sp.csr_matrix:
        """Columns for the bias, the first and the last position behind those of the features."""
        extras = [np.ones(X.shape[0])] if self.fit_intercept else []
        if self._has_ends:
            ends, filled = np.cumsum(lengths), lengths > 0
            for places in ((ends - lengths)[filled], ends[filled] - 1):
                extras.append(np.zeros(X.shape[0]))
                extras[-1][places] = 1.0
        return append_columns(X, *extras) if extras else X

    @property
    def _pair_rules(self) -> PairRules:
        return PairRules(self.transitions, self.classes_.tolist())

    def _use_held_out(self, held_out: Problem | None, weights: Weights) -> None:
        self.temperature_ = 1.0
        if held_out is not None and (held_out.truth >= 0).any():
            self.temperature_ = self._best_temperature(held_out, weights)

    def _table(self, weights: Weights) -> np.ndarray:
        if self.transitions:
            return weights.tables[0]
        return np.zeros((len(self.classes_), len(self.classes_)))

    @property
    def _model(self) -> Weights:
        return Weights(self._weights, [self.transitions_])

    def predict(
        self, X: Sequences, *, lengths: ArrayLike | None = None
    ) -> list[list[Hashable]] | np.ndarray:
        """The tags of highest score of each sequence, exactly.

        Parameters
        ----------
        X : as in `fit`
            Named features that `fit` did not see are ignored.
        lengths : array-like of int or None, default=None
            Length of each sequence, if `X` is one matrix.

        Returns
        -------
        list of lists of tags; ndarray of tags if there are `lengths`
        """
        return self.predict_with_scores(X, lengths=lengths)[0]

    def predict_one(self, sequence: MatrixLike | list[Position]) -> list[Hashable]:
        """The tags of one sequence: a matrix, or a list of positions."""
        return self.predict([sequence])[0]

    def predict_with_scores(
        self, X: Sequences, *, lengths: ArrayLike | None = None
    ) -> tuple[list[list[Hashable]] | np.ndarray, np.ndarray]:
        """Tags as in `predict`, and the score of each sequence with them."""
        check_is_fitted(self)
        flat = flatten(X, lengths, type(self).__name__)
        codes, scores = self._decode(self._read(flat), self._model)
        tags = self.classes_[codes]
        return (tags if flat.is_one else split_lists(tags.tolist(), flat.lengths)), scores

    def decision_function(
        self, X: Sequences, *, lengths: ArrayLike | None = None
    ) -> list[np.ndarray] | np.ndarray:
        """Scores of each tag at each position, without transitions.

        Returns
        -------
        list of ndarray of shape (length, n_classes); one ndarray if there are `lengths`
        """
        check_is_fitted(self)
        flat = flatten(X, lengths, type(self).__name__)
        scores = (self._read(flat).X @ self._weights).toarray()
        if flat.is_one:
            return scores
        return np.split(scores, np.cumsum(flat.lengths)[:-1])

    def predict_proba(
        self, X: Sequences, *, lengths: ArrayLike | None = None
    ) -> list[np.ndarray] | np.ndarray:
        r"""Probabilities of each tag at each position, all other positions summed over.

        Sequences of tags have probabilities in proportion to
        :math:`\exp(\mathrm{score} / \mathrm{temperature})`; forbidden ones have none. The
        temperature is learnt from held-out sequences (`early_stopping`, `eval_set`, `calibrate`).

        Returns
        -------
        list of ndarray of shape (length, n_classes); one ndarray if there are `lengths`
        """
        check_is_fitted(self)
        flat = flatten(X, lengths, type(self).__name__)
        parts = self._marginals(self._read(flat), self._model, self.temperature_)
        return np.concatenate(parts) if flat.is_one and parts else parts

    def calibrate(
        self, X: Sequences, y: LabelLists, *, lengths: ArrayLike | None = None
    ) -> ChainSVM:
        """Learn `temperature_` from sequences that the fit did not have. Returns itself."""
        check_is_fitted(self)
        name = type(self).__name__
        flat = flatten(X, lengths, name)
        truth = self._codes_of(flatten_labels(y, flat, f"{name}: y"), "y")
        if not (truth >= 0).any():
            raise ValueError(f"{name}: y must have tags that the fit has seen, got none")
        self.temperature_ = self._best_temperature(self._read(flat, truth), self._model)
        return self

    def predict_n_best(
        self, X: Sequences, n: int = 5, *, lengths: ArrayLike | None = None
    ) -> list[list[tuple[list[Hashable], float]]]:
        """The n best taggings of each sequence and their scores, the best first, exactly.

        Returns
        -------
        list with a list of (tags, score) for each sequence
            Fewer than n where there are no more.
        """
        check_is_fitted(self)
        check_argument(f"{type(self).__name__}.predict_n_best: n", n, Positive(int))
        problem = self._read(flatten(X, lengths, type(self).__name__))
        table = self._allowed_table(self._model)
        out: list[list[tuple[list[Hashable], float]]] = []
        for emissions in self._emissions(problem, self._model):
            if not len(emissions):
                out.append([([], 0.0)])
                continue
            paths, scores = best_paths(emissions, table, int(n))
            tags = self.classes_[paths].tolist()
            out.append(list(zip(tags, scores.tolist(), strict=True)))
        return out

    def _allowed_table(self, weights: Weights) -> np.ndarray:
        """Scores of pairs, -inf for forbidden ones."""
        return np.where(self._pair_rules.table, self._table(weights), -np.inf)

    def _emissions(self, problem: Problem, weights: Weights) -> Iterator[np.ndarray]:
        """Scores of the tags of each sequence, -inf for those that may not begin or end it."""
        rules, begin = self._pair_rules, problem.node_begin
        for first, end in zip(begin[:-1].tolist(), begin[1:].tolist(), strict=True):
            scores = (problem.X[first:end] @ weights.W).toarray().astype(np.float64)
            if len(scores):
                scores[0, ~rules.first] = -np.inf
                scores[-1, ~rules.last] = -np.inf
            yield scores

    def _marginals(
        self, problem: Problem, weights: Weights, temperature: float
    ) -> list[np.ndarray]:
        table = self._allowed_table(weights) / temperature
        parts = [
            chain_marginals(scores / temperature, table) if len(scores) else scores
            for scores in self._emissions(problem, weights)
        ]
        for part in parts:
            if len(part) and not part.any():
                raise no_way_through(self, len(part))
        return parts

    def _best_temperature(self, problem: Problem, weights: Weights) -> float:
        """The one of least log loss at the tags, by a search over its logarithm."""
        truth = problem.truth
        seen = np.flatnonzero(truth >= 0)

        def loss(log_temperature: float) -> float:
            parts = self._marginals(problem, weights, float(np.exp(log_temperature)))
            own = np.concatenate(parts)[seen, truth[seen]]
            return float(-np.log(np.maximum(own, 1e-12)).mean())

        found = minimize_scalar(loss, bounds=_LOG_TEMPERATURES, method="bounded",
                                options={"xatol": 0.02, "maxiter": 20})  # fmt: skip
        return float(np.exp(found.x))

    def score(self, X: Sequences, y: LabelLists, *, lengths: ArrayLike | None = None) -> float:
        """Share of positions with the right tag; a tag that `fit` did not see is never right."""
        check_is_fitted(self)
        name = type(self).__name__
        flat = flatten(X, lengths, name)
        truth = self._codes_of(flatten_labels(y, flat, f"{name}: y"), "y")
        if not len(truth):
            raise ValueError(f"{name}: X must have at least one position, got none")
        return self._share_right(self._read(flat, truth), self._model)

    @property
    def start_(self) -> np.ndarray:
        """Score of each tag for being the first."""
        return self._extra(-2) if self._has_ends else np.zeros(len(self.classes_))

    @property
    def end_(self) -> np.ndarray:
        """Score of each tag for being the last."""
        return self._extra(-1) if self._has_ends else np.zeros(len(self.classes_))

    def _read(self, flat: FlatInput, truth: np.ndarray | None = None) -> Problem:
        """New sequences, with the columns of the fit."""
        rows = read_rows(self, flat, self._vocabulary)
        truth = np.zeros(rows.shape[0], dtype=np.int32) if truth is None else truth
        return self._problem(rows, flat.lengths, truth, None)

    def _best_labels(
        self, problem: Problem, weights: Weights, monitor: _core.Monitor | None = None
    ) -> np.ndarray:
        return self._decode(problem, weights, monitor)[0]

    def _worst_score(self, problem: Problem, weights: Weights, monitor: _core.Monitor) -> float:
        _, scores = self._decode(problem, weights, monitor, problem.truth)
        return float(scores.sum() if problem.weight is None else scores @ problem.weight)

    def _decode(
        self,
        problem: Problem,
        weights: Weights,
        monitor: _core.Monitor | None = None,
        truth: np.ndarray | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Best labels of all positions and score of each sequence; with `truth`, plus mistakes."""
        X, W, lengths = problem.X, weights.W, problem.n_nodes
        if monitor is None:
            n_operations = float(X.shape[0]) * problem.n_labels**2
            return attend(lambda own: self._decode(problem, weights, own), n_operations)
        scores = np.zeros(len(lengths))
        if not X.shape[0]:
            return np.zeros(0, dtype=np.int32), scores
        if X.dtype != W.dtype:
            X = as_precise_as(W.dtype, X, f"{type(self).__name__}: X")
        table = np.ascontiguousarray(self._table(weights))
        rules = self._pair_rules
        if truth is None and not rules.is_free:
            X, W, table = with_rules(X, W, table, lengths, rules)
        filled = lengths > 0
        labels, scores[filled] = _core.viterbi(
            (*(ids.astype(np.int32, copy=False) for ids in (X.indptr, X.indices)), X.data),
            (W.indptr.astype(np.int64, copy=False), W.indices.astype(np.int32, copy=False), W.data),
            table,
            lengths[filled],
            truth,
            as_n_threads(self.n_jobs),
            monitor,
            None if truth is None or problem.costs is None else problem.costs.reshape(-1),
        )
        if truth is None and scores.min(initial=0.0) < -0.5 * NEVER:
            raise no_way_through(self, int(lengths[np.argmin(scores)]))
        return labels, scores

    def _to_bundle(self) -> State:
        state = {"transitions_": self.transitions_, "has_ends": self._has_ends}
        state["temperature_"] = float(self.temperature_)
        if self.feature_names_ is not None:
            state["feature_names_"] = self.feature_names_
        return super()._to_bundle() | state

    def _fields(self) -> Fields:
        return super()._fields() | {
            "transitions_": Floats("classes", "classes", finite=True, bits=64),
            "feature_names_": OrAbsent(Strings("features", distinct=True)),
            "has_ends": Boolean(),
            "temperature_": OrAbsent(Positive(float)),
        }

    def _restore(self, state: State) -> None:
        self._has_ends = state.pop("has_ends")
        self.temperature_ = state.pop("temperature_", 1.0)
        self._restore_weights(state, self.fit_intercept + 2 * self._has_ends)
        names = self.feature_names_ = state.pop("feature_names_", None)
        self._vocabulary = None if names is None else {n: j for j, n in enumerate(names.tolist())}
        super()._restore(state)
