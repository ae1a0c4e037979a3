"""Solvers that know their objective only through values and gradients."""

from sublearn.optim.lhac import LhacSolution, lhac
from sublearn.optim.linear_objective import linear_objective

__all__ = ["LhacSolution", "lhac", "linear_objective"]
