"""What `sublearn.trace.watch` sees of a fit of many blocks: those that are done."""

from __future__ import annotations

import threading
from typing import Any

from sublearn.forecast.block_model import BlockReport
from sublearn.interruption import check

__all__ = ["Progress"]


class Progress:
    """Totals over finished blocks, and the wish to stop."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.stop_requested = False
        self.n_done = 0
        self.objective = 0.0
        self.gap = 0.0
        self.nnz_primal = 0
        self.nnz_dual = 0
        self.work = 0

    def __reduce__(self) -> tuple[Any, ...]:
        """In another process: counters of its own, which nobody looks at."""
        return Progress, ()

    def request_stop(self) -> None:
        """Solvers end at their next step; blocks not begun get a small model."""
        self.stop_requested = True

    def should_stop(self) -> bool:
        """Asked by the solvers between two steps; raises `Abandoned` after Ctrl-C."""
        check()
        return self.stop_requested

    def finish(self, report: BlockReport, n_weights: int) -> None:
        """Count one block."""
        with self._lock:
            self.n_done += 1
            self.objective += report.objective
            self.gap += report.gap
            self.nnz_primal += n_weights
            self.nnz_dual += report.n_support
            self.work += report.n_rows
