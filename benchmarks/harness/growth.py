"""How cost grows with size: double a size several times, fit cost = a * size^b, report b.

Two costs are fitted. CPU seconds are what a user pays; counted operations (the last entry of
``trace_["work"]``, for estimators that keep it) do not depend on caches or a busy machine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from harness.entrant import Entrant
from harness.judge import Judge
from harness.problem import Split
from harness.runner import Conditions, Outcome, run_all

__all__ = ["Growth", "fit_exponent", "growth_rows", "measure_growth", "show_growth"]

COSTS = {"fit_cpu_seconds": "fit CPU s", "work": "operations"}


@dataclass(frozen=True)
class Growth:
    """Outcomes of one entrant along one axis."""

    axis: str
    sizes: Sequence[int]
    outcomes: Sequence[Outcome]

    def costs(self, name: str) -> list[float | None]:
        """One cost per size, None where a run failed or did not count."""
        return [outcome.figure(name) for outcome in self.outcomes]

    def exponent(self, name: str) -> float | None:
        """Fitted exponent over the sizes with a known cost, None with fewer than two."""
        known = [(s, c) for s, c in zip(self.sizes, self.costs(name), strict=True) if c]
        return fit_exponent(*zip(*known, strict=True)) if len(known) > 1 else None

    def as_record(self) -> dict[str, Any]:
        """Plain data for the JSON record."""
        return {
            "axis": self.axis,
            "entrant": self.outcomes[0].entrant.name,
            "sizes": list(self.sizes),
            "errors": [outcome.error for outcome in self.outcomes],
            "costs": {name: self.costs(name) for name in COSTS},
            "exponents": {name: self.exponent(name) for name in COSTS},
        }


def fit_exponent(sizes: Sequence[float], costs: Sequence[float]) -> float:
    """Slope of the least-squares line through (log size, log cost).

    >>> round(fit_exponent([1, 2, 4], [3.0, 12.0, 48.0]), 6)
    2.0
    """
    slope, _ = np.polyfit(np.log(sizes), np.log(costs), 1)
    return float(slope)


def measure_growth(
    axis: str,
    sizes: Sequence[int],
    make: Callable[[int], Split],
    entrants: Sequence[Entrant],
    judge: Judge,
    conditions: Conditions,
    announce: Callable[[str], None] = lambda text: None,
) -> list[Growth]:
    """Run all entrants at each size of `axis`; `make` builds the problem of one size."""
    rows = [
        run_all(f"{axis}={size}", make(size), entrants, judge, conditions, announce)
        for size in sizes
    ]
    return [Growth(axis, sizes, outcomes) for outcomes in zip(*rows, strict=True)]


def growth_rows(records: Sequence[dict[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """Headings and rows of the table of one axis, from the growths that a record keeps."""
    rows = []
    for growth in records:
        for name, heading in COSTS.items():
            exponent = growth["exponents"][name]
            cells = ["-" if cost is None else f"{cost:.4g}" for cost in growth["costs"][name]]
            end = "-" if exponent is None else f"{exponent:.2f}"
            rows.append([growth["entrant"], heading, *cells, end])
    return ["entrant", "cost", *map(str, records[0]["sizes"]), "b"], rows


def show_growth(growths: Sequence[Growth], console: Console) -> None:
    """Print costs by size and the exponents of both."""
    headings, rows = growth_rows([growth.as_record() for growth in growths])
    table = Table(title=f"growth in {growths[0].axis}: cost = a * size^b", title_justify="left")
    for heading in headings:
        table.add_column(heading, justify="left" if heading in ("entrant", "cost") else "right")
    for row in rows:
        table.add_row(*row)
    console.print(table)
    for outcome in (o for growth in growths for o in growth.outcomes if o.error):
        text = f"{outcome.entrant.name} failed at {outcome.problem}: {outcome.error}"
        console.print(text, markup=False, style="red")
