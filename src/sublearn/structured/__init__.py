"""Structured outputs: sequences and graphs of labels, learnt with a margin over all labelings."""

from sublearn.structured.chain_svm import ChainSVM
from sublearn.structured.samples import Sample
from sublearn.structured.structural_svm import StructuralSVM

__all__ = ["ChainSVM", "Sample", "StructuralSVM"]
