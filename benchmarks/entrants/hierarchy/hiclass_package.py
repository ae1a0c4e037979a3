"""The package hiclass with l1 logistic regression of liblinear at its nodes."""

import warnings

import numpy as np
from hiclass import (
    LocalClassifierPerLevel,
    LocalClassifierPerNode,
    LocalClassifierPerParentNode,
)
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier

STRATEGIES = {
    "parent": LocalClassifierPerParentNode,
    "node": LocalClassifierPerNode,
    "level": LocalClassifierPerLevel,
}


def paths_of(parents, ends):
    """Names of the labels on the path to each end, the root first, "" behind the end."""
    paths = []
    for end in ends.tolist():
        path = []
        while end >= 0:
            path.append(str(end))
            end = parents[end]
        paths.append(path[::-1])
    depth = max(map(len, paths))
    return np.array([path + [""] * (depth - len(path)) for path in paths])


def prepare(train, task):
    return {**train, "paths": paths_of(train["parents"].tolist(), train["ends"])}


def fit(train, task):
    base = LogisticRegression(
        l1_ratio=1.0, solver="liblinear", C=float(train["C"]), tol=1e-4, max_iter=1000
    )
    base = OneVsRestClassifier(base)  # liblinear tells two classes apart
    model = STRATEGIES[task.settings["strategy"]](local_classifier=base, n_jobs=task.threads)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(train["X"], train["paths"])


def predict(model, test, task):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        paths = np.asarray(model.predict(test["X"])).astype(str)
    last = [[name for name in path if name not in ("", "nan")][-1] for path in paths]
    return {"ends": np.array(last).astype(int)}
