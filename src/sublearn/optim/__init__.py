"""Solvers of sparse problems: any smooth objective, and linear models."""

from sublearn.optim.lhac import LhacSettings, LhacSolution, lhac
from sublearn.optim.linear_objective import linear_objective, multinomial_objective
from sublearn.optim.linear_solvers import CoordinateDescent, LinearSolution, minimise_linear
from sublearn.optim.penalties import GroupNorm, Mcp, NuclearNorm, Scad, Separable, TreeNorm
from sublearn.optim.quasi_newton import ProximalSettings, proximal_quasi_newton
from sublearn.optim.row_losses import Huber, Quantile

__all__ = [
    "CoordinateDescent",
    "GroupNorm",
    "Huber",
    "LhacSettings",
    "LhacSolution",
    "LinearSolution",
    "Mcp",
    "NuclearNorm",
    "ProximalSettings",
    "Quantile",
    "Scad",
    "Separable",
    "TreeNorm",
    "lhac",
    "linear_objective",
    "minimise_linear",
    "multinomial_objective",
    "proximal_quasi_newton",
]
