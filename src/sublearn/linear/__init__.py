"""Sparse linear models: few weights that are not zero, and a bound on what is left to gain."""

from sublearn.linear.groups import GroupLinearRegression, GroupLogisticRegression
from sublearn.linear.inverse_covariance import SparseInverseCovariance
from sublearn.linear.logistic import SparseLogisticRegression
from sublearn.linear.path import CoefficientPath
from sublearn.linear.regression import SparseLinearRegression
from sublearn.linear.selection import CrossValidation
from sublearn.optim.concave import FallingWeights
from sublearn.optim.row_losses import Huber, Quantile

__all__ = [
    "CoefficientPath",
    "CrossValidation",
    "FallingWeights",
    "GroupLinearRegression",
    "GroupLogisticRegression",
    "Huber",
    "Quantile",
    "SparseInverseCovariance",
    "SparseLinearRegression",
    "SparseLogisticRegression",
]
