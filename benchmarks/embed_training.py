"""Last layers with very many labels: time and accuracy of search, beside exact and sampled softmax.

Needs PyTorch, and fastText for `records` and `languages`. One thread, CPU seconds. Everybody but
fastText minimises softmax by Adagrad, in the measurements of a last layer on the same batches;
precision is of a scan of all labels, whoever trained the weights.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from harness.bench import Bench
from harness.dense_sets import JUDGED, TUNED
from harness.growth import fit_exponent
from harness.output_layers import (
    LayerData,
    faces,
    first_right,
    nearest_mean,
    precisions,
    torch_adam,
    torch_exact,
    torch_sampled,
    yso,
)
from harness.table import Cell, Figures, Table
from harness.text_layers import TextData, fasttext_labels, languages, records
from harness.timing import cpu_timed

from sublearn import _core
from sublearn.embed import DenseExtremeClassifier, EmbeddingExtremeClassifier, LabelSearch
from sublearn.embed.layer_training import LabelRows, LayerTrainer
from sublearn.metrics import precision_at_k

N_EPOCHS = 2
#: Records of `yso_en` to learn from; the exact methods take most of the time.
N_RECORDS = 12_000
#: Rows of the measurements that go from sparse rows to labels.
N_TEXTS = 6_000
BATCH = 256
ADAM_RATES = (1e-3, 1e-2)
RATE = 0.3
COLUMNS = {
    "method": "",
    "P@1, %": ".2f>",
    "P@5, %": ".2f>",
    "microseconds a sample": ",.1f<",
    "times faster than exact": ",.1f",
}


def trainer_of(
    weights: np.ndarray, gradient: str, seed: int, n_blocks: int = 4, n_candidates: int = 64
) -> LayerTrainer:
    """What DenseExtremeClassifier does by default, but for four blocks."""
    search = LabelSearch(n_blocks=n_blocks, n_candidates=n_candidates)
    return LayerTrainer(
        weights, np.random.default_rng(seed), loss="softmax", gradient=gradient,
        optimizer="adagrad", search=search, n_threads=1,
    )  # fmt: skip


def ours(
    data: LayerData,
    gradient: str,
    seed: int,
    *,
    n_epochs: int = N_EPOCHS,
    n_rows: int = 10**9,
    **search: int,
) -> tuple[np.ndarray, float]:
    """Weights, and CPU seconds of a sample in the last epoch.

    Clusters are learnt anew when K samples have passed: they count as their share of these.
    """
    weights = np.zeros((data.n_labels, data.X.shape[1]), dtype=np.float32)
    trainer = trainer_of(weights, gradient, seed, **search)
    labels = LabelRows.of(data.Y)
    labels = labels if n_rows >= len(data.X) else labels.take(np.arange(n_rows))
    per_sample = 0.0
    for epoch in range(n_epochs):
        done = epoch if n_epochs > 1 else 1
        per_sample, _ = an_epoch(trainer, data, labels, done, RATE, n_rows)
    return trainer.weights(), per_sample


def an_epoch(
    trainer: LayerTrainer, data: LayerData, labels: LabelRows, done: int, rate: float, n: int
) -> tuple[float, float]:
    """CPU seconds and inner products of a sample, after some epochs."""
    settings, prepared = cpu_timed(lambda: trainer.prepare(done))
    X, monitor = data.X[:n], _core.Monitor()
    report, spent = cpu_timed(
        lambda: trainer.run(X, labels, settings, BATCH, (rate, rate), monitor)
    )
    return prepared / data.n_labels + spent / len(X), report.work / len(X)


def compared(runs: dict[str, tuple[np.ndarray | None, float]], data: LayerData) -> Figures:
    """A row for each method; the faster of the two exact ones is what others are compared with."""
    exact = min(seconds for name, (_, seconds) in runs.items() if "exact" in name)
    rows: list[list[Cell]] = []
    for name, (weights, seconds) in runs.items():
        hits: tuple[float | None, float | None] = (None, None)
        if weights is not None:
            hits = precisions(weights, data)
        rows.append([name, *hits, 1e6 * seconds, exact / seconds])
    return Figures(COLUMNS, rows)


def library(bench: Bench) -> Figures:
    """Library records with 20,578 labels: two epochs of everybody."""
    data = yso(bench.data, bench.size(N_RECORDS, 1_000))
    everything = (N_EPOCHS, RATE, BATCH, 10**9, bench.seed)
    runs: dict[str, tuple[np.ndarray | None, float]] = {
        "decomposed search, 4 blocks": ours(data, "decomposed", bench.seed),
        "decomposed search, 2 blocks": ours(data, "decomposed", bench.seed, n_blocks=2),
        "plain search": ours(data, "mips", bench.seed),
        "sampled": ours(data, "sampled", bench.seed),
        "sampled, PyTorch": torch_sampled(data, *everything),
        "exact": (
            None,
            ours(data, "exact", bench.seed, n_epochs=1, n_rows=20 * BATCH)[1],
        ),
        "exact, PyTorch": torch_exact(data, *everything),
    }
    return compared(runs, data)


def identities(bench: Bench) -> Figures:
    """200,000 generated identities: the time of a sample, weights as after some epochs."""
    n = bench.size(200_000, 4_000)
    data, most = faces(n, n, bench.seed), bench.size(80, 8) * BATCH
    runs: dict[str, tuple[np.ndarray | None, float]] = {
        name: (None, seconds_of_a_sample(data, gradient, n_rows, bench.seed)[0])
        for name, gradient, n_rows in (
            ("decomposed search", "decomposed", most),
            ("plain search", "mips", most),
            ("sampled", "sampled", most),
            ("exact", "exact", 2 * BATCH),
        )
    }
    runs["sampled, PyTorch"] = (
        None,
        torch_sampled(data, 1, RATE, BATCH, 20 * BATCH, bench.seed)[1],
    )
    runs["exact, PyTorch"] = (None, torch_exact(data, 1, RATE, BATCH, 2 * BATCH, bench.seed)[1])
    return compared(runs, data)


def seconds_of_a_sample(
    data: LayerData, gradient: str, n_rows: int, seed: int
) -> tuple[float, float]:
    """CPU seconds and inner products; clusters, which serve K samples, count as their share.

    The weights are the pictures themselves, longer: one of each identity.
    """
    trainer = trainer_of(8 * data.X, gradient, seed)
    labels = LabelRows.of(data.Y).take(np.arange(n_rows))
    return an_epoch(trainer, data, labels, 1, 0.01, n_rows)


def growth(bench: Bench) -> Figures:
    """Time of a sample as the number of identities doubles; weights as after some epochs."""
    sizes, costs, products = bench.size([12_500, 25_000, 50_000, 100_000], [8_000, 16_000]), [], []
    for n_labels in sizes:
        data = faces(n_labels, n_labels, bench.seed)
        # As many samples as pass between two refreshes of the searches' copies, and a bit more.
        n_rows = max(8_000, round(0.3 * n_labels))
        seconds, work = seconds_of_a_sample(data, "decomposed", n_rows, bench.seed)
        costs.append(seconds)
        products.append(work)
    rows: list[list[Cell]] = [
        [f"{n_labels:,}", 1e6 * seconds, f"{work:,.0f}"]
        for n_labels, seconds, work in zip(sizes, costs, products, strict=True)
    ]
    exponent, by_work = fit_exponent(sizes, costs), fit_exponent(sizes, products)
    rows.append(["exponent", exponent, f"{by_work:.2f}"])
    columns = {"labels": "", "microseconds a sample": ".2f<", "inner products a sample": ""}
    return Figures(columns, rows)


def trade(bench: Bench) -> Figures:
    """Blocks B and candidates Q on the library records: one epoch by sampling, one by search."""
    data = yso(bench.data, bench.size(N_RECORDS, 1_000))
    rows: list[list[Cell]] = []
    for n_blocks in bench.some((1, 2, 4, 8)):
        for n_candidates in bench.some((16, 64, 256)):
            kind = "mips" if n_blocks == 1 else "decomposed"
            search = {"n_blocks": n_blocks, "n_candidates": n_candidates}
            weights, seconds = ours(data, kind, bench.seed, **search)
            rows.append([n_blocks, n_candidates, *precisions(weights, data), 1e6 * seconds])
    return Figures(
        {
            "blocks B": "d",
            "candidates Q": "d",
            "P@1, %": ".2f>",
            "P@5, %": ".2f>",
            "microseconds a sample": ",.1f<",
        },
        rows,
    )


def defaults(bench: Bench) -> Figures:
    """No parameter set, on sets that the defaults were chosen on and on others."""
    rows: list[list[Cell]] = []
    n_test = bench.size(2_000, 200)
    for use, sets in (("chosen on", TUNED), ("judged on", JUDGED)):
        for name in bench.cases(sets):
            data = sets[name](bench.data)
            model = DenseExtremeClassifier(random_state=bench.seed)
            _, seconds = cpu_timed(partial(model.fit, data.X, data.Y))
            own = first_right(model.decision_function(data.X_test[:n_test]), data.Y_test[:n_test])
            adam = max(torch_adam(data, seconds, r, bench.seed, n_test) for r in ADAM_RATES)
            rows.append([use, name, own, nearest_mean(data, n_test), adam, seconds])
            bench.say(rows[-1])
    columns = {"use": "", "set": "", "ours, %": ".2f>", "nearest mean, %": ".2f", "Adam, %": ".2f"}
    return Figures(columns | {"CPU s": ".1f<"}, rows)


def end_to_end(
    load: Callable[[Path, int], TextData], fasttext_epochs: tuple[int, ...]
) -> Callable[[Bench], Figures]:
    """Networks with a hidden layer of 100 numbers, trained from sparse rows."""

    def measure(bench: Bench) -> Figures:
        data = load(bench.data, bench.size(N_TEXTS, 500))
        rows: list[list[Cell]] = []

        def add(name: str, n_epochs: int, seconds: float, best: np.ndarray) -> None:
            first, five = precision_at_k(data.Y_test, best, [1, 5])
            rows.append([name, n_epochs, seconds, 100 * float(first), 100 * float(five)])

        for title, gradient in (
            ("decomposed search", "decomposed"),
            ("plain search", "mips"),
            ("sampled", "sampled"),
        ):
            model = EmbeddingExtremeClassifier(100, gradient=gradient, random_state=bench.seed)
            _, seconds = cpu_timed(partial(model.fit, data.X, data.Y))
            best = np.asarray(model.predict_top_k(data.X_test, k=5, exact=True)[0])
            add(title, model.n_iter_, seconds, best)
        title = "fastText, hierarchical softmax"
        for n_epochs in bench.some(fasttext_epochs):
            try:
                best, seconds = fasttext_labels(data, 100, n_epochs, "hs", bench.seed)
            except ImportError:
                rows.append([title, n_epochs, "not installed", None, None])
            else:
                add(title, n_epochs, seconds, best)
        columns = {"method": "", "epochs": "d", "CPU s": ".1f<", "P@1, %": ".2f>"}
        columns |= {"P@5, %": ".2f>"}
        return Figures(columns, rows)

    return measure


TABLES = [
    Table(
        "defaults",
        "No parameter set",
        "Share of test rows whose best label is right. The first five sets were looked at while "
        "the defaults were chosen, the others were not. Adam (PyTorch, all labels, rows as they "
        "are) has the CPU time of our fit, with the better of the learning rates 0.001 and 0.01.",
        defaults,
    ),
    Table(
        "yso",
        "Library records, 20,578 labels",
        f"`yso_en`: {N_RECORDS:,} records of 3.6 labels, 128 numbers each (singular vectors of "
        "words and labels). Two epochs; searches begin with one by sampling, and their time is "
        "that of the second. Our own exact steps see 5,120 samples, for their time alone.",
        library,
    ),
    Table(
        "faces",
        "Generated identities, 200,000 labels",
        "Unit vectors of 128 numbers, one picture of each identity, in families of fifty. Times "
        "alone, with weights as after some epochs: 20,480 samples of searches, 512 of exact "
        "methods. Clusters, which serve K samples, count as their share.",
        identities,
    ),
    Table(
        "growth",
        "Time of a sample by the number of labels",
        "Decomposed search on generated identities, with refreshes of the searches' copies.",
        growth,
    ),
    Table(
        "trade",
        "Blocks and candidates",
        "`yso_en` as above. One block is plain search.",
        trade,
        page=None,
    ),
    Table(
        "records",
        "Library records from their words, end to end",
        f"`EmbeddingExtremeClassifier` with its defaults, 100 numbers: {N_TEXTS:,} records of "
        "`yso_en` by weighted words, 20,578 labels, 2,000 test records. fastText sees the same "
        "words without weights; its epochs are cheaper, so that it gets more of them.",
        end_to_end(records, (25, 100)),
    ),
    Table(
        "languages",
        "The language of a word, end to end",
        f"As above: {N_TEXTS:,} words of `panlex_swadesh110` by runs of up to four letters, 2,111 "
        "languages; test words are of other concepts.",
        end_to_end(languages, (10, 25)),
    ),
]
