"""liblinear's own package: one binary problem per label, small weights dropped.

The features become liblinear's structures once, off the clock, as its documentation advises for
repeated training; the labels of the problem are then exchanged. Weights of at most
`settings["smallest"]` are dropped, as is usual for one-vs-rest with very many labels. Each label's
dense weights live only until they are sparse.
"""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import scipy.sparse as sp
from liblinear.liblinear import parameter, problem
from liblinear.liblinearutil import train as train_binary


class Model:
    """Weights by label, bias included as the last feature, and the labels that were trained."""

    def __init__(self, weights, labels):
        self.weights, self.labels = weights, labels


def prepare(train, task):
    X = train["X"].astype(np.float64)
    features = problem(np.zeros(X.shape[0]), X, bias=1)
    return {"features": features, "Y": train["Y"].tocsc(), "n_features": X.shape[1]}


def fit(train, task):
    Y = train["Y"]
    labels = np.flatnonzero(np.diff(Y.indptr))
    options = f"-s {task.settings['solver']} -c {task.settings['C']} -B 1 -q"

    def solve(label):
        rows = Y.indices[Y.indptr[label] : Y.indptr[label + 1]]
        return solve_label(train["features"], rows, options, task.settings["smallest"])

    # Its calls release Python's lock.
    with ThreadPoolExecutor(task.threads) as pool:
        rows = list(pool.map(solve, labels))
    return Model(stacked(rows, train["n_features"] + 1), labels)


def solve_label(features, positives, options, smallest):
    """(features, values) of the weights of one label that are large enough."""
    own = features.copy()
    y = np.full(own.l, -1.0)
    y[positives] = 1
    own.y = np.ctypeslib.as_ctypes(y)
    solved = train_binary(own, parameter(options))
    weights = np.ctypeslib.as_array(solved.w, (own.n,))
    if solved.get_labels()[0] < 0:
        weights = -weights
    kept = np.flatnonzero(np.abs(weights) > smallest)
    return kept.astype(np.int32), weights[kept].astype(np.float32)


def stacked(rows, n_columns):
    """Rows of (columns, values) as one matrix with a column per label."""
    indptr = np.cumsum([0] + [len(columns) for columns, _ in rows])
    columns, values = (np.concatenate(part) for part in zip(*rows, strict=True))
    matrix = sp.csr_matrix((values, columns, indptr), shape=(len(rows), n_columns))
    return matrix.T.tocsr()


def predict(model, test, task):
    """Scores of a thousand rows at a time: liblinear's own predict knows dense weights only."""
    X, k = test["X"], min(task.request["k"], len(model.labels))
    found = [ranked(model, X[start : start + 1000], k) for start in range(0, X.shape[0], 1000)]
    return {"labels": np.concatenate(found)}


def ranked(model, X, k):
    weights = model.weights
    scores = (X @ weights[:-1]).toarray() + weights[-1].toarray()
    best = np.argpartition(-scores, k - 1, axis=1)[:, :k]
    order = np.argsort(-np.take_along_axis(scores, best, axis=1), axis=1, kind="stable")
    return model.labels[np.take_along_axis(best, order, axis=1)]


def save(model, task, directory):
    sp.save_npz(directory / "weights.npz", model.weights)
    np.save(directory / "labels.npy", model.labels)
