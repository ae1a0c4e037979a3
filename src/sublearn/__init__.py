"""Learning and inference in time sublinear in the size of the model."""

from __future__ import annotations

import os
from typing import Any

__all__ = ["__version__", "load"]

__version__ = "0.1.0"


def load(path: str | os.PathLike[str], *, mapped: bool = True) -> Any:
    """Open a fitted estimator that was written with its `save` method.

    Parameters
    ----------
    path : path
        The file.
    mapped : bool, default=True
        Whether the arrays of the model are views of the file, which the system reads when they are
        used and which processes share. The file must then not be changed in place; saving to it
        again is safe, since that puts a new file in its place. If False, they are read into memory.

    Returns
    -------
    estimator
        Of the class that was saved. Its arrays are read-only.

    Raises
    ------
    ValueError
        If the file is damaged, foreign, of a newer format, or names a class unknown here.
    """
    from sublearn.io.models import load as load_model  # late: `import sublearn` stays cheap

    return load_model(path, mapped=mapped)
