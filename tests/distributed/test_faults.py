"""Workers that die, come late or hang, clients and schedulers that end: the same model, or a clear
word and a folder to go on from. Real processes are stopped and killed."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from sublearn.distributed import RowBlocks, cluster, fit_by_rows
from sublearn.errors import ClusterError
from sublearn.execution import map_blocks
from sublearn.extreme import PPDSparseClassifier
from sublearn.io import save_svmlight
from sublearn.linear import SparseLogisticRegression

pytestmark = [
    pytest.mark.skipif(os.name == "nt", reason="signals are sent otherwise on Windows"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]
SLOW = {"loss": "hinge", "tol": 1e-300, "max_iter": 300, "random_state": 0}  # a while for each part
LONG = 120  # seconds: what ends at all ends long before


def assert_same(a, b):
    for name in ("data", "indices", "indptr"):
        left, right = getattr(a.model_.weights, name), getattr(b.model_.weights, name)
        assert left.tobytes() == right.tobytes()
    assert a.intercept_.tobytes() == b.intercept_.tobytes()
    assert a.objective_ == b.objective_


@pytest.fixture(scope="module")
def alone(labels):
    return PPDSparseClassifier(**SLOW).fit(*labels)


def test_rows_of_a_killed_worker_are_read_again(client, worker_pids, tmp_path):
    import numpy as np

    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 20))
    y = np.where(X[:, 0] + rng.normal(size=300) > 0, 1, -1)
    save_svmlight(tmp_path / "rows.svm", X, y)
    model = SparseLogisticRegression(0.01)
    rows = RowBlocks.from_svmlight(
        client, tmp_path / "rows.svm", n_features=20, parts_per_file=4, dtype=np.float64
    )
    before = fit_by_rows(model, rows).coef_.copy()
    os.kill(worker_pids()[0], signal.SIGKILL)
    after = fit_by_rows(model, rows).coef_
    assert after.tobytes() == before.tobytes()
    client.wait_for_workers(2, timeout=LONG)


def test_a_worker_that_joins_late_takes_part(client, servers, tmp_path):
    def do(k):
        """Ends once three processes are at it."""
        (tmp_path / str(os.getpid())).touch()
        ends = time.monotonic() + LONG
        while len(os.listdir(tmp_path)) < 3 and time.monotonic() < ends:
            time.sleep(0.05)
        return os.getpid()

    joins = threading.Timer(0.5, servers.scale, args=(3,))
    with cluster(client):
        joins.start()
        found = map_blocks(do, range(3))
    joins.join()
    assert len(set(found)) == 3
    servers.scale(2)


# --- clients and schedulers --------------------------------------------------------------------


def parts(path):
    return sorted(Path(f"{path}.parts").glob("part-*"))


def wait_for(condition, process=None):
    ends = time.monotonic() + LONG
    while not condition() and time.monotonic() < ends:
        assert process is None or process.poll() is None, "the process ended too early"
        time.sleep(0.02)
    assert condition()


def test_a_scheduler_that_dies_leaves_a_clear_error_and_a_folder(labels, alone, tmp_path):
    from distributed import Client

    path, address = tmp_path / "model", tmp_path / "scheduler.json"
    python = [sys.executable, "-W", "ignore", "-m"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    common = ["--no-dashboard", "--scheduler-file", str(address)]

    def start(what, *options):
        command = [*python, f"distributed.cli.dask_{what}", *options, *common]
        return subprocess.Popen(command, **quiet)

    is_over = threading.Event()
    servers = [start("scheduler", "--port", "0")]
    try:
        wait_for(address.exists, servers[0])
        servers.append(start("worker", "--no-nanny"))

        def end_scheduler():  # sooner than a callback, which a loaded machine calls too late
            while not parts(path) and not is_over.wait(0.002):
                pass
            servers[0].kill()

        with Client(scheduler_file=str(address), set_as_default=False) as client:
            client.wait_for_workers(1, timeout=LONG)
            gone = pytest.raises(ClusterError, match=r"the scheduler at tcp.* is gone")
            threading.Thread(target=end_scheduler).start()
            with gone, cluster(client):
                PPDSparseClassifier(**SLOW, model_path=path).fit(*labels)
            with pytest.raises(ClusterError, match="is gone"):
                cluster(client).__enter__()
    finally:
        is_over.set()
        for server in servers:
            server.kill()
            server.wait()
    assert len(parts(path)) >= 1
    model = PPDSparseClassifier(**SLOW, model_path=path).fit(*labels)  # goes on without a cluster
    assert_same(model, alone)
