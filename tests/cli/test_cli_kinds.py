"""Every kind of model from a file to its answers; standard input, CSV, and which method suits."""

import csv
import io
import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

import sublearn as package
from sublearn.cli.methods import METHODS
from sublearn.io import save_svmlight
from sublearn.kinds import KINDS, kind_of

SOURCE = Path(package.__file__).parent


def table(path, X, y, name="y"):
    names = [f"x{j}" for j in range(X.shape[1])]
    lines = [",".join([*names, name])]
    lines += [
        ",".join([*(f"{v:.6g}" for v in row), str(one)]) for row, one in zip(X, y, strict=True)
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 5))
    return X, 2 * X[:, 0] - X[:, 2] + 0.01 * rng.normal(size=120)


# --- no probing -----------------------------------------------------------------------------------


def test_commands_and_kinds_look_at_no_attribute_to_find_out_what_a_model_is():
    probe = re.compile(
        r"\b(?:hasattr|getattr)\((?:self\.)?(?:model|fitted|estimator|opened\.model)\b"
    )
    files = [*SOURCE.glob("cli/**/*.py"), *SOURCE.glob("kinds/*.py"),
             SOURCE / "serve" / "services.py", SOURCE / "io" / "prepared.py"]  # fmt: skip
    found = [
        f"{path.name}:{i}"
        for path in files
        for i, line in enumerate(path.read_text().splitlines(), 1)
        if probe.search(line)
    ]
    assert len(found) == 1, found  # `offers`, the one place that asks
    assert found[0].startswith("base.py:")


def test_every_kind_says_what_it_gives_and_an_object_of_another_library_is_refused():
    from sublearn.kinds import kind_named

    assert all(kind_named(name).name == name and kind_named(name).gives for name in KINDS)
    with pytest.raises(ValueError, match="must be of a class of sublearn, got a dict"):
        kind_of({})


# --- methods --------------------------------------------------------------------------------------


def test_numbers_of_a_table_from_fit_to_explain(sublearn, rows, tmp_path):
    data = table(tmp_path / "rows.csv", *rows)
    done = sublearn("fit", data, "--labels", "y", "-m", tmp_path / "m", "--l1", 0.001)
    assert done.code == 0, done
    assert "method: sparse-linear (one number with a fraction for each row)" in done.err
    found = json.loads(sublearn("evaluate", tmp_path / "m", data, "--json").out)
    assert found["R2"] > 0.99
    answers = list(csv.reader(io.StringIO(sublearn("predict", tmp_path / "m", data, "--csv").out)))
    assert answers[0] == ["row", "prediction"]
    np.testing.assert_allclose([float(one[1]) for one in answers[1:]], rows[1], atol=0.2)
    done = sublearn("explain", tmp_path / "m", data, "--row", 1, "--json")
    (explained,) = json.loads(done.out)["explanations"]
    assert explained["score"] == pytest.approx(float(answers[1][1]), abs=1e-4)
    assert explained["contributions"][0]["feature"] in ("x0", "x2")


def test_new_rows_of_a_table_need_no_column_of_labels(sublearn, rows, tmp_path):
    data = table(tmp_path / "rows.csv", *rows)
    assert sublearn("fit", data, "--labels", "y", "-m", tmp_path / "m", "-q").code == 0
    lines = [line.rsplit(",", 1)[0] for line in data.read_text().splitlines()]
    (tmp_path / "new.csv").write_text("\n".join(lines))
    new = sublearn("predict", tmp_path / "m", tmp_path / "new.csv")
    assert new.code == 0, new
    assert new.out == sublearn("predict", tmp_path / "m", data).out
    (tmp_path / "new.csv").write_text("\n".join(line.partition(",")[2] for line in lines))
    done = sublearn("predict", tmp_path / "m", tmp_path / "new.csv")
    assert (done.code, "got none named 'x0' (1 are missing)" in done.err) == (1, True)


@pytest.mark.filterwarnings("default")
def test_a_mixture_a_covariance_and_latent_features_come_from_tables(sublearn, rows, tmp_path):
    data = table(tmp_path / "rows.csv", *rows)
    calls = {
        "mix-lasso": ["--labels", "y", "--n-components", 1],
        "inverse-covariance": ["--l1", 0.1],
        "latent-features": ["--n-components", 2, "--max-iter", 5],
        "index": [],
    }
    for method, options in calls.items():
        path = tmp_path / method
        done = sublearn("fit", method, data, "-m", path, "-q", *options)
        assert done.code == 0, done
        assert type(package.load(path)).__name__ == METHODS[method].estimator
        answers = sublearn("predict", path, data)
        assert (answers.code, len(answers.out.splitlines())) == (0, 120), answers
        judged = sublearn("evaluate", path, data)
        assert judged.code == 0, judged
    model = package.load(tmp_path / "inverse-covariance")
    X = np.column_stack(rows)
    found = json.loads(sublearn("evaluate", tmp_path / "inverse-covariance", data, "--json").out)
    assert found["log_likelihood"] == pytest.approx(model.score(X), rel=1e-4)


def test_sets_of_labels_and_last_layers_come_from_rows(sublearn, files, tmp_path):
    for method, options in (
        ("pairwise", []),
        ("dense-extreme", []),
        ("embedding-extreme", ["--n-components", 8]),
    ):
        path = tmp_path / method
        done = sublearn("fit", method, files["npz"], "-m", path, "-q", *options)
        assert done.code == 0, done
        found = json.loads(sublearn("evaluate", path, files["npz"], "--json").out)
        assert found["F1"] > 0.2
        assert sublearn("predict", path, files["npz"], "-o", tmp_path / "p.npz").code == 0
    done = sublearn("predict", tmp_path / "pairwise", files["npz"], "-k", 3)
    assert (done.code, "needs a model that ranks labels" in done.err) == (2, True)


def test_the_nearest_words_of_a_word(sublearn, tmp_path):
    (tmp_path / "corpus.txt").write_text("The cat sat on the mat.\nA dog sat on a rug.\n" * 40)
    done = sublearn("fit", tmp_path / "corpus.txt", "-m", tmp_path / "m", "--n-components", 6,
                    "--max-iter", 1)  # fmt: skip
    assert done.code == 0, done
    assert "method: skip-gram (plain text)" in done.err
    (tmp_path / "words.txt").write_text("cat\nunicorn\n")
    done = sublearn("predict", tmp_path / "m", tmp_path / "words.txt", "-k", 2)
    first, second = done.out.splitlines()
    assert (len(first.split("\t")), second) == (2, "")
    assert "1 of 2 lines are not words of the model" in done.err


def test_loads_are_judged_on_the_steps_that_follow(sublearn, tmp_path):
    t = np.arange(24 * 21)
    load = 100 + 20 * np.sin(2 * np.pi * t / 24)
    for name, part in (("a", slice(None, -48)), ("b", slice(-48, None))):
        (tmp_path / f"{name}.csv").write_text("load\n" + "\n".join(f"{y:.4f}" for y in load[part]))
    call = ["fit", "forecast", tmp_path / "a.csv", "-m", tmp_path / "m", "--horizon", 24, "-q"]
    done = sublearn(*call)
    assert done.code == 0, done
    found = json.loads(sublearn("evaluate", tmp_path / "m", tmp_path / "b.csv", "--json").out)
    assert (found["rows"], found["MAPE"] < 0.05) == (48, True)


# --- which method ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content", "method"),
    [
        ("r.svm", "1 1:1\n2 2:1\n" * 9, "sparse-logistic"),
        ("r.svm", "1.5 1:1\n2 2:1\n" * 9, "sparse-linear"),
        ("r.svm", "1,2 1:1\n2 2:1\n" * 9, "ppd-sparse"),
        ("r.txt", "2 3 2\n0 0:1\n1 1:1\n", "ppd-sparse"),
        ("r.txt", "a\tone text\nb\tanother text\n" * 5, "text"),
        ("r.txt", "the D\ndog N\n\na D\nrun N\n\n" * 5, "chain"),
        ("r.tsv", "a\tone text\n", "text"),
        ("r.csv", "time,load\n2022-01-01 00:00,3\n", "forecast"),
        ("r.csv", "text,labels\none,a\n", "text"),
        ("r.csv", "x,y\n1,a\n2,b\n3,a\n4,b\n1,a\n", "sparse-logistic"),
    ],
)
def test_a_method_is_chosen_by_the_data(tmp_path, name, content, method):
    from sublearn.cli.choosing import choose_methods

    (tmp_path / name).write_text(content)
    assert (
        choose_methods(tmp_path / name, None, "y" if ",y" in content else None).methods[0] == method
    )


def test_of_the_methods_that_suit_one_has_the_options_given(sublearn, tmp_path):
    (tmp_path / "r.svm").write_text("1 1:1\n2 2:1\n" * 9)
    done = sublearn("fit", tmp_path / "r.svm", "-m", tmp_path / "m", "--prune", 0.1)
    assert (done.code, "method: ppd-sparse" in done.err) == (0, True), done


def test_a_factor_graph_is_sent_to_its_command(sublearn, tmp_path):
    (tmp_path / "g.uai").write_text("MARKOV\n")
    done = sublearn("fit", tmp_path / "g.uai", "-m", tmp_path / "m")
    assert (done.code, "use `sublearn map g.uai`" in done.err) == (2, True)


@pytest.mark.parametrize("call", [["fit", "ppd-sparce", "d.txt"], ["tune", "ppd-sparce", "d.txt"],
                                  ["fit", "d.txt", "--method", "ppd-sparce"]])  # fmt: skip
def test_a_method_that_is_none_is_answered_with_the_nearest(sublearn, tmp_path, call):
    done = sublearn(*call, "-m", tmp_path / "m")
    assert done.code == 2
    assert "did you mean ppd-sparse" in done.err


@pytest.mark.filterwarnings("default")
def test_both_forms_of_a_call_learn_the_same(sublearn, files, tmp_path):
    for name, call in (
        ("a", ["pd-sparse", files["txt"]]),
        ("b", [files["txt"], "--method", "pd-sparse"]),
    ):
        assert sublearn("fit", *call, "-m", tmp_path / name, "-q", "--max-iter", 5).code == 0
    a, b = (package.load(tmp_path / name) for name in "ab")
    assert (a.coef_ != b.coef_).nnz == 0


def test_a_field_of_settings_is_an_option(sublearn, files, tmp_path):
    call = ["fit", "embedding-extreme", files["txt"], "-m", tmp_path / "m", "-q", "--max-iter", 1]
    assert sublearn(*call, "--search-n-probe", 3).code == 0
    assert package.load(tmp_path / "m").search.n_probe == 3
    done = sublearn(*call, "--search-n-probe", 0)
    assert (done.code, "LabelSearch.search.n_probe must be" in done.err) == (2, True), done


# --- preparation ----------------------------------------------------------------------------------


@pytest.mark.filterwarnings("default")
def test_standardised_columns_are_remembered_by_every_command(sublearn, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 4)) * [1, 1e6, 1e-3, 1] + [5, 0, 0, -3]
    y = np.where(X[:, 0] > 5, "up", "down")
    data = table(tmp_path / "r.csv", X, y)
    done = sublearn("fit", "sparse-logistic", data, "--labels", "y", "-m", tmp_path / "plain")
    assert "columns of DATA have very different sizes" in done.err
    call = ["fit", "sparse-logistic", data, "--labels", "y", "-m", tmp_path / "m", "--standardize"]
    done = sublearn(*call, "-q")
    assert (done.code, done.err) == (0, "")
    model = package.load(tmp_path / "m")
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    np.testing.assert_allclose(model.notes_["scale"], X.std(axis=0), rtol=1e-4)
    found = json.loads(sublearn("evaluate", tmp_path / "m", data, "--json").out)
    assert found["P@1"] == pytest.approx(model.score(Z, y))
    assert found["P@1"] > 0.95
    from sublearn.kinds.base import kind_named

    kind = kind_named("row_labels")
    answer = kind.answer(model, {"rows": [X[0].tolist()], "k": 1, "probabilities": False}, int)
    assert answer["predictions"][0]["labels"] == [model.predict(Z[:1])[0]]


def test_sparse_columns_keep_their_zeros(sublearn, tmp_path):
    X = sparse.random(50, 20, 0.1, "csr", random_state=0)
    save_svmlight(tmp_path / "r.svm", X, np.arange(50) % 3)
    call = ["fit", "ppd-sparse", tmp_path / "r.svm", "-m", tmp_path / "m", "-q", "--standardize"]
    assert sublearn(*call).code == 0
    assert "shift" not in package.load(tmp_path / "m").notes_


# --- input and output -----------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["txt", "svm", "npz"])
def test_standard_input_is_a_file_of_any_form(sublearn, model, files, monkeypatch, ending):
    content = files[ending].read_bytes()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    done = sublearn("predict", model, "-", "-k", 2)
    assert done.code == 0, done
    assert done.out == sublearn("predict", model, files["txt"], "-k", 2).out


def test_standard_input_is_called_so_in_a_message(sublearn, model, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"2 3 2\n0 0:1\n1 7:1\n")))
    done = sublearn("predict", model, "-")
    assert (done.code, done.err.startswith("error: standard input, line 3: ")) == (1, True), done
    done = sublearn("fit", "ppd-sparse", "x.txt", "--model", "-")
    assert (done.code, "--model: must be the name of a file, got -" in done.err) == (2, True)


def test_text_on_standard_input_may_have_commas(sublearn, tmp_path, monkeypatch):
    (tmp_path / "r.tsv").write_text("sea\tships, and sails\nland\troads, and cars\n" * 4)
    assert sublearn("fit", tmp_path / "r.tsv", "-m", tmp_path / "m", "-q").code == 0
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"ships, sails, and wind\n")))
    done = sublearn("predict", tmp_path / "m", "-", "-k", 1, "--json")
    assert json.loads(done.out)["labels"] == ["sea"]


def test_labels_as_a_table_and_only_those_above_a_threshold(sublearn, model, files, tmp_path):
    assert sublearn("predict", model, files["txt"], "-k", 2, "-o", tmp_path / "p.csv").code == 0
    found = list(csv.reader(io.StringIO((tmp_path / "p.csv").read_text())))
    assert found[0] == ["row", "label_1", "score_1", "label_2", "score_2"]
    text = sublearn("predict", model, files["txt"], "-k", 2).out.splitlines()
    assert [f"{r[1]}:{r[2]}\t{r[3]}:{r[4]}" for r in found[1:]] == text
    done = sublearn("predict", model, files["txt"], "--threshold", 0, "--json")
    scores = [json.loads(line)["scores"] for line in done.out.splitlines()]
    assert all(score >= 0 for row in scores for score in row)
    assert len({len(row) for row in scores}) > 1
    done = sublearn("predict", model, files["txt"], "--csv", "--format", "jsonl")
    assert (done.code, "--format: must be one" in done.err) == (2, True)


def test_a_file_compressed_by_zstandard(sublearn, model, files, tmp_path):
    zstandard = pytest.importorskip("zstandard")
    packed = tmp_path / "train.txt.zst"
    packed.write_bytes(zstandard.compress(files["txt"].read_bytes()))
    assert sublearn("predict", model, packed).out == sublearn("predict", model, files["txt"]).out
    packed.write_bytes(packed.read_bytes()[:40] + b"xx")
    done = sublearn("predict", model, packed)
    assert (done.code, done.err.count("\n")) == (1, 1), done


def test_without_the_package_for_zstandard_the_extra_is_named(
    sublearn, model, tmp_path, monkeypatch
):
    for name in ("zstandard", "compression.zstd"):
        monkeypatch.setitem(sys.modules, name, None)
    (tmp_path / "train.txt.zst").write_bytes(b"")
    done = sublearn("predict", model, tmp_path / "train.txt.zst")
    assert (done.code, 'pip install "sublearn[zstd]"' in done.err) == (1, True), done


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("x,y\n1,2\n3\n", "t.csv:3: must have 2 fields as the first line has, got 1"),
        ("x,y\n1,2\nmany,3\n", "t.csv:3: column 'x' must hold numbers, got 'many'"),
        ("x,x\n1,2\n", "columns must have different names, got 'x' twice"),
        ("", "t.csv"),
        ("\ufeffx,y\r\n1,2\r\n", None),
    ],
)
def test_a_table_is_refused_by_line_and_column(sublearn, tmp_path, content, words):
    (tmp_path / "t.csv").write_text(content, "utf-8")
    call = ["fit", "sparse-linear", tmp_path / "t.csv", "--labels", "y", "-m", tmp_path / "m", "-q"]
    done = sublearn(*call)
    assert (done.code, words is None or words in done.err) == (0 if words is None else 1, True), (
        done
    )


def test_a_table_without_labels_names_its_columns(sublearn, tmp_path):
    (tmp_path / "t.csv").write_text("x,price\n1,2\n")
    done = sublearn("fit", "sparse-linear", tmp_path / "t.csv", "-m", tmp_path / "m")
    assert (done.code, "its columns are x, price" in done.err) == (2, True), done


# --- intervals, comparisons, pages, tuning, completion --------------------------------------------


def test_intervals_hold_the_value_and_a_model_equals_itself(sublearn, model, files):
    done = sublearn("evaluate", model, files["txt"], "--baseline", model, "--json")
    found = json.loads(done.out)
    for name, (low, high) in found["intervals"].items():
        assert low <= found[name] <= high
    assert all(one["difference"] == 0 for one in found["differences"].values())
    rows = list(csv.reader(io.StringIO(sublearn("evaluate", model, files["txt"], "--csv").out)))
    assert rows[0] == ["measure", "value", "low", "high"]
    assert float({r[0]: r[1] for r in rows}["P@1"]) == pytest.approx(found["P@1"], rel=1e-5)


def test_a_worse_model_is_marked(sublearn, model, files, tmp_path):
    call = ["fit", "ppd-sparse", files["txt"], "-m", tmp_path / "weak", "--l1", 60, "-q"]
    assert sublearn(*call).code == 0
    found = json.loads(
        sublearn("evaluate", tmp_path / "weak", files["txt"], "--baseline", model, "--json").out
    )
    assert found["differences"]["P@3"]["interval"][1] < 0
    done = sublearn("evaluate", tmp_path / "weak", files["txt"], "--baseline", model)
    assert "worse than the baseline" in done.out


def test_a_page_has_its_pictures_inside(sublearn, model, files, tmp_path):
    done = sublearn("inspect", model, "--html", tmp_path / "r.html", "--data", files["txt"])
    assert done.code == 0, done
    page = (tmp_path / "r.html").read_text("utf-8")
    assert page.count("<svg") > 4
    assert "How the fit went" in page
    assert not re.search(r"(src|href)=", page)  # nothing from elsewhere
    from xml.etree import ElementTree

    for picture in re.findall(r"<svg.*?</svg>", page, re.DOTALL):
        ElementTree.fromstring(picture)
    done = sublearn("inspect", model, "--data", files["txt"])
    assert (done.code, "--data: needs --html" in done.err) == (2, True)


def test_tune_tries_all_and_saves_the_best(sublearn, files, tmp_path):
    call = ["tune", "ppd-sparse", files["txt"], "--grid", "l1=0.1,30", "--grid", "C=1"]
    done = sublearn(*call, "-m", tmp_path / "m", "--picture", tmp_path / "f.svg", "--json")
    assert done.code == 0, done
    found = json.loads(done.out)
    assert [one["l1"] for one in found["trials"]] == ["0.1", "30"]
    assert found["best"] == {"l1": "0.1", "C": "1"}
    assert package.load(tmp_path / "m").l1 == 0.1
    assert sublearn("predict", tmp_path / "m", files["txt"]).code == 0
    from xml.etree import ElementTree

    ElementTree.parse(tmp_path / "f.svg")
    table_of = sublearn(*call).out
    assert "best" in table_of


def test_tune_of_loads_forecasts_the_end_and_takes_the_smallest_error(sublearn, tmp_path):
    hours = np.arange(24 * 14)
    noise = np.random.default_rng(0).normal(size=len(hours))
    loads = 100 + 20 * np.sin(hours * 2 * np.pi / 24) + noise
    times = np.datetime64("2024-01-01T00:00") + hours * np.timedelta64(1, "h")
    lines = [
        f"{str(when).replace('T', ' ')},{load}" for when, load in zip(times, loads, strict=True)
    ]
    (tmp_path / "loads.csv").write_text("\n".join(["time,load", *lines]))
    call = ["tune", "forecast", tmp_path / "loads.csv", "--grid", "C=1e-6,10"]
    call += ["--grid", "horizon=2", "--quantile", 0.5]
    done = sublearn(*call, "-m", tmp_path / "m", "--picture", tmp_path / "f.svg", "--json")
    assert done.code == 0, done
    trials = {one["C"]: one["MAPE"] for one in json.loads(done.out)["trials"]}
    assert trials["10"] != trials["1e-6"]
    best = min(trials, key=trials.get)
    assert json.loads(done.out)["best"] == {"C": best, "horizon": "2"}
    assert package.load(tmp_path / "m").loss.share_below == 0.5


def test_tune_says_what_to_do_where_rows_judge_nothing(sublearn, files):
    done = sublearn("tune", "skip-gram", files["txt"])
    assert done.code == 2
    assert "METHOD: skip-gram has nothing to be tuned by; " in " ".join(done.err.split())


def test_an_index_is_judged_and_tuned_by_what_it_finds(sublearn, tmp_path):
    data, model = tmp_path / "rows.csv", tmp_path / "m.index"
    rows = np.random.default_rng(0).normal(size=(400, 8))
    np.savetxt(data, rows, delimiter=",", header=",".join("abcdefgh"), comments="")
    done = sublearn("tune", "index", data, "--grid", "n_probe=1,8,none", "--json", "-m", model)
    assert done.code == 0, done
    found = [one["recall@10"] for one in json.loads(done.out)["trials"]]
    assert found[0] < found[1] < found[2] == 1
    judged = json.loads(sublearn("evaluate", model, data, "--json").out)
    assert judged["recall@10"] == 1
    assert 0 < judged["products"] <= 1.5


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--grid", "magic=1"], "--grid: must be NAME=V,V with an option of ppd-sparse"),
        (["--grid", "l1"], "--grid: must be NAME=V,V"),
        (["--grid", "l1=-1"], "PPDSparseClassifier.l1 must be a non-negative number, got -1"),
        (["--held-out", 2], "--held-out: must be between 0 and 1, got 2.0"),
    ],
)
def test_tune_refuses_before_the_work(sublearn, files, options, words):
    done = sublearn("tune", "ppd-sparse", files["txt"], *options)
    assert (done.code, words in done.err) == (2, True), done


@pytest.mark.parametrize(
    ("typed", "word"),
    [("sublearn pre", "predict"), ("sublearn fit spa", "sparse-linear"),
     ("sublearn fit chain --tok", "--token-columns")],
)  # fmt: skip
def test_a_shell_completes_commands_methods_and_options(sublearn, monkeypatch, typed, word):
    monkeypatch.setenv("_SUBLEARN_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", typed)
    monkeypatch.setenv("COMP_CWORD", str(len(typed.split()) - 1))
    assert word in sublearn().out.split()


def test_the_script_of_a_shell(sublearn):
    assert "_SUBLEARN_COMPLETE" in sublearn("completion", "zsh").out
    assert sublearn("completion", "cmd").code == 2


def test_a_label_that_is_none_is_answered_with_the_nearest(sublearn, files, tmp_path):
    assert sublearn("fit", files["npz"], "-m", tmp_path / "m", "-q").code == 0
    done = sublearn("inspect", tmp_path / "m", "--label", "topik 3")
    assert (done.code, "(topic 3, " in done.err) == (2, True), done
