"""Trimmed networks: weights left at the dense network's error, and time to predict, beside rivals.

Needs PyTorch and torch-pruning. A network is trained once; every method starts from it and goes on
to ever fewer weights until three networks in a row have more errors on held-out images than the
dense network has, or until 900 CPU seconds (or `--limit`) are over. The smallest
network that has not more counts, and is tested once. The smallest of many that just pass owes it to
chance in part; "deep_trim to size" is told how many weights may be left instead, and of the
networks that are small enough the one with the fewest held-out errors is tested. One thread.

Where images are moved, they are for every method. If they were not when the network was trained, a
row shows what it gains by being trained once more, as long as before, on images that are moved.
"""

from __future__ import annotations

import copy
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
from harness.bench import Bench
from harness.networks import (
    NETWORKS,
    Pictures,
    cifar,
    count,
    error,
    fewer,
    layers_of,
    mnist,
    moved,
    train,
)
from harness.pruning import RIVALS, Schedule, smallest_as_good
from harness.table import Cell, Chart, Figures, Series, Table
from harness.timing import cpu_timed
from torch import nn

from sublearn.trim import L1Search, QuasiNewton, Retraining, deep_trim, to_sparse

LIMIT = 900.0
#: By the errors of the dense network, and by the number of weights.
OURS = ("deep_trim", "deep_trim to size")
METHODS = (*OURS, *RIVALS)
COLUMNS = {
    "method": "",
    "weights": ",d<",
    "times fewer": ",.0f",
    "held-out error, %": ".2f",
    "test error, %": ".2f<",
    "CPU s": ",.0f<",
}


class Settings(NamedTuple):
    """How deep_trim goes about it."""

    search: L1Search
    retraining: Retraining
    quasi_newton: QuasiNewton


@dataclass(frozen=True)
class Race:
    """All methods on one network; a table calls it."""

    name: str
    load: Callable[[Path], Pictures]
    layers: list[str] | None  # None: all
    n_epochs: int  # of the dense network's training
    path: Schedule  # of the rivals
    settings: Settings  # of deep_trim
    n_times: int  # how many times fewer weights deep_trim is told to leave
    is_moved_before: bool = False  # whether the dense network was trained with path.augment too

    def __call__(self, bench: Bench) -> Figures:
        data = bench.size(self.load, fewer(self.load, 500))(bench.data)
        dense = self.trained(data, bench)
        rows = [self.row("dense", dense, dense, data, 0.0)]
        is_new = self.path.augment is not None and not self.is_moved_before
        for method in bench.some((["dense, moved"] if is_new else []) + [*METHODS], 1 + is_new):
            rows.append(
                bench.once({"method": method}, partial(self.raced, method, dense, data, bench))
            )
            bench.say(rows[-1])
        return Figures(COLUMNS, rows, charts=[size_and_error(rows)])

    def trained(self, data: Pictures, bench: Bench) -> nn.Module:
        """The dense network; the same in each process, as one thread makes it from one seed."""
        torch.manual_seed(bench.seed)
        network = NETWORKS[self.name]()
        augment = self.path.augment if self.is_moved_before else None
        train(network, data.train, bench.size(self.n_epochs, 1), augment=augment)
        return network.eval()

    def raced(self, method: str, dense: nn.Module, data: Pictures, bench: Bench) -> list[Cell]:
        torch.manual_seed(bench.seed)
        try:
            best, seconds = cpu_timed(partial(self.found, method, dense, data, bench))
        except ImportError:
            return [method, "not installed", None, None, None, None]
        return self.row(method, best, dense, data, seconds)

    def found(self, method: str, dense: nn.Module, data: Pictures, bench: Bench) -> Any:
        if method in OURS:
            return self.trim(dense, data, bench, method == "deep_trim to size")
        if method == "dense, moved":
            best = copy.deepcopy(dense)
            train(best, data.train, bench.size(self.n_epochs, 1), augment=self.path.augment)
            return best
        networks = RIVALS[method](dense, data, self.layers, self.path)
        goal = error(dense, data.held_out)
        return smallest_as_good(networks, data, self.layers, goal, bench.limit(LIMIT))

    def trim(self, dense: nn.Module, data: Pictures, bench: Bench, is_to_size: bool) -> nn.Module:
        n_most = count(layers_of(dense, self.layers)) // self.n_times
        aim: dict[str, Any] = {"max_weights": n_most} if is_to_size else {"max_increase": 0.0}
        start, limit = time.process_time(), bench.limit(LIMIT)
        result = deep_trim(
            dense,
            data.train,
            layers=self.layers,
            eval_set=data.held_out,
            criterion="error",
            search=self.settings.search,
            retraining=replace(self.settings.retraining, augment=self.path.augment),
            quasi_newton=self.settings.quasi_newton,
            random_state=bench.seed,
            callback=lambda _: time.process_time() - start > limit,
            **aim,
        )
        return result.module

    def row(
        self, method: str, network: nn.Module | None, dense: nn.Module, data: Pictures, cpu: float
    ) -> list[Cell]:
        if network is None:
            return [method, None, None, None, None, cpu]
        n_left, n_all = (count(layers_of(part, self.layers)) for part in (network, dense))
        held_out, test = (100 * error(network, part) for part in (data.held_out, data.test))
        return [method, n_left, n_all / max(n_left, 1), held_out, test, cpu]


def size_and_error(rows: Sequence[Sequence[Any]]) -> Chart:
    """Each network by its weights and its test errors: best is bottom left."""
    series = [Series(method, [n_left], [test]) for method, n_left, _, _, test, _ in rows if n_left]
    return Chart("", "", "weights left", "test error, %", series, "points", log_x=True)


def speed(bench: Bench) -> Figures:
    """Microseconds of the fully connected part for one sample, dense and with few weights.

    As in networks that were trimmed, the weights left are those of few units of each hidden layer;
    which ones makes no difference to the time.
    """
    torch.manual_seed(bench.seed)
    rows: list[list[Cell]] = []
    for name, sizes in WEIGHTS_LEFT.items():
        parts = list(NETWORKS[name]())
        first = next(i for i, part in enumerate(parts) if isinstance(part, nn.Linear))
        dense = nn.Sequential(*parts[first:]).eval()
        for k, (layer, size) in enumerate(zip(layers_of(dense, None).values(), sizes, strict=True)):
            leave(layer, size, N_UNITS, N_UNITS if k else layer.in_features)
        sparse = to_sparse(dense)
        n_left = sum(part.values.numel() for part in sparse.modules() if hasattr(part, "values"))
        dense_us, sparse_us = microseconds([dense, sparse], torch.randn(1, dense[0].in_features))
        rows.append([name, n_left, dense_us, sparse_us, dense_us / sparse_us])
    columns = {"network": "", "weights left": ",d", "dense, us": ".0f", "sparse, us": ".1f<"}
    return Figures(columns | {"times faster": ".1f"}, rows)


@torch.no_grad()
def leave(layer: nn.Linear, size: int, n_rows: int, n_columns: int) -> None:
    """Weights of 0 but for about `size` of them in the first rows and columns."""
    mask = torch.zeros_like(layer.weight)
    part = mask[:n_rows, :n_columns]
    part.copy_(torch.rand_like(part) < size / part.numel())
    layer.weight.mul_(mask)


@torch.no_grad()
def microseconds(networks: list[nn.Module], x: torch.Tensor) -> list[float]:
    """The median of 300 calls each, 20 at a time in turns."""
    laps: list[list[float]] = [[] for _ in networks]
    for _ in range(15):
        for network, times in zip(networks, laps, strict=True):
            for _ in range(20):
                start = time.perf_counter()
                network(x)
                times.append(time.perf_counter() - start)
    return [1e6 * statistics.median(times) for times in laps]


#: Hidden units, and weights that are left in each fully connected layer where prediction is timed:
#: about as many as deep_trim has left in one run or another.
N_UNITS = 64
WEIGHTS_LEFT = {
    "LeNet-300-100": (2_188, 866, 391),
    "LeNet-5": (700, 200),
    "VGG on MNIST": (346, 243, 355),
}
NOTE = "CPU seconds of one thread for all networks that a method went through."
FULLY_CONNECTED = ["7", "9", "11"]
#: Of deep_trim. Slow growth leaves fewer weights; convolutions take longer, and larger steps.
SLOW = Settings(
    L1Search(first_l1=1e-5, growth=1.15, patience=4, max_stages=24),
    Retraining(
        warm_epochs=8,
        polish_epochs=3,
        learning_rate=5e-3,
        batch_size=256,
        train_biases=True,
        distill=0.5,
    ),
    QuasiNewton(max_iter=4),
)
#: Digits that are moved cannot be learnt by heart, so there is nothing to hold a network back from.
MOVED = SLOW._replace(
    search=replace(SLOW.search, growth=1.2), retraining=replace(SLOW.retraining, distill=0.0)
)
#: Convolutions take long; with smaller batches, fewer passes lead to the same loss.
IMAGES = Settings(
    L1Search(first_l1=1e-4, growth=1.4, patience=4, max_stages=14),
    Retraining(
        warm_epochs=5, polish_epochs=4, learning_rate=1e-3, batch_size=64, train_biases=True
    ),
    QuasiNewton(max_iter=8, sample_size=8192, chunk_size=256),
)
WIDE = Settings(
    L1Search(first_l1=1e-4, growth=1.3, patience=4, max_stages=16),
    Retraining(
        warm_epochs=6, polish_epochs=6, learning_rate=1e-3, batch_size=128, train_biases=True
    ),
    QuasiNewton(max_iter=3, sample_size=2048),
)
#: 3,500 images: more passes over them, and a teacher against learning by heart.
SMALL = WIDE._replace(
    search=replace(WIDE.search, growth=1.5),
    retraining=replace(WIDE.retraining, warm_epochs=12, distill=0.5),
)
#: Passes and share of the weights left of each step of a rival.
STEPS, STEPS_MOVED = Schedule(4, 0.6, 60), Schedule(4, 0.6, 60, moved)
JUMPS_MOVED = Schedule(2, 0.5, 60, moved, first_l1=1e-4)
LEAPS_MOVED = Schedule(2, 0.2, 60, moved)
TABLES = [
    Table(
        "lenet300",
        "LeNet-300-100 on MNIST",
        NOTE,
        Race("LeNet-300-100", mnist, None, 12, STEPS, SLOW, 100),
    ),
    Table(
        "moved",
        "LeNet-300-100 on MNIST, all methods with digits moved by up to a pixel",
        NOTE,
        Race("LeNet-300-100", mnist, None, 12, STEPS_MOVED, MOVED, 100),
    ),
    Table(
        "moved-before",
        "LeNet-300-100 on MNIST, trained and trimmed with digits moved by up to a pixel",
        NOTE,
        Race("LeNet-300-100", mnist, None, 12, STEPS_MOVED, MOVED, 100, is_moved_before=True),
    ),
    Table(
        "lenet5",
        "LeNet-5 on MNIST, all methods with digits moved by up to a pixel",
        NOTE,
        Race("LeNet-5", mnist, None, 4, JUMPS_MOVED, IMAGES, 300),
    ),
    Table(
        "vgg",
        "Fully connected layers of a VGG-like network on 20,000 digits of MNIST, moved likewise",
        NOTE,
        Race("VGG on MNIST", fewer(mnist, 20_000), FULLY_CONNECTED, 3, LEAPS_MOVED, WIDE, 5_000),
    ),
    Table(
        "cifar",
        "Fully connected layers of a VGG-like network on 3,500 images of CIFAR-10, moved likewise",
        NOTE,
        Race("VGG on CIFAR-10", cifar, FULLY_CONNECTED, 6, LEAPS_MOVED, SMALL, 5_000),
    ),
    Table(
        "speed",
        "One sample through the fully connected layers",
        "Median of 300 calls, 20 at a time in turns, one thread; which weights are left is random.",
        speed,
    ),
]
