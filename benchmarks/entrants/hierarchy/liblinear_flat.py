"""Flat one-vs-rest l1 logistic regression of scikit-learn over the classes, without a taxonomy."""

import warnings

from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier


def fit(train, task):
    base = LogisticRegression(
        l1_ratio=1.0, solver="liblinear", C=float(train["C"]), tol=1e-4, max_iter=1000
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return OneVsRestClassifier(base, n_jobs=task.threads).fit(train["X"], train["ends"])


def predict(model, test, task):
    return {"ends": model.predict(test["X"])}
