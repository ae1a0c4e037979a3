"""VGG-16 and CIFAR-10: the network and the data of table 2.7 of Yen 2018."""

from __future__ import annotations

import io
import lzma
import pickle
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from harness.networks import Pictures, split

__all__ = ["FULLY_CONNECTED", "cifar10", "mirrored", "vgg_16"]

#: Channels of the convolutions, 3 by 3 each; None halves height and width.
_CHANNELS = (
    64, 64, None, 128, 128, None, 256, 256, 256, None, 512, 512, 512, None, 512, 512, 512, None,
)  # fmt: skip
_POOLED, _WIDE = 7, 4096
_SIDE = 32
#: The last three layers, which hold most of the weights and are trimmed.
FULLY_CONNECTED = ("FC-1", "FC-2", "FC-3")
_HELD_OUT = 5_000
_BATCHES = tuple(f"data_batch_{n}" for n in range(1, 6))


def vgg_16(n_channels: int = 3, width: float = 1.0, n_padding: int = 0) -> nn.Sequential:
    """VGG-16 with batch normalisation, for images of 32 by 32 or more after padding.

    With `width` 1 its last three layers have the sizes of table 2.7: 25,088 by 4,096, 4,096 by
    4,096 and 4,096 by 10. Other widths have that share of all channels and units. The paper does
    not say how images of 32 by 32 come to fill the 7 by 7 places before FC-1; here, as in
    torchvision, the average over 1 by 1 is repeated there.
    """
    parts: list[nn.Module] = [nn.ZeroPad2d(n_padding)] if n_padding else []
    before = n_channels
    for channels in _CHANNELS:
        if channels is None:
            parts.append(nn.MaxPool2d(2))
            continue
        after = max(1, round(channels * width))
        convolution = nn.Conv2d(before, after, 3, padding=1, bias=False)
        parts += [convolution, nn.BatchNorm2d(after), nn.ReLU()]
        before = after
    wide = max(1, round(_WIDE * width))
    first, second, third = FULLY_CONNECTED
    named: list[tuple[str, nn.Module]] = [
        ("convolutions", nn.Sequential(*parts)),
        ("pool", nn.Sequential(nn.AdaptiveAvgPool2d(_POOLED), nn.Flatten())),
        (first, nn.Linear(before * _POOLED**2, wide)), ("rectifier-1", nn.ReLU()),
        (second, nn.Linear(wide, wide)), ("rectifier-2", nn.ReLU()),
        (third, nn.Linear(wide, 10)),
    ]  # fmt: skip
    return nn.Sequential(OrderedDict(named))


def mirrored(images: Tensor) -> Tensor:
    """Each image moved by up to four pixels, half of them mirrored."""
    down, right = torch.randint(0, 9, (2,)).tolist()
    framed = nn.functional.pad(images, (4, 4, 4, 4))
    height, width = images.shape[-2:]
    moved = framed[..., down : down + height, right : right + width]
    flips = torch.rand(len(images)) < 0.5
    return torch.where(flips[:, None, None, None], moved.flip(-1), moved)


# --- CIFAR-10 -------------------------------------------------------------------------------------


def cifar10(directory: Path) -> Pictures:
    """45,000 images to train on, 5,000 to choose by, 10,000 to test on.

    From the files of the binary version (data_batch_1.bin to data_batch_5.bin, test_batch.bin) or
    of the Python version (the same names without .bin), as they are or packed by xz, in
    `directory`/cifar10 or in the folder that their archive makes.
    """
    train = [_batch(directory, name) for name in _BATCHES]
    images, labels = (torch.cat(parts) for parts in zip(*train, strict=True))
    return split((images, labels), _batch(directory, "test_batch"), _HELD_OUT)


def _batch(directory: Path, name: str) -> tuple[Tensor, Tensor]:
    path = next((p for p in _places(directory, name) if p.is_file()), None)
    if path is None:
        raise FileNotFoundError(
            f"CIFAR-10 must have {name}.bin (binary version) or {name} (Python version) in "
            f"{directory / 'cifar10'}"
        )
    data = lzma.decompress(path.read_bytes()) if path.suffix == ".xz" else path.read_bytes()
    is_binary = path.name.removesuffix(".xz").endswith(".bin")
    pixels, labels = _of_binary(data, path) if is_binary else _of_pickle(data, path)
    images = pixels.reshape(-1, 3, _SIDE, _SIDE).astype(np.float32) / 127.5 - 1
    return torch.from_numpy(images), torch.from_numpy(labels.astype(np.int64))


def _places(directory: Path, name: str) -> Iterator[Path]:
    for folder in ("cifar10", "cifar-10-batches-bin", "cifar-10-batches-py"):
        for root in (directory, directory / "cifar10"):
            for ending in (".bin", "", ".bin.xz", ".xz"):
                yield root / folder / f"{name}{ending}"


def _of_binary(data: bytes, path: Path) -> tuple[np.ndarray, np.ndarray]:
    size = 1 + 3 * _SIDE**2
    if not data or len(data) % size:
        raise ValueError(f"{path} must have {size} bytes for each image, got {len(data)}")
    rows = np.frombuffer(data, np.uint8).reshape(-1, size)
    return rows[:, 1:], rows[:, 0]


def _of_pickle(data: bytes, path: Path) -> tuple[np.ndarray, np.ndarray]:
    found = _Arrays(data).load()
    try:
        return np.asarray(found[b"data"], np.uint8), np.asarray(found[b"labels"])
    except (KeyError, TypeError) as error:
        raise ValueError(f"{path} must hold data and labels of CIFAR-10") from error


#: What makes an array when it is read.
_KNOWN = {
    ("numpy", "ndarray"), ("numpy", "dtype"), ("numpy.core.multiarray", "_reconstruct"),
    ("numpy._core.multiarray", "_reconstruct"), ("_codecs", "encode"),
}  # fmt: skip


class _Arrays(pickle.Unpickler):
    """Reads what the Python version holds, arrays and plain values, and calls nothing else."""

    def __init__(self, data: bytes):
        super().__init__(io.BytesIO(data), encoding="bytes")

    def find_class(self, module: str, name: str) -> Any:
        """One of the few functions that arrays are made by."""
        if (module, name) not in _KNOWN:
            raise ValueError(f"CIFAR-10 must hold arrays alone, got {module}.{name}")
        return super().find_class(module, name)
