"""SparseInverseCovariance."""

import warnings

from sublearn.linear import SparseInverseCovariance


def fit(train, task):
    model = SparseInverseCovariance(
        float(train["l1"]), covariance="precomputed", n_jobs=task.threads, **task.settings
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(train["S"])


def predict(model, test, task):
    return {"precision": model.precision_}
