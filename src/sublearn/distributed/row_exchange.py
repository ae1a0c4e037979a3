r"""Values and gradients of losses whose rows lie on workers: one exchange serves many solvers.

.. math:: L(x) = \sum_b \sum_{i \in b} s f(\langle x_i, w \rangle + b_0; y_i)

Each block computes its share of value and gradient in one pass over its rows. A round sends the
non-zero coordinates of the points to all blocks and brings one sum back: this is all that LHAC asks
of the data in an outer iteration, its inner loop works on the client with the gradients it has seen
(Tang, "Big Data Optimization in Machine Learning", 2016, section 1.2). What certifies a point
travels with the next one.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from sublearn.distributed.row_blocks import RowBlock, RowBlocks, RowLoss
from sublearn.distributed.row_bounds import (
    Point,
    RowTask,
    as_point,
    dual_rays,
    full,
    n_ray_numbers,
)
from sublearn.distributed.row_coordinates import Coordinates, column_moments
from sublearn.interruption import check

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

__all__ = ["Exchange", "RowObjective", "solve_together"]

#: A wait without end misses Ctrl-C where a library has its own handler of signals: that of polars
#: lets system calls go on.
_POLL_SECONDS = 0.1
_MOST_DOUBT = 10.0  # of what a certificate would be: asking costs another pass over the rows
_ROUNDING = 1e-13  # of objectives; of points that differ by no more the later one is better
_Answer = tuple[float, np.ndarray, np.ndarray]  # value, gradient, dual rays (none: empty)


# --- on the workers ----------------------------------------------------------------------------


def answer(
    block: RowBlock,
    losses: list[RowLoss],
    points: list[Point],
    witnesses: list[Point | None],
    with_moments: bool,
) -> np.ndarray:
    """The share of one block in a round, in one vector.

    For each point its gradient and, behind it, its value; then `dual_rays` of each witness; then,
    if they are asked for, `column_moments`.
    """
    n_features = block.X.shape[1]
    shares = []
    for loss, point in zip(losses, points, strict=True):
        size = n_features + loss.fit_intercept
        share = np.zeros(size + 1)
        if block.X.shape[0]:
            share[size], share[:size] = block.objective(loss).value_and_gradient(full(point, size))
        shares.append(share)
    for loss, witness in zip(losses, witnesses, strict=True):
        if witness is not None:
            shares.append(dual_rays(block, loss, witness))
    if with_moments:
        shares.append(column_moments(block))
    return np.concatenate(shares)


# --- on the client -----------------------------------------------------------------------------


@dataclass(eq=False)
class _Question:
    """What a solver wants to know with the next round, and what it learned."""

    loss: RowLoss
    x: np.ndarray
    witness: np.ndarray | None
    needs_moments: bool
    answer: _Answer | BaseException | None = None


class Exchange:
    """Rounds over all blocks. Several solvers ask, and are answered together.

    A round begins when every solver that is under way has asked: the number of rounds is that of
    the solver that takes most, not the sum. `n_solvers` are under way; each says `leave` when it is
    done.
    """

    def __init__(self, rows: RowBlocks, n_solvers: int = 1):
        self.rows = rows
        self.moments: np.ndarray | None = None  # of the columns, once a round has brought them
        self.history: list[dict[str, float]] = []  # a row for each round
        self._n_active = n_solvers
        self._began = time.perf_counter()
        self._asked: list[_Question] = []
        self._turn = threading.Condition()
        self._stopped: BaseException | None = None

    @property
    def n_rounds(self) -> int:
        """Rounds so far."""
        return len(self.history)

    def ask(
        self,
        loss: RowLoss,
        x: np.ndarray,
        *,
        witness: np.ndarray | None = None,
        needs_moments: bool = False,
    ) -> _Answer:
        """Value and gradient at `x`, and the dual rays of another point, with the next round.

        A round that someone `needs_moments` for brings `moments`, unless they are here already.
        """
        question = _Question(loss, x, witness, needs_moments)
        with self._turn:
            self._asked.append(question)
            self._answer_if_all_asked()
            while question.answer is None:
                self._turn.wait()
        if isinstance(question.answer, BaseException):
            raise question.answer
        return question.answer

    def stop(self, error: BaseException) -> None:
        """There are no more rounds: whoever asks for one gets this error."""
        self._stopped = error

    def leave(self) -> None:
        """One solver less to wait for."""
        with self._turn:
            self._n_active -= 1
            self._answer_if_all_asked()

    def _answer_if_all_asked(self) -> None:
        if not self._asked or len(self._asked) < self._n_active:
            return
        asked, self._asked = self._asked, []
        try:
            self._hand_out(self._sum(asked), asked)
        except BaseException as error:
            for question in asked:
                question.answer = error
        self._turn.notify_all()

    def _sum(self, asked: list[_Question]) -> np.ndarray:
        """One round, counted."""
        if self._stopped is not None:
            raise self._stopped
        losses = [question.loss for question in asked]
        points = [as_point(question.x) for question in asked]
        witnesses = [None if q.witness is None else as_point(q.witness) for q in asked]
        with_moments = self.moments is None and any(q.needs_moments for q in asked)
        total = self.rows.sum_over(answer, losses, points, witnesses, with_moments)
        sent = sum(part.nbytes for point in (*points, *witnesses) for part in point or ())
        last = self.history[-1] if self.history else {"bytes_sent": 0, "bytes_received": 0}
        self.history.append(
            {
                "seconds": time.perf_counter() - self._began,
                "bytes_sent": last["bytes_sent"] + sent * len(self.rows),
                "bytes_received": last["bytes_received"] + total.nbytes * len(self.rows),
            }
        )
        return total

    def _hand_out(self, total: np.ndarray, asked: list[_Question]) -> None:
        n = self.rows.n_features
        sizes = [n + question.loss.fit_intercept + 1 for question in asked]
        sizes += [0 if question.witness is None else n_ray_numbers(n) for question in asked]
        *parts, moments = np.split(total, np.cumsum(sizes))
        if len(moments):
            self.moments = moments
        shares, rays = parts[: len(asked)], parts[len(asked) :]
        for question, share, own in zip(asked, shares, rays, strict=True):
            question.answer = (float(share[-1]), share[:-1], own)


class RowObjective:
    """A loss over rows on workers, with a squared norm, as :func:`sublearn.optim.lhac` takes it.

    A bound on the optimum comes without rounds of its own: when the best point so far looks good
    enough, its dual rays are asked for together with the next point.
    """

    def __init__(self, exchange: Exchange, task: RowTask):
        self.exchange, self.task = exchange, task
        self.coordinates = Coordinates.of_problem(len(task.start))  # what LHAC moves after `begin`
        self.rounds: list[int] = []  # that answered each call
        self._start: tuple[float, np.ndarray] | None = None  # value and gradient
        self._bound = 0.0  # no loss is negative
        self._best = (np.inf, task.start, task.start)  # objective, point, gradient of the loss
        self._witness: tuple[np.ndarray, np.ndarray] | None = None  # point and gradient
        self._hope = np.inf  # for the gap of the best point
        self._doubt = 1.0  # by what the gap of the last witness was larger than hoped

    def begin(self) -> np.ndarray:
        """The round of the start, which also brings the coordinates; where LHAC begins."""
        task, needs_moments = self.task, Coordinates.are_for(self.task)
        value, gradient, _ = self.exchange.ask(task.loss, task.start, needs_moments=needs_moments)
        self._start = (value, gradient)
        if needs_moments and self.exchange.moments is not None:
            n_rows = self.exchange.rows.n_rows
            self.coordinates = Coordinates.of_columns(task, self.exchange.moments, n_rows)
        return self.coordinates.from_x(task.start)

    def value_and_gradient(self, u: np.ndarray) -> tuple[float, np.ndarray]:
        """Of loss and squared norm, by one round; that of the start was in `begin`."""
        x, l2 = self.coordinates.to_x(u), self.task.l2
        value, gradient = self._start or self._ask(x)
        self._start = None
        self.rounds.append(self.exchange.n_rounds)
        self._look_at(x, value, gradient)
        smooth = value + 0.5 * float(l2 @ (x * x))
        return smooth, self.coordinates.gradient(gradient + l2 * x)

    def _ask(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        if self._witness is None:
            return self.exchange.ask(self.task.loss, x)[:2]
        point, gradient_there = self._witness
        value, gradient, rays = self.exchange.ask(self.task.loss, x, witness=point)
        self._take_rays(gradient_there, rays)
        return value, gradient

    def lower_bound(self) -> float:
        """What no value of loss and penalty is below."""
        return self._bound

    def certify(self) -> None:
        """A round for the best point alone, where none followed that could have carried it."""
        if not self.task.is_held:
            _, x, gradient = self._best
            self._take_rays(gradient, self.exchange.ask(self.task.loss, x, witness=x)[2])

    def _look_at(self, x: np.ndarray, value: float, gradient: np.ndarray) -> None:
        objective = value + self.task.penalty(x)
        bound = self.task.plain_bound(x, value, gradient)
        if self.task.is_held:
            self._bound = max(self._bound, bound)
        elif objective <= self._best[0] + _ROUNDING * abs(objective):
            self._hope = objective - bound
            self._best = (objective, x, gradient)
            if self._doubt * self._hope <= self.task.tol * abs(objective):
                self._witness = (x, gradient)

    def _take_rays(self, gradient: np.ndarray, rays: np.ndarray) -> None:
        bound = self.task.bound(gradient, rays)
        self._bound, self._witness = max(self._bound, bound), None
        gap = self._best[0] - bound
        self._doubt = min(max(gap / self._hope, 1.0), _MOST_DOUBT) if self._hope > 0 else 1.0


def solve_together(
    exchange: Exchange, n_solvers: int, solve: Callable[[_Item], _Result], items: Iterable[_Item]
) -> list[_Result]:
    """`solve` of each item, `n_solvers` of them side by side so that they share their rounds."""
    listed = list(items)
    results: dict[int, _Result] = {}
    errors: list[BaseException] = []
    left = iter(range(len(listed)))
    lock = threading.Lock()
    ends = [threading.Event() for _ in range(n_solvers)]

    def work(end: threading.Event) -> None:
        try:
            while not errors:
                with lock:
                    index = next(left, None)
                if index is None:
                    return
                results[index] = solve(listed[index])
        except BaseException as error:
            errors.append(error)
        finally:
            exchange.leave()
            end.set()

    threads = [threading.Thread(target=work, args=(end,), name="sublearn-rows") for end in ends]
    for thread in threads:
        thread.start()
    try:
        for end in ends:  # a `join` that Ctrl-C interrupts takes a running thread for ended
            while not end.wait(_POLL_SECONDS):
                check()
    except BaseException as error:  # Ctrl-C comes to who waits alone
        exchange.stop(error)
        raise
    finally:
        for end, thread in zip(ends, threads, strict=True):
            end.wait()
            thread.join()
    if errors:
        raise errors[0]
    return [results[index] for index in range(len(listed))]
