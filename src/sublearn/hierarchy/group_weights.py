r"""Stage two of HML: the weights phi of the groups, learned on scores of held-out rows.

.. math::
    \phi^* = \operatorname{argmax}_\phi \mathrm{metric}\bigl(Y, \mathrm{support}\, P(U, \phi)\bigr)

(3.3.5) of Tang, "Big Data Optimization in Machine Learning", 2016, with the metric itself in place
of a loss. It has no derivative. One weight for all labels is searched first, then one for each
level, then one for each label; a model-based derivative-free method goes on from there. Labels in
different components of the taxonomy do not touch each other's projections, and rows whose scores
of a group are below its weight do not feel the weight: a step for one label projects the columns of
one component on the rows that feel it.
"""

from __future__ import annotations

import enum
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
import scipy
from scipy.optimize import minimize
from scipy.sparse.csgraph import connected_components

from sublearn.errors import ParameterError
from sublearn.execution import map_blocks
from sublearn.fitting.progress import Progress
from sublearn.hierarchy.projection import project_hierarchy, project_rows
from sublearn.hierarchy.projection import project_hierarchy_gradient as projection_gradient
from sublearn.hierarchy.set_metrics import METRICS, HitCounts, RowGroups, Truth, count_sets
from sublearn.hierarchy.taxonomy import Taxonomy
from sublearn.hierarchy.trust_region import maximise
from sublearn.interruption import check
from sublearn.validation import (
    Boolean,
    Either,
    NonNegative,
    OneOf,
    OneOfOrNone,
    Rule,
    Settings,
)

__all__ = [
    "GroupWeights",
    "HeldOutSets",
    "WeightSearch",
    "is_sure_gain",
    "learn_group_weights",
    "n_visits",
    "row_sizes",
]

_COMMON = np.geomspace(0.02, 0.9, 30)  # weights for all labels alike, in units of a score of 1
_FACTORS = (0.5, 0.7, 0.84, 0.93, 1.08, 1.19, 1.4, 2.0)
_FIRST, _OTHERS = (0.7, 1.4), (0.5, 0.84, 0.93, 1.08, 1.19, 2.0)  # of a single label
_LEAST_GAIN = 1e-12
_SURE = 2.0  # standard errors that the gain of a single label must have
_PROJECTION_TOL = 1e-6  # where labels have several parents
_LEARNING_RATE = 0.05  # of subgradient steps, in units of a weight
_MOST_NOTES = 50  # of one sweep over labels: each keeps a copy of all weights
_MOST_VARIABLES = 40  # of the derivative-free search: its models take cubic time in them
_FIRST_RADIUS = 0.2  # of the trust region, as a share of the weights it begins with
_N_SWEEPS = 2  # over levels, and over labels


class _Weights(Rule):
    """A non-negative number, or several; how many is checked against the taxonomy."""

    def accepts(self, value: object) -> bool:
        """Whether `value` obeys the rule."""
        try:
            numbers = np.asarray(value)
        except ValueError:  # rows of several lengths
            return False
        is_numeric = numbers.dtype.kind in "iuf" and numbers.ndim < 2
        return is_numeric and bool(np.isfinite(numbers).all() and (numbers >= 0).all())

    def __str__(self) -> str:
        return "a non-negative number or an array of one for each label"


@dataclass(frozen=True)
class GroupWeights(Settings):
    """How :class:`HierarchicalMultilabelClassifier` learns the weights of groups, its stage two.

    Parameters
    ----------
    solver : {"sweep", "trust_region", "derivative_free", "subgradient"} or None, default="sweep"
        All begin with one weight for all labels. "trust_region" is what Tang (2016) describes: a
        derivative-free trust-region method with linear models that searches the weights of all L
        labels at once, from L + 1 evaluations on, and takes whatever the metric prefers. The others
        go on with one factor for each level. "sweep" then tries
        each label's weight in turn and keeps what gains more than two standard errors; again where
        something moved. "derivative_free" does so too, and goes on with COBYQA, a model-based
        trust-region method without derivatives, over the factors of levels and of the labels that
        the sweep changed, and keeps what gains as surely; it needs SciPy 1.14. "subgradient" makes
        steps along the gradient of the squared loss through the projection. None learns nothing:
        `init` stays.
    init : float or array-like of shape (n_labels,), default=0.5
        Weights to begin with.
    unit : {"auto", "one", "row"}, default="auto"
        Of the weights. "row" is the norm of all scores of a sample, so that a weight is a share
        of it, and samples that every label scores low keep their best ones; "one" leaves weights as
        they are, as in Tang (2016). "auto" takes "row" if, with one weight for all labels, it is
        ahead on held-out rows by more than two standard errors; "one" if nothing is learned.
    max_iter : int, default=100
        Evaluations of "trust_region" and "derivative_free" beside their first ones, or steps of
        "subgradient".
    leaves : {"auto", True, False}, default="auto"
        Whether the score of an inner label takes in what its leaves say; "auto" does so if that is
        ahead by more than two standard errors, with one weight for all labels.

    Examples
    --------
    >>> GroupWeights("sweep", init=[0.5, 0.2])
    GroupWeights(solver='sweep', init=(0.5, 0.2), unit='auto', max_iter=100, leaves='auto')
    """

    solver: str | None = "sweep"
    init: float | Sequence[float] | np.ndarray = 0.5
    unit: str = "auto"
    max_iter: int = 100
    leaves: str | bool = "auto"

    _rules: ClassVar[Mapping[str, Rule]] = {
        "solver": OneOfOrNone("derivative_free", "sweep", "trust_region", "subgradient"),
        "init": _Weights(),
        "unit": OneOf("auto", "one", "row"),
        "max_iter": NonNegative(int),
        "leaves": Either(OneOf("auto"), Boolean()),
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        if np.ndim(self.init):  # what can be compared and stored
            object.__setattr__(self, "init", tuple(np.asarray(self.init, float).tolist()))


class Stage(enum.IntEnum):
    """What a step of the search was about."""

    COMMON = 0
    LEVEL = 1
    LABEL = 2
    DERIVATIVE_FREE = 3
    SUBGRADIENT = 4
    TRUST_REGION = 5


@dataclass(frozen=True, eq=False)
class _Component:
    """Labels that reach each other over parents and children, as a taxonomy of their own."""

    columns: np.ndarray
    taxonomy: Taxonomy
    scores: np.ndarray
    truth: np.ndarray
    rows: np.ndarray

    @cached_property
    def group_norms(self) -> np.ndarray:
        """Norms of the scores of each label with its descendants, of shape (n_rows, n_labels)."""
        squares = self.scores.astype(np.float64) ** 2
        return np.sqrt(squares @ self.taxonomy.ancestor_matrix.astype(np.float64))

    def where_felt(self, t: int, least: float) -> _Component:
        """The rows where it matters how far above `least` the weight of label t is.

        A group is zero, and so are all its scores, if its norm is at most its weight. Where labels
        have several parents, sets at the border depend on where the iteration ends: all rows count.
        """
        if not self.taxonomy.is_forest:
            return self
        at = np.flatnonzero(self.group_norms[:, t] > least)
        return replace(self, scores=self.scores[at], truth=self.truth[at], rows=self.rows[at])


@dataclass(eq=False)
class HeldOutSets:
    """Scores and true labels of held-out rows, and what weights make of them.

    Parameters
    ----------
    scores : ndarray of shape (n_rows, n_labels)
        Of stage one, for rows it did not see.
    truth : ndarray of bool, shape (n_rows, n_labels)
        True labels, ancestors included.
    taxonomy : Taxonomy
        The labels.
    metric : str
        A name of :data:`sublearn.hierarchy.set_metrics.METRICS`.
    unit : str
        In which the scores are given, for whoever asks.
    takes_in_leaves : bool
        Whether scores of inner labels take in those of their leaves, for whoever asks.
    """

    scores: np.ndarray
    truth: np.ndarray
    taxonomy: Taxonomy
    metric: str
    unit: str = "one"
    takes_in_leaves: bool = False

    def __post_init__(self) -> None:
        self.groups = RowGroups.make(len(self.scores))
        self.known = Truth.of(self.truth, self.groups)
        every, rows = np.arange(self.taxonomy.n_labels), np.arange(len(self.truth))
        self.whole = _Component(every, self.taxonomy, self.scores, self.truth, rows)

    @cached_property
    def components(self) -> list[_Component]:
        """The parts of the taxonomy that do not touch each other."""
        n, owner = connected_components(self.taxonomy.parent_matrix, directed=False)
        return [self._component(np.flatnonzero(owner == c)) for c in range(n)]

    def _component(self, columns: np.ndarray) -> _Component:
        place = np.full(self.taxonomy.n_labels, -1)
        place[columns] = np.arange(len(columns))
        parents = [place[self.taxonomy._parents(t)].tolist() for t in columns]
        return _Component(
            columns,
            Taxonomy(parents),
            np.ascontiguousarray(self.scores[:, columns]),
            np.ascontiguousarray(self.truth[:, columns]),
            np.arange(len(self.truth)),
        )

    def counts(self, phi: np.ndarray) -> HitCounts:
        """Counts of the sets that weights make."""
        return self.part_counts(self.whole, phi)

    def part_counts(self, part: _Component, phi: np.ndarray) -> HitCounts:
        """Counts of one component, on the rows it has."""
        on, scores = np.empty(part.scores.shape, dtype=bool), part.scores
        no_values = np.empty((0, 0), scores.dtype)
        project_rows(part.taxonomy, scores, phi, no_values, on, _PROJECTION_TOL, 1)
        return count_sets(on, part.truth, self.groups.take(part.rows))

    def value(self, counts: HitCounts) -> np.ndarray:
        """The metric on all rows, then without each group of rows."""
        return METRICS[self.metric](counts, self.known)


@dataclass(eq=False)
class WeightSearch:
    """Weights, the counts that they give, and how the metric rose."""

    data: HeldOutSets
    phi: np.ndarray
    progress: Progress
    n_jobs: int = 1
    n_evaluations: int = 0
    rows: list[tuple[float, int, int, float]] = field(default_factory=list)
    path: list[np.ndarray] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.counts = self.data.counts(self.phi)
        self.value = self.data.value(self.counts)
        self.began = time.perf_counter()

    @property
    def is_stopped(self) -> bool:
        """True once a stop was requested."""
        return self.progress.stop_requested

    def note(self, stage: Stage) -> None:
        """A row of the trace: seconds, stage, evaluations so far, the metric; and its weights."""
        seconds = time.perf_counter() - self.began
        self.rows.append((seconds, int(stage), self.n_evaluations, float(self.value[0])))
        self.path.append(self.phi)

    def try_common_weights(self) -> None:
        """One weight for all labels: every third of the list, then those beside the best."""
        n_labels, n_common = self.data.taxonomy.n_labels, len(_COMMON)
        self.try_weights(np.full(n_labels, c) for c in _COMMON[::3])
        best = int(np.argmin(np.abs(_COMMON - self.phi[0])))
        beside = [k for k in range(best - 2, best + 3) if k != best and 0 <= k < n_common]
        self.try_weights(np.full(n_labels, _COMMON[k]) for k in beside)
        self.note(Stage.COMMON)

    def try_weights(self, candidates: Iterable[np.ndarray], must_be_sure: bool = False) -> None:
        """The best of several weight vectors for all labels, if it is better, or so for sure."""
        tried = list(candidates)
        found = map_blocks(self.data.counts, tried, self.n_jobs, stay_here=True)
        self.n_evaluations += len(tried)
        for phi, counts in zip(tried, found, strict=True):
            value = self.data.value(counts)
            is_sure = not must_be_sure or is_sure_gain(value - self.value)
            if is_sure and value[0] > self.value[0] + _LEAST_GAIN:
                self.phi, self.counts, self.value = phi, counts, value

    def take(self, phi: np.ndarray, value: float) -> None:
        """Weights whose metric is known, if it is larger."""
        if value > self.value[0] + _LEAST_GAIN:
            self.phi, self.counts = phi.copy(), self.data.counts(phi)
            self.value = self.data.value(self.counts)

    def try_in_component(
        self, part: _Component, first: list[np.ndarray], others: list[np.ndarray]
    ) -> bool:
        """As `try_weights`, for the weights of one component, on the rows that feel them.

        A step must gain more than by chance: a weight for each label is learned from few rows. The
        others are tried if one of the first ones gains at all. Returns whether weights changed.
        """
        old = self.data.part_counts(part, self.phi[part.columns])
        start, best = self.value, None
        for tried in (first, others):
            gains = False
            for phi in tried:
                new = self.data.part_counts(part, phi)
                counts = self.counts.replace(old, new, part.rows, part.columns)
                value = self.data.value(counts)
                gains |= bool(value[0] > start[0])
                if is_sure_gain(value - start) and (best is None or value[0] > best[0][0]):
                    best = (value, counts, phi)
            self.n_evaluations += len(tried)
            if not gains:
                break
        if best is None:
            return False
        self.value, self.counts, phi = best
        self.phi = self.phi.copy()
        self.phi[part.columns] = phi
        return True


def row_sizes(scores: np.ndarray, unit: str) -> np.ndarray:
    """What weights are in units of, as a column: 1, or the norm of each row of scores."""
    if unit == "one":
        return np.ones((len(scores), 1), dtype=scores.dtype)
    norms = np.linalg.norm(scores, axis=1, keepdims=True)
    return np.maximum(norms, np.finfo(scores.dtype).tiny)


def is_sure_gain(gains: np.ndarray) -> bool:
    """Whether a gain is above two standard errors, estimated by leaving out groups of rows.

    The errors are those of the jackknife: (G - 1) / G times the squares around the mean of the
    gains without each of G groups.
    """
    if gains[0] <= _LEAST_GAIN or len(gains) < 3:
        return bool(gains[0] > _LEAST_GAIN)
    without, n = gains[1:], len(gains) - 1
    error = np.sqrt((n - 1) / n * ((without - without.mean()) ** 2).sum())
    return bool(gains[0] > _SURE * error)


def learn_group_weights(search: WeightSearch, settings: GroupWeights) -> None:
    """After one weight for all labels: one for each level, then for labels as the solver does."""
    if settings.solver == "trust_region":
        _trust_region(search, int(settings.max_iter))
        return
    levels = search.data.taxonomy.levels
    for _ in range(_N_SWEEPS):
        for level in range(int(levels.max()) + 1):
            at = levels == level
            search.try_weights(np.where(at, f * search.phi, search.phi) for f in _FACTORS)
            search.note(Stage.LEVEL)
            if search.is_stopped:
                return
    if settings.solver == "subgradient":
        _descend(search, int(settings.max_iter))
        return
    parts = search.data.components
    for _ in range(_N_SWEEPS):
        parts = _sweep_labels(search, parts)
        if search.is_stopped:
            return
    if settings.solver == "derivative_free":
        _derivative_free(search, int(settings.max_iter))


def n_visits(settings: GroupWeights) -> int:
    """How often each label is visited, for the progress bar."""
    return 0 if settings.solver in ("subgradient", "trust_region") else _N_SWEEPS


def _sweep_labels(search: WeightSearch, parts: list[_Component]) -> list[_Component]:
    """Each label's weight in turn, those of leaves first; returns the parts that moved."""
    n_between = max(1, len(parts) // _MOST_NOTES)
    moved: list[_Component] = []
    for k, part in enumerate(parts):
        has_moved = False
        for t in np.argsort(-part.taxonomy.levels, kind="stable"):
            if search.is_stopped:
                return moved
            phi = search.phi[part.columns]
            felt = part.where_felt(t, min(1.0, *_FACTORS) * phi[t])
            if len(felt.rows):
                at = np.arange(len(phi)) == t
                tried = [[np.where(at, f * phi, phi) for f in some] for some in (_FIRST, _OTHERS)]
                has_moved |= search.try_in_component(felt, *tried)
            search.progress.finish_solve()
        moved += [part] if has_moved else []
        if k % n_between == 0 or k == len(parts) - 1:
            search.note(Stage.LABEL)
    search.progress.add(search.data.taxonomy.n_labels - sum(len(part.columns) for part in parts))
    return moved


# --- derivative-free -------------------------------------------------------------------------


def _derivative_free(search: WeightSearch, max_iter: int) -> None:
    """COBYQA over the logarithms of one factor for each level and for each label that left it.

    Weights that the rows could not tell from those of their level move with it: as variables of
    their own they would only learn the noise of the held-out rows. A point of the search is taken
    only if its gain is above two standard errors: on rcv1_dev points of smaller gains cost up to
    half a point of test F1.
    """
    _refuse_scipy_without_cobyqa()
    start, factors = search.phi, _factors(search)
    n, radius = factors.shape[1], 0.2

    def weights(x: np.ndarray) -> np.ndarray:
        return start * np.exp(factors @ x)

    def evaluate(x: np.ndarray) -> float:
        return -float(search.data.value(search.data.counts(weights(x)))[0])

    first = [np.zeros(n), *(s * radius * e for s in (1.0, -1.0) for e in np.eye(n))]
    # The initial interpolation set, at once.
    known = map_blocks(evaluate, first, search.n_jobs, stay_here=True)
    cache = {x.tobytes(): value for x, value in zip(first, known, strict=True)}

    def cached(x: np.ndarray) -> float:
        check()
        key = (x + 0.0).tobytes()  # -0.0 is 0.0
        return cache[key] if key in cache else evaluate(x)

    def after_step(x: np.ndarray) -> None:
        search.try_weights([weights(x)], must_be_sure=True)
        search.note(Stage.DERIVATIVE_FREE)
        if search.is_stopped:
            raise StopIteration

    options = {"initial_tr_radius": radius, "maxfev": len(first) + max_iter}
    found = minimize(cached, np.zeros(n), method="COBYQA", options=options, callback=after_step)
    search.n_evaluations += int(found.nfev)
    search.try_weights([weights(found.x)], must_be_sure=True)
    search.note(Stage.DERIVATIVE_FREE)


def _factors(search: WeightSearch) -> np.ndarray:
    """Which weights each variable moves: those of a level, or that of one label."""
    levels = search.data.taxonomy.levels
    common = np.array([_most_common(search.phi[levels == at]) for at in range(levels.max() + 1)])
    use = search.counts.label_sizes.sum(axis=0) + search.data.known.label_sizes.sum(axis=0)
    apart = np.flatnonzero(search.phi != common[levels])
    apart = apart[np.argsort(-use[apart], kind="stable")][: _MOST_VARIABLES - len(common)]
    by_level = levels[:, None] == np.arange(len(common))
    by_label = np.arange(len(levels))[:, None] == apart
    by_level[apart] = False
    factors = np.hstack([by_level, by_label])
    return factors[:, factors.any(axis=0)].astype(np.float64)


def _most_common(values: np.ndarray) -> float:
    found, counts = np.unique(values, return_counts=True)
    return float(found[counts.argmax()])


def _refuse_scipy_without_cobyqa() -> None:
    if tuple(int(part) for part in scipy.__version__.split(".")[:2]) < (1, 14):
        raise ParameterError(
            "GroupWeights.solver must not be 'derivative_free' before SciPy 1.14, which has "
            f"COBYQA, got SciPy {scipy.__version__}"
        )


def _trust_region(search: WeightSearch, max_iter: int) -> None:
    """Section 3.4.1 of Tang: linear models of the metric in the weights of all labels."""

    def evaluate(points: list[np.ndarray]) -> list[float]:
        found = map_blocks(search.data.counts, points, search.n_jobs, stay_here=True)
        search.n_evaluations += len(points)
        return [float(search.data.value(counts)[0]) for counts in found]

    def after_step(phi: np.ndarray, value: float) -> bool:
        check()
        search.take(phi, value)
        search.note(Stage.TRUST_REGION)
        return search.is_stopped

    radius = _FIRST_RADIUS * float(search.phi.mean())
    search.take(*maximise(evaluate, search.phi, radius, max_iter, after_step))
    search.note(Stage.TRUST_REGION)


# --- subgradient steps -----------------------------------------------------------------------


def _descend(search: WeightSearch, max_iter: int) -> None:
    """Steps along the gradient of the squared loss of P(U, phi), through the projection.

    The loss is that of (3.3.5). Steps are those of RMSprop, weights stay at 0 or above, and what is
    kept are the weights of the best metric on the way.
    """
    data = search.data
    truth, phi = data.truth.astype(data.scores.dtype), search.phi.copy()
    mean_square = np.zeros_like(phi)
    for k in range(max_iter):
        slope = (project_hierarchy(data.scores, data.taxonomy, phi) - truth) / len(truth)
        _, gradient = projection_gradient(data.scores, data.taxonomy, phi, slope)
        mean_square = 0.9 * mean_square + 0.1 * gradient**2
        rate = _LEARNING_RATE / np.sqrt(1 + k)
        phi = np.maximum(phi - rate * gradient / (np.sqrt(mean_square) + 1e-12), 0.0)
        search.try_weights([phi])
        search.note(Stage.SUBGRADIENT)
        if search.is_stopped:
            return
