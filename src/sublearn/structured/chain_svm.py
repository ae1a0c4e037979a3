"""Sequences of tags: a structural SVM over chains, learnt by factorwise oracles."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from sublearn import _core
from sublearn.execution import all_or_nothing
from sublearn.fitting.held_out import split_rows
from sublearn.io.fields import Floats, OrAbsent, Strings
from sublearn.structured.learning import Problem, Weights
from sublearn.structured.model import LEARNING_RULES, StructuredModel
from sublearn.structured.sequences import (
    Chains,
    FlatInput,
    encode_tags,
    flatten,
    flatten_tags,
    read_rows,
    rows_of,
)
from sublearn.trace import Callback, attend
from sublearn.validation import Boolean, Either, OneOf, Rule, as_n_threads, check_params
from sublearn.validation.values import show
from sublearn.validation.weights import check_sample_weight

__all__ = ["ChainSVM"]


class ChainSVM(StructuredModel):
    r"""Tags of sequences, chosen together: scores of single tags and of neighbouring tags.

    The score of tags :math:`y` for a sequence with features :math:`x_1, \dots, x_n` is

    .. math::
        \sum_t w_{y_t}^\top x_t + \sum_{t > 1} T(y_{t-1}, y_t)

    and `predict` finds the tags of highest score, exactly. Learning minimises

    .. math::
        \tfrac12 \|W\|^2 + \tfrac12 \|T\|^2 + C \sum_i \max_y \bigl[ \Delta(y, y_i)
        + \mathrm{score}(x_i, y) - \mathrm{score}(x_i, y_i) \bigr]

    where :math:`\Delta` counts the positions at which y is wrong. Instead of searching all
    sequences of tags, the solver (GDMM, algorithms 1 and 4 of [1]_) treats each position and each
    pair of neighbours as a small multiclass problem, lets messages make them agree, and looks at
    few of the K tags and few of the K x K pairs: the largest of the rest are found in heaps that
    follow the weights.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the loss, which is a sum over positions and not a mean. With 0/1 features
        values from 0.01 to 1 are usual.
    transitions : bool, default=True
        Whether neighbouring tags have scores. False makes positions independent: a multiclass SVM.
    fit_intercept : bool, default=True
        Whether each tag has a bias: a feature that is 1 everywhere. It is penalised like others.
    end_features : {"auto"} or bool, default="auto"
        Whether each tag has a score for being the first, and one for being the last of its
        sequence. "auto" means True if features have names and False for matrices.
    tol : float, default=0.01
        The fit ends when `certificate_` is at most this.
    max_iter : int, default=30
        Limit on the passes over the sequences.
    evaluate_every : int, default=5
        Passes from one computation of the objective and its bound to the next; it takes
        exact decoding of all sequences, as long as some passes. After the last pass it is
        computed in any case. 0 never computes it: the fit then takes `max_iter` passes.
    early_stopping : bool, default=False
        Keep sequences away from training, end the fit when the share of right tags in them has not
        risen for `n_iter_no_change` passes, and return the best model, not the last.
    validation_fraction : float, default=0.1
        Share of the sequences that `early_stopping` keeps away if `fit` gets no `eval_set`.
    n_iter_no_change : int, default=3
        Patience of early stopping, in passes.
    average : bool, default=True
        Whether the model is a mean over passes, in which pass t counts as t (t + 1) (t + 2): fewer
        of the last sequences that were visited show in it. It is mostly the better one before the
        optimum is reached, above all for large `C`. Where the objective is computed and there are
        no held-out sequences, the mean or the last weights are kept, whichever have the lower one.
    method : {"block", "away"}, default="block"
        What a visit does to the shares of the active tags of a position, or of the active pairs of
        neighbours: "block" is algorithm 4 of [1]_, the best shares at once; "away" is
        algorithm 2 on each of them, a Frank-Wolfe step towards the best or away from the worst one.
        Both end at the same optimum; "away" takes more passes.
    rho : float or None, default=None
        Penalty on disagreement of positions and pairs, and step of the messages; it does not
        change the optimum, but the way there. Larger values make them agree sooner and the weights
        follow the data later. None is 0.3 C times the mean of :math:`|x_t|^2`. In the paper:
        :math:`\rho = \eta`.
    label_parts : int, default=1
        Parts into which the tags are cut; a visit to a position searches one of them, drawn at
        random, beside the active tags, (21) of [1]_. More parts make passes cheaper and more of
        them necessary: of use with thousands of tags whose features have weights for most of them.
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
    trace_ : Trace
        One row per pass. Columns seconds, primal (the objective, NaN where not computed),
        dual (of the current point, which need not be feasible), bound (NaN where not computed),
        certificate, infeasibility (root mean square of the disagreement of positions and pairs),
        n_labels and n_states (tags and pairs of tags with a share, over all positions), work, rho,
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

    _rules: ClassVar[dict[str, Rule]] = LEARNING_RULES | {
        "transitions": Boolean(),
        "end_features": Either(OneOf("auto"), Boolean()),
    }

    _weights: sp.csr_matrix  # a row for each feature, then for the bias, the first and the last
    transitions_: np.ndarray
    feature_names_: np.ndarray | None
    _has_ends: bool

    def __init__(
        self,
        C: float = 1.0,
        *,
        transitions: bool = True,
        fit_intercept: bool = True,
        end_features: Any = "auto",
        tol: float = 0.01,
        max_iter: int = 30,
        evaluate_every: int = 5,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 3,
        average: bool = True,
        method: str = "block",
        rho: float | None = None,
        label_parts: int = 1,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        callback: Callback | None = None,
    ):
        self.C = C
        self.transitions = transitions
        self.fit_intercept = fit_intercept
        self.end_features = end_features
        self.tol = tol
        self.max_iter = max_iter
        self.evaluate_every = evaluate_every
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.average = average
        self.method = method
        self.rho = rho
        self.label_parts = label_parts
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback

    @all_or_nothing
    def fit(
        self,
        X: Any,
        y: Any,
        *,
        lengths: Any = None,
        sample_weight: Any = None,
        eval_set: Any = None,
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

        Returns
        -------
        ChainSVM
            Itself, fitted.
        """
        check_params(self)
        name = type(self).__name__
        flat = flatten(X, lengths, name)
        tags = flatten_tags(y, flat, name)
        rows, vocabulary = read_rows(self, flat, None, reset=True)
        self.classes_, codes = encode_tags(tags, name)
        self._vocabulary = vocabulary
        self.feature_names_ = None if vocabulary is None else _as_names(vocabulary)
        self._has_ends = flat.is_named if self.end_features == "auto" else bool(self.end_features)
        chains = self._with_extras(Chains(rows, flat.lengths))
        seed = self._seed()
        weight = check_sample_weight(sample_weight, len(flat.lengths), estimator_name=name)
        train, truth, held_out, weight = self._divide(chains, codes, weight, eval_set, seed)
        problem = self._problem(train, truth, weight)
        of_truth = problem.features_of_truth()

        def primal(weights: Weights, monitor: Any) -> float:
            _, scores = self._decode(train, weights, monitor, truth)
            total = scores.sum() if weight is None else scores @ weight
            loss = total - weights.dot(of_truth)
            return 0.5 * weights.squared_norm() + self.C * float(loss)

        learnt = self._learn(problem, seed, primal, self._judge(held_out))
        self._weights, self.transitions_ = learnt.weights.W, self._table(learnt.weights)
        return self

    def _divide(
        self,
        chains: Chains,
        codes: np.ndarray,
        weight: np.ndarray | None,
        eval_set: Any,
        seed: int,
    ) -> tuple[Chains, np.ndarray, tuple[Chains, np.ndarray] | None, np.ndarray | None]:
        """Training sequences, their tags, held-out sequences with theirs, and weights."""
        if eval_set is not None:
            return chains, codes, self._read_eval_set(eval_set), weight
        if not self.early_stopping:
            return chains, codes, None, weight
        if len(chains.lengths) < 2:
            raise ValueError(
                f"{type(self).__name__}: X must have at least 2 sequences for early_stopping, "
                f"got {len(chains.lengths)}"
            )
        rng = np.random.default_rng(seed)
        some, others = split_rows(len(chains.lengths), self.validation_fraction, rng)
        held_out = chains.take(others), codes[rows_of(chains.lengths, others)]
        weight = None if weight is None else weight[some]
        return chains.take(some), codes[rows_of(chains.lengths, some)], held_out, weight

    def _read_eval_set(self, eval_set: Any) -> tuple[Chains, np.ndarray]:
        name = type(self).__name__
        if not isinstance(eval_set, (tuple, list)) or len(eval_set) not in (2, 3):
            raise ValueError(
                f"{name}: eval_set must be (X, y) or (X, y, lengths), got {show(eval_set)}"
            )
        X, y, lengths = (*eval_set, None)[:3]
        flat = flatten(X, lengths, f"{name}.eval_set")
        tags = flatten_tags(y, flat, f"{name}.eval_set")
        return self._read(flat), self._codes_of(tags, "eval_set[1]")

    def _judge(self, held_out: tuple[Chains, np.ndarray] | None) -> Any:
        if held_out is None:
            return None
        chains, truth = held_out

        def accuracy(weights: Weights, monitor: Any) -> float:
            found, _ = self._decode(chains, weights, monitor)
            return float(np.mean(found == truth)) if len(truth) else 0.0

        return accuracy

    def _problem(self, chains: Chains, truth: np.ndarray, weight: np.ndarray | None) -> Problem:
        filled = chains.lengths > 0
        lengths = chains.lengths[filled]
        node_begin = np.concatenate([[0], np.cumsum(lengths)])
        n_pairs = lengths - 1 if self.transitions else np.zeros_like(lengths)
        firsts = np.arange(chains.n_positions, dtype=np.int32)
        firsts = np.delete(firsts, node_begin[1:] - 1) if self.transitions else firsts[:0]
        return Problem(
            X=chains.X,
            truth=np.ascontiguousarray(truth, dtype=np.int32),
            n_labels=len(self.classes_),
            node_begin=node_begin.astype(np.int64),
            factor_begin=np.concatenate([[0], np.cumsum(n_pairs)]).astype(np.int64),
            scope=np.column_stack([firsts, firsts + 1]).astype(np.int32).reshape(-1),
            table=np.zeros(len(firsts), dtype=np.int32),
            arity=(2,) if self.transitions else (),
            scale=None,
            weight=None if weight is None else np.ascontiguousarray(weight[filled]),
        )

    def _table(self, weights: Weights) -> np.ndarray:
        if self.transitions:
            return weights.tables[0]
        return np.zeros((len(self.classes_), len(self.classes_)))

    def predict(self, X: Any, *, lengths: Any = None) -> Any:
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

    def predict_one(self, sequence: Any) -> list[Any]:
        """The tags of one sequence: a matrix, or a list of positions."""
        return self.predict([sequence])[0]

    def predict_with_scores(self, X: Any, *, lengths: Any = None) -> tuple[Any, np.ndarray]:
        """Tags as in `predict`, and the score of each sequence with them."""
        check_is_fitted(self)
        flat = flatten(X, lengths, type(self).__name__)
        weights = Weights(self._weights, [self.transitions_])
        chains = self._read(flat)
        codes, scores = attend(
            lambda monitor: self._decode(chains, weights, monitor), self._n_operations(chains)
        )
        tags = self.classes_[codes]
        return (tags if flat.is_one else _cut(tags.tolist(), flat.lengths)), scores

    def decision_function(self, X: Any, *, lengths: Any = None) -> Any:
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

    def score(self, X: Any, y: Any, *, lengths: Any = None) -> float:
        """Share of positions with the right tag; a tag that `fit` did not see is never right."""
        check_is_fitted(self)
        name = type(self).__name__
        flat = flatten(X, lengths, name)
        truth = self._codes_of(flatten_tags(y, flat, name), "y")
        if not len(truth):
            raise ValueError(f"{name}: X must have at least one position, got none")
        chains, weights = self._read(flat), Weights(self._weights, [self.transitions_])
        judge = self._judge((chains, truth))
        return attend(lambda monitor: judge(weights, monitor), self._n_operations(chains))

    def _n_operations(self, chains: Chains) -> float:
        return float(chains.n_positions) * len(self.classes_) ** 2

    @property
    def coef_(self) -> Any:
        """Weights of features, a row for each tag."""
        return self._weights[: self.n_features_in_].T

    @property
    def intercept_(self) -> np.ndarray:
        """Bias of each tag."""
        return self._extra(0) if self.fit_intercept else np.zeros(len(self.classes_))

    @property
    def start_(self) -> np.ndarray:
        """Score of each tag for being the first."""
        return self._extra(-2) if self._has_ends else np.zeros(len(self.classes_))

    @property
    def end_(self) -> np.ndarray:
        """Score of each tag for being the last."""
        return self._extra(-1) if self._has_ends else np.zeros(len(self.classes_))

    def _extra(self, which: int) -> np.ndarray:
        return self._weights[self.n_features_in_ :][[which]].toarray()[0]

    def _read(self, flat: FlatInput) -> Chains:
        """New sequences, with the columns of the fit."""
        rows, _ = read_rows(self, flat, self._vocabulary, reset=False)
        return self._with_extras(Chains(rows, flat.lengths))

    def _with_extras(self, chains: Chains) -> Chains:
        """Columns for the bias, the first and the last position behind those of the features."""
        extras = []
        if self.fit_intercept:
            extras.append(np.ones(chains.n_positions))
        if self._has_ends:
            ends = np.cumsum(chains.lengths)
            filled = chains.lengths > 0
            for places in ((ends - chains.lengths)[filled], ends[filled] - 1):
                extras.append(np.zeros(chains.n_positions))
                extras[-1][places] = 1.0
        if not extras:
            return chains
        more = sp.csr_matrix(np.column_stack(extras).astype(chains.X.dtype))
        return Chains(sp.hstack([chains.X, more], format="csr"), chains.lengths)

    def _decode(
        self, chains: Chains, weights: Weights, monitor: Any, truth: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Best labels of all positions and score of each sequence; with `truth`, plus mistakes."""
        X, W, scores = chains.X, weights.W, np.zeros(len(chains.lengths))
        if not chains.n_positions:
            return np.zeros(0, dtype=np.int32), scores
        filled = chains.lengths > 0
        labels, scores[filled] = _core.viterbi(
            (
                X.indptr.astype(np.int32, copy=False),
                X.indices.astype(np.int32, copy=False),
                self._as_dtype(X.data, W.dtype),
            ),
            (
                W.indptr.astype(np.int64, copy=False),
                W.indices.astype(np.int32, copy=False),
                W.data,
            ),
            np.ascontiguousarray(self._table(weights)),
            chains.lengths[filled],
            truth,
            as_n_threads(self.n_jobs),
            monitor,
        )
        return labels, scores

    def _as_dtype(self, values: np.ndarray, dtype: np.dtype) -> np.ndarray:
        if values.dtype == dtype:
            return values
        with np.errstate(over="ignore"):
            cast = values.astype(dtype)
        if not np.isfinite(cast).all():
            raise ValueError(
                f"{type(self).__name__}: X must be finite as {dtype}, the type in fit, got "
                f"{np.abs(values).max():g}"
            )
        return cast

    def _to_bundle(self) -> dict[str, Any]:
        state = {"weights": self._weights, "transitions_": self.transitions_}
        if self.feature_names_ is not None:
            state["feature_names_"] = self.feature_names_
        return super()._to_bundle() | state | {"has_ends": self._has_ends}

    def _fields(self) -> Any:
        return super()._fields() | {
            "transitions_": Floats("classes", "classes", finite=True, bits=64),
            "feature_names_": OrAbsent(Strings("features", distinct=True)),
            "has_ends": Boolean(),
        }

    def _restore(self, state: dict[str, Any]) -> None:
        self._refuse_other_rows(state, self.fit_intercept + 2 * state["has_ends"])
        self._weights, self._has_ends = state.pop("weights"), state.pop("has_ends")
        names = self.feature_names_ = state.pop("feature_names_", None)
        self._vocabulary = None if names is None else {n: j for j, n in enumerate(names.tolist())}
        super()._restore(state)


def _as_names(vocabulary: dict[str, int]) -> np.ndarray:
    return np.fromiter(vocabulary, dtype=object, count=len(vocabulary))


def _cut(flat: list[Any], lengths: np.ndarray) -> list[list[Any]]:
    ends = np.cumsum(lengths).tolist()
    return [flat[end - n : end] for end, n in zip(ends, lengths.tolist(), strict=True)]
