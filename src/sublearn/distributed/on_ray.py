"""Blocks of work on the workers of a Ray cluster.

    ray.init()
    with sublearn.distributed.ray_cluster():
        model.fit(X, Y)

A function and its arrays are one object of Ray's store, which is read-only and which all workers of
a machine map: one copy per machine. Ray sends it to a machine that does not have it. Tasks hold no
state, so Ray's own retries are off and the client decides, as on Dask (`blocks.py`).
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TypeVar

import ray
from ray import cloudpickle
from ray.exceptions import (
    NodeDiedError,
    ObjectLostError,
    OutOfMemoryError,
    RayError,
    RayTaskError,
    TaskCancelledError,
    WorkerCrashedError,
)

from sublearn import __version__
from sublearn.distributed.blocks import (
    GO_ON,
    POLL_SECONDS,
    Answer,
    BlockRun,
    Functions,
    TaskRecord,
    as_retries,
    refuse_other_version,
    run_blocks,
    timed,
)
from sublearn.errors import ClusterError, ParameterError
from sublearn.execution import Hints, use_executor

__all__ = ["RayBlocks", "ray_cluster"]

_Block = TypeVar("_Block")
_Result = TypeVar("_Result")
_MOST_ENDS = 3  # workers that a block may end
_ENDED = (WorkerCrashedError, OutOfMemoryError, NodeDiedError)
_LOST = (ObjectLostError, TaskCancelledError)
_functions = Functions()


def _run_block(function: list[ray.ObjectRef], block: bytes, version: str) -> Answer:
    """On a worker: call the function, which stands in a list so that Ray does not fetch it anew."""
    worker = _worker_name()
    refuse_other_version(version, worker)
    known = _functions.get(function[0].binary(), lambda: ray.get(function[0]))
    return timed(known, pickle.loads(block), worker)


def _worker_name() -> str:
    context = ray.get_runtime_context()
    return f"{ray.util.get_node_ip_address()}/{context.get_worker_id()[:12]}"


@contextmanager
def ray_cluster(*, retries: int = 2) -> Iterator[RayBlocks]:
    """Let the workers of a Ray cluster do the independent parts of all fits inside.

    The same parts as in `cluster`, and the same models to the last bit. Call ``ray.init`` before,
    with the address of a cluster or without for this machine; nothing is started or stopped here.
    One CPU of Ray is taken for one core.

    Parameters
    ----------
    retries : int, default=2
        How often a block is tried again after an error of files, network or memory. (Blocks of a
        worker that ends are always tried again, until they have ended three.)

    Yields
    ------
    RayBlocks
        With `tasks`: who did what so far, and when.

    Examples
    --------
    >>> import ray  # doctest: +SKIP
    >>> ray.init(num_cpus=2, include_dashboard=False)  # doctest: +SKIP
    >>> with ray_cluster():  # doctest: +SKIP
    ...     model = PPDSparseClassifier().fit(X, Y)
    """
    retries = as_retries(retries, "ray_cluster")
    if not ray.is_initialized():
        raise ParameterError("ray_cluster: ray must be connected (call ray.init first), got none")
    blocks = RayBlocks(retries)
    with use_executor(blocks):
        yield blocks


class RayBlocks:
    """Runs blocks on the workers of a cluster; made by :func:`ray_cluster`.

    Attributes
    ----------
    tasks : list of TaskRecord
        Blocks that were finished: `worker`, `began` (seconds since 1970) and `seconds`.
    """

    def __init__(self, retries: int):
        self.retries = retries
        self.tasks: list[TaskRecord] = []
        self.remote = ray.remote(max_retries=0, num_cpus=1)(_run_block)

    def __repr__(self) -> str:
        return f"RayBlocks({len(self.tasks)} tasks)"

    @property
    def n_places(self) -> int:
        """CPUs of all machines."""
        _refuse_if_gone()
        return max(1, int(ray.cluster_resources().get("CPU", 0)))

    def map(
        self, function: Callable[[_Block], _Result], blocks: list[_Block], n_jobs: int, hints: Hints
    ) -> list[_Result]:
        """`function` of each block, in the order of the blocks."""
        if not blocks:
            return []
        _refuse_if_gone()
        shared = ray.put(function)
        inputs = [cloudpickle.dumps(block) for block in blocks]
        return run_blocks(_Run(self, shared, inputs, hints), function, blocks, n_jobs)


def _refuse_if_gone(what: str = "") -> None:
    if not ray.is_initialized():
        raise ClusterError(f"Ray is shut down{what}. {GO_ON}")


class _Run(BlockRun[ray.ObjectRef]):
    """One call of `map`: blocks as pickles, and references to what will come of them."""

    def __init__(
        self, owner: RayBlocks, function: ray.ObjectRef, inputs: list[bytes], hints: Hints
    ):
        super().__init__(len(inputs), hints, owner.retries, owner.tasks)
        self.owner, self.function, self.inputs = owner, function, inputs
        self.n_ends = [0] * len(inputs)

    def submit(self, index: int) -> None:
        """Have a block run once more."""
        with self._saying_if_gone():
            reference = self.owner.remote.remote([self.function], self.inputs[index], __version__)
        self.pending[reference] = index

    @contextmanager
    def _saying_if_gone(self) -> Iterator[None]:
        """Around questions to the cluster: it may end before the client knows."""
        try:
            yield
        except (RayError, ConnectionError) as error:
            if isinstance(error, RayTaskError):
                raise
            self.refuse_if_gone()
            raise ClusterError(f"Ray does not answer: {self.so_far()}. {GO_ON}") from error

    def next_ready(self) -> list[ray.ObjectRef]:
        """All references that have ended; waits a moment for the first."""
        with self._saying_if_gone():
            waiting = list(self.pending)
            if not ray.wait(waiting, num_returns=1, timeout=POLL_SECONDS)[0]:
                return []
            found: list[ray.ObjectRef] = ray.wait(waiting, num_returns=len(waiting), timeout=0)[0]
            return found

    def answers(
        self, handles: list[ray.ObjectRef]
    ) -> Iterator[tuple[ray.ObjectRef, Answer | None]]:
        """What they came to; errors of the function are raised here."""
        for reference in handles:
            if reference in self.pending:
                yield reference, self._answer(self.pending[reference], reference)

    def _answer(self, index: int, reference: ray.ObjectRef) -> Answer | None:
        try:
            found: Answer = ray.get(reference)
            return found
        except _ENDED as error:
            self.n_ends[index] += 1
            if self.n_ends[index] >= _MOST_ENDS:
                raise self.ended_all(str(error).partition("\n")[0]) from error
        except RayTaskError as error:
            self.judge(index, error.cause if isinstance(error.cause, Exception) else error)
        except _LOST as error:
            self.refuse_if_gone()
            self.count_try(index, f"its result was lost: {error}")
        return None

    def refuse_if_gone(self) -> None:
        """Raise if Ray was shut down."""
        _refuse_if_gone(f": {self.so_far()}")

    def n_workers(self) -> int:
        """How many machines there are."""
        return sum(node["Alive"] for node in ray.nodes())

    def submit_copies(self) -> None:
        """Resubmit the blocks that have waited longest, as many as run at a time."""
        late = [index for index in self.pending.values() if index not in self.has_copy]
        for index in late[: self.owner.n_places]:
            self.has_copy.add(index)
            self.submit(index)

    def forget(self, handles: list[ray.ObjectRef]) -> None:
        """Let Ray give up on blocks; a worker that has begun one ends with it."""
        for reference in handles if ray.is_initialized() else ():
            with suppress(Exception):
                ray.cancel(reference, force=True)
