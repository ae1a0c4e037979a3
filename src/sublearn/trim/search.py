"""The search for l1: stages of growing penalties, and what they leave."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import nn

from sublearn.errors import ParameterError
from sublearn.fitting.progress import Progress
from sublearn.trace import Status, Trace
from sublearn.trim.result import Judged, LayerReport, TrimReport, TrimResult, weights_on_disk
from sublearn.trim.settings import LEAST_GROWTH, L1Search
from sublearn.trim.trimmer import Shrunk, Snapshot, Trimmer, Weights

__all__ = ["Judge", "Search"]

#: Passes of the last polish, of the network that the search ends with, in times those of a stage.
_LAST_PASSES = 8

#: A network of this share of the weights that it may have is near enough to all of them.
_NEAR = 0.9
#: Networks that are small enough before that is given up.
_MOST_SMALL = 4
#: While no l1 is small enough: the largest factor between two of them, and the least one.
_MOST_FALL, _LEAST_L1 = 2.0**16, 1e-300


@dataclass(frozen=True)
class Tried:
    """A stage that has run: its figures, and its weights before and after the polish."""

    row: dict[str, float]
    shrunk: Shrunk
    polished: Snapshot


@dataclass(frozen=True)
class Judge:
    """How a network is measured, and on which samples."""

    judged: Judged
    measure: Callable[[], float]
    measure_error: Callable[[], float] | None = None  # where there are classes


class Search:
    """Tries stages of growing l1, keeps the best network.

    That is the smallest one that the criterion allows or, if `max_weights` is given, the one
    of least criterion that is small enough.
    """

    def __init__(
        self,
        trimmer: Trimmer,
        settings: L1Search,
        judge: Judge,
        max_increase: float,
        progress: Progress,
    ):
        self._trimmer, self._settings = trimmer, settings
        self._measure, self._progress, self._judged = judge.measure, progress, judge.judged
        self._start = trimmer.snapshot()
        self._before = (trimmer.fit().loss, self._measure())
        if not all(math.isfinite(value) for value in self._before):
            raise ParameterError(
                f"deep_trim.module must have a finite loss on the data, got {self._before[0]}"
            )
        self._limit = self._before[1] + max_increase
        # Where fewer errors are asked for, the last polish may find them.
        self._loose_limit = self._before[1] + max(0.0, max_increase)
        self._measure_error = judge.measure_error
        self._error_before = judge.measure_error and judge.measure_error()
        self._given = self._current = Shrunk(None, self._start, None, {})
        self._best: Tried | None = None  # the smallest that the criterion allows
        self._misses: list[Tried] = []  # of fewer weights, for the last polish
        self._rows: list[dict[str, float]] = []
        self._status = Status.MAX_ITER
        self._clock = time.perf_counter()

    def run(self, l1: float | None = None, max_weights: int | None = None) -> None:
        """One stage for an l1 that is given, whatever the criterion says, or a search."""
        if l1 is not None:
            self._best = self._try(l1)
            self._status = Status.CONVERGED
            return
        if max_weights is None:
            self._run_to_limit()
        else:
            self._run_to_size(max_weights)
        self._finish()

    def _run_to_limit(self) -> None:
        """Stages of growing l1, until `patience` of them in a row were above the limit."""
        n_misses, step = 0, self._settings.growth
        too_large = 2.0  # by this factor, if the first l1 is above the limit; then by its square
        trial = self._first_l1()
        good: Tried | None = None  # the smallest where the search goes on
        for _ in range(self._settings.max_stages):
            tried = self._try(trial)
            self._keep(tried)
            if self._progress.stop_requested:
                return
            is_good = tried.row["criterion"] <= self._loose_limit
            if is_good and (good is None or tried.row["n_weights"] <= good.row["n_weights"]):
                good = tried
            if good is None:
                self._current = self._given
                trial = max(trial / too_large, _LEAST_L1)
                too_large = min(too_large**2, _MOST_FALL)
                continue
            n_misses = 0 if is_good else n_misses + 1
            trial *= step
            if n_misses == self._settings.patience:
                self._current, n_misses = good.shrunk, 0
                step = math.sqrt(step)
                trial = good.row["l1"] * step
            if step < LEAST_GROWTH:
                self._status = Status.CONVERGED
                return

    def _run_to_size(self, max_weights: int) -> None:
        """Stages of growing l1, until not many fewer weights than `max_weights` are left.

        A stage that leaves too few is run again with a smaller l1, which may well be smaller than
        that of the stage before: to go on with the same l1 takes weights away as well.
        """
        n_small, aim = 0, math.sqrt(_NEAR) * max_weights
        above: Tried | None = None  # the last one of too many weights
        trial = self._first_l1()
        for _ in range(self._settings.max_stages):
            tried = self._try(trial, max_weights)
            n_left = tried.row["n_weights"]
            if n_left <= max_weights:
                if self._best is None or tried.row["criterion"] <= self._best.row["criterion"]:
                    self._best = tried
                n_small += 1
            if self._progress.stop_requested:
                break
            if n_left > max_weights:
                trial *= _step_to(aim, above, tried, self._settings.growth)
                above = tried
            elif n_left >= _NEAR * max_weights or n_small == _MOST_SMALL:
                self._status = Status.CONVERGED
                break
            else:
                trial *= max(n_left, 0.1 * aim) / aim
                self._current = above.shrunk if above else self._given
        if self._best is None:
            self._best = above  # the smallest there is

    def _first_l1(self) -> float:
        """Where the penalty of the weights given is half the loss of a network without weights.

        By comparison with that loss, because it depends on neither the scale of the weights nor
        their number.
        """
        if self._settings.first_l1 is not None:
            return self._settings.first_l1
        weights, biases = self._start.weights, self._start.biases
        size = sum(float(weight.abs().sum()) for weight in weights.values())
        zeros = {name: torch.zeros_like(weight) for name, weight in weights.items()}
        self._trimmer.put(Snapshot(zeros, biases))
        empty = self._trimmer.fit().loss
        self._trimmer.put(self._start)
        worth = empty - self._before[0]
        scale = worth if math.isfinite(worth) and worth > 0 else max(self._before[0], 1.0)
        return 0.5 * scale / max(size, 1e-30)

    def _try(self, l1: float, max_weights: float = math.inf) -> Tried:
        """A stage from the last weights; those that are too many are not worth a polish."""
        self._trimmer.put(self._current.snapshot)
        self._current = self._trimmer.shrink(l1, self._current.l1, self._settings.adaptive)
        if self._trimmer.size() <= max_weights:
            self._polish_unless_worse()
        row = {"seconds": time.perf_counter() - self._clock, "l1": l1, **self._figures()}
        is_sized = math.isfinite(max_weights)
        is_accepted = row["n_weights"] <= max_weights if is_sized else self._is_allowed(row)
        self._rows.append(row | {"is_accepted": float(is_accepted)})
        gap = max(0.0, row["criterion"] - self._before[1])
        self._progress.add(n_done=1)
        self._progress.tell(objective=row["loss"], gap=gap, nnz_primal=int(row["n_weights"]))
        return Tried(self._rows[-1], self._current, self._trimmer.snapshot())

    def _polish_unless_worse(self) -> None:
        """Without a penalty, few samples are learnt by heart: then what is left stays as it is."""
        criterion = self._measure()
        self._trimmer.polish()
        if not self._measure() <= criterion:
            self._trimmer.put(self._current.snapshot)

    def _figures(self) -> dict[str, float]:
        """Of the weights as they are."""
        return {
            "loss": self._trimmer.fit().loss,
            "criterion": self._measure(),
            "n_weights": self._trimmer.size(),
        }

    def _is_allowed(self, row: dict[str, float]) -> bool:
        return row["criterion"] <= self._limit

    def _keep(self, tried: Tried) -> None:
        """As the best, if it is, or as one that a long polish may make the best."""
        if self._best and self._best.row["n_weights"] <= tried.row["n_weights"]:
            return
        if not self._is_allowed(tried.row):
            self._misses.append(tried)
            return
        self._best, n_best = tried, tried.row["n_weights"]
        self._misses = [miss for miss in self._misses if miss.row["n_weights"] < n_best]

    def _finish(self) -> None:
        """Last, long polishes: of misses, which may be allowed then, else of the best.

        Bisection over their sizes: the fewer weights, the less likely.
        """
        if not self._trimmer.retraining.polish_epochs:
            return
        left = sorted(self._misses, key=lambda miss: miss.row["n_weights"])
        is_polished = False
        while left:
            middle = len(left) // 2
            polished = self._polished(left[middle])
            if polished and self._is_allowed(polished.row):
                self._best, is_polished, left = polished, True, left[:middle]
            else:
                left = left[middle + 1 :]
        if self._best and not is_polished:
            self._best = self._polished(self._best) or self._best

    def _polished(self, tried: Tried) -> Tried | None:
        """After many more passes, None if the criterion rose or the passes were cut short."""
        if self._progress.stop_requested:
            return None
        self._trimmer.put(tried.polished)
        self._trimmer.polish(_LAST_PASSES)
        if self._progress.stop_requested:
            return None  # at a high rate, it is worse than it looks
        row = tried.row | self._figures()
        if row["criterion"] > tried.row["criterion"]:
            return None
        return replace(tried, row=row, polished=self._trimmer.snapshot())

    def result(self, module: nn.Module) -> TrimResult:
        """The best network found, in the mode of the `module` given."""
        best = self._start if self._best is None else self._best.polished
        self._trimmer.put(best)
        report, trimmed = self._report(best.weights), self._trimmer.module
        for own, parameter in zip(trimmed.parameters(), module.parameters(), strict=True):
            own.requires_grad_(parameter.requires_grad)
        for name, part in module.named_modules():  # back to the mode it came in
            trimmed.get_submodule(name).training = part.training
        columns = {key: [row[key] for row in self._rows] for key in (self._rows or [{}])[0]}
        return TrimResult(
            status=Status.STOPPED if self._progress.stop_requested else self._status,
            objective=report.loss_after,
            certificate=math.inf,
            n_iter=len(self._rows),
            trace=Trace(columns),
            module=trimmed,
            report=report,
            masks={name: weight != 0 for name, weight in best.weights.items()},
            given=module,
            sample=self._trimmer.samples.first(),
        )

    def _report(self, weights: Weights) -> TrimReport:
        start = self._start.weights
        shrunk = self._best.shrunk if self._best else self._given
        row = self._best.row if self._best else {}
        layers = [
            LayerReport(
                name=name,
                kind=type(self._trimmer.layers[name]).__name__,
                shape=tuple(weight.shape),
                n_before=int(torch.count_nonzero(start[name])),
                n_after=int(torch.count_nonzero(weight)),
                bound=shrunk.bound,
                stationarity=shrunk.stationarity.get(name),
            )
            for name, weight in weights.items()
        ]
        return TrimReport(
            layers=layers,
            l1=row.get("l1", 0.0),
            n_training=len(self._trimmer.samples),
            judged=self._judged,
            loss_before=self._before[0],
            loss_after=row.get("loss", self._before[0]),
            criterion_before=self._before[1],
            criterion_after=row.get("criterion", self._before[1]),
            error_before=self._error_before,
            error_after=self._measure_error and self._measure_error(),
            bytes_dense=weights_on_disk(start, is_sparse=False),
            bytes_sparse=weights_on_disk(weights, is_sparse=True),
        )


def _step_to(size: float, before: Tried | None, now: Tried, most: float) -> float:
    """The factor to l1 that leaves `size` weights, if that is a power of l1; at most `most`."""
    if before is None:
        return most
    l1, n_weights = (now.row[key] / before.row[key] for key in ("l1", "n_weights"))
    if l1 <= 1 or n_weights >= 1:
        return min(most, now.row["n_weights"] / size)
    power = -math.log(n_weights) / math.log(l1)
    return min(most, max(LEAST_GROWTH, (now.row["n_weights"] / size) ** (1 / power)))
