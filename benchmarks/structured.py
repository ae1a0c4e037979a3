"""Tagging of sequences: this library, CRFsuite's algorithms, and solvers with dense oracles.

    python benchmarks/structured.py --only accuracy --sets chinese_ocr wsj_pos_crf --limit 20
    python benchmarks/structured.py --json benchmarks/results/structured.json \\
        --runs benchmarks/results/structured-runs.jsonl
    python benchmarks/structured.py --records benchmarks/results/structured.json \\
        --markdown docs/measured/structured.md

All entrants get the same matrix of features (harness/chains.py) and one thread, each in a process
of its own; imports, reading and a rival's own form of the sequences are off its clock. CRFsuite
gives no model before it ends, so it and ours are refitted with 1, 2, 4, ... iterations as long as a
fit takes at most `--limit` CPU seconds; a fit counts by its own seconds. Tags are judged here: the
processes do not see the true ones of the test part. Parameters are chosen on training sequences,
every fifth of them asked. With `--runs FILE` every run is kept in a line of that file, and runs
that are there already are not made again: a long table can be measured in pieces.
"""

from __future__ import annotations

import argparse
import functools
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from harness.chains import N_FOLDS, PROBLEMS, Split
from harness.figures import Figures, Measurement, main
from harness.label_sets import LABEL_SETS
from harness.tag_growth import GROWTH
from harness.tagging import Course, Lap, Tagger, follow

OURS = "sublearn"
LBFGS, LBFGS_END = "crf-lbfgs", "crf-lbfgs-to-its-end"
#: From so many iterations on, within `--end-limit`: where a fit to the end takes hours.
LBFGS_SOME, N_SOME = "crf-lbfgs-longer", 20


def crfsuite(name: str, algorithm: str) -> Tagger:
    return Tagger(name, "crfsuite", "crfsuite_train.py", {"algorithm": algorithm})


#: The first is ours; what is tuned has its values in TUNED. All else are defaults.
TAGGERS = [
    Tagger(OURS, "main", "sublearn_chain.py"),
    crfsuite(LBFGS, "lbfgs"),
    crfsuite(LBFGS_END, "lbfgs").having(first=1024),
    crfsuite(LBFGS_SOME, "lbfgs").having(first=N_SOME),
    crfsuite("crf-lbfgs-tuned", "lbfgs"),
    crfsuite("crf-l2sgd", "l2sgd"),
    crfsuite("crf-ap", "ap"),
    crfsuite("crf-pa", "pa"),
    crfsuite("crf-arow", "arow"),
]
BY_NAME = {tagger.name: tagger for tagger in TAGGERS}
#: Parameter and values; c2 is CRFsuite's weight of the squared norm, 1 by default.
TUNED: Mapping[str, tuple[str, Sequence[float]]] = {
    OURS: ("C", (0.1, 0.3, 1.0)),
    "crf-lbfgs-tuned": ("c2", (0.01, 0.1, 10.0)),
}
#: CPU seconds of a fit for choosing a parameter at most. Less than fits have later, and C is chosen
#: too small, for small values are at their end sooner.
TUNING_LIMIT = 30.0
#: Training tokens at most for choosing a parameter: brown has a million.
TUNING_TOKENS = 200_000
_OTHER_FOLDS = [f"ocr_letters/{fold}" for fold in range(1, N_FOLDS)]
DEFAULT_SETS = tuple(p.name for p in PROBLEMS if p.name not in _OTHER_FOLDS)


class Options(argparse.Namespace):
    """What this script takes besides the arguments of harness/figures.py."""

    limit: float = 60.0
    end_limit: float = 60.0
    sets: Sequence[str] = DEFAULT_SETS
    taggers: Sequence[str] = tuple(BY_NAME)
    solvers: Sequence[str] = ()
    test_tokens: int | None = None
    runs: Path | None = None


OPTIONS = Options()


def parse(arguments: Sequence[str]) -> list[str]:
    """Sets OPTIONS; the arguments that are left."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--limit", type=float, help="CPU seconds of a fit at most (60)")
    parser.add_argument(
        "--end-limit", type=float, help=f"of {LBFGS_END}, stopped after three times this (60)"
    )
    parser.add_argument("--sets", nargs="+", choices=[p.name for p in PROBLEMS], help="these alone")
    parser.add_argument("--taggers", nargs="+", choices=list(BY_NAME), help="these alone")
    parser.add_argument("--solvers", nargs="+", help="of the objective, these alone")
    parser.add_argument("--test-tokens", type=int, help="ask the first sequences alone")
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


@functools.cache
def opened(name: str, directory: Path) -> Split:
    """A set by its name; brown takes half a minute to read."""
    (problem,) = (p for p in PROBLEMS if p.name == name)
    return problem.open(directory)


class Data:
    """A set that is read when a run needs it, and its runs."""

    def __init__(self, name: str, load: Callable[[], Split], seed: int):
        self.name, self.seed = name, seed
        self._load = load

    @functools.cached_property
    def split(self) -> Split:
        return self._load()

    def run(self, tagger: Tagger, limit: float, C: float | None = None) -> Course:
        """A run, or what is kept of one; with C, of the objective."""
        key = [self.name, tagger.name, dict(tagger.settings), limit, self.seed, C]
        found = kept(key)
        if found is None:
            found = follow(self.split, tagger, limit, self.seed, C)
            keep(key, found)
            print(f"  {self.name}: {tagger.name}: {told(found)}", file=sys.stderr, flush=True)
        return found

    def facts(self) -> dict[str, int]:
        """Sizes, which tables show; kept like runs, so that a table needs no data."""
        key = [self.name, "facts", self.seed]
        found = kept(key)
        if found is None:
            train, test = self.split.train, self.split.test
            lap = Lap(train.n_tokens, self.split.n_labels, accuracy=test.n_tokens)
            found = Course([lap])
            keep(key, found)
        lap = found.laps[0]
        return {
            "tokens": int(lap.seconds),
            "tags": int(lap.n_iter),
            "asked": int(lap.accuracy or 0),
        }


def kept(key: list[Any]) -> Course | None:
    """The last run of this key in the file of runs."""
    found = None
    if OPTIONS.runs is not None and OPTIONS.runs.exists():
        for line in OPTIONS.runs.read_text().splitlines():
            entry = json.loads(line)
            if entry["key"] == key:
                laps = [Lap(**lap) for lap in entry["run"]["laps"]]
                found = Course(laps, entry["run"]["error"])
    return found


def keep(key: list[Any], found: Course) -> None:
    if OPTIONS.runs is not None:
        OPTIONS.runs.parent.mkdir(parents=True, exist_ok=True)
        with OPTIONS.runs.open("a") as file:
            file.write(json.dumps({"key": key, "run": asdict(found)}) + "\n")


def told(found: Course) -> str:
    parts = [found.error] if found.error else []
    for name, value in asdict(found.last).items() if found.last else ():
        parts += [] if value is None else [f"{name} {value:.6g}"]
    return ", ".join(parts)


def chosen(data: Data, tagger: Tagger) -> Tagger:
    """With the best of the values in TUNED, by the last model of short runs on training tokens."""
    if tagger.name not in TUNED:
        return tagger
    name, values = TUNED[tagger.name]
    inner = Data(f"{data.name}, inner", lambda: shortened(data.split).inner(), data.seed)
    limit = min(OPTIONS.limit, TUNING_LIMIT)
    found = {v: inner.run(tagger.having(**{name: v}), limit).last for v in values}
    rated = {v: lap.accuracy for v, lap in found.items() if lap and lap.accuracy is not None}
    if not rated:
        return tagger
    return tagger.having(**{name: max(rated, key=lambda v: rated[v])})


def shortened(split: Split) -> Split:
    return Split(split.train.head(TUNING_TOKENS), split.test, split.n_labels)


# --- accuracy -------------------------------------------------------------------------------------


def accuracy(directory: Path, seed: int) -> Figures:
    """A row for each set and tagger; sets on which we lose come first."""
    columns = {
        "set": "", "tagger": "", "% right": ".2f", "ours is ahead by": "+.2f", "CPU s": ".1f",
        "iterations": ".0f", "CPU s to lbfgs' accuracy": ".2f", "tokens / CPU s": ",.0f",
        "model MB": ".1f", "remark": "",
    }  # fmt: skip
    courses = {name: contest(directory, name, seed) for name in OPTIONS.sets}
    order = sorted(courses, key=lambda name: lead(courses[name][1]))
    return Figures(columns, [row for name in order for row in rows_of(*courses[name])])


Contest = tuple[Data, dict[str, tuple[Tagger, Course]]]


def contest(directory: Path, name: str, seed: int) -> Contest:
    def load() -> Split:
        split = opened(name, directory)
        return Split(split.train, split.test.head(OPTIONS.test_tokens), split.n_labels)

    data = Data(f"{name}, {OPTIONS.test_tokens or 'all'} asked", load, seed)
    found = {}
    for tagger in (BY_NAME[n] for n in OPTIONS.taggers):
        tagger = chosen(data, tagger)
        is_long = tagger.name in (LBFGS_END, LBFGS_SOME)
        limit = max(OPTIONS.end_limit, OPTIONS.limit) if is_long else OPTIONS.limit
        found[tagger.name] = tagger, data.run(tagger, limit)
    return data, found


def accuracy_of(course: Course) -> float | None:
    return course.last.accuracy if course.last else None


def lead(found: Mapping[str, tuple[Tagger, Course]]) -> float:
    """By how many points we are ahead of the best rival."""
    rated = {name: accuracy_of(course) for name, (_, course) in found.items()}
    ours = rated.pop(OURS, None)
    others = [a for a in rated.values() if a is not None]
    if ours is None:
        return -100.0
    return 100.0 * (ours - max(others)) if others else 100.0


def rows_of(data: Data, found: Mapping[str, tuple[Tagger, Course]]) -> list[list[Any]]:
    facts = data.facts()
    title = f"{data.name.partition(',')[0]} ({facts['tokens']:,} tokens, {facts['tags']} tags)"
    ours = accuracy_of(found[OURS][1]) if OURS in found else None
    goals = [accuracy_of(found[n][1]) for n in (LBFGS_END, LBFGS_SOME, LBFGS) if n in found]
    goal = next((g for g in goals if g is not None), None)
    rows = []
    for name, (tagger, course) in found.items():
        last, right = course.last, accuracy_of(course)
        ahead = None if ours is None or right is None or name == OURS else 100 * (ours - right)
        rows.append([
            title, name, None if right is None else 100 * right, ahead,
            last and last.seconds, last and last.n_iter,
            None if goal is None else course.seconds_to(goal),
            last and last.tokens_per_second, last and last.model_mb, remark(tagger, course),
        ])  # fmt: skip
    return rows


def remark(tagger: Tagger, course: Course) -> str:
    """The parameter that was chosen, and how the run ended."""
    name, _ = TUNED.get(tagger.name, ("", ()))
    parts = [f"{name} = {tagger.settings[name]:g}"] if name in tagger.settings else []
    if course.error:
        parts.append(course.error)
    elif course.last and not course.last.is_done:
        parts.append("not at its end")
    return ", ".join(parts)


# --- folds ----------------------------------------------------------------------------------------

FOLD_TAGGERS = (OURS, LBFGS, "crf-ap", "crf-pa")


def folds(directory: Path, seed: int) -> Figures:
    """Means over the folds of handwriting, the parameter chosen anew in each.

    Over all of them, unless `--sets` names several.
    """
    every = [f"ocr_letters/{fold}" for fold in range(N_FOLDS)]
    named = [name for name in every if name in OPTIONS.sets]
    names = named if len(named) > 1 else every
    contests = [contest(directory, name, seed)[1] for name in names]
    rows = []
    for tagger in (t for t in FOLD_TAGGERS if t in OPTIONS.taggers):
        found = [(accuracy_of(c[tagger][1]), accuracy_of(c[OURS][1])) for c in contests]
        right = [100 * a for a, _ in found if a is not None]
        ahead = [100 * (ours - a) for a, ours in found if a is not None and ours is not None]
        seconds = [c[tagger][1].last.seconds for c in contests if c[tagger][1].last]
        is_ours = tagger == OURS
        rows.append([
            tagger, len(right), np.mean(right), None if is_ours else np.mean(ahead),
            None if is_ours else np.std(ahead, ddof=1) / np.sqrt(len(ahead)),
            None if is_ours else f"{sum(a > 0 for a in ahead)} of {len(ahead)}", np.mean(seconds),
        ])  # fmt: skip
    columns = {
        "tagger": "", "folds": "", "% right": ".2f", "ours is ahead by": "+.2f",
        "standard error": ".2f", "ours is ahead in": "", "CPU s": ".1f",
    }  # fmt: skip
    return Figures(columns, rows)


# --- the objective --------------------------------------------------------------------------------

OBJECTIVE_C = 0.1
#: Soft-BCFW's penalty; the larger, the closer its optimum and the longer the way.
SOFT_RHO = 1.0
OBJECTIVE_SETS = ("ud_latin_ittb", "ud_latin_ittb/all_tags", "brown/all_tags")
SOLVERS = [
    Tagger(OURS, "main", "sublearn_chain.py", {"C": OBJECTIVE_C, "max_passes": 256}),
    Tagger("bcfw", "main", "judge_oracle.py", {"method": "bcfw", "C": OBJECTIVE_C}),
    Tagger("subgradient", "main", "judge_oracle.py", {"method": "subgradient", "C": OBJECTIVE_C}),
    Tagger(
        "soft-bcfw",
        "main",
        "judge_oracle.py",
        {"method": "soft-bcfw", "C": OBJECTIVE_C, "rho": SOFT_RHO},
    ),
]
#: Ours for longer, with its bound after the last pass: what the others are measured against.
REFERENCE = Tagger(
    "sublearn, longer, with its certificate",
    "main",
    "sublearn_chain.py",
    {"C": OBJECTIVE_C, "max_passes": 256, "evaluate_every": 1000, "first": 64},
)
REFERENCE_SHARE = 4.0


def objective(directory: Path, seed: int) -> Figures:
    """CPU seconds until the objective is within 1 % of the least that anybody reached."""
    rows = []
    for name in (name for name in OBJECTIVE_SETS if name in OPTIONS.sets):
        data = Data(f"{name}, first all", functools.partial(opened, name, directory), seed)
        wanted = OPTIONS.solvers or [s.name for s in (*SOLVERS, REFERENCE)]
        found = {
            s.name: data.run(s, OPTIONS.limit, OBJECTIVE_C) for s in SOLVERS if s.name in wanted
        }
        if REFERENCE.name in wanted:
            longer = REFERENCE_SHARE * OPTIONS.limit
            found[REFERENCE.name] = data.run(REFERENCE, longer, OBJECTIVE_C)
        rows += objective_rows(data, found)
    columns = {
        "set": "", "solver": "", "passes": ".2f", "CPU s": ".1f", "objective": ",.2f",
        "above the least": ".2%", "above the optimum at most": ".2%", "CPU s to 10 %": ".2f",
        "CPU s to 1 %": ".2f", "CPU s of ours to this objective": ".2f",
        "bound from below": ",.2f", "remark": "",
    }  # fmt: skip
    return Figures(columns, rows)


def objective_rows(data: Data, found: Mapping[str, Course]) -> list[list[Any]]:
    facts = data.facts()
    title = f"{data.name.partition(',')[0]} ({facts['tokens']:,} tokens, {facts['tags']} tags)"
    values = [lap.primal for course in found.values() for lap in course.laps if lap.primal]
    least = min(values, default=float("nan"))
    known = [lap.bound for course in found.values() for lap in course.laps if lap.bound]
    bound = max(known, default=float("nan"))
    rows = []
    for name, course in found.items():
        last = course.last
        primal = last.primal if last else None
        above = [primal / other - 1.0 if primal else None for other in (least, bound)]
        bounds = [lap.bound for lap in course.laps if lap.bound is not None]
        rows.append([
            title, name, last and last.n_iter, last and last.seconds, primal, *above,
            course.seconds_to_primal(1.1 * least), course.seconds_to_primal(1.01 * least),
            found[OURS].seconds_to_primal(primal) if primal else None,
            max(bounds, default=None), course.error or "",
        ])  # fmt: skip
    return rows


MEASUREMENTS = [
    Measurement(
        "accuracy",
        "Tagging: the same features for everybody",
        "The last model counts: its fit takes about half the limit to the limit, more if a single "
        "iteration does. Who is `not at its end` may become better with more, CRFsuite's L-BFGS "
        "above all: crf-lbfgs-to-its-end is stopped by three "
        "times `--end-limit` alone. `ours is ahead by`: points; negative where we lose. Our C "
        "and c2 of crf-lbfgs-tuned were chosen on training sequences, by fits within the same "
        f"limit, {TUNING_LIMIT:g} s at most; all else are defaults. `CPU s to lbfgs' accuracy`: of "
        "the cheapest fit that is right as often as the longest fit of crf-lbfgs in the table; no "
        "figure if none is. `/all_tags`: few of the training sequences, with every tag, so that "
        "dense solvers can be followed.",
        accuracy,
    ),
    Measurement(
        "folds",
        "ocr_letters, mean of its folds",
        f"As above, with the {N_FOLDS} folds that come with the data, or the first of them. "
        "`standard error`: of the mean difference.",
        folds,
    ),
    Measurement(
        "objective",
        f"The objective of the structural SVM, C = {OBJECTIVE_C:g}",
        "Passes over the training sequences, judged by exact decoding. `above the least` and `CPU "
        "s to`: of all values that anybody reached, which are ours where the others are far from "
        "their end; `above the optimum at most`: by the best bound that anybody proved. bcfw, "
        "subgradient and soft-bcfw are this benchmark's own, in NumPy. soft-bcfw (rho = "
        f"{SOFT_RHO:g}) has another optimum.",
        objective,
    ),
    GROWTH,
    LABEL_SETS,
]

if __name__ == "__main__":
    raise SystemExit(main("Structural SVMs", MEASUREMENTS, parse(sys.argv[1:])))
