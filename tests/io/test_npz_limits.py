"""Sizes that a .npz file may claim."""

import numpy as np
import pytest
import scipy.sparse as sp

from sublearn.errors import DataFileError
from sublearn.io import load_npz, save_npz


@pytest.mark.parametrize("place", [0, 1])
def test_refuses_more_rows_or_columns_than_ids_can_name(tmp_path, place):
    path = tmp_path / "huge.npz"
    save_npz(path, sp.csr_matrix(np.eye(3)), np.arange(3))
    content = dict(np.load(path))
    name = next(name for name in content if name.endswith("X.shape"))
    content[name][place] = np.iinfo(np.int64).max
    np.savez(path, **content)
    with pytest.raises(DataFileError, match=r"huge\.npz.*shape must be two sizes of at most"):
        load_npz(path)
