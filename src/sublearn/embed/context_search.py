"""How skip-gram estimates its sums over all contexts of a word."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from sublearn.validation import Interval, NonNegative, OneOf, Positive, Rule, Settings

__all__ = ["ContextSearch"]

_FEW_WORDS = 4  # up to this many times n_sampled words, "auto" sums over all


@dataclass(frozen=True)
class ContextSearch(Settings):
    """Settings of the partition sum of a word: which contexts it has, and the passes before it.

    Parameters
    ----------
    partition : {"auto", "exact", "search", "sampled", "decomposed"}, default="auto"
        Which contexts the sum has beside those seen with a word: all; those found by search and a
        sample; a sample; those found by searches in blocks of coordinates, while all others count
        with their bias alone. "auto" is "exact" for up to four times `n_sampled` words, else
        "sampled". With "decomposed", a pass moves words first and contexts then.
    n_sampled : int, default=1024
        Size of the sample, drawn anew for every 64 visits to words.
    n_candidates : int, default=32
        Contexts that a search looks for; the blocks of "decomposed" share them. The paper has a
        twentieth of the words.
    n_probe : int, default=4
        Clusters that it looks at, in each block.
    n_warm : int, default=1
        Passes of negative sampling, which come first.
    n_negative : int, default=5
        Weight of the noise in negative sampling: noise words for each pair.
    noise_power : float, default=0.75
        The noise has the frequencies of words to this power.
    n_blocks : int, default=4
        Blocks of coordinates of "decomposed". In the paper: B.
    """

    partition: str = "auto"
    n_sampled: int = 1024
    n_candidates: int = 32
    n_probe: int = 4
    n_warm: int = 1
    n_negative: int = 5
    noise_power: float = 0.75
    n_blocks: int = 4

    _rules: ClassVar[dict[str, Rule]] = {
        "partition": OneOf("auto", "exact", "search", "sampled", "decomposed"),
        "n_sampled": Interval(int, 1, 2**20),
        "n_candidates": Interval(int, 1, 2**20),
        "n_probe": Positive(int),
        "n_warm": NonNegative(int),
        "n_negative": Positive(int),
        "noise_power": Interval(float, 0.0, 1.0),
        "n_blocks": Positive(int),
    }

    def for_words(self, n_words: int) -> ContextSearch:
        """What "auto" means for so many words, and no more candidates than there are."""
        partition = self.partition
        if partition == "auto":
            partition = "exact" if n_words <= _FEW_WORDS * self.n_sampled else "sampled"
        return replace(self, partition=partition, n_candidates=min(self.n_candidates, n_words))
