"""What executors with other processes share: how a worker runs a block, and what a client does
about blocks that come back, fail, or are late.

An adapter (`on_dask.py`, `on_ray.py`) knows how to submit a block to its scheduler and how to ask
for what came of it. What that means is decided here, so that all of them behave alike.
"""

from __future__ import annotations

import statistics
import threading
import time
import warnings
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from typing import Any, Generic, NamedTuple, TypeVar

from threadpoolctl import threadpool_limits

import sublearn
from sublearn.errors import ClusterError, ParameterError
from sublearn.execution import Hints, Threads
from sublearn.validation.values import is_int64, show

__all__ = [
    "GO_ON",
    "POLL_SECONDS",
    "Answer",
    "BlockRun",
    "Functions",
    "TaskRecord",
    "as_retries",
    "refuse_other_version",
    "run_blocks",
    "timed",
]

GO_ON = (
    "A fit with model_path has kept what it finished: start the cluster and the same fit again, "
    "and it goes on from there"
)
POLL_SECONDS = 0.1
_LATE = 3.0  # a block is late after so many median times
_LEAST_LATE_SECONDS = 2.0
_PATIENCE_SECONDS = 10.0  # without any worker, before a word is said
_MOST_FUNCTIONS = 4  # that a worker holds unpickled, with the arrays they have mapped
_Block = TypeVar("_Block")
_Result = TypeVar("_Result")
_Handle = TypeVar("_Handle", bound=Hashable)


def as_retries(retries: object, who: str) -> int:
    """`retries` of the function `who`, if it is a number of times."""
    if not is_int64(retries) or retries < 0:
        raise ParameterError(
            f"{who}: retries must be an integer that is not negative, got {show(retries)}"
        )
    return int(retries)


# --- on a worker -------------------------------------------------------------------------------


class TaskRecord(NamedTuple):
    """Who ran a block, when (on the clock of the day), and for how long."""

    worker: str
    began: float
    seconds: float


class Answer(NamedTuple):
    """What came of a call: a result and its record, or the machine that lacks a file."""

    result: object
    record: TaskRecord
    lacking_host: str | None = None


class Functions:
    """Functions of a worker, unpickled once, however many blocks and threads ask."""

    def __init__(self) -> None:
        self._known: OrderedDict[Hashable, Callable[..., object]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable, load: Callable[[], Any]) -> Callable[..., object]:
        """The function of this key; `load` makes it where it is not known."""
        with self._lock:
            if key not in self._known:
                self._known[key] = load()
                while len(self._known) > _MOST_FUNCTIONS:
                    self._known.popitem(last=False)
            self._known.move_to_end(key)
            return self._known[key]

    def forget(self, is_over: Callable[[Any], bool]) -> None:
        """Let go of functions by their keys."""
        with self._lock:
            for key in [key for key in self._known if is_over(key)]:
                del self._known[key]


def refuse_other_version(version: str, worker: str) -> None:
    """Raise on a worker whose library is not that of the client, of this version."""
    if version != sublearn.__version__:
        raise ClusterError(
            f"all processes must have the same version of sublearn, got {version} in the client "
            f"and {sublearn.__version__} in the worker {worker}"
        )


def timed(function: Callable[[_Block], object], block: _Block, worker: str) -> Answer:
    """Call the function with the block; its exceptions are the task's."""
    _keep_to_one_thread()
    began, clock = time.time(), time.perf_counter()
    result = function(block)
    return Answer(result, TaskRecord(worker, began, time.perf_counter() - clock))


_has_one_thread = False


def _keep_to_one_thread() -> None:
    """A thread of a worker is one core; threads of BLAS would also change the rounding."""
    global _has_one_thread
    if not _has_one_thread:
        threadpool_limits(1, user_api="blas")
        _has_one_thread = True


# --- on the client -----------------------------------------------------------------------------


def run_blocks(
    run: BlockRun[Any],
    function: Callable[[_Block], _Result],
    blocks: list[_Block],
    n_jobs: int,
) -> list[_Result]:
    """`function` of each block by a run that has them; what a wish to stop left out, here."""
    try:
        run.begin(_order(blocks, run.hints))
        done = run.finish()
    finally:
        run.cancel(list(run.pending))
    rest = [i for i in range(len(blocks)) if i not in done]
    done.update(zip(rest, Threads().map(function, [blocks[i] for i in rest], n_jobs),
                    strict=True))  # fmt: skip
    return [done[i] for i in range(len(blocks))]


def _order(blocks: list[_Block], hints: Hints) -> list[int]:
    """Expensive blocks first: the last to end are then short."""
    if hints.cost is None:
        return list(range(len(blocks)))
    costs = [hints.cost(block) for block in blocks]
    return sorted(range(len(blocks)), key=lambda i: -costs[i])


class BlockRun(ABC, Generic[_Handle]):
    """One call of `map`: blocks under way by their handles, and what has come back.

    An adapter says how blocks are submitted and asked for. No result depends on who made it, so
    any block may run again, elsewhere, or twice: the first answer counts.
    """

    def __init__(self, n_blocks: int, hints: Hints, retries: int, records: list[TaskRecord]):
        self.n_blocks, self.hints, self.retries = n_blocks, hints, retries
        self.records = records
        self.done: dict[int, Any] = {}
        self.pending: dict[_Handle, int] = {}
        self.n_tries = [0] * n_blocks
        self.has_copy: set[int] = set()
        self._seconds: list[float] = []
        self._last_news = time.monotonic()

    # What a scheduler is asked.

    @abstractmethod
    def submit(self, index: int) -> None:
        """Have a block run once more, before those that wait, and put its handle in `pending`."""

    @abstractmethod
    def next_ready(self) -> list[_Handle]:
        """What has ended; waits `POLL_SECONDS` for the first."""

    @abstractmethod
    def answers(self, handles: list[_Handle]) -> Iterable[tuple[_Handle, Answer | None]]:
        """What they came to; None where it was lost and is to run again."""

    @abstractmethod
    def refuse_if_gone(self) -> None:
        """Raise if the scheduler cannot be reached."""

    @abstractmethod
    def n_workers(self) -> int:
        """How many there are."""

    @abstractmethod
    def submit_copies(self) -> None:
        """Have blocks of silent workers run on others as well; they are then in `has_copy`."""

    @abstractmethod
    def forget(self, handles: list[_Handle]) -> None:
        """Let the scheduler give up on blocks."""

    def begin(self, order: list[int]) -> None:
        """Submit all blocks."""
        for index in order:
            self.submit(index)

    # What the answers mean.

    def finish(self) -> dict[int, Any]:
        """Wait for all blocks; those that are missing were given up after a wish to stop."""
        while len(self.done) < self.n_blocks and not self.hints.asks_to_stop():
            handles = self.next_ready()
            if not handles:
                self._look_around()
            for handle, answer in self.answers(handles):
                index = self.pending.pop(handle, None)  # None: cancelled by ourselves
                if index is not None and index not in self.done:
                    self.take(index, answer)
        return self.done

    def take(self, index: int, answer: Answer | None) -> None:
        """Count an answer; submit the block again where there is none."""
        if answer is None:
            self.submit(index)
            return
        self.done[index] = self.hints.arrived(answer.result)
        if index in self.has_copy:
            self.cancel([handle for handle, i in self.pending.items() if i == index])
        self._seconds.append(answer.record.seconds)
        self._last_news = time.monotonic()
        self.records.append(answer.record)

    def judge(self, index: int, error: BaseException) -> None:
        """Raise the error of a block, unless another try, maybe elsewhere, may do better."""
        if not isinstance(error, (OSError, MemoryError)):
            raise error
        self.count_try(index, f"its last error was {error!r}", error)

    def count_try(self, index: int, why: str, error: BaseException | None = None) -> None:
        """Raise if a block has failed too often."""
        self.n_tries[index] += 1
        if self.n_tries[index] > self.retries:
            raise error or ClusterError(
                f"{self.so_far()}; block {index} failed {self.n_tries[index]} times: {why}"
            )

    def ended_all(self, last: str) -> ClusterError:
        """The error of a block that no worker survives; `last` is the last that tried it."""
        return ClusterError(
            f"{self.so_far()}; one of the others ended every worker that tried it, the last was "
            f"{last}. Workers that end often lack memory: give them more, or fewer threads"
        )

    def so_far(self) -> str:
        """What is known to be done."""
        return f"{len(self.done)} of {self.n_blocks} blocks are finished"

    def _look_around(self) -> None:
        """Nothing came for a moment: is anyone there, and is a block late?"""
        self.refuse_if_gone()
        silent = time.monotonic() - self._last_news
        if silent > _PATIENCE_SECONDS and not self.n_workers():
            warnings.warn(
                f"the cluster has no workers; {self.so_far()}, the others wait", stacklevel=2
            )
            self._last_news = time.monotonic()
        if not self._seconds:
            return
        if silent > max(_LATE * statistics.median(self._seconds), _LEAST_LATE_SECONDS):
            self.submit_copies()
            self._last_news = time.monotonic()

    def cancel(self, handles: list[_Handle]) -> None:
        """Let go of blocks that are still under way."""
        if handles:
            self.forget(handles)
        for handle in handles:
            self.pending.pop(handle, None)
