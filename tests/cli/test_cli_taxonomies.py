"""`sublearn fit --method hiclass` and `--method hml`, then predict and evaluate."""

import json

import numpy as np
import pytest
from scipy import sparse

import sublearn as package
from sublearn.io import Dataset, save_dataset

ROOT = "Root\ta\tb\na\ta1\ta2\nb\tb1\tb2\n"
LEAVES = ["a1", "a2", "b1", "b2"]


@pytest.fixture
def files(tmp_path):
    """Data as .npz with names, and the same as an ARFF file that has its taxonomy inside."""
    rng = np.random.default_rng(0)
    ends = rng.integers(4, size=80)
    X = np.eye(4)[ends] + 0.2 * rng.random((80, 4))
    (tmp_path / "topics.tsv").write_text(ROOT)
    rows = "\n".join(
        ",".join(f"{x:.4f}" for x in row) + f",{'ab'[e // 2]}/{e % 2 + 1}"
        for row, e in zip(X, ends, strict=True)
    )
    names = "".join(f"@attribute x{j} numeric\n" for j in range(4))
    header = f"@relation r\n{names}@attribute class hierarchical a,a/1,a/2,b,b/1,b/2\n@data\n"
    (tmp_path / "inside.arff").write_text(header + rows + "\n")
    data = Dataset(
        sparse.csr_matrix(X), sparse.csr_matrix(np.eye(4, dtype=np.int8)[ends]),
        label_names=np.array(LEAVES),
    )  # fmt: skip
    save_dataset(tmp_path / "plain.npz", data)
    return tmp_path


@pytest.mark.parametrize("method", ["hiclass", "hml"])
def test_learns_labels_of_a_taxonomy(method, files, sublearn):
    model, data = files / "m", files / "plain.npz"
    done = sublearn("fit", data, "--model", model, "--method", method, "--taxonomy",
               files / "topics.tsv", "--json", "--quiet")  # fmt: skip
    assert done.code == 0, done
    assert json.loads(done.out)["labels"] in (4, 6)
    assert package.load(model).taxonomy_.parents("a1") == ["a"]
    assert package.load(model)._label_kind.is_multilabel == (
        method == "hml"
    )  # one path, or several
    done = sublearn("evaluate", model, data, "--json")
    assert json.loads(done.out)["F1"] > 0.95
    done = sublearn("evaluate", model, data)
    assert "F1 of level 1" in done.out
    done = sublearn("predict", model, data, "-k", "2")
    assert done.out.splitlines()[0].split("\t")[0].split(":")[0] in ("a", "b", *LEAVES)


@pytest.mark.parametrize("method", ["hiclass", "hml"])
def test_a_data_file_can_have_its_taxonomy_inside(method, files, sublearn):
    data = files / "inside.arff"
    done = sublearn("fit", data, "--data-format", "hmc", "--model", files / "m", "--method", method,
               "--quiet")  # fmt: skip
    assert done.code == 0, done
    done = sublearn("evaluate", files / "m", data, "--data-format", "hmc", "--json")
    assert json.loads(done.out)["F1"] > 0.95


def test_labels_can_be_paths(files, sublearn):
    data = files / "inside.arff"
    options = ["--data-format", "hmc", "--method", "hiclass", "--label-paths", "/", "--quiet"]
    done = sublearn("fit", data, "--model", files / "m", *options)
    assert done.code == 0, done
    assert package.load(files / "m").taxonomy_.roots.tolist() == [0, 3]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--method", "hml"], "must name the taxonomy's file for hml"),
        (["--taxonomy", "topics.tsv"], "is for hiclass and hml, got ppd-sparse"),
        (["--label-paths", "."], "is for hiclass and hml, got ppd-sparse"),
        (
            ["--method", "hml", "--taxonomy", "topics.tsv", "--label-paths", "."],
            "must not be given",
        ),
        (["--method", "hml", "--text"], "needs a method that learns plain labels"),
    ],
)
def test_refuses_what_makes_no_sense(options, sentence, files, sublearn):
    options = [files / o if o.endswith(".tsv") else o for o in options]
    done = sublearn("fit", files / "plain.npz", "--model", files / "m", *options)
    assert done.code == 2
    assert sentence in " ".join(done.err.replace("│", " ").split())
