"""Classification with very many labels."""

from sublearn.extreme.ppd_sparse import PPDSparseClassifier

__all__ = ["PPDSparseClassifier"]
