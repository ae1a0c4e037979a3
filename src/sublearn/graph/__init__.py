"""The most probable assignment of factor graphs, also of large domains and of many factors."""

from sublearn.graph.cfn import read_cfn
from sublearn.graph.factor_graph import FactorGraph
from sublearn.graph.map import MapResult, solve_map
from sublearn.graph.map_plot import plot_map
from sublearn.graph.marginals import Marginals, MaxMarginals, marginals, max_marginals
from sublearn.graph.n_best import NBest, n_best_assignments
from sublearn.graph.reading import read_graph
from sublearn.graph.table_makers import (
    dense,
    label_distance,
    low_rank,
    potts,
    sparse_table,
    truncated_linear,
)
from sublearn.graph.tables import Table
from sublearn.graph.uai import read_evidence, read_map, read_uai, write_map, write_uai
from sublearn.graph.wcsp import read_wcsp, write_wcsp

__all__ = [
    "FactorGraph",
    "MapResult",
    "Marginals",
    "MaxMarginals",
    "NBest",
    "Table",
    "dense",
    "label_distance",
    "low_rank",
    "marginals",
    "max_marginals",
    "n_best_assignments",
    "plot_map",
    "potts",
    "read_cfn",
    "read_evidence",
    "read_graph",
    "read_map",
    "read_uai",
    "read_wcsp",
    "solve_map",
    "sparse_table",
    "truncated_linear",
    "write_map",
    "write_uai",
    "write_wcsp",
]
