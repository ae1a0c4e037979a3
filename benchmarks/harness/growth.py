"""How cost grows with size: double a size several times, fit cost = a * size^b, report b.

CPU seconds are what a user pays; counted operations (the last entry of ``trace_["work"]``, for
estimators that keep it) do not depend on caches or a busy machine. A long series can be measured
in pieces, a few sizes per call; their records are joined when they are rendered.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from harness.entrant import Entrant
from harness.judge import Judge
from harness.problem import Split
from harness.runner import Conditions, Outcome, Run, run_all

__all__ = ["Growth", "fit_exponent", "growth_rows", "joined", "measure_growth", "show_growth"]

#: Heading of each cost.
COSTS = {
    "fit_cpu_seconds": "fit CPU s",
    "work": "operations",
    "predict_ms_per_row": "predict CPU ms/row",
    "single_row_ms": "1 row ms",
}


@dataclass(frozen=True)
class Growth:
    """Outcomes of one entrant along one axis; `facts` says what data each size really has."""

    axis: str
    sizes: Sequence[int]
    outcomes: Sequence[Outcome]
    facts: Sequence[Mapping[str, int]]
    n_asked: Sequence[int]

    def costs(self, name: str) -> list[float | None]:
        """One cost per size, None where a run failed or did not count."""
        if name == "predict_ms_per_row":
            seconds = [outcome.figure("predict_cpu_seconds") for outcome in self.outcomes]
            pairs = zip(seconds, self.n_asked, strict=True)
            return [None if second is None else 1000 * second / n for second, n in pairs]
        return [outcome.figure(name) for outcome in self.outcomes]

    def as_record(self) -> dict[str, Any]:
        """Plain data for the JSON record."""
        found = {
            "axis": self.axis,
            "entrant": self.outcomes[0].entrant.name,
            "threads": self.outcomes[0].threads,
            "sizes": list(self.sizes),
            "facts": [dict(facts) for facts in self.facts],
            "errors": [outcome.error for outcome in self.outcomes],
            "costs": {name: self.costs(name) for name in COSTS},
            "quality": [outcome.figure("P@1") for outcome in self.outcomes],
        }
        return {**found, "exponents": _exponents(found)}


def _exponents(growth: Mapping[str, Any]) -> dict[str, float | None]:
    """Fitted exponent of each cost over the sizes where it is known, None with fewer than two."""
    return {name: _exponent(_scale(growth), costs) for name, costs in growth["costs"].items()}


def _exponent(sizes: Sequence[int], costs: Sequence[float | None]) -> float | None:
    known = [(size, cost) for size, cost in zip(sizes, costs, strict=True) if cost]
    return fit_exponent(*zip(*known, strict=True)) if len(known) > 1 else None


def _scale(growth: Mapping[str, Any]) -> Sequence[int]:
    """Sizes that the exponent is fitted to: along "nnz" the non-zero features that came out."""
    if growth["axis"] == "nnz":
        return [facts["nnz"] for facts in growth["facts"]]
    return growth["sizes"]


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
    """Run all entrants at each size of `axis`; `make` builds the problem of one size.

    An entrant whose time was up is not run at the sizes that follow.
    """
    rows: list[list[Outcome]] = []
    facts: list[Mapping[str, int]] = []
    n_asked: list[int] = []
    for size in sizes:
        split = make(size)
        facts.append(split.facts())
        n_asked.append(next(iter(split.test.values())).shape[0])
        announce(f"{axis}={size}: {split.facts()}")
        over = {o.entrant.name for o in (rows[-1] if rows else []) if o.status == "stopped"}
        problem, running = f"{axis}={size}", [e for e in entrants if e.name not in over]
        found = run_all(problem, split, running, judge, conditions, announce)
        rows.append(_completed(problem, found, entrants, conditions))
    series = zip(*rows, strict=True)
    return [Growth(axis, sizes, outcomes, facts, n_asked) for outcomes in series]


def _completed(
    problem: str, found: Sequence[Outcome], entrants: Sequence[Entrant], conditions: Conditions
) -> list[Outcome]:
    """The outcomes of all entrants in their order, with those that were not run."""
    by_key = {(o.entrant.name, o.threads): o for o in found}
    skipped = Run(error="not run: stopped at a smaller size", was_stopped=True)
    return [
        by_key.get((entrant.name, threads))
        or Outcome(problem, entrant, entrant.settings_for(problem), threads, [skipped])
        for entrant in entrants
        for threads in conditions.threads
    ]


def joined(growths: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Pieces of the same series (axis, entrant, threads) as one, sizes rising, exponents anew.

    A size that was measured again counts as measured last.
    """
    series: dict[tuple[str, str, int], dict[int, dict[str, Any]]] = {}
    for growth in growths:
        key = (growth["axis"], growth["entrant"], growth.get("threads", 1))
        series.setdefault(key, {}).update(_by_size(growth))
    return [_one_series(key, points) for key, points in series.items()]


def _by_size(growth: dict[str, Any]) -> dict[int, dict[str, Any]]:
    n = len(growth["sizes"])
    return {
        size: {
            "facts": growth.get("facts", [{}] * n)[i],
            "errors": growth["errors"][i],
            "quality": growth.get("quality", [None] * n)[i],
            "costs": {name: costs[i] for name, costs in growth["costs"].items()},
        }
        for i, size in enumerate(growth["sizes"])
    }


def _one_series(key: tuple[str, str, int], points: dict[int, dict[str, Any]]) -> dict[str, Any]:
    sizes = sorted(points)
    ordered = [points[size] for size in sizes]
    names = dict.fromkeys(name for point in ordered for name in point["costs"])
    growth: dict[str, Any] = dict(zip(("axis", "entrant", "threads"), key, strict=True))
    growth["sizes"] = sizes
    for field in ("facts", "errors", "quality"):
        growth[field] = [point[field] for point in ordered]
    growth["costs"] = {name: [point["costs"].get(name) for point in ordered] for name in names}
    return {**growth, "exponents": _exponents(growth)}


def growth_rows(records: Sequence[dict[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """Headings and rows of the table of one axis, from the growths that a record keeps."""
    rows = []
    by_size = {size: f for r in records for size, f in zip(r["sizes"], r["facts"], strict=True)}
    sizes = sorted(by_size)
    for name, heading in (("nnz", "non-zero features"), ("labels_used", "labels with a row")):
        if any(name in facts for facts in by_size.values()):
            cells = [str(by_size[size].get(name, "-")) for size in sizes]
            rows.append(["data", heading, *cells, ""])
    limits = {growth["threads"] for growth in records}
    for growth in records:
        title = growth["entrant"]
        title += f", {growth['threads']} threads" if len(limits) > 1 else ""
        rows += [[title, *row] for row in _series_rows(growth, sizes)]
    return ["entrant", "cost", *map(str, sizes), "b"], rows


def _series_rows(growth: dict[str, Any], sizes: Sequence[int]) -> list[list[str]]:
    rows = []
    for name, costs in growth["costs"].items():
        known = dict(zip(growth["sizes"], costs, strict=True))
        if any(cost is not None for cost in costs):
            cells = [_number(known.get(size), ".4g") for size in sizes]
            rows.append([COSTS[name], *cells, _number(growth["exponents"][name], ".2f")])
    known = dict(zip(growth["sizes"], growth["quality"], strict=True))
    if any(value is not None for value in known.values()):
        rows.append(["P@1", *(_number(known.get(size), ".4f") for size in sizes), ""])
    return rows


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def show_growth(growths: Sequence[Growth], console: Console) -> None:
    """Print costs by size and their exponents."""
    headings, rows = growth_rows([growth.as_record() for growth in growths])
    table = Table(title=f"growth in {growths[0].axis}: cost = a * size^b", title_justify="left")
    for heading in headings:
        table.add_column(heading, justify="left" if heading in ("entrant", "cost") else "right")
    for row in rows:
        table.add_row(*row)
    console.print(table)
    for outcome in (o for growth in growths for o in growth.outcomes if o.error):
        text = f"{outcome.entrant.name} {outcome.status} at {outcome.problem}: {outcome.error}"
        console.print(text, markup=False, style="red")
