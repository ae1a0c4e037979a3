"""ChainSVM of this library; the bias is a feature of the data already."""

import warnings

import scipy.sparse as sp

from sublearn.structured import ChainSVM

#: Passes at most: twice the default of ChainSVM, rounded to a power of two.
MAX_PASSES = 64


def prepare(train, task):
    return train


def fit(train, task, n_iter):
    settings = {k: v for k, v in task.settings.items() if k != "first"}
    n_iter = min(n_iter, settings.pop("max_passes", MAX_PASSES))
    model = ChainSVM(
        **{"evaluate_every": 0, **settings},
        max_iter=n_iter,
        fit_intercept=False,
        end_features=False,
        random_state=task.seed,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(train["X"], train["y"].tolist(), lengths=train["lengths"])
    is_done = model.n_iter_ < n_iter or n_iter == task.settings.get("max_passes", MAX_PASSES)
    return model, model.n_iter_, is_done


def predict(model, test, task):
    return model.predict(test["X"], lengths=test["lengths"])


def save(model, path):
    model.save(path)


def weights(model):
    return sp.csr_matrix(model.coef_).T, model.transitions_


def bound(model):
    bounds = model.trace_["bound"]
    known = bounds[bounds == bounds]
    return float(known.max()) if len(known) else None
