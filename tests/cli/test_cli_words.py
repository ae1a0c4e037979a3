"""`sublearn words` on a few lines of text."""

import json

import numpy as np
import pytest

import sublearn as package
from sublearn.embed import read_word_vectors


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    path = tmp_path_factory.mktemp("words") / "corpus.txt"
    path.write_text("The cat sat on the mat.\nA dog sat on a rug.\n" * 40)
    return path


def test_vectors_and_model_are_written(sublearn, corpus, tmp_path):
    done = sublearn("words", corpus, "-o", tmp_path / "vectors.bin", "--binary", "--model",
                    tmp_path / "words.model", "--n-components", 6, "--max-iter", 2, "--n-jobs", 1,
                    "--json")  # fmt: skip
    assert done.code == 0, done
    figures = json.loads(done.out)
    assert (figures["words"], figures["passes"]) == (8, 3)
    words, vectors = read_word_vectors(tmp_path / "vectors.bin", binary=True)
    model = package.load(tmp_path / "words.model")
    np.testing.assert_array_equal(words, model.words_)
    np.testing.assert_array_equal(vectors, model.vectors_)
    assert figures["objective"] == pytest.approx(model.objective_)


def test_a_table_is_printed(sublearn, corpus, tmp_path):
    done = sublearn("words", corpus, "-o", tmp_path / "vectors.txt", "--max-iter", 1)
    assert done.code == 0, done
    assert "word vectors of corpus.txt" in done.out
    assert (tmp_path / "vectors.txt").read_text().startswith("8 100\n")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ([], 2, "needs --output or --model"),
        (["-o", "no/such/folder/vectors.txt"], 2, "no/such/folder"),
        (["-o", "vectors.txt", "--min-count", 1000], 2, "min_count must leave at least two words"),
    ],
)
def test_refusals(sublearn, corpus, tmp_path, monkeypatch, arguments, code, message):
    monkeypatch.chdir(tmp_path)
    done = sublearn("words", corpus, *arguments)
    assert done.code == code, done
    assert message in done.err.replace("\n", "")
    assert not (tmp_path / "vectors.txt").exists()
