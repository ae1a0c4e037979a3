"""The same estimators on several machines, by Dask."""

from sublearn.errors import needs_extra as _needs_extra

with _needs_extra("sublearn.distributed", "dask"):
    import dask.array as _array  # noqa: F401
    import distributed as _distributed  # noqa: F401

from sublearn.distributed.block_tasks import TaskRecord
from sublearn.distributed.cluster import DaskBlocks, cluster
from sublearn.distributed.prediction import predict, predict_files
from sublearn.distributed.row_blocks import RowBlocks
from sublearn.distributed.row_fit import fit_by_rows

__all__ = [
    "DaskBlocks",
    "RowBlocks",
    "TaskRecord",
    "cluster",
    "fit_by_rows",
    "predict",
    "predict_files",
]
