"""How a last layer finds the few labels that matter to a sample."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from sublearn.validation import (
    Boolean,
    Either,
    Interval,
    NonNegative,
    OneOf,
    OrNone,
    Positive,
    Rule,
    Settings,
    SettingsOf,
)

__all__ = ["LAYER_RULES", "LabelSearch"]


@dataclass(frozen=True)
class LabelSearch(Settings):
    r"""Settings of the search for labels in a layer: how wide it is, and what it may leave out.

    Parameters
    ----------
    n_blocks : int, default=2
        Blocks of coordinates of ``gradient="decomposed"``. In the paper: B.
    n_candidates : int, default=64
        Negatives that a search gives a sample, at most; the blocks share them. In the paper: Q.
    n_probe : int, default=4
        Clusters, of about twice the square root of the number of labels, that a search looks at
        in each block.
    n_sampled : "auto" or int, default="auto"
        Negatives of a batch of ``gradient="sampled"``, and of the first `n_warm` epochs of
        searches; "auto" is a hundredth of the labels, at least 100.
    n_warm : float, default=1
        Epochs by sampling before the first search: as long as the weights are small, all labels
        have the same gradient. `SearchedOutput` takes as many samples as labels for an epoch.
    min_gradient : float, default=1e-3
        Gradients with respect to a score of at most this size are left out; not used by
        ``gradient="exact"``. In the paper: :math:`\tau_2`.
    smoothing : float, default=1.0
        Of ``loss="smoothed_margin"``: the larger, the more labels get a gradient. In the paper:
        :math:`\mu`.
    n_messages : int or None, default=None
        Steps of messages between the blocks of ``gradient="decomposed"``, algorithm 11; in the
        paper: T, with step size 2 / (t + 2). None scores what the blocks find in full, which is
        where messages with the parts of all blocks would end.
    widens : bool, default=False
        Look further as long as the labels that are retrieved, whose sum bounds the partition sum
        from below, leave room for gradients above `min_gradient`: then `n_candidates` is no limit,
        and a sample looks at twice as many clusters whenever the second half of them had such a
        label.
    rest : {"auto", "zero", "mean"}, default="auto"
        The score that labels which no search has found have in the sum of softmax: 0, as in the
        paper, or their mean score, which makes the sum a lower bound. "auto" is "mean" for
        distances, else "zero".
    refresh : float, default=0.25
        The copies that searches look at are made anew when so many samples have passed for each
        label; rows that have moved far then look for their clusters. 0 does it after each batch
        for the rows that it has changed.
    recall : float, default=0.95
        Share of the best five labels that prediction through the index finds, measured on training
        rows. `SearchedOutput` does not predict.
    """

    n_blocks: int = 2
    n_candidates: int = 64
    n_probe: int = 4
    n_sampled: int | str = "auto"
    n_warm: float = 1
    min_gradient: float = 1e-3
    smoothing: float = 1.0
    recall: float = 0.95
    n_messages: int | None = None
    widens: bool = False
    rest: str = "auto"
    refresh: float = 0.25

    _rules: ClassVar[dict[str, Rule]] = {
        "n_blocks": Positive(int),
        "n_candidates": Positive(int),
        "n_probe": Positive(int),
        "n_sampled": Either(OneOf("auto"), Positive(int)),
        "n_warm": NonNegative(float),
        "min_gradient": NonNegative(float),
        "smoothing": Positive(float),
        "recall": Interval(float, 0, 1, "right"),
        "n_messages": OrNone(Positive(int)),
        "widens": Boolean(),
        "rest": OneOf("auto", "zero", "mean"),
        "refresh": NonNegative(float),
    }

    def samples_of(self, n_labels: int) -> int:
        """Negatives of a batch by sampling."""
        return max(100, n_labels // 100) if self.n_sampled == "auto" else int(self.n_sampled)


#: Of the parameters that every layer has, whoever trains it.
LAYER_RULES: dict[str, Rule] = {
    "loss": OneOf("softmax", "nca", "margin", "triplet", "smoothed_margin", "metric_triplet"),
    "gradient": OneOf("exact", "sampled", "mips", "decomposed"),
    "search": SettingsOf(LabelSearch),
}
