"""Past one machine without a scheduler of ours: parts, Ray, rows on disk, models in shards; and a
simulation of many machines that is checked against runs over slow links.

CPU seconds stand where the machine may have been busy; memory is what the system measured or kept.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from cluster import documents, is_same
from harness.bench import Bench
from harness.cluster_model import BlockCosts, power_law_counts
from harness.many_machines import Link, fit_costs, simulate
from harness.slow_links import Setting, can_limit_links, run_emulated
from harness.table import Cell, Chart, Figures, Series, Table

import sublearn
from sublearn.extreme import PPDSparseClassifier, load_shards, save_shards
from sublearn.io import save_xmc
from sublearn.parts import join_parts, solve_part

MEGABYTE = 2**20


def timed(call: Any) -> tuple[Any, float]:
    """What it returns, and CPU seconds."""
    began = time.process_time()
    found = call()
    return found, time.process_time() - began


# --- parts -------------------------------------------------------------------------------------


def measure_parts(bench: Bench) -> Figures:
    n_rows, n_labels = bench.size((12_000, 12_000), (1_000, 300))
    X, Y = documents(n_rows, n_labels, bench.seed)
    alone, whole = timed(lambda: PPDSparseClassifier(random_state=0).fit(X, Y))
    rows: list[list[Cell]] = []
    for n_parts in bench.some((2, 8, 32)):
        with tempfile.TemporaryDirectory() as folder:
            model = PPDSparseClassifier(model_path=f"{folder}/model", random_state=0)
            seconds = []
            for number in range(1, n_parts + 1):
                began = time.process_time()
                with solve_part(number, n_parts):
                    model.fit(X, Y)
                seconds.append(time.process_time() - began)
            began = time.process_time()
            with join_parts():
                model.fit(X, Y)
            joined = time.process_time() - began
            longest = max(seconds) + joined
            rows.append([n_parts, whole, sum(seconds), max(seconds), joined, whole / longest,
                         "yes" if is_same(alone, model) else "no"])  # fmt: skip
    columns = {
        "parts": "d", "CPU s, one process": ".2f<", "CPU s, all parts": ".2f<",
        "CPU s, longest part": ".2f<", "CPU s, join": ".2f<",
        "ratio: one / (longest + join)": ".2f>", "same bits": "",
    }  # fmt: skip
    return Figures(columns, rows, f"{n_rows:,} rows, {n_labels:,} labels.")


# --- Ray ---------------------------------------------------------------------------------------


def measure_ray(bench: Bench) -> Figures:
    import ray

    from sublearn.distributed import ray_cluster
    from sublearn.execution import map_blocks

    n_rows, n_labels = bench.size((12_000, 3_000), (1_000, 300))
    X, Y = documents(n_rows, n_labels, bench.seed)
    os.environ.setdefault("RAY_AUTH_TOKEN", os.urandom(32).hex())
    began = time.perf_counter()
    ray.init(num_cpus=2, include_dashboard=False, object_store_memory=200 * MEGABYTE,
             log_to_driver=False)  # fmt: skip
    start = time.perf_counter() - began
    try:
        with ray_cluster() as blocks:
            map_blocks(abs, range(10))  # imports
            n = bench.size(1_000, 100)
            clock, cpu = time.perf_counter(), time.process_time()
            map_blocks(abs, range(n))
            per_block = [1e3 * (time.perf_counter() - clock) / n,
                         1e3 * (time.process_time() - cpu) / n]  # fmt: skip
            blocks.tasks.clear()
            clock = time.perf_counter()
            together = PPDSparseClassifier(random_state=0).fit(X, Y)
            wall, n_tasks = time.perf_counter() - clock, len(blocks.tasks)
    finally:
        ray.shutdown()
    clock = time.perf_counter()
    alone = PPDSparseClassifier(random_state=0, n_jobs=2).fit(X, Y)
    threads = time.perf_counter() - clock
    columns = {
        "rows": ",d", "labels": ",d", "s, two threads": ".2f<", "s, two workers": ".2f<",
        "tasks": "d", "ms of an empty block": ".2f<", "of them CPU of the client": ".2f<",
        "s, ray.init": ".1f", "same bits": "",
    }  # fmt: skip
    return Figures(columns, [[n_rows, n_labels, threads, wall, n_tasks, *per_block, start,
                              "yes" if is_same(alone, together) else "no"]])  # fmt: skip


# --- rows on disk ------------------------------------------------------------------------------

CHILD = """
import json, sys, threading, time
from pathlib import Path
import sublearn
from sublearn.extreme import PPDSparseClassifier
from sublearn.io import load_xmc, open_rows, store_rows
what, source, folder, memory = sys.argv[1:]

def megabytes():  # of its own: pages of mapped files belong to the system
    lines = Path("/proc/self/status").read_text().split("\\n")
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) / 1024

peak = start = megabytes()
def look():
    global peak
    while True:
        peak = max(peak, megabytes())
        time.sleep(0.002)
threading.Thread(target=look, daemon=True).start()
began = time.process_time()
if what == "store":
    store_rows(source, folder, memory=int(memory))
elif what == "load":
    load_xmc(source)
else:
    X, y = open_rows(folder) if what == "fit" else load_xmc(source)
    PPDSparseClassifier(model_path=f"{folder}.{what}.model", random_state=0).fit(X, y)
print(json.dumps({"seconds": time.process_time() - began, "peak": max(peak, megabytes()) - start}))
"""


def in_child(what: str, source: Path, folder: Path, memory: int) -> dict[str, float]:
    command = [sys.executable, "-c", CHILD, what, str(source), str(folder), str(memory)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def measure_outofcore(bench: Bench) -> Figures:
    rows: list[list[Cell]] = []
    n_rows, n_labels = bench.size((60_000, 4_000), (2_000, 200))
    X, Y = documents(n_rows, n_labels, bench.seed)
    with tempfile.TemporaryDirectory() as home:
        source = Path(home) / "rows.txt"
        save_xmc(source, X, Y)
        loaded = in_child("load", source, source, 0)
        fitted = in_child("fit_loaded", source, Path(home) / "loaded", 0)
        text = source.stat().st_size / MEGABYTE
        for memory in bench.some((16, 32, 64, 128)):
            folder = Path(home) / f"store-{memory}"
            stored = in_child("store", source, folder, memory * MEGABYTE)
            size = sum(file.stat().st_size for file in folder.iterdir()) / MEGABYTE
            fit, same = None, ""
            if memory == 16:
                found = in_child("fit", source, folder, 0)
                fit = found["peak"]
                models = [sublearn.load(f"{home}/{name}.model")
                          for name in ("loaded.fit_loaded", "store-16.fit")]  # fmt: skip
                same = "yes" if is_same(*models) else "no"
            rows.append([memory, stored["peak"], text, size, loaded["peak"], stored["seconds"],
                         loaded["seconds"], fit, fitted["peak"], same])  # fmt: skip
    columns = {
        "memory, MB": "d", "peak MB, store_rows": ".0f<", "MB of text": ".0f",
        "MB of the store": ".0f", "peak MB, load_xmc": ".0f", "CPU s, store_rows": ".1f<",
        "CPU s, load_xmc": ".1f",
        "peak MB, fit of stored rows": ".0f<", "peak MB, load and fit": ".0f", "same bits": "",
    }  # fmt: skip
    note = f"{n_rows:,} rows, {X.nnz:,} entries, {n_labels:,} labels."
    return Figures(columns, rows, note)


# --- shards ------------------------------------------------------------------------------------


def random_model(n_labels: int, n_features: int, per_label: int, seed: int) -> PPDSparseClassifier:
    """A classifier with weights out of a hat: fitted to two rows, then given others."""
    from sublearn.extreme.linear_labels import LinearLabels

    rng = np.random.default_rng(seed)
    ids = rng.integers(0, n_features, (n_labels, per_label), dtype=np.int32)
    values = rng.normal(size=ids.size).astype(np.float32)
    by_label = sp.csr_matrix((values, ids.ravel(), np.arange(0, ids.size + 1, per_label)),
                             shape=(n_labels, n_features))  # fmt: skip
    by_feature = by_label.tocsc().T.tocsr()
    by_feature.sum_duplicates()
    model = PPDSparseClassifier().fit(sp.eye(2, n_features, dtype=np.float32, format="csr"),
                                      sp.csr_matrix(np.eye(2)))  # fmt: skip
    model.classes_ = np.arange(n_labels)
    model._set_model(LinearLabels(by_feature, np.full(n_labels, -0.5, np.float32)))
    return model


def measure_shards(bench: Bench) -> Figures:
    n_labels = bench.size(500_000, 5_000)
    n_features = n_labels // 5
    model = random_model(n_labels, n_features, 40, bench.seed).compress(8)
    rng = np.random.default_rng(1)
    queries = sp.random(bench.size(300, 20), n_features, 20 / n_features, "csr", np.float32,
                        random_state=rng)  # fmt: skip
    rows: list[list[Cell]] = []
    with tempfile.TemporaryDirectory() as home:
        model.save(f"{home}/one.model")
        whole = sublearn.load(f"{home}/one.model")
        wanted = whole.predict_top_k(queries, 10)
        _, base = timed(lambda: whole.predict_top_k(queries, 10))
        for n_shards in bench.some((2, 8, 32, 100)):
            folder = Path(home) / f"shards-{n_shards}"
            _, cut = timed(lambda f=folder, n=n_shards: save_shards(model, f, n))
            sizes = [file.stat().st_size / MEGABYTE for file in folder.glob("shard-*")]
            clock = time.perf_counter()
            many = load_shards(folder)
            opened = time.perf_counter() - clock
            found = many.predict_top_k(queries, 10)
            _, spent = timed(lambda m=many: m.predict_top_k(queries, 10))
            is_equal = all(a.tobytes() == b.tobytes() for a, b in zip(wanted, found, strict=True))
            n = queries.shape[0]
            rows.append([n_shards, sum(sizes), max(sizes), cut, opened, 1e3 * base / n,
                         1e3 * spent / n, spent / base, "yes" if is_equal else "no"])  # fmt: skip
    columns = {
        "shards": "d", "MB, all": ".0f", "MB, largest": ".1f", "CPU s to cut": ".1f<",
        "s to open": ".3f<", "CPU ms a row, one file": ".2f", "CPU ms a row, shards": ".2f<",
        "CPU: shards / one file": ".2f<", "same bits": "",
    }  # fmt: skip
    note = (
        f"{n_labels:,} labels, {n_features:,} features, 40 weights a label, 8 bits; 10 best labels."
    )
    return Figures(columns, rows, note)


# --- many machines -----------------------------------------------------------------------------

#: Machines, megabits a second, megabytes of X, blocks, seconds of a block.
FITTED = [
    Setting(2, 50, 10, 40, 0.3), Setting(4, 100, 10, 80, 0.3), Setting(4, 20, 2, 40, 0.6),
    Setting(2, 100, 0.1, 80, 0.1),
]  # fmt: skip
HELD_OUT = [
    Setting(1, 50, 10, 20, 0.3), Setting(3, 50, 10, 60, 0.3), Setting(6, 100, 5, 120, 0.3),
    Setting(8, 100, 5, 160, 0.3), Setting(4, 20, 5, 80, 0.3), Setting(6, 200, 20, 120, 0.5),
    Setting(8, 50, 2, 160, 0.2),
]  # fmt: skip


def measured_settings(bench: Bench) -> tuple[list[float], list[float]]:
    """Seconds of both lists; each run is kept."""

    def run(setting: Setting) -> float:
        bench.say(setting)
        found: float = bench.once({"link": str(setting)}, lambda: run_emulated(setting))
        return found

    few = bench.size(len(FITTED), 2)
    return [run(s) for s in FITTED[:few]], [run(s) for s in HELD_OUT[: bench.size(99, 1)]]


def measure_scaling(bench: Bench) -> Figures:
    if not can_limit_links():
        raise ImportError("network namespaces and tc are not permitted here")
    fitted, held_out = measured_settings(bench)
    costs = fit_costs(FITTED[: len(fitted)], fitted)
    rows: list[list[Cell]] = []
    for role, settings, seconds in (("fitted", FITTED, fitted), ("held out", HELD_OUT, held_out)):
        for s, real in zip(settings, seconds, strict=False):
            said = simulate(s.n_machines, s.blocks(), s.link(), costs, s.n_bytes)
            rows.append([role, s.n_machines, s.megabits, s.megabytes, s.n_blocks,
                         s.seconds, real, said, 100 * (said / real - 1)])  # fmt: skip
    columns = {
        "role": "", "machines": "d", "Mbit/s": "d", "MB of X": ".3g",
        "blocks": "d", "s a block": ".1f", "s, measured": ".2f", "s, simulated": ".2f",
        "error, %": "+.1f",
    }  # fmt: skip
    return Figures(columns, rows, f"Fitted: {costs}.")


def measure_simulation(bench: Bench) -> Figures:
    if not can_limit_links():
        raise ImportError("network namespaces and tc are not permitted here")
    fitted, _ = measured_settings(bench)
    costs = fit_costs(FITTED[: len(fitted)], fitted)
    n, k = 10_000_000, 1_000_000
    blocks = BlockCosts(3.14e5, 17.9, 0.47, 7.87e-9)  # of the table "Predicted for many cores"
    positives = np.add.reduceat(power_law_counts(k, 2.0 * n, 0.9), np.arange(0, k, 16))
    seconds = blocks.seconds(n, positives) / 16  # on the 16 cores of a machine
    tasks = np.add.reduceat(seconds, np.arange(0, len(seconds), 16))
    link, n_bytes = Link(1.25e9), n * 90 * 8 * 2
    rows: list[list[Cell]] = []
    series = []
    for hours in (None, 1000.0, 100.0):
        times: list[float | None] = []
        for n_machines in (10, 30, 100, 300, 1000):
            runs = [simulate(n_machines, tasks, link, costs, n_bytes,
                             hours_between_failures=hours, seed=seed)
                    for seed in range(1 if hours is None else 5)]  # fmt: skip
            times.append(float(np.median(runs)) / 3600)
            rows.append([n_machines, hours, times[-1], tasks.sum() / 3600 / n_machines])
        name = "no failures" if hours is None else f"a failure in {hours:,.0f} hours of a machine"
        series.append(Series(name, [10, 30, 100, 300, 1000], times))
    ideal = [float(tasks.sum()) / 3600 / m for m in (10, 30, 100, 300, 1000)]
    series.append(Series("work over machines", [10, 30, 100, 300, 1000], ideal))
    chart = Chart("simulated", "Simulated: a million labels on 10 to 1,000 machines", "machines",
                  "hours", series, log_x=True, log_y=True,
                  caption="Hours of a fit with a million labels and ten million rows, simulated, "
                  "by machines and failures")  # fmt: skip
    columns = {"machines": ",d", "hours between failures of a machine": ",.0f",
               "hours, simulated": ".3g", "hours, work over machines": ".3g"}  # fmt: skip
    return Figures(columns, rows, charts=[chart])


TABLES = [
    Table(
        "parts", "Parts of a job array",
        "Generated documents, float32, each part in a process that reads the data from memory; the "
        "ratio is what as many machines would give.",
        measure_parts, page="scale",
    ),
    Table(
        "ray", "Two workers of Ray",
        "Generated documents, float32; seconds on the clock, with the way of X into the store.",
        measure_ray, page="scale",
    ),
    Table(
        "outofcore", "Rows on disk",
        "Generated documents in a text file. Peaks are of a process's own memory, above what it "
        "had after imports; mapped pages are the system's. Fits have a model_path.",
        measure_outofcore, page="stored_rows",
    ),
    Table(
        "shards", "Models in shards",
        "Random weights; the model is opened mapped, from a warm cache of files. CPU "
        "of one thread.",
        measure_shards, page="shards",
    ),
    Table(
        "scaling", "Slow links, measured and simulated",
        "Each machine is a Dask worker in network, host and mount namespaces of its own, behind a "
        "link with this rate in both directions; it is sent the files. Blocks wait for their "
        "seconds instead of computing, since two cores are not eight machines; scheduler, "
        "transfers and "
        "results (100 kB a block) are real. Held-out runs were not used to fit the costs.",
        measure_scaling, page="scale",
    ),
    Table(
        "simulation", "Simulated: 10 to 1,000 machines",
        "A million labels, ten million rows of 90 words: costs of blocks as in *Predicted for "
        "many cores*, of the scheduler and of links as fitted to the runs above. Assumed: "
        "machines of "
        "16 cores that work on a task of 16 blocks of labels together; ten gigabits; X and its "
        "columns go to one machine after the other, as the library sends them; a machine "
        "that fails is "
        "back after five minutes, reads X anew, and its task is begun anew; the median of "
        "five draws.",
        measure_simulation, page="scale",
    ),
]  # fmt: skip
