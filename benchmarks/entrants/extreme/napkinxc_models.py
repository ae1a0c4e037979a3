"""napkinXC: a probabilistic label tree, or binary relevance (one-vs-rest)."""

import shutil

import numpy as np
from napkinxc import models


def fit(train, task):
    settings = dict(task.settings)
    kind = getattr(models, settings.pop("model"))
    model = kind(str(task.scratch / "model"), threads=task.threads, seed=task.seed, **settings)
    model.fit(train["X"], train["Y"])  # writes the model's files as it goes
    return model


def ready(model, task):
    model.load()
    return model


def predict(model, test, task):
    k = task.request["k"]
    labels = np.full((test["X"].shape[0], k), -1, dtype=np.int64)
    for row, found in enumerate(model.predict(test["X"], top_k=k)):
        labels[row, : len(found)] = found[:k]
    return {"labels": labels}


def save(model, task, directory):
    shutil.copytree(task.scratch / "model", directory, dirs_exist_ok=True)
