"""Growth of a pass with the number of tags, for benchmarks/structured.py."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from harness.bench import Bench
from harness.chains import PROBLEMS, Chains, split_tags
from harness.growth import fit_exponent
from harness.table import Figures, Table
from harness.timing import cpu_timed

__all__ = ["GROWTH", "grown", "growth"]

GROWTH_C = 0.1
GROWTH_TOKENS = 20_000
#: Parts of each of the 45 tags.
GROWTH_PARTS = tuple(2**k for k in range(8))
FEW, MANY = 3, 9


def growth(bench: Bench) -> Figures:
    """Tags cut into 2, 4, ... parts: CPU time of a pass."""
    (problem,) = (p for p in PROBLEMS if p.name == "wsj_pos_crf")
    chains = problem.open(bench.data).train.head(bench.size(GROWTH_TOKENS, 2_000))
    kinds = {"by word": None, "at random": bench.seed}
    rows = [row for kind, how in kinds.items() for row in grown(bench, kind, chains, how)]
    columns = {
        "cut": "", "tags": "", "ms / pass": ",.1f<", "operations / pass": ",.3g<",
        "first passes, s": ".2f<", "active tags": ",.0f", "active pairs": ",.0f",
    }  # fmt: skip
    return Figures(columns, rows)


def grown(bench: Bench, kind: str, chains: Chains, how: int | None) -> list[list[Any]]:
    """A row for each number of parts, and the exponents of time and operations in the tags."""
    rows: list[list[Any]] = []
    for n_parts in bench.some(GROWTH_PARTS, 2):
        cut = split_tags(chains, n_parts, how)
        n_tags = int(cut.y.max()) + 1
        rows.append([kind, f"{n_tags}", *timed(cut)])
        bench.say(rows[-1])
    # Small sizes have much in them that does not grow: the largest ones show where it goes.
    fits = {"exponent": rows, "exponent, last three": rows[-3:]}
    ends = [[kind, name, *exponents(part), None, None, None] for name, part in fits.items()]
    return rows + ends


def exponents(rows: Sequence[Sequence[Any]]) -> list[str]:
    """Of time and of operations in the tags."""
    sizes = [float(row[1]) for row in rows]
    return [f"{fit_exponent(sizes, [row[k] for row in rows]):.2f}" for k in (2, 3)]


def timed(chains: Chains) -> list[float]:
    """Milliseconds and operations of a late pass; seconds of the first ones; what is active."""
    from sublearn.structured import ChainSVM, Passes

    seconds, model = {}, None
    for n_iter in (FEW, MANY):
        model = ChainSVM(
            C=GROWTH_C,
            max_iter=n_iter,
            passes=Passes(evaluate_every=0),
            fit_intercept=False,
            random_state=0,
        )
        fit = partial(model.fit, chains.X, chains.y.tolist(), lengths=chains.lengths)
        seconds[n_iter] = cpu_timed(fit)[1]
    assert model is not None
    work = np.diff(model.trace_["work"][[FEW - 1, MANY - 1]])[0] / (MANY - FEW)
    active = [float(model.trace_[name][-1]) for name in ("n_labels", "n_states")]
    per_pass = 1000 * (seconds[MANY] - seconds[FEW]) / (MANY - FEW)
    return [per_pass, float(work), seconds[FEW], *active]


GROWTH = Table(
    "growth",
    f"Growth: {GROWTH_TOKENS:,} tokens of wsj_pos_crf, each tag cut into parts",
    f"Time of a pass: of passes {FEW + 1} to {MANY}, their mean. Cut by word: a word has its "
    "part, so that tags can be told; at random they cannot. Tags are those that occur: words "
    "do not fill all parts.",
    growth,
)
