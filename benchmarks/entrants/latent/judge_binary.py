"""A rival of judges/binary_factors.py; settings "method" and "seconds" of CPU for its attempts."""

import time

import numpy as np
from judges.binary_factors import fit_features, repeated


def fit(train, task):
    X = np.asarray(train["X"], dtype=float)
    rng, start = np.random.default_rng(task.seed), time.process_time()
    budget = float(task.settings["seconds"])
    Z = repeated(
        task.settings["method"],
        X,
        int(task.settings["n_components"]),
        rng,
        lambda: time.process_time() - start > budget,
    )
    return Z, fit_features(X, Z)


def predict(model, test, task):
    Z, W = model
    return {"Z": Z, "W": W, "b": np.zeros(W.shape[1])}
