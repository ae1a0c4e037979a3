"""Trimmed networks: weights left at the dense network's error, and time to predict, beside rivals.

    python benchmarks/trim.py --only lenet300 --json benchmarks/results/trim.json
    python benchmarks/trim.py --records benchmarks/results/trim.json \\
        --markdown docs/measured/trim.md

Needs PyTorch and torch-pruning. A network is trained once; every method starts from it and goes on
to ever fewer weights until three networks in a row have more errors than allowed on held-out
images, or until SUBLEARN_BENCHMARK_BUDGET CPU seconds (900) are over. Allowed are those of the
dense network and half their standard deviation. The smallest network that has not more counts, and
is tested once. One thread. With SUBLEARN_BENCHMARK_KEEP, a directory, trained networks and the rows
of finished methods are kept there, and a run that was interrupted goes on.
"""

from __future__ import annotations

import json
import math
import os
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from harness.figures import Cell, Figures, Measurement, main
from harness.networks import (
    NETWORKS,
    Pictures,
    cifar,
    count,
    error,
    fewer,
    layers_of,
    mnist,
    train,
)
from harness.pruning import RIVALS, Schedule, smallest_as_good
from torch import nn

from sublearn.trim import deep_trim, to_sparse

BUDGET = float(os.environ.get("SUBLEARN_BENCHMARK_BUDGET", "900"))
#: Passes over the data of one step of each rival, and of the two parts of a stage of ours.
N_EPOCHS = int(os.environ.get("SUBLEARN_BENCHMARK_EPOCHS", "4"))
KEEP = (
    Path(os.environ["SUBLEARN_BENCHMARK_KEEP"]) if "SUBLEARN_BENCHMARK_KEEP" in os.environ else None
)
COLUMNS = {
    "method": "",
    "weights": ",d",
    "times fewer": ",.0f",
    "held-out error, %": ".2f",
    "test error, %": ".2f",
    "CPU s": ",.0f",
}


@dataclass(frozen=True)
class Race:
    """All methods on one network; a :class:`Measurement` calls it."""

    name: str
    load: Callable[[Path], Pictures]
    layers: list[str] | None  # None: all
    n_epochs: int  # of the dense network's training
    shrink: float  # share of the weights that a step of a rival leaves
    options: Mapping[str, Any]  # of deep_trim

    def __call__(self, directory: Path, seed: int) -> Figures:
        torch.set_num_threads(1)
        data = self.load(directory)
        dense = self.trained(data, seed)
        rows = [self.row("dense", dense, dense, data, 0.0)]
        announce(f"  {rows[0]}")
        for method in ("deep_trim", *RIVALS):
            rows.append(kept(f"{self.name} {method} {seed}", self.raced(method, dense, data, seed)))
            announce(f"  {rows[-1]}")
        return Figures(COLUMNS, rows)

    def trained(self, data: Pictures, seed: int) -> nn.Module:
        torch.manual_seed(seed)
        network = NETWORKS[self.name]()
        path = KEEP and KEEP / f"{self.name} {seed}.pt"
        if path and path.exists():
            network.load_state_dict(torch.load(path))
        else:
            train(network, data.train, self.n_epochs)
        if path:
            torch.save(network.state_dict(), path)
        return network.eval()

    def raced(
        self, method: str, dense: nn.Module, data: Pictures, seed: int
    ) -> Callable[[], list[Cell]]:
        def run() -> list[Cell]:
            start = time.process_time()
            limit = limit_of(dense, data)
            if method == "deep_trim":
                best: nn.Module | None = self.trim(dense, data, limit, seed)
            else:
                torch.manual_seed(seed)
                networks = RIVALS[method](
                    dense, data, self.layers, Schedule(N_EPOCHS, self.shrink, 60)
                )
                best = smallest_as_good(networks, data, self.layers, limit, BUDGET)
            return self.row(method, best, dense, data, time.process_time() - start)

        return run

    def trim(self, dense: nn.Module, data: Pictures, limit: float, seed: int) -> nn.Module:
        start = time.process_time()
        result = deep_trim(
            dense,
            data.train,
            layers=self.layers,
            validation=data.held_out,
            criterion="error",
            tolerance=limit - error(dense, data.held_out),
            polish_biases=True,
            random_state=seed,
            callback=lambda _: time.process_time() - start > BUDGET,
            **self.options,
        )
        for row in result.trace.rows():
            announce(f"    {row}")
        return result.module

    def row(
        self, method: str, network: nn.Module | None, dense: nn.Module, data: Pictures, cpu: float
    ) -> list[Cell]:
        if network is None:
            return [method, None, None, None, None, cpu]
        n_left, n_all = (count(layers_of(part, self.layers)) for part in (network, dense))
        held_out, test = (100 * error(network, part) for part in (data.held_out, data.test))
        return [method, n_left, n_all / max(n_left, 1), held_out, test, cpu]


def announce(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def limit_of(dense: nn.Module, data: Pictures) -> float:
    """Half a standard deviation above the dense network's held-out error, which is as uncertain."""
    share = error(dense, data.held_out)
    return share + 0.5 * math.sqrt(share * (1 - share) / len(data.held_out[1]))


def kept(key: str, run: Callable[[], list[Cell]]) -> list[Cell]:
    """What an earlier run has kept under this key, else what is kept now."""
    path = KEEP and KEEP / f"{key}.json"
    if path and path.exists():
        row: list[Cell] = json.loads(path.read_text())
        return row
    row = run()
    if path:
        path.write_text(json.dumps(row))
    return row


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
#: More and longer stages than by default, for networks whose every weight counts.
SLOW = {"max_stages": 20, "growth": 1.4, "warm_epochs": 6, "polish_epochs": 8, "max_iter": 10}
#: Millions of weights: most go in the first stage, which looks at large batches.
WIDE = {"max_stages": 14, "growth": 2.0, "max_iter": 10, "sample_size": 2048}
MEASUREMENTS = [
    Measurement(
        "lenet300",
        "LeNet-300-100 on MNIST",
        NOTE,
        Race("LeNet-300-100", mnist, None, 12, 0.7, SLOW),
    ),
    Measurement("lenet5", "LeNet-5 on MNIST", NOTE, Race("LeNet-5", mnist, None, 6, 0.6, SLOW)),
    Measurement(
        "vgg",
        "Fully connected layers of a VGG-like network on 11,000 digits of MNIST",
        NOTE,
        Race("VGG on MNIST", fewer(mnist, 11_000), FULLY_CONNECTED, 3, 0.3, WIDE),
    ),
    Measurement(
        "cifar",
        "Fully connected layers of a VGG-like network on 3,500 images of CIFAR-10",
        NOTE,
        Race("VGG on CIFAR-10", cifar, FULLY_CONNECTED, 10, 0.3, WIDE),
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
