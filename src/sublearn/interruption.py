"""How Ctrl-C reaches work on other threads.

A signal reaches the main thread only. The work it waits for runs elsewhere and asks, between two
pieces that each take a fraction of a second, whether anyone still wants the result::

    for piece in pieces:
        check()  # raises `Abandoned` after Ctrl-C; costs a fraction of a microsecond
        ...

A callback that returns true, or a time limit, wants the result reached so far: that wish travels
through the monitor of a solver. Ctrl-C wants none, so it ends whatever is under way.

- :class:`Work` is what a thread waits for: :func:`sublearn.trace.watch` and
  :func:`sublearn.execution.map_blocks` make one each, inside of each other or not.
- :func:`aside` is for a single call of a library that takes seconds and cannot be cut up.
"""

from __future__ import annotations

import atexit
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from typing import Any, Generic, Protocol, TypeVar

__all__ = [
    "LEAST_OPERATIONS",
    "Abandoned",
    "BackgroundCall",
    "Work",
    "aside",
    "check",
    "is_main_thread",
    "leave",
    "stopping",
]

_POLL_SECONDS = 0.05
_EXIT_SECONDS = 10.0
#: Of a call that is worth a thread, which costs a tenth of a millisecond.
LEAST_OPERATIONS = 1e7
_Result = TypeVar("_Result")


class Abandoned(BaseException):
    """Raised inside of work whose result is not wanted any more; ends at who waits for it."""


class _Stoppable(Protocol):
    def request_stop(self) -> None: ...


class Work:
    """Work that a thread waits for, as those see it who do it."""

    def __init__(self) -> None:
        self._parent = _current.get()
        self._lock = threading.Lock()
        self._monitors: list[_Stoppable] = []
        self._is_abandoned = False

    @property
    def is_abandoned(self) -> bool:
        """Whether this work, or work that it is a part of, is not wanted any more."""
        return self._is_abandoned or (self._parent is not None and self._parent.is_abandoned)

    def abandon(self) -> None:
        """Stop the solvers that run; `check` raises from now on."""
        with self._lock:
            self._is_abandoned = True
            for monitor in self._monitors:
                monitor.request_stop()

    @contextmanager
    def under_way(self) -> Iterator[None]:
        """Let `check` on this thread ask for this work."""
        token = _current.set(self)
        try:
            check()
            yield
        finally:
            _current.reset(token)

    @contextmanager
    def stopping(self, monitor: _Stoppable) -> Iterator[None]:
        """Let `abandon`, of this work or of what it is a part of, stop a solver."""
        with self._lock:
            self._monitors.append(monitor)
            is_late = self._is_abandoned
        if is_late:
            monitor.request_stop()
        try:
            if self._parent is None:
                yield
            else:
                with self._parent.stopping(monitor):
                    yield
        finally:
            with self._lock:
                self._monitors.remove(monitor)


_current: ContextVar[Work | None] = ContextVar("sublearn_work", default=None)


def check() -> None:
    """Raise `Abandoned` if no one waits any more for what this thread does."""
    work = _current.get()
    if work is not None and work.is_abandoned:
        raise Abandoned


@contextmanager
def stopping(monitor: _Stoppable) -> Iterator[None]:
    """Let a solver that runs on this thread end when its result is not wanted any more."""
    work = _current.get()
    if work is None:
        yield
    else:
        with work.stopping(monitor):
            yield


def is_main_thread() -> bool:
    """Whether signals reach this thread."""
    return threading.current_thread() is threading.main_thread()


def aside(function: Callable[..., _Result], *args: object, n_operations: float) -> _Result:
    """`function(*args)`, one call of a library that may take seconds.

    It runs on a thread of its own while this one waits, unless it takes too few operations to be
    worth that. After Ctrl-C the call is left alone: it goes on in the background until it ends,
    which nothing can hasten, and its result is dropped. So it must change nothing that anyone
    else sees: factorise a copy, return a new array.
    """
    check()
    is_reachable = _current.get() is not None or is_main_thread()
    if n_operations < LEAST_OPERATIONS or not is_reachable:
        return function(*args)
    call = BackgroundCall(lambda: function(*args), "sublearn-aside", is_daemon=True)
    call.start()
    while not call.wait(_POLL_SECONDS):
        check()
    return call.result()


class BackgroundCall(Generic[_Result]):
    """A call on a thread of its own, its result or exception kept for the waiting thread."""

    def __init__(self, function: Callable[[], _Result], name: str, is_daemon: bool = False):
        self._function = function
        self._value: _Result
        self._error: BaseException | None = None
        self._ended = threading.Event()
        # The context says who runs blocks, and which work this is a part of.
        self._thread = threading.Thread(
            target=copy_context().run, args=(self._run,), name=name, daemon=is_daemon
        )

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def _run(self) -> None:
        try:
            self._value = self._function()
        except BaseException as error:
            self._error = error
        finally:
            self._ended.set()

    def wait(self, seconds: float) -> bool:
        """Whether it has ended within so many seconds."""
        return self._ended.wait(seconds)

    def join(self, seconds: float | None = None) -> None:
        """Wait for the end of what was started, so long at most."""
        if self._thread.ident is not None:
            self._thread.join(seconds)

    def result(self) -> _Result:
        """What the call returned; what it raised is raised."""
        if self._error is not None:
            raise self._error
        return self._value


_left: weakref.WeakSet[BackgroundCall[Any]] = weakref.WeakSet()


def leave(call: BackgroundCall[Any]) -> None:
    """Let a call of the core that was abandoned end by itself, before the interpreter does."""
    _left.add(call)


@atexit.register
def _await_what_was_left() -> None:
    """Wait, since compiled code that comes back to an interpreter that is gone ends in an abort."""
    end = time.monotonic() + _EXIT_SECONDS
    for call in list(_left):
        call.join(max(0.0, end - time.monotonic()))
