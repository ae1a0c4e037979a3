"""Where SciPy's index types meet the core, which knows ids of 32 bits alone."""

import numpy as np
import pytest

from sublearn import _core

LABELS = np.array([0, 1]), np.array([0], dtype=np.int32)  # one label, of the first row


def labelled_rows(indptr, indices, n_features=3, values=np.float32):
    return _core.labelled_rows(
        np.array([0, 1], dtype=indptr), np.array([2], dtype=indices), np.ones(1, values),
        n_features, *LABELS,
    )  # fmt: skip


@pytest.mark.parametrize("values", [np.float32, np.float64])
@pytest.mark.parametrize("index_type", [np.int32, np.int64])
def test_takes_either_index_type(index_type, values):
    labelled_rows(index_type, index_type, values=values)


@pytest.mark.parametrize(
    ("indptr", "indices"), [(np.int32, np.int64), (np.int64, np.int32), (np.uint32, np.uint32)]
)
def test_refuses_index_arrays_that_scipy_does_not_make(indptr, indices):
    with pytest.raises(TypeError):
        labelled_rows(indptr, indices)


def test_refuses_more_columns_than_ids_of_32_bits_can_name():
    with pytest.raises(ValueError, match=r"at most 2147483647 columns, got 2147483648"):
        labelled_rows(np.int64, np.int64, n_features=2**31)


def test_an_id_that_is_too_large_is_refused_before_it_is_cut_to_32_bits():
    with pytest.raises(ValueError, match=r"indices must .* got 4294967298"):
        _core.labelled_rows(
            np.array([0, 1]), np.array([2**32 + 2]), np.ones(1, np.float32), 3, *LABELS
        )


def model(labels, values, scales):
    offsets, bias = np.array([0, 1], dtype=np.int64), np.zeros(2, np.float32)
    return _core.linear_model(offsets, np.array([1], dtype=labels), values, scales, bias)


@pytest.mark.parametrize("index_type", [np.int32, np.int64])
@pytest.mark.parametrize("value_type", [np.float32, np.float64])
@pytest.mark.parametrize("label_type", [np.uint16, np.int32, np.int64])
def test_rows_of_any_types_are_scored(label_type, value_type, index_type):
    weights = model(label_type, np.array([3.0], np.float32), None)
    row = np.array([0, 1], index_type), np.array([0], index_type), np.array([2.0], value_type)
    assert weights.scores(*row).tolist() == [[0.0, 6.0]]
    labels, scores = weights.top_k(*row, 1)
    assert (labels.tolist(), scores.tolist()) == ([[1]], [[6.0]])
    assert [a.tolist() for a in weights.above(*row, 1.0)] == [[0, 1], [1]]


def test_rows_of_integers_are_refused():
    weights = model(np.int32, np.array([3.0], np.float32), None)
    with pytest.raises(TypeError):
        weights.scores(np.array([0, 1]), np.array([0]), np.array([2]))


@pytest.mark.parametrize("label_type", [np.uint16, np.int32])
def test_integer_weights_come_with_labels_of_few_bytes(label_type):
    scales, row = np.array([0.5], np.float32), (np.array([0, 1]), np.array([0]), np.ones(1))
    weights = model(label_type, np.array([4], np.int8), scales)
    assert weights.scores(*row).tolist() == [[0.0, 2.0]]
    with pytest.raises(ValueError, match=r"weights\.values must .*labels of 16 or 32 bits"):
        model(np.int64, np.array([4], np.int8), scales)
