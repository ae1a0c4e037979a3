"""A problem: what entrants are trained on, what they are asked, and what only the judge knows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import scipy.sparse as sp

from harness.arrays import Arrays

__all__ = ["Problem", "Split", "truth_of"]


@dataclass(frozen=True)
class Split:
    """One loaded problem. `truth` never reaches an entrant's process."""

    train: Arrays
    test: Arrays
    truth: Arrays

    def facts(self) -> dict[str, int]:
        """How much data there really is: non-zero features, labels that some training row has."""
        facts = {}
        if "X" in self.train:
            facts["nnz"] = int(sp.csr_matrix(self.train["X"]).nnz)
        if "Y" in self.train:
            per_label = sp.csr_matrix(self.train["Y"]).getnnz(axis=0)
            facts["labels_used"] = int((per_label > 0).sum())
            facts["positives"] = int(per_label.sum())
        return facts


def truth_of(Y_train: Any, Y_test: Any) -> Arrays:
    """What the judge of ranked labels knows: true labels, and propensities from the training rows.

    The constants of the propensities are the usual ones of data from neither Wikipedia nor Amazon.
    """
    from sublearn.metrics import propensities

    return {"Y": Y_test, "propensity": propensities(Y_train)}


@dataclass(frozen=True)
class Problem:
    """A named problem; `load` gets the data directory and the seed."""

    name: str
    load: Callable[[Path, int], Split]
    note: str
