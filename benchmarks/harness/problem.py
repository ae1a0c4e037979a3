"""A problem: what entrants are trained on, what they are asked, and what only the judge knows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from harness.arrays import Arrays

__all__ = ["Problem", "Split"]


@dataclass(frozen=True)
class Split:
    """One loaded problem. `truth` never reaches an entrant's process."""

    train: Arrays
    test: Arrays
    truth: Arrays

    def shapes(self) -> dict[str, dict[str, list[int]]]:
        """Shapes by part and name, for the report."""
        parts = {"train": self.train, "test": self.test, "truth": self.truth}
        return {
            part: {name: list(value.shape) for name, value in arrays.items()}
            for part, arrays in parts.items()
        }


@dataclass(frozen=True)
class Problem:
    """A named problem; `load` gets the data directory and the seed."""

    name: str
    load: Callable[[Path, int], Split]
    note: str
