"""Factor graphs of the benchmark: files of the competitions, and generated ones.

Generated graphs come with the assignment that was planted in them.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from harness.factors import FactorArrays, Group

__all__ = ["PARTS", "Instance", "instances", "matching", "multilabel", "near_points", "scale_free"]

#: Parts of this library's solver that a score or a bound can be owed to; processes tell the place.
PARTS = (
    "start", "elimination", "local_search", "messages", "branch_and_bound", "gdmm", "neighbourhoods"
)  # fmt: skip
_BOTH_ON = np.array([[[0.0, 0.0], [0.0, 1.0]]])


@dataclass(frozen=True)
class Instance:
    """A model of the competitions, with its evidence and reference assignment if there are any."""

    name: str
    model: Path
    evidence: Path | None
    reference: Path | None

    def load(self) -> FactorArrays:
        """As every solver gets it: natural logarithms, evidence forbids all other labels."""
        from sublearn.graph import read_uai

        return FactorArrays.of(read_uai(self.model, self.evidence))

    def reference_labels(self) -> np.ndarray | None:
        """The assignment of the file beside the model."""
        from sublearn.graph import read_map

        return None if self.reference is None else read_map(self.reference)


def instances(directory: Path) -> list[Instance]:
    """All models of the folders uai_*, by name of folder and file."""
    found = []
    for path in sorted(directory.glob("uai_*/*.uai*")):
        if path.name.endswith((".uai", ".uai.xz", ".uai.gz")):
            stem = path.name.split(".uai")[0]
            found.append(Instance(stem, path, _beside(path, "evid"), _beside(path, "map")))
    return found


def _beside(model: Path, kind: str) -> Path | None:
    stem = model.name.split(".uai")[0]
    places = sorted(p for p in model.parent.glob(f"{stem}.*") if kind in p.name.split(".")[1:])
    return places[0] if places else None


# --- graph matching -------------------------------------------------------------------------------


def matching(
    noise: float,
    seed: int,
    n_labels: int = 1034,
    n_variables: int = 188,
    n_factors: int = 1864,
    n_links: int = 26,
) -> tuple[FactorArrays, np.ndarray]:
    """Nodes of a network to be found again in it, after table 3.2 of the paper.

    Labels are the nodes of a scale-free network, variables a copy of its best connected ones. A
    factor is a link of the copy, and scores one over the distance of its labels in the network: one
    table for all.
    A node has ten of 224 binary features; each of the copy's is lost with probability
    `noise`, and 10 `noise` wrong ones are added; unary scores are the numbers of common features.
    """
    rng = np.random.default_rng(seed)
    linked = scale_free(n_labels, min(n_links, n_labels - 1), rng)
    features = _binary_features(n_labels, 224, 10, rng)
    by_links = np.argsort(-linked.sum(axis=1), kind="stable")
    planted = by_links[np.arange(n_variables) % n_labels]  # some twice if there are few
    asked = features[planted] * (rng.random((n_variables, features.shape[1])) >= noise)
    for row in asked:
        row[rng.integers(features.shape[1], size=int(10 * noise))] = 1.0
    first, second = np.nonzero(np.triu(linked[np.ix_(planted, planted)]))
    chosen = rng.permutation(len(first))[:n_factors]
    scopes = np.stack([first[chosen], second[chosen]], axis=1)
    if len(scopes) < n_factors:  # a network with too few links: any two variables
        more = np.array(
            [rng.choice(n_variables, 2, replace=False) for _ in range(n_factors - len(scopes))]
        )
        scopes = np.concatenate([scopes, more])
    table = _inverse(_distances(linked))
    return _of_one_table(asked @ features.T, scopes, table), planted


def scale_free(n: int, n_links: int, rng: np.random.Generator) -> np.ndarray:
    """A clique of `n_links` nodes, then nodes with as many links each to what is linked already."""
    linked = np.zeros((n, n), dtype=bool)
    linked[:n_links, :n_links] = ~np.eye(n_links, dtype=bool)
    ends = np.repeat(np.arange(n_links), n_links - 1)  # a node once for each of its links
    for a in range(n_links, n):
        chosen = np.unique(ends[rng.integers(len(ends), size=n_links)])
        linked[a, chosen] = linked[chosen, a] = True
        ends = np.concatenate([ends, chosen, np.full(len(chosen), a)])
    return linked


def _binary_features(n: int, n_features: int, n_on: int, rng: np.random.Generator) -> np.ndarray:
    """Some features are much more frequent than others."""
    out = np.zeros((n, n_features))
    places = (n_features * rng.random((n, n_on)) ** 2).astype(int)
    out[np.arange(n)[:, None], places] = 1.0
    return out


def _distances(linked: np.ndarray) -> np.ndarray:
    """Lengths of shortest paths, 0 where there is none."""
    out = np.zeros(linked.shape)
    steps = linked.astype(np.float32)
    seen, reached, length = np.eye(len(linked), dtype=bool), linked, 1
    while (new := reached & ~seen).any():
        out[new] = length
        seen |= new
        reached = (new.astype(np.float32) @ steps) > 0
        length += 1
    return out


def _inverse(distances: np.ndarray) -> np.ndarray:
    return np.divide(1.0, distances, out=np.zeros_like(distances), where=distances > 0)


def _of_one_table(unary: np.ndarray, scopes: np.ndarray, table: np.ndarray) -> FactorArrays:
    n, n_labels = unary.shape
    group = Group(
        scopes.astype(np.int32),
        table[None],
        np.zeros(len(scopes), dtype=np.int32),
        np.ones(len(scopes)),
    )
    return FactorArrays(np.full(n, n_labels), unary.ravel(), [group])


# --- growing domains ------------------------------------------------------------------------------


def near_points(
    n_labels: int, seed: int, n_variables: int = 100, n_factors: int = 300
) -> tuple[FactorArrays, np.ndarray]:
    """Labels are points of the unit square, and linked variables like to be near to each other.

    The table is exp(-distance / 0.1) of two points. Every variable has a planted point, and the
    pairs whose points are nearest are linked. Unary scores are normal with deviation 0.3; 2 is
    added to the planted label of seven variables in ten and to a random one of the others.
    """
    rng = np.random.default_rng(seed)
    points, wanted = rng.random((n_labels, 2)), rng.random((n_variables, 2))
    planted = ((wanted[:, None] - points) ** 2).sum(axis=2).argmin(axis=1)
    apart = ((wanted[:, None] - wanted) ** 2).sum(axis=2)
    first, second = np.triu_indices(n_variables, 1)
    nearest = np.argsort(apart[first, second], kind="stable")[:n_factors]
    unary = rng.normal(0.0, 0.3, (n_variables, n_labels))
    is_right = rng.random(n_variables) < 0.7
    liked = np.where(is_right, planted, rng.integers(n_labels, size=n_variables))
    unary[np.arange(n_variables), liked] += 2.0
    square = (points**2).sum(axis=1)
    distance = np.sqrt(np.maximum(square[:, None] + square - 2 * points @ points.T, 0.0))
    scopes = np.stack([first[nearest], second[nearest]], axis=1)
    return _of_one_table(unary, scopes, np.exp(-distance / 0.1)), planted


# --- multilabel -----------------------------------------------------------------------------------


def multilabel(seed: int, n_labels: int = 3884, positive: float = 0.02) -> FactorArrays:
    """One document under a learned pairwise model of labels: a complete graph of binary variables.

    Made to look like uai_eurlex_multilabel: there unary scores of label 1 lie around -2 with one
    in 405 positive, and weights of pairs are small (median 0.003) and negative but for 18 of
    81,810. Here unary scores are minus a log-normal number of median 2, and one label in a hundred
    gets a positive one, exponential of mean 2. Sizes of weights are 0.003 times Student's t of
    three degrees of freedom, and a share `positive` of them is positive. Labels of the same topic,
    fifty each, have weights thirty times as large, half of them positive.

    With `positive` = 0.5 the linear program gains by setting all variables to one half: its bound
    is then far above any assignment.
    """
    rng = np.random.default_rng(seed)
    on = -np.exp(rng.normal(np.log(2.0), 0.3, n_labels))
    is_likely = rng.random(n_labels) < 0.01
    on[is_likely] = rng.exponential(2.0, int(is_likely.sum()))
    first, second = np.triu_indices(n_labels, 1)
    topic = rng.integers(max(1, n_labels // 50), size=n_labels)
    is_together = topic[first] == topic[second]
    weights = 0.003 * np.abs(rng.standard_t(3.0, len(first)))
    weights[is_together] *= 30.0
    weights[rng.random(len(first)) >= np.where(is_together, 0.5, positive)] *= -1.0
    unary = np.stack([np.zeros(n_labels), on], axis=1).ravel()
    scopes = np.stack([first, second], axis=1).astype(np.int32)
    group = Group(scopes, _BOTH_ON, np.zeros(len(scopes), dtype=np.int32), weights)
    return FactorArrays(np.full(n_labels, 2), unary, [group])
