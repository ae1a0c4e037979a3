"""fastText, supervised, with a hierarchical softmax or one-vs-all.

It reads words, not numbers: a row becomes the names of its features, so it sees which features a
row has and not their weight. Writing its text file is not timed, reading it belongs to its call.
"""

import fasttext
import numpy as np

LABEL = "__label__"


def prepare(train, task):
    X, Y = train["X"], train["Y"]
    path = task.scratch / "train.txt"
    with path.open("w") as file:
        for row in np.flatnonzero((X.getnnz(axis=1) > 0) & (Y.getnnz(axis=1) > 0)):
            labels = Y.indices[Y.indptr[row] : Y.indptr[row + 1]].tolist()
            file.write(" ".join(f"{LABEL}{label}" for label in labels))
            file.write(f" {words_of(X, row)}\n")
    return {"path": path}


def prepare_test(test, task):
    return [words_of(test["X"], row) for row in range(test["X"].shape[0])]


def words_of(X, row):
    return " ".join(f"f{j}" for j in X.indices[X.indptr[row] : X.indptr[row + 1]].tolist())


def fit(train, task):
    return fasttext.train_supervised(
        str(train["path"]), thread=task.threads, seed=task.seed, verbose=0, **task.settings
    )


def predict(model, lines, task):
    k = task.request["k"]
    labels = np.full((len(lines), k), -1, dtype=np.int64)
    for row, found in enumerate(model.predict(lines, k=k)[0]):
        labels[row, : len(found)] = [int(name.removeprefix(LABEL)) for name in found]
    return {"labels": labels}


def save(model, task, directory):
    model.save_model(str(directory / "model.bin"))
