"""Trimmed networks: weights left at the dense network's error, and time to predict, beside rivals.

    python benchmarks/trim.py --only lenet300 --json benchmarks/results/trim.json
    python benchmarks/trim.py --records benchmarks/results/trim.json \\
        --markdown docs/measured/trim.md

Needs PyTorch. A network is trained once; every method starts from it and goes on to ever fewer
weights until two networks in a row have more errors than the dense one on held-out images, or
until SUBLEARN_BENCHMARK_BUDGET CPU seconds (900) are over. The smallest network that has not more
errors there counts, and is tested once. One thread.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
from harness.figures import Cell, Figures, Measurement, main
from harness.networks import (
    NETWORKS,
    RIVALS,
    Pictures,
    Schedule,
    cifar,
    count,
    error,
    layers_of,
    mnist,
    smallest_as_good,
    train,
)
from torch import nn

from sublearn.trim import deep_trim, to_sparse

BUDGET = float(os.environ.get("SUBLEARN_BENCHMARK_BUDGET", "900"))
#: Passes over the data of one step of each rival, and of the two parts of a stage of ours.
N_EPOCHS = int(os.environ.get("SUBLEARN_BENCHMARK_EPOCHS", "4"))
COLUMNS = {
    "method": "",
    "weights": ",d",
    "times fewer": ",.0f",
    "held-out error, %": ".2f",
    "test error, %": ".2f",
    "CPU s": ",.0f",
}


def announce(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def trained(name: str, data: Pictures, seed: int, n_epochs: int) -> nn.Module:
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    network = NETWORKS[name]()
    train(network, data.train, n_epochs)
    return network.eval()


def race(
    name: str,
    load: Callable[[Path], Pictures],
    names: list[str] | None,
    n_epochs: int,
    shrink: float,
) -> Callable[[Path, int], Figures]:
    """All methods on one network."""

    def measure(directory: Path, seed: int) -> Figures:
        data = load(directory)
        dense = trained(name, data, seed, n_epochs)
        limit = error(dense, data.held_out)
        rows = [row_of("dense", dense, dense, data, names, 0.0)]
        announce(f"  {rows[-1]}")
        start = time.process_time()
        ours = trim(dense, data, names, seed)
        rows.append(row_of("deep_trim", ours, dense, data, names, time.process_time() - start))
        announce(f"  {rows[-1]}")
        for rival, make in RIVALS.items():
            schedule = Schedule(N_EPOCHS, shrink, 40)
            torch.manual_seed(seed)
            best, seconds = smallest_as_good(
                make(dense, data, names, schedule), data, names, limit, BUDGET
            )
            rows.append(row_of(rival, best, dense, data, names, seconds))
            announce(f"  {rows[-1]}")
        return Figures(COLUMNS, rows)

    return measure


def trim(network: nn.Module, data: Pictures, names: list[str] | None, seed: int) -> nn.Module:
    start = time.process_time()
    result = deep_trim(
        network,
        data.train,
        layers=names,
        validation=data.held_out,
        criterion="error",
        tolerance=0.0,
        max_stages=20,
        growth=1.4,
        warm_epochs=N_EPOCHS,
        polish_epochs=N_EPOCHS,
        random_state=seed,
        callback=lambda _: time.process_time() - start > BUDGET,
    )
    for row in result.trace.rows():
        announce(f"    {row}")
    return result.module


def row_of(
    method: str,
    network: nn.Module | None,
    dense: nn.Module,
    data: Pictures,
    names: list[str] | None,
    seconds: float,
) -> list[Cell]:
    if network is None:
        return [method, None, None, None, None, seconds]
    n_left, n_all = count(layers_of(network, names)), count(layers_of(dense, names))
    held_out, test = (100 * error(network, part) for part in (data.held_out, data.test))
    return [method, n_left, n_all / max(n_left, 1), held_out, test, seconds]


def speed(directory: Path, seed: int) -> Figures:
    """Microseconds of the fully connected part for one sample, dense and with few weights.

    Which weights are left makes no difference to the time, only how many.
    """
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    rows: list[list[Cell]] = []
    for name, share in (("LeNet-300-100", 0.01), ("LeNet-5", 0.003), ("VGG on MNIST", 0.0002)):
        network = NETWORKS[name]()
        parts = list(network)
        first = next(i for i, part in enumerate(parts) if isinstance(part, nn.Linear))
        dense = nn.Sequential(*parts[first:]).eval()
        with torch.no_grad():
            for layer in layers_of(dense, None).values():
                layer.weight *= torch.rand_like(layer.weight) < max(
                    share, 20 / layer.weight.numel()
                )
        sparse = to_sparse(dense)
        x = torch.randn(1, dense[0].in_features)
        dense_us, sparse_us = microseconds(dense, x), microseconds(sparse, x)
        rows.append(
            [name, count(layers_of(dense, None)), dense_us, sparse_us, dense_us / sparse_us]
        )
    columns = {"network": "", "weights left": ",d", "dense, us": ".0f", "sparse, us": ".1f"}
    return Figures(columns | {"times faster": ".1f"}, rows)


@torch.no_grad()
def microseconds(network: nn.Module, x: torch.Tensor) -> float:
    laps = []
    for _ in range(300):
        start = time.perf_counter()
        network(x)
        laps.append(time.perf_counter() - start)
    return 1e6 * statistics.median(laps)


NOTE = "CPU seconds of one thread for all networks that a method went through."
FULLY_CONNECTED = ["7", "9", "11"]
MEASUREMENTS = [
    Measurement(
        "lenet300", "LeNet-300-100 on MNIST", NOTE, race("LeNet-300-100", mnist, None, 12, 0.7)
    ),
    Measurement("lenet5", "LeNet-5 on MNIST", NOTE, race("LeNet-5", mnist, None, 6, 0.6)),
    Measurement(
        "vgg",
        "Fully connected layers of a VGG-like network on MNIST",
        NOTE,
        race("VGG on MNIST", mnist, FULLY_CONNECTED, 2, 0.3),
    ),
    Measurement(
        "cifar",
        "Fully connected layers of a VGG-like network on 3,500 images of CIFAR-10",
        NOTE,
        race("VGG on CIFAR-10", cifar, FULLY_CONNECTED, 10, 0.3),
    ),
    Measurement(
        "speed",
        "One sample through the fully connected layers",
        "Median of 300, one thread; the weights that are left are chosen at random.",
        speed,
    ),
]

if __name__ == "__main__":
    raise SystemExit(main("Trimmed networks", MEASUREMENTS))
