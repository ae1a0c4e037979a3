"""What a worker does: a function of a block, both out of pickles."""

from __future__ import annotations

import pickle
import socket
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple

from distributed import get_worker
from threadpoolctl import threadpool_limits

from sublearn.distributed.shared_files import Missing, SharedFolder, read_pickle

__all__ = ["Answer", "BlockTask", "TaskRecord", "forget", "host_view", "run_block"]

_MOST_FUNCTIONS = 4  # that a worker holds unpickled, with the arrays they have mapped
_functions: OrderedDict[tuple[str, str], Callable[..., object]] = OrderedDict()
_lock = threading.Lock()
_has_one_thread = False


class BlockTask(NamedTuple):
    """One call, small enough to travel in a message."""

    folder: SharedFolder
    function: str
    block: bytes


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


def run_block(task: BlockTask) -> Answer:
    """Call the function with the block; its exceptions are the task's."""
    _keep_to_one_thread()
    try:
        function = _load_function(task.folder, task.function)
        block = pickle.loads(task.block)
    except Missing as missing:
        return Answer(None, TaskRecord(get_worker().address, time.time(), 0.0), missing.host)
    began, clock = time.time(), time.perf_counter()
    result = function(block)
    seconds = time.perf_counter() - clock
    return Answer(result, TaskRecord(get_worker().address, began, seconds))


def _load_function(folder: SharedFolder, name: str) -> Callable[..., object]:
    """Unpickled once, however many blocks and threads ask."""
    with _lock:
        key = (folder.token, name)
        if key not in _functions:
            _functions[key] = pickle.loads(read_pickle(folder, name))
            while len(_functions) > _MOST_FUNCTIONS:
                _functions.popitem(last=False)
        _functions.move_to_end(key)
        return _functions[key]


def _keep_to_one_thread() -> None:
    """A thread of a worker is one core; threads of BLAS would also change the rounding."""
    global _has_one_thread
    if not _has_one_thread:
        threadpool_limits(1, user_api="blas")
        _has_one_thread = True


def host_view(folder: SharedFolder) -> tuple[str, bool]:
    """This machine, and whether it sees the client's folder."""
    return socket.gethostname(), folder.is_seen()


async def forget(folder: SharedFolder) -> None:
    """Let go of the functions of a cluster that was left, and of copies of its files.

    A coroutine, so that no one waits for it.
    """
    with _lock:
        for key in [key for key in _functions if key[0] == folder.token]:
            del _functions[key]
    folder.forget_copy()
