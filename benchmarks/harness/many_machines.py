"""A discrete-event simulation of a fit on many machines: files first, then blocks one by one.

The client sends the files to one machine after the other over its own link. Each machine then gets
a block, works, and sends the result back over its own link. Scheduler and client take some time for
each block, one after the other. A machine may fail: its block is
begun anew elsewhere, and it comes back later and is sent the files again.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import minimize

if TYPE_CHECKING:
    from harness.slow_links import Setting

__all__ = ["Costs", "Link", "fit_costs", "simulate"]

RESULT_BYTES = 100_000
REPAIR_SECONDS = 300.0
_HOUR = 3600.0


@dataclass(frozen=True)
class Link:
    """Into and out of a machine; its delay is in the costs of a block."""

    bytes_per_second: float


@dataclass(frozen=True)
class Costs:
    """What is fitted to runs."""

    start: float  # seconds of a fit before anything is sent
    per_block: float  # seconds of client and scheduler, one block after the other
    way: float  # seconds of a block beside its work, on its machine and on the way there
    per_machine: float  # seconds for the files of a machine, beside their bytes
    share: float  # of a link's rate that files have

    def __str__(self) -> str:
        return (
            f"{self.start:.2f} s at the start, {1e3 * self.per_block:.1f} ms of the scheduler and "
            f"{1e3 * self.way:.0f} ms beside the work for a block, {self.per_machine:.2f} s for "
            f"the files of a machine, which have {100 * self.share:.0f} % of its link's rate"
        )


def simulate(
    n_machines: int,
    blocks: Sequence[float] | np.ndarray,
    link: Link,
    costs: Costs,
    n_bytes: float,
    *,
    hours_between_failures: float | None = None,
    seed: int = 0,
) -> float:
    """Seconds until the last result is there."""
    rng = np.random.default_rng(seed)
    send = n_bytes / (link.bytes_per_second * costs.share) + costs.per_machine
    back = RESULT_BYTES / link.bytes_per_second
    waiting = deque(blocks)
    # Machines that want a block, by time; the client's and the scheduler's next free moments.
    events = [(costs.start + (machine + 1) * send, machine) for machine in range(n_machines)]
    begin = events[-1][0]  # blocks are dealt once all have the files
    events = [(max(time, begin), machine) for time, machine in events]
    fails = [
        np.inf if hours_between_failures is None
        else rng.exponential(hours_between_failures * _HOUR) for _ in range(n_machines)
    ]  # fmt: skip
    heapq.heapify(events)
    dealt, ends = begin, begin
    while events:
        time, machine = heapq.heappop(events)
        if not waiting:
            break
        if time >= fails[machine]:
            heapq.heappush(events, (fails[machine] + REPAIR_SECONDS + send, machine))
            fails[machine] = _next(fails[machine], hours_between_failures, rng)
            continue
        dealt = max(dealt, time) + costs.per_block
        block = waiting.popleft()
        done = dealt + costs.way + block + back
        if done > fails[machine]:
            waiting.append(block)
            heapq.heappush(events, (fails[machine] + REPAIR_SECONDS + send, machine))
            fails[machine] = _next(fails[machine], hours_between_failures, rng)
            continue
        ends = max(ends, done)
        heapq.heappush(events, (done, machine))
    return float(ends)


def _next(failed: float, hours: float | None, rng: np.random.Generator) -> float:
    return float(failed + REPAIR_SECONDS + rng.exponential((hours or np.inf) * _HOUR))


def fit_costs(settings: Sequence[Setting], seconds: Sequence[float]) -> Costs:
    """The costs with the smallest relative errors, none of them negative."""

    def costs_of(x: np.ndarray) -> Costs:
        start, per_block, way, per_machine = np.abs(x[:4]) * [1, 0.01, 0.05, 0.1]
        return Costs(start, per_block, way, per_machine, float(np.clip(x[4], 0.05, 1.0)))

    def loss(x: np.ndarray) -> float:
        costs = costs_of(x)
        errors = [
            simulate(s.n_machines, s.blocks(), s.link(), costs, s.n_bytes) / real - 1
            for s, real in zip(settings, seconds, strict=True)
        ]
        return float(np.square(errors).sum() + 1e-4 * np.square(x - 1).sum())

    found = minimize(loss, np.ones(5), method="Nelder-Mead", options={"maxiter": 2_000})
    return costs_of(found.x)
