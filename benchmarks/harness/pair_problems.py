"""Generated problems of binary labels with many factors: alignment of words, segmentation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from sublearn.structured import Sample, StructuralSVM

__all__ = ["PAIR_PROBLEMS", "PairProblem", "align_sentence", "draw_scene"]

Part = tuple[list[Any], list[np.ndarray]]


@dataclass(frozen=True)
class PairProblem:
    """`make(share, seed)` gives training and test samples, that share of them."""

    name: str
    C: float
    n_passes: int
    costs: list[list[float]] | None
    make: Callable[[float, int], tuple[Part, Part]]
    quality: Callable[[StructuralSVM, list[Any], list[np.ndarray]], float]


# --- alignment ------------------------------------------------------------------------------------


def align_sentence(rng: np.random.Generator, n: int = 14, noise: float = 0.5) -> Part:
    """Which word is the translation of which: nearly in order, with scores of a dictionary.

    Returns what links are true, and the scores; some words look like others of their sentence.
    """
    truth = np.zeros((n, n), dtype=np.int64)
    order = np.argsort(np.arange(n) + rng.normal(0.0, 1.2, n))
    kept = rng.random(n) < 0.92
    truth[order[kept], np.flatnonzero(kept)] = 1
    scores = truth + noise * rng.normal(size=(n, n))
    for a, b in rng.integers(n, size=(n // 4, 2)):
        scores[b] = np.maximum(scores[b], scores[a])
    return truth, scores


def links(scores: np.ndarray) -> Sample:
    """A node for each possible link; pairs of links of one word, and of neighbouring words."""
    from sublearn.structured import Sample

    n, m = scores.shape
    i, j = np.divmod(np.arange(n * m), m)
    node = np.arange(n * m).reshape(n, m)
    is_best = (scores >= scores.max(1, keepdims=True), scores >= scores.max(0, keepdims=True))
    X = np.column_stack([scores.ravel(), np.abs(i / n - j / m), *(b.ravel() for b in is_best)])
    a, b = np.triu_indices(m, 1)
    source = np.column_stack([node[:, a].ravel(), node[:, b].ravel()])
    a, b = np.triu_indices(n, 1)
    target = np.column_stack([node[a].ravel(), node[b].ravel()])
    edges = {
        "down": np.column_stack([node[:-1, :-1].ravel(), node[1:, 1:].ravel()]),
        "source": source,
        "target": target,
        "up": np.column_stack([node[:-1, 1:].ravel(), node[1:, :-1].ravel()]),
    }
    is_near = {
        "source": np.diff(j[source], axis=1) == 1,
        "target": np.diff(i[target], axis=1) == 1,
    }
    return Sample(X, edges, edge_features={k: v.astype(float) for k, v in is_near.items()})


def alignments(share: float, seed: int) -> tuple[Part, Part]:
    rng = np.random.default_rng(seed)
    parts = []
    for n in (40, 20):
        drawn = [align_sentence(rng) for _ in range(max(2, int(share * n)))]
        parts.append(([links(s) for _, s in drawn], [t for t, _ in drawn]))
    return parts[0], parts[1]


def f1_of_links(model: StructuralSVM, X: list[Any], y: list[np.ndarray]) -> float:
    found = np.concatenate([np.array(labels) for labels in model.predict(X)])
    truth = np.concatenate([labels.ravel() for labels in y])
    return float(2 * (found & truth).sum() / max(1, found.sum() + truth.sum()))


# --- segmentation ---------------------------------------------------------------------------------


def draw_scene(
    rng: np.random.Generator, noise: float = 0.12, height: int = 48, width: int = 64
) -> Part:
    """Ellipses of another colour on a ground, noise in each pixel: the picture and the truth."""
    y, x = np.mgrid[:height, :width]
    truth = np.zeros((height, width), dtype=np.int64)
    for _ in range(rng.integers(2, 5)):
        at, axes, turn = rng.uniform(0, (height, width)), rng.uniform(5, 14, 2), rng.uniform(0, 3)
        u = (x - at[1]) * np.cos(turn) + (y - at[0]) * np.sin(turn)
        v = (y - at[0]) * np.cos(turn) - (x - at[1]) * np.sin(turn)
        truth |= (u / axes[0]) ** 2 + (v / axes[1]) ** 2 < 1
    colour = np.where(truth, 0.62, 0.42)[..., None] + 0.05 * rng.normal(size=3)
    return np.clip(colour + noise * rng.normal(size=(height, width, 3)), 0, 1), truth


def pixels(picture: np.ndarray) -> Sample:
    """Colours of pixels, and for each pair of neighbours how alike their colours are."""
    from sublearn.structured import Sample

    centred = picture - 0.5
    grid = Sample.grid(np.dstack([centred, centred**2]))
    colours = picture.reshape(-1, 3)
    alike = {
        name: np.exp(-np.abs(np.diff(colours[np.asarray(pairs)], axis=1)).sum(2) / 0.3)
        for name, pairs in grid.edges.items()
    }
    return Sample(grid.features, grid.edges, edge_features=alike)


def scenes(share: float, seed: int, noise: float = 0.12) -> tuple[Part, Part]:
    rng = np.random.default_rng(seed)
    drawn = [draw_scene(rng, noise) for _ in range(2 * max(2, int(share * 8)))]
    X, y = [pixels(picture) for picture, _ in drawn], [truth for _, truth in drawn]
    half = len(X) // 2
    return (X[:half], y[:half]), (X[half:], y[half:])


def share_right(model: StructuralSVM, X: list[Any], y: list[np.ndarray]) -> float:
    return float(model.score(X, y))


PAIR_PROBLEMS = [
    PairProblem("alignment", 0.3, 30, [[0.0, 1.0], [3.0, 0.0]], alignments, f1_of_links),
    PairProblem("segmentation", 0.1, 30, None, scenes, share_right),
    PairProblem("segmentation, clear", 0.1, 30, None, partial(scenes, noise=0.03), share_right),
]
