"""Tagging of sequences: this library, CRFsuite's algorithms, and solvers with dense oracles.

All entrants get the same matrix of features (harness/chains.py) and one thread, each in a process
of its own; imports, reading and a rival's own form of the sequences are off its clock. CRFsuite
gives no model before it ends, so it and ours are refitted with 1, 2, 4, ... iterations until the
fits together took the limit in CPU seconds; a fit counts by its own seconds. Tags are judged here:
the processes do not see the true ones of the test part. Parameters are chosen on training
sequences, every fifth of them asked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from harness.bench import Bench
from harness.chains import N_FOLDS, PROBLEMS, Split, primal
from harness.entrant import Entrant
from harness.label_sets import LABEL_SETS
from harness.problem import Split as Arrays
from harness.runner import Case, Outcome
from harness.table import Cell, Figures, Table
from harness.tag_growth import GROWTH

OURS = "sublearn"
LBFGS, LBFGS_END = "crf-lbfgs", "crf-lbfgs-to-its-end"
#: From so many iterations on, within a limit of its own: where a fit to the end takes hours.
LBFGS_SOME, N_SOME = "crf-lbfgs-longer", 20


def doubled(first: int = 1) -> list[dict[str, int]]:
    """Iterations of the fits."""
    return [{"n_iter": first * 2**k} for k in range(20)]


def crfsuite(name: str, algorithm: str, first: int = 1) -> Entrant:
    return Entrant(
        name,
        "structured/crfsuite_train.py",
        {"algorithm": algorithm},
        environment="crfsuite",
        sweep=doubled(first),
    )


def ours(name: str = OURS, first: int = 1, **settings: Any) -> Entrant:
    return Entrant(name, "structured/sublearn_chain.py", settings, sweep=doubled(first))


#: The first is ours; what is tuned has its values in TUNED. All else are defaults.
TAGGERS = [
    ours(),
    crfsuite(LBFGS, "lbfgs"),
    crfsuite(LBFGS_END, "lbfgs", 1024),
    crfsuite(LBFGS_SOME, "lbfgs", N_SOME),
    crfsuite("crf-lbfgs-tuned", "lbfgs"),
    crfsuite("crf-l2sgd", "l2sgd"),
    crfsuite("crf-ap", "ap"),
    crfsuite("crf-pa", "pa"),
    crfsuite("crf-arow", "arow"),
]
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


@dataclass(frozen=True)
class Race:
    """Who is compared on a set, with how many CPU seconds, and with those of a fit to its end.

    `n_asked` tokens are tagged, all if None.
    """

    taggers: Sequence[str]
    limit: float = 10.0
    end_limit: float = 60.0
    n_asked: int | None = None


ONLINE = ("crf-ap", "crf-pa")
OTHERS = ("crf-l2sgd", *ONLINE, "crf-arow")
SETS = {
    "chinese_ocr": Race((OURS, LBFGS, LBFGS_SOME, *OTHERS)),
    "ocr_letters/0": Race((OURS, LBFGS, LBFGS_END, *OTHERS)),
    "wsj_pos_crf": Race((OURS, LBFGS, LBFGS_END, *OTHERS)),
    "conll2000": Race((OURS, LBFGS, *OTHERS)),
    "ud_english_ewt": Race((OURS, LBFGS, *ONLINE), 5.0),
    "ud_latin_ittb": Race((OURS, LBFGS, "crf-ap"), 30.0, n_asked=5_000),
    "brown/all_tags": Race((OURS, LBFGS, LBFGS_SOME, *ONLINE), 10.0, 40.0, 3_000),
}
FOLDS = Race((OURS, LBFGS, *ONLINE), 9.0)
QUICK_TOKENS = 2_000

# --- runs -----------------------------------------------------------------------------------------


class Tagging(Case):
    """Sequences to be tagged or, with C, the objective of weights that they are learnt with."""

    def __init__(self, name: str, load: Callable[[], Split], C: float | None = None):
        request = {"wants": "tags" if C is None else "weights"}
        super().__init__(name, self._arrays, self._right if C is None else self._primal, request)
        self._open, self._C = load, C

    def _arrays(self) -> Arrays:
        split = self.chains = self._open()
        asked = {"X": split.test.X, "lengths": split.test.lengths}
        train = {"X": split.train.X, "lengths": split.train.lengths}
        return Arrays({**train, "y": split.train.y.astype(np.int32)}, asked, {})

    def _right(self, truth: Any, answer: Any) -> dict[str, float]:
        tags, right = answer["tags"], self.chains.test.y
        if tags.shape != right.shape:
            raise ValueError(f"{len(tags)} tags for {len(right)} tokens")
        return {"accuracy": float(np.mean(tags == right)), "n_asked": len(right)}

    def _primal(self, truth: Any, answer: Any) -> dict[str, float]:
        T = np.asarray(answer["T"])
        return {"primal": primal(self.chains.train, answer["W"], T, self._C or 0.0)}

    def title(self, bench: Bench) -> str:
        """Name and sizes, which are kept, so that a table that goes on needs no data."""
        n_tokens, n_tags = bench.once({"sizes of": self.name}, self._sizes)
        return f"{self.name.partition(',')[0]} ({n_tokens:,} tokens, {n_tags} tags)"

    def _sizes(self) -> list[int]:
        return [self.split.train["X"].shape[0], self.chains.n_labels]


def follow(bench: Bench, case: Tagging, tagger: Entrant, limit: float) -> Outcome:
    """Refits and decoding may take three limits together."""
    return bench.run(case, tagger, limit, stop=3.0 * limit + 5.0)


def opened(bench: Bench, name: str, n_asked: int | None = None) -> Split:
    """A set by its name, with some of its test sequences."""
    (problem,) = (p for p in PROBLEMS if p.name == name)
    found = problem.open(bench.data)
    found = bench.size(found, found.part(slice(len(found.train.head(QUICK_TOKENS).lengths))))
    return replace(found, test=found.test.head(bench.size(n_asked, QUICK_TOKENS)))


def tuned(bench: Bench, case: Tagging, tagger: Entrant, limit: float) -> Entrant:
    """With the best of the values in TUNED, by the last model of short runs on training tokens."""
    if tagger.name not in TUNED:
        return tagger
    name, values = TUNED[tagger.name]
    inner = Tagging(f"{case.name}, inner", lambda: shortened(case).inner())
    rated = {}
    for value in bench.some(values):
        found = follow(bench, inner, tagger.having(**{name: value}), min(limit, TUNING_LIMIT))
        if found.figure("accuracy") is not None:
            rated[value] = found.figure("accuracy")
    return tagger.having(**{name: max(rated, key=rated.__getitem__)}) if rated else tagger


def shortened(case: Tagging) -> Split:
    split = case.split and case.chains
    return replace(split, train=split.train.head(TUNING_TOKENS))


# --- accuracy -------------------------------------------------------------------------------------

Contest = tuple[Tagging, list[Outcome]]


def accuracy(bench: Bench) -> Figures:
    """A row for each set and tagger; sets on which we lose come first."""
    columns = {
        "set": "", "tagger": "", "% right": ".2f>", "ours is ahead by": "+.2f", "CPU s": ".1f<",
        "iterations": ".0f", "CPU s to lbfgs' accuracy": ".2f<", "tokens / CPU s": ",.0f>",
        "model MB": ".1f<", "remark": "",
    }  # fmt: skip
    contests = [contest(bench, name, SETS[name]) for name in bench.cases(SETS)]
    contests.sort(key=lambda pair: lead(pair[1]))
    return Figures(columns, [row for pair in contests for row in rows_of(bench, *pair)])


def contest(bench: Bench, name: str, race: Race) -> Contest:
    case = Tagging(
        f"{name}, {race.n_asked or 'all'} asked", partial(opened, bench, name, race.n_asked)
    )
    found = []
    for tagger in bench.chosen(TAGGERS, race.taggers):
        limit = bench.limit(race.limit)
        own = tuned(bench, case, tagger, limit)
        is_long = tagger.name in (LBFGS_END, LBFGS_SOME)
        found.append(follow(bench, case, own, max(race.end_limit, limit) if is_long else limit))
    return case, found


def lead(found: Sequence[Outcome]) -> float:
    """By how many points we are ahead of the best rival."""
    rated = {o.name: a for o in found if (a := o.figure("accuracy")) is not None}
    mine = rated.pop(OURS, None)
    if mine is None:
        return -100.0
    return 100.0 * (mine - max(rated.values())) if rated else 100.0


def rows_of(bench: Bench, case: Tagging, found: Sequence[Outcome]) -> list[list[Cell]]:
    by_name = {outcome.name: outcome.figure("accuracy") for outcome in found}
    mine, title = by_name.get(OURS), case.title(bench)
    goals = [by_name.get(name) for name in (LBFGS_END, LBFGS_SOME, LBFGS)]
    goal = next((g for g in goals if g is not None), None)
    rows: list[list[Cell]] = []
    for o in found:
        right, asked = o.figure("accuracy"), o.figure("predict_cpu_seconds")
        is_known = right is not None and mine is not None and o.name != OURS
        rows.append([
            title, o.name, None if right is None else 100 * right,
            100 * (mine - right) if is_known else None, o.figure("fit_cpu_seconds"),
            o.figure("n_iter"), None if goal is None else o.cheapest("accuracy", least=goal),
            o.figure('n_asked') and o.figure('n_asked') / max(asked, 1e-9), o.figure("model_mb"),
            remark(o),
        ])  # fmt: skip
    return rows


def remark(outcome: Outcome) -> str:
    """The parameter that was chosen, and how the run ended."""
    name, _ = TUNED.get(outcome.name, ("", ()))
    settings = outcome.entrant.settings
    parts = [f"{name} = {settings[name]:g}"] if name in settings else []
    if outcome.error:
        parts.append(outcome.error)
    elif not outcome.figure("is_done"):
        parts.append("not at its end")
    return ", ".join(parts)


def folds(bench: Bench) -> Figures:
    """Means over the folds of handwriting, the parameter chosen anew in each."""
    names = bench.cases([f"ocr_letters/{fold}" for fold in range(N_FOLDS)])
    contests = [{o.name: o for o in contest(bench, name, FOLDS)[1]} for name in names]
    rows: list[list[Cell]] = []
    for name in contests[0]:
        found = [
            (c[name], c[name].figure("accuracy"), c[OURS].figure("accuracy")) for c in contests
        ]
        known = [
            (o, right, mine) for o, right, mine in found if right is not None and mine is not None
        ]
        if not known:
            rows.append([name, "0", None, None, None, found[0][0].end(), None])
            continue
        right, ahead = (
            100 * np.array(part) for part in zip(*((r, m - r) for _, r, m in known), strict=True)
        )
        seconds = np.mean([o.figure("fit_cpu_seconds") for o, _, _ in known])
        lead = [None, None, None]
        if name != OURS:
            error = ahead.std(ddof=1) / np.sqrt(len(ahead))
            lead = [ahead.mean(), error, f"{(ahead > 0).sum()} of {len(ahead)}"]
        rows.append([name, str(len(known)), right.mean(), *lead, seconds])
    columns = {
        "tagger": "", "folds": "", "% right": ".2f>", "ours is ahead by": "+.2f",
        "standard error": ".2f", "ours is ahead in": "", "CPU s": ".1f<",
    }  # fmt: skip
    return Figures(columns, rows)


# --- the objective --------------------------------------------------------------------------------

OBJECTIVE_C = 0.1
#: Soft-BCFW's penalty; the larger, the closer its optimum and the longer the way.
SOFT_RHO = 1.0


def judge(name: str, **settings: float) -> Entrant:
    settings = {"method": name, "C": OBJECTIVE_C, **settings}
    return Entrant(name, "structured/judge_oracle.py", settings)


SOLVERS = [
    ours(C=OBJECTIVE_C, max_passes=256),
    judge("bcfw"),
    judge("subgradient"),
    judge("soft-bcfw", rho=SOFT_RHO),
]
#: Ours for longer, with its bound after the last pass: what the others are measured against.
REFERENCE = ours(
    "sublearn, longer, with its certificate", 64, C=OBJECTIVE_C, max_passes=256, evaluate_every=1000
)
REFERENCE_SHARE = 4.0
#: CPU seconds, and the solvers.
OBJECTIVE_SETS: Mapping[str, tuple[float, Sequence[str]]] = {
    "ud_latin_ittb/all_tags": (25.0, (OURS, "bcfw")),
    "brown/all_tags": (40.0, (OURS, "bcfw")),
    "ud_latin_ittb": (30.0, [s.name for s in (*SOLVERS, REFERENCE)]),
}


def objective(bench: Bench) -> Figures:
    """CPU seconds until the objective is within 1 % of the least that anybody reached."""
    rows = []
    for name in bench.cases(OBJECTIVE_SETS):
        limit, solvers = OBJECTIVE_SETS[name]
        case = Tagging(f"{name}, objective", partial(opened, bench, name), OBJECTIVE_C)
        limit = bench.limit(limit)
        found = []
        for solver in bench.chosen([*SOLVERS, REFERENCE], solvers):
            share = REFERENCE_SHARE if solver is REFERENCE else 1.0
            found.append(follow(bench, case, solver, share * limit))
        rows += objective_rows(case.title(bench), found)
    columns = {
        "set": "", "solver": "", "passes": ".2f", "CPU s": ".1f", "objective": ",.2f<",
        "above the least": ".2%", "above the optimum at most": ".2%", "CPU s to 10 %": ".2f<",
        "CPU s to 1 %": ".2f<", "CPU s of ours to this objective": ".2f<",
        "bound from below": ",.2f", "remark": "",
    }  # fmt: skip
    return Figures(columns, rows)


def objective_rows(title: str, found: Sequence[Outcome]) -> list[list[Cell]]:
    laps = [lap for outcome in found for lap in outcome.laps]
    least = min((lap["primal"] for lap in laps if lap.get("primal")), default=np.nan)
    bound = max((lap["bound"] for lap in laps if lap.get("bound")), default=np.nan)
    rows: list[list[Cell]] = []
    for o in found:
        value = o.figure("primal")
        above = [value / other - 1.0 if value else None for other in (least, bound)]
        bounds = [lap["bound"] for lap in o.laps if lap.get("bound") is not None]
        ends = [o.cheapest("primal", most=share * least) for share in (1.1, 1.01)]
        rows.append([
            title, o.name, o.figure("n_iter"), o.figure("fit_cpu_seconds"), value, *above, *ends,
            found[0].cheapest("primal", most=value) if value else None,
            max(bounds, default=None), o.error or "",
        ])  # fmt: skip
    return rows


TABLES = [
    Table(
        "accuracy",
        "Tagging: the same features for everybody",
        "The last model counts: its fit takes about half the limit to the limit, more if a single "
        "iteration does. Who is `not at its end` may become better with more, CRFsuite's L-BFGS "
        "above all: crf-lbfgs-to-its-end is stopped by three "
        "times its limit of 60 s alone. `ours is ahead by`: points; negative where we lose. Our C "
        "and c2 of crf-lbfgs-tuned were chosen on training sequences, by fits within the same "
        f"limit, {TUNING_LIMIT:g} s at most; all else are defaults. `CPU s to lbfgs' accuracy`: of "
        "the cheapest fit that is right as often as the longest fit of crf-lbfgs in the table; no "
        "figure if none is. `/all_tags`: few of the training sequences, with every tag, so that "
        "dense solvers can be followed.",
        accuracy,
    ),
    Table(
        "folds",
        "ocr_letters, mean of its folds",
        f"As above, with the {N_FOLDS} folds that come with the data, or the first of them. "
        "`standard error`: of the mean difference.",
        folds,
    ),
    Table(
        "objective",
        f"The objective of the structural SVM, C = {OBJECTIVE_C:g}",
        "Passes over the training sequences, judged by exact decoding. `above the least` and `CPU "
        "s to`: of all values that anybody reached, which are ours where the others are far from "
        "their end; `above the optimum at most`: by the best bound that anybody proved. bcfw, "
        "subgradient and soft-bcfw are this benchmark's own, in C++ as ours is. soft-bcfw (rho = "
        f"{SOFT_RHO:g}) has another optimum.",
        objective,
    ),
    GROWTH,
    LABEL_SETS,
]
