"""How many connections does a network need to read digits?

    pip install '.[torch,plot]'
    python examples/trim_network.py trim_network.png

Trains a network of 784, 300, 100 and 10 units on MNIST (with SUBLEARN_DATA set to a folder
that has it, else on the 8 x 8 digits of scikit-learn), trims it with `deep_trim` by the error
on held-out digits, and compares. The first picture shows the weights of each layer before and
after, the second which pixels the trimmed network still looks at, the third what the search saw.
"""

import lzma
import os
from pathlib import Path

import numpy as np
import torch
from pictures import plt, read_options
from sklearn.datasets import load_digits
from torch import nn

from sublearn.trim import L1Search, Retraining, deep_trim


def main():
    options = read_options(__doc__, "trim_network.png", "the small digits, fewer passes")
    torch.manual_seed(0)
    torch.set_num_threads(1)
    (X, y), held_out, test = read(options.small)
    side = int(X.shape[1] ** 0.5)
    network = nn.Sequential(
        nn.Linear(side * side, 300), nn.ReLU(), nn.Linear(300, 100), nn.ReLU(), nn.Linear(100, 10)
    )
    train(network, X, y, n_epochs=25 if options.small else 12)
    print(f"dense network: error {error(network, test):.2%} on test digits")

    result = deep_trim(
        network,
        (X, y),
        eval_set=held_out,
        criterion="error",
        max_increase=0.0,
        search=L1Search(max_stages=4 if options.small else 14, growth=1.4),
        retraining=Retraining(train_biases=True),
        random_state=0,
        verbose=1,
    )
    print(result.report)
    print(f"trimmed network: error {error(result.module, test):.2%} on test digits")
    print(result.latency())
    draw(result, side, options.picture)
    print(f"wrote {options.picture}")


def read(is_small):
    """Digits to train on, held-out digits and test digits, as pairs."""
    folder = Path(os.environ.get("SUBLEARN_DATA", "../shared/data")) / "mnist"
    if is_small or not folder.is_dir():
        X, y = load_digits(return_X_y=True)
        X, y = torch.tensor(X / 16, dtype=torch.float32), torch.tensor(y)
        return (X[:1200], y[:1200]), (X[1200:1500], y[1200:1500]), (X[1500:], y[1500:])
    X, y = (
        images(folder / "train-images-idx3-ubyte.xz"),
        labels(folder / "train-labels-idx1-ubyte.xz"),
    )
    test = (
        images(folder / "t10k-images-idx3-ubyte.xz"),
        labels(folder / "t10k-labels-idx1-ubyte.xz"),
    )
    return (X[:55_000], y[:55_000]), (X[55_000:], y[55_000:]), test


def images(path):
    with lzma.open(path) as file:
        pixels = np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 784)
    return torch.tensor(pixels / 255, dtype=torch.float32)


def labels(path):
    with lzma.open(path) as file:
        return torch.tensor(np.frombuffer(file.read(), np.uint8, offset=8).astype(np.int64))


def train(network, X, y, n_epochs):
    optimizer = torch.optim.Adam(network.parameters(), 1e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, n_epochs)
    for _ in range(n_epochs):
        for rows in torch.randperm(len(X)).split(128):
            optimizer.zero_grad()
            nn.functional.cross_entropy(network(X[rows]), y[rows]).backward()
            optimizer.step()
        schedule.step()


def error(network, data):
    with torch.no_grad():
        return (network.eval()(data[0]).argmax(1) != data[1]).double().mean().item()


def draw(result, side, path):
    figure, (bars, pixels, search) = plt.subplots(1, 3, figsize=(13, 3.6))
    result.report.plot(bars)
    used = result.masks["0"].sum(0).reshape(side, side)
    shown = pixels.imshow(used, cmap="Blues")
    pixels.set_title("weights on each pixel")
    pixels.set_axis_off()
    figure.colorbar(shown, ax=pixels, shrink=0.8)
    trace = result.trace
    accepted = trace["is_accepted"] == 1
    search.semilogx(
        trace["n_weights"][accepted], 100 * trace["criterion"][accepted], "o-", label="kept"
    )
    search.semilogx(
        trace["n_weights"][~accepted], 100 * trace["criterion"][~accepted], "x", label="taken back"
    )
    search.axhline(100 * result.report.criterion_before, color="grey", lw=1, label="dense network")
    search.set_xlabel("weights")
    search.set_ylabel("error on held-out digits, %")
    search.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    main()
