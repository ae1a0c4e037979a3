"""Structured outputs: labels that depend on each other, learnt with a margin over all labelings."""

from sublearn.structured.pairwise_multilabel import PairwiseMultilabelSVM

__all__ = ["PairwiseMultilabelSVM"]
