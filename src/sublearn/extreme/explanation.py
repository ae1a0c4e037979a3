"""Why a label got its score: the features of a row that speak for and against it."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
import scipy.sparse as sp

from sublearn.typing import JsonObject

if TYPE_CHECKING:
    from sklearn.feature_extraction.text import HashingVectorizer

    from sublearn.display import ExplanationDisplay, Highlight
    from sublearn.display.base import AxesLike

__all__ = ["Contribution", "Explanation", "HashedNames", "Names", "explain_score"]


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

    label: object
    score: float
    bias: float
    contributions: tuple[Contribution, ...]
    n_others: int = 0
    others: float = 0.0
    probability: float | None = None

    def to_dict(self) -> JsonObject:
        """Plain values only, for JSON."""
        out = dataclasses.asdict(self)
        out["label"] = self.label.item() if isinstance(self.label, np.generic) else self.label
        out["contributions"] = list(out["contributions"])
        return out

    def plot(self, ax: AxesLike = None) -> ExplanationDisplay:
        """Draw the contributions as bars, the bias and what is not listed last; needs matplotlib.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw.

        Returns
        -------
        ExplanationDisplay
        """
        from sublearn.display import ExplanationDisplay

        parts = [(str(c.feature), c.contribution) for c in self.contributions]
        if self.n_others:
            parts.append((f"({self.n_others} others)", self.others))
        names, values = zip(*parts, ("(bias)", self.bias), strict=True)
        chance = "" if self.probability is None else f", probability {self.probability:.2f}"
        title = f"{self.label}: score {self.score:+.3g}{chance}"
        display = ExplanationDisplay(names, values, title=title)
        return display.called_by("Explanation.plot").plot(ax)

    def highlight(self, text: str) -> Highlight:
        """The text with the listed words marked: HTML in a notebook, colours in a terminal.

        Parameters
        ----------
        text : str
            The text that was explained.

        Returns
        -------
        Highlight
            Its string is for terminals, `to_html` for pages.
        """
        from sublearn.display import Highlight

        parts = {str(c.feature): c.contribution for c in self.contributions}
        return Highlight(text, parts, str(self.label))

    def __str__(self) -> str:
        chance = "" if self.probability is None else f", probability {self.probability:.3f}"
        lines = [f"{self.label}: score {self.score:+.4f}{chance}"]
        rows = [(str(c.feature), c.contribution, c) for c in self.contributions]
        width = max([len("(bias)"), *(len(name) for name, _, _ in rows)])
        for name, part, c in rows:
            lines.append(f"  {part:+.4f}  {name:<{width}}  {c.value:.4g} x {c.weight:+.4g}")
        if self.n_others:
            what = "feature" if self.n_others == 1 else "features"
            lines.append(f"  {self.others:+.4f}  ({self.n_others} other {what})")
        lines.append(f"  {self.bias:+.4f}  (bias)")
        return "\n".join(lines)


class Names(Protocol):
    """Names of the features by column, as a list has them, or made when they are asked for."""

    def __len__(self) -> int: ...

    def __getitem__(self, column: int, /) -> object: ...


def explain_score(
    x: sp.csr_matrix,
    weights: sp.csr_matrix,
    bias: float,
    label: object,
    k: int,
    names: Names | None,
) -> Explanation:
    """Take apart the score of one row by the label's weights, both of shape (1, n_features).

    At most `k` features are listed. There is no probability yet.
    """
    columns, in_row, in_weights = np.intersect1d(
        x.indices, weights.indices, assume_unique=True, return_indices=True
    )
    values, factors = x.data[in_row].astype(np.float64), weights.data[in_weights].astype(np.float64)
    parts = values * factors
    order = np.argsort(-np.abs(parts), kind="stable")
    listed, rest = order[:k], order[k:]
    features = [int(j) if names is None else str(names[j]) for j in columns[listed]]
    numbers = (column[listed].tolist() for column in (values, factors, parts))
    contributions = tuple(map(Contribution, features, *numbers))
    score, others = float(bias + parts.sum()), float(parts[rest].sum())
    return Explanation(label, score, float(bias), contributions, len(rest), others)


class HashedNames:
    """Names of the columns that the words of one text fall into; others are called by number."""

    def __init__(self, vectorizer: HashingVectorizer, text: str):
        from sklearn.feature_extraction import FeatureHasher

        words = sorted(set(vectorizer.build_analyzer()(text)))
        hasher = FeatureHasher(vectorizer.n_features, input_type="string")
        columns = hasher.transform([[word] for word in words]).indices if words else []
        self._n = vectorizer.n_features
        self._names: dict[int, str] = {}
        for column, word in zip(np.asarray(columns).tolist(), words, strict=True):
            known = self._names.get(column)
            self._names[column] = word if known is None else f"{known} or {word}"

    def __len__(self) -> int:
        return self._n

    def __getitem__(self, column: int) -> str:
        return self._names.get(int(column), f"column {column}")
