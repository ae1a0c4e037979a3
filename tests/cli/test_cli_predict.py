"""`sublearn predict`, `evaluate` and `convert`."""

import json
import os
import subprocess

import numpy as np
import pytest
from sklearn.preprocessing import normalize
from tiny_data import N_FEATURES, N_LABELS, N_ROWS, command_line, environment, make_data

import sublearn as package
from sublearn.embed import DenseExtremeClassifier, MIPSIndex, SkipGram
from sublearn.io import load_dataset, save_npz, save_svmlight, save_xmc
from sublearn.metrics import ndcg_at_k, precision_at_k, propensities, psp_at_k


@pytest.fixture(scope="module")
def expected(model):
    """The three best labels of each row, from Python."""
    X, _ = make_data()
    return package.load(model).predict_top_k(normalize(X), 3)


def read_pairs(text):
    rows = [[pair.rsplit(":", 1) for pair in line.split("\t")] for line in text.splitlines()]
    labels = np.array([[name for name, _ in row] for row in rows])
    return labels, np.array([[float(score) for _, score in row] for row in rows])


def test_text_has_one_line_of_pairs_per_row(sublearn, model, files, expected):
    done = sublearn("predict", model, files["txt"], "-k", 3)
    assert done.code == 0, done
    labels, scores = read_pairs(done.out)
    np.testing.assert_array_equal(labels.astype(int), expected[0])
    np.testing.assert_allclose(scores, expected[1], rtol=1e-4, atol=1e-5)


def test_json_lines_hold_labels_and_scores(sublearn, model, files, expected, tmp_path):
    sublearn("predict", model, files["txt"], "-k", 3, "-o", tmp_path / "p.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "p.jsonl").read_text().splitlines()]
    assert [row["labels"] for row in rows] == expected[0].tolist()
    np.testing.assert_allclose([row["scores"] for row in rows], expected[1], rtol=1e-5, atol=1e-6)


def test_npz_holds_both_arrays(sublearn, model, files, expected, tmp_path):
    sublearn("predict", model, files["txt"], "-k", 3, "-o", tmp_path / "p.npz")
    with np.load(tmp_path / "p.npz") as found:
        np.testing.assert_array_equal(found["labels"], expected[0])
        np.testing.assert_allclose(found["scores"], expected[1], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["text", "jsonl", "npz"])
def test_a_file_without_rows_gives_a_file_without_rows(sublearn, model, tmp_path, name):
    X, Y = make_data()
    save_xmc(tmp_path / "none.txt", X[:0], Y[:0])
    out = tmp_path / "out"
    done = sublearn("predict", model, tmp_path / "none.txt", "-k", 3, "-o", out, "--format", name)
    assert done.code == 0, done
    if name == "npz":
        with np.load(out) as found:
            assert found["labels"].shape == found["scores"].shape == (0, 3)
    else:
        assert out.read_text() == ""


def test_the_ending_xz_compresses_text(sublearn, model, files, tmp_path):
    import lzma

    sublearn("predict", model, files["txt"], "-o", tmp_path / "p.txt.xz")
    with lzma.open(tmp_path / "p.txt.xz", "rt") as lines:
        assert len(lines.readlines()) == N_ROWS


def test_a_libsvm_file_narrower_than_the_model_is_read_at_its_width(sublearn, model, tmp_path):
    X, Y = make_data()
    save_svmlight(tmp_path / "few.svm", X[:5, :10], Y[:5])
    assert sublearn("predict", model, tmp_path / "few.svm").code == 0


def test_more_labels_than_the_model_has_gives_all(sublearn, model, files):
    labels, _ = read_pairs(sublearn("predict", model, files["txt"], "-k", 500).out)
    assert labels.shape == (N_ROWS, N_LABELS)


@pytest.mark.parametrize(
    ("arguments", "word"),
    [(["--format", "xls"], "xls"), (["--format", "npz"], "--output"), (["-k", "0"], "k")],
)
def test_predict_refuses_with_exit_code_2(sublearn, model, files, arguments, word):
    done = sublearn("predict", model, files["txt"], *arguments)
    assert done.code == 2
    assert word in done.err


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_predict_refuses_to_put_a_file_in_the_place_of_a_pipe(sublearn, model, files, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    done = sublearn("predict", model, files["txt"], "-o", tmp_path / "pipe")
    assert done.code == 2
    assert "regular file" in done.err


def test_data_of_another_width_exit_1(sublearn, model, tmp_path):
    X, Y = make_data()
    save_xmc(tmp_path / "narrow.txt", X[:, :10], Y)
    done = sublearn("predict", model, tmp_path / "narrow.txt")
    assert done.code == 1
    assert "10 features" in done.err


def test_a_data_file_is_no_model(sublearn, files):
    done = sublearn("predict", files["txt"], files["txt"])
    assert done.code == 1
    assert done.err.startswith("error: ")


def test_a_reader_that_stops_early_causes_no_traceback(model, tmp_path):
    X, Y = make_data()
    rows = np.tile(np.arange(N_ROWS), 400)  # far more text than a pipe holds
    save_xmc(tmp_path / "long.txt", X[rows], Y[rows])
    line = command_line("predict", model, tmp_path / "long.txt")
    process = subprocess.Popen(
        line, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout.readline()
    process.stdout.close()
    err = process.stderr.read()
    process.stderr.close()
    assert process.wait(timeout=60) == 0
    assert err == b""


def test_evaluate_agrees_with_the_metrics(sublearn, model, files, expected):
    done = sublearn("evaluate", model, files["txt"], "-k", "1,3", "--train", files["txt"], "--json")
    found = json.loads(done.out)
    _, Y = make_data()
    assert found["rows"] == N_ROWS
    for i, k in enumerate([1, 3]):
        assert found[f"P@{k}"] == pytest.approx(precision_at_k(Y, expected[0], [1, 3])[i])
        assert found[f"nDCG@{k}"] == pytest.approx(ndcg_at_k(Y, expected[0], [1, 3])[i])
        weighted = psp_at_k(Y, expected[0], propensities(Y), [1, 3])[i]
        assert found[f"PSP@{k}"] == pytest.approx(weighted)
    assert found["P@1"] > 0.9


def test_evaluate_prints_a_table_in_percent(sublearn, model, files):
    done = sublearn("evaluate", model, files["txt"])
    assert done.code == 0, done
    assert "P@k" in done.out
    assert "nDCG@k" in done.out
    assert "PSP@k" not in done.out


def test_labels_are_matched_by_name(sublearn, files, tmp_path):
    sublearn("fit", files["npz"], "--model", tmp_path / "m", "-q")
    by_name = json.loads(sublearn("evaluate", tmp_path / "m", files["npz"], "--json").out)
    assert by_name["P@1"] > 0.9
    done = sublearn("evaluate", tmp_path / "m", files["txt"], "--json")
    assert done.code == 1
    assert "must be names" in done.err


@pytest.mark.parametrize(
    "arguments", [["-k", "0"], ["-k", "one"], ["-k", "99"], ["--propensity", "1"]]
)
def test_evaluate_refuses_with_exit_code_2(sublearn, model, files, arguments):
    done = sublearn("evaluate", model, files["txt"], *arguments)
    assert done.code == 2
    assert done.err.count("\n") == 1


def test_one_label_per_row_works_from_fit_to_evaluate(sublearn, tmp_path):
    X, _ = make_data()
    y = np.arange(N_ROWS) % N_LABELS + 5
    save_svmlight(tmp_path / "one.svm", X, y)
    sublearn("fit", tmp_path / "one.svm", "--model", tmp_path / "m", "-q")
    assert package.load(tmp_path / "m").classes_.tolist() == sorted(set(y.tolist()))
    found = json.loads(sublearn("evaluate", tmp_path / "m", tmp_path / "one.svm", "--json").out)
    assert found["R@5"] > 0.9


@pytest.mark.parametrize("source", ["txt", "svm", "npz", "arff"])
@pytest.mark.parametrize("target", ["xmc", "svm", "npz", "txt.xz"])
def test_convert_keeps_every_value(sublearn, files, tmp_path, source, target):
    labels = ["--labels", N_LABELS] if source == "arff" else []
    done = sublearn("convert", files[source], tmp_path / f"new.{target}", *labels)
    assert done.code == 0, done
    X, Y = make_data()
    again = load_dataset(tmp_path / f"new.{target}")
    np.testing.assert_array_equal(again.X.toarray(), X.toarray())
    np.testing.assert_array_equal(again.Y.toarray(), Y.toarray())
    has_lost_names = source in ("npz", "arff") and target != "npz"
    assert ("names" in done.err) == has_lost_names


@pytest.mark.parametrize("name", ["new.xls", "new.arff"])
def test_convert_to_an_ending_it_cannot_write_exits_2(sublearn, files, tmp_path, name):
    done = sublearn("convert", files["txt"], tmp_path / name)
    assert done.code == 2
    assert f"OUT: must end in .txt, .xmc, .svm, .svmlight, .libsvm or .npz, got {name}" in done.err


@pytest.fixture
def named(sublearn, files, tmp_path):
    """A model that knows the names of its features."""
    done = sublearn("fit", files["npz"], "--model", tmp_path / "named", "--quiet")
    assert done.code == 0, done
    return tmp_path / "named"


def write_columns(path, columns, names):
    X, Y = make_data()
    labels = [f"topic {k}" for k in range(N_LABELS)]
    save_npz(path, X[:, columns], Y, feature_names=names, label_names=labels)
    return path


def test_columns_in_another_order_are_found_by_name(sublearn, named, files, tmp_path):
    columns = np.random.default_rng(0).permutation(N_FEATURES)
    other = write_columns(tmp_path / "o.npz", columns, [f"word{j}" for j in columns])
    assert sublearn("predict", named, other).out == sublearn("predict", named, files["npz"]).out


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["other", *(f"word{j}" for j in range(1, N_FEATURES))], "got none named 'word0' (1 are"),
        ([f"word{j}" for j in [*range(N_FEATURES), 99]], f"and no other, got {N_FEATURES + 1}"),
    ],
)
def test_refuses_features_that_are_not_those_of_the_model(sublearn, named, tmp_path, names, words):
    other = write_columns(tmp_path / "o.npz", np.arange(len(names)) % N_FEATURES, names)
    done = sublearn("predict", named, other)
    assert done.code == 1
    assert words in done.err


@pytest.mark.parametrize("command", ["evaluate", "fit"])
def test_refuses_a_file_without_rows(sublearn, model, tmp_path, command):
    (tmp_path / "none.txt").write_text(f"0 {N_FEATURES} {N_LABELS}\n")
    arguments = ["--model", tmp_path / "m"] if command == "fit" else []
    first = [] if command == "fit" else [model]
    done = sublearn(command, *first, tmp_path / "none.txt", *arguments)
    assert done.code == 1
    assert "none.txt: must have at least one row, got 0" in done.err


def test_evaluate_leaves_out_cuts_that_a_small_model_does_not_reach(sublearn, tmp_path):
    X, Y = make_data()
    save_xmc(tmp_path / "few.txt", X, Y[:, :4])
    sublearn("fit", tmp_path / "few.txt", "--model", tmp_path / "m", "--quiet")
    done = sublearn("evaluate", tmp_path / "m", tmp_path / "few.txt", "--json")
    assert [name for name in json.loads(done.out) if name.startswith("P@")] == ["P@1", "P@3"]
    assert sublearn("evaluate", tmp_path / "m", tmp_path / "few.txt", "--k", "5").code == 2


def test_a_model_of_dense_features_reads_the_same_files(sublearn, files, tmp_path):
    X, Y = make_data()
    dense = DenseExtremeClassifier(random_state=0).fit(np.asarray(X.todense()), Y)
    dense.save(tmp_path / "dense.model")
    done = sublearn("predict", tmp_path / "dense.model", files["txt"], "-k", 3)
    assert done.code == 0, done
    labels, _ = read_pairs(done.out)
    np.testing.assert_array_equal(labels.astype(int), dense.predict_top_k(X.toarray(), 3)[0])


def test_a_model_of_another_kind_is_refused_and_described(sublearn, files, tmp_path):
    words = [["one", "two", "three", "four"] * 20] * 5
    model = SkipGram(n_components=4, min_count=1, max_iter=1)
    model.fit(words).save(tmp_path / "words")
    done = sublearn("evaluate", tmp_path / "words", files["txt"])
    assert done.code == 2
    assert "got a SkipGram; use sublearn.load in Python" in done.err
    assert "gives vectors of words" in done.err
    rows = np.random.default_rng(0).normal(size=(300, 8)).astype(np.float32)
    MIPSIndex(random_state=0).fit(rows).save(tmp_path / "index")
    done = sublearn("evaluate", tmp_path / "index", files["txt"])
    assert (done.code, "must be a matrix with 8 columns" in done.err) == (2, True)
    done = sublearn("inspect", tmp_path / "index", "--json")
    assert json.loads(done.out)["n_rows"] == 300


@pytest.mark.parametrize("method", ["ppd-sparse", "sparse-linear"])
def test_a_blank_line_of_numbers_has_an_empty_answer_in_its_place(sublearn, tmp_path, method):
    full, gaps, path = (tmp_path / name for name in ("full.svm", "gaps.svm", "m"))
    rows = [f"{i % 3} {i % 3 + 1}:1" for i in range(12)]
    full.write_text("\n".join(rows) + "\n")
    gaps.write_text("\n".join(["# a comment", rows[0], "", *rows[1:], " "]) + "\n")
    is_empty = [False, True, *[False] * 11, True]
    assert sublearn("fit", full, "-m", path, "--method", method, "-q").code == 0
    done = sublearn("predict", path, gaps)
    answers = done.out.split("\n")[:-1]
    assert [not answer for answer in answers] == is_empty
    assert [answer for answer in answers if answer] == sublearn(
        "predict", path, full
    ).out.splitlines()
    assert "gaps.svm: 2 of 14 rows are empty" in done.err
    lines = sublearn("predict", path, gaps, "--format", "jsonl").out.splitlines()
    assert [json.loads(line).get("empty", False) for line in lines] == is_empty
    sublearn("predict", path, gaps, "-o", tmp_path / "p.npz")
    with np.load(tmp_path / "p.npz") as arrays:
        assert arrays["is_empty"].tolist() == is_empty
