"""Locks that two holders cannot have at once, and that a killed process does not keep.

They are locks of the operating system (`flock`) on an open file: they belong to no process number,
so none can be reused, and they end with the last process that has the file open. A process forked
by the holder has it open too. On network file systems they are as good as the mount: one without
locks (`nolock`, `local_lock`) keeps the processes of one machine apart, not those of several.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

__all__ = ["hold_alone", "open_locked", "remove_abandoned"]

_TAKEN = (errno.EACCES, errno.EAGAIN, errno.EDEADLK)


@contextlib.contextmanager
def hold_alone(path: Path) -> Iterator[bool]:
    """Lock a file, which is made for it and removed at the end; False if another holder has it.

    The operating system drops the lock of a process that dies. The file that it leaves behind locks
    nothing: who comes next takes it over.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = open_locked(path)
    if handle is None:
        yield False
        return
    try:
        yield True
    finally:
        _release(handle, path)


def open_locked(path: Path) -> int | None:
    """A handle of a file, made if need be, that holds its lock; None if another holder has it.

    Raises
    ------
    OSError
        If the file cannot be made, or its file system has no locks.
    """
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            _lock(handle)
        except OSError as error:
            os.close(handle)
            if error.errno in _TAKEN:
                return None
            raise OSError(error.errno, os.strerror(error.errno or 0), str(path)) from error
        if _is_at(handle, path):
            return handle
        os.close(handle)  # removed by its last holder between the opening and the locking


def _is_at(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path))
    except FileNotFoundError:
        return False


if sys.platform != "win32":
    import fcntl

    def _lock(handle: int) -> None:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _release(handle: int, path: Path) -> None:
        path.unlink(missing_ok=True)
        fcntl.flock(handle, fcntl.LOCK_UN)  # also for a child that was forked meanwhile
        os.close(handle)

    def remove_abandoned(path: Path) -> None:
        """Delete a file of `open_locked` whose holder is dead; anything else stays."""
        with contextlib.suppress(OSError):
            if not stat.S_ISREG(os.lstat(path).st_mode):
                return
            handle = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
            try:
                _lock(handle)
                if _is_at(handle, path):
                    path.unlink()
            finally:
                os.close(handle)

else:
    import msvcrt

    def _lock(handle: int) -> None:
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)

    def _release(handle: int, path: Path) -> None:
        os.close(handle)  # an open file cannot be removed
        with contextlib.suppress(OSError):  # nor one that the next holder has opened
            path.unlink()

    def remove_abandoned(path: Path) -> None:
        """Nothing: a lock there keeps the holder's own writers out, so that files have none."""
