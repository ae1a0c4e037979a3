"""`sublearn quickstart` on a slice of its data, and the examples that draw pictures of them."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import sublearn as package
from sublearn.io import load_quickstart

ROOT = Path(__file__).resolve().parents[2]


def test_the_data_are_as_their_readme_says():
    data = load_quickstart()
    counts: dict[str, int] = {}
    for labels in data.train_labels:
        assert len(set(labels)) == len(labels) > 0
        for label in labels:
            counts[label] = counts.get(label, 0) + 1
    assert (len(data.train_texts), len(data.test_texts), len(counts)) == (12_923, 1_978, 3_861)
    assert min(counts.values()) == 5
    assert len(data.train_texts) == len(data.train_labels)
    assert len(data.test_texts) == len(data.test_labels)
    assert {name for labels in data.test_labels for name in labels} <= counts.keys()


def test_a_slice_keeps_the_whole_test_part():
    data = load_quickstart(n_train=10)
    assert len(data.train_texts) == len(data.train_labels) == 10
    assert len(data.test_texts) == 1_978


@pytest.mark.parametrize("n_train", [0, -1, 2.5, True, "7"])
def test_refuses_a_slice_of_nothing(n_train):
    with pytest.raises(ValueError, match=f"n_train must be a positive integer, got {n_train!r}"):
        load_quickstart(n_train=n_train)


@pytest.fixture(scope="module")
def outcome(sublearn, tmp_path_factory):
    path = tmp_path_factory.mktemp("quickstart") / "kept.model"
    call = ("quickstart", "--rows", 800, "--examples", 2, "--output", path, "--json")
    return sublearn(*call, "--text", "Teaching music in schools"), path


def test_json_is_all_that_is_on_standard_output(outcome):
    done, _ = outcome
    assert done.code == 0, done
    figures = json.loads(done.out)
    assert figures["rows"] == 800
    assert 0 < figures["P@5"] < figures["P@1"] < 1
    assert figures["weights"] < 0.1 * figures["weights_possible"]
    assert figures["duals"] < 0.2 * figures["duals_possible"]
    assert figures["reloaded_predicts_the_same"] is True


def test_predictions_are_explained_by_words_of_the_text(outcome):
    examples = json.loads(outcome[0].out)["examples"]
    assert len(examples) == 3
    assert examples[2]["text"] == "Teaching music in schools"
    assert any(found["words"] for found in examples[2]["predicted"])
    for example in examples:
        for found in example["predicted"]:
            assert all(word in example["text"].lower() for word in found["words"])


def test_the_model_is_kept_where_asked(outcome):
    done, path = outcome
    assert len(package.load(path).classes_) == json.loads(done.out)["labels"]


def test_people_get_a_table(sublearn):
    done = sublearn("quickstart", "--rows", 300)
    assert done.code == 0, done
    assert all(word in done.out for word in ("P@1", "certificate", "dual variables", "because of"))


def test_refuses_a_folder_that_is_not_there(sublearn, tmp_path):
    done = sublearn("quickstart", "--output", tmp_path / "nowhere" / "m")
    assert done.code == 2
    assert "folder" in done.err


def test_refuses_a_penalty_below_zero(sublearn):
    assert sublearn("quickstart", "--rows", 300, "--l1", -1).code == 2


@pytest.mark.parametrize("name", ["extreme_text.py", "active_sets.py"])
def test_the_example_draws_its_picture(name, tmp_path):
    picture = tmp_path / "picture.png"
    script = ROOT / "examples" / name
    done = subprocess.run(
        [sys.executable, "-W", "error", script, picture, "--small"],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert picture.read_bytes().startswith(b"\x89PNG")
