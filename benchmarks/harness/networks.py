"""Networks to trim, their data, and how they are trained."""

from __future__ import annotations

import lzma
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

__all__ = [
    "NETWORKS",
    "Pictures",
    "cifar",
    "count",
    "error",
    "fewer",
    "layers_of",
    "mnist",
    "moved",
    "train",
]

Part = tuple[Tensor, Tensor]


@dataclass(frozen=True)
class Pictures:
    """Images to train on, to choose by, and to test on once."""

    train: Part
    held_out: Part
    test: Part


def mnist(directory: Path) -> Pictures:
    """50,000 digits to train on, 10,000 to choose by, 10,000 to test on."""
    parts = []
    for name in ("train", "t10k"):
        with lzma.open(directory / "mnist" / f"{name}-images-idx3-ubyte.xz") as file:
            pixels = np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 1, 28, 28)
        with lzma.open(directory / "mnist" / f"{name}-labels-idx1-ubyte.xz") as file:
            labels = np.frombuffer(file.read(), np.uint8, offset=8).astype(np.int64)
        parts.append((torch.tensor(pixels / 255, dtype=torch.float32), torch.tensor(labels)))
    return split(*parts, n_held_out=10_000)


def cifar(directory: Path) -> Pictures:
    """3,500 images to train on, 500 to choose by, 1,000 to test on."""
    parts = []
    for name in ("train", "test"):
        with lzma.open(directory / "cifar10_5k" / f"{name}_batch.bin.xz") as file:
            rows = np.frombuffer(file.read(), np.uint8).reshape(-1, 3073)
        pixels = rows[:, 1:].reshape(-1, 3, 32, 32) / 127.5 - 1
        parts.append(
            (torch.tensor(pixels, dtype=torch.float32), torch.tensor(rows[:, 0].astype(int)))
        )
    return split(*parts, n_held_out=500)


def fewer(load: Callable[[Path], Pictures], n_train: int) -> Callable[[Path], Pictures]:
    """The same with the first `n_train` images to train on."""

    def load_fewer(directory: Path) -> Pictures:
        data = load(directory)
        X, y = data.train
        return Pictures((X[:n_train], y[:n_train]), data.held_out, data.test)

    return load_fewer


def moved(images: Tensor) -> Tensor:
    """Each image moved by up to a pixel, up or down and left or right; zeros come in."""
    n_images, _, height, width = images.shape
    down, right = torch.randint(0, 3, (2, n_images, 1))
    rows, columns = down + torch.arange(height), right + torch.arange(width)
    framed = nn.functional.pad(images, (1, 1, 1, 1)).movedim(1, -1)
    image = torch.arange(n_images)[:, None, None]
    return framed[image, rows[:, :, None], columns[:, None, :]].movedim(-1, 1).contiguous()


def split(train: Part, test: Part, n_held_out: int) -> Pictures:
    X, y = train
    return Pictures((X[:-n_held_out], y[:-n_held_out]), (X[-n_held_out:], y[-n_held_out:]), test)


def lenet_300_100() -> nn.Module:
    return nn.Sequential(
        nn.Flatten(), nn.Linear(784, 300), nn.ReLU(), nn.Linear(300, 100), nn.ReLU(),
        nn.Linear(100, 10),
    )  # fmt: skip


def lenet_5() -> nn.Module:
    """That of Caffe: 430,500 weights."""
    return nn.Sequential(
        nn.Conv2d(1, 20, 5), nn.MaxPool2d(2), nn.Conv2d(20, 50, 5), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(800, 500), nn.ReLU(), nn.Linear(500, 10),
    )  # fmt: skip


def vgg(n_channels: int, side: int) -> Callable[[], nn.Module]:
    """Two blocks of convolutions and the fully connected part of VGG-16, 4,096 units wide."""

    def make() -> nn.Module:
        flat = 32 * (side // 4) ** 2
        return nn.Sequential(
            nn.Conv2d(n_channels, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
            nn.Linear(flat, 4096), nn.ReLU(), nn.Linear(4096, 4096), nn.ReLU(), nn.Linear(4096, 10),
        )  # fmt: skip

    return make


NETWORKS: Mapping[str, Callable[[], nn.Module]] = {
    "LeNet-300-100": lenet_300_100,
    "LeNet-5": lenet_5,
    "VGG on MNIST": vgg(1, 28),
    "VGG on CIFAR-10": vgg(3, 32),
}


def layers_of(network: nn.Module, names: list[str] | None) -> dict[str, nn.Module]:
    """The layers to trim by name; all that have a matrix or a kernel if `names` is None."""
    found = {
        name: part
        for name, part in network.named_modules()
        if isinstance(part, (nn.Linear, nn.Conv2d))
    }
    return found if names is None else {name: found[name] for name in names}


def count(layers: Mapping[str, nn.Module]) -> int:
    return sum(int(torch.count_nonzero(layer.weight)) for layer in layers.values())


@torch.no_grad()
def error(network: nn.Module, part: Part) -> float:
    network.eval()
    wrong = sum(
        int((network(x).argmax(1) != y).sum())
        for x, y in zip(part[0].split(2_000), part[1].split(2_000), strict=True)
    )
    return wrong / len(part[1])


def train(
    network: nn.Module,
    part: Part,
    n_epochs: int,
    *,
    rate: float = 1e-3,
    batch_size: int = 128,
    l1: float = 0.0,
    layers: Mapping[str, nn.Module] | None = None,
    optimizer_kind: type[torch.optim.Optimizer] = torch.optim.Adam,
    after_step: Callable[[], None] = lambda: None,
    augment: Callable[[Tensor], Tensor] | None = None,
) -> None:
    """Passes over the data; the rate falls to 0 along half a cosine, l1 is a subgradient."""
    X, y = part
    n_steps = n_epochs * math.ceil(len(X) / batch_size)
    optimizer = optimizer_kind(network.parameters(), lr=rate, fused=True)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, max(1, n_steps))
    network.train()
    for _ in range(n_epochs):
        for rows in torch.randperm(len(X)).split(batch_size):
            optimizer.zero_grad()
            inputs = augment(X[rows]) if augment else X[rows]
            loss = nn.functional.cross_entropy(network(inputs), y[rows])
            if l1:
                assert layers is not None
                loss = loss + l1 * sum(layer.weight.abs().sum() for layer in layers.values())
            loss.backward()
            optimizer.step()
            after_step()
            schedule.step()
