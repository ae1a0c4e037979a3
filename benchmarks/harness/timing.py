"""Times of calls in the process of a table."""

from __future__ import annotations

import statistics
import time
import warnings
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

__all__ = ["cpu_timed", "median_cpu", "median_ms"]

T = TypeVar("T")


def cpu_timed(call: Callable[[], T]) -> tuple[T, float]:
    """Result of a call, whose warnings are not shown, and its CPU seconds."""
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        value = call()
    return value, time.process_time() - start


def median_cpu(call: Callable[[], Any], repeat: int = 5, most: float = 10.0) -> float:
    """CPU seconds of a call, the median of `repeat`; of fewer if they take long."""
    laps: list[float] = []
    while len(laps) < repeat and sum(laps) < most:
        laps.append(cpu_timed(call)[1])
    return statistics.median(laps)


def median_ms(calls: Iterable[Callable[[], Any]]) -> float:
    """Elapsed milliseconds of one call, median over the calls."""
    laps = []
    for call in calls:
        start = time.perf_counter()
        call()
        laps.append(time.perf_counter() - start)
    return 1000 * statistics.median(laps)
