"""What :func:`sublearn.trace.watch` reads of a fit, whoever counts."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from sublearn import _core
from sublearn.execution import Hints
from sublearn.interruption import check, stopping

__all__ = ["Progress"]

_Result = TypeVar("_Result")


def _figure(name: str) -> property:
    def read(progress: Progress) -> float:
        told = progress._told
        return told.get(name, 0) if told else getattr(progress._last, name)

    return property(read, doc="As told, or of the call that began last.")


class Progress:
    """Counters of a fit, and the wish to stop it.

    Calls of the core count rounds and have figures of their own: one after another with
    :attr:`core`, several at once each with a :meth:`monitor`. A loop in Python around them tells
    its own figures, and what it has done so far, which then stand in place of theirs.

    Parameters
    ----------
    n_total : int, default=0
        How much there is to do.
    n_done : int or None, default=None
        What is done before the start, counted by the loop; None counts the rounds of calls.
    **figures : float
        `objective`, `gap`, `nnz_primal`, `nnz_dual` and `work` before the start.
    """

    def __init__(self, n_total: int = 0, *, n_done: int | None = None, **figures: float):
        self.n_total = n_total
        self.core = _core.Monitor()
        self._lock = threading.Lock()
        self._running: list[_core.Monitor] = []
        self._last = self.core
        self._n_rounds = 0  # of monitors that ended
        self._n_told = n_done
        self._told = figures

    def __reduce__(self) -> tuple[type[Progress], tuple[()]]:
        """In another process: counters of its own, which are not looked at."""
        return Progress, ()

    @classmethod
    def of_solves(cls, n_solves: int, max_iter: int) -> Progress:
        """Count rounds if there is one solve, finished solves if there are several."""
        return cls(max_iter) if n_solves == 1 else cls(n_solves, n_done=0)

    objective = _figure("objective")
    gap = _figure("gap")
    nnz_primal = _figure("nnz_primal")
    nnz_dual = _figure("nnz_dual")
    work = _figure("work")

    @property
    def n_done(self) -> int:
        """As told, or the rounds of all calls."""
        if self._n_told is not None:
            return self._n_told
        with self._lock:
            return self._n_rounds + sum(one.n_done for one in (self.core, *self._running))

    # --- a loop in Python --------------------------------------------------------------------

    def tell(self, n_done: int | None = None, **figures: float) -> None:
        """Set figures, and what is done."""
        with self._lock:
            self._n_told = self._n_told if n_done is None else n_done
            self._told = self._told | figures

    def add(self, n_done: int = 0, **figures: float) -> None:
        """Add to figures, and to what is done."""
        with self._lock:
            if n_done:
                self._n_told = (self._n_told or 0) + n_done
            self._told = self._told | {
                name: self._told.get(name, 0) + more for name, more in figures.items()
            }

    def finish_solve(self) -> None:
        """Count one solve, if solves are what is counted; those beyond the plan are not."""
        if self._n_told is not None and self._n_told < self.n_total:
            self.add(n_done=1)

    # --- calls of the core -------------------------------------------------------------------

    @contextmanager
    def monitor(self) -> Iterator[_core.Monitor]:
        """A monitor for one call of the core."""
        monitor = _core.Monitor()
        with self._lock:
            self._running.append(monitor)
            self._last = monitor
            if self.core.stop_requested:
                monitor.request_stop()
        try:
            with stopping(monitor):
                yield monitor
            check()
        finally:
            with self._lock:
                self._running.remove(monitor)
                self._n_rounds += monitor.n_done

    def hints(self, cost: Callable[[Any], float] | None = None, n_solves: int = 1) -> Hints:
        """For blocks of so many solves each that may run in another process."""

        def arrived(result: _Result) -> _Result:
            for _ in range(n_solves):
                self.finish_solve()
            return result

        return Hints(cost, arrived, lambda: self.stop_requested)

    # --- the wish to stop --------------------------------------------------------------------

    @property
    def stop_requested(self) -> bool:
        """Whether to end with what is reached; raises `Abandoned` where that is not wanted."""
        check()
        return bool(self.core.stop_requested)

    def request_stop(self) -> None:
        """Stop what runs, and what begins later."""
        with self._lock:
            self.core.request_stop()
            for monitor in self._running:
                monitor.request_stop()
