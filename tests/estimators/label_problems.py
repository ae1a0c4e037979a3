"""Problems with very many labels, and when two models are one; for all tests beside this file."""

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import Normalizer


def multilabel(seed=0, n_rows=150, n_features=40, n_labels=37):
    """Sparse rows of length one and the indicator matrix of labels that depend on them."""
    rng = np.random.default_rng(seed)
    X = sp.random(n_rows, n_features, 0.2, "csr", random_state=rng, data_rvs=rng.standard_normal)
    X = Normalizer().fit_transform(X)
    scores = X @ rng.normal(size=(n_features, n_labels))
    return X, scores > np.quantile(scores, 0.93)


def multiclass(seed=0, n_rows=150, n_classes=5):
    X, _ = multilabel(seed, n_rows)
    weights = np.random.default_rng(seed + 1).normal(size=(X.shape[1], n_classes))
    return X, np.asarray(X @ weights).argmax(axis=1)


def extreme(n_rows=4000, n_labels=1000, n_features=4000, seed=0):
    """Rows have five of the eight features of their label and three of any."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_labels, n_rows)
    features = rng.integers(0, n_features, (n_labels, 8))
    own = features[y[:, None], rng.integers(0, 8, (n_rows, 5))]
    columns = np.hstack([own, rng.integers(0, n_features, (n_rows, 3))]).ravel()
    rows = np.repeat(np.arange(n_rows), 8)
    X = sp.csr_matrix((np.ones(len(rows)), (rows, columns)), shape=(n_rows, n_features))
    return Normalizer().fit_transform(X), y


def arrays(model):
    return model.coef_.toarray(), model.intercept_


def assert_same_model(a, b):
    for left, right in zip(arrays(a), arrays(b), strict=True):
        np.testing.assert_array_equal(left, right)
