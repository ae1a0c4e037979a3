"""Deep-Trim: section 2.3 of Yen 2018, beside ours.

Table 2.7 trims the last three layers of VGG-16 on CIFAR-10. With the files of CIFAR-10 in the
directory of data it is remade at full size (harness/vgg16.py says which files); without them the
same layers with an eighth of all channels and units stand in, on images that are there.

"as in the paper" is (2.51): plain l1, passes over small batches, then quasi-Newton steps to high
precision, nothing else. "deep_trim" adds what the library does by default: a logarithmic penalty
from the second stage on, and weights that are left are trained without a penalty.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
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
from harness.table import Cell, Chart, Figures, Series, Table
from harness.timing import cpu_timed
from harness.verdicts import verdict
from harness.vgg16 import FULLY_CONNECTED, cifar10, mirrored, vgg_16
from torch import Tensor, nn

from sublearn.optim import lhac
from sublearn.trim import L1Search, QuasiNewton, Retraining, deep_trim

__all__ = ["TABLES"]

PAGE = "yen2018"
_PRECISE = QuasiNewton(max_iter=4, sample_size=1024, chunk_size=512)


@dataclass(frozen=True)
class Way:
    """How a network is trimmed."""

    name: str
    search: L1Search
    retraining: Retraining

    def trim(
        self, dense: nn.Module, data: Pictures, layers: Sequence[str] | None, trial: Trial,
        bench: Bench, **aim: Any,
    ) -> nn.Module:  # fmt: skip
        """The smallest network with at most the held-out errors of the dense one, or of a size."""
        start, limit = time.process_time(), bench.limit(trial.limit)
        result = deep_trim(
            dense,
            data.train,
            layers=layers,
            eval_set=data.held_out,
            criterion="error",
            search=replace(self.search, **trial.search, **bench.size({}, {"max_stages": 2})),
            retraining=replace(self.retraining, augment=trial.augment if trial.is_full else None),
            quasi_newton=trial.quasi_newton,
            random_state=bench.seed,
            callback=lambda _: time.process_time() - start > limit,
            **aim,
        )
        return result.module


@dataclass(frozen=True)
class Trial:
    """A network and its data."""

    name: str
    load: Callable[[Path], Pictures]
    network: Callable[[], nn.Module]
    n_epochs: int  # of the dense network's training
    augment: Callable[[Tensor], Tensor] | None
    limit: float  # CPU seconds of a way
    quasi_newton: QuasiNewton = _PRECISE
    search: Mapping[str, Any] = field(default_factory=dict)  # beside that of the way
    is_full: bool = False  # whether images change while it is trimmed, too, which takes long

    def trained(self, data: Pictures, bench: Bench) -> nn.Module:
        """The dense network; the same in each process, as one thread makes it from one seed."""
        torch.manual_seed(bench.seed)
        network = self.network()
        train(network, data.train, bench.size(self.n_epochs, 1), augment=self.augment)
        return network.eval()


def few(load: Callable[[Path], Pictures], directory: Path) -> Pictures:
    """The first 200 images of each kind, for a quick run."""
    data = load(directory)
    parts = (data.train, data.held_out, data.test)
    return Pictures(*((X[:200], y[:200]) for X, y in parts))


_SEARCH = L1Search(first_l1=1e-3, growth=1.6, patience=2, max_stages=10)
_PASSES = Retraining(warm_epochs=3, polish_epochs=2, learning_rate=1e-3, batch_size=128)
WAYS = (
    Way("as in the paper", replace(_SEARCH, adaptive=False), replace(_PASSES, polish_epochs=0)),
    Way("deep_trim", _SEARCH, replace(_PASSES, train_biases=True)),
)


# --- figure 2.1 -----------------------------------------------------------------------------------

#: 000:876: one sample with two parameters, lambda |w|_1 + (x'w - 1)^2 / 2.
SAMPLE = np.array([0.6, 0.4])
#: All on the second parameter, without a loss: what has to go as far as can be.
START = np.array([0.0, 2.5])
L1S = (1e-1, 1e-2, 1e-3, 1e-4)
_MOST_STEPS = 200_000


def value_and_gradient(w: np.ndarray) -> tuple[float, np.ndarray]:
    """The loss of the one sample."""
    rest = float(SAMPLE @ w) - 1.0
    return 0.5 * rest**2, rest * SAMPLE


def proximal_steps(l1: float, most: int) -> int | None:
    """Steps of proximal gradient descent from the start until the second parameter is 0."""
    step = 1.0 / float(SAMPLE @ SAMPLE)
    w = START.copy()
    for n in range(1, most + 1):
        w = w - step * value_and_gradient(w)[1]
        w = np.sign(w) * np.maximum(np.abs(w) - step * l1, 0.0)
        if w[1] == 0:
            return n
    return None


def subgradient_rest(l1: float, most: int) -> float:
    """The second parameter after so many subgradient steps whose length falls."""
    w = START.copy()
    for n in range(most):
        rate = 1.0 / float(SAMPLE @ SAMPLE) / np.sqrt(n + 1)
        w = w - rate * (value_and_gradient(w)[1] + l1 * np.sign(w))
    return float(w[1])


def level_curve(l1: float, level: float, n_points: int = 121) -> tuple[list[float], list[float]]:
    """Where the objective has a value, as rays from its minimum find it by bisection."""
    centre = np.array([(1 - l1 / SAMPLE[0]) / SAMPLE[0], 0.0])
    rays = [np.array([np.cos(a), np.sin(a)]) for a in np.linspace(0, 2 * np.pi, n_points)]

    def value(w: np.ndarray) -> float:
        return value_and_gradient(w)[0] + l1 * float(np.abs(w).sum())

    curve = []
    for ray in rays:
        low, high = 0.0, 100.0
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if value(centre + middle * ray) < level else (low, middle)
        curve.append(centre + low * ray)
    return [float(w[0]) for w in curve], [float(w[1]) for w in curve]


def figure_2_1(bench: Bench) -> Figures:
    """Level curves; and how long it takes until the second parameter is 0."""
    rows: list[list[Cell]] = []
    for l1 in bench.some(L1S, 2):
        found = lhac(value_and_gradient, START, l1, tol=1e-12)
        most = bench.size(_MOST_STEPS, 2_000)
        rest = subgradient_rest(l1, min(most, 10_000))
        ours = float(found.x[1])
        judged = verdict(0.0, ours, is_less_better=True)
        rows.append([l1, 0.0, ours, judged, found.n_iter, proximal_steps(l1, most), rest])
    columns = {
        "lambda": "g", "paper, w2": "g", "ours, w2": "g<", "verdict": "",
        "LHAC, iterations": ",d<", "proximal gradient, steps": ",d",
        "w2 after 10,000 subgradient steps": ".1e",
    }  # fmt: skip
    l1 = L1S[0]
    least = value_and_gradient(np.array([(1 - l1 / 0.6) / 0.6, 0.0]))[0] + l1 * (1 - l1 / 0.6) / 0.6
    curves = [
        Series(f"{times:g} times the least value", *level_curve(l1, times * least))
        for times in (1.1, 1.5, 2.5)
    ]
    point = Series("stationary point", [(1 - l1 / 0.6) / 0.6], [0.0])
    charts = [
        Chart(
            "figure_2_1", f"Level curves at lambda = {l1:g}", "w1", "w2", [point, *curves],
            caption="The stationary point has w2 = 0 for every lambda above 0.",
        ),
        Chart(
            "figure_2_1-steps", "Until w2 is 0", "lambda", "iterations",
            [Series("LHAC", [r[0] for r in rows], [r[4] for r in rows]),
             Series("proximal gradient", [r[0] for r in rows], [r[5] for r in rows])],
            log_x=True, log_y=True,
        ),
    ]  # fmt: skip
    return Figures(columns, rows, charts=charts)


# --- table 2.7 ------------------------------------------------------------------------------------

#: 000:918-924: weights before and after, and the accuracy.
PAPER = {
    "FC-1": (102_760_448, 3_991),
    "FC-2": (16_777_216, 4_053),
    "FC-3": (40_960, 373),
    "all three": (119_578_624, 8_417),
}
PAPER_ACCURACY = (92.6, 93.5)
COLUMNS = {
    "data": "", "algorithm": "", "of": "", "paper, before": ",.10g", "after": ",.10g",
    "share, %": ".2g", "ours, before": ",.10g", "ours, after": ",.10g<", "our share, %": ".2g<",
    "verdict": "", "CPU s": ",.0f",
}  # fmt: skip
FULL = Trial(
    "CIFAR-10", cifar10, vgg_16, 60, mirrored, 36_000.0,
    QuasiNewton(max_iter=8, sample_size=8192, chunk_size=512), is_full=True,
)  # fmt: skip
#: An eighth of the channels and units: 1,605,632, 262,144 and 5,120 weights.
SMALL = (
    Trial("CIFAR-10, 3,500 images", cifar, partial(vgg_16, 3, 1 / 8), 10, mirrored, 60.0),
    Trial("MNIST, 3,000 digits", fewer(mnist, 3_000), partial(vgg_16, 1, 1 / 8, 2), 4, moved, 60.0),
)


def table_2_7(bench: Bench) -> Figures:
    """The last three layers, each way, on each data set."""
    trials = (FULL,) if _has(FULL, bench) else SMALL
    rows, shares = [], {"paper": [100 * after / before for before, after in PAPER.values()]}
    for trial in bench.cases(trials):
        data = bench.size(trial.load, partial(few, trial.load))(bench.data)
        small = replace(trial, network=partial(vgg_16, data.train[0].shape[1], 1 / 64, 2))
        trial = bench.size(trial, small)
        dense = trial.trained(data, bench)
        for way in bench.some(WAYS):
            key = {"trial": trial.name, "way": way.name}
            found = bench.once(key, partial(trimmed_layers, trial, way, dense, data, bench))
            bench.say(found)
            rows += layer_rows(trial, way, found)
            shares[f"{trial.name}: {way.name}"] = [
                100 * after / before for before, after in found["weights"].values()
            ]
    series = [Series(name, list(PAPER), share) for name, share in shares.items()]
    title = "Weights left in the last layers of VGG-16"
    chart = Chart("table_2_7", title, "layer", "weights left, %", series, "points", log_y=True)
    return Figures(COLUMNS, rows, charts=[chart])


def _has(trial: Trial, bench: Bench) -> bool:
    """Whether the data of a trial are there; a quick run has no time for CIFAR-10."""
    if bench.is_quick:
        return False
    try:
        trial.load(bench.data)
    except FileNotFoundError:
        return False
    return True


def trimmed_layers(
    trial: Trial, way: Way, dense: nn.Module, data: Pictures, bench: Bench
) -> dict[str, Any]:
    """Weights of each layer and accuracy on test images, before and after."""
    names = list(FULLY_CONNECTED)
    network, seconds = cpu_timed(
        lambda: way.trim(dense, data, names, trial, bench, max_increase=0.0)
    )
    weights = {n: [count(layers_of(part, [n])) for part in (dense, network)] for n in names}
    weights["all three"] = [sum(pair[k] for pair in weights.values()) for k in (0, 1)]
    accuracy = [100 * (1 - error(part, data.test)) for part in (dense, network)]
    return {"weights": weights, "accuracy": accuracy, "seconds": seconds}


def layer_rows(trial: Trial, way: Way, found: Mapping[str, Any]) -> list[list[Cell]]:
    """A row for each layer, and one for the accuracy, whose share is the change in points."""
    rows: list[list[Cell]] = []
    for layer, (before, after) in PAPER.items():
        ours = found["weights"][layer]
        shares = [100 * a / b for b, a in ((before, after), ours)]
        judged = verdict(*shares, is_less_better=True)
        rows.append(
            [trial.name, way.name, layer, before, after, shares[0], *ours, shares[1], judged, None]
        )
    first, last = found["accuracy"]
    changes = PAPER_ACCURACY[1] - PAPER_ACCURACY[0], last - first
    judged = verdict(*changes, is_less_better=False)
    rows.append(
        [trial.name, way.name, "accuracy, %", *PAPER_ACCURACY, None, first, last, None, judged,
         found["seconds"]]
    )  # fmt: skip
    return rows


# --- convolutions ---------------------------------------------------------------------------------

LENET = Trial(
    "LeNet-5", fewer(mnist, 1_500), NETWORKS["LeNet-5"], 12, moved, 80.0,
    QuasiNewton(max_iter=4, sample_size=512, chunk_size=256),
    {"first_l1": 5e-4, "growth": 1.8}, is_full=True,
)  # fmt: skip
N_TIMES = 50


def lenet_5(bench: Bench) -> Figures:
    """LeNet-5 with its convolutions, each way to the same number of weights."""
    data = bench.size(LENET.load, partial(few, mnist))(bench.data)
    dense = LENET.trained(data, bench)
    most = count(layers_of(dense, None)) // N_TIMES
    rows = [["dense", *_sizes(dense), *_errors(dense, data), 0.0]]
    for way in WAYS:
        make = partial(_to_size, way, dense, data, most, bench)
        rows.append(bench.once({"way": way.name}, make))
        bench.say(rows[-1])
    layers = {f"{n}, weights": ",d" for n in ("convolution 1", "convolution 2", "FC-1", "FC-2")}
    columns = {"algorithm": "", **layers, "all": ",d<", "held-out error, %": ".2f"}
    return Figures(columns | {"test error, %": ".2f<", "CPU s": ",.0f"}, rows)


def _to_size(way: Way, dense: nn.Module, data: Pictures, most: int, bench: Bench) -> list[Cell]:
    network, seconds = cpu_timed(
        lambda: way.trim(dense, data, None, LENET, bench, max_weights=most)
    )
    return [way.name, *_sizes(network), *_errors(network, data), seconds]


def _sizes(network: nn.Module) -> list[Cell]:
    layers = layers_of(network, None)
    return [*(count({name: layer}) for name, layer in layers.items()), count(layers)]


def _errors(network: nn.Module, data: Pictures) -> list[Cell]:
    return [100 * error(network, part) for part in (data.held_out, data.test)]


TABLES: list[Table] = [
    Table(
        "figure_2_1",
        "Figure 2.1: one sample, two parameters",
        "lambda |w|_1 + (x'w - 1)^2 / 2 with x = (0.6, 0.4), from w = (0, 2.5), which has no loss.",
        figure_2_1,
        page=PAGE,
    ),
    Table(
        "table_2_7",
        "Table 2.7: the last three layers of VGG-16 on CIFAR-10",
        "At most the held-out errors of the dense network. Where CIFAR-10 is not there, a network "
        "with an eighth of all channels and units stands in, so that there are fewer weights to "
        "lose: shares are compared, and changes of the accuracy on test images.",
        table_2_7,
        page=PAGE,
    ),
    Table(
        "lenet_5",
        "Not in the paper: convolutions too, LeNet-5 on 1,500 digits of MNIST",
        f"All layers are trimmed, to {N_TIMES} times fewer weights by a search that may lower l1; "
        "of the networks small enough the one with the fewest held-out errors is tested.",
        lenet_5,
        page=PAGE,
    ),
]
