r"""Values and gradients of losses whose rows lie on workers: one exchange serves many solvers.

.. math:: L(x) = \sum_b \sum_{i \in b} s f(\langle x_i, w \rangle + b_0; y_i)

Each block computes its share of value and gradient in one pass over its rows. A round sends the
non-zero coordinates of the points to all blocks and brings one sum back: this is all that LHAC asks
of the data in an outer iteration, its inner loop works on the client with the gradients it has seen
(Tang, "Big Data Optimization in Machine Learning", 2016, section 1.2).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from sublearn.distributed.row_blocks import RowBlock, RowBlocks, RowLoss
from sublearn.optim.row_losses import Huber, Logistic, Loss, Squared

__all__ = ["Exchange", "RowObjective", "conjugates", "dual_sides", "solve_together"]

_LOSSES: dict[str, type[Loss]] = {"logistic": Logistic, "squared": Squared, "huber": Huber}
_Point = tuple[np.ndarray, np.ndarray]  # non-zero coordinates and their values


def _point(x: np.ndarray) -> _Point:
    at = np.flatnonzero(x)
    return at.astype(np.int32), x[at]


def _full(point: _Point, size: int) -> np.ndarray:
    x = np.zeros(size)
    x[point[0]] = point[1]
    return x


# --- on the workers ----------------------------------------------------------------------------


def values_and_gradients(
    block: RowBlock, losses: list[RowLoss], points: list[_Point]
) -> np.ndarray:
    """For each point its gradient and, behind it, its value: the share of one block."""
    size = block.X.shape[1] + losses[0].fit_intercept
    shares = np.zeros((len(points), size + 1))
    if block.X.shape[0]:
        for share, loss, point in zip(shares, losses, points, strict=True):
            share[size], share[:size] = block.objective(loss).value_and_gradient(_full(point, size))
    return shares


def _slopes(block: RowBlock, loss: RowLoss, point: _Point) -> tuple[np.ndarray, np.ndarray]:
    """Slopes of the losses of the rows, and the targets."""
    x = _full(point, block.X.shape[1] + loss.fit_intercept)
    w, intercept = (x[:-1], x[-1]) if loss.fit_intercept else (x, 0.0)
    at = np.flatnonzero(w)
    z = np.asarray(block.X[:, at].astype(np.float64) @ w[at]).ravel() + intercept
    y = block.targets(loss)
    return _LOSSES[loss.name](loss.parameter).slope(z, y), y


def _parts(loss: RowLoss, slopes: np.ndarray) -> list[np.ndarray]:
    """Two vectors whose combination makes the slopes add up to 0."""
    if loss.positive is None:
        return [slopes, np.ones_like(slopes)]
    return [np.minimum(slopes, 0.0), np.maximum(slopes, 0.0)]


def dual_sides(block: RowBlock, loss: RowLoss, point: _Point) -> np.ndarray:
    """X' and the sum of each of two vectors that dual points are made of."""
    slopes, _ = _slopes(block, loss, point)
    parts = _parts(loss, slopes)
    return np.array([np.append(np.asarray(block.X.T @ part), part.sum()) for part in parts])


def conjugates(
    block: RowBlock, loss: RowLoss, point: _Point, scales: tuple[float, float]
) -> np.ndarray:
    """Sum of f*(a) over rows, where a combines the two vectors of `dual_sides`."""
    slopes, y = _slopes(block, loss, point)
    first, second = _parts(loss, slopes)
    a = scales[0] * first + scales[1] * second
    return np.array([float(_LOSSES[loss.name](loss.parameter).conjugate(a, y).sum())])


# --- on the client -----------------------------------------------------------------------------


class Exchange:
    """Rounds over all blocks. Several solvers ask, and are answered together.

    A round begins when every solver that is under way has asked: the number of rounds is that of
    the solver that takes most, not the sum.

    Parameters
    ----------
    rows : RowBlocks
        The data.
    n_solvers : int
        How many are under way; each says `leave` when it is done.
    """

    def __init__(self, rows: RowBlocks, n_solvers: int = 1):
        self.rows = rows
        self.history: list[dict[str, float]] = []  # a row for each round
        self._n_active = n_solvers
        self._began = time.perf_counter()
        self._asked: list[tuple[RowLoss, np.ndarray, list[Any]]] = []
        self._turn = threading.Condition()
        self._stopped: BaseException | None = None

    @property
    def n_rounds(self) -> int:
        """Rounds so far."""
        return len(self.history)

    def ask(self, loss: RowLoss, x: np.ndarray) -> tuple[float, np.ndarray]:
        """Value and gradient at `x`, with the next round."""
        answer: list[Any] = []
        with self._turn:
            self._asked.append((loss, x, answer))
            self._answer_if_all_asked()
            while not answer:
                self._turn.wait()
        if isinstance(answer[0], BaseException):
            raise answer[0]
        share: np.ndarray = answer[0]
        return float(share[-1]), share[:-1]

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
            losses = [loss for loss, _, _ in asked]
            points = [_point(x) for _, x, _ in asked]
            total = self.sum_over(values_and_gradients, len(asked), losses, points)
            answers: list[Any] = list(total)
        except BaseException as error:
            answers = [error] * len(asked)
        for (_, _, place), answer in zip(asked, answers, strict=True):
            place.append(answer)
        self._turn.notify_all()

    def sum_over(self, function: Callable[..., np.ndarray], n_asked: int, *rest: Any) -> np.ndarray:
        """One round, counted."""
        if self._stopped is not None:
            raise self._stopped
        total = self.rows.sum_over(function, *rest)
        sent = sum(_n_bytes(value) for value in rest) * len(self.rows)
        last = self.history[-1] if self.history else {"bytes_sent": 0, "bytes_received": 0}
        self.history.append(
            {
                "seconds": time.perf_counter() - self._began,
                "n_asked": n_asked,
                "bytes_sent": last["bytes_sent"] + sent,
                "bytes_received": last["bytes_received"] + total.nbytes * len(self.rows),
            }
        )
        return total


def _n_bytes(value: Any) -> int:
    """Of the arrays in what is sent; names and numbers beside them are not counted."""
    if isinstance(value, np.ndarray):
        return value.nbytes
    return sum(_n_bytes(part) for part in value) if isinstance(value, (list, tuple)) else 0


class RowObjective:
    """A loss over rows on workers, with a squared norm, as :func:`sublearn.optim.lhac` takes it.

    Parameters
    ----------
    exchange : Exchange
        Who brings sums.
    loss : RowLoss
        Of the rows.
    l2 : ndarray
        Weight of the square of each coordinate.
    """

    def __init__(self, exchange: Exchange, loss: RowLoss, l2: np.ndarray):
        self.exchange, self.loss, self.l2 = exchange, loss, l2
        self._known: tuple[np.ndarray, float, np.ndarray] | None = None
        self.rounds: list[int] = []  # the round that answered each call

    def value_and_gradient(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """Of loss and squared norm; no round for a point that was asked for last."""
        value, gradient = self.of_rows(x)
        self.rounds.append(self.exchange.n_rounds)
        return value + 0.5 * float(self.l2 @ (x * x)), gradient + self.l2 * x

    def of_rows(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """Of the loss alone."""
        if self._known is None or not np.array_equal(self._known[0], x):
            value, gradient = self.exchange.ask(self.loss, x)
            self._known = (x.copy(), value, gradient)
        return self._known[1], self._known[2]


def solve_together(
    exchange: Exchange, n_solvers: int, solve: Callable[[Any], Any], items: Iterable[Any]
) -> list[Any]:
    """`solve` of each item, `n_solvers` of them side by side so that they share their rounds."""
    listed = list(items)
    results: list[Any] = [None] * len(listed)
    errors: list[BaseException] = []
    left = iter(range(len(listed)))
    lock = threading.Lock()

    def work() -> None:
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

    threads = [threading.Thread(target=work, name="sublearn-rows") for _ in range(n_solvers)]
    for thread in threads:
        thread.start()
    try:
        for thread in threads:
            thread.join()
    except BaseException as error:  # Ctrl-C comes to this thread alone
        exchange.stop(error)
        for thread in threads:
            thread.join()
        raise
    if errors:
        raise errors[0]
    return results
