"""scikit-learn's LinearSVC, one per label."""

import joblib
import numpy as np
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import LinearSVC


class Model:
    """The fitted classifier and the labels its columns stand for.

    Labels without a training row are left out: scikit-learn would give them the constant score 0,
    above nearly every real score.
    """

    def __init__(self, classifier, labels):
        self.classifier, self.labels = classifier, labels


def fit(train, task):
    labels = np.flatnonzero(train["Y"].getnnz(axis=0))
    classifier = OneVsRestClassifier(
        LinearSVC(random_state=task.seed, **task.settings), n_jobs=task.threads
    )
    # liblinear releases Python's lock; threads also keep all CPU time in this process.
    with joblib.parallel_config(backend="threading"):
        classifier.fit(train["X"], train["Y"][:, labels])
    return Model(classifier, labels)


def predict(model, test, task):
    scores = model.classifier.decision_function(test["X"])
    k = min(task.request["k"], scores.shape[1])
    best = np.argpartition(-scores, k - 1, axis=1)[:, :k]
    order = np.argsort(-np.take_along_axis(scores, best, axis=1), axis=1, kind="stable")
    return {"labels": model.labels[np.take_along_axis(best, order, axis=1)]}


def save(model, task, directory):
    joblib.dump(model.classifier, directory / "model.joblib")
