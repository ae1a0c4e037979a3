"""Files that version 0.1.0 wrote still load and answer as they did."""

import importlib
import shutil

import make_golden
import numpy as np
import pytest
import scipy.sparse as sp
from make_golden import GOLDEN, JOURNAL, answers_file, journal_fit, model_file

import sublearn
from sublearn.io.bundle import load_bundle
from sublearn.io.models import MODELS
from sublearn.io.state import unpack_state


def class_name(name):
    return name.split("-")[0]


def test_every_class_that_can_be_saved_has_a_golden_file():
    assert {class_name(name) for name in GOLDEN} == set(MODELS)


@pytest.mark.parametrize("name", GOLDEN)
def test_a_stored_model_gives_the_stored_answers(name):
    if class_name(name) == "SparseNetwork":
        pytest.importorskip("torch", reason="sublearn.trim needs PyTorch")
    model = sublearn.load(model_file(name))
    home = importlib.import_module(MODELS[class_name(name)])
    assert isinstance(model, getattr(home, class_name(name)))
    with np.load(answers_file(name)) as stored:
        expected = dict(stored)
    answers = GOLDEN[name].ask(model, {"X": expected.pop("X")})
    assert answers.keys() == expected.keys()
    for key, value in expected.items():
        assert_same(np.asarray(answers[key]), value)


def assert_same(found, expected):
    """Equal, floats but for the order in which a processor's BLAS sums them."""
    if expected.dtype.kind == "f":
        digits = 1e-5 if found.dtype == np.float32 else 1e-9
        np.testing.assert_allclose(found, expected, rtol=digits, atol=digits)
    else:
        np.testing.assert_array_equal(found, expected)


def test_a_stored_bundle_gives_back_a_value_of_every_kind():
    bundle = load_bundle(make_golden.BUNDLE, class_name="Any")
    assert bundle.params == {"C": 1.0, "ngram_range": (1, 2)}
    found, expected = unpack_state(bundle.arrays, bundle.attributes), make_golden.everything()
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        if sp.issparse(value):
            assert type(found[name]) is type(value)
            assert (found[name] != value).nnz == 0
        elif isinstance(value, np.ndarray):
            assert found[name].dtype == value.dtype
            np.testing.assert_array_equal(found[name], value)
        else:
            assert found[name] == value


def test_a_stored_journal_is_read_or_refused_by_its_version(tmp_path):
    parts = tmp_path / "m.parts"
    shutil.copytree(JOURNAL, parts)
    part = load_bundle(next(parts.glob("part-*")), class_name="PPDSparseChunk")
    assert sorted(part.arrays["labels"].tolist()) == list(range(40))
    if sublearn.__version__ != make_golden.VERSION:
        with pytest.raises(ValueError, match=r"differs in sublearn; remove it to start again"):
            journal_fit(tmp_path / "m")
        return
    resumed, fresh = journal_fit(tmp_path / "m"), journal_fit(tmp_path / "fresh")
    assert (resumed.coef_ != fresh.coef_).nnz == 0
    assert not parts.exists()
