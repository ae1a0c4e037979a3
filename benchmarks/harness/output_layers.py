"""Problems for last layers with very many labels, and the same layers trained by PyTorch."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import scipy.sparse as sp
import torch
from sklearn.utils.extmath import randomized_svd

from sublearn.io import load_xmc
from sublearn.metrics import precision_at_k

__all__ = [
    "LayerData",
    "faces",
    "first_right",
    "nearest_mean",
    "one_label",
    "precisions",
    "torch_adam",
    "torch_exact",
    "torch_sampled",
    "yso",
]


@dataclass(frozen=True)
class LayerData:
    """Dense rows with their labels, to learn from and to test."""

    X: np.ndarray
    Y: sp.csr_matrix
    X_test: np.ndarray
    Y_test: sp.csr_matrix

    @property
    def n_labels(self) -> int:
        """Number of labels."""
        return int(self.Y.shape[1])


@cache
def yso(directory: Path, n_rows: int, dim: int = 128) -> LayerData:
    """Library records by the singular vectors of words and labels.

    Those of the records alone are about frequent words and say little about 20,578 labels. Here
    words are counted with the labels that they come with, both divided by the root of how often
    they occur, as in correspondence analysis.
    """
    X, Y = load_xmc(directory / "yso_en" / "yso_en_train.xmc.txt.xz")
    X_test, Y_test = load_xmc(directory / "yso_en" / "yso_en_test.xmc.txt.xz")
    X, Y = sp.csr_matrix(X), sp.csr_matrix(Y).astype(np.float32)
    Y.sort_indices()
    of_words = 1 / np.sqrt(1 + np.asarray((X > 0).sum(axis=0)).ravel())
    of_labels = 1 / np.sqrt(np.maximum(np.asarray(Y.sum(axis=0)).ravel(), 1))
    pairs = sp.diags(of_words) @ (X.T @ Y) @ sp.diags(of_labels)
    words, _, _ = randomized_svd(sp.csr_matrix(pairs), dim, n_iter=2, random_state=0)
    words *= of_words[:, None]
    return LayerData(
        _unit(X[:n_rows] @ words), Y[:n_rows], _unit(X_test @ words), sp.csr_matrix(Y_test)
    )


def faces(n_labels: int, n_rows: int, seed: int, dim: int = 128, noise: float = 1.0) -> LayerData:
    """Identities in families of fifty, and pictures of them: unit vectors with noise."""
    rng = np.random.default_rng(seed)

    def around(centres: np.ndarray, size: float) -> np.ndarray:
        shift = rng.standard_normal(centres.shape, dtype=np.float32) * np.float32(size / dim**0.5)
        return _unit(centres + shift)

    families = around(np.zeros((max(2, n_labels // 50), dim), dtype=np.float32), 1.0)
    people = around(families[rng.integers(len(families), size=n_labels)], 0.8)
    rows = rng.integers(n_labels, size=n_rows)
    rows[: min(n_labels, n_rows)] = np.arange(min(n_labels, n_rows))
    test = rng.integers(n_labels, size=2000)
    return LayerData(
        around(people[rows], noise),
        one_label(rows, n_labels),
        around(people[test], noise),
        one_label(test, n_labels),
    )


def precisions(weights: np.ndarray, data: LayerData, k: int = 5) -> tuple[float, float]:
    """P@1 and P@k, in percent, of weights on at most 2,000 test rows, by a scan of all labels."""
    best = []
    n_rows = min(2000, len(data.X_test))
    for start in range(0, n_rows, 250):
        scores = data.X_test[start : min(start + 250, n_rows)] @ weights.T
        some = np.argpartition(-scores, k, axis=1)[:, :k]
        order = np.argsort(-np.take_along_axis(scores, some, 1), axis=1)
        best.append(np.take_along_axis(some, order, 1))
    first, all_of_them = precision_at_k(data.Y_test[:n_rows], np.concatenate(best), [1, k])
    return 100 * float(first), 100 * float(all_of_them)


def first_right(scores: np.ndarray, Y: sp.csr_matrix) -> float:
    """Percent of rows whose best label is one of theirs."""
    best = scores.argmax(axis=1)
    return 100 * float(np.mean(np.asarray(Y[np.arange(len(best)), best]).ravel() > 0))


def nearest_mean(data: LayerData, n_test: int) -> float:
    """P@1 in percent of the label whose mean is nearest."""
    counts = np.asarray(data.Y.sum(axis=0)).ravel()
    means = np.asarray(data.Y.T @ data.X) / np.maximum(counts, 1)[:, None]
    scores = data.X_test[:n_test] @ means.T - 0.5 * (means**2).sum(axis=1)
    return first_right(np.where(counts > 0, scores, -np.inf), data.Y_test[:n_test])


def torch_adam(data: LayerData, seconds: float, rate: float, seed: int, n_test: int) -> float:
    """P@1 in percent of a linear layer with bias after so many CPU seconds of Adam; all labels."""
    torch.manual_seed(seed)
    layer = torch.nn.Linear(data.X.shape[1], data.n_labels)
    optimizer = torch.optim.Adam(layer.parameters(), lr=rate)
    X, start = torch.from_numpy(data.X), time.process_time()
    for batch in _batches(data, 10**6, 256, 10**9, seed):
        if time.process_time() - start > seconds:
            break
        rows, columns = data.Y[batch].nonzero()
        scores = layer(X[batch])
        counts = torch.from_numpy(np.diff(data.Y[batch].indptr).astype(np.float32))
        loss = (counts * torch.logsumexp(scores, dim=1)).sum() - scores[rows, columns].sum()
        optimizer.zero_grad()
        (loss / len(batch)).backward()
        optimizer.step()
    with torch.no_grad():
        scores = layer(torch.from_numpy(data.X_test[:n_test])).numpy()
    return first_right(scores, data.Y_test[:n_test])


def torch_exact(
    data: LayerData, n_epochs: int, rate: float, batch_size: int, n_rows: int, seed: int
) -> tuple[np.ndarray, float]:
    """Softmax over all labels; weights, and CPU seconds of a sample."""
    weights = torch.zeros(data.n_labels, data.X.shape[1], requires_grad=True)
    optimizer = torch.optim.Adagrad([weights], lr=rate)
    X, seconds, n_seen = torch.from_numpy(data.X), 0.0, 0
    for batch in _batches(data, n_epochs, batch_size, n_rows, seed):
        start = time.process_time()
        rows, columns = data.Y[batch].nonzero()
        scores = X[batch] @ weights.T
        counts = torch.from_numpy(np.diff(data.Y[batch].indptr).astype(np.float32))
        loss = (counts * torch.logsumexp(scores, dim=1)).sum() - scores[rows, columns].sum()
        optimizer.zero_grad()
        (loss / len(batch)).backward()
        optimizer.step()
        seconds, n_seen = seconds + time.process_time() - start, n_seen + len(batch)
    return weights.detach().numpy(), seconds / n_seen


def torch_sampled(
    data: LayerData, n_epochs: int, rate: float, batch_size: int, n_rows: int, seed: int
) -> tuple[np.ndarray, float]:
    """Softmax over the labels of a batch and a hundredth of all; corrected for the sampling."""
    layer = torch.nn.Embedding(data.n_labels, data.X.shape[1], sparse=True)
    torch.nn.init.zeros_(layer.weight)
    optimizer = torch.optim.Adagrad(layer.parameters(), lr=rate)
    n_sampled = data.n_labels // 100
    X, seconds, n_seen = torch.from_numpy(data.X), 0.0, 0
    torch.manual_seed(seed)
    for batch in _batches(data, n_epochs, batch_size, n_rows, seed):
        start = time.process_time()
        rows, columns = data.Y[batch].nonzero()
        sampled = torch.randint(data.n_labels, (n_sampled,))
        features = X[batch]
        of_sampled = features @ layer(sampled).T + np.log(data.n_labels / n_sampled)
        of_positives = (features[rows] * layer(torch.from_numpy(columns.astype(np.int64)))).sum(1)
        # A label of a sample that is drawn as well counts once.
        is_own = torch.from_numpy(np.asarray(data.Y[batch][:, sampled.numpy()].todense()) > 0)
        negative = torch.logsumexp(of_sampled.masked_fill(is_own, -torch.inf), dim=1)
        total = torch.zeros(len(batch)).index_add(0, torch.from_numpy(rows), of_positives.exp())
        log_sum = torch.logaddexp(negative, torch.log(total))
        loss = log_sum[rows].sum() - of_positives.sum()
        optimizer.zero_grad()
        (loss / len(batch)).backward()
        optimizer.step()
        seconds, n_seen = seconds + time.process_time() - start, n_seen + len(batch)
    return layer.weight.detach().numpy(), seconds / n_seen


def _batches(data: LayerData, n_epochs: int, size: int, n_rows: int, seed: int):  # type: ignore[no-untyped-def]
    rng = np.random.default_rng(seed)
    for _ in range(n_epochs):
        order = rng.permutation(len(data.X))[:n_rows]
        for start in range(0, len(order), size):
            yield order[start : start + size]


def _unit(rows: np.ndarray) -> np.ndarray:
    lengths = np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    return np.ascontiguousarray(rows / lengths, dtype=np.float32)


def one_label(labels: np.ndarray, n_labels: int) -> sp.csr_matrix:
    """An indicator matrix of one label for each row."""
    ones = np.ones(len(labels), dtype=np.float32)
    return sp.csr_matrix((ones, labels, np.arange(len(labels) + 1)), (len(labels), n_labels))
