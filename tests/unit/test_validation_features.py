"""Features: what is accepted, what is shared, what is refused."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator

from sublearn.validation import check_features

DENSE = np.array([[0.0, 1.5, 0.0], [2.0, 0.0, -3.0], [0.0, 0.0, 0.0]])
FORMATS = ["csr", "csc", "coo", "lil", "dok", "dia", "bsr"]


class Model(BaseEstimator):
    pass


def check(X, *, model=None, reset=True):
    return check_features(model or Model(), X, reset=reset)


def raw_csr(data, indices, indptr, shape, index_type=np.int32):
    """A CSR matrix with exactly these arrays, which the constructor might change."""
    matrix = sp.csr_matrix(shape)
    matrix.data = np.asarray(data, dtype=float)
    matrix.indices = np.asarray(indices, dtype=index_type)
    matrix.indptr = np.asarray(indptr, dtype=index_type)
    return matrix


def assert_canonical(csr):
    assert type(csr) is sp.csr_matrix
    assert csr.dtype in (np.float32, np.float64)
    assert csr.indices.dtype == csr.indptr.dtype
    assert csr.indices.dtype in (np.int32, np.int64)
    for row in np.split(csr.indices, csr.indptr[1:-1]):
        assert (np.diff(row) > 0).all()


@pytest.mark.parametrize("make", [sp.csr_matrix, sp.csr_array])
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_accepts_every_sparse_format(make, format, dtype):
    csr = check(make(DENSE.astype(dtype)).asformat(format))
    assert_canonical(csr)
    assert csr.dtype == dtype
    np.testing.assert_array_equal(csr.toarray(), DENSE)


@pytest.mark.parametrize(
    "X",
    [
        DENSE,
        np.asfortranarray(DENSE),
        DENSE.tolist(),
        pd.DataFrame(DENSE, columns=list("abc")),
        pl.DataFrame(DENSE, schema=["a", "b", "c"]),
        pd.DataFrame.sparse.from_spmatrix(sp.csr_matrix(DENSE), columns=list("abc")),
    ],
    ids=["c-order", "f-order", "lists", "pandas", "polars", "sparse-pandas"],
)
def test_accepts_dense_input_and_frames(X):
    csr = check(X)
    assert_canonical(csr)
    assert csr.dtype == np.float64
    np.testing.assert_array_equal(csr.toarray(), DENSE)


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int64, np.float16, bool, ">f8", object])
def test_other_dense_numbers_become_float64(dtype):
    X = np.abs(DENSE).round().astype(dtype)
    csr = check(X)
    assert csr.dtype == np.float64
    np.testing.assert_array_equal(csr.toarray(), X.astype(float))


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int64, bool, np.longdouble])
def test_other_sparse_numbers_become_float64(dtype):
    X = np.abs(DENSE).round().astype(dtype)
    csr = check(sp.csr_matrix(X))
    assert csr.dtype == np.float64
    np.testing.assert_array_equal(csr.toarray(), X.astype(float))


def test_float32_stays_float32_when_dense():
    assert check(DENSE.astype(np.float32)).dtype == np.float32


@pytest.mark.parametrize("make", [sp.csr_matrix, sp.csr_array])
def test_shares_memory_where_nothing_had_to_change(make):
    X = make(DENSE)
    csr = check(X)
    for name in ("data", "indices", "indptr"):
        assert np.shares_memory(getattr(csr, name), getattr(X, name)), name


def test_keeps_int64_indices_without_a_copy():
    X = raw_csr([1, 2], [0, 1], [0, 1, 2], (2, 2), np.int64)
    csr = check(X)
    assert csr.indices.dtype == csr.indptr.dtype == np.int64
    assert np.shares_memory(csr.indices, X.indices)


def test_mixed_index_types_become_int32():
    X = raw_csr([1, 2], [0, 1], [0, 1, 2], (2, 2))
    X.indptr = X.indptr.astype(np.int64)
    csr = check(X)
    assert csr.indices.dtype == csr.indptr.dtype == np.int32
    assert np.shares_memory(csr.indices, X.indices)


def test_strided_arrays_become_contiguous():
    X = raw_csr([1, 2], [0, 1], [0, 1, 2], (2, 2))
    X.data = np.array([1.0, 9.0, 2.0, 9.0])[::2]
    csr = check(X)
    assert csr.data.flags.c_contiguous
    np.testing.assert_array_equal(csr.toarray(), [[1, 0], [0, 2]])


def test_entries_behind_the_last_row_are_left_out():
    csr = check(raw_csr([1, 2, 7], [0, 1, 0], [0, 1, 2], (2, 2)))
    assert len(csr.data) == len(csr.indices) == 2


@st.composite
def untidy_matrices(draw):
    n_rows, n_features = draw(st.integers(1, 5)), draw(st.integers(1, 5))
    column = st.integers(0, n_features - 1)
    rows = draw(st.lists(st.lists(column, max_size=6), min_size=n_rows, max_size=n_rows))
    indices = [j for row in rows for j in row]
    indptr = np.cumsum([0] + [len(row) for row in rows])
    values = st.integers(-4, 4).map(float)
    data = draw(st.lists(values, min_size=len(indices), max_size=len(indices)))
    index_type = draw(st.sampled_from([np.int32, np.int64]))
    return raw_csr(data, indices, indptr, (n_rows, n_features), index_type)


@settings(deadline=None)
@given(untidy_matrices())
def test_sorts_and_sums_duplicates_and_leaves_the_caller_alone(X):
    before = [X.data.copy(), X.indices.copy(), X.indptr.copy()]
    expected = np.zeros(X.shape)
    for i in range(X.shape[0]):
        for p in range(X.indptr[i], X.indptr[i + 1]):
            expected[i, X.indices[p]] += X.data[p]

    csr = check(X)

    assert_canonical(csr)
    np.testing.assert_array_equal(csr.toarray(), expected)
    for array, copy in zip([X.data, X.indices, X.indptr], before, strict=True):
        np.testing.assert_array_equal(array, copy)


def test_keeps_feature_names_and_count():
    model = Model()
    check(pd.DataFrame(DENSE, columns=list("abc")), model=model)
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    assert model.n_features_in_ == 3


@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix, pl.DataFrame])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_refuses_values_that_are_not_finite(make, value):
    X = DENSE.copy()
    X[0, 0] = value
    with pytest.raises(ValueError, match=r"Input X contains (NaN|infinity)"):
        check(make(X))


@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix, sp.coo_array])
def test_refuses_zero_rows(make):
    with pytest.raises(ValueError, match=r"0 sample\(s\) \(shape=\(0, 3\)\) while a minimum of 1"):
        check(make(np.zeros((0, 3))))


@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix])
def test_refuses_zero_columns(make):
    with pytest.raises(ValueError, match=r"0 feature\(s\) \(shape=\(3, 0\)\) while a minimum of 1"):
        check(make(np.zeros((3, 0))))


@pytest.mark.parametrize("X", [np.ones(3), np.ones((2, 2, 2)), sp.coo_array(np.ones(3)), 5.0])
def test_refuses_what_is_not_2d(X):
    if sp.issparse(X) and X.ndim == 2:
        pytest.skip("this SciPy has no sparse vectors")
    with pytest.raises(ValueError, match=r"Expected 2D|dim 3|must be 2-D"):
        check(X)


def test_refuses_text():
    with pytest.raises(ValueError, match=r"X must hold numbers alone, got .a. in row 0, column 0"):
        check(np.array([["a", "b"]]))


def test_refuses_complex_numbers():
    with pytest.raises(ValueError, match="Complex data not supported"):
        check(np.array([[1 + 2j]]))


def test_refuses_another_number_of_features_at_prediction():
    model = Model()
    check(DENSE, model=model)
    with pytest.raises(ValueError, match="X has 2 features, but Model is expecting 3 features"):
        check(DENSE[:, :2], model=model, reset=False)


def test_refuses_other_feature_names_at_prediction():
    model = Model()
    check(pd.DataFrame(DENSE, columns=list("abc")), model=model)
    with pytest.raises(ValueError, match="feature names should match"):
        check(pd.DataFrame(DENSE, columns=list("abd")), model=model, reset=False)


def test_refuses_more_columns_than_the_core_can_number():
    with pytest.raises(
        ValueError, match=r"^X must have at most 2147483647 columns, got 2147483648"
    ):
        check(sp.csr_matrix((1, 2**31)))


def test_refuses_more_rows_than_the_core_can_number():
    with pytest.raises(ValueError, match=r"^X must have at most 2147483647 rows, got 2147483648"):
        check(sp.coo_matrix((2**31, 1)))


@pytest.mark.parametrize("index", [-1, 2, 10**6])
def test_refuses_column_ids_outside_the_matrix(index):
    with pytest.raises(ValueError, match=rf"^X.indices must be from 0 to 1, got .*{index}"):
        check(raw_csr([1, 2], [0, index], [0, 1, 2], (2, 2)))


@pytest.mark.parametrize(
    ("indptr", "sentence"),
    [
        ([1, 1, 2], "start at 0, got 1"),
        ([0, 2, 1], "not decrease, got 1 after 2"),
        ([0, 2], "have one entry more than 2, got 2"),
    ],
)
def test_refuses_row_offsets_that_make_no_sense(indptr, sentence):
    with pytest.raises(ValueError, match=rf"^X.indptr must {sentence}"):
        check(raw_csr([1, 2], [0, 1], indptr, (2, 2)))


def test_refuses_row_offsets_behind_the_end():
    with pytest.raises(ValueError, match=r"^X.indices must have 9 entries as X.indptr says, got 2"):
        check(raw_csr([1, 2], [0, 1], [0, 1, 9], (2, 2)))


def test_refuses_duplicates_whose_sum_is_not_finite():
    with pytest.raises(ValueError, match=r"^X must be finite, got duplicate entries"):
        check(raw_csr([1e308, 1e308], [0, 0], [0, 2], (1, 1)))
