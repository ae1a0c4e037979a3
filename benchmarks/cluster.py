"""Several processes on this machine: what Dask costs, what it saves, and what many cores would do.

Two worker processes with one thread each. Where other programs use the cores as well, seconds on
the clock say little; so CPU seconds stand beside them: those of one process, and half of those of
two workers plus what the client does before and after them.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from distributed import Client, LocalCluster
from harness.bench import Bench
from harness.child import peak_mb
from harness.cluster_model import (
    BlockCosts,
    Machines,
    power_law_counts,
    run_time,
)
from harness.synthetic import Documents, make_documents
from harness.table import Cell, Figures, Table

from sublearn.distributed import RowBlocks, cluster, fit_by_rows
from sublearn.execution import map_blocks
from sublearn.extreme import PPDSparseClassifier
from sublearn.io import save_svmlight
from sublearn.linear import SparseLogisticRegression

N_WORKERS = 2
LABELS = [(12_000, 3_000)]  # rows and labels of the documents


@contextmanager
def workers() -> Iterator[Client]:
    """Two fresh worker processes that have imported the library."""
    with (
        LocalCluster(
            n_workers=N_WORKERS, threads_per_worker=1, dashboard_address=":0", silence_logs=50
        ) as servers,
        Client(servers) as client,
    ):
        client.wait_for_workers(N_WORKERS)
        with cluster(client):
            map_blocks(lambda _: None, range(4))
        yield client


def cpu_of_workers(client: Client) -> np.ndarray:
    return np.array(sorted(client.run(time.process_time).items()), dtype=object)[:, 1].astype(float)


# --- blocks ------------------------------------------------------------------------------------


def seconds_per_block(client: Client, n_blocks: int) -> tuple[float, float]:
    """On the clock, and of CPU in the process of client and scheduler."""
    with cluster(client):
        map_blocks(abs, range(10))
        clock, cpu = time.perf_counter(), time.process_time()
        map_blocks(abs, range(n_blocks))
        return ((time.perf_counter() - clock) / n_blocks, (time.process_time() - cpu) / n_blocks)


def measure_blocks(bench: Bench) -> Figures:
    rows: list[list[Cell]] = []
    with workers() as client:
        for n_blocks in bench.some((200, 1000, 2000)):
            clock, cpu = seconds_per_block(client, n_blocks)
            rows.append([n_blocks, 1e3 * clock, 1e3 * cpu])
    columns = {"blocks": ",d", "ms on the clock, each": ".2f<", "ms of CPU, each": ".2f<"}
    return Figures(columns, rows)


# --- labels ------------------------------------------------------------------------------------


def documents(n_rows: int, n_labels: int, seed: int) -> tuple[sp.csr_matrix, sp.csr_matrix]:
    size = Documents(
        n_train=n_rows, n_test=100, n_labels=n_labels, n_groups=max(10, n_labels // 25)
    )
    train = make_documents(size, seed).train
    return train["X"].astype(np.float32), train["Y"]


def is_same(a: PPDSparseClassifier, b: PPDSparseClassifier) -> bool:
    return all(
        getattr(a.model_.weights, name).tobytes() == getattr(b.model_.weights, name).tobytes()
        for name in ("data", "indices", "indptr")
    )


def measure_labels(bench: Bench) -> Figures:
    rows: list[list[Cell]] = []
    with workers() as client:
        for n_rows, n_labels in bench.size(LABELS, [(1_000, 300)]):
            X, Y = documents(n_rows, n_labels, bench.seed)
            model = PPDSparseClassifier(random_state=0, n_jobs=1)
            clock, cpu = time.perf_counter(), time.process_time()
            alone = model.fit(X, Y)
            one = (time.perf_counter() - clock, time.process_time() - cpu)
            with cluster(client) as blocks:
                together, seconds, both, alone_cpu = timed_fit(client, X, Y)
                n_tasks, size = len(blocks.tasks), _folder_bytes(blocks.store.path)
            rows.append([
                n_rows, n_labels, one[0], seconds, one[0] / seconds, one[1], both, alone_cpu,
                one[1] / (both / N_WORKERS + alone_cpu), n_tasks, size / 1e6,
                "yes" if is_same(alone, together) else "no",
            ])  # fmt: skip
    columns = {
        "rows": ",d", "labels": ",d", "s, one process": ".2f<", "s, two workers": ".2f<",
        "ratio on the clock": ".2f", "CPU s, one process": ".2f<", "CPU s, both workers": ".2f<",
        "CPU s, client alone": ".2f<", "ratio by CPU": ".2f>", "tasks": "d", "MB shared": ".1f",
        "same bits": "",
    }  # fmt: skip
    return Figures(columns, rows)


def timed_fit(
    client: Client, X: sp.csr_matrix, Y: sp.csr_matrix
) -> tuple[PPDSparseClassifier, float, float, float]:
    """A model, its seconds on the clock, CPU seconds of both workers and of the client alone."""
    before, client_cpu, clock = cpu_of_workers(client), ClientCpu(), time.perf_counter()
    model = PPDSparseClassifier(random_state=0, callback=client_cpu).fit(X, Y)
    seconds, alone = time.perf_counter() - clock, client_cpu.alone()
    return model, seconds, float((cpu_of_workers(client) - before).sum()), alone


class ClientCpu:
    """A callback that notes the CPU seconds of the client while no worker has anything to do."""

    def __init__(self) -> None:
        self._start = self._first = self._last = time.process_time()
        self._n_done = 0

    def __call__(self, event: Any) -> None:
        if event.n_done == 0:
            self._first = time.process_time()
        if event.n_done != self._n_done:
            self._n_done, self._last = event.n_done, time.process_time()

    def alone(self) -> float:
        """Until the first labels are done, and after the last."""
        return (self._first - self._start) + (time.process_time() - self._last)


def _folder_bytes(path: Path) -> int:
    return sum(file.stat().st_size for file in path.iterdir())


# --- rows --------------------------------------------------------------------------------------

ROWS, FEATURES, PER_ROW, BLOCKS = 100_000, 20_000, 120, 32


def make_rows(block: int, n_rows: int, seed: int) -> tuple[sp.csr_matrix, np.ndarray]:
    """Rows of words with a planted sparse rule."""
    rng = np.random.default_rng([seed, block])
    words = np.sort(
        (FEATURES * rng.random((n_rows, PER_ROW), dtype=np.float32) ** 2).astype(np.int32)
    )
    values = np.full(n_rows * PER_ROW, PER_ROW**-0.5, dtype=np.float32)
    offsets = np.arange(0, n_rows * PER_ROW + 1, PER_ROW, dtype=np.int32)
    X = sp.csr_matrix((values, words.ravel(), offsets), shape=(n_rows, FEATURES))
    X.sum_duplicates()
    rule = np.zeros(FEATURES)
    rule[:200] = np.random.default_rng(seed).normal(size=200)
    z = X @ rule
    return X, np.where(z + 0.5 * z.std() * rng.normal(size=n_rows) > np.median(z), 1, -1)


def write_rows(folder: Path, n_rows: int, seed: int) -> list[Path]:
    """Files of rows, four of them."""
    files = [folder / f"rows-{k}.svm" for k in range(4)]
    for k, file in enumerate(files):
        save_svmlight(file, *make_rows(k, n_rows // 4, seed))
    return files


def measure_rows(bench: Bench) -> Figures:
    rows: list[list[Cell]] = []
    for n_rows in (bench.size(ROWS, 4_000),):
        with tempfile.TemporaryDirectory() as folder, workers() as client:
            files = write_rows(Path(folder), n_rows, bench.seed)
            idle = max(client.run(peak_mb).values())
            data = RowBlocks.from_svmlight(
                client, files, n_features=FEATURES, parts_per_file=BLOCKS // 4
            )
            model = fit_by_rows(SparseLogisticRegression(1e-3, tol=1e-5), data)
            peak, half = max(client.run(peak_mb).values()), data.n_bytes / 2e6
            trace = model.trace_
            rows.append([
                n_rows, data.n_bytes / 1e6, model.n_iter_, int(trace["round"][-1]),
                model.certificate_, trace["bytes_sent"][-1] / 1e6,
                trace["bytes_received"][-1] / 1e6, idle, peak, half + 200,
            ])  # fmt: skip
    columns = {
        "rows": ",d", "X, MB": ".0f", "outer iterations": "d", "rounds": "d",
        "relative gap": ".1e", "MB sent": ".2f<",
        "MB received": ".1f<", "peak MB of an idle worker": ".0f", "peak MB of a worker": ".0f<",
        "X/2 + 200 MB": ".0f",
    }  # fmt: skip
    return Figures(columns, rows)


# --- many cores --------------------------------------------------------------------------------


def timed_blocks(n_rows: int, n_labels: int, seed: int) -> dict[str, Any]:
    """CPU seconds and positives of blocks of labels, each solved alone; every few of them."""
    from sublearn import _core
    from sublearn.extreme.ppd_problem import PPDProblem
    from sublearn.validation import encode_labels

    X, Y = documents(n_rows, n_labels, seed)
    labels = encode_labels(Y, n_rows, estimator_name="benchmark")
    problem = PPDProblem(X, labels)
    settings = PPDSparseClassifier(random_state=0, n_jobs=1)._settings()
    counts, positives, seconds, work, n_weights = labels.counts(), [], [], [], 0
    for block in range(0, problem.n_blocks, max(1, problem.n_blocks // 30)):
        part = problem.part(block, block + 1)
        began = time.process_time()
        chunk = problem.solve(part, settings, _core.Monitor())
        seconds.append(time.process_time() - began)
        positives.append(counts[problem.order[part]].sum())
        work.append(chunk.reports["work"].sum())
        n_weights += len(chunk.values)
    starts = np.arange(0, len(problem.order), problem.n_lanes)
    return {
        "n_rows": np.full(len(work), float(n_rows)),
        "positives": np.array(positives, dtype=float),
        "work": np.array(work, dtype=float),
        "seconds": np.array(seconds),
        "weights_per_label": n_weights / (len(seconds) * problem.n_lanes),
        "all": np.add.reduceat(counts[problem.order], starts),
        "bytes": 2 * (X.data.nbytes + X.indices.nbytes),
    }


def measure_model(bench: Bench) -> Figures:
    """The model of costs against two workers here, then many cores and a million labels."""
    sizes = bench.size((2_500, 5_000, 10_000, 20_000), (400, 800, 1_200, 1_600))
    timed = [timed_blocks(n, n // 4, bench.seed) for n in sizes]
    names = ("n_rows", "positives", "work", "seconds")
    costs = BlockCosts.fit(*(np.concatenate([t[name] for t in timed]) for name in names))
    rows: list[list[Cell]] = []
    with workers() as client:
        _, per_task = seconds_per_block(client, 500)
        for n in sizes[1:3]:
            X, Y = documents(n, n // 4, bench.seed)
            with cluster(client):
                timed_fit(client, X[:200], Y[:200])  # imports
                _, _, both, alone = timed_fit(client, X[:200], Y[:200])
                fixed = both / N_WORKERS + alone  # what any fit takes: files, tasks, the model
                _, _, both, alone = timed_fit(client, X, Y)
            own = timed_blocks(n, n // 4, bench.seed)  # how fast the machine is at this moment
            rate = own["seconds"].sum() / own["work"].sum()
            seconds = replace(costs, seconds_per_entry=rate).seconds(n, own["all"])
            predicted = fixed + run_time(seconds, Machines(2, per_task), 0.0)
            rows.append([f"{n // 4:,}", f"{n:,}", 2, seconds.sum() / 3600, predicted,
                         both / N_WORKERS + alone, own["bytes"] / 1e9, None])  # fmt: skip
    n, k = 10_000_000, 1_000_000
    positives = np.add.reduceat(power_law_counts(k, 2.0 * n, 0.9), np.arange(0, k, 16))
    seconds, size = costs.seconds(n, positives), n * 90 * 8 * 2
    weights = timed[-1]["weights_per_label"] * k * 8 / 1e9
    for n_cores in (10, 100, 1000):
        predicted = run_time(seconds, Machines(n_cores, per_task), size)
        rows.append([f"{k:,}", f"{n:,}", n_cores, seconds.sum() / 3600, predicted, None,
                     size / 1e9, weights])  # fmt: skip
    columns = {
        "labels": "", "rows": "", "cores": ",d", "CPU hours of all blocks": ".3g",
        "s, predicted": ".3g", "s, real (CPU)": ".3g", "GB into each machine": ".3g",
        "GB of weights back": ".2g",
    }  # fmt: skip
    rows.append([f"a block of 16 labels: {costs}", *[None] * 7])
    return Figures(columns, rows)


TABLES = [
    Table(
        "blocks", "What a block costs beside its work",
        "Blocks that do nothing, on two workers; client and scheduler are one process here.",
        measure_blocks, page="distributed",
    ),
    Table(
        "labels", "PPD-Sparse by labels",
        "Generated documents, float32. The files with X and its columns are written and mapped "
        "inside the time of two workers. The ratio by CPU is what free cores would give: seconds "
        "of one process over half of those of both workers and those of the client alone.",
        measure_labels, page="distributed",
    ),
    Table(
        "rows", "Sparse logistic regression by rows",
        f"Generated rows with {PER_ROW} words in LIBSVM files that the workers read in {BLOCKS} "
        "blocks, LHAC to a relative gap of "
        "1e-5. A round is one exchange of a point for a sum of gradients; the first looks at the "
        "start, each of the others is an outer iteration. "
        "Bytes are those of all blocks together. Peaks are of resident memory.",
        measure_rows, page="distributed",
    ),
    Table(
        "model", "Predicted for many cores",
        "Documents with 90 words and 2 labels; machines of 16 cores at ten gigabits, which read X "
        "and its columns once. Real seconds are half of the CPU seconds of two workers and those "
        "of the client alone; seconds per entry are taken anew beside each real run, and what a "
        "fit of 200 rows takes is added to it. Costs are "
        "fitted to 2,500 to 20,000 rows: what stands for ten million is an extrapolation by a "
        "factor of 500.",
        measure_model, page="distributed",
    ),
]  # fmt: skip
