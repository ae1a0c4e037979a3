"""A cluster of two worker processes for all tests here, and problems that take a moment."""

import os
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.preprocessing import normalize

pytest.importorskip("distributed")
sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def servers():
    import dask
    from distributed import LocalCluster

    few = dask.config.set({"distributed.scheduler.allowed-failures": 1})
    with (
        few,
        LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50
        ) as found,
    ):
        yield found


@pytest.fixture
def client(servers):
    from distributed import Client

    with Client(servers, set_as_default=False) as found:
        try:
            found.wait_for_workers(2, timeout=45)
        except TimeoutError:  # a nanny gives up on a worker that is killed while it starts
            servers.scale(0)
            servers.scale(2)
            found.wait_for_workers(2, timeout=120)
        yield found


@pytest.fixture
def worker_pids(client):
    return lambda: sorted(client.run(lambda: os.getpid()).values())


@pytest.fixture(scope="session")
def labels():
    """Rows with several of 60 labels."""
    rng = np.random.default_rng(0)
    X = sp.random(400, 300, 0.05, "csr", random_state=rng, data_rvs=rng.standard_normal)
    scores = X @ rng.normal(size=(300, 60))
    return normalize(X).astype(np.float32), sp.csr_matrix(scores > np.quantile(scores, 0.97))
