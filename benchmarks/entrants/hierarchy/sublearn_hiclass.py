"""HierarchicalClassifier: the hybrid, or one solver for all nodes."""

import warnings

from sublearn.hierarchy import HierarchicalClassifier, Taxonomy


def fit(train, task):
    taxonomy = Taxonomy(train["parents"].tolist())
    model = HierarchicalClassifier(
        taxonomy, C=float(train["C"]), n_jobs=task.threads, **task.settings
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(train["X"], train["ends"])


def predict(model, test, task):
    return {"ends": model.predict(test["X"])}
