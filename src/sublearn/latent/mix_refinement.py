"""From MixLasso's solutions to components: starts, EM, and how many components there are.

In standard mixtures EM from a good start finds some components exactly and lets others share what
is left. So the sharp ones are kept and the rest of the rows is a smaller problem of the same kind:
search, correct, and peel off what is right.
"""

from __future__ import annotations

import abc
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from sublearn.fitting.progress import Progress
from sublearn.latent.mix_program import MixtureProgram, Path, Point
from sublearn.latent.mix_starts import (
    consensus_functions,
    covering_functions,
    has_few_features,
    pattern_functions,
    random_functions,
    strongest_functions,
)
from sublearn.latent.mixture import (
    ComponentEM,
    EMSteps,
    FittedMixture,
    Mixture,
    MixtureProblem,
    SubsetEM,
)
from sublearn.validation import Interval, OneOf, OneOfOrNone, OrNone, Positive, Rule, Settings

__all__ = ["GeneralRefiner", "MixtureSearch", "Refiner", "StandardRefiner"]

_STARTS_COST = 1e8  # operations of one step of EM in all starts
_SHARP = 0.1  # a component is sharp if its variance is at most this part of the largest
_SPARE = 1.6  # components to begin with, for each that is asked for
_ROUGH_TOL = 1e-5
_FINAL_TOL = 1e-8
_PATIENCE = 2  # rests that do not improve the whole, or sizes without a better criterion
_REST_SHARES = (0.5, 0.2)  # of l1_max
_REST_STEPS = 6
_AGREED = 8  # one start in so many, at least 3, ends in the best mixture: more would do so as well
_CLOSE = 1e-3  # of the error, or in the mean log-likelihood: the same mixture
_OUTLIERS = 0.05  # share of rows without a component, to begin with
_MOST_OUTLIERS = 0.25  # more of them are a component that is missing
_NOISES = (0.001, 0.03, 0.1)  # levels at which few features are tried by subsets of rows
_EXACT = 1e-12  # share of the targets' mean square that is rounding


@dataclass(frozen=True)
class MixtureSearch(Settings):
    r"""How components are found from the solutions of the convex program.

    Parameters
    ----------
    l1_share : float or None, default=None
        Weight of the program's penalty, as a share of the least weight at which no atom is active.
        None tries 0.5, 0.25 and 0.12. In the paper: :math:`\lambda = l_1 / 2`, :math:`\tau = l_1`.
    n_starts : int or None, default=None
        Starts to refine at most; the most likely mixture is kept. None is 8 to 40, more where EM
        is cheap.
    starts : {"all", "cover", "patterns", "random"}, default="all"
        Where EM begins. "cover": rows' functions of a solution that together explain the targets
        best. "patterns": the paper's rounding, the K largest atoms or their J most frequent
        patterns; EM goes on from these functions as they are, and ``refine="hard"`` makes it the
        paper's. "random": functions of normal weights and, for standard mixtures with few features,
        through random rows; the program is not solved. "all": covers first, then random ones.
    refine : {"soft", "hard"} or None, default="soft"
        EM after rounding: with shared rows, with each row given to one component, or none.
    """

    l1_share: float | None = None
    n_starts: int | None = None
    starts: str = "all"
    refine: str | None = "soft"

    _rules: ClassVar[Mapping[str, Rule]] = {
        "l1_share": OrNone(Interval(float, 0, 1, "neither")),
        "n_starts": OrNone(Positive(int)),
        "starts": OneOf("all", "cover", "patterns", "random"),
        "refine": OneOfOrNone("soft", "hard"),
    }

    def n_starts_for(self, features: np.ndarray, n_components: int) -> int:
        """The number of starts."""
        if self.n_starts is not None:
            return int(self.n_starts)
        cost = features.shape[0] * features.shape[1] ** 2 * n_components  # of a step of EM
        return int(np.clip(_STARTS_COST / cost, 8, 40))


class Refiner(abc.ABC):
    """Makes mixtures of given sizes, each the best from `n_starts` starts of EM.

    `seed` is that of random starts; `progress` is asked now and then whether to stop.
    """

    def __init__(
        self, problem: MixtureProblem, search: MixtureSearch, n_starts: int, seed: int,
        progress: Progress,
    ):  # fmt: skip
        self.problem, self.features, self.targets = problem, problem.features, problem.targets
        self.is_hard, self.is_refined = search.refine != "soft", search.refine is not None
        self.starts = search.starts
        self.n_starts, self.seed, self.progress = n_starts, seed, progress

    @property
    @abc.abstractmethod
    def em(self) -> EMSteps:
        """EM on all rows."""

    @abc.abstractmethod
    def best(self, points: Iterable[Point], n_components: int) -> Mixture:
        """The best mixture of a size from several starts."""

    def select(
        self, points: Iterable[Point], sizes: Iterable[int]
    ) -> tuple[Mixture, dict[int, float]]:
        """The mixture of least criterion, and the criterion of each size that was tried.

        Sizes are tried in turn until the criterion rises twice. One that explains the rows up to
        rounding ends the search: more components cannot be told from it.
        """
        best: Mixture | None = None
        criteria: dict[int, float] = {}
        n_worse = 0
        for size in sizes:
            mixture = self.best(points, size)
            criteria[size] = _criterion(mixture, len(self.targets))
            if best is None or criteria[size] < criteria[best.size]:
                best, n_worse = mixture, 0
            else:
                n_worse += 1
            self.progress.add(n_done=1)
            if self._is_exact(mixture) or n_worse == _PATIENCE or self._should_stop():
                break
        assert best is not None  # there is at least one size
        return best, criteria

    def fitted(self, mixture: Mixture) -> FittedMixture:
        """The mixture for the targets as they were."""
        return self.problem.fitted(mixture, self.em.patterns(mixture.size), self.is_hard)

    def _should_stop(self) -> bool:
        return self.progress.stop_requested

    def _cover(self, point: Point, size: int, rng: np.random.Generator | None = None) -> np.ndarray:
        return covering_functions(point, self.features, self.targets, size, rng)

    def _random_starts(
        self, points: Sequence[Point], sizes: Sequence[int], rng: np.random.Generator
    ) -> Iterator[np.ndarray]:
        """Without end: covers from halves of the atoms and functions of normal weights, in turn."""
        for i in itertools.count():
            size = sizes[i % len(sizes)]
            is_free = i % 2 == 1 if self.starts == "all" else self.starts == "random"
            yield (
                random_functions(self.features, size, rng)
                if is_free
                else self._cover(points[i % len(points)], size, rng)
            )

    def _patterns(self, points: Iterable[Point], size: int) -> Iterator[np.ndarray]:
        """The paper's roundings of each solution."""
        is_general = isinstance(self, GeneralRefiner)
        for point in points:
            yield from pattern_functions(point, self.features, self.targets, size, is_general)

    def _error(self, mixture: Mixture) -> float:
        """Mean square of what the nearest part leaves of each target."""
        return float((self.em.residuals(mixture.coef) ** 2).min(axis=1).mean())

    def _is_exact(self, mixture: Mixture) -> bool:
        """Whether nothing but rounding is left of the targets."""
        return self._error(mixture) <= _EXACT * self.em.scale


def _criterion(mixture: Mixture, n_rows: int) -> float:
    """Bayesian information criterion.

    -2 log-likelihood + (number of weights, shares and variances) log N.
    """
    n_parameters = mixture.coef.size + 2 * len(mixture.shares) - 1 + (mixture.outliers > 0)
    return float(-2 * mixture.log_likelihood + n_parameters * np.log(n_rows))


class GeneralRefiner(Refiner):
    """Generalised mixtures, in which a row may have any subset of components."""

    @cached_property
    def em(self) -> SubsetEM:
        """EM on all rows."""
        return SubsetEM(
            self.features, self.targets, self.problem.l2, is_hard=self.is_hard,
            should_stop=self._should_stop,
        )  # fmt: skip

    def best(self, points: Iterable[Point], n_components: int) -> Mixture:
        """The most likely mixture from several starts."""
        found: Mixture | None = None
        max_iter = 500 if self.is_refined else 1
        for coef in itertools.islice(self._starts(points, n_components), self.n_starts):
            mixture = self.em.run(self.em.start(coef), max_iter, _ROUGH_TOL)
            if found is None or mixture.log_likelihood > found.log_likelihood:
                found = mixture
            if self._is_exact(found) or self._should_stop():
                break
        assert found is not None  # there is at least one start
        return self.em.run(found, max_iter, _FINAL_TOL)

    def _starts(self, points: Iterable[Point], n_components: int) -> Iterator[np.ndarray]:
        """The strongest atoms of each solution, functions that cover the rows, random halves."""
        if self.starts == "patterns":
            yield from self._patterns(points, n_components)
            return
        rng = np.random.default_rng([self.seed, n_components])
        kept: list[Point] = []
        for point in () if self.starts == "random" else points:
            kept.append(point)
            yield strongest_functions(point, self.features, n_components)
            yield self._cover(point, n_components)
        yield from self._random_starts(kept, [n_components], rng)


class StandardRefiner(Refiner):
    """Standard mixtures, in which a row has one component."""

    @cached_property
    def em(self) -> ComponentEM:
        """EM on all rows, with shared rows whatever the end is."""
        return self._em(np.ones(len(self.targets), dtype=bool))

    @cached_property
    def _hard_em(self) -> ComponentEM:
        return self._em(np.ones(len(self.targets), dtype=bool), is_hard=True)

    @property
    def _enough(self) -> int:
        return max(3, self.n_starts // _AGREED)

    def best(self, points: Iterable[Point], n_components: int) -> Mixture:
        """The best mixture from several starts: most likely, or of least error if it is hard."""
        found: Mixture | None = None
        n_agreed, best = 0, -np.inf
        for coef, is_random in itertools.islice(self._starts(points, n_components), self.n_starts):
            least = found.log_likelihood if found is not None and is_random else -np.inf
            mixture = self._refined(coef, n_components, least)
            score, close = self._score(mixture)
            n_agreed = 1 if score > best + close else n_agreed + (score >= best - close)
            if found is None or score > best:
                found, best = mixture, score
            if self._is_exact(found) or n_agreed >= self._enough or self._should_stop():
                break
        assert found is not None  # there is at least one start
        if self.is_hard:
            return found
        return self._set_outliers_apart(self.em.run(found, tol=_FINAL_TOL))

    def _refined(self, coef: np.ndarray, n_components: int, least: float) -> Mixture:
        """Soft EM is the better explorer, so that hard assignments come last.

        Peeling costs as much as several starts, so that it is for mixtures above `least`.
        """
        if not self.is_refined:
            return self._hard_em.run(self._hard_em.start(coef), max_iter=1)
        if self.starts == "patterns":
            em = self._hard_em if self.is_hard else self.em
            return em.run(em.start(coef), tol=_ROUGH_TOL)
        mixture = self._shrink(self.em, coef, n_components)
        if mixture.log_likelihood > least:
            mixture = self._peel(mixture)
        return self._hard_em.run(mixture) if self.is_hard else mixture

    def _score(self, mixture: Mixture) -> tuple[float, float]:
        """What starts are compared by, and a difference in it that means nothing."""
        if not self.is_hard:
            return mixture.log_likelihood, _CLOSE * len(self.targets)
        error = self._error(mixture)
        return -error, _CLOSE * error

    def _set_outliers_apart(self, mixture: Mixture) -> Mixture:
        """Let some rows belong to nothing, if the likelihood gains more than that costs.

        Without it a few wild rows blur a component or take one for themselves.
        """
        if self._is_exact(mixture):
            return mixture
        start = replace(mixture, outliers=_OUTLIERS, shares=(1 - _OUTLIERS) * mixture.shares)
        candidate = self.em.run(start, tol=_FINAL_TOL)
        gain = candidate.log_likelihood - mixture.log_likelihood
        is_better = 2 * gain > np.log(len(self.targets)) and candidate.outliers <= _MOST_OUTLIERS
        return candidate if is_better else mixture

    def _em(self, rows: np.ndarray, is_hard: bool = False) -> ComponentEM:
        return ComponentEM(
            self.features[rows], self.targets[rows], self.problem.l2, is_hard=is_hard,
            should_stop=self._should_stop,
        )  # fmt: skip

    def _starts(
        self, points: Iterable[Point], n_components: int
    ) -> Iterator[tuple[np.ndarray, bool]]:
        """Roundings of each solution, functions through subsets of rows, then random ones.

        Roundings are with and without spare components and from half of the atoms. A solution is
        asked for when those before it did not agree, since it may cost more than all of EM: the
        first one gives as many starts as must agree.
        """
        if n_components == 1:
            yield np.zeros((1, self.features.shape[1])), False
            return
        if self.starts == "patterns":
            yield from ((coef, False) for coef in self._patterns(points, n_components))
            return
        rng = np.random.default_rng([self.seed, n_components])
        sizes = self._sizes(n_components)
        kept: list[Point] = []
        if self.starts == "random":
            yield from self._through_rows(n_components, rng)
        for point in () if self.starts == "random" else points:
            kept.append(point)
            for size in sizes:
                yield self._cover(point, size), False
            yield self._cover(point, sizes[0], rng), False
            if len(kept) == 1 and self.is_refined:
                if self.starts == "all":
                    yield from self._through_rows(n_components, rng)
                for _ in range(self._enough - len(sizes) - 1):
                    yield self._cover(point, sizes[0], rng), True
        for coef in self._random_starts(kept, sizes, rng):
            yield coef, True

    def _through_rows(
        self, n_components: int, rng: np.random.Generator
    ) -> Iterator[tuple[np.ndarray, bool]]:
        """Functions through random subsets of rows, where such a subset may be of one component."""
        is_small = has_few_features(self.features, n_components)
        for noise in _NOISES if is_small else ():
            yield (
                consensus_functions(self.features, self.targets, n_components, noise, rng),
                False,
            )

    def _sizes(self, n_components: int) -> list[int]:
        n_rows, n_features = self.features.shape
        spare = min(int(np.ceil(_SPARE * n_components)), n_rows // (2 * n_features))
        has_spare = spare > n_components and self.is_refined
        return [spare, n_components] if has_spare else [n_components]

    def _shrink(self, em: ComponentEM, coef: np.ndarray, n_components: int) -> Mixture:
        """EM, and without half of the spare components, those missed least, until none is left."""
        mixture = em.run(em.start(coef), tol=_ROUGH_TOL)
        while mixture.size > n_components:
            n_spare = mixture.size - n_components
            kept = em.losses_without(mixture).argsort(kind="stable")[(n_spare + 1) // 2 :]
            mixture = em.run(mixture.take(np.sort(kept)), max_iter=20, tol=_ROUGH_TOL)
        return em.run(mixture, tol=_ROUGH_TOL)

    # --- what is left --------------------------------------------------------------------------

    def _peel(self, mixture: Mixture) -> Mixture:
        """Solve the rows that no sharp component holds again, while that helps."""
        n_failures = 0
        while n_failures < _PATIENCE and not self._should_stop():
            sharp, rest = self._split(mixture)
            n_open = mixture.size - int(sharp.sum())
            if n_open < 2 or not sharp.any() or rest.sum() <= self.features.shape[1]:
                break
            inner = self._solve_rest(rest, n_open, seed=self.seed + n_failures)
            joined = mixture.take(sharp).join(inner, share=float(rest.mean()))
            candidate = self.em.run(joined, tol=_ROUGH_TOL)
            gain = candidate.log_likelihood - mixture.log_likelihood
            if gain > 1e-3 * len(self.targets):
                mixture, n_failures = candidate, 0
            else:
                n_failures += 1
        return mixture

    def _split(self, mixture: Mixture) -> tuple[np.ndarray, np.ndarray]:
        """Which components are sharp, and the rows of the others."""
        chances, _ = self.em.share_out(mixture)
        owner = chances.argmax(axis=1)
        is_held = np.bincount(owner, minlength=mixture.size) > self.features.shape[1]
        level = mixture.variances[is_held].max(initial=0.0)
        sharp = is_held & (mixture.variances <= _SHARP * level)
        return sharp, ~sharp[owner]

    def _solve_rest(self, rows: np.ndarray, n_components: int, seed: int) -> Mixture:
        em = self._em(rows)
        rng = np.random.default_rng([seed, n_components])
        size = min(2 * n_components, max(n_components, em.n_rows // (2 * em.n_features)))
        if self.starts == "random":
            starts = (
                random_functions(em.features, size, rng) for _ in range(2 * len(_REST_SHARES))
            )
        else:
            program = MixtureProgram(em.features, em.targets, seed=seed)
            starts = (
                covering_functions(point, em.features, em.targets, size, draw)
                for point in Path(program, _REST_SHARES, tol=0.1, max_iter=_REST_STEPS)
                for draw in (None, rng)
            )
        mixtures = (self._shrink(em, coef, n_components) for coef in starts)
        return max(mixtures, key=lambda mixture: mixture.log_likelihood)
