"""Several solves, in turn or at once, seen as one by `sublearn.trace.watch`."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from sublearn import _core  # type: ignore[attr-defined,unused-ignore]
from sublearn.execution import Hints
from sublearn.interruption import check, stopping

__all__ = ["Progress"]


class Progress:
    """Counters over solves: rounds if there is one solve, finished solves if there are several.

    Objective, gap and sizes are those of the solve that began last.
    """

    def __init__(self, n_solves: int, max_iter: int):
        self._arguments = (n_solves, max_iter)
        self.n_total = max_iter if n_solves == 1 else n_solves
        self._counts_rounds = n_solves == 1
        self._lock = threading.Lock()
        self._running: list[Any] = []
        self._rounds: list[Any] = []  # those of `_running` that are one round each
        self._last: Any = _core.Monitor()
        self._n_rounds = 0
        self._n_finished = 0
        self._is_stopped = False

    def __reduce__(self) -> tuple[Any, ...]:
        """In another process: counters of its own, which nobody looks at."""
        return Progress, self._arguments

    def hints(self, cost: Callable[[Any], float] | None = None, n_solves: int = 1) -> Hints:
        """For blocks of so many solves each that may run in another process."""

        def arrived(result: Any) -> Any:
            for _ in range(n_solves):
                self.finish_solve()
            return result

        return Hints(cost, arrived, lambda: self.stop_requested)

    @property
    def stop_requested(self) -> bool:
        """Whether to end with what is reached; raises `Abandoned` where that is not wanted."""
        check()
        return self._is_stopped

    @contextmanager
    def monitor(self, is_one_round: bool = False) -> Iterator[Any]:
        """A monitor for one call of the core, which counts rounds unless it is one."""
        monitor = _core.Monitor()
        with self._lock:
            self._running.append(monitor)
            if is_one_round:
                self._rounds.append(monitor)
            self._last = monitor
            if self._is_stopped:
                monitor.request_stop()
        try:
            with stopping(monitor):
                yield monitor
            check()
        finally:
            with self._lock:
                self._running.remove(monitor)
                self._n_rounds += 1 if is_one_round else monitor.n_done
                if is_one_round:
                    self._rounds.remove(monitor)

    def finish_solve(self) -> None:
        """Count one solve."""
        with self._lock:
            self._n_finished += 1

    def request_stop(self) -> None:
        """Stop what runs, and what begins later."""
        with self._lock:
            self._is_stopped = True
            for monitor in self._running:
                monitor.request_stop()

    @property
    def n_done(self) -> int:
        """Rounds, or solves."""
        if not self._counts_rounds:
            return self._n_finished
        with self._lock:
            counting = [monitor for monitor in self._running if monitor not in self._rounds]
            return self._n_rounds + sum(monitor.n_done for monitor in counting)

    @property
    def objective(self) -> float:
        """Of the last solve."""
        return self._last.objective

    @property
    def gap(self) -> float:
        """Of the last solve."""
        return self._last.gap

    @property
    def nnz_primal(self) -> int:
        """Of the last solve."""
        return self._last.nnz_primal

    @property
    def nnz_dual(self) -> int:
        """Of the last solve."""
        return self._last.nnz_dual

    @property
    def work(self) -> int:
        """Of the last solve."""
        return self._last.work
