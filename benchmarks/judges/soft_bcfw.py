"""Soft-BCFW: block-coordinate Frank-Wolfe over factors, agreement as a penalty.

Meshi, Srebro and Hazan ("Efficient Training of Structured SVMs via Soft Constraints", 2015) let
positions and pairs of neighbours have distributions p and q of their own and pay for what they
disagree. Minimise, each p_j and q_f on its simplex,

    1/2 |w(p, q)|^2 - C sum_j (1 - p_j(y_j)) + rho/2 sum |M q_f - p|^2

with w as in the dual of the structural SVM. No messages, so the optimum is another one: it comes
close to that of the structural SVM as rho grows, and steps become short. The oracle of a pair looks
at all K x K states.
"""

from __future__ import annotations

import numpy as np

from judges.chains import Model, Sequence

__all__ = ["SoftBcfw"]


class _Pair:
    """Distribution of a pair over the states it ever had, and its two marginals."""

    def __init__(self, a: int, b: int, n_labels: int):
        self.shares: dict[tuple[int, int], float] = {(a, b): 1.0}
        self.first, self.second = np.zeros(n_labels), np.zeros(n_labels)
        self.first[a] = self.second[b] = 1.0

    def move(self, state: tuple[int, int], gamma: float) -> None:
        """To (1 - gamma) of itself and gamma of the state."""
        self.shares = {s: (1.0 - gamma) * v for s, v in self.shares.items() if v > 1e-12}
        self.shares[state] = self.shares.get(state, 0.0) + gamma
        for marginal, label in ((self.first, state[0]), (self.second, state[1])):
            marginal *= 1.0 - gamma
            marginal[label] += gamma


class SoftBcfw:
    """Weights, distributions, and steps; distributions start at the truth."""

    def __init__(self, data: list[Sequence], n_features: int, n_labels: int, C: float, rho: float):
        self.data, self.C, self.rho = data, C, rho
        self.model = Model.zero(n_features, n_labels)
        self._buffer = np.empty((n_labels, n_labels))
        self.nodes = [np.eye(n_labels)[s.y] for s in data]
        self.pairs = [
            [_Pair(a, b, n_labels) for a, b in zip(s.y[:-1], s.y[1:], strict=True)] for s in data
        ]

    def step(self, i: int) -> None:
        """Visit all positions and all pairs of sequence i."""
        n_tokens = len(self.data[i].y)
        for t in range(n_tokens):
            self._node(i, t)
        for t in range(n_tokens - 1):
            self._pair(i, t)

    def value(self) -> float:
        """What is minimised."""
        wrong = disagreement = 0.0
        for sequence, nodes, pairs in zip(self.data, self.nodes, self.pairs, strict=True):
            wrong += float((1.0 - nodes[np.arange(len(nodes)), sequence.y]).sum())
            for t, pair in enumerate(pairs):
                disagreement += float(((pair.first - nodes[t]) ** 2).sum())
                disagreement += float(((pair.second - nodes[t + 1]) ** 2).sum())
        norm = self.model.squared_norm()
        return 0.5 * norm - self.C * wrong + 0.5 * self.rho * disagreement

    def _node(self, i: int, t: int) -> None:
        sequence, p, C = self.data[i], self.nodes[i][t], self.C
        x = sequence.x[t]
        here = np.flatnonzero(x)
        rows = sequence.columns[here]
        slope = -C * (x[here] @ self.model.W[rows] + 1.0)
        slope[sequence.y[t]] += C
        beside = [pair.first for pair in self.pairs[i][t : t + 1]]
        if t:
            beside.append(self.pairs[i][t - 1].second)
        for marginal in beside:
            slope -= self.rho * (marginal - p)
        label = int(slope.argmin())
        direction = -p
        direction[label] += 1.0
        curvature = C * C * sequence.gram[t, t] + self.rho * len(beside)
        gamma = _line(slope @ direction, curvature * (direction @ direction))
        if gamma:
            labels = np.flatnonzero(direction)
            self.model.W[np.ix_(rows, labels)] -= gamma * C * np.outer(x[here], direction[labels])
            p += gamma * direction

    def _pair(self, i: int, t: int) -> None:
        pair, C, rho, T = self.pairs[i][t], self.C, self.rho, self.model.T
        first, second = pair.first - self.nodes[i][t], pair.second - self.nodes[i][t + 1]
        # Slopes over -C, in one buffer: three sweeps over the K x K states.
        rises = np.subtract(T, rho / C * first[:, None], out=self._buffer)
        rises -= rho / C * second
        flat = int(rises.argmax())
        state = flat // len(T), flat % len(T)
        direction = {s: -v for s, v in pair.shares.items()}
        direction[state] = direction.get(state, 0.0) + 1.0
        slope = -C * sum(rises[s] * v for s, v in direction.items())
        norm = sum(v * v for v in direction.values())
        to_first, to_second = -pair.first, -pair.second
        to_first[state[0]] += 1.0
        to_second[state[1]] += 1.0
        curvature = C * C * norm + rho * (to_first @ to_first + to_second @ to_second)
        gamma = _line(slope, curvature)
        if gamma:
            for s, v in direction.items():
                T[s] -= gamma * C * v
            pair.move(state, gamma)


def _line(slope: float, curvature: float) -> float:
    """The best step from 0 to 1 along a parabola."""
    if slope >= 0 or curvature <= 0:
        return 0.0
    return float(min(1.0, -slope / curvature))
