"""Raw text with a second stage on the command line."""

import json

import numpy as np
import pytest

import sublearn as package
from sublearn.errors import DataFileError
from sublearn.extreme import LabelReranker, PPDSparseClassifier, TextTagger
from sublearn.io import load_label_names, load_quickstart

RECORDS = load_quickstart(300)
NAMES = {"lighthouses": "lights for ships", "ships": "vessels"}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rerank")
    pairs = zip(RECORDS.train_texts, RECORDS.train_labels, strict=True)
    lines = (f"{'|'.join(names)}\t{text}\n" for text, names in pairs)
    (folder / "train.tsv").write_text("".join(lines))
    names = "".join(f"{label}\t{title}\n" for label, title in NAMES.items())
    (folder / "names.tsv").write_text(names)
    return folder


@pytest.fixture(scope="module")
def model(sublearn, files):
    done = sublearn(
        "fit", "rerank", files / "train.tsv", "-m", files / "m", "--separator", "|",
        "--label-names", files / "names.tsv", "--l1", "0.2", "--candidates", 30, "--analyzer",
        "word", "--n-jobs", 1, "-q",
    )  # fmt: skip
    assert done.code == 0, done
    return files / "m"


def test_fits_the_model_that_python_fits(model):
    found = package.load(model)
    tagger = TextTagger(PPDSparseClassifier(l1=0.2, n_jobs=1, random_state=0), analyzer="word")
    same = LabelReranker(tagger, candidates=30, n_jobs=1, random_state=0)
    same.fit(RECORDS.train_texts, RECORDS.train_labels, label_names=NAMES)
    new = RECORDS.test_texts[:50]
    for left, right in zip(found.predict_top_k(new), same.predict_top_k(new), strict=True):
        np.testing.assert_array_equal(left, right)
    assert set(NAMES) <= set(found.classes_.tolist())


@pytest.mark.parametrize(
    "words",
    [["predict", "-k", "3"], ["predict", "--probabilities"], ["evaluate", "--json"]],
)
def test_other_commands_know_the_model(sublearn, files, model, words):
    done = sublearn(words[0], model, files / "train.tsv", *words[1:])
    assert done.code == 0, done
    assert done.out


def test_inspect_and_explain_know_the_model(sublearn, files, model):
    done = sublearn("inspect", model, "--json")
    assert json.loads(done.out)["labels"] == len(package.load(model).classes_)
    done = sublearn("explain", model, "--text", RECORDS.train_texts[0])
    assert done.code == 0, done


def test_refuses_titles_without_a_second_stage(sublearn, files):
    done = sublearn(
        "fit", "text", files / "train.tsv", "-m", files / "t", "--label-names", files / "names.tsv"
    )
    assert done.code != 0
    assert "--label-names: is for the method rerank" in done.err


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("ships\n", "must be a label, a tab and a title"),
        ("\tships\n", "must be a label, a tab and a title"),
        ("a\tb\na\tc\n", "must have a label of its own, got 'a' again"),
    ],
)
def test_refuses_titles_that_are_none(tmp_path, line, said):
    (tmp_path / "names.tsv").write_text(line)
    with pytest.raises(DataFileError, match=said):
        load_label_names(tmp_path / "names.tsv")
