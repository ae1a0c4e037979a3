"""PPDSparseClassifier with a model_path: the model grows on disk, and a killed fit goes on.

Journals are written after each block of labels here, so that small problems have many parts.
"""

import json
import os
import pickle
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import normalize

import sublearn
from sublearn.errors import ParameterError
from sublearn.extreme import PPDSparseClassifier, fit_journal, ppd_solve

N_LABELS = 37
LONG = 60  # seconds: what ends at all ends long before


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    monkeypatch.setattr(ppd_solve, "_JOURNAL_BLOCKS", 1)


def problem(n_rows=150, n_features=40, n_labels=N_LABELS, seed=0):
    rng = np.random.default_rng(seed)
    X = sp.random(n_rows, n_features, 0.2, "csr", random_state=rng, data_rvs=rng.standard_normal)
    scores = X @ rng.normal(size=(n_features, n_labels))
    Y = scores > np.quantile(scores, 0.93)
    Y[:, 4] = False  # a label without rows
    return normalize(X), Y


def solver(path, **options):
    return PPDSparseClassifier(**({"random_state": 0, "model_path": path} | options))


def parts(path):
    return sorted(Path(f"{path}.parts").glob("part-*"))


def arrays(model):
    weights = model.model_.weights
    return weights.data, weights.indices, weights.indptr, model.intercept_


def assert_same(a, b):
    for left, right in zip(arrays(a), arrays(b), strict=True):
        assert left.tobytes() == right.tobytes()
        assert left.dtype == right.dtype
    assert a.objective_ == b.objective_
    assert a.certificate_ == b.certificate_
    assert a.classes_.tolist() == b.classes_.tolist()


class StopWhen:
    """A callback that stops a fit once so many parts are written."""

    def __init__(self, path, n_parts, error=None):
        self.path, self.n_parts, self.error = path, n_parts, error

    def __call__(self, event):
        if len(parts(self.path)) < self.n_parts:
            return False
        if self.error is not None:
            raise self.error
        return True


def slow_problem():
    """A fit of some seconds, whatever it reaches, in 25 parts."""
    X, Y = problem(n_rows=300, n_labels=200)
    return X, Y, {"loss": "hinge", "tol": 1e-300, "max_iter": 2000}


def cut_short(path, n_parts=2, **options):
    """The journal of a fit that ended by an exception after so many parts; what it had so far."""
    X, Y, slow = slow_problem()
    stop = StopWhen(path, n_parts, error=LookupError("from the callback"))
    with pytest.raises(LookupError):
        solver(path, callback=stop, **slow, **options).fit(X, Y)
    found = {file.name: file.read_bytes() for file in parts(path)}
    assert n_parts <= len(found) < 25
    return found


# --- the same model ----------------------------------------------------------------------------


@pytest.mark.parametrize("search", ["exact", "sparsified"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_labels", [1, 8, 16, 37])
def test_a_streamed_model_is_the_model_in_memory_bit_for_bit(tmp_path, n_labels, dtype, search):
    X, Y = problem()
    X, Y = X.astype(dtype), sp.csr_matrix(Y[:, 20 : 20 + n_labels])
    path = tmp_path / "model"
    in_memory = solver(None, search=search).fit(X, Y)
    streamed = solver(path, search=search).fit(X, Y)
    assert_same(streamed, in_memory)
    assert os.listdir(tmp_path) == ["model"]
    assert_same(sublearn.load(path), in_memory)
    np.testing.assert_array_equal(streamed.decision_function(X), in_memory.decision_function(X))
    assert streamed.n_iter_ == in_memory.n_iter_
    assert not streamed.coef_.data.flags.writeable


@pytest.mark.parametrize("n_blocks", [1, 2, 64])
@pytest.mark.parametrize("n_jobs", [1, 2, 3])
def test_a_streamed_model_depends_on_neither_threads_nor_parts(
    tmp_path, monkeypatch, n_jobs, n_blocks
):
    monkeypatch.setattr(ppd_solve, "_JOURNAL_BLOCKS", n_blocks)
    X, Y = problem()
    assert_same(solver(tmp_path / "m", n_jobs=n_jobs).fit(X, Y), solver(None).fit(X, Y))


@pytest.mark.parametrize("window", [1, 7, 100, 10**9])
def test_windows_of_any_size_gather_the_same_weights(tmp_path, monkeypatch, window):
    monkeypatch.setattr(fit_journal, "_WINDOW", window)
    X, Y = problem()
    X = sp.hstack([sp.csr_matrix((150, 2)), X, sp.csr_matrix((150, 3))], "csr")
    assert_same(solver(tmp_path / "m").fit(X, Y), solver(None).fit(X, Y))


def test_a_model_without_any_weight_is_streamed_too(tmp_path):
    X, Y = problem()
    model = solver(tmp_path / "m", l1=1e6).fit(X, Y)
    assert model.coef_.nnz == 0
    assert_same(sublearn.load(tmp_path / "m"), solver(None, l1=1e6).fit(X, Y))


def forms():
    X, Y = problem()
    y = np.asarray(X @ np.random.default_rng(0).normal(size=(40, 20))).argmax(axis=1)
    return {
        "binary": (y == 0, {"class_weight": {True: 2.0}}),
        "classes": ([f"class {k}" for k in y], {"class_weight": "balanced"}),
        "lists": ([[f"λ{k}" for k in np.flatnonzero(row)] for row in Y], {"prune": 0.05}),
        "indicator": (
            sp.csr_matrix(Y),
            {"class_weight": np.arange(N_LABELS), "fit_intercept": "fixed"},
        ),
    }


@pytest.mark.parametrize("form", ["binary", "classes", "lists", "indicator"])
def test_streams_labels_in_any_form_with_any_weights(tmp_path, form):
    X, _ = problem()
    y, options = forms()[form]
    weights = np.random.default_rng(0).integers(0, 4, 150)
    in_memory = solver(None, **options).fit(X, y, sample_weight=weights)
    streamed = solver(tmp_path / "m", **options).fit(X, y, sample_weight=weights)
    assert_same(streamed, in_memory)
    loaded = sublearn.load(tmp_path / "m")
    for model in (streamed, loaded):
        np.testing.assert_array_equal(model.predict_top_k(X, 2), in_memory.predict_top_k(X, 2))


def test_opens_no_more_files_than_a_chunk_needs(tmp_path):
    # Each mapped array keeps a file open, and a system allows a process about a thousand.
    resource = pytest.importorskip("resource")
    X, Y = problem(n_labels=400)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    n_open = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 128
    resource.setrlimit(resource.RLIMIT_NOFILE, (n_open + 64, hard))
    try:
        streamed = solver(tmp_path / "m").fit(X, Y)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert_same(streamed, solver(None).fit(X, Y))


# --- going on ----------------------------------------------------------------------------------

CHILD = """
import sys
import numpy as np
sys.path.insert(0, sys.argv[1])
import test_ppd_sparse_streaming as here
here.ppd_solve._JOURNAL_BLOCKS = 1
X, Y, slow = here.slow_problem()
print("ready", flush=True)
try:
    here.solver(sys.argv[2], n_jobs=int(sys.argv[3]), **slow).fit(X, Y)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


def run_and_end(path, how, n_jobs=1, n_parts=2):
    """Fit in a process of its own, and send it a signal once parts are there."""
    command = [sys.executable, "-c", CHILD, str(Path(__file__).parent), str(path), str(n_jobs)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as fit:
        try:
            assert fit.stdout.readline() == "ready\n"
            ends = time.monotonic() + LONG
            while len(parts(path)) < n_parts and time.monotonic() < ends:
                time.sleep(0.005)
            fit.send_signal(how)
            rest, _ = fit.communicate(timeout=LONG)
        finally:
            fit.kill()
    return rest


@pytest.mark.skipif(os.name == "nt", reason="signals are sent otherwise on Windows")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_refuses_the_path_of_a_fit_that_runs_in_another_process(tmp_path, uninterrupted):
    path = tmp_path / "model"
    X, Y, slow = slow_problem()
    command = [sys.executable, "-c", CHILD, str(Path(__file__).parent), str(path), "1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as fit:
        try:
            assert fit.stdout.readline() == "ready\n"
            ends = time.monotonic() + LONG
            while not parts(path) and time.monotonic() < ends:
                time.sleep(0.005)
            fit.send_signal(signal.SIGSTOP)
            with pytest.raises(ValueError, match=RUNNING):
                solver(path, **slow).fit(X, Y)
        finally:
            fit.kill()
    assert Path(f"{path}.lock").exists()  # of a process that is dead: it locks nothing
    assert_same(solver(path, **slow).fit(X, Y), uninterrupted)
    assert os.listdir(tmp_path) == ["model"]


RUNNING = (
    r"^PPDSparseClassifier\.model_path must not be the file of a fit that is still running, got "
)


def test_refuses_the_path_of_a_fit_that_runs_in_this_process(tmp_path):
    X, Y, slow = slow_problem()
    refusals = []

    def fit_again(event):
        with pytest.raises(ValueError, match=RUNNING) as refusal:
            solver(tmp_path / "m").fit(X, Y)
        refusals.append(refusal)
        return True

    with pytest.warns(ConvergenceWarning, match="the callback asked to stop"):
        solver(tmp_path / "m", callback=fit_again, **slow).fit(X, Y)
    assert refusals
    assert sorted(os.listdir(tmp_path)) == ["m", "m.parts"]


@pytest.fixture(scope="module")
def uninterrupted():
    X, Y, slow = slow_problem()
    with pytest.warns(ConvergenceWarning):
        return solver(None, **slow).fit(X, Y)


@pytest.mark.skipif(os.name == "nt", reason="signals are sent otherwise on Windows")
@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("how", ["SIGKILL", "SIGINT"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_killed_fit_goes_on_to_the_same_model(tmp_path, uninterrupted, how, n_jobs):
    path = tmp_path / "model"
    rest = run_and_end(path, getattr(signal, how), n_jobs)
    assert rest == ("interrupted\n" if how == "SIGINT" else "")
    before = {file.name: file.stat().st_mtime_ns for file in parts(path)}
    assert 2 <= len(before) < 25
    assert not path.exists()
    X, Y, slow = slow_problem()
    seen = []

    def watch(event):
        now = {file.name: file.stat().st_mtime_ns for file in parts(path)}
        if len(now) < 25:  # at the end the folder is removed
            seen.append({name: now.get(name) for name in before})
        return False

    model = solver(path, callback=watch, **slow).fit(X, Y)
    assert seen[0] == before  # finished parts are not written again
    assert_same(model, uninterrupted)
    assert_same(sublearn.load(path), uninterrupted)
    assert os.listdir(tmp_path) == ["model"]
    assert model.trace_["labels"][-1] == Y.any(axis=0).sum()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_time_of_several_parts_and_of_several_calls_adds_up(tmp_path):
    path = tmp_path / "model"
    X, Y, slow = slow_problem()
    cut_short(path, n_parts=5)
    journal_seconds = [
        load_seconds(file).max() for file in parts(path)
    ]  # of parts of about equal cost
    assert (np.diff(journal_seconds) > 0).all()
    model = solver(path, **slow).fit(X, Y)
    for trace in (model.trace_, sublearn.load(path).trace_):
        assert (np.diff(trace["seconds"]) >= 0).all()
        assert trace["seconds"][-1] > journal_seconds[-1]
        assert len(np.unique(trace["seconds"])) == 25
        assert (np.diff(trace["labels"]) > 0).all()
        assert (np.diff(trace["objective"]) > 0).all()


def load_seconds(file):
    return fit_journal.load_bundle(file).arrays["reports.seconds"]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_stop_by_the_callback_saves_what_is_there_and_goes_on_later(tmp_path, uninterrupted):
    path = tmp_path / "model"
    X, Y, slow = slow_problem()
    stopped = solver(path, callback=StopWhen(path, 3), **slow)
    with pytest.warns(ConvergenceWarning, match="the callback asked to stop"):
        stopped.fit(X, Y)
    assert stopped.certificate_ == np.inf
    n_parts = len(parts(path))
    assert 3 <= n_parts < 25
    for model in (stopped, sublearn.load(path)):
        trained = model.coef_.toarray().any(axis=1)
        assert 8 * n_parts - 8 <= trained.sum() < 190
        assert (model.intercept_[~trained] == -1).all()
        same = model.coef_.toarray()[trained] == uninterrupted.coef_.toarray()[trained]
        assert same.all(axis=1).sum() >= 8 * n_parts - 8
    assert_same(solver(path, **slow).fit(X, Y), uninterrupted)
    assert os.listdir(tmp_path) == ["model"]


def test_progress_counts_the_labels_of_earlier_calls(tmp_path):
    path = tmp_path / "model"
    cut_short(path)
    n_parts = len(parts(path))
    X, Y, slow = slow_problem()
    events = []

    def stop_at_once(event):
        events.append(event)
        return event.n_done >= 8 * n_parts

    with pytest.warns(ConvergenceWarning):
        solver(path, callback=stop_at_once, **slow).fit(X, Y)
    assert events[0].n_total == 200
    assert events[-1].n_done >= 8 * n_parts


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[: len(data) // 2],
        lambda data: data + b"x",
        lambda data: b"no part at all",
    ],
    ids=["half", "long", "foreign"],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_damaged_part_is_solved_again(tmp_path, uninterrupted, damage):
    path = tmp_path / "model"
    found = cut_short(path)
    first = parts(path)[0]
    first.write_bytes(damage(found[first.name]))
    X, Y, slow = slow_problem()
    assert_same(solver(path, **slow).fit(X, Y), uninterrupted)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_part_of_other_labels_is_solved_again(tmp_path, uninterrupted):
    path = tmp_path / "model"
    cut_short(path)
    first, second = parts(path)[:2]
    second.write_bytes(first.read_bytes())
    (first.parent / "part-000999.safetensors").write_bytes(first.read_bytes())
    X, Y, slow = slow_problem()
    assert_same(solver(path, **slow).fit(X, Y), uninterrupted)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_parts_without_a_plan_are_not_trusted(tmp_path, uninterrupted):
    path = tmp_path / "model"
    cut_short(path, random_state=5)
    (tmp_path / "model.parts" / "plan.json").unlink()
    X, Y, slow = slow_problem()
    assert_same(solver(path, **slow).fit(X, Y), uninterrupted)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_goes_on_with_parts_of_another_size(tmp_path, monkeypatch, uninterrupted):
    path = tmp_path / "model"
    cut_short(path)
    monkeypatch.setattr(ppd_solve, "_JOURNAL_BLOCKS", 3)
    X, Y, slow = slow_problem()
    assert_same(solver(path, **slow).fit(X, Y), uninterrupted)


@pytest.mark.parametrize("random_state", [None, np.random.RandomState(3)])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_fit_without_a_seed_goes_on_with_the_seed_of_its_journal(tmp_path, random_state):
    path = tmp_path / "model"
    cut_short(path, random_state=random_state)
    seed = json.loads((tmp_path / "model.parts" / "plan.json").read_text())["seed"]
    X, Y, slow = slow_problem()
    resumed = solver(path, **slow, random_state=random_state).fit(X, Y)
    assert_same(resumed, solver(None, **slow, random_state=seed).fit(X, Y))


@pytest.mark.parametrize("make", [np.random.RandomState, np.random.default_rng])
def test_a_generator_gives_the_streamed_model_the_seed_it_would_give_the_other(tmp_path, make):
    X, Y = problem()
    in_memory = solver(None, random_state=make(3)).fit(X, Y)
    assert_same(solver(tmp_path / "m", random_state=make(3)).fit(X, Y), in_memory)


# --- plans -------------------------------------------------------------------------------------

REFUSED = "^model_path must not have the unfinished parts of another fit beside it: .* differs in "

CHANGES = {
    "C": {"C": 2.0},
    "l1": {"l1": 0.2},
    "loss": {"loss": "squared_hinge"},
    "fit_intercept": {"fit_intercept": "fixed"},
    "search": {"search": "sparsified"},
    "tol": {"tol": 1e-200},
    "max_iter": {"max_iter": 2001},
    "prune": {"prune": 0.1},
    "seed": {"random_state": 1},
    "weights": {"class_weight": "balanced"},
    "C, l1": {"C": 2.0, "l1": 0.3},
}


@pytest.fixture(scope="module")
def journal(tmp_path_factory):
    """A journal that every refusal must leave as it is."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ppd_solve, "_JOURNAL_BLOCKS", 1)
        path = tmp_path_factory.mktemp("journal") / "model"
        cut_short(path)
    return path


@pytest.mark.parametrize("names", CHANGES)
def test_refuses_to_go_on_with_other_parameters(journal, names):
    X, Y, slow = slow_problem()
    before = {file.name: file.read_bytes() for file in parts(journal)}
    with pytest.raises(ValueError, match=f"{REFUSED}{names}; remove it to start again$"):
        solver(journal, **(slow | CHANGES[names])).fit(X, Y)
    assert {file.name: file.read_bytes() for file in parts(journal)} == before


def test_refuses_to_go_on_with_other_data(journal):
    X, Y, slow = slow_problem()
    model = solver(journal, **slow)
    other, flipped = X.copy(), Y.copy()
    other.data[7] *= 1.001
    flipped[3, 5] = ~flipped[3, 5]
    wider = sp.hstack([X, sp.csr_matrix((300, 1))], "csr")
    for features, labels, weights, names in [
        (other, Y, None, "X"),
        (wider, Y, None, "X"),
        (X.astype(np.float32), Y, None, "X"),
        (X, flipped, None, "y"),
        (X, Y[:, :-1], None, "y"),
        (X, Y, np.arange(300) + 1.0, "weights"),
        (other, flipped, None, "X, y"),
    ]:
        with pytest.raises(ValueError, match=f"{REFUSED}{names}; remove it"):
            model.fit(features, labels, sample_weight=weights)


@pytest.mark.parametrize("text", ["{", "[1]", "", "3", '"x"'])
def test_refuses_a_plan_that_is_none(tmp_path, text):
    X, Y = problem()
    folder = tmp_path / "model.parts"
    folder.mkdir()
    (folder / "plan.json").write_text(text)
    with pytest.raises(ValueError, match=r"plan\.json: not the plan of a fit"):
        solver(tmp_path / "model").fit(X, Y)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_parameters_in_numpy_types_are_the_same_plan(tmp_path, uninterrupted):
    path = tmp_path / "model"
    cut_short(path)
    X, Y, slow = slow_problem()
    slow |= {"max_iter": np.int64(slow["max_iter"]), "C": np.float32(1), "l1": np.float64(0.1)}
    assert_same(solver(str(path), **slow, random_state=np.int64(0)).fit(X, Y), uninterrupted)


# --- warm starts -------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_warm_fit_goes_on_from_the_same_start_only(tmp_path):
    path = tmp_path / "model"
    X, Y, slow = slow_problem()
    first = PPDSparseClassifier(random_state=0).fit(X, Y)
    first.save(tmp_path / "first")

    def restarted(**options):
        model = sublearn.load(tmp_path / "first")
        return model.set_params(**slow, warm_start=True, **options)

    stop = StopWhen(path, 2, error=LookupError())
    with pytest.raises(LookupError):
        restarted(model_path=path, callback=stop).fit(X, Y)
    with pytest.raises(ValueError, match=f"{REFUSED}start; remove it"):
        solver(path, **slow).fit(X, Y)
    other_start = PPDSparseClassifier(random_state=1).fit(X, Y)
    with pytest.raises(ValueError, match=f"{REFUSED}start; remove it"):
        other_start.set_params(**slow, warm_start=True, model_path=path, random_state=0).fit(X, Y)
    assert_same(restarted(model_path=path).fit(X, Y), restarted().fit(X, Y))


def test_a_streamed_model_starts_the_next_one_in_the_same_file(tmp_path):
    X, Y = problem()
    streamed = solver(tmp_path / "m", warm_start=True).fit(X, Y).set_params(C=2.0).fit(X, Y)
    in_memory = solver(None, warm_start=True).fit(X, Y).set_params(C=2.0).fit(X, Y)
    assert_same(streamed, in_memory)
    assert_same(sublearn.load(tmp_path / "m"), in_memory)


# --- files, copies, refusals -------------------------------------------------------------------


def test_a_second_fit_replaces_the_file_under_the_first_model(tmp_path):
    X, Y = problem()
    first = solver(tmp_path / "m").fit(X, Y)
    scores = first.decision_function(X)
    second = solver(tmp_path / "m", l1=1.0).fit(X, Y)
    np.testing.assert_array_equal(first.decision_function(X), scores)
    assert_same(sublearn.load(tmp_path / "m"), second)


def test_labels_are_added_in_memory_and_the_file_stays(tmp_path):
    X, Y = problem()
    path = tmp_path / "m"
    model = solver(path).fit(X, Y[:, :20])
    on_disk = path.read_bytes()
    model.partial_fit(X, Y)
    assert model.coef_.shape[0] == N_LABELS
    assert path.read_bytes() == on_disk
    assert os.listdir(tmp_path) == ["m"]
    first = solver(tmp_path / "n").partial_fit(X, Y)
    assert_same(sublearn.load(tmp_path / "n"), first)


def test_copies_of_a_streamed_model_are_as_those_of_others(tmp_path):
    X, Y = problem()
    path = tmp_path / "m"
    model = solver(path).fit(X, Y)
    assert model.get_params()["model_path"] == path
    assert clone(model).model_path == path
    assert_same(pickle.loads(pickle.dumps(model)), model)
    assert sublearn.load(path).model_path is None
    model.save(tmp_path / "other")
    assert_same(sublearn.load(tmp_path / "other"), model)


def test_makes_the_folders_of_the_path(tmp_path):
    X, Y = problem()
    solver(tmp_path / "a" / "b" / "model").fit(X, Y)
    assert os.listdir(tmp_path / "a" / "b") == ["model"]


def test_refuses_a_path_that_cannot_be_written_before_the_fit(tmp_path):
    X, Y = problem()
    with pytest.raises(ValueError, match=r"^model_path must be the name of a file, got a folder"):
        solver(tmp_path).fit(X, Y)
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(OSError, match="file"):
        solver(tmp_path / "file" / "model").fit(X, Y)
    for path in (3, [], b"bytes"):
        with pytest.raises(ParameterError, match=r"^PPDSparseClassifier\.model_path must be"):
            solver(path).fit(X, Y)
    assert os.listdir(tmp_path) == ["file"]


def test_refuses_labels_that_no_file_holds_before_the_fit(tmp_path):
    X, Y = problem()
    days = np.array(["2020-01-01", "2021-01-01"], dtype="M8[D]")[Y[:, 0].astype(int)]
    with pytest.raises(TypeError, match="classes_"):
        solver(tmp_path / "m").fit(X, days)
    with pytest.raises(TypeError, match="classes_"):
        solver(tmp_path / "m").fit(X, np.array([int, float])[Y[:, 0].astype(int)])
    assert os.listdir(tmp_path) == []
