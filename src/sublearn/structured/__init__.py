"""Structured outputs: labels that depend on each other, learnt with a margin over all labelings."""

from sublearn.structured.chain_svm import ChainSVM
from sublearn.structured.learning import Passes
from sublearn.structured.pairwise_multilabel import PairwiseMultilabelSVM
from sublearn.structured.samples import Sample
from sublearn.structured.structural_svm import StructuralSVM
from sublearn.structured.word_features import word_features

__all__ = [
    "ChainSVM",
    "PairwiseMultilabelSVM",
    "Passes",
    "Sample",
    "StructuralSVM",
    "word_features",
]
