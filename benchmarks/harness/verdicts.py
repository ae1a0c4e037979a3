"""How a figure of ours compares with the one that a paper prints."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

__all__ = ["BETTER", "NOT_HERE", "REPRODUCED", "VERDICTS", "WORSE", "counts", "in_words", "verdict"]

REPRODUCED, BETTER, WORSE, NOT_HERE = "reproduced", "better", "worse", "not possible here"
VERDICTS = (REPRODUCED, BETTER, WORSE, NOT_HERE)


def verdict(
    paper: float | None, ours: float | None, *, is_less_better: bool, within: float = 0.05
) -> str:
    """One word: two figures within a share `within` of the paper's are the same.

    Without a figure of ours it is "not possible here"; without one of the paper, nothing.
    """
    if ours is None:
        return NOT_HERE
    if paper is None:
        return ""
    change = (paper - ours) if is_less_better else (ours - paper)
    if abs(change) <= within * abs(paper):
        return REPRODUCED
    return BETTER if change > 0 else WORSE


def counts(records: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """How many cells of some rows hold each verdict, alone or with a reason after a colon."""
    cells = [cell for record in records for cell in record["cells"] if isinstance(cell, str)]
    words = [cell.partition(":")[0] for cell in cells]
    return {word: words.count(word) for word in VERDICTS}


def in_words(found: Mapping[str, int]) -> str:
    """Counts as a sentence has them.

    >>> in_words({"reproduced": 3, "better": 1, "worse": 0, "not possible here": 2})
    'reproduced 3, better 1, worse 0, not possible here 2'
    """
    return ", ".join(f"{word} {found[word]}" for word in VERDICTS)
