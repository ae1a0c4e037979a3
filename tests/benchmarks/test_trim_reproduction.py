"""VGG-16, the files of CIFAR-10, and the tables of Deep-Trim."""

import lzma
import pickle

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from harness import vgg16  # noqa: E402
from harness.bench import Bench  # noqa: E402
from harness.networks import Pictures  # noqa: E402
from reproduction import trim  # noqa: E402


def test_vgg_16_has_the_sizes_of_table_2_7():
    with torch.device("meta"):
        network = vgg16.vgg_16()
    sizes = [network.get_submodule(name).weight.numel() for name in vgg16.FULLY_CONNECTED]
    assert sizes == [before for before, _ in trim.PAPER.values()][:3]
    assert sum(sizes) == trim.PAPER["all three"][0]
    convolutions = [part for part in network.modules() if isinstance(part, torch.nn.Conv2d)]
    assert len(convolutions) + len(sizes) == 16


@pytest.mark.parametrize(("n_channels", "side", "n_padding"), [(3, 32, 0), (1, 28, 2)])
def test_a_narrow_one_answers_for_pictures_of_both_kinds(n_channels, side, n_padding):
    network = vgg16.vgg_16(n_channels, 1 / 64, n_padding).eval()
    assert network(torch.zeros(2, n_channels, side, side)).shape == (2, 10)


def test_pictures_are_moved_and_mirrored_not_changed():
    torch.manual_seed(0)
    picture = torch.zeros(32, 1, 12, 12)
    picture[:, 0, 6, 5] = 1.0
    assert (vgg16.mirrored(picture).sum((1, 2, 3)) == 1).all()
    assert len(vgg16.mirrored(picture).nonzero()[:, 3].unique()) == 2


def write_cifar(folder, ending):
    """Six files of a handful of random pictures each; what they hold."""
    rng, parts = np.random.default_rng(0), []
    folder.mkdir(parents=True)
    for name in [*(f"data_batch_{n}" for n in range(1, 6)), "test_batch"]:
        pixels = rng.integers(0, 256, (2, 3072), np.uint8)
        labels = rng.integers(0, 10, 2)
        if "bin" in ending:
            data = np.column_stack([labels.astype(np.uint8), pixels]).tobytes()
        else:
            data = pickle.dumps({b"data": pixels, b"labels": labels.tolist()}, protocol=2)
        packed = lzma.compress(data, preset=0) if ending.endswith(".xz") else data
        (folder / f"{name}{ending}").write_bytes(packed)
        parts.append((pixels, labels))
    return parts


@pytest.mark.parametrize(
    ("place", "ending"),
    [("cifar10", ".bin.xz"), ("cifar10", ""), ("cifar-10-batches-bin", ".bin"),
     ("cifar10/cifar-10-batches-py", "")],
)  # fmt: skip
def test_reads_cifar_10_in_both_versions(tmp_path, monkeypatch, place, ending):
    monkeypatch.setattr(vgg16, "_HELD_OUT", 3)
    parts = write_cifar(tmp_path / place, ending)
    data = vgg16.cifar10(tmp_path)
    assert [len(part[1]) for part in (data.train, data.held_out, data.test)] == [7, 3, 2]
    first, last = parts[0], parts[-1]
    pixels = (data.train[0][0] + 1) * 127.5
    assert pixels.reshape(-1).numpy().round().astype(np.uint8).tolist() == first[0][0].tolist()
    assert data.test[1].tolist() == last[1].tolist()


def test_says_what_is_missing_and_what_is_no_picture(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"must have data_batch_1\.bin"):
        vgg16.cifar10(tmp_path)
    (tmp_path / "cifar10").mkdir()
    (tmp_path / "cifar10" / "data_batch_1.bin").write_bytes(b"short")
    with pytest.raises(ValueError, match="must have 3073 bytes for each image, got 5"):
        vgg16.cifar10(tmp_path)


def test_a_file_of_cifar_10_cannot_call_what_it_likes(tmp_path):
    class Hostile:
        def __reduce__(self):
            return print, ("called",)

    (tmp_path / "cifar10").mkdir()
    (tmp_path / "cifar10" / "data_batch_1").write_bytes(pickle.dumps(Hostile()))
    with pytest.raises(ValueError, match=r"must hold arrays alone, got \w+\.print"):
        vgg16.cifar10(tmp_path)
    assert vgg16._Arrays(pickle.dumps({b"labels": [1]})).load() == {b"labels": [1]}


def test_figure_2_1_has_stationary_points_with_one_parameter():
    found = trim.figure_2_1(Bench(None, is_quick=True))
    columns = list(found.columns)
    assert [row[columns.index("ours, w2")] for row in found.rows] == [0.0, 0.0]
    steps = [row[columns.index("proximal gradient, steps")] for row in found.rows]
    assert steps[0] < steps[1]  # the smaller lambda, the harder
    curves, _ = found.charts
    values = [
        trim.value_and_gradient(np.array(w))[0] + 0.1 * np.abs(w).sum()
        for w in zip(curves.series[1].x, curves.series[1].y, strict=True)
    ]
    assert np.ptp(values) < 1e-9
    assert len(values) == 121


def test_table_2_7_puts_each_layer_beside_the_papers(monkeypatch):
    torch.manual_seed(0)
    images, labels = torch.randn(60, 1, 28, 28), torch.arange(60) % 10
    data = Pictures((images, labels), (images[:20], labels[:20]), (images[:20], labels[:20]))
    trial = trim.Trial("noise", lambda _: data, None, 1, None, 1.0)
    monkeypatch.setattr(trim, "SMALL", (trial,))
    monkeypatch.setattr(trim, "train", lambda *_, **__: None)
    found = trim.table_2_7(Bench(None, is_quick=True, limit=0.5))
    assert [row[2] for row in found.rows] == [*trim.PAPER, "accuracy, %"]
    assert [row[3] for row in found.rows][:3] == [102_760_448, 16_777_216, 40_960]
    assert [row[6] for row in found.rows][:3] == [8 * 49 * 64, 64 * 64, 64 * 10]
    assert all(row[9] in ("reproduced", "better", "worse") for row in found.rows)
    (chart,) = found.charts
    assert [series.name for series in chart.series] == ["paper", "noise: as in the paper"]
