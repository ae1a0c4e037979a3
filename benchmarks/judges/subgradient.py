"""Stochastic subgradient descent on the structured hinge loss (Ratliff et al. 2007; Pegasos).

With steps 1 / (lambda t), lambda = 1 / (C n), the weights after t visits are (C n / t) times the
sum S of the subgradients, and their average with weights 1, 2, ..., t (Lacoste-Julien et al. 2012)
is 2 C n / (t (t + 1)) times the sum of (t + 1 - k) of them: two sums are all that is kept.
"""

from __future__ import annotations

from judges.chains import Model, Sequence, augmented

__all__ = ["Subgradient"]


class Subgradient:
    """The two sums, and steps."""

    def __init__(self, data: list[Sequence], n_features: int, n_labels: int, C: float):
        self.data, self.scale = data, C * len(data)
        self.sum = Model.zero(n_features, n_labels)
        self.late = Model.zero(n_features, n_labels)  # the k-th subgradient counts k times
        self.t = 0

    def step(self, i: int) -> None:
        """Visit sequence i."""
        sequence = self.data[i]
        now = self.scale / max(self.t, 1)
        y, _ = augmented(now * self.sum.scores(sequence), now * self.sum.T, sequence.y)
        self.t += 1
        if (y != sequence.y).any():
            for model, weight in ((self.sum, 1.0), (self.late, float(self.t))):
                model.add(sequence, sequence.y, weight)
                model.add(sequence, y, -weight)

    def average(self) -> Model:
        """The averaged weights."""
        t = self.t
        factor = 2.0 * self.scale / (t * (t + 1)) if t else 0.0
        W, T = (
            factor * ((t + 1) * whole - late)
            for whole, late in ((self.sum.W, self.late.W), (self.sum.T, self.late.T))
        )
        return Model(W, T)
