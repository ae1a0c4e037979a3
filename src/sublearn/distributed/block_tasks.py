"""What a worker of a Dask cluster does: a function of a block, both out of pickles."""

from __future__ import annotations

import pickle
import socket
import time
from typing import NamedTuple

from distributed import get_worker

from sublearn.distributed.blocks import Answer, Functions, TaskRecord, refuse_other_version, timed
from sublearn.distributed.shared_files import Missing, SharedFolder, read_pickle

__all__ = ["BlockTask", "forget", "host_view", "run_block"]

_functions = Functions()


class BlockTask(NamedTuple):
    """One call, small enough to travel in a message."""

    folder: SharedFolder
    function: str
    block: bytes
    version: str  # of the library in the client


def run_block(task: BlockTask) -> Answer:
    """Call the function with the block; its exceptions are the task's."""
    worker = get_worker().address
    refuse_other_version(task.version, worker)
    folder, name = task.folder, task.function
    try:
        function = _functions.get(
            (folder.token, name), lambda: pickle.loads(read_pickle(folder, name))
        )
        block = pickle.loads(task.block)
    except Missing as missing:
        return Answer(None, TaskRecord(worker, time.time(), 0.0), missing.host)
    return timed(function, block, worker)


def host_view(folder: SharedFolder) -> tuple[str, bool]:
    """This machine, and whether it sees the client's folder."""
    return socket.gethostname(), folder.is_seen()


async def forget(folder: SharedFolder) -> None:
    """Let go of the functions of a cluster that was left, and of copies of its files.

    A coroutine, so that no one waits for it.
    """
    _functions.forget(lambda key: key[0] == folder.token)
    folder.forget_copy()
