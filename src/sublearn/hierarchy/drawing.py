"""A taxonomy as text and as a picture."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from sublearn.display import TaxonomyDisplay
from sublearn.display.base import AxesLike

if TYPE_CHECKING:
    from sublearn.hierarchy.taxonomy import Taxonomy

__all__ = ["draw_text", "plot_taxonomy"]


def draw_text(
    taxonomy: Taxonomy,
    counts: np.ndarray | None,
    scores: np.ndarray | None,
    max_lines: int | None,
) -> str:
    """A line for each label; below its second parent a label stands without its children."""
    lines: list[str] = []
    for head, t, is_again in _walk(taxonomy):
        if max_lines is not None and len(lines) == max_lines:
            lines.append(f"... {taxonomy.n_labels:,} labels in all")
            break
        parts = [f"{head}{taxonomy.names[t]}"]
        if counts is not None:
            parts.append(f"{counts[t]:,}")
        if scores is not None:
            parts.append(f"{scores[t]:.3f}")
        if is_again:
            parts.append("(above)")
        lines.append("  ".join(parts))
    return "\n".join(lines)


def _walk(taxonomy: Taxonomy) -> Iterator[tuple[str, int, bool]]:
    """What stands before a name, the label, and whether it stood before; depth first."""
    seen = np.zeros(taxonomy.n_labels, dtype=bool)
    stack = [("", "", int(t)) for t in taxonomy.roots[::-1]]
    while stack:
        head, below, t = stack.pop()
        is_again = bool(seen[t])
        yield head, t, is_again
        seen[t] = True
        if is_again:
            continue
        for k, child in enumerate(taxonomy._children(t)[::-1]):
            branch, line = ("└── ", "    ") if k == 0 else ("├── ", "│   ")
            stack.append((below + branch, below + line, int(child)))


def plot_taxonomy(
    taxonomy: Taxonomy, counts: np.ndarray | None, scores: np.ndarray | None, ax: AxesLike
) -> TaxonomyDisplay:
    """Roots on the left; sizes are counts, colours are scores."""
    display = TaxonomyDisplay(
        taxonomy.levels, _heights(taxonomy), taxonomy.edge_positions, _short_names(taxonomy),
        n_leaves=len(taxonomy.leaves), counts=counts, scores=scores,
    )  # fmt: skip
    return display.called_by("Taxonomy.plot").plot(ax)


def _short_names(taxonomy: Taxonomy) -> list[str]:
    """Names without that of the parent, where they begin with it: hockey below rec.sport."""
    names = [str(name) for name in taxonomy.names.tolist()]
    found = list(names)
    for t, name in enumerate(names):
        for parent in taxonomy._parents(t):
            rest = name.removeprefix(names[parent])
            if rest != name and len(rest) > 1 and not rest[0].isalnum():
                found[t] = rest[1:]
    return found


def _heights(taxonomy: Taxonomy) -> np.ndarray:
    """Leaves one below the other, other labels in the middle of their children."""
    heights = np.zeros(taxonomy.n_labels)
    leaf_ids = set(taxonomy.leaves.tolist())
    order = [t for _, t, is_again in _walk(taxonomy) if not is_again]
    n_leaves = 0
    for t in order:
        if t in leaf_ids:
            heights[t], n_leaves = -n_leaves, n_leaves + 1
    for t in np.argsort(-taxonomy.levels, kind="stable"):
        own = taxonomy._children(t)
        if len(own):
            heights[t] = heights[own].mean()
    return heights
