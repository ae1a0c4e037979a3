"""From `n_jobs` to a number of threads."""

from __future__ import annotations

import os

from sublearn.validation.params import JobCount, check_argument

__all__ = ["as_n_threads"]

_MOST_THREADS = 2**31 - 1  # the core counts threads with 32 bits


def as_n_threads(n_jobs: int | None) -> int:
    """Number of threads that `n_jobs` asks for, with joblib's meaning of negative numbers.

    None is 1, -1 all cores this process may use, -2 all but one, and so on, never below 1.
    """
    check_argument("n_jobs", n_jobs, JobCount())
    if n_jobs is None:
        return 1
    if n_jobs > 0:
        return min(int(n_jobs), _MOST_THREADS)
    return max(1, _n_usable_cores() + 1 + int(n_jobs))


def _n_usable_cores() -> int:
    # Containers and batch systems restrict a process to fewer cores than the machine has;
    # macOS does not offer the question.
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
