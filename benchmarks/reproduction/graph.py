"""GDMM for MAP inference: tables 3.1 and 3.2 and figure 3.4 of Yen 2018, beside ours.

Of the five graphs of the thesis two can be made at their sizes (multilabel, graph matching) and
three have a near relative among the files of the competitions. Numbers of the thesis are of
table 3.1 (lines 1330 to 1338 of its text) and table 3.2 (lines 1340 to 1356).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
from graph import BY_NAME, Graph, as_factor_graph, part, solve
from harness.bench import Bench
from harness.entrant import Entrant
from harness.factors import FactorArrays
from harness.graphs import instances, matching, multilabel
from harness.runner import Outcome
from harness.table import Cell, Chart, Figures, Series, Table
from harness.verdicts import verdict

__all__ = ["TABLES"]

PAGE = "yen2018"
LIMIT, PAIR_LIMIT, CURVE_LIMIT = 10.0, 4.0, 6.0
ALGORITHMS = (
    "LBP", "TRWBP", "TreeEP", "HAK", "GBP", "SoftBCFW", "LPsparse", "SmoothMSD", "MPLP", "PSDD",
    "AD3", "TRW-S", "GDMM",
)  # fmt: skip


class Set(NamedTuple):
    """A data set of the thesis: table 3.1, the primal objectives and seconds of table 3.2, ours."""

    name: str
    sizes: tuple[int, int, int, int]
    primal: tuple[float | None, ...]
    seconds: tuple[float | None, ...]
    stands_for: str
    is_same: bool

    @property
    def best(self) -> float:
        return max(p for p in self.primal if p is not None)


#: 000:1330-1356; None is TLE, MLE, NE or N/A there.
SETS = (
    Set("Segmentation", (21, 441, 226, 842),
        (-252.39, -252.39, -252.39, -252.39, -252.39, -356.57, -252.39, -252.39, -252.39, -319.38,
         -252.39, -252.39, -252.39),
        (0.406, 1.6336, 11.514, 6.75, 0.22, 20.89, 0.57, 11.19, 0.12, 2.596, 0.15, 0.0046, 0.26),
        "segmentation_11", False),
    Set("ImageAlignment", (83, 6889, 400, 3334),
        (-6907, -6907, -6916.95, -6908, -6908, -19572, -6913.1, -6907.6, -6907.6, -6907.6, -6917.09,
         -6907, -6907.6),
        (4.136, 17.2, 2666, 274.5, 6.07, 5977, 370, 6462, 9.85, 531.4, 60.2, 0.65, 18.09),
        "imagealignment_14", False),
    Set("MultiLabel", (2, 4, 3884, 7544670),
        (899.06, 899.06, 899.06, None, None, 889.32, None, 893.66, 846.64, 899.06, 899.06, 899.06,
         899.06),
        (5012.6, 25474, 2863.2, None, None, 54.22, None, 53462, 45514, 1503, 243.03, 21.89, 16.02),
        "multilabel-0.02", True),
    Set("Protein", (404, 163216, 37, 703),
        (11904, 11888, 11974, 10740, None, 9250, 12179, 11670, 11771, 10601.6, 12000.8, 12067,
         12263),
        (86407, 75205, 2010.4, 10013, None, 1838, 32000, 13648, 124.3, 20865, 48137, 39.67, 661),
        "pdb1d2e", False),
    Set("GraphMatching", (1034, 1069156, 188, 1864),
        (3733, 3733, None, 3717, 3721, None, None, 3733, 3730, 3733, 3733, 3732, 3733),
        (17696, 1598, None, 87886, 3432, None, None, 15312, 212.5, 1192.9, 1659, 47.3, 25.9),
        "matching-0.3", True),
)  # fmt: skip

#: The parts of our solver, GDMM as it is printed first.
PARTS = [
    Entrant("GDMM as printed", "graph/sublearn_map.py", {"solver": "gdmm", "max_iter": 100000}),
    Entrant("GDMM, ours, and local search", "graph/sublearn_map.py",
            {"solver": "gdmm_and_search"}),
    Entrant("messages", "graph/sublearn_map.py", {"solver": "messages"}),
    Entrant("local search", "graph/sublearn_map.py", {"solver": "local_search"}),
    Entrant("neighbourhoods", "graph/sublearn_map.py",
            {"solver": "neighbourhoods", "max_iter": 40}),
    Entrant("all together", "graph/sublearn_map.py"),
]  # fmt: skip
#: Algorithms of the thesis that this benchmark has, by their names there.
RIVALS = {"TRW-S": "trw-s", "LBP": "max-product"}


def graph_of(bench: Bench, data: Set) -> Graph:
    """The data that stands for that of the thesis."""
    makers: dict[str, Callable[[], FactorArrays]] = {
        "multilabel-0.02": partial(multilabel, bench.seed, bench.size(3884, 100)),
        "matching-0.3": lambda: matching(0.3, bench.seed, *bench.size((), (80, 12, 30, 5)))[0],
    }
    if data.stands_for in makers:
        return Graph(data.stands_for, makers[data.stands_for])
    (file,) = (i for i in instances(bench.data) if i.name == data.stands_for)
    return Graph(file.name, file.load)


def chosen(bench: Bench) -> list[Set]:
    return bench.some((s for s in SETS), 1)


# --- table 3.1 ------------------------------------------------------------------------------------


def table_3_1(bench: Bench) -> Figures:
    """Sizes of the graphs: the thesis beside ours."""
    columns = {
        "data set": "", "size": "", "paper": ",d", "ours": ",d", "our data": "", "verdict": "",
    }  # fmt: skip
    rows: list[list[Cell]] = []
    for data in chosen(bench):
        problem = graph_of(bench, data).problem
        cells = max(group.n_cells for group in problem.groups)
        ours = (int(problem.domain.max()), cells, problem.n_variables, problem.n_factors)
        for name, paper, own in zip(("labels", "states", "variables", "factors"), data.sizes, ours,
                                    strict=True):  # fmt: skip
            word = verdict(paper, own, is_less_better=False, within=0.001)
            word = word if data.is_same or word == "reproduced" else "nearest"
            rows.append([data.name, name, paper, own, data.stands_for, word])
    return Figures(columns, rows)


# --- table 3.2 ------------------------------------------------------------------------------------


def table_3_2(bench: Bench) -> Figures:
    """Decoded objectives of each algorithm, as shares of the best that anybody found."""
    columns = {
        "data set": "", "algorithm": "", "paper: primal": ".2f", "paper: s": ".3g",
        "paper: lost": ".2%<", "ours: primal": ".4f", "ours: s to it": ".2f<", "ours: lost": ".2%<",
        "bound": ".4f", "found by": "", "bounded by": "", "verdict": "",
    }  # fmt: skip
    rows = [row for data in chosen(bench) for row in compared(bench, data)]
    return Figures(columns, rows)


def compared(bench: Bench, data: Set) -> list[list[Cell]]:
    graph = graph_of(bench, data)
    tuned = best_penalties(bench, graph)
    rivals = bench.size([BY_NAME[name] for name in RIVALS.values()], [])
    parts = [PARTS[0], *([tuned] if tuned else []), *PARTS[1:]]
    found = solve(bench, graph, [*parts, *rivals], LIMIT)
    by_name = {outcome.name: outcome for outcome in found}
    scores = [s for o in found if (s := o.figure("score")) is not None]
    best = max(scores, default=0.0)
    rows = []
    for k, name in enumerate(ALGORITHMS):
        own = by_name.get(RIVALS.get(name, PARTS[0].name if name == "GDMM" else ""))
        if own is None and bench.is_quick:
            continue
        rows.append(line(data, name, (data.primal[k], data.seconds[k]), own, best))
    for name in [o.name for o in found[1 : len(parts)]]:
        rows.append(line(data, f"{name} (not in the paper)", (None, None), by_name[name], best))
    return rows


def line(
    data: Set, name: str, paper: tuple[float | None, float | None], own: Outcome | None, best: float
) -> list[Cell]:
    primal, seconds = paper
    score = None if own is None else own.figure("score")
    theirs, ours = lost(primal, data.best), lost(score, best)
    kept = [None if share is None else 1.0 - share for share in (theirs, ours)]
    word = verdict(*kept, is_less_better=False, within=0.001)
    if own is None:
        return [data.name, name, primal, seconds, theirs, *[None] * 6, word]
    return [
        data.name, name, primal, seconds, theirs, score, own.figure("fit_cpu_seconds"), ours,
        own.figure("bound"), part(own, "found_by"), part(own, "bounded_by"), word,
    ]  # fmt: skip


def lost(score: float | None, best: float) -> float | None:
    """The share of the best objective that is missing."""
    if score is None or not np.isfinite(score):
        return None
    return max(0.0, best - score) / max(1e-12, abs(best))


def best_penalties(bench: Bench, graph: Graph) -> Entrant | None:
    """GDMM with the best of the thesis' rho in {1, .1, .01, .001} and eta in {.1, 1}."""
    pairs = [(rho, eta) for rho in (1.0, 0.1, 0.01, 0.001) for eta in (0.1, 1.0)]
    entrants = [
        replace(
            PARTS[0].having(rho=rho, eta=eta), name=f"GDMM as printed, rho {rho:g}, eta {eta:g}"
        )
        for rho, eta in bench.some(pairs)
    ]
    found = solve(bench, graph, entrants, PAIR_LIMIT)
    known = [(o.figure("score") or -np.inf, -k) for k, o in enumerate(found)]
    return entrants[-max(known)[1]] if known else None


# --- figure 3.4 -----------------------------------------------------------------------------------

CURVES = {"GDMM as printed": "gdmm", "GDMM, ours, and local search": "gdmm_and_search",
          "messages": "messages", "all together": "auto"}  # fmt: skip
GRID = np.geomspace(0.01, CURVE_LIMIT, 25)


def figure_3_4(bench: Bench) -> Figures:
    """Relative primal gap over time; bands over three seeds."""
    columns = {
        "data set": "", "solver": "", "gap at 0.1 s": ".2e<", "at 1 s": ".2e<", "at the end": ".2e<"
    }  # fmt: skip
    rows: list[list[Cell]] = []
    charts = []
    for data in chosen(bench):
        gaps = curves(bench, data)
        series = []
        for name, values in gaps.items():
            low, mid, high = values.min(axis=0), np.median(values, axis=0), values.max(axis=0)
            series.append(Series(name, GRID.tolist(), mid.tolist(), low.tolist(), high.tolist()))
            at = [mid[int(np.searchsorted(GRID, s * 0.999))] for s in (0.1, 1.0)]
            rows.append([data.name, name, *map(float, at), float(mid[-1])])
        charts.append(
            Chart(
                f"figure_3_4_{data.name.lower()}",
                f"{data.name} ({data.stands_for})",
                "seconds",
                "relative primal gap (decoded)",
                series,
                log_x=True,
                log_y=True,
                caption="Medians and bands of three seeds; gaps are to the best score of any run.",
            )
        )
    return Figures(columns, rows, charts=charts)


def curves(bench: Bench, data: Set) -> dict[str, np.ndarray]:
    """For each solver the gaps at the moments of the grid, a row for each seed."""
    from sublearn.graph import solve_map

    graph = as_factor_graph(graph_of(bench, data).problem)
    graph._compiled()
    limit = bench.limit(CURVE_LIMIT, 0.5)
    found: dict[str, list[np.ndarray]] = {}
    for name, solver in CURVES.items():
        for seed in range(bench.size(3, 1)):
            trace = solve_map(
                graph, solver=solver, time_limit=limit, max_iter=100000, random_state=seed
            ).trace
            at = np.searchsorted(trace["seconds"], GRID, side="right") - 1
            found.setdefault(name, []).append(trace["score"][np.maximum(at, 0)])
    best = max(float(scores.max()) for runs in found.values() for scores in runs)
    floor = 1e-6  # the least that a logarithmic axis shows
    return {
        name: np.maximum((best - np.array(runs)) / max(1.0, abs(best)), floor)
        for name, runs in found.items()
    }


TABLES = [
    Table(
        "table_3_1",
        "Table 3.1: data statistics",
        "Multilabel and graph matching are generated at the sizes of the thesis, the other three "
        "graphs are the nearest files; factors of one variable are counted in the thesis and are "
        "part of the variables here.",
        table_3_1,
        page=PAGE,
    ),
    Table(
        "table_3_2",
        "Table 3.2: decoded objectives and the time to reach them",
        "Scores of different data cannot be compared, so the verdict compares what is lost of the "
        "best objective that any algorithm found on the same data, within a thousandth; seconds "
        "are CPU seconds of this machine, at most 10 for each run, days in the thesis. The rows "
        "that are not in the paper are the parts of solve_map alone, and all together: who found "
        "the score and who lowered the bound last.",
        table_3_2,
        page=PAGE,
    ),
    Table(
        "figure_3_4",
        "Figure 3.4: relative primal gap over time",
        "Elapsed seconds, of which a busy machine gives less.",
        figure_3_4,
        page=PAGE,
    ),
]
