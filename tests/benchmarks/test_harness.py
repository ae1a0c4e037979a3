"""The harness on tiny problems: fair turns, an independent judge, and no failure left out."""

import json
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from harness.arrays import load_arrays, save_arrays
from harness.data import data_directory, mulan
from harness.entrant import Entrant
from harness.environments import EnvironmentFailure, python_of
from harness.growth import fit_exponent, measure_growth
from harness.judge import InvalidPrediction, precision_at, ranking_judge
from harness.markdown import render
from harness.problem import Problem, Split
from harness.room import Axis, Room, main
from harness.runner import Conditions, run_all
from harness.synthetic import Documents, make_documents
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import LinearSVC

TINY = Documents(
    n_train=100, n_test=25, n_features=300, n_labels=8, n_groups=3, words_per_document=30
)
LINEARSVC = Path(__file__).resolve().parents[2] / "benchmarks/entrants/extreme/linearsvc.py"
SEED = 5


def precision_by_counting(k, truth, labels):
    """The slow obvious twin of the judge: sets, row by row."""
    total = 0
    for right, ranked in zip(truth.toarray(), labels.tolist(), strict=True):
        total += len({label for label in ranked[:k] if label >= 0} & set(np.flatnonzero(right)))
    return total / (k * truth.shape[0])


@pytest.fixture(scope="module")
def record(tmp_path_factory):
    """Two settings of LinearSVC on a tiny problem, two rounds, through the command line."""
    room = Room(
        title="tiny",
        problems=[Problem("tiny", lambda directory, seed: make_documents(TINY, seed), "generated")],
        entrants=[
            Entrant("strong", "main", LINEARSVC, {"C": 1.0}),
            Entrant("weak", "main", LINEARSVC, {"C": 1.0}, {"tiny": {"C": 0.001}}),
        ],
        judge=ranking_judge((1, 3)),
        request={"k": 3},
        default=(("tiny",), ("strong", "weak")),
    )
    path = tmp_path_factory.mktemp("records") / "new" / "record.json"
    assert main(room, ["--repeat", "2", "--seed", str(SEED), "--json", str(path)]) == 0
    return json.loads(path.read_text())


@pytest.mark.parametrize(("entrant", "C"), [("strong", 1.0), ("weak", 0.001)])
def test_judges_an_entrant_as_counting_by_hand_does(record, entrant, C):
    split = make_documents(TINY, SEED)
    labels = np.flatnonzero(split.train["Y"].getnnz(axis=0))
    model = OneVsRestClassifier(LinearSVC(C=C, random_state=SEED))
    model.fit(split.train["X"], split.train["Y"][:, labels])
    ranked = labels[np.argsort(-model.decision_function(split.test["X"]), axis=1)]
    result = next(r for r in record["results"] if r["entrant"] == entrant)
    for k in (1, 3):
        expected = precision_by_counting(k, split.truth["Y"], ranked)
        assert result["median"][f"P@{k}"] == pytest.approx(expected, abs=1e-12)
    assert result["settings"] == {"C": C}


def test_record_names_machine_commit_seed_date_and_versions(record):
    assert record["seed"] == SEED
    assert (record["threads"], record["repeat"]) == ([1], 2)
    assert {"commit", "modified", "date"} <= record.keys()
    assert record["machine"]["cores"] >= 1
    assert record["machine"]["processor"]
    assert {"numpy", "scipy", "scikit-learn"} <= record["environments"]["main"]["packages"].keys()
    assert record["problems"]["tiny"]["train"] == {"X": [100, 300], "Y": [100, 8]}


def test_record_keeps_every_run_with_time_memory_and_size(record):
    for result in record["results"]:
        assert result["status"] == "ok"
        assert len(result["runs"]) == 2
        for run in result["runs"]:
            figures = run["figures"]
            assert figures["fit_cpu_seconds"] > 0
            assert figures["fit_wall_seconds"] > 0
            assert figures["predict_cpu_seconds"] >= 0
            assert figures["single_row_ms"] > 0
            assert figures["peak_mb"] >= figures["fit_peak_mb"] >= figures["start_mb"] > 0
            assert figures["model_mb"] > 0
            assert figures["work"] is None  # scikit-learn does not count


def test_ratios_are_to_the_first_entrant_within_a_round(record):
    first, second = record["results"]
    assert set(first["ratio"].values()) == {1.0}
    times = [[run["figures"]["fit_cpu_seconds"] for run in r["runs"]] for r in (first, second)]
    expected = np.median(np.divide(times[1], times[0]))
    assert second["ratio"]["fit_cpu_seconds"] == pytest.approx(expected)


ECHO = """
import os
import numpy as np
class Model:
    pass
def fit(train, task):
    model = Model()
    model.trace_ = {"work": np.array([1, train["X"].shape[0] ** 2])}
    return model
def predict(model, test, task):
    return {
        "labels": np.zeros((test["X"].shape[0], 1), int),
        "threads": np.array([int(os.environ["OMP_NUM_THREADS"]), task.threads]),
    }
"""
FAILURES = {
    "raises": ("def fit(train, task):\n    raise RuntimeError('no luck')", "RuntimeError: no luck"),
    "import": ("import no_such_rival", "ModuleNotFoundError: No module named 'no_such_rival'"),
    "killed": (
        "import os, signal\ndef fit(train, task):\n    os.kill(os.getpid(), signal.SIGSEGV)",
        "killed by SIGSEGV",
    ),
    "peeks": (
        "def fit(train, task): pass\ndef predict(model, test, task): return {'labels': test['Y']}",
        "KeyError: 'Y'",
    ),
    "misshapen": (
        "import numpy as np\ndef fit(train, task): pass\n"
        "def predict(model, test, task): return {'labels': np.zeros((1, 1), int)}",
        "InvalidPrediction: labels must have 4 rows of ranked labels, got shape (1, 1)",
    ),
    "silent": (
        "import numpy as np\ndef fit(train, task): pass\n"
        "def predict(model, test, task): return {'other': np.zeros(1)}",
        "KeyError: 'labels'",
    ),
}


def small_split(n_rows=4):
    X = sp.csr_matrix(np.eye(n_rows))
    return Split(train={"X": X, "Y": X}, test={"X": X[:4]}, truth={"Y": X[:4]})


def scripted(directory, name, text, environment="main"):
    script = directory / f"{name}.py"
    script.write_text(text)
    return Entrant(name, environment, script)


def test_a_failed_entrant_is_kept_with_its_last_line_and_not_run_again(tmp_path):
    entrants = [scripted(tmp_path, name, text) for name, (text, _) in FAILURES.items()]
    entrants.append(scripted(tmp_path, "homeless", ECHO, environment="nowhere"))
    entrants.append(scripted(tmp_path, "works", ECHO))
    outcomes = run_all("small", small_split(), entrants, ranking_judge((1,)), Conditions(repeat=2))
    found = {outcome.entrant.name: outcome for outcome in outcomes}
    for name, (_, message) in FAILURES.items():
        assert found[name].error == message
        assert len(found[name].runs) == 1
        assert found[name].figure("fit_cpu_seconds") is None
    assert "must be one of main" in found["homeless"].error
    assert found["works"].error is None
    assert found["works"].figure("P@1") == 0.25
    assert found["works"].ratio("fit_cpu_seconds", found["raises"]) is None


def test_a_run_over_time_is_stopped_and_says_so(tmp_path):
    sleeper = scripted(tmp_path, "slow", "import time\ndef fit(train, task): time.sleep(60)")
    conditions = Conditions(timeout_seconds=0.5)
    (outcome,) = run_all("small", small_split(), [sleeper], ranking_judge((1,)), conditions)
    assert re.fullmatch(r"stopped after 0\.5 s(, CPU \d+ s)?", outcome.error)
    assert outcome.status == "stopped"


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="CPU time is read from /proc")
def test_a_run_that_used_up_its_cpu_time_is_stopped_and_a_sleeping_one_is_not(tmp_path):
    busy = scripted(tmp_path, "busy", "def fit(train, task):\n    while True: pass")
    conditions = Conditions(timeout_seconds=60, cpu_seconds=2.0)
    (outcome,) = run_all("small", small_split(), [busy], ranking_judge((1,)), conditions)
    assert outcome.status == "stopped"
    assert outcome.runs[0].figures["stopped_cpu_seconds"] >= 2.0
    idle = scripted(tmp_path, "idle", f"import time\n{ECHO}\ntime.sleep(3)")
    conditions = Conditions(timeout_seconds=60, cpu_seconds=30.0)
    (outcome,) = run_all("small", small_split(), [idle], ranking_judge((1,)), conditions)
    assert outcome.status == "ok"


def test_a_failed_entrant_is_shown_and_fails_the_command(tmp_path, capsys):
    room = Room(
        title="failing",
        problems=[Problem("small", lambda directory, seed: small_split(), ""), mulan("absent")],
        entrants=[scripted(tmp_path, "unlucky", FAILURES["raises"][0])],
        judge=ranking_judge((1,)),
        default=(("small", "absent"), ("unlucky",)),
    )
    path = tmp_path / "record.json"
    assert main(room, ["--json", str(path), "--data", str(tmp_path)]) == 1
    shown = capsys.readouterr().out
    assert "unlucky failed: RuntimeError: no luck" in shown
    assert "absent failed to load" in shown
    record = json.loads(path.read_text())
    assert record["results"][0]["status"] == "failed"
    assert record["results"][0]["error"] == "RuntimeError: no luck"
    assert "absent" in record["unloaded"]


def test_entrants_take_turns_under_one_thread_limit(tmp_path):
    entrants = [scripted(tmp_path, name, ECHO) for name in ("a", "b")]
    turns = []

    def judge(truth, predictions):
        return dict(zip(("variable", "task"), predictions["threads"], strict=True))

    conditions = Conditions(threads=(2,), repeat=2)
    outcomes = run_all("small", small_split(), entrants, judge, conditions, turns.append)
    assert [turn.split(",")[0].split()[-1] for turn in turns] == ["a", "b", "a", "b"]
    assert all(o.figure("variable") == o.figure("task") == 2 for o in outcomes)


def test_growth_fits_the_exponent_of_counted_work(tmp_path):
    (growth,) = measure_growth(
        "N", (4, 16), small_split, [scripted(tmp_path, "square", ECHO)],
        ranking_judge((1,)), Conditions(),
    )  # fmt: skip
    assert growth.costs("work") == [16.0, 256.0]
    exponents = growth.as_record()["exponents"]
    assert exponents["work"] == pytest.approx(2.0)
    assert {"fit_cpu_seconds", "predict_ms_per_row", "single_row_ms"} <= exponents.keys()


def cells_of(markdown, first):
    """The cells of the table row that begins with `first`."""
    (line,) = (line for line in markdown.splitlines() if line.startswith(f"| {first} "))
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_markdown_shows_the_figures_of_the_record_with_machine_date_and_commit(record):
    text = render([record])
    result = record["results"][1]
    row = dict(zip(cells_of(text, "entrant"), cells_of(text, "`weak`"), strict=True))
    assert row["P@3"] == f"{result['median']['P@3']:.4f}"
    assert row["fit CPU s"] == f"{result['median']['fit_cpu_seconds']:.2f}"
    per_row = 1000 * result["median"]["predict_cpu_seconds"] / TINY.n_test
    assert row["CPU ms/row"] == f"{per_row:.3f}"
    for fact in (record["date"], record["machine"]["processor"], f"seed: {SEED}"):
        assert fact in text
    assert record["commit"] is None or record["commit"][:12] in text


def test_markdown_names_what_failed_and_no_place_on_this_machine(tmp_path):
    room = Room(
        title="failing",
        problems=[Problem("small", lambda directory, seed: small_split(), ""), mulan("absent")],
        entrants=[scripted(tmp_path, "unlucky", FAILURES["raises"][0])],
        judge=ranking_judge((1,)),
        default=(("small", "absent"), ("unlucky",)),
    )
    path = tmp_path / "record.json"
    main(room, ["--json", str(path), "--data", "nowhere"])
    found = json.loads(path.read_text())
    found["arguments"] = ["--seed", "3", "--data", "secret", "--json=secret", "--quick"]
    text = render([found])
    assert "`unlucky` failed: `RuntimeError: no luck`" in text
    assert cells_of(text, "`unlucky`")[1] == "failed"
    assert "`absent` could not be loaded" in text
    assert "options: `--seed 3 --quick`" in text
    assert "secret" not in text


def test_markdown_of_a_run_and_of_its_record_are_the_same(tmp_path, capsys):
    room = Room(
        title="growing",
        problems=[],
        entrants=[scripted(tmp_path, "square", ECHO)],
        judge=ranking_judge((1,)),
        axes={"N": Axis((4, 16), (4,), lambda size, seed: small_split(size))},
        default=((), ("square",)),
    )
    path, page = tmp_path / "record.json", tmp_path / "page.md"
    assert main(room, ["--growth", "N", "--json", str(path), "--markdown", str(page)]) == 0
    capsys.readouterr()
    assert main(room, ["--records", str(path)]) == 0
    assert capsys.readouterr().out == page.read_text()
    operations = [row for row in page.read_text().splitlines() if "| operations |" in row]
    assert operations == ["| `square` | operations | 16 | 256 | 2.00 |"]


@given(st.floats(-2, 3), st.floats(1e-6, 1e6))
@settings(deadline=None)
def test_exponent_of_a_power_is_found_exactly(power, scale):
    sizes = np.array([100.0, 200.0, 400.0, 800.0])
    assert fit_exponent(sizes, scale * sizes**power) == pytest.approx(power, abs=1e-6)


@given(st.data())
@settings(deadline=None)
def test_precision_agrees_with_counting_on_any_ranking(data):
    n_rows, n_labels = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 5))
    width, k = data.draw(st.integers(0, 6)), data.draw(st.integers(1, 6))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    truth = sp.csr_matrix(rng.integers(2, size=(n_rows, n_labels)))
    labels = rng.integers(-1, n_labels, size=(n_rows, width))  # repeats and gaps included
    expected = precision_by_counting(k, truth, labels)
    assert precision_at(k, truth, labels) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (np.zeros(2, int), "must have 2 rows"),
        (np.zeros((2, 1)), "must be integers, got float64"),
        (np.array([[0], [3]]), r"must lie in \[-1, 3\), got \[0, 3\]"),
        (np.array([[0], [-2]]), r"must lie in \[-1, 3\), got \[-2, 0\]"),
    ],
)
def test_judge_refuses_labels_it_cannot_read(labels, message):
    with pytest.raises(InvalidPrediction, match=message):
        precision_at(1, sp.csr_matrix(np.eye(2, 3)), labels)


def test_arrays_come_back_as_they_went(tmp_path):
    sparse = sp.random(5, 7, 0.4, "csr", dtype=np.float32, random_state=0)
    dense = np.arange(6).reshape(2, 3)
    save_arrays(tmp_path / "arrays.npz", {"X": sparse, "ids": dense})
    back = load_arrays(tmp_path / "arrays.npz")
    assert back.keys() == {"X", "ids"}
    assert back["X"].dtype == np.float32
    assert (back["X"] != sparse).nnz == 0
    np.testing.assert_array_equal(back["ids"], dense)


def test_generated_documents_repeat_by_seed_and_have_unit_rows():
    first, again, other = (make_documents(TINY, seed) for seed in (1, 1, 2))
    assert (first.train["X"] != again.train["X"]).nnz == 0
    assert (first.truth["Y"] != again.truth["Y"]).nnz == 0
    assert (first.train["X"] != other.train["X"]).nnz > 0
    lengths = np.sqrt(first.test["X"].multiply(first.test["X"]).sum(axis=1))
    np.testing.assert_allclose(lengths, 1, rtol=1e-5)
    assert first.train["Y"].getnnz(axis=1).min() >= 1


def test_refuses_an_environment_that_is_not_in_the_table():
    with pytest.raises(EnvironmentFailure, match=r"must be one of main, .*, got moon"):
        python_of("moon")


def test_data_directory_prefers_the_argument_then_the_variable(monkeypatch):
    monkeypatch.setenv("SUBLEARN_DATA", "from-variable")
    assert data_directory("given") == Path("given")
    assert data_directory() == Path("from-variable")
    monkeypatch.delenv("SUBLEARN_DATA")
    assert data_directory().parts[-2:] == ("shared", "data")


def test_refuses_no_rounds_and_unknown_names():
    room = Room("empty", [], [], ranking_judge())
    for arguments in (["--repeat", "0"], ["--entrants", "nobody"], ["--growth", "K"]):
        with pytest.raises(SystemExit) as stopped:
            main(room, arguments)
        assert stopped.value.code == 2


def test_settings_of_a_problem_override_the_common_ones():
    entrant = Entrant("a", "main", Path("a.py"), {"C": 1, "tol": 0.1}, {"bibtex": {"C": 2}})
    assert entrant.settings_for("bibtex") == {"C": 2, "tol": 0.1}
    assert entrant.settings_for("delicious") == {"C": 1, "tol": 0.1}


def test_the_extreme_benchmark_lists_itself_and_names_only_what_exists(capsys):
    import extreme

    assert main(extreme.ROOM, ["--list"]) == 0
    shown = capsys.readouterr().out
    for entrant in extreme.ENTRANTS:
        assert entrant.name in shown
        assert entrant.script.is_file()
    names = SimpleNamespace(
        problems={p.name for p in extreme.PROBLEMS}, entrants={e.name for e in extreme.ENTRANTS}
    )
    for problems, entrants in (extreme.ROOM.default, extreme.ROOM.quick):
        assert set(problems) <= names.problems
        assert set(entrants) <= names.entrants
