"""Probabilities and the n best labellings of a chain, given scores of labels and of neighbours."""

from __future__ import annotations

import numpy as np

from sublearn import interruption

__all__ = ["best_paths", "chain_marginals"]


def chain_marginals(emissions: np.ndarray, table: np.ndarray) -> np.ndarray:
    r"""Compute the probability of each label at each position.

    With :math:`p(y) \propto \exp(\sum_t e_t(y_t) + \sum_t T(y_{t-1}, y_t))`, by sums forward and
    backward,

    .. math::
        \alpha_t(b) = e_t(b) + \log \sum_a \exp(\alpha_{t-1}(a) + T(a, b))

    Parameters
    ----------
    emissions : ndarray of shape (length, n_labels)
        -inf forbids a label.
    table : ndarray of shape (n_labels, n_labels)
        Scores of a label, by row, before another one; -inf forbids a pair.

    Returns
    -------
    ndarray of shape (length, n_labels)
        All zero where every labelling is forbidden.
    """
    length = len(emissions)
    weights = np.exp(table - _finite(table.max()))  # sums of exponentials are products below
    forward, backward = emissions.copy(), np.zeros_like(emissions)
    for t in range(1, length):
        interruption.check()
        forward[t] += _log_times(forward[t - 1], weights)
    for t in range(length - 1, 0, -1):
        interruption.check()
        backward[t - 1] = _log_times(emissions[t] + backward[t], weights.T)
    scores = forward + backward
    out = np.exp(scores - _finite(scores.max(axis=1, keepdims=True)))
    return out / np.maximum(out.sum(axis=1, keepdims=True), 1e-300)


def _finite(most: np.ndarray) -> np.ndarray:
    return np.where(np.isfinite(most), most, 0.0)


def _log_times(logs: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """log(exp(logs) @ weights)."""
    most = _finite(logs.max())
    with np.errstate(divide="ignore"):
        return np.log(np.exp(logs - most) @ weights) + most


def best_paths(emissions: np.ndarray, table: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Find the n labellings of highest score, the best first, exactly.

    Every label of a position keeps the n best ways to it (list Viterbi).

    Returns
    -------
    paths : ndarray of shape (n_found, length)
        Fewer than n where there are no more, or others have a score of -inf.
    scores : ndarray of shape (n_found,)
    """
    length, n_labels = emissions.shape
    ways = emissions[0][:, None]  # label x rank
    sources: list[np.ndarray] = []
    for t in range(1, length):
        interruption.check()
        flat = (ways[:, :, None] + table[:, None, :]).reshape(-1, n_labels)
        chosen = _top(flat, n)
        sources.append(chosen)
        ways = np.take_along_axis(flat, chosen, axis=0).T + emissions[t][:, None]
    ends = _top(ways.reshape(-1, 1), n)[:, 0]
    scores = ways.reshape(-1)[ends]
    ends, scores = ends[np.isfinite(scores)], scores[np.isfinite(scores)]
    paths = np.zeros((len(ends), length), dtype=np.int64)
    width = ways.shape[1]
    labels, ranks = ends // width, ends % width
    for t in range(length - 1, -1, -1):
        paths[:, t] = labels
        if t:
            places = sources[t - 1][ranks, labels]
            width = len(sources[t - 2]) if t > 1 else 1
            labels, ranks = places // width, places % width
    return paths, scores


def _top(values: np.ndarray, n: int) -> np.ndarray:
    """Rows of the n largest of each column, in decreasing order; equal ones by their row."""
    return np.argsort(-values, axis=0, kind="stable")[:n]
