"""Block-coordinate Frank-Wolfe with the structured oracle (Lacoste-Julien et al. 2013).

The dual has a distribution over all taggings for each sequence. A step decodes one sequence with
its mistakes counted and moves its distribution towards the tagging found, by the exact line
search. What is kept of a distribution are its marginals: of tags at positions, dense, and of pairs
of tags, in a list of states.
"""

from __future__ import annotations

import numpy as np

from judges.chains import Model, Sequence, augmented

__all__ = ["Bcfw"]


class _Block:
    """truth - marginals of one sequence: what times C is its part of w."""

    def __init__(self, n_tokens: int):
        self.labels = np.zeros(0, dtype=np.int64)
        self.nodes = np.zeros((n_tokens, 0))
        self.states = np.zeros((0, 2), dtype=np.int64)
        self.values = np.zeros(0)
        self.mistakes = 0.0


class Bcfw:
    """Weights, one block for each sequence, and steps."""

    def __init__(self, data: list[Sequence], n_features: int, n_labels: int, C: float):
        self.data, self.C = data, C
        self.model = Model.zero(n_features, n_labels)
        self.blocks = [_Block(len(s.y)) for s in data]

    def step(self, i: int) -> float:
        """Visit sequence i; its share of the duality gap before the step."""
        sequence, block, C = self.data[i], self.blocks[i], self.C
        y, _ = augmented(self.model.scores(sequence), self.model.T, sequence.y)
        labels, nodes, states, values = self._direction(block, sequence, y)
        mistakes = float((y != sequence.y).sum()) - block.mistakes
        W, T = self.model.W, self.model.T
        part = W[np.ix_(sequence.columns, labels)]
        slope = np.vdot(sequence.x @ part, nodes) + T[states[:, 0], states[:, 1]] @ values
        gap = C * (mistakes - float(slope))
        curvature = C * C * float(np.vdot(nodes, sequence.gram @ nodes) + values @ values)
        if gap <= 0 or curvature <= 0:
            return max(gap, 0.0)
        gamma = min(1.0, gap / curvature)
        W[np.ix_(sequence.columns, labels)] += gamma * C * (sequence.x.T @ nodes)
        T[states[:, 0], states[:, 1]] += gamma * C * values
        self._move(block, labels, nodes, states, values, gamma)
        block.mistakes += gamma * mistakes
        return gap

    def dual(self) -> float:
        """The dual value of the current point: no weights have an objective below it."""
        loss = sum(block.mistakes for block in self.blocks)
        return self.C * loss - 0.5 * self.model.squared_norm()

    def _direction(
        self, block: _Block, sequence: Sequence, y: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """(truth - y) - block, over the union of their tags and of their states."""
        labels = np.unique(np.concatenate([block.labels, sequence.y, y]))
        nodes = np.zeros((len(y), len(labels)))
        nodes[:, np.searchsorted(labels, block.labels)] = -block.nodes
        rows = np.arange(len(y))
        nodes[rows, np.searchsorted(labels, sequence.y)] += 1.0
        nodes[rows, np.searchsorted(labels, y)] -= 1.0
        truth = np.column_stack(sequence.pairs)
        found = np.column_stack([y[:-1], y[1:]])
        every = np.concatenate([block.states, truth, found])
        signs = np.repeat([1.0, -1.0], len(truth))
        states, place = np.unique(every, axis=0, return_inverse=True)
        values = np.bincount(
            place.ravel(), np.concatenate([-block.values, signs]), minlength=len(states)
        )
        return labels, nodes, states, values

    def _move(
        self,
        block: _Block,
        labels: np.ndarray,
        nodes: np.ndarray,
        states: np.ndarray,
        values: np.ndarray,
        gamma: float,
    ) -> None:
        old = np.zeros_like(nodes)
        old[:, np.searchsorted(labels, block.labels)] = block.nodes
        block.labels, block.nodes = labels, old + gamma * nodes
        before = np.zeros(len(states))
        if len(block.states):
            _, place = np.unique(
                np.concatenate([states, block.states]), axis=0, return_inverse=True
            )
            before[place.ravel()[len(states) :]] = block.values
        block.states, block.values = states, before + gamma * values
