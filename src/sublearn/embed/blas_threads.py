"""How many threads NumPy's matrix products take here."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache

from threadpoolctl import ThreadpoolController

__all__ = ["blas_threads"]


@cache
def _controller() -> ThreadpoolController:
    """Looks for the libraries once: each look takes some milliseconds, longer than small fits."""
    return ThreadpoolController()


def blas_threads(n_threads: int) -> AbstractContextManager[object]:
    """Within it, matrix products use so many threads."""
    return _controller().limit(limits=n_threads, user_api="blas")
