"""Questions are worked on in a few threads; more of them wait, and more than that are refused."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from sublearn.serve.limits import MEGABYTE, Limits, Refusal

__all__ = ["Buffers", "ClientGone", "Work"]

_Result = TypeVar("_Result")
#: What a job gets: a function that it calls now and then, which raises when nobody waits for it.
Check = Callable[[], None]


class ClientGone(Exception):
    """The client closed the connection; whatever is answered now, no one reads it."""


class _GaveUp(Exception):
    """Ends a job that no one waits for."""


class Work:
    """Runs jobs in `limits.max_working` threads."""

    def __init__(self, limits: Limits):
        self._limits = limits
        self._pool = ThreadPoolExecutor(limits.max_working, thread_name_prefix="sublearn-serve")
        self._n_jobs = 0
        self._lock = threading.Lock()

    @property
    def n_jobs(self) -> int:
        """Jobs that run or wait."""
        return self._n_jobs

    @property
    def is_full(self) -> bool:
        """Whether the next job would be refused."""
        return self._n_jobs >= self._limits.max_working + self._limits.max_waiting

    async def run(
        self, job: Callable[[Check], _Result], client_gone: Awaitable[object] | None = None
    ) -> _Result:
        """The result of a job, which is given up when `client_gone` or its time is over.

        Raises
        ------
        Refusal
            Status 503 if too many jobs wait, or if this one took too long.
        ClientGone
            If `client_gone` came first.
        """
        self.enter()
        given_up = threading.Event()

        def check() -> None:
            if given_up.is_set():
                raise _GaveUp

        running = self._pool.submit(job, check)
        running.add_done_callback(lambda done: self.leave())
        try:
            return await self._first(asyncio.wrap_future(running), client_gone)
        finally:
            given_up.set()

    async def wait_for(self, begin: Callable[[], asyncio.Future[_Result]]) -> _Result:
        """The result of a job that runs elsewhere; it counts, and has its time, like others."""
        self.enter()
        try:
            return await self._first(begin(), None)
        finally:
            self.leave()

    def enter(self) -> None:
        """Count a job that runs elsewhere until `leave`, or refuse it."""
        self._refuse_if_full()
        with self._lock:
            self._n_jobs += 1

    def leave(self) -> None:
        """A job has ended."""
        with self._lock:
            self._n_jobs -= 1

    def too_long(self) -> Refusal:
        """The refusal of a job that did not end in time."""
        sentence = "a question must take at most {} s, got more"
        return self._limits.refusal("work_seconds", sentence, 503)

    def _refuse_if_full(self) -> None:
        if self.is_full:
            raise self._limits.refusal(
                "max_waiting", "at most {} questions may wait, and as many do; try again", 503
            )

    async def _first(
        self, result: asyncio.Future[_Result], client_gone: Awaitable[object] | None
    ) -> _Result:
        """The result, if it comes before the client is gone and the time is over."""
        watched: set[asyncio.Future[_Result] | asyncio.Future[object]] = {result}
        if client_gone is not None:
            watched.add(asyncio.ensure_future(client_gone))
        try:
            seconds = self._limits.work_seconds
            await asyncio.wait(watched, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            if result.done():
                return result.result()
            if any(one.done() for one in watched):
                raise ClientGone
            raise self.too_long()
        finally:
            for one in watched:
                one.cancel()


class Buffers:
    """Bytes of questions and answers in memory, together at most as many as are granted."""

    def __init__(self, limits: Limits):
        self._limits = limits
        self.n_bytes = 0

    def hold(self) -> Held:
        """Nothing yet."""
        return Held(self)

    def take(self, n_bytes: int) -> None:
        """Count these bytes, or refuse them with status 503."""
        if self.n_bytes + n_bytes > self._limits.max_buffered_megabytes * MEGABYTE:
            raise self._limits.refusal(
                "max_buffered_megabytes",
                "questions and answers in memory must have at most {} MB, got more; try again",
                503,
            )
        self.n_bytes += n_bytes


class Held:
    """The bytes that one request has in memory."""

    def __init__(self, buffers: Buffers):
        self._buffers = buffers
        self._n_bytes = 0

    def take(self, n_bytes: int) -> None:
        """Some more; a refusal releases what was held, so that another request can go on."""
        try:
            self._buffers.take(n_bytes)
        except Refusal:
            self.release()
            raise
        self._n_bytes += n_bytes

    def release(self) -> None:
        """All of them; a second call does nothing."""
        self._buffers.n_bytes -= self._n_bytes
        self._n_bytes = 0
