"""What users pass and files hold, as types for annotations.

Nothing is imported here when the program runs: the names stand for themselves in annotations, and
`validation` and `io` say what is really accepted.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    import scipy.sparse as sp
    from numpy.typing import ArrayLike

__all__ = [
    "ClassWeightLike",
    "EvalSet",
    "JsonObject",
    "LabelsLike",
    "Matrix",
    "MatrixLike",
    "PathLike",
    "Seed",
    "SparseMatrix",
    "State",
    "WeightsLike",
]

#: Any format of SciPy, of the older and of the newer kind.
SparseMatrix: TypeAlias = "sp.spmatrix | sp.sparray"
#: Numbers that were checked: an array or a sparse matrix, as the function says that takes them.
Matrix: TypeAlias = "np.ndarray | sp.spmatrix"
#: Features: arrays, nested lists, data frames (which turn themselves into arrays), sparse matrices.
MatrixLike: TypeAlias = "ArrayLike | sp.spmatrix | sp.sparray"
#: Labels: one per sample, an indicator matrix, or a collection of labels for each sample.
LabelsLike: TypeAlias = (
    "ArrayLike | sp.spmatrix | sp.sparray | Sequence[Hashable] | Sequence[Collection[Hashable]]"
)
#: Held-out rows: features and labels.
EvalSet: TypeAlias = "tuple[MatrixLike, LabelsLike] | None"
#: `class_weight`: a name, a weight for some labels, or one for each.
ClassWeightLike: TypeAlias = "str | Mapping[Hashable, float] | ArrayLike | None"
#: Weights of samples or features: one for all, or one for each.
WeightsLike: TypeAlias = "float | np.ndarray | Sequence[float] | pd.Series"
#: `random_state`.
Seed: TypeAlias = "int | np.random.Generator | np.random.RandomState | None"
#: Where a file is.
PathLike: TypeAlias = str | os.PathLike[str]
#: What becomes a JSON object, or came from one and is not checked yet.
JsonObject: TypeAlias = dict[str, Any]
#: Fitted values of a model by name, as files hold them: arrays, sparse matrices, JSON values. A
#: model knows what it has stored, and `sublearn.io.fields` checks what comes back.
State: TypeAlias = dict[str, Any]
