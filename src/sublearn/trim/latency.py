"""How long one sample takes, before and after trimming."""

from __future__ import annotations

import copy
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import nn

from sublearn.trim.samples import Inputs, call

__all__ = ["Latency", "latency_of"]

#: Calls of one network before it is the other's turn, so that both see the same machine.
_IN_A_ROW = 10


@dataclass(frozen=True)
class Latency:
    """Seconds for one sample, on the CPU, with as many threads as PyTorch has.

    Parameters
    ----------
    dense : float
        Of the network given.
    sparse : float
        Of the trimmed one with sparse layers.
    """

    dense: float
    sparse: float

    @property
    def ratio(self) -> float:
        """How many times faster."""
        return self.dense / self.sparse

    def __str__(self) -> str:
        return (
            f"one sample {1e6 * self.dense:,.0f} -> {1e6 * self.sparse:,.0f} microseconds, "
            f"{self.ratio:,.1f} times faster"
        )


def latency_of(dense: nn.Module, sparse: nn.Module, inputs: Inputs, n_calls: int) -> Latency:
    """Medians over `n_calls` calls of each network, in turns."""
    networks = [copy.deepcopy(dense).cpu().eval(), sparse.eval()]
    laps: list[list[float]] = [[] for _ in networks]
    with torch.no_grad():
        while len(laps[-1]) < n_calls:
            for network, own in zip(networks, laps, strict=True):
                own.extend(_timed(network, inputs, min(_IN_A_ROW, n_calls - len(own))))
    return Latency(*map(statistics.median, laps))


def _timed(network: nn.Module, inputs: Inputs, n_calls: int) -> Sequence[float]:
    call(network, inputs)  # not timed: the other network has the caches
    laps = []
    for _ in range(n_calls):
        start = time.perf_counter()
        call(network, inputs)
        laps.append(time.perf_counter() - start)
    return laps
