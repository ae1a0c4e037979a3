"""The same estimators on several machines, by Dask or by Ray."""

import importlib
from typing import TYPE_CHECKING

from sublearn.distributed.blocks import TaskRecord
from sublearn.errors import needs_extra as _needs_extra

if TYPE_CHECKING:
    from sublearn.distributed.on_dask import DaskBlocks, cluster
    from sublearn.distributed.on_ray import RayBlocks, ray_cluster
    from sublearn.distributed.prediction import predict, predict_files
    from sublearn.distributed.row_blocks import RowBlocks
    from sublearn.distributed.row_fit import fit_by_rows

__all__ = [
    "DaskBlocks",
    "RayBlocks",
    "RowBlocks",
    "TaskRecord",
    "cluster",
    "fit_by_rows",
    "predict",
    "predict_files",
    "ray_cluster",
]
_HOMES = {
    "DaskBlocks": ("on_dask", "dask"),
    "RayBlocks": ("on_ray", "ray"),
    "RowBlocks": ("row_blocks", "dask"),
    "cluster": ("on_dask", "dask"),
    "fit_by_rows": ("row_fit", "dask"),
    "predict": ("prediction", "dask"),
    "predict_files": ("prediction", "dask"),
    "ray_cluster": ("on_ray", "ray"),
}


def __getattr__(name: str) -> object:
    """Late: who has Ray need not have Dask, and the other way round."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, extra = _HOMES[name]
    with _needs_extra(__name__, extra):
        found: object = getattr(importlib.import_module(f"{__name__}.{module}"), name)
    return found
