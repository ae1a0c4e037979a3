"""How PPD-Sparse finds violating samples with fewer weights: algorithm 4 and its bound."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from sublearn import _core
from sublearn.typing import JsonObject
from sublearn.validation import OneOf, OrNone, Positive, Rule, Settings

__all__ = ["RandomSparsification"]

_MOST_INT = 2**31 - 1  # the core counts rows and searches with 32 bits


@dataclass(frozen=True)
class RandomSparsification(Settings):
    r"""Searches with few weights, drawn at random so that scores are right on average.

    Theorem 5 of the thesis: :math:`R = \lceil 2 \|w\|_1^2 / \delta^2 \rceil` draws find the worst
    violation up to :math:`\delta` on average, for features of size at most one. A label with no
    more than :math:`R` weights is searched with all of them.

    Parameters
    ----------
    delta : float, default=0.5
        The error :math:`\delta`, in units of the margin.
    kappa : int or None, default=None
        Samples that a search adds to the active set of a label, the :math:`\kappa` of algorithm 2.
        None adds as many as it has already, and at least 100.
    scheme : {"draws", "rounding"}, default="draws"
        "draws" is algorithm 4: :math:`R` coordinates with replacement, each with probability
        :math:`|w_j| / \|w\|_1`. "rounding" keeps each weight once or not at all, :math:`R` of them
        at most on average, with no more variance; labels that are solved together then keep the
        same features where they can.
    n_between : int, default=1
        Such searches between two exact ones. The certificate takes an exact one.
    """

    delta: float = 0.5
    kappa: int | None = None
    scheme: str = "draws"
    n_between: int = 1

    _rules: ClassVar[Mapping[str, Rule]] = {
        "delta": Positive(float),
        "kappa": OrNone(Positive(int)),
        "scheme": OneOf("draws", "rounding"),
        "n_between": Positive(int),
    }

    def for_core(self) -> JsonObject:
        """The fields of the core's settings that say how to search."""
        return {
            "search": _core.PPDSearch.sparsified,
            "delta": float(self.delta),
            "is_drawn": self.scheme == "draws",
            "kappa": min(int(self.kappa or 0), _MOST_INT),
            "n_between": min(int(self.n_between), _MOST_INT),
        }
