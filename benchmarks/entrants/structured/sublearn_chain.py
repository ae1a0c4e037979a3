"""ChainSVM of this library; the bias is a feature of the data already."""

import scipy.sparse as sp

from sublearn.structured import ChainSVM, Passes

#: Passes at most: twice the default of ChainSVM, rounded to a power of two.
MAX_PASSES = 64
#: Settings that are fields of Passes.
WAYS = ("evaluate_every", "rho", "eta", "factors", "full_search")


def fit(train, task):
    settings = dict(task.settings)
    ways = {name: settings.pop(name) for name in WAYS if name in settings}
    passes = Passes(**{"evaluate_every": 0, **ways})
    most = settings.pop("max_passes", MAX_PASSES)
    n_iter = min(settings.pop("n_iter"), most)
    model = ChainSVM(
        **settings,
        max_iter=n_iter,
        passes=passes,
        fit_intercept=False,
        end_features=False,
        random_state=task.seed,
    )
    model.fit(train["X"], train["y"].tolist(), lengths=train["lengths"])
    model.is_done = model.n_iter_ < n_iter or n_iter == most
    return model


def figures(model):
    bounds = model.trace_["bound"]
    known = bounds[bounds == bounds]
    bound = float(known.max()) if len(known) else None
    return {"n_iter": model.n_iter_, "is_done": model.is_done, "bound": bound}


def predict(model, test, task):
    if task.request["wants"] == "weights":
        return {"W": sp.csr_matrix(model.coef_).T.tocsr(), "T": model.transitions_}
    return {"tags": model.predict(test["X"], lengths=test["lengths"])}


def save(model, task, directory):
    model.save(directory / "model")
