"""Saving estimators and loading them again, with a tiny estimator of our own."""

import importlib
import re
import subprocess
import sys
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError

import sublearn
from sublearn.errors import ModelFileError
from sublearn.io import models, save_bundle
from sublearn.io.fields import Floats, Labels, Sparse
from sublearn.io.models import SavedModel
from sublearn.io.state import pack_state, pack_strings, unpack_state, unpack_strings
from sublearn.validation import NonNegative, Positive


class NearestMean(SavedModel, ClassifierMixin, BaseEstimator):
    _rules: ClassVar = {"C": Positive(float)}

    def __init__(self, C=1.0, *, weights=None, random_state=None, callback=None):
        self.C = C
        self.weights = weights
        self.random_state = random_state
        self.callback = callback

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.means_ = np.array([X[y == c].mean(axis=0) for c in self.classes_])
        self.sparse_means_ = sparse.csc_matrix(self.means_)
        self.n_iter_ = 1
        return self

    def predict(self, X):
        distance = ((X[:, None] - self.means_) ** 2).sum(axis=2)
        return self.classes_[distance.argmin(axis=1)]

    def _to_bundle(self):
        names = ("classes_", "means_", "sparse_means_", "n_iter_")
        return {name: getattr(self, name) for name in names}

    def _fields(self):
        return {
            "classes_": Labels("classes"),
            "means_": Floats("classes", "features"),
            "sparse_means_": Sparse("classes", "features", "csc"),
            "n_iter_": NonNegative(int),
        }


class Subclass(NearestMean):
    pass


@pytest.fixture(autouse=True)
def listed(monkeypatch):
    monkeypatch.setitem(models.MODELS, "NearestMean", NearestMean.__module__)


X = np.random.default_rng(0).normal(size=(30, 4))
LABELS = {
    "short strings": np.array(["cat", "dog", "emu"]),
    "wide strings": np.array(["cat", "dog", "emu"], dtype="U50"),
    "long unicode": np.array(["ä" * 500, "\U0001f600", ""]),
    "objects": np.array(["cat", "dog", "emu"], dtype=object),
    "int64": np.array([-5, 0, 2**40]),
    "int8": np.array([1, 2, 3], dtype=np.int8),
    "floats": np.array([0.1, np.inf, -0.0]),
    "booleans": np.array([True, False, True]),
}


@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS.keys())
def test_a_loaded_model_predicts_the_same_labels(tmp_path, labels):
    model = NearestMean().fit(X, labels[np.arange(30) % 3])
    model.save(tmp_path / "m")
    again = sublearn.load(tmp_path / "m")
    assert type(again) is NearestMean
    assert again.classes_.dtype == labels.dtype
    assert again.predict(X).tolist() == model.predict(X).tolist()


def test_all_fitted_values_come_back(tmp_path):
    model = NearestMean(C=2.5).fit(X, np.arange(30) % 3)
    model.save(str(tmp_path / "m"))
    again = sublearn.load(str(tmp_path / "m"))
    np.testing.assert_array_equal(again.means_, model.means_)
    assert type(again.sparse_means_) is sparse.csc_matrix
    assert (again.sparse_means_ != model.sparse_means_).nnz == 0
    assert again.n_iter_ == 1
    assert again.get_params() == model.get_params()


def test_nested_none_and_numpy_parameters_come_back(tmp_path):
    weights = {"a": [1, None, (2.5, "x")], "b": {"c": np.int32(3)}}
    NearestMean(np.float64(0.5), weights=weights, random_state=7).fit(X, X[:, 0] > 0).save(
        tmp_path / "m"
    )
    params = sublearn.load(tmp_path / "m").get_params()
    expected = {"a": [1, None, (2.5, "x")], "b": {"c": 3}}
    assert params == {"C": 0.5, "weights": expected, "random_state": 7, "callback": None}


@pytest.mark.parametrize("state", [np.random.RandomState(0), np.random.default_rng(0)])
def test_generators_and_callbacks_are_left_out(tmp_path, state):
    NearestMean(random_state=state, callback=print).fit(X, X[:, 0] > 0).save(tmp_path / "m")
    again = sublearn.load(tmp_path / "m")
    assert again.random_state is None
    assert again.callback is None


def test_refuses_a_parameter_that_cannot_be_stored(tmp_path):
    model = NearestMean(weights=NearestMean()).fit(X, X[:, 0] > 0)
    with pytest.raises(TypeError, match=r"NearestMean\.params\.weights must be .*got NearestMean"):
        model.save(tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


def test_refuses_to_save_a_model_that_is_not_fitted(tmp_path):
    with pytest.raises(NotFittedError):
        NearestMean().save(tmp_path / "m")


def test_refuses_to_save_a_class_that_could_not_be_loaded(tmp_path, monkeypatch):
    model = Subclass().fit(X, X[:, 0] > 0)
    with pytest.raises(TypeError, match=r"Subclass\.save needs a class that sublearn\.load knows"):
        model.save(tmp_path / "m")
    monkeypatch.setitem(models.MODELS, "Subclass", "sublearn.extreme")
    with pytest.raises(TypeError, match=r"got .*test_saved_models\.Subclass"):
        model.save(tmp_path / "m")


def test_refuses_to_load_a_class_that_is_not_listed(tmp_path):
    save_bundle(tmp_path / "m", class_name="Popen", params={}, arrays={}, attributes={})
    message = re.escape(f"{tmp_path / 'm'}: holds a Popen saved by sublearn {sublearn.__version__}")
    with pytest.raises(ValueError, match=message):
        sublearn.load(tmp_path / "m")


def test_refuses_to_load_a_file_whose_parts_do_not_fit_the_class(tmp_path):
    parts = {"class_name": "NearestMean", "arrays": {}, "attributes": {}}
    save_bundle(tmp_path / "m", **parts, params={"gamma": 1})
    with pytest.raises(ModelFileError, match=r"m: .*gamma.* \(NearestMean saved by sublearn"):
        sublearn.load(tmp_path / "m")
    for stored in ({"classes_": {"kind": "strings", "dtype": "U3", "shape": [3]}}, [], None):
        save_bundle(tmp_path / "m", **(parts | {"attributes": {"__stored__": stored}}), params={})
        with pytest.raises(ModelFileError, match=r"must be .*\(NearestMean saved by sublearn"):
            sublearn.load(tmp_path / "m")


def test_refuses_parameters_as_fit_does(tmp_path):
    NearestMean(C=-1.0).fit(X, X[:, 0] > 0).save(tmp_path / "m")
    message = re.escape(f"{tmp_path / 'm'}: NearestMean.C must be a positive number, got -1.0")
    with pytest.raises(ModelFileError, match=message):
        sublearn.load(tmp_path / "m")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda state: state.pop("n_iter_"), "n_iter_ must be there, got no such field"),
        (lambda state: state.update(extra_=1), "extra_ must not be there"),
        (lambda state: state.update(n_iter_=-1), "n_iter_ must be a non-negative integer, got -1"),
        (
            lambda state: state.update(means_=np.zeros((5, 4))),
            r"means_ must have shape \(2, any\), that is \(classes, features\), got \(5, 4\)",
        ),
        (
            lambda state: state.update(means_=np.zeros((2, 4), dtype=int)),
            "means_ must be an array of floats, got dtype int64",
        ),
        (
            lambda state: state.update(sparse_means_=sparse.csr_matrix(np.eye(2, 4))),
            "sparse_means_ must be a csc matrix, got csr",
        ),
    ],
)
def test_refuses_fitted_values_that_do_not_belong_together(tmp_path, change, message):
    state = NearestMean().fit(X, X[:, 0] > 0)._to_bundle()
    change(state)
    arrays, attributes = pack_state(state)
    save_bundle(
        tmp_path / "m", class_name="NearestMean", params={}, arrays=arrays, attributes=attributes
    )
    with pytest.raises(ModelFileError, match=f"m: {message}"):
        sublearn.load(tmp_path / "m")


def test_refuses_sparse_weights_whose_indices_are_out_of_range(tmp_path):
    state = pack_state({"sparse_means_": sparse.csc_matrix(np.eye(3))})
    state[0]["sparse_means_.indices"] = np.array([0, 1, 70_000], dtype=np.int32)
    parts = dict(zip(("arrays", "attributes"), state, strict=True))
    save_bundle(tmp_path / "m", class_name="NearestMean", params={}, **parts)
    with pytest.raises(ModelFileError, match=r"m: sparse_means_\.indices must"):
        sublearn.load(tmp_path / "m")


def test_sparse_weights_stay_in_the_mapped_file(tmp_path):
    NearestMean().fit(X, np.arange(30) % 3).save(tmp_path / "m")
    weights = sublearn.load(tmp_path / "m").sparse_means_
    for owner in (weights.data, weights.indices):
        while isinstance(owner.base, np.ndarray):
            owner = owner.base
        assert isinstance(owner, np.memmap)


def test_refuses_a_bundle_of_another_class(tmp_path):
    NearestMean().fit(X, X[:, 0] > 0).save(tmp_path / "m")
    bundle = sublearn.io.load_bundle(tmp_path / "m")
    with pytest.raises(ValueError, match="a saved Subclass is needed, got a NearestMean"):
        Subclass._from_bundle(bundle)


def test_an_estimator_must_say_what_to_save(tmp_path, monkeypatch):
    monkeypatch.setattr(NearestMean, "_to_bundle", SavedModel._to_bundle)
    with pytest.raises(NotImplementedError, match=r"NearestMean\._to_bundle is missing"):
        NearestMean().fit(X, X[:, 0] > 0).save(tmp_path / "m")


@pytest.mark.parametrize("name", sorted(models.MODELS))
def test_listed_classes_can_be_saved(name):
    if models.MODELS[name] == "sublearn.trim":
        pytest.importorskip("torch", reason="sublearn.trim needs PyTorch")
    kind = getattr(importlib.import_module(models.MODELS[name]), name)
    # A network is no estimator: it has the two methods of its own.
    assert issubclass(kind, SavedModel) or name == "SparseNetwork"
    assert callable(kind.save)
    assert callable(kind._from_bundle)


def test_importing_the_package_imports_nothing_heavy():
    code = "import sys, sublearn; print(sorted({'numpy', 'scipy', 'sklearn'} & set(sys.modules)))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


@given(st.lists(st.text(), max_size=6))
@settings(deadline=None)
def test_any_strings_survive(texts):
    utf8, offsets = pack_strings(texts)
    assert utf8.dtype == np.uint8
    assert offsets.dtype == np.int64
    assert unpack_strings(utf8, offsets).tolist() == texts


def test_strings_that_are_no_unicode_survive():
    assert unpack_strings(*pack_strings(["\udc80", "a"])).tolist() == ["\udc80", "a"]


@pytest.mark.parametrize("offsets", [[], [1, 2], [0, 1], [0, 3], [0, 2, 1, 2]])
def test_refuses_offsets_that_do_not_fit(offsets):
    with pytest.raises(ValueError, match="offsets must rise from 0 to the number of bytes"):
        unpack_strings(np.zeros(2, dtype=np.uint8), np.array(offsets, dtype=np.int64))


STATES = {
    "a string matrix": np.array([["a", "bc"], ["", "d"]]),
    "no strings": np.array([], dtype="U3"),
    "a number without dimensions": np.array(3.0),
    "a csr array": sparse.csr_array(np.eye(3)),
    "a csr matrix": sparse.csr_matrix(np.eye(3, dtype=np.float32)),
    "a csc array": sparse.csc_array((2, 3)),
}


@pytest.mark.parametrize("value", STATES.values(), ids=STATES.keys())
def test_a_state_survives(value):
    again = unpack_state(*pack_state({"a": value, "b": 3}))
    assert again["b"] == 3
    assert type(again["a"]) is type(value)
    assert (again["a"].dtype, again["a"].shape) == (value.dtype, value.shape)
    dense = [v.toarray() if sparse.issparse(v) else v for v in (again["a"], value)]
    np.testing.assert_array_equal(*dense)


@pytest.mark.skipif(not hasattr(getattr(np, "dtypes", None), "StringDType"), reason="needs NumPy 2")
def test_strings_of_variable_width_survive():
    value = np.array(["a", "long" * 20], dtype=np.dtypes.StringDType())
    again = unpack_state(*pack_state({"a": value}))["a"]
    assert again.dtype == value.dtype
    assert again.tolist() == value.tolist()


@pytest.mark.parametrize("value", [[1, 2], ["a", None], [None], ["a", 2.5]])
def test_refuses_objects_that_are_no_strings(value):
    with pytest.raises(TypeError, match=r"a of dtype object must hold strings only .*got"):
        pack_state({"a": np.array(value, dtype=object)})


def test_refuses_other_sparse_formats():
    with pytest.raises(TypeError, match="a must be a CSR or CSC matrix to be saved, got coo"):
        pack_state({"a": sparse.coo_matrix(np.eye(2))})


def test_notes_come_back_and_survive_another_save(tmp_path):
    notes = {"normalize": True, "names": np.array(["a", "b"]), "nested": {"k": [1, None]}}
    NearestMean().fit(X, np.arange(30) % 3).save(tmp_path / "m", notes=notes)
    sublearn.load(tmp_path / "m").save(tmp_path / "again")
    found = sublearn.load(tmp_path / "again").notes_
    assert found["names"].tolist() == ["a", "b"]
    assert {key: found[key] for key in ("normalize", "nested")} == {
        "normalize": True,
        "nested": {"k": [1, None]},
    }


def test_a_model_without_notes_has_none(tmp_path):
    NearestMean().fit(X, np.arange(30) % 3).save(tmp_path / "m")
    assert not hasattr(sublearn.load(tmp_path / "m"), "notes_")


def test_refuses_notes_that_cannot_be_stored(tmp_path):
    model = NearestMean().fit(X, np.arange(30) % 3)
    with pytest.raises(TypeError, match=r"notes\.vectorizer must be"):
        model.save(tmp_path / "m", notes={"vectorizer": object()})
    assert list(tmp_path.iterdir()) == []


def test_a_missing_folder_is_named_when_saving(tmp_path):
    model = NearestMean().fit(X, np.arange(30) % 3)
    with pytest.raises(FileNotFoundError, match=r"No such folder: .*nowhere'$"):
        model.save(tmp_path / "nowhere" / "m")
