"""The harness on tiny problems: fair turns, an independent judge, and no failure left out."""

import re
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from harness import environments
from harness.arrays import load_arrays, save_arrays
from harness.bench import Bench
from harness.data import data_directory
from harness.entrant import Entrant
from harness.environments import EnvironmentFailure, python_of
from harness.growth import exponent, fit_exponent
from harness.judge import InvalidPrediction, precision_at, ranking_judge
from harness.problem import Split
from harness.runner import Case, Conditions, run_once
from harness.synthetic import Documents, make_documents
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import LinearSVC

TINY = Documents(
    n_train=100, n_test=25, n_features=300, n_labels=8, n_groups=3, words_per_document=30
)
SEED = 5
ENTRANTS = Path(__file__).resolve().parents[2] / "benchmarks" / "entrants"


def precision_by_counting(k, truth, labels):
    """The slow obvious twin of the judge: sets, row by row."""
    total = 0
    for right, ranked in zip(truth.toarray(), labels.tolist(), strict=True):
        total += len({label for label in ranked[:k] if label >= 0} & set(np.flatnonzero(right)))
    return total / (k * truth.shape[0])


@pytest.fixture(scope="module")
def outcomes():
    """Two settings of LinearSVC on a tiny problem, two rounds."""
    load, judge = (lambda: make_documents(TINY, SEED)), ranking_judge((1, 3))
    case = Case("tiny", load, judge, {"k": 3}, is_thorough=True)
    entrants = [
        Entrant("strong", "extreme/linearsvc.py", {"C": 1.0}),
        Entrant("weak", "extreme/linearsvc.py", {"C": 1.0}, {"tiny": {"C": 0.001}}),
    ]
    return Bench(Path(), SEED, rounds=2).compete(case, entrants, 60.0)


@pytest.mark.parametrize(("place", "C"), [(0, 1.0), (1, 0.001)])
def test_judges_an_entrant_as_counting_by_hand_does(outcomes, place, C):
    split = make_documents(TINY, SEED)
    labels = np.flatnonzero(split.train["Y"].getnnz(axis=0))
    model = OneVsRestClassifier(LinearSVC(C=C, random_state=SEED))
    model.fit(split.train["X"], split.train["Y"][:, labels])
    ranked = labels[np.argsort(-model.decision_function(split.test["X"]), axis=1)]
    for k in (1, 3):
        expected = precision_by_counting(k, split.truth["Y"], ranked)
        assert outcomes[place].figure(f"P@{k}") == pytest.approx(expected, abs=1e-12)


def test_a_run_has_times_memory_size_and_versions(outcomes):
    for outcome in outcomes:
        assert outcome.status == "ok"
        assert len(outcome.runs) == 2
        for run in outcome.runs:
            (lap,) = run.laps
            assert lap["fit_cpu_seconds"] > 0
            assert lap["fit_wall_seconds"] > 0
            assert lap["predict_cpu_seconds"] >= 0
            assert lap["single_row_ms"] > 0
            assert lap["peak_mb"] >= lap["fit_peak_mb"] >= lap["start_mb"] > 0
            assert lap["model_mb"] > 0
            assert lap["work"] is None  # scikit-learn does not count
            assert any(name.startswith("numpy ") for name in run.software)


def test_ratios_are_to_another_entrant_within_a_round(outcomes):
    first, second = outcomes
    assert first.ratio("fit_cpu_seconds", first) == 1.0
    times = [[run.figure("fit_cpu_seconds") for run in o.runs] for o in outcomes]
    expected = np.median(np.divide(times[1], times[0]))
    assert second.ratio("fit_cpu_seconds", first) == pytest.approx(expected)


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


def scripted(directory, name, text, environment="main", **more):
    script = directory / f"{name}.py"
    script.write_text(text)
    return Entrant(name, str(script), environment=environment, **more)


def run(entrants, judge=None, **conditions):
    case = Case("small", small_split, judge or ranking_judge((1,)))
    rounds, threads = conditions.pop("rounds", 1), conditions.pop("threads", (1,))
    limit = conditions.pop("limit", 60.0)
    return Bench(Path()).compete(case, entrants, limit, rounds=rounds, threads=threads)


def test_a_failed_entrant_is_kept_with_its_last_line_and_not_run_again(tmp_path):
    entrants = [scripted(tmp_path, name, text) for name, (text, _) in FAILURES.items()]
    entrants.append(scripted(tmp_path, "homeless", ECHO, environment="nowhere"))
    entrants.append(scripted(tmp_path, "works", ECHO))
    found = {outcome.name: outcome for outcome in run(entrants, rounds=2)}
    for name, (_, message) in FAILURES.items():
        assert found[name].error == message
        assert found[name].status == ("missing" if name == "import" else "failed")
        assert len(found[name].runs) == 1
    assert found["raises"].cell("fit_cpu_seconds") == "fails"
    assert found["import"].cell("fit_cpu_seconds") == "not installed"
    assert "must be one of main" in found["homeless"].error
    assert found["homeless"].status == "missing"
    assert found["works"].error is None
    assert found["works"].figure("P@1") == 0.25
    assert found["works"].ratio("fit_cpu_seconds", found["raises"]) is None


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="CPU time is read from /proc")
def test_a_run_that_used_up_its_cpu_time_is_stopped_and_a_sleeping_one_is_not(tmp_path):
    busy = scripted(tmp_path, "busy", "def fit(train, task):\n    while True: pass")
    idle = scripted(tmp_path, "idle", f"import time\n{ECHO}\ntime.sleep(2)")
    stopped, ended = run([busy, idle], limit=0.5)
    assert stopped.status == "stopped"
    assert re.fullmatch(r"stopped after \S+ CPU s", stopped.error)
    assert stopped.figure("stopped_cpu_seconds") >= 0.5
    assert re.fullmatch(r"> \d", stopped.cell("fit_cpu_seconds"))
    assert ended.status == "ok"


def test_entrants_take_turns_under_one_thread_limit(tmp_path, capsys):
    def judge(truth, answer):
        return dict(zip(("variable", "task"), answer["threads"], strict=True))

    entrants = [scripted(tmp_path, name, ECHO) for name in ("a", "b")]
    outcomes = run(entrants, judge, rounds=2, threads=(2,))
    turns = re.findall(r"small: (\w)", capsys.readouterr().err)
    assert turns == ["a", "b", "a", "b"]
    assert all(o.figure("variable") == o.figure("task") == 2 for o in outcomes)


SWEPT = """
def fit(train, task):
    return {"answer": [[task.settings["n"]] * 4]}
def figures(model):
    return {"n": model["answer"][0][0], "is_done": model["answer"][0][0] == 3}
"""
IMPROVED = """
import time
def refuse(data, task):
    return task.settings.get("why")
def solve(data, task, keep):
    for n in range(3):
        keep([n, n], n=n)
        keep.tell(last=n)
    while task.settings["goes_on"]:
        pass
"""


def answers(truth, answer):
    return {"first": float(np.ravel(answer["answer"])[0])}


def test_a_sweep_is_a_lap_for_each_setting_until_one_is_done(tmp_path):
    swept = scripted(tmp_path, "swept", SWEPT, sweep=[{"n": n} for n in (1, 2, 3, 4)])
    (outcome,) = run([swept], answers)
    assert [lap["n"] for lap in outcome.laps] == [1, 2, 3]
    assert [lap["first"] for lap in outcome.laps] == [1.0, 2.0, 3.0]
    assert outcome.cheapest("n", least=2) is not None
    assert outcome.cheapest("n", least=5) is None


@pytest.mark.parametrize("goes_on", [False, True])
def test_what_a_solver_kept_counts_however_it_ends(tmp_path, goes_on):
    entrant = scripted(tmp_path, "improved", IMPROVED).having(goes_on=goes_on)
    (outcome,) = run([entrant], answers, limit=0.5)
    assert outcome.status == ("stopped" if goes_on else "ok")
    assert [lap["first"] for lap in outcome.laps] == [0.0, 1.0, 2.0]
    assert outcome.figure("last") == (1 if goes_on else 2)  # what was told is written with a lap


def test_a_solver_may_refuse_a_problem(tmp_path):
    entrant = scripted(tmp_path, "picky", IMPROVED).having(why="too large", goes_on=False)
    (outcome,) = run([entrant], answers)
    assert (outcome.status, outcome.error, outcome.end()) == ("refused", "too large", "skipped")


def test_a_quick_bench_builds_no_environment(tmp_path, monkeypatch):
    monkeypatch.setattr(environments, "DIRECTORY", tmp_path)
    case = Case("small", small_split, ranking_judge((1,)))
    absent = Entrant("pecos", "extreme/pecos_xlinear.py", environment="pecos")
    found = run_once(case, absent, Conditions(is_building=False))
    assert (found.status, found.error) == ("missing", "environment pecos: not installed")
    assert list(tmp_path.iterdir()) == []


def test_an_environment_that_cannot_be_built_is_tried_once(tmp_path, monkeypatch):
    calls = []

    def call(command):
        calls.append(command)
        raise EnvironmentFailure("no such package")

    monkeypatch.setattr(environments, "DIRECTORY", tmp_path)
    monkeypatch.setattr(environments, "_call", call)
    for _ in range(2):
        with pytest.raises(EnvironmentFailure, match="no such package"):
            python_of("pecos")
    assert len(calls) == 1
    assert not environments.is_installed("pecos")


def test_the_exponent_is_that_of_known_costs():
    assert exponent([2, 4, 8], [4.0, None, 64.0]) == pytest.approx(2.0)
    assert exponent([2, 4], [4.0, None]) is None


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


def test_settings_of_a_problem_override_the_common_ones():
    entrant = Entrant("a", "a.py", {"C": 1, "tol": 0.1}, {"bibtex": {"C": 2}})
    assert entrant.settings_for("bibtex") == {"C": 2, "tol": 0.1}
    assert entrant.having(C=3).settings_for("delicious") == {"C": 3, "tol": 0.1}


def test_the_extreme_benchmark_names_only_what_exists():
    import extreme

    names = {entrant.name for entrant in extreme.ENTRANTS}
    assert len(names) == len(extreme.ENTRANTS)
    assert all((ENTRANTS / entrant.script).is_file() for entrant in extreme.ENTRANTS)
    assert all(set(entrants) <= names for entrants, _, _ in extreme.CONTESTS.values())
    assert {*extreme.CONTESTS} <= {problem.name for problem in extreme.PROBLEMS}
