"""MAP inference on factor graphs: this library, its rivals, and two judges of the benchmark.

    python benchmarks/graph.py --only uai --limit 2 --instances "grids*" --solvers sublearn toulbar2
    python benchmarks/graph.py --json benchmarks/results/graph.json \\
        --runs benchmarks/results/graph-runs.jsonl
    python benchmarks/graph.py --only growth
    python benchmarks/graph.py --records benchmarks/results/graph.json \\
        --markdown docs/measured/graph.md

Every solver has the same CPU seconds (`--limit`), one thread and a process of its own; imports,
reading and a rival's own form of the graph are off its clock. Scores are natural logarithms,
recomputed from the assignment by one function (harness/factors.py). With `--runs FILE` every run is
kept in a line of that file, and runs that are there already (same graph, solver, limit) are not
made again: a long table can be measured in pieces.
"""

from __future__ import annotations

import argparse
import fnmatch
import functools
import json
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from harness.contest import Run, Solver, run
from harness.factors import FactorArrays
from harness.figures import Figures, Measurement, main
from harness.graphs import Instance, instances, matching, multilabel, near_points
from harness.growth import fit_exponent

OURS = "sublearn"
#: The first is ours; the rivals are in the order of the columns.
SOLVERS = [
    Solver(OURS, "main", "sublearn_map.py"),
    Solver("toulbar2", "toulbar2", "toulbar2_search.py"),
    Solver("toulbar2-vns", "toulbar2", "toulbar2_search.py", {"vns": -4}),
    Solver("cp-sat", "ortools", "ortools_cpsat.py"),
    Solver("trw-s", "main", "judge_trws.py"),
    Solver("max-product", "main", "judge_max_product.py"),
    Solver("pdlp", "ortools", "ortools_pdlp.py"),
    Solver("pgmpy", "pgmpy", "pgmpy_mplp.py"),
]
BY_NAME = {solver.name: solver for solver in SOLVERS}
#: Reference assignments that seem to be of another problem. Those of the segmentations have label 0
#: at variable 0 and are exactly optimal with that fixed, while the free optimum has another label
#: there and differs nowhere else: as if it had been evidence, of which the data has no file.
CONDITIONED = ("segmentation_*",)
#: Two scores are equal when they differ by less than this share: rivals round to six decimals.
SAME = 1e-6


class Options(argparse.Namespace):
    """What this script takes besides the arguments of harness/figures.py."""

    limit: float = 10.0
    instances: Sequence[str] = ("*",)
    solvers: Sequence[str] = tuple(BY_NAME)
    runs: Path | None = None


OPTIONS = Options()


def parse(arguments: Sequence[str]) -> list[str]:
    """Sets OPTIONS; the arguments that are left."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--limit", type=float, help="CPU seconds for each solver and graph (10)")
    parser.add_argument("--instances", nargs="+", help="patterns of the names of UAI instances")
    parser.add_argument("--solvers", nargs="+", choices=list(BY_NAME), help="these alone")
    parser.add_argument(
        "--runs", type=Path, help="keep every run in this file, and take it from there"
    )
    if "-h" in arguments or "--help" in arguments:
        parser.print_help()
    given, rest = parser.parse_known_args(arguments)
    for name, value in vars(given).items():
        if value is not None:
            setattr(OPTIONS, name, value)
    return rest


# --- runs -----------------------------------------------------------------------------------------


class Graph:
    """A graph in a file for the solvers' processes, and their runs."""

    def __init__(self, name: str, load: Callable[[], FactorArrays], seed: int):
        self.name, self.seed = name, seed
        self._load = load

    @functools.cached_property
    def problem(self) -> FactorArrays:
        return self._load()

    @functools.cached_property
    def _folder(self) -> tempfile.TemporaryDirectory[str]:
        return tempfile.TemporaryDirectory(prefix="graph-")

    @functools.cached_property
    def file(self) -> Path:
        path = Path(self._folder.name) / "graph.npz"
        self.problem.save(path)
        return path

    def run(self, solver: Solver, limit: float | None = None, threads: int = 1) -> Run:
        """A run, or what is kept of one."""
        limit = OPTIONS.limit if limit is None else limit
        key = [self.name, solver.name, dict(solver.settings), limit, self.seed, threads]
        found = kept(key)
        if found is None:
            found = run(self.problem, self.file, solver, limit, self.seed, threads)
            keep(key, found)
            print(f"  {self.name}: {solver.name}: {told(found)}", file=sys.stderr, flush=True)
        return found


def kept(key: list[Any]) -> Run | None:
    """The last run of this key in the file of runs."""
    found = None
    if OPTIONS.runs is not None and OPTIONS.runs.exists():
        for line in OPTIONS.runs.read_text().splitlines():
            entry = json.loads(line)
            if entry["key"] == key:
                found = Run(**entry["run"])
    return found


def keep(key: list[Any], found: Run) -> None:
    if OPTIONS.runs is not None:
        OPTIONS.runs.parent.mkdir(parents=True, exist_ok=True)
        with OPTIONS.runs.open("a") as file:
            file.write(json.dumps({"key": key, "run": asdict(found)}) + "\n")


def told(found: Run) -> str:
    parts = [found.error] if found.error else []
    for name in (
        "score",
        "bound",
        "seconds_to_best",
        "cpu_seconds",
        "wall_seconds",
        "above_data_mb",
    ):
        value = getattr(found, name)
        parts += [] if value is None else [f"{name} {value:.8g}"]
    return ", ".join(parts)


# --- the instances of the competitions ------------------------------------------------------------


def uai(directory: Path, seed: int) -> Figures:
    """A row for each instance: ours, and by how much it is ahead of each rival."""
    rivals = [BY_NAME[name] for name in OPTIONS.solvers if name != OURS]
    columns = {
        "instance": "", "reference": ".4f", "ours": ".4f", "bound": ".4f", "gap": ".1e",
        "s to best": ".2f", "CPU s": ".1f", "MB": ".0f", "- reference": ".4f",
        "- best rival": ".4f", "proven by": "",
    }  # fmt: skip
    columns |= {f"- {rival.name}": ".4f" for rival in rivals}
    chosen = [i for i in instances(directory) if is_chosen(i.name)]
    return Figures(columns, [compared(instance, rivals, seed) for instance in chosen])


def is_chosen(name: str) -> bool:
    return any(fnmatch.fnmatch(name, pattern) for pattern in OPTIONS.instances)


def compared(instance: Instance, rivals: Sequence[Solver], seed: int) -> list[Any]:
    graph = Graph(instance.name, instance.load, seed)
    ours = graph.run(BY_NAME[OURS])
    others = {rival.name: graph.run(rival) for rival in rivals}
    labels = instance.reference_labels()
    reference = None if labels is None else graph.problem.score(labels)
    is_other = any(fnmatch.fnmatch(instance.name, pattern) for pattern in CONDITIONED)
    scores = [r.score for r in others.values() if r.score is not None]
    bound = ours.bound if holds(ours, list(others.values())) else f"WRONG: {ours.bound}"
    proven = [name for name, found in {OURS: ours, **others}.items() if is_proof(found)]
    return [
        instance.name, reference, ours.score, bound, ours.gap, ours.seconds_to_best,
        ours.cpu_seconds, ours.above_data_mb,
        "other problem" if is_other else ahead(ours.score, reference),
        ahead(ours.score, max(scores, default=None)), ", ".join(proven) or "nobody",
        *(cell(ours, other) for other in others.values()),
    ]  # fmt: skip


def is_proof(found: Run) -> bool:
    """Whether nothing better can exist: by its bound, or as it says with its rounded scores."""
    return (found.gap is not None and found.gap <= SAME) or bool(found.more.get("proven"))


def holds(ours: Run, others: Sequence[Run]) -> bool:
    """Whether no assignment that somebody has scores more than our bound."""
    scores = [other.score for other in others if other.score is not None]
    if ours.bound is None or not scores:
        return True
    return ours.bound >= max(scores) - SAME * max(1.0, abs(max(scores)))


def ahead(score: float | None, other: float | None) -> float | str | None:
    """By how much a score is better; zero where that is rounding."""
    if score is None or other is None:
        return None
    if np.isneginf(other):
        return "inf" if np.isfinite(score) else 0.0
    difference = score - other
    return 0.0 if abs(difference) <= SAME * max(1.0, abs(other)) else difference


def cell(ours: Run, other: Run) -> float | str | None:
    if other.score is not None:
        return ahead(ours.score, other.score)
    is_skipped = other.error is not None and other.error.startswith(("skipped", "not prepared"))
    return "skipped" if is_skipped else "none"


# --- graph matching -------------------------------------------------------------------------------

MATCHING_LIMIT = 30.0


def graph_matching(directory: Path, seed: int) -> Figures:
    """Ours with its proof, the judge with dense messages until it has the same score."""
    columns = {
        "noise": "g", "solver": "", "score": ".4f", "bound": ".4f", "CPU s": ".2f",
        "iterations": ".0f", "CPU s / iteration": ".3f", "MB above data": ".0f", "remark": "",
    }  # fmt: skip
    return Figures(columns, [row for noise in (0.3, 0.5) for row in matched(noise, seed)])


def matched(noise: float, seed: int) -> list[list[Any]]:
    problem, planted = matching(noise, seed)
    graph = Graph(f"matching-{noise:g}", lambda: problem, seed)
    ours = graph.run(BY_NAME[OURS], MATCHING_LIMIT)
    goal = {} if ours.score is None else {"goal": ours.score - SAME * abs(ours.score)}
    judge = Solver("trw-s", "main", "judge_trws.py", goal)
    others = {"trw-s": graph.run(judge, MATCHING_LIMIT)}
    for name in ("max-product", "toulbar2", "cp-sat"):
        others[name] = graph.run(BY_NAME[name], MATCHING_LIMIT)
    rows: list[list[Any]] = [
        [noise, "planted", problem.score(planted), None, None, None, None, None, ""]
    ]
    for name, found in {OURS: ours, **others}.items():
        n_iter = found.more.get("n_iter")
        per_iteration = found.cpu_seconds / n_iter if found.cpu_seconds and n_iter else None
        rows.append([
            noise, name, found.score, found.bound, found.cpu_seconds, n_iter, per_iteration,
            found.above_data_mb, found.error or "",
        ])  # fmt: skip
    return rows


# --- multilabel -----------------------------------------------------------------------------------

MULTILABEL_LIMIT = 60.0


def many_factors(directory: Path, seed: int) -> Figures:
    """A complete graph of 3884 binary variables, and the EUR-Lex document."""
    chosen = [
        Graph(f"multilabel-{share:g}", functools.partial(multilabel, seed, positive=share), seed)
        for share in (0.02, 0.5)
    ]
    chosen += [Graph(i.name, i.load, seed) for i in instances(directory) if "eurlex" in i.name]
    rows = []
    for graph in chosen:
        found = graph.run(BY_NAME[OURS], MULTILABEL_LIMIT)
        rows.append([
            graph.name, graph.problem.n_variables, graph.problem.n_factors, found.score,
            found.bound, found.gap, found.cpu_seconds, found.wall_seconds, found.more.get("n_iter"),
            found.above_data_mb, found.error or "",
        ])  # fmt: skip
    columns = {
        "graph": "", "variables": ",d", "factors": ",d", "score": ".5f", "bound": ".5f",
        "gap": ".1e", "CPU s": ".2f", "wall s": ".2f", "iterations": ".0f",
        "MB above data": ".0f", "remark": "",
    }  # fmt: skip
    return Figures(columns, rows)


# --- growth ---------------------------------------------------------------------------------------

#: Bound and search come after iterations 10, 30, 70 and 150: from 72 to 149 there is GDMM alone. It
#: sorts rows of the table when they are first needed, so the time of late iterations still has some
#: of that in it. Operations do not count it, but have those of the search in them.
FEW, MANY, CHECKS = 71, 149, (70, 150)
#: With less noise the network is solved in a few iterations, and there is nothing to measure.
GROWTH_NOISE = 0.7
#: CPU seconds of a size after which the next one is left out.
GROWTH_BUDGET = 60.0


def growth(directory: Path, seed: int) -> Figures:
    """Domains doubled at a fixed graph: CPU time and operations of an iteration of GDMM."""
    kinds: dict[str, Callable[[int], FactorArrays]] = {
        "network": lambda size: matching(GROWTH_NOISE, seed, size, 100, 300)[0],
        "points": lambda size: near_points(size, seed)[0],
    }
    columns = {
        "graph": "", "labels": "", "ms / iteration": ".3f", "operations / iteration": ",.2f",
        "first 71 iterations, s": ".3f", "active labels": ",.0f", "active states": ",.0f",
    }  # fmt: skip
    return Figures(columns, [row for kind, make in kinds.items() for row in series(kind, make)])


def series(kind: str, make: Callable[[int], FactorArrays]) -> list[list[Any]]:
    """A row for each size, and the exponents over the sizes that were not solved too soon."""
    rows: list[list[Any]] = []
    for size in (32 * 2**k for k in range(8)):
        start = time.process_time()
        rows.append([kind, f"{size}", *grown(make(size))])
        print(f"  {rows[-1]}", file=sys.stderr, flush=True)
        if time.process_time() - start > GROWTH_BUDGET:
            break
    known = [row for row in rows if row[2] is not None and row[2] > 0]
    sizes = [float(row[1]) for row in known]
    exponents = [
        fit_exponent(sizes, [row[k] for row in known]) if len(known) > 1 else None for k in (2, 3)
    ]
    return [*rows, [kind, "exponent", *exponents, None, None, None]]


def grown(problem: FactorArrays) -> list[float | None]:
    """Columns of `growth` for one size; no time of an iteration if there were fewer of them."""
    graph = as_graph(problem)
    graph._compiled()
    few, many = (min(timed(graph, n)[0] for _ in range(2)) for n in (FEW, MANY))
    _, trace = timed(graph, CHECKS[1])
    at = [np.flatnonzero(trace["n_iter"] == n) for n in CHECKS]
    if not all(len(rows) for rows in at):
        return [None, None, few, None, None]
    first, last = (int(rows[0]) for rows in at)
    work = float(trace["work"][last] - trace["work"][first]) / (CHECKS[1] - CHECKS[0])
    active = [float(trace[name][last]) for name in ("n_labels", "n_states")]
    return [1000 * (many - few) / (MANY - FEW), work, few, *active]


def as_graph(problem: FactorArrays) -> Any:
    """For this library, one table for all factors."""
    from sublearn.graph import FactorGraph

    (group,) = problem.groups
    graph = FactorGraph(unary=problem.unary.reshape(problem.n_variables, -1))
    graph.add_factors(group.scopes, group.tables[0])
    return graph


def timed(graph: Any, max_iter: int) -> tuple[float, Any]:
    """CPU seconds of this many iterations, and their trace."""
    from sublearn.graph import solve_map

    start = time.process_time()
    result = solve_map(graph, method="gdmm", max_iter=max_iter, tol=0.0, search_work=0.0)
    return time.process_time() - start, result.trace


# --- threads --------------------------------------------------------------------------------------


def threads(directory: Path, seed: int) -> Figures:
    """Elapsed seconds of a fixed number of iterations with one and two threads."""
    from sublearn.graph import solve_map

    graph = as_graph(matching(0.5, seed)[0])
    laps: dict[int, list[tuple[float, float, float]]] = {1: [], 2: []}
    for _ in range(3):
        for n_jobs in laps:
            wall, cpu = time.perf_counter(), time.process_time()
            found = solve_map(
                graph, method="gdmm", max_iter=150, tol=0.0, search_work=0.0, n_jobs=n_jobs
            )
            laps[n_jobs].append(
                (time.perf_counter() - wall, time.process_time() - cpu, found.score)
            )
    best = {n: min(values) for n, values in laps.items()}
    rows = [[f"{n}", w, c, best[1][0] / w, score] for n, (w, c, score) in best.items()]
    return Figures(
        {"threads": "", "wall s": ".3f", "CPU s": ".3f", "speed-up": ".2f", "score": ".6f"}, rows
    )


MEASUREMENTS = [
    Measurement(
        "uai",
        "Instances of the competitions",
        "Natural-log scores. A column with a minus is ours less that: positive is ahead. A "
        "reference is the file beside the model and no proof: those of the segmentations are "
        "optimal with variable 0 fixed at label 0, so they are not compared. toulbar2 gets large "
        "finite costs for forbidden states: infinite ones crash it on promedas_11, but it finds "
        "more with them on the object detections.",
        uai,
    ),
    Measurement(
        "matching",
        "Graph matching: 188 variables of 1034 labels, 1864 factors with one table",
        f"At most {MATCHING_LIMIT:g} CPU seconds; trw-s ends when it has our score.",
        graph_matching,
    ),
    Measurement(
        "multilabel",
        "Multilabel: complete graphs of binary variables",
        "Asked for a relative gap of 1e-6. Generated graphs: by their share of positive weights.",
        many_factors,
    ),
    Measurement(
        "growth",
        "Growth: domains doubled, 100 variables and 300 factors with one table",
        "GDMM alone, tables sorted; a network as in graph matching, points of a square.",
        growth,
    ),
    Measurement(
        "threads",
        "Two threads: 150 iterations of the graph matching of noise 0.5",
        "The fastest of three rounds.",
        threads,
    ),
]

if __name__ == "__main__":
    raise SystemExit(main("MAP inference", MEASUREMENTS, parse(sys.argv[1:])))
