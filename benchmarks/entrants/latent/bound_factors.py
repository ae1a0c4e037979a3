"""Factorisations without binary codes, as bounds: setting "method" is "pca" or "nmf"."""

import warnings

import numpy as np
from sklearn.decomposition import NMF


def fit(train, task):
    X, k = np.asarray(train["X"], dtype=float), int(task.settings["n_components"])
    if task.settings["method"] == "pca":  # without an intercept: the best of rank K
        U, s, V = np.linalg.svd(X, full_matrices=False)
        return U[:, :k] * s[:k], V[:k]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = NMF(k, init="nndsvda", max_iter=300, random_state=task.seed)
        return model.fit_transform(X), model.components_


def predict(model, test, task):
    Z, W = model
    return {"Z": Z, "W": W, "b": np.zeros(W.shape[1])}
