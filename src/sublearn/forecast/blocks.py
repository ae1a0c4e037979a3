"""Independent blocks (series, leads, clusters) on a given number of threads: the one place."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

__all__ = ["map_blocks"]

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def map_blocks(
    function: Callable[[_Item], _Result], items: Iterable[_Item], n_threads: int
) -> list[_Result]:
    """Results in the order of `items`; the first exception is raised after all have ended."""
    items = list(items)
    if min(n_threads, len(items)) <= 1:
        return [function(item) for item in items]
    with ThreadPoolExecutor(min(n_threads, len(items)), "sublearn-forecast") as pool:
        return list(pool.map(function, items))
