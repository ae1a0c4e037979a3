"""Why a label got its score: the features of a row that speak for and against it."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

__all__ = ["Contribution", "Explanation", "explain_score"]


@dataclass(frozen=True)
class Contribution:
    """One feature's part in a score.

    Parameters
    ----------
    feature : str or int
        Name of the feature, or its column if it has none.
    value : float
        Of the feature in the row.
    weight : float
        That the label gives to the feature.
    contribution : float
        `value` times `weight`.
    """

    feature: str | int
    value: float
    weight: float
    contribution: float


@dataclass(frozen=True)
class Explanation:
    """The parts of a score: ``score == bias + sum of contributions + others``.

    Parameters
    ----------
    label : object
        The label.
    score : float
        What `decision_function` gives, up to rounding.
    bias : float
        The label's bias.
    contributions : tuple of Contribution
        The features that matter most, by decreasing size of their contribution; of equal ones the
        lower column first.
    n_others : int
        Features of the row with a weight that are not listed.
    others : float
        What these add together.
    probability : float or None
        Of the label at this score, if the model is calibrated.
    """

    label: Any
    score: float
    bias: float
    contributions: tuple[Contribution, ...]
    n_others: int = 0
    others: float = 0.0
    probability: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain values only, for JSON."""
        out = dataclasses.asdict(self)
        out["label"] = self.label.item() if isinstance(self.label, np.generic) else self.label
        out["contributions"] = list(out["contributions"])
        return out

    def __str__(self) -> str:
        chance = "" if self.probability is None else f", probability {self.probability:.3f}"
        lines = [f"{self.label}: score {self.score:+.4f}{chance}"]
        rows = [(str(c.feature), c.contribution, c) for c in self.contributions]
        width = max([len("(bias)"), *(len(name) for name, _, _ in rows)])
        for name, part, c in rows:
            lines.append(f"  {part:+.4f}  {name:<{width}}  {c.value:.4g} x {c.weight:+.4g}")
        if self.n_others:
            lines.append(f"  {self.others:+.4f}  ({self.n_others} other features)")
        lines.append(f"  {self.bias:+.4f}  (bias)")
        return "\n".join(lines)


def explain_score(
    x: sp.csr_matrix, weights: sp.csr_matrix, bias: float, label: Any, k: int, names: Any
) -> Explanation:
    """Take apart the score of one row.

    Parameters
    ----------
    x : csr_matrix of shape (1, n_features)
        The row.
    weights : csr_matrix of shape (1, n_features)
        The label's weights.
    bias : float
        The label's bias.
    label : object
        The label.
    k : int
        Most features to list.
    names : array-like of str, or None
        Names of the features.

    Returns
    -------
    Explanation
        Without a probability.
    """
    columns, in_row, in_weights = np.intersect1d(
        x.indices, weights.indices, assume_unique=True, return_indices=True
    )
    values, factors = x.data[in_row].astype(np.float64), weights.data[in_weights].astype(np.float64)
    parts = values * factors
    order = np.argsort(-np.abs(parts), kind="stable")
    listed, rest = order[:k], order[k:]
    return Explanation(
        label=label,
        score=float(bias + parts.sum()),
        bias=float(bias),
        contributions=tuple(
            Contribution(
                int(columns[j]) if names is None else str(names[columns[j]]),
                float(values[j]),
                float(factors[j]),
                float(parts[j]),
            )
            for j in listed
        ),
        n_others=len(rest),
        others=float(parts[rest].sum()),
    )
