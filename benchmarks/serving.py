"""What predicting with a fitted model costs: rows, smaller weights, less than exact, opening."""

from __future__ import annotations

import asyncio
import functools
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from harness.bench import Bench
from harness.data import svmlight_random_half, xmc
from harness.judge import precision_at
from harness.problem import Split
from harness.served import Asked, Server, as_request, ask, running
from harness.synthetic import Documents, make_documents
from harness.table import Figures, Table
from harness.timing import median_cpu, median_ms
from sklearn.base import BaseEstimator

import sublearn
from sublearn.extreme import PPDSparseClassifier, TextTagger
from sublearn.extreme.linear_labels import LinearLabels
from sublearn.io import load_texts

K = 5
SINGLE_ROWS = 300
MEGABYTE = 2**20
EFFORTS = (1.0, 0.9, 0.75, 0.5, 0.25, 0.1)
#: Bits of a weight, and the weights dropped before.
SMALLER = ((32, 0.0), (16, 0.0), (8, 0.0), (8, 0.02))
#: Features of the models that are opened; each has 650 weights, of a million labels.
OPENED = (2_000, 20_000, 200_000)
WEIGHTS_PER_FEATURE, MILLION = 650, 1_000_000
#: Items of a question over HTTP, processes, connections that ask at the same time, and questions.
LOADS = (
    (1, 1, 1, 1_000),
    (1, 1, 4, 2_000),
    (1, 1, 64, 20_000),
    (1, 2, 64, 20_000),
    (100, 1, 4, 200),
)


@dataclass(frozen=True)
class Served:
    """A model with its defaults, and the rows that it is asked."""

    name: str
    model: PPDSparseClassifier
    split: Split

    @property
    def X(self) -> sp.csr_matrix:
        return self.split.test["X"]

    def ms_per_row(self, model: PPDSparseClassifier, effort: float = 1.0) -> float:
        seconds = median_cpu(lambda: model.predict_top_k(self.X, k=K, effort=effort))
        return 1000 * seconds / self.X.shape[0]

    def precisions(self, labels: np.ndarray) -> list[float]:
        return [precision_at(k, self.split.truth["Y"], labels) for k in (1, 3, 5)]


def served(bench: Bench, *names: str) -> Iterator[Served]:
    """Models with their defaults, of these sets."""
    for name in bench.some(names):
        if name == "synthetic":
            size = bench.size(Documents(), Documents(n_train=2_000, n_test=500, n_labels=300))
            split = make_documents(size, bench.seed)
        else:
            make = xmc if name == "yso_en" else svmlight_random_half
            split = make(name).load(bench.data, bench.seed)
        model = PPDSparseClassifier(random_state=bench.seed)
        yield Served(name, model.fit(split.train["X"], split.train["Y"]), split)


def rows(bench: Bench) -> Figures:
    """Batches and single rows in several forms."""
    found = []
    for case in served(bench, "synthetic", "yso_en"):
        model, X = case.model, case.X
        read = int((X != 0).astype(np.int64).dot(np.diff(model.model_.lists.offsets)).sum())
        few = [X[i : i + 1] for i in range(min(SINGLE_ROWS, X.shape[0]))]
        forms = [few, [row.toarray() for row in few], [row.tocsc() for row in few]]
        singles = [median_ms(asked(model, form)) for form in forms]
        found.append([case.name, read // X.shape[0], case.ms_per_row(model), *singles])
    forms_of = dict.fromkeys(("1 CSR row, ms", "1 dense row, ms", "1 CSC row, ms"), ".3f<")
    return Figures(
        {"data": "", "weights per row": ",", "batch, CPU ms/row": ".3f<", **forms_of}, found
    )


def asked(model: PPDSparseClassifier, rows: list) -> Iterator[functools.partial]:
    return (functools.partial(model.predict_top_k, row, k=K) for row in rows)


def smaller(bench: Bench) -> Figures:
    """Compressed copies: size on disk, precision, time."""
    found = []
    for case in served(bench, "synthetic", "yso_en"):
        for bits, prune in SMALLER:
            model = case.model.compress(bits=bits, prune=prune)
            labels, _ = model.predict_top_k(case.X, k=K)
            size, ms = megabytes(model), case.ms_per_row(model)
            found.append([case.name, bits, prune, size, *case.precisions(labels), ms])
    columns = {"data": "", "bits": "d", "prune": "g", "MB": ".1f<"}
    columns |= dict.fromkeys(("P@1", "P@3", "P@5"), ".4f>")
    return Figures({**columns, "batch, CPU ms/row": ".3f<"}, found)


def megabytes(model: PPDSparseClassifier) -> float:
    """Size of the saved model."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        model.save(path)
        return path.stat().st_size / MEGABYTE


def effort(bench: Bench) -> Figures:
    """How many of the exact five best are found by reading a share of the weights."""
    found = []
    for case in served(bench, "synthetic", "yso_en", "rcv1sub1"):
        exact, _ = case.model.predict_top_k(case.X, k=K)
        for share in EFFORTS:
            labels, _ = case.model.predict_top_k(case.X, k=K, effort=share)
            is_found = (labels[:, :, None] == exact[:, None, :]).any(axis=2)
            ms = case.ms_per_row(case.model, share)
            found.append([case.name, share, is_found.mean(), *case.precisions(labels), ms])
    columns = {"data": "", "effort": "g", "found": ".3f>"}
    columns |= dict.fromkeys(("P@1", "P@3", "P@5"), ".4f>")
    return Figures({**columns, "batch, CPU ms/row": ".3f<"}, found)


def opening(bench: Bench) -> Figures:
    """Files of rising size, first as the system has them in memory, then fetched from the disk."""
    found = []
    for n_features in bench.some(OPENED):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model"
            wide_model(n_features, bench.seed).save(path)
            size = path.stat().st_size / MEGABYTE
            for is_cold in (False, True):
                where, *times = opened(path, is_cold)
                found.append([where, size, n_features * WEIGHTS_PER_FEATURE, *times])
    columns = {"file": "", "MB": ".0f", "weights": ",", "opened, s": ".4f<"}
    return Figures({**columns, "first row, ms": ".2f<", "later rows, ms": ".3f<"}, found)


def wide_model(n_features: int, seed: int) -> PPDSparseClassifier:
    """A model of a million labels with drawn weights in place of learnt ones."""
    rng = np.random.default_rng(seed)
    steps = rng.integers(1, MILLION // WEIGHTS_PER_FEATURE, (n_features, WEIGHTS_PER_FEATURE))
    labels = np.cumsum(steps, axis=1, dtype=np.int32).ravel()
    offsets = np.arange(n_features + 1, dtype=np.int32) * WEIGHTS_PER_FEATURE
    values = rng.standard_normal(len(labels), dtype=np.float32)
    weights = sp.csr_matrix((values, labels, offsets), shape=(n_features, MILLION))
    model = PPDSparseClassifier(random_state=seed).fit(np.eye(3, dtype=np.float32), np.eye(3))
    model.model_ = LinearLabels(weights, np.full(MILLION, -1, dtype=np.float32))
    model.classes_, model.n_features_in_ = np.arange(MILLION), n_features
    return model


def opened(path: Path, is_cold: bool) -> list[str | float]:
    """Seconds to open, milliseconds of the first row and of later ones, two features each."""
    if is_cold:
        forget_pages(path)
    start = time.perf_counter()
    model = sublearn.load(path)
    seconds = time.perf_counter() - start
    queries = [two_features(model.n_features_in_, i) for i in range(SINGLE_ROWS)]
    first, *later = [median_ms([call]) for call in asked(model, queries)]
    return ["on disk" if is_cold else "in memory", seconds, first, statistics.median(later)]


def two_features(n_features: int, number: int) -> sp.csr_matrix:
    columns = np.sort(np.random.default_rng(number).choice(n_features, 2, replace=False))
    parts = (np.full(2, 0.7, dtype=np.float32), columns.astype(np.int32), np.array([0, 2]))
    return sp.csr_matrix(parts, shape=(1, n_features))


def forget_pages(path: Path) -> None:
    """Ask the system to drop what it keeps of a file in memory."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def over_http(bench: Bench) -> Figures:
    """Questions to a server in processes of its own, over some connections."""
    found = []
    for name, model, questions in http_cases(bench):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model"
            model.save(path)
            for n_items, n_workers, n_connections, n_requests in bench.some(LOADS, 1):
                with running(path, ["--workers", str(n_workers)]) as server:
                    *costs, rate = loaded(server, questions(n_items), n_connections, n_requests)
                where = [name, n_items, n_workers, n_connections]
                found.append([*where, *costs, n_items * rate])
    columns = {"data": "", "items a question": "d", "workers": "d", "connections": "d"}
    columns |= {"server, CPU ms": ".3f<", "client, CPU ms": ".3f", "median, ms": ".1f"}
    return Figures({**columns, "99 %, ms": ".1f", "items a second": ",.0f>"}, found)


def http_cases(
    bench: Bench,
) -> Iterator[tuple[str, BaseEstimator, Callable[[int], list[bytes]]]]:
    """Models, and how to make questions of so many items to them."""
    for case in served(bench, "synthetic", "yso_en"):
        yield f"{case.name} rows", case.model, functools.partial(row_questions, case.X)
    if not bench.is_quick:
        tagger, texts = yso_tagger(bench)
        yield "yso_en texts", tagger, functools.partial(text_questions, texts)


def yso_tagger(bench: Bench) -> tuple[TextTagger, list[str]]:
    """Words of at least three records, and the records that were held out."""
    folder = bench.data / "yso_en"
    parts = ("train", "test")
    train, test = (
        load_texts(folder / f"yso_en_{part}.raw.tsv.xz", columns="text,labels", separator=" ")
        for part in parts
    )
    tagger = TextTagger(PPDSparseClassifier(random_state=bench.seed), analyzer="word", min_df=3)
    return tagger.fit(train.texts, train.labels), [text for text in test.texts if text.strip()]


def row_questions(X: sp.csr_matrix, n_rows: int) -> list[bytes]:
    """The rows of X as requests."""
    rows = [
        {"indices": row.indices.tolist(), "values": row.data.tolist()}
        for row in (X[i] for i in range(min(4 * n_rows + SINGLE_ROWS, X.shape[0])))
    ]
    return [as_request({"rows": part, "k": K}) for part in in_parts(rows, n_rows)]


def text_questions(texts: list[str], n_texts: int) -> list[bytes]:
    """Texts as requests."""
    own = texts[: 4 * n_texts + SINGLE_ROWS]
    return [as_request({"texts": part, "k": K}) for part in in_parts(own, n_texts)]


def in_parts(items: list, size: int) -> list[list]:
    return [items[at : at + size] for at in range(0, len(items) - size + 1, size)]


def loaded(
    server: Server, requests: list[bytes], n_connections: int, n_requests: int
) -> tuple[float, ...]:
    """CPU of server and client for a request, the median and 99 % of it, and requests a second."""
    asyncio.run(ask(Asked(server.port, requests, 2 * n_connections), n_connections))
    asked, cpu = Asked(server.port, requests, n_requests), server.cpu_seconds()
    asyncio.run(ask(asked, n_connections))
    cpu = server.cpu_seconds() - cpu
    if asked.failures:
        raise RuntimeError(f"requests failed: {dict(asked.failures)}")
    n = len(asked.laps)
    median, worst = (1e3 * float(np.quantile(asked.laps, q)) for q in (0.5, 0.99))
    return 1e3 * cpu / n, 1e3 * asked.client_seconds / n, median, worst, n / asked.seconds


TABLES = [
    Table(
        "rows",
        "What a row costs",
        "One thread, the five best labels, default model. Weights per row: lengths of the lists of "
        f"its features. Single rows: median of {SINGLE_ROWS}, elapsed; a CSC row goes through "
        "scikit-learn's validation.",
        rows,
    ),
    Table(
        "smaller",
        "Smaller models",
        "`compress(bits, prune=prune)` of the default model; MB is the saved file.",
        smaller,
    ),
    Table(
        "effort",
        "Less than exact",
        "`predict_top_k(X, k=5, effort=effort)`; found: share of the exact five best labels.",
        effort,
    ),
    Table(
        "opening",
        "Opening a file",
        f"A million labels, {WEIGHTS_PER_FEATURE} drawn weights a feature, two features a row. "
        "In memory: the system still holds the file's pages; on disk: it was asked to drop them.",
        opening,
    ),
    Table(
        "http",
        "Over HTTP",
        "`sublearn serve` on this machine; `yso_en` has 20,578 labels. Rows as indices and values, "
        "or texts; the five best labels. CPU for a request, of all processes of the server and of "
        "the client that shares its cores; the median and 99 % of requests on the clock, which "
        "other work on the machine lengthens; items answered in a second.",
        over_http,
        page="http",
    ),
]
