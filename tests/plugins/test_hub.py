"""Models through the real huggingface_hub, to and from a small Hub on this machine."""

import sys
from pathlib import Path

import numpy as np
import pytest

import sublearn
from sublearn.errors import ModelFileError, ParameterError
from sublearn.extreme import PPDSparseClassifier

pytest.importorskip("huggingface_hub", reason="the plugin needs the extra hub")

from huggingface_hub.errors import EntryNotFoundError, LocalEntryNotFoundError

from sublearn.plugins.hub import from_hub, push_to_hub

sys.path.insert(0, str(Path(__file__).parent))
from hub_server import Hub


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 5)).astype(np.float32)
    return PPDSparseClassifier(random_state=0).fit(X, X.argmax(axis=1)), X


@pytest.fixture
def hub(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with Hub() as running:
        yield running


def test_a_model_comes_back_as_it_was_pushed(hub, fitted, tmp_path):
    model, X = fitted
    url = push_to_hub(model, "me/five", licence="cc0-1.0", token="t", endpoint=hub.address)
    (oid, files), = hub.repos["me/five"]  # fmt: skip
    assert url.endswith(oid)
    assert sorted(files) == ["README.md", "model.sublearn"]
    card = files["README.md"].decode()
    assert card.startswith("---\nlibrary_name: sublearn\nlicense: cc0-1.0\n")
    assert f"{model.certificate_:.2e}" in card
    again = from_hub("me/five", cache_dir=tmp_path, endpoint=hub.address)
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))


def test_the_cache_serves_without_a_network_and_a_commit_stays_what_it_was(hub, fitted, tmp_path):
    model, X = fitted
    push_to_hub(model, "me/five", token="t", endpoint=hub.address)
    first = hub.repos["me/five"][0][0]
    other = PPDSparseClassifier(l1=2.0, random_state=0).fit(X, X.argmax(axis=1))
    push_to_hub(other, "me/five", token="t", endpoint=hub.address, message="a second one")
    assert from_hub("me/five", cache_dir=tmp_path, endpoint=hub.address).l1 == 2.0
    old = from_hub("me/five", revision=first, cache_dir=tmp_path, endpoint=hub.address)
    assert old.l1 == model.l1
    hub.repos.clear()
    again = from_hub("me/five", revision=first, cache_dir=tmp_path, local_files_only=True)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    with pytest.raises(LocalEntryNotFoundError):
        from_hub("me/unknown", cache_dir=tmp_path, local_files_only=True)


def test_a_missing_or_foreign_file_is_refused(hub, fitted, tmp_path):
    push_to_hub(fitted[0], "me/five", token="t", endpoint=hub.address)
    with pytest.raises(EntryNotFoundError):
        from_hub("me/five", file="other", cache_dir=tmp_path, endpoint=hub.address)
    hub.repos["me/five"][0][1]["model.sublearn"] = b"no model"
    with pytest.raises(ModelFileError, match=r"model\.sublearn"):
        from_hub("me/five", cache_dir=tmp_path, endpoint=hub.address)


def test_refuses_what_is_no_model_of_this_library():
    with pytest.raises(ParameterError, match=r"push_to_hub\.model must be a model of this library"):
        push_to_hub(object(), "me/five")


def test_names_the_version_in_the_card(hub, fitted):
    push_to_hub(fitted[0], "me/five", title="A title", token="t", endpoint=hub.address)
    card = hub.repos["me/five"][0][1]["README.md"].decode()
    assert f"# A title\n\nA PPDSparseClassifier of sublearn {sublearn.__version__}." in card
