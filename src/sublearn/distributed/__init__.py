"""The same estimators on several machines, by Dask."""

from sublearn.distributed.cluster import cluster
from sublearn.distributed.row_blocks import RowBlocks
from sublearn.distributed.row_fit import fit_by_rows

__all__ = ["RowBlocks", "cluster", "fit_by_rows"]
