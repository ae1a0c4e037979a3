"""sublearn's PPD-Sparse; with the setting `bits` a fit ends with a compressed model."""

import numpy as np

from sublearn.extreme import PPDSparseClassifier


def fit(train, task):
    settings = dict(task.settings)
    bits = settings.pop("bits", None)
    classifier = PPDSparseClassifier(n_jobs=task.threads, random_state=task.seed, **settings)
    classifier.fit(train["X"], train["Y"])
    return classifier if bits is None else classifier.compress(bits)


def predict(model, test, task):
    labels, _ = model.predict_top_k(test["X"], k=task.request["k"])
    return {"labels": labels}


def save(model, task, directory):
    model.save(directory / "model.safetensors")


def solution(model, task):
    if model.fit_intercept == "fixed":
        return None  # the judge's objective has a penalty on an intercept that is learnt
    return {
        "form": np.array("one-vs-rest"),
        "coef": model.coef_,
        "intercept": model.intercept_,
        "C": np.array(model.C),
        "l1": np.array(model.l1),
    }
