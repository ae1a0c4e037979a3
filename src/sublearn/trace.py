"""What every solver returns, and how a running solver is watched and stopped.

A solver runs in the compiled core without Python's lock and keeps counters in a `Monitor`.
:func:`watch` runs it on a thread of its own, turns the counters into :class:`Event` objects about
ten times a second, feeds them to the progress bar and to the user's callback, and makes Ctrl-C
stop the solver before the exception goes on.
"""

from __future__ import annotations

import enum
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import FrameType
from typing import TYPE_CHECKING, Protocol, TypeVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from sublearn import _core
from sublearn.bars import Bar, error_console
from sublearn.interruption import (
    LEAST_OPERATIONS,
    BackgroundCall,
    Work,
    check,
    is_main_thread,
    leave,
    stopping,
)

if TYPE_CHECKING:
    from sublearn.display import TraceDisplay
    from sublearn.display.base import AxesLike

__all__ = ["Callback", "Event", "Solution", "Status", "Trace", "attend", "watch"]

_POLL_SECONDS = 0.1
_PATIENCE_SECONDS = 0.3  # with a job that may be left behind
_Result = TypeVar("_Result")


class Status(enum.Enum):
    """Why a solver stopped; the value is the sentence shown to the user."""

    CONVERGED = "the certificate reached the tolerance"
    MAX_ITER = "the iteration limit was reached before the certificate reached the tolerance"
    TIME_LIMIT = "the time limit was reached before the certificate reached the tolerance"
    SEARCH_WORK = "search_work was spent before the certificate reached the tolerance"
    STOPPED = "the callback asked to stop"
    STALLED = "no step lowers the objective any more, as far as rounding lets one see"

    @classmethod
    def of(cls, end: _core.Status) -> Status:
        """Translate how a solver of the core ended.

        >>> Status.of(_core.Status.stopped).name
        'STOPPED'
        """
        return cls[end.name.upper()]

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True)
class Event:
    """What a callback and the progress bar see while a solver runs.

    `certificate` and `objective` speak of the finished blocks only, `None` before the first one.
    """

    n_done: int
    n_total: int
    seconds: float
    seconds_left: float | None
    objective: float | None
    certificate: float | None
    nnz_primal: int
    nnz_dual: int
    work: int


#: Called with an event about ten times a second; a true return value stops the fit.
Callback = Callable[[Event], object]


class Trace:
    """How a fit went, stored by column; each solver says what a row is.

    >>> trace = Trace({"seconds": [0.1, 0.2], "objective": [3.0, 2.0]})
    >>> len(trace), trace.columns
    (2, ('seconds', 'objective'))
    >>> trace["objective"]
    array([3., 2.])
    """

    def __init__(self, columns: Mapping[str, Iterable[float]]):
        self._columns = {name: np.asarray(values) for name, values in columns.items()}
        lengths = {len(values) for values in self._columns.values()}
        if len(lengths) > 1:
            raise ValueError(f"Trace.columns must have one length, got {sorted(lengths)}")

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(self._columns)

    def __len__(self) -> int:
        return len(next(iter(self._columns.values()), ()))

    def __getitem__(self, name: str) -> np.ndarray:
        if name not in self._columns:
            raise KeyError(f"no column {name!r}; the trace has {', '.join(self.columns)}")
        return self._columns[name]

    def __eq__(self, other: object) -> bool:
        """Equal columns; what was not measured (NaN) equals itself."""
        if not isinstance(other, Trace):
            return NotImplemented
        return self.columns == other.columns and all(
            np.array_equal(self[name], other[name], equal_nan=self[name].dtype.kind == "f")
            for name in self.columns
        )

    def __repr__(self) -> str:
        return f"Trace({len(self)} rows: {', '.join(self.columns)})"

    def to_lists(self) -> dict[str, list[float]]:
        """The columns as lists, as `Trace` takes them and JSON can hold."""
        return {name: values.tolist() for name, values in self._columns.items()}

    def rows(self) -> list[dict[str, float]]:
        """The rows as dictionaries, for printing or for a data frame."""
        return [
            {name: values[i].item() for name, values in self._columns.items()}
            for i in range(len(self))
        ]

    def plot(
        self, ax: AxesLike = None, *, x: str | None = None, y: Sequence[str] | None = None
    ) -> TraceDisplay:
        """Draw columns against time; needs matplotlib.

        `TraceDisplay.from_estimator` draws the tolerance of the estimator as well.

        Parameters
        ----------
        ax : matplotlib axes, or a sequence of one for each column, optional
            Where to draw.
        x : str, optional
            Column along which is drawn; by default `seconds`, else the number of the row.
        y : sequence of str, optional
            Columns to draw; by default the two that say most, objective and certificate first.

        Returns
        -------
        TraceDisplay
        """
        from sublearn.display import TraceDisplay

        return TraceDisplay(self._columns, x=x, y=y).called_by("Trace.plot").plot(ax)


@dataclass(frozen=True)
class Solution:
    """A solver's answer apart from the model itself.

    Parameters
    ----------
    status : Status
        Why the solver stopped.
    objective : float
        Value of the objective at the point found.
    certificate : float
        Upper bound on how far that is from the optimum, in the unit of `tol`; infinite if none is
        known.
    n_iter : int
        Iterations (each solver says of what).
    trace : Trace
        How it went.
    """

    status: Status
    objective: float
    certificate: float
    n_iter: int
    trace: Trace = field(repr=False)

    def __post_init__(self) -> None:
        """Refuse figures that say nothing: infinite is an honest certificate, NaN is not."""
        if np.isnan(self.certificate) or (
            np.isfinite(self.certificate) and not np.isfinite(self.objective)
        ):
            raise FloatingPointError(
                f"the objective must be finite, got {self.objective} with the certificate "
                f"{self.certificate}: numbers in the data or the parameters are too large, or "
                "another thread has changed the data during the call"
            )

    def warn_unless_converged(self, estimator: object, tol: float) -> None:
        """Issue a `ConvergenceWarning` that says what was reached."""
        if self.status is not Status.CONVERGED:
            warnings.warn(
                f"{type(estimator).__name__}: {self.status}; reached certificate "
                f"{self.certificate:.3g}, asked for tol={tol:g} (n_iter={self.n_iter})",
                ConvergenceWarning,
                stacklevel=frames_of_ours() + 1,
            )


def frames_of_ours() -> int:
    """Calls within the package that led to the caller, itself included; decorators make some."""
    frame: FrameType | None = sys._getframe(1)
    n_frames = 0
    while frame is not None and frame.f_globals.get("__name__", "").startswith("sublearn."):
        frame, n_frames = frame.f_back, n_frames + 1
    return n_frames


class _Monitor(Protocol):
    @property
    def n_done(self) -> int: ...
    @property
    def objective(self) -> float: ...
    @property
    def gap(self) -> float: ...
    @property
    def nnz_primal(self) -> int: ...
    @property
    def nnz_dual(self) -> int: ...
    @property
    def work(self) -> int: ...
    def request_stop(self) -> None: ...


def watch(
    job: Callable[[], _Result],
    monitor: _Monitor,
    *,
    n_total: int = 0,
    callback: Callback | None = None,
    verbose: int = 0,
    title: str = "",
    may_be_left: bool = False,
) -> _Result:
    """Run `job` while keeping the user informed; return its result.

    `job` must release Python's lock and stop soon after ``monitor.request_stop()``, or ask
    :func:`sublearn.interruption.check` often. An exception of the job, of the callback, or Ctrl-C
    is raised here after the job has ended.

    A job that `may_be_left` changes nothing that anyone else sees: all it does is to return a
    result. If it is inside of a long call of BLAS or LAPACK when Ctrl-C comes, it is left behind
    to end when that call does, and the exception is raised at once.
    """
    if callback is None and not verbose and not is_main_thread():
        with stopping(monitor):  # no one listens, and signals only ever reach the main thread
            return job()
    clock = _Clock(monitor, n_total)
    bar = _ProgressBar(title, n_total) if verbose else None
    work = Work()
    with work.under_way(), stopping(monitor):
        runner = BackgroundCall(job, "sublearn-solver", may_be_left)
        try:
            runner.start()
            while not runner.wait(_POLL_SECONDS):
                check()
                _publish(clock.event(), bar, callback, monitor)
            _publish(clock.event(), bar, callback, monitor)
        except BaseException:
            work.abandon()
            if may_be_left:
                leave(runner)
            raise
        finally:
            runner.join(_PATIENCE_SECONDS if may_be_left else None)
            if bar is not None:
                bar.close()
    return runner.result()


def attend(call: Callable[[_core.Monitor], _Result], n_operations: float) -> _Result:
    """``call(monitor)`` of the core, which Ctrl-C ends; small ones are not worth a thread."""
    monitor = _core.Monitor()
    if n_operations < LEAST_OPERATIONS:
        return call(monitor)
    return watch(lambda: call(monitor), monitor)


def _publish(
    event: Event, bar: _ProgressBar | None, callback: Callback | None, monitor: _Monitor
) -> None:
    if bar is not None:
        bar.show(event)
    if callback is not None and callback(event):
        monitor.request_stop()


class _Clock:
    """Turns a monitor's counters into events with times."""

    def __init__(self, monitor: _Monitor, n_total: int):
        self._monitor = monitor
        self._n_total = n_total
        self._start = time.perf_counter()

    def event(self) -> Event:
        monitor, seconds = self._monitor, time.perf_counter() - self._start
        n_done, objective = monitor.n_done, monitor.objective
        return Event(
            n_done=n_done,
            n_total=self._n_total,
            seconds=seconds,
            seconds_left=seconds * (self._n_total - n_done) / n_done if n_done else None,
            objective=objective if n_done else None,
            certificate=monitor.gap / abs(objective) if n_done and objective else None,
            nnz_primal=monitor.nnz_primal,
            nnz_dual=monitor.nnz_dual,
            work=monitor.work,
        )


class _ProgressBar:
    """The bar of a fit, on one line of 80 columns or of 120 and more."""

    _WIDE = 120

    def __init__(self, title: str, n_total: int):
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn

        self._is_wide = error_console().width >= self._WIDE
        columns = [
            TextColumn("{task.description}"),
            BarColumn(bar_width=20 if self._is_wide else 8),
            MofNCompleteColumn(),
            TextColumn("{task.fields[figures]}"),
            TimeRemainingColumn(compact=True, elapsed_when_finished=True),
        ]
        self._bar = Bar(columns, title, n_total, figures="")

    def show(self, event: Event) -> None:
        self._bar.show(event.n_done, figures=self._figures(event))

    def _figures(self, event: Event) -> str:
        if event.objective is None:
            return ""
        gap = 0.0 if event.certificate is None else event.certificate
        has_duals = event.nnz_dual > 0  # a solver without them leaves their number at 0
        if self._is_wide:
            duals = f"  duals {event.nnz_dual:,}" if has_duals else ""
            return (
                f"objective {event.objective:.4g}  gap {gap:.1e}  "
                f"weights {event.nnz_primal:,}{duals}"
            )
        duals = f" duals {_in_short(event.nnz_dual)}" if has_duals else ""
        return f"{event.objective:.3g} gap {gap:.0e} w {_in_short(event.nnz_primal)}{duals}"

    def close(self) -> None:
        self._bar.close()


def _in_short(count: int) -> str:
    """A count in at most four characters.

    >>> [_in_short(n) for n in (7, 1_234, 999_999, 1_234_567, 56_000_000)]
    ['7', '1.2k', '1.0M', '1.2M', '56M']
    """
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if count >= 0.9995 * size:
            scaled = count / size
            return f"{scaled:.0f}{letter}" if scaled >= 9.95 else f"{scaled:.1f}{letter}"
    return str(count)
