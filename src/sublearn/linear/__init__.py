"""Sparse linear models."""

from sublearn.linear.inverse_covariance import SparseInverseCovariance

__all__ = ["SparseInverseCovariance"]
