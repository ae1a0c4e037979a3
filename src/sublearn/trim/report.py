"""What trimming did to a network, as figures, a table and a picture."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["LayerReport", "TrimReport", "weights_on_disk"]


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
class TrimReport:
    """The layers, and the network as a whole; printing it shows a table."""

    layers: list[LayerReport]
    l1: float
    loss_before: float
    loss_after: float
    criterion_before: float
    criterion_after: float
    error_before: float | None  # share of wrong answers where the criterion is measured, if
    error_after: float | None  # the loss is one of classification
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
        changes = [
            f"loss {self.loss_before:.4g} -> {self.loss_after:.4g}",
            f"criterion {self.criterion_before:.4g} -> {self.criterion_after:.4g}",
        ]
        if self.error_before is not None:
            changes.append(f"error {self.error_before:.2%} -> {self.error_after:.2%}")
        changes.append(f"weights on disk {self.bytes_dense:,} -> {self.bytes_sparse:,} bytes")
        return "\n".join([*lines, ", ".join(changes)])

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the weights of each layer before and after.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw.

        Returns
        -------
        matplotlib axes
        """
        import matplotlib.pyplot as plt

        if ax is None:
            _, ax = plt.subplots(figsize=(6, 0.9 + 0.55 * len(self.layers)), layout="constrained")
        at = range(len(self.layers))
        ax.barh(at, [layer.n_before for layer in self.layers], color="#d9d9d9", label="before")
        ax.barh(at, [layer.n_after for layer in self.layers], color="#2a78b5", label="left")
        ax.set_xscale("log")
        ax.set_xlim(left=1)
        ax.set_yticks(list(at), [f"{layer.name} ({layer.kind})" for layer in self.layers])
        ax.invert_yaxis()
        for place, layer in zip(at, self.layers, strict=True):
            text = f"{layer.n_after:,} of {layer.n_before:,}"
            ax.annotate(text, (1.3, place), va="center", fontsize=8, color="white")
        ax.set_xlabel("weights")
        ax.legend(loc="lower right", fontsize=8)
        ax.set_title(f"{self.ratio:,.0f} times fewer weights")
        return ax


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
