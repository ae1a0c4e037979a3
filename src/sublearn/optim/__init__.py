"""Solvers of sparse problems: any smooth objective, and linear models."""

from sublearn.optim.lhac import LhacSettings, LhacSolution, lhac
from sublearn.optim.linear_objective import linear_objective, multinomial_objective
from sublearn.optim.linear_solvers import CoordinateDescent, LinearSolution, minimise_linear
from sublearn.optim.row_losses import Huber, Quantile

__all__ = [
    "CoordinateDescent",
    "Huber",
    "LhacSettings",
    "LhacSolution",
    "LinearSolution",
    "Quantile",
    "lhac",
    "linear_objective",
    "minimise_linear",
    "multinomial_objective",
]
