"""Counters of a solve whose outer loop is in Python, as :func:`sublearn.trace.watch` reads them."""

from __future__ import annotations

from typing import Any

from sublearn import _core  # type: ignore[attr-defined,unused-ignore]
from sublearn.interruption import check

__all__ = ["Progress"]


class Progress:
    """A monitor of the core for its calls, and figures that the loop around them sets.

    Parameters
    ----------
    counts_calls : bool
        Let `n_done` be what the loop sets, and not what the core counts.
    """

    def __init__(self, counts_calls: bool = False):
        self.monitor: Any = _core.Monitor()
        self.objective = self.gap = 0.0
        self.nnz_primal = self.nnz_dual = self.work = 0
        self._counts_calls = counts_calls
        self.n_calls = 0

    @property
    def n_done(self) -> int:
        """Iterations."""
        return self.n_calls if self._counts_calls else self.monitor.n_done

    @property
    def stop_requested(self) -> bool:
        """Whether to end with what is reached; raises `Abandoned` where that is not wanted."""
        check()
        return bool(self.monitor.stop_requested)

    def request_stop(self) -> None:
        """Stop the loop and what it calls."""
        self.monitor.request_stop()
