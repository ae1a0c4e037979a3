"""sublearn's PD-Sparse."""

import numpy as np

from sublearn import extreme


def fit(train, task):
    settings = {"n_jobs": task.threads, "random_state": task.seed, **task.settings}
    classifier = extreme.PDSparseClassifier(**settings)
    return classifier.fit(train["X"], train["Y"])


def predict(model, test, task):
    labels, _ = model.predict_top_k(test["X"], k=task.request["k"])
    return {"labels": labels}


def save(model, task, directory):
    model.save(directory / "model.safetensors")


def solution(model, task):
    if model.early_stopping:
        return None  # its objective is that of the rows that were not held out
    return {
        "form": np.array("separation"),
        "coef": model.coef_,
        "intercept": model.intercept_,
        "C": np.array(model.C),
        "l1": np.array(model.l1),
    }
