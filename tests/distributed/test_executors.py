"""One table of tests for all that run blocks: threads, Dask and Ray. The same bits after killed
workers, stragglers, workers of another version, a lack of memory and an interrupted client. All
with real processes; Ray's rows are skipped where it is not installed."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from sublearn import distributed
from sublearn.distributed import cluster
from sublearn.errors import ClusterError, ParameterError
from sublearn.execution import Hints, map_blocks, n_places_elsewhere
from sublearn.extreme import PPDSparseClassifier

resource = pytest.importorskip("resource", reason="limits are set otherwise on Windows")
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]
SLOW = {"loss": "hinge", "tol": 1e-300, "max_iter": 300, "random_state": 0}  # a while for each part
LONG = 120  # seconds: what ends at all ends long before
ELSEWHERE = ["dask", "ray"]
ALL = ["threads", *ELSEWHERE]


@pytest.fixture(scope="session")
def ray():
    os.environ["RAY_AUTH_MODE"] = "token"
    os.environ.setdefault("RAY_AUTH_TOKEN", os.urandom(32).hex())  # none is written into the home
    os.environ["RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"] = "0"
    ray = pytest.importorskip("ray", reason="Ray is an extra")  # reads these as it is imported
    ray.init(num_cpus=2, include_dashboard=False, object_store_memory=80 * 2**20,
             log_to_driver=False)  # fmt: skip
    yield ray
    ray.shutdown()


class Backend:
    """Who runs blocks: how to enter it, and how a client in another process does."""

    def __init__(self, name, enter, address=""):
        self.name, self.enter, self.address = name, enter, address


@pytest.fixture
def backend(request):
    name = request.param
    if name == "threads":
        return Backend(name, contextlib.nullcontext)
    if name == "dask":
        client = request.getfixturevalue("client")
        return Backend(name, lambda **options: cluster(client, **options),
                       client.scheduler.address)  # fmt: skip
    ray = request.getfixturevalue("ray")
    address = ray.get_runtime_context().gcs_address
    return Backend(name, distributed.ray_cluster, address)


def everywhere(names=ALL):
    return pytest.mark.parametrize("backend", names, indirect=True)


@pytest.fixture(scope="module")
def alone(labels):
    return PPDSparseClassifier(**SLOW).fit(*labels)


def assert_same(a, b):
    for name in ("data", "indices", "indptr"):
        left, right = getattr(a.model_.weights, name), getattr(b.model_.weights, name)
        assert left.tobytes() == right.tobytes()
    assert a.intercept_.tobytes() == b.intercept_.tobytes()
    assert a.objective_ == b.objective_


def wait_for(condition, process=None):
    ends = time.monotonic() + LONG
    while not condition() and time.monotonic() < ends:
        assert process is None or process.poll() is None, "the process ended too early"
        time.sleep(0.02)
    assert condition()


# --- healthy workers ---------------------------------------------------------------------------


@everywhere()
def test_blocks_stand_in_order_with_their_arrays_and_count_here(backend):
    arrived, big = [], np.arange(100_000)

    def take(result):
        arrived.append(result[0])
        return result

    with backend.enter():
        hints = Hints(lambda k: k, take)
        found = map_blocks(lambda k: (k, int(big[k]), os.getpid()), range(8), hints=hints)
        assert map_blocks(abs, []) == []
        assert map_blocks(lambda _: os.getpid(), [0], stay_here=True) == [os.getpid()]
        places = n_places_elsewhere()
    assert [(k, value) for k, value, _ in found] == [(k, k) for k in range(8)]
    is_elsewhere = backend.name != "threads"
    assert places == 2 * is_elsewhere
    assert sorted(arrived) == (list(range(8)) if is_elsewhere else [])
    assert (os.getpid() in {pid for *_, pid in found}) != is_elsewhere
    assert n_places_elsewhere() == 0


@everywhere()
def test_the_model_is_that_of_one_process_with_and_without_a_file(backend, labels, tmp_path):
    first = PPDSparseClassifier(random_state=0).fit(*labels)
    with backend.enter():
        assert_same(PPDSparseClassifier(random_state=0, n_jobs=2).fit(*labels), first)
        path = tmp_path / "model"
        assert_same(PPDSparseClassifier(random_state=0, model_path=path).fit(*labels), first)
    assert os.listdir(tmp_path) == ["model"]


@everywhere()
def test_an_error_of_a_block_is_raised_here_as_it_is(backend):
    with backend.enter(), pytest.raises(ZeroDivisionError):
        map_blocks(lambda x: 1 / x, [1, 0])


@everywhere(ELSEWHERE)
def test_a_wish_to_stop_ends_the_blocks_here(backend):
    here, asked = os.getpid(), []

    def stop():
        asked.append(None)
        return len(asked) > 2

    def do(k):
        if os.getpid() != here:
            time.sleep(1.0)
        return k, os.getpid() == here

    with backend.enter():
        found = map_blocks(do, range(6), hints=Hints(asks_to_stop=stop))
    assert [k for k, _ in found] == list(range(6))
    assert any(is_here for _, is_here in found)


# --- faults ------------------------------------------------------------------------------------


@everywhere(ELSEWHERE)
def test_workers_that_are_killed_change_nothing(backend, labels, alone, tmp_path):
    """One ends in a block, one between two parts of a fit."""
    marks = tmp_path / "marks"
    marks.mkdir()

    def do(k):
        with contextlib.suppress(FileExistsError):
            if k == 0:
                (marks / "ended").touch(exist_ok=False)
                os.kill(os.getpid(), signal.SIGKILL)
        return k

    class KillOnce:
        """A callback that kills a process that has written a part."""

        killed = None

        def __call__(self, event):
            if self.killed is None and blocks.tasks:
                self.killed = pids[0]
                os.kill(self.killed, signal.SIGKILL)

    with backend.enter() as blocks:
        assert map_blocks(do, range(2)) == [0, 1]
        pids = map_blocks(lambda _: os.getpid(), range(2))
        blocks.tasks.clear()
        kill = KillOnce()
        model = PPDSparseClassifier(**SLOW, callback=kill, model_path=tmp_path / "m").fit(*labels)
    assert kill.killed is not None
    assert_same(model, alone)
    assert not (tmp_path / "m.parts").exists()


@everywhere(ELSEWHERE)
def test_a_block_that_ends_every_worker_is_an_error_that_says_so(backend):
    def do(k):
        if k == 1:
            os._exit(1)
        return k

    with backend.enter(), pytest.raises(ClusterError, match="ended every worker that tried it"):
        map_blocks(do, range(3))


@everywhere(ELSEWHERE)
def test_a_straggler_is_passed_by(backend, tmp_path):
    """One worker is stopped while it has a block; it is begun again on the other one."""

    def do(k):
        time.sleep(0.05)
        with contextlib.suppress(FileExistsError):
            if k == 2:
                (tmp_path / "stopped").touch(exist_ok=False)
                (tmp_path / "pid").write_text(str(os.getpid()))
                os.kill(os.getpid(), signal.SIGSTOP)
        return k

    with backend.enter():
        try:
            assert map_blocks(do, range(6)) == list(range(6))
        finally:
            os.kill(int((tmp_path / "pid").read_text()), signal.SIGCONT)


@everywhere(ELSEWHERE)
def test_workers_of_another_version_are_refused_with_both(backend, monkeypatch):
    module = sys.modules[f"sublearn.distributed.on_{backend.name}"]
    with backend.enter():
        monkeypatch.setattr(module, "__version__", "0.0.9")
        with pytest.raises(ClusterError, match=r"got 0\.0\.9 in the client and .* in the worker"):
            map_blocks(abs, [-1])
        monkeypatch.undo()
        assert map_blocks(abs, [-1]) == [1]


@everywhere()
def test_a_lack_of_memory_is_tried_again_and_told(backend, tmp_path):
    """The system refuses memory to the process that runs the block."""

    def do(k, n_failures):
        mark = tmp_path / f"{n_failures}-{k}"
        n_tries = len(mark.read_text()) if mark.exists() else 0
        mark.write_text("." * (n_tries + 1))
        before = resource.getrlimit(resource.RLIMIT_AS)
        try:
            if n_tries < n_failures:
                resource.setrlimit(resource.RLIMIT_AS, (2**32 + 2**33, before[1]))
            return np.ones(2**37 if n_tries < n_failures else 1, dtype=np.uint8).sum()
        finally:
            resource.setrlimit(resource.RLIMIT_AS, before)

    with backend.enter():
        if backend.name != "threads":
            assert map_blocks(lambda k: do(k, 1), range(2)) == [1, 1]
        with pytest.raises(MemoryError):
            map_blocks(lambda k: do(k, 100), [0])


FIT = """
import contextlib, sys
import numpy as np, scipy.sparse as sp
from sublearn import distributed
from sublearn.extreme import PPDSparseClassifier

who, address, path, data = sys.argv[1:]
arrays = np.load(data)
X = sp.csr_matrix((arrays["x"], arrays["xi"], arrays["xp"]), shape=tuple(arrays["xs"]))
Y = sp.csr_matrix((arrays["y"], arrays["yi"], arrays["yp"]), shape=tuple(arrays["ys"]))
with contextlib.ExitStack() as stack:
    if who == "dask":
        from distributed import Client
        stack.enter_context(distributed.cluster(stack.enter_context(Client(address))))
    if who == "ray":
        import ray
        ray.init(address=address, log_to_driver=False)
        stack.enter_context(distributed.ray_cluster())
    print("begins", flush=True)
    PPDSparseClassifier(loss="hinge", tol=1e-300, max_iter=MOST, random_state=0,
                        model_path=path).fit(X, Y)
"""


@everywhere()
def test_an_interrupted_client_ends_and_the_next_one_goes_on(backend, labels, tmp_path, request):
    X, Y = labels
    path, data = tmp_path / "model", tmp_path / "labels.npz"
    np.savez(data, x=X.data, xi=X.indices, xp=X.indptr, xs=X.shape, y=Y.data, yi=Y.indices,
             yp=Y.indptr, ys=Y.shape)  # fmt: skip
    most = 1500 if backend.name != "threads" else 20_000  # one part only: it must be at work
    command = [sys.executable, "-c", FIT.replace("MOST", str(most)), backend.name, backend.address,
               str(path), str(data)]  # fmt: skip
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        assert process.stdout.readline() == b"begins\n"
        folder = Path(f"{path}.parts")
        is_begun = "part-*" if backend.name != "threads" else "plan.json"
        wait_for(lambda: list(folder.glob(is_begun)), process)
        process.send_signal(signal.SIGINT)
        assert process.wait(LONG) != 0
    finally:
        process.kill()
        process.stdout.close()
        process.wait()
    parts = {file.name for file in folder.glob("part-*")}
    assert not path.exists()
    options = SLOW | {"max_iter": most if backend.name != "threads" else 20}
    if backend.name == "threads":
        return
    seen = []
    with backend.enter():
        model = PPDSparseClassifier(
            **options, model_path=path,
            callback=lambda event: seen.append({file.name for file in folder.glob("part-*")}),
        ).fit(X, Y)  # fmt: skip
    assert seen[0] >= parts
    assert_same(model, PPDSparseClassifier(**options).fit(X, Y))


# --- refusals ----------------------------------------------------------------------------------


@pytest.fixture
def no_ray():
    return pytest.importorskip("ray", reason="Ray is an extra")


def test_refuses_a_ray_that_is_not_connected(no_ray):
    if no_ray.is_initialized():
        pytest.skip("Ray is connected in this process by another test")
    with pytest.raises(ParameterError, match=r"ray_cluster: ray must be connected \(call ray.init"):
        distributed.ray_cluster().__enter__()


def test_refuses_retries_that_are_no_number(no_ray):
    with pytest.raises(ParameterError, match="ray_cluster: retries must be an integer"):
        distributed.ray_cluster(retries=-1).__enter__()


def test_a_name_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'mesos'"):
        distributed.mesos  # noqa: B018
