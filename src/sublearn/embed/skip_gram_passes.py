"""Passes of skip-gram over counts of pairs: negative sampling first, then the softmax itself."""

from __future__ import annotations

import time
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field

import numpy as np

from sublearn import _core
from sublearn.embed.blas_threads import blas_threads
from sublearn.embed.clustering import (
    BALANCE,
    assign,
    by_cluster,
    count_clusters,
    spherical_kmeans,
)
from sublearn.embed.context_search import ContextSearch
from sublearn.embed.padding import padded_width
from sublearn.embed.vocabulary import Pairs
from sublearn.fitting.progress import Progress
from sublearn.interruption import check
from sublearn.trace import attend

__all__ = ["Plan", "Vectors", "exact_objective", "learn"]

_ALL_WORDS = 1024  # up to this many words the objective is summed over all of them
_N_TRACED = 256  # else over so many, drawn by frequency
_LAST_RATE = 0.1  # of the learning rate, in the last pass
_BATCHES = 16  # steps of a pass, at least; with enough words, of 64 visits each
_ROUNDS = 5  # of k-means; centres need not be good, since rows move anyway

COLUMNS = (
    "seconds", "objective", "error", "estimate", "lower_bound", "learning_rate", "is_warm", "work",
)  # fmt: skip


@dataclass(frozen=True)
class Plan:
    """How passes go; :class:`~sublearn.embed.SkipGram` says what the values mean."""

    search: ContextSearch  # without "auto"
    max_iter: int
    learning_rate: float
    min_gain: float | None
    seed: int
    n_threads: int

    @property
    def n_passes(self) -> int:
        """Of negative sampling and of the softmax."""
        return self.search.n_warm + self.max_iter

    def rate(self, done: int) -> float:
        """Learning rate of a pass: falls in a line."""
        left = 1.0 - done / max(1, self.n_passes - 1)
        return self.learning_rate * (_LAST_RATE + (1.0 - _LAST_RATE) * left)


@dataclass
class Vectors:
    """Padded vectors and Adagrad's sums; the last number of a context is its bias.

    Words meet it with a number no larger than their others are. A 1 there would make the bias a
    hundred times as quick as a coordinate of a vector: then it follows which contexts happen to be
    drawn, and with many rare words the model ends up below their frequencies.
    """

    words: np.ndarray
    contexts: np.ndarray
    word_sums: np.ndarray
    context_sums: np.ndarray
    bias: int  # its column

    @staticmethod
    def none(n_components: int) -> Vectors:
        """No words yet."""
        rows = np.empty((0, padded_width(n_components + 1)), np.float32)
        sums = np.empty(0, np.float32)
        return Vectors(rows, rows.copy(), sums, sums.copy(), n_components)

    @staticmethod
    def of(
        words: np.ndarray, contexts: np.ndarray, biases: np.ndarray, sums: tuple[np.ndarray, ...]
    ) -> Vectors:
        """Fitted vectors, in arrays of their own."""
        new = Vectors.none(words.shape[1])
        shape = (len(words), new.words.shape[1])
        new.words, new.contexts = np.zeros(shape, np.float32), np.zeros(shape, np.float32)
        new.words[:, : new.bias], new.words[:, new.bias] = words, new.unit
        new.contexts[:, : new.bias], new.contexts[:, new.bias] = contexts, biases / new.unit
        new.word_sums, new.context_sums = (part.copy() for part in sums)
        return new

    @property
    def unit(self) -> np.float32:
        """What words have in the column of the bias."""
        return np.float32(self.bias**-0.5)

    @property
    def biases(self) -> np.ndarray:
        """Biases of the contexts, in an array of their own."""
        return self.contexts[:, self.bias] * self.unit

    def grown(self, pairs: Pairs, rng: np.random.Generator) -> Vectors:
        """With vectors for new words: small random ones, contexts 0 with their log-frequency.

        Adagrad's sums start at what the first pass will about add: else its first steps would be
        as long as the learning rate, whatever the gradients.
        """
        n_old, n_new = len(self.words), pairs.n_words - len(self.words)
        words = np.zeros((n_new, self.words.shape[1]), np.float32)
        words[:, : self.bias] = rng.uniform(-0.5, 0.5, (n_new, self.bias)) / np.sqrt(self.bias)
        words[:, self.bias] = self.unit
        contexts = np.zeros_like(words)
        shares = (pairs.totals + 0.5) / (pairs.totals + 0.5).sum()
        contexts[:, self.bias] = np.log(shares[n_old:]) / self.unit
        squares = pairs.squares()[n_old:] / (self.bias + 1)
        mean_square = float(np.square(words).sum(axis=1).mean()) if n_new else 0.0
        return Vectors(
            np.concatenate([self.words, words]),
            np.concatenate([self.contexts, contexts]),
            np.concatenate([self.word_sums, squares.astype(np.float32)]),
            np.concatenate([self.context_sums, (squares * mean_square).astype(np.float32)]),
            self.bias,
        )


@dataclass
class Passes:
    """What passes leave: rows of the trace, and how they ended."""

    vectors: Vectors
    rows: list[tuple[float, ...]] = field(default_factory=list)
    is_finite: bool = True
    converged: bool = False


def learn(vectors: Vectors, pairs: Pairs, plan: Plan, progress: Progress) -> Passes:
    """Run all passes; each adds a row to the trace."""
    found = Passes(vectors)
    noise = np.power(pairs.totals + 0.5, plan.search.noise_power)
    problem = _core.SkipGramProblem(
        vectors.words, vectors.contexts, (vectors.word_sums, vectors.context_sums),
        (pairs.begin, pairs.ids, pairs.counts), (noise / noise.sum()).astype(np.float32),
        vectors.bias,
    )  # fmt: skip
    index = _Index.of(vectors, plan)
    entropy, start = pairs.entropy(), time.perf_counter()
    for settings in _settings(plan, pairs.n_words):
        if progress.stop_requested:
            break
        if index is not None and not settings.is_contrastive:
            index.refresh(problem)
        before = deepcopy(vectors)
        report, work = _run(problem, settings, plan, progress)
        value, error = exact_objective(vectors, pairs, plan.seed, plan.n_threads)
        if not report.is_finite or not np.isfinite(value):
            found.vectors, found.is_finite = before, False
            break
        progress.add(n_done=1, work=int(work))
        progress.tell(objective=value, gap=value - entropy)
        found.rows.append((
            time.perf_counter() - start, value, error, report.objective, report.lower_bound,
            settings.learning_rate, float(settings.is_contrastive), float(progress.work),
        ))  # fmt: skip
        if _has_converged(found.rows, plan):
            found.converged = True
            break
    return found


def _run(
    problem: _core.SkipGramProblem,
    settings: _core.SkipGramSettings,
    plan: Plan,
    progress: Progress,
) -> tuple[_core.SkipGramReport, float]:
    """A pass; with blocks, words move first. The last report, and all inner products."""
    work = 0.0
    if plan.search.partition == "decomposed" and not settings.is_contrastive:
        settings.moves_contexts = False
        report = problem.run(settings, plan.n_threads, progress.core)
        work = report.work
        if not report.is_finite or progress.stop_requested:
            return report, work
        settings.moves_words, settings.moves_contexts = False, True
    report = problem.run(settings, plan.n_threads, progress.core)
    return report, work + report.work


def _settings(plan: Plan, n_words: int) -> Iterator[_core.SkipGramSettings]:
    search = plan.search
    for done in range(plan.n_passes):
        settings = _core.SkipGramSettings()
        settings.is_contrastive = done < search.n_warm
        settings.is_exact = search.partition == "exact"
        settings.learning_rate = plan.rate(done)
        settings.n_negative = search.n_negative
        settings.n_sampled = search.n_sampled
        if search.partition in ("search", "decomposed") and not settings.is_contrastive:
            settings.n_found, settings.n_probe = search.n_candidates, search.n_probe
        if search.partition == "decomposed" and not settings.is_contrastive:
            settings.pairs_of_visit = (
                2**30
            )  # a word is visited once, with all that it was seen with
        settings.visits_at_once = min(64, max(1, n_words // _BATCHES))
        settings.seed = plan.seed + done
        yield settings


def _has_converged(rows: list[tuple[float, ...]], plan: Plan) -> bool:
    """Whether a pass of the softmax lowered the objective by less than `min_gain` of it."""
    if plan.min_gain is None or len(rows) < plan.search.n_warm + 2:
        return False
    before, after = rows[-2][1], rows[-1][1]
    return before - after < plan.min_gain * abs(before)


class _Index:
    """Clusters of the contexts; a pass begins with each context in the cluster that suits it."""

    def __init__(self, vectors: Vectors, plan: Plan):
        self._vectors, self._plan = vectors, plan
        self._centres: np.ndarray | None = None

    @staticmethod
    def of(vectors: Vectors, plan: Plan) -> _Index | _BlockIndex | None:
        """What the partition searches, if it does."""
        if plan.search.partition == "search":
            return _Index(vectors, plan)
        return _BlockIndex(vectors, plan) if plan.search.partition == "decomposed" else None

    def refresh(self, problem: _core.SkipGramProblem) -> None:
        """Let the next pass search among the contexts as they are."""
        problem.set_index(*self.refreshed())

    def refreshed(self) -> tuple[np.ndarray, ...]:
        """Centres, begin of each cluster, ids and rows, at C inner products for each context.

        A search meets biases with a 1. Their mean changes no order and is left out: it would make
        all rows point the same way.
        """
        rows, biases = self._vectors.contexts.copy(), self._vectors.biases
        rows[:, self._vectors.bias] = biases - biases.mean()
        n_clusters = count_clusters(len(rows))
        with blas_threads(self._plan.n_threads):
            if self._centres is None:
                rng = np.random.default_rng(self._plan.seed)
                self._centres = spherical_kmeans(rows, n_clusters, _ROUNDS, rng)
            clusters, _ = assign(rows, self._centres, BALANCE)
        begin, order = by_cluster(clusters, n_clusters)
        return self._centres, begin, order, rows[order]


class _BlockIndex:
    """Clusters of each block of coordinates of the contexts; blocks share the biases."""

    def __init__(self, vectors: Vectors, plan: Plan):
        self._vectors, self._plan = vectors, plan
        n_blocks = min(plan.search.n_blocks, vectors.bias)
        self._columns = np.array_split(np.arange(vectors.bias), n_blocks)
        self._centres: list[np.ndarray] = []

    def refresh(self, problem: _core.SkipGramProblem) -> None:
        """Let the next pass search among the contexts as they are, each in the best cluster."""
        biases = self._vectors.biases
        share = (biases - biases.mean())[:, None] / np.float32(len(self._columns))
        problem.clear_blocks()
        with blas_threads(self._plan.n_threads):
            for j, columns in enumerate(self._columns):
                first, last = int(columns[0]), int(columns[-1]) + 1
                rows = np.hstack([self._vectors.contexts[:, first:last], share])
                if len(self._centres) == j:
                    rng = np.random.default_rng(self._plan.seed + j)
                    n_clusters = count_clusters(len(rows))
                    self._centres.append(spherical_kmeans(rows, n_clusters, _ROUNDS, rng))
                clusters, _ = assign(rows, self._centres[j], BALANCE)
                problem.add_block(first, rows, self._centres[j], clusters.astype(np.int32))


def exact_objective(
    vectors: Vectors, pairs: Pairs, seed: int, n_threads: int, n_words: int = _N_TRACED
) -> tuple[float, float]:
    """The objective with exact partition sums, and its standard error.

    Over all words of a small vocabulary; else over `n_words` drawn by their counts, the same ones
    for a seed.
    """
    is_all = pairs.n_words <= max(_ALL_WORDS, n_words)
    if is_all:
        drawn = np.flatnonzero(pairs.totals > 0)
        weights = pairs.totals[drawn] / pairs.totals.sum()
    else:
        rng = np.random.default_rng(seed)
        share = pairs.totals / pairs.totals.sum()
        drawn = rng.choice(pairs.n_words, n_words, p=share)
        weights = np.full(n_words, 1.0 / n_words)
    queries = np.ascontiguousarray(vectors.words[drawn])
    sums = attend(
        lambda monitor: _core.log_partitions(vectors.contexts, queries, n_threads, monitor),
        float(queries.size) * pairs.n_words,
    )
    losses = np.empty(len(drawn))
    for i, word in enumerate(drawn):
        check()
        ids, counts = pairs.row(int(word))
        scores = vectors.contexts[ids] @ queries[i]
        losses[i] = sums[i] - (counts @ scores) / counts.sum()
    error = 0.0 if is_all else float(losses.std() / np.sqrt(len(losses)))
    return float(weights @ losses), error
