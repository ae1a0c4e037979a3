"""Who runs independent blocks of work: threads of this process, unless someone installs another.

Estimators ask :func:`map_blocks` and do not know who answers::

    results = map_blocks(solve_one, problems, n_jobs=4)

A block must not depend on another one, so the answer does not depend on who runs it or when. What
an executor may want to know besides is in :class:`Hints`: what the blocks cost, and who is to be
told about results that another process made.

The other way round, several threads may ask one object to change: :func:`one_at_a_time`. A change
that does not come to its end leaves the object as it was: :func:`all_or_nothing`.
"""

from __future__ import annotations

import functools
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, ParamSpec, Protocol, TypeVar

from sublearn.interruption import Work

__all__ = [
    "BlockExecutor",
    "Hints",
    "Threads",
    "all_or_nothing",
    "asked_for",
    "asking_for",
    "map_blocks",
    "n_places_elsewhere",
    "one_at_a_time",
    "use_executor",
]

_Block = TypeVar("_Block")
_Result = TypeVar("_Result")
_Arguments = ParamSpec("_Arguments")


def _keep(result: _Result) -> _Result:
    return result


def _never() -> bool:
    return False


@dataclass(frozen=True)
class Hints:
    """What an executor with other processes needs, and threads do not.

    Parameters
    ----------
    cost : callable or None
        From a block to a number that grows with its time; expensive blocks are then begun first.
    arrived : callable
        Called in this process, in one thread, with each result that another process made, as it
        comes; its answer is kept in place of the result. In another process a function cannot
        count here, and a result may be too large to be kept.
    asks_to_stop : callable
        Whether someone wants an end. Blocks that are not finished then run in this process, where
        the function sees the wish and ends at once.
    """

    cost: Callable[[Any], float] | None = None
    arrived: Callable[[Any], Any] = _keep
    asks_to_stop: Callable[[], bool] = _never


class BlockExecutor(Protocol):
    """What can run blocks."""

    @property
    def n_places(self) -> int:
        """How many blocks run at a time in other processes; 0 if in none."""
        ...

    def map(
        self, function: Callable[[_Block], _Result], blocks: list[_Block], n_jobs: int, hints: Hints
    ) -> Iterable[_Result]:
        """`function` of each block, in the order of the blocks."""
        ...


class Threads:
    """Threads of this process. Compiled solvers let go of Python's lock, so they run at once."""

    n_places = 0

    def map(
        self,
        function: Callable[[_Block], _Result],
        blocks: list[_Block],
        n_jobs: int,
        hints: Hints | None = None,
    ) -> Iterable[_Result]:
        """`function` of each block, up to `n_jobs` of them at a time."""
        work = Work()

        def run(block: _Block) -> _Result:
            with work.under_way():
                return function(block)

        n_threads = min(n_jobs, len(blocks))
        if n_threads <= 1:
            return [run(block) for block in blocks]
        pool = ThreadPoolExecutor(n_threads, "sublearn-blocks")
        try:
            return [done.result() for done in [pool.submit(run, block) for block in blocks]]
        except BaseException:
            work.abandon()
            raise
        finally:
            pool.shutdown(cancel_futures=True)


_HERE = Threads()
_current: ContextVar[BlockExecutor] = ContextVar("sublearn_executor")


def map_blocks(
    function: Callable[[_Block], _Result],
    blocks: Iterable[_Block],
    n_jobs: int = 1,
    *,
    hints: Hints | None = None,
    stay_here: bool = False,
) -> list[_Result]:
    """Results of `function`, in the order of `blocks`.

    Parameters
    ----------
    function : callable
        Called with one block; an exception of it is raised here.
    blocks : iterable
        What it is called with. No call may depend on another.
    n_jobs : int
        How many may run at a time in this process.
    hints : Hints or None
        For executors with other processes.
    stay_here : bool
        Whether blocks of milliseconds are not worth a way to another process.

    Returns
    -------
    list

    Examples
    --------
    >>> map_blocks(abs, [-1, 2, -3], n_jobs=2)
    [1, 2, 3]
    """
    executor = _HERE if stay_here else _current.get(_HERE)
    return list(executor.map(function, list(blocks), n_jobs, hints or Hints()))


def n_places_elsewhere() -> int:
    """How many blocks run at a time in other processes; 0 if all run in this one."""
    return _current.get(_HERE).n_places


@contextmanager
def use_executor(executor: BlockExecutor) -> Iterator[None]:
    """Let `executor` run the blocks of all fits inside a ``with`` statement."""
    token = _current.set(executor)
    try:
        yield
    finally:
        _current.reset(token)


# --- which share of a fit -------------------------------------------------------------------------

_asked: ContextVar[object] = ContextVar("sublearn_asked", default=None)


def asked_for() -> object:
    """Which share of its work a fit here is to do, see `sublearn.parts`; None for all of it."""
    return _asked.get()


@contextmanager
def asking_for(share: object) -> Iterator[None]:
    """Ask the fits inside a ``with`` statement for a share of their work."""
    token = _asked.set(share)
    try:
        yield
    finally:
        _asked.reset(token)


# --- changes of one object -----------------------------------------------------------------------


def all_or_nothing(method: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    """Let a method so marked either end or leave the attributes of its object as they were.

    So Ctrl-C, or a refused argument, leaves an unfitted model unfitted and a fitted one with its
    earlier fit. The method sets attributes and does not change what is inside of them.
    """

    @functools.wraps(method)
    def whole(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result:
        now = vars(args[0])
        before = dict(now)
        try:
            return method(*args, **kwargs)
        except BaseException:
            now.update(before)
            for name in now.keys() - before.keys():
                del now[name]
            raise

    return whole


_turns: weakref.WeakKeyDictionary[object, threading.RLock] = weakref.WeakKeyDictionary()
_making_turns = threading.Lock()


def one_at_a_time(method: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    """Let calls of methods so marked wait for each other, for each object apart.

    The lock belongs to the object but is no attribute of it: copies, pickles and files have none.
    """

    @functools.wraps(method)
    def in_turn(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result:
        with _making_turns:
            turn = _turns.setdefault(args[0], threading.RLock())
        with turn:
            return method(*args, **kwargs)

    return in_turn
