"""The most probable assignment of factor graphs, also of large domains and of many factors."""

from sublearn.graph.factor_graph import FactorGraph
from sublearn.graph.map import MapResult, solve_map
from sublearn.graph.map_plot import plot_map
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

__all__ = [
    "FactorGraph",
    "MapResult",
    "Table",
    "dense",
    "label_distance",
    "low_rank",
    "plot_map",
    "potts",
    "read_evidence",
    "read_map",
    "read_uai",
    "solve_map",
    "sparse_table",
    "truncated_linear",
    "write_map",
    "write_uai",
]
