"""Labels: every form, every refusal, and predictions turned back into the form given."""

import datetime
import enum

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import DataConversionWarning

from sublearn.validation import LabelKind, decode_predictions, encode_each, encode_labels

INDICATOR = np.array([[1, 0, 1], [0, 0, 0], [0, 0, 1]])
FORMATS = ["csr", "csc", "coo", "lil", "dok", "dia", "bsr"]


class Colour(enum.Enum):  # hashable, without an order
    RED = 1
    BLUE = 2


def rows_of(encoded):
    """The rows of each label, as lists; checks the types and the order on the way."""
    assert encoded.indptr.dtype == np.int64
    assert encoded.rows.dtype == np.int32
    assert len(encoded.indptr) == len(encoded.classes) + 1
    rows = [part.tolist() for part in np.split(encoded.rows, encoded.indptr[1:-1])]
    assert all(part == sorted(set(part)) for part in rows)
    return rows


def round_trip(y, n_samples):
    encoded = encode_labels(y, n_samples)
    return decode_predictions(encoded.kind, encoded.classes, encoded.to_csr())


@pytest.mark.parametrize(
    ("y", "classes"),
    [
        ([3, 1, 3], [1, 3]),
        ((3, 1, 3), [1, 3]),
        (np.array([3, 1, 3], dtype=np.uint8), [1, 3]),
        ([3.0, 1.0, 3.0], [1.0, 3.0]),
        (["b", "a", "b"], ["a", "b"]),
        (np.array(["b", "a", "b"]), ["a", "b"]),
        (np.array(["b", "a", "b"], dtype=object), ["a", "b"]),
        ([True, False, True], [False, True]),
        ([np.str_("b"), "a", "b"], ["a", "b"]),
        ([2, 1.0, np.int8(2)], [1, 2]),
        (pd.Series(["b", "a", "b"]), ["a", "b"]),
        (pd.Series([3, 1, 3], dtype="Int64"), [1, 3]),
        (pd.Series(["b", "a", "b"], dtype="category"), ["a", "b"]),
        (pl.Series(["b", "a", "b"]), ["a", "b"]),
        ([2**70, 1, 2**70], [1, 2**70]),
        ([b"b", b"a", b"b"], [b"a", b"b"]),
    ],
)
def test_encodes_one_label_per_sample(y, classes):
    encoded = encode_labels(y, 3)
    assert encoded.classes.tolist() == classes
    assert encoded.kind is LabelKind.BINARY
    assert rows_of(encoded) == [[1], [0, 2]]
    assert round_trip(y, 3).tolist() == list(y)


def test_three_labels_are_multiclass():
    encoded = encode_labels(["c", "a", "b", "a"], 4)
    assert encoded.kind is LabelKind.MULTICLASS
    assert not encoded.kind.is_multilabel
    assert not encoded.kind.is_indicator
    assert rows_of(encoded) == [[1, 3], [2], [0]]
    assert encoded.counts().tolist() == [2, 1, 1]
    assert encoded.n_classes == 3


def test_many_classes_do_not_warn():
    encoded = encode_labels(np.arange(100), 100)
    assert encoded.n_classes == 100


def test_labels_of_other_sortable_types_are_sorted():
    days = [datetime.date(2020, 1, d) for d in (3, 1, 3)]
    assert encode_labels(days, 3).classes.tolist() == [days[1], days[0]]


def test_labels_without_an_order_stand_as_they_first_appear():
    y = [Colour.RED, Colour.BLUE, Colour.RED]
    encoded = encode_labels(y, 3)
    assert encoded.classes.tolist() == [Colour.RED, Colour.BLUE]
    assert rows_of(encoded) == [[0, 2], [1]]


@pytest.mark.parametrize("y", [np.array([[3], [1], [3]]), pd.DataFrame({"y": [3, 1, 3]})])
def test_a_column_is_taken_as_1d_with_a_warning(y):
    with pytest.warns(DataConversionWarning, match="column-vector y was passed"):
        encoded = encode_labels(y, 3)
    assert encoded.kind is LabelKind.BINARY
    assert rows_of(encoded) == [[1], [0, 2]]


@pytest.mark.parametrize(
    "y",
    [
        INDICATOR,
        INDICATOR.astype(bool),
        INDICATOR.astype(np.float32),
        INDICATOR.astype(object),
        np.asfortranarray(INDICATOR),
        pd.DataFrame(INDICATOR),
        pd.DataFrame({"a": [1, 0, 0], "b": [False, False, False], "c": [1.0, 0.0, 1.0]}),
        pl.DataFrame(INDICATOR),
    ],
    ids=["int", "bool", "float", "object", "f-order", "pandas", "mixed-pandas", "polars"],
)
def test_encodes_a_dense_indicator(y):
    encoded = encode_labels(y, 3)
    assert encoded.kind is LabelKind.DENSE_INDICATOR
    assert encoded.kind.is_multilabel
    assert encoded.kind.is_indicator
    assert encoded.classes.tolist() == [0, 1, 2]
    assert rows_of(encoded) == [[0], [], [0, 2]]
    back = round_trip(y, 3)
    assert back.dtype == np.int64
    np.testing.assert_array_equal(back, INDICATOR)


@pytest.mark.parametrize("make", [sp.csr_matrix, sp.csr_array])
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("dtype", [bool, np.int8, np.float64])
def test_encodes_a_sparse_indicator(make, format, dtype):
    encoded = encode_labels(make(INDICATOR.astype(dtype)).asformat(format), 3)
    assert encoded.kind is LabelKind.SPARSE_INDICATOR
    assert encoded.classes.tolist() == [0, 1, 2]
    assert rows_of(encoded) == [[0], [], [0, 2]]
    back = decode_predictions(encoded.kind, encoded.classes, encoded.to_csr())
    assert type(back) is sp.csr_matrix
    np.testing.assert_array_equal(back.toarray(), INDICATOR)


def test_explicit_zeros_and_unsorted_entries_leave_the_caller_alone():
    y = sp.csc_matrix((3, 2))
    y.data, y.indices, y.indptr = np.array([1, 0, 1]), np.array([2, 1, 0]), np.array([0, 3, 3])
    encoded = encode_labels(y, 3)
    assert rows_of(encoded) == [[0, 2], []]
    assert y.indices.tolist() == [2, 1, 0]
    assert y.data.tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    "y",
    [
        [["b", "a"], [], ["a"]],
        (("b", "a"), (), ("a",)),
        [{"b", "a"}, set(), frozenset("a")],
        [np.array(["b", "a"]), [], ("a",)],
        [["b", "a", "b"], [], ["a"]],
        pd.Series([["b", "a"], [], ["a"]]),
        pl.Series([["b", "a"], [], ["a"]]),
        np.array([["b", "a"], [], ["a"]], dtype=object),
    ],
    ids=["lists", "tuples", "sets", "mixed", "repeated", "pandas", "polars", "object-array"],
)
def test_encodes_lists_of_labels(y):
    encoded = encode_labels(y, 3)
    assert encoded.kind is LabelKind.LABEL_LISTS
    assert encoded.classes.tolist() == ["a", "b"]
    assert rows_of(encoded) == [[0, 2], [0]]
    assert round_trip(y, 3) == [["a", "b"], [], ["a"]]


@pytest.mark.parametrize(
    "y", [INDICATOR.tolist(), list(INDICATOR), INDICATOR.astype(bool).tolist()]
)
def test_an_indicator_may_be_written_as_lists(y):
    encoded = encode_labels(y, 3)
    assert encoded.kind is LabelKind.DENSE_INDICATOR
    assert rows_of(encoded) == [[0], [], [0, 2]]


@pytest.mark.parametrize(
    ("y", "rows"),
    [
        ([[0], [1], [0]], [[0, 2], [1]]),
        ([[0, 1], [1], [0, 1]], [[0, 2], [0, 1, 2]]),
        ([[0, 1], [1, 2], [0, 1]], [[0, 2], [0, 1, 2], [1]]),
        ([{0, 1}, {0, 1}, {0, 1}], [[0, 1, 2], [0, 1, 2]]),
        ([["0", "1"], ["1", "0"], ["1", "0"]], [[0, 1, 2], [0, 1, 2]]),
    ],
)
def test_lists_that_could_not_be_an_indicator_are_labels(y, rows):
    encoded = encode_labels(y, 3)
    assert encoded.kind is LabelKind.LABEL_LISTS
    assert rows_of(encoded) == rows


def test_integer_names_need_not_be_column_numbers():
    encoded = encode_labels([[500, 7], [7]], 2)
    assert encoded.classes.tolist() == [7, 500]
    assert round_trip([[500, 7], [7]], 2) == [[7, 500], [7]]


def test_labels_in_lists_may_be_tuples():
    encoded = encode_labels([[("a", 2), ("a", 1)], [("a", 2)]], 2)
    assert encoded.classes.tolist() == [("a", 1), ("a", 2)]
    assert rows_of(encoded) == [[0], [0, 1]]


@settings(deadline=None)
@given(
    st.lists(st.lists(st.sampled_from("abcde")), min_size=1, max_size=8).filter(any),
)
def test_lists_of_labels_agree_with_the_definition(y):
    encoded = encode_labels(y, len(y))
    names = sorted({name for labels in y for name in labels})
    assert encoded.classes.tolist() == names
    assert rows_of(encoded) == [[i for i, ls in enumerate(y) if name in ls] for name in names]
    assert round_trip(y, len(y)) == [sorted(set(labels)) for labels in y]


@settings(deadline=None)
@given(st.lists(st.integers(-3, 3), min_size=2).filter(lambda y: len(set(y)) > 1))
def test_integers_come_back_as_they_were(y):
    assert round_trip(y, len(y)).tolist() == y


# --- refusals --------------------------------------------------------------------------------


def refuses(y, match, n_samples=3):
    with pytest.raises(ValueError, match=match):
        encode_labels(y, n_samples)


@pytest.mark.parametrize(
    "y", [[1, 2], np.eye(2), sp.identity(2), [["a"], ["b"]], pd.Series(["a", "b"])]
)
def test_refuses_a_wrong_length(y):
    refuses(y, r"^y must have one row per sample \(3\), got 2$")


def test_names_the_estimator():
    with pytest.raises(ValueError, match=r"^PDSparseClassifier: y must have one row per sample"):
        encode_labels([1, 2], 3, estimator_name="PDSparseClassifier")


def test_refuses_no_labels_at_all_in_the_words_of_scikit_learn():
    with pytest.raises(ValueError, match="requires y to be passed, but the target y is None"):
        encode_labels(None, 3, estimator_name="PDSparseClassifier")


@pytest.mark.parametrize(
    "y",
    [
        [1, None, 2],
        [1.0, float("nan"), 2.0],
        np.array([1, np.nan, 2]),
        ["a", None, "b"],
        ["a", float("nan"), "b"],
        pd.Series([1, None, 2], dtype="Int64"),
        pd.Series(["a", None, "b"]),
        np.array(["2020-01-01", "NaT", "2020-01-02"], dtype="datetime64[D]"),
        [["a"], [None], ["b"]],
        [[1.0], [float("nan")], [2.0]],
    ],
)
def test_refuses_missing_labels(y):
    refuses(y, r"^y must not have missing labels, got None or NaN$")


def test_refuses_infinite_labels():
    refuses([1.0, float("inf"), 2.0], r"^y must be finite, got infinity$")


@pytest.mark.parametrize("y", [[0.5, 1.5, 2.5], np.array([0.5, 1, 2], dtype=np.float32)])
def test_refuses_continuous_targets_in_the_words_of_scikit_learn(y):
    refuses(y, "Unknown label type: continuous")


@pytest.mark.parametrize(
    ("y", "types"),
    [
        ([1, "a", 2], "number and str"),
        (np.array([1, "a", 2], dtype=object), "number and str"),
        ([True, 2, 3], "bool and number"),
        ([["a"], [1], []], "number and str"),
        (["a", b"a", "b"], "bytes and str"),
    ],
)
def test_refuses_labels_of_mixed_types(y, types):
    refuses(y, rf"^y must hold labels of one type, got {types}$")


@pytest.mark.parametrize(("y", "shown"), [([1, 1, 1], "1"), (["a"] * 3, "'a'")])
def test_refuses_one_class_only(y, shown):
    refuses(y, rf"^y needs at least 2 classes, got 1 class \({shown}\)$")


def test_refuses_zero_samples():
    refuses([], r"^y needs at least 2 classes, got 0$", n_samples=0)


@pytest.mark.parametrize(
    "y", [np.zeros((3, 2)), np.zeros((3, 0)), sp.csr_matrix((3, 2)), sp.csr_matrix((3, 0))]
)
def test_refuses_an_indicator_of_zeros(y):
    refuses(y, r"^y must assign at least one label, got an indicator matrix of zeros$")


def test_refuses_empty_lists_only():
    refuses([[], [], []], r"^y must assign at least one label, got only empty lists$")


@pytest.mark.parametrize(
    ("value", "shown"), [(2, "2.0"), (-1, "-1.0"), (0.5, "0.5"), (np.nan, "nan")]
)
@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix])
def test_refuses_other_values_in_an_indicator(make, value, shown):
    y = INDICATOR.astype(float)
    y[0, 0] = value
    refuses(make(y), rf"^y must hold only 0 and 1 in an indicator matrix, got {shown}$")


def test_refuses_entries_of_a_sparse_indicator_that_add_up_to_2():
    y = sp.coo_matrix(([1, 1], ([0, 0], [1, 1])), shape=(3, 2))
    refuses(y, r"^y must hold only 0 and 1 in an indicator matrix, got 2$")


@pytest.mark.parametrize(
    "y",
    [
        np.array([["a", "b"]] * 3),
        np.array([["a", 1]] * 3, dtype=object),
        np.array([[None, 1]] * 3, dtype=object),
    ],
)
def test_refuses_names_in_an_indicator(y):
    refuses(y, r"^y must hold only 0 and 1 in an indicator matrix, got other types$")


def test_refuses_a_string_where_a_list_of_labels_belongs():
    refuses(
        [["a"], "abc", []],
        r"^y must hold a list of labels for each sample, got 'abc' in row 1$",
    )


@pytest.mark.parametrize("item", [None, 5, {"a": 1}, np.eye(2)])
def test_refuses_other_things_where_a_list_of_labels_belongs(item):
    refuses([["a"], ["b"], item], r"^y must hold a list of labels for each sample, got .* in row 2")


@pytest.mark.parametrize("y", ["abc", b"abc", 5, iter([1, 2, 3])])
def test_refuses_what_is_no_collection(y):
    refuses(y, r"^y must be an array, a sparse matrix or a list, got ")


@pytest.mark.parametrize("y", [np.zeros((3, 2, 2)), {1, 2, 3}])
def test_refuses_other_dimensions(y):
    refuses(y, r"^y must be 1-D or 2-D, got [03]-D$")


@pytest.mark.skipif(sp.coo_array(np.ones(3)).ndim == 2, reason="this SciPy has no sparse vectors")
def test_refuses_a_sparse_vector():
    refuses(sp.coo_array(np.array([0, 1, 1])), r"^y must be 2-D if it is sparse, got 1-D$")


@pytest.mark.parametrize("y", [[{}, {}, {}], [[["a"]], [["b"]], []]])
def test_refuses_labels_that_cannot_be_hashed(y):
    refuses(y, r"^y must hold hashable labels, got (dict|list)$")


@pytest.mark.parametrize(
    "y", [["a", "a", "a"], [[], [], []], np.zeros((3, 2)), sp.csr_matrix((3, 2))]
)
def test_what_cannot_be_learnt_from_may_still_be_compared_with(y):
    encoded = encode_labels(y, 3, for_fit=False)
    assert encoded.to_csr().shape == (3, encoded.n_classes)
    assert encoded.to_csr().sum() in (0, 3)


def test_names_the_argument():
    with pytest.raises(ValueError, match=r"^y_true must have one row per sample \(3\), got 2$"):
        encode_labels([1, 2], 3, argument="y_true")


# --- predictions -----------------------------------------------------------------------------


def test_refuses_predictions_of_another_width():
    with pytest.raises(ValueError, match=r"^predicted must have one column per class \(2\), got 3"):
        decode_predictions(LabelKind.BINARY, np.array([0, 1]), sp.csr_matrix(INDICATOR))


def test_refuses_no_or_two_predictions_where_one_label_belongs():
    with pytest.raises(ValueError, match=r"^predicted must have exactly one label in each row"):
        decode_predictions(LabelKind.MULTICLASS, np.arange(3), sp.csr_matrix(INDICATOR))


def test_explicit_zeros_predict_nothing():
    predicted = sp.csr_matrix(([0.0, 2.0], ([0, 0], [0, 1])), shape=(1, 2))
    decoded = decode_predictions(LabelKind.LABEL_LISTS, np.array(["a", "b"]), predicted)
    assert decoded == [["b"]]
    assert predicted.nnz == 2


# --- one label for each of many items -------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "classes", "codes"),
    [
        (["b", "a", "b"], ["a", "b"], [1, 0, 1]),
        ([10, 9, 10], [9, 10], [1, 0, 1]),
        ([("x", 2), ("x", 1)], [("x", 1), ("x", 2)], [1, 0]),
        ([Colour.RED, Colour.BLUE, Colour.RED], [Colour.RED, Colour.BLUE], [0, 1, 0]),
        (["a"], ["a"], [0]),
    ],
)
def test_each_item_gets_the_number_of_its_label(values, classes, codes):
    found, numbers = encode_each(values)
    assert found.tolist() == classes
    assert numbers.tolist() == codes


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ([[1], [2]], "must hold hashable labels"),
        (["a", 1], "must hold labels of one type, got number and str"),
        (["a", None], "must not have missing labels"),
        ([1.0, float("nan")], "must not have missing labels"),
    ],
)
def test_refuses_items_that_are_no_labels(values, sentence):
    with pytest.raises(ValueError, match=f"Model: tags {sentence}"):
        encode_each(values, estimator_name="Model", argument="tags")
