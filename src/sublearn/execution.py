"""Who runs independent blocks of work: threads of this process, unless somebody installs another.

Estimators ask :func:`map_blocks` and do not know who answers::

    results = map_blocks(solve_one, problems, n_jobs=4)

A block must not depend on another one, so the answer does not depend on who runs it or when.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol, TypeVar

__all__ = ["BlockExecutor", "Threads", "map_blocks", "use_executor"]

_Block = TypeVar("_Block")
_Result = TypeVar("_Result")


class BlockExecutor(Protocol):
    """What can run blocks."""

    def map(self, function: Callable[[Any], Any], blocks: list[Any], n_jobs: int) -> Iterable[Any]:
        """`function` of each block, in the order of the blocks."""
        ...


class Threads:
    """Threads of this process. Compiled solvers let go of Python's lock, so they run at once."""

    def map(
        self, function: Callable[[_Block], _Result], blocks: list[_Block], n_jobs: int
    ) -> Iterable[_Result]:
        """`function` of each block, up to `n_jobs` of them at a time."""
        n_threads = min(n_jobs, len(blocks))
        if n_threads <= 1:
            return [function(block) for block in blocks]
        with ThreadPoolExecutor(n_threads, "sublearn-blocks") as pool:
            return list(pool.map(function, blocks))


_current: ContextVar[BlockExecutor] = ContextVar("sublearn_executor")


def map_blocks(
    function: Callable[[_Block], _Result], blocks: Iterable[_Block], n_jobs: int = 1
) -> list[_Result]:
    """Results of `function`, in the order of `blocks`.

    Parameters
    ----------
    function : callable
        Called with one block; an exception of it is raised here.
    blocks : iterable
        What it is called with. No call may depend on another.
    n_jobs : int
        How many may run at a time.

    Returns
    -------
    list

    Examples
    --------
    >>> map_blocks(abs, [-1, 2, -3], n_jobs=2)
    [1, 2, 3]
    """
    return list(_current.get(Threads()).map(function, list(blocks), n_jobs))


@contextmanager
def use_executor(executor: BlockExecutor) -> Iterator[None]:
    """Let `executor` run the blocks of all fits inside a ``with`` statement."""
    token = _current.set(executor)
    try:
        yield
    finally:
        _current.reset(token)
