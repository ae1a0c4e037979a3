"""How a figure of ours compares with the one that a paper prints."""

from __future__ import annotations

__all__ = ["BETTER", "NOT_HERE", "REPRODUCED", "WORSE", "verdict"]

REPRODUCED, BETTER, WORSE, NOT_HERE = "reproduced", "better", "worse", "not possible here"


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
