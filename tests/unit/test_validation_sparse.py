"""check_sparse and check_compressed: what comes back, and what never reaches SciPy."""

import numpy as np
import pytest
import scipy.sparse as sp

from sublearn.validation.sparse import check_compressed, check_sparse

X = sp.random(6, 9, density=0.4, format="csr", random_state=0)
FORMATS = ["csr", "csc", "coo", "bsr", "dia", "lil", "dok"]


@pytest.mark.parametrize("maker", [sp.csr_matrix, sp.csr_array, sp.csc_matrix, sp.csc_array])
@pytest.mark.parametrize("index_type", [np.int32, np.int64])
def test_a_sound_matrix_comes_back_as_it_is(maker, index_type):
    matrix = maker(X)
    matrix.indptr, matrix.indices = (a.astype(index_type) for a in (matrix.indptr, matrix.indices))
    assert check_compressed(matrix, "X") is matrix
    assert check_sparse(matrix, "X") is matrix


@pytest.mark.parametrize("kind", ["matrix", "array"])
@pytest.mark.parametrize("name", FORMATS)
def test_every_format_keeps_its_entries(name, kind):
    matrix = getattr(sp, f"{name}_{kind}")(X)
    found = check_sparse(matrix, "X")
    assert isinstance(found, sp.spmatrix) == (kind == "matrix")
    np.testing.assert_array_equal(found.toarray(), X.toarray())


@pytest.mark.parametrize("shape", [(0, 0), (0, 5), (5, 0), (3, 2**31 - 1), (3, 2**40)])
def test_a_matrix_may_be_empty_or_wide(shape):
    assert check_compressed(sp.csr_matrix(shape), "X").shape == shape
    assert check_compressed(sp.csc_matrix(shape[::-1]), "X").shape == shape[::-1]


def test_two_index_types_become_the_narrower_one_that_holds_the_columns():
    for n_columns, expected in ((9, np.int32), (2**40, np.int64)):
        matrix = sp.csr_matrix((6, n_columns))
        matrix.data, matrix.indices, matrix.indptr = X.data, X.indices, X.indptr.astype(np.int64)
        found = check_compressed(matrix, "X")
        assert found.indptr.dtype == found.indices.dtype == expected
        np.testing.assert_array_equal(found.indices, X.indices)


def test_entries_that_no_row_uses_are_cut_off():
    matrix = X.copy()
    matrix.data, matrix.indices = np.append(X.data, 7.0), np.append(X.indices, -3)
    found = check_compressed(matrix, "X")
    assert len(found.data) == len(found.indices) == X.nnz
    assert len(matrix.data) == X.nnz + 1


def test_the_refusal_names_the_matrix_and_the_fault():
    matrix = X.copy()
    matrix.indptr = np.array([0, 2_000_000_000, 0, 0, 0, 0, 0], dtype=np.int32)
    with pytest.raises(ValueError, match=r"^file: W\.indptr must not decrease, got 0 after 2000"):
        check_compressed(matrix, "file: W")
    matrix = sp.csc_matrix(X)
    matrix.indices[0] = 6
    with pytest.raises(ValueError, match=r"^W\.indices must be from 0 to 5, got 6$"):
        check_compressed(matrix, "W")


def test_sparse_arrays_of_other_dimensions_are_refused():
    coo = sp.coo_array(np.arange(4))
    with pytest.raises(ValueError, match=r"^y must be 2-D, got 1-D"):
        check_sparse(coo, "y")
