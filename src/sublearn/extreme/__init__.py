"""Classification with very many labels."""

from sublearn.extreme.pd_sparse import PDSparseClassifier
from sublearn.extreme.ppd_sparse import PPDSparseClassifier

__all__ = ["PDSparseClassifier", "PPDSparseClassifier"]
