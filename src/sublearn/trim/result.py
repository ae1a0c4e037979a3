"""What trimming returns: the network, what became of it in figures, tables and pictures."""

from __future__ import annotations

import copy
import math
import statistics
import time
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from sublearn.trace import Solution
from sublearn.trim.samples import Inputs, call
from sublearn.trim.sparse_network import remove_neurons, to_sparse
from sublearn.validation import Positive, check_argument

if TYPE_CHECKING:
    from torch.utils.hooks import RemovableHandle

    from sublearn.display import LayersDisplay, TrimDisplay
    from sublearn.display.base import AxesLike

__all__ = ["Judged", "Latency", "LayerReport", "TrimReport", "TrimResult", "weights_on_disk"]

#: Calls of one network before it is the other's turn, so that both see the same machine.
_IN_A_ROW = 10


@dataclass(frozen=True)
class LayerReport:
    """One layer: `bound` is N k_S of theorem 7, `stationarity` the subgradient that was left.

    Both are of the moment before the polish: at the end of the quasi-Newton method on the layer,
    relative to the subgradient at its beginning. None if the method did not run.
    """

    name: str
    kind: str
    shape: tuple[int, ...]
    n_before: int
    n_after: int
    bound: int | None
    stationarity: float | None

    @property
    def ratio(self) -> float:
        """How many times fewer weights."""
        return self.n_before / self.n_after if self.n_after else math.inf


@dataclass(frozen=True)
class Judged:
    """Which samples the criterion was measured on.

    Parameters
    ----------
    criterion : {"loss", "error"}
        What was measured.
    rows : {"training", "held-out", "eval_set"}
        Samples that were trained on, those of `data` that were not, or those of `eval_set`.
    n_samples : int
        How many.
    """

    criterion: str
    rows: str
    n_samples: int

    def __str__(self) -> str:
        return f"{self.n_samples:,} {self.rows} samples"


@dataclass(frozen=True)
class TrimReport:
    """The layers, and the network as a whole; printing it shows a table.

    Losses are of the samples that were trained on, criteria and errors of those of `judged`.
    """

    layers: list[LayerReport]
    l1: float
    n_training: int
    judged: Judged
    loss_before: float
    loss_after: float
    criterion_before: float
    criterion_after: float
    error_before: float | None  # share of wrong answers, if the loss is one of classification
    error_after: float | None
    bytes_dense: int
    bytes_sparse: int

    @property
    def n_before(self) -> int:
        """Weights of the chosen layers before."""
        return sum(layer.n_before for layer in self.layers)

    @property
    def n_after(self) -> int:
        """Weights of the chosen layers that are left."""
        return sum(layer.n_after for layer in self.layers)

    @property
    def ratio(self) -> float:
        """How many times fewer weights."""
        return self.n_before / self.n_after if self.n_after else math.inf

    def to_dict(self) -> dict[str, object]:
        """All figures, for JSON."""
        return asdict(self) | {
            "n_before": self.n_before,
            "n_after": self.n_after,
            "ratio": self.ratio,
        }

    def __str__(self) -> str:
        rows = [("layer", "kind", "shape", "weights", "left", "ratio", "bound")]
        for layer in self.layers:
            shape = " x ".join(map(str, layer.shape))
            bound = "-" if layer.bound is None else f"{layer.bound:,}"
            rows.append((layer.name, layer.kind, shape, *_sizes(layer), bound))
        rows.append(("total", "", "", *_sizes(self), ""))
        widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
        lines = ["  ".join(_padded(row, widths)).rstrip() for row in rows]
        lines.append(f"weights on disk {self.bytes_dense:,} -> {self.bytes_sparse:,} bytes")
        return "\n".join([*lines, *self._changes()])

    def _changes(self) -> list[str]:
        """Loss, criterion and error before and after, and of which samples they are."""
        of_training = f"loss {self.loss_before:.4g} -> {self.loss_after:.4g}"
        lines = [f"{self.n_training:,} training samples: {of_training}"]
        criterion = f"{self.criterion_before:.4g} -> {self.criterion_after:.4g}"
        figures = [f"{self.judged.criterion} {criterion} (the criterion)"]
        if self.error_before is not None:
            figures.append(f"error {self.error_before:.2%} -> {self.error_after:.2%}")
        return [*lines, f"{self.judged}: {', '.join(figures)}"]

    def plot(self, ax: AxesLike = None) -> LayersDisplay:
        """Draw the weights of each layer before and after; needs matplotlib.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw.

        Returns
        -------
        LayersDisplay
        """
        return self._display().called_by("TrimReport.plot").plot(ax)

    def _display(self) -> LayersDisplay:
        from sublearn.display import LayersDisplay

        return LayersDisplay(
            [f"{layer.name} ({layer.kind})" for layer in self.layers],
            [layer.n_before for layer in self.layers],
            [layer.n_after for layer in self.layers],
            title=f"{self.ratio:,.0f} times fewer weights",
        )


@dataclass(frozen=True)
class Latency:
    """Seconds for one sample, on the CPU, with as many threads as PyTorch has.

    Parameters
    ----------
    dense : float
        Of the network given.
    sparse : float
        Of the trimmed one with sparse layers.
    """

    dense: float
    sparse: float

    @property
    def ratio(self) -> float:
        """How many times faster."""
        return self.dense / self.sparse

    def __str__(self) -> str:
        return (
            f"one sample {1e6 * self.dense:,.0f} -> {1e6 * self.sparse:,.0f} microseconds, "
            f"{self.ratio:,.1f} times faster"
        )


@dataclass(frozen=True)
class TrimResult(Solution):
    """A trimmed network and how it came about.

    `status` is converged if a larger l1 is known to be too large, `objective` is the loss, no
    certificate is known, `n_iter` counts the l1 that were tried, and `trace` has a row for each.

    Parameters
    ----------
    module : Module
        A copy of the network with most weights 0; the same class, interface and state names.
    report : TrimReport
        Weights left, the bound of theorem 7, loss and error before and after.
    masks : dict of str to Tensor
        For each trimmed layer, True where a weight is left.
    given : Module
        The network that was given.
    sample : Tensor, tuple or dict
        The inputs of one sample, for `latency`.
    """

    module: nn.Module = field(repr=False)
    report: TrimReport
    masks: dict[str, Tensor] = field(repr=False)
    given: nn.Module = field(repr=False)
    sample: Inputs = field(repr=False)

    def keep_zeros(self) -> list[RemovableHandle]:
        """Make further training of `module` leave the removed weights at 0.

        Returns
        -------
        list
            Handles; ``handle.remove()`` ends it.
        """
        layers = dict(self.module.named_modules())
        return [
            layers[name].weight.register_hook(lambda gradient, mask=mask: gradient * mask)
            for name, mask in self.masks.items()
            if layers[name].weight.requires_grad  # a frozen layer keeps its zeros by itself
        ]

    def to_sparse(self, *, remove_neurons: bool = True, n_jobs: int | None = None) -> nn.Module:
        """The network with sparse layers, for prediction on a CPU; see :func:`to_sparse`."""
        return to_sparse(self.module, remove_neurons=remove_neurons, n_jobs=n_jobs)

    def remove_neurons(self) -> nn.Module:
        """The same function as a smaller dense network; see :func:`remove_neurons`."""
        return remove_neurons(self.module)

    def latency(self, *, n_calls: int = 100) -> Latency:
        """Seconds for one sample: the network given beside the trimmed one with sparse layers.

        Parameters
        ----------
        n_calls : int
            Calls of each network, of which the median is taken.

        Returns
        -------
        Latency
        """
        check_argument("latency.n_calls", n_calls, Positive(int))
        return _latency(self.given, self.to_sparse(), self.sample, n_calls)

    def plot(self, ax: AxesLike = None) -> TrimDisplay:
        """Draw the weights left, what the search saw, and how much smaller and faster it became.

        Parameters
        ----------
        ax : sequence of 3 matplotlib axes, optional
            Where to draw.

        Returns
        -------
        TrimDisplay
        """
        from sublearn.display import TrimDisplay

        report = self.report
        change = ""
        if report.error_before is not None:
            change = f"error {report.error_before:.2%}, then {report.error_after:.2%}"
            change = f"{change}\n({report.judged})"
        display = TrimDisplay(
            report._display(),
            {name: self.trace[name] for name in ("n_weights", "criterion", "is_accepted")},
            kept=(report.n_after, report.criterion_after),
            given=report.criterion_before,
            criterion=f"{report.judged.criterion} of {report.judged}",
            gains=self._gains(),
            change=change,
        )
        return display.called_by("TrimResult.plot").plot(ax)

    def _gains(self) -> dict[str, float]:
        """By what, how many times less than the network given."""
        report, latency = self.report, self.latency()
        return {
            f"weights: {report.n_after:,}": report.ratio,
            f"bytes: {report.bytes_sparse:,}": report.bytes_dense / report.bytes_sparse,
            f"one sample: {1e6 * latency.sparse:,.0f} µs": latency.ratio,
        }


@torch.no_grad()
def _latency(dense: nn.Module, sparse: nn.Module, inputs: Inputs, n_calls: int) -> Latency:
    """Medians over `n_calls` calls of each network, in turns."""
    networks = [copy.deepcopy(dense).cpu().eval(), sparse.eval()]
    laps: list[list[float]] = [[] for _ in networks]
    while len(laps[-1]) < n_calls:
        for network, own in zip(networks, laps, strict=True):
            call(network, inputs)  # not timed: the other network has the caches
            for _ in range(min(_IN_A_ROW, n_calls - len(own))):
                start = time.perf_counter()
                call(network, inputs)
                own.append(time.perf_counter() - start)
    return Latency(*map(statistics.median, laps))


def weights_on_disk(weights: dict[str, Tensor], *, is_sparse: bool) -> int:
    """Bytes of the weights as dense float32, or as CSR rows with 32-bit column numbers."""
    if not is_sparse:
        return sum(4 * weight.numel() for weight in weights.values())
    return sum(
        8 * int(torch.count_nonzero(weight)) + 4 * (weight.shape[0] + 1)
        for weight in weights.values()
    )


def _sizes(report: LayerReport | TrimReport) -> tuple[str, str, str]:
    return f"{report.n_before:,}", f"{report.n_after:,}", f"{report.ratio:,.0f}"


def _padded(row: tuple[str, ...], widths: list[int]) -> list[str]:
    return [
        cell.ljust(width) if k < 3 else cell.rjust(width)
        for k, (cell, width) in enumerate(zip(row, widths, strict=True))
    ]
