"""A second stage for texts: what taggers, near texts and titles suggest is ranked again."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import scipy.sparse as sp
from scipy.special import expit
from sklearn.base import BaseEstimator, clone
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from sublearn.execution import all_or_nothing
from sublearn.extreme.explanation import Explanation
from sublearn.extreme.rerank_features import Pieces
from sublearn.extreme.rerank_sources import Candidates, Neighbours, Titles
from sublearn.extreme.rerank_stage import FirstStage, shares_together, used_labels, with_named
from sublearn.extreme.text_tagger import TextTagger
from sublearn.extreme.text_vectors import check_texts
from sublearn.extreme.thresholds import Entries, best_threshold
from sublearn.fitting.held_out import pick_labels, split_rows
from sublearn.fitting.labels import LabelClassifier, as_k
from sublearn.fitting.progress import Progress
from sublearn.interruption import check
from sublearn.io.fields import (
    FEATURES,
    Fields,
    Floats,
    Integers,
    Number,
    Parts,
    Sparse,
    Strings,
    take_parts,
)
from sublearn.io.models import nested_state, restore_nested, storable_params
from sublearn.metrics.names import find_positions
from sublearn.trace import Callback
from sublearn.typing import LabelsLike, Seed, State
from sublearn.validation import (
    RUN_RULES,
    Boolean,
    EncodedLabels,
    Interval,
    NonNegative,
    Positive,
    Rule,
    as_n_threads,
    as_seed,
    check_params,
    decode_predictions,
    encode_labels,
)

if TYPE_CHECKING:
    from sublearn.optim.linear_solve import LinearSolution
    from sublearn.validation.labels import DecodedLabels

__all__ = ["LabelReranker"]

_BLOCK = 500  # texts whose candidates are looked at together
_MOST_HELD_OUT = 4_000  # texts; the second stage has a hundred weights
_TAGGER, _NEAR, _TITLES, _PIECES = "tagger", "neighbours.", "titles.", "pieces."


class _Taggers(Rule):
    """`taggers`."""

    def accepts(self, value: object) -> bool:
        """Whether `value` obeys the rule."""
        if isinstance(value, (list, tuple)):
            return len(value) > 0 and all(isinstance(one, TextTagger) for one in value)
        return value is None or isinstance(value, TextTagger)

    def __str__(self) -> str:
        return "a TextTagger, a list of them, or None"


class LabelReranker(LabelClassifier, BaseEstimator):
    r"""Ranks again what several sources suggest for a text: a second stage of text tagging.

    Taggers, the nearest training texts, and the titles of labels list `candidates` labels each.
    Of every pair of a text and a listed label there are few numbers :math:`x`: the scores of the
    sources, the best one's lead, the place, how often the label occurs, how much the best labels
    speak for it, how much of its title is in the text. On held-out texts, whose scores are not
    those of texts learnt by heart, the second stage learns their weights:

    .. math:: \min_{w, b} \tfrac12 \|w\|^2
        + C \sum_i \log(1 + e^{-y_i (\langle w, \phi(x_i) \rangle + b)})

    over pairs, :math:`y_i = 1` where the text carries the label and -1 elsewhere. :math:`\phi`
    makes each number a line that bends at five knots, and gives it a weight of its own for labels
    of no training text, of 1 and 2, 3 to 9, 10 to 49, and more. The problem is convex and small:
    `certificate_` is its duality gap over its objective.

    Parameters
    ----------
    taggers : TextTagger, list of TextTagger or None, default=None
        The first stage, cloned; of several, such as one by words and one by characters, the second
        stage learns the mixture. None means ``TextTagger(decision="above_zero")``.
    candidates : int, default=50
        Labels that each source lists for a text.
    n_neighbors : int, default=50
        Training texts that vote for their labels; 0 for none. The model then holds no training
        texts.
    validation_fraction : float, default=0.1
        Share of the texts that the second stage learns from; at most 4,000 of them.
    refit : bool, default=True
        Whether the first stage learns from all texts afterwards. False takes half the time; the
        first stage then has not learnt from the held-out texts.
    C : float, default=0.1
        Weight of the loss of a pair. Less helps where few texts are held out.
    tol : float, default=0.001
        Relative duality gap at which the second stage is done.
    max_iter : int, default=100
        Limit on its iterations.
    n_jobs : int or None, default=None
        Threads of searches; None means 1, -1 all processors. The taggers have their own.
    random_state : int, RandomState instance, Generator or None, default=None
        Which texts are held out.
    verbose : int, default=0
        1 draws a progress bar of the second stage on standard error.
    callback : callable or None, default=None
        Gets a :class:`sublearn.trace.Event` about ten times a second while the second stage
        learns; a true return value stops it.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels, and further ones that `label_names` names: those can be predicted by their titles.
    taggers_ : list of TextTagger
        The fitted first stage.
    weights_ : ndarray
        Of the second stage: for each of `pair_features_` six pieces of its line; then for each band
        of frequency a constant and the features.
    intercept_ : float
        Their intercept. Scores are above zero where a label would be predicted.
    threshold_ : float
        Log odds that are a score of zero, the best for F1 on the held-out texts.
    pair_features_ : ndarray of str
        What is known of a pair.
    label_counts_ : ndarray of int64
        Number of training texts that carry each label.
    label_names_ : ndarray of str
        Titles of labels; only if they were given.
    objective_, certificate_, n_iter_, trace_
        Of the second stage; the objective is divided by C and the number of pairs.

    See Also
    --------
    TextTagger : the first stage.

    Examples
    --------
    >>> from sublearn.extreme import LabelReranker
    >>> texts = ["sailing on the Baltic", "the Baltic coast", "survey statistics", "survey data"]
    >>> labels = [["c1"], ["c1"], ["c2"], ["c2"]]
    >>> names = {"c1": "coasts", "c2": "surveys", "c3": "sailors"}
    >>> model = LabelReranker(validation_fraction=0.5, random_state=0)
    >>> model.fit(texts * 10, labels * 10, label_names=names).classes_.tolist()
    ['c1', 'c2', 'c3']
    >>> model.predict_top_k(["survey of the sea"], k=1)[0].tolist()
    [['c2']]
    """

    _kind: ClassVar[str] = "text_labels"

    _rules: ClassVar[dict[str, Rule]] = {
        "taggers": _Taggers(),
        "candidates": Positive(int),
        "n_neighbors": NonNegative(int),
        "validation_fraction": Interval(float, 0, 1, "neither"),
        "refit": Boolean(),
        "C": Positive(float),
        "tol": Positive(float),
        "max_iter": Positive(int),
        **RUN_RULES,
    }

    _STORED: ClassVar[tuple[str, ...]] = (
        *LabelClassifier._STORED, "weights_", "intercept_", "threshold_", "label_counts_",
        "pair_features_",
    )  # fmt: skip

    def __init__(
        self,
        taggers: TextTagger | Sequence[TextTagger] | None = None,
        *,
        candidates: int = 50,
        n_neighbors: int = 50,
        validation_fraction: float = 0.1,
        refit: bool = True,
        C: float = 0.1,
        tol: float = 1e-3,
        max_iter: int = 100,
        n_jobs: int | None = None,
        random_state: Seed = None,
        verbose: int = 0,
        callback: Callback | None = None,
    ):
        self.taggers = taggers
        self.candidates = candidates
        self.n_neighbors = n_neighbors
        self.validation_fraction = validation_fraction
        self.refit = refit
        self.C = C
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback

    # --- fitting -----------------------------------------------------------------------------

    @all_or_nothing
    def fit(
        self,
        texts: Iterable[str],
        y: LabelsLike | EncodedLabels,
        label_names: Mapping[Any, str] | None = None,
    ) -> LabelReranker:
        """Learn both stages.

        Parameters
        ----------
        texts : sequence of str
            Texts.
        y : array-like, sparse matrix, or list of label lists
            Their labels, in any form that `TextTagger` takes.
        label_names : mapping or None, default=None
            From labels to titles. Labels that no text carries can be predicted by theirs, unless
            `y` is an indicator matrix or has one label for each text. None takes labels that are
            strings for their own titles; an empty mapping leaves titles out.

        Returns
        -------
        LabelReranker
            Itself, fitted.
        """
        check_params(self)
        texts = check_texts(texts)
        if len(texts) < 2:
            raise ValueError(f"LabelReranker.fit.texts must be two or more, got {len(texts)}")
        labels = encode_labels(y, len(texts), estimator_name=type(self).__name__)
        labels, names = with_named(labels, label_names)
        share = min(self.validation_fraction, _MOST_HELD_OUT / len(texts))
        used, held_out = split_rows(len(texts), share, _generator(self.random_state))
        asked = [texts[i] for i in held_out]
        titles = None if names is None else Titles.of(names, asked)
        stage = self._first_stage(texts, labels, used, titles)
        self._learn(stage, asked, labels.to_csr()[held_out])
        if self.refit:
            stage = self._first_stage(texts, labels, np.arange(len(texts)), titles)
        self._keep_labels(labels)
        if names is not None:
            self.label_names_ = np.array(names, dtype=object)
        self._set_stage(stage)
        return self

    def _first_stage(
        self, texts: list[str], labels: EncodedLabels, rows: np.ndarray, titles: Titles | None
    ) -> FirstStage:
        """Everything but the second stage, learnt from some of the texts."""
        own = [texts[i] for i in rows]
        carried = pick_labels(labels, rows)
        taggers = [clone(one).fit(own, used_labels(carried)) for one in self._given()]
        indicator = carried.to_csr()
        near = None
        if self.n_neighbors:
            near = Neighbours.of(taggers[0].transform(own), indicator)
        counts = carried.counts()
        return FirstStage(
            labels.classes, taggers, counts, shares_together(indicator, counts), near, titles
        )

    def _given(self) -> list[TextTagger]:
        if self.taggers is None:
            return [TextTagger(decision="above_zero")]
        return [self.taggers] if isinstance(self.taggers, TextTagger) else list(self.taggers)

    def _learn(self, stage: FirstStage, texts: list[str], truth: sp.csr_matrix) -> None:
        """The second stage, from texts that the first one does not know."""
        found = [
            self._look(stage, texts[i : i + _BLOCK], self.candidates)
            for i in range(0, len(texts), _BLOCK)
        ]
        raw = np.concatenate([one[2] for one in found])
        firsts = range(0, len(texts), _BLOCK)
        rows = np.concatenate(
            [first + one[0].texts for first, one in zip(firsts, found, strict=True)]
        )
        pairs = np.concatenate([one[0].labels for one in found])
        is_true = np.asarray(truth[rows, pairs]).ravel().astype(bool)
        if is_true.all() or not is_true.any():
            raise ValueError(
                f"LabelReranker.fit: the {len(texts)} held-out texts must have right and wrong "
                f"candidates to learn from, got {int(is_true.sum())} right ones of {len(is_true)}; "
                "give more texts or a larger validation_fraction"
            )
        self._pieces = Pieces.of(raw, is_true)
        self.pair_features_ = np.array(found[0][1], dtype=object)
        X = self._pieces.expand(raw)
        solution = self._solve(X, is_true)
        self.weights_, self.intercept_ = solution.x, float(solution.intercept)
        scores = X @ self.weights_ + self.intercept_
        entries = Entries(rows, pairs, scores, truth)
        self.threshold_ = best_threshold(entries, "f1_micro", at_least_one=True)
        self._keep_solution(solution)

    def _solve(self, X: np.ndarray, is_true: np.ndarray) -> LinearSolution:
        # Here, so that who fits another classifier does not load the solvers.
        from sublearn.optim.linear_problem import LinearProblem, Penalty
        from sublearn.optim.linear_solve import SolverSettings, solve
        from sublearn.optim.row_losses import Logistic

        weights = np.full(len(X), 1.0 / len(X))
        problem = LinearProblem(X, np.where(is_true, 1.0, -1.0), weights, Logistic(), True)
        l2 = 1.0 / (float(self.C) * len(X))  # the problem divided by C and the number of pairs
        penalty = Penalty(np.ones(X.shape[1]), l2, is_positive=False)
        settings = SolverSettings(
            "auto", float(self.tol), int(self.max_iter), as_n_threads(self.n_jobs)
        )
        progress = Progress(int(self.max_iter))
        return self._watch(lambda: solve(problem, penalty, 0.0, settings, progress), progress)

    def _set_stage(self, stage: FirstStage) -> None:
        self._stage = stage
        self.taggers_, self.label_counts_ = stage.taggers, stage.counts

    # --- asking ------------------------------------------------------------------------------

    def _look(
        self, stage: FirstStage, texts: list[str], size: int
    ) -> tuple[Candidates, list[str], np.ndarray]:
        check()
        size = min(size, len(stage.classes))
        return stage.look(texts, size, int(self.n_neighbors), as_n_threads(self.n_jobs))

    def _ranked(self, texts: list[str], k: int) -> tuple[np.ndarray, np.ndarray]:
        """Positions of the `k` best labels, and their scores."""
        stage = self._stage
        ids = np.empty((len(texts), k), dtype=np.int64)
        scores = np.empty((len(texts), k))
        for start in range(0, len(texts), _BLOCK):
            block = slice(start, start + _BLOCK)
            candidates, _, raw = self._look(stage, texts[block], self.candidates)
            found = self._pieces.expand(raw) @ self.weights_ + self.intercept_ - self.threshold_
            ids[block], scores[block] = _best(candidates, found, k)
        return ids, scores

    def predict_top_k(self, texts: Iterable[str], k: int = 5) -> tuple[np.ndarray, np.ndarray]:
        """The `k` best labels of each text, best first, and their scores.

        Parameters
        ----------
        texts : sequence of str
            Texts.
        k : int, default=5
            How many; all labels if there are fewer. Where there are fewer candidates, further
            labels follow with the least score of these, in the order of `classes_`.

        Returns
        -------
        labels : ndarray of shape (n_texts, k)
            Labels.
        scores : ndarray of shape (n_texts, k)
            Positive where the label would be predicted.
        """
        check_is_fitted(self)
        ids, scores = self._ranked(check_texts(texts), as_k(k, len(self.classes_)))
        return self.classes_[ids], scores

    def predict_proba_top_k(
        self, texts: Iterable[str], k: int = 5
    ) -> tuple[np.ndarray, np.ndarray]:
        """The `k` best labels of each text and their probabilities, each label on its own."""
        labels, scores = self.predict_top_k(texts, k)
        return labels, expit(scores + self.threshold_)

    def predict(self, texts: Any) -> DecodedLabels:
        """Labels in the form in which `fit` got them.

        Where a text may carry several: those that score above zero, at least the best one; none
        for a text without a known word.
        """
        check_is_fitted(self)
        texts = check_texts(texts)
        several = self._label_kind.is_multilabel
        k = min(self.candidates, len(self.classes_)) if several else 1
        ids, scores = self._ranked(texts, k)
        is_in = scores > 0
        is_in[:, 0] = True
        if several:
            is_in[np.diff(self.taggers_[0].transform(texts).indptr) == 0] = False
        rows, places = np.nonzero(is_in)
        entries = (np.ones(len(rows), dtype=bool), (rows, ids[rows, places]))
        sets = sp.csr_matrix(entries, shape=(len(texts), len(self.classes_)))
        return decode_predictions(self._label_kind, self.classes_, sets)

    def explain(self, text: str, label: Hashable, k: int = 10) -> Explanation:
        """The words behind the first tagger's score of a label; see `TextTagger.explain`."""
        check_is_fitted(self)
        return self.taggers_[0].explain(text, label, k)

    def transform(self, texts: Iterable[str]) -> sp.csr_matrix:
        """The rows that the first tagger's classifier sees."""
        check_is_fitted(self)
        return self.taggers_[0].transform(texts)

    @property
    def classifier_(self) -> LabelClassifier:
        """The classifier of the first tagger."""
        check_is_fitted(self)
        return self.taggers_[0].classifier_

    @property
    def feature_names_(self) -> np.ndarray | None:
        """The words of the first tagger."""
        check_is_fitted(self)
        return self.taggers_[0].feature_names_

    @property
    def fit_size_(self) -> tuple[int, ...]:
        """Texts, features and stored values that the first tagger was fitted to."""
        check_is_fitted(self)
        return self.taggers_[0].fit_size_

    # --- files -------------------------------------------------------------------------------

    def _stored_params(self) -> State:
        return storable_params(self) | {"taggers": None}

    def _to_bundle(self) -> State:
        stage = self._stage
        state = super()._to_bundle() | {"together_": stage.together}
        for i, tagger in enumerate(stage.taggers):
            state |= nested_state(tagger, f"{_TAGGER}{i}.")
        parts = {_NEAR: stage.neighbours, _TITLES: stage.titles, _PIECES: self._pieces}
        for head, part in parts.items():
            own = {} if part is None else part.to_state()
            state |= {f"{head}{name}": value for name, value in own.items()}
        return state

    def _fields(self) -> Fields:
        own = {n: field for n, field in super()._fields().items() if n not in FEATURES}
        heads = (_TAGGER, _NEAR, _TITLES, _PIECES)
        return own | {
            "weights_": Floats("weights", finite=True),
            "pair_features_": Strings("raw"),
            "intercept_": Number(),
            "threshold_": Number(),
            "label_counts_": Integers("classes"),
            "together_": Sparse("classes", "classes", finite=True),
            **{f"{head}*": Parts() for head in heads},
        }

    def _restore(self, state: State) -> None:
        classes, counts = state["classes_"], state.pop("label_counts_")
        near, titles = take_parts(state, _NEAR), take_parts(state, _TITLES)
        taggers: list[TextTagger] = []
        while f"{_TAGGER}{len(taggers)}.class" in state:
            taggers.append(restore_nested(state, f"{_TAGGER}{len(taggers)}."))
        self._refuse_other_taggers(taggers, classes)
        stage = FirstStage(
            classes,
            taggers,
            counts,
            state.pop("together_"),
            Neighbours.from_state(near, len(classes)) if near else None,
            Titles.from_state(titles, len(classes)) if titles else None,
        )
        if stage.neighbours is not None:
            self._refuse_other_words(stage.neighbours, taggers[0])
        own = [clone(one) for one in taggers]
        self.taggers = own[0] if len(own) == 1 else own
        self._set_stage(stage)
        n_names, n_weights = len(state["pair_features_"]), len(state["weights_"])
        self._restore_pieces(take_parts(state, _PIECES), n_names, n_weights)
        super()._restore(state)

    def _restore_pieces(self, state: State, n_names: int, n_weights: int) -> None:
        stage = self._stage
        n_scores = len(stage.taggers) + (stage.neighbours is not None) + 1
        n_features = 3 * (n_scores + (2 if stage.titles is not None else 0)) + 1
        self._pieces = Pieces.from_state(state, n_features)
        if (n_names, n_weights) != (n_features, len(self._pieces.means)):
            raise ValueError(
                f"pair_features_ and weights_ must be {n_features} and {len(self._pieces.means)}, "
                f"got {n_names} and {n_weights}"
            )

    @staticmethod
    def _refuse_other_taggers(taggers: list[TextTagger], classes: np.ndarray) -> None:
        if not taggers or not all(isinstance(one, TextTagger) for one in taggers):
            raise ValueError(
                f"{_TAGGER}0.class must be a TextTagger, got {[type(t).__name__ for t in taggers]}"
            )
        for i, tagger in enumerate(taggers):
            if (find_positions(classes, tagger.classes_, argument="classes_") < 0).any():
                raise ValueError(f"{_TAGGER}{i}.classes_ must be among classes_, got others")

    @staticmethod
    def _refuse_other_words(neighbours: Neighbours, tagger: TextTagger) -> None:
        n_words = tagger.classifier_.n_features_in_
        if neighbours.lists.lists.n_features != n_words:
            raise ValueError(
                f"{_NEAR}lists must have {n_words} words, got {neighbours.lists.lists.n_features}"
            )

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_stage")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags


def _generator(random_state: Seed) -> np.random.Generator:
    """A generator of what `random_state` is."""
    return np.random.default_rng(as_seed(random_state))


def _best(candidates: Candidates, scores: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The `k` best labels of each text; where candidates are fewer, further ones follow."""
    n_texts, n_labels = candidates.n_texts, candidates.n_labels
    places = candidates.ranks(scores)
    is_kept = places < k
    ids = np.full((n_texts, k), -1, dtype=np.int64)
    values = np.full((n_texts, k), np.inf)
    at = candidates.texts[is_kept], places[is_kept]
    ids[at], values[at] = candidates.labels[is_kept], scores[is_kept]
    for text in np.flatnonzero((ids < 0).any(axis=1)):
        own = ids[text][ids[text] >= 0]
        rest = np.setdiff1d(np.arange(n_labels), own)
        ids[text, len(own) :] = rest[: k - len(own)]
        values[text, len(own) :] = values[text, : len(own)].min(initial=0.0)
    return ids, values
