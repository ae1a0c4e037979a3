"""Last layers with very many labels: time and accuracy of search, beside exact and sampled softmax.

    python benchmarks/embed_training.py --only yso --json benchmarks/results/embed_training.json
    python benchmarks/embed_training.py --records benchmarks/results/embed_training.json \\
        --markdown docs/measured/embed_training.md

Needs PyTorch. One thread, CPU seconds. Everybody minimises softmax by Adagrad on the same batches;
precision is of a scan of all labels, whoever trained the weights.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import numpy as np
import torch
from harness.figures import Cell, Figures, Measurement, main
from harness.growth import fit_exponent
from harness.output_layers import (
    LayerData,
    faces,
    precisions,
    torch_exact,
    torch_sampled,
    yso,
)

from sublearn import _core
from sublearn.embed.layer_training import LabelRows, LayerPlan, LayerTrainer

N_EPOCHS = int(os.environ.get("SUBLEARN_BENCHMARK_EPOCHS", "2"))
#: Records of `yso_en` to learn from; the exact methods take most of the time.
N_RECORDS = int(os.environ.get("SUBLEARN_BENCHMARK_RECORDS", "50000"))
BATCH = 256
RATE = 0.3
COLUMNS = {
    "method": "",
    "P@1, %": ".2f",
    "P@5, %": ".2f",
    "microseconds a sample": ",.1f",
    "times faster than exact": ",.1f",
}


def announce(row: object) -> None:
    print(f"  {row}", file=sys.stderr, flush=True)


def plan(data: LayerData, gradient: str, **options: int | float | str) -> LayerPlan:
    """What DenseExtremeClassifier does by default, with other options in its place."""
    wanted: dict[str, object] = {
        "loss": "softmax",
        "mu": 1.0,
        "gradient": gradient,
        "optimizer": "adagrad",
        "n_blocks": 4,
        "n_candidates": 64,
        "n_probe": 4,
        "tau": 1e-3,
        "n_threads": 1,
    }
    return LayerPlan.with_defaults(data.n_labels, **(wanted | options))  # type: ignore[arg-type]


def ours(
    data: LayerData, wanted: LayerPlan, seed: int, *, n_epochs: int = N_EPOCHS, n_rows: int = 10**9
) -> tuple[np.ndarray, float]:
    """Weights, and CPU seconds of a sample in the last epoch, its clusters included."""
    weights = np.zeros((data.n_labels, data.X.shape[1]), dtype=np.float32)
    trainer = LayerTrainer(weights, wanted, np.random.default_rng(seed))
    labels = LabelRows.of(data.Y)
    per_sample = 0.0
    for epoch in range(n_epochs):
        start = time.process_time()
        X = data.X[:n_rows]
        report = trainer.run(
            X,
            labels if n_rows >= len(data.X) else labels.take(np.arange(len(X))),
            batch_size=BATCH,
            rates=(RATE, RATE),
            is_warm=epoch > 0 or n_epochs == 1,
            monitor=_core.Monitor(),
        )
        per_sample = (time.process_time() - start) / len(X)
        announce((wanted.gradient, epoch, f"{1e6 * per_sample:.1f} us", f"{report.loss:.3f}"))
    return trainer.weights(), per_sample


def compared(runs: dict[str, tuple[np.ndarray | None, float]], data: LayerData) -> Figures:
    """A row for each method; the faster of the two exact ones is what others are compared with."""
    exact = min(seconds for name, (_, seconds) in runs.items() if "exact" in name)
    rows: list[list[Cell]] = []
    for name, (weights, seconds) in runs.items():
        hits: tuple[float | None, float | None] = (None, None)
        if weights is not None:
            hits = precisions(weights, data)
        rows.append([name, *hits, 1e6 * seconds, exact / seconds])
        announce(rows[-1])
    return Figures(COLUMNS, rows)


def library(directory: Path, seed: int) -> Figures:
    """Library records with 20,578 labels: two epochs of everybody."""
    torch.set_num_threads(1)
    data = yso(directory, N_RECORDS)
    everything = (N_EPOCHS, RATE, BATCH, 10**9, seed)
    runs: dict[str, tuple[np.ndarray | None, float]] = {
        "decomposed search": ours(data, plan(data, "decomposed"), seed),
        "plain search": ours(data, plan(data, "mips"), seed),
        "sampled": ours(data, plan(data, "sampled"), seed),
        "sampled, PyTorch": torch_sampled(data, *everything),
        "exact": (None, ours(data, plan(data, "exact"), seed, n_epochs=1, n_rows=20 * BATCH)[1]),
        "exact, PyTorch": torch_exact(data, *everything),
    }
    return compared(runs, data)


def identities(directory: Path, seed: int) -> Figures:
    """200,000 generated identities: the time of a sample, of each on a part of the pictures."""
    torch.set_num_threads(1)
    data = faces(200_000, 200_000, seed)
    some, few = 160 * BATCH, 4 * BATCH
    runs: dict[str, tuple[np.ndarray | None, float]] = {
        name: (None, ours(data, plan(data, gradient), seed, n_rows=n_rows, n_epochs=n_epochs)[1])
        for name, gradient, n_rows, n_epochs in (
            ("decomposed search", "decomposed", some, 2),
            ("plain search", "mips", some, 2),
            ("sampled", "sampled", some, 1),
            ("exact", "exact", few, 1),
        )
    }
    runs["sampled, PyTorch"] = (None, torch_sampled(data, 1, RATE, BATCH, 40 * BATCH, seed)[1])
    runs["exact, PyTorch"] = (None, torch_exact(data, 1, RATE, BATCH, few, seed)[1])
    return compared(runs, data)


def growth(directory: Path, seed: int) -> Figures:
    """Time of a sample as the number of identities doubles; weights as after some epochs."""
    sizes, costs, rows = [12_500, 25_000, 50_000, 100_000, 200_000], [], []
    for n_labels in sizes:
        data = faces(n_labels, n_labels, seed)  # one picture of each: rows are the first weights
        wanted = plan(data, "decomposed")
        trainer = LayerTrainer(8 * data.X, wanted, np.random.default_rng(seed))
        trainer.prepare(is_warm=True)
        # As many samples as pass between two refreshes of the searches' copies, and a bit more.
        some = np.arange(max(10_000, round(0.3 * n_labels)))
        labels = LabelRows.of(data.Y).take(some)
        start = time.process_time()
        report = trainer.run(
            data.X[some],
            labels,
            batch_size=BATCH,
            rates=(0.01, 0.01),
            is_warm=True,
            monitor=_core.Monitor(),
        )
        costs.append((time.process_time() - start) / len(some))
        rows.append([n_labels, 1e6 * costs[-1], report.work / len(some)])
        announce(rows[-1])
    exponent = fit_exponent(sizes, costs)
    by_work = fit_exponent(sizes, [row[2] for row in rows])
    columns = {"labels": "", "microseconds a sample": ".1f", "inner products a sample": ",.0f"}
    table: list[list[Cell]] = [[f"{row[0]:,}", *row[1:]] for row in rows]
    table.append(["exponent", exponent, f"{by_work:.2f}"])
    return Figures(columns | {"microseconds a sample": ".2f"}, table)


def trade(directory: Path, seed: int) -> Figures:
    """Blocks B and candidates Q on the library records: one epoch by sampling, one by search."""
    data = yso(directory, N_RECORDS)
    rows: list[list[Cell]] = []
    for n_blocks in (1, 2, 4, 8):
        for n_candidates in (16, 64, 256):
            kind = "mips" if n_blocks == 1 else "decomposed"
            wanted = plan(data, kind, n_blocks=n_blocks, n_candidates=n_candidates)
            weights, seconds = ours(data, wanted, seed)
            rows.append([n_blocks, n_candidates, *precisions(weights, data), 1e6 * seconds])
            announce(rows[-1])
    return Figures(
        {
            "blocks B": "d",
            "candidates Q": "d",
            "P@1, %": ".2f",
            "P@5, %": ".2f",
            "microseconds a sample": ",.1f",
        },
        rows,
    )


MEASUREMENTS = [
    Measurement(
        "yso",
        "Library records, 20,578 labels",
        f"`yso_en`: {N_RECORDS:,} records of 3.6 labels, 128 numbers each (singular vectors of "
        "words and labels). Two epochs; searches begin with one by sampling, and their time is "
        "that of the second. Our own exact steps see 5,120 samples, for their time alone.",
        library,
    ),
    Measurement(
        "faces",
        "Generated identities, 200,000 labels",
        "Unit vectors of 128 numbers, one picture of each identity, in families of fifty. Times "
        "alone: 40,960 samples of searches, after as many by sampling; 1,024 of exact methods.",
        identities,
    ),
    Measurement(
        "growth",
        "Time of a sample by the number of labels",
        "Decomposed search on generated identities, with refreshes of the searches' copies.",
        growth,
    ),
    Measurement(
        "trade",
        "Blocks and candidates",
        "`yso_en` as above. One block is plain search.",
        trade,
    ),
]

if __name__ == "__main__":
    sys.exit(main("Training last layers with very many labels", MEASUREMENTS))
