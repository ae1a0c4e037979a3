"""omikuji: a forest of three label trees, grown as Parabel or as Bonsai does.

It trains from a text file only: writing that file is not timed, reading it belongs to its call.
Its reader refuses rows without features or labels, so these are left out of training. It predicts
one row per call, so the loop over rows is timed.
"""

import numpy as np
import omikuji


def prepare(train, task):
    path = task.scratch / "train.txt"
    X, Y = train["X"], train["Y"]
    with path.open("w") as file:
        usable = np.flatnonzero((X.getnnz(axis=1) > 0) & (Y.getnnz(axis=1) > 0))
        file.write(f"{len(usable)} {X.shape[1]} {Y.shape[1]}\n")
        for row in usable:
            labels = ",".join(map(str, Y.indices[Y.indptr[row] : Y.indptr[row + 1]]))
            pairs = " ".join(f"{j}:{value:.8g}" for j, value in pairs_of(X, row))
            file.write(f"{labels} {pairs}\n")
    return {"path": path}


def prepare_test(test, task):
    return [pairs_of(test["X"], row) for row in range(test["X"].shape[0])]


def pairs_of(X, row):
    """(column, value) of one row's entries."""
    place = slice(X.indptr[row], X.indptr[row + 1])
    return list(zip(X.indices[place].tolist(), X.data[place].tolist(), strict=True))


def fit(train, task):
    parameters = omikuji.Model.default_hyper_param()
    for name, value in task.settings.items():
        setattr(parameters, name, value)
    return omikuji.Model.train_on_data(str(train["path"]), parameters, n_threads=task.threads)


def ready(model, task):
    model.init_prediction_thread_pool(task.threads)
    return model


def predict(model, rows, task):
    k = task.request["k"]
    labels = np.full((len(rows), k), -1, dtype=np.int64)
    for row, pairs in enumerate(rows):
        found = [label for label, _ in model.predict(pairs, top_k=k)]
        labels[row, : len(found)] = found
    return {"labels": labels}


def save(model, task, directory):
    model.save(str(directory))
