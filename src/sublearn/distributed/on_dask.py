"""Blocks of work on the workers of a Dask cluster: the one way in from a laptop to many machines.

    with sublearn.distributed.cluster(client):
        model.fit(X, Y)

What goes over the network is small: functions and arrays are files (`shared_files.py`), a task
names them. Tasks hold no state and every result depends on its block alone, so that any of them may
be run again, elsewhere, or twice: the first answer counts.
"""

from __future__ import annotations

import asyncio
import os
import queue
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from typing import TypeVar

from dask.utils import format_bytes
from distributed import Client, Future, KilledWorker
from distributed.comm import CommClosedError

from sublearn import __version__
from sublearn.distributed.block_tasks import BlockTask, forget, host_view, run_block
from sublearn.distributed.blocks import (
    GO_ON,
    POLL_SECONDS,
    Answer,
    BlockRun,
    TaskRecord,
    as_retries,
    run_blocks,
)
from sublearn.distributed.shared_files import FileStore, Written, write_copy
from sublearn.errors import ClusterError, ParameterError
from sublearn.execution import Hints, use_executor
from sublearn.interruption import BackgroundCall
from sublearn.typing import PathLike
from sublearn.validation.values import show

__all__ = ["TIMEOUTS", "DaskBlocks", "check_client", "cluster", "refuse_if_gone", "saying_if_gone"]

_Block = TypeVar("_Block")
_Result = TypeVar("_Result")
TIMEOUTS = (TimeoutError, asyncio.TimeoutError)  # one and the same from Python 3.11 on

_MOST_AT_ONCE = 64  # results that are fetched together
_ANSWER_SECONDS = 5.0  # until it is asked again whether the scheduler is there
_LOOK_SECONDS = 10.0  # that a worker may take to say what it sees


def check_client(client: object, who: str) -> Client:
    """`client`, if it is one that can be asked."""
    if not isinstance(client, Client):
        raise ParameterError(f"{who}: client must be a dask.distributed.Client, got {show(client)}")
    if client.asynchronous:
        raise ParameterError(f"{who}: client must not be asynchronous, got {client!r}")
    refuse_if_gone(client)
    return client


def refuse_if_gone(client: Client, what: str = "") -> None:
    """Raise if the scheduler cannot be reached."""
    if client.status != "running":
        raise _gone(client, what)


def _gone(client: Client, what: str) -> ClusterError:
    who = "the client is closed"
    if client.scheduler is not None:
        who = f"the scheduler at {client.scheduler.address} is gone"
    return ClusterError(f"{who}{what}. {GO_ON}")


@contextmanager
def saying_if_gone(client: Client) -> Iterator[None]:
    """Around questions to the scheduler: it may end before the client knows."""
    try:
        yield
    except CommClosedError as error:
        raise _gone(client, "") from error


@contextmanager
def cluster(
    client: Client, *, directory: PathLike | None = None, retries: int = 2
) -> Iterator[DaskBlocks]:
    """Let the workers of a Dask cluster do the independent parts of all fits inside.

    PPD-Sparse goes by labels, HiClass by nodes, HML by labels, sparse linear models by outputs and
    folds, the load forecaster by series and hours. The models are those that one machine makes, to
    the last bit. No server is started and none is stopped.

    Parameters
    ----------
    client : dask.distributed.Client
        Connected to a cluster of any kind; sublearn must be installed on its workers. A thread of a
        worker is taken for one core.
    directory : path or None, default=None
        Where files with the arrays of a fit are put for the workers to map; best a directory that
        all machines see. A machine that does not see it is sent each file once. None takes the
        temporary directory of this machine.
    retries : int, default=2
        How often a block is tried again after an error of files or network. (Blocks of a worker
        that ends are always tried again, as often as the scheduler's `allowed-failures` says.)

    Yields
    ------
    DaskBlocks
        With `tasks`: who did what so far, and when.

    Examples
    --------
    >>> from dask.distributed import Client
    >>> from sublearn.extreme import PPDSparseClassifier
    >>> client = Client(n_workers=1, processes=False, dashboard_address=":0")
    >>> with cluster(client):
    ...     model = PPDSparseClassifier().fit([[1.0, 0.0], [0.0, 1.0]], ["a", "b"])
    >>> client.close()
    >>> model.predict([[1.0, 0.0]]).tolist()
    ['a']
    """
    check_client(client, "cluster")
    retries = as_retries(retries, "cluster")
    if directory is not None and not isinstance(directory, (str, os.PathLike)):
        raise ParameterError(f"cluster: directory must be a path or None, got {show(directory)}")
    blocks = DaskBlocks(client, FileStore(directory), retries)
    try:
        with use_executor(blocks):
            yield blocks
    finally:
        blocks.close()


class DaskBlocks:
    """Runs blocks on the workers of a cluster; made by :func:`cluster`.

    Attributes
    ----------
    tasks : list of TaskRecord
        Blocks that were finished: `worker`, `began` (seconds since 1970) and `seconds`.
    """

    def __init__(self, client: Client, store: FileStore, retries: int):
        self.client, self.store, self.retries = client, store, retries
        self._hosts: dict[str, str] = {}  # by worker
        self._lacks: dict[str, set[str]] = {}  # files that were sent, by host without the folder
        self.tasks: list[TaskRecord] = []

    def __repr__(self) -> str:
        size = sum(file.stat().st_size for file in self.store.path.iterdir())
        return f"DaskBlocks({len(self.tasks)} tasks, {format_bytes(size)} in {self.store.path})"

    @property
    def n_places(self) -> int:
        """Threads of all workers."""
        refuse_if_gone(self.client)
        with saying_if_gone(self.client):
            return max(1, sum(self.client.nthreads().values()))

    def map(
        self, function: Callable[[_Block], _Result], blocks: list[_Block], n_jobs: int, hints: Hints
    ) -> list[_Result]:
        """`function` of each block, in the order of the blocks."""
        if not blocks:
            return []
        refuse_if_gone(self.client)
        written: Written = {}
        name = self.store.save_function(function, written)
        tasks = [
            BlockTask(self.store.folder, name, self.store.dumps(block, written), __version__)
            for block in blocks
        ]
        with saying_if_gone(self.client):
            self._look_at_workers()
            return run_blocks(_Run(self, tasks, hints), function, blocks, n_jobs)

    # --- files on machines ---------------------------------------------------------------------

    def _look_at_workers(self) -> None:
        """Ask new workers what they see, and send the files to machines that see nothing."""
        new = [address for address in self.client.nthreads() if address not in self._hosts]
        asked = {
            address: self.client.submit(
                host_view, self.store.folder, workers=[address], pure=False, priority=1000
            )
            for address in new
        }
        for address, future in asked.items():
            with suppress(Exception):  # who does not answer is told when it lacks a file
                host, sees = future.result(timeout=_LOOK_SECONDS)
                self._hosts[address] = host
                if not sees:
                    self._lacks.setdefault(host, set())
        for host in self._lacks:
            address = next((a for a, h in self._hosts.items() if h == host), None)
            if address is not None:
                self.send_files(host, address)

    def send_files(self, host: str, address: str) -> None:
        """All files to a machine, through one of its workers; what fails is asked for again."""
        sent = self._lacks.setdefault(host, set())
        for name in self.store.names():
            if name in sent:
                continue
            try:
                chunks = self.client.scatter(self.store.chunks(name), workers=[address], hash=False)
                self.client.submit(
                    write_copy, self.store.folder, name, *chunks, workers=[address], pure=False,
                    priority=1000,
                ).result()  # fmt: skip
                sent.add(name)
            except ClusterError:  # of the worker: its folder is not its own
                raise
            except Exception:
                continue

    def forget_sent(self, host: str) -> None:
        """A machine lacks what it was sent: it was started anew."""
        self._lacks.pop(host, None)

    def close(self) -> None:
        """Remove the files, here and on the workers."""
        if self.client.status == "running":
            call = BackgroundCall(self._tell_workers, "sublearn-forget", is_daemon=True)
            call.start()
            call.wait(_LOOK_SECONDS)  # one that hangs keeps its copies
        self.store.remove()

    def _tell_workers(self) -> None:
        with suppress(Exception):
            self.client.run(forget, self.store.folder, wait=False)


class _Run(BlockRun[Future]):
    """One call of `map`: tasks, and their futures."""

    def __init__(self, owner: DaskBlocks, tasks: list[BlockTask], hints: Hints):
        super().__init__(len(tasks), hints, owner.retries, owner.tasks)
        self.owner, self.inputs, self.client = owner, tasks, owner.client
        self.ready: queue.SimpleQueue[Future] = queue.SimpleQueue()

    def begin(self, order: list[int]) -> None:
        """Submit all blocks; Dask takes those of one name by their numbers.

        By the common name it sees that they are many and alike, and keeps them back until a worker
        is free, so that one that joins late finds some.
        """
        name = f"sublearn-{uuid.uuid4().hex}"
        keys = [(name, rank) for rank in range(len(order))]
        tasks = [self.inputs[index] for index in order]
        futures = self.client.map(run_block, tasks, key=keys, pure=False)
        for future, index in zip(futures, order, strict=True):
            self._expect(future, index)

    def submit(self, index: int, workers: list[str] | None = None) -> None:
        """Have a block run once more, best on one of these workers."""
        future = self.client.submit(
            run_block, self.inputs[index], pure=False, priority=1, workers=workers,
            allow_other_workers=workers is not None,
        )  # fmt: skip
        self._expect(future, index)

    def _expect(self, future: Future, index: int) -> None:
        self.pending[future] = index
        future.add_done_callback(self.ready.put)

    def next_ready(self) -> list[Future]:
        """All futures that have ended; waits a moment for the first."""
        try:
            futures = [self.ready.get(timeout=POLL_SECONDS)]
        except queue.Empty:
            return []
        while len(futures) < _MOST_AT_ONCE and not self.ready.empty():
            futures.append(self.ready.get())
        return futures

    def answers(self, handles: list[Future]) -> Iterator[tuple[Future, Answer | None]]:
        """What futures hold, in one message to each worker where none of them is in doubt."""
        known = self._fetch([future for future in handles if future.status == "finished"])
        for future in handles:
            index = self.pending.get(future)
            if index is not None and index not in self.done:
                yield future, known.get(future.key) or self._answer(index, future)
            else:
                self.pending.pop(future, None)

    def _fetch(self, futures: list[Future]) -> dict[str, Answer]:
        """Answers by key; none if any of them is in doubt."""
        try:
            found = self.client.gather(futures, errors="raise") if len(futures) > 1 else []
        except Exception:
            return {}
        return {future.key: answer for future, answer in zip(futures, found, strict=bool(found))}

    def take(self, index: int, answer: Answer | None) -> None:
        """Count an answer; send a machine the files that it lacks."""
        if answer is None or answer.lacking_host is None:
            super().take(index, answer)
            return
        host, address = answer.lacking_host, answer.record.worker
        if self.n_tries[index]:
            self.owner.forget_sent(host)
        self.count_try(index, f"{host} lacks files that were sent to it")
        self.owner.send_files(host, address)
        self.submit(index)

    def _answer(self, index: int, future: Future) -> Answer | None:
        """What a future holds; None if it was lost. Errors of the function are raised here."""
        while True:
            if future.status == "error":
                self.judge(index, future.exception())
                return None
            try:
                return future.result(timeout=_ANSWER_SECONDS)
            except CancelledError:
                self.refuse_if_gone()
                self.count_try(index, "its task was cancelled")
                return None
            except TIMEOUTS:
                self.refuse_if_gone()
            except Exception:
                if future.status != "error":
                    self.refuse_if_gone()
                    raise

    def judge(self, index: int, error: BaseException) -> None:
        """Raise an error, unless the block is worth another try."""
        if isinstance(error, KilledWorker):
            last = error.last_worker.address if error.last_worker else "unknown"
            raise self.ended_all(last) from error
        super().judge(index, error)

    def refuse_if_gone(self) -> None:
        """Raise if the scheduler cannot be reached."""
        refuse_if_gone(self.client, f": {self.so_far()}")

    def n_workers(self) -> int:
        """How many there are."""
        return len(self.client.nthreads())

    def submit_copies(self) -> None:
        """Resubmit the blocks of silent workers to other workers."""
        holders = {key: address for address, keys in self.client.processing().items()
                   for key in keys}  # fmt: skip
        late = {index: holders[future.key] for future, index in self.pending.items()
                if index not in self.has_copy and future.key in holders}  # fmt: skip
        others = sorted(self.client.nthreads().keys() - set(late.values()))
        for index in late if others else ():
            self.has_copy.add(index)
            self.submit(index, others)

    def forget(self, handles: list[Future]) -> None:
        """Let the scheduler give up on blocks."""
        if self.client.status == "running":
            with suppress(Exception):
                self.client.cancel(handles)
