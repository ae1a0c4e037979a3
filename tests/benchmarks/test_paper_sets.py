"""The data sets of the papers by name: read, missed in a sentence, generated in their size."""

import lzma

import numpy as np
import pytest
from harness.paper_sets import PAPER_SETS, documents_like, like, real
from harness.synthetic import make_documents

from sublearn.datasets import list_datasets

XMC = "3 4 5\n0,2 0:3.0 1:4.0\n1 2:1.0\n 3:2.0\n"
XMC_TEST = "1 4 5\n4 0:1.0\n"


@pytest.mark.parametrize("is_packed", [False, True])
def test_reads_the_repositorys_files(tmp_path, is_packed):
    folder = tmp_path / "eurlex-4k"
    folder.mkdir()
    for name, text in (("train.txt", XMC), ("test.txt", XMC_TEST)):
        if is_packed:
            (folder / f"{name}.xz").write_bytes(lzma.compress(text.encode()))
        else:
            (folder / name).write_text(text)
    split = real(PAPER_SETS["eurlex-4k"]).load(tmp_path, 0)
    np.testing.assert_allclose(
        split.train["X"].toarray(), [[0.6, 0.8, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]], atol=1e-6
    )
    assert split.train["Y"].toarray().tolist() == [[1, 0, 1, 0, 0], [0, 1, 0, 0, 0], [0] * 5]
    assert split.truth["Y"].toarray().tolist() == [[0, 0, 0, 0, 1]]


@pytest.mark.parametrize("name", ["lshtc1", "dmoz", "aloi"])
def test_reads_the_multiclass_files(tmp_path, name):
    folder = tmp_path / name
    folder.mkdir()
    (folder / "train.svm").write_text("7 1:2.0\n3 2:1.0 3:1.0\n3 2:5.0\n")
    (folder / "test.svm").write_text("9 3:1.0\n")
    split = real(PAPER_SETS[name]).load(tmp_path, 0)
    assert split.train["Y"].toarray().tolist() == [[0, 1, 0], [1, 0, 0], [1, 0, 0]]
    assert split.truth["Y"].toarray().tolist() == [[0, 0, 1]]
    np.testing.assert_allclose(split.train["X"].toarray()[0], [1, 0, 0])


@pytest.mark.parametrize("name", PAPER_SETS)
def test_says_where_files_that_are_absent_are_to_be_put(tmp_path, name):
    with pytest.raises(FileNotFoundError) as found:
        real(PAPER_SETS[name]).load(tmp_path, 0)
    sentence = str(found.value)
    assert sentence.startswith(f"{name} must be in {tmp_path / name} as train.")
    assert "a line a row" in sentence
    assert f"{name}-like is a generated problem" in sentence
    can_be_fetched = name in {one.name for one in list_datasets()}
    assert can_be_fetched == (f"`sublearn datasets {name} --data-home {tmp_path}`" in sentence)


@pytest.mark.parametrize("name", PAPER_SETS)
def test_a_generated_problem_has_the_papers_size(name):
    one = PAPER_SETS[name]
    size = documents_like(one)
    assert (size.n_train, size.n_features, size.n_labels) == (
        one.n_train, one.n_features, one.n_labels,
    )  # fmt: skip
    tenth = documents_like(one, 0.1)
    assert tenth.n_labels == round(0.1 * one.n_labels)
    assert like(one).name == f"{name}-like"
    assert like(one, 0.1).name == f"{name}-like-0.1"


def test_generated_rows_are_as_sparse_as_the_papers():
    one = PAPER_SETS["amazon-670k"]
    split = make_documents(documents_like(one, 0.005), 0)
    facts = split.facts()
    n_rows = split.train["X"].shape[0]
    assert facts["labels_used"] == documents_like(one, 0.005).n_labels
    assert facts["nnz"] / n_rows == pytest.approx(one.nnz, rel=0.25)
    assert facts["positives"] / n_rows == pytest.approx(one.positives, rel=0.1)
